/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the tensors of a weight set. Out: the same in the arena, matrices packed.
 *
 * Members of a team divide the rows of every matrix as in its products later. Each walks through all matrices
 * on its own: it prefetches its next rows, reads some, converts and packs them while they are in its cache,
 * and continues. So reading and packing overlap, no thread waits, and memory is first touched by the thread
 * that will read it.
 */
#include <math.h>
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
#include "model/random_weights.h"
#include "model/tensor_walk.h"

#define PACKERS    64          /* max packing threads: more would wait for memory */
#define GRAIN      64          /* rows in whole panels */
#define STEP_ROWS  32          /* rows of one panel: fewer would write partial cache lines */
#define STEP_BYTES (512 << 10) /* file bytes of a step: they stay in the L2 cache */
#define MOST_BYTES (2 << 20)   /* of a step with long rows */
#define AHEAD      (64 << 20)  /* bytes to prefetch, for all members together */
#define LEAST_HALF 65520       /* the smallest number that overflows f16 */

/* A tensor and its destination. */
typedef struct item {
    cake_tensor_item piece;
    char *name;
    void *data;
    int64_t begin, end; /* byte range of its rows in the file */
    atomic_int left;    /* members that have not finished it */
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
    seen *seen; /* [tensors of the store] */
    atomic_bool failed;
    pthread_mutex_t lock; /* protects the following */
    int n_done;           /* items that all members have finished */
    int64_t read;
    double read_s, pack_s; /* sum over all members */
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
    char *bounce, *kept, *slab; /* rows as in the file; rows as weight_pack takes them; rows of a transposed
                                 * matrix */
    size_t bounce_size, kept_size, slab_size;
    int64_t read;
    double read_s, pack_s;
} member;

/* ---- the work */

/* Row of the tensor, of all its matrices, that is row i of the item. */
static int64_t row_in_file(const cake_tensor_item *p, int i)
{
    int at = i % p->run, half = p->run / 2;
    if (p->interleaved)
        at = at < half ? 2 * at : 2 * (at - half) + 1;
    return (int64_t)i / p->run * p->stride + p->before + at;
}

/* The matrix of an expert or head follows that of the one before. */
static void set_expert(cake_experts *experts, const cake_tensor_item *p, cake_weight weight, size_t bytes)
{
    if (p->expert == 0) {
        experts->w = weight;
        experts->step = (int64_t)bytes;
    }
    experts->n = p->expert + 1;
    CAKE_ASSERT((char *)weight.data == (char *)experts->w.data + p->expert * experts->step);
}

static void set_place(const cake_model *model, const cake_tensor_item *p, void *data, size_t bytes)
{
    char *owner = p->part->owner == CAKE_SPEC_LAYER ? (char *)&model->layer[p->layer] : (char *)&model->ends;
    void *place = owner + p->part->offset;
    cake_weight weight = {.data = data, .n_out = p->whole, .n_in = p->n_in, .dtype = p->kept};
    if (p->part->expert || p->part->head)
        set_expert(place, p, weight, bytes);
    else if (cake_tensor_spec_matrix(p->part))
        *(cake_weight *)place = weight;
    else
        *(const float **)place = data;
}

/* Bytes of one of the stacked matrices of a tensor. */
static int64_t matrix_in_file(const cake_tensor_item *p)
{
    return (int64_t)p->all * p->deep * (int64_t)cake_dtype_bytes(p->dtype);
}

