/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, rates, lengths. Out: seconds. `plan` calls.
 * Invariant: what a wave costs is what slice/cost.h counts of it, and nothing else of the requests is used.
 */
#include "planner/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/peak.h"
#include "slice/cost.h"

/* What kernels reach of the peaks, about, whatever the instruction set (docs/notes/performance-log.md,
 * `bench linear attend`). */
#define PRODUCTS 0.84  /* of arithmetic, many rows */
#define WEIGHTS  0.85  /* of reading, one row */
#define PROMPTS  0.62  /* of arithmetic: attention of prompts */
#define CACHES   0.70  /* of reading: attention of generated rows */
#define CHOICES  0.33  /* of arithmetic: the same where rows share what is read */
#define LAYER    40e-6 /* seconds beside, for a layer and wave: barriers and what is not worth sharing */

typedef struct hop_cost {
    cake_cost cost;
    double attention, choices; /* operations a second in attention: in a prompt's rows, in generated ones */
    double flops, bytes; /* operations a second in products, and bytes read a second, of the hop's rank */
    int rank, count;
} hop_cost;

/* What a wave's rows ask for. */
typedef struct wave_rows {
    int n_tok, n_run;
    double prompt_seen[CAKE_MAX_KV_GROUPS], generated_seen[CAKE_MAX_KV_GROUPS];
    double
        read[CAKE_MAX_KV_GROUPS]; /* of generated_seen: the same, but what several rows share counted once */
} wave_rows;

typedef struct costs {
    const cake_planning *p;
    const cake_plan *plan;           /* of one replica */
    hop_cost *hop;                   /* [n_hop] */
    double head_flops;               /* operations a second of its rank 0 on the head */
    double head_bytes;               /* of the head */
    const cake_sim_request *request; /* [n] the requests that the schedule is played through with */
    wave_rows rows;                  /* of the wave that left */
} costs;

/* How much faster arithmetic of a kind is than that of float32, as vectors have it. */
static double times_f32(cake_peak_kind kind)
{
    return kind == CAKE_PEAK_INT8 ? 4 : kind == CAKE_PEAK_BF16 ? 2 : 1;
}

static void open_costs(const cake_planning *p, const cake_plan *plan, costs *c)
{
    cake_dtype dtype = cake_model_dtype(p->input->model);
    double products = times_f32(cake_peak_of_products(p->input->kernels, dtype));
    double pairs = times_f32(cake_peak_of_products(p->input->kernels, p->input->kv_dtype));
    double head = times_f32(cake_peak_of_products(p->input->kernels, dtype == CAKE_I8 ? CAKE_BF16 : dtype));
    cake_weight_set share = {.head = true};
    *c = (costs){.p = p, .plan = plan, .hop = cake_alloc((size_t)plan->n_hop, sizeof *c->hop)};
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        const cake_rate *rate = &p->cluster->rate[plan->first + hop->rank];
        c->hop[i] = (hop_cost){.cost = cake_cost_of_layers(p->input->model, p->input->kernels, hop->first,
                                                           hop->count, p->input->kv_dtype),
                               .attention = PROMPTS * rate->flops * pairs / products,
                               .choices = CHOICES * rate->flops * pairs / products,
                               .flops = PRODUCTS * rate->flops,
                               .bytes = rate->bytes,
                               .rank = hop->rank,
                               .count = hop->count};
    }
    c->head_flops = PRODUCTS * p->cluster->rate[plan->first].flops * head / products;
    c->head_bytes = (double)cake_model_bytes(p->input->model, &share, p->input->kernels);
}

static void see(void *self, const cake_batch *batch, const int *request)
{
    costs *c = self;
    int32_t common = -1; /* the node that the rows before share */
    const cake_schedule_shape *shape = &c->p->shape;
    wave_rows *w = &c->rows;
    *w = (wave_rows){.n_tok = batch->n_tok};
    for (int i = 0; i < batch->n_tok; i++) {
        const cake_row *row = &batch->rows[i];
        double *seen = row->kind == CAKE_ROW_PROMPT ? w->prompt_seen : w->generated_seen;
        w->n_run += !i || row->slot != batch->rows[i - 1].slot;
        const cake_sim_request *r = &c->request[request[row->slot]];
        int32_t node = r->shared ? r->chain[r->shared / CAKE_PAGE - 1] : -1;
        for (int group = 0; group < shape->n_group; group++) {
            int window = shape->window[group], sees = window && row->pos >= window ? window : row->pos + 1;
            seen[group] += sees;
            if (row->kind != CAKE_ROW_PROMPT)
                w->read[group] += !window && node >= 0 && node == common ? sees - r->shared : sees;
        }
        common = row->kind == CAKE_ROW_PROMPT ? common : node;
    }
}

