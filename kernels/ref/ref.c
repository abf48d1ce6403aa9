/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of kernels.h in plain C: the oracle with which every other table is compared. A packed
 * matrix is the row-major one. Invariant: sums are float32, one ascending chain each.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/format.h"
#include "kernels/int4.h"
#include "kernels/kernels.h"
#include "kernels/ref/bfdot.h"
#include "kernels/ref/codes.h"
#include "kernels/ref/delta.h"
#include "kernels/ref/int8.h"
#include "kernels/rows.h"
#include "kernels/unfused.h"

#define ROWS  16  /* rows that are summed together */
#define BLOCK 256 /* weights that are converted together */

static size_t weight_bytes(const cake_weight *w)
{
    return cake_arena_round(w->format ? cake_format_weight_bytes(w)
                                      : (size_t)w->n_out * cake_row_bytes(w->dtype, w->n_in));
}

static void weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    size_t row = cake_weight_row_bytes(w);
    if (w->format)
        cake_format_pack(w, src, first, n_row);
    else
        memcpy((char *)w->data + (size_t)first * row, src, (size_t)n_row * row);
}

/* out [n] = elements [at, at + n) of data as float32. */
static void to_f32(float *out, const void *data, cake_dtype dtype, size_t at, int n)
{
    const float *f32 = data;
    const uint16_t *half = data;
    for (int i = 0; i < n; i++)
        switch (dtype) {
        case CAKE_BF16:
            out[i] = cake_bf16_to_f32(half[at + (size_t)i]);
            break;
        case CAKE_F16:
            out[i] = cake_f16_to_f32(half[at + (size_t)i]);
            break;
        default:
            out[i] = f32[at + (size_t)i];
        }
}

static void from_f32(void *data, cake_dtype dtype, size_t at, const float *in, int n)
{
    float *f32 = data;
    uint16_t *half = data;
    for (int i = 0; i < n; i++)
        switch (dtype) {
        case CAKE_BF16:
            half[at + (size_t)i] = cake_bf16_from_f32(in[i]);
            break;
        case CAKE_F16:
            half[at + (size_t)i] = cake_f16_from_f32(in[i]);
            break;
        default:
            f32[at + (size_t)i] = in[i];
        }
}

/* On x86-64 fmaf is a call of libm, ten times as slow as the instruction, which nearly all of them have. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define FMA_OR_LIBM __attribute__((target_clones("fma", "default")))
#else
#define FMA_OR_LIBM
#endif

/* sum + the products of x [n] and weight [n], a chain. */
typedef float chain(float sum, const float *x, const float *weight, int n);

FMA_OR_LIBM static float add_products(float sum, const float *x, const float *weight, int n)
{
    for (int i = 0; i < n; i++)
        sum = fmaf(x[i], weight[i], sum);
    return sum;
}

static float flush(float v)
{
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}

/* In pairs, as cake_kernels_ref_bf16 multiplies weights that are BF16. */
static float add_pairs(float sum, const float *x, const float *weight, int n)
{
    for (int k = 0; k < n; k += 2)
        for (int j = k + 1; j >= k; j--) {
            const float a = j < n ? flush(x[j]) : 0, b = j < n ? flush(weight[j]) : 0;
            sum = flush(fmaf(cake_bf16_to_f32(cake_bf16_from_f32(a)), b, sum));
        }
    return sum;
}

/* sum [n_row] = the products of weight row `column` with n_row rows of x. */
static void sum_column(float *sum, const float *x, const cake_weight *w, int64_t column, int n_row,
                       chain *add)
{
    float block[BLOCK];
    for (int i = 0; i < n_row; i++)
        sum[i] = 0;
    for (int k = 0; k < w->n_in; k += BLOCK) {
        int n = w->n_in - k < BLOCK ? w->n_in - k : BLOCK;
        if (w->format)
            cake_format_dequantize(block, w, column, k, n);
        else
            to_f32(block, w->data, w->dtype, (size_t)column * (size_t)w->n_in + (size_t)k, n);
        for (int i = 0; i < n_row; i++)
            sum[i] = add(sum[i], x + (int64_t)i * w->n_in + k, block, n);
    }
}

