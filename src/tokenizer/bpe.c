/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte pair encoding. In: one piece of text. Out: its tokens.
 *
 * A piece starts as its characters. While any pair of neighbours has a rank, the pair with the lowest one
 * (the leftmost among equals) becomes one symbol. A heap orders the pairs, so a piece of n characters costs n
 * log n; entries whose pair has changed are dropped when they come up. Long pieces are first split where no
 * merge can cross, and parts that stay long are merged in rounds.
 * Invariant: a merge's three tokens are in the vocabulary.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/internal.h"

#define PART       ((size_t)1 << 10) /* bytes of a piece from which a place to split it is looked for */
#define LONG_CHAIN (1 << 17)         /* symbols from which memory matters more than time */
#define FAST       0x800 /* characters below are in a table: all that the byte-level alphabet uses */

typedef struct merge {
    uint64_t pair; /* left id << 32 | right id; NO_PAIR: a free slot */
    uint32_t rank;
    int32_t id; /* of the merged token */
} merge;

#define NO_PAIR UINT64_MAX

enum { NONE = -1, ABSENT = -2 };

typedef struct bpe {
    merge *merges; /* [n_slot], open addressing */
    size_t n_slot;
    char *prefix, *suffix; /* of characters inside a word and at its end; usually "" */
    int32_t unknown;       /* NONE: characters outside of the vocabulary are dropped; ABSENT: a fault */
    int32_t byte[256];     /* byte tokens, -1: none */
    int32_t mark;          /* of U+2581, -1: none */
    int32_t fast[FAST];    /* tokens of single characters, -1: none */
    bool affixes, fuse_unknown, byte_fallback, whole_words;
    bool ordered;      /* the result of a merge only takes part in merges of higher ranks */
    uint32_t n_merges; /* all ranks are below */
    uint8_t *inside;   /* [NEIGHBOURS / 8] bits by the hash of two neighbours: some token contains them */
} bpe;

#define NEIGHBOURS ((uint32_t)1 << 20)

