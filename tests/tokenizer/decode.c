/* SPDX-License-Identifier: Apache-2.0
 *
 * Where in a text each of its tokens begins, for every kind of decoder that lets text wait. Texts are what
 * tokenizers.Tokenizer.decode makes of the tokens; but a settled prompt counts as decoded apart.
 */
#include <string.h>

#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

/* Tokens and what becomes of them; the first `settled` are a prompt, if it is not 0. */
typedef struct traced {
    const char *decoder, *vocab; /* of tokens 0, 1, ... */
    int n, settled;
    int32_t id[8];
    const char *text;
    size_t begin[8]; /* bytes of text */
} traced;

#define BYTES "\"<0x27>\":0,\"<0xE6>\":1,\"<0x9D>\":2,\"<0xB1>\":3,\"A\":4,\"\\u2581A\":5,\"\\u2581\":6"
#define LETTERS                                                                                              \
    "\"'\":0,\"\xC3\xA6\":1,\"\xC4\xBF\":2,\"\xC2\xB1\":3,\"A\":4,\"\xC4\xBF\xC2\xB1"                        \
    "A\xC3\xA6\":5"
#define LLAMA                                                                                                \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},"       \
    "\"content\":\" \"},"                                                                                    \
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "                    \
    "\",\"start\":1,\"stop\":0}]}"
#define FUSED                                                                                                \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"                  \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"AA\"},\"content\":\"xyz\"}]}"
#define LOST "\xEF\xBF\xBD"
#define EAST "\xE6\x9D\xB1"

static void test_trace(void)
{
    static const traced cases[] = {
        {LLAMA, BYTES, 5, 0, {5, 0, 0, 0, 5}, "A''' A", {0, 1, 2, 3, 4}},
        {LLAMA, BYTES, 5, 0, {4, 1, 2, 3, 5}, "A" EAST " A", {0, 1, 4, 4, 4}},
        {LLAMA, BYTES, 6, 0, {4, 0, 1, 2, 3, 1}, "A" LOST LOST LOST LOST LOST, {0, 1, 4, 7, 10, 13}},
        {LLAMA, BYTES, 4, 0, {6, 0, 4, 6}, "'A ", {0, 0, 1, 2}},
        {LLAMA, BYTES, 5, 3, {4, 0, 1, 2, 3}, "A'" EAST, {0, 1, 2, 5, 5}},
        {LLAMA, BYTES, 4, 2, {4, 0, 4, 0}, "A'A'", {0, 1, 2, 3}},
        {FUSED, BYTES, 4, 0, {4, 0, 4, 4}, "A'xyz", {0, 1, 2, 5}},
        {FUSED, BYTES, 3, 0, {4, 4, 4}, "xyzA", {0, 3, 3}},
        {"{\"type\":\"ByteLevel\"}", LETTERS, 5, 0, {4, 1, 2, 3, 0}, "A" EAST "'", {0, 1, 4, 4, 4}},
        {"{\"type\":\"ByteLevel\"}", LETTERS, 4, 0, {1, 5, 5, 0}, EAST "A" EAST "A" LOST "'", {0, 3, 7, 11}},
        {"{\"type\":\"ByteLevel\"}", LETTERS, 4, 0, {1, 2, 4, 1}, LOST "A" LOST, {0, 3, 3, 4}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const traced *t = &cases[c];
        cake_buf json = {0}, text = {0};
        cake_tokenizer *token = NULL;
        size_t begin[16];
        cake_buf_addf(&json, "{\"decoder\":%s,\"model\":{\"type\":\"BPE\",\"vocab\":{%s},\"merges\":[]}}",
                      t->decoder, t->vocab);
        CU_ASSERT_FATAL(!cake_tokenizer_parse(json.data, json.len, "trace", &token));
        cake_decoder *decoder = cake_decoder_open(token);
        for (int round = 0; round < 2; round++) { /* an end starts afresh */
            cake_buf_cut(&text, 0);
            cake_decoder_trace(decoder, begin);
            for (int i = 0; i < t->n; i++) {
                if (t->settled && i == t->settled) {
                    cake_decoder_settle(decoder, &text);
                    cake_decoder_trace(decoder, begin + i);
                }
                cake_decoder_push(decoder, t->id[i], &text);
            }
            cake_decoder_end(decoder, &text);
            CU_ASSERT_STRING_EQUAL(text.data, t->text);
            for (int i = 0; i < t->n; i++)
                CU_ASSERT_EQUAL(begin[i], t->begin[i]);
        }
        cake_decoder_close(decoder);
        cake_tokenizer_close(token);
        cake_buf_free(&text);
        cake_buf_free(&json);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"where the text of each token begins", test_trace},
    };
    return SUITE_MAIN("decode", tests);
}