/* The same of a format that scales sums. */
static void sum_groups(float *sum, const float *x, const cake_weight *w, int64_t column, int n_row,
                       chain *add)
{
    const char *row = (const char *)w->data + (size_t)column * cake_weight_row_bytes(w),
               *codes = row + cake_format_codes(w->format, w->n_in);
    const int group = w->format->group ? w->format->group : w->n_in;
    float block[BLOCK], part[ROWS];
    for (int i = 0; i < n_row; i++)
        sum[i] = 0;
    for (int first = 0, end; first < w->n_in; first = end) {
        const float scale = cake_format_scale(w->format, row, first / group);
        end = w->n_in - first < group ? w->n_in : first + group;
        memset(part, 0, sizeof part);
        for (int k = first, n; k < end; k += n) {
            n = end - k < BLOCK ? end - k : BLOCK;
            for (int i = 0; i < n; i++)
                block[i] = cake_e4m3_to_f32((uint8_t)codes[k + i]);
            for (int i = 0; i < n_row; i++)
                part[i] = add(part[i], x + (int64_t)i * w->n_in + k, block, n);
        }
        for (int i = 0; i < n_row; i++)
            sum[i] = fmaf(part[i], scale, sum[i]);
    }
}

static bool scales_sums(const cake_weight *w)
{
    return w->format && w->dtype == CAKE_BF16;
}

static void multiply(const cake_exec *exec, float *out, const float *x, const cake_weight *w,
                     const float *bias, const float *residual, int n_row, chain *add)
{
    int64_t first, last, n_out = w->n_out;
    cake_exec_range(exec, n_out, 1, &first, &last);
    for (int64_t column = first; column < last; column++)
        for (int64_t row = 0; row < n_row; row += ROWS) {
            float sum[ROWS];
            int n = n_row - row < ROWS ? (int)(n_row - row) : ROWS;
            (scales_sums(w) ? sum_groups : sum_column)(sum, x + row * w->n_in, w, column, n, add);
            for (int i = 0; i < n; i++) {
                int64_t at = (row + i) * n_out + column;
                if (bias)
                    sum[i] += bias[column];
                out[at] = residual ? sum[i] + residual[at] : sum[i];
            }
        }
}

static size_t input_bytes(cake_dtype dtype, int n_in, int n_row)
{
    (void)dtype;
    return cake_arena_round((size_t)n_row * (size_t)n_in * sizeof(float));
}

static float passed_clamped(float x, const cake_gate *gate, float g)
{
    float h = g > gate->param[CAKE_LIMIT] ? gate->param[CAKE_LIMIT] : g;
    float u = x > gate->param[CAKE_LIMIT]    ? gate->param[CAKE_LIMIT]
              : x < -gate->param[CAKE_LIMIT] ? -gate->param[CAKE_LIMIT]
                                             : x;
    return (u + 1) * (h / (1 + cake_expf(-gate->param[CAKE_ALPHA] * h)));
}

static float passed_xielu(const float *param, float g)
{
    float b = param[CAKE_BETA] * g, low = g < param[CAKE_EPS] ? g : param[CAKE_EPS];
    return g > 0 ? param[CAKE_ALPHA_P] * g * g + b : param[CAKE_ALPHA_N] * (cake_expm1f(low) - g) + b;
}

static float passed(float x, float g, cake_act act)
{
    float u = CAKE_GELU_SCALE * (g + CAKE_GELU_CUBE * g * g * g);
    return act == CAKE_ACT_SILU       ? silu(g) * x
           : act == CAKE_ACT_GELU     ? g / (1 + cake_expf(-2 * u)) * x
           : act == CAKE_ACT_GELU_ERF ? 0.5F * g * (1 + cake_erff(g * CAKE_ROOT_HALF)) * x
                                      : x / (1 + cake_expf(-g));
}

/* Nothing is packed: each product converts x itself. */
static void input_pack(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_row)
{
    float *out = to;
    int64_t first, last;
    (void)dtype;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first * n_in; i < last * n_in; i++)
        out[i] = !gate                           ? x[i]
                 : gate->act == CAKE_ACT_CLAMPED ? passed_clamped(x[i], gate, gate->g[i])
                 : gate->act == CAKE_ACT_XIELU   ? passed_xielu(gate->param, gate->g[i])
                                                 : passed(gate->alone ? 1 : x[i], gate->g[i], gate->act);
}

