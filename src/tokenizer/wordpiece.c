/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT's WordPiece (Schuster and Nakajima 2012). In: a word. Out: its tokens; and back.
 *
 * From left to right each token is the longest one that the rest of the word begins with; a token inside of a
 * word begins with the prefix "##". A word that has no such tokens, or too many characters, is the unknown
 * token as a whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/internal.h"

typedef struct wordpiece {
    char *prefix; /* owned */
    size_t prefix_len;
    int64_t max_characters; /* characters of a word */
    size_t longest;         /* bytes of a token */
    int32_t unknown;        /* -1: none */
} wordpiece;

cake_err cake_wordpiece_open(const cake_json_path *model, cake_tokenizer_model *words)
{
    wordpiece *w = words->own = cake_alloc(1, sizeof *w);
    const char *prefix = "##", *unknown = "[UNK]";
    size_t prefix_len = 2, unknown_len = 5;
    cake_err err = CAKE_OK;
    w->max_characters = 100;
    if (cake_json_get(model->node, "continuing_subword_prefix"))
        err = cake_json_path_text(model, "continuing_subword_prefix", &prefix, &prefix_len);
    if (!err && cake_json_get(model->node, "unk_token"))
        err = cake_json_path_text(model, "unk_token", &unknown, &unknown_len);
    if (!err && cake_json_get(model->node, "max_input_chars_per_word"))
        err = cake_json_path_int(model, "max_input_chars_per_word", 0, INT32_MAX, &w->max_characters);
    if (err)
        return err;
    w->prefix = cake_copy(prefix, prefix_len);
    w->prefix_len = prefix_len;
    w->unknown = cake_vocab_find(&words->vocab, unknown, unknown_len);
    for (int32_t id = 0; id < words->vocab.count; id++) {
        size_t len = 0;
        cake_vocab_text(&words->vocab, id, &len);
        w->longest = len > w->longest ? len : w->longest;
    }
    return CAKE_OK;
}

void cake_wordpiece_close(cake_tokenizer_model *words)
{
    wordpiece *w = words->own;
    free(w->prefix);
    free(w);
}

/* Unknown words are one token. */
bool cake_wordpiece_drop(const cake_tokenizer_model *words, bool spelled)
{
    (void)words, (void)spelled;
    return true;
}

/* The longest token at the beginning of text [len]; *end: its bytes without the first `skip`. -1: none. */
static int32_t longest_at(const cake_tokenizer_model *words, const char *text, size_t len, size_t skip,
                          size_t *end)
{
    const wordpiece *w = words->own;
    for (len = len < w->longest ? len : w->longest; len > skip; len--) {
        if (((unsigned char)text[len] & 0xC0) == 0x80) /* within a character; the text ends with a NUL */
            continue;
        int32_t id = cake_vocab_find(&words->vocab, text, len);
        if (id >= 0) {
            *end = len - skip;
            return id;
        }
    }
    return -1;
}

static cake_err add_unknown(const wordpiece *w, const char *piece, size_t len, cake_ids *ids,
                            cake_fault *fault)
{
    if (w->unknown < 0)
        return cake_vocab_unknown(piece, len, fault);
    cake_ids_add(ids, w->unknown);
    return CAKE_OK;
}

cake_err cake_wordpiece_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                            cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    const wordpiece *w = words->own;
    const size_t before = ids->len;
    int64_t characters = 0;
    for (size_t at = 0; at < len && characters <= w->max_characters; characters++)
        at += (size_t)cake_utf8_next(piece + at, len - at, NULL);
    if (characters > w->max_characters)
        return add_unknown(w, piece, len, ids, fault);
    for (size_t from = 0, n; from < len; from += n) {
        const size_t skip = from ? w->prefix_len : 0;
        cake_buf *rest = &scratch->character;
        cake_buf_cut(rest, 0);
        cake_buf_add(rest, w->prefix, skip);
        cake_buf_add(rest, piece + from, len - from);
        int32_t id = longest_at(words, rest->data, rest->len, skip, &n);
        if (id < 0) {
            ids->len = before;
            return add_unknown(w, piece, len, ids, fault);
        }
        cake_ids_add(ids, id);
    }
    return CAKE_OK;
}

/* --- tokens to text --- */

cake_err cake_wordpiece_stage_open(const cake_json_path *path, cake_decode_stage *out)
{
    const char *text = "##";
    out->replace.from_len = 2;
    cake_err err = cake_json_get(path->node, "prefix")
                       ? cake_json_path_text(path, "prefix", &text, &out->replace.from_len)
                       : CAKE_OK;
    if (!err)
        out->replace.from = cake_copy(text, out->replace.from_len);
    return err ? err : cake_json_path_flag(path, "cleanup", true, &out->cleans);
}

void cake_wordpiece_spell(const cake_decode_stage *stage, bool inside, const char *text, size_t len,
                          cake_buf *out, cake_buf *spare)
{
    static const char *const joined[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    const size_t n = stage->replace.from_len;
    const bool joins = inside && len >= n && !memcmp(text, stage->replace.from, n);
    if (inside && !joins)
        cake_buf_addc(out, ' ');
    cake_buf_add(out, text + (joins ? n : 0), len - (joins ? n : 0));
    for (size_t i = 0; stage->cleans && i < sizeof joined / sizeof *joined; i++) {
        cake_buf_cut(spare, 0);
        cake_text_replace(out->data, out->len, joined[i][0], strlen(joined[i][0]), joined[i][1],
                          strlen(joined[i][1]), spare);
        const cake_buf swap = *out;
        *out = *spare;
        *spare = swap;
    }
}
