/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tokenizer.h"
#include "formats/model_files.h"
#include "tests/formats/gguf_build.h"
#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

static cake_buf said;

static const float numbers[64];

/* Two keys and two tensors. */
static void build_small(gguf_build *b)
{
    static const int64_t matrix[] = {2, 32}, vector[] = {3};
    build_text(b, "general.architecture", "llama");
    build_u32(b, "llama.block_count", 1);
    build_tensor(b, "a", 0, matrix, 2, numbers, 256);
    build_tensor(b, "b", 0, vector, 1, numbers, 12);
}

/* Parses the bytes, quietly. */
static cake_err parse(const cake_buf *bytes, cake_gguf **out)
{
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_err err = cake_gguf_parse(bytes->data, bytes->len, (int64_t)bytes->len, "FILE", out);
    cake_log_capture(NULL);
    return err;
}

static void refuse(const cake_buf *bytes, const char *message)
{
    cake_gguf *g = NULL;
    cake_err err = parse(bytes, &g);
    bool fits = err == CAKE_ERR_FATAL && said.data && strstr(said.data, message);
    if (!fits)
        printf("\n    expected: %s\n    said: %s\n", message, said.data ? said.data : "nothing");
    CU_ASSERT(fits);
    cake_gguf_close(g);
}

static void test_reading(void)
{
    gguf_build b = {0};
    cake_buf bytes = {0};
    cake_gguf *g = NULL;
    static const char *const texts[] = {"x", "", "yz"};
    build_small(&b);
    build_f32(&b, "f", 1.5F);
    build_bool(&b, "t", 1);
    build_texts(&b, "l", texts, 3);
    build_array(&b, "n", CAKE_GGUF_I8, 2);
    build_number(&b.keys, 0xFF07, 2);
    build_bytes(&b, &bytes);
    CU_ASSERT_EQUAL_FATAL(parse(&bytes, &g), CAKE_OK);
    int64_t n;
    double f;
    bool t;
    cake_gguf_text text;
    CU_ASSERT_EQUAL(cake_gguf_int(g, "llama.block_count", 0, 0, 9, &n), CAKE_OK);
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT_EQUAL(cake_gguf_real(g, "f", 0, &f), CAKE_OK);
    CU_ASSERT_EQUAL(f, 1.5);
    CU_ASSERT_EQUAL(cake_gguf_bool(g, "t", false, &t), CAKE_OK);
    CU_ASSERT(t);
    CU_ASSERT_EQUAL(cake_gguf_text_of(g, "general.architecture", &text), CAKE_OK);
    CU_ASSERT(text.len == 5 && !memcmp(text.at, "llama", 5));
    cake_gguf_text *list = cake_gguf_texts(cake_gguf_find(g, "l"));
    CU_ASSERT(list && list[1].len == 0 && list[2].len == 2 && list[2].at[0] == 'y');
    free(list);
    CU_ASSERT_EQUAL(cake_gguf_int_at(cake_gguf_find(g, "n"), 1, 0), -1);
    CU_ASSERT_EQUAL(cake_gguf_int_at(cake_gguf_find(g, "n"), 2, 99), 99);
    CU_ASSERT_PTR_NULL(cake_gguf_find(g, "absent"));
    const cake_gguf_tensor *a = cake_gguf_tensor_find(g, "a"), *v = cake_gguf_tensor_find(g, "b");
    CU_ASSERT(a && a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 32 && a->end - a->begin == 256);
    CU_ASSERT(v && v->begin == a->end && v->end == (int64_t)bytes.len);
    CU_ASSERT_PTR_NULL(cake_gguf_tensor_find(g, "c"));
    cake_gguf_close(g);
    cake_buf_free(&bytes);
    build_free(&b);
}

