/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "rows.h"
#include "tests/suite.h"
#include "tokenizer/parse_score.h"

/* The file has each model once: a tokenizer is the rest of it with one of them. */
static void test_components(void)
{
    cake_json *golden = rows_load(suite_path("golden/tokenizer.json"));
    const cake_json *list = cake_json_get(golden, "tokenizers"), *models = cake_json_get(golden, "models");
    size_t rows = 0;
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const cake_json *entry = cake_json_at(list, i), *cases = cake_json_get(entry, "cases");
        const char *name = cake_json_text(cake_json_get(entry, "name"), NULL);
        const char *model = cake_json_text(cake_json_get(entry, "model"), NULL);
        cake_tokenizer *token = NULL;
        cake_buf text = {0};
        if (model) {
            cake_json_add_node(&text, cake_json_get(entry, "rest"));
            cake_buf_cut(&text, text.len - 1);
            cake_buf_adds(&text, ",\"model\":");
            cake_json_add_node(&text, cake_json_get(models, model));
            cake_buf_adds(&text, "}");
        }
        cake_err err = model ? cake_tokenizer_parse(text.data, text.len, name, &token)
                             : cake_tokenizer_open(suite_path("jobs/demo/model"), &token);
        cake_buf_free(&text);
        CU_ASSERT_FATAL(!err);
        for (size_t k = 0; k < cake_json_size(cases); k++, rows++)
            CU_ASSERT(rows_check(token, name, cake_json_at(cases, k)));
        cake_tokenizer_close(token);
    }
    CU_ASSERT(rows > 2500);
    cake_json_free(golden);
}

static cake_tokenizer *open_asset(const char *name)
{
    const char *dir = suite_asset(name);
    cake_tokenizer *token = NULL;
    if (dir && cake_tokenizer_open(dir, &token))
        CU_FAIL_FATAL("a tokenizer of the assets does not open");
    return token;
}

/* expected/ggml: strings between separators, and a line of ids for each. */
static void check_ggml(const char *tokenizer, const char *input, const char *output)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    cake_tokenizer *token = open_asset(tokenizer);
    if (!token)
        return;
    FILE *f = fopen(suite_asset(input), "rb");
    char text[1 << 14], line[1 << 14];
    size_t len = fread(text, 1, sizeof text - 1, f), cases = 0;
    fclose(f);
    text[len] = 0;
    f = fopen(suite_asset(output), "r");
    for (char *at = text, *next; at; at = next, cases++) {
        char *end = strstr(at, separator), *digit = line;
        next = end ? end + strlen(separator) : NULL;
        if (!fgets(line, sizeof line, f))
            break;
        cake_ids ids = {0};
        cake_fault fault;
        CU_ASSERT(
            !cake_tokenizer_encode(token, at, end ? (size_t)(end - at) : strlen(at), false, &ids, &fault));
        bool same = true;
        for (size_t i = 0; i < ids.len; i++)
            same = strtol(digit, &digit, 10) == ids.id[i] && same;
        CU_ASSERT(same && digit[strspn(digit, " \n")] == 0);
        cake_ids_free(&ids);
    }
    CU_ASSERT_EQUAL(cases, 46);
    fclose(f);
    cake_tokenizer_close(token);
}

static void test_ggml(void)
{
    check_ggml("tokenizers/llama-3.2", "expected/ggml/ggml-vocab-llama-bpe.gguf.inp",
               "expected/ggml/ggml-vocab-llama-bpe.gguf.out");
    check_ggml("tokenizers/qwen3", "expected/ggml/ggml-vocab-qwen2.gguf.inp",
               "expected/ggml/ggml-vocab-qwen2.gguf.out");
}

