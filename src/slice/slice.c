/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave whose body is the residual stream before layer `first`. Out: the same wave after the slice's
 * last layer. Invariant: a row's body depends only on the rows of its own sequence.
 */
#include "slice/slice.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "model/weight_stream.h"
#include "slice/activations.h"
#include "slice/cost.h"
#include "slice/kv.h"
#include "slice/last_layer.h"
#include "slice/layer.h"
#include "slice/recurrent_state.h"
#include "slice/rope_table.h"

struct cake_slice {
    cake_slice_shape shape;
    const cake_model *model;
    cake_kv_cache kv[CAKE_MAX_KV_GROUPS];
    cake_states states;
    cake_activations scratch;
    cake_forward_ctx pass;
    cake_rope_table rotation;
    cake_last_layer last;   /* the model's last layer, if it is in this slice */
    bool skips_rows;        /* the last layer skips rows of this wave that nobody reads */
    cake_cost cost;         /* what a wave costs in these layers */
    cake_roofline roofline; /* work of all waves so far */
    cake_expert_use use;
    cake_layer_view *view; /* [count] */
    cake_row *rows;        /* the wave's rows on the host */
    void (*between)(void *arg, bool layer);
    void *arg;
};

static bool is_of(const cake_config *config, int layer, int group)
{
    return config->layer[layer].mixer != CAKE_MIX_DELTA && config->layer[layer].group == group;
}

static cake_kv_shape kv_shape(const cake_config *config, const cake_slice_shape *shape, int group)
{
    const int latent = config->latent.rank;
    const cake_heads *heads = &config->heads[group];
    cake_kv_shape kv = {.dtype = shape->kv_dtype,
                        .n_kv = heads->n_kv,
                        .head_dim = latent ? latent + config->latent.n_rope : heads->head_dim,
                        .n_value = latent,
                        .window = config->window[group],
                        .both_ways = config->both_ways,
                        .n_slot = shape->n_slot,
                        .n_page = shape->n_page[group],
                        .stride = (int)(((int64_t)shape->context + CAKE_PAGE - 1) / CAKE_PAGE)};
    for (int i = 0; i < shape->count; i++)
        kv.n_layer += is_of(config, shape->first + i, group);
    return kv;
}

size_t cake_slice_page_bytes(const cake_config *config, const cake_slice_shape *shape, int group)
{
    cake_kv_shape kv = kv_shape(config, shape, group);
    return cake_kv_page_bytes(&kv);
}

static cake_state_shape state_shape(const cake_config *config, const cake_slice_shape *shape)
{
    cake_state_shape states = {.layer = config->delta, .n_slot = shape->n_slot + shape->n_saved};
    for (int i = 0; i < shape->count; i++)
        states.n_layer += config->layer[shape->first + i].mixer == CAKE_MIX_DELTA;
    return states;
}

size_t cake_slice_state_bytes(const cake_config *config, const cake_slice_shape *shape)
{
    cake_state_shape states = state_shape(config, shape);
    return cake_states_slot_bytes(&states);
}

size_t cake_slice_kv_bytes(const cake_config *config, const cake_slice_shape *shape)
{
    cake_state_shape states = state_shape(config, shape);
    size_t bytes = cake_states_bytes(&states);
    for (int group = 0; group < config->n_kv_group; group++) {
        cake_kv_shape kv = kv_shape(config, shape, group);
        bytes += cake_kv_bytes(&kv);
    }
    return bytes;
}

size_t cake_slice_scratch_bytes(const cake_model *model, const cake_kernels *kernels,
                                const cake_slice_shape *shape)
{
    return cake_activations_bytes(model, kernels, shape->max_row);
}

static cake_err open_kv(cake_slice *s)
{
    const cake_config *config = s->pass.config;
    s->view = cake_alloc((size_t)s->shape.count, sizeof *s->view);
    for (int group = 0; group < config->n_kv_group; group++) {
        cake_kv_shape kv = kv_shape(config, &s->shape, group);
        cake_err err = cake_kv_open(&kv, s->pass.kernels->memory, &s->kv[group]);
        if (err)
            return err;
        for (int i = 0, n = 0; i < s->shape.count; i++)
            if (is_of(config, s->shape.first + i, group)) {
                s->view[i].kv = cake_kv_layer(&s->kv[group], n++);
                s->view[i].kv.sink = cake_model_layer(s->model, s->shape.first + i)->sinks;
            }
    }
    return CAKE_OK;
}