static size_t slot_of(const bpe *b, uint64_t pair)
{
    size_t mask = b->n_slot - 1, at = (pair * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (b->merges[at].pair != pair && b->merges[at].pair != NO_PAIR)
        at = (at + 1) & mask;
    return at;
}

static const merge *find_merge(const bpe *b, int32_t left, int32_t right)
{
    const merge *m = &b->merges[slot_of(b, (uint64_t)(uint32_t)left << 32 | (uint32_t)right)];
    return m->pair == NO_PAIR ? NULL : m;
}

/* --- opening --- */

/* The two halves of a merge: ["a", "b"] or "a b". */
static cake_err read_pair(const cake_json_path *path, const char *half[2], size_t len[2])
{
    if (cake_json_kind(path->node) == CAKE_JSON_ARRAY) {
        if (cake_json_size(path->node) != 2)
            return cake_json_path_fail(path, "found %zu elements, expected 2", cake_json_size(path->node));
        for (size_t i = 0; i < 2; i++) {
            cake_json_path side = cake_json_path_at(path, i);
            cake_err err = cake_json_path_need(&side, CAKE_JSON_STRING, "a string");
            if (err)
                return err;
            half[i] = cake_json_text(side.node, &len[i]);
        }
        return CAKE_OK;
    }
    size_t all;
    cake_err err = cake_json_path_need(path, CAKE_JSON_STRING, "\"left right\" or [\"left\", \"right\"]");
    if (err)
        return err;
    half[0] = cake_json_text(path->node, &all);
    const char *space = memchr(half[0], ' ', all);
    if (!space || memchr(space + 1, ' ', all - (size_t)(space + 1 - half[0])))
        return cake_json_path_fail(path, "\"%.80s\" is not two tokens with one space between them", half[0]);
    len[0] = (size_t)(space - half[0]);
    half[1] = space + 1;
    len[1] = all - len[0] - 1;
    return CAKE_OK;
}

static cake_err find_pair(const cake_json_path *path, const cake_vocab *vocab, cake_pair *pair)
{
    const char *half[2];
    size_t len[2];
    cake_err err = read_pair(path, half, len);
    for (int i = 0; !err && i < 2; i++) {
        int32_t id = cake_vocab_find(vocab, half[i], len[i]);
        if (id < 0)
            return cake_json_path_fail(path, "the token \"%.*s\" is not in model.vocab",
                                       (int)(len[i] < 80 ? len[i] : 80), half[i]);
        *(i ? &pair->right : &pair->left) = id;
    }
    return err;
}

/* The token with this text. Mostly it follows the token of the merge before, which is faster to see than to
 * look up. */
static int32_t find_merged(const cake_vocab *vocab, const cake_buf *text, int32_t before)
{
    size_t len = 0;
    const char *next = cake_vocab_text(vocab, before + 1, &len);
    return next && len == text->len && !memcmp(next, text->data, len)
               ? before + 1
               : cake_vocab_find(vocab, text->data, text->len);
}

/* Both tokens joined, without the second's prefix, must be a token. *merged: that of the merge before, then
 * of this one. */
static cake_err add_merge(const cake_json_path *path, const cake_vocab *vocab, bpe *b, uint32_t rank,
                          cake_pair ids, cake_buf *both, int32_t *merged)
{
    size_t left_len = 0, right_len = 0;
    const char *left = cake_vocab_text(vocab, ids.left, &left_len);
    const char *right = cake_vocab_text(vocab, ids.right, &right_len);
    size_t skip = strlen(b->prefix) < right_len ? strlen(b->prefix) : right_len;
    cake_buf_cut(both, 0);
    cake_buf_add(both, left, left_len);
    cake_buf_add(both, right + skip, right_len - skip);
    *merged = find_merged(vocab, both, *merged);
    if (*merged < 0)
        return cake_json_path_fail(path, "their union, the token \"%.80s\", is not in model.vocab",
                                   both->data);
    uint64_t pair = (uint64_t)(uint32_t)ids.left << 32 | (uint32_t)ids.right;
    b->merges[slot_of(b, pair)] = (merge){.pair = pair, .rank = rank, .id = *merged};
    return CAKE_OK;
}

static cake_err open_merges(const cake_json_path *model, const cake_tokenizer_model *words, bpe *b)
{
    cake_json_path list = cake_json_path_key(model, "merges");
    cake_err err = cake_json_path_need(&list, CAKE_JSON_ARRAY, "an array");
    if (err)
        return err;
    size_t n = words->lists ? words->lists->n : cake_json_size(list.node);
    if (n >= UINT32_MAX / 4)
        return cake_json_path_fail(&list, "%zu merges are more than can be ranked", n);
    b->n_merges = (uint32_t)n;
    for (b->n_slot = 16; b->n_slot < 2 * n + 2;)
        b->n_slot *= 2;
    b->merges = cake_alloc(b->n_slot, sizeof *b->merges);
    for (size_t i = 0; i < b->n_slot; i++)
        b->merges[i].pair = NO_PAIR;
    cake_buf both = {0};
    int32_t merged = -1;
    for (size_t i = 0; !err && i < n; i++) {
        cake_json_path path =
            cake_json_path_at(&list, i); /* the list was read already, so there is no node */
        cake_pair pair = {0, 0};
        if (words->lists)
            pair = words->lists->pair[i];
        else
            err = find_pair(&path, &words->vocab, &pair);
        if (!err)
            err = add_merge(&path, &words->vocab, b, (uint32_t)i, pair, &both, &merged);
    }
    cake_buf_free(&both);
    return err;
}

/* A string member that may be absent or null, which count as "". */
static cake_err open_affix(const cake_json_path *model, const char *key, char **out)
{
    const char *text = "";
    size_t len = 0;
    if (cake_json_kind(cake_json_get(model->node, key)) > CAKE_JSON_NULL) {
        cake_err err = cake_json_path_text(model, key, &text, &len);
        if (err)
            return err;
    }
    *out = cake_copy(text, len);
    return CAKE_OK;
}

/* An unknown token outside of the vocabulary is an error only when an unknown character occurs. */
static cake_err open_unknown(const cake_json_path *model, const cake_vocab *vocab, bpe *b)
{
    b->unknown = NONE;
    if (cake_json_kind(cake_json_get(model->node, "unk_token")) <= CAKE_JSON_NULL)
        return CAKE_OK;
    const char *text = NULL;
    size_t len = 0;
    cake_err err = cake_json_path_text(model, "unk_token", &text, &len);
    b->unknown = err ? NONE : cake_vocab_find(vocab, text, len);
    b->unknown = b->unknown < 0 ? ABSENT : b->unknown;
    return err;
}

static void open_tables(const cake_vocab *vocab, bpe *b)
{
    if (b->byte_fallback)
        cake_vocab_byte_tokens(vocab, b->byte);
    else
        memset(b->byte, -1, sizeof b->byte);
    b->mark = cake_vocab_find(vocab, "\xE2\x96\x81", 3);
    for (uint32_t code = 0; code < FAST; code++) {
        char text[4];
        b->fast[code] = cake_vocab_find(vocab, text, (size_t)cake_utf8_put(text, code));
    }
}

static uint32_t neighbours(uint32_t left, uint32_t right)
{
    return (uint32_t)((left * 0x9E3779B97F4A7C15u ^ right * 0xD6E8FEB86659FD93u) >> 40) % NEIGHBOURS;
}

static bool held(const bpe *b, uint32_t left, uint32_t right)
{
    uint32_t bit = neighbours(left, right);
    return b->inside[bit / 8] >> bit % 8 & 1;
}

static void open_inside(const cake_vocab *vocab, bpe *b)
{
    b->inside = cake_alloc(NEIGHBOURS / 8, 1);
    for (int32_t id = 0; id < vocab->count; id++) {
        size_t len = 0;
        const char *text = cake_vocab_text(vocab, id, &len);
        uint32_t code = 0, last = 0;
        for (size_t at = 0, n; text && at < len; at += n, last = code) {
            n = (size_t)cake_utf8_next(text + at, len - at, &code);
            n = n ? n : 1;
            uint32_t bit = neighbours(last, code);
            b->inside[bit / 8] |= (uint8_t)(1u << bit % 8);
        }
    }
}

/* Whether every merge has a higher rank than the merges that make its halves. */
static bool is_ordered(const cake_vocab *vocab, const bpe *b)
{
    uint32_t *made = cake_alloc((size_t)vocab->count, sizeof *made); /* 1 + the highest rank that makes it */
    bool ordered = true;
    for (size_t i = 0; i < b->n_slot; i++) {
        const merge *m = &b->merges[i];
        if (m->pair != NO_PAIR && m->rank >= made[m->id])
            made[m->id] = m->rank + 1;
    }
    for (size_t i = 0; i < b->n_slot; i++) {
        const merge *m = &b->merges[i];
        if (m->pair != NO_PAIR)
            ordered = ordered && m->rank >= made[m->pair >> 32] && m->rank >= made[m->pair & UINT32_MAX];
    }
    free(made);
    return ordered;
}

cake_err cake_bpe_open(const cake_json_path *model, cake_tokenizer_model *words)
{
    bpe *b = words->own = cake_alloc(1, sizeof *b);
    cake_json_path dropout = cake_json_path_key(model, "dropout");
    if (cake_json_kind(dropout.node) > CAKE_JSON_NULL && cake_json_real(dropout.node, 1) != 0)
        return cake_json_path_fail(&dropout,
                                   "only null is supported: encoding has to be the same every time");
    cake_err err = open_affix(model, "continuing_subword_prefix", &b->prefix);
    if (!err)
        err = open_affix(model, "end_of_word_suffix", &b->suffix);
    if (!err)
        err = cake_json_path_flag(model, "fuse_unk", false, &b->fuse_unknown);
    if (!err)
        err = cake_json_path_flag(model, "byte_fallback", false, &b->byte_fallback);
    if (!err)
        err = cake_json_path_flag(model, "ignore_merges", false, &b->whole_words);
    if (!err)
        err = open_unknown(model, &words->vocab, b);
    if (!err)
        err = open_merges(model, words, b);
    if (err)
        return err;
    b->affixes = b->prefix[0] || b->suffix[0];
    b->ordered = is_ordered(&words->vocab, b);
    open_tables(&words->vocab, b);
    open_inside(&words->vocab, b);
    return CAKE_OK;
}

void cake_bpe_close(cake_tokenizer_model *words)
{
    bpe *b = words->own;
    free(b->merges);
    free(b->inside);
    free(b->prefix);
    free(b->suffix);
    free(b);
}

bool cake_bpe_drop(const cake_tokenizer_model *words, bool spelled)
{
    const bpe *b = words->own;
    bool all_bytes = b->byte_fallback, all_spelled = spelled && !b->affixes;
    if (b->unknown >= 0 && !b->fuse_unknown)
        return false;
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        cake_buf text = {0};
        uint32_t code = 0;
        cake_byte_level_spell(&byte, 1, &text);
        cake_utf8_next(text.data, text.len, &code);
        all_spelled = all_spelled && b->fast[code] >= 0;
        all_bytes = all_bytes && b->byte[i] >= 0;
        cake_buf_free(&text);
    }
    return !all_spelled && !all_bytes;
}

