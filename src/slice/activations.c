/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's sizes, rows of the largest wave. Out: the buffers of a pass. Invariant: what is counted is
 * what is allocated.
 */
#include "slice/activations.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Buffers of a pass, in the order of allocation. */
enum {
    NORM,
    SIDE,
    Q,
    MIX,
    K,
    V,
    GATE,
    UP,
    ROUTER_SCORE,
    CHOICE,
    CHOICE_WEIGHT,
    GROUP_ROW,
    GROUP_SORTED,
    EXPERT_GATE,
    EXPERT_UP,
    EXPERT_OUT,
    LATENT_Q,
    LATENT_OUT,
    HEAD_ROW,
    HEAD_SORTED,
    COS,
    SIN,
    N_BUFFER = SIN + 2 * CAKE_MAX_ROPE - 1
};

/* Parts of a wave that need their own buffers on a device. */
enum { BODY, ROWS, READ, FROM, N_DEVICE };

static size_t device_bytes(const cake_config *c, int max_row, int place)
{
    const size_t width[N_DEVICE] = {[BODY] = (size_t)c->dim * sizeof(float),
                                    [ROWS] = sizeof(cake_row),
                                    [READ] = sizeof(cake_row),
                                    [FROM] = sizeof(int32_t)};
    return cake_arena_round((size_t)max_row * width[place]);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Elements per row of q, or of k or v, where heads are largest. */
static int64_t heads_width(const cake_config *c, bool kv)
{
    int64_t width = 0;
    for (int group = 0; group < c->n_kv_group; group++)
        width = larger(width, (int64_t)(kv ? c->heads[group].n_kv : c->n_head) * c->heads[group].head_dim);
    return width;
}

/* Elements per row of the input of a mixer's last product. */
static int64_t mix_of(const cake_config *c)
{
    const int64_t delta = (int64_t)c->delta.n_value * c->delta.value_dim;
    return c->latent.rank ? (int64_t)c->n_head * c->latent.n_value : larger(heads_width(c, false), delta);
}

/* Of the MLP that all rows pass. */
static int64_t mlp_width(const cake_config *c)
{
    return larger(c->n_ff, c->moe.n_ff_shared);
}

/* Choices of a row, the shared expert among them. */
static int choices_of(const cake_config *c)
{
    return c->moe.router.n_chosen + (c->moe.n_ff_shared > 0);
}

/* Rows of a block in latent attention. */
static int latent_rows(int max_row)
{
    return max_row < CAKE_LATENT_ROWS ? max_row : CAKE_LATENT_ROWS;
}

static size_t buffer_bytes(const cake_config *c, int max_row, int buffer)
{
    const cake_deltanet *d = &c->delta;
    const cake_latent *l = &c->latent;
    int64_t latents = l->rank ? c->n_head : 0;
    int64_t mix = mix_of(c), kv = larger(heads_width(c, true), d->n_value), chosen = choices_of(c);
    /* The mixer's z uses the buffer of the MLP's up; a delta net uses those of q, k and v. */
    int64_t width[N_BUFFER] = {
        [NORM] = c->dim,
        [SIDE] = c->arch->moe.parallel && c->moe.router.n_expert ? c->dim : 0,
        [Q] = larger(heads_width(c, false), cake_delta_channels(d)),
        [MIX] = mix,
        [K] = larger(kv, l->rank),
        [V] = kv,
        [GATE] = mlp_width(c),
        [UP] = larger(larger(mlp_width(c), mix), l->q_rank),
        [ROUTER_SCORE] = c->moe.router.n_expert,
        [CHOICE] = chosen,
        [CHOICE_WEIGHT] = chosen,
        [GROUP_ROW] = chosen,
        [GROUP_SORTED] = chosen,
        [EXPERT_GATE] = chosen * c->moe.n_ff,
        [EXPERT_UP] = chosen * c->moe.n_ff,
        [EXPERT_OUT] = chosen * c->dim,
        [LATENT_Q] = latents * larger(l->rank, l->n_value),
        [LATENT_OUT] = latents * l->rank,
        [HEAD_ROW] = latents,
        [HEAD_SORTED] = latents,
    };
    const int rows = buffer >= LATENT_Q && buffer <= HEAD_SORTED ? latent_rows(max_row) : max_row;
    for (int i = 0; i < c->n_rope; i++)
        width[COS + 2 * i] = width[SIN + 2 * i] = c->rope[i].n_rot / 2;
    return cake_arena_round((size_t)rows * (size_t)width[buffer] * sizeof(float));
}

/* Bytes of packed inputs, shared by all products; 0 for a dtype that no layer has. */
static size_t input_bytes(const cake_model *model, const cake_kernels *kernels, int max_row, int dtype)
{
    const cake_config *c = cake_model_config(model);
    if (!cake_model_keeps(model, (cake_dtype)dtype))
        return 0;
    int64_t widest = larger(larger(c->dim, mlp_width(c)), larger(mix_of(c), c->latent.q_rank));
    return kernels->input_bytes((cake_dtype)dtype, (int)widest, max_row);
}

/* The largest of the types that the model keeps. */
static size_t packed_bytes(const cake_model *model, const cake_kernels *kernels, int64_t n_in, int rows)
{
    size_t bytes = 0;
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++) {
        size_t needed = kernels->input_bytes((cake_dtype)dtype, (int)n_in, rows);
        if (cake_model_keeps(model, (cake_dtype)dtype) && needed > bytes)
            bytes = needed;
    }
    return bytes;
}

