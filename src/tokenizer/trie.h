/* SPDX-License-Identifier: Apache-2.0
 *
 * A trie of byte strings with numbers: one pass over a text finds all strings that it begins with. A zeroed
 * trie is empty. Built once, then only read.
 */
#ifndef CAKE_TOKENIZER_TRIE_H
#define CAKE_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cake_trie_edge {
    uint64_t key;   /* (node << 8 | byte) + 1; 0: a free slot */
    uint32_t child; /* the child's node */
    int32_t value;  /* number of the string that ends there; -1: none */
} cake_trie_edge;

typedef struct cake_trie {
    cake_trie_edge *edge; /* [n_slot], open addressing; n_slot is a power of two, or 0 */
    size_t n_slot;
    bool first[256]; /* first bytes of the strings */
    uint32_t n;      /* edges; node 0 is the root, node i the end of the i-th edge */
} cake_trie;

/* If the string exists, the new value replaces the old one unless `keep`. value >= 0; "" is ignored. */
void cake_trie_add(cake_trie *trie, const char *text, size_t len, int32_t value, bool keep);
void cake_trie_free(cake_trie *trie);

static inline size_t cake_trie_slot(const cake_trie *trie, uint64_t key)
{
    size_t mask = trie->n_slot - 1, at = (key * 0x9E3779B97F4A7C15u >> 24) & mask;
    while (trie->edge[at].key != key && trie->edge[at].key)
        at = (at + 1) & mask;
    return at;
}

/* Moves from *node along byte; false: no string continues. *value: that of the string that ends here,
 * or -1. */
static inline bool cake_trie_step(const cake_trie *trie, uint32_t *node, unsigned char byte, int32_t *value)
{
    const cake_trie_edge *edge = &trie->edge[cake_trie_slot(trie, ((uint64_t)*node << 8 | byte) + 1)];
    if (!edge->key)
        return false;
    *node = edge->child;
    *value = edge->value;
    return true;
}

#endif
