/* SPDX-License-Identifier: Apache-2.0
 *
 * `stage`: in: a whole model, a number of ranks. Out: a bundle for each rank (docs/formats.md, "Bundles"). A
 * single process writes all bundles. Under mpirun each rank's bundle is written on its host; ranks that need
 * the same bundle form a group, in which one rank reads and broadcasts. Rank 0 reads the model's description
 * for all. So each byte of the model is read once, whatever the number of ranks.
 */
#include "bundle/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/size.h"
#include "bundle/locate.h"
#include "bundle/writer.h"
#include "formats/json.h"
#include "model/side_files.h"
#include "model/source.h"
#include "planner/bundle_plan.h"
#include "planner/calibrate.h"
#include "planner/consistency.h"
#include "planner/partition.h"
#include "planner/rank.h"
#include "planner/topology_io.h"

enum { CHUNK = 16 << 20 };
#define LARGEST_FILE ((size_t)1 << 30)

/* Statistics; summed over all ranks at the end. */
typedef struct counts {
    int64_t written, whole; /* bundles written, and found complete */
    int64_t read, kept;     /* bytes of tensors: read from the model, kept from an earlier attempt */
} counts;

typedef struct stage_state {
    const cake_stage_options *options;
    const cake_comm *world;
    cake_bundle_file *file; /* [n_file] files other than weights: rank 0 */
    cake_buf *text;         /* [n_file] their content, on ranks that need it */
    int n_file;
    cake_buf described;  /* the model's description (cake_source_describe) */
    cake_bundle *common; /* the same, parsed: without ranks and plan */
    cake_model *model;   /* opened with it */
    cake_source *source;
    cake_plan plan;
    cake_comm group; /* ranks that need the same bundle */
    bool writes;     /* this rank writes; else another one of the group writes to the same directory */
    char *chunk;     /* [CHUNK] */
    counts counts;
} stage_state;

/* ---- the model */

/* Adds a file that is not weights. */
static cake_err add_file(void *self, const char *name, cake_buf *text)
{
    stage_state *s = self;
    s->file = cake_grow(s->file, (size_t)s->n_file + 1, sizeof *s->file);
    s->text = cake_grow(s->text, (size_t)s->n_file + 1, sizeof *s->text);
    s->file[s->n_file] = (cake_bundle_file){.name = cake_copy(name, strlen(name)),
                                            .bytes = (int64_t)text->len,
                                            .sum = cake_crc(text->data, text->len)};
    s->text[s->n_file++] = *text;
    return CAKE_OK;
}

/* On rank 0: reads everything except weights, with the checks of a run. */
static cake_err read_model(stage_state *s)
{
    cake_model_options whole = {0};
    cake_model *model = NULL;
    cake_bundle *other = cake_bundle_writer_peek(s->options->model, 0);
    cake_err err = other ? CAKE_OK : cake_model_open(s->options->model, &whole, &model);
    if (!err && (other || cake_model_bundle(model)))
        err = cake_fail_usage("%s: holds bundles; stage from the whole model", s->options->model);
    cake_bundle_close(other);
    if (!err)
        err = cake_side_files_read(s->options->model, "bundle", add_file, s);
    if (!err)
        err = cake_source_describe(model, s->options->name, s->file, s->n_file, &s->described);
    cake_model_close(model);
    return err;
}

/* Broadcasts a text of the part's rank 0. */
static void bcast_text(const cake_comm *part, cake_buf *text)
{
    int64_t left = (int64_t)text->len;
    cake_comm_bcast(part, &left, sizeof left);
    if (part->rank) {
        cake_buf_free(text);
        char *data = cake_alloc((size_t)left + 1, 1);
        *text = (cake_buf){.data = data, .len = (size_t)left, .cap = (size_t)left + 1};
    }
    for (int64_t at = 0, n; at < left; at += n) {
        n = left - at < CHUNK ? left - at : CHUNK;
        cake_comm_bcast(part, text->data + at, (size_t)n);
    }
}

/* Whether all bundles have the file, or only rank 0's. */
static bool is_common(const stage_state *s, int file)
{
    cake_bundle other = {.file = s->common->file, .rank = 1};
    return cake_bundle_has_file(&other, file);
}

