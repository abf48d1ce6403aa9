/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel table of GPUs: operations of kernels.h become launches. Only the first member of a team
 * launches; the others have nothing to do. The host packs matrices row by row (layout.h).
 */
#include "kernels/cuda/cuda.h"
#include "kernels/unfused.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/memory.h"

/* Converts scales to float32: a row's bytes and the scales after them are assembled here and then copied to
 * the GPU. */
static void pack_int8(const cake_weight *w, const char *src, int first, int n_row)
{
    const int n = cake_i8_groups(w->n_in);
    const size_t step = cake_cuda_step(CAKE_I8, w->n_in), width = (size_t)cake_cuda_width(CAKE_I8, w->n_in);
    char *row = cake_alloc(1, step);
    for (int i = first; i < first + n_row; i++, src += cake_row_bytes(CAKE_I8, w->n_in)) {
        memcpy(row, src + (size_t)n * sizeof(uint16_t), (size_t)w->n_in);
        cake_to_f32((float *)(void *)(row + width), src, CAKE_BF16, n);
        cake_cuda_upload_matrix((char *)w->data + (size_t)i * step, step, row, step, step, 1);
    }
    free(row);
}

static void weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    const size_t from = cake_row_bytes(w->dtype, w->n_in), step = cake_cuda_step(w->dtype, w->n_in);
    if (w->dtype == CAKE_I8)
        pack_int8(w, src, first, n_row);
    else
        cake_cuda_upload_matrix((char *)w->data + (size_t)first * step, step, src, from, from, n_row);
}

static void input_pack(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_row)
{
    if (exec->rank == 0)
        cake_cuda_input_pack(to, x, gate, dtype, n_in, n_row);
}

/* The rows that linear multiplies, in alternating groups of prompt rows and others: where each begins. */
static struct {
    int *first; /* [n + 1] the last entry is the end of the rows */
    bool *prompt;
    int n, cap;
    bool prompts; /* some group has prompt rows */
} row_groups;

static void set_rows(const cake_row *rows, int n_row)
{
    const cake_row *row = n_row ? cake_cuda_rows(rows) : NULL;
    row_groups.n = 0;
    row_groups.prompts = false;
    for (int i = 0; i < n_row; i++) {
        bool prompt = row[i].kind == CAKE_ROW_PROMPT;
        row_groups.prompts |= prompt;
        if (i && row_groups.prompt[row_groups.n - 1] == prompt)
            continue;
        if (row_groups.n + 2 > row_groups.cap) {
            row_groups.cap = 2 * row_groups.cap + 16;
            row_groups.first = cake_grow(row_groups.first, (size_t)row_groups.cap, sizeof(int));
            row_groups.prompt = cake_grow(row_groups.prompt, (size_t)row_groups.cap, sizeof(bool));
        }
        row_groups.first[row_groups.n] = i;
        row_groups.prompt[row_groups.n++] = prompt;
    }
    if (row_groups.n)
        row_groups.first[row_groups.n] = n_row;
}

_Static_assert(CAKE_CUDA_PARTS_BYTES <= CAKE_CUDA_WORKSPACE, "parts of products have room");

/* cuBLASLt multiplies prompt rows, our own kernel all others, whatever other rows are in the wave. */
static void linear(const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_row)
{
    if (exec->rank)
        return;
    if (!row_groups.n) {
        cake_cuda_linear(out, x, w, bias, residual, n_row, cake_cuda_workspace());
        return;
    }
    CAKE_ASSERT(row_groups.first[row_groups.n] == n_row);
    for (int i = 0; i < row_groups.n; i++) {
        const int first = row_groups.first[i], n = row_groups.first[i + 1] - first;
        const int64_t at = (int64_t)first * w->n_out;
        const char *from = (const char *)x + (size_t)first * cake_cuda_step(w->dtype, w->n_in);
        const float *rest = residual ? residual + at : NULL;
        if (!row_groups.prompt[i] || !cake_cublaslt_linear(out + at, from, w, bias, rest, n))
            cake_cuda_linear(out + at, from, w, bias, rest, n, cake_cuda_workspace());
    }
}

/* For prompt rows cuBLASLt computes both sums; then the gate is applied and the result packed. */
static bool mlp_gate_up(const cake_exec *exec, void *to, const void *x, const cake_weight *gate,
                        const float *gate_bias, const cake_weight *up, const float *up_bias, cake_act act,
                        cake_dtype dtype, int n_row)
{
    bool alike = gate->dtype == up->dtype && gate->dtype == dtype &&
                 (dtype == CAKE_BF16 || dtype == CAKE_F16) &&
                 cake_cuda_step(dtype, gate->n_out) <= (size_t)gate->n_out * sizeof(float);
    if (!alike || row_groups.prompts)
        return false;
    if (exec->rank == 0)
        cake_cuda_mlp_gate_up(to, x, gate, gate_bias, up, up_bias, (int)act, n_row, cake_cuda_workspace());
    return true;
}

