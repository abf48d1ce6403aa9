/* SPDX-License-Identifier: Apache-2.0
 *
 * `plan`: in: what `run` would get. Out, on standard output: who would own what, and what the input holds.
 * Every check is made that needs no weights; nothing is computed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "engine/request_queue.h"
#include "options/check_paths.h"
#include "planner/rank.h"
#include "planner/topology_io.h"
#include "planner/whatif.h"
#include "report/gather.h"
#include "request/scan.h"
#include "run/from_options.h"
#include "run/plan_output.h"
#include "run/run.h"
#include "schedule/prefix_tree.h"
#include "schedule/schedule.h"

enum { COMPLAINTS = 10, PAGE_BYTES = CAKE_PAGE * sizeof(int32_t) };

/* Prompts whose pages the KV cache would still have, the latest ones. */
typedef struct remembered {
    cake_prefix_tree *prefixes;
    int32_t **chain; /* ring [cap]: n of them from `first` on, [length] each */
    int *length;
    int cap, first, n;
    int32_t most; /* pages, of all together */
} remembered;

/* What the input holds. */
typedef struct census {
    const cake_rank *rank;
    int32_t *length; /* [n] tokens of each prompt that has any */
    int64_t n, cap, total;
    int64_t requests, failed, too_long, outgrow;
    bool warned; /* of cake_prepare_warn */
    remembered past;
    int64_t shared; /* tokens that other prompts begin with, too */
    cake_workload workload;
} census;

/* The first faults are told one by one: a run would put them into its results. */
static void complain(census *c, const cake_request *r, const char *message)
{
    char place[CAKE_PLACE];
    if (c->failed++ < COMPLAINTS)
        cake_log(CAKE_WARN, "run", "%s: %s", cake_form_place(r->form, r->index, r->id, place), message);
}

/* Whether prompt and answer at its longest are more than the pages of some KV cache group hold. */
static bool outgrows(const cake_rank *me, const cake_request *r, int64_t n_tok)
{
    int64_t most = r->params.max_tokens == CAKE_UNSET ? me->input.context : n_tok + r->params.max_tokens;
    int length = (int)(most < me->input.context ? most : me->input.context);
    for (int group = 0; group < me->planning.shape.n_group; group++)
        if (cake_pages_held(me->planning.shape.window[group], length, CAKE_PAGE) >
            me->planning.shape.n_page[group])
            return true;
    return false;
}

static void forget(remembered *p)
{
    cake_prefix_tree_release(p->prefixes, p->chain[p->first], p->length[p->first]);
    free(p->chain[p->first]);
    p->first = (p->first + 1) % p->cap;
    p->n--;
}

static void remember(remembered *p, int32_t *chain, int n)
{
    if (p->n == p->cap) {
        int cap = p->cap ? 2 * p->cap : 256;
        p->chain = cake_grow(p->chain, (size_t)cap, sizeof *p->chain);
        p->length = cake_grow(p->length, (size_t)cap, sizeof *p->length);
        for (int i = 0; i < p->first; i++) { /* those at the ring's beginning come behind its end */
            p->chain[p->cap + i] = p->chain[i];
            p->length[p->cap + i] = p->length[i];
        }
        p->cap = cap;
    }
    int at = (p->first + p->n++) % p->cap;
    p->chain[at] = chain;
    p->length[at] = n;
    while (p->n > 1 && cake_prefix_tree_count(p->prefixes) > p->most)
        forget(p);
}

/* The tokens of whole pages, which others may share. In any thread. */
static void compose(void *self, const cake_request *r, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out)
{
    const census *c = self;
    (void)text;
    if (!r->err && ids->len && ids->len < (size_t)c->rank->input.context)
        cake_buf_add(out, (const char *)ids->id, (size_t)cake_schedule_chain((int)ids->len) * PAGE_BYTES);
}