/* transformers.js: one model's strings; those of llama 3 begin with what the post-processor adds. */
static void check_js(const char *tokenizer, const char *file, const char *model, bool post)
{
    cake_tokenizer *token = open_asset(tokenizer);
    if (!token)
        return;
    cake_json *root = rows_load(suite_asset(file));
    const cake_json *cases = cake_json_get(cake_json_get(root, "models"), model);
    CU_ASSERT(cake_json_size(cases) > 20);
    for (void *it = cake_json_first(cases); it; it = cake_json_next(cases, it)) {
        size_t len;
        const char *text = cake_json_text(cake_json_get(cake_json_value(it), "text"), &len);
        cake_ids ids = {0};
        cake_fault fault;
        CU_ASSERT(!cake_tokenizer_encode(token, text, len, post, &ids, &fault));
        bool same = rows_same(&ids, cake_json_get(cake_json_value(it), "ids"));
        if (!same)
            printf("\n  %s: %s differs\n", model, cake_json_key(it, NULL));
        CU_ASSERT(same);
        cake_ids_free(&ids);
    }
    cake_json_free(root);
    cake_tokenizer_close(token);
}

static void test_js(void)
{
    check_js("tokenizers/qwen3", "expected/transformers.js/qwen2.json", "Xenova/Qwen1.5-0.5B-Chat", false);
    check_js("tokenizers/llama-3.2", "expected/transformers.js/llama.json", "Xenova/llama3-tokenizer-new",
             true);
}

static void test_swift(void)
{
    cake_tokenizer *token = open_asset("tokenizers/llama-3.2");
    if (!token)
        return;
    cake_json *root = rows_load(suite_asset("expected/swift-transformers/llama_3.2_encoded.json"));
    size_t len, decoded_len;
    const char *text = cake_json_text(cake_json_get(root, "text"), &len);
    const char *decoded = cake_json_text(cake_json_get(root, "decoded_text"), &decoded_len);
    const cake_json *expected = cake_json_get(root, "token_ids");
    cake_ids ids = {0};
    cake_buf back = {0};
    cake_fault fault;
    bool post = cake_json_int(cake_json_at(expected, 0), -1) == 128000;
    CU_ASSERT(!cake_tokenizer_encode(token, text, len, post, &ids, &fault));
    CU_ASSERT(rows_same(&ids, expected));
    rows_decode(token, &ids, &back);
    CU_ASSERT(strstr(decoded, back.data) != NULL); /* theirs has <|begin_of_text|> before it */
    cake_ids_free(&ids);
    cake_buf_free(&back);
    cake_json_free(root);
    cake_tokenizer_close(token);
}

static void test_stories(void)
{
    cake_tokenizer *token = open_asset("models/stories260K-hf");
    if (!token)
        return;
    cake_json *root = rows_load(suite_asset("models/stories260K-hf/expected_tokenize.json"));
    const cake_json *cases = cake_json_get(root, "cases");
    CU_ASSERT_EQUAL(cake_json_size(cases), 9);
    for (size_t i = 0; i < cake_json_size(cases); i++) {
        size_t len;
        const char *text = cake_json_text(cake_json_get(cake_json_at(cases, i), "text"), &len);
        cake_ids ids = {0};
        cake_buf back = {0};
        cake_fault fault;
        CU_ASSERT(!cake_tokenizer_encode(token, text, len, true, &ids, &fault));
        CU_ASSERT(rows_same(&ids, cake_json_get(cake_json_at(cases, i), "ids")));
        rows_decode(token, &ids, &back);
        CU_ASSERT(back.len == len && (!len || !memcmp(back.data, text, len)));
        cake_ids_free(&ids);
        cake_buf_free(&back);
    }
    cake_json_free(root);
    cake_tokenizer_close(token);
}

static cake_tokenizer *open_demo(void)
{
    cake_tokenizer *token = NULL;
    CU_ASSERT_FATAL(!cake_tokenizer_open(suite_path("jobs/demo/model"), &token));
    return token;
}

