/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of a rank, with layers that only count: all hops on one rank, over links within the process; then
 * on three ranks that mpirun starts.
 */
#include "engine/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "placement/machine.h"
#include "tests/engine/counting.h"
#include "tests/suite.h"

enum { MAX_HOPS = 4, N_LAYER = 6, MAX_WAVES = 1000, N_LANE = 3, DEADLINE = 120 };

static const char *program;
static cake_comm world;

/* The work of a hop, and a record of its waves. */
typedef struct layers {
    cake_hop hop;     /* the first of all counts */
    int fail_at;      /* this wave is an error; -1: none */
    long nap;         /* nanoseconds in each layer */
    double napped[2]; /* seconds in each layer */
    int n_wave;
    int lane[MAX_WAVES], rows[MAX_WAVES];
    int64_t bytes; /* of all its waves */
} layers;

static double nap(long ns)
{
    double begin = cake_clock_now();
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    return cake_clock_now() - begin;
}

/* A wave carries the number of its layers so far in the field that nothing uses. */
static cake_err forward(void *self, cake_wave *wave, cake_wave_buffers buffers,
                        void (*between)(void *arg, bool layer), void *arg)
{
    layers *l = self;
    if (l->n_wave == l->fail_at)
        return cake_fail("test", "layer %d has failed", l->hop.first);
    if (wave->kind != CAKE_WAVE_ROWS || wave->unused != l->hop.first || buffers.from || buffers.to ||
        l->n_wave == MAX_WAVES)
        return cake_fail("test", "layer %d got a wave of kind %d that has passed %d layers", l->hop.first,
                         wave->kind, wave->unused);
    l->lane[l->n_wave] = wave->lane;
    l->rows[l->n_wave++] = wave->n_row;
    l->bytes += (int64_t)cake_wave_bytes(wave->n_row, wave->n_change, wave->dim);
    between(arg, true);
    for (int i = 0; i < l->hop.count; i++) {
        between(arg, false);
        l->napped[i] += l->nap ? nap(l->nap) : 0;
        wave->unused++;
        between(arg, true);
    }
    if (!l->hop.first)
        counting_forward(wave);
    return CAKE_OK;
}

/* One rank of a plan. */
typedef struct rig {
    counting_io io;
    cake_hop hop[MAX_HOPS];
    cake_plan plan;
    layers layers[MAX_HOPS]; /* [n_here] of the hops of this rank */
    int n_here;
    cake_schedule_shape shape;
    cake_engine *engine; /* NULL: on another rank */
    cake_rank_status status;
    cake_pipeline *pipeline;
    long hook_nap;
    int n_poll, max_in_flight, max_active;
    double hooked; /* seconds */
} rig;

/* ranks: of each hop, as digits. Hop i has i % 2 + 1 layers. */
static rig *open_rig(const char *ranks, int n_lane)
{
    rig *r = calloc(1, sizeof *r);
    r->io.fail_read = r->io.fail_done = -1;
    r->shape = counting_shape(n_lane, 2, 64);
    r->plan = (cake_plan){.hop = r->hop, .n_hop = (int)strlen(ranks), .n_rank = world.size};
    for (int i = 0, first = 0; i < r->plan.n_hop; i++) {
        r->hop[i] = (cake_hop){.rank = ranks[i] - '0', .first = first, .count = i % 2 + 1};
        first += r->hop[i].count;
        if (r->hop[i].rank == world.rank)
            r->layers[r->n_here++] = (layers){.hop = r->hop[i], .fail_at = -1};
    }
    return r;
}

static bool poll_status(void *self)
{
    rig *r = self;
    int waves = r->status.in_flight, active = r->status.active;
    r->n_poll++;
    r->max_active = active > r->max_active ? active : r->max_active;
    r->max_in_flight = waves > r->max_in_flight ? waves : r->max_in_flight;
    r->hooked += r->hook_nap ? nap(r->hook_nap) : 0;
    return false;
}

static cake_err run(rig *r, cake_trace *trace)
{
    cake_hop_work works[MAX_HOPS];
    const cake_sequence_io io = counting_io_open(&r->io);
    const cake_poll_hook hook = {r, poll_status};
    size_t bytes = cake_wave_bytes(r->shape.max_row, cake_schedule_changes(&r->shape), COUNTING_DIM);
    for (int i = 0; i < r->n_here; i++)
        works[i] = (cake_hop_work){&r->layers[i], forward};
    if (!world.rank)
        r->engine = counting_engine(&r->shape, &io);
    cake_machine machine;
    cake_machine_read(&machine);
    cake_pipeline_setup setup = {.world = &world,
                                 .plan = &r->plan,
                                 .works = works,
                                 .engine = r->engine,
                                 .n_lane = r->shape.n_lane,
                                 .cores = machine.cores_allowed,
                                 .wave_bytes = bytes};
    cake_err err = cake_pipeline_open(&setup, &r->pipeline);
    if (err)
        return err;
    cake_pipeline_set_trace(r->pipeline, trace);
    cake_pipeline_publish(r->pipeline, &r->status);
    return cake_pipeline_run(r->pipeline, &hook);
}

