/* SPDX-License-Identifier: Apache-2.0
 *
 * `plan`: in: the options of `run`. Out, on standard output: which rank would have which layers, and
 * statistics of the input. Makes every check that needs no weights; computes nothing.
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
#include "report/gather.h"
#include "request/scan.h"
#include "run/from_options.h"
#include "run/plan_output.h"
#include "run/run.h"
#include "run/whatif.h"
#include "schedule/prefix_tree.h"
#include "schedule/schedule.h"

enum { MAX_FAULTS = 10, PAGE_BYTES = CAKE_PAGE * sizeof(int32_t) };

/* The latest prompts: those whose pages would still be in the KV cache. */
typedef struct recent_prompts {
    cake_prefix_tree *prefixes;
    int32_t **chain; /* ring [cap]: n of them, starting at `first`; [length] each */
    int *length;
    int cap, first, n;
    int32_t max_pages; /* limit of their pages together */
} recent_prompts;

/* Statistics of the input. */
typedef struct census {
    const cake_rank *rank;
    int32_t *length; /* [n] tokens of each prompt that has any */
    int64_t n, cap, total;
    int64_t requests, failed, too_long, outgrow;
    bool warned; /* cake_prepare_warn has logged */
    recent_prompts recent;
    int64_t shared; /* tokens in prefixes shared with other prompts */
    cake_workload workload;
} census;

/* Logs the first faults; a run would write them into its results. */
static void log_fault(census *c, const cake_request *r, const char *message)
{
    char name[CAKE_REQUEST_NAME];
    if (c->failed++ < MAX_FAULTS)
        cake_log(CAKE_WARN, "run", "%s: %s", cake_request_name(r->form, r->index, r->id, name), message);
}

/* Whether a prompt with its longest answer needs more pages than some KV cache group has. */
static bool exceeds_kv(const cake_rank *me, const cake_request *r, int64_t n_token)
{
    int64_t max_len = r->params.max_tokens == CAKE_UNSET ? me->input.context : n_token + r->params.max_tokens;
    int length = (int)(max_len < me->input.context ? max_len : me->input.context);
    for (int group = 0; group < me->planning.shape.n_kv_group; group++)
        if (cake_pages_held(me->planning.shape.window[group], length, CAKE_PAGE) >
            me->planning.shape.n_page[group])
            return true;
    return false;
}

static void forget(recent_prompts *p)
{
    cake_prefix_tree_release(p->prefixes, p->chain[p->first], p->length[p->first]);
    free(p->chain[p->first]);
    p->first = (p->first + 1) % p->cap;
    p->n--;
}

static void remember(recent_prompts *p, int32_t *chain, int n)
{
    if (p->n == p->cap) {
        int cap = p->cap ? 2 * p->cap : 256;
        p->chain = cake_grow(p->chain, (size_t)cap, sizeof *p->chain);
        p->length = cake_grow(p->length, (size_t)cap, sizeof *p->length);
        for (int i = 0; i < p->first; i++) { /* moves the wrapped part after the end of the ring */
            p->chain[p->cap + i] = p->chain[i];
            p->length[p->cap + i] = p->length[i];
        }
        p->cap = cap;
    }
    int at = (p->first + p->n++) % p->cap;
    p->chain[at] = chain;
    p->length[at] = n;
    while (p->n > 1 && cake_prefix_tree_count(p->prefixes) > p->max_pages)
        forget(p);
}

/* Tokens of a prompt that are computed: without an answer not the last one. */
static int64_t count_rows(const cake_request *r, int64_t n_token)
{
    return n_token - (r->params.max_tokens == 0);
}

/* The tokens of whole pages, which other prompts may share. Runs in any thread. */
static void compose(void *self, const cake_request *r, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out)
{
    const census *c = self;
    (void)text;
    const int64_t n_row = count_rows(r, (int64_t)ids->len);
    if (!r->err && !r->parts && n_row > 0 && n_row <= c->rank->input.context)
        cake_buf_add(out, (const char *)ids->id, (size_t)cake_schedule_chain_len((int)n_row) * PAGE_BYTES);
}