/* --- encoding --- */

/* The symbols of a piece, by the index of their first character. A symbol of k > 1 characters has -k after
 * its id and in its last place, so that both neighbours find its ends. */
typedef struct chain {
    int32_t *id; /* [n], negative: inside of a symbol */
    int32_t n;
} chain;

static void add_symbol(chain *c, int32_t id)
{
    c->id[c->n++] = id;
}

static int32_t next_symbol(const chain *c, int32_t at)
{
    return at + 1 < c->n && c->id[at + 1] < 0 ? at - c->id[at + 1] : at + 1;
}

static int32_t ahead(const chain *c, int32_t at)
{
    return at && c->id[at - 1] < 0 ? at + c->id[at - 1] : at - 1;
}

/* The merge of the symbol at `at` with the next one; NULL: none. */
static const merge *merge_at(const bpe *b, const chain *c, int32_t at)
{
    int32_t right = next_symbol(c, at);
    return right < c->n ? find_merge(b, c->id[at], c->id[right]) : NULL;
}

static void join(chain *c, int32_t at, int32_t id)
{
    int32_t right = next_symbol(c, at), end = next_symbol(c, right), k = end - at;
    c->id[right] = c->id[at + 1] = c->id[end - 1] = -k;
    c->id[at] = id;
}

static int32_t find_character(const cake_tokenizer_model *words, const char *text, size_t len, bool first,
                              bool last, cake_buf *spelled)
{
    const bpe *b = words->own;
    uint32_t code = 0;
    if (b->affixes) {
        cake_buf_cut(spelled, 0);
        cake_buf_adds(spelled, first ? "" : b->prefix);
        cake_buf_add(spelled, text, len);
        cake_buf_adds(spelled, last ? b->suffix : "");
        return cake_vocab_find(&words->vocab, spelled->data, spelled->len);
    }
    if (len <= 2 && cake_utf8_next(text, len, &code))
        return b->fast[code];
    return cake_vocab_find(&words->vocab, text, len);
}