static cake_err open_states(cake_slice *s)
{
    const cake_config *config = s->pass.config;
    cake_state_shape shape = state_shape(config, &s->shape);
    cake_err err = cake_states_open(&shape, s->pass.kernels->memory, &s->states);
    for (int i = 0, n = 0; i < s->shape.count && !err; i++)
        if (config->layer[s->shape.first + i].mixer == CAKE_MIX_DELTA) {
            const cake_layer_weights *w = cake_model_layer(s->model, s->shape.first + i);
            cake_deltanet *view = &s->view[i].delta;
            *view = cake_states_layer(&s->states, n++);
            view->conv = w->delta_conv;
            view->a_log = w->delta_a_log;
            view->dt_bias = w->delta_dt_bias;
        }
    return err;
}

cake_err cake_slice_open(const cake_model *model, const cake_kernels *kernels, const cake_slice_shape *shape,
                         cake_slice **out)
{
    const cake_config *config = cake_model_config(model);
    cake_slice *s = cake_alloc(1, sizeof *s);
    s->shape = *shape;
    s->model = model;
    s->pass.config = config;
    s->pass.kernels = kernels;
    s->pass.use = &s->use;
    s->pass.stream = kernels->memory ? NULL : cake_model_stream(model);
    cake_rope_table_open(config, kernels->memory, shape->n_thread, shape->max_row, &s->rotation);

    cake_err err = open_kv(s);
    if (!err)
        err = open_states(s);
    if (!err)
        err = cake_activations_open(model, shape->max_row, &s->pass, &s->scratch);
    if (err) {
        cake_slice_close(s);
        return err;
    }
    cake_last_layer_open(shape->max_row, kernels->memory, s->scratch.read, s->scratch.from, &s->last);
    s->cost = cake_cost_of_layers(model, kernels, shape->first, shape->count, shape->kv_dtype);
    *out = s;
    return CAKE_OK;
}

cake_err cake_slice_lock(cake_slice *slice)
{
    cake_err err = cake_states_lock(&slice->states);
    for (int group = 0; group < CAKE_MAX_KV_GROUPS && !err; group++)
        err = cake_kv_lock(&slice->kv[group]);
    return err;
}

void cake_slice_close(cake_slice *slice)
{
    if (!slice)
        return;
    for (int group = 0; group < CAKE_MAX_KV_GROUPS; group++)
        cake_kv_close(&slice->kv[group]);
    cake_states_close(&slice->states);
    cake_activations_close(&slice->scratch);
    cake_rope_table_close(&slice->rotation);
    cake_last_layer_close(&slice->last);
    free(slice->view);
    free(slice);
}

const cake_roofline *cake_slice_roofline(const cake_slice *slice)
{
    return &slice->roofline;
}

const cake_expert_use *cake_slice_experts(const cake_slice *slice)
{
    return &slice->use;
}

/* Adds a wave, before which experts had been met `met` times. */
static void count_experts(cake_slice *s, double met)
{
    int n_layer = 0; /* with experts */
    for (int i = 0; i < s->shape.count; i++)
        n_layer += s->pass.config->layer[s->shape.first + i].mlp != CAKE_MLP_DENSE;
    if (!n_layer)
        return;
    s->use.rows += s->pass.n_row;
    s->use.expected_bytes += cake_cost_weight_bytes(&s->cost, s->pass.n_row);
    s->use.weight_bytes += s->cost.wave_bytes + s->cost.expert_bytes / n_layer * (s->use.distinct - met);
}

/* Called before the first layer (n: 0) and after the nth. On a device the kernels are only enqueued by then,
 * so an event is recorded after them. */
static void after_layer(const cake_exec *exec, const cake_slice *s, int n)
{
    if (s->pass.kernels->memory)
        s->pass.kernels->memory->record_event(n);
    else if (exec->rank == 0)
        s->between(s->arg, true);
}

/* Rows that are not finite are marked with the layer where they broke, which fails their requests. Each layer
 * checks its input, and the slice its final output. */