static void close_rig(rig *r)
{
    cake_pipeline_close(r->pipeline);
    cake_engine_close(r->engine);
    counting_io_close(&r->io);
    free(r);
}

/* n requests, of which some are longer than a wave. */
static void ask(rig *r, int n)
{
    for (int i = 0; i < n; i++)
        counting_ask(&r->io, i % COUNTING_CYCLE, 1 + i * 37 % 150, 1 + i * 11 % 20);
}

static void check_answers(const rig *r)
{
    CU_ASSERT_EQUAL_FATAL(r->io.n_done, r->io.n);
    CU_ASSERT(r->status.active == 0 && r->max_active == r->shape.n_lane * r->shape.lane_seqs);
    for (int i = 0; i < r->io.n; i++)
        CU_ASSERT(counting_is_right(r->io.done[i], 1 + i * 11 % 20));
}

/* All waves passed all hops of this rank, in the order in which they came to the first; and it knows. */
static void check_waves(const rig *r, int64_t n_wave)
{
    cake_stage_stats stats = cake_pipeline_statistics(r->pipeline);
    for (int i = 0; i < r->n_here; i++) {
        const layers *a = &r->layers[0], *b = &r->layers[i];
        CU_ASSERT_EQUAL(b->n_wave, n_wave);
        CU_ASSERT(!memcmp(a->lane, b->lane, sizeof a->lane) && !memcmp(a->rows, b->rows, sizeof a->rows));
    }
    CU_ASSERT_EQUAL(stats.waves, n_wave * r->n_here);
    CU_ASSERT((!stats.waves || r->status.layer == -1) && r->status.steps >= n_wave * r->n_here);
    CU_ASSERT(stats.compute_s <= stats.busy_s && stats.busy_s <= stats.run_s);
    CU_ASSERT(stats.move_s <= stats.busy_s);
}

static int64_t sum_of(const int *values, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

/* Of the engine's rank: no wave was lost, and nothing is in flight. */
static void check_root(const rig *r)
{
    cake_engine_stats stats = cake_engine_statistics(r->engine);
    CU_ASSERT(r->status.returned == stats.waves && r->status.in_flight == 0);
    CU_ASSERT(cake_engine_done(r->engine) && cake_engine_in_flight(r->engine) == 0);
    CU_ASSERT_EQUAL(r->max_in_flight, r->shape.n_lane);
    if (r->n_here)
        CU_ASSERT_EQUAL(sum_of(r->layers[0].rows, r->layers[0].n_wave), stats.rows);
}

static void test_one_wave(void)
{
    rig *r = open_rig("000", 1);
    counting_ask(&r->io, 3, 5, 1);
    CU_ASSERT_EQUAL(run(r, NULL), CAKE_OK);
    CU_ASSERT(r->io.n_done == 1 && counting_is_right(r->io.done[0], 1) && r->layers[2].rows[0] == 5);
    check_waves(r, 1);
    check_root(r);
    close_rig(r);
}

/* Only the stop wave passes the hops. */
static void test_no_wave(void)
{
    rig *r = open_rig("00", N_LANE);
    CU_ASSERT_EQUAL(run(r, NULL), CAKE_OK);
    check_waves(r, 0);
    CU_ASSERT(r->status.returned == 0 && r->status.steps >= 2 && r->io.n_done == 0);
    close_rig(r);
}

/* As many waves in flight as there are lanes, whose buffers are used again and again. */
static void test_many_waves(void)
{
    rig *r = open_rig("0000", N_LANE);
    r->io.slow = true;
    ask(r, 60);
    CU_ASSERT_EQUAL(run(r, NULL), CAKE_OK);
    check_answers(r);
    CU_ASSERT(cake_engine_statistics(r->engine).waves > 10 * N_LANE);
    check_waves(r, cake_engine_statistics(r->engine).waves);
    check_root(r);
    CU_ASSERT(r->status.sent == 0 && r->status.got == 0);
    CU_ASSERT_EQUAL(cake_pipeline_statistics(r->pipeline).link_bytes, 0);
    close_rig(r);
}

/* Each layer's time is its own, and the poll hook's is nobody's. Of three stages one has a wave. */
static void test_times(void)
{
    rig *r = open_rig("000", 1);
    double seconds[N_LAYER] = {0}, sum = 0;
    r->plan.n_rank = 3;
    r->layers[1].nap = 2000000;
    r->hook_nap = 1000000;
    counting_ask(&r->io, 0, 3, 20);
    CU_ASSERT_EQUAL(run(r, NULL), CAKE_OK);
    check_waves(r, 20);
    cake_stage_stats stats = cake_pipeline_statistics(r->pipeline);
    cake_pipeline_layers(r->pipeline, seconds);
    for (int i = 0; i < N_LAYER; i++)
        sum += seconds[i];
    CU_ASSERT(seconds[0] > 0 && seconds[3] > 0 && seconds[4] == 0 && seconds[5] == 0);
    CU_ASSERT(seconds[1] >= r->layers[1].napped[0] && seconds[2] >= r->layers[1].napped[1]);
    CU_ASSERT(sum <= stats.compute_s && stats.compute_s + r->hooked <= stats.run_s);
    cake_pipeline_layers(r->pipeline, seconds);
    CU_ASSERT(seconds[1] >= 2 * r->layers[1].napped[0]); /* adds */
    CU_ASSERT(r->n_poll > 2 * 20 && stats.bubble_s > 0.6 * stats.run_s && stats.bubble_s < 0.8 * stats.run_s);
    close_rig(r);
}

/* An error of the output while waves are in flight: they come back, all hops end, and it is the result. */
static void test_engine_fails(void)
{
    rig *r = open_rig("000", N_LANE);
    r->io.fail_done = 5;
    ask(r, 60);
    CU_ASSERT_EQUAL(run(r, NULL), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(r->io.n_done, 6);
    check_waves(r, cake_engine_statistics(r->engine).waves);
    check_root(r);
    close_rig(r);
}

/* The process prints the message and ends with status 1. */
static void test_hop_fails(void)
{
    char text[4096] = "";
    int ends[2], status = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        rig *r = open_rig("000", N_LANE);
        r->layers[1].fail_at = 7;
        ask(r, 60);
        run(r, NULL);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n, len = 0; (n = read(ends[0], text + len, sizeof text - 1 - (size_t)len)) > 0; len += n)
        ;
    close(ends[0]);
    CU_ASSERT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "layer 1 has failed"));
}

