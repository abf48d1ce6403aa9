/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scored tokens. Out: the API's logprobs objects, including the token that ended the answer. A token that
 * is not valid UTF-8 is spelled with U+FFFD in chat, which also lists its bytes, and as bytes:\xNN in
 * completions, where keys must differ.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "formats/json.h"
#include "record/format.h"

/* Appends a decimal that reads back as the same float; -inf, which JSON lacks, becomes -9999 as in the
 * API. */
static void add_logprob(float value, cake_buf *out)
{
    const size_t from = out->len;
    cake_line_float(isfinite(value) ? value : -9999, out);
    if (!strpbrk(out->data + from, ".e"))
        cake_buf_adds(out, ".0");
}

void cake_line_scores(const float *logprobs, size_t n, cake_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        cake_buf_adds(out, i ? ", " : "");
        add_logprob(logprobs[i], out);
    }
}

static void spell(const cake_record_options *options, int32_t id, cake_buf *bytes)
{
    cake_buf_cut(bytes, 0);
    options->token_bytes(options->token, id, bytes);
    if (!bytes->data)
        cake_buf_adds(bytes, ""); /* data must not be NULL for an empty token */
}

static void add_chat_token(const cake_record_options *options, const cake_token_logprob *entry,
                           cake_buf *bytes, cake_buf *out)
{
    spell(options, entry->id, bytes);
    cake_buf_adds(out, "{\"token\": ");
    cake_json_add_text(out, bytes->data, bytes->len);
    cake_buf_adds(out, ", \"logprob\": ");
    add_logprob(entry->logprob, out);
    cake_buf_adds(out, ", \"bytes\": [");
    for (size_t i = 0; i < bytes->len; i++) {
        if (i)
            cake_buf_add(out, ", ", 2);
        cake_line_int(out, (unsigned char)bytes->data[i]);
    }
    cake_buf_addc(out, ']');
}

void cake_line_logprobs_chat(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out)
{
    cake_buf bytes = {0};
    cake_buf_adds(out, "{\"content\": [");
    for (int i = 0; i < choice->n_id; i++) {
        const cake_token_logprob *row = choice->logprobs + (size_t)i * (size_t)(1 + record->n_top);
        if (i)
            cake_buf_add(out, ", ", 2);
        add_chat_token(options, &row[0], &bytes, out);
        cake_buf_adds(out, ", \"top_logprobs\": [");
        for (int t = 1; t <= record->n_logprob; t++) {
            if (t > 1)
                cake_buf_add(out, ", ", 2);
            add_chat_token(options, &row[t], &bytes, out);
            cake_buf_addc(out, '}');
        }
        cake_buf_adds(out, "]}");
    }
    cake_buf_adds(out, "], \"refusal\": null}");
    cake_buf_free(&bytes);
}

static void add_ranked(const cake_record_options *options, const cake_token_logprob *entry, int32_t rank,
                       cake_buf *bytes, cake_buf *out)
{
    spell(options, entry->id, bytes);
    cake_buf_addf(out, "\"%d\": {\"logprob\": ", entry->id);
    add_logprob(entry->logprob, out);
    cake_buf_addf(out, ", \"rank\": %d, \"decoded_token\": ", rank);
    cake_json_add_text(out, bytes->data, bytes->len);
    cake_buf_addc(out, '}');
}

void cake_line_prompt_logprobs(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf bytes = {0};
    if (record->n_prompt_logprob < 0)
        return;
    cake_buf_adds(out, ", \"prompt_logprobs\": [null");
    for (int i = 1; i < record->n_prompt; i++) {
        const cake_token_logprob *row = record->prompt_logprobs + (size_t)i * (size_t)(1 + record->n_top);
        cake_buf_adds(out, ", {");
        add_ranked(options, &row[0], record->prompt_rank[i], &bytes, out);
        for (int t = 1; t <= record->n_prompt_logprob; t++)
            if (row[t].id != row[0].id) {
                cake_buf_adds(out, ", ");
                add_ranked(options, &row[t], t, &bytes, out);
            }
        cake_buf_addc(out, '}');
    }
    cake_buf_addc(out, ']');
    cake_buf_free(&bytes);
}

/* Appends a token's bytes as a JSON string that can be a key. Tokens with U+0000 are written as bytes, since
 * most parsers reject it. */
static void add_spelled(const cake_buf *bytes, cake_buf *out)
{
    if (cake_utf8_check(bytes->data, bytes->len) == bytes->len && !memchr(bytes->data, 0, bytes->len)) {
        cake_json_add_text(out, bytes->data, bytes->len);
        return;
    }
    cake_buf_adds(out, "\"bytes:");
    for (size_t i = 0; i < bytes->len; i++)
        cake_buf_addf(out, "\\\\x%02x", (unsigned char)bytes->data[i]);
    cake_buf_addc(out, '"');
}

