/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece's unigram model. In: one piece of text. Out: its tokens.
 *
 * Each token has a score, its log probability; of all segmentations of a piece the one with the highest sum
 * wins. It is found from left to right: each position stores the best path to it and that path's last token.
 * A character that is not a token may always be the unknown one, with the lowest score minus ten; adjacent
 * unknown ones become one, or their bytes if the model has byte tokens. Without an unknown token, only a best
 * path that needs it is a fault (the library fails as soon as one is possible). Sums are float64 in text
 * order, and ties go to the earlier start, as in the library.
 * Invariant: every reached position has a path from position 0.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/internal.h"

#define PENALTY 10.0 /* subtracted from the lowest score for an unknown character */

typedef struct unigram {
    double *score; /* [count], by id */
    double min_score;
    int32_t unknown;   /* -1: none */
    int32_t byte[256]; /* byte tokens, -1: none */
    bool byte_fallback;
    cake_trie trie;
} unigram;

/* The best path to a position. */
typedef struct cake_unigram_path {
    double score;
    int32_t from; /* start of its last token; -1: no path yet */
    int32_t id;   /* of that token */
} place;

cake_err cake_unigram_vocab(const cake_json_path *list, cake_tokenizer_model *words)
{
    unigram *u = words->own = cake_alloc(1, sizeof *u);
    cake_err err = cake_json_path_need(list, CAKE_JSON_ARRAY, "an array");
    size_t n = err ? 0 : cake_json_size(list->node);
    size_t scores = words->lists ? words->lists->n_scores : 0;
    u->min_score = INFINITY;
    if (n > CAKE_MAX_VOCAB)
        return cake_json_path_fail(list, "%zu tokens are too many; expected at most %d", n, CAKE_MAX_VOCAB);
    u->score = cake_alloc(n, sizeof *u->score);
    for (size_t i = 0; !err && i < n; i++) {
        cake_json_path row = cake_json_path_at(list, i), text = cake_json_path_at(&row, 0),
                       score = cake_json_path_at(&row, 1);
        size_t len = 0;
        err = cake_json_path_need(&text, CAKE_JSON_STRING, "a string");
        if (!err && !cake_json_is_number(score.node))
            err = cake_json_path_fail(&score, "found %s, expected a score", cake_json_kind_name(score.node));
        if (err)
            break;
        const char *token = cake_json_text(text.node, &len);
        u->score[i] = i < scores ? words->lists->score[i] : cake_json_real(score.node, 0);
        u->min_score = u->score[i] < u->min_score ? u->score[i] : u->min_score;
        cake_vocab_put(&words->vocab, token, len, (int32_t)i);
        cake_trie_add(&u->trie, token, len, (int32_t)i, false);
    }
    return err;
}

cake_err cake_unigram_open(const cake_json_path *model, cake_tokenizer_model *words)
{
    unigram *u = words->own;
    int64_t unknown = -1;
    cake_json_path unk = cake_json_path_key(model, "unk_id");
    cake_err err = cake_json_path_flag(model, "byte_fallback", false, &u->byte_fallback);
    if (!err && cake_json_kind(unk.node) > CAKE_JSON_NULL)
        err = cake_json_path_int(model, "unk_id", 0, words->vocab.count - 1, &unknown);
    u->unknown = (int32_t)unknown;
    cake_vocab_byte_tokens(&words->vocab, u->byte);
    return err;
}

void cake_unigram_close(cake_tokenizer_model *words)
{
    unigram *u = words->own;
    free(u->score);
    cake_trie_free(&u->trie);
    free(u);
}

/* Runs of unknown characters share one token. */
bool cake_unigram_drop(const cake_tokenizer_model *words, bool spelled)
{
    (void)words, (void)spelled;
    return true;
}

static void offer(place *at, double score, size_t from, int32_t id)
{
    if (at->from < 0 || score > at->score)
        *at = (place){score, (int32_t)from, id};
}

/* Fills best[1..len]. */
static void walk(const unigram *u, const char *piece, size_t len, place *best)
{
    for (size_t from = 0, n; from < len; from += n) {
        n = (size_t)cake_utf8_next(piece + from, len - from, NULL);
        uint32_t node = 0;
        int32_t id;
        bool single = false;
        for (size_t at = from;
             u->trie.n && at < len && cake_trie_step(&u->trie, &node, (unsigned char)piece[at], &id);) {
            at++;
            if (id < 0)
                continue;
            offer(&best[at], best[from].score + u->score[id], from, id);
            single = single || at - from == n;
        }
        if (!single)
            offer(&best[from + n], best[from].score + (u->min_score - PENALTY), from, u->unknown);
    }
}

/* A run of unknown characters: a token if it is one, else its bytes, else the unknown token. */
static void add_unknown(const cake_tokenizer_model *words, const char *text, size_t len, cake_ids *ids)
{
    const unigram *u = words->own;
    int32_t id = cake_vocab_find(&words->vocab, text, len);
    bool all = u->byte_fallback;
    for (size_t i = 0; all && i < len; i++)
        all = u->byte[(unsigned char)text[i]] >= 0;
    if (id >= 0 || !all)
        cake_ids_add(ids, id >= 0 ? id : u->unknown);
    for (size_t i = 0; id < 0 && all && i < len; i++)
        cake_ids_add(ids, u->byte[(unsigned char)text[i]]);
}

cake_err cake_unigram_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                          cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    const unigram *u = words->own;
    if (len + 1 > scratch->n_path) {
        free(scratch->path); /* first, since both are large */
        scratch->n_path = len < 1024 ? 1024 : len + 1;
        scratch->path = cake_grow(NULL, scratch->n_path, sizeof *scratch->path);
    }
    place *best = scratch->path;
    for (size_t i = 0; i <= len; i++)
        best[i].from = -1;
    best[0].score = 0;
    walk(u, piece, len, best);
    size_t next = len; /* reverses the path: from[] of a start becomes its end */
    int32_t id = -1;
    for (size_t end = len; end > 0;) {
        place now = best[end];
        best[end] = (place){.from = (int32_t)next, .id = id};
        next = end;
        id = now.id;
        end = (size_t)now.from;
    }
    best[0] = (place){.from = (int32_t)next, .id = id};
    for (size_t from = 0, end; from < len; from = end) {
        end = (size_t)best[from].from;
        if (best[from].id != u->unknown) {
            cake_ids_add(ids, best[from].id);
            continue;
        }
        if (u->unknown < 0)
            return cake_vocab_unknown(piece + from, end - from, fault);
        while (end < len && best[end].id == u->unknown)
            end = (size_t)best[end].from;
        add_unknown(words, piece + from, end - from, ids);
    }
    return CAKE_OK;
}