static void linear(const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_row)
{
    if (w->dtype == CAKE_I8)
        linear_int8(exec, out, x, w, bias, residual, n_row);
    else if (w->dtype == CAKE_Q8)
        linear_codes(exec, out, x, w, bias, residual, n_row);
    else
        multiply(exec, out, x, w, bias, residual, n_row, add_products);
}

static void input_pack_grouped(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                               cake_dtype dtype, int n_in, const cake_groups *groups, bool gather)
{
    int64_t first, last;
    cake_exec_range(exec, groups->n_sorted, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t from = (gather ? groups->row[i] : i) * n_in;
        cake_gate row = gate ? *gate : (cake_gate){0};
        row.g += gate ? from : 0;
        input_pack(&(cake_exec){0, 1, NULL}, (float *)to + i * n_in, x + from, gate ? &row : NULL, dtype,
                   n_in, 1);
    }
}

typedef void linear_function(const cake_exec *exec, float *out, const void *x, const cake_weight *w,
                             const float *bias, const float *residual, int n_row);

/* One product after the other by `linear`. */
static void each_group(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                       const cake_groups *groups, linear_function *linear_of)
{
    for (int i = 0; i < n * groups->n; i++) {
        const cake_experts *experts = product[i % n].experts;
        int64_t first = groups->first[i / n], e = groups->expert[i / n];
        cake_weight w = experts->w;
        w.data = cake_expert_data(experts, e);
        linear_of(exec, product[i % n].out + first * w.n_out, (const float *)x + first * w.n_in, &w,
                  experts->bias ? experts->bias + e * w.n_out : NULL, NULL,
                  (int)(groups->first[i / n + 1] - first));
    }
}

static void linear_grouped(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                           const cake_groups *groups)
{
    each_group(exec, product, n, x, groups, linear);
}

static void combine(const cake_exec *exec, float *out, const float *y, const cake_groups *groups,
                    const float *weight, const float *residual, int n_row, int dim)
{
    int64_t first, last, stride = groups->stride;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++)
        for (int64_t i = 0; i < dim; i++) {
            float sum = 0;
            for (int64_t j = row * stride; j < (row + 1) * stride; j++)
                sum = fmaf(weight[j], y[(int64_t)groups->sorted[j] * dim + i], sum);
            out[row * dim + i] = residual ? sum + residual[row * dim + i] : sum;
        }
}

static void gather(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor)
{
    int64_t first, last;
    cake_exec_range(exec, n, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float *to = out + i * w->n_in;
        const char *from = (const char *)w->data + (size_t)row[i] * cake_weight_row_bytes(w);
        if (w->format)
            cake_format_dequantize(to, w, row[i], 0, w->n_in);
        else if (w->dtype == CAKE_I8)
            cake_i8_to_f32(to, from, w->n_in);
        else
            to_f32(to, from, w->dtype, 0, w->n_in);
        for (int j = 0; j < w->n_in; j++)
            to[j] *= factor;
    }
}

static void layernorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                      const float *bias, int n_row, int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        const float *in = x + row * dim;
        float *to = out + row * dim, sum = 0, square = 0;
        for (int i = 0; i < dim; i++)
            sum += in[i];
        const float mean = sum / (float)dim;
        for (int i = 0; i < dim; i++)
            square += (in[i] - mean) * (in[i] - mean);
        const float scale = 1 / sqrtf(square / (float)dim + eps);
        for (int i = 0; i < dim; i++)
            to[i] = (in[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0);
    }
}

static void rmsnorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        const float *in = x + row * dim;
        float sum = 0;
        for (int i = 0; i < dim; i++)
            sum += in[i] * in[i];
        float scale = 1 / sqrtf(sum / (float)dim + eps);
        for (int i = 0; i < dim; i++) {
            float value = in[i] * scale * weight[i];
            out[row * dim + i] = residual ? value + residual[row * dim + i] : value;
        }
    }
}

