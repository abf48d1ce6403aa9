/* SPDX-License-Identifier: Apache-2.0
 *
 * In: prompts in the order of the input, event of replicas. Out: portions. dispatch/dispatcher.c calls.
 * Invariant: a replica that was given a prompt is marked in all nodes of its chain, so the marks of a replica
 * along a chain are its first nodes and no others.
 */
#include "dispatch/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "schedule/prefix_tree.h"
#include "types/row.h"

enum {
    MOST = 256,            /* items that may wait, however many replicas there are */
    MOST_EACH = 16,        /* items that may wait beyond MOST, for each replica */
    MOST_TOKENS = 1 << 20, /* tokens that the prompts of waiting items may have together */
    REMEMBERED = 8192,     /* pages of the prompts given out last that are remembered */
    FEW = 8,               /* a replica may always have so many requests that it has not begun */
    TURNS = 4              /* turns of a replica's lanes that prompts not begun may fill */
};

/* A prompt's nodes: of one that waits, or was given out. */
typedef struct prompt {
    void *item;
    int32_t *chain; /* [n_chain] owned */
    int n_chain, n_tok;
    int64_t since; /* items given out before it came */
} prompt;

typedef struct replica {
    cake_replica_capacity capacity;
    cake_replica_progress progress;
    int64_t given, given_tok, done;
    bool asked; /* for its choice, by the cake_dispatch_policy_pick under way */
} replica;

struct cake_dispatch_policy {
    int n_replica, n_word; /* words of a node's marks */
    replica *replicas;     /* [n_replica] */
    cake_prefix_tree *prefixes;
    uint64_t *marks; /* [n_node, n_word] replicas that were given a prompt with the node */
    int n_node;
    prompt *waiting; /* [n_waiting] in the order of the input */
    int n_waiting, cap;
    int64_t n_tok; /* of those that wait */
    prompt *given; /* ring [cap_given] of the latest n_given */
    int first_given, n_given, cap_given;
    int64_t n_out; /* items ever given out */
    bool ended;
};

cake_dispatch_policy *cake_dispatch_policy_open(int n_replica, const cake_replica_capacity *capacity)
{
    cake_dispatch_policy *h = cake_alloc(1, sizeof *h);
    h->n_replica = n_replica;
    h->n_word = (n_replica + 63) / 64;
    h->cap = MOST + MOST_EACH * n_replica;
    h->replicas = cake_alloc((size_t)n_replica, sizeof *h->replicas);
    h->waiting = cake_alloc((size_t)h->cap, sizeof *h->waiting);
    h->prefixes = cake_prefix_tree_open();
    for (int r = 0; r < n_replica; r++)
        h->replicas[r].capacity = capacity[r];
    return h;
}

static void forget(cake_dispatch_policy *h, prompt *p)
{
    cake_prefix_tree_release(h->prefixes, p->chain, p->n_chain);
    free(p->chain);
}

static void forget_first(cake_dispatch_policy *h)
{
    forget(h, &h->given[h->first_given]);
    h->first_given = (h->first_given + 1) % h->cap_given;
    h->n_given--;
}

void cake_dispatch_policy_close(cake_dispatch_policy *h)
{
    if (!h)
        return;
    for (int i = 0; i < h->n_waiting; i++)
        forget(h, &h->waiting[i]);
    while (h->n_given)
        forget_first(h);
    cake_prefix_tree_close(h->prefixes);
    free(h->replicas);
    free(h->waiting);
    free(h->given);
    free(h->marks);
    free(h);
}

bool cake_dispatch_policy_room(const cake_dispatch_policy *h)
{
    return h->n_waiting < h->cap && h->n_tok < MOST_TOKENS && !h->ended;
}

/* Marks of nodes that are new, or that nobody had any longer, are wiped. */
static void enter(cake_dispatch_policy *h, prompt *p, int64_t salt, const int32_t *ids)
{
    p->chain = cake_alloc((size_t)p->n_chain, sizeof *p->chain);
    cake_prefix_tree_insert(h->prefixes, salt, ids, p->n_chain, p->chain);
    for (int i = 0; i < p->n_chain; i++) {
        int node = p->chain[i];
        if (node >= h->n_node) {
            int n = node < 128 ? 256 : 2 * node;
            h->marks = cake_grow(h->marks, (size_t)n * (size_t)h->n_word, sizeof *h->marks);
            h->n_node = n;
        }
        if (cake_prefix_tree_users(h->prefixes, node) == 1)
            memset(h->marks + (size_t)node * (size_t)h->n_word, 0, (size_t)h->n_word * sizeof *h->marks);
    }
}