static void test_lookup(void)
{
    cake_tokenizer *token = open_demo();
    CU_ASSERT_EQUAL(cake_tokenizer_find(token, "<|im_end|>", 10), 2);
    CU_ASSERT_EQUAL(cake_tokenizer_find(token, "<|im_ende|", 10), -1);
    CU_ASSERT(cake_tokenizer_is_special(token, 2) && !cake_tokenizer_is_special(token, 40));
    CU_ASSERT(!cake_tokenizer_is_special(token, -1) && !cake_tokenizer_is_special(token, 1 << 30));
    CU_ASSERT_EQUAL(cake_tokenizer_count(token), 2048);
    cake_buf out = {0};
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT(!cake_tokenizer_encode(token, " \xC3\xA9\xF0\x9F\x99\x82", 7, false, &ids, &fault));
    for (size_t i = 0; i < ids.len; i++)
        cake_tokenizer_bytes(token, ids.id[i], &out); /* whole bytes, though some are parts of characters */
    cake_tokenizer_bytes(token, 2, &out);
    cake_tokenizer_bytes(token, -5, &out);
    cake_tokenizer_bytes(token, 1 << 20, &out);
    CU_ASSERT_STRING_EQUAL(out.data, " \xC3\xA9\xF0\x9F\x99\x82<|im_end|>");
    cake_ids_free(&ids);
    cake_buf_free(&out);
    cake_tokenizer_close(token);
}

/* The bytes of an emoji one by one, cut off, and interrupted: text waits, then becomes U+FFFD. */
static void test_decoder_waits(void)
{
    cake_tokenizer *token = open_demo();
    cake_decoder *decoder = cake_decoder_open(token);
    cake_ids ids = {0};
    cake_buf out = {0};
    cake_fault fault;
    CU_ASSERT_FATAL(!cake_tokenizer_encode(token, "\xF0\x9F\x99\x82", 4, false, &ids, &fault) && ids.len > 1);
    for (size_t i = 0; i + 1 < ids.len; i++)
        cake_decoder_push(decoder, ids.id[i], &out);
    CU_ASSERT_EQUAL(out.len, 0);
    cake_decoder_push(decoder, ids.id[ids.len - 1], &out);
    CU_ASSERT_STRING_EQUAL(out.data, "\xF0\x9F\x99\x82");
    cake_buf_cut(&out, 0);
    cake_decoder_push(decoder, ids.id[0], &out);
    cake_decoder_push(decoder, 2, &out); /* special: says nothing, ends nothing */
    cake_decoder_push(decoder, -1, &out);
    cake_decoder_push(decoder, 1 << 24, &out);
    CU_ASSERT_EQUAL(out.len, 0);
    cake_decoder_push(decoder, cake_tokenizer_find(token, "A", 1), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "\xEF\xBF\xBD"
                                     "A");
    cake_decoder_push(decoder, ids.id[0], &out);
    cake_decoder_end(decoder, &out);
    cake_decoder_end(decoder, &out);
    CU_ASSERT_STRING_EQUAL(out.data, "\xEF\xBF\xBD"
                                     "A\xEF\xBF\xBD");
    cake_ids_free(&ids);
    cake_buf_free(&out);
    cake_decoder_close(decoder);
    cake_tokenizer_close(token);
}

/* A quadratic merge would take minutes for these. */
static void test_long_words(void)
{
    static const char *const words[] = {"hello", "ab", " ", "\xC3\xA9", "a", "\n", "'"};
    cake_tokenizer *token = open_demo();
    for (size_t w = 0; w < sizeof words / sizeof *words; w += suite_all() ? 1 : 3) {
        cake_buf text = {0}, back = {0};
        cake_ids ids = {0};
        cake_fault fault;
        while (text.len < 1 << 20)
            cake_buf_adds(&text, words[w]);
        CU_ASSERT(!cake_tokenizer_encode(token, text.data, text.len, true, &ids, &fault));
        rows_decode(token, &ids, &back);
        CU_ASSERT(back.len == text.len && !memcmp(back.data, text.data, text.len));
        cake_buf_free(&text);
        cake_buf_free(&back);
        cake_ids_free(&ids);
    }
    cake_tokenizer_close(token);
}

static long peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss; /* KiB */
}

