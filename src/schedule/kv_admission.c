/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what sequences hold and how long they may become. Out: whether one more would make them run out of
 * pages before the first of them are through. The schedule asks before a sequence gets its pages.
 *
 * Sequences grow by a token a wave, and give their pages back at the end: pages are fewest when one of them
 * is about to finish. How long an answer becomes is known where nothing can end it early; of others the mean
 * of those before is taken, so what is foreseen is fair and not certain, and evictions remain for what was
 * not.
 */
#include "schedule/internal.h"

enum {
    POINTS = 64, /* times at which pages are counted: a sample of those at which sequences end */
    SLACK = 4    /* waves by which one lane may be behind another */
};

/* Tokens that a sequence will have at its end. */
static int expected(const cake_schedule *s, const cake_seq *q)
{
    int made = q->n_token - q->n_prompt, more = (int)s->typical - made;
    if (q->flags & CAKE_SEQ_SURE)
        return q->most;
    if (more < made / 2)
        more = made / 2;
    return q->most - q->n_token > more ? q->n_token + more : q->most;
}

/* Pages of its beginning that others hold as well, or will: they are not free when it ends. */
static int in_common(const cake_schedule *s, const cake_seq *q)
{
    int lo = 0, hi = q->n_chain;
    if (q->flags & CAKE_SEQ_AGAIN)
        return q->n_prompt / CAKE_PAGE;
    while (lo < hi) { /* users never become more along a chain */
        int middle = (lo + hi) / 2;
        if (cake_prefix_tree_users(s->prefixes, q->chain[middle]) > 1)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* It has pages, or is the one that would get some. */
static bool counts(const cake_schedule *s, const cake_seq *at, const cake_seq *q)
{
    return at == q || (at->used && at->active && at != s->stem);
}

/* Waves of each lane before all generate: lanes help each other. */
static int count_behind(const cake_schedule *s, const cake_seq *q)
{
    int64_t rows = 0;
    for (int i = 0; i < s->n_slot; i++)
        if (counts(s, &s->seqs[i], q))
            rows += s->seqs[i].n_token - s->seqs[i].n_computed;
    return (int)(rows / s->shape.chunk / s->shape.n_lane);
}

/* What each of them will have of a group: n of s->futures. *common: pages that are taken whoever ends. */
static int look(cake_schedule *s, const cake_seq *q, int group, int *common)
{
    const cake_page_pool *p = &s->pages[group];
    int n = 0, held = p->n_page - p->n_free - p->n_idle;
    for (int i = 0; i < s->n_slot; i++) {
        const cake_seq *at = &s->seqs[i];
        if (!counts(s, at, q))
            continue;
        const cake_page_list *has = &at->held[group];
        int shared = p->window ? 0 : in_common(s, at), own = has->hi - has->lo - shared;
        held -= own > 0 ? own : 0;
        s->futures[n++] = (cake_kv_forecast){.n_token = at->n_token,
                                             .end = expected(s, at),
                                             .last = expected(s, at) - at->n_token + s->behind + SLACK,
                                             .has = at->active ? has->hi - has->lo + has->reserved
                                                               : cake_schedule_need(s, at, group),
                                             .shared = shared};
    }
    *common = !p->window && held > 0 ? held : 0;
    return n;
}

/* Pages of its own after so many waves more; none when it has ended. */
static int own_after(const cake_kv_forecast *f, int window, int waves)
{
    int pages = cake_pages_held(window, f->n_token + waves < f->end ? f->n_token + waves : f->end, 1);
    pages = (pages > f->has ? pages : f->has) - f->shared;
    return waves <= f->last && pages > 0 ? pages : 0;
}

static bool group_fits(cake_schedule *s, const cake_seq *q, int group)
{
    int common, n = look(s, q, group, &common), window = s->shape.window[group];
    int64_t all = common; /* as if none were given back before all end */
    for (int i = 0; i < n; i++)
        all += own_after(&s->futures[i], window, s->futures[i].last);
    if (all <= s->shape.n_page[group])
        return true;
    for (int i = 0; i < n; i += n / POINTS + 1) {
        int64_t taken = common;
        for (int j = 0; j < n; j++)
            taken += own_after(&s->futures[j], window, s->futures[i].last);
        if (taken > s->shape.n_page[group])
            return false;
    }
    return true;
}

/* With fewer than two pages for each sequence that may be there, waves are narrow: one more row costs next to
 * nothing, and a replay little, so whoever can begin does. */
bool cake_kv_admission_fits(cake_schedule *s, const cake_seq *q)
{
    bool fits = true;
    s->behind = count_behind(s, q);
    for (int group = 0; group < s->shape.n_group && fits; group++)
        fits = s->shape.n_page[group] < 2 * s->n_slot || group_fits(s, q, group);
    return fits;
}

void cake_kv_admission_learn(cake_schedule *s, const cake_seq *q)
{
    int made = q->n_token - q->n_prompt;
    if (made > 0 && !(q->flags & CAKE_SEQ_SURE))
        s->typical += (made - s->typical) / 16;
}
