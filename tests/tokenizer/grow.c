/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers whose parts make gigabytes of a few characters: wherever a text can grow, only the request
 * fails; lists that are too long are refused when they are read.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"\u4E2D\":2,\"#\":3,\"x\":4}"

/* `n` times the same step in a Sequence. */
static void add_steps(cake_buf *json, const char *part, const char *list, const char *step, int n)
{
    cake_buf_addf(json, ",\"%s\":{\"type\":\"Sequence\",\"%s\":[", part, list);
    for (int i = 0; i < n; i++)
        cake_buf_addf(json, "%s%s", i ? "," : "", step);
    cake_buf_adds(json, "]}");
}

static cake_tokenizer *open_steps(const char *part, const char *list, const char *step, int n)
{
    cake_buf json = {0};
    cake_tokenizer *token = NULL;
    cake_buf_adds(&json, "{\"model\":{\"type\":\"BPE\",\"merges\":[]," VOCAB "}");
    add_steps(&json, part, list, step, n);
    cake_buf_addc(&json, '}');
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_parse(json.data, json.len, "grow.json", &token), CAKE_OK);
    cake_buf_free(&json);
    return token;
}

static void check_encode(const char *part, const char *list, const char *step, int n, const char *text,
                         int times, const char *message)
{
    cake_tokenizer *token = open_steps(part, list, step, n);
    cake_buf many = {0};
    cake_ids ids = {0};
    cake_fault fault = {0};
    for (int i = 0; i < times; i++)
        cake_buf_adds(&many, text);
    CU_ASSERT_EQUAL(cake_tokenizer_encode(token, many.data, many.len, true, &ids, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, message));
    if (!strstr(fault.message, message))
        printf("    %s: %s\n", step, fault.message);
    cake_buf_free(&many);
    cake_ids_free(&ids);
    cake_tokenizer_close(token);
}

static void test_encode(void)
{
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
    if (suite_all()) { /* what the others have, too */
        check_encode("pre_tokenizer", "pretokenizers", BYTES, 40, "\u00E9", 1,
                     "ByteLevel makes more than 268435456");
        /* no piece is large, but there are many */
        check_encode("pre_tokenizer", "pretokenizers", BYTES, 14, "\u00E9 \u00E9", 20000,
                     "ByteLevel makes more than");
    }
    /* no step makes more than it got, but there are many */
    check_encode("pre_tokenizer", "pretokenizers",
                 "{\"type\":\"Metaspace\",\"replacement\":\"#\",\"split\":false}", 300, "a b", 400000,
                 "Metaspace makes more than");
    check_encode("normalizer", "normalizers", "{\"type\":\"ByteLevel\"}", 40, "\u00E9", 1,
                 "ByteLevel makes more than 268435456");
}

/* A long continuing_subword_prefix before each character of a piece that is spelled as bytes. */
static void test_prefix(void)
{
    cake_buf json = {0};
    cake_tokenizer *token = NULL;
    cake_ids ids = {0};
    cake_fault fault = {0};
    cake_buf_adds(&json,
                  "{\"model\":{\"type\":\"BPE\",\"merges\":[]," VOCAB ",\"continuing_subword_prefix\":\"");
    for (int i = 0; i < 20000; i++)
        cake_buf_addc(&json, '#');
    cake_buf_adds(&json, "\"}}");
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_parse(json.data, json.len, "grow.json", &token), CAKE_OK);
    cake_buf_cut(&json, 20000);
    CU_ASSERT_EQUAL(cake_tokenizer_encode(token, json.data, json.len, true, &ids, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "continuing_subword_prefix makes more than"));
    cake_buf_free(&json);
    cake_ids_free(&ids);
    cake_tokenizer_close(token);
}

/* Pushes `a` so often; what the decoder says then and later. */
static void check_decode(const char *step, int n, int times, const char *message)
{
    cake_tokenizer *token = open_steps("decoder", "decoders", step, n);
    cake_decoder *decoder = cake_decoder_open(token);
    cake_buf text = {0};
    cake_fault fault = {0};
    cake_decoder_push(decoder, 4, &text);
    CU_ASSERT_EQUAL(cake_decoder_check(decoder, &fault), CAKE_OK);
    for (int i = 0; i < times; i++)
        cake_decoder_push(decoder, 0, &text);
    cake_decoder_end(decoder, &text);
    CU_ASSERT_EQUAL(cake_decoder_check(decoder, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, message));
    size_t len = text.len;
    CU_ASSERT(len <= (size_t)256 << 20);
    cake_decoder_push(decoder, 4, &text);
    CU_ASSERT_EQUAL(text.len, len);
    cake_buf_free(&text);
    cake_decoder_close(decoder);
    cake_tokenizer_close(token);
}

