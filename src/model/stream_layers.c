/* SPDX-License-Identifier: Apache-2.0
 *
 * In: streamed tensors in the order of the walk. Out: the same by layer and unit, with offsets in a buffer.
 * Invariant: the units of a layer lie in its buffer one after the other, each aligned like in an arena.
 */
#include "model/stream_layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/int8.h"

#define CHUNK_BYTES (1 << 20) /* in the file: a few reads; many chunks keep all threads busy to the end */

void cake_stream_layers_add(cake_stream_layers *all, const cake_tensor_item *p, size_t bytes)
{
    CAKE_RESERVE(all->tensor, all->n_tensor, all->cap);
    all->tensor[all->n_tensor] =
        (cake_stream_tensor){.read = cake_read_item_of(p), .bytes = bytes, .order = all->n_tensor};
    all->n_tensor++;
}

int cake_stream_chunk_rows(const cake_tensor_item *p)
{
    size_t row = cake_tensor_item_row(p), rows = CHUNK_BYTES / row / CAKE_READ_GRAIN * CAKE_READ_GRAIN;
    return p->spec->transposed ? p->n_out : rows ? (int)rows : CAKE_READ_GRAIN;
}

static int chunks_of(const cake_tensor_item *p)
{
    int rows = cake_stream_chunk_rows(p);
    return (p->n_out + rows - 1) / rows;
}

static int expert_of(const cake_tensor_item *p)
{
    return p->spec->expert ? p->expert : -1;
}

/* By the layers' order of visits, then by unit; matrices of a unit as they were added. */
static int by_unit(const void *a, const void *b)
{
    const cake_stream_tensor *x = a, *y = b;
    const cake_tensor_item *p = &x->read.piece, *q = &y->read.piece;
    int e = expert_of(p), f = expert_of(q);
    return p->layer != q->layer ? p->layer - q->layer : e != f ? e - f : x->order - y->order;
}

static bool begins_unit(const cake_stream_tensor *before, const cake_stream_tensor *t)
{
    const cake_tensor_item *p = &before->read.piece, *q = &t->read.piece;
    return p->layer != q->layer || expert_of(p) != expert_of(q) ||
           (expert_of(q) < 0 && p->spec->offset != q->spec->offset);
}

static bool same_layout(const cake_stream_layers *all, const cake_stream_layer *a, const cake_stream_layer *b)
{
    const cake_stream_unit *ua = &a->unit[a->n_unit - 1], *ub = &b->unit[b->n_unit - 1];
    int n = ua->first + ua->n - a->unit->first;
    bool same = a->bytes == b->bytes && n == ub->first + ub->n - b->unit->first;
    for (int i = 0; i < n && same; i++) {
        const cake_stream_tensor *x = &all->tensor[a->unit->first + i], *y = &all->tensor[b->unit->first + i];
        const cake_tensor_item *p = &x->read.piece, *q = &y->read.piece;
        same = x->offset == y->offset && p->whole == q->whole && p->n_in == q->n_in && p->kept == q->kept &&
               p->kept_format == q->kept_format;
    }
    return same;
}

static cake_stream_layer *add_layer(cake_stream_layers *all, const cake_model *model, int number)
{
    all->layer = cake_grow(all->layer, (size_t)all->n + 1, sizeof *all->layer);
    cake_stream_layer *l = &all->layer[all->n];
    *l = (cake_stream_layer){.layer = number, .layout = all->n};
    const int n = model->config.moe.router.n_expert;
    l->of_expert = cake_alloc((size_t)n + 1, sizeof *l->of_expert);
    for (int i = 0; i < n; i++)
        l->of_expert[i] = -1;
    all->index[number] = all->n++;
    return l;
}

static void add_unit(cake_stream_layer *l, int first, int expert)
{
    l->unit = cake_grow(l->unit, (size_t)l->n_unit + 1, sizeof *l->unit);
    if (expert >= 0)
        l->of_expert[expert] = l->n_unit;
    l->n_dense += expert < 0;
    l->unit[l->n_unit++] = (cake_stream_unit){.first = first, .expert = expert, .met = true};
}

void cake_stream_layers_build(cake_stream_layers *all, const cake_model *model, const cake_kernels *kernels)
{
    cake_stream_layer *l = NULL;
    all->index = cake_alloc((size_t)model->config.n_layer, sizeof *all->index);
    for (int i = 0; i < model->config.n_layer; i++)
        all->index[i] = -1;
    if (all->n_tensor)
        qsort(all->tensor, (size_t)all->n_tensor, sizeof *all->tensor, by_unit);
    for (int i = 0; i < all->n_tensor; i++) {
        cake_stream_tensor *t = &all->tensor[i];
        const cake_tensor_item *p = &t->read.piece;
        if (!l || p->layer != l->layer)
            l = add_layer(all, model, p->layer);
        if (!l->n_unit || begins_unit(t - 1, t))
            add_unit(l, i, expert_of(p));
        cake_stream_unit *u = &l->unit[l->n_unit - 1];
        u->n++;
        u->chunks += chunks_of(p);
        t->offset = p->at ? t[-1].offset : l->bytes;
        l->bytes += (int64_t)t->bytes;
        l->in_files += cake_tensor_item_bytes(p);
        const cake_weight w = cake_tensor_item_weight(p);
        l->padded = l->padded || kernels->weight_bytes(&w) != (size_t)w.n_out * cake_weight_row_bytes(&w);
    }
    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < i && all->layer[i].layout == i; j++)
            if (same_layout(all, &all->layer[j], &all->layer[i]))
                all->layer[i].layout = j;
}

void cake_stream_layer_note_met(cake_stream_layer *l, const cake_groups *groups)
{
    for (int i = l->n_dense; i < l->n_unit; i++)
        l->unit[i].met = false;
    for (int i = 0; i < groups->n; i++)
        if (l->of_expert[groups->expert[i]] >= 0)
            l->unit[l->of_expert[groups->expert[i]]].met = true;
}

bool cake_stream_layer_met_all(const cake_stream_layer *l)
{
    int n = 0;
    for (int i = l->n_dense; i < l->n_unit; i++)
        n += l->unit[i].met;
    return n * 10 >= (l->n_unit - l->n_dense) * 9;
}

void cake_stream_layers_free(cake_stream_layers *all)
{
    for (int i = 0; i < all->n_tensor; i++)
        free(all->tensor[i].read.name);
    for (int i = 0; i < all->n; i++) {
        free(all->layer[i].unit);
        free(all->layer[i].of_expert);
    }
    free(all->tensor);
    free(all->layer);
    free(all->index);
    *all = (cake_stream_layers){0};
}