/* Broadcasts what rank 0 has read: the description, and the files that all bundles have. */
static cake_err bcast_model(stage_state *s)
{
    cake_bundle_hop all = {0, 0, 1};
    cake_buf head = {0};
    cake_err err = cake_comm_agree(s->world, s->world->rank ? CAKE_OK : read_model(s));
    if (err)
        return err;
    bcast_text(s->world, &s->described);
    cake_json *root = NULL;
    cake_fault fault;
    err = cake_json_parse(s->described.data, s->described.len, &root, &fault);
    CAKE_ASSERT(!err); /* rank 0 wrote it */
    all.count = (int)cake_json_int(cake_json_get(root, "layers"), 0);
    cake_json_free(root);
    cake_bundle_add_head(s->described.data, 1, &all, 1, 0, &head);
    err = cake_bundle_parse(head.data, head.len, s->options->model, &s->common);
    cake_buf_free(&head);
    if (err)
        return err;
    if (s->world->rank) {
        s->n_file = s->common->n_file;
        s->text = cake_alloc((size_t)s->n_file, sizeof *s->text);
    }
    for (int i = 0; i < s->n_file; i++)
        if (is_common(s, i))
            bcast_text(s->world, &s->text[i]);
    return CAKE_OK;
}

/* The content of a file that all bundles have. */
static const char *text_of(const stage_state *s, const char *name)
{
    for (int i = 0; i < s->common->n_file; i++)
        if (!strcmp(s->common->file[i].name, name))
            return s->text[i].data;
    return "";
}

/* ---- the plan */

/* Reuses the plan of an earlier attempt on rank 0's host for the same model and ranks: newly measured rates
 * could change it slightly, and then no existing file could be kept. */
static bool reuse_plan(const stage_state *s, int n_rank, cake_plan *plan)
{
    cake_bundle *earlier = cake_bundle_writer_peek(s->options->directory, 0);
    bool same = earlier && earlier->n_rank == n_rank;
    if (same) {
        cake_buf head = {0};
        cake_bundle *wanted = NULL;
        cake_bundle_add_head(s->described.data, n_rank, earlier->hop, earlier->n_hop, 0, &head);
        same = !cake_bundle_parse(head.data, head.len, "", &wanted) && wanted->identity == earlier->identity;
        cake_bundle_close(wanted);
        cake_buf_free(&head);
    }
    if (same) {
        *plan = (cake_plan){.hop = cake_alloc((size_t)earlier->n_hop, sizeof *plan->hop),
                            .n_hop = earlier->n_hop,
                            .n_rank = n_rank};
        for (int i = 0; i < plan->n_hop; i++)
            plan->hop[i] = (cake_hop){earlier->hop[i].rank, earlier->hop[i].first, earlier->hop[i].count};
    }
    cake_bundle_close(earlier);
    return same;
}

/* Plans for n_rank equal ranks with enough memory. */
static void plan_even(const stage_state *s, int n_rank, cake_plan *plan)
{
    cake_cluster cluster = {.balance = CAKE_COST_BALANCE};
    cake_plan_input input = {.model = s->model,
                             .kernels = cake_kernels_at(cake_kernels_exact()),
                             .kv_dtype = cake_rank_kv_dtype("auto", cake_model_dtype(s->model))};
    cake_planning_set_layers(&cluster, &input);
    cake_partition_input in = {.n_rank = n_rank,
                               .n_layer = s->common->n_layer,
                               .layer = input.layers.cost,
                               .root = input.layers.root};
    bool fits = cake_plan_partition(&in, plan);
    CAKE_ASSERT(fits);
    cake_plan_input_free(&input);
}

/* Plans for the ranks of this job, with their measured speed and memory. All call. */
static cake_err plan_measured(const stage_state *s, cake_plan *plan)
{
    cake_rank me = {0};
    cake_rank_options options = s->options->rank;
    options.open.config = text_of(s, "config.json");
    options.open.index = s->common;
    options.n_replica = 1;
    cake_err err = cake_rank_open(&options, s->world, &me);
    if (!err) {
        cake_rank_partition(s->world, 1, &me);
        *plan = me.planning.plan;
        me.planning.plan = (cake_plan){0};
    }
    cake_rank_close(&me);
    return err;
}

