/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations. Every table promises: an output element depends only on its own row and the
 * weights, and its sum is taken in one order, whatever the number of rows, the team size and the row's index
 * in the wave. linear's order is k ascending in one chain of float32 fused multiply-adds per element (for
 * int8 see int8.h), or what `oracle` does in plain C, or a GPU's own; bias and then residual are added after
 * the sum.
 *
 * All members of a team call an operation at the same time. It divides its output among them, never its sums,
 * and does not wait at the end: a caller that needs the complete output calls cake_exec_barrier first.
 */
#ifndef CAKE_KERNELS_KERNELS_H
#define CAKE_KERNELS_KERNELS_H

#include <math.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/exact_math.h"
#include "kernels/experts.h"
#include "kernels/memory.h"
#include "kernels/tensor.h"
#include "types/row.h"
#include "types/topk.h"

/* One member of a team of threads that run operations together. */
typedef struct cake_exec {
    int rank, size;
    struct cake_team *team; /* holds the barrier; NULL in a team of one */
} cake_exec;

/* Runs work(exec, arg) on a team of `size` threads (or fewer, if OpenMP grants fewer) and returns when all
 * are done. */
void cake_exec_run(int size, void (*work)(const cake_exec *exec, void *arg), void *arg);
/* Keeps threads alive, asleep, between smaller teams, with the cores they were bound to. Call it from the
 * thread that runs the teams. */
void cake_exec_resident(int size);
/* Tells waiting threads to yield at once, because there are more threads than CPUs. Call it from the thread
 * that runs the teams. */
void cake_exec_oversubscribe(bool oversubscribed);
bool cake_exec_is_oversubscribed(void);
/* Runs work(arg) on this thread. When oversubscribed, up to size - 1 other threads wait meanwhile without
 * spinning for the teams that work(arg) runs; OpenMP's own threads would spin for milliseconds between
 * teams. */
void cake_exec_session(int size, void (*work)(void *arg), void *arg);
/* Scratch memory [CAKE_SCRATCH_BYTES] of this thread for the duration of an operation, aligned to a cache
 * line (threads may have small stacks). Allocated at the first call; the threads of cake_exec_run allocate it
 * in advance. */
#define CAKE_SCRATCH_BYTES ((size_t)3 << 19)
void *cake_exec_scratch(void);
void cake_exec_barrier(const cake_exec *exec);
/* Yields the CPU while waiting for anything but a barrier. */
void cake_exec_yield(void);
/* This member's half-open part of [0, n), in units of `grain`. */
void cake_exec_range(const cake_exec *exec, int64_t n, int64_t grain, int64_t *first, int64_t *last);

/* A work-stealing queue of n < 2^26 units. Members take their own range in order, then from the end of what
 * others have left. All members queue the same work in the same order. No barrier is needed between two
 * queues, but at least one in a thousand. */
typedef struct cake_work_queue {
    const cake_exec *exec;
    int64_t n;           /* all units */
    int64_t first, last; /* what is left of this member's range while nobody steals from it */
    unsigned number;
} cake_work_queue;

cake_work_queue cake_exec_queue(const cake_exec *exec, int64_t n);
/* Takes the next units [*first, *last): at most `most`. False: all are taken. */
bool cake_exec_next(cake_work_queue *queue, int64_t most, int64_t *first, int64_t *last);

/* One layer's KV cache. Position p of slot s is in page table[s * stride + p / CAKE_PAGE], line p %
 * CAKE_PAGE. In a page of K the positions are innermost, so that one element of q meets the keys of many
 * positions in a vector.
 *   K: [n_kv, head_dim, CAKE_PAGE] of dtype; V: [n_kv, CAKE_PAGE, head_dim].
 * BF16 with an even head_dim is stored in pairs, so that one instruction adds both products of a pair:
 *   K: [n_kv, head_dim / 2, CAKE_PAGE, 2], pairs of neighbouring elements of one line;
 *   V: [n_kv, CAKE_PAGE / 2, head_dim, 2], pairs of the same element of neighbouring lines.
 * Latent attention keeps one key for all heads, and no V: the first n_value elements of a key are the
 * value.
 * int8 has codes in the place of elements, and after those of a head BF16 scales [CAKE_PAGE], one of each
 * line; latents have two, [2, CAKE_PAGE]: of the first n_value elements, and of the others. An element is
 * code * scale, which is exact in float32; lines are quantised as groups are in int8.h. */
