/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations, and the promise every table keeps: an output element depends on its own row and on
 * the weights only, and its sum is taken in one order, whatever the number of rows, the size of the team and
 * the place of the row in the wave. For linear that order is k ascending in one chain of float32 fused
 * multiply-adds per element (for matrices in int8 what int8.h says), or what `oracle` does in plain C, or one
 * of a GPU's own; bias and residual are added after the sum, in this order.
 *
 * An operation is called by all members of a team at the same time. It splits its work over them by its
 * output, never by its sums, and does not wait at the end: whoever needs the whole output calls
 * cake_exec_barrier first.
 */
#ifndef CAKE_KERNELS_KERNELS_H
#define CAKE_KERNELS_KERNELS_H

#include <stdbool.h>

#include "base/err.h"
#include "kernels/memory.h"
#include "kernels/tensor.h"
#include "types/row.h"
#include "types/topk.h"

/* One member of a team, which runs an operation together. */
typedef struct cake_exec {
    int rank, size;
    struct cake_team *team; /* where its barriers meet; NULL in a team of one */
} cake_exec;

/* Runs work(exec, arg) on a team of `size` threads (fewer, if OpenMP grants fewer) and returns when all are
 * done. */
void cake_exec_run(int size, void (*work)(const cake_exec *exec, void *arg), void *arg);
/* From now on threads outlive teams that are smaller than this, and keep the cores that they were given; in
 * between they sleep. To be called by the thread that runs the teams. */
void cake_exec_resident(int size);
/* From now on there are more threads than cpus: who waits gives its cpu away at once, since whom it waits for
 * may need it. To be called by the thread that runs the teams. */
void cake_exec_oversubscribe(bool crowded);
bool cake_exec_is_oversubscribed(void);
/* Runs work(arg) on this thread. Where threads are more than cpus, up to size - 1 others wait meanwhile,
 * without spinning, for the teams that work(arg) runs: between teams OpenMP's own would spin for
 * milliseconds. */
void cake_exec_session(int size, void (*work)(void *arg), void *arg);
/* Memory for what an operation has to keep while it runs, of this thread [CAKE_SCRATCH_BYTES], on a cache
 * line's boundary: threads may have small stacks. The first call takes it, cake_exec_run's threads ahead
 * of need. */
#define CAKE_SCRATCH_BYTES ((size_t)1 << 20)
void *cake_exec_scratch(void);
void cake_exec_barrier(const cake_exec *exec);
/* For waiting on anything but a barrier: gives the cpu away for a moment. */
void cake_exec_yield(void);
/* The half-open range of [0, n) that is this member's, in units of `grain`. */
void cake_exec_range(const cake_exec *exec, int64_t n, int64_t grain, int64_t *first, int64_t *last);

/* n < 2^26 units of work that members take as they come to them: their own share in order, then from the end
 * of what others have left, so that none waits for a slower one. All members deal the same works in the same
 * order; there need be no barrier between two of them, but there is one in any thousand. */
typedef struct cake_deal {
    const cake_exec *exec;
    int64_t n;           /* all units */
    int64_t first, last; /* what is left of this member's share, as long as nobody else takes of it */
    unsigned number;
} cake_deal;

cake_deal cake_exec_queue(const cake_exec *exec, int64_t n);
/* The next units for this member, [*first, *last): `most`, or fewer when few are left. False: all are
 * taken. */
bool cake_exec_next(cake_deal *deal, int64_t most, int64_t *first, int64_t *last);

/* One layer's KV cache. Position p of slot s is in page table[s * stride + p / CAKE_PAGE], line p %
 * CAKE_PAGE. In a page of K the lines stand side by side, so that one element of q meets the keys of many
 * positions in a vector.
 *   K: [n_kv, head_dim, CAKE_PAGE] of dtype; V: [n_kv, CAKE_PAGE, head_dim].
 * BF16 with an even head_dim stands in pairs, so that one instruction adds both products of a pair:
 *   K: [n_kv, head_dim / 2, CAKE_PAGE, 2], two neighbouring elements of one line side by side;
 *   V: [n_kv, CAKE_PAGE / 2, head_dim, 2], two neighbouring lines' same element side by side. */
typedef struct cake_kv {
    void *k, *v;       /* page 0 */
    int64_t page_step; /* elements from one page to the next */
    cake_dtype dtype;
    int n_kv, head_dim;
    int window;           /* positions that a row sees, its own among them; 0: all */
    const int32_t *table; /* [n_slot, stride] */
    int stride;
} cake_kv;

