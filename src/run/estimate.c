/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, rates, lengths. Out: seconds. `plan` calls.
 * Invariant: what a wave costs is what slice/work.h counts of it, and nothing else of the requests is used.
 */
#include "run/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/floor.h"
#include "run/pace.h"
#include "slice/work.h"

/* What kernels reach of the peaks, about, whatever the instruction set (docs/benchmarks.md, `bench linear attend`). */
#define PRODUCTS 0.84  /* of arithmetic, many rows */
#define WEIGHTS  0.85  /* of reading, one row */
#define PROMPTS  0.62  /* of arithmetic: attention of prompts */
#define CACHES   0.60  /* of reading: attention of generated rows */
#define LAYER    40e-6 /* seconds: what a layer takes beside, a wave: barriers and what is not worth sharing */

typedef struct hop_cost {
    cake_cost cost;
    double attention; /* operations a second of attention, of the rank ... */
    double flops, bytes;
    int rank, count;
} hop_cost;

/* What a wave's rows ask for. */
typedef struct wave_rows {
    int n_tok, n_run;
    double prompt_seen[CAKE_MAX_CLASS], generated_seen[CAKE_MAX_CLASS];
    double read[CAKE_MAX_CLASS]; /* by generated rows: what some share is read once */
} wave_rows;

typedef struct costs {
    const cake_stage *stage;
    hop_cost *hop;                /* [n_hop] */
    double head_flops;            /* operations a second of rank 0 on the head */
    double head_bytes;            /* of the head */
    const cake_foreseen *request; /* that are looked at */
    wave_rows rows;               /* of the wave that left */
} costs;

/* How much faster arithmetic of a kind is than that of float32, as vectors have it. */
static double times_f32(cake_floor_kind kind)
{
    return kind == CAKE_FLOOR_INT8 ? 4 : kind == CAKE_FLOOR_BF16 ? 2 : 1;
}

static void open_costs(const cake_stage *stage, costs *c)
{
    cake_dtype dtype = cake_model_dtype(stage->model);
    double products = times_f32(cake_floor_of_products(stage->kernels, dtype));
    double pairs = times_f32(cake_floor_of_products(stage->kernels, stage->kv_dtype));
    double head = times_f32(cake_floor_of_products(stage->kernels, dtype == CAKE_I8 ? CAKE_BF16 : dtype));
    cake_share share = {.head = true};
    *c = (costs){.stage = stage, .hop = cake_alloc((size_t)stage->plan.n_hop, sizeof *c->hop)};
    for (int i = 0; i < stage->plan.n_hop; i++) {
        const cake_hop *hop = &stage->plan.hop[i];
        const cake_rate *rate = &stage->rate[hop->rank];
        c->hop[i] = (hop_cost){.cost = cake_cost_of_layers(stage->model, stage->kernels, hop->first,
                                                           hop->count, stage->kv_dtype),
                               .attention = PROMPTS * rate->flops * pairs / products,
                               .flops = PRODUCTS * rate->flops,
                               .bytes = rate->bytes,
                               .rank = hop->rank,
                               .count = hop->count};
    }
    c->head_flops = PRODUCTS * stage->rate[0].flops * head / products;
    c->head_bytes = (double)cake_model_bytes(stage->model, &share, stage->kernels);
}