typedef struct cake_kv {
    void *k, *v;       /* page 0 */
    int64_t page_step; /* elements from one page to the next; of int8, bytes */
    cake_dtype dtype;
    int n_kv, head_dim;
    int window;           /* positions visible to a row, including its own; 0: all */
    bool both_ways;       /* rows see later positions of their prompt, too, window - 1 of them at most */
    const int32_t *table; /* [n_slot, stride] */
    int stride;
    const float *sink; /* [n_head] attention sinks, or NULL */
    int n_value;       /* of latent attention; 0: V has the values, of head_dim elements */
} cake_kv;

/* What the weights exp(score - most) of a head, whose sum is total, are divided by. An attention sink
 * counts as the score of one more position, which has no value (gpt-oss). */
CAKE_ANYWHERE static inline float cake_kv_divisor(const cake_kv *kv, int head, float total, float most)
{
#ifdef __CUDA_ARCH__
    return kv->sink ? total + expf(kv->sink[head] - most) : total;
#else
    return kv->sink ? total + cake_expf(kv->sink[head] - most) : total;
#endif
}

/* Maximum head_dim of latent attention. */
#define CAKE_LATENT_DIM 576

/* Elements of a value. */
CAKE_ANYWHERE static inline int cake_kv_value_dim(const cake_kv *kv)
{
    return kv->n_value ? kv->n_value : kv->head_dim;
}

/* Elements of a key, or lines of values, that are stored as a pair: 2 or 1. */
CAKE_ANYWHERE static inline int cake_kv_pair(const cake_kv *kv)
{
    return kv->dtype == CAKE_BF16 && kv->head_dim % 2 == 0 ? 2 : 1;
}

/* Elements that a line of one head takes in k, and in v: of int8 bytes, its scales included. */
CAKE_ANYWHERE static inline int cake_kv_line(cake_dtype dtype, int head_dim, int n_value)
{
#ifdef __CUDA_ARCH__ /* GPUs have no caches in int8, and kernels no registers to spare */
    return (void)dtype, (void)n_value, head_dim;
#else
    return head_dim + (dtype == CAKE_I8 ? 2 * (n_value ? 2 : 1) : 0);
#endif
}

/* The same in bytes. All sizes of caches come from here. */
static inline size_t cake_kv_line_bytes(cake_dtype dtype, int head_dim, int n_value)
{
    return (size_t)cake_kv_line(dtype, head_dim, n_value) * cake_dtype_bytes(dtype);
}

/* Offset in elements of one head's part of the page that holds a slot's position; the same in k and v. */
CAKE_ANYWHERE static inline size_t cake_kv_page(const cake_kv *kv, int slot, int pos, int head)
{
    int64_t page = kv->table[(int64_t)slot * kv->stride + pos / CAKE_PAGE];
    return (size_t)(page * kv->page_step +
                    (int64_t)head * CAKE_PAGE * cake_kv_line(kv->dtype, kv->head_dim, kv->n_value));
}

/* Offset in elements from cake_kv_page of element j of a line's key; and of its value in v. */
CAKE_ANYWHERE static inline size_t cake_kv_key(const cake_kv *kv, int line, int j)
{
    int pair = cake_kv_pair(kv);
    return ((size_t)(j / pair) * CAKE_PAGE + (size_t)line) * (size_t)pair + (size_t)(j % pair);
}

CAKE_ANYWHERE static inline size_t cake_kv_value(const cake_kv *kv, int line, int j)
{
    int pair = cake_kv_pair(kv);
    return ((size_t)(line / pair) * (size_t)kv->head_dim + (size_t)j) * (size_t)pair + (size_t)(line % pair);
}

/* Offset in bytes from cake_kv_page of a line's scale in int8; rest: of what follows the n_value elements. */
CAKE_ANYWHERE static inline size_t cake_kv_scale(const cake_kv *kv, int line, bool rest)
{
    return ((size_t)kv->head_dim + 2 * (size_t)rest) * CAKE_PAGE + 2 * (size_t)line;
}

/* One gated delta-rule layer (Yang, Kautz and Hatamizadeh 2024; Qwen3.5's linear attention) and the states of
 * all slots. A state has a fixed size per sequence: the rule's [n_value, key_dim, value_dim], then the last
 * width - 1 inputs of the convolution [width - 1, channels], oldest first. */