/* One long word and many short ones, with every piece of the spelling kept in tokens and in none. */
static void test_memory(void)
{
    static const char runs[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":2,\"b\":3},"
                               "\"merges\":[[\"a\",\"a\"],[\"aa\",\"aa\"]]}}";
    static const char *const words[] = {"a", "ab "};
    const size_t most = (size_t)(suite_all() ? 16 : 8) << 20;
    for (int t = 0; t < 2; t++) {
        cake_tokenizer *token = NULL;
        CU_ASSERT_FATAL(!cake_tokenizer_parse(runs, strlen(runs), "runs", &token));
        char *text = cake_alloc(most, 1);
        for (size_t i = 0; i < most; i++)
            text[i] = words[t][i % strlen(words[t])];
        cake_ids ids = {0};
        cake_fault fault;
        long before = peak();
        CU_ASSERT(!cake_tokenizer_encode(token, text, most, true, &ids, &fault));
        size_t more = (size_t)(peak() - before) << 10;
        CU_ASSERT_EQUAL(ids.len, t ? (most + 2) / 3 + (most + 1) / 3 : most / 4);
        if (!getenv("ASAN_OPTIONS"))
            CU_ASSERT(more < 6 * most + 2 * ids.cap * sizeof *ids.id);
        cake_ids_free(&ids);
        free(text);
        cake_tokenizer_close(token);
    }
}

static size_t longest_of(const char *rest)
{
    cake_buf json = {0};
    cake_tokenizer *token = NULL;
    cake_buf_addf(&json,
                  "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,"
                  "\"abcdefg\":1,\"\u0120\u0120\u0120\u0120\u0120\":2},\"merges\":[]}%s}",
                  rest);
    CU_ASSERT_FATAL(!cake_tokenizer_parse(json.data, json.len, "longest", &token));
    size_t longest = cake_tokenizer_longest(token);
    cake_tokenizer_close(token);
    cake_buf_free(&json);
    return longest;
}

static void test_longest(void)
{
#define ADDED(more) ",\"added_tokens\":[{\"id\":9,\"content\":\"<|twelve..|>\"" more "}]"
    CU_ASSERT_EQUAL(longest_of(""), 10);
    CU_ASSERT_EQUAL(longest_of(",\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"), 7);
    CU_ASSERT_EQUAL(longest_of(ADDED("")), 12);
    CU_ASSERT_EQUAL(longest_of(ADDED(",\"rstrip\":true")), SIZE_MAX);
    CU_ASSERT_EQUAL(longest_of(",\"normalizer\":{\"type\":\"NFC\"}"), 30);
    CU_ASSERT_EQUAL(longest_of(",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"abc\"},"
                               "\"content\":\"de\"}"),
                    20);
    CU_ASSERT_EQUAL(longest_of(",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
                               "\"behavior\":\"Removed\"}"),
                    SIZE_MAX);
    cake_tokenizer *token = NULL; /* without a token for unknown characters they vanish */
    CU_ASSERT_FATAL(!cake_tokenizer_parse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
                                          52, "vanish", &token));
    CU_ASSERT_EQUAL(cake_tokenizer_longest(token), SIZE_MAX);
    cake_tokenizer_close(token);
    token = open_demo();
    CU_ASSERT_EQUAL(cake_tokenizer_longest(token), 39);
    cake_tokenizer_close(token);
}

/* Ways to write the large lists that a quick reader could miss. */
static void test_spellings(void)
{
    static const char *const spellings[] = {
        ("{\"model\":{\"vocab\":{\"a\":0,\"\\u0120\":1,\"\\u0120a\":2},\"merges\":[\"\\u0120 "
         "a\"],\"type\":\"BPE\"},"
         "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}"),
        (" { \"pre_tokenizer\" : { \"type\" : \"ByteLevel\" , \"vocab\" : [ \"}\" ] } , \"model\" : { "
         "\"merges\" : "
         "[ [ \"\xC4\xA0\" , \"a\" ] ] , \"type\" : \"BPE\" , \"vocab\" : { \"\xC4\xA0\" : 1 , \"\\u0061\" : "
         "0 , "
         "\"\\u0120a\" : 2 } } } "),
        ("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,"
         "\"\\u0120\":1,\"\\u0120a\":2},\"merges\":[[\"\\u0120\",\"a\"]]},\"pre_tokenizer\":{\"type\":"
         "\"ByteLevel\"}}"),
        ("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"b\":0},\"merges\":[],\"vocab\":{\"a\":0,\"\\u0120\":1,"
         "\"\\u0120a\":2},\"merges\":[\"\\u0120 a\"]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}"),
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        cake_tokenizer *token = NULL;
        cake_ids ids = {0};
        cake_fault fault;
        CU_ASSERT_FATAL(!cake_tokenizer_parse(spellings[i], strlen(spellings[i]), "spelling", &token));
        CU_ASSERT(!cake_tokenizer_encode(token, "a a", 3, false, &ids, &fault));
        CU_ASSERT(ids.len == 2 && ids.id[0] == 2 && ids.id[1] == 2);
        cake_ids_free(&ids);
        cake_tokenizer_close(token);
    }
}