static void rope(const cake_exec *exec, float *x, const float *norm, float eps, const float *cos,
                 const float *sin, int n_row, int n_head, int head_dim, int n_rot)
{
    int64_t first, last;
    int half = n_rot / 2;
    if (norm)
        rmsnorm(exec, x, x, norm, NULL, n_row * n_head, head_dim, eps);
    cake_exec_range(exec, (int64_t)n_row * n_head, 1, &first, &last);
    for (int64_t item = first; item < last; item++) {
        const float *c = cos + item / n_head * half, *s = sin + item / n_head * half;
        float *low = x + item * head_dim, *high = low + half;
        for (int i = 0; i < half; i++) {
            float a = low[i], b = high[i];
            low[i] = a * c[i] - b * s[i];
            high[i] = b * c[i] + a * s[i];
        }
    }
}

/* Elements [first, end) of a line of int8, which have one scale; data: kv->k or kv->v. */
static void store_codes(const cake_kv *kv, void *data, size_t page, int line, const float *in, int first,
                        int end)
{
    size_t at = data == kv->k ? cake_kv_key(kv, line, first) : cake_kv_value(kv, line, first);
    size_t step = data == kv->k ? CAKE_PAGE : 1;
    uint16_t scale = cake_i8_line((int8_t *)data + page + at, step, in, end - first);
    memcpy((char *)data + page + cake_kv_scale(kv, line, first > 0), &scale, sizeof scale);
}

static void kv_store(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_row)
{
    int64_t first, last;
    cake_exec_range(exec, (int64_t)n_row * kv->n_kv, 1, &first, &last);
    for (int64_t item = first; item < last; item++) {
        const cake_row *row = &rows[item / kv->n_kv];
        size_t at = cake_kv_page(kv, row->slot, row->pos, (int)(item % kv->n_kv));
        int line = row->pos % CAKE_PAGE;
        const float *key = k + item * kv->head_dim, *value = v + item * kv->head_dim;
        if (kv->dtype == CAKE_I8) {
            store_codes(kv, kv->k, at, line, key, 0, kv->head_dim);
            store_codes(kv, kv->v, at, line, value, 0, kv->head_dim);
            continue;
        }
        for (int j = 0; j < kv->head_dim; j++) {
            from_f32(kv->k, kv->dtype, at + cake_kv_key(kv, line, j), key + j, 1);
            from_f32(kv->v, kv->dtype, at + cake_kv_value(kv, line, j), value + j, 1);
        }
    }
}

static float capped(float x, float cap)
{
    return cap * cake_tanhf(x / cap);
}

/* One row and query head: its KV head and its sums so far. */
typedef struct state {
    const cake_kv *kv;
    int slot, head;
    float scale, cap;
    bool begun;  /* an earlier segment has been added */
    float max;   /* the largest score so far */
    float total; /* sum of exp(score - max) */
} state;

/* Element j of a line of K or V; slow and plain, so that head_dim needs no bound. */
static float kv_element(const cake_kv *kv, const void *data, size_t page, int line, int j)
{
    size_t at = page + (data == kv->k ? cake_kv_key(kv, line, j) : cake_kv_value(kv, line, j));
    float value;
    if (kv->dtype == CAKE_BF16)
        return cake_bf16_to_f32(((const uint16_t *)data)[at]);
    if (kv->dtype == CAKE_I8) {
        uint16_t scale;
        bool rest = kv->n_value && j >= kv->n_value;
        memcpy(&scale, (const char *)data + page + cake_kv_scale(kv, line, rest), sizeof scale);
        return (float)((const int8_t *)data)[at] * cake_bf16_to_f32(scale);
    }
    to_f32(&value, data, kv->dtype, at, 1);
    return value;
}