static cake_err list_piece(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    loading *l = arg;
    if (p->from && !p->from->file)
        return cake_fail("model", "%s: tensor %s is in the bundle of another rank", model->dir, p->name);
    l->items = cake_grow(l->items, (size_t)l->n + 1, sizeof *l->items);
    item *it = &l->items[l->n++];
    *it = (item){.piece = *p, .name = cake_copy(p->name, strlen(p->name))};
    it->piece.name = it->name;
    size_t bytes = cake_tensor_walk_bytes(p, l->kernels);
    it->data = p->at ? it[-1].data : cake_arena_take(l->arena, bytes);
    if (p->from && p->part->transposed) {
        it->begin = p->from->tensor->begin + p->expert * matrix_in_file(p);
        it->end = it->begin + (int64_t)p->all * p->n_in * (int64_t)cake_dtype_bytes(p->dtype);
    } else if (p->from) {
        int64_t row = (int64_t)cake_row_bytes(p->dtype, p->n_in);
        it->begin = p->from->tensor->begin + row_in_file(p, 0) * row;
        it->end = p->from->tensor->begin + (row_in_file(p, p->n_out - 1) + 1) * row;
    }
    set_place(model, p, it->data, bytes);
    return CAKE_OK;
}

static int in_file_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    const char *p = x->piece.from ? cake_safetensors_path(x->piece.from->file) : "";
    const char *q = y->piece.from ? cake_safetensors_path(y->piece.from->file) : "";
    int order = strcmp(p, q);
    return order ? order : (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- one member */

/* Rows of a step: whole panels, unless rows are very long. */
static int step_rows(const cake_tensor_item *p)
{
    size_t row = cake_row_bytes(p->dtype, p->n_in), rows = STEP_BYTES / row / STEP_ROWS * STEP_ROWS;
    if (!rows)
        rows = MOST_BYTES / row < STEP_ROWS ? MOST_BYTES / row : STEP_ROWS;
    return rows ? (int)rows : 1;
}

static bool next_step(const loading *l, const cake_exec *exec, walker *w, step *s)
{
    while (w->next == w->to) {
        if (++w->item == l->n)
            return false;
        const cake_tensor_item *p = &l->items[w->item].piece;
        int64_t from = 0, to = w->item % exec->size == exec->rank ? p->n_out : 0;
        if (cake_tensor_spec_matrix(p->part))
            cake_exec_range(exec, p->n_out, GRAIN, &from, &to);
        w->next = (int)from;
        w->to = (int)to;
    }
    const cake_tensor_item *p = &l->items[w->item].piece;
    int n = w->to - w->next;
    if (!p->part->transposed) {
        int most = step_rows(p), run = p->run - w->next % p->run;
        n = n < most ? n : most;
        n = n < run ? n : run;
    }
    *s = (step){w->item, w->next, n};
    w->next += n;
    w->bytes += n * (int64_t)cake_row_bytes(p->dtype, p->n_in);
    return true;
}

/* Offset of a step's rows in their tensor. */
static int64_t step_offset(const cake_tensor_item *p, const step *s)
{
    return row_in_file(p, s->first) * (int64_t)cake_row_bytes(p->dtype, p->n_in);
}

/* Prefetches what this member reads next, so that disks and servers work while it packs. */
static void ask_ahead(member *m)
{
    const int64_t most = AHEAD / m->exec->size > 4 * STEP_BYTES ? AHEAD / m->exec->size : 4 * STEP_BYTES;
    step s;
    while (m->ahead.item < m->l->n && m->ahead.bytes - m->now.bytes < most &&
           next_step(m->l, m->exec, &m->ahead, &s)) {
        const cake_tensor_item *p = &m->l->items[s.item].piece;
        if (p->from)
            cake_safetensors_ahead(p->from->file, p->from->tensor->begin + step_offset(p, &s),
                                   s.n * (int64_t)cake_row_bytes(p->dtype, p->n_in));
    }
}

static void *room(char **memory, size_t *size, size_t need)
{
    if (need > *size)
        *memory = cake_grow(*memory, *size = need, 1);
    return *memory;
}

/* Adds bytes of a tensor, from `offset` on, to its checksum, while they are in cache. */
static void note_bytes(const loading *l, const cake_tensor_item *p, int64_t offset, const void *bytes,
                       int64_t n)
{
    if (!p->from || !p->from->has_crc)
        return;
    seen *tensor = &l->seen[p->from - cake_tensor_index_at(l->model->store, 0)];
    int64_t size = p->from->tensor->end - p->from->tensor->begin;
    atomic_fetch_xor(&tensor->parts, cake_crc_part(bytes, (size_t)n, size - offset - n));
    atomic_fetch_add(&tensor->bytes, n);
}

/* note_bytes of the rows of a step. */
static void note_rows(const loading *l, const cake_tensor_item *p, const step *s, const char *rows)
{
    const int64_t row = (int64_t)cake_row_bytes(p->dtype, p->n_in);
    const int together = p->interleaved ? 1 : s->n;
    for (int r = 0; r < s->n; r += together)
        note_bytes(l, p, row_in_file(p, s->first + r) * row, rows + r * row, together * row);
}

/* to [s->n, p->n_in] of dtype = the columns of a transposed matrix that are the rows of a step; from [n,
 * all]: its rows [k, k + n). */
static void turn_columns(const cake_tensor_item *p, const step *s, char *to, const char *from, int k, int n)
{
    const size_t size = cake_dtype_bytes(p->dtype);
    const int64_t before = p->before - (int64_t)p->expert * p->all;
    for (int r = 0; r < s->n; r++) {
        int64_t row = s->first + r, column = row / p->run * p->stride + before + row % p->run;
        char *out = to + ((size_t)r * (size_t)p->n_in + (size_t)k) * size;
        for (int i = 0; i < n; i++)
            memcpy(out + (size_t)i * size, from + ((size_t)i * (size_t)p->all + (size_t)column) * size, size);
    }
}

/* Reads rows that are columns of a transposed matrix, slab by slab. Of the items and members that read a
 * slab, one adds it to the tensor's checksum. */
static const void *fetch_columns(member *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    const int64_t row = (int64_t)p->all * (int64_t)cake_dtype_bytes(p->dtype);
    const int64_t begin = p->expert * matrix_in_file(p), most = row < STEP_BYTES ? STEP_BYTES / row : 1;
    const bool first_item = p->before == p->expert * p->all;
    char *into = room(&m->bounce, &m->bounce_size, (size_t)s->n * cake_row_bytes(p->dtype, p->n_in));
    for (int64_t k = 0, slab = 0, n; k < p->n_in; k += n, slab++) {
        n = p->n_in - k < most ? p->n_in - k : most;
        void *from = room(&m->slab, &m->slab_size, (size_t)(n * row));
        m->read += n * row;
        if (cake_safetensors_read(p->from->file, p->from->tensor, begin + k * row, from, (size_t)(n * row),
                                  why))
            return NULL;
        if (first_item && slab % m->exec->size == m->exec->rank)
            note_bytes(m->l, p, begin + k * row, from, n * row);
        turn_columns(p, s, into, from, (int)k, (int)n);
    }
    return into;
}

/* Reads rows that are contiguous in the file, or makes random ones. */
static bool fetch_rows(member *m, const cake_tensor_item *p, const step *s, void *into, cake_buf *why)
{
    size_t bytes = (size_t)s->n * cake_row_bytes(p->dtype, p->n_in);
    if (!p->from) {
        cake_random_weights_fill(m->l->model->options.dummy_seed, p->name, p->part->norm, p->dtype,
                                 row_in_file(p, s->first) * p->n_in, (int64_t)s->n * p->n_in, into);
        return true;
    }
    m->read += (int64_t)bytes;
    return !cake_safetensors_read(p->from->file, p->from->tensor, step_offset(p, s), into, bytes, why);
}

/* Reads the rows of a step. NULL: failed, with the reason in why. */
static const void *fetch(member *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    size_t row = cake_row_bytes(p->dtype, p->n_in);
    char *into = room(&m->bounce, &m->bounce_size, (size_t)s->n * row);
    if (p->from && p->part->transposed)
        return fetch_columns(m, p, s, why);
    const int together = p->interleaved ? 1 : s->n;
    bool done = true;
    for (int r = 0; r < s->n && done; r += together)
        done = fetch_rows(m, p, &(step){s->item, s->first + r, together}, into + (size_t)r * row, why);
    return done ? into : NULL;
}

/* Whether one of n halves is infinite, so that a number may have overflowed. */
static bool any_infinite(const uint16_t *half, int64_t n)
{
    enum { GROUP = 64 };
    int64_t i = 0;
    uint16_t bad = 0;
    for (; i + GROUP <= n; i += GROUP)
        for (int j = 0; j < GROUP; j++)
            bad |= (half[i + j] & 0x7FFF) == 0x7C00;
    for (; i < n; i++)
        bad |= (half[i] & 0x7FFF) == 0x7C00;
    return bad;
}

/* Reports the first of n elements that overflows f16, if any. */
static bool fits_half(const member *m, const cake_tensor_item *p, const void *from, int64_t n, cake_buf *why)
{
    const size_t size = cake_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < n; i++) {
        float value;
        cake_to_f32(&value, (const char *)from + (size_t)i * size, p->dtype, 1);
        if (fabsf(value) >= LEAST_HALF && isfinite(value)) {
            cake_buf_addf(why, "%s: tensor %s holds %g, which is more than f16 can hold; keep it in bf16",
                          m->l->model->dir, p->name, (double)value);
            return false;
        }
    }
    return true;
}