static bool is_scored(const cake_request *r)
{
    return r->params.echo == 1 && r->params.logprobs != CAKE_UNSET;
}

/* The answers of a request as they may become. tokens [n pages]; computed: of the prompt. */
static void workload(census *c, const cake_request *r, int n_tok, const char *tokens, int n, int computed)
{
    const cake_params *p = &r->params;
    int room = c->rank->input.context - n_tok;
    int most = p->max_tokens == CAKE_UNSET || p->max_tokens > room ? room : (int)p->max_tokens;
    bool sure = p->ignore_eos == 1 && p->n_stop <= 0 && !p->stop_ids.len;
    int min_generated = sure ? most : p->min_tokens < most ? (int)p->min_tokens : most;
    cake_workload_item answer = {.n_prompt = n_tok,
                                 .computed = computed,
                                 .min_generated = min_generated > 0 ? min_generated : 1,
                                 .max_generated = most > 0 ? most : 1,
                                 .flags = is_scored(r) ? CAKE_SEQ_SCORED : 0};
    for (int64_t i = 0; i < (p->n > 1 ? p->n : 1); i++) {
        if (cake_workload_is_sampled(&c->workload) && n) {
            int32_t *ids = cake_alloc((size_t)n, PAGE_BYTES);
            memcpy(ids, tokens, (size_t)n * PAGE_BYTES);
            answer.chain = cake_alloc((size_t)n, sizeof *answer.chain);
            cake_prefix_tree_insert(
                c->workload.prefixes,
                cake_request_queue_prefix_salt(cake_model_config(c->rank->input.model), n_tok), ids, n,
                answer.chain);
            free(ids);
        }
        cake_workload_add(&c->workload, &answer);
        answer.computed = n_tok - n * CAKE_PAGE; /* choices share the pages of their prompt */
        answer.flags = 0;
        answer.chain = NULL;
    }
}

/* Pages that an earlier prompt begins with are not computed again, but for those whose scores are wanted.
 * Returns what is computed of the prompt. */
static int share(census *c, const cake_request *r, int n_tok, const char *tokens, int n)
{
    int shared = 0;
    if (!n)
        return n_tok;
    int32_t *ids = cake_alloc((size_t)n, PAGE_BYTES), *chain = cake_alloc((size_t)n, sizeof *chain);
    memcpy(ids, tokens, (size_t)n * PAGE_BYTES);
    cake_prefix_tree_insert(c->past.prefixes,
                            cake_request_queue_prefix_salt(cake_model_config(c->rank->input.model), n_tok),
                            ids, n, chain);
    free(ids);
    for (int i = 0; i < n && !is_scored(r) && cake_prefix_tree_users(c->past.prefixes, chain[i]) > 1; i++)
        shared += CAKE_PAGE;
    remember(&c->past, chain, n);
    c->shared += shared;
    return n_tok - shared;
}

