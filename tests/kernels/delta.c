/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated delta rule, its convolution, norm and gates, in every table: compared with the recurrence in
 * float64, and with itself where cuts, other rows, teams and slots must not change the bits.
 */
#include <math.h>

#include "tables.h"

#define N_SEQ 6

typedef struct shape {
    int n_key, n_value, key_dim, value_dim, width;
    bool tiled;
} shape;

static const shape shapes[] = {{1, 1, 1, 1, 1, false},     {1, 3, 7, 5, 2, false},
                               {2, 6, 13, 33, 3, true},    {2, 2, 64, 64, 4, false},
                               {1, 2, 128, 128, 4, false}, {1, 1, 256, 256, 16, false}};

/* Shorter than the convolution, around a block, several blocks and a rest; then what was generated. */
static const int prompts[N_SEQ] = {1, 2, 63, 64, 65, 200}, generated[N_SEQ] = {3, 70, 2, 1, 5, 9};

/* Sequences, their inputs, and what came out. */
typedef struct story {
    shape s;
    cake_deltanet d;
    int64_t channels, wide; /* wide: n_value * value_dim */
    float *weight, *a_log, *dt_bias;
    float *x[N_SEQ], *a[N_SEQ], *b[N_SEQ]; /* [n, channels], [n, n_value] x2 */
    float *conv[N_SEQ], *out[N_SEQ];       /* [n, channels], [n, wide] */
} story;

static int length(int seq)
{
    return prompts[seq] + generated[seq];
}

static story story_open(shape s)
{
    story y = {.s = s};
    y.d = (cake_deltanet){.n_key = s.n_key,
                          .n_value = s.n_value,
                          .tiled = s.tiled,
                          .key_dim = s.key_dim,
                          .value_dim = s.value_dim,
                          .width = s.width};
    y.channels = cake_delta_channels(&y.d);
    y.wide = (int64_t)s.n_value * s.value_dim;
    y.d.conv = y.weight = random_floats((size_t)(y.channels * s.width), 1);
    y.d.a_log = y.a_log = random_floats((size_t)s.n_value, 2);
    y.d.dt_bias = y.dt_bias = random_floats((size_t)s.n_value, 3);
    y.d.step = cake_delta_state_size(&y.d) + 5;
    for (int h = 0; h < s.n_value; h++) { /* from hardly any decay to some that forgets at once */
        y.a_log[h] = y.a_log[h] * 3;
        y.dt_bias[h] = y.dt_bias[h] * 4 - 2;
    }
    for (int i = 0; i < N_SEQ; i++) {
        size_t n = (size_t)length(i);
        y.x[i] = random_floats(n * (size_t)y.channels, 10 + (uint64_t)i);
        y.a[i] = random_floats(n * (size_t)s.n_value, 20 + (uint64_t)i);
        y.b[i] = random_floats(n * (size_t)s.n_value, 30 + (uint64_t)i);
        y.conv[i] = random_floats(n * (size_t)y.channels, 40);
        y.out[i] = random_floats(n * (size_t)y.wide, 50);
        for (size_t j = 0; j < n * (size_t)s.n_value; j++) {
            y.a[i][j] *= j % 17 ? 3 : 40; /* also where softplus is a line, or next to nothing */
            y.b[i][j] *= 6;
        }
    }
    return y;
}

/* Decays of 1, of 0 and outside of float32, side by side; open and shut gates; equal keys, whose first head
 * neither forgets nor holds back anything. */
static void make_extreme(story *y)
{
    static const float logs[] = {0, -30, 30, 85}, decays[] = {-200, 200, -30, 0, -88, 30, -200, -200, 5};
    static const float gates[] = {100, -100, 0, 3, 100};
    int key = y->s.n_key * y->s.key_dim;
    for (int h = 0; h < y->s.n_value; h++) {
        y->a_log[h] = logs[h % COUNT(logs)];
        y->dt_bias[h] = 0;
    }
    for (int i = 0; i < N_SEQ; i++)
        for (int t = 0; t < length(i); t++) {
            for (int h = 0, at = t * y->s.n_value; h < y->s.n_value; h++, at++) {
                y->a[i][at] = h == 0 ? -200 : decays[(t + t / 11 + 3 * h) % COUNT(decays)];
                y->b[i][at] = h == 0 ? 100 : gates[(t / 3 + h) % COUNT(gates)];
            }
            memcpy(y->x[i] + t * y->channels + key, y->x[i] + key, (size_t)key * sizeof *y->x[i]);
        }
}

