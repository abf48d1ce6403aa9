/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, rates, lengths. Out: seconds.
 * Invariant: the cost of a wave is what slice/cost.h counts; nothing else of the requests is used.
 */
#include "planner/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/peak.h"
#include "planner/offload.h"
#include "slice/cost.h"

/* Efficiency: the share of the peaks that kernels reach, roughly, with any instruction set
 * (docs/notes/performance-log.md, `bench linear attend`). */
#define GEMM             0.84  /* products of many rows: of arithmetic */
#define GEMV             0.85  /* products of one row: of memory bandwidth */
#define ATTEND_PROMPT    0.62  /* attention of prompts: of arithmetic */
#define ATTEND_GENERATED 0.70  /* attention of generated rows: of memory bandwidth */
#define ATTEND_SHARED    0.33  /* attention of generated rows that share KV pages: of arithmetic */
#define LAYER_OVERHEAD   40e-6 /* overhead in seconds of a layer and wave: barriers and serial work */

typedef struct hop_cost {
    cake_cost cost;
    double prompt_attention, shared_attention; /* operations a second: prompts; rows that share pages */
    double flops, bytes;                       /* operations a second in products, bytes read a second */
    double read, read_experts; /* bytes of files that a wave reads of weights that are not held; of experts */
    int rank, count;
} hop_cost;

/* The work in a wave's rows. KV positions are summed over rows, per group. */
typedef struct wave_rows {
    int n_row, n_run;
    double prompt_seen[CAKE_MAX_KV_GROUPS], generated_seen[CAKE_MAX_KV_GROUPS];
    double read[CAKE_MAX_KV_GROUPS]; /* generated_seen; shared positions counted once */
} wave_rows;

typedef struct costs {
    const cake_planning *p;
    const cake_plan *plan; /* of one replica */
    hop_cost *hop;         /* [n_hop], then the layer of multi-token prediction, or one of no layer */
    double head_flops;     /* the head on rank 0: operations a second */
    double head_bytes;     /* bytes of its weights */
    const cake_sim_request *request; /* [n] the simulated requests */
    wave_rows rows;                  /* of the wave being simulated */
} costs;

/* How much faster vector arithmetic of this kind is than float32. */
static double times_f32(cake_peak_kind kind)
{
    return kind == CAKE_PEAK_INT8 ? 4 : kind == CAKE_PEAK_BF16 ? 2 : 1;
}

/* What waves read in each hop of weights that are not held: a rank's layers read about as much each. */
static void open_reading(costs *c)
{
    const cake_planning *p = c->p;
    if (!p->input->weights_memory || p->input->pack_rate <= 0)
        return;
    for (int i = 0; i < c->plan->n_hop; i++) {
        hop_cost *h = &c->hop[i];
        double part = (double)h->count / cake_offload_layers(c->plan, h->rank);
        cake_weight_split split;
        cake_offload_split(p, c->plan, h->rank, &split);
        h->read = (double)(split.wave_bytes - split.expert_bytes) * part;
        h->read_experts = (double)split.expert_bytes * part;
        cake_weight_split_free(&split);
    }
}

/* What a hop costs, and the rates of its rank. */
static hop_cost cost_of_hop(const cake_planning *p, const cake_plan *plan, const cake_hop *hop)
{
    const double products =
        times_f32(cake_peak_of_products(p->input->kernels, cake_model_dtype(p->input->model)));
    const cake_dtype kept =
        p->input->kv_dtype == CAKE_I8 ? CAKE_F32 : p->input->kv_dtype; /* as it is multiplied */
    const double kv_products = times_f32(cake_peak_of_products(p->input->kernels, kept));
    const cake_rate *rate = &p->cluster->rate[plan->first + hop->rank];
    return (hop_cost){.cost = cake_cost_of_layers(p->input->model, p->input->kernels, hop->first, hop->count,
                                                  p->input->kv_dtype),
                      .prompt_attention = ATTEND_PROMPT * rate->flops * kv_products / products,
                      .shared_attention = ATTEND_SHARED * rate->flops * kv_products / products,
                      .flops = GEMM * rate->flops,
                      .bytes = rate->bytes,
                      .rank = hop->rank,
                      .count = hop->count};
}

static void open_costs(const cake_planning *p, const cake_plan *plan, costs *c)
{
    cake_dtype dtype = cake_model_dtype(p->input->model);
    double products = times_f32(cake_peak_of_products(p->input->kernels, dtype));
    double head = times_f32(cake_peak_of_products(p->input->kernels, dtype == CAKE_I8 ? CAKE_BF16 : dtype));
    cake_weight_set share = {.head = true};
    const cake_hop mtp = cake_offload_mtp(p);
    *c = (costs){.p = p, .plan = plan, .hop = cake_alloc((size_t)plan->n_hop + 1, sizeof *c->hop)};
    for (int i = 0; i < plan->n_hop; i++)
        c->hop[i] = cost_of_hop(p, plan, &plan->hop[i]);
    if (mtp.count)
        c->hop[plan->n_hop] = cost_of_hop(p, plan, &mtp);
    open_reading(c);
    c->head_flops = GEMM * p->cluster->rate[plan->first].flops * head / products;
    c->head_bytes = (double)cake_model_bytes(p->input->model, &share, p->input->kernels);
}