/* How many neighbouring elements of a key, or neighbouring lines of values, form a pair (2), or 1. */
CAKE_ANYWHERE static inline int cake_kv_pair(const cake_kv *kv)
{
    return kv->dtype == CAKE_BF16 && kv->head_dim % 2 == 0 ? 2 : 1;
}

/* Where the part of one head begins in the page of a slot's position, in elements of k, and of v. */
CAKE_ANYWHERE static inline size_t cake_kv_page(const cake_kv *kv, int slot, int pos, int head)
{
    int64_t page = kv->table[(int64_t)slot * kv->stride + pos / CAKE_PAGE];
    return (size_t)(page * kv->page_step + (int64_t)head * CAKE_PAGE * kv->head_dim);
}

/* The offset from there, in elements, of element j of a line's key; and of its value. */
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

/* One gated delta-rule layer (Yang, Kautz and Hatamizadeh 2024; Qwen3.5's linear attention) and the states of
 * all slots. A state is what the layer keeps of a sequence, whatever its length: the rule's [n_value,
 * key_dim, value_dim], then the convolution's last width - 1 inputs [width - 1, channels], oldest first. */
typedef struct cake_deltanet {
    int n_key, n_value;           /* heads; value head h goes with key head h / (n_value / n_key) */
    int key_dim, value_dim;       /* of a head, at most CAKE_DELTA_DIM */
    int width;                    /* of the convolution, at most CAKE_DELTA_WIDTH */
    const float *conv;            /* [channels, width] */
    const float *a_log, *dt_bias; /* [n_value] */
    float *state;                 /* of slot 0 */
    int64_t step;                 /* elements from one slot's state to the next one's */
} cake_deltanet;

#define CAKE_DELTA_DIM   256
#define CAKE_DELTA_WIDTH 16

/* q and k of all key heads, v of all value heads: what goes through the convolution. */
CAKE_ANYWHERE static inline int64_t cake_delta_channels(const cake_deltanet *d)
{
    return 2 * (int64_t)d->n_key * d->key_dim + (int64_t)d->n_value * d->value_dim;
}

/* Elements of the rule's part of a state, and of all of it. */
CAKE_ANYWHERE static inline int64_t cake_delta_rule_size(const cake_deltanet *d)
{
    return (int64_t)d->n_value * d->key_dim * d->value_dim;
}

CAKE_ANYWHERE static inline int64_t cake_delta_state_size(const cake_deltanet *d)
{
    return cake_delta_rule_size(d) + (d->width - 1) * cake_delta_channels(d);
}

#define CAKE_SEGMENT 1024 /* positions that attention sums up before it merges */

/* The first position that a row sees; and the end of the segment in which `first` lies, cut to what the row
 * sees: attention walks [first, next) until next is behind the row. */
CAKE_ANYWHERE static inline int cake_kv_first(const cake_kv *kv, const cake_row *row)
{
    return kv->window && row->pos >= kv->window ? row->pos + 1 - kv->window : 0;
}

CAKE_ANYWHERE static inline int cake_kv_next(const cake_row *row, int first)
{
    int64_t end = ((int64_t)first / CAKE_SEGMENT + 1) * CAKE_SEGMENT;
    return end <= row->pos ? (int)end : row->pos + 1;
}

/* How many positions of both rows stand in the same memory: from *first, the first one that both see, up to
 * where their page tables differ. */
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

/* What a gate g lets pass of a value x. */
typedef enum cake_act {
    CAKE_ACT_SILU, /* x g / (1 + exp(-g)) */
    /* x g / (1 + exp(-2 u)) with u = sqrt(2 / pi) (g + 0.044715 g^3), which is x 0.5 g (1 + tanh(u)): the
     * approximation of Hendrycks & Gimpel 2016 that transformers calls gelu_pytorch_tanh */
    CAKE_ACT_GELU,
    CAKE_ACT_SIGMOID /* x / (1 + exp(-g)) */
} cake_act;

typedef struct cake_gate {
    const float *g; /* one for each element */
    cake_act act;
} cake_gate;

/* One of several products. */
#define CAKE_PRODUCTS 4
typedef struct cake_product {
    float *out;
    const cake_weight *w;
    const float *bias; /* or NULL */
} cake_product;

/* What rope takes, for heads of q and of k. */
typedef struct cake_rope_args {
    const float *q_norm, *k_norm; /* or NULL */
    float eps;
    const float *cos, *sin;
    int n_rot; /* 0: norms only */
} cake_rope_args;