static void forward(const cake_exec *exec, void *arg)
{
    cake_slice *s = arg;
    const cake_forward_ctx *pass = &s->pass;
    const int n_layer = pass->config->n_layer;
    int32_t here = s->shape.first == 0 ? CAKE_ROW_NONFINITE(-1) : 0;
    for (int group = 0; group < pass->config->n_kv_group; group++)
        cake_kv_touch(exec, &s->kv[group]);
    if (!pass->kernels->memory)
        cake_rope_table_fill(exec, &s->rotation, pass);
    if (exec->rank == 0)
        pass->kernels->set_rows(pass->device_rows, pass->n_row);
    cake_exec_barrier(exec);
    after_layer(exec, s, 0);
    for (int i = 0; i < s->shape.count; i++) {
        int layer = s->shape.first + i;
        if (pass->stream)
            cake_weight_stream_enter(pass->stream, exec, layer, pass->n_row);
        const cake_layer_kind *kind = &pass->config->layer[layer];
        const cake_layer_weights *weights = cake_model_layer(s->model, layer);
        if (s->skips_rows && layer == n_layer - 1)
            cake_last_layer_forward(exec, &s->last, &s->rotation, kind, weights, &s->view[i], here);
        else
            cake_layer_forward(exec, pass, kind, weights, &s->view[i], here);
        here = CAKE_ROW_NONFINITE(layer);
        if (pass->stream && exec->rank == 0)
            cake_weight_stream_leave(pass->stream, layer);
        after_layer(exec, s, i + 1);
    }
    if (here)
        pass->kernels->mark_nonfinite(exec, pass->device_rows, pass->x, pass->n_row, pass->config->dim, here,
                                      s->shape.first + s->shape.count == n_layer);
}

/* Messages make progress while the layer waits for its weights. */
static void poll(void *arg)
{
    const cake_slice *s = arg;
    s->between(s->arg, false);
}

static void fill_rope_table(const cake_exec *exec, void *arg)
{
    cake_slice *s = arg;
    cake_rope_table_fill(exec, &s->rotation, &s->pass);
}

/* Everything that the kernel launches of a wave of generated rows depend on. If it is equal, the launches are
 * replayed. */
typedef struct replay_key {
    const cake_slice *slice;
    int n_row, segments;
} replay_key;

static void ask(void *arg)
{
    cake_exec_run(1, forward, arg);
}

static void ask_for(cake_slice *s)
{
    replay_key key = {s, s->pass.n_row, 0};
    bool generated = !s->skips_rows;
    for (int i = 0; i < s->pass.n_row; i++) {
        generated = generated && s->rows[i].kind == CAKE_ROW_GENERATED;
        int segment = s->rows[i].pos / CAKE_SEGMENT;
        key.segments = segment > key.segments ? segment : key.segments;
    }
    if (generated)
        s->pass.kernels->memory->replay(&key, sizeof key, ask, s);
    else
        ask(s);
}

/* A wave on a GPU: uploads its data, enqueues the layers as a team of one, and waits for one layer after the
 * other. */
static cake_err forward_on_device(cake_slice *s, cake_wave *wave, cake_wave_buffers way)
{
    const cake_memory *memory = s->pass.kernels->memory;
    const size_t rows = (size_t)wave->n_row * sizeof(cake_row),
                 body = (size_t)wave->n_row * (size_t)wave->dim * sizeof(float);
    cake_exec_run(s->shape.n_thread, fill_rope_table, s);
    memory->upload_rows(s->scratch.rows, s->rows, wave->n_row);
    if (way.from)
        cake_memory_copy(memory, s->scratch.body, way.from, body);
    else
        cake_memory_upload(memory, s->scratch.body, cake_wave_body(wave), body);
    cake_rope_table_upload(&s->rotation, &s->pass);
    ask_for(s);
    for (int i = 0; i <= s->shape.count; i++) {
        while (!memory->event_done(i)) {
            s->between(s->arg, false);
            cake_exec_yield();
        }
        s->between(s->arg, true);
    }
    if (way.to)
        cake_memory_copy(memory, way.to, s->scratch.body, body);
    else
        cake_memory_download(memory, cake_wave_body(wave), s->scratch.body, body);
    cake_memory_download(memory, s->rows, s->scratch.rows, rows); /* waits for all operations */
    return memory->check();
}