/* Four letters of one and a long tail: a few matches make much, since sanitizers walk the text for each. */
static void add_four(const char *kind, cake_buf *step)
{
    cake_buf_addf(step, "{\"type\":\"Replace\",\"pattern\":{\"%s\":\"a\"},\"content\":\"aaaa", kind);
    for (int i = 0; i < 200000; i++)
        cake_buf_addc(step, 'b');
    cake_buf_adds(step, "\"}");
}

static void test_decode(void)
{
    static const struct {
        const char *before, *kind;
        int n, times;
    } cases[] = {{"", "String", 3, 100}, /* no token is large */
                 {"{\"type\":\"Fuse\"},", "Regex", 12, 1},
                 {"", "String", 12, 1},
                 {"{\"type\":\"Fuse\"},", "String", 12, 1}};
    for (size_t i = 0; i < (suite_all() ? sizeof cases / sizeof *cases : 2); i++) {
        cake_buf step = {0};
        cake_buf_adds(&step, cases[i].before);
        add_four(cases[i].kind, &step);
        check_decode(step.data, cases[i].n, cases[i].times, "makes more than 268435456 bytes");
        cake_buf_free(&step);
    }
}

static void check_refused(const cake_buf *json, const char *message)
{
    cake_tokenizer *token = NULL;
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_tokenizer_parse(json->data, json->len, "grow.json", &token), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(said.data && strstr(said.data, message));
    cake_tokenizer_close(token);
    cake_buf_free(&said);
}

static void test_lists(void)
{
    static const struct {
        const char *part, *list, *step, *message;
    } deep[] = {{"pre_tokenizer", "pretokenizers", "{\"type\":\"Digits\"}",
                 "pretokenizers[1000]: more than 1000 pre-tokenizers cannot be run"},
                {"decoder", "decoders", "{\"type\":\"Fuse\"}",
                 "decoders[1000]: more than 1000 decoders cannot be run"}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        cake_buf json = {0};
        cake_buf_adds(&json, "{\"model\":{\"type\":\"BPE\",\"merges\":[]," VOCAB "}");
        add_steps(&json, deep[i].part, deep[i].list, deep[i].step, 100000);
        cake_buf_addc(&json, '}');
        check_refused(&json, deep[i].message);
        cake_buf_free(&json);
    }
    for (int processors = 1; processors <= 2000; processors += 1999) { /* thousands of thousands of ids */
        cake_buf step = {0}, json = {0};
        cake_buf_adds(&step, "{\"type\":\"TemplateProcessing\",\"single\":[");
        for (int i = 0; i < 2000 / processors; i++)
            cake_buf_adds(&step, "{\"SpecialToken\":{\"id\":\"x\"}},");
        cake_buf_adds(&step, "{\"SpecialToken\":{\"id\":\"x\"}},{\"Sequence\":{\"id\":\"A\"}}],"
                             "\"special_tokens\":{\"x\":{\"ids\":[4");
        for (int i = 0; i < 1000; i++)
            cake_buf_adds(&step, ",4");
        cake_buf_adds(&step, "]}}}");
        cake_buf_adds(&json, "{\"model\":{\"type\":\"BPE\",\"merges\":[]," VOCAB "}");
        add_steps(&json, "post_processor", "processors", step.data, processors);
        cake_buf_addc(&json, '}');
        check_refused(&json, "more than 1048576 ids before or after the text");
        cake_buf_free(&step);
        cake_buf_free(&json);
    }
}

#ifdef __SANITIZE_ADDRESS__
#define RUN 1 /* the others walk gigabytes, for minutes */
#else
#define RUN 4
#endif

int main(void)
{
    static const suite_test tests[] = {
        {"lists too long are refused when they are read", test_lists},
        {"normalizers and pre-tokenizers that make gigabytes of a text", test_encode},
        {"a prefix that makes gigabytes of a word", test_prefix},
        {"decoders that make gigabytes of tokens", test_decode},
    };
    for (int i = RUN; i < 4; i++)
        printf("  SKIPPED under the address sanitizer: %s\n", tests[i].name);
    return suite_main("grow", tests, RUN);
}