typedef struct cake_kernels {
    const char *name;                  /* as --isa has it */
    const struct cake_kernels *oracle; /* in plain C, whose linear gives the same bits; NULL: there is none */

    const struct cake_memory *memory; /* where all that operations are given lies; NULL: in the host's */

    /* Bytes of a packed matrix, a multiple of CAKE_ALIGN. */
    size_t (*weight_bytes)(cake_dtype dtype, int n_out, int n_in);
    /* Packs rows [first, first + n_row) of a row-major matrix into w->data. src, in the host's memory, holds
     * these rows, from row `first` on, in w->dtype (cake_row_bytes of int8.h each). Padding that the layout
     * needs has to be zero already (arenas are). */
    void (*weight_pack)(const cake_weight *w, const void *src, int first, int n_row);
    /* The matrix is packed completely and will be used by linear: a table that has to choose an algorithm for
     * it does so now. NULL: there is nothing to choose. Called by one thread. */
    void (*select_algorithm)(const cake_weight *w);

    /* Packs rows of floats for products with matrices of dtype (rounds, quantises, pads them), once for all
     * such matrices: x [n_tok, n_in] goes to `to`, which has input_bytes of memory aligned to CAKE_ALIGN.
     * With a gate [n_tok, n_in], which may be NULL, what the gate lets pass of x is packed. Without one,
     * members take the same rows as in rmsnorm, so that a team packs what it has normalised without a
     * barrier. */
    size_t (*input_bytes)(cake_dtype dtype, int n_in, int n_tok);
    void (*input_pack)(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_tok);
    /* Done by the host: out [n] of dtype `to` = in [n] of dtype `from`, bit for bit as cake_to_f32 and
     * cake_from_f32 do it; to CAKE_I8, which takes one row at a time, as cake_i8_from does it. */
    void (*convert)(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n);

    /* From now on linear multiplies these rows, until this is called again; NULL, 0: rows of no kind. NULL in
     * tables that treat all kinds of rows alike. Called by one thread. */
    void (*set_rows)(const cake_row *rows, int n_tok);
    /* out [n_tok, w->n_out] = x [n_tok, w->n_in] W^T + bias [w->n_out] + residual [n_tok, w->n_out].
     * x is packed for w->dtype; bias and residual may be NULL; residual may be out itself. */
    void (*linear)(const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_tok);
    /* The product with a head: out [n_tok, w->n_out] as of linear, where cap > 0 each element x then becomes
     * cap tanh(x / cap); and the best of each row. Rows that are not wanted may stay unwritten. best [n_tok]
     * is the member's own, cleared before, and gets the best of the columns that the member computed:
     * cake_topk_join joins those of all members. */
    void (*scores)(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_tok);
    /* out [n, w->n_in] = factor * rows row[i] of W as float32 (0 <= row[i] < w->n_out): the embedding. */
    void (*gather)(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor);

    /* out [n_row, dim] = x / sqrt(mean(x^2) + eps) * weight [dim] + residual [n_row, dim]; out may be x, and
     * residual may be NULL or out. (Zhang & Sennrich 2019) */
    void (*rmsnorm)(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps);
    /* Heads x [n_tok, n_head, head_dim] in place: rmsnorm of each with norm [head_dim], if that is not NULL,
     * then rotary embedding (Su et al. 2021) in transformers' halves convention: element i < n_rot / 2 pairs
     * with i + n_rot / 2; elements from n_rot on stay. cos, sin [n_tok, n_rot / 2]. Members take the same
     * heads as in kv_store, so that a team stores the keys that it has turned without a barrier. */
    void (*rope)(const cake_exec *exec, float *x, const float *norm, float eps, const float *cos,
                 const float *sin, int n_tok, int n_head, int head_dim, int n_rot);
    /* Writes k, v [n_tok, n_kv, head_dim] of each row into its page, rounded to the cache's dtype. */
    void (*kv_store)(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_tok);
    /* out [n_tok, n_head, head_dim]: softmax(scores) v over positions 0 .. rows[i].pos of the row's own slot,
     * or over the last kv->window of them, query head h with KV head h / (n_head / n_kv). A score is scale q
     * k^T; with cap > 0 then cap tanh(score / cap). Segments between multiples of CAKE_SEGMENT positions join
     * the sums in order, positions ascending (online softmax, Milakov & Gimelshein 2018).
     * avx512bf16 rounds q, and the weights before they are summed up in any way, to BF16 where the cache
     * stands in pairs and head_dim <= 256. */
    void (*attend)(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_tok, int n_head, float scale, float cap);

    /* For the next two: rows of one slot stand together, positions upwards without a gap, and the slot's
     * state is the one after the position before the first of them; position 0 starts from zeros, whatever
     * the state holds. Afterwards the state is the one after the last of them. */

    /* x [n_tok, channels] in place: silu(sum over j of conv[c][j] * input[pos - width + 1 + j][c]), j
     * upwards; inputs before position 0 are zero. */
    void (*delta_conv)(const cake_exec *exec, float *x, const cake_deltanet *delta, const cake_row *rows,
                       int n_tok);
    /* out [n_tok, n_value, value_dim] from x [n_tok, channels] as delta_conv leaves it, and a, b [n_tok,
     * n_value]. Per value head, with q and k divided by sqrt(sum of squares + 1e-6), q also by sqrt(key_dim),
     * and a state S [key_dim, value_dim]:
     *   S *= exp(-exp(a_log) softplus(a + dt_bias));  S += k^T sigmoid(b) (v - k S);  out = q S
     * Generated and replayed rows go this way, one by one. Prompt rows may be taken together, those of one
     * block [64 i, 64 i + 64) of positions at a time, so that it does not show where a prompt was cut into
     * waves as long as cuts are at multiples of 64. */
    void (*delta_rule)(const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
                       const cake_deltanet *delta, const cake_row *rows, int n_tok);
    /* Marks rows of x [n_tok, dim] that are not finite as broken here, unless they were marked before. ends:
     * the model's last layer is done; then a row that nobody reads is not looked at. */
    void (*mark_nonfinite)(const cake_exec *exec, cake_row *rows, const float *x, int n_tok, int dim,
                           int32_t here, bool ends);
    /* Row i of to [.., dim] = row from[i] of x, or with back the other way round: row from[i] of to = row i
     * of x. i < n */
    void (*move_rows)(const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim,
                      bool back);
    /* x [n_row, dim] in place: x / sqrt(mean(x^2) + eps) * weight [dim] * silu(gate [n_row, dim]). */
    void (*rmsnorm_gated)(const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row,
                          int dim, float eps);

    /* Each operation that follows may be NULL. It does, to the bit, what several of the above do one after
     * the other. False: it does not take these rows or matrices, and nothing was done. */

    /* linear by both matrices of a gated MLP, then input_pack, for a matrix of `dtype`, of what the gate lets
     * pass of up's output. `to` has memory for floats [n_tok, gate->n_out], and is not where x is. */
    bool (*mlp_gate_up)(const cake_exec *exec, void *to, const void *x, const cake_weight *gate,
                        const float *gate_bias, const cake_weight *up, const float *up_bias, cake_act act,
                        cake_dtype dtype, int n_tok);
    /* linear of the same x, without a residual, by n <= CAKE_PRODUCTS matrices. */
    bool (*linear_multi)(const cake_exec *exec, const cake_product *product, int n, const void *x, int n_tok);
    /* mark, unless here is 0, as within the model (ends: false); rmsnorm, without a residual; and input_pack
     * for a matrix of dtype. The norm's output itself is not stored. */
    bool (*rmsnorm_pack)(const cake_exec *exec, void *to, const float *x, const float *weight,
                         cake_dtype dtype, int n_tok, int dim, float eps, cake_row *rows, int32_t here);
    /* rope, as turn says, of the n_head heads of q, which may be none, and of the keys k; then kv_store. k
     * itself may stay as it was. */
    bool (*rope_kv_store)(const cake_exec *exec, const cake_kv *kv, float *q, int n_head, const float *k,
                          const float *v, const cake_rope_args *turn, const cake_row *rows, int n_tok);
    /* attend, then input_pack of its output for a matrix of dtype. The output itself is not stored. */
    bool (*attend_pack)(const cake_exec *exec, void *to, cake_dtype dtype, const float *q, const cake_kv *kv,
                        const cake_row *rows, int n_tok, int n_head, float scale, float cap);
} cake_kernels;

extern const cake_kernels cake_kernels_ref;
/* As ref, except in products with BF16 weights: x is rounded to BF16 too; of two neighbouring values of k the
 * odd one is added first; numbers below the smallest normal float count as zero. The oracle of avx512bf16. */
extern const cake_kernels cake_kernels_ref_bf16;

/* What cpuid allows, worst first ("ref", "avx2", "avx512", "avx512bf16"); a rank's level is an index into
 * this list, so that all ranks agree on the smallest. */
int cake_kernels_best(void);
int cake_kernels_exact(void); /* the best of those that round no activations: ref is their oracle */
int cake_kernels_level(const char *name);       /* -1: no such table in this build */
const cake_kernels *cake_kernels_at(int level); /* NULL above cake_kernels_best() */
/* Tables that this CPU can run but that no level stands for here, since a faster one gives the same bits;
 * NULL past the last. For tests. */
const cake_kernels *cake_kernels_spare(int i);

#endif