/* One launch for several products saves time only where rows are few: where they are many, reading and
 * multiplying takes longer than launching. */
static bool linear_multi(const cake_exec *exec, const cake_product *product, int n, const void *x, int n_row)
{
    const cake_dtype dtype = product->w->dtype;
    bool fits = !row_groups.prompts && n_row <= CAKE_CUDA_FEW && (dtype == CAKE_BF16 || dtype == CAKE_F16);
    for (int i = 1; i < n; i++)
        fits &= product[i].w->dtype == dtype && cake_cuda_parts(product[i].w) == cake_cuda_parts(product->w);
    if (fits && exec->rank == 0)
        cake_cuda_linear_multi(product, n, x, n_row);
    return fits;
}

static void scores(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_row)
{
    if (exec->rank)
        return;
    bool all = false;
    for (int i = 0; i < n_row; i++)
        all |= wanted[i];
    const size_t parts = CAKE_CUDA_PARTS_BYTES / 2;
    const size_t fit = (CAKE_CUDA_WORKSPACE - parts) / cake_cuda_leaders(w->n_out);
    const int room = fit < CAKE_CUDA_GRID ? (int)fit : CAKE_CUDA_GRID;
    for (int first = 0, n; first < n_row; first += n) {
        n = n_row - first < room ? n_row - first : room;
        cake_cuda_scores(out + (int64_t)first * w->n_out, best + first,
                         (const char *)x + (size_t)first * cake_cuda_step(w->dtype, w->n_in), w, all, cap, n,
                         (char *)cake_cuda_workspace() + parts, cake_cuda_workspace());
    }
}

static void gather(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor)
{
    if (exec->rank == 0)
        cake_cuda_gather(out, w, row, n, factor);
}

static void rmsnorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps)
{
    if (exec->rank == 0)
        cake_cuda_rmsnorm(out, x, weight, residual, n_row, dim, eps);
}

static void rope(const cake_exec *exec, float *x, const float *norm, float eps, const float *cos,
                 const float *sin, int n_row, int n_head, int head_dim, int n_rot)
{
    if (exec->rank == 0)
        cake_cuda_rope(x, norm, eps, cos, sin, n_row, n_head, head_dim, n_rot);
}

static bool rmsnorm_pack(const cake_exec *exec, void *to, const float *x, const float *weight,
                         cake_dtype dtype, int n_row, int dim, float eps, cake_row *rows, int32_t here)
{
    if (exec->rank == 0 && dtype != CAKE_I8)
        cake_cuda_rmsnorm_pack(to, x, weight, dtype, n_row, dim, eps, here ? rows : NULL, here);
    return dtype != CAKE_I8;
}

static bool rope_kv_store(const cake_exec *exec, const cake_kv *kv, float *q, int n_head, const float *k,
                          const float *v, const cake_rope_args *rope, const cake_row *rows, int n_row)
{
    if (exec->rank == 0)
        cake_cuda_rope_kv_store(kv, q, n_head, k, v, rope, rows, n_row);
    return true;
}

static void kv_store(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_row)
{
    if (exec->rank == 0)
        cake_cuda_kv_store(kv, k, v, rows, n_row);
}

/* Maximum segments of a row up to position `last`. The division of work depends only on the CAKE_SEGMENT of
 * `last` and on the rows' kinds, so a recorded graph stays valid (memory.h, repeat). */
static int segments(const cake_kv *kv, int last)
{
    const int64_t all = ((int64_t)last / CAKE_SEGMENT + 1) * CAKE_SEGMENT,
                  seen = kv->window && kv->window < all ? kv->window
                         : all < INT_MAX                ? all
                                                        : INT_MAX;
    const int size = cake_cuda_segment((int)seen), n = (int)((seen + size - 2) / size) + 1,
              shorter = CAKE_CUDA_SEGMENTS + 1; /* some row that sees less may be cut into shorter ones */
    return size > CAKE_CUDA_SEGMENT && n < shorter ? shorter : n;
}

/* Generated rows that fit the workspace of a launch, with this many segments each. */
static int room(const cake_kv *kv, int n_head, int n_segment)
{
    const size_t parts = CAKE_CUDA_WORKSPACE / cake_cuda_attend_part(n_head, kv->head_dim, n_segment),
                 counts = (size_t)CAKE_CUDA_ARRIVALS / (size_t)n_head;
    return (int)(parts < counts ? parts : counts);
}