/* The first token of the prompt that is scored; 0: none. */
static int score_from(const cake_request *r)
{
    return r->params.score_from ? (int)r->params.score_from
                                : (r->params.echo == 1 && r->params.logprobs != CAKE_UNSET) ||
                                      r->params.prompt_logprobs != CAKE_UNSET;
}

/* Adds the answers of a request to the workload, with their minimum and maximum lengths. tokens [n pages];
 * computed: tokens of the prompt. */
static void add_workload(census *c, const cake_request *r, int n_token, const char *tokens, int n,
                         int computed)
{
    const cake_params *p = &r->params;
    int available = c->rank->input.context - n_token;
    int max_generated =
        p->max_tokens == CAKE_UNSET || p->max_tokens > available ? available : (int)p->max_tokens;
    bool exact = p->ignore_eos == 1 && p->n_stop <= 0 && !p->stop_ids.len;
    int min_generated = exact                           ? max_generated
                        : p->min_tokens < max_generated ? (int)p->min_tokens
                                                        : max_generated;
    const int least = p->max_tokens != 0;
    cake_workload_item answer = {.n_prompt = n_token,
                                 .computed = computed,
                                 .min_generated = min_generated > 0 ? min_generated : least,
                                 .max_generated = max_generated > 0 ? max_generated : least,
                                 .score_from = score_from(r)};
    for (int64_t i = 0; i < (p->n > 1 ? p->n : 1); i++) {
        if (cake_workload_is_sampled(&c->workload) && n) {
            int32_t *ids = cake_alloc((size_t)n, PAGE_BYTES);
            memcpy(ids, tokens, (size_t)n * PAGE_BYTES);
            answer.chain = cake_alloc((size_t)n, sizeof *answer.chain);
            cake_prefix_tree_insert(
                c->workload.prefixes,
                cake_request_queue_prefix_salt(cake_model_config(c->rank->input.model), n_token), ids, n,
                answer.chain);
            free(ids);
        }
        cake_workload_add(&c->workload, &answer);
        answer.computed = n_token - n * CAKE_PAGE; /* choices share the pages of their prompt */
        answer.score_from = 0;
        answer.chain = NULL;
    }
}

static void add_parts(census *c, const cake_request *r)
{
    for (int i = 0; i < r->n_part; i++) {
        const int n_row = r->parts[i].n_token - cake_tasks[r->task].targets;
        cake_workload_add(&c->workload, &(cake_workload_item){.n_prompt = n_row,
                                                              .computed = n_row,
                                                              .score_from = r->parts[i].score_from});
    }
}

/* Finds pages shared with an earlier prompt: they are not computed again, unless the request wants their
 * scores. Returns how many tokens of the prompt are computed. */
static int find_shared(census *c, const cake_request *r, int n_token, const char *tokens, int n)
{
    const int first = score_from(r), most = first ? (first - 1) / CAKE_PAGE : n;
    int shared = 0;
    if (!n)
        return n_token;
    int32_t *ids = cake_alloc((size_t)n, PAGE_BYTES), *chain = cake_alloc((size_t)n, sizeof *chain);
    memcpy(ids, tokens, (size_t)n * PAGE_BYTES);
    cake_prefix_tree_insert(c->recent.prefixes,
                            cake_request_queue_prefix_salt(cake_model_config(c->rank->input.model), n_token),
                            ids, n, chain);
    free(ids);
    for (int i = 0; i < n && i < most && cake_prefix_tree_users(c->recent.prefixes, chain[i]) > 1; i++)
        shared += CAKE_PAGE;
    remember(&c->recent, chain, n);
    c->shared += shared;
    return n_token - shared;
}

