/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integer codes: every table has the bits of ref, and ref the sums of what codes and quantised
 * rows stand for, in float64; gathered rows are the dequantised ones.
 */
#include <math.h>

#include "formats.h"
#include "kernels/codes.h"
#include "kernels/int4.h"

enum { MOST_GROUPED = 16 };

/* All formats that are codes. */
static const cake_format *format_at(int i)
{
    static const cake_format *all[CAKE_N_BLOCK + MOST_GROUPED];
    static int n;
    cake_codes c;
    if (n == 0) {
        for (; cake_format_at(n); n++)
            all[n] = cake_format_at(n);
        for (int j = 0; j < COUNT(grouped); j++)
            if (cake_codes_of(&c, &grouped[j]))
                all[n++] = &grouped[j];
    }
    return i < n ? all[i] : NULL;
}

static cake_weight packed(const cake_kernels *op, const cake_format *f, const uint8_t *rows, int n_out,
                          int n_in)
{
    cake_weight w = {.n_out = n_out, .n_in = n_in, .dtype = CAKE_Q8, .format = f};
    const size_t bytes = op->weight_bytes(&w);
    CU_ASSERT_EQUAL(bytes % 64, 0);
    w.data = aligned_alloc(64, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.data);
    memset(w.data, 0, bytes);
    for (int first = n_out, n = 3; first > 0; n = n % 9 + 4) { /* from the end, in uneven pieces */
        n = n < first ? n : first;
        first -= n;
        op->weight_pack(&w, rows + (size_t)first * cake_format_row_bytes(f, n_in), first, n);
    }
    return w;
}

/* A matrix, dequantised and packed by ref and by op. */
typedef struct subject {
    const cake_kernels *op;
    uint8_t *rows;
    float *value;
    cake_weight plain, w;
} subject;

/* Of these rows, which it frees. */
static subject subject_from(const cake_kernels *op, const cake_format *f, uint8_t *rows, int n_out, int n_in)
{
    subject s = {.op = op, .rows = rows};
    s.value = malloc((size_t)n_out * (size_t)n_in * sizeof *s.value);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s.value);
    for (int r = 0; r < n_out; r++)
        cake_format_dequantize_row(s.value + (int64_t)r * n_in, f,
                                   s.rows + (size_t)r * cake_format_row_bytes(f, n_in), NULL, n_in, 0, n_in);
    s.plain = packed(&cake_kernels_ref, f, s.rows, n_out, n_in);
    s.w = packed(op, f, s.rows, n_out, n_in);
    return s;
}

static subject subject_of(const cake_kernels *op, const cake_format *f, int n_out, int n_in)
{
    return subject_from(op, f, rows_of(f, n_out, n_in), n_out, n_in);
}

static void subject_close(subject *s)
{
    free(s->plain.data);
    free(s->w.data);
    free(s->value);
    free(s->rows);
}

/* Value k of a row as it is after quantisation in groups of 32. */
static double quantized(const float *x, int k, int n_in)
{
    float most = 0;
    for (int i = k / 32 * 32; i < n_in && i < k / 32 * 32 + 32; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most > 0 ? (double)rintf(x[k] * (127 / most)) * (most / 127) : 0;
}

/* Whether out [n_row, n_out] is x W^T, but for float32 sums. */
static void check_sums(const subject *s, const float *out, const float *x, int n_row)
{
    const int n_in = s->w.n_in, n_out = s->w.n_out;
    double worst = 0;
    for (int r = 0; r < n_row; r += 3)
        for (int column = 0; column < n_out; column += 5) {
            double sum = 0, size = 0;
            for (int k = 0; k < n_in; k++) {
                const double term =
                    quantized(x + (int64_t)r * n_in, k, n_in) * s->value[(int64_t)column * n_in + k];
                sum += term;
                size += fabs(term);
            }
            const double error = fabs(sum - out[(int64_t)r * n_out + column]) / (size + 1e-30);
            worst = error > worst ? error : worst;
        }
    if (worst > 2e-5)
        printf("  %s, [%d, %d]: error %g\n", s->w.format->name ? s->w.format->name : "grouped", n_out, n_in,
               worst);
    CU_ASSERT(worst < 2e-5);
}

static void check_product(const subject *s, int n_row, int team)
{
    const size_t n = (size_t)n_row * (size_t)s->w.n_out;
    float *x = random_floats((size_t)n_row * (size_t)s->w.n_in, 5);
    float *bias = random_floats((size_t)s->w.n_out, 6);
    float *out[2] = {random_floats(n, 1), random_floats(n, 2)};
    call plain = product(&cake_kernels_ref, out[0], x, &s->plain, n_row);
    call own = product(s->op, out[1], x, &s->w, n_row);
    run_linear(1, &plain);
    check_sums(s, out[0], x, n_row);
    plain.bias = own.bias = bias;
    run_linear(1, &plain);
    run_linear(team, &own);
    if (!same_bits(out[0], out[1], n))
        printf("  %s, %s: [%d, %d] x %d rows differ\n", s->op->name,
               s->w.format->name ? s->w.format->name : "grouped", s->w.n_out, s->w.n_in, n_row);
    CU_ASSERT(same_bits(out[0], out[1], n));
    free(out[0]);
    free(out[1]);
    free(bias);
    free(x);
}

static void check_gather(const subject *s)
{
    const cake_exec one = {.size = 1};
    const int32_t row[] = {s->w.n_out - 1, 0};
    const int n_in = s->w.n_in;
    float *out = random_floats(2 * (size_t)n_in, 3);
    s->op->gather(&one, out, &s->w, row, 2, 1.5F);
    bool same = true;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < n_in; k++)
            same = same && out[i * n_in + k] == s->value[(int64_t)row[i] * n_in + k] * 1.5F;
    CU_ASSERT(same);
    free(out);
}