void cake_dispatch_policy_add(cake_dispatch_policy *h, void *item, int64_t salt, const int32_t *ids,
                              int n_prompt)
{
    CAKE_ASSERT(cake_dispatch_policy_room(h));
    prompt *p = &h->waiting[h->n_waiting++];
    *p = (prompt){.item = item, .n_chain = (n_prompt - 1) / CAKE_PAGE, .n_tok = n_prompt, .since = h->n_out};
    enter(h, p, salt, ids);
    h->n_tok += n_prompt;
}

void cake_dispatch_policy_end(cake_dispatch_policy *h)
{
    h->ended = true;
}

void cake_dispatch_policy_update(cake_dispatch_policy *h, int r, const cake_replica_progress *progress)
{
    h->replicas[r].progress = *progress;
}

void cake_dispatch_policy_done(cake_dispatch_policy *h, int r)
{
    h->replicas[r].done++;
    CAKE_ASSERT(h->replicas[r].done <= h->replicas[r].given);
}

void *cake_dispatch_policy_cancel(cake_dispatch_policy *h)
{
    if (!h->n_waiting)
        return NULL;
    prompt *last = &h->waiting[--h->n_waiting];
    h->n_tok -= last->n_tok;
    forget(h, last);
    return last->item;
}

int cake_dispatch_policy_waiting(const cake_dispatch_policy *h)
{
    return h->n_waiting;
}

int64_t cake_dispatch_policy_given(const cake_dispatch_policy *h, int r)
{
    return h->replicas[r].given;
}

static int64_t held(const replica *r)
{
    return r->given - r->done;
}

bool cake_dispatch_policy_over(const cake_dispatch_policy *h)
{
    bool over = h->ended && !h->n_waiting;
    for (int r = 0; r < h->n_replica; r++)
        over = over && !held(&h->replicas[r]);
    return over;
}

/* What a replica has done, as its speed is seen by it: all began at the same time. Some turns more, so that
 * the first one to finish a wave is not taken for the only one that can. */
static double speed(const replica *r)
{
    return (double)(r->progress.rows + TURNS * r->capacity.rows);
}

/* When one request more would be done: sequences are worked on side by side, so the first ones take as long
 * as all. */
static double until(const replica *r)
{
    int64_t n = held(r) + 1;
    return (double)(n > r->capacity.n_slot ? n : r->capacity.n_slot) / speed(r);
}

/* Whether one of the last requests is in good hands: it would be done when all are, or hardly anybody is
 * sooner. */
static bool in_time(const cake_dispatch_policy *h, const replica *r)
{
    double left = h->n_waiting, speeds = 0, least = until(r);
    for (int i = 0; i < h->n_replica; i++) {
        left += (double)held(&h->replicas[i]);
        speeds += speed(&h->replicas[i]);
        least = until(&h->replicas[i]) < least ? until(&h->replicas[i]) : least;
    }
    return until(r) <= left / speeds || until(r) <= 2 * least;
}

/* Whether a replica has nothing left to begin. */
static bool is_idle(const replica *r)
{
    return r->progress.begun >= r->given;
}

static bool wants(const cake_dispatch_policy *h, const replica *r)
{
    int64_t unbegun = r->given - r->progress.begun, unbegun_tok = r->given_tok - r->progress.begun_tok;
    int64_t ahead = r->capacity.n_slot / 2 > FEW ? r->capacity.n_slot / 2 : FEW;
    if (h->ended && !in_time(h, r))
        return false;
    return is_idle(r) || (unbegun < ahead && unbegun_tok < TURNS * r->capacity.rows &&
                          held(r) < r->capacity.n_slot + ahead);
}

static bool is_marked(const cake_dispatch_policy *h, int32_t node, int r)
{
    return h->marks[(size_t)node * (size_t)h->n_word + (size_t)(r / 64)] >> (r % 64) & 1;
}