typedef struct cake_deltanet {
    int n_key, n_value;           /* heads */
    bool tiled;                   /* see cake_delta_key_head */
    int key_dim, value_dim;       /* per head, max CAKE_DELTA_DIM */
    int width;                    /* of the convolution, max CAKE_DELTA_WIDTH */
    const float *conv;            /* [channels, width] */
    const float *a_log, *dt_bias; /* [n_value] */
    float *state;                 /* of slot 0 */
    int64_t step;                 /* elements from one slot's state to the next one's */
} cake_deltanet;

#define CAKE_DELTA_DIM   256
#define CAKE_DELTA_WIDTH 16

/* The key head of a value head. Value heads of one key head are neighbours; tiled, they are n_key apart. */
CAKE_ANYWHERE static inline int cake_delta_key_head(const cake_deltanet *d, int value_head)
{
    return d->tiled ? value_head % d->n_key : value_head / (d->n_value / d->n_key);
}

/* Input channels of the convolution: q and k of all key heads, v of all value heads. */
CAKE_ANYWHERE static inline int64_t cake_delta_channels(const cake_deltanet *d)
{
    return 2 * (int64_t)d->n_key * d->key_dim + (int64_t)d->n_value * d->value_dim;
}

/* Elements of the rule's part of a state, and of a whole state. */
CAKE_ANYWHERE static inline int64_t cake_delta_rule_size(const cake_deltanet *d)
{
    return (int64_t)d->n_value * d->key_dim * d->value_dim;
}

CAKE_ANYWHERE static inline int64_t cake_delta_state_size(const cake_deltanet *d)
{
    return cake_delta_rule_size(d) + (d->width - 1) * cake_delta_channels(d);
}

#define CAKE_SEGMENT 1024 /* positions summed by attention before it merges the result */

/* The first and the last position visible to a row; and the end of the segment of `first`, clipped to its own
 * position. Attention walks [first, next) until next is after the row. */
CAKE_ANYWHERE static inline int cake_kv_first(const cake_kv *kv, const cake_row *row)
{
    return kv->window && row->pos >= kv->window ? row->pos + 1 - kv->window : 0;
}

CAKE_ANYWHERE static inline int cake_kv_last(const cake_kv *kv, const cake_row *row)
{
    const int end = row->rope_len - 1, ahead = row->pos + kv->window - 1;
    return !kv->both_ways ? row->pos : kv->window && ahead < end ? ahead : end;
}

CAKE_ANYWHERE static inline int cake_kv_next(const cake_row *row, int first)
{
    int64_t end = ((int64_t)first / CAKE_SEGMENT + 1) * CAKE_SEGMENT;
    return end <= row->pos ? (int)end : row->pos + 1;
}

/* Number of positions that both rows read from the same memory: from *first, the first one visible to both,
 * up to where their page tables differ. */
static inline int cake_kv_shared(const cake_kv *kv, const cake_row *a, const cake_row *b, int *first)
{
    const int32_t *x = kv->table + (int64_t)a->slot * kv->stride,
                  *y = kv->table + (int64_t)b->slot * kv->stride;
    int from_a = cake_kv_first(kv, a), from = cake_kv_first(kv, b), last = a->pos < b->pos ? a->pos : b->pos;
    from = from > from_a ? from : from_a;
    int page = from / CAKE_PAGE;
    while (page <= last / CAKE_PAGE && x[page] == y[page])
        page++;
    *first = from;
    int64_t end = (int64_t)page * CAKE_PAGE <= last ? (int64_t)page * CAKE_PAGE : (int64_t)last + 1;
    return end > from ? (int)(end - from) : 0;
}

#define CAKE_GELU_SCALE 0.797884561F /* sqrt(2 / pi) */
#define CAKE_GELU_CUBE  0.044715F
#define CAKE_ROOT_HALF  0.707106781F /* sqrt(1 / 2) */

/* Activation of a gate g, applied to a value x. */
typedef enum cake_act {
    CAKE_ACT_SILU, /* x g / (1 + exp(-g)) */
    /* x g / (1 + exp(-2 u)) with u = sqrt(2 / pi) (g + 0.044715 g^3), equal to x 0.5 g (1 + tanh(u)): the
     * approximation of Hendrycks & Gimpel 2016 that transformers calls gelu_pytorch_tanh */
    CAKE_ACT_GELU,
    CAKE_ACT_GELU_ERF, /* x g (1 + erf(g / sqrt 2)) / 2 (transformers: gelu) */
    CAKE_ACT_SIGMOID,  /* x / (1 + exp(-g)) */
    CAKE_ACT_CLAMPED, /* (u + 1) h / (1 + exp(-alpha h)), h = min(g, limit), u = x within +-limit (gpt-oss) */
    /* of g > 0: alpha_p g^2 + beta g; else alpha_n (e^min(g, eps) - 1 - g) + beta g; x is not used
     * (Huang 2024: xIELU) */
    CAKE_ACT_XIELU
} cake_act;

