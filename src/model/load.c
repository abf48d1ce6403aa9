/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the tensors of a weight set. Out: the same in the arena, matrices packed.
 *
 * Members of a team divide the rows of every matrix as in its products later. Each walks through all matrices
 * on its own: it prefetches its next rows, reads some, converts and packs them while they are in its cache,
 * and continues. So reading and packing overlap, no thread waits, and memory is first touched by the thread
 * that will read it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crc.h"
#include "base/log.h"
#include "kernels/int8.h"
#include "model/row_reader.h"
#include "model/weight_split.h"
#include "model/weight_stream.h"

#define PACKERS 64         /* max packing threads: more would wait for memory */
#define AHEAD   (64 << 20) /* bytes to prefetch, for all members together */
#define LEAST   (2 << 20)  /* for each member */

/* A tensor that is read at the start. */
typedef struct item {
    cake_read_item read;
    atomic_int left; /* members that have not finished it */
} item;

/* Bytes read of a tensor with a known checksum. */
typedef struct seen {
    atomic_uint_fast32_t parts; /* combined cake_crc_part of all of them */
    atomic_int_fast64_t bytes;
} seen;

typedef struct loading {
    cake_model *model;
    cake_arena *arena;
    const cake_kernels *kernels;
    const cake_loading *how;
    item *items; /* [n] in file order */
    int n;
    cake_weight_split split; /* zeros: everything is held */
    cake_stream_layers streamed;
    void *data; /* of the latest matrix */
    seen *seen; /* [tensors of the store] */
    atomic_bool failed;
    pthread_mutex_t lock; /* protects the following */
    int n_done;           /* items that all members have finished */
    int64_t read;
    double read_s, pack_s; /* sum over all members */
    cake_buf why;          /* of the first failure of a member */
} loading;

/* Contiguous rows [first, first + n) of an item. */
typedef struct step {
    int item, first, n;
} step;

/* Position of a member: rows [next, to) of an item are left. */
typedef struct walker {
    int item, next, to;
    int64_t bytes; /* read from files so far */
} walker;

typedef struct member {
    loading *l;
    const cake_exec *exec;
    walker now, ahead;
    cake_row_reader reader;
} member;

/* ---- the work */

static void add_item(loading *l, const cake_tensor_item *p, void *data)
{
    l->items = cake_grow(l->items, (size_t)l->n + 1, sizeof *l->items);
    l->items[l->n] = (item){.read = cake_read_item_of(p)};
    l->items[l->n++].read.data = data;
}

/* Experts of which some are not held do not follow each other: they get a table. */
static void open_experts(loading *l, const cake_tensor_item *p)
{
    const int n = l->model->config.moe.router.n_expert;
    bool streamed = false;
    cake_tensor_item other = *p;
    for (other.expert = 0; other.expert < n && !streamed; other.expert++)
        streamed = !cake_weight_split_find(&l->split, l->model, &other)->held;
    if (streamed) {
        cake_experts *experts = (cake_experts *)((char *)&l->model->layer[p->layer] + p->spec->offset);
        experts->at = cake_alloc((size_t)n, sizeof *experts->at);
        experts->n = n;
    }
}

static cake_err list_piece(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    loading *l = arg;
    const cake_indexed_tensor *parts[CAKE_N_QUANT];
    for (int i = 0, n = cake_tensor_item_parts(p, parts); i < n; i++)
        if (!parts[i]->file)
            return cake_fail("model", "%s: tensor %s is in the bundle of another rank", model->dir,
                             parts[i]->tensor->name);
    size_t bytes = cake_tensor_walk_bytes(p, l->kernels);
    const cake_weight_unit *unit = cake_weight_split_find(&l->split, model, p);
    if (unit && p->spec->expert && p->expert == 0)
        open_experts(l, p);
    if (unit && !unit->held) {
        cake_stream_layers_add(&l->streamed, p, bytes);
        if (p->from && p->from->has_crc) /* read once, so that all of the tensor is checked */
            add_item(l, p, NULL);
        return CAKE_OK;
    }
    l->data = p->at ? l->data : cake_arena_take(l->arena, bytes);
    add_item(l, p, l->data);
    cake_read_item_bind(model, p, l->data, bytes);
    return CAKE_OK;
}