static bool is_known(const cake_dispatch_policy *h, int32_t node)
{
    uint64_t any = 0;
    for (int i = 0; i < h->n_word; i++)
        any |= h->marks[(size_t)node * (size_t)h->n_word + (size_t)i];
    return any != 0;
}

/* Pages of a prompt that replica r has, and that any one has at most. */
static void look(const cake_dispatch_policy *h, const prompt *p, int r, int *own, int *most)
{
    *own = *most = 0;
    while (*most < p->n_chain && is_known(h, p->chain[*most]))
        ++*most;
    while (*own < *most && is_marked(h, p->chain[*own], r))
        ++*own;
}

/* The prompt that replica r should have next: of those that cost the fewest pages more than elsewhere the one
 * with most pages that are there already, and of these the first. One that many have overtaken goes before
 * all. -1: a replica that has something to begin is given none that would cost more. */
static int choose(const cake_dispatch_policy *h, int r)
{
    int best = -1, best_loss = 0, best_own = 0;
    if (h->n_waiting && h->n_out - h->waiting[0].since > 2 * h->cap)
        return 0;
    for (int i = 0; i < h->n_waiting; i++) {
        int own, most;
        look(h, &h->waiting[i], r, &own, &most);
        int loss = most - own;
        if (best < 0 || loss < best_loss || (loss == best_loss && own > best_own)) {
            best = i;
            best_loss = loss;
            best_own = own;
        }
    }
    return best >= 0 && best_loss && !is_idle(&h->replicas[r]) ? -1 : best;
}

/* A prompt that is given out is remembered as long as there is room. */
static void remember(cake_dispatch_policy *h, const prompt *p)
{
    while (h->n_given && cake_prefix_tree_count(h->prefixes) > REMEMBERED + h->n_tok / CAKE_PAGE)
        forget_first(h);
    if (h->n_given == h->cap_given) {
        int cap = h->cap_given ? 2 * h->cap_given : 256;
        prompt *given = cake_alloc((size_t)cap, sizeof *given);
        for (int i = 0; i < h->n_given; i++)
            given[i] = h->given[(h->first_given + i) % h->cap_given];
        free(h->given);
        h->given = given;
        h->first_given = 0;
        h->cap_given = cap;
    }
    h->given[(h->first_given + h->n_given++) % h->cap_given] = *p;
}

static void *give(cake_dispatch_policy *h, int at, int r)
{
    prompt p = h->waiting[at];
    memmove(&h->waiting[at], &h->waiting[at + 1], (size_t)(--h->n_waiting - at) * sizeof *h->waiting);
    h->n_tok -= p.n_tok;
    h->n_out++;
    h->replicas[r].given++;
    h->replicas[r].given_tok += p.n_tok;
    for (int i = 0; i < p.n_chain; i++)
        h->marks[(size_t)p.chain[i] * (size_t)h->n_word + (size_t)(r / 64)] |= (uint64_t)1 << (r % 64);
    if (p.n_chain)
        remember(h, &p);
    else
        free(p.chain);
    return p.item;
}

/* Who is through with what it has first, at its speed, of those that want more and have not been asked. */
static int neediest(const cake_dispatch_policy *h)
{
    int best = -1;
    double least = 0;
    for (int r = 0; r < h->n_replica; r++) {
        const replica *one = &h->replicas[r];
        if (one->asked || !wants(h, one))
            continue;
        double through = (double)held(one) / speed(one);
        if (best < 0 || through < least) {
            best = r;
            least = through;
        }
    }
    return best;
}

/* Requests that are given at once: the last ones singly, so that all get as many. */
static int portion(const cake_dispatch_policy *h)
{
    int n = h->n_waiting / (2 * h->n_replica);
    return !h->ended || n > CAKE_DISPATCH_MAX ? CAKE_DISPATCH_MAX : n > 1 ? n : 1;
}

int cake_dispatch_policy_pick(cake_dispatch_policy *h, void **item, int *n)
{
    int r;
    *n = 0;
    for (r = 0; r < h->n_replica; r++)
        h->replicas[r].asked = false;
    r = -1;
    while (!*n && h->n_waiting && (r = neediest(h)) >= 0) {
        int at, most = portion(h);
        h->replicas[r].asked = true;
        while (*n < most && wants(h, &h->replicas[r]) && (at = choose(h, r)) >= 0)
            item[(*n)++] = give(h, at, r);
    }
    return *n ? r : -1;
}