/* Parameters of CAKE_ACT_CLAMPED, then of CAKE_ACT_XIELU. */
enum { CAKE_ALPHA, CAKE_LIMIT, CAKE_ALPHA_P = 0, CAKE_ALPHA_N, CAKE_BETA, CAKE_EPS, CAKE_N_ACT_PARAM };

typedef struct cake_gate {
    const float *g; /* one for each element */
    cake_act act;
    bool alone; /* there is no x: it counts as 1 */
    float param[CAKE_N_ACT_PARAM];
} cake_gate;

/* One product of linear_multi. */
#define CAKE_PRODUCTS 4
typedef struct cake_product {
    float *out;
    const cake_weight *w;
    const float *bias; /* or NULL */
} cake_product;

/* One product of linear_grouped. */
typedef struct cake_expert_product {
    float *out;
    const cake_experts *experts;
} cake_expert_product;

/* Queries of latent attention: of each head the part that meets the latent, and the rotated part. Results
 * [n_head, n_row, n_value] lie as `latent` does, sorted by head: its products are those of experts, a head
 * each. */
typedef struct cake_latent_query {
    const float *latent; /* [n_head, n_row, n_value] */
    const float *rope;   /* [n_row, n_head, n_rope] */
    int n_head;
} cake_latent_query;

/* Arguments of rope for the heads of q and k. */
typedef struct cake_rope_args {
    const float *q_norm, *k_norm; /* or NULL */
    float eps;
    const float *cos, *sin;
    int n_rot; /* 0: norms only */
} cake_rope_args;