static void check_shape(const cake_kernels *op, const cake_format *f, int n_out, int n_in, int turn)
{
    static const int rows[] = {1, 2, 3, 5, 8, 13, 41};
    subject s = subject_of(op, f, n_out, n_in);
    check_gather(&s);
    for (int i = turn % 2; i < COUNT(rows) - 3 * is_slow(op); i += 2)
        check_product(&s, rows[i], team_sizes[(i + turn) % COUNT(team_sizes)]);
    subject_close(&s);
}

static void products(const cake_kernels *op)
{
    static const int out[] = {1, 37, 70}, in[] = {256, 768, 1280};
    int turn = 0;
    const cake_format *f;
    for (int i = 0; (f = format_at(i)); i++)
        for (int s = 0; s < COUNT(out); s++, turn++)
            check_shape(op, f, out[s], in[(s + turn) % COUNT(in)], turn);
}

static void test_products(void)
{
    for_tables(products);
}

/* Odd widths, which end inside a span, a brick or a byte. */
static void odd_widths(const cake_kernels *op)
{
    static const int in[] = {1, 33, 129, 288, 1055};
    const cake_format *f;
    for (int i = 0; (f = format_at(i)); i++)
        for (int s = 0; s < COUNT(in); s++)
            if (!f->block || in[s] % f->block == 0)
                check_shape(op, f, 19, in[s], s);
}

static void test_odd_widths(void)
{
    for_tables(odd_widths);
}

/* A row with a value that is not finite, and rows of zeros and of numbers too small to divide by. */
static void odd_rows(const cake_kernels *op)
{
    const float values[] = {INFINITY, NAN, 0, 1e-38F};
    const cake_format *f;
    for (int i = 0; (f = format_at(i)); i++) {
        subject s = subject_of(op, f, 9, 512);
        float *x = random_floats(COUNT(values) * 512, 7), out[2][COUNT(values) * 9];
        for (int r = 0; r < COUNT(values); r++)
            for (int k = 64; k < 512; k += r < 2 ? 512 : 1)
                x[r * 512 + k] = values[r];
        call plain = product(&cake_kernels_ref, out[0], x, &s.plain, COUNT(values)),
             own = product(op, out[1], x, &s.w, COUNT(values));
        run_linear(1, &plain);
        run_linear(2, &own);
        for (int j = 0; j < COUNT(values) * 9; j++) {
            CU_ASSERT(j / 9 < 2 ? isnan(out[0][j]) : isfinite(out[0][j]));
            CU_ASSERT(isnan(out[0][j]) ? isnan(out[1][j]) : out[0][j] == out[1][j]);
        }
        free(x);
        subject_close(&s);
    }
}

static void test_odd_rows(void)
{
    for_tables(odd_rows);
}

