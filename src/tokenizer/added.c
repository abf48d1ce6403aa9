/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `added_tokens`, then text. Out: the added tokens in it.
 *
 * As in the tokenizers library: at the leftmost place where any token begins the longest one wins, and the
 * search continues after it; a token marked single_word that is not a single word is skipped.
 * Invariant: a match never ends before it starts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/unicode.h"
#include "tokenizer/internal.h"

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

/* One call of the library's add_tokens: begin_added, then put_added for each token. */
static void begin_added(cake_added *added, const cake_vocab *vocab)
{
    int32_t n = (int32_t)vocab->n_used;
    added->next = added->n && (added->top >= n || !n) ? added->top + 1 : n;
}

/* The id that the library gives a token, whatever the file has: that of an earlier token with the same text,
 * else that in the model's vocabulary, else the next free one. */
static int32_t id_of(const cake_added *added, const cake_vocab *vocab, const cake_added_token *token,
                     int32_t at)
{
    if (at >= 0)
        return added->token[at].id;
    int32_t known = cake_vocab_find(vocab, token->text, token->len);
    return known >= 0 ? known : added->next;
}

/* A token that exists already changes its flags, not its id. text is borrowed; path: its place in the
 * file. */
static cake_err put_added(cake_added *added, const cake_vocab *vocab, const cake_json_path *path,
                          const cake_added_token *token)
{
    if (!token->len)
        return CAKE_OK;
    int32_t at = cake_vocab_find(&added->texts, token->text, token->len);
    int32_t id = id_of(added, vocab, token, at);
    size_t len = 0;
    const char *other = at < 0 ? cake_vocab_text(vocab, id, &len) : NULL;
    if (other && (len != token->len || memcmp(other, token->text, len) != 0))
        return cake_json_path_fail(path,
                                   "\"%.80s\" would get the id %d, which is that of \"%.*s\" in model.vocab",
                                   token->text, id, (int)(len < 80 ? len : 80), other);
    if (id >= CAKE_MAX_VOCAB - 1)
        return cake_json_path_fail(path, "ids are used up; there are at most %d tokens", CAKE_MAX_VOCAB);
    if (token->file_id >= 0 && id != token->file_id)
        cake_log(CAKE_WARN, "tokenizer",
                 "added token \"%.80s\": "
                 "the id %d of the file is not the next free one; it gets %d, as in the tokenizers library",
                 token->text, token->file_id, id);
    if (at < 0) {
        at = (int32_t)added->n;
        CAKE_RESERVE(added->token, added->n, added->cap);
        added->token[added->n++] =
            (cake_added_token){.text = cake_copy(token->text, token->len), .len = token->len};
        cake_vocab_put(&added->texts, token->text, token->len, at);
        added->next += id == added->next;
        added->top = id > added->top ? id : added->top;
    }
    cake_added_token *mine = &added->token[at];
    mine->skipped = mine->skipped || token->is.special;
    mine->id = id;
    mine->file_id = token->file_id >= 0 ? token->file_id : id;
    mine->is = token->is;
    mine->normal = mine->normal || token->is.normalized;
    return CAKE_OK;
}

static cake_err read_token(const cake_json_path *path, cake_added_token *token)
{
    const char *text = NULL;
    int64_t id = 0;
    cake_err err = cake_json_path_need(path, CAKE_JSON_OBJECT, "an object");
    if (!err)
        err = cake_json_path_int(path, "id", 0, CAKE_MAX_VOCAB - 1, &id);
    if (!err)
        err = cake_json_path_text(path, "content", &text, &token->len);
    if (!err)
        err = cake_json_path_added(path, false, &token->is);
    token->text = (char *)text;
    token->file_id = (int32_t)id;
    return err;
}

cake_err cake_added_read(const cake_json_path *path, const cake_vocab *vocab, cake_added *out)
{
    if (cake_json_kind(path->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    cake_err err = cake_json_path_need(path, CAKE_JSON_ARRAY, "an array");
    begin_added(out, vocab);
    for (size_t i = 0; !err && i < cake_json_size(path->node); i++) {
        cake_json_path member = cake_json_path_at(path, i);
        cake_added_token token = {0};
        err = read_token(&member, &token);
        if (!err)
            err = put_added(out, vocab, &member, &token);
    }
    return err;
}

/* --- tokens of the other files --- */

static cake_err put_special(cake_added *added, const cake_vocab *vocab, const cake_json_path *path,
                            const cake_special *s)
{
    cake_added_token token = {.text = s->text, .len = s->len, .file_id = -1, .is = s->is};
    return put_added(added, vocab, path, &token);
}

/* Adds tokens that are listed with an id; one with a name is special. */
static cake_err put_listed(cake_added *added, const cake_vocab *vocab, const cake_json_path *path,
                           const cake_special_list *list, const cake_special_list *named)
{
    cake_vocab names = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < named->n; i++)
        if (named->at[i].text)
            cake_vocab_put(&names, named->at[i].text, named->at[i].len, names.count);
    for (size_t i = 0; !err && i < list->n; i++) {
        cake_special s = list->at[i];
        s.is.special = s.is.special || cake_vocab_find(&names, s.text, s.len) >= 0;
        err = put_special(added, vocab, path, &s);
    }
    cake_vocab_free(&names);
    return err;
}

/* Adds tokens that only have names, unless they are added tokens already: the first n precede the names. */
static cake_err put_missing(cake_added *added, const cake_vocab *vocab, const cake_json_path *path,
                            const cake_special_list *list, size_t n)
{
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < list->n; i++) {
        const cake_special *s = &list->at[i];
        const cake_added_token *known = s->text ? cake_added_find(added, s->text, s->len) : NULL;
        if (s->text && (!known || (size_t)(known - added->token) >= n))
            err = put_special(added, vocab, path, s);
    }
    return err;
}

