/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `added_tokens`, then text. Out: where they stand in it.
 *
 * Like the original: at the leftmost place where any token begins the longest one wins, and the search goes on
 * behind it; a token that wants to be a single word and is not is passed over.
 * Invariant: a match never ends before it starts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"
#include "token/parts.h"
#include "token/unicode.h"

/* The longest token that text begins with: its index and length, or -1. */
static int32_t trie_longest(const cake_trie *trie, const char *text, size_t len, size_t *length)
{
    int32_t found = -1, value;
    uint32_t at = 0;
    for (size_t i = 0; i < len && cake_trie_step(trie, &at, (unsigned char)text[i], &value); i++) {
        if (value >= 0) {
            found = value;
            *length = i + 1;
        }
    }
    return found;
}

/* Tokens so far: their texts, and the id behind the highest. */
typedef struct earlier {
    cake_vocab texts;
    int32_t next;
} earlier;

/* The id that the original gives a token, whatever the file says: that of the model's own vocabulary, else of an
 * earlier one of the same text, else the next that is free. */
static int32_t id_of(const cake_vocab *vocab, const earlier *before, const char *text, size_t len)
{
    int32_t known = cake_vocab_find(vocab, text, len);
    if (known < 0)
        known = cake_vocab_find(&before->texts, text, len);
    return known >= 0 ? known : before->next;
}

static cake_err read_token(const cake_spot *spot, const cake_vocab *vocab, earlier *before,
                           cake_added_token *token)
{
    const char *text = NULL;
    int64_t id = 0;
    cake_err err = cake_spot_need(spot, CAKE_JSON_OBJECT, "an object");
    if (!err)
        err = cake_spot_int(spot, "id", 0, CAKE_VOCAB_MOST - 1, &id);
    if (!err)
        err = cake_spot_text(spot, "content", &text, &token->len);
    if (!err)
        err = cake_spot_flag(spot, "special", false, &token->special);
    if (!err)
        err = cake_spot_flag(spot, "lstrip", false, &token->left);
    if (!err)
        err = cake_spot_flag(spot, "rstrip", false, &token->right);
    if (!err)
        err = cake_spot_flag(spot, "single_word", false, &token->word);
    if (!err)
        err = cake_spot_flag(spot, "normalized", !token->special, &token->normalized);
    if (err)
        return err;
    token->id = id_of(vocab, before, text, token->len);
    token->text = cake_copy(text, token->len);
    size_t len;
    const char *other = cake_vocab_text(vocab, token->id, &len);
    if (other && (len != token->len || memcmp(other, text, len) != 0))
        return cake_spot_fail(spot, "\"%.80s\" would get the id %d, which is that of \"%.*s\" in model.vocab",
                              text, token->id, (int)(len < 80 ? len : 80), other);
    if (token->id != id)
        cake_log(
            CAKE_WARN, "token",
            "added token \"%.80s\": the id %lld of the file is not the next free one; it gets %d, as in the "
            "tokenizers library",
            text, (long long)id, token->id);
    cake_vocab_add(&before->texts, text, token->len, token->id);
    before->next = token->id >= before->next ? token->id + 1 : before->next;
    return before->next < CAKE_VOCAB_MOST
               ? CAKE_OK
               : cake_spot_fail(spot, "ids are used up; there are at most %d tokens", CAKE_VOCAB_MOST);
}

/* Special tokens first: they win where two have the same text behind the normalizers. */
static cake_err fill_tries(const cake_spot *spot, const cake_normalizers *normalizers, cake_added *out)
{
    cake_scratch scratch = {0};
    cake_err err = CAKE_OK;
    for (size_t k = 0; !err && k < 2 * out->n; k++) {
        cake_added_token *token = &out->token[k % out->n];
        cake_fault fault;
        if (token->special != (k < out->n) || !token->len)
            continue;
        cake_buf_cut(&scratch.normal, 0);
        cake_buf_add(&scratch.normal, token->text, token->len);
        if (token->normalized && cake_normalizers_run(normalizers, &scratch, &fault))
            err = cake_spot_fail(spot, "\"%.80s\" cannot be normalized: %s", token->text, fault.message);
        token->shown = cake_copy(scratch.normal.data, scratch.normal.len);
        token->shown_len = scratch.normal.len;
        cake_trie_add(token->normalized ? &out->normalized : &out->raw, token->shown, token->shown_len,
                      (int32_t)(k % out->n), true);
    }
    cake_scratch_free(&scratch);
    return err;
}

cake_err cake_added_open(const cake_spot *spot, const cake_vocab *vocab, const cake_normalizers *normalizers,
                         cake_added *out)
{
    if (cake_json_kind(spot->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    cake_err err = cake_spot_need(spot, CAKE_JSON_ARRAY, "an array");
    earlier before = {.next = (int32_t)vocab->n_used};
    size_t n = err ? 0 : cake_json_size(spot->node);
    out->token = cake_alloc(n, sizeof *out->token);
    for (size_t i = 0; !err && i < n; i++) {
        cake_spot member = cake_spot_at(spot, i);
        cake_added_token token = {0};
        err = read_token(&member, vocab, &before, &token);
        out->token[out->n++] = token;
    }
    cake_vocab_free(&before.texts);
    if (!err)
        err = fill_tries(spot, normalizers, out);
    return err;
}

void cake_added_close(cake_added *added)
{
    for (size_t i = 0; i < added->n; i++) {
        free(added->token[i].text);
        free(added->token[i].shown);
    }
    free(added->token);
    cake_trie_free(&added->raw);
    cake_trie_free(&added->normalized);
    *added = (cake_added){0};
}

/* Few, and asked for rarely: a walk will do. */
const cake_added_token *cake_added_find(const cake_added *added, const char *text, size_t len)
{
    for (size_t i = 0; i < added->n; i++)
        if (added->token[i].len == len && !memcmp(added->token[i].text, text, len))
            return &added->token[i];
    return NULL;
}

static bool is_single_word(const char *text, size_t len, size_t start, size_t end)
{
    uint32_t code;
    size_t at;
    if (start && cake_char_is_word(cake_text_last(text, start, &at)))
        return false;
    return end == len || !cake_utf8_next(text + end, len - end, &code) || !cake_char_is_word(code);
}

/* Takes the white space that the token wants, but none that is taken already. */
static cake_added_match widen(const cake_added_token *token, const char *text, size_t len, size_t from,
                              size_t start, size_t end)
{
    size_t at;
    uint32_t code;
    while (token->left && start > from && cake_char_is_space(cake_text_last(text, start, &at)))
        start = at;
    while (token->right && end < len) {
        int n = cake_utf8_next(text + end, len - end, &code);
        if (!n || !cake_char_is_space(code))
            break;
        end += (size_t)n;
    }
    return (cake_added_match){token, start < from ? from : start, end};
}

cake_added_match cake_added_next(const cake_added *added, const cake_trie *trie, const char *text, size_t len,
                                 size_t from, size_t *at)
{
    while (trie->n && *at < len) {
        while (*at < len && !trie->first[(unsigned char)text[*at]])
            (*at)++;
        size_t length = 0, start = *at;
        int32_t i = trie_longest(trie, text + start, len - start, &length);
        *at += i < 0 ? 1 : length;
        if (i < 0)
            continue;
        const cake_added_token *token = &added->token[i];
        if (token->word && !is_single_word(text, len, start, *at))
            continue;
        cake_added_match match = widen(token, text, len, from, start, *at);
        if (!token->left || match.start < match.end) /* else an earlier token took all of it as white space */
            return match;
    }
    return (cake_added_match){NULL, len, len};
}