/* A wave comes from another process: its metadata is checked before any memory access. */
static cake_err check_rows(const cake_slice *s, cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    for (int i = 0; i < wave->n_row; i++)
        if (rows[i].slot < 0 || rows[i].slot >= s->shape.n_slot || rows[i].pos < 0 ||
            rows[i].pos >= s->shape.context)
            return cake_fail("slice", "row %d of a wave is out of range: slot %d position %d", i,
                             rows[i].slot, rows[i].pos);
    return CAKE_OK;
}

/* Applies the changes of a wave's header in order. *copied: bytes of states read and written. */
static cake_err follow(cake_slice *s, cake_wave *wave, double *copied)
{
    const cake_change *change = cake_wave_changes(wave);
    cake_err err = CAKE_OK;
    for (int i = 0; i < wave->n_change && !err; i++) {
        int kind = change[i].kind, group = change[i].group;
        if (kind == CAKE_CHANGE_STATE) {
            err = cake_states_copy(&s->states, &change[i]);
            *copied += 2 * (double)cake_states_slot_bytes(&s->states.shape);
        } else if (kind < 0 || kind > CAKE_CHANGE_STATE || group < 0 || group >= s->pass.config->n_kv_group) {
            err = cake_fail("slice", "change %d of a wave is invalid: kind %d, group %d", i, kind, group);
        } else {
            err = cake_kv_apply(&s->kv[group], &change[i]);
        }
    }
    return err;
}

/* Whether the last layer may skip rows that nobody reads: not if it is recurrent, since its state needs every
 * row. */
static bool may_skip_rows(const cake_slice *s)
{
    const cake_config *c = s->pass.config;
    return s->shape.first + s->shape.count == c->n_layer && c->layer[c->n_layer - 1].mixer != CAKE_MIX_DELTA;
}

static void take_wave(cake_slice *s, cake_wave *wave)
{
    const bool on_device = s->pass.kernels->memory;
    s->rows = cake_wave_rows(wave);
    s->pass.rows = s->rows;
    s->pass.device_rows = on_device ? s->scratch.rows : s->rows;
    s->pass.n_row = wave->n_row;
    s->pass.x = on_device ? s->scratch.body : cake_wave_body(wave);
    s->skips_rows = may_skip_rows(s) && cake_last_layer_choose(&s->last, &s->pass);
}

cake_err cake_slice_forward(cake_slice *slice, cake_wave *wave, cake_wave_buffers way,
                            void (*between)(void *arg, bool layer), void *arg)
{
    if (wave->n_row < 1 || wave->n_row > slice->shape.max_row || wave->dim != slice->pass.config->dim)
        return cake_fail("slice", "a wave of %d rows of %d does not fit a slice of %d rows of %d",
                         wave->n_row, wave->dim, slice->shape.max_row, slice->pass.config->dim);
    double copied = 0;
    cake_err err = check_rows(slice, wave);
    if (!err)
        err = follow(slice, wave, &copied);
    if (!err)
        err = cake_states_follow(&slice->states, cake_wave_rows(wave), wave->n_row);
    if (err)
        return err;
    take_wave(slice, wave);
    const double met = slice->use.distinct;
    slice->between = between;
    slice->arg = arg;
    if (slice->pass.kernels->memory) {
        err = forward_on_device(slice, wave, way);
        if (err)
            return err;
    } else {
        cake_weight_stream *stream = slice->pass.stream;
        bool few = slice->shape.n_decode && cake_wave_generates(wave);
        if (stream)
            cake_weight_stream_begin(stream, poll, slice);
        cake_exec_run(few ? slice->shape.n_decode : slice->shape.n_thread, forward, slice);
        if (stream && cake_weight_stream_error(stream))
            return CAKE_ERR_FATAL;
    }
    cake_kv tables[CAKE_MAX_KV_GROUPS];
    for (int group = 0; group < slice->pass.config->n_kv_group; group++) {
        const cake_kv_cache *kv = &slice->kv[group];
        cake_kv_touched(&slice->kv[group]);
        tables[group] = (cake_kv){.table = kv->table, .stride = kv->shape.stride, .window = kv->shape.window};
    }
    cake_flops_bytes work = cake_cost_of_wave(&slice->cost, tables, slice->rows, wave->n_row);
    work.bytes += copied;
    cake_roofline_add(&slice->roofline, work);
    count_experts(slice, met);
    return CAKE_OK;
}