static void count_rows(void *self, const cake_batch *batch, const int *request)
{
    costs *c = self;
    int32_t common = -1; /* the prefix node of the previous rows */
    const cake_schedule_shape *shape = &c->p->shape;
    wave_rows *w = &c->rows;
    *w = (wave_rows){.n_row = batch->n_row};
    for (int i = 0; i < batch->n_row; i++) {
        const cake_row *row = &batch->rows[i];
        double *seen = row->kind == CAKE_ROW_PROMPT ? w->prompt_seen : w->generated_seen;
        w->n_run += !i || row->slot != batch->rows[i - 1].slot;
        const cake_sim_request *r = &c->request[request[row->slot]];
        int32_t node = r->shared ? r->chain[r->shared / CAKE_PAGE - 1] : -1;
        for (int group = 0; group < shape->n_kv_group; group++) {
            int window = shape->window[group], sees = window && row->pos >= window ? window : row->pos + 1;
            seen[group] += sees;
            if (row->kind != CAKE_ROW_PROMPT)
                w->read[group] += !window && node >= 0 && node == common ? sees - r->shared : sees;
        }
        common = row->kind == CAKE_ROW_PROMPT ? common : node;
    }
}

/* Arithmetic and reading overlap, but not fully where both take equally long. */
static double overlap(double computing, double reading)
{
    return sqrt(computing * computing + reading * reading);
}

/* The threads copy, convert and pack what is read, while the disk works. */
static double with_reading(const costs *c, const hop_cost *h, double n_row, double seconds)
{
    const cake_plan_input *in = c->p->input;
    if (h->read + h->read_experts <= 0)
        return seconds;
    double bytes = h->read + h->read_experts * cake_cost_met_experts(&h->cost, n_row);
    seconds += bytes / in->pack_rate;
    return in->read_rate > 0 ? fmax(seconds, bytes / in->read_rate) : seconds;
}

static double hop_seconds(void *self, int i)
{
    const costs *c = self;
    const hop_cost *h = &c->hop[i];
    const wave_rows *w = &c->rows;
    double seconds = overlap(w->n_row * h->cost.row_flops / h->flops,
                             cake_cost_weight_bytes(&h->cost, w->n_row) / (GEMV * h->bytes));
    for (int group = 0; group < h->cost.n_kv_group; group++) {
        double flops = h->cost.kv[group].position_flops, bytes = h->cost.kv[group].position_bytes;
        seconds += w->prompt_seen[group] * flops / h->prompt_attention +
                   (w->generated_seen[group] - w->read[group]) * flops / h->shared_attention +
                   w->read[group] * fmax(flops / h->prompt_attention, bytes / (ATTEND_GENERATED * h->bytes));
    }
    seconds += w->n_run * h->cost.sequence_bytes / h->bytes + h->count * LAYER_OVERHEAD;
    return with_reading(c, h, w->n_row, seconds);
}

/* The head; and the layer of multi-token prediction, which takes all rows, with the head once more for what
 * it predicts. */
static double head_seconds(void *self, const cake_batch *batch)
{
    costs *c = self;
    const bool predicts = c->hop[c->plan->n_hop].count > 0;
    double rows = batch->n_score, flops = cake_cost_scores(cake_model_config(c->p->input->model));
    double bytes = GEMV * c->p->cluster->rate[c->plan->first].bytes;
    double seconds = rows > 0 ? overlap(rows * flops / c->head_flops, c->head_bytes / bytes) : 0;
    return predicts ? 2 * seconds + hop_seconds(c, c->plan->n_hop) : seconds;
}

/* busy [plan->n_rank] = seconds that each rank works on a wave, as cake_estimate_wave describes it. */
static void wave_seconds(const cake_planning *p, const cake_plan *plan, int n_row, bool prompt, double *busy)
{
    costs c;
    cake_batch batch = {.n_row = n_row, .n_score = prompt ? 1 : n_row};
    open_costs(p, plan, &c);
    c.rows = (wave_rows){.n_row = n_row, .n_run = prompt ? 1 : n_row};
    for (int group = 0; group < p->shape.n_kv_group; group++) {
        double *seen = prompt ? c.rows.prompt_seen : c.rows.generated_seen;
        int window = p->shape.window[group];
        seen[group] = n_row * (double)(window && window < CAKE_WORKLOAD_USUAL ? window : CAKE_WORKLOAD_USUAL);
        c.rows.read[group] = c.rows.generated_seen[group];
    }
    busy[0] = head_seconds(&c, &batch);
    for (int i = 0; i < plan->n_hop; i++)
        busy[plan->hop[i].rank] += hop_seconds(&c, i);
    free(c.hop);
}