/* Adds positions [first, first + n) to out, a value. */
static void attend_segment(state *s, float *out, const float *q, int first, int n)
{
    const cake_kv *kv = s->kv;
    float score[CAKE_SEGMENT], most = -INFINITY, total = 0;
    const void *values = kv->n_value ? kv->k : kv->v;
    size_t page[CAKE_SEGMENT]; /* of each position */
    for (int i = 0; i < n; i++) {
        page[i] = cake_kv_page(kv, s->slot, first + i, s->head);
        float sum = 0;
        for (int j = 0; j < kv->head_dim; j++)
            sum += q[j] * kv_element(kv, kv->k, page[i], (first + i) % CAKE_PAGE, j);
        score[i] = s->cap > 0 ? capped(sum * s->scale, s->cap) : sum * s->scale;
        most = score[i] > most ? score[i] : most;
    }
    for (int i = 0; i < n; i++) {
        score[i] = cake_expf(score[i] - most);
        total += score[i];
    }
    float both = most > s->max ? most : s->max;
    float old = s->begun ? cake_expf(s->max - both) : 0, new = cake_expf(most - both);
    for (int j = 0; j < cake_kv_value_dim(kv); j++) {
        float sum = 0;
        for (int i = 0; i < n; i++)
            sum += score[i] * kv_element(kv, values, page[i], (first + i) % CAKE_PAGE, j);
        out[j] = s->begun ? out[j] * old + sum * new : sum;
    }
    s->total = s->begun ? s->total * old + total * new : total;
    s->max = both;
    s->begun = true;
}

/* One query of a row: out, a value, from q [head_dim]. */
static void attend_query(state *s, float *out, const float *q, const cake_row *row, int head)
{
    const int last = cake_kv_last(s->kv, row);
    for (int first = cake_kv_first(s->kv, row), next; first <= last; first = next) {
        next = (first / CAKE_SEGMENT + 1) * CAKE_SEGMENT;
        next = next <= last ? next : last + 1;
        attend_segment(s, out, q, first, next - first);
    }
    float divisor = cake_kv_divisor(s->kv, head, s->total, s->max);
    for (int j = 0; j < cake_kv_value_dim(s->kv); j++)
        out[j] /= divisor;
}

static void attend(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_row, int n_head, float scale, float cap)
{
    int group = n_head / kv->n_kv;
    for (int64_t item = exec->rank; item < (int64_t)n_row * n_head; item += exec->size) {
        const cake_row *row = &rows[item / n_head];
        int head = (int)(item % n_head);
        state s = {kv, row->slot, head / group, scale, cap, false, -INFINITY, 0};
        attend_query(&s, out + item * kv->head_dim, q + item * kv->head_dim, row, head);
    }
}

static void latent_store(const cake_exec *exec, const cake_kv *kv, const float *latent, const float *rope,
                         const cake_row *rows, int n_row)
{
    int64_t first, last, n_value = kv->n_value, n_rope = kv->head_dim - n_value;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        size_t at = cake_kv_page(kv, rows[i].slot, rows[i].pos, 0);
        int line = rows[i].pos % CAKE_PAGE;
        if (kv->dtype == CAKE_I8) {
            store_codes(kv, kv->k, at, line, latent + i * n_value, 0, (int)n_value);
            store_codes(kv, kv->k, at, line, rope + i * n_rope, (int)n_value, kv->head_dim);
            continue;
        }
        for (int j = 0; j < kv->head_dim; j++)
            from_f32(kv->k, kv->dtype, at + cake_kv_key(kv, line, j),
                     j < n_value ? &latent[i * n_value + j] : &rope[i * n_rope + j - n_value], 1);
    }
}

static void latent_attend(const cake_exec *exec, float *out, const cake_latent_query *q, const cake_kv *kv,
                          const cake_row *rows, int n_row, float scale)
{
    int64_t n_value = kv->n_value, n_rope = kv->head_dim - n_value;
    float query[CAKE_LATENT_DIM];
    for (int64_t item = exec->rank; item < (int64_t)n_row * q->n_head; item += exec->size) {
        int64_t t = item / q->n_head, head = item % q->n_head, at = (head * n_row + t) * n_value;
        state s = {kv, rows[t].slot, 0, scale, 0, false, -INFINITY, 0};
        memcpy(query, q->latent + at, (size_t)n_value * sizeof *query);
        memcpy(query + n_value, q->rope + item * n_rope, (size_t)n_rope * sizeof *query);
        attend_query(&s, out + at, query, &rows[t], (int)head);
    }
}