/* Converts rows [n] from the file's dtype to that of weight_pack. */
static bool convert(member *m, const cake_tensor_item *p, void *to, const void *from, int n, cake_buf *why)
{
    const cake_kernels *op = m->l->kernels;
    int64_t all = (int64_t)n * p->n_in;
    if (p->kept != CAKE_I8) {
        op->convert(to, p->kept, from, p->dtype, all);
        return p->kept != CAKE_F16 || !any_infinite(to, all) || fits_half(m, p, from, all, why);
    }
    for (int r = 0; r < n; r++)
        op->convert((char *)to + (size_t)r * cake_row_bytes(CAKE_I8, p->n_in), CAKE_I8,
                    (const char *)from + (size_t)r * cake_row_bytes(p->dtype, p->n_in), p->dtype, p->n_in);
    return true;
}

/* Norm weights stored as weight - 1 are restored; what divides by a root is divided here. */
static void fill_vector(const cake_model *model, const cake_tensor_item *p, float *to, const void *from,
                        int64_t n)
{
    cake_to_f32(to, from, p->dtype, n);
    if (p->part->norm && !p->part->plain && p->from && model->config.arch->norms_less_one)
        for (int64_t i = 0; i < n; i++)
            to[i] += 1;
    if (p->part->over_root)
        for (int64_t i = 0; i < n; i++)
            to[i] /= sqrtf((float)p->n_out);
}