/* Attention of the first of n rows of one kind, as many as fit the workspace; returns the number. last:
 * the largest position of the wave, so that the division does not depend on the order of rows (memory.h,
 * repeat). */
static int attend_some(void *out, cake_dtype is, const float *q, const cake_kv *kv, const cake_row *rows,
                       int n, int n_head, float scale, float cap, bool prompt, int last)
{
    const int longest = segments(kv, last), most = prompt ? n : room(kv, n_head, longest);
    if (!most) { /* only with millions of positions, or thousands of heads */
        cake_cuda_failed("attention of a row: its heads and segments are more than there is room for");
        return n;
    }
    n = n < most ? n : most;
    cake_cuda_attend(out, is, q, kv, rows, prompt ? 0 : n, n, n_head, scale, cap, cake_cuda_workspace(),
                     longest, cake_cuda_arrived());
    return n;
}

/* out [n_row, n_head, head_dim] of dtype `is`. */
static void attend_to(void *out, cake_dtype is, const float *q, const cake_kv *kv, const cake_row *rows,
                      int n_row, int n_head, float scale, float cap)
{
    const cake_row *row = cake_cuda_rows(rows);
    const int64_t size = (int64_t)n_head * kv->head_dim;
    for (int at = 0, end; at < n_row;) { /* one group of rows of one kind after the other */
        bool prompt = row[at].kind == CAKE_ROW_PROMPT;
        int last = 0;
        for (end = at; end < n_row && (row[end].kind == CAKE_ROW_PROMPT) == prompt; end++)
            last = row[end].pos > last ? row[end].pos : last;
        while (at < end)
            at += attend_some((char *)out + (size_t)(at * size) * cake_dtype_bytes(is), is, q + at * size, kv,
                              rows + at, end - at, n_head, scale, cap, prompt, last);
    }
}

static void attend(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_row, int n_head, float scale, float cap)
{
    if (exec->rank == 0)
        attend_to(out, CAKE_F32, q, kv, rows, n_row, n_head, scale, cap);
}

static bool has_prompt(const cake_row *row, int n)
{
    bool found = false;
    for (int i = 0; i < n && !found; i++)
        found = row[i].kind == CAKE_ROW_PROMPT;
    return found;
}

static bool attend_pack(const cake_exec *exec, void *to, cake_dtype dtype, const float *q, const cake_kv *kv,
                        const cake_row *rows, int n_row, int n_head, float scale, float cap)
{
    const bool tiles = kv->dtype == CAKE_BF16 && cake_cuda_tiles(kv->head_dim),
               whole = n_head * kv->head_dim % CAKE_CUDA_K == 0; /* packed rows need no padding */
    if (!tiles || !whole || (dtype != CAKE_BF16 && dtype != CAKE_F16) ||
        has_prompt(cake_cuda_rows(rows), n_row))
        return false;
    if (exec->rank == 0)
        attend_to(to, dtype, q, kv, rows, n_row, n_head, scale, cap);
    return true;
}

static bool same_slot(const cake_row *row, int i)
{
    return row[i].slot == row[i - 1].slot;
}

static void add_span(cake_cuda_spans *spans, const cake_row *row, int first, int end)
{
    int i = spans->n++;
    bool follows = i && spans->end[i - 1] == first && same_slot(row, first);
    spans->row[i] = first;
    spans->end[i] = end;
    spans->first[i] = follows ? spans->first[i - 1] : (int16_t)i;
}

static int at_most_spans(size_t bytes)
{
    size_t most = CAKE_CUDA_WORKSPACE / bytes;
    return most < 1 ? 1 : most < CAKE_CUDA_SPANS ? (int)most : CAKE_CUDA_SPANS;
}

/* Spans may be cut anywhere: a row's bits depend on its inputs only. A single span needs no workspace. */
static void delta_conv(const cake_exec *exec, float *x, const cake_deltanet *delta, const cake_row *rows,
                       int n_row)
{
    enum { LONGEST = 32 };
    if (exec->rank)
        return;
    const cake_row *row = cake_cuda_rows(rows);
    int most = at_most_spans(cake_cuda_delta_before(delta));
    for (int first = 0, end; first < n_row;) {
        cake_cuda_spans spans = {.n = 0};
        for (; spans.n < most && first < n_row; first = end) {
            for (end = first + 1; end < n_row && end < first + LONGEST && same_slot(row, end);)
                end++;
            add_span(&spans, row, first, end);
        }
        cake_cuda_delta_conv(x, delta, rows, &spans, cake_cuda_workspace());
    }
}