static void story_close(story *y)
{
    free(y->weight);
    free(y->a_log);
    free(y->dt_bias);
    for (int i = 0; i < N_SEQ; i++) {
        free(y->x[i]);
        free(y->a[i]);
        free(y->b[i]);
        free(y->conv[i]);
        free(y->out[i]);
    }
}

typedef struct call {
    const cake_kernels *op;
    const cake_deltanet *d;
    float *x, *a, *b, *out;
    const cake_row *rows;
    int n_row;
} call;

static void run_both(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->delta_conv(exec, c->x, c->d, c->rows, c->n_row);
    cake_exec_barrier(exec);
    c->op->delta_rule(exec, c->out, c->x, c->a, c->b, c->d, c->rows, c->n_row);
}

/* A way to cut the sequences into waves. */
typedef struct way {
    /* prompt rows of a wave; if not a multiple of 64, waves begin inside blocks, as after a shared
     * beginning */
    int step;
    bool together;  /* generated rows: all in the wave of the prompt's end, or one by one */
    bool alone;     /* each sequence for itself */
    int team, turn; /* slots are given out from `turn` on */
    bool mixed;     /* rows are of all kinds, whatever they are in the sequence */
    int begin;      /* prompt rows that are there already, as of a beginning that is shared; 0: none */
} way;

/* The rows of sequence i from `done` on that go into the next wave. */
static int next_rows(int i, int done, const way *w)
{
    int next = done < w->begin ? w->begin : w->begin ? (done / w->step + 1) * w->step : done + w->step;
    int end = next < prompts[i] ? next : prompts[i];
    if (done >= prompts[i])
        end = done + 1 < length(i) ? done + 1 : length(i);
    return w->together && end == prompts[i] ? length(i) : end;
}

static void move(float *wave, float *seq, int64_t row, int64_t first, int64_t n, int64_t dim, bool back)
{
    float *in = wave + row * dim, *at = seq + first * dim;
    memcpy(back ? at : in, back ? in : at, (size_t)(n * dim) * sizeof *wave);
}

static int32_t kind_of(int seq, int pos, const way *w)
{
    static const int32_t kinds[] = {CAKE_ROW_PROMPT, CAKE_ROW_GENERATED, CAKE_ROW_PROMPT, CAKE_ROW_REPLAYED};
    if (w->mixed)
        return kinds[pos / 9 % COUNT(kinds)];
    return pos < prompts[seq] ? CAKE_ROW_PROMPT : w->together ? CAKE_ROW_REPLAYED : CAKE_ROW_GENERATED;
}

/* One wave, in buffers that end where it does. */
static void run_wave(call *c, int team, int64_t channels, int64_t n_value, int64_t wide)
{
    size_t n = (size_t)c->n_row;
    call wave = *c;
    wave.x = copy_floats(c->x, n * (size_t)channels);
    wave.a = copy_floats(c->a, n * (size_t)n_value);
    wave.b = copy_floats(c->b, n * (size_t)n_value);
    wave.out = copy_floats(c->out, n * (size_t)wide);
    cake_exec_run(team, run_both, &wave);
    memcpy(c->x, wave.x, n * (size_t)channels * sizeof *c->x);
    memcpy(c->out, wave.out, n * (size_t)wide * sizeof *c->out);
    free(wave.x);
    free(wave.a);
    free(wave.b);
    free(wave.out);
}