/* Finds the best of this member's columns of out after capping. */
static void find_best(const cake_exec *exec, float *out, cake_topk *best, int64_t n_out, float cap, int n_row)
{
    int64_t first, last;
    cake_exec_range(exec, n_out, 1, &first, &last);
    for (int row = 0; row < n_row; row++)
        for (int64_t c = first; c < last; c++) {
            float *score = &out[row * n_out + c];
            *score = cap > 0 ? capped(*score, cap) : *score;
            best[row].nonfinite |= !(fabsf(*score) <= FLT_MAX);
            cake_topk_add(&best[row], (cake_ranked){*score, (int32_t)c});
        }
}

static void convert(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n)
{
    float some[256];
    int64_t most = sizeof some / sizeof *some;
    if (to == CAKE_I8) {
        cake_i8_from(out, in, from, (int)n);
        return;
    }
    if (to == CAKE_Q8) {
        cake_i4_from(out, in, from, (int)n);
        return;
    }
    for (int64_t i = 0; i < n; i += most) {
        int64_t here = n - i < most ? n - i : most;
        cake_to_f32(some, (const char *)in + (size_t)i * cake_dtype_bytes(from), from, here);
        cake_from_f32((char *)out + (size_t)i * cake_dtype_bytes(to), some, to, here);
    }
}

static void scores(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_row)
{
    (void)wanted;
    linear(exec, out, x, w, NULL, NULL, n_row);
    find_best(exec, out, best, w->n_out, cap, n_row);
}

#define TABLE(product, grouped, head, plain)                                                                 \
    {                                                                                                        \
        .name = "ref", .oracle = plain, .convert = convert, .weight_bytes = weight_bytes,                    \
        .weight_pack = weight_pack, .input_bytes = input_bytes, .input_pack = input_pack, .linear = product, \
        .input_pack_grouped = input_pack_grouped, .linear_grouped = grouped, .combine = combine,             \
        .scores = head, .gather = gather, .rmsnorm = rmsnorm, .layernorm = layernorm, .rope = rope,          \
        .kv_store = kv_store, .attend = attend, .latent_store = latent_store,                                \
        .latent_attend = latent_attend, .delta_conv = delta_conv, .delta_rule = delta_rule,                  \
        .rmsnorm_gated = rmsnorm_gated, .mark_nonfinite = cake_rows_mark_nonfinite,                          \
        .move_rows = cake_rows_move, CAKE_UNFUSED,                                                           \
    }

const cake_kernels cake_kernels_ref = TABLE(linear, linear_grouped, scores, &cake_kernels_ref);

/* Another table, with products of BF16 weights in pairs. */
#define PAIRED(kind, add)                                                                                    \
    static void linear_##kind(const cake_exec *exec, float *out, const void *x, const cake_weight *w,        \
                              const float *bias, const float *residual, int n_row)                           \
    {                                                                                                        \
        if (w->dtype == CAKE_BF16)                                                                           \
            multiply(exec, out, x, w, bias, residual, n_row, add);                                           \
        else                                                                                                 \
            linear(exec, out, x, w, bias, residual, n_row);                                                  \
    }                                                                                                        \
    static void linear_grouped_##kind(const cake_exec *exec, const cake_expert_product *product, int n,      \
                                      const void *x, const cake_groups *groups)                              \
    {                                                                                                        \
        each_group(exec, product, n, x, groups, linear_##kind);                                              \
    }                                                                                                        \
    static void scores_##kind(const cake_exec *exec, float *out, cake_topk *best, const void *x,             \
                              const cake_weight *w, const bool *wanted, float cap, int n_row)                \
    {                                                                                                        \
        (void)wanted;                                                                                        \
        linear_##kind(exec, out, x, w, NULL, NULL, n_row);                                                   \
        find_best(exec, out, best, w->n_out, cap, n_row);                                                    \
    }                                                                                                        \
    const cake_kernels cake_kernels_ref_##kind =                                                             \
        TABLE(linear_##kind, linear_grouped_##kind, scores_##kind, &cake_kernels_ref_##kind);
PAIRED(bf16, add_pairs)
PAIRED(bfdot, add_bfdot)