static bool add_bytes(const bpe *b, chain *c, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (b->byte[(unsigned char)text[i]] < 0)
            return false;
    for (size_t i = 0; i < len; i++)
        add_symbol(c, b->byte[(unsigned char)text[i]]);
    return true;
}

/* The piece's characters. An unknown one waits until a known one follows, so that a run of them can be fused;
 * byte tokens do not count as known and go before it, as in the library. */
static cake_err spell(const cake_tokenizer_model *words, const char *piece, size_t len, chain *c,
                      cake_buf *spelled, cake_fault *fault)
{
    const bpe *b = words->own;
    bool waiting = false;
    for (size_t i = 0, n; i < len; i += n) {
        n = (size_t)cake_utf8_next(piece + i, len - i, NULL);
        n = n ? n : 1;
        int32_t id = find_character(words, piece + i, n, i == 0, i + n == len, spelled);
        if (id >= 0) {
            if (waiting)
                add_symbol(c, b->unknown);
            waiting = false;
            add_symbol(c, id);
        } else if (b->byte_fallback && (b->affixes ? add_bytes(b, c, spelled->data, spelled->len)
                                                   : add_bytes(b, c, piece + i, n))) {
            continue;
        } else if (b->unknown == ABSENT) {
            return cake_vocab_unknown(piece + i, n, fault);
        } else if (b->unknown >= 0) {
            if (waiting && !b->fuse_unknown)
                add_symbol(c, b->unknown);
            waiting = true;
        }
    }
    if (waiting)
        add_symbol(c, b->unknown);
    return CAKE_OK;
}