/* As tokenizers 0.23 reads them, and writes them again. */
static void test_scores(void)
{
    static const struct {
        const char *text;
        double value; /* 1: none */
    } scores[] = {
        {"-3.8541142857496506", -3.85411428574965},
        {"18446744073709551610.59", 1.8446744073709552e+19},
        {"1844674407370955161.59", 1.8446744073709553e+18},
        {"-14.67211716250899930108186101", -14.672117162508998},
        {"-7.4e164", -7.399999999999999e+164},
        {"85.035979359975655e-250", 8.503597935997564e-249},
        {"58690755195232033063.32112", 5.869075519523203e+19},
        {"-1e-400", 0},
        {"1e-99999999999", 0},
        {"99999999999999999999e-330", 1e-310},
        {"1E+2", 100},
        {"1e309", 1},
        {"01", 1},
        {"1.", 1},
        {"1e", 1},
    };
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        double value = 1;
        size_t len = strlen(scores[i].text), n = cake_parse_score(scores[i].text, len, &value);
        CU_ASSERT(scores[i].value == 1 ? !n : n == len && value == scores[i].value);
    }
    static const char tie[] = "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",-9],"
                              "[\"a\",-3.85411428574965],[\"b\",0],[\"ab\",-3.8541142857496506]]}}";
    cake_tokenizer *token = NULL;
    cake_ids ids = {0};
    CU_ASSERT_FATAL(!cake_tokenizer_parse(tie, strlen(tie), "tie", &token));
    CU_ASSERT(!cake_tokenizer_encode(token, "ab", 2, false, &ids, NULL) && ids.len == 1 && ids.id[0] == 3);
    cake_ids_free(&ids);
    cake_tokenizer_close(token);
}

static void test_faults(void)
{
    cake_tokenizer *token = open_demo();
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL(cake_tokenizer_encode(token, "ab\xFF", 3, false, &ids, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "byte 2 is 0xFF"));
    cake_tokenizer_close(token);
    static const char hard[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":"
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+(b|d)\"},\"behavior\":\"Isolated\"}}";
    CU_ASSERT_FATAL(!cake_tokenizer_parse(hard, strlen(hard), "hard", &token));
    char text[65];
    memset(text, 'a', 64);
    text[64] = 'c';
    cake_err err = cake_tokenizer_encode(token, text, sizeof text, false, &ids, &fault);
    CU_ASSERT_EQUAL(err, CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "match limit"));
    cake_tokenizer_close(token);
    static const char *const none[] = {
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"abb\",-9],[\"bb\",-1]]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"u\"}}",
    };
    for (size_t i = 0; i < 2; i++) { /* only a text with an unknown character needs a token for it */
        CU_ASSERT_FATAL(!cake_tokenizer_parse(none[i], strlen(none[i]), "none", &token));
        CU_ASSERT(!cake_tokenizer_encode(token, "aa", 2, false, &ids, &fault));
        CU_ASSERT_EQUAL(cake_tokenizer_encode(token, "ab", 2, false, &ids, &fault), CAKE_ERR_REQUEST);
        CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "no token for U+0062"));
        ids.len = 0; /* on a way that is not the best one it does not count */
        CU_ASSERT(i || (!cake_tokenizer_encode(token, "abb", 3, false, &ids, &fault) && ids.len == 2));
        cake_tokenizer_close(token);
    }
    cake_ids_free(&ids);
}