/* Appends the n_top most likely tokens and, if it is not among them, the chosen one. Of two tokens with the
 * same spelling only the likelier is kept, since a key occurs once. */
static void add_top(const cake_record_options *options, const cake_token_logprob *row, int n_top,
                    cake_buf *out)
{
    cake_buf bytes = {0}, keys = {0};
    size_t begin[32], end[32];
    int n = 0;
    cake_buf_addc(out, '{');
    for (int t = 1; t <= n_top + 1 && n < 32; t++) {
        const cake_token_logprob *entry = &row[t > n_top ? 0 : t];
        spell(options, entry->id, &bytes);
        begin[n] = keys.len;
        add_spelled(&bytes, &keys);
        end[n] = keys.len;
        int same = 0;
        while (same < n && (end[same] - begin[same] != end[n] - begin[n] ||
                            memcmp(keys.data + begin[same], keys.data + begin[n], end[n] - begin[n]) != 0))
            same++;
        if (same < n)
            continue;
        if (n)
            cake_buf_add(out, ", ", 2);
        cake_buf_add(out, keys.data + begin[n], end[n] - begin[n]);
        cake_buf_add(out, ": ", 2);
        add_logprob(entry->logprob, out);
        n++;
    }
    cake_buf_addc(out, '}');
    cake_buf_free(&bytes);
    cake_buf_free(&keys);
}

/* The tokens of a completion's logprobs: the echoed prompt's, then the answer's. */
typedef struct token_rows {
    const cake_record *record;
    const cake_choice *choice;
    int n_echoed, n;
} token_rows;

static const cake_token_logprob *row_of(const token_rows *t, int i)
{
    bool echoed = i < t->n_echoed;
    const cake_token_logprob *rows = echoed ? t->record->prompt_logprobs : t->choice->logprobs;
    return rows + (size_t)(echoed ? i : i - t->n_echoed) * (size_t)(1 + t->record->n_top);
}

static int64_t characters(const char *text, size_t from, size_t to)
{
    int64_t n = 0;
    for (; from < to; from++)
        n += ((unsigned char)text[from] & 0xC0) != 0x80;
    return n;
}

/* Offsets count characters of the whole text. A token without text (end token, or cut off by a stop string)
 * gets the offset where it would be. */
static void add_offsets(const token_rows *t, cake_buf *out)
{
    const cake_record *r = t->record;
    size_t at = 0;
    int64_t n = 0;
    for (int i = 0; i < t->n; i++) {
        bool echoed = i < t->n_echoed;
        const char *text = echoed ? r->echo : t->choice->text;
        size_t len = echoed ? r->echo_len : t->choice->text_len;
        size_t begin = echoed ? r->prompt_begin[i] : t->choice->begin[i - t->n_echoed];
        if (i == t->n_echoed) {
            n = r->echo ? characters(r->echo, 0, r->echo_len) : 0;
            at = 0;
        }
        begin = begin < len ? begin : len;
        n += characters(text, at, begin);
        at = begin;
        cake_buf_adds(out, i ? ", " : "");
        cake_line_int(out, n);
    }
}

void cake_line_logprobs_text(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out)
{
    token_rows t = {.record = record, .choice = choice, .n_echoed = record->echo ? record->n_prompt : 0};
    t.n = t.n_echoed + choice->n_id;
    cake_buf bytes = {0};
    cake_buf_adds(out, "{\"tokens\": [");
    for (int i = 0; i < t.n; i++) {
        spell(options, row_of(&t, i)->id, &bytes);
        cake_buf_adds(out, i ? ", " : "");
        add_spelled(&bytes, out);
    }
    cake_buf_adds(out, "], \"token_logprobs\": [");
    for (int i = 0; i < t.n; i++) {
        cake_buf_adds(out, i ? ", " : "");
        if (i == 0 && t.n_echoed) /* the first token has no probability */
            cake_buf_adds(out, "null");
        else
            add_logprob(row_of(&t, i)->logprob, out);
    }
    cake_buf_adds(out, "], \"top_logprobs\": [");
    for (int i = 0; i < t.n; i++) {
        cake_buf_adds(out, i ? ", " : "");
        if (i == 0 && t.n_echoed)
            cake_buf_adds(out, "null");
        else
            add_top(options, row_of(&t, i), record->n_logprob, out);
    }
    cake_buf_adds(out, "], \"text_offset\": [");
    add_offsets(&t, out);
    cake_buf_adds(out, "]}");
    cake_buf_free(&bytes);
}