static void bcast_plan(const stage_state *s, cake_plan *plan)
{
    cake_comm_bcast(s->world, &plan->n_rank, sizeof plan->n_rank);
    cake_comm_bcast(s->world, &plan->n_hop, sizeof plan->n_hop);
    if (s->world->rank)
        plan->hop = cake_alloc((size_t)plan->n_hop, sizeof *plan->hop);
    cake_comm_bcast(s->world, plan->hop, (size_t)plan->n_hop * sizeof *plan->hop);
}

static cake_err check_ranks(const stage_state *s, int n_rank, int n_layer)
{
    int size = s->world->size;
    if (n_rank > n_layer)
        return cake_fail_usage(
            "%d ranks for a model of %d layer%s: each rank needs at least one; stage it for %d or fewer",
            n_rank, n_layer, n_layer == 1 ? "" : "s", n_layer);
    if (size > 1 && size % n_rank)
        return cake_fail_usage("--ranks %d: the %d ranks of this job cannot each have a bundle; "
                               "start it with -np %d or another multiple, or without mpirun",
                               n_rank, size, n_rank);
    return CAKE_OK;
}

/* Makes the plan, the same on all ranks. */
static cake_err make_plan(stage_state *s)
{
    const cake_stage_options *o = s->options;
    int n_layer = s->common->n_layer, size = s->world->size;
    int n_rank = o->n_rank ? o->n_rank : size;
    const char *topology = o->rank.topology_file.path;
    cake_err err = CAKE_OK;
    bool reused = false;
    if (topology && size > 1 && size == n_rank) {
        cake_topology_read_result file;
        err = cake_topology_io_read(&o->rank.topology_file, s->world, n_layer, &file);
        if (err)
            return err;
        s->plan = file.plan;
        if (file.n_replica == 1)
            return CAKE_OK;
        return s->world->rank
                   ? CAKE_ERR_USAGE
                   : cake_fail_usage("%s has %d replicas: bundles are made for one, leave out the others",
                                     topology, file.n_replica);
    }
    if (!s->world->rank && topology)
        err = cake_topology_io_read_plan(&o->rank.topology_file, size == 1 ? o->n_rank : n_rank, n_layer,
                                         &s->plan);
    else if (!s->world->rank && !(err = check_ranks(s, n_rank, n_layer)))
        reused = reuse_plan(s, n_rank, &s->plan);
    if (!s->world->rank && !err && topology)
        err = check_ranks(s, s->plan.n_rank, n_layer);
    err = cake_comm_agree(s->world, err);
    cake_comm_bcast(s->world, &reused, sizeof reused);
    if (err)
        return err;
    if (!topology && !reused && size > 1 && size == n_rank)
        return plan_measured(s, &s->plan);
    if (!s->world->rank && !topology && !reused)
        plan_even(s, n_rank, &s->plan);
    bcast_plan(s, &s->plan);
    return CAKE_OK;
}

/* ---- writers */

/* If several ranks of a group see the same directory (on one host or a shared file system), the first one
 * writes. */
static cake_err choose_writers(stage_state *s)
{
    int64_t token = (int64_t)time(NULL) << 20 ^ getpid();
    cake_buf name = {0};
    struct stat st;
    s->writes = true;
    if (s->group.size == 1)
        return CAKE_OK;
    cake_comm_bcast(&s->group, &token, sizeof token);
    cake_buf_addf(&name, "%s/.stage-%llx-%d", s->options->directory, (unsigned long long)token,
                  s->group.rank);
    FILE *mark = fopen(name.data, "w");
    cake_err err =
        mark ? CAKE_OK : cake_fail("bundle", "%s: cannot be written: %s", name.data, strerror(errno));
    if (mark)
        fclose(mark);
    err = cake_comm_agree(&s->group, err);
    for (int r = 0; r < s->group.rank && !err && s->writes; r++) {
        cake_buf other = {0};
        cake_buf_addf(&other, "%s/.stage-%llx-%d", s->options->directory, (unsigned long long)token, r);
        s->writes = stat(other.data, &st) != 0;
        cake_buf_free(&other);
    }
    cake_comm_agree(&s->group, CAKE_OK); /* all have looked */
    unlink(name.data);
    cake_buf_free(&name);
    return err;
}

/* ---- the bytes */

/* Reads a tensor, broadcasts it in the group, and writes it to `to`. All of the group call; a writer that
 * failed still takes part, so that the others can finish. *err is this rank's. */
