/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight formats: blocks are dequantised to the values that gguf-py gives (checksums made by
 * tests/golden/formats.py), and products, gathers and scores of quantised matrices have the bits of the same
 * values in F32. Products of formats that scale sums have the bits of the oracle's, which are compared with
 * sums in float64.
 */
#include <math.h>

#include "base/crc.h"
#include "formats.h"
#include "kernels/format.h"

/* ---- blocks */

enum { BLOCKS = 24, MOST_BYTES = 210, MOST_VALUES = 256 };

static const struct {
    const char *name;
    uint32_t sum;
} blocks[] = {
    {"q4_0", 0x9B9537A1},  {"q4_1", 0x41C8D27E}, {"q5_0", 0x8B7020A0},   {"q5_1", 0xB9183A00},
    {"q8_0", 0x03F3B085},  {"q2_k", 0xD2639F6D}, {"q3_k", 0xC56A2886},   {"q4_k", 0x81E7F9A6},
    {"q5_k", 0x41C5B5C2},  {"q6_k", 0x816B0A79}, {"iq4_nl", 0x16AAAB6E}, {"iq4_xs", 0xD0E823FD},
    {"mxfp4", 0x2FAC7759},
};

static void test_blocks(void)
{
    for (int i = 0; i < COUNT(blocks); i++) {
        const cake_format *f = cake_format_find(blocks[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        uint8_t *raw = made_up(f, BLOCKS);
        const int n = BLOCKS * f->block;
        float *all = malloc((size_t)n * sizeof *all), part[96];
        CU_ASSERT_PTR_NOT_NULL_FATAL(all);
        CU_ASSERT_EQUAL(cake_format_row_bytes(f, n), (size_t)(BLOCKS * f->bytes));
        cake_format_dequantize_row(all, f, raw, NULL, n, 0, n);
        for (int k = 0; k + 96 <= n; k += 74) { /* parts that begin and end inside blocks */
            cake_format_dequantize_row(part, f, raw, NULL, n, k, 96);
            CU_ASSERT(!memcmp(part, all + k, sizeof part));
        }
        CU_ASSERT_EQUAL(cake_format_bad_block(f, raw, n), -1);
        raw[3 * f->bytes + (f->half[0] < 0 ? 0 : f->half[0] + 1)] = 0xFF;
        CU_ASSERT_EQUAL(cake_format_bad_block(f, raw, n), 3);
        for (int k = 0; k < n; k++)
            all[k] = all[k] == 0 ? 0 : all[k]; /* -0 is 0 */
        CU_ASSERT_EQUAL(cake_crc(all, (size_t)n * sizeof *all), blocks[i].sum);
        free(all);
        free(raw);
    }
    CU_ASSERT_PTR_NULL(cake_format_at(COUNT(blocks)));
    CU_ASSERT_PTR_NULL(cake_format_find("q9_9"));
}

/* Every code of 8-bit floats by their definition. */
static void test_floats(void)
{
    for (int bits = 0; bits < 256; bits++) {
        const int e = bits >> 3 & 15, m = bits & 7;
        const float size = e ? (1 + (float)m / 8) * exp2f((float)e - 7) : (float)m * exp2f(-9);
        const float got = cake_e4m3_to_f32((uint8_t)bits), scale = cake_e8m0_to_f32((uint8_t)bits);
        CU_ASSERT((bits & 127) == 127 ? isnan(got) : got == (bits & 128 ? -size : size));
        CU_ASSERT(bits == 255 ? isnan(scale) : scale == exp2f((float)bits - 127));
    }
}

/* ---- matrices */

/* Sets scales of floats: ordinary ones in 24 rows, then some that are so large that they can hardly be
 * multiplied in 24 rows, and so on. All values have both signs. */
static void vary_scales(uint8_t *rows, const cake_format *f, int n_out, int n_in)
{
    static const float ordinary[] = {1.25F, -0x1p7F, 0x1p-130F}, large[] = {0x1p121F, -0x1p120F, 3};
    const size_t size = cake_scale_bytes(f->scale);
    for (int r = 0; r < n_out; r++) {
        uint8_t *row = rows + (size_t)r * cake_format_row_bytes(f, n_in);
        for (int g = 0; g < cake_format_groups(f, n_in); g++) {
            const int turn = f->shared ? r / CAKE_SHARED_ROWS : r;
            const float scale = (turn / 24 % 2 ? large : ordinary)[(turn + g) % 3];
            const uint16_t half = cake_bf16_from_f32(scale);
            memcpy(row + cake_format_scales(f) + (size_t)g * size,
                   f->scale == CAKE_SCALE_F32 ? (const void *)&scale : &half, size);
        }
        for (int k = 0; k < n_in; k++) {
            uint8_t *code = &row[cake_format_codes(f, n_in) + (size_t)k];
            *code =
                (uint8_t)((*code & (r / 24 % 2 ? 0x0F : 0x7F)) | (k % 3 == r % 3 ? 0x80 : 0)); /* finite */
        }
    }
}

/* Rows, packed in uneven pieces from the end. */
static cake_weight packed(const cake_kernels *op, const cake_format *f, const uint8_t *rows, int n_out,
                          int n_in)
{
    cake_weight w = {.n_out = n_out,
                     .n_in = n_in,
                     .dtype = cake_format_scales_sums(f) ? CAKE_BF16 : CAKE_F32,
                     .format = f};
    const size_t bytes = op->weight_bytes(&w);
    CU_ASSERT_EQUAL(bytes % 64, 0);
    w.data = aligned_alloc(64, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.data);
    memset(w.data, 0, bytes);
    for (int first = n_out, n = 3; first > 0; n = n % 9 + 4) {
        n = n < first ? n : first;
        first -= n;
        op->weight_pack(&w, rows + (size_t)first * cake_format_row_bytes(f, n_in), first, n);
    }
    return w;
}

/* A matrix as it is stored, and the same in F32; of formats that scale sums, as op and as its oracle store
 * it. */
static void twins(const cake_kernels *op, const cake_format *f, int n_out, int n_in, cake_weight w[2])
{
    uint8_t *rows = rows_of(f, n_out, n_in);
    float *value = malloc((size_t)n_out * (size_t)n_in * sizeof *value);
    uint16_t *index = malloc((size_t)n_in * sizeof *index);
    CU_ASSERT_FATAL(value && index);
    if (f->code == CAKE_CODE_E4M3)
        vary_scales(rows, f, n_out, n_in);
    for (int k = 0; k < n_in; k++)
        index[k] = (uint16_t)(f->indexed ? k * 7 % cake_format_groups(f, n_in) : 0);
    for (int r = 0; r < n_out; r++)
        cake_format_dequantize_row(value + (int64_t)r * n_in, f,
                                   rows + (size_t)r * cake_format_row_bytes(f, n_in),
                                   f->indexed ? index : NULL, n_in, 0, n_in);
    w[0] = packed(op, f, rows, n_out, n_in);
    if (f->indexed)
        cake_format_set_index(&w[0], index);
    w[1] = cake_format_scales_sums(f) ? packed(op->oracle, f, rows, n_out, n_in)
                                      : pack(op, value, CAKE_F32, n_out, n_in);
    free(index);
    free(value);
    free(rows);
}

static void check_product(const cake_kernels *op, const cake_weight w[2], int n_row, int team)
{
    const size_t n = (size_t)n_row * (size_t)w->n_out;
    float *x = random_floats((size_t)n_row * (size_t)w->n_in, 5), *bias = random_floats((size_t)w->n_out, 6);
    float *out[2] = {random_floats(n, 1), random_floats(n, 2)};
    for (int i = 0; i < 2; i++) {
        call c = product(i && w[i].format ? op->oracle : op, out[i], x, &w[i], n_row);
        c.bias = bias;
        run_linear(team, &c);
    }
    if (!same_bits(out[0], out[1], n))
        printf("  %s, %s: [%d, %d] x %d rows differ\n", op->name,
               w->format->name ? w->format->name : "grouped", w->n_out, w->n_in, n_row);
    CU_ASSERT(same_bits(out[0], out[1], n));
    free(out[0]);
    free(out[1]);
    free(bias);
    free(x);
}

static void check_gather(const cake_kernels *op, const cake_weight w[2])
{
    const cake_exec one = {.size = 1};
    const int32_t row[] = {w->n_out - 1, 0};
    float *out[2];
    for (int i = 0; i < 2; i++) {
        out[i] = random_floats(2 * (size_t)w->n_in, 3);
        (i && w[i].format ? op->oracle : op)->gather(&one, out[i], &w[i], row, 2, 1.5F);
    }
    CU_ASSERT(same_bits(out[0], out[1], 2 * (size_t)w->n_in));
    free(out[0]);
    free(out[1]);
}

static void check_matrices(const cake_kernels *op, const cake_format *f, int turn)
{
    static const int rows[] = {1, 2, 7, 13, 150}, out[] = {1, 37, 70}, in[] = {256, 768, 1280};
    for (int s = 0; s < COUNT(out); s++) {
        cake_weight w[2];
        twins(op, f, out[s], in[(s + turn) % COUNT(in)], w);
        check_gather(op, w);
        for (int n = 0; n < COUNT(rows) - is_slow(op); n++)
            check_product(op, w, rows[n], team_sizes[(n + s) % COUNT(team_sizes)]);
        free(w[0].data);
        free(w[1].data);
    }
}

static void products(const cake_kernels *op)
{
    int turn = 0;
    for (int i = 0; cake_format_at(i); i++)
        check_matrices(op, cake_format_at(i), turn++);
    for (int i = 0; i < COUNT(grouped); i++)
        check_matrices(op, &grouped[i], turn++);
}

static void test_products(void)
{
    for_tables(products);
}

/* Odd widths, which end inside a group or a byte. */
static void odd_widths(const cake_kernels *op)
{
    static const int in[] = {1, 33, 129, 515, 8300};
    for (int i = 0; i < COUNT(grouped); i++)
        for (int s = 0; s < COUNT(in); s++) {
            cake_weight w[2];
            twins(op, &grouped[i], 19, in[s], w);
            check_product(op, w, 1, 2);
            check_product(op, w, 3, 2);
            free(w[0].data);
            free(w[1].data);
        }
}

/* Formats that scale sums, in plain C: sums in float64 of x times what the rows dequantise to. */
static void check_exact(const cake_kernels *op, const cake_format *f, double tolerance)
{
    enum { N_OUT = 50, N_IN = 600, N_ROW = 3 };
    const size_t bytes = cake_format_row_bytes(f, N_IN);
    uint8_t *rows = rows_of(f, N_OUT, N_IN);
    vary_scales(rows, f, N_OUT, N_IN);
    cake_weight w = packed(op, f, rows, N_OUT, N_IN);
    float *x = random_floats(N_ROW * N_IN, 5), out[N_ROW * N_OUT], value[N_IN];
    call c = product(op, out, x, &w, N_ROW);
    run_linear(2, &c);
    for (int i = 0; i < N_ROW * N_OUT; i++) {
        const float *of = x + i / N_OUT * N_IN;
        double sum = 0, size = 0x1p-130;
        cake_format_dequantize_row(value, f, rows + (size_t)(i % N_OUT) * bytes, NULL, N_IN, 0, N_IN);
        for (int k = 0; k < N_IN; k++) {
            sum += (double)of[k] * value[k];
            size += fabs((double)of[k] * value[k]);
        }
        CU_ASSERT(fabs(out[i] - sum) <= tolerance * size);
    }
    free(w.data);
    free(rows);
    free(x);
}

static void test_exact(void)
{
    for (int i = 0; i < COUNT(grouped); i++)
        if (cake_format_scales_sums(&grouped[i])) {
            check_exact(&cake_kernels_ref, &grouped[i], 1e-5);
            check_exact(&cake_kernels_ref_bf16, &grouped[i], 0x1p-8);
            check_exact(&cake_kernels_ref_bfdot, &grouped[i], 0x1p-8);
        }
}

/* A code that is NaN makes its row NaN and no other one; scales in blocks take hardly any memory. */
static void bad_codes(const cake_kernels *op)
{
    enum { N_OUT = 70, N_IN = 600, BAD = 37 };
    for (int i = 0; i < COUNT(grouped); i++) {
        const cake_format *f = &grouped[i];
        const size_t bytes = cake_format_row_bytes(f, N_IN);
        if (!cake_format_scales_sums(f))
            continue;
        uint8_t *rows = rows_of(f, N_OUT, N_IN);
        float *x = random_floats(8 * N_IN, 5), out[8 * N_OUT];
        rows[BAD * bytes + cake_format_codes(f, N_IN) + 300] = 0xFF;
        cake_weight w = packed(op, f, rows, N_OUT, N_IN);
        for (int n = 1; n <= 8; n += 7) {
            call c = product(op, out, x, &w, n);
            run_linear(2, &c);
            for (int k = 0; k < n * N_OUT; k++)
                CU_ASSERT(isnan(out[k]) == (k % N_OUT == BAD));
        }
        const cake_weight large = {.n_out = 1024, .n_in = 1024, .dtype = CAKE_BF16, .format = f};
        CU_ASSERT(op == op->oracle || !f->shared || op->weight_bytes(&large) < (1 << 20) * 101 / 100);
        free(w.data);
        free(rows);
        free(x);
    }
}

static void test_bad_codes(void)
{
    for_tables(bad_codes);
}

/* x so large that it cannot be multiplied by E4M3_FACTOR before it meets codes, infinite, or NaN. */
static void large_inputs(const cake_kernels *op)
{
    static const float large[] = {0x1p8F, -0x1p100F, INFINITY, NAN};
    enum { N_OUT = 50, N_IN = 600, N_ROW = 4 };
    for (int i = 0; i < COUNT(grouped); i++)
        for (int j = 0; j < COUNT(large) && cake_format_scales_sums(&grouped[i]); j++) {
            cake_weight w[2];
            float *x = random_floats(N_ROW * N_IN, 5), out[2][N_ROW * N_OUT];
            twins(op, &grouped[i], N_OUT, N_IN, w);
            x[N_IN * (j % N_ROW) + 200 * j % 599] = large[j];
            for (int k = 0; k < 2; k++) {
                call c = product(k ? op->oracle : op, out[k], x, &w[k], N_ROW);
                run_linear(2, &c);
                free(w[k].data);
            }
            for (int k = 0; k < N_ROW * N_OUT; k++)
                CU_ASSERT(out[0][k] == out[1][k] || (isnan(out[0][k]) && isnan(out[1][k])));
            free(x);
        }
}

static void test_large_inputs(void)
{
    for_tables(large_inputs);
}

static void test_odd_widths(void)
{
    for_tables(odd_widths);
}

/* Formats with equal fields are one. */
static void test_grouped(void)
{
    cake_format f = grouped[3];
    const cake_format *a = cake_format_grouped(&f);
    f.name = "other";
    CU_ASSERT_PTR_EQUAL(cake_format_grouped(&f), a);
    f.group = 0;
    CU_ASSERT_PTR_NOT_EQUAL(cake_format_grouped(&f), a);
    CU_ASSERT_STRING_EQUAL(a->name, "int4, f16 scales of 64");
    for (int i = 0; i < 1000 && a; i++) {
        f.group = 1000 + i;
        a = cake_format_grouped(&f);
    }
    CU_ASSERT_PTR_NULL(a); /* too many: refused, and those before stay */
    CU_ASSERT_PTR_NOT_NULL(cake_format_grouped(&grouped[3]));
}

int main(void)
{
    static const suite_test tests[] = {{"blocks of GGUF", test_blocks},
                                       {"floats of 8 bits", test_floats},
                                       {"products of quantised matrices", test_products},
                                       {"odd widths", test_odd_widths},
                                       {"scaled sums in float64", test_exact},
                                       {"large inputs of scaled sums", test_large_inputs},
                                       {"codes that are NaN", test_bad_codes},
                                       {"grouped formats", test_grouped}};
    return SUITE_MAIN("weight formats", tests);
}
