/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a weight set and the bytes that it may take. Out: which of its matrices are held. Invariant: the same
 * set and limit give the same split, so what was counted is what is loaded.
 */
#include "model/weight_split.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"

/* ---- the choice */

/* Bytes that each layer streams. */
typedef struct layers {
    int64_t *streamed; /* [n] owned */
    int n, n_streamed; /* n_streamed: layers with any */
    int64_t max;
} layers;

static void find_largest(layers *l)
{
    l->max = 0;
    l->n_streamed = 0;
    for (int i = 0; i < l->n; i++) {
        l->max = l->streamed[i] > l->max ? l->streamed[i] : l->max;
        l->n_streamed += l->streamed[i] > 0;
    }
}

static int fewer(int a, int b)
{
    return a < b ? a : b;
}

/* Units in the order in which they are held. */
static int compare_order(const void *a, const void *b)
{
    const cake_weight_unit *x = *(cake_weight_unit *const *)a, *y = *(cake_weight_unit *const *)b;
    return x->late != y->late     ? x->late - y->late
           : x->order != y->order ? x->order - y->order
                                  : x->layer - y->layer;
}

/* The most units of `order` that fit with at most n_buffer buffers; -1: none. One more unit takes its bytes,
 * but the buffers shrink when it is the last of the largest layers. */
static int hold_most(cake_weight_unit *const *order, int n, layers *l, int64_t limit, int n_buffer,
                     cake_split_choice *choice)
{
    int64_t held = 0;
    int best = -1;
    for (int i = 0; i <= n; i++) {
        int buffers = fewer(n_buffer, l->n_streamed);
        int64_t bytes = held + buffers * l->max;
        choice->min_bytes = bytes < choice->min_bytes ? bytes : choice->min_bytes;
        if (bytes <= limit) {
            best = i;
            choice->buffer = l->max;
            choice->n_buffer = buffers;
        }
        if (i == n)
            break;
        int64_t *own = &l->streamed[order[i]->layer];
        bool changes = *own == l->max || *own == order[i]->bytes;
        *own -= order[i]->bytes;
        held += order[i]->bytes;
        if (changes)
            find_largest(l);
    }
    return best;
}

static layers layers_of(const cake_weight_unit *unit, int n)
{
    layers l = {0};
    for (int i = 0; i < n; i++)
        l.n = unit[i].layer >= l.n ? unit[i].layer + 1 : l.n;
    l.streamed = cake_alloc((size_t)l.n + 1, sizeof *l.streamed);
    for (int i = 0; i < n; i++)
        l.streamed[unit[i].layer] += unit[i].bytes;
    find_largest(&l);
    return l;
}

cake_split_choice cake_weight_split_choose(cake_weight_unit *unit, int n, int64_t fixed, int64_t limit)
{
    cake_split_choice choice = {.n_buffer = -1, .min_bytes = INT64_MAX};
    cake_weight_unit **order = cake_alloc((size_t)n + 1, sizeof *order);
    int n_held = -1;
    for (int i = 0; i < n; i++) {
        order[i] = &unit[i];
        unit[i].held = false;
    }
    qsort(order, (size_t)n, sizeof *order, compare_order);
    for (int buffers = CAKE_STREAM_BUFFERS; buffers > 0 && n_held < 0; buffers--) {
        layers l = layers_of(unit, n);
        n_held = hold_most(order, n, &l, limit - fixed, buffers, &choice);
        free(l.streamed);
    }
    for (int i = 0; i < n_held; i++)
        order[i]->held = true;
    choice.min_bytes += fixed;
    free(order);
    return choice;
}

/* ---- units of a model */

/* The number of a tensor's unit in its layer: the expert, or the matrix; -1: none. */
static int key_of(const cake_model *model, const cake_tensor_item *p)
{
    if (p->spec->owner != CAKE_SPEC_LAYER || p->spec->exact || p->spec->head ||
        !cake_tensor_spec_matrix(p->spec))
        return -1;
    return p->spec->expert ? p->expert
                           : model->config.moe.router.n_expert + (int)(p->spec->offset / sizeof(void *));
}