static cake_err copy_tensor(stage_state *s, cake_bundle_writer *to, int tensor, cake_err *err)
{
    const cake_tensor *t = &s->common->tensor[tensor];
    int64_t bytes = t->end - t->begin;
    for (int64_t at = 0; at < bytes; at += CHUNK) {
        int64_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
        int read =
            s->group.rank ? CAKE_OK : (int)cake_source_read(s->source, tensor, at, s->chunk, (size_t)n);
        cake_comm_bcast(&s->group, &read, sizeof read);
        if (read)
            return (cake_err)read;
        s->counts.read += s->group.rank ? 0 : n;
        cake_comm_bcast(&s->group, s->chunk, (size_t)n);
        if (to && !*err)
            *err = cake_bundle_writer_write(to, tensor, at, s->chunk, (size_t)n);
    }
    return CAKE_OK;
}

static cake_err copy_tensors(stage_state *s, const cake_bundle *wanted, cake_bundle_writer *to, cake_err err)
{
    for (int i = 0; i < wanted->n_tensor; i++) {
        if (!wanted->held[i])
            continue;
        bool needs = to && !err && !cake_bundle_writer_whole(to) && !cake_bundle_writer_has(to, i);
        if (cake_comm_allreduce_min(&s->group, !needs))
            continue;
        cake_err read = copy_tensor(s, needs ? to : NULL, i, &err);
        if (read)
            return read;
    }
    return err;
}

/* Makes a rank's bundle (the tensors it holds) and its head. */
static cake_err make_bundle(const stage_state *s, int rank, cake_buf *head, cake_bundle **out)
{
    cake_range *range = cake_alloc((size_t)s->plan.n_hop, sizeof *range);
    cake_bundle_hop *hop = cake_alloc((size_t)s->plan.n_hop, sizeof *hop);
    cake_weight_set set = {.range = range, .embed = rank == 0, .head = rank == 0};
    for (int i = 0; i < s->plan.n_hop; i++) {
        const cake_hop *h = &s->plan.hop[i];
        hop[i] = (cake_bundle_hop){h->rank, h->first, h->count};
        if (h->rank == rank)
            range[set.n_range++] = (cake_range){h->first, h->count};
    }
    cake_bundle_add_head(s->described.data, s->plan.n_rank, hop, s->plan.n_hop, rank, head);
    cake_err err = cake_bundle_parse(head->data, head->len, s->options->model, out);
    if (!err)
        cake_source_mark(s->model, &set, (*out)->held);
    free(range);
    free(hop);
    return err;
}

/* All of the group call. */
static cake_err stage_one(stage_state *s, int rank)
{
    cake_buf head = {0};
    cake_bundle *wanted = NULL;
    cake_bundle_writer *to = NULL;
    cake_err err = make_bundle(s, rank, &head, &wanted);
    CAKE_ASSERT(!err);
    if (s->writes)
        err = cake_bundle_writer_open(s->options->directory, wanted, head.data, &to);
    bool whole = to && cake_bundle_writer_whole(to);
    for (int i = 0; i < s->n_file && !rank; i++)
        if (!is_common(s, i))
            bcast_text(&s->group, &s->text[i]);
    err = copy_tensors(s, wanted, to, err);
    if (to && !err && !whole)
        err = cake_bundle_writer_finish(to, s->text);
    if (to && !err) {
        s->counts.written += !whole;
        s->counts.whole += whole;
        s->counts.kept += whole ? 0 : cake_bundle_writer_kept(to);
        cake_log(CAKE_DEBUG, "bundle", "%s/rank-%04d: %s", s->options->directory, rank,
                 whole ? "already complete" : "written");
    }
    cake_bundle_writer_close(to);
    cake_bundle_close(wanted);
    cake_buf_free(&head);
    return err;
}

static const char *name_of(const void *self, int i)
{
    const stage_state *s = self;
    return s->common->tensor[i].name;
}

/* Checks that all readers have the same weights, by a sample of each tensor. */
static cake_err compare_readers(stage_state *s)
{
    int n = s->common->n_tensor;
    int64_t *sums = cake_alloc((size_t)n, sizeof *sums);
    cake_err err = CAKE_OK;
    for (int i = 0; i < n && !err; i++) {
        sums[i] = CAKE_UNKNOWN;
        if (s->world->size > 1 && !s->group.rank)
            err = cake_source_fingerprint(s->source, i, &sums[i]);
    }
    err = cake_comm_agree(s->world, err);
    if (!err)
        err = cake_consistency_tensors(s->world, sums, n, name_of, s);
    free(sums);
    return err;
}