static cake_err add_prompt(void *self, const cake_request *r, int64_t n_token, const char *composed,
                           size_t len)
{
    census *c = self;
    c->requests++;
    cake_prepare_warn(&c->warned, r);
    if (n_token) {
        CAKE_RESERVE(c->length, c->n, c->cap);
        c->length[c->n++] = n_token < INT32_MAX ? (int32_t)n_token : INT32_MAX;
        c->total += n_token;
    }
    char message[96];
    if (r->err) {
        log_fault(c, r, r->fault.message);
    } else if (!r->parts && n_token > (int64_t)cake_prepare_max_prompt(c->rank->input.context, r)) {
        c->too_long++;
        snprintf(message, sizeof message, "a prompt of %lld tokens does not fit the context of %d",
                 (long long)n_token, c->rank->input.context);
        log_fault(c, r, message);
    } else {
        c->outgrow += exceeds_kv(c->rank, r, n_token);
        const int n_row = (int)count_rows(r, n_token), n = (int)(len / PAGE_BYTES);
        if (r->parts)
            add_parts(c, r);
        else if (n_row && (r->params.max_tokens != 0 || score_from(r)))
            add_workload(c, r, n_row, composed, n, find_shared(c, r, n_row, composed, n));
    }
    return CAKE_OK;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Nearest-rank quantile of the prompt lengths. */
static int32_t quantile(const census *c, int percent)
{
    int64_t rank = (c->n * percent + 99) / 100;
    return c->length[rank > 0 ? rank - 1 : 0];
}

static cake_counted summarize(const cake_options *o, census *c)
{
    if (c->n) /* qsort must not get NULL */
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
        counted.min = c->length[0];
        counted.median = quantile(c, 50);
        counted.p99 = quantile(c, 99);
        counted.max = c->length[c->n - 1];
    }
    return counted;
}

/* Tokenizes without a length limit, so that prompts that are too long are counted, too. */
static cake_err count_input(const cake_options *o, census *c)
{
    const cake_config *config = cake_model_config(c->rank->input.model);
    for (int group = 0; group < c->rank->planning.shape.n_kv_group; group++)
        if (c->rank->planning.shape.n_page[group] > c->recent.max_pages)
            c->recent.max_pages = c->rank->planning.shape.n_page[group];
    c->recent.prefixes = cake_prefix_tree_open();
    c->workload.prefixes = cake_prefix_tree_open();
    cake_scanner scanner = {.self = c, .compose = compose, .take = add_prompt};
    cake_preparation preparation;
    cake_prepare_options from = cake_prepare_options_from(o);
    cake_err err = cake_prepare_open(&from, &config->defaults, 0, config->n_vocab, &preparation);
    preparation.window = c->rank->input.context;
    preparation.config = config;
    if (!err)
        err = cake_scan_run(&preparation, cake_options_threads(o, c->rank->machine.cores_mine), &scanner);
    cake_prepare_close(&preparation);
    return err;
}