static bool is_mlp(const cake_tensor_item *p)
{
    size_t at = p->spec->offset;
    return at == offsetof(cake_layer_weights, gate) || at == offsetof(cake_layer_weights, up) ||
           at == offsetof(cake_layer_weights, down);
}

typedef struct counting {
    cake_weight_split *split;
    const cake_kernels *kernels;
    int order[2]; /* of the next unit of the layer */
    int layer, cap;
} counting;

static cake_err count_unit(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    counting *c = arg;
    cake_weight_split *s = c->split;
    int64_t bytes = (int64_t)cake_tensor_walk_bytes(p, c->kernels);
    int key = key_of(model, p);
    s->all += bytes;
    if (key < 0) {
        s->fixed += bytes;
        return CAKE_OK;
    }
    if (p->layer != c->layer)
        c->order[0] = c->order[1] = 0;
    c->layer = p->layer;
    int *at = &s->index[p->layer * s->n_key + key];
    if (*at < 0) {
        bool late = model->config.moe.router.n_expert ? p->spec->expert : is_mlp(p);
        CAKE_RESERVE(s->unit, s->n_unit, c->cap);
        *at = s->n_unit++;
        s->unit[*at] = (cake_weight_unit){
            .layer = p->layer, .late = late, .order = c->order[late]++, .expert = p->spec->expert};
    }
    s->unit[*at].bytes += bytes;
    int64_t rows = p->spec->transposed ? p->all : p->n_out; /* gate and up share lines, which both read */
    s->unit[*at].in_files += rows * (int64_t)cake_tensor_item_row(p);
    return CAKE_OK;
}

void cake_weight_split_make(const cake_model *model, const cake_weight_set *share,
                            const cake_kernels *kernels, cake_weight_split *s)
{
    const size_t n_layer = (size_t)model->config.n_layer;
    *s = (cake_weight_split){.n_key = model->config.moe.router.n_expert +
                                      (int)(sizeof(cake_layer_weights) / sizeof(void *))};
    s->index = cake_alloc(n_layer * (size_t)s->n_key, sizeof *s->index);
    for (size_t i = 0; i < n_layer * (size_t)s->n_key; i++)
        s->index[i] = -1;
    counting c = {.split = s, .kernels = kernels, .layer = -1};
    cake_tensor_walk_visit(model, share, count_unit, &c);
    s->limit = cake_size_bytes(share->limit, s->all);
    cake_split_choice choice = cake_weight_split_choose(s->unit, s->n_unit, s->fixed, -1);
    s->min_bytes = choice.min_bytes;
    int64_t limit = !s->limit || s->limit >= s->all ? INT64_MAX
                    : s->limit > s->min_bytes       ? s->limit
                                                    : s->min_bytes;
    choice = cake_weight_split_choose(s->unit, s->n_unit, s->fixed, limit);
    s->buffer = choice.buffer;
    s->n_buffer = choice.n_buffer;
    for (int i = 0; i < s->n_unit; i++) {
        s->held += s->unit[i].held ? s->unit[i].bytes : 0;
        s->wave_bytes += s->unit[i].held ? 0 : s->unit[i].in_files;
        s->expert_bytes += s->unit[i].held || !s->unit[i].expert ? 0 : s->unit[i].in_files;
    }
}

void cake_weight_split_free(cake_weight_split *split)
{
    free(split->unit);
    free(split->index);
    *split = (cake_weight_split){0};
}

int64_t cake_weight_split_bytes(const cake_weight_split *s)
{
    return s->fixed + s->held + s->n_buffer * s->buffer;
}

const cake_weight_unit *cake_weight_split_find(const cake_weight_split *split, const cake_model *model,
                                               const cake_tensor_item *p)
{
    int key = split->index ? key_of(model, p) : -1,
        at = key < 0 ? -1 : split->index[p->layer * split->n_key + key];
    return at < 0 ? NULL : &split->unit[at];
}
