/* SPDX-License-Identifier: Apache-2.0
 *
 * In: names of measurements. Out: results as text, CSV or JSON.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/version.h"
#include "bench/cost.h"
#include "bench/shapes.h"
#include "formats/json.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "options/check_paths.h"
#include "placement/machine.h"
#include "planner/rank.h"

#define MIN_SECONDS 0.05 /* of a try */
#define TRIES       5    /* the fastest one counts: noise only slows down */
#define MAX_RESULTS 64   /* of a measurement, in addition to one for each rank */

typedef struct cake_result {
    char name[40], isa[64], unit[12], bound[24], host[64];
    int rank, peer, threads;
    double value, share;
} cake_result;

static const cake_case *const suites[] = {cake_cases_peak,       cake_cases_linear,  cake_cases_attend,
                                          cake_cases_experts,    cake_cases_delta,   cake_cases_rows,
                                          cake_cases_scores,     cake_cases_links,   cake_cases_text,
                                          cake_cases_throughput, cake_cases_pipeline};

enum { N_SUITE = sizeof suites / sizeof *suites };

void cake_bench_report(cake_bench *bench, const char *name, int threads, int peer, double value,
                       const char *unit, double share, const char *bound)
{
    CAKE_ASSERT(bench->n < MAX_RESULTS + bench->world->size);
    cake_result *r = &bench->result[bench->n++];
    *r = (cake_result){
        .rank = bench->world->rank, .peer = peer, .threads = threads, .value = value, .share = share};
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->isa, sizeof r->isa, "%s", bench->kernels->name);
    snprintf(r->unit, sizeof r->unit, "%s", unit);
    snprintf(r->bound, sizeof r->bound, "%s", bound ? bound : "");
    snprintf(r->host, sizeof r->host, "%s", bench->world->host);
}

cake_err cake_bench_open_kernels(cake_bench *bench, bool always)
{
    static char why[256];
    const cake_options *o = bench->options;
    const cake_kernels *kernels;
    cake_buf text = {0};
    if (!always && strcmp(o->device, "cuda") != 0)
        return CAKE_OK;
    const int n = strcmp(o->device, "cpu") ? cake_device_count(&text) : 0;
    snprintf(why, sizeof why, "a GPU: %s", text.len ? text.data : "--device cpu leaves them out");
    cake_buf_free(&text);
    bench->lacks = n ? NULL : why;
    if (!n)
        return CAKE_END;
    const int i = bench->world->local_rank % n;
    cake_err err = cake_device_open(i, i, cake_gpu_launch_of(o->gpu_launch), &kernels);
    if (err)
        return err;
    bench->of_cpu = bench->kernels;
    bench->threads_of_cpu = bench->threads;
    bench->kernels = kernels;
    bench->threads = 1;
    return CAKE_OK;
}

void cake_bench_close_kernels(cake_bench *bench)
{
    if (!bench->of_cpu)
        return;
    cake_device_close();
    bench->kernels = bench->of_cpu;
    bench->threads = bench->threads_of_cpu;
    bench->of_cpu = NULL;
}

typedef struct repeated {
    void (*work)(const cake_exec *exec, void *arg);
    void *arg;
    int times;
    const cake_memory *memory; /* of a GPU, or NULL */
} repeated;

static void repeat(const cake_exec *exec, void *arg)
{
    const repeated *r = arg;
    for (int i = 0; i < r->times; i++)
        r->work(exec, r->arg);
    if (!r->memory)
        return;
    r->memory->record_event(0);
    while (!r->memory->event_done(0))
        ;
}