static void close_census(census *c)
{
    while (c->recent.n)
        forget(&c->recent);
    free(c->recent.chain);
    free(c->recent.length);
    cake_prefix_tree_close(c->recent.prefixes);
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

/* Requests to simulate for the idle shares: twice what can be in flight, limited to keep it fast. */
static int64_t simulated_requests(const cake_rank *me)
{
    int64_t limit = 1024, twice = 2LL * me->planning.shape.n_lane * me->planning.shape.lane_seqs;
    return me->planning.n_replica * (twice < limit ? twice : limit);
}

/* replicas, busy: the summary's. Does nothing for GPUs, whose rates are not known. */
static void estimate(cake_plan_output *s, cake_replica_estimate *replicas, double *busy)
{
    const cake_rank *me = s->rank;
    const cake_workload *workload = s->workload;
    for (int r = 0; r < me->planning.n_replica; r++)
        replicas[r].share = 1.0 / me->planning.n_replica;
    if (me->cluster.gpus)
        return;
    s->longest = cake_estimate_make(&me->planning, s->plans, workload, true, replicas, busy);
    s->shortest = workload->min_generated < workload->max_generated
                      ? cake_estimate_make(&me->planning, s->plans, workload, false, NULL, NULL)
                      : s->longest;
}

/* On rank 0. all, entries [world->size]: each rank's. */
static cake_err write_plan(const cake_options *o, const cake_comm *world, const cake_rank *me,
                           const cake_report_stage *all, const cake_plan *plans,
                           const cake_topology_rank *entries)
{
    census c = {.rank = me};
    bool input = o->input || o->prompts.n;
    cake_err err = o->write_topology ? cake_topology_io_write(o->write_topology, plans,
                                                              me->planning.n_replica, entries, all)
                                     : CAKE_OK;
    if (!err)
        err = input ? count_input(o, &c) : cake_prepare_check_model(o->model, NULL);
    if (!err) {
        cake_counted counted = summarize(o, &c);
        double *busy = cake_alloc((size_t)world->size, sizeof *busy);
        cake_replica_estimate *replicas = cake_alloc((size_t)me->planning.n_replica, sizeof *replicas);
        if (!input)
            cake_workload_guess(&me->planning, simulated_requests(me), CAKE_WORKLOAD_USUAL, &c.workload);
        cake_plan_output summary = {.world = world,
                                    .rank = me,
                                    .plans = plans,
                                    .ranks = all,
                                    .counted = input ? &counted : NULL,
                                    .workload = &c.workload,
                                    .replicas = replicas,
                                    .busy = busy};
        estimate(&summary, replicas, busy);
        print(o, &summary);
        free(replicas);
        free(busy);
        err = c.failed ? CAKE_ERR_REQUEST : CAKE_OK;
    }
    close_census(&c);
    return err;
}

/* Plans for the existing ranks. */
static cake_err plan_existing(const cake_options *options, const cake_comm *world, cake_rank *me)
{
    size_t n = world->rank ? 0 : (size_t)world->size;
    cake_report_stage *all = n ? cake_alloc(n, sizeof *all) : NULL;
    cake_topology_rank *entries = n ? cake_alloc(n, sizeof *entries) : NULL;
    cake_comm_gather(world, &me->report, all, sizeof *all);
    cake_topology_rank mine = me->topology_rank;
    if (!mine.where) {
        mine.set = cake_affinity_part(&me->affinity);
        mine.where = cake_cpuset_count(&mine.set) ? CAKE_WHERE_CPUS : CAKE_WHERE_ANY;
    }
    if (me->gpu.used)
        mine.device = CAKE_DEVICE_CUDA;
    cake_comm_gather(world, &mine, entries, sizeof *entries);
    cake_plan *plans = cake_gather_plans(world, me);
    cake_err err = cake_comm_agree(world, n ? write_plan(options, world, me, all, plans, entries) : CAKE_OK);
    cake_gather_free_plans(plans, me->planning.n_replica);
    free(all);
    free(entries);
    return err;
}

/* Plans for --ranks. */
static cake_err plan_others(const cake_options *options, const cake_comm *world, cake_rank *me)
{
    cake_whatif p;
    int64_t n_request = world->rank ? 0 : cake_expected_requests(options);
    cake_err err = cake_whatif_open((int)options->ranks, n_request, world, me, &p);
    cake_topology_rank *entries = cake_alloc((size_t)options->ranks, sizeof *entries); /* without cpus */
    if (!err)
        err = cake_comm_agree(
            world, world->rank ? CAKE_OK : write_plan(options, &p.world, me, p.ranks, p.plans, entries));
    free(entries);
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
        if (!options->ranks) /* else preview_others estimates it */
            from.n_request = cake_expected_requests(options);
    }
    err = cake_comm_agree(world, err);
    if (!err)
        err = (options->ranks ? cake_rank_open : cake_rank_plan)(&from, world, &me);
    if (!err)
        err = (options->ranks ? plan_others : plan_existing)(options, world, &me);
    cake_rank_close(&me);
    return err;
}