/* Arithmetic and reading overlap, though not at their best where both take as long. */
static double both(double computing, double reading)
{
    return sqrt(computing * computing + reading * reading);
}

static double visit(void *self, int i)
{
    const costs *c = self;
    const hop_cost *h = &c->hop[i];
    const wave_rows *w = &c->rows;
    double seconds = both(w->n_tok * h->cost.row_flops / h->flops, h->cost.wave_bytes / (WEIGHTS * h->bytes));
    for (int group = 0; group < h->cost.n_group; group++) {
        double flops = h->cost.kv[group].position_flops, bytes = h->cost.kv[group].position_bytes;
        seconds += w->prompt_seen[group] * flops / h->attention +
                   (w->generated_seen[group] - w->read[group]) * flops / h->choices +
                   w->read[group] * fmax(flops / h->attention, bytes / (CACHES * h->bytes));
    }
    return seconds + w->n_run * h->cost.sequence_bytes / h->bytes + h->count * LAYER;
}

static double finish(void *self, const cake_batch *batch)
{
    const costs *c = self;
    double rows = batch->n_score, flops = cake_cost_scores(cake_model_config(c->p->input->model));
    double bytes = WEIGHTS * c->p->cluster->rate[c->plan->first].bytes;
    return rows > 0 ? both(rows * flops / c->head_flops, c->head_bytes / bytes) : 0;
}

/* The first n of the workload. */
static double look(costs *c, const cake_workload *d, int n, bool most, double *busy, int64_t *waves)
{
    cake_sim_request *request = cake_alloc((size_t)n, sizeof *request);
    for (int i = 0; i < n; i++) {
        const cake_workload_item *a = &d->first[i];
        request[i] =
            (cake_sim_request){.n_prompt = a->n_prompt,
                               .n_generated = most ? a->most : a->least,
                               .flags = a->flags,
                               .shared = a->chain ? (a->n_prompt - a->computed) / CAKE_PAGE * CAKE_PAGE : 0,
                               .chain = a->chain};
    }
    c->request = request;
    cake_schedule_shape shape = c->p->shape;
    shape.share = d->prefixes != NULL;
    cake_simulation simulation = {.plan = c->plan,
                                  .shape = &shape,
                                  .prefixes = d->prefixes,
                                  .n = n,
                                  .request = request,
                                  .self = c,
                                  .wave = see,
                                  .hop = visit,
                                  .root = finish};
    double seconds = cake_simulate(&simulation, busy, waves);
    free(request);
    return seconds;
}

/* How many of the first are enough, and not too much work. */
static int enough(const cake_workload *d, bool most)
{
    const double tokens = 4e6;
    double all = 0;
    int n = 0;
    for (; n < d->n_first && (n < 2 || all < tokens); n++)
        all += d->first[n].computed + (most ? d->first[n].most : d->first[n].least);
    return n;
}

/* In rows of prompts: a generated row has its scores, too. */
static double in_rows(const costs *c, double computed, double generated)
{
    double scores = cake_cost_scores(cake_model_config(c->p->input->model));
    return computed + generated * (1 + scores / c->p->input->cost.row_flops);
}

static double rows_of(const costs *c, const cake_workload *d, int n, bool most)
{
    double computed = 0, generated = 0;
    for (int i = 0; i < n; i++) {
        computed += d->first[i].computed;
        generated += most ? d->first[i].most : d->first[i].least;
    }
    return in_rows(c, computed, generated);
}

/* What a replica is given of all that is asked for. */
static cake_workload part_of(const cake_workload *all, double share)
{
    cake_workload own = *all;
    own.n = (int64_t)ceil((double)all->n * share - 1e-9);
    own.n_first = own.n < all->n_first ? (int)own.n : all->n_first;
    own.computed *= share;
    own.fewest *= share;
    own.most *= share;
    return own;
}

/* Seconds that a replica takes for its share; what was looked at of it goes into *look and busy, or nowhere
 * (NULL). */
static double foresee(const cake_planning *p, const cake_plan *plan, const cake_workload *all, bool most,
                      cake_replica_estimate *of, double *busy)
{
    costs c;
    int64_t waves;
    cake_workload own = part_of(all, of->share);
    const cake_workload *d = &own;
    int n = enough(d, most);
    of->seconds = 0;
    of->waves = 0;
    if (!n)
        return 0;
    open_costs(p, plan, &c);
    double seconds = of->seconds = look(&c, d, n, most, busy, &of->waves);
    if (n > 1 &&
        n < d->n) { /* the others take as long as the second half of these, beginning and end apart */
        double half = look(&c, d, n / 2, most, NULL, &waves), rows = rows_of(&c, d, n, most);
        double more = in_rows(&c, d->computed, most ? d->most : d->fewest) - rows;
        seconds += (seconds - half) / (rows - rows_of(&c, d, n / 2, most)) * more;
    }
    free(c.hop);
    return seconds;
}