static void heap_push(cake_encode_ws *scratch, uint64_t key)
{
    CAKE_RESERVE(scratch->heap, scratch->n_heap, scratch->heap_room);
    uint64_t *heap = scratch->heap;
    size_t at = scratch->n_heap++;
    while (at && heap[(at - 1) / 2] > key) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = key;
}

static uint64_t heap_pop(cake_encode_ws *scratch)
{
    uint64_t *heap = scratch->heap, top = heap[0], key = heap[--scratch->n_heap];
    size_t at = 0, n = scratch->n_heap;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
    return top;
}

static void offer(const bpe *b, const chain *c, int32_t at, uint32_t below, cake_encode_ws *scratch)
{
    const merge *m = merge_at(b, c, at);
    if (m && m->rank < below)
        heap_push(scratch, (uint64_t)m->rank << 32 | (uint32_t)at);
}

/* Performs all merges of ranks below `below`. A heap entry is a rank and a position; a stale one has another
 * rank by now. */
static void merge_below(const bpe *b, chain *c, uint32_t below, cake_encode_ws *scratch)
{
    for (int32_t i = 0; i < c->n; i = next_symbol(c, i))
        offer(b, c, i, below, scratch);
    while (scratch->n_heap) {
        uint64_t top = heap_pop(scratch);
        int32_t at = (int32_t)(top & UINT32_MAX);
        const merge *m = c->id[at] < 0 ? NULL : merge_at(b, c, at);
        if (!m || m->rank != top >> 32)
            continue;
        join(c, at, m->id);
        if (at)
            offer(b, c, ahead(c, at), below, scratch);
        offer(b, c, at, below, scratch);
    }
}

/* Performs all merges of the lowest rank, provided that none of them enables a lower one. */
static void merge_rank(const bpe *b, chain *c, uint32_t rank)
{
    for (int32_t i = 0; i < c->n; i = next_symbol(c, i)) {
        const merge *m = merge_at(b, c, i);
        if (m && m->rank == rank)
            join(c, i, m->id);
    }
}