/* ---- the command */

/* Checks that the output directory is not itself a model. */
static cake_err check_directory(const cake_stage_options *o)
{
    static const char *const names[] = {"config.json", CAKE_BUNDLE_NAME};
    cake_err err = CAKE_OK;
    if (cake_file_same(o->model, o->directory))
        return cake_fail_usage("both -m and -d are %s: bundles need a directory of their own", o->directory);
    for (size_t i = 0; i < sizeof names / sizeof *names && !err; i++) {
        cake_buf path = {0};
        cake_buf_addf(&path, "%s/%s", o->directory, names[i]);
        if (!access(path.data, F_OK))
            err = cake_fail_usage("-d %s: has a %s, so it is a model%s; give a directory of the bundles' own",
                                  o->directory, names[i], i ? "'s bundle" : "");
        cake_buf_free(&path);
    }
    return err;
}

static void log_counts(stage_state *s)
{
    const cake_comm *world = s->world;
    counts *all = cake_alloc((size_t)world->size, sizeof *all), sum = {0};
    cake_buf layers = {0};
    cake_comm_gather(world, &s->counts, all, sizeof *all);
    for (int r = 0; r < world->size && !world->rank; r++) {
        sum.written += all[r].written;
        sum.whole += all[r].whole;
        sum.read += all[r].read;
        sum.kept += all[r].kept;
    }
    cake_bundle_plan_layers(&s->plan, &layers);
    if (!world->rank)
        cake_log(CAKE_INFO, "bundle",
                 "%s: bundles for %d rank%s (layers %s): "
                 "%lld written, %lld already complete; %s read from the model, %s kept from before",
                 s->options->directory, s->plan.n_rank, s->plan.n_rank == 1 ? "" : "s", layers.data,
                 (long long)sum.written, (long long)sum.whole, cake_size_text(sum.read).s,
                 cake_size_text(sum.kept).s);
    int old = world->rank ? -1 : cake_bundle_writer_beyond(s->options->directory, s->plan.n_rank);
    if (old >= 0)
        cake_log(CAKE_WARN, "bundle",
                 "%s/rank-%04d and later: left by an earlier stage for more ranks; no run of %d uses them, "
                 "remove them",
                 s->options->directory, old, s->plan.n_rank);
    cake_buf_free(&layers);
    free(all);
}

static cake_err stage_all(stage_state *s)
{
    cake_err err = CAKE_OK;
    if (s->world->size > 1)
        return stage_one(s, s->world->rank % s->plan.n_rank);
    for (int r = 0; r < s->plan.n_rank && !err; r++)
        err = stage_one(s, r);
    return err;
}

static void close_stage_state(stage_state *s)
{
    for (int i = 0; i < s->n_file; i++) {
        if (s->file)
            free(s->file[i].name);
        cake_buf_free(&s->text[i]);
    }
    free(s->file);
    free(s->text);
    free(s->chunk);
    cake_source_close(s->source);
    cake_model_close(s->model);
    cake_bundle_close(s->common);
    cake_plan_free(&s->plan);
    cake_buf_free(&s->described);
    cake_comm_free(&s->group);
}

cake_err cake_stage(const cake_stage_options *options, const cake_comm *world)
{
    stage_state s = {.options = options, .world = world, .chunk = cake_alloc(CHUNK, 1)};
    cake_err err = cake_comm_agree(world, world->rank ? CAKE_OK : check_directory(options));
    if (!err)
        err = bcast_model(&s);
    if (!err) {
        cake_model_options by_index = {.config = text_of(&s, "config.json"), .index = s.common};
        err = cake_comm_agree(world, cake_model_open(options->model, &by_index, &s.model));
    }
    if (!err)
        err = make_plan(&s);
    if (!err) {
        s.source = cake_source_open(options->model, s.common);
        cake_comm_split(world, world->rank % s.plan.n_rank, &s.group);
        err = cake_comm_agree(world, cake_bundle_writer_make(options->directory));
    }
    if (!err)
        err = compare_readers(&s);
    if (!err)
        err = cake_comm_agree(world, choose_writers(&s));
    if (!err)
        err = cake_comm_agree(world, stage_all(&s));
    if (!err)
        log_counts(&s);
    close_stage_state(&s);
    return err;
}
