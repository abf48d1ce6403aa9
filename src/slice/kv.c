/* SPDX-License-Identifier: Apache-2.0
 *
 * In: page changes from wave headers. Out: views for the kernels. Invariant: the device's page table equals
 * the host's when the next operation begins; pages below `used` have been allocated, those below `touched`
 * have physical memory.
 */
#include "slice/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* K or V of one page in one layer. */
static size_t half_page_bytes(const cake_kv_shape *shape)
{
    return (size_t)CAKE_PAGE * (size_t)shape->n_kv *
           cake_kv_line_bytes(shape->dtype, shape->head_dim, shape->n_value);
}

/* K and V, or latents alone. */
static size_t halves(const cake_kv_shape *shape)
{
    return shape->n_value ? 1 : 2;
}

size_t cake_kv_page_bytes(const cake_kv_shape *shape)
{
    return halves(shape) * (size_t)shape->n_layer * half_page_bytes(shape);
}

static size_t table_bytes(const cake_kv_shape *shape)
{
    return cake_arena_round((size_t)shape->n_slot * (size_t)shape->stride * sizeof(int32_t));
}

size_t cake_kv_bytes(const cake_kv_shape *shape)
{
    return table_bytes(shape) + cake_arena_round((size_t)shape->n_page * cake_kv_page_bytes(shape));
}

cake_err cake_kv_open(const cake_kv_shape *shape, const cake_memory *memory, cake_kv_cache *kv)
{
    *kv = (cake_kv_cache){.shape = *shape, .memory = memory};
    cake_err err = cake_memory_open(memory, &kv->arena, "KV cache", cake_kv_bytes(shape));
    if (err)
        return err;
    kv->device_table = cake_arena_take(&kv->arena, table_bytes(shape));
    kv->table = memory ? cake_alloc(1, table_bytes(shape)) : kv->device_table;
    kv->pages = cake_arena_take(&kv->arena, (size_t)shape->n_page * cake_kv_page_bytes(shape));
    return CAKE_OK;
}

cake_err cake_kv_lock(cake_kv_cache *kv)
{
    return cake_arena_lock(&kv->arena, "KV cache");
}

void cake_kv_close(cake_kv_cache *kv)
{
    if (kv->memory)
        free(kv->table);
    cake_memory_close(kv->memory, &kv->arena);
    *kv = (cake_kv_cache){0};
}

static bool in_range(const cake_kv_shape *s, const cake_change *c)
{
    if (c->slot < 0 || c->slot >= s->n_slot || c->index < 0)
        return false;
    if (c->kind == CAKE_CHANGE_SHARE)
        return c->index <= s->stride && c->from >= 0 && c->from < s->n_slot;
    return c->index < s->stride && c->page >= 0 && c->page < s->n_page &&
           (c->kind == CAKE_CHANGE_MAP || (c->from >= 0 && c->from < s->n_page));
}

/* Uploads n changed entries of the page table. */
static void upload_table(cake_kv_cache *kv, size_t first, size_t n)
{
    if (kv->device_table != kv->table)
        cake_memory_upload(kv->memory, kv->device_table + first, kv->table + first, n * sizeof *kv->table);
}

cake_err cake_kv_apply(cake_kv_cache *kv, const cake_change *c)
{
    const cake_kv_shape *s = &kv->shape;
    if (!in_range(s, c))
        return cake_fail(
            "slice",
            "a change in a wave's header is out of range: kind %d group %d slot %d index %d page %d from %d",
            c->kind, c->group, c->slot, c->index, c->page, c->from);
    const size_t line = (size_t)c->slot * (size_t)s->stride, page = cake_kv_page_bytes(s);
    if (c->kind == CAKE_CHANGE_SHARE) {
        memmove(kv->table + line, kv->table + (size_t)c->from * (size_t)s->stride,
                (size_t)c->index * sizeof *kv->table);
        upload_table(kv, line, (size_t)c->index);
    } else {
        if (c->kind == CAKE_CHANGE_COPY)
            cake_memory_copy(kv->memory, kv->pages + (size_t)c->page * page,
                             kv->pages + (size_t)c->from * page, page);
        kv->table[line + (size_t)c->index] = c->page;
        upload_table(kv, line + (size_t)c->index, 1);
    }
    if (c->kind != CAKE_CHANGE_SHARE && c->page >= kv->used)
        kv->used = c->page + 1;
    return CAKE_OK;
}

void cake_kv_touch(const cake_exec *exec, const cake_kv_cache *kv)
{
    const int64_t huge = 2 << 20, small = 4096;
    if (kv->memory)
        return;
    int64_t page = (int64_t)cake_kv_page_bytes(&kv->shape), first, last;
    cake_exec_range(exec, (kv->used - kv->touched) * page, huge, &first, &last);
    volatile char *at = kv->pages + kv->touched * page;
    for (int64_t i = first; i < last; i += small)
        at[i] = at[i]; /* keeps the bytes of a page that was copied */
}

void cake_kv_touched(cake_kv_cache *kv)
{
    kv->touched = kv->used;
}

cake_kv cake_kv_layer(const cake_kv_cache *kv, int layer)
{
    const cake_kv_shape *s = &kv->shape;
    size_t half = half_page_bytes(s);
    char *first = kv->pages + halves(s) * (size_t)layer * half;
    return (cake_kv){.k = first,
                     .v = s->n_value ? NULL : first + half,
                     .page_step = (int64_t)(cake_kv_page_bytes(s) / cake_dtype_bytes(s->dtype)),
                     .dtype = s->dtype,
                     .n_kv = s->n_kv,
                     .head_dim = s->head_dim,
                     .n_value = s->n_value,
                     .window = s->window,
                     .both_ways = s->both_ways,
                     .table = kv->device_table,
                     .stride = s->stride};
}