/* Bytes of the packed rows of all heads of a block. */
static size_t latent_input_bytes(const cake_model *model, const cake_kernels *kernels, int max_row)
{
    const cake_config *c = cake_model_config(model);
    const cake_latent *l = &c->latent;
    return l->rank
               ? packed_bytes(model, kernels, larger(l->rank, l->n_nope), latent_rows(max_row) * c->n_head)
               : 0;
}

/* Bytes of the packed rows of all experts. */
static size_t expert_input_bytes(const cake_model *model, const cake_kernels *kernels, int max_row)
{
    const cake_config *c = cake_model_config(model);
    return c->moe.router.n_expert
               ? packed_bytes(model, kernels, larger(c->dim, c->moe.n_ff), max_row * c->moe.router.n_chosen)
               : 0;
}

/* Bytes of the weight of the norm of V: ones. */
static size_t ones_bytes(const cake_config *c)
{
    int most = 0;
    for (int group = 0; group < c->n_kv_group && c->arch->v_norm; group++)
        most = c->heads[group].head_dim > most ? c->heads[group].head_dim : most;
    return cake_arena_round((size_t)most * sizeof(float));
}

size_t cake_activations_bytes(const cake_model *model, const cake_kernels *kernels, int max_row)
{
    size_t bytes = ones_bytes(cake_model_config(model));
    for (int i = 0; i < N_BUFFER; i++)
        bytes += buffer_bytes(cake_model_config(model), max_row, i);
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++)
        bytes += input_bytes(model, kernels, max_row, dtype);
    bytes += expert_input_bytes(model, kernels, max_row);
    bytes += latent_input_bytes(model, kernels, max_row);
    for (int i = 0; kernels->memory && i < N_DEVICE; i++)
        bytes += device_bytes(cake_model_config(model), max_row, i);
    return bytes;
}

/* The model and the largest wave that memory is for. */
typedef struct sizes {
    const cake_model *model;
    int max_row;
} sizes;