double cake_estimate_wave(const cake_planning *p, const cake_plan *plan, int n_row, bool prompt)
{
    double *busy = cake_alloc((size_t)plan->n_rank, sizeof *busy), longest = 0;
    wave_seconds(p, plan, n_row, prompt, busy);
    for (int i = 0; i < plan->n_rank; i++)
        longest = fmax(longest, busy[i]);
    free(busy);
    return longest;
}

double cake_estimate_pass(const cake_planning *p, const cake_plan *plan, int n_row)
{
    double *busy = cake_alloc((size_t)plan->n_rank, sizeof *busy), sum = 0;
    wave_seconds(p, plan, n_row, false, busy);
    for (int i = 0; i < plan->n_rank; i++)
        sum += busy[i];
    free(busy);
    return sum;
}

/* Seconds of the first n answers, by simulation. */
static double simulate_first(costs *c, const cake_workload *workload, int n, bool longest, double *busy,
                             int64_t *waves)
{
    cake_sim_request *request = cake_alloc((size_t)n, sizeof *request);
    for (int i = 0; i < n; i++) {
        const cake_workload_item *a = &workload->first[i];
        const int n_generated = longest ? a->max_generated : a->min_generated;
        request[i] =
            (cake_sim_request){.n_prompt = a->n_prompt,
                               .n_generated = n_generated > 0 ? n_generated : 1, /* the last row is used */
                               .score_from = a->score_from,
                               .shared = a->chain ? (a->n_prompt - a->computed) / CAKE_PAGE * CAKE_PAGE : 0,
                               .chain = a->chain};
    }
    c->request = request;
    cake_schedule_shape shape = c->p->shape;
    shape.share = workload->prefixes != NULL;
    cake_simulation simulation = {.plan = c->plan,
                                  .shape = &shape,
                                  .prefixes = workload->prefixes,
                                  .n = n,
                                  .request = request,
                                  .self = c,
                                  .wave = count_rows,
                                  .hop = hop_seconds,
                                  .root = head_seconds};
    double seconds = cake_simulate(&simulation, busy, waves);
    free(request);
    return seconds;
}

/* How many of the first answers to simulate: enough for an estimate, few enough to be fast. */
static int sample_size(const cake_workload *workload, bool longest)
{
    const double tokens = 4e6;
    double all = 0;
    int n = 0;
    for (; n < workload->n_first && (n < 2 || all < tokens); n++)
        all += workload->first[n].computed +
               (longest ? workload->first[n].max_generated : workload->first[n].min_generated);
    return n;
}

/* Work in units of prompt rows: a generated row adds the cost of its scores. */
static double equivalent_rows(const costs *c, double computed, double generated)
{
    double scores = cake_cost_scores(cake_model_config(c->p->input->model));
    return computed + generated * (1 + scores / c->p->input->cost.row_flops);
}

static double rows_of(const costs *c, const cake_workload *workload, int n, bool longest)
{
    double computed = 0, generated = 0;
    for (int i = 0; i < n; i++) {
        computed += workload->first[i].computed;
        generated += longest ? workload->first[i].max_generated : workload->first[i].min_generated;
    }
    return equivalent_rows(c, computed, generated);
}

static cake_workload share_of(const cake_workload *all, double share)
{
    cake_workload own = *all;
    own.n = (int64_t)ceil((double)all->n * share - 1e-9);
    own.n_first = own.n < all->n_first ? (int)own.n : all->n_first;
    own.computed *= share;
    own.min_generated *= share;
    own.max_generated *= share;
    return own;
}

/* Seconds that a replica takes for its share. What was simulated goes into *estimate and busy (may be
 * NULL). */
static double estimate_replica(const cake_planning *p, const cake_plan *plan, const cake_workload *all,
                               bool longest, cake_replica_estimate *estimate, double *busy)
{
    costs c;
    int64_t waves;
    cake_workload own = share_of(all, estimate->share);
    const cake_workload *workload = &own;
    int n = sample_size(workload, longest);
    estimate->seconds = 0;
    estimate->waves = 0;
    if (!n)
        return 0;
    open_costs(p, plan, &c);
    double seconds = estimate->seconds = simulate_first(&c, workload, n, longest, busy, &estimate->waves);
    if (n > 1 &&
        n < workload->n) { /* extrapolates from the second half, which has neither start-up nor drain */
        double half = simulate_first(&c, workload, n / 2, longest, NULL, &waves),
               rows = rows_of(&c, workload, n, longest);
        double more = equivalent_rows(&c, workload->computed,
                                      longest ? workload->max_generated : workload->min_generated) -
                      rows;
        seconds += (seconds - half) / (rows - rows_of(&c, workload, n / 2, longest)) * more;
    }
    free(c.hop);
    return seconds;
}