double cake_bench_time(const cake_bench *bench, int threads, void (*work)(const cake_exec *exec, void *arg),
                       void *arg)
{
    repeated r = {work, arg, 1, bench->kernels->memory};
    double best = 1e30;
    for (int tries = 0; tries < TRIES;) {
        double start = cake_clock_now();
        cake_exec_run(threads, repeat, &r);
        double seconds = cake_clock_now() - start;
        if (bench->smoke)
            return seconds;
        if (seconds < MIN_SECONDS && r.times < 1 << 24) {
            r.times *= 2;
            continue;
        }
        best = seconds / r.times < best ? seconds / r.times : best;
        tries++;
    }
    return best;
}

int cake_bench_next_threads(const cake_bench *bench, int threads)
{
    int more = 2 * threads < bench->threads ? 2 * threads : bench->threads;
    return threads < bench->threads && !bench->smoke ? more : 0;
}

/* A word selects the measurement of that name, or all names that begin with it and a dot; "all": every
 * one. */
static bool name_matches(const char *word, const char *name)
{
    size_t len = strlen(word);
    return !strcmp(word, "all") || (!strncmp(word, name, len) && (!name[len] || name[len] == '.'));
}

static bool is_selected(const cake_options *o, const char *name)
{
    for (int i = 0; i < o->operands.n; i++)
        if (name_matches(o->operands.text[i], name))
            return true;
    return false;
}

static cake_err write_text(const char *name, const char *mode, const char *text, size_t len)
{
    FILE *file = fopen(name, mode);
    bool fine = file && (!len || fwrite(text, 1, len, file) == len);
    fine = file && !fclose(file) && fine;
    return fine ? CAKE_OK : cake_fail("bench", "%s cannot be written: %s", name, strerror(errno));
}

static cake_err check_names(const cake_options *o)
{
    for (int i = 0; i < o->operands.n; i++) {
        bool known = false;
        for (int g = 0; g < N_SUITE; g++)
            for (const cake_case *c = suites[g]; c->name; c++)
                known = known || name_matches(o->operands.text[i], c->name);
        if (!known)
            return cake_fail_usage("\"%s\" is not a measurement; `cake-mpi bench` lists them",
                                   o->operands.text[i]);
    }
    return CAKE_OK;
}