/* Stores the rows in their destination. */
static bool take(member *m, const step *s, const void *rows, cake_buf *why)
{
    const item *it = &m->l->items[s->item];
    const cake_tensor_item *p = &it->piece;
    if (!cake_tensor_spec_matrix(p->part)) {
        const int64_t n = (int64_t)s->n * p->n_in;
        float *value = room(&m->kept, &m->kept_size, (size_t)n * sizeof *value);
        fill_vector(m->l->model, p, value, rows, n);
        cake_memory_upload(m->l->kernels->memory, (float *)it->data + (int64_t)s->first * p->n_in, value,
                           (size_t)n * sizeof *value);
        return true;
    }
    if (p->kept != p->dtype) {
        void *kept = room(&m->kept, &m->kept_size, (size_t)s->n * cake_row_bytes(p->kept, p->n_in));
        if (!convert(m, p, kept, rows, s->n, why))
            return false;
        rows = kept;
    }
    cake_weight weight = {.data = it->data, .n_out = p->whole, .n_in = p->n_in, .dtype = p->kept};
    m->l->kernels->weight_pack(&weight, rows, p->at + s->first, s->n);
    return true;
}

/* The rows in a mapped file; NULL: they must be read, which also aligns them. */
static const void *view(const cake_tensor_item *p, const step *s)
{
    const void *rows = p->from && !p->part->transposed && !p->interleaved
                           ? cake_safetensors_view(p->from->file, p->from->tensor, step_offset(p, s))
                           : NULL;
    return (uintptr_t)rows % cake_dtype_bytes(p->dtype) ? NULL : rows;
}

