/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tiktoken file, a token in base64 and its rank on each line. Out: a tokenizer.json.
 *
 * As in transformers, every pair of tokens that joins to a token is a merge, a piece that is a token is taken
 * whole, and pieces are those of cl100k's pattern. For the files of tiktoken's own models, recognized by
 * their number of ranks, the table `known` has better data. Special tokens are those listed in
 * tokenizer_config.json, else those of the table; unused tokens fill the gaps between ids.
 * Invariant: ids are ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/import.h"
#include "tokenizer/internal.h"

#define MAX_GAP 100000 /* maximum gap between ranks and special tokens */

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define WORDS(digits)                                                                                        \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
#define O200K                                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" ENDING       \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" ENDING       \
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef struct special {
    const char *text;
    int32_t id;
} special;

static const struct {
    size_t ranks;
    const char *pattern;
    special special[11]; /* text NULL: the end */
} known[] = {
    {0, WORDS("\\p{N}{1,3}"), {{NULL, 0}}}, /* any other file */
    {50256, GPT2, {{"<|endoftext|>", 50256}, {NULL, 0}}},
    {50280, GPT2, {{"<|endoftext|>", 50256}, {NULL, 0}}},
    {100256,
     WORDS("\\p{N}{1,3}"),
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276},
      {NULL, 0}}},
    {199998, O200K, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}, {NULL, 0}}},
    {151643,
     WORDS("\\p{N}"),
     {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}, {NULL, 0}}},
    {128000,
     WORDS("\\p{N}{1,3}"),
     {{"<|begin_of_text|>", 128000},
      {"<|end_of_text|>", 128001},
      {"<|start_header_id|>", 128006},
      {"<|end_header_id|>", 128007},
      {"<|eom_id|>", 128008},
      {"<|eot_id|>", 128009},
      {"<|python_tag|>", 128010},
      {NULL, 0}}},
};

/* Reads one line: token, space, rank. */
static cake_err read_line(const char *where, size_t number, const char *line, size_t len, cake_buf *token,
                          int32_t *rank)
{
    const char *space = memchr(line, ' ', len);
    size_t n = space ? (size_t)(space - line) : 0, digits = 0;
    int64_t value = 0;
    for (size_t i = n + 1; n && i < len && line[i] >= '0' && line[i] <= '9' && digits < 9; i++, digits++)
        value = 10 * value + line[i] - '0';
    cake_buf_cut(token, 0);
    if (!digits || n + 1 + digits != len || cake_buf_read_base64(line, n, token) < n || !token->len)
        return cake_fail("tokenizer",
                         "%s: line %zu is not a token in base64, a space and its rank; "
                         "is this a tiktoken file or a SentencePiece model?",
                         where, number);
    if (value >= CAKE_MAX_VOCAB)
        return cake_fail("tokenizer", "%s: line %zu: rank %lld is out of range; ranks are 0 to %d", where,
                         number, (long long)value, CAKE_MAX_VOCAB - 1);
    *rank = (int32_t)value;
    return CAKE_OK;
}

static cake_err read_ranks(const char *where, const char *bytes, size_t len, cake_vocab *ranks)
{
    cake_buf token = {0};
    cake_err err = CAKE_OK;
    size_t number = 1;
    for (const char *at = bytes, *end = bytes + len; !err && at < end; number++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((next ? next : end) - at);
        int32_t rank = 0;
        n -= n && at[n - 1] == '\r';
        if (n) {
            err = read_line(where, number, at, n, &token, &rank);
            if (!err && cake_vocab_add(ranks, token.data, token.len, rank) != rank)
                err = cake_fail("tokenizer", "%s: line %zu: the token or its rank %d is a duplicate", where,
                                number, rank);
        }
        at = next ? next + 1 : end;
    }
    cake_buf_free(&token);
    if (!err && !ranks->count)
        err = cake_fail("tokenizer", "%s: the file holds no token", where);
    return err;
}

static void add_spelled(const char *bytes, size_t len, cake_buf *spare, cake_buf *json)
{
    cake_buf_cut(spare, 0);
    cake_byte_level_spell(bytes, len, spare);
    cake_json_add_text(json, spare->data, spare->len);
}

/* Where a token can be split, with the ranks of the halves. */
typedef struct parting {
    int32_t left, right;
    size_t at;
} parting;

static int compare(const void *a, const void *b)
{
    const parting *x = a, *y = b;
    return x->left != y->left ? (x->left < y->left ? -1 : 1) : (x->right > y->right) - (x->right < y->right);
}