/* Adds all special tokens again, which resets their flags for white space. */
static cake_err put_again(cake_added *added, const cake_vocab *vocab, const cake_json_path *path,
                          const cake_special_list *list)
{
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < list->n; i++) {
        cake_special token = {.text = list->at[i].text, .len = list->at[i].len, .id = -1, .is.special = true};
        if (token.text)
            err = put_special(added, vocab, path, &token);
    }
    return err;
}

static int by_id(const void *a, const void *b)
{
    const cake_special *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The listed tokens: added_tokens_decoder or, without one, added_tokens.json and the tokens of
 * tokenizer.json, which win where both have an id. Texts are borrowed from both; only the list is owned. */
static cake_special_list list_all(const cake_added *added, const cake_specials *specials)
{
    const cake_special_list *listed = &specials->listed;
    cake_special_list out = {cake_alloc(listed->n + added->n + 1, sizeof *out.at), 0, 0};
    for (size_t i = 0; !specials->all && i < added->n; i++) {
        const cake_added_token *t = &added->token[i];
        out.at[out.n++] = (cake_special){.text = t->text, .len = t->len, .id = t->file_id, .is = t->is};
    }
    size_t n = out.n;
    if (n)
        qsort(out.at, n, sizeof *out.at, by_id);
    for (size_t i = 0; i < listed->n; i++)
        if (!n || !bsearch(&listed->at[i], out.at, n, sizeof *out.at, by_id))
            out.at[out.n++] = listed->at[i];
    if (out.n)
        qsort(out.at, out.n, sizeof *out.at, by_id);
    return out;
}

cake_err cake_added_specials(cake_added *added, const cake_vocab *vocab, const cake_specials *specials,
                             const char *where)
{
    cake_json_path path = cake_json_path_root(where, NULL);
    cake_added before = {0};
    cake_special_list listed = list_all(added, specials);
    if (specials->class->builds) { /* its constructor starts without any */
        before = *added;
        *added = (cake_added){0};
    }
    added->split = specials->split;
    begin_added(added, vocab);
    cake_err err = put_listed(added, vocab, &path, &listed, &specials->named);
    size_t n = added->n;
    if (!err)
        err = put_missing(added, vocab, &path, &specials->named, n);
    if (!err)
        err = put_missing(added, vocab, &path, &specials->extra, n);
    if (!err && specials->class->repeats) {
        begin_added(added, vocab);
        err = put_again(added, vocab, &path, &specials->named);
        if (!err)
            err = put_again(added, vocab, &path, &specials->extra);
    }
    free(listed.at);
    cake_added_close(&before);
    return err;
}

cake_err cake_added_finish(cake_added *added, const cake_json_path *path, const cake_normalizers *normalizers)
{
    cake_encode_ws scratch = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < added->n; i++) {
        cake_added_token *token = &added->token[i];
        cake_fault fault;
        cake_buf_cut(&scratch.normal, 0);
        cake_buf_add(&scratch.normal, token->text, token->len);
        if (token->normal && cake_normalizers_run(normalizers, &scratch, &fault))
            err = cake_json_path_fail(path, "\"%.80s\" cannot be normalized: %s", token->text, fault.message);
        token->shown = cake_copy(scratch.normal.data, scratch.normal.len);
        token->shown_len = scratch.normal.len;
        if (token->is.normalized)
            cake_trie_add(&added->normalized, token->shown, token->shown_len, (int32_t)i, true);
        else
            cake_trie_add(&added->raw, token->text, token->len, (int32_t)i, true);
    }
    cake_encode_ws_free(&scratch);
    return err;
}

void cake_added_close(cake_added *added)
{
    for (size_t i = 0; i < added->n; i++) {
        free(added->token[i].text);
        free(added->token[i].shown);
    }
    free(added->token);
    cake_vocab_free(&added->texts);
    cake_trie_free(&added->raw);
    cake_trie_free(&added->normalized);
    *added = (cake_added){0};
}

const cake_added_token *cake_added_find(const cake_added *added, const char *text, size_t len)
{
    int32_t at = cake_vocab_find(&added->texts, text, len);
    return at < 0 ? NULL : &added->token[at];
}

static bool is_single_word(const char *text, size_t len, size_t start, size_t end)
{
    uint32_t code;
    size_t at;
    if (start && cake_char_is_word(cake_text_last(text, start, &at)))
        return false;
    return end == len || !cake_utf8_next(text + end, len - end, &code) || !cake_char_is_word(code);
}

/* Includes the white space that the token takes, unless an earlier match has it. */
static cake_added_match widen(const cake_added_token *token, const char *text, size_t len, size_t from,
                              size_t start, size_t end)
{
    size_t at;
    uint32_t code;
    while (token->is.left && start > from && cake_char_is_space(cake_text_last(text, start, &at)))
        start = at;
    while (token->is.right && end < len) {
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
        if ((added->split && token->skipped) || (token->is.word && !is_single_word(text, len, start, *at)))
            continue;
        cake_added_match match = widen(token, text, len, from, start, *at);
        if (!token->is.left ||
            match.start < match.end) /* else an earlier token took all of it as white space */
            return match;
    }
    return (cake_added_match){NULL, len, len};
}