static cake_err take(void *self, const cake_request *r, int64_t n_tok, const char *composed, size_t len)
{
    census *c = self;
    c->requests++;
    cake_prepare_warn(&c->warned, r);
    if (n_tok) {
        if (c->n == c->cap) {
            c->cap = c->cap ? 2 * c->cap : 4096;
            c->length = cake_grow(c->length, (size_t)c->cap, sizeof *c->length);
        }
        c->length[c->n++] = n_tok < INT32_MAX ? (int32_t)n_tok : INT32_MAX;
        c->total += n_tok;
    }
    char message[96];
    if (r->err) {
        complain(c, r, r->fault.message);
    } else if (n_tok >= c->rank->input.context) {
        c->too_long++;
        snprintf(message, sizeof message, "a prompt of %lld tokens does not fit the context of %d",
                 (long long)n_tok, c->rank->input.context);
        complain(c, r, message);
    } else {
        c->outgrow += outgrows(c->rank, r, n_tok);
        if (r->params.max_tokens != 0 || is_scored(r)) {
            int n = (int)(len / PAGE_BYTES), computed = share(c, r, (int)n_tok, composed, n);
            workload(c, r, (int)n_tok, composed, n, computed);
        }
    }
    return CAKE_OK;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* The smallest length that a share of all prompts does not exceed (nearest rank). */
static int32_t quantile(const census *c, int percent)
{
    int64_t rank = (c->n * percent + 99) / 100;
    return c->length[rank > 0 ? rank - 1 : 0];
}

static cake_counted sum_up(const cake_options *o, census *c)
{
    if (c->n) /* no memory otherwise, which qsort may not be given */
        qsort(c->length, (size_t)c->n, sizeof *c->length, ascending);
    cake_counted counted = {.shard = o->shard,
                            .requests = c->requests,
                            .failed = c->failed,
                            .too_long = c->too_long,
                            .outgrow = c->outgrow,
                            .n = c->n,
                            .total = c->total,
                            .shared = c->shared};
    if (c->n) {
        counted.least = c->length[0];
        counted.median = quantile(c, 50);
        counted.p99 = quantile(c, 99);
        counted.most = c->length[c->n - 1];
    }
    return counted;
}

/* The prompts are tokenized without a limit, so that those that do not fit are counted too. */
static cake_err count_input(const cake_options *o, census *c)
{
    const cake_config *config = cake_model_config(c->rank->input.model);
    for (int group = 0; group < c->rank->planning.shape.n_group; group++)
        if (c->rank->planning.shape.n_page[group] > c->past.most)
            c->past.most = c->rank->planning.shape.n_page[group];
    c->past.prefixes = cake_prefix_tree_open();
    c->workload.prefixes = cake_prefix_tree_open();
    cake_scanner scanner = {.self = c, .compose = compose, .take = take};
    cake_preparation preparation;
    cake_prepare_options from = cake_prepare_options_from(o);
    cake_err err = cake_prepare_open(&from, &config->defaults, 0, config->n_vocab, &preparation);
    if (!err)
        err = cake_scan_run(&preparation, cake_options_threads(o, c->rank->machine.cores_mine), &scanner);
    cake_prepare_close(&preparation);
    return err;
}

static void close_census(census *c)
{
    while (c->past.n)
        forget(&c->past);
    free(c->past.chain);
    free(c->past.length);
    cake_prefix_tree_close(c->past.prefixes);
    cake_workload_free(&c->workload);
    free(c->length);
}

static void print(const cake_options *o, const cake_plan_output *summary)
{
    cake_buf out = {0};
    (o->json ? cake_plan_output_json : cake_plan_output_text)(summary, &out);
    fwrite(out.data, 1, out.len, stdout);
    cake_buf_free(&out);
}

/* To see how busy ranks are: twice as many as can be under way, as long as that is soon played. */
static int64_t usual_requests(const cake_rank *me)
{
    int64_t most = 1024, twice = 2LL * me->planning.shape.n_lane * me->planning.shape.lane_seqs;
    return me->planning.n_replica * (twice < most ? twice : most);
}

/* looks, busy: the summary's. Of GPUs no rates are known. */
static void predict(cake_plan_output *s, cake_replica_estimate *looks, double *busy)
{
    const cake_rank *me = s->rank;
    const cake_workload *workload = s->workload;
    for (int r = 0; r < me->planning.n_replica; r++)
        looks[r].share = 1.0 / me->planning.n_replica;
    if (me->cluster.gpus)
        return;
    s->most = cake_estimate_make(&me->planning, s->plans, workload, true, looks, busy);
    s->least = workload->min_generated < workload->max_generated
                   ? cake_estimate_make(&me->planning, s->plans, workload, false, NULL, NULL)
                   : s->most;
}

/* On rank 0. all, said [world->size]: of each rank. */
static cake_err tell(const cake_options *o, const cake_comm *world, const cake_rank *me,
                     const cake_report_stage *all, const cake_plan *plans, const cake_topology_rank *said)
{
    census c = {.rank = me};
    bool input = o->input || o->prompts.n;
    cake_err err = o->write_topology
                       ? cake_topology_io_write(o->write_topology, plans, me->planning.n_replica, said, all)
                       : CAKE_OK;
    if (!err && input)
        err = count_input(o, &c);
    if (!err) {
        cake_counted counted = sum_up(o, &c);
        double *busy = cake_alloc((size_t)world->size, sizeof *busy);
        cake_replica_estimate *looks = cake_alloc((size_t)me->planning.n_replica, sizeof *looks);
        if (!input)
            cake_workload_guess(&me->planning, usual_requests(me), CAKE_WORKLOAD_USUAL, &c.workload);
        cake_plan_output summary = {.world = world,
                                    .rank = me,
                                    .plans = plans,
                                    .ranks = all,
                                    .counted = input ? &counted : NULL,
                                    .workload = &c.workload,
                                    .looks = looks,
                                    .busy = busy};
        predict(&summary, looks, busy);
        print(o, &summary);
        free(looks);
        free(busy);
        err = c.failed ? CAKE_ERR_REQUEST : CAKE_OK;
    }
    close_census(&c);
    return err;
}

/* Of the ranks that are there. */
static cake_err preview_here(const cake_options *options, const cake_comm *world, cake_rank *me)
{
    size_t n = world->rank ? 0 : (size_t)world->size;
    cake_report_stage *all = n ? cake_alloc(n, sizeof *all) : NULL;
    cake_topology_rank *said = n ? cake_alloc(n, sizeof *said) : NULL;
    cake_comm_gather(world, &me->report, all, sizeof *all);
    cake_topology_rank mine = me->topology;
    if (!mine.where) {
        mine.set = cake_affinity_part(&me->placement);
        mine.where = cake_cpuset_count(&mine.set) ? CAKE_WHERE_CPUS : CAKE_WHERE_ANY;
    }
    if (me->gpu.used)
        mine.device = CAKE_WISH_CUDA;
    cake_comm_gather(world, &mine, said, sizeof *said);
    cake_plan *plans = cake_gather_plans(world, me);
    cake_err err = cake_comm_agree(world, n ? tell(options, world, me, all, plans, said) : CAKE_OK);
    cake_gather_free_plans(plans, me->planning.n_replica);
    free(all);
    free(said);
    return err;
}

/* Of ranks that are not. */
static cake_err preview_others(const cake_options *options, const cake_comm *world, cake_rank *me)
{
    cake_whatif p;
    int64_t n_request = world->rank ? 0 : cake_expected_requests(options);
    cake_err err = cake_whatif_open((int)options->ranks, n_request, world, me, &p);
    cake_topology_rank *said = cake_alloc((size_t)options->ranks, sizeof *said); /* nothing */
    if (!err)
        err = cake_comm_agree(world,
                              world->rank ? CAKE_OK : tell(options, &p.world, me, p.ranks, p.plans, said));
    free(said);
    cake_whatif_close(&p, me);
    return err;
}

cake_err cake_cmd_plan(const cake_options *options, const cake_comm *world)
{
    cake_rank me = {0};
    cake_rank_options from = cake_rank_options_from(options);
    cake_err err = CAKE_OK;
    if (world->rank == 0) {
        err = cake_paths_check(options);
        if (!err && options->write_topology)
            err = cake_atomic_file_check("topology", options->write_topology);
        cake_prepare_options prompts = cake_prepare_options_from(options);
        err = err ? err : cake_prepare_check(&prompts);
        from.n_request = cake_expected_requests(options);
    }
    err = cake_comm_agree(world, err);
    if (!err)
        err = (options->ranks ? cake_rank_open : cake_rank_plan)(&from, world, &me);
    if (!err)
        err = (options->ranks ? preview_others : preview_here)(options, world, &me);
    cake_rank_close(&me);
    return err;
}