static void add_merges(const cake_vocab *ranks, cake_buf *json)
{
    cake_buf spare = {0};
    parting *all = NULL;
    size_t room = 0;
    const char *comma = "";
    for (int32_t id = 0; id < ranks->count; id++) {
        size_t len = 0, n = 0;
        const char *text = cake_vocab_text(ranks, id, &len);
        if (len > room)
            all = cake_grow(all, room = 2 * len, sizeof *all);
        for (size_t at = 1; text && at < len; at++) {
            int32_t left = cake_vocab_find(ranks, text, at);
            int32_t right = left < 0 ? -1 : cake_vocab_find(ranks, text + at, len - at);
            if (right >= 0)
                all[n++] = (parting){left, right, at};
        }
        if (n > 1)
            qsort(all, n, sizeof *all, compare);
        for (size_t i = 0; i < n; i++) {
            cake_buf_addf(json, "%s[", comma);
            add_spelled(text, all[i].at, &spare, json);
            cake_buf_addc(json, ',');
            add_spelled(text + all[i].at, len - all[i].at, &spare, json);
            cake_buf_addc(json, ']');
            comma = ",";
        }
    }
    free(all);
    cake_buf_free(&spare);
}

static void add_model(const cake_vocab *ranks, cake_buf *json)
{
    cake_buf spare = {0};
    const char *comma = "";
    cake_buf_adds(json, "{\"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {");
    for (int32_t id = 0; id < ranks->count; id++) {
        size_t len = 0;
        const char *text = cake_vocab_text(ranks, id, &len);
        if (!text)
            continue;
        cake_buf_adds(json, comma);
        add_spelled(text, len, &spare, json);
        cake_buf_addf(json, ":%d", id);
        comma = ",";
    }
    cake_buf_adds(json, "}, \"merges\": [");
    add_merges(ranks, json);
    cake_buf_adds(json, "]}, ");
    cake_buf_free(&spare);
}

static void add_token(int32_t id, const char *text, size_t len, cake_buf *json)
{
    cake_buf_addf(json, "%s{\"id\": %d, \"content\": ", json->data[json->len - 1] == '[' ? "" : ", ", id);
    cake_json_add_text(json, text, len);
    cake_buf_adds(json, ", \"special\": true}");
}

/* Listed ids are kept, so tokens that no text contains fill the gaps between them. */
static cake_err add_listed(const cake_vocab *ranks, const cake_special_list *listed, const char *where,
                           cake_buf *json)
{
    int64_t next = ranks->count;
    for (size_t i = 0; i < listed->n; i++) {
        const cake_special *s = &listed->at[i];
        if (s->id < next)
            continue;
        if (s->id - next > MAX_GAP)
            return cake_fail("tokenizer",
                             "%s: tokenizer_config.json has the id %lld for \"%.80s\", but ids end at %lld",
                             where, (long long)s->id, s->text, (long long)next - 1);
        for (; next < s->id; next++) {
            char name[64];
            int n = snprintf(name, sizeof name, "<|reserved_token_%lld|>", (long long)next);
            add_token((int32_t)next, name, (size_t)n, json);
        }
        add_token((int32_t)next++, s->text, s->len, json);
    }
    return CAKE_OK;
}

/* Adds the special tokens: those listed, else those known for the number of ranks. */
static cake_err add_tokens(const cake_vocab *ranks, const special *own, const char *where,
                           const cake_special_list *listed, cake_buf *json)
{
    cake_special known_ones[sizeof known[0].special / sizeof known[0].special[0]];
    cake_special_list list = {known_ones, 0, 0};
    for (; own->text; own++)
        known_ones[list.n++] =
            (cake_special){.text = (char *)own->text, .len = strlen(own->text), .id = own->id};
    cake_buf_adds(json, "\"added_tokens\": [");
    cake_err err = add_listed(ranks, listed->n ? listed : &list, where, json);
    cake_buf_adds(json, "]}");
    return err;
}

cake_err cake_tiktoken_convert(const char *bytes, size_t len, const char *where,
                               const cake_specials *specials, cake_buf *json)
{
    cake_vocab ranks = {0};
    size_t row = 0;
    cake_err err = read_ranks(where, bytes, len, &ranks);
    for (size_t i = 1; !err && i < sizeof known / sizeof *known; i++)
        if (ranks.n_used == known[i].ranks)
            row = i;
    if (!err) {
        add_model(&ranks, json);
        cake_buf_adds(json,
                      "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
                      "\"pattern\": {\"Regex\": ");
        cake_json_add_text(json, known[row].pattern, strlen(known[row].pattern));
        cake_buf_adds(json, "}, \"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", "
                            "\"add_prefix_space\": false, \"use_regex\": false}]}, "
                            "\"decoder\": {\"type\": \"ByteLevel\"}, ");
        err = add_tokens(&ranks, known[row].special, where, &specials->listed, json);
    }
    cake_vocab_free(&ranks);
    return err;
}