/* Messages about broken or unknown parts of tokenizer.json. */
#define VOCAB     "{\"a\":0,\"b\":1,\"ab\":2}"
#define MODEL     "\"model\":{\"type\":\"BPE\",\"vocab\":" VOCAB ",\"merges\":[[\"a\",\"b\"]]}"
#define BPE(rest) "{\"model\":{\"type\":\"BPE\"," rest "}}"
static const struct {
    const char *json, *said;
} wrong[] = {
    {"{", "t.json: invalid JSON at byte"},
    {"[]", "t.json: found an array, expected an object"},
    {"{}", "t.json: model: found nothing, expected an object"},
    {"{\"model\":{\"type\":\"WordLevel\"}}",
     "model.type: \"WordLevel\" is not supported; known are BPE, Unigram, WordPiece"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"max_input_chars_per_word\":-1}}",
     "model.max_input_chars_per_word: "},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":7}}", "model.unk_token: "},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}", "model.vocab: found an object, expected an array"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}",
     "model.vocab[0][1]: found a string, expected a score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[1,2]]}}",
     "model.vocab[0][0]: found an integer, expected a string"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1.5]],\"unk_id\":1}}",
     "model.unk_id: 1 is out of range; it must lie between 0 and 0"},
    {BPE("\"merges\":[]"), "model.vocab: found nothing, expected an object"},
    {BPE("\"vocab\":{\"a\":-1},\"merges\":[]"), "model.vocab.a: id -1 is out of range"},
    {BPE("\"vocab\":{\"a\":16777216},\"merges\":[]"), "model.vocab.a: id 16777216 is out of range"},
    {BPE("\"vocab\":{\"a\":1.5},\"merges\":[]"), "model.vocab.a: found a number, expected an id"},
    {BPE("\"vocab\":{\"a\":3,\"b\":3},\"merges\":[]"), "id 3 is that of \"a\" already"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":{}"), "model.merges: found an object, expected an array"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[\"ab\"]"), "model.merges[0]: \"ab\" is not two tokens"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[\"a b c\"]"), "model.merges[0]: \"a b c\" is not two tokens"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b\"]]"),
     "merges[0]: the token \"b\" is not in model.vocab"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\"]]"), "their union, the token \"aa\", is not in"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]"), "model.merges[0]: found 1 elements, expected 2"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\",1]]"), "merges[0][1]: found an integer, expected a string"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1"), "model.dropout: only null is supported"},
    {BPE("\"vocab\":{\"a\":0},\"merges\":[],\"fuse_unk\":1"), "model.fuse_unk: found an integer"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Uppercase\"}}",
     "normalizer.type: \"Uppercase\" is not supported; known are Sequence, NFC"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\\\\y\"},\"content\":\"\"}}",
     "normalizer.pattern: at byte 1 of the pattern: text segment boundaries are not supported"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA*\"}}",
     "normalizer.precompiled_charsmap: byte 3 is 0x2A, which is no base64"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"CAAAAAA=\"}}",
     "normalizer.precompiled_charsmap: the map has 5 bytes"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAAAP8=\"}}",
     "the replacements are not UTF-8: byte 4 of the map is 0xFF"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}}",
     "normalizer.pattern: the String is empty"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
     "{\"type\":\"Metapace\"}]}}",
     "t.json: pre_tokenizer.pretokenizers[1].type: \"Metapace\" is not supported; known are Sequence, "
     "Split"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"__\"}}",
     "pre_tokenizer.replacement: \"__\" is not one character"},
    {"{" MODEL
     ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}}",
     "pre_tokenizer.prepend_scheme: \"last\" is not supported; known are always, first, never"},
    {"{" MODEL
     ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\","
     "\"add_prefix_space\":false}}",
     "pre_tokenizer.prepend_scheme: \"first\" contradicts add_prefix_space, which is false"},
    {"{" MODEL
     ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}}",
     "pre_tokenizer.pattern: at byte 0 of the pattern: a group is not closed"},
    {"{" MODEL
     ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"*\"},\"behavior\":\"Isolated\"}}",
     "pre_tokenizer.pattern: the pattern cannot be used: quantifier does not follow a repeatable item"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a(?~b)\"},\"behavior\":"
     "\"Isolated\"}}",
     "at byte 3 of the pattern: this option or kind of group is not supported"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Odd\"}}",
     "pre_tokenizer.behavior: \"Odd\" is not supported; known are Isolated"},
    {"{" MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
     "\"x\"}}],\"special_tokens\":{}}}",
     "post_processor.single[0].SpecialToken: \"x\" is not in special_tokens"},
    {"{" MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
     "\"x\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"x\":{\"ids\":[77]}}}}",
     "post_processor: it adds the id 77, which no token has"},
    {"{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", "decoder.type: \"CTC\" is not supported"},
    {"{" MODEL ",\"decoder\":{\"type\":\"WordPiece\",\"cleanup\":1}}", "decoder.cleanup: "},
    {"{" MODEL ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":"
     "\"ByteFallback\"}]}}",
     "decoder.decoders[1]: ByteFallback after a stage that joins all tokens"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]},"
     "\"added_tokens\":[{\"id\":7,\"content\":\"x\"}]}",
     "added_tokens[0]: \"x\" would get the id 2, which is that of \"b\" in model.vocab"},
    {"{" MODEL ",\"added_tokens\":[{\"id\":-7,\"content\":\"x\"}]}",
     "added_tokens[0].id: -7 is out of range"},
    {"{" MODEL ",\"added_tokens\":[{\"id\":9}]}",
     "added_tokens[0].content: found nothing, expected a string"},
};