/* Whether two replicas have the same slices on ranks of the same rates. */
static bool same_replica(const cake_planning *p, const cake_plan *a, const cake_plan *b)
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

/* Estimates all replicas with their shares, equal ones once. seconds [n_replica]. Returns the number of
 * distinct ones. */
static int estimate_all(const cake_planning *p, const cake_plan *plans, const cake_workload *all,
                        bool longest, cake_replica_estimate *replicas, double *seconds, double *busy)
{
    int distinct = 0;
    for (int r = 0; r < p->n_replica; r++) {
        const cake_plan *plan = &plans[r];
        double *own = busy ? busy + plan->first : NULL;
        int twin = 0;
        if (r >= all->n) /* fewer requests than replicas */
            replicas[r].share = 0;
        while (twin < r &&
               !(replicas[twin].share == replicas[r].share && same_replica(p, &plans[twin], plan)))
            twin++;
        if (twin < r) {
            replicas[r] = replicas[twin];
            seconds[r] = seconds[twin];
            if (busy)
                memcpy(own, busy + plans[twin].first, (size_t)plan->n_rank * sizeof *own);
            continue;
        }
        if (own)
            memset(own, 0, (size_t)plan->n_rank * sizeof *own);
        seconds[r] = estimate_replica(p, plan, all, longest, &replicas[r], own);
        distinct++;
    }
    return distinct;
}

cake_estimate cake_estimate_make(const cake_planning *p, const cake_plan *plans, const cake_workload *all,
                                 bool longest, cake_replica_estimate *replicas, double *busy)
{
    int n = p->n_replica;
    cake_estimate e = {.generated = longest ? all->max_generated : all->min_generated};
    double *seconds = cake_alloc((size_t)n, sizeof *seconds), rates = 0;
    cake_replica_estimate *own = replicas ? replicas : cake_alloc((size_t)n, sizeof *own);
    int64_t sharing = all->n < n ? all->n : n;
    for (int r = 0; r < n; r++)
        own[r].share = 1.0 / (double)(sharing > 0 ? sharing : 1);
    int distinct = estimate_all(p, plans, all, longest, own, seconds, busy);
    for (int r = 0; r < n; r++) /* faster replicas take more requests; all end at the same time */
        rates += 1 / seconds[r];
    if (distinct > 1 && all->n >= n && isfinite(rates) && rates > 0) {
        for (int r = 0; r < n; r++)
            own[r].share = 1 / (seconds[r] * rates);
        estimate_all(p, plans, all, longest, own, seconds, busy);
    }
    for (int r = 0; r < n; r++)
        e.seconds = fmax(e.seconds, seconds[r]);
    free(seconds);
    if (!replicas)
        free(own);
    return e;
}

bool cake_workload_is_sampled(const cake_workload *workload)
{
    enum { FIRST = 2048 };
    return workload->n_first < FIRST;
}

void cake_workload_add(cake_workload *workload, const cake_workload_item *answer)
{
    workload->n++;
    workload->computed += answer->computed;
    workload->min_generated += answer->min_generated;
    workload->max_generated += answer->max_generated;
    if (!cake_workload_is_sampled(workload))
        return;
    if (workload->n_first == workload->cap) {
        workload->cap = workload->cap ? 2 * workload->cap : 256;
        workload->first = cake_grow(workload->first, (size_t)workload->cap, sizeof *workload->first);
    }
    workload->first[workload->n_first++] = *answer;
}

void cake_workload_guess(const cake_planning *p, int64_t n, int prompt, cake_workload *workload)
{
    int max_prompt = p->input->context / 4 * 3 > 0 ? p->input->context / 4 * 3 : 1;
    prompt = prompt < max_prompt ? prompt : max_prompt;
    cake_workload_item answer = {.n_prompt = prompt,
                                 .computed = prompt,
                                 .min_generated = (prompt + 2) / 3,
                                 .max_generated = (prompt + 2) / 3};
    while (workload->n < n && cake_workload_is_sampled(workload))
        cake_workload_add(workload, &answer);
    double others = (double)(n - workload->n);
    workload->n = n;
    workload->computed += others * answer.computed;
    workload->min_generated += others * answer.min_generated;
    workload->max_generated += others * answer.max_generated;
}

void cake_workload_free(cake_workload *workload)
{
    for (int i = 0; i < workload->n_first; i++)
        free(workload->first[i].chain);
    free(workload->first);
    cake_prefix_tree_close(workload->prefixes);
    *workload = (cake_workload){0};
}
