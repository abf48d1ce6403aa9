/* SPDX-License-Identifier: Apache-2.0
 *
 * `plan`: in: what `run` would get. Out, on standard output: who would own what, and what the input holds. Every
 * check is made that needs no weights; nothing is computed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "run/layout.h"
#include "run/prefixes.h"
#include "run/run.h"
#include "run/schedule.h"
#include "run/stage.h"
#include "run/survey.h"
#include "run/window.h"

enum { COMPLAINTS = 10, PAGE_BYTES = CAKE_PAGE * sizeof(int32_t) };

/* Prompts whose pages the KV cache would still have, the latest ones. */
typedef struct remembered {
    cake_prefixes *prefixes;
    int32_t **chain; /* ring [cap]: n of them from `first` on, [length] each */
    int *length;
    int cap, first, n;
    int32_t most; /* pages, of all together */
} remembered;

/* What the input holds. */
typedef struct census {
    const cake_stage *stage;
    int32_t *length; /* [n] tokens of each prompt that has any */
    int64_t n, cap, total;
    int64_t requests, failed, too_long, outgrow;
    remembered past;
    int64_t shared; /* tokens that other prompts begin with, too */
} census;

/* The first faults are told one by one: a run would put them into its results. */
static void complain(census *c, const cake_request *r, const char *message)
{
    if (c->failed++ < COMPLAINTS)
        cake_log(CAKE_WARN, "prompt", "request %lld: %s", (long long)r->index, message);
}

/* Whether prompt and answer at its longest are more than the pages of some KV class hold. */
static bool outgrows(const cake_stage *stage, const cake_request *r, int64_t n_tok)
{
    int64_t most = r->params.max_tokens == CAKE_UNSET ? stage->context : n_tok + r->params.max_tokens;
    int length = (int)(most < stage->context ? most : stage->context);
    for (int class = 0; class < stage->shape.n_class; class ++)
        if (cake_pages_held(stage->shape.window[class], length, CAKE_PAGE) > stage->shape.n_page[class])
            return true;
    return false;
}

static void forget(remembered *p)
{
    cake_prefixes_leave(p->prefixes, p->chain[p->first], p->length[p->first]);
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
    while (p->n > 1 && cake_prefixes_count(p->prefixes) > p->most)
        forget(p);
}

/* The tokens of whole pages, which others may share. In any thread. */
static void compose(void *self, const cake_request *r, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out)
{
    const census *c = self;
    (void)text;
    if (!r->err && ids->len && ids->len < (size_t)c->stage->context)
        cake_buf_add(out, (const char *)ids->id, (size_t)cake_schedule_chain((int)ids->len) * PAGE_BYTES);
}

/* Pages that an earlier prompt begins with are not computed again, but for those whose scores are wanted. */
static void share(census *c, const cake_request *r, int n_tok, const char *tokens, int n)
{
    const cake_params *params = &r->params;
    bool scored = params->echo == 1 && params->logprobs != CAKE_UNSET;
    if (!n || (params->max_tokens == 0 && !scored))
        return;
    int32_t *ids = cake_alloc((size_t)n, PAGE_BYTES), *chain = cake_alloc((size_t)n, sizeof *chain);
    memcpy(ids, tokens, (size_t)n * PAGE_BYTES);
    cake_prefixes_enter(c->past.prefixes, cake_window_salt(cake_model_config(c->stage->model), n_tok), ids, n,
                        chain);
    free(ids);
    for (int i = 0; i < n && !scored && cake_prefixes_users(c->past.prefixes, chain[i]) > 1; i++)
        c->shared += CAKE_PAGE;
    remember(&c->past, chain, n);
}