/* Plays sequences [first, last) through one table. */
static void play_some(const cake_kernels *op, story *y, const way *w, int first, int last, cake_row *rows,
                      call *c)
{
    int done[N_SEQ] = {0};
    for (;;) {
        int from[N_SEQ];
        memcpy(from, done, sizeof from);
        c->n_row = 0;
        for (int i = first; i < last; i++) {
            int end = next_rows(i, done[i], w), n = end - done[i];
            move(c->x, y->x[i], c->n_row, done[i], n, y->channels, false);
            move(c->a, y->a[i], c->n_row, done[i], n, y->s.n_value, false);
            move(c->b, y->b[i], c->n_row, done[i], n, y->s.n_value, false);
            for (; done[i] < end; done[i]++)
                rows[c->n_row++] =
                    (cake_row){.slot = (i + w->turn) % N_SEQ, .pos = done[i], .kind = kind_of(i, done[i], w)};
        }
        if (!c->n_row)
            return;
        c->op = op;
        c->rows = rows;
        run_wave(c, w->team, y->channels, y->s.n_value, y->wide);
        for (int i = first, row = 0; i < last; i++) {
            int n = done[i] - from[i];
            move(c->x, y->conv[i], row, from[i], n, y->channels, true);
            move(c->out, y->out[i], row, from[i], n, y->wide, true);
            row += n;
        }
    }
}