/* Only edges from other ranks have link buffers: one for each lane and one for the stop wave. */
static void test_memory(void)
{
    static const int edges_in[] = {1, 1, 1, 0};
    rig *r = open_rig("0112", 1);
    for (int rank = 0; rank < 4; rank++)
        CU_ASSERT_EQUAL(cake_pipeline_bytes(&r->plan, rank, 6, 1000), (size_t)edges_in[rank] * 7 * 1000);
    close_rig(r);
    r = open_rig("0101", 1);
    CU_ASSERT_EQUAL(cake_pipeline_bytes(&r->plan, 1, 2, 10), 2 * 3 * 10);
    CU_ASSERT_EQUAL(cake_pipeline_bytes(&r->plan, 0, 2, 10), 2 * 3 * 10);
    close_rig(r);
}

/* Number of occurrences. */
static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static bool is_far(const rig *r, int edge)
{
    return cake_plan_from(&r->plan, edge) != cake_plan_to(&r->plan, edge);
}

/* Rank 0: every wave's way over each edge between ranks has a beginning and an end in the trace. */
static void check_trace(const rig *r, cake_trace *trace, int64_t n_wave)
{
    char path[256];
    cake_buf text = {0};
    int n_layer = r->hop[r->plan.n_hop - 1].first + r->hop[r->plan.n_hop - 1].count, far = 0;
    for (int e = 0; e <= r->plan.n_hop; e++)
        far += is_far(r, e);
    snprintf(path, sizeof path, "%s/trace", world.rank ? "" : suite_tmp());
    CU_ASSERT_EQUAL_FATAL(cake_trace_write(trace, &world, &r->plan, 1, path, 0), CAKE_OK);
    if (world.rank)
        return;
    CU_ASSERT_EQUAL_FATAL(cake_file_read("test", path, false, 1 << 26, &text), CAKE_OK);
    CU_ASSERT_EQUAL(count(text.data, "\"ph\": \"s\""), n_wave * far);
    CU_ASSERT_EQUAL(count(text.data, "\"ph\": \"f\""), n_wave * far);
    CU_ASSERT_EQUAL(count(text.data, "\"cat\": \"wave\""), n_wave * r->plan.n_hop);
    CU_ASSERT_EQUAL(count(text.data, "\"cat\": \"layer\""), n_wave * n_layer);
    CU_ASSERT_EQUAL(count(text.data, "\"cat\": \"finish\""), n_wave);
    CU_ASSERT_EQUAL(count(text.data, "\"cat\": \"send\""), n_wave * (r->plan.n_hop + 1));
    for (int e = 0; e <= r->plan.n_hop; e++) {
        char id[32];
        snprintf(id, sizeof id, "\"id\": \"0.%d.7\"", e);
        CU_ASSERT_EQUAL(count(text.data, id), is_far(r, e) ? 2 : 0);
    }
    cake_buf_free(&text);
}