static bool do_step(member *m, const step *s, cake_buf *why)
{
    const cake_tensor_item *p = &m->l->items[s->item].piece;
    const void *rows = view(p, s);
    double begin = cake_clock_now(), fetched = begin;
    bool done = rows && take(m, s, rows, why);
    done = done && !cake_safetensors_faulted(p->from->file);
    if (done) {
        m->read += s->n * (int64_t)cake_row_bytes(p->dtype, p->n_in);
    } else {
        cake_buf_cut(why, 0); /* a faulted mapping may contain wrong values */
        rows = fetch(m, p, s, why);
        fetched = cake_clock_now();
        done = rows && take(m, s, rows, why);
    }
    if (done && !p->part->transposed)
        note_rows(m->l, p, s, rows);
    m->read_s += fetched - begin;
    m->pack_s += cake_clock_now() - fetched;
    return done;
}

/* ---- together */

/* Reports the first error; the other members then stop. */
static void give_up(loading *l, const cake_buf *why)
{
    pthread_mutex_lock(&l->lock);
    if (!atomic_exchange(&l->failed, true))
        cake_fail("model", "%s", why->data);
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
        const item *it = &l->items[l->n_done], *next = it + 1;
        int64_t end = it->end;
        if (l->n_done + 1 < l->n && next->piece.from && it->piece.from &&
            next->piece.from->file == it->piece.from->file && next->begin < end)
            end = next->begin;
        if (it->piece.from)
            cake_safetensors_leave(it->piece.from->file, it->begin, end, l->how->drop);
    }
    pthread_mutex_unlock(&l->lock);
}

static void load_share(const cake_exec *exec, void *arg)
{
    loading *l = arg;
    member m = {.l = l, .exec = exec, .now = {.item = -1}, .ahead = {.item = -1}};
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
        if (!do_step(&m, &s, &why))
            give_up(l, &why);
    }
    pthread_mutex_lock(&l->lock);
    l->read += m.read;
    l->read_s += m.read_s;
    l->pack_s += m.pack_s;
    pthread_mutex_unlock(&l->lock);
    cake_buf_free(&why);
    free(m.bounce);
    free(m.slab);
    free(m.kept);
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
                     cake_safetensors_path(bad->file), bad->tensor->name, (unsigned)found, (unsigned)bad->sum,
                     more);
}

static void settle(const loading *l)
{
    for (int i = 0; i < l->n; i++) {
        const cake_tensor_item *p = &l->items[i].piece;
        cake_weight weight = {.data = l->items[i].data, .n_out = p->whole, .n_in = p->n_in, .dtype = p->kept};
        if (p->part->owner == CAKE_SPEC_LAYER && cake_tensor_spec_matrix(p->part) && !p->at)
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
    err = cake_tensor_walk_visit(model, share, list_piece, &l);
    atomic_init(&l.failed, err != CAKE_OK);
    CAKE_ASSERT(err || held->arena.used == held->arena.size);
    if (l.n)
        qsort(l.items, (size_t)l.n, sizeof *l.items, in_file_order);
    cake_exec_run(how->threads < PACKERS ? how->threads : PACKERS, load_all, &l);
    if (model->store)
        cake_tensor_index_unmap(model->store);
    model->bytes_read += l.read;
    err = atomic_load(&l.failed) ? CAKE_ERR_FATAL : check_sums(&l);
    if (!err && model->store)
        err = cake_tensor_index_unchanged(model->store);
    if (!err)
        settle(&l);
    log_load(&l, cake_clock_now() - start);
    free(l.seen);
    for (int i = 0; i < l.n; i++)
        free(l.items[i].name);
    free(l.items);
    if (model->config.tied) {
        model->ends.head = model->ends.embedding;
        if (!share->embed)
            model->ends.embedding = embedding;
    }
    return err;
}
