/* SPDX-License-Identifier: Apache-2.0
 *
 * In: prompts in the order of the input, progress of replicas. Out: batches of requests for replicas.
 * Invariant: a replica that gets a prompt is marked in all nodes of its chain, so a replica's marks along a
 * chain are a prefix of it.
 */
#include "dispatch/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "schedule/prefix_tree.h"
#include "types/row.h"

enum {
    MAX_WAITING = 256,        /* waiting items, in addition to those per replica */
    MAX_PER_REPLICA = 16,     /* waiting items per replica */
    MAX_TOKENS = 1 << 20,     /* tokens of the prompts of all waiting items */
    MAX_HISTORY_PAGES = 8192, /* pages of prompts assigned last that are remembered */
    MIN_UNBEGUN = 8,          /* requests not begun that a replica may always have */
    WAVES_AHEAD = 4           /* waves of each lane that its prompts not begun may fill */
};

/* A prompt that waits or was assigned. */
typedef struct prompt {
    void *item;
    int32_t *chain; /* [n_chain] owned */
    int n_chain, n_token;
    int64_t since; /* items assigned before it was added */
} prompt;

typedef struct replica {
    cake_replica_capacity capacity;
    cake_replica_progress progress;
    int64_t assigned, assigned_tokens, done;
    bool asked; /* already considered by the current cake_dispatch_policy_pick */
} replica;

struct cake_dispatch_policy {
    int n_replica, n_word; /* words of a node's marks */
    replica *replicas;     /* [n_replica] */
    cake_prefix_tree *prefixes;
    uint64_t *marks; /* [n_node, n_word] bit set of the replicas that got a prompt with the node */
    int n_node;
    prompt *waiting; /* [n_waiting] in the order of the input */
    int n_waiting, cap;
    int64_t n_token; /* of waiting prompts */
    prompt *history; /* ring [cap_history] of the last n_history assigned prompts */
    int first_history, n_history, cap_history;
    int64_t n_assigned; /* items so far */
    bool ended;
};

cake_dispatch_policy *cake_dispatch_policy_open(int n_replica, const cake_replica_capacity *capacity)
{
    cake_dispatch_policy *h = cake_alloc(1, sizeof *h);
    h->n_replica = n_replica;
    h->n_word = (n_replica + 63) / 64;
    h->cap = MAX_WAITING + MAX_PER_REPLICA * n_replica;
    h->replicas = cake_alloc((size_t)n_replica, sizeof *h->replicas);
    h->waiting = cake_alloc((size_t)h->cap, sizeof *h->waiting);
    h->prefixes = cake_prefix_tree_open();
    for (int r = 0; r < n_replica; r++)
        h->replicas[r].capacity = capacity[r];
    return h;
}

static void free_prompt(cake_dispatch_policy *h, prompt *p)
{
    cake_prefix_tree_release(h->prefixes, p->chain, p->n_chain);
    free(p->chain);
}

static void drop_oldest(cake_dispatch_policy *h)
{
    free_prompt(h, &h->history[h->first_history]);
    h->first_history = (h->first_history + 1) % h->cap_history;
    h->n_history--;
}

void cake_dispatch_policy_close(cake_dispatch_policy *h)
{
    if (!h)
        return;
    for (int i = 0; i < h->n_waiting; i++)
        free_prompt(h, &h->waiting[i]);
    while (h->n_history)
        drop_oldest(h);
    cake_prefix_tree_close(h->prefixes);
    free(h->replicas);
    free(h->waiting);
    free(h->history);
    free(h->marks);
    free(h);
}

bool cake_dispatch_policy_can_add(const cake_dispatch_policy *h)
{
    return h->n_waiting < h->cap && h->n_token < MAX_TOKENS && !h->ended;
}

/* Clears the marks of nodes that are new or were unused. */
static void insert_chain(cake_dispatch_policy *h, prompt *p, int64_t salt, const int32_t *ids)
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
    CAKE_ASSERT(cake_dispatch_policy_can_add(h));
    prompt *p = &h->waiting[h->n_waiting++];
    *p = (prompt){
        .item = item, .n_chain = (n_prompt - 1) / CAKE_PAGE, .n_token = n_prompt, .since = h->n_assigned};
    insert_chain(h, p, salt, ids);
    h->n_token += n_prompt;
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
    CAKE_ASSERT(h->replicas[r].done <= h->replicas[r].assigned);
}

void *cake_dispatch_policy_cancel(cake_dispatch_policy *h)
{
    if (!h->n_waiting)
        return NULL;
    prompt *last = &h->waiting[--h->n_waiting];
    h->n_token -= last->n_token;
    free_prompt(h, last);
    return last->item;
}

int cake_dispatch_policy_waiting(const cake_dispatch_policy *h)
{
    return h->n_waiting;
}

int64_t cake_dispatch_policy_assigned(const cake_dispatch_policy *h, int r)
{
    return h->replicas[r].assigned;
}

static int64_t n_open(const replica *r)
{
    return r->assigned - r->done;
}

bool cake_dispatch_policy_over(const cake_dispatch_policy *h)
{
    bool over = h->ended && !h->n_waiting;
    for (int r = 0; r < h->n_replica; r++)
        over = over && !n_open(&h->replicas[r]);
    return over;
}

/* Rows so far: all replicas began at the same time, so this is proportional to speed. A few waves are added,
 * or the first replica to finish a wave would seem infinitely faster than the others. */
static double speed(const replica *r)
{
    return (double)(r->progress.rows + WAVES_AHEAD * r->capacity.rows);
}

