/* SPDX-License-Identifier: Apache-2.0
 *
 * In: pieces with scores. Out: merges in the order in which SentencePiece prefers their results.
 * Invariant: of results with equal scores the one with the lower id comes first, and of one result's pairs
 * that whose first part has the lower id.
 */
#include "formats/gguf_merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/json.h"

#define MARK "\xE2\x96\x81" /* SentencePiece's space */

typedef struct table {
    const cake_gguf_piece *piece;
    int64_t *slot; /* [size] id + 1; 0: free */
    uint64_t size; /* a power of two */
} table;

static uint64_t hash(const char *text, size_t len)
{
    uint64_t h = 1469598103934665603U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 1099511628211U;
    return h ^ h >> 32;
}

/* The slot of the text, or a free one. */
static int64_t *find(const table *t, const char *text, size_t len)
{
    uint64_t i = hash(text, len) & (t->size - 1);
    for (; t->slot[i]; i = (i + 1) & (t->size - 1)) {
        const cake_gguf_text *other = &t->piece[t->slot[i] - 1].text;
        if (other->len == len && !memcmp(other->at, text, len))
            break;
    }
    return &t->slot[i];
}

static void fill(table *t, int64_t n)
{
    for (t->size = 16; t->size < 2 * (uint64_t)n; t->size *= 2)
        ;
    t->slot = cake_alloc(t->size, sizeof *t->slot);
    for (int64_t i = 0; i < n; i++) {
        int64_t *slot = t->piece[i].joins ? find(t, t->piece[i].text.at, t->piece[i].text.len) : NULL;
        if (slot && !*slot)
            *slot = i + 1;
    }
}

/* Runs of spaces, which SentencePiece's models prefer least. */
static bool is_spaces(cake_gguf_text text)
{
    const size_t len = sizeof MARK - 1;
    size_t at = 0;
    while (at + len <= text.len && !memcmp(text.at + at, MARK, len))
        at += len;
    return at == text.len && text.len > len;
}

/* A result with its place in the order. */
typedef struct place {
    int64_t id;
    float score;
} place;

static int best_first(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* All results in their order. Some files have lost the scores: then ids have their order. */
static place *list_places(const cake_gguf_piece *piece, int64_t n, int64_t *count)
{
    place *all = cake_alloc((size_t)n, sizeof *all);
    bool equal = true;
    *count = 0;
    for (int64_t i = 0; i < n; i++)
        if (piece[i].joins) {
            all[(*count)++] = (place){i, piece[i].score};
            equal = equal && piece[i].score == all[0].score;
        }
    for (int64_t i = 0; i < *count && equal; i++)
        all[i].score = is_spaces(piece[all[i].id].text) ? -1 : 0;
    if (*count)
        qsort(all, (size_t)*count, sizeof *all, best_first);
    return all;
}

typedef struct pair {
    int64_t left;
    size_t at; /* bytes of the left part */
} pair;

static int by_left(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return (x->left > y->left) - (x->left < y->left);
}

void cake_gguf_merges_add(const cake_gguf_piece *piece, int64_t n, cake_buf *out)
{
    table t = {.piece = piece};
    pair *pairs = NULL;
    size_t n_pair, room = 0;
    int64_t count;
    const char *comma = "";
    place *places = list_places(piece, n, &count);
    fill(&t, n);
    cake_buf_addc(out, '[');
    for (int64_t k = 0; k < count; k++) {
        const cake_gguf_text text = piece[places[k].id].text;
        n_pair = 0;
        for (size_t at = (size_t)cake_utf8_next(text.at, text.len, NULL); at && at < text.len;
             at += (size_t)cake_utf8_next(text.at + at, text.len - at, NULL)) {
            const int64_t left = *find(&t, text.at, at), right = *find(&t, text.at + at, text.len - at);
            if (!left || !right)
                continue;
            CAKE_RESERVE(pairs, n_pair, room);
            pairs[n_pair++] = (pair){left, at};
        }
        if (n_pair > 1)
            qsort(pairs, n_pair, sizeof *pairs, by_left);
        for (size_t i = 0; i < n_pair; i++) {
            cake_buf_addf(out, "%s[", comma);
            cake_json_add_text(out, text.at, pairs[i].at);
            cake_buf_addc(out, ',');
            cake_json_add_text(out, text.at + pairs[i].at, text.len - pairs[i].at);
            cake_buf_addc(out, ']');
            comma = ",";
        }
    }
    cake_buf_addc(out, ']');
    free(places);
    free(pairs);
    free(t.slot);
}