/* On three ranks, each of which has one edge from another and one to another. */
static void run_on_ranks(const char *ranks)
{
    rig *r = open_rig(ranks, N_LANE);
    cake_trace *trace = cake_trace_open();
    ask(r, world.rank ? 0 : 60);
    cake_trace_align(trace, &world);
    CU_ASSERT_EQUAL(cake_comm_agree(&world, run(r, trace)), CAKE_OK);
    cake_trace_align(trace, &world);
    int64_t sums[2] = {0}; /* waves, bytes */
    if (!world.rank) {
        check_answers(r);
        check_root(r);
        sums[0] = cake_engine_statistics(r->engine).waves;
    }
    cake_comm_bcast(&world, &sums[0], sizeof sums[0]);
    sums[1] = r->layers[0].bytes;
    cake_comm_bcast_from(&world, world.size - 1, &sums[1], sizeof sums[1]);
    check_waves(r, sums[0]);
    cake_stage_stats stats = cake_pipeline_statistics(r->pipeline);
    CU_ASSERT(r->status.sent == sums[0] + 1 && r->status.got == sums[0] + 1);
    CU_ASSERT_EQUAL(stats.link_bytes, sums[1] + (int64_t)cake_wave_bytes(0, 0, 0));
    check_trace(r, trace, sums[0]);
    cake_trace_close(trace);
    close_rig(r);
}

static void test_ranks(void)
{
    run_on_ranks("0112");
}

/* The engine's rank has no layers: its edges lead away. */
static void test_ranks_without_root(void)
{
    run_on_ranks("112");
}

static void test_remote_hop_fails(void)
{
    rig *r = open_rig("0112", N_LANE);
    if (world.rank == 1)
        r->layers[1].fail_at = 7;
    ask(r, world.rank ? 0 : 60);
    run(r, NULL);
    exit(0);
}

/* Runs this program on three ranks, for what `mode` names. Returns its exit status. */
static int launch(const char *mode, cake_buf *text)
{
    char log[256];
    cake_buf command = {0};
    suite_launches();
    snprintf(log, sizeof log, "%s/log", suite_tmp());
    cake_buf_addf(&command, "'%s' 3 '%s' %s >'%s' 2>&1 </dev/null", suite_path("mpirun.sh"), program, mode,
                  log);
    int status = system(command.data);
    cake_buf_free(&command);
    CU_ASSERT_EQUAL_FATAL(cake_file_read("test", log, false, 1 << 20, text), CAKE_OK);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_launch(void)
{
    cake_buf text = {0};
    int status = launch("ranks", &text);
    CU_ASSERT_EQUAL(status, 0);
    if (status)
        fputs(text.data, stderr);
    cake_buf_free(&text);
}

/* An error on another rank ends all ranks. */
static void test_launch_fails(void)
{
    cake_buf text = {0};
    CU_ASSERT_EQUAL(launch("fails", &text), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.data, "layer 3 has failed"));
    cake_buf_free(&text);
}

int main(int argc, char **argv)
{
    static const suite_test alone[] = {
        {"one wave through three hops", test_one_wave},
        {"no wave", test_no_wave},
        {"many waves in order", test_many_waves},
        {"times", test_times},
        {"an error of the engine", test_engine_fails},
        {"an error of a hop", test_hop_fails},
        {"memory of the links", test_memory},
        {"three ranks", test_launch},
        {"an error of a hop on another rank", test_launch_fails},
    };
    static const suite_test ranks[] = {
        {"layers on all ranks", test_ranks},
        {"no layers on rank 0", test_ranks_without_root},
    };
    static const suite_test fails[] = {{"an error of a hop", test_remote_hop_fails}};
    const char *mode = argc > 1 ? argv[1] : "alone";
    program = argv[0];
    alarm(DEADLINE); /* a wave that is lost would be waited for */
    if (cake_comm_open(&argc, &argv, &world) || !counting_open())
        return 1;
    int failed = !strcmp(mode, "ranks")   ? SUITE_MAIN("pipeline", ranks)
                 : !strcmp(mode, "fails") ? SUITE_MAIN("pipeline", fails)
                                          : SUITE_MAIN("pipeline", alone);
    cake_model_close(counting_model);
    cake_comm_close();
    return failed;
}