static void play(const cake_kernels *op, story *y, const way *w)
{
    size_t n = 0;
    for (int i = 0; i < N_SEQ; i++)
        n += (size_t)length(i);
    cake_row *rows = cake_alloc(n, sizeof *rows);
    call c = {.d = &y->d};
    c.x = random_floats(n * (size_t)y->channels, 60);
    c.a = random_floats(n * (size_t)y->s.n_value, 61);
    c.b = random_floats(n * (size_t)y->s.n_value, 62);
    c.out = random_floats(n * (size_t)y->wide, 63);
    size_t states = (size_t)(N_SEQ * y->d.step) * sizeof *y->d.state;
    y->d.state = malloc(states);
    CU_ASSERT_PTR_NOT_NULL_FATAL(y->d.state);
    memset(y->d.state, 0xFF, states); /* NaN: a first row must not look */
    for (int i = 0; i < N_SEQ; i += w->alone ? 1 : N_SEQ)
        play_some(op, y, w, i, w->alone ? i + 1 : N_SEQ, rows, &c);
    for (int i = 0; i < N_SEQ; i++) /* what lies between two states is nobody's */
        for (int64_t j = cake_delta_state_size(&y->d); j < y->d.step; j++)
            CU_ASSERT(isnan(y->d.state[i * y->d.step + j]));
    free(y->d.state);
    free(c.x);
    free(c.a);
    free(c.b);
    free(c.out);
    free(rows);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The larger of two errors; what is no number is the largest one. */
static double worse(double worst, double difference)
{
    return isnan(difference) ? (double)INFINITY : fmax(worst, fabs(difference));
}

/* Largest difference of the convolution's output from float64; inputs and weights are below 1. */
static double conv_error(const story *y, int seq)
{
    double worst = 0;
    for (int t = 0; t < length(seq); t++)
        for (int64_t c = 0; c < y->channels; c++) {
            double sum = 0;
            for (int j = 0; j < y->s.width; j++)
                if (t - y->s.width + 1 + j >= 0)
                    sum += (double)y->d.conv[c * y->s.width + j] *
                           (double)y->x[seq][(t - y->s.width + 1 + j) * y->channels + c];
            worst = worse(worst, (double)y->conv[seq][t * y->channels + c] - sum * sigmoid(sum));
        }
    return worst;
}

static double norm_of(const float *x, int dim)
{
    double sum = 1e-6;
    for (int i = 0; i < dim; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Largest difference of one head's output from the recurrence in float64, and its largest value. */
static double rule_error(const story *y, int seq, int head, double *size)
{
    int key = y->s.key_dim, value = y->s.value_dim, keys = y->s.n_key * key;
    double *state = cake_alloc((size_t)(key * value), sizeof *state), worst = 0;
    for (int t = 0; t < length(seq); t++) {
        const float *q = y->conv[seq] + t * y->channels +
                         (y->s.tiled ? head % y->s.n_key : head / (y->s.n_value / y->s.n_key)) * key;
        const float *k = q + keys, *v = y->conv[seq] + t * y->channels + 2 * keys + head * value;
        double a = (double)y->a[seq][t * y->s.n_value + head] + (double)y->d.dt_bias[head];
        double decay = exp(-exp((double)y->d.a_log[head]) * log1p(exp(a)));
        double beta = sigmoid((double)y->b[seq][t * y->s.n_value + head]);
        double q_norm = norm_of(q, key) * sqrt(key), k_norm = norm_of(k, key);
        double seen[CAKE_DELTA_DIM] = {0}, sum[CAKE_DELTA_DIM] = {0};
        for (int i = 0; i < key; i++)
            for (int j = 0; j < value; j++)
                seen[j] += (double)k[i] / k_norm * (state[i * value + j] *= decay);
        for (int i = 0; i < key; i++)
            for (int j = 0; j < value; j++) {
                state[i * value + j] += (double)k[i] / k_norm * beta * ((double)v[j] - seen[j]);
                sum[j] += (double)q[i] / q_norm * state[i * value + j];
            }
        for (int j = 0; j < value; j++) {
            *size = fmax(*size, fabs(sum[j]));
            worst = worse(worst, (double)y->out[seq][t * y->wide + head * value + j] - sum[j]);
        }
    }
    free(state);
    return worst;
}

static void check_story(const cake_kernels *op, const story *y, int number)
{
    for (int i = 0; i < N_SEQ; i++) {
        CU_ASSERT(conv_error(y, i) <= (y->s.width + 4) * 0x1p-24 * y->s.width);
        for (int h = 0; h < y->s.n_value; h++) {
            double size = 0, error = rule_error(y, i, h, &size);
            if (!(error <= 64 * 0x1p-24 * size)) {
                printf("  %s: shape %d sequence %d head %d: %g of %g\n", op->name, number, i, h, error, size);
                CU_FAIL("too far from float64");
            }
        }
    }
}

static void against_double(const cake_kernels *op)
{
    for (int s = 0; s < COUNT(shapes); s++) {
        story y = story_open(shapes[s]);
        way w = {.step = 128, .team = 2};
        play(op, &y, &w);
        check_story(op, &y, s);
        story_close(&y);
    }
}

/* Blocks that are begun in their middle, kinds in any order, extreme decays. */
static void against_odds(const cake_kernels *op)
{
    static const shape odd[] = {{2, 6, 13, 33, 3, false}, {1, 2, 130, 17, 4, false}, {2, 4, 33, 18, 1, true}};
    static const way ways[] = {{.step = 40, .together = true, .team = 1},
                               {.step = 1024, .together = true, .team = 2, .mixed = true}};
    for (int s = 0; s < COUNT(odd); s++)
        for (int extreme = 0; extreme < 2; extreme++)
            for (int i = 0; i < COUNT(ways); i++) {
                if (is_executed(op) && (s + extreme + i) % 2)
                    continue;
                story y = story_open(odd[s]);
                if (extreme)
                    make_extreme(&y);
                play(op, &y, &ways[i]);
                check_story(op, &y, s);
                story_close(&y);
            }
}

static void test_odds(void)
{
    for_tables(against_odds);
}

static void test_double(void)
{
    for_tables(against_double);
}

/* Behind a beginning that ends within a block, too, cuts at multiples of 64 do not show. */
static void against_cuts(const cake_kernels *op)
{
    static const shape small = {1, 2, 9, 5, 3, false};
    story whole = story_open(small), cut = story_open(small);
    play(op, &whole, &(way){.step = 1024, .team = 1, .begin = 40});
    play(op, &cut, &(way){.step = 64, .alone = true, .team = 1, .begin = 40});
    for (int q = 0; q < N_SEQ; q++) {
        CU_ASSERT(same_bits(whole.conv[q], cut.conv[q], (size_t)(length(q) * whole.channels)));
        CU_ASSERT(same_bits(whole.out[q], cut.out[q], (size_t)(length(q) * whole.wide)));
    }
    story_close(&whole);
    story_close(&cut);
}

static void against_itself(const cake_kernels *op)
{
    static const way ways[] = {
        {.step = 64, .team = 1},
        {.step = 128, .together = true, .alone = true, .team = 2, .turn = 1},
        {.step = 1024, .together = true, .team = 3, .turn = 4},
        {.step = 1024, .alone = true, .team = 7},
    };
    for (int s = 0; s < COUNT(shapes) - is_executed(op); s++) {
        story first = story_open(shapes[s]);
        play(op, &first, &ways[0]);
        for (int i = is_executed(op) ? 3 : 1; i < COUNT(ways); i++) {
            story other = story_open(shapes[s]);
            play(op, &other, &ways[i]);
            for (int q = 0; q < N_SEQ; q++) {
                CU_ASSERT(same_bits(first.conv[q], other.conv[q], (size_t)(length(q) * first.channels)));
                CU_ASSERT(same_bits(first.out[q], other.out[q], (size_t)(length(q) * first.wide)));
            }
            story_close(&other);
        }
        story_close(&first);
    }
    against_cuts(op);
}

static void test_itself(void)
{
    for_tables(against_itself);
}

/* Plays `n` rows of one wave, or each slot's for itself, in steps of `step`; returns what came out, owned, x
 * then out. */
static float *play_many_slots(const cake_kernels *op, cake_deltanet *d, const cake_row *rows, int n,
                              int n_slot, int step)
{
    int64_t channels = cake_delta_channels(d), wide = d->n_value * d->value_dim, n_value = d->n_value;
    size_t size = (size_t)(n * (channels + wide));
    float *all = random_floats(size, 1), *out = all + n * channels;
    float *a = random_floats((size_t)(n * n_value), 2), *b = random_floats((size_t)(n * n_value), 3);
    d->state = random_floats((size_t)(n_slot * d->step), 4);
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && end < first + step && (step > n || rows[end].slot == rows[first].slot);)
            end++;
        call c = {.op = op, .d = d, .rows = rows + first, .n_row = end - first};
        c.x = all + first * channels;
        c.out = out + first * wide;
        c.a = a + first * n_value;
        c.b = b + first * n_value;
        cake_exec_run(1, run_both, &c);
    }
    free(d->state);
    free(a);
    free(b);
    return all;
}

/* More slots than one launch takes, of prompts and of others; a prompt that is longer than one launch
 * takes. */
static void check_many_slots(const cake_kernels *op)
{
    enum { SLOTS = 300, LONG = 260 * 32 };
    cake_row *rows = cake_alloc(LONG, sizeof *rows);
    float *weight = random_floats(64, 5);
    cake_deltanet d = {1, 1, false, 3, 2, 3, weight, weight + 40, weight + 50, NULL, 0};
    d.step = cake_delta_state_size(&d);
    for (int kind = CAKE_ROW_PROMPT; kind <= CAKE_ROW_REPLAYED; kind++) {
        bool alone = kind == CAKE_ROW_GENERATED; /* one slot, whose prompt ends in generated rows */
        int n = alone ? LONG : 0, n_slot = alone ? 1 : SLOTS;
        for (int i = 0; i < n; i++)
            rows[i] = (cake_row){.pos = i, .kind = i < LONG - 70 ? CAKE_ROW_PROMPT : CAKE_ROW_GENERATED};
        for (int slot = 0; !alone && slot < SLOTS; slot++)
            for (int i = 0; i <= slot % 3; i++)
                rows[n++] = (cake_row){.slot = slot, .pos = slot % 2 + i, .kind = kind};
        float *whole = play_many_slots(op, &d, rows, n, n_slot, n + 1);
        float *parts = play_many_slots(op, &d, rows, n, n_slot, 512);
        CU_ASSERT(same_bits(whole, parts, (size_t)n * (size_t)(cake_delta_channels(&d) + d.value_dim)));
        free(whole);
        free(parts);
    }
    free(weight);
    free(rows);
}

/* More heads than a GPU's workspace has room for, all with the same inputs. */
static void check_heads(const cake_kernels *op)
{
    enum { HEADS = 2000 };
    static float ones[HEADS + 2], gates[HEADS], out[HEADS], state[HEADS], x[HEADS + 2];
    static const cake_row row = {.kind = CAKE_ROW_PROMPT};
    cake_deltanet d = {1, HEADS, false, 1, 1, 1, ones, gates, gates, state, HEADS};
    call c = {op, &d, x, gates, gates, out, &row, 1};
    if (is_executed(op))
        return;
    for (int i = 0; i < HEADS + 2; i++)
        x[i] = ones[i] = 1;
    memset(out, 0, sizeof out);
    cake_exec_run(1, run_both, &c);
    CU_ASSERT(out[0] > 0.2F && out[0] < 0.4F); /* sigmoid(0) of silu(1) */
    for (int h = 1; h < HEADS; h++)
        CU_ASSERT(same_bits(out + h, out, 1) && same_bits(state + h, state, 1));
}

static void test_many_slots(void)
{
    for_tables(check_many_slots);
    for_tables(check_heads);
}

typedef struct gating {
    const cake_kernels *op;
    float *x;
    const float *gate, *weight;
    int n_row, dim;
} gating;

static void run_norm(const cake_exec *exec, void *arg)
{
    gating *g = arg;
    g->op->rmsnorm_gated(exec, g->x, g->gate, g->weight, g->n_row, g->dim, 1e-6f);
}

static int gating_errors(const gating *g, const float *x)
{
    int wrong = 0;
    for (int i = 0; i < g->n_row * g->dim; i++) {
        double sum = 0, gate = (double)g->gate[i], exact = (double)x[i] * sigmoid(gate);
        for (int j = 0; j < g->dim; j++)
            sum += (double)x[i / g->dim * g->dim + j] * (double)x[i / g->dim * g->dim + j];
        exact *= gate / sqrt(sum / g->dim + (double)1e-6f) * (double)g->weight[i % g->dim];
        /* where exp(-gate) overflows, near -88.7, the answer is zero */
        wrong += !(fabs((double)g->x[i] - exact) <= (g->dim / 2 + 12) * 0x1p-24 * fabs(exact) + 0x1p-110);
    }
    return wrong;
}

static void check_gates(const cake_kernels *op)
{
    static const int dims[] = {1, 5, 16, 33, 128};
    enum { ROWS = 11 };
    for (int i = 0; i < COUNT(dims); i++) {
        size_t n = (size_t)(ROWS * dims[i]);
        float *x = random_floats(n, 1), *gate = random_floats(n, 2), *weight = random_floats(n, 3);
        for (size_t j = 0; j < n; j++)
            gate[j] *= j % 3 ? 8 : 120;
        float *out = copy_floats(x, n), *again = copy_floats(x, n);
        gating g = {op, out, gate, weight, ROWS, dims[i]};
        cake_exec_run(1, run_norm, &g);
        CU_ASSERT_EQUAL(gating_errors(&g, x), 0);
        for (int team = 0; team < COUNT(team_sizes); team++) { /* from the second row on */
            memcpy(again, x, n * sizeof *x);
            gating part = {op, again + dims[i], gate + dims[i], weight, ROWS - 1, dims[i]};
            cake_exec_run(team_sizes[team], run_norm, &part);
            CU_ASSERT(same_bits(again + dims[i], out + dims[i], n - (size_t)dims[i]));
        }
        free(x);
        free(gate);
        free(weight);
        free(out);
        free(again);
    }
}

static void test_gates(void)
{
    for_tables(check_gates);
}

int main(void)
{
    static const suite_test tests[] = {
        {"delta_conv, delta_rule: the recurrence in float64", test_double},
        {"delta_conv, delta_rule: cuts, company, teams and slots do not show", test_itself},
        {"delta_conv, delta_rule: blocks begun in their middle, kinds in any order, extreme decays",
         test_odds},
        {"delta_conv, delta_rule: many slots, and a long one", test_many_slots},
        {"rmsnorm_gated: float64; teams and places", test_gates},
    };
    return SUITE_MAIN("delta", tests);
}