/* Refuses options without a measurement that uses them. */
static cake_err check_uses(const cake_options *o)
{
    const struct {
        const char *option, *of[2];
        bool given;
    } uses[] = {{"--batch", {"throughput.load", "pipeline.modelled"}, o->batch},
                {"--flops", {"pipeline.modelled", NULL}, o->flops},
                {"--bandwidth", {"pipeline.modelled", NULL}, o->bandwidth}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (uses[i].given && !is_selected(o, uses[i].of[0]) &&
            !(uses[i].of[1] && is_selected(o, uses[i].of[1])))
            return cake_fail_usage("%s is an option of %s%s%s, which is not measured here", uses[i].option,
                                   uses[i].of[0], uses[i].of[1] ? " and " : "",
                                   uses[i].of[1] ? uses[i].of[1] : "");
    return CAKE_OK;
}

static cake_err check_options(const cake_options *o, const cake_comm *world)
{
    cost_load load;
    struct stat info;
    if (o->model && o->shape)
        return cake_fail_usage("both -m and --shape: a benchmark runs one model");
    cake_buf config = {0};
    bool known = !o->shape || shape_config(o->shape, o->layers, &config);
    cake_buf_free(&config);
    if (!known)
        return CAKE_ERR_USAGE;
    if (o->model && o->layers)
        return cake_fail_usage("both -m and --layers: only a --shape can be cut");
    if (o->model && stat(o->model, &info))
        return cake_fail("model", "%s: cannot be opened: %s", o->model, strerror(errno));
    if (o->batch && !cost_load_read(o->batch, &load))
        return cake_fail_usage("--batch: \"%s\" is not prompts x tokens + generated, like 32x128+32",
                               o->batch);
    if (o->stages && o->stages != world->size)
        return cake_fail_usage(
            "--stages %lld: a stage is a rank, and there %s %d; start it with mpirun -np %lld",
            (long long)o->stages, world->size == 1 ? "is" : "are", world->size, (long long)o->stages);
    cake_err err = check_names(o);
    if (!err)
        err = check_uses(o);
    if (!err)
        err = cake_paths_check(o);
    if (!err && o->output && o->operands.n) /* fail before measuring for hours */
        err = write_text(o->output, "a", "", 0);
    return err;
}

static void list_names(void)
{
    printf("cake-mpi bench NAME...: a name, or the part of it before a dot; all: every one.\n\n");
    for (int g = 0; g < N_SUITE; g++)
        for (const cake_case *c = suites[g]; c->name; c++)
            printf("  %-24s %s\n", c->name, c->what);
    cake_buf shapes = {0};
    shape_list(&shapes);
    printf("\n--shape NAME: %s.\n", shapes.data);
    cake_buf_free(&shapes);
}

static void print_text(const cake_result *r, const cake_bench *b)
{
    printf("%-33s %-10s %3d thread%c %10.4g %-9s", r->name, r->isa, r->threads, r->threads == 1 ? ' ' : 's',
           r->value, r->unit);
    if (r->share > 0)
        printf("%5.1f %% of %s", 100 * r->share, r->bound);
    if (b->world->size > 1)
        printf("  rank %d", r->rank);
    if (r->peer >= 0)
        printf(" and %d", r->peer);
    if (b->world->size > 1)
        printf(" on %s", r->host);
    printf("\n");
}

static void add_csv(cake_buf *out, const cake_result *r, const cake_bench *b)
{
    cake_buf_addf(out, "%s,%s,%s,%d,%d,", r->name, r->isa, r->host, b->world->size, r->rank);
    if (r->peer >= 0)
        cake_buf_addf(out, "%d", r->peer);
    cake_buf_addf(out, ",%d,%.9g,%s,", r->threads, r->value, r->unit);
    if (r->share > 0)
        cake_buf_addf(out, "%.4f", r->share);
    cake_buf_addf(out, ",%s,%s,%s,%s,%s\n", r->bound, b->options->shape ? b->options->shape : "",
                  b->options->dtype, b->options->batch ? b->options->batch : "", cake_version());
}

static void add_json(cake_buf *out, const cake_result *r, const cake_bench *b)
{
    cake_buf_addf(out, "{\"name\": \"%s\", \"isa\": \"%s\", \"host\": ", r->name, b->kernels->name);
    cake_json_add_text(out, r->host, strlen(r->host));
    cake_buf_addf(out, ", \"ranks\": %d, \"rank\": %d, ", b->world->size, r->rank);
    if (r->peer >= 0)
        cake_buf_addf(out, "\"peer\": %d, ", r->peer);
    cake_buf_addf(out, "\"threads\": %d, \"value\": %.9g, \"unit\": \"%s\"", r->threads, r->value, r->unit);
    if (r->share > 0)
        cake_buf_addf(out, ", \"share\": %.4f, \"bound\": \"%s\"", r->share, r->bound);
    if (b->options->shape)
        cake_json_put_text(out, ", \"shape\": ", b->options->shape);
    if (b->options->batch)
        cake_json_put_text(out, ", \"batch\": ", b->options->batch);
    cake_json_put_text(out, ", \"dtype\": ", b->options->dtype);
    cake_json_put_text(out, ", \"version\": ", cake_version());
    cake_buf_adds(out, "}\n");
}

static cake_err write_file(const char *name, const cake_result *all, int n, const cake_bench *b)
{
    size_t len = strlen(name);
    bool csv = len > 4 && !strcmp(name + len - 4, ".csv");
    cake_buf out = {0};
    if (csv)
        cake_buf_adds(
            &out, "name,isa,host,ranks,rank,peer,threads,value,unit,share,bound,shape,dtype,batch,version\n");
    for (int i = 0; i < n; i++)
        (csv ? add_csv : add_json)(&out, &all[i], b);
    cake_err err = write_text(name, "w", out.data, out.len);
    cake_buf_free(&out);
    return err;
}

/* Results of all ranks so far; on rank 0. */
typedef struct results {
    cake_result *result;
    int n;
} results;

/* Adds every rank's results of one measurement, rank after rank. */
static void gather_results(const cake_bench *b, results *f)
{
    const cake_comm *world = b->world;
    size_t capacity = (size_t)(MAX_RESULTS + world->size),
           each = sizeof(int64_t) + capacity * sizeof *f->result;
    char *mine = cake_alloc(1, each), *every = world->rank ? NULL : cake_alloc((size_t)world->size, each);
    int64_t count = b->n;
    memcpy(mine, &count, sizeof count);
    memcpy(mine + sizeof count, b->result, (size_t)b->n * sizeof *f->result);
    cake_comm_gather(world, mine, every, each);
    for (int r = 0; every && r < world->size; r++) {
        const char *from = every + (size_t)r * each;
        memcpy(&count, from, sizeof count);
        f->result = cake_grow(f->result, (size_t)f->n + (size_t)count + 1, sizeof *f->result);
        memcpy(f->result + f->n, from + sizeof count, (size_t)count * sizeof *f->result);
        f->n += (int)count;
    }
    free(every);
    free(mine);
}

static cake_err run_cases(const cake_options *o, cake_bench *b, results *f)
{
    cake_err err = CAKE_OK;
    for (int g = 0; g < N_SUITE; g++)
        for (const cake_case *c = suites[g]; c->name && !err; c++) {
            if (!is_selected(o, c->name))
                continue;
            int before = f->n;
            b->n = 0;
            b->lacks = "an instruction set that this CPU lacks";
            err = cake_comm_agree(b->world, c->run(b, c));
            gather_results(b, f);
            if (!err && b->world->rank == 0 && f->n == before)
                printf("%-33s needs %s\n", c->name, b->lacks);
            for (int i = before; i < f->n; i++)
                print_text(&f->result[i], b);
            fflush(stdout);
        }
    return err;
}

/* Checks the command line and chooses kernels that all ranks have. */
static cake_err prepare(const cake_options *o, const cake_comm *world, cake_bench *b)
{
    const bool named = strcmp(o->isa, "auto");
    const int level = named ? cake_kernels_level(o->isa) : cake_kernels_best();
    cake_err err = world->rank ? CAKE_OK : check_options(o, world);
    if (!err && !cake_kernels_at(level))
        err = cake_fail("bench", "--isa %s: not in this build or processor; the best here is %s", o->isa,
                        cake_kernels_at(cake_kernels_best())->name);
    err = cake_comm_agree(world, err);
    if (!err)
        b->kernels = cake_rank_kernels(world, named ? (int64_t)1 << level : cake_kernels_up_to(level));
    return err;
}

cake_err cake_bench_run(const cake_options *options, const cake_comm *world)
{
    cake_machine machine;
    cake_bench b = {.world = world, .options = options, .smoke = options->smoke};
    results f = {NULL, 0};
    cake_err err = prepare(options, world, &b);
    if (err)
        return err;
    if (!options->operands.n) {
        if (world->rank == 0)
            list_names();
        return cake_paths_flush(world, CAKE_OK);
    }
    cake_machine_read(&machine);
    b.threads = cake_options_threads(options, machine.cores_mine);
    b.result = cake_alloc((size_t)(MAX_RESULTS + world->size), sizeof *b.result);
    err = cake_rank_threads(world, b.threads);
    if (!err)
        err = run_cases(options, &b, &f);
    if (!err && world->rank == 0 && !f.n)
        err = cake_fail_usage("nothing was measured: it needs %s", b.lacks);
    err = cake_comm_agree(world, err);
    if (!err && options->output && world->rank == 0)
        err = write_file(options->output, f.result, f.n, &b);
    free(f.result);
    free(b.result);
    return cake_paths_flush(world, err);
}