/* Each byte of a good file cut off, and each changed: accepted or refused with a message, never a fault. */
static void test_every_byte(void)
{
    gguf_build b = {0};
    cake_buf bytes = {0};
    build_small(&b);
    build_bytes(&b, &bytes);
    const size_t all = bytes.len;
    for (size_t len = 0; len < all - 12; len++) {
        cake_buf cut = {.data = bytes.data, .len = len, .cap = len};
        cake_gguf *g = NULL;
        CU_ASSERT_EQUAL(parse(&cut, &g), CAKE_ERR_FATAL);
        CU_ASSERT(said.len > 0);
    }
    for (size_t i = 0; i < all; i++)
        for (int bit = 0; bit < 8; bit++) {
            cake_gguf *g = NULL;
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
            cake_err err = parse(&bytes, &g);
            CU_ASSERT(err == CAKE_OK || (err == CAKE_ERR_FATAL && said.len > 0));
            cake_gguf_close(g);
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
        }
    cake_buf_free(&bytes);
    build_free(&b);
}

/* Values that lie about sizes and counts. */
static void test_headers(void)
{
    static const struct {
        const char *begin; /* as "GGUF" */
        uint32_t version;
        uint64_t n_tensor, n_key;
        const char *message;
    } cases[] = {
        {"GGML", 3, 0, 0, "a GGUF file begins with \"GGUF\", this one with 0x47474D4C"},
        {"GGUF", 1, 0, 0, "version 1 of GGUF; supported are 2 and 3"},
        {"GGUF", 4, 0, 0, "version 4 of GGUF"},
        {"GGUF", 0x03000000, 0, 0, "big endian"},
        {"GGUF", 3, UINT64_MAX, 0, "byte 8: 18446744073709551615 tensors are more than a file"},
        {"GGUF", 3, 0, (uint64_t)1 << 40, "byte 16: 1099511627776 keys are more than a file"},
        {"GGUF", 3, 0, 1, "byte 16: 1 keys are more than a file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf bytes = {0};
        cake_buf_adds(&bytes, cases[i].begin);
        build_number(&bytes, cases[i].version, 4);
        build_number(&bytes, cases[i].n_tensor, 8);
        build_number(&bytes, cases[i].n_key, 8);
        refuse(&bytes, cases[i].message);
        cake_buf_free(&bytes);
    }
}

static void refuse_build(gguf_build *b, const char *message)
{
    cake_buf bytes = {0};
    build_bytes(b, &bytes);
    refuse(&bytes, message);
    cake_buf_free(&bytes);
    build_free(b);
}

static void test_values(void)
{
    gguf_build b = {0};
    build_key(&b, "k", CAKE_GGUF_STRING);
    build_number(&b.keys, (uint64_t)1 << 63, 8);
    refuse_build(&b, "a string needs 9223372036854775808 bytes, but the file ends");
    build_array(&b, "k", CAKE_GGUF_U64, (uint64_t)1 << 61);
    refuse_build(&b, "2305843009213693952 elements are more than the file has bytes for");
    build_array(&b, "k", CAKE_GGUF_STRING, 3);
    build_string(&b.keys, "x", 1);
    refuse_build(&b, "a string needs");
    build_array(&b, "k", CAKE_GGUF_ARRAY, 1);
    refuse_build(&b, "key k is an array of arrays");
    build_key(&b, "k", CAKE_GGUF_N_KIND);
    refuse_build(&b, "the value's type is 13; known are 0 to 12");
    build_bool(&b, "k", 2);
    refuse_build(&b, "a bool is 2; 0 or 1 is expected");
    build_u32(&b, "", 1);
    refuse_build(&b, "a key of 0 bytes");
    build_u32(&b, "\xFF", 1);
    refuse_build(&b, "1 to 65535 bytes of UTF-8");
    build_u32(&b, "k", 1);
    build_u32(&b, "k", 1);
    refuse_build(&b, "key k (byte 41): another one of this name is at byte 24");
    build_u32(&b, "general.alignment", 24);
    refuse_build(&b, "found 24, expected a power of two");
    build_text(&b, "general.alignment", "x");
    refuse_build(&b, "a whole number is expected");
}

static void test_tensors(void)
{
    static const int64_t zero[] = {2, 0}, one[] = {32}, odd[] = {33}, huge[] = {INT64_MAX, INT64_MAX, 8};
    gguf_build b = {0};
    build_tensor(&b, "a", 0, zero, 2, "", 0);
    refuse_build(&b, "a dimension of 0; at least 1 is expected");
    build_tensor(&b, "a", 0, one, 0, "", 0);
    refuse_build(&b, "the tensor has 0 dimensions");
    build_tensor(&b, "a", 99, one, 1, "", 0);
    refuse_build(&b, "tensor a has type 99, which is unknown");
    build_tensor(&b, "a", 8, odd, 1, "", 0);
    refuse_build(&b, "tensor a has rows of 33 values, but blocks of Q8_0 have 32");
    build_tensor(&b, "a", 0, huge, 3, "", 0);
    refuse_build(&b, "the dimensions of tensor a multiply to more than 63 bits of bytes");
    build_tensor(&b, "a", 0, one, 1, numbers, 64);
    refuse_build(&b, "past the end of the file");
    build_tensor(&b, "a", 0, one, 1, numbers, 128);
    build_tensor(&b, "a", 0, one, 1, numbers, 128);
    refuse_build(&b, "tensor a occurs twice");
    build_tensor(&b, "a", 0, one, 1, numbers, 128);
    b.data.len = 0; /* the next begins at the same byte */
    build_tensor(&b, "b", 0, one, 1, numbers, 128);
    refuse_build(&b, "tensor b has offset 0; 128 is expected");
    build_tensor(&b, "a", 0, one, 1, numbers, 128);
    cake_buf_add(&b.data, numbers, 128);
    build_tensor(&b, "b", 0, one, 1, numbers, 128);
    refuse_build(&b, "tensor b has offset 256; 128 is expected");
    build_tensor(&b, "a", 0, one, 1, numbers, 128);
    cake_buf_add(&b.data, numbers, 32);
    refuse_build(&b, "the last tensor ends at byte");
    b.alignment = 8;
    build_tensor(&b, "a", 8, one, 1, numbers, 34);
    build_tensor(&b, "b", 8, one, 1, numbers, 34);
    refuse_build(&b, "tensor b has offset 40; 64 is expected, where the one before ends, a multiple of 32");
}

/* ---- several files */

static void write_part(const char *path, int no, int count, int total, const char *tensor)
{
    static const int64_t shape[] = {32};
    gguf_build b = {0};
    if (!no)
        build_text(&b, "general.architecture", "llama");
    build_u32(&b, "split.no", (uint32_t)no);
    build_u32(&b, "split.count", (uint32_t)count);
    build_u32(&b, "split.tensors.count", (uint32_t)total);
    build_tensor(&b, tensor, 0, shape, 1, numbers, 128);
    CU_ASSERT_EQUAL(build_file(&b, path), 0);
    build_free(&b);
}

static cake_err open_parts(const char *path, cake_gguf_parts *parts)
{
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_err err = cake_gguf_parts_open("model", path, parts);
    cake_log_capture(NULL);
    return err;
}

static void test_parts(void)
{
    char dir[256], path[3][300];
    cake_gguf_parts parts = {0};
    cake_gguf_place place;
    snprintf(dir, sizeof dir, "%s/parts", suite_tmp());
    mkdir(dir, 0777);
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/m-%05d-of-00002.gguf", dir, i + 1);
    CU_ASSERT(!cake_gguf_locate(dir, &place));
    write_part(path[0], 0, 2, 2, "a");
    CU_ASSERT_EQUAL(open_parts(path[0], &parts), CAKE_ERR_FATAL);
    CU_ASSERT(said.data && strstr(said.data, "m-00002-of-00002.gguf: cannot be opened"));
    write_part(path[1], 1, 2, 2, "b");
    CU_ASSERT_EQUAL_FATAL(open_parts(path[0], &parts), CAKE_OK);
    CU_ASSERT(parts.n == 2 && cake_gguf_parts_find(&parts, "b") && !cake_gguf_parts_find(&parts, "c"));
    cake_gguf_parts_close(&parts);
    CU_ASSERT(cake_gguf_locate(dir, &place) && place.alone && !strcmp(place.path.data, path[0]));
    cake_gguf_place_free(&place);
    CU_ASSERT_EQUAL(open_parts(path[1], &parts), CAKE_ERR_FATAL);
    CU_ASSERT(said.data && strstr(said.data, "is part 2 of 2 of a model; give the first one"));
    write_part(path[1], 1, 2, 2, "a");
    CU_ASSERT_EQUAL(open_parts(path[0], &parts), CAKE_ERR_FATAL);
    CU_ASSERT(said.data && strstr(said.data, "tensor a is in"));
    write_part(path[1], 1, 3, 2, "b");
    CU_ASSERT_EQUAL(open_parts(path[0], &parts), CAKE_ERR_FATAL);
    CU_ASSERT(said.data && strstr(said.data, "is part 2 of 3 by its keys, but 2 of 2 by its name"));
    write_part(path[0], 0, 2, 3, "a");
    write_part(path[1], 1, 2, 3, "b");
    CU_ASSERT_EQUAL(open_parts(path[0], &parts), CAKE_ERR_FATAL);
    CU_ASSERT(said.data &&
              strstr(said.data, "2 parts have 2 tensors together, but split.tensors.count is 3"));
    snprintf(path[2], sizeof path[2], "%s/other.gguf", dir);
    write_part(path[2], 0, 1, 1, "a");
    CU_ASSERT(!cake_gguf_locate(dir, &place)); /* which of the two? */
    CU_ASSERT(cake_gguf_locate(path[2], &place) && !place.alone);
    cake_gguf_place_free(&place);
}

/* ---- keys as files */

static void build_vocab(gguf_build *b, const char *model, const char *pre)
{
    static const char *const tokens[] = {"<unk>", "<s>", "a", "b", "ab", "<|im_end|>", "\xE2\x96\x81"};
    static const char *const merges[] = {"a b"};
    static const char types[] = {2, 3, 1, 1, 1, 3, 1};
    float scores[] = {0, 0, -1, -2, -4, 0, -1.5F};
    if (pre && !strcmp(pre, "no score"))
        scores[3] = NAN;
    build_text(b, "general.architecture", "llama");
    build_text(b, "tokenizer.ggml.model", model);
    if (pre)
        build_text(b, "tokenizer.ggml.pre", pre);
    build_texts(b, "tokenizer.ggml.tokens", tokens, 7);
    build_array(b, "tokenizer.ggml.token_type", CAKE_GGUF_I8, 7);
    cake_buf_add(&b->keys, types, 7);
    build_array(b, "tokenizer.ggml.scores", CAKE_GGUF_F32, 7);
    cake_buf_add(&b->keys, scores, sizeof scores);
    build_texts(b, "tokenizer.ggml.merges", merges, 1);
    build_u32(b, "tokenizer.ggml.bos_token_id", 1);
    build_u32(b, "tokenizer.ggml.eos_token_id", 5);
}

static cake_err make_tokenizer(gguf_build *b, cake_buf *json)
{
    cake_buf bytes = {0};
    cake_gguf *g = NULL;
    build_bytes(b, &bytes);
    CU_ASSERT_EQUAL_FATAL(parse(&bytes, &g), CAKE_OK);
    cake_log_capture(&said);
    cake_err err = cake_gguf_tokenizer_json(g, "tokenizer", json);
    cake_log_capture(NULL);
    cake_gguf_close(g);
    cake_buf_free(&bytes);
    build_free(b);
    return err;
}

static void test_tokenizers(void)
{
    static const struct {
        const char *model, *pre, *has; /* of the text, or the message */
        bool fine;
    } cases[] = {
        {"gpt2", "llama-bpe", "\"ignore_merges\": true", true},
        {"gpt2", "qwen2", "\"NFC\"", true},
        {"gpt2", "llama-bpe", "\"TemplateProcessing\"", true}, /* begins with BOS */
        {"gpt2", "smollm", "\"merges\": [[\"a\",\"b\"]]", true},
        {"gpt2", "kimi-k2", "\\\\p{Han}+|", true},
        {"gpt2", "deepseek-llm", "\\\\s?[A-Za-z\\\\x{B5}", true},
        {"gpt2", "deepseek-coder", "\\\\s?\\\\p{P}+", true},
        {"gpt2", "minicpm5", "\\\\p{N}{1,3}\"}", true},
        {"gpt2", "unheard-of", "tokenizer.ggml.pre is \"unheard-of\": how its model cuts", false},
        {"gpt2", "qwen2 ", "tokenizer.ggml.pre is \"qwen2 \"", false},
        {"gpt2", NULL, "tokenizer.ggml.pre is \"\"", false},
        {"llama", NULL, "{\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81\"}", true},
        {"llama", "default", "\"merges\": [[\"a\",\"b\"]]", true},
        {"t5", NULL, "\"unk_id\": 0, \"vocab\": [[\"<unk>\",0", true},
        {"t5", "default", "\"prepend_scheme\": \"always\"", true},
        {"t5", "no score", "the score of token 3 is not a finite number", false},
        {"bert", NULL, "\"##ab\":4", true},
        {"bert", NULL, "\"lowercase\": true", true},
        {"rwkv", NULL, "tokenizer.ggml.model is \"rwkv\"; supported are gpt2", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_build b = {0};
        cake_buf json = {0};
        cake_json *root = NULL;
        cake_fault fault;
        build_vocab(&b, cases[i].model, cases[i].pre);
        CU_ASSERT_EQUAL(make_tokenizer(&b, &json), cases[i].fine ? CAKE_OK : CAKE_ERR_FATAL);
        const cake_buf *text = cases[i].fine ? &json : &said;
        CU_ASSERT(text->data && strstr(text->data, cases[i].has));
        CU_ASSERT(!cases[i].fine || !cake_json_parse(json.data, json.len, &root, &fault));
        cake_json_free(root);
        cake_buf_free(&json);
    }
}

/* A tokenizer.json beside the file may be of an unknown kind: the names of special tokens are read. */
static void test_unknown_kind(void)
{
    gguf_build b = {0};
    cake_buf bytes = {0}, json = {0};
    cake_gguf *g = NULL;
    build_vocab(&b, "rwkv", NULL);
    build_bytes(&b, &bytes);
    CU_ASSERT_EQUAL_FATAL(parse(&bytes, &g), CAKE_OK);
    CU_ASSERT_EQUAL(cake_gguf_tokenizer_config(g, "tokenizer", &json), CAKE_OK);
    CU_ASSERT(json.data && strstr(json.data, "\"eos_token\": \"<|im_end|>\""));
    cake_gguf_close(g);
    cake_buf_free(&bytes);
    cake_buf_free(&json);
    build_free(&b);
}

/* The unigram model takes the pieces whose scores have the greatest sum, where BPE merges. */
static void test_unigram(void)
{
    static const struct {
        bool squeezed;
        const char *text;
        int32_t id[6];
        size_t n;
    } cases[] = {{false, "ab", {6, 2, 3, 5}, 4}, /* -1 and -2 are more than -4 */
                 {false, "a  b", {6, 2, 6, 6, 3, 5}, 6},
                 {true, " a  b ", {6, 2, 6, 3, 5}, 5},
                 {true, "xa", {6, 0, 2, 5}, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_build b = {0};
        cake_buf json = {0};
        cake_tokenizer *token = NULL;
        cake_ids ids = {0};
        cake_fault fault = {0};
        build_vocab(&b, "t5", NULL);
        build_bool(&b, "tokenizer.ggml.remove_extra_whitespaces", cases[i].squeezed);
        CU_ASSERT_EQUAL_FATAL(make_tokenizer(&b, &json), CAKE_OK);
        CU_ASSERT_EQUAL_FATAL(cake_tokenizer_parse(json.data, json.len, "t5", &token), CAKE_OK);
        CU_ASSERT_EQUAL(
            cake_tokenizer_encode(token, cases[i].text, strlen(cases[i].text), true, &ids, &fault), CAKE_OK);
        CU_ASSERT(ids.len == cases[i].n && !memcmp(ids.id, cases[i].id, ids.len * sizeof *ids.id));
        cake_ids_free(&ids);
        cake_tokenizer_close(token);
        cake_buf_free(&json);
    }
}

/* Files beside a GGUF file count if it is the only model there; config.json never does. */
static void test_files_beside(void)
{
    char dir[256], path[300];
    gguf_build b = {0};
    cake_buf text = {0};
    snprintf(dir, sizeof dir, "%s/beside", suite_tmp());
    mkdir(dir, 0777);
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    build_vocab(&b, "gpt2", "gpt-2");
    build_text(&b, "tokenizer.chat_template", "{{ 'keys' }}");
    CU_ASSERT_EQUAL(build_file(&b, path), 0);
    CU_ASSERT_EQUAL(cake_model_files_read("chat", dir, "chat_template.jinja", 99, &text), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(text.data, "{{ 'keys' }}");
    CU_ASSERT_EQUAL(cake_model_files_read("chat", path, "chat_template.json", 99, &text), CAKE_END);
    char other[300];
    snprintf(other, sizeof other, "%s/chat_template.jinja", dir);
    FILE *f = fopen(other, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("{{ 'file' }}", f);
    fclose(f);
    cake_buf_cut(&text, 0);
    CU_ASSERT_EQUAL(cake_model_files_read("chat", path, "chat_template.jinja", 99, &text), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(text.data, "{{ 'file' }}");
    snprintf(other, sizeof other, "%s/second.gguf", dir);
    CU_ASSERT_EQUAL(build_file(&b, other), 0);
    cake_buf_cut(&text, 0);
    CU_ASSERT_EQUAL(cake_model_files_read("chat", path, "chat_template.jinja", 99, &text), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(text.data, "{{ 'keys' }}");
    cake_buf_free(&text);
    build_free(&b);
}

/* A kind of model that is not known is refused by name. */
static void test_architectures(void)
{
    gguf_build b = {0};
    cake_buf bytes = {0}, json = {0};
    cake_gguf *g = NULL;
    build_text(&b, "general.architecture", "mamba");
    build_bytes(&b, &bytes);
    CU_ASSERT_EQUAL_FATAL(parse(&bytes, &g), CAKE_OK);
    cake_gguf_parts parts = {.part = &g, .n = 1};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_gguf_config(&parts, "model", &json), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(
        said.data &&
        strstr(said.data, "general.architecture is mamba; supported architectures of GGUF files: llama"));
    cake_gguf_close(g);
    cake_buf_free(&bytes);
    cake_buf_free(&json);
    build_free(&b);
}

static const suite_test tests[] = {
    {"keys and tensors", test_reading},
    {"every byte cut off or changed", test_every_byte},
    {"headers that lie", test_headers},
    {"values that lie", test_values},
    {"tensors that lie", test_tensors},
    {"parts that do not belong together", test_parts},
    {"tokenizers by their keys", test_tokenizers},
    {"... the unigram model's ids", test_unigram},
    {"... of a kind that is not known", test_unknown_kind},
    {"files beside it", test_files_beside},
    {"architectures", test_architectures},
};

int main(void)
{
    int failed = SUITE_MAIN("gguf", tests);
    cake_buf_free(&said);
    return failed;
}
