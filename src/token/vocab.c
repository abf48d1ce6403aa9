/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts with their ids, in any order. Out: look-ups both ways in constant time.
 * Invariant: less than half of the slots are taken, so a probe ends.
 */
#include "token/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t hash(const char *text, size_t len)
{
    uint64_t h = len * 0x9E3779B97F4A7C15u;
    while (len) {
        uint64_t word = 0;
        size_t n = len < sizeof word ? len : sizeof word;
        memcpy(&word, text, n);
        h = (h ^ word) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        text += n;
        len -= n;
    }
    return h;
}

/* The slot that holds text, or the free one where it belongs. */
static size_t probe(const cake_vocab *vocab, const char *text, size_t len)
{
    size_t mask = vocab->n_slot - 1;
    size_t at = hash(text, len) & mask;
    for (; vocab->slot[at] >= 0; at = (at + 1) & mask) {
        const cake_vocab_entry *e = &vocab->entry[vocab->slot[at]];
        if (e->len == len && !memcmp(vocab->text.data + e->at, text, len))
            break;
    }
    return at;
}

static void rehash(cake_vocab *vocab)
{
    free(vocab->slot);
    vocab->n_slot = vocab->n_slot ? 2 * vocab->n_slot : 1024;
    vocab->slot = cake_alloc(vocab->n_slot, sizeof *vocab->slot);
    memset(vocab->slot, -1, vocab->n_slot * sizeof *vocab->slot);
    for (int32_t id = 0; id < vocab->count; id++) {
        const cake_vocab_entry *e = &vocab->entry[id];
        if (e->used)
            vocab->slot[probe(vocab, vocab->text.data + e->at, e->len)] = id;
    }
}

static void grow_entries(cake_vocab *vocab, int32_t id)
{
    size_t room = vocab->n_room ? vocab->n_room : 1024;
    while (room <= (size_t)id)
        room *= 2;
    if (room > vocab->n_room) {
        vocab->entry = cake_grow(vocab->entry, room, sizeof *vocab->entry);
        memset(vocab->entry + vocab->n_room, 0, (room - vocab->n_room) * sizeof *vocab->entry);
        vocab->n_room = room;
    }
    if (id >= vocab->count)
        vocab->count = id + 1;
}

/* The text goes to the id, and the id to the slot. */
static void put(cake_vocab *vocab, const char *text, size_t len, int32_t id, size_t slot)
{
    grow_entries(vocab, id);
    vocab->entry[id] = (cake_vocab_entry){.at = vocab->text.len, .len = len, .used = 1};
    cake_buf_add(&vocab->text, text, len);
    vocab->n_used += vocab->slot[slot] < 0;
    vocab->slot[slot] = id;
}

int32_t cake_vocab_add(cake_vocab *vocab, const char *text, size_t len, int32_t id)
{
    if (2 * (vocab->n_used + 1) >= vocab->n_slot)
        rehash(vocab);
    size_t at = probe(vocab, text, len);
    if (vocab->slot[at] >= 0)
        return vocab->slot[at];
    if (id < vocab->count && vocab->entry[id].used)
        return -1;
    put(vocab, text, len, id, at);
    return id;
}

void cake_vocab_put(cake_vocab *vocab, const char *text, size_t len, int32_t id)
{
    if (2 * (vocab->n_used + 1) >= vocab->n_slot)
        rehash(vocab);
    put(vocab, text, len, id, probe(vocab, text, len));
}

int32_t cake_vocab_find(const cake_vocab *vocab, const char *text, size_t len)
{
    return vocab->n_slot ? vocab->slot[probe(vocab, text, len)] : -1;
}

const char *cake_vocab_text(const cake_vocab *vocab, int32_t id, size_t *len)
{
    if (id < 0 || id >= vocab->count || !vocab->entry[id].used)
        return NULL;
    *len = vocab->entry[id].len;
    return vocab->text.data + vocab->entry[id].at;
}

void cake_vocab_free(cake_vocab *vocab)
{
    cake_buf_free(&vocab->text);
    free(vocab->entry);
    free(vocab->slot);
    *vocab = (cake_vocab){0};
}