static void take_expert_buffers(cake_activations *a, cake_forward_ctx *p, sizes of, void *const *buffer)
{
    const int n = p->config->moe.router.n_expert;
    if (!n)
        return;
    p->router_score = buffer[ROUTER_SCORE];
    p->choice = buffer[CHOICE];
    p->choice_weight = buffer[CHOICE_WEIGHT];
    p->expert_gate = buffer[EXPERT_GATE];
    p->expert_up = buffer[EXPERT_UP];
    p->expert_out = buffer[EXPERT_OUT];
    a->groups = (cake_groups){.expert = cake_alloc((size_t)n, sizeof(int32_t)),
                              .first = cake_alloc((size_t)n + 1, sizeof(int32_t)),
                              .row = buffer[GROUP_ROW],
                              .sorted = buffer[GROUP_SORTED],
                              .stride = choices_of(p->config)};
    p->groups = &a->groups;
    p->expert_input = cake_arena_take(&a->arena, expert_input_bytes(of.model, p->kernels, of.max_row));
}

static void take_latent_buffers(cake_activations *a, cake_forward_ctx *p, sizes of, void *const *buffer)
{
    const size_t n = (size_t)p->config->n_head;
    if (!p->config->latent.rank)
        return;
    p->latent_q = buffer[LATENT_Q];
    p->latent_out = buffer[LATENT_OUT];
    a->heads = (cake_groups){.expert = cake_alloc(n, sizeof(int32_t)),
                             .first = cake_alloc(n + 1, sizeof(int32_t)),
                             .row = buffer[HEAD_ROW],
                             .sorted = buffer[HEAD_SORTED]};
    p->heads = &a->heads;
    p->latent_input = cake_arena_take(&a->arena, latent_input_bytes(of.model, p->kernels, of.max_row));
}

static void take_ones(cake_activations *a, cake_forward_ctx *p)
{
    const size_t bytes = ones_bytes(p->config), n = bytes / sizeof(float);
    float *one = cake_alloc(n, sizeof *one);
    for (size_t i = 0; i < n; i++)
        one[i] = 1;
    p->ones = cake_arena_take(&a->arena, bytes);
    cake_memory_upload(p->kernels->memory, p->ones, one, bytes);
    free(one);
}

static void take_buffers(cake_activations *a, cake_forward_ctx *p, sizes of)
{
    void *buffer[COS];
    for (int i = 0; i < N_BUFFER; i++) {
        void *taken = cake_arena_take(&a->arena, buffer_bytes(p->config, of.max_row, i));
        if (i < COS)
            buffer[i] = taken;
        else
            ((i - COS) % 2 ? p->sin : p->cos)[(i - COS) / 2] = taken;
    }
    p->norm = buffer[NORM];
    p->side = buffer[SIDE];
    p->q = buffer[Q];
    p->mix = buffer[MIX];
    p->k = buffer[K];
    p->v = buffer[V];
    p->gate = buffer[GATE];
    p->up = buffer[UP];
    take_expert_buffers(a, p, of, buffer);
    take_latent_buffers(a, p, of, buffer);
    take_ones(a, p);
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++) {
        size_t bytes = input_bytes(of.model, p->kernels, of.max_row, dtype);
        p->input[dtype] = bytes ? cake_arena_take(&a->arena, bytes) : NULL;
    }
    void *device[N_DEVICE] = {0};
    for (int i = 0; p->kernels->memory && i < N_DEVICE; i++)
        device[i] = cake_arena_take(&a->arena, device_bytes(p->config, of.max_row, i));
    a->body = device[BODY];
    a->rows = device[ROWS];
    a->read = device[READ];
    a->from = device[FROM];
    p->z = p->up;
    p->qkv = p->q;
    p->decay = p->k;
    p->beta = p->v;
}

cake_err cake_activations_open(const cake_model *model, int max_row, cake_forward_ctx *pass,
                               cake_activations *out)
{
    *out = (cake_activations){.memory = pass->kernels->memory};
    cake_err err = cake_memory_open(out->memory, &out->arena, "activations",
                                    cake_activations_bytes(model, pass->kernels, max_row));
    if (!err)
        take_buffers(out, pass, (sizes){model, max_row});
    return err;
}

void cake_activations_close(cake_activations *a)
{
    cake_memory_close(a->memory, &a->arena);
    free(a->groups.expert);
    free(a->groups.first);
    free(a->heads.expert);
    free(a->heads.first);
    *a = (cake_activations){0};
}
