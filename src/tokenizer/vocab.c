/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts with their ids, in any order. Out: look-ups both ways in constant time.
 * Invariant: less than half of the slots are in use, so a probe ends.
 */
#include "tokenizer/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* The upper half of a slot, which also gives the start of its search. */
static uint64_t tag_of(uint64_t h)
{
    return h & 0xFFFFFFFF00000000u;
}

/* The slot of text, or the free slot where it belongs. */
static size_t probe(const cake_vocab *vocab, const char *text, size_t len, uint64_t h)
{
    size_t mask = vocab->n_slot - 1;
    size_t at = (h >> 32) & mask;
    for (; vocab->slot[at] != CAKE_VOCAB_FREE; at = (at + 1) & mask) {
        if (tag_of(vocab->slot[at]) != tag_of(h))
            continue;
        const cake_vocab_entry *e = &vocab->entry[(uint32_t)vocab->slot[at]];
        if (e->len == len && !memcmp(vocab->text.data + e->at, text, len))
            break;
    }
    return at;
}

static void rehash(cake_vocab *vocab, size_t n_slot)
{
    uint64_t *old = vocab->slot;
    size_t n_old = vocab->n_slot, mask = n_slot - 1;
    vocab->n_slot = n_slot;
    vocab->slot = cake_alloc(n_slot, sizeof *vocab->slot);
    memset(vocab->slot, -1, n_slot * sizeof *vocab->slot);
    for (size_t i = 0; i < n_old; i++) {
        size_t at = (old[i] >> 32) & mask;
        while (old[i] != CAKE_VOCAB_FREE && vocab->slot[at] != CAKE_VOCAB_FREE)
            at = (at + 1) & mask;
        if (old[i] != CAKE_VOCAB_FREE)
            vocab->slot[at] = old[i];
    }
    free(old);
}

void cake_vocab_expect(cake_vocab *vocab, size_t n)
{
    size_t n_slot = 1024;
    while (n_slot < 2 * (n + 1))
        n_slot *= 2;
    if (n_slot > vocab->n_slot)
        rehash(vocab, n_slot);
}

static void grow_entries(cake_vocab *vocab, int32_t id)
{
    size_t room = vocab->cap ? vocab->cap : 1024;
    while (room <= (size_t)id)
        room *= 2;
    if (room > vocab->cap) {
        vocab->entry = cake_grow(vocab->entry, room, sizeof *vocab->entry);
        memset(vocab->entry + vocab->cap, 0, (room - vocab->cap) * sizeof *vocab->entry);
        vocab->cap = room;
    }
    if (id >= vocab->count)
        vocab->count = id + 1;
}

/* Makes room for another token; returns its slot. */
static size_t place(cake_vocab *vocab, const char *text, size_t len, uint64_t h)
{
    if (2 * (vocab->n_used + 1) >= vocab->n_slot)
        rehash(vocab, vocab->n_slot ? 2 * vocab->n_slot : 1024);
    return probe(vocab, text, len, h);
}

/* Stores the text for the id, and the id in the slot. */
static void put(cake_vocab *vocab, const char *text, size_t len, int32_t id, uint64_t h, size_t slot)
{
    grow_entries(vocab, id);
    vocab->entry[id] = (cake_vocab_entry){.at = vocab->text.len, .len = len, .used = 1};
    cake_buf_add(&vocab->text, text, len);
    vocab->n_used += vocab->slot[slot] == CAKE_VOCAB_FREE;
    vocab->slot[slot] = tag_of(h) | (uint32_t)id;
}

int32_t cake_vocab_add(cake_vocab *vocab, const char *text, size_t len, int32_t id)
{
    uint64_t h = cake_vocab_hash(text, len);
    size_t at = place(vocab, text, len, h);
    if (vocab->slot[at] != CAKE_VOCAB_FREE)
        return (int32_t)(uint32_t)vocab->slot[at];
    if (id < vocab->count && vocab->entry[id].used)
        return -1;
    put(vocab, text, len, id, h, at);
    return id;
}

void cake_vocab_put(cake_vocab *vocab, const char *text, size_t len, int32_t id)
{
    uint64_t h = cake_vocab_hash(text, len);
    put(vocab, text, len, id, h, place(vocab, text, len, h));
}

int32_t cake_vocab_find(const cake_vocab *vocab, const char *text, size_t len)
{
    if (!vocab->n_slot)
        return -1;
    uint64_t slot = vocab->slot[probe(vocab, text, len, cake_vocab_hash(text, len))];
    return slot == CAKE_VOCAB_FREE ? -1 : (int32_t)(uint32_t)slot;
}

void cake_vocab_byte_tokens(const cake_vocab *vocab, int32_t byte[256])
{
    for (int i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        byte[i] = cake_vocab_find(vocab, name, 6);
    }
}

cake_err cake_vocab_unknown(const char *text, size_t len, cake_fault *fault)
{
    uint32_t code = 0;
    cake_utf8_next(text, len, &code);
    return cake_fault_set(fault, NULL,
                          "the tokenizer has no token for U+%04X, and none for unknown characters", code);
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
