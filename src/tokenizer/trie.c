/* SPDX-License-Identifier: Apache-2.0
 *
 * In: strings and their values. Out: a table of edges, by node and byte.
 * Invariant: less than two thirds of the slots are taken, so a probe ends.
 */
#include "tokenizer/trie.h"

#include <stdlib.h>

#include "base/alloc.h"

static void grow(cake_trie *trie)
{
    cake_trie old = *trie;
    trie->n_slot = old.n_slot ? 2 * old.n_slot : 256;
    trie->edge = cake_alloc(trie->n_slot, sizeof *trie->edge);
    for (size_t i = 0; i < old.n_slot; i++)
        if (old.edge[i].key)
            trie->edge[cake_trie_slot(trie, old.edge[i].key)] = old.edge[i];
    free(old.edge);
}

void cake_trie_add(cake_trie *trie, const char *text, size_t len, int32_t value, bool keep)
{
    uint32_t node = 0;
    cake_trie_edge *edge = NULL;
    for (size_t i = 0; i < len; i++) {
        if (3 * ((size_t)trie->n + 1) >= 2 * trie->n_slot)
            grow(trie);
        uint64_t key = ((uint64_t)node << 8 | (unsigned char)text[i]) + 1;
        edge = &trie->edge[cake_trie_slot(trie, key)];
        if (!edge->key)
            *edge = (cake_trie_edge){.key = key, .child = ++trie->n, .value = -1};
        node = edge->child;
    }
    if (len)
        trie->first[(unsigned char)text[0]] = true;
    if (edge && (edge->value < 0 || !keep))
        edge->value = value;
}

void cake_trie_free(cake_trie *trie)
{
    free(trie->edge);
    *trie = (cake_trie){0};
}