/* When one more request would be done. Sequences run in parallel, so fewer than n_slot take as long as
 * n_slot. */
static double finish_time(const replica *r)
{
    int64_t n = n_open(r) + 1;
    return (double)(n > r->capacity.n_slot ? n : r->capacity.n_slot) / speed(r);
}

/* True if the replica may take one of the last requests: it would finish with the others, or hardly any
 * replica is faster. */
static bool is_useful_late(const cake_dispatch_policy *h, const replica *r)
{
    double left = h->n_waiting, speeds = 0, min = finish_time(r);
    for (int i = 0; i < h->n_replica; i++) {
        left += (double)n_open(&h->replicas[i]);
        speeds += speed(&h->replicas[i]);
        min = finish_time(&h->replicas[i]) < min ? finish_time(&h->replicas[i]) : min;
    }
    return finish_time(r) <= left / speeds || finish_time(r) <= 2 * min;
}

/* True if a replica has nothing left to begin. */
static bool is_idle(const replica *r)
{
    return r->progress.begun >= r->assigned;
}

static bool wants_more(const cake_dispatch_policy *h, const replica *r)
{
    int64_t unbegun = r->assigned - r->progress.begun,
            unbegun_tokens = r->assigned_tokens - r->progress.begun_tokens;
    int64_t ahead = r->capacity.n_slot / 2 > MIN_UNBEGUN ? r->capacity.n_slot / 2 : MIN_UNBEGUN;
    if (h->ended && !is_useful_late(h, r))
        return false;
    return is_idle(r) || (unbegun < ahead && unbegun_tokens < WAVES_AHEAD * r->capacity.rows &&
                          n_open(r) < r->capacity.n_slot + ahead);
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

/* Pages of a prompt that replica r has cached, and the maximum over all replicas. */
static void count_cached(const cake_dispatch_policy *h, const prompt *p, int r, int *own, int *max)
{
    *own = *max = 0;
    while (*max < p->n_chain && is_known(h, p->chain[*max]))
        ++*max;
    while (*own < *max && is_marked(h, p->chain[*own], r))
        ++*own;
}

/* The next prompt for replica r: the one that loses fewest cached pages compared with another replica; of
 * these the one with most cached pages; of these the first. No request starves: one that was overtaken often
 * goes first. -1: none, if r has something to begin and every prompt would lose pages. */
static int choose_prompt(const cake_dispatch_policy *h, int r)
{
    int best = -1, best_loss = 0, best_own = 0;
    if (h->n_waiting && h->n_assigned - h->waiting[0].since > 2 * h->cap)
        return 0;
    for (int i = 0; i < h->n_waiting; i++) {
        int own, max;
        count_cached(h, &h->waiting[i], r, &own, &max);
        int loss = max - own;
        if (best < 0 || loss < best_loss || (loss == best_loss && own > best_own)) {
            best = i;
            best_loss = loss;
            best_own = own;
        }
    }
    return best >= 0 && best_loss && !is_idle(&h->replicas[r]) ? -1 : best;
}

/* Remembers an assigned prompt while the history has room for it. */
static void add_to_history(cake_dispatch_policy *h, const prompt *p)
{
    while (h->n_history && cake_prefix_tree_count(h->prefixes) > MAX_HISTORY_PAGES + h->n_token / CAKE_PAGE)
        drop_oldest(h);
    if (h->n_history == h->cap_history) {
        int cap = h->cap_history ? 2 * h->cap_history : 256;
        prompt *history = cake_alloc((size_t)cap, sizeof *history);
        for (int i = 0; i < h->n_history; i++)
            history[i] = h->history[(h->first_history + i) % h->cap_history];
        free(h->history);
        h->history = history;
        h->first_history = 0;
        h->cap_history = cap;
    }
    h->history[(h->first_history + h->n_history++) % h->cap_history] = *p;
}

static void *assign(cake_dispatch_policy *h, int at, int r)
{
    prompt p = h->waiting[at];
    memmove(&h->waiting[at], &h->waiting[at + 1], (size_t)(--h->n_waiting - at) * sizeof *h->waiting);
    h->n_token -= p.n_token;
    h->n_assigned++;
    h->replicas[r].assigned++;
    h->replicas[r].assigned_tokens += p.n_token;
    for (int i = 0; i < p.n_chain; i++)
        h->marks[(size_t)p.chain[i] * (size_t)h->n_word + (size_t)(r / 64)] |= (uint64_t)1 << (r % 64);
    if (p.n_chain)
        add_to_history(h, &p);
    else
        free(p.chain);
    return p.item;
}

/* Of the replicas that want more and have not been asked: the one that will finish its requests first. */
static int neediest(const cake_dispatch_policy *h)
{
    int best = -1;
    double min = 0;
    for (int r = 0; r < h->n_replica; r++) {
        const replica *one = &h->replicas[r];
        if (one->asked || !wants_more(h, one))
            continue;
        double finish = (double)n_open(one) / speed(one);
        if (best < 0 || finish < min) {
            best = r;
            min = finish;
        }
    }
    return best;
}

/* Requests to assign at once: few at the end, so that all replicas get equal shares. */
static int batch_limit(const cake_dispatch_policy *h)
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
        int at, max = batch_limit(h);
        h->replicas[r].asked = true;
        while (*n < max && wants_more(h, &h->replicas[r]) && (at = choose_prompt(h, r)) >= 0)
            item[(*n)++] = assign(h, at, r);
    }
    return *n ? r : -1;
}