static int in_file_order(const void *a, const void *b)
{
    const cake_read_item *x = &((const item *)a)->read, *y = &((const item *)b)->read;
    const char *p = x->piece.from ? cake_tensor_file_path(x->piece.from->file) : "";
    const char *q = y->piece.from ? cake_tensor_file_path(y->piece.from->file) : "";
    int order = strcmp(p, q);
    return order ? order : (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- one member */

static bool next_step(const loading *l, const cake_exec *exec, walker *w, step *s)
{
    while (w->next == w->to) {
        if (++w->item == l->n)
            return false;
        const cake_tensor_item *p = &l->items[w->item].read.piece;
        int64_t from = 0, to = w->item % exec->size == exec->rank ? p->n_out : 0;
        if (cake_tensor_spec_matrix(p->spec))
            cake_exec_range(exec, p->n_out, CAKE_READ_GRAIN, &from, &to);
        w->next = (int)from;
        w->to = (int)to;
    }
    const cake_tensor_item *p = &l->items[w->item].read.piece;
    int n = cake_row_reader_step(p, w->next, w->to - w->next);
    *s = (step){w->item, w->next, n};
    w->next += n;
    w->bytes += n * (int64_t)cake_tensor_item_row(p);
    return true;
}

/* Prefetches what this member reads next, so that disks and servers work while it packs. */
static void ask_ahead(member *m)
{
    const int64_t most = AHEAD / m->exec->size > LEAST ? AHEAD / m->exec->size : LEAST;
    step s;
    while (m->ahead.item < m->l->n && m->ahead.bytes - m->now.bytes < most &&
           next_step(m->l, m->exec, &m->ahead, &s))
        cake_row_reader_ahead(&m->l->items[s.item].read.piece, s.first, s.n);
}

/* Adds bytes of a tensor, from `offset` on, to its checksum, while they are in cache. */
static void note_bytes(void *arg, const cake_indexed_tensor *from, int64_t offset, const void *bytes,
                       int64_t n)
{
    const loading *l = arg;
    seen *tensor = &l->seen[from - cake_tensor_index_at(l->model->store, 0)];
    int64_t size = from->tensor->end - from->tensor->begin;
    atomic_fetch_xor(&tensor->parts, cake_crc_part(bytes, (size_t)n, size - offset - n));
    atomic_fetch_add(&tensor->bytes, n);
}

/* ---- together */

/* Keeps the first error; the other members then stop. */
static void give_up(loading *l, const cake_buf *why)
{
    pthread_mutex_lock(&l->lock);
    if (!atomic_exchange(&l->failed, true))
        cake_buf_adds(&l->why, why->data);
    pthread_mutex_unlock(&l->lock);
}

/* A member has finished the items [from, to). Pages of items that all have finished are released, except
 * those shared with the next item. */
static void go_past(loading *l, int from, int to)
{
    bool last = false;
    for (int i = from; i < to; i++)
        last |= atomic_fetch_sub(&l->items[i].left, 1) == 1;
    if (!last || !(l->how->drop || l->how->mapped))
        return;
    pthread_mutex_lock(&l->lock);
    for (; l->n_done < l->n && !atomic_load(&l->items[l->n_done].left); l->n_done++) {
        const cake_read_item *it = &l->items[l->n_done].read, *next = &l->items[l->n_done + 1].read;
        int64_t end = it->end;
        if (l->n_done + 1 < l->n && next->piece.from && it->piece.from &&
            next->piece.from->file == it->piece.from->file && next->begin < end)
            end = next->begin;
        if (it->piece.from)
            cake_tensor_file_leave(it->piece.from->file, it->begin, end, l->how->drop);
    }
    pthread_mutex_unlock(&l->lock);
}

static void load_share(const cake_exec *exec, void *arg)
{
    loading *l = arg;
    member m = {.l = l,
                .exec = exec,
                .now = {.item = -1},
                .ahead = {.item = -1},
                .reader = {.model = l->model, .kernels = l->kernels, .note = note_bytes, .arg = l}};
    cake_buf why = {0};
    step s;
    int past = 0;
    while (!atomic_load_explicit(&l->failed, memory_order_relaxed)) {
        bool more = next_step(l, exec, &m.now, &s);
        go_past(l, past, m.now.item);
        past = m.now.item;
        if (!more)
            break;
        ask_ahead(&m);
        if (!cake_row_reader_take(&m.reader, &l->items[s.item].read, s.first, s.n, &why))
            give_up(l, &why);
    }
    pthread_mutex_lock(&l->lock);
    l->read += m.reader.read;
    l->read_s += m.reader.read_s;
    l->pack_s += m.reader.pack_s;
    pthread_mutex_unlock(&l->lock);
    cake_buf_free(&why);
    cake_row_reader_close(&m.reader);
}

/* Uses the actual team size: OpenMP may grant fewer threads than requested. */
static void load_all(const cake_exec *exec, void *arg)
{
    loading *l = arg;
    if (exec->rank == 0)
        for (int i = 0; i < l->n; i++)
            atomic_init(&l->items[i].left, exec->size);
    cake_exec_barrier(exec);
    load_share(exec, arg);
}

/* Every byte loaded from a bundle must be what was staged. */
static cake_err check_sums(const loading *l)
{
    const cake_indexed_tensor *bad = NULL;
    uint32_t found = 0;
    int n = 0;
    for (int i = 0; l->model->store && i < cake_tensor_index_count(l->model->store); i++) {
        const cake_indexed_tensor *s = cake_tensor_index_at(l->model->store, i);
        int64_t bytes = s->tensor->end - s->tensor->begin;
        if (!s->has_crc || !atomic_load(&l->seen[i].bytes))
            continue;
        CAKE_ASSERT(atomic_load(&l->seen[i].bytes) == bytes); /* the items cover their whole tensor */
        uint32_t sum = cake_crc_whole((uint32_t)atomic_load(&l->seen[i].parts), bytes);
        if (sum == s->sum)
            continue;
        n++;
        found = bad ? found : sum;
        bad = bad ? bad : s;
    }
    if (!bad)
        return CAKE_OK;
    char more[48] = "";
    if (n > 1)
        snprintf(more, sizeof more, ", and %d more tensors are wrong", n - 1);
    return cake_fail("model",
                     "%s: tensor %s has the checksum %08x, but %08x was staged%s: the file is damaged; start "
                     "cake-mpi stage again, which replaces what is damaged",
                     cake_tensor_file_path(bad->file), bad->tensor->name, (unsigned)found, (unsigned)bad->sum,
                     more);
}

static void settle(const loading *l)
{
    for (int i = 0; i < l->n; i++) {
        const cake_tensor_item *p = &l->items[i].read.piece;
        cake_weight weight = cake_tensor_item_weight(p);
        weight.data = l->items[i].read.data;
        if (p->spec->owner == CAKE_SPEC_LAYER && cake_tensor_spec_matrix(p->spec) && !p->at && weight.data)
            l->kernels->select_algorithm(&weight);
    }
}

static void log_load(const loading *l, double seconds)
{
    cake_log(CAKE_DEBUG, "model",
             "%.1f MB of tensors became %.1f MB of weights in %.3f s; "
             "%d thread%s spent %.3f s on reading and %.3f s on packing%s%s",
             1e-6 * (double)l->read, 1e-6 * (double)l->arena->size, seconds, l->how->threads,
             cake_plural(l->how->threads), l->read_s, l->pack_s, l->how->mapped ? ", mapped" : "",
             l->how->drop ? ", the page cache is released" : "");
}

/* Takes the buffers from the arena and starts the threads that read for waves. */
static cake_err open_stream(loading *l)
{
    const cake_weight_split *split = &l->split;
    if (!split->n_buffer)
        return CAKE_OK;
    cake_stream_layers_build(&l->streamed, l->model, l->kernels);
    cake_stream_setup setup = {.model = l->model,
                               .kernels = l->kernels,
                               .layers = l->streamed,
                               .buffer = cake_arena_take(l->arena, (size_t)(split->n_buffer * split->buffer)),
                               .buffer_bytes = split->buffer,
                               .n_buffer = split->n_buffer,
                               .how = l->how};
    l->streamed = (cake_stream_layers){0};
    return cake_weight_stream_open(&setup, &l->model->stream);
}

/* Reads and packs what was listed. */
static cake_err load_listed(loading *l)
{
    if (l->n)
        qsort(l->items, (size_t)l->n, sizeof *l->items, in_file_order);
    cake_exec_run(l->how->threads < PACKERS ? l->how->threads : PACKERS, load_all, l);
    if (l->model->store)
        cake_tensor_index_unmap(l->model->store);
    l->model->bytes_read += l->read;
    if (l->why.len)
        cake_fail("model", "%s", l->why.data);
    cake_err err = atomic_load(&l->failed) ? CAKE_ERR_FATAL : check_sums(l);
    if (!err && l->model->store)
        err = cake_tensor_index_unchanged(l->model->store);
    if (!err)
        settle(l);
    return err;
}

cake_err cake_model_load(cake_model *model, const cake_weight_set *share, const cake_kernels *kernels,
                         const cake_loading *how)
{
    CAKE_ASSERT(model->n_held < CAKE_MAX_LOAD);
    struct cake_taken *held = &model->held[model->n_held++];
    const cake_weight embedding = model->ends.embedding;
    held->memory = kernels->memory;
    cake_err err =
        cake_memory_open(kernels->memory, &held->arena, "weights", cake_model_bytes(model, share, kernels));
    if (!err && how->mapped && model->store)
        err = cake_tensor_index_map(model->store);
    if (err)
        return err;
    double start = cake_clock_now();
    loading l = {.model = model,
                 .arena = &held->arena,
                 .kernels = kernels,
                 .how = how,
                 .lock = PTHREAD_MUTEX_INITIALIZER};
    l.seen = cake_alloc(model->store ? (size_t)cake_tensor_index_count(model->store) : 0, sizeof *l.seen);
    if (share->limit)
        cake_weight_split_make(model, share, kernels, &l.split);
    err = cake_tensor_walk_visit(model, share, list_piece, &l);
    atomic_init(&l.failed, err != CAKE_OK);
    err = load_listed(&l);
    if (!err)
        err = open_stream(&l);
    CAKE_ASSERT(err || held->arena.used == held->arena.size);
    log_load(&l, cake_clock_now() - start);
    free(l.seen);
    for (int i = 0; i < l.n; i++)
        free(l.items[i].read.name);
    free(l.items);
    cake_buf_free(&l.why);
    cake_stream_layers_free(&l.streamed);
    cake_weight_split_free(&l.split);
    if (model->config.tied) {
        model->ends.head = model->ends.embedding;
        if (!share->embed)
            model->ends.embedding = embedding;
    }
    return err;
}
