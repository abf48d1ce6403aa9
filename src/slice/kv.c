/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/kv.h"

/* K or V of one page in one layer. */
static size_t half_page_bytes(const cake_kv_shape *shape)
{
    return (size_t)CAKE_PAGE * (size_t)shape->n_kv * (size_t)shape->head_dim * cake_dtype_bytes(shape->dtype);
}

size_t cake_kv_page_bytes(const cake_kv_shape *shape)
{
    return 2 * (size_t)shape->n_layer * half_page_bytes(shape);
}

static size_t table_bytes(const cake_kv_shape *shape)
{
    return cake_arena_round((size_t)shape->n_slot * (size_t)shape->stride * sizeof(int32_t));
}

size_t cake_kv_bytes(const cake_kv_shape *shape)
{
    return table_bytes(shape) + cake_arena_round((size_t)shape->n_page * cake_kv_page_bytes(shape));
}

cake_err cake_kv_open(const cake_kv_shape *shape, cake_kv_cache *kv)
{
    *kv = (cake_kv_cache){.shape = *shape};
    cake_err err = cake_arena_open(&kv->arena, "KV cache", cake_kv_bytes(shape));
    if (err)
        return err;
    kv->table = cake_arena_take(&kv->arena, table_bytes(shape));
    kv->pages = cake_arena_take(&kv->arena, (size_t)shape->n_page * cake_kv_page_bytes(shape));
    return CAKE_OK;
}

void cake_kv_close(cake_kv_cache *kv)
{
    cake_arena_close(&kv->arena);
    *kv = (cake_kv_cache){0};
}

cake_err cake_kv_apply(cake_kv_cache *kv, cake_wave *wave)
{
    const cake_kv_shape *s = &kv->shape;
    const cake_page *pages = cake_wave_pages(wave);
    for (int i = 0; i < wave->n_page; i++) {
        const cake_page *p = &pages[i];
        if (p->class != 0 || p->slot < 0 || p->slot >= s->n_slot || p->index < 0 || p->index >= s->stride ||
            p->page < 0 || p->page >= s->n_page)
            return cake_fail("slice",
                             "page change %d of a wave is out of range: class %d slot %d index %d page %d", i,
                             p->class, p->slot, p->index, p->page);
        kv->table[(size_t)p->slot * (size_t)s->stride + (size_t)p->index] = p->page;
    }
    return CAKE_OK;
}

cake_kv cake_kv_layer(const cake_kv_cache *kv, int layer)
{
    const cake_kv_shape *s = &kv->shape;
    size_t half = half_page_bytes(s);
    char *first = kv->pages + 2 * (size_t)layer * half;
    return (cake_kv){.k = first,
                     .v = first + half,
                     .page_step = 2 * (int64_t)s->n_layer * CAKE_PAGE * s->n_kv * s->head_dim,
                     .dtype = s->dtype,
                     .n_kv = s->n_kv,
                     .head_dim = s->head_dim,
                     .table = kv->table,
                     .stride = s->stride};
}
