/* SPDX-License-Identifier: Apache-2.0
 *
 * In: pages and expected lengths of sequences. Out: whether one more can start without a shortage of pages.
 *
 * Sequences grow by a token a wave and free their pages at the end, so fewest pages are available just before
 * one of them ends. The length of an answer is known if nothing can end it early; otherwise the mean of
 * earlier ones is assumed. The forecast may fail: then sequences are evicted.
 */
#include "schedule/internal.h"

enum {
    POINTS = 64, /* times at which pages are counted: a sample of the ends of sequences */
    SLACK = 4    /* waves by which lanes may differ */
};

/* Tokens that a sequence will have at its end. */
static int expected_end(const cake_schedule *s, const cake_slot_state *q)
{
    int made = q->n_token - q->n_prompt, more = (int)s->mean_answer - made;
    if (q->flags & CAKE_SLOT_FIXED_LENGTH)
        return q->max_len;
    if (more < made / 2)
        more = made / 2;
    return q->max_len - q->n_token > more ? q->n_token + more : q->max_len;
}

/* Pages of its prompt that others use, too: they do not become free when it ends. */
static int shared_pages(const cake_schedule *s, const cake_slot_state *q)
{
    int lo = 0, hi = q->n_chain;
    if (q->flags & CAKE_SLOT_READMITTED)
        return q->n_prompt / CAKE_PAGE;
    while (lo < hi) { /* users never increase along a chain */
        int middle = (lo + hi) / 2;
        if (cake_prefix_tree_users(s->prefixes, q->chain[middle]) > 1)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* at is running, or is the candidate q. */
static bool is_counted(const cake_schedule *s, const cake_slot_state *at, const cake_slot_state *q)
{
    return at == q || (at->used && at->running && at != s->stem);
}

/* Waves of each lane before all sequences generate. Lanes share the work of prompts. */
static int count_prefill_waves(const cake_schedule *s, const cake_slot_state *q)
{
    int64_t rows = 0;
    for (int i = 0; i < s->n_slot; i++)
        if (is_counted(s, &s->seqs[i], q))
            rows += s->seqs[i].n_token - s->seqs[i].n_sent;
    return (int)(rows / s->shape.chunk / s->shape.n_lane);
}

/* Fills s->forecasts for one group; returns their number. *common: pages that stay taken whoever ends. */
static int forecast(cake_schedule *s, const cake_slot_state *q, int group, int *common)
{
    const cake_page_pool *p = &s->pages[group];
    int n = 0, held = p->n_page - p->n_free - p->n_idle;
    for (int i = 0; i < s->n_slot; i++) {
        const cake_slot_state *at = &s->seqs[i];
        if (!is_counted(s, at, q))
            continue;
        const cake_page_list *has = &at->page_list[group];
        int shared = p->window ? 0 : shared_pages(s, at), own = has->hi - has->lo - shared;
        held -= own > 0 ? own : 0;
        s->forecasts[n++] = (cake_kv_forecast){
            .n_token = at->n_token,
            .end = expected_end(s, at),
            .last = expected_end(s, at) - at->n_token + s->prefill_waves + SLACK,
            .has = at->running ? has->hi - has->lo + has->reserved : cake_schedule_need(s, at, group),
            .shared = shared};
    }
    *common = !p->window && held > 0 ? held : 0;
    return n;
}

/* Unshared pages after `waves` further waves; 0 after its end. */
static int own_after(const cake_kv_forecast *f, int window, int waves)
{
    int pages = cake_pages_held(window, f->n_token + waves < f->end ? f->n_token + waves : f->end, 1);
    pages = (pages > f->has ? pages : f->has) - f->shared;
    return waves <= f->last && pages > 0 ? pages : 0;
}

static bool group_fits(cake_schedule *s, const cake_slot_state *q, int group)
{
    int common, n = forecast(s, q, group, &common), window = s->shape.window[group];
    int64_t all = common; /* if none were freed before all end */
    for (int i = 0; i < n; i++)
        all += own_after(&s->forecasts[i], window, s->forecasts[i].last);
    if (all <= s->shape.n_page[group])
        return true;
    for (int i = 0; i < n; i += n / POINTS + 1) {
        int64_t taken = common;
        for (int j = 0; j < n; j++)
            taken += own_after(&s->forecasts[j], window, s->forecasts[i].last);
        if (taken > s->shape.n_page[group])
            return false;
    }
    return true;
}

/* With fewer than two pages for each slot waves are narrow: one more row costs next to nothing and a replay
 * little, so every sequence that can begin does. */
bool cake_kv_admission_fits(cake_schedule *s, const cake_slot_state *q)
{
    bool fits = true;
    s->prefill_waves = count_prefill_waves(s, q);
    for (int group = 0; group < s->shape.n_kv_group && fits; group++)
        fits = s->shape.n_page[group] < 2 * s->n_slot || group_fits(s, q, group);
    return fits;
}

void cake_kv_admission_learn(cake_schedule *s, const cake_slot_state *q)
{
    int made = q->n_token - q->n_prompt;
    if (made > 0 && !(q->flags & CAKE_SLOT_FIXED_LENGTH))
        s->mean_answer += (made - s->mean_answer) / 16;
}