/* Whether two replicas have the same slices on ranks of the same rates. */
static bool alike(const cake_planning *p, const cake_plan *a, const cake_plan *b)
{
    bool same = a->n_hop == b->n_hop;
    for (int i = 0; i < a->n_hop && same; i++)
        same = a->hop[i].rank == b->hop[i].rank && a->hop[i].first == b->hop[i].first &&
               a->hop[i].count == b->hop[i].count;
    for (int i = 0; i < a->n_rank && same; i++) {
        const cake_rate *x = &p->cluster->rate[a->first + i], *y = &p->cluster->rate[b->first + i];
        same = x->flops == y->flops && x->bytes == y->bytes;
    }
    return same;
}

/* All replicas with their shares, each kind of them once. seconds [n_replica] of each. Returns how many kinds
 * there are. */
static int foresee_all(const cake_planning *p, const cake_plan *plans, const cake_workload *all, bool most,
                       cake_replica_estimate *looks, double *seconds, double *busy)
{
    int kinds = 0;
    for (int r = 0; r < p->n_replica; r++) {
        const cake_plan *plan = &plans[r];
        double *own = busy ? busy + plan->first : NULL;
        int like = 0;
        if (r >= all->n) /* there are fewer requests than replicas */
            looks[r].share = 0;
        while (like < r && !(looks[like].share == looks[r].share && alike(p, &plans[like], plan)))
            like++;
        if (like < r) {
            looks[r] = looks[like];
            seconds[r] = seconds[like];
            if (busy)
                memcpy(own, busy + plans[like].first, (size_t)plan->n_rank * sizeof *own);
            continue;
        }
        if (own)
            memset(own, 0, (size_t)plan->n_rank * sizeof *own);
        seconds[r] = foresee(p, plan, all, most, &looks[r], own);
        kinds++;
    }
    return kinds;
}

cake_estimate cake_estimate_make(const cake_planning *p, const cake_plan *plans, const cake_workload *all,
                                 bool most, cake_replica_estimate *looks, double *busy)
{
    int n = p->n_replica;
    cake_estimate e = {.generated = most ? all->most : all->fewest};
    double *seconds = cake_alloc((size_t)n, sizeof *seconds), rates = 0;
    cake_replica_estimate *own = looks ? looks : cake_alloc((size_t)n, sizeof *own);
    int64_t sharing = all->n < n ? all->n : n;
    for (int r = 0; r < n; r++)
        own[r].share = 1.0 / (double)(sharing > 0 ? sharing : 1);
    int kinds = foresee_all(p, plans, all, most, own, seconds, busy);
    for (int r = 0; r < n; r++) /* who is faster asks for more; all end at the same time */
        rates += 1 / seconds[r];
    if (kinds > 1 && all->n >= n && isfinite(rates) && rates > 0) {
        for (int r = 0; r < n; r++)
            own[r].share = 1 / (seconds[r] * rates);
        foresee_all(p, plans, all, most, own, seconds, busy);
    }
    for (int r = 0; r < n; r++)
        e.seconds = fmax(e.seconds, seconds[r]);
    free(seconds);
    if (!looks)
        free(own);
    return e;
}

bool cake_workload_is_sampled(const cake_workload *d)
{
    enum { FIRST = 2048 };
    return d->n_first < FIRST;
}

void cake_workload_add(cake_workload *d, const cake_workload_item *answer)
{
    d->n++;
    d->computed += answer->computed;
    d->fewest += answer->least;
    d->most += answer->most;
    if (!cake_workload_is_sampled(d))
        return;
    if (d->n_first == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 256;
        d->first = cake_grow(d->first, (size_t)d->cap, sizeof *d->first);
    }
    d->first[d->n_first++] = *answer;
}

void cake_workload_guess(const cake_planning *p, int64_t n, int prompt, cake_workload *d)
{
    int most = p->input->context / 4 * 3 > 0 ? p->input->context / 4 * 3 : 1;
    prompt = prompt < most ? prompt : most;
    cake_workload_item answer = {
        .n_prompt = prompt, .computed = prompt, .least = (prompt + 2) / 3, .most = (prompt + 2) / 3};
    while (d->n < n && cake_workload_is_sampled(d))
        cake_workload_add(d, &answer);
    double others = (double)(n - d->n);
    d->n = n;
    d->computed += others * answer.computed;
    d->fewest += others * answer.least;
    d->most += others * answer.most;
}

void cake_workload_free(cake_workload *d)
{
    for (int i = 0; i < d->n_first; i++)
        free(d->first[i].chain);
    free(d->first);
    cake_prefix_tree_close(d->prefixes);
    *d = (cake_workload){0};
}