typedef struct cake_kernels {
    const char *name;                  /* the name that --isa takes */
    const struct cake_kernels *oracle; /* table in plain C whose linear gives the same bits; NULL: none */

    const struct cake_memory *memory; /* memory of all operands; NULL: host memory */

    /* Bytes of a packed matrix of this shape and type, a multiple of CAKE_ALIGN. */
    size_t (*weight_bytes)(const cake_weight *w);
    /* Packs rows [first, first + n_row) of a row-major matrix into w->data. src, in host memory, begins with
     * row `first`, as it is stored (cake_weight_row_bytes each). Padding of the layout must be zero already
     * (arenas are). */
    void (*weight_pack)(const cake_weight *w, const void *src, int first, int n_row);
    /* Called by one thread once the matrix is packed: selects the algorithm that linear will use for it. */
    void (*select_algorithm)(const cake_weight *w);

    /* Packs rows of floats (rounds, quantises, pads) once for products with all matrices of dtype: x [n_row,
     * n_in] goes to `to` [input_bytes, aligned to CAKE_ALIGN]. With a gate [n_row, n_in], which may be NULL,
     * the gated x is packed. Without one, members take the same rows as in rmsnorm, so that a team packs what
     * it has normalised without a barrier. */
    size_t (*input_bytes)(cake_dtype dtype, int n_in, int n_row);
    void (*input_pack)(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_row);
    /* Runs on the host: out [n] of dtype `to` = in [n] of dtype `from`, with the bits of cake_to_f32 and
     * cake_from_f32; to CAKE_I8 or CAKE_Q8, one row at a time, with those of cake_i8_from or cake_i4_from. */
    void (*convert)(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n);

    /* Sets the rows (prompt or generated) that the following `linear` calls multiply; NULL, 0 resets.
     * Called by one thread. */
    void (*set_rows)(const cake_row *rows, int n_row);
    /* out [n_row, w->n_out] = x [n_row, w->n_in] W^T + bias [w->n_out] + residual [n_row, w->n_out].
     * x is packed for w->dtype; bias and residual may be NULL; residual may be out itself. */
    void (*linear)(const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_row);
    /* The product with the LM head: out [n_row, w->n_out] as in linear; where cap > 0 each element x then
     * becomes cap tanh(x / cap). Rows that are not wanted may stay unwritten. best [n_row] belongs to the
     * member, is cleared before, and receives the top of the columns that it computed; cake_topk_join joins
     * those of all members. */
    void (*scores)(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_row);
    /* out [n, w->n_in] = factor * rows row[i] of W as float32 (0 <= row[i] < w->n_out): the embedding. */
    void (*gather)(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor);

    /* out [n_row, dim] = x / sqrt(mean(x^2) + eps) * weight [dim] + residual [n_row, dim]; out may be x;
     * residual may be NULL or out. (Zhang & Sennrich 2019) */
    void (*rmsnorm)(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps);
    /* With d = x - mean(x): out [n_row, dim] = d / sqrt(mean(d^2) + eps) * weight [dim] + bias [dim]; out may
     * be x; bias may be NULL. (Ba, Kiros and Hinton 2016) Members take the same rows as in rmsnorm. NULL: not
     * on this device. */
    void (*layernorm)(const cake_exec *exec, float *out, const float *x, const float *weight,
                      const float *bias, int n_row, int dim, float eps);
    /* Heads x [n_row, n_head, head_dim] in place: rmsnorm of each head with norm [head_dim] (may be NULL),
     * then rotary embedding (Su et al. 2021) in transformers' half-split convention: element i < n_rot / 2
     * pairs with i + n_rot / 2; elements from n_rot on are unchanged. cos, sin [n_row, n_rot / 2]. Members
     * take the same heads as in kv_store, so that a team stores the keys it has rotated without a barrier. */
    void (*rope)(const cake_exec *exec, float *x, const float *norm, float eps, const float *cos,
                 const float *sin, int n_row, int n_head, int head_dim, int n_rot);
    /* Writes k, v [n_row, n_kv, head_dim] of each row to its page, rounded to the cache's dtype, or quantised
     * as a line. */
    void (*kv_store)(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_row);
    /* out [n_row, n_head, head_dim]: softmax(scores) v over positions 0 .. rows[i].pos of the row's own
     * slot, or over the last kv->window of them (both ways: cake_kv_first to cake_kv_last); query head h uses
     * KV head h / (n_head / n_kv). A score is scale q k^T; with cap > 0 then cap tanh(score / cap); the sum
     * of weights includes kv->sink.
     * Segments between multiples of CAKE_SEGMENT positions are merged in order, positions ascending
     * (online softmax, Milakov & Gimelshein 2018). avx512bf16 rounds q, and the weights before they are
     * summed in any way, to BF16 where the cache is stored in pairs and head_dim <= 576. */
    void (*attend)(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_row, int n_head, float scale, float cap);

    /* Latent attention (DeepSeek-AI 2024) with n_rope = kv->head_dim - kv->n_value. The store writes a key of
     * latent [n_row, n_value] and rope [n_row, n_rope] for each row. The other is attend without window and
     * cap, where the query of a head consists of its rows of q->latent and q->rope. */
    void (*latent_store)(const cake_exec *exec, const cake_kv *kv, const float *latent, const float *rope,
                         const cake_row *rows, int n_row);
    void (*latent_attend)(const cake_exec *exec, float *out, const cake_latent_query *q, const cake_kv *kv,
                          const cake_row *rows, int n_row, float scale);

    /* For the next two: rows of one slot are contiguous with consecutive positions, and the slot's state is
     * the one after the position before the first of them; position 0 starts from zeros whatever the state
     * holds. Afterwards the state is the one after the last row. */

    /* x [n_row, channels] in place: silu(sum over j of conv[c][j] * input[pos - width + 1 + j][c]), j
     * ascending; inputs before position 0 are zero. */
    void (*delta_conv)(const cake_exec *exec, float *x, const cake_deltanet *delta, const cake_row *rows,
                       int n_row);
    /* out [n_row, n_value, value_dim] from x [n_row, channels] as delta_conv leaves it, and a, b [n_row,
     * n_value]. Per value head, with q and k divided by sqrt(sum of squares + 1e-6), q also by sqrt(key_dim),
     * and a state S [key_dim, value_dim]:
     *   S *= exp(-exp(a_log) softplus(a + dt_bias));  S += k^T sigmoid(b) (v - k S);  out = q S
     * Generated and replayed rows are computed one by one. Prompt rows may be combined within a block [64 i,
     * 64 i + 64) of positions, so that results do not depend on how a prompt was cut into waves, as long as
     * cuts are at multiples of 64. */
    void (*delta_rule)(const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
                       const cake_deltanet *delta, const cake_row *rows, int n_row);
    /* Marks rows of x [n_row, dim] that are not finite with `here`, unless they are marked already. ends:
     * after the model's last layer, where rows without output are skipped. */
    void (*mark_nonfinite)(const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim,
                           int32_t here, bool ends);
    /* For i < n: row i of to [.., dim] = row from[i] of x; with back, row from[i] of to = row i of x. */
    void (*move_rows)(const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim,
                      bool back);
    /* x [n_row, dim] in place: x / sqrt(mean(x^2) + eps) * weight [dim] * silu(gate [n_row, dim]). */
    void (*rmsnorm_gated)(const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row,
                          int dim, float eps);

    /* The next three are the products of experts (experts.h). A sorted row is one of `groups`. */

    /* input_pack of sorted rows: to [input_bytes of groups->n_sorted rows]. With `gather`, a sorted row is
     * taken from the wave's row of x (and gate) that groups->row names; without, x and gate are sorted
     * already. */
    void (*input_pack_grouped)(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                               cake_dtype dtype, int n_in, const cake_groups *groups, bool gather);
    /* For each of n <= CAKE_PRODUCTS products, whose matrices have equal shapes, dtypes and formats: out
     * [groups->n_sorted, n_out] = sorted row of x times its expert's matrix, plus its bias, with the bits of
     * linear. */
    void (*linear_grouped)(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                           const cake_groups *groups);
    /* out [n_row, dim] = the sum over j < groups->stride, j ascending, of weight [n_row, stride] times row
     * groups->sorted [n_row, stride] of y, + residual [n_row, dim], which may be NULL or out. */
    void (*combine)(const cake_exec *exec, float *out, const float *y, const cake_groups *groups,
                    const float *weight, const float *residual, int n_row, int dim);

    /* The operations below are fused. Each gives the bits of the operations above that it combines. False: it
     * does not support these rows or matrices, and nothing was done; a table without one takes that of
     * kernels/unfused.h. */

    /* linear with both matrices of a gated MLP, then input_pack for a matrix of `dtype` of up's output,
     * gated. `to` has memory for floats [n_row, gate->n_out] and does not overlap x. */
    bool (*mlp_gate_up)(const cake_exec *exec, void *to, const void *x, const cake_weight *gate,
                        const float *gate_bias, const cake_weight *up, const float *up_bias, cake_act act,
                        cake_dtype dtype, int n_row);
    /* linear with n <= CAKE_PRODUCTS matrices of the same x, without residual. */
    bool (*linear_multi)(const cake_exec *exec, const cake_product *product, int n, const void *x, int n_row);
    /* mark_nonfinite (ends: false) unless here is 0; rmsnorm without residual; input_pack for a matrix of
     * dtype. The norm's output itself is not stored. */
    bool (*rmsnorm_pack)(const cake_exec *exec, void *to, const float *x, const float *weight,
                         cake_dtype dtype, int n_row, int dim, float eps, cake_row *rows, int32_t here);
    /* Rotates the n_head heads of q (may be 0) and the keys k, then does kv_store. k itself may be
     * left unchanged. */
    bool (*rope_kv_store)(const cake_exec *exec, const cake_kv *kv, float *q, int n_head, const float *k,
                          const float *v, const cake_rope_args *rope, const cake_row *rows, int n_row);
    /* attend, then input_pack of its output for a matrix of dtype. The output itself is not stored. */
    bool (*attend_pack)(const cake_exec *exec, void *to, cake_dtype dtype, const float *q, const cake_kv *kv,
                        const cake_row *rows, int n_row, int n_head, float scale, float cap);
} cake_kernels;