static void test_errors(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        cake_log_capture(&said);
        cake_err err = cake_tokenizer_parse(wrong[i].json, strlen(wrong[i].json), "t.json", &token);
        cake_log_capture(NULL);
        CU_ASSERT_EQUAL(err, CAKE_ERR_FATAL);
        CU_ASSERT_PTR_NULL(token);
        bool good = said.data && strstr(said.data, wrong[i].said);
        if (!good)
            printf("\n  expected: %s\n  found: %s\n", wrong[i].said, said.data ? said.data : "nothing");
        CU_ASSERT(good);
        cake_buf_free(&said);
        cake_tokenizer_close(token);
    }
}

static void *encode_often(void *shared)
{
    static const char text[] =
        "The quick brown fox, 12 + 34 = 46. caf\xC3\xA9 \xF0\x9F\x99\x82<|im_end|>\n\n";
    cake_ids *ids = cake_alloc(1, sizeof *ids);
    cake_fault fault;
    for (int i = 0; i < 2000; i++) {
        ids->len = 0;
        if (cake_tokenizer_encode(shared, text, strlen(text), true, ids, &fault))
            ids->len = 0;
    }
    return ids;
}

static void test_threads(void)
{
    cake_tokenizer *token = open_demo();
    pthread_t threads[4];
    cake_ids *ids[4];
    for (int i = 0; i < 4; i++)
        CU_ASSERT_FATAL(!pthread_create(&threads[i], NULL, encode_often, token));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ids[i] = result;
        CU_ASSERT(ids[i]->len > 10 && ids[i]->len == ids[0]->len);
        CU_ASSERT(!memcmp(ids[i]->id, ids[0]->id, ids[0]->len * sizeof *ids[0]->id));
    }
    for (int i = 0; i < 4; i++) {
        cake_ids_free(ids[i]);
        free(ids[i]);
    }
    cake_tokenizer_close(token);
}

int main(void)
{
    static const suite_test tests[] = {
        {"every component as the tokenizers library has it", test_components},
        {"ggml's strings for llama-bpe and qwen2", test_ggml},
        {"transformers.js' strings for qwen2 and llama 3", test_js},
        {"swift-transformers' text for llama 3.2", test_swift},
        {"stories260K, byte fallback, there and back", test_stories},
        {"look-ups and single tokens", test_lookup},
        {"half a character waits", test_decoder_waits},
        {"words of 1 MB", test_long_words},
        {"memory is a small multiple of the text", test_memory},
        {"the longest token", test_longest},
        {"a file may be written in many ways", test_spellings},
        {"scores are the library's to the bit", test_scores},
        {"a text that cannot be tokenized is a fault", test_faults},
        {"broken files are told where and why", test_errors},
        {"threads share a tokenizer", test_threads},
    };
    return SUITE_MAIN("token", tests);
}