/* Merges a long chain in rounds, each of as many ranks as keep the heap small relative to the chain. */
static void merge_long(const bpe *b, chain *c, cake_encode_ws *scratch)
{
    uint32_t *count = cake_alloc(b->n_merges, sizeof *count);
    uint32_t max = (uint32_t)c->n / 8;
    for (;;) {
        memset(count, 0, b->n_merges * sizeof *count);
        for (int32_t i = 0; i < c->n; i = next_symbol(c, i)) {
            const merge *m = merge_at(b, c, i);
            if (m)
                count[m->rank]++;
        }
        uint32_t first = 0, below, sum = 0;
        while (first < b->n_merges && !count[first])
            first++;
        if (first == b->n_merges)
            break;
        for (below = first; below < b->n_merges && count[below] <= max - sum; below++)
            sum += count[below];
        if (below == first && b->ordered)
            merge_rank(b, c, first);
        else
            merge_below(b, c, below == first ? first + 1 : below, scratch);
    }
    free(count);
}

static cake_err run_part(const cake_tokenizer_model *words, const char *text, size_t len,
                         cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    const bpe *b = words->own;
    size_t room = len + strlen(b->suffix) + (b->prefix[0] ? len * strlen(b->prefix) : 0);
    cake_err err = b->affixes ? cake_text_grown(room, "continuing_subword_prefix", fault) : CAKE_OK;
    if (err)
        return err;
    if (room > scratch->n_symbols) {
        free(scratch->symbols); /* first, since both are large */
        scratch->n_symbols = room < 1024 ? 1024 : room;
        scratch->symbols = cake_grow(NULL, scratch->n_symbols, sizeof *scratch->symbols);
    }
    chain c = {.id = scratch->symbols};
    err = spell(words, text, len, &c, &scratch->character, fault);
    if (err)
        return err;
    if (c.n < LONG_CHAIN)
        merge_below(b, &c, UINT32_MAX, scratch);
    else
        merge_long(b, &c, scratch);
    for (int32_t i = 0; i < c.n; i = next_symbol(&c, i))
        cake_ids_add(ids, c.id[i]);
    return CAKE_OK;
}

/* The end of the part of a piece that begins at `from`: a place that no merge can cross, since both
 * characters are tokens and no token contains them as neighbours. */
static size_t part_end(const cake_tokenizer_model *words, const char *piece, size_t len, size_t from)
{
    const bpe *b = words->own;
    uint32_t code, last = 0;
    bool known = false; /* the previous character is a token */
    for (size_t at = from, n; at < len; at += n) {
        n = (size_t)cake_utf8_next(piece + at, len - at, &code);
        n = n ? n : 1;
        bool is_known = at - from >= PART && find_character(words, piece + at, n, false, false, NULL) >= 0;
        if (known && is_known && !held(b, last, code))
            return at;
        known = is_known;
        last = code;
    }
    return len;
}

/* Words end before a space or its substitute, which no merge crosses. */
size_t cake_bpe_cut(const cake_tokenizer_model *words, const char *piece, size_t len, size_t from)
{
    static const uint32_t mark = 0x2581;
    const bpe *b = words->own;
    for (size_t at = from + 1, last; at < len && !b->affixes && !b->whole_words; at++) {
        bool space = piece[at] == ' ';
        if (!space && memcmp(piece + at, "\xE2\x96\x81", len - at < 3 ? len - at : 3) != 0)
            continue;
        uint32_t before = cake_text_last(piece, at, &last);
        if (last < from || held(b, before, space ? ' ' : mark) || (space ? b->fast[' '] : b->mark) < 0)
            continue;
        if (find_character(words, piece + last, at - last, false, false, NULL) >= 0)
            return at;
    }
    return len;
}

cake_err cake_bpe_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                      cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    const bpe *b = words->own;
    if (b->whole_words) {
        int32_t id = cake_vocab_find(&words->vocab, piece, len);
        if (id >= 0) {
            cake_ids_add(ids, id);
            return CAKE_OK;
        }
    }
    cake_err err = CAKE_OK;
    for (size_t from = 0, end; !err && from < len; from = end) {
        end = b->affixes ? len : part_end(words, piece, len, from);
        err = run_part(words, piece + from, end - from, scratch, ids, fault);
    }
    return err;
}