static void see(void *self, const cake_batch *batch, const int *request)
{
    costs *c = self;
    int32_t common = -1; /* the node that the rows before share */
    const cake_schedule_shape *shape = &c->stage->shape;
    wave_rows *w = &c->rows;
    *w = (wave_rows){.n_tok = batch->n_tok};
    for (int i = 0; i < batch->n_tok; i++) {
        const cake_row *row = &batch->rows[i];
        double *seen = row->kind == CAKE_ROW_PROMPT ? w->prompt_seen : w->generated_seen;
        w->n_run += !i || row->slot != batch->rows[i - 1].slot;
        const cake_foreseen *r = &c->request[request[row->slot]];
        int32_t node = r->shared ? r->chain[r->shared / CAKE_PAGE - 1] : -1;
        for (int class = 0; class < shape->n_class; class ++) {
            int window = shape->window[class], sees = window && row->pos >= window ? window : row->pos + 1;
            seen[class] += sees;
            if (row->kind != CAKE_ROW_PROMPT)
                w->read[class] += !window && node >= 0 && node == common ? sees - r->shared : sees;
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
    for (int class = 0; class < h->cost.n_class; class ++) {
        double flops = h->cost.kv[class].position_flops, bytes = h->cost.kv[class].position_bytes;
        seconds += w->prompt_seen[class] * flops / h->attention +
                   fmax(w->generated_seen[class] * flops / h->attention,
                        w->read[class] * bytes / (CACHES * h->bytes));
    }
    return seconds + w->n_run * h->cost.sequence_bytes / h->bytes + h->count * LAYER;
}

static double finish(void *self, const cake_batch *batch)
{
    const costs *c = self;
    double rows = batch->n_score, flops = cake_cost_scores(cake_model_config(c->stage->model));
    return rows > 0 ? both(rows * flops / c->head_flops, c->head_bytes / (WEIGHTS * c->stage->rate[0].bytes))
                    : 0;
}

/* The first n of the demand. */
static double look(costs *c, const cake_demand *d, int n, bool most, double *busy, int64_t *waves)
{
    cake_foreseen *request = cake_alloc((size_t)n, sizeof *request);
    for (int i = 0; i < n; i++) {
        const cake_answer *a = &d->first[i];
        request[i] =
            (cake_foreseen){.n_prompt = a->n_prompt,
                            .n_generated = most ? a->most : a->least,
                            .flags = a->flags,
                            .shared = a->chain ? (a->n_prompt - a->computed) / CAKE_PAGE * CAKE_PAGE : 0,
                            .chain = a->chain};
    }
    c->request = request;
    cake_schedule_shape shape = c->stage->shape;
    shape.share = d->prefixes != NULL;
    cake_outlook outlook = {.plan = &c->stage->plan,
                            .shape = &shape,
                            .prefixes = d->prefixes,
                            .n = n,
                            .request = request,
                            .self = c,
                            .wave = see,
                            .hop = visit,
                            .root = finish};
    double seconds = cake_predict(&outlook, busy, waves);
    free(request);
    return seconds;
}

/* How many of the first are enough, and not too much work. */
static int enough(const cake_demand *d, bool most)
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
    double scores = cake_cost_scores(cake_model_config(c->stage->model));
    return computed + generated * (1 + scores / cake_pace_layers(c->stage).row_flops);
}

static double rows_of(const costs *c, const cake_demand *d, int n, bool most)
{
    double computed = 0, generated = 0;
    for (int i = 0; i < n; i++) {
        computed += d->first[i].computed;
        generated += most ? d->first[i].most : d->first[i].least;
    }
    return in_rows(c, computed, generated);
}

/* What replica 0 is given of all that is asked for: requests are handed out by demand. */
static cake_demand own_part(const cake_stage *stage, const cake_demand *all)
{
    cake_demand own = *all;
    double mine = 0, total = 0;
    for (int i = 0; i < stage->replica.size * stage->n_replica; i++) {
        total += stage->rate[i].flops;
        mine += i < stage->replica.size ? stage->rate[i].flops : 0;
    }
    double part = stage->n_replica == 1 ? 1 : total > 0 ? mine / total : 1.0 / stage->n_replica;
    own.n = (int64_t)ceil((double)all->n * part);
    own.n_first = own.n < all->n_first ? (int)own.n : all->n_first;
    own.computed *= part;
    own.fewest *= part;
    own.most *= part;
    return own;
}

cake_estimate cake_estimate_make(const cake_stage *stage, const cake_demand *all, bool most, double *busy)
{
    costs c;
    int64_t waves;
    cake_estimate e = {.generated = most ? all->most : all->fewest};
    cake_demand own = own_part(stage, all);
    const cake_demand *d = &own;
    open_costs(stage, &c);
    int n = enough(d, most);
    e.looked = e.seconds = n ? look(&c, d, n, most, busy, &e.waves) : 0;
    if (n > 1 &&
        n < d->n) { /* the others take as long as the second half of these, beginning and end apart */
        double half = look(&c, d, n / 2, most, NULL, &waves), rows = rows_of(&c, d, n, most);
        double more = in_rows(&c, d->computed, most ? d->most : d->fewest) - rows;
        e.seconds += (e.looked - half) / (rows - rows_of(&c, d, n / 2, most)) * more;
    }
    free(c.hop);
    return e;
}

bool cake_demand_near(const cake_demand *d)
{
    enum { FIRST = 2048 };
    return d->n_first < FIRST;
}

void cake_demand_add(cake_demand *d, const cake_answer *answer)
{
    d->n++;
    d->computed += answer->computed;
    d->fewest += answer->least;
    d->most += answer->most;
    if (!cake_demand_near(d))
        return;
    if (d->n_first == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 256;
        d->first = cake_grow(d->first, (size_t)d->cap, sizeof *d->first);
    }
    d->first[d->n_first++] = *answer;
}

void cake_demand_guess(const cake_stage *stage, cake_demand *d)
{
    enum { USUAL = 384 };
    int prompt = stage->context / 4 * 3 < USUAL ? stage->context / 4 * 3 : USUAL;
    prompt = prompt > 0 ? prompt : 1;
    cake_answer answer = {
        .n_prompt = prompt, .computed = prompt, .least = (prompt + 2) / 3, .most = (prompt + 2) / 3};
    for (int i = 0; i < 2 * stage->shape.n_lane * stage->shape.lane_seqs && cake_demand_near(d); i++)
        cake_demand_add(d, &answer);
}

void cake_demand_free(cake_demand *d)
{
    for (int i = 0; i < d->n_first; i++)
        free(d->first[i].chain);
    free(d->first);
    cake_prefixes_close(d->prefixes);
    *d = (cake_demand){0};
}