static cake_err take(void *self, const cake_request *r, int64_t n_tok, const char *composed, size_t len)
{
    census *c = self;
    c->requests++;
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
    } else if (n_tok >= c->stage->context) {
        c->too_long++;
        snprintf(message, sizeof message, "a prompt of %lld tokens does not fit the context of %d",
                 (long long)n_tok, c->stage->context);
        complain(c, r, message);
    } else {
        c->outgrow += outgrows(c->stage, r, n_tok);
        share(c, r, (int)n_tok, composed, (int)(len / PAGE_BYTES));
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

static void print_census(census *c)
{
    if (c->n) /* no memory otherwise, which qsort may not be given */
        qsort(c->length, (size_t)c->n, sizeof *c->length, ascending);
    printf("requests  %lld, of which %lld would fail", (long long)c->requests, (long long)c->failed);
    if (c->too_long)
        printf(", %lld of them since they do not fit the context of %d", (long long)c->too_long,
               c->stage->context);
    printf("\n");
    if (c->n)
        printf("tokens    of a prompt: min %d, median %d, p99 %d, max %d; total %lld\n", c->length[0],
               quantile(c, 50), quantile(c, 99), c->length[c->n - 1], (long long)c->total);
    if (c->shared)
        printf(
            "          %lld of them (%.1f %%) begin a prompt as they begin another, and are computed once\n",
            (long long)c->shared, 100.0 * (double)c->shared / (double)c->total);
    if (c->outgrow)
        printf(
            "          %lld may outgrow the KV cache, alone, if their answers are as long as they may be\n",
            (long long)c->outgrow);
}

static void print_stage(const cake_report_stage *r, int rank, const cake_plan *plan)
{
    cake_buf layers = {0};
    cake_report_layers(plan, rank, &layers);
    printf("%-5d %-20s %-14s %7d  %-10s %10s %10s\n", rank, r->host, r->cpus, r->threads, layers.data,
           cake_size_text(r->weights_bytes), cake_size_text(r->kv_bytes));
    cake_buf_free(&layers);
}

static void print_stages(const cake_world *world, const cake_stage *stage, const cake_report_stage *all)
{
    const cake_schedule_shape *s = &stage->shape;
    printf("%-5s %-20s %-14s %7s  %-10s %10s %10s\n", "rank", "host", "cpus", "threads", "layers", "weights",
           "KV");
    for (int rank = 0; rank < world->size; rank++)
        print_stage(&all[rank], rank, &stage->plan);
    printf("\nwaves     %d of up to %d tokens, %d sequences each; instruction set %s, %d rank%s\n", s->n_lane,
           s->max_tok, s->lane_seqs, stage->kernels->name, world->size, world->size == 1 ? "" : "s");
    for (int class = 0; class < s->n_class; class ++) {
        printf("KV        %d pages of %d tokens", s->n_page[class], CAKE_PAGE);
        if (s->window[class])
            printf(" for layers that see %d tokens", s->window[class]);
        printf("\n");
    }
    const cake_config *config = cake_model_config(stage->model);
    cake_slice_shape whole = {.count = config->n_layer};
    if (s->states)
        printf("states    %d, one a sequence, and %d for beginnings of prompts, each of %s in all layers "
               "together\n",
               s->n_lane * s->lane_seqs, s->n_saved,
               cake_size_text((int64_t)cake_slice_state_bytes(config, &whole)));
}

/* The prompts are tokenized without a limit, so that those that do not fit are counted too. */
static cake_err count_input(const cake_options *o, const cake_stage *stage)
{
    const cake_config *config = cake_model_config(stage->model);
    census c = {.stage = stage, .past = {.prefixes = cake_prefixes_open()}};
    for (int class = 0; class < stage->shape.n_class; class ++)
        if (stage->shape.n_page[class] > c.past.most)
            c.past.most = stage->shape.n_page[class];
    cake_surveyor surveyor = {.self = &c, .compose = compose, .take = take};
    cake_feed feed;
    cake_err err = cake_feed_open(o, &config->defaults, 0, config->n_vocab, &feed);
    if (!err)
        err = cake_survey_run(&feed, cake_options_threads(o, stage->machine.cores_mine), &surveyor);
    cake_feed_close(&feed);
    if (!err)
        print_census(&c);
    while (c.past.n)
        forget(&c.past);
    free(c.past.chain);
    free(c.past.length);
    cake_prefixes_close(c.past.prefixes);
    free(c.length);
    return err ? err : c.failed ? CAKE_ERR_REQUEST : CAKE_OK;
}

/* On rank 0. all, said [world->size]: of each rank. */
static cake_err tell(const cake_options *o, const cake_world *world, const cake_stage *stage,
                     const cake_report_stage *all, const cake_topology_rank *said)
{
    print_stages(world, stage, all);
    cake_err err = o->write_topology ? cake_layout_write(o, &stage->plan, said, all) : CAKE_OK;
    return !err && (o->input || o->prompts.n) ? count_input(o, stage) : err;
}

cake_err cake_preview(const cake_options *options, const cake_world *world)
{
    cake_stage stage = {0};
    cake_err err = cake_world_agree(world, world->rank ? CAKE_OK : cake_layout_check(options));
    if (!err)
        err = cake_stage_plan(options, world, &stage);
    if (!err) {
        size_t n = world->rank ? 0 : (size_t)world->size;
        cake_report_stage *all = n ? cake_alloc(n, sizeof *all) : NULL;
        cake_topology_rank *said = n ? cake_alloc(n, sizeof *said) : NULL;
        cake_world_gather(world, &stage.report, all, sizeof *all);
        cake_world_gather(world, &stage.said, said, sizeof *said);
        err = cake_world_agree(world, n ? tell(options, world, &stage, all, said) : CAKE_OK);
        free(all);
        free(said);
    }
    cake_stage_close(&stage);
    return err;
}
