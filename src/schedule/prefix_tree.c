/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the tokens of prompts. Out: numbers of nodes. The request queue inserts and releases, the schedule
 * keeps and drops.
 * Invariant: a node is in its bucket as long as it has references; its parent lives at least as long.
 */
#include "schedule/prefix_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "types/row.h"

typedef struct node {
    int64_t salt;
    uint64_t hash;
    int32_t parent; /* -1: none */
    int32_t next;   /* in its bucket or in the free list; -1: the last */
    int32_t users;  /* prompts */
    int32_t n_ref;  /* of prompts, children and caches */
    int32_t token[CAKE_PAGE];
} node;

struct cake_prefix_tree {
    node *nodes;      /* [cap] */
    int32_t *buckets; /* [n_bucket] the first node, or -1; n_bucket is a power of two, at least cap */
    int32_t cap, n, free, n_bucket;
    bool blind;    /* prompts that come soon may not have been inserted */
    uint64_t seed; /* of the hash, so that nobody can construct prompts that share a bucket */
};

cake_prefix_tree *cake_prefix_tree_open(void)
{
    cake_prefix_tree *p = cake_alloc(1, sizeof *p);
    double now = cake_clock_now();
    memcpy(&p->seed, &now, sizeof now);
    p->seed ^= (uint64_t)(uintptr_t)p << 20;
    p->free = -1;
    p->blind = true;
    return p;
}

void cake_prefix_tree_close(cake_prefix_tree *p)
{
    if (!p)
        return;
    free(p->nodes);
    free(p->buckets);
    free(p);
}

/* Doubles the number of nodes and rehashes. */
static void grow(cake_prefix_tree *p)
{
    int32_t old = p->cap;
    CAKE_ASSERT(old < INT32_MAX / 2);
    p->cap = p->n_bucket = old ? 2 * old : 256;
    p->nodes = cake_grow(p->nodes, (size_t)p->cap, sizeof *p->nodes);
    p->buckets = cake_grow(p->buckets, (size_t)p->n_bucket, sizeof *p->buckets);
    for (int32_t i = 0; i < p->n_bucket; i++)
        p->buckets[i] = -1;
    for (int32_t i = 0; i < old; i++) { /* all of them are in use, or there was no need to grow */
        int32_t *bucket = &p->buckets[p->nodes[i].hash & (uint64_t)(p->n_bucket - 1)];
        p->nodes[i].next = *bucket;
        *bucket = i;
    }
    for (int32_t i = p->cap; i-- > old;) {
        p->nodes[i].next = p->free;
        p->free = i;
    }
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

static uint64_t hash_of(const cake_prefix_tree *p, int64_t salt, int32_t parent, const int32_t *token)
{
    uint64_t h = mix(p->seed ^ (uint64_t)salt);
    h = mix(h ^ (parent < 0 ? 0 : p->nodes[parent].hash));
    for (int i = 0; i < CAKE_PAGE; i += 2)
        h = mix(h ^ ((uint64_t)(uint32_t)token[i] << 32 | (uint32_t)token[i + 1]));
    return h;
}

static void unref(cake_prefix_tree *p, int32_t i)
{
    while (i >= 0 && --p->nodes[i].n_ref == 0) {
        node *gone = &p->nodes[i];
        int32_t *at = &p->buckets[gone->hash & (uint64_t)(p->n_bucket - 1)];
        while (*at != i)
            at = &p->nodes[*at].next;
        *at = gone->next;
        gone->next = p->free;
        p->free = i;
        p->n--;
        i = gone->parent;
    }
}

/* The node of these tokens after a parent. */
static int32_t find_or_add(cake_prefix_tree *p, int64_t salt, int32_t parent, const int32_t *token)
{
    uint64_t hash = hash_of(p, salt, parent, token);
    int32_t i = p->n_bucket ? p->buckets[hash & (uint64_t)(p->n_bucket - 1)] : -1;
    for (; i >= 0; i = p->nodes[i].next) {
        const node *at = &p->nodes[i];
        if (at->hash == hash && at->parent == parent && at->salt == salt &&
            !memcmp(at->token, token, sizeof at->token))
            return i;
    }
    if (p->free < 0)
        grow(p);
    i = p->free;
    node *fresh = &p->nodes[i];
    int32_t *bucket = &p->buckets[hash & (uint64_t)(p->n_bucket - 1)];
    p->free = fresh->next;
    *fresh = (node){.salt = salt, .hash = hash, .parent = parent, .next = *bucket};
    memcpy(fresh->token, token, sizeof fresh->token);
    *bucket = i;
    p->n++;
    if (parent >= 0)
        p->nodes[parent].n_ref++;
    return i;
}

void cake_prefix_tree_insert(cake_prefix_tree *p, int64_t salt, const int32_t *ids, int n, int32_t *chain)
{
    for (int i = 0; i < n; i++) {
        chain[i] = find_or_add(p, salt, i ? chain[i - 1] : -1, ids + (int64_t)i * CAKE_PAGE);
        p->nodes[chain[i]].users++;
        p->nodes[chain[i]].n_ref++;
    }
}

void cake_prefix_tree_release(cake_prefix_tree *p, const int32_t *chain, int n)
{
    for (int i = n; i-- > 0;) {
        p->nodes[chain[i]].users--;
        unref(p, chain[i]);
    }
}

void cake_prefix_tree_set_lookahead(cake_prefix_tree *p, bool far)
{
    p->blind = !far;
}

bool cake_prefix_tree_is_needed(const cake_prefix_tree *p, int32_t i)
{
    return p->blind || p->nodes[i].users > 0;
}

int cake_prefix_tree_users(const cake_prefix_tree *p, int32_t i)
{
    return p->nodes[i].users;
}

void cake_prefix_tree_keep(cake_prefix_tree *p, int32_t i)
{
    p->nodes[i].n_ref++;
}

void cake_prefix_tree_drop(cake_prefix_tree *p, int32_t i)
{
    unref(p, i);
}

int cake_prefix_tree_count(const cake_prefix_tree *p)
{
    return p->n;
}