/* The operands of delta_rule, and the spans that are not launched yet. */
typedef struct rule {
    float *out;
    const float *x, *a, *b;
    const cake_deltanet *delta;
    const cake_row *rows;
    int n_head; /* heads that fit the workspace */
    cake_cuda_spans prompt, generated;
} rule;

static void launch_rule(rule *r)
{
    const int n_value = r->delta->n_value;
    for (int head = 0; r->prompt.n && head < n_value; head += r->n_head)
        cake_cuda_delta_prefill(r->out, r->x, r->a, r->b, r->delta, r->rows, &r->prompt, head,
                                n_value - head < r->n_head ? n_value - head : r->n_head,
                                cake_cuda_workspace());
    if (r->generated.n)
        cake_cuda_delta_decode(r->out, r->x, r->a, r->b, r->delta, r->rows, &r->generated);
    r->prompt.n = r->generated.n = 0;
}

/* The end of the span that begins at row `first`: prompt rows up to the next multiple of 64 positions, other
 * rows up to the end of the slot's rows. */
static int rule_end(const cake_row *row, int first, int n_row)
{
    bool prompt = row[first].kind == CAKE_ROW_PROMPT;
    int end = first + 1;
    while (end < n_row && same_slot(row, end) && (row[end].kind == CAKE_ROW_PROMPT) == prompt &&
           !(prompt && row[end].pos % CAKE_PAGE == 0))
        end++;
    return end;
}

static void delta_rule(const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
                       const cake_deltanet *delta, const cake_row *rows, int n_row)
{
    if (exec->rank)
        return;
    const cake_row *row = cake_cuda_rows(rows);
    const size_t room = CAKE_CUDA_WORKSPACE / cake_cuda_delta_part();
    rule r = {.out = out, .x = x, .a = a, .b = b, .delta = delta, .rows = rows};
    r.n_head = (size_t)delta->n_value < room ? delta->n_value : (int)room;
    const int most = at_most_spans((size_t)r.n_head * cake_cuda_delta_part());
    for (int first = 0, end; first < n_row; first = end) {
        bool prompt = row[first].kind == CAKE_ROW_PROMPT;
        cake_cuda_spans *spans = prompt ? &r.prompt : &r.generated;
        end = rule_end(row, first, n_row);
        /* spans of prompts are launched first; so prompt rows after generated rows of the same slot must wait
         * for a launch of these */
        if (spans->n == (prompt ? most : CAKE_CUDA_SPANS) ||
            (prompt && first && same_slot(row, first) && row[first - 1].kind != CAKE_ROW_PROMPT))
            launch_rule(&r);
        add_span(spans, row, first, end);
    }
    launch_rule(&r);
}

static void rmsnorm_gated(const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row,
                          int dim, float eps)
{
    if (exec->rank == 0)
        cake_cuda_rmsnorm_gated(x, gate, weight, n_row, dim, eps);
}

static void mark_nonfinite(const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim,
                           int32_t here, bool ends)
{
    if (exec->rank == 0)
        cake_cuda_mark_nonfinite(rows, x, n_row, dim, here, ends);
}

static void move_rows(const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim,
                      bool back)
{
    if (exec->rank == 0)
        cake_cuda_move_rows(to, x, from, n, dim, back);
}

static void convert(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n)
{
    cake_kernels_ref.convert(out, to, in, from, n); /* on the host, before weights are packed */
}

const cake_kernels cake_kernels_cuda = {
    .name = "cuda",
    .oracle = NULL,
    .memory = &cake_cuda_memory,
    .weight_bytes = cake_cuda_weight_bytes,
    .weight_pack = weight_pack,
    .select_algorithm = cake_cublaslt_select_algorithm,
    .input_bytes = cake_cuda_input_bytes,
    .input_pack = input_pack,
    .convert = convert,
    .set_rows = set_rows,
    .linear = linear,
    .scores = scores,
    .gather = gather,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .kv_store = kv_store,
    .attend = attend,
    .delta_conv = delta_conv,
    .delta_rule = delta_rule,
    .rmsnorm_gated = rmsnorm_gated,
    .mark_nonfinite = mark_nonfinite,
    .move_rows = move_rows,
    .mlp_gate_up = mlp_gate_up,
    .linear_multi = linear_multi,
    .rmsnorm_pack = rmsnorm_pack,
    .rope_kv_store = rope_kv_store,
    .attend_pack = attend_pack,
    CAKE_NO_EXPERTS,
    CAKE_NO_LATENT,
};