/* Sets all bytes of a row but scales that are floats. */
static void fill_codes(uint8_t *row, const cake_format *f, int n_in, uint8_t fill)
{
    if (!f->block) {
        const size_t at = cake_format_codes(f, n_in);
        memset(row + at, fill, cake_format_row_bytes(f, n_in) - at);
        return;
    }
    for (int i = 0; i < n_in / f->block * f->bytes; i++) {
        const int at = i % f->bytes;
        bool scale = f->half[0] < 0 && at == 0; /* of MXFP4 */
        for (int h = 0; h < 2; h++)
            scale = scale || (f->half[h] >= 0 && (at == f->half[h] || at == f->half[h] + 1));
        if (!scale)
            row[i] = fill;
    }
}

/* The largest codes of both signs times the largest values of x in all directions: sums of 16 bits. */
static void largest_sums(const cake_kernels *op)
{
    enum { IN = 512, OUT = 8, ROWS = 9 };
    static const uint8_t fill[OUT] = {0x00, 0xFF, 0x77, 0x88, 0x7F, 0x80, 0xF7, 0x08};
    const cake_format *f;
    float x[ROWS * IN], out[2][ROWS * OUT];
    for (int i = 0; i < ROWS * IN; i++) {
        const int row = i / IN;
        x[i] = row == 0 || (row < 8 && i >> (row - 1) & 1) ? 1 : -1;
    }
    for (int i = 0; (f = format_at(i)); i++) {
        uint8_t *rows = rows_of(f, OUT, IN);
        for (int r = 0; r < OUT; r++)
            fill_codes(rows + (size_t)r * cake_format_row_bytes(f, IN), f, IN, fill[r]);
        subject s = subject_from(op, f, rows, OUT, IN);
        call plain = product(&cake_kernels_ref, out[0], x, &s.plain, ROWS),
             own = product(op, out[1], x, &s.w, ROWS);
        run_linear(1, &plain);
        run_linear(1, &own);
        check_sums(&s, out[0], x, ROWS);
        if (!same_bits(out[0], out[1], ROWS * OUT))
            printf("  %s, %s: the largest sums differ\n", op->name, f->name ? f->name : "grouped");
        CU_ASSERT(same_bits(out[0], out[1], ROWS * OUT));
        subject_close(&s);
    }
}

static void test_largest_sums(void)
{
    for_tables(largest_sums);
}

/* Codes as small as in the file: at most the padding of headers and of the last columns more. */
static void sizes(const cake_kernels *op)
{
    const cake_format *f;
    for (int i = 0; (f = format_at(i)); i++) {
        const cake_weight w = {.n_out = 1024, .n_in = 2048, .dtype = CAKE_Q8, .format = f};
        const double file = (double)cake_format_row_bytes(f, 2048) * 1024, own = (double)op->weight_bytes(&w);
        if (own > 1.02 * file)
            printf("  %s, %s: %.2f %% more\n", op->name, f->name ? f->name : "grouped",
                   100 * (own / file - 1));
        CU_ASSERT(own <= 1.02 * file);
    }
}

static void test_sizes(void)
{
    for_tables(sizes);
}

/* Floats, groups in another order and odd groups are not codes. */
static void test_others(void)
{
    cake_codes c;
    const cake_format none[] = {{.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_F32, .group = 128},
                                {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_F16, .group = 32, .indexed = true},
                                {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_F16, .group = 48},
                                {.code = CAKE_CODE_U8, .scale = CAKE_SCALE_F16, .group = 300},
                                {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_F16, .group = 16}};
    for (int i = 0; i < COUNT(none); i++)
        CU_ASSERT_FALSE(cake_codes_of(&c, &none[i]));
}

/* The squared error of a group of 32 with codes from -8 to 7 times this scale, in float64. */
static double error_at(const float *x, double scale)
{
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        const double code = scale == 0 ? 0 : fmin(7, fmax(-8, rint((double)x[i] / scale)));
        sum += (x[i] - code * scale) * (x[i] - code * scale);
    }
    return sum;
}

/* Rows to 4 bits: the error is near that of the best of many scales, and below that of the one that maps the
 * extreme value to -8. */