extern const cake_kernels cake_kernels_ref;
/* Like ref, except in products with BF16 weights: x is rounded to BF16 too; of two neighbouring values along
 * k the odd one is added first; subnormal numbers count as zero. The oracle of avx512bf16. */
extern const cake_kernels cake_kernels_ref_bf16;
/* As that, but pairs are added before they are added to the sum, and rounded to odd. The oracle of
 * neonbf16. */
extern const cake_kernels cake_kernels_ref_bfdot;

/* The best table that this CPU can run, from ("ref", "avx2", "avx512", "avx512bf16") or, on Arm, ("ref",
 * "neon", "sve512", "neonbf16"). A level is an index into this list. */
int cake_kernels_best(void);
int cake_kernels_exact(void);             /* the best table that rounds no activations: ref is its oracle */
int cake_kernels_level(const char *name); /* -1: no such table in this build */
const cake_kernels *cake_kernels_at(int level); /* NULL: this CPU cannot run it */
/* Bit l: level l, which is at most `level`, runs here. The highest bit that all ranks have is their level. */
int64_t cake_kernels_up_to(int level);
/* Tables that this CPU can run but that have no level here, since a faster one gives the same bits; NULL past
 * the last. For tests. */
const cake_kernels *cake_kernels_spare(int i);

#endif