static void test_int4(void)
{
    enum { N = 32 * 200 };
    const cake_format *f = cake_i4_format();
    float *x = random_floats(N, 3), *got = random_floats(N, 4);
    double mine = 0, plain = 0, best = 0;
    for (int i = 0; i < N; i++) /* a sum of four is nearer to weights than one */
        x[i] = (x[i] + x[(i + 77) % N] + x[(i + 501) % N] + x[(i + 1999) % N]) / 50;
    void *row = cake_alloc(1, cake_format_row_bytes(f, N));
    cake_i4_from(row, x, CAKE_F32, N);
    cake_format_dequantize_row(got, f, row, NULL, N, 0, N);
    for (int k = 0; k < N; k += 32) {
        float most = 0;
        double least = INFINITY;
        for (int i = k; i < k + 32; i++) {
            most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
            mine += ((double)x[i] - got[i]) * ((double)x[i] - got[i]);
        }
        for (int s = -900; s <= 900; s++)
            least = fmin(least, s ? error_at(x + k, (double)fabsf(most) / 5 * s / 900) : INFINITY);
        best += least;
        plain += error_at(x + k, (double)most / -8);
    }
    printf("  squared error: %.3f of the plain scale's, %.3f of the best's\n", mine / plain, mine / best);
    CU_ASSERT(mine < .93 * plain && mine < 1.08 * best);
    free(row);
    free(got);
    free(x);
}

/* Groups that hold zeros, tiny, huge and infinite values, and a short last group. */
static void test_int4_odd(void)
{
    enum { N = 32 * 6 + 7 };
    const cake_format *f = cake_i4_format();
    float x[N], got[N];
    for (int i = 0; i < N; i++)
        x[i] = i < 32 ? 0 : i < 64 ? 1e-38F : i < 96 ? 3e38F : i < 160 ? (float)(i % 5) : -1;
    x[100] = INFINITY;
    x[140] = NAN;
    uint8_t row[256];
    cake_i4_from(row, x, CAKE_F32, N);
    cake_format_dequantize_row(got, f, row, NULL, N, 0, N);
    for (int i = 0; i < N; i++)
        CU_ASSERT(i < 64    ? got[i] == 0
                  : i < 96  ? fabsf(got[i] / x[i] - 1) < .01F
                  : i < 160 ? isnan(got[i])
                            : fabsf(got[i] + 1) < .01F);
}

/* Rows of every kind of floats, of which some groups are not finite, as plain C makes them. */
static void check_int4(const cake_kernels *op)
{
    enum { N = 32 * 19 + 7 };
    const cake_format *f = cake_i4_format();
    const size_t most = cake_format_row_bytes(f, N);
    float *x = random_floats(N, 5);
    uint8_t *want = cake_alloc(1, most), *got = cake_alloc(1, most + 1);
    uint16_t half[N];
    uint64_t random = 7;
    int bad = 0;
    for (int n = N, turn = 0; n > 0; n -= n > 300 ? 31 : 1, turn++)
        for (int from = 0; from < CAKE_N_DTYPE; from++) {
            const size_t bytes = cake_format_row_bytes(f, n);
            const void *in = x;
            for (int i = 0; i < N; i++) { /* bits of every kind, and values near each other */
                uint32_t bits = (uint32_t)next_random(&random) & 0xBBFFBBFF;
                memcpy(&x[i], &bits, sizeof bits);
                if (i / 32 % 3)
                    x[i] = (float)(int32_t)bits * (i / 32 % 3 == 1 ? 0x1p-40F : 0x1p-130F);
            }
            x[turn % N] = turn % 3 == 0 ? NAN : turn % 3 == 1 ? INFINITY : x[(turn + 1) % N];
            if (from != CAKE_F32) {
                cake_from_f32(half, x, (cake_dtype)from, N);
                in = half;
            }
            memset(got, 0x55, most + 1);
            cake_i4_from(want, in, (cake_dtype)from, n);
            op->convert(got, CAKE_Q8, in, (cake_dtype)from, n);
            bad += memcmp(got, want, bytes) != 0 || got[bytes] != 0x55;
        }
    CU_ASSERT_EQUAL(bad, 0);
    free(got);
    free(want);
    free(x);
}

static void test_int4_tables(void)
{
    for_tables(check_int4);
}

int main(void)
{
    static const suite_test tests[] = {{"products of integer codes", test_products},
                                       {"odd widths", test_odd_widths},
                                       {"odd rows", test_odd_rows},
                                       {"the largest sums", test_largest_sums},
                                       {"bytes", test_sizes},
                                       {"formats that are not codes", test_others},
                                       {"rows to 4 bits", test_int4},
                                       {"odd rows to 4 bits", test_int4_odd},
                                       {"rows to 4 bits, as plain C makes them", test_int4_tables}};
    return SUITE_MAIN("integer codes", tests);
}
