/* SPDX-License-Identifier: Apache-2.0
 *
 * In: streamed layers in the order of waves, the layer that computes. Out: its weights in a buffer, those of
 * the next layer in the other one.
 *
 * A buffer belongs to one layer at a time and has a list of units to read. Threads take chunks of it. All
 * state is under one lock, which is held for microseconds between chunks of a megabyte.
 * Invariant: a buffer gets another layer only if no chunk of it is being read and its layer does not compute.
 */
#include "model/weight_stream.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "model/weight_split.h"

#define MAX_READERS 4  /* threads that read ahead: the team helps when it has to wait */
#define MAX_MEMORY  32 /* threads that read at the same time */
#define FEW_MEMORY  4  /* where each needs memory for whole matrices */
#define STACK       (512 << 10)
#define NICE        10 /* of readers: they take the cpus that the team leaves */

/* One of the buffers. */
typedef struct buffer {
    char *data;
    int at;     /* index of its layer; -1: none */
    int layout; /* of the tensors whose padding is zero; -1: all bytes are zero */
    int *queue; /* [units of a layer] units to read, in order */
    bool *listed;
    int *left; /* [units of a layer] chunks that are not done */
    int n_queued, n_dense;
    int next, tensor, row;  /* the next chunk: index in queue, tensor of the unit, first row */
    int asked;              /* units of queue that were asked for */
    int n_done, dense_done; /* units that were read completely */
    int in_flight;          /* chunks */
} buffer;

typedef struct chunk {
    buffer *to;
    int unit; /* of the layer */
    const cake_stream_tensor *tensor;
    int first, n;
} chunk;

struct cake_weight_stream {
    cake_model *model;
    const cake_kernels *kernels;
    cake_stream_layers layers;
    buffer buffers[CAKE_STREAM_BUFFERS];
    int n_buffer;
    cake_row_reader *readers; /* [n_memory] one for each thread that reads at the same time */
    int *unused;              /* [n_unused] of them */
    int n_memory, n_unused;
    cake_arena arena; /* of the readers */
    void (*bind)(void *arg);
    void *bind_arg;
    pthread_t thread[MAX_READERS], asker;
    int n_thread;
    bool asks;

    pthread_mutex_t lock; /* protects the following and the buffers */
    pthread_cond_t work, done, ask;
    int now;   /* index of the layer that computes; -1: none */
    int after; /* index of the next one, as far as is known */
    bool many; /* the rows of a wave as the latest one meet all experts, if routers spread them evenly */
    bool stop, failed;
    int active;
    double since;
    cake_stream_stats stats;

    void (*poll)(void *arg);
    void *poll_arg;
};

/* ---- buffers; all with the lock */

/* The index of the i-th layer that is wanted: first the one that computes. */
static int wanted(const cake_weight_stream *s, int i)
{
    if (s->now >= 0 && i == 0)
        return s->now;
    return (s->after + i - (s->now >= 0)) % s->layers.n;
}

static buffer *find_buffer(cake_weight_stream *s, int at)
{
    for (int i = 0; i < s->n_buffer; i++)
        if (s->buffers[i].at == at)
            return &s->buffers[i];
    return NULL;
}

static bool is_wanted(const cake_weight_stream *s, int at)
{
    for (int i = 0; i < s->n_buffer && at >= 0; i++)
        if (wanted(s, i) == at)
            return true;
    return false;
}

static void list_unit(buffer *b, const cake_stream_layer *l, int unit)
{
    if (b->listed[unit])
        return;
    b->listed[unit] = true;
    b->left[unit] = l->unit[unit].chunks;
    b->queue[b->n_queued++] = unit;
}

static void list_expected(buffer *b, const cake_stream_layer *l)
{
    const bool all = cake_stream_layer_met_all(l);
    for (int i = l->n_dense; i < l->n_unit; i++)
        if (all || l->unit[i].met)
            list_unit(b, l, i);
}

/* There is more to read. */
static void call_readers(cake_weight_stream *s)
{
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->done);
    pthread_cond_signal(&s->ask);
}

static void bind_layer(const cake_weight_stream *s, const cake_stream_layer *l, char *data)
{
    for (int i = 0; i < l->n_unit; i++)
        for (int j = l->unit[i].first; j < l->unit[i].first + l->unit[i].n; j++) {
            const cake_stream_tensor *t = &s->layers.tensor[j];
            cake_read_item_bind(s->model, &t->read.piece, data + t->offset, t->bytes);
        }
}

/* Gives a buffer to a layer. */
static void assign(cake_weight_stream *s, buffer *b, int at)
{
    const cake_stream_layer *l = &s->layers.layer[at];
    if (l->padded && b->layout != l->layout && b->layout != -1)
        memset(b->data, 0, (size_t)l->bytes);
    *b = (buffer){.data = b->data,
                  .at = at,
                  .layout = l->layout,
                  .queue = b->queue,
                  .listed = b->listed,
                  .left = b->left};
    memset(b->listed, 0, (size_t)l->n_unit * sizeof *b->listed);
    bind_layer(s, l, b->data);
    b->n_dense = l->n_dense;
    for (int i = 0; i < l->n_dense; i++)
        list_unit(b, l, i);
    if (s->many)
        list_expected(b, l);
    call_readers(s);
}

/* Gives buffers to the wanted layers that have none. */
static void assign_buffers(cake_weight_stream *s)
{
    for (int i = 0; i < s->n_buffer; i++) {
        int at = wanted(s, i);
        for (int j = 0; j < s->n_buffer && !find_buffer(s, at); j++)
            if (!s->buffers[j].in_flight && !is_wanted(s, s->buffers[j].at))
                assign(s, &s->buffers[j], at);
    }
}

static bool is_complete(const buffer *b, bool dense)
{
    return dense ? b->dense_done == b->n_dense : b->n_done == b->n_queued;
}

/* Units that nobody began to read are left out, since a wave of few rows may not want them. */
static void drop_experts(cake_weight_stream *s, buffer *b)
{
    const cake_stream_layer *l = &s->layers.layer[b->at];
    int keep = b->next + (b->tensor || b->row);
    keep = keep > l->n_dense ? keep : l->n_dense;
    while (b->n_queued > keep)
        b->listed[b->queue[--b->n_queued]] = false;
    b->asked = b->asked < b->n_queued ? b->asked : b->n_queued;
}

/* ---- chunks */

static bool take_of(cake_weight_stream *s, buffer *b, chunk *c)
{
    if (b->next == b->n_queued)
        return false;
    const cake_stream_unit *u = &s->layers.layer[b->at].unit[b->queue[b->next]];
    const cake_stream_tensor *t = &s->layers.tensor[u->first + b->tensor];
    const cake_tensor_item *p = &t->read.piece;
    int most = cake_stream_chunk_rows(p), n = p->n_out - b->row < most ? p->n_out - b->row : most;
    *c = (chunk){b, b->queue[b->next], t, b->row, n};
    b->row += n;
    if (b->row == p->n_out) {
        b->row = 0;
        b->tensor++;
    }
    if (b->tensor == u->n) {
        b->tensor = 0;
        b->next++;
    }
    return true;
}

/* Takes a chunk of a wanted layer, or of b only. False: there is none now, or no memory to read it. */
static bool take(cake_weight_stream *s, buffer *b, chunk *c)
{
    bool found = false;
    if (s->failed || !s->n_unused)
        return false;
    for (int i = 0; i < s->n_buffer && !found && !b; i++) {
        buffer *of = find_buffer(s, wanted(s, i));
        found = of && take_of(s, of, c);
    }
    return found || (b && take_of(s, b, c));
}

/* Reports the first error; nothing more is read. */
static void give_up(cake_weight_stream *s, const cake_buf *why)
{
    if (!s->failed && why->len)
        cake_fail("model", "%s", why->data);
    s->failed = true;
    pthread_cond_broadcast(&s->done);
}

static bool read_rows(cake_row_reader *reader, const chunk *c, const cake_read_item *it, bool drop,
                      cake_buf *why)
{
    for (int row = c->first, end = c->first + c->n, n; row < end; row += n) {
        n = cake_row_reader_step(&it->piece, row, end - row);
        if (!cake_row_reader_take(reader, it, row, n, why))
            return false;
    }
    if (drop)
        cake_row_reader_leave(&it->piece, c->first, c->n);
    return true;
}

static void finish(cake_weight_stream *s, const chunk *c)
{
    buffer *b = c->to;
    b->in_flight--;
    if (!--b->left[c->unit]) {
        b->n_done++;
        b->dense_done += s->layers.layer[b->at].unit[c->unit].expert < 0;
        pthread_cond_broadcast(&s->done);
    }
    if (!b->in_flight && !is_wanted(s, b->at))
        assign_buffers(s);
    s->active--;
    if (!s->active)
        s->stats.active_s += cake_clock_now() - s->since;
}

/* Reads a chunk; called with the lock, which is released meanwhile. */
static void do_chunk(cake_weight_stream *s, const chunk *c)
{
    const int memory = s->unused[--s->n_unused];
    cake_row_reader *reader = &s->readers[memory];
    cake_read_item it = c->tensor->read;
    const bool drop = s->layers.layer[c->to->at].drop;
    cake_buf why = {0};
    it.data = c->to->data + c->tensor->offset;
    c->to->in_flight++;
    if (!s->active++)
        s->since = cake_clock_now();
    pthread_mutex_unlock(&s->lock);
    bool done = read_rows(reader, c, &it, drop, &why);
    pthread_mutex_lock(&s->lock);
    s->stats.bytes += reader->read;
    reader->read = 0;
    if (!s->n_unused) {
        pthread_cond_broadcast(&s->work);
        pthread_cond_broadcast(&s->done);
    }
    s->unused[s->n_unused++] = memory;
    if (!done)
        give_up(s, &why);
    else if (!s->failed && it.piece.from && cake_tensor_file_unchanged(it.piece.from->file))
        give_up(s, &why); /* which was reported */
    cake_buf_free(&why);
    finish(s, c);
}

/* ---- threads */

static void *read_ahead(void *arg)
{
    cake_weight_stream *s = arg;
    chunk c;
    if (s->bind)
        s->bind(s->bind_arg);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
    pthread_mutex_lock(&s->lock);
    while (!s->stop)
        if (take(s, NULL, &c))
            do_chunk(s, &c);
        else
            pthread_cond_wait(&s->work, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* The next unit that nobody has asked for; NULL: none. */
static const cake_stream_unit *next_to_ask(cake_weight_stream *s)
{
    for (int i = 0; i < s->n_buffer; i++) {
        buffer *b = find_buffer(s, wanted(s, i));
        if (b && b->asked < b->next) /* being read already */
            b->asked = b->next;
        if (b && b->asked < b->n_queued)
            return &s->layers.layer[b->at].unit[b->queue[b->asked++]];
    }
    return NULL;
}

static void ask_for(const cake_weight_stream *s, const cake_stream_unit *u)
{
    for (int i = u->first; i < u->first + u->n; i++) {
        const cake_read_item *it = &s->layers.tensor[i].read;
        const int64_t step = 512 << 10; /* the system may read less than a long range */
        for (int64_t at = it->begin; at < it->end; at += step)
            cake_tensor_file_ahead(it->piece.from->file, at, it->end - at < step ? it->end - at : step);
    }
}

/* Asks the system for what will be read, so that disks and servers work while all threads compute. */
static void *ask_ahead(void *arg)
{
    cake_weight_stream *s = arg;
    if (s->bind)
        s->bind(s->bind_arg);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        const cake_stream_unit *u = next_to_ask(s);
        if (!u) {
            pthread_cond_wait(&s->ask, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        ask_for(s, u);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the team */

static void wait_briefly(cake_weight_stream *s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 500000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->done, &s->lock, &until);
}

/* Reads, or waits for others that do, until the layer's units are there. With the lock. */
static void wait_for(cake_weight_stream *s, const cake_exec *exec, bool dense)
{
    const double begin = cake_clock_now();
    const bool first = exec->rank == 0;
    bool waited = false;
    while (!s->failed) {
        buffer *b = find_buffer(s, s->now);
        chunk c;
        if (b && is_complete(b, dense))
            break;
        waited = true;
        if (!b)
            assign_buffers(s);
        if (b && take(s, b, &c))
            do_chunk(s, &c);
        else if (first)
            wait_briefly(s);
        else
            pthread_cond_wait(&s->done, &s->lock);
        if (first) {
            pthread_mutex_unlock(&s->lock);
            s->poll(s->poll_arg);
            pthread_mutex_lock(&s->lock);
        }
    }
    if (first && waited)
        s->stats.wait_s += cake_clock_now() - begin;
}

void cake_weight_stream_begin(cake_weight_stream *s, void (*poll)(void *arg), void *arg)
{
    s->poll = poll;
    s->poll_arg = arg;
}

/* Whether rows of a wave would meet all experts but one, if each chose its experts at random. */
static bool meets_all(const cake_config *c, int n_row)
{
    const cake_router *r = &c->moe.router;
    return r->n_expert && r->n_expert * exp(n_row * log1p(-(double)r->n_chosen / r->n_expert)) < 1;
}

/* The first member to come says which layer computes. */
static void arrive(cake_weight_stream *s, int at, int n_row)
{
    if (s->now == at)
        return;
    s->now = at;
    s->after = (at + 1) % s->layers.n;
    s->many = meets_all(&s->model->config, n_row);
    buffer *b = find_buffer(s, at);
    if (b && s->many)
        list_expected(b, &s->layers.layer[at]);
    else if (b)
        drop_experts(s, b);
    assign_buffers(s);
    call_readers(s);
}

void cake_weight_stream_enter(cake_weight_stream *s, const cake_exec *exec, int layer, int n_row)
{
    int at = s->layers.index[layer];
    if (at < 0)
        return;
    pthread_mutex_lock(&s->lock);
    arrive(s, at, n_row);
    if (s->layers.layer[at].n_dense)
        wait_for(s, exec, true);
    pthread_mutex_unlock(&s->lock);
}

void cake_weight_stream_experts(cake_weight_stream *s, const cake_exec *exec, const cake_layer_weights *w,
                                const cake_groups *groups)
{
    int at = s->layers.index[w - s->model->layer];
    if (at < 0)
        return;
    const cake_stream_layer *l = &s->layers.layer[at];
    pthread_mutex_lock(&s->lock);
    if (exec->rank == 0 && s->many)
        cake_stream_layer_note_met(&s->layers.layer[at], groups);
    while (!find_buffer(s, at) && !s->failed) { /* another layer's chunks are still being read */
        assign_buffers(s);
        if (!find_buffer(s, at))
            wait_briefly(s);
    }
    buffer *b = find_buffer(s, at);
    int before = b ? b->n_queued : 0;
    for (int i = 0; i < groups->n && b; i++)
        if (l->of_expert[groups->expert[i]] >= 0)
            list_unit(b, l, l->of_expert[groups->expert[i]]);
    if (b && b->n_queued > before)
        call_readers(s);
    wait_for(s, exec, false);
    pthread_mutex_unlock(&s->lock);
}

void cake_weight_stream_leave(cake_weight_stream *s, int layer)
{
    int at = s->layers.index[layer];
    if (at < 0)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->now == at) { /* another member may be in the next layer already */
        s->now = -1;
        assign_buffers(s);
    }
    pthread_mutex_unlock(&s->lock);
}

cake_err cake_weight_stream_error(cake_weight_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool failed = s->failed;
    pthread_mutex_unlock(&s->lock);
    return failed ? CAKE_ERR_FATAL : CAKE_OK;
}

cake_stream_stats cake_weight_stream_statistics(cake_weight_stream *s)
{
    pthread_mutex_lock(&s->lock);
    cake_stream_stats stats = s->stats;
    pthread_mutex_unlock(&s->lock);
    return stats;
}

/* ---- open, close */

static int readers_of(int n_thread)
{
    return n_thread < MAX_READERS ? n_thread : MAX_READERS;
}

/* Threads that can read at the same time. */
static int memories(const cake_model *model, int n_thread)
{
    int n = n_thread + readers_of(n_thread), most = model->config.moe.transposed ? FEW_MEMORY : MAX_MEMORY;
    return n < most ? n : most;
}

size_t cake_weight_stream_bytes(const cake_model *model, int n_thread)
{
    size_t bytes = 0;
    cake_reader_sizes size;
    cake_row_reader_sizes(model, &size);
    for (int i = 0; i < CAKE_N_READER; i++)
        bytes += cake_arena_round(size.of[i]);
    return bytes * (size_t)memories(model, n_thread);
}

static cake_err open_readers(cake_weight_stream *s, int n_thread)
{
    cake_reader_sizes sizes;
    cake_row_reader_sizes(s->model, &sizes);
    const size_t *size = sizes.of;
    cake_err err =
        cake_arena_open(&s->arena, "weights that are read", cake_weight_stream_bytes(s->model, n_thread));
    if (err)
        return err;
    s->n_memory = memories(s->model, n_thread);
    s->readers = cake_alloc((size_t)s->n_memory, sizeof *s->readers);
    s->unused = cake_alloc((size_t)s->n_memory, sizeof *s->unused);
    for (int i = 0; i < s->n_memory; i++) {
        s->readers[i] = (cake_row_reader){.model = s->model, .kernels = s->kernels, .fixed = true};
        s->readers[i].bounce =
            cake_arena_take(&s->arena, s->readers[i].bounce_size = size[CAKE_READER_BOUNCE]);
        s->readers[i].kept = cake_arena_take(&s->arena, s->readers[i].kept_size = size[CAKE_READER_KEPT]);
        s->readers[i].slab = cake_arena_take(&s->arena, s->readers[i].slab_size = size[CAKE_READER_SLAB]);
        s->readers[i].dequantized =
            cake_arena_take(&s->arena, s->readers[i].dequantized_size = size[CAKE_READER_DEQUANTIZED]);
        s->unused[s->n_unused++] = i;
    }
    return CAKE_OK;
}

static void open_buffers(cake_weight_stream *s, const cake_stream_setup *setup)
{
    size_t most = 0;
    for (int i = 0; i < s->layers.n; i++)
        most = (size_t)s->layers.layer[i].n_unit > most ? (size_t)s->layers.layer[i].n_unit : most;
    s->n_buffer = setup->n_buffer;
    for (int i = 0; i < s->n_buffer; i++) {
        buffer *b = &s->buffers[i];
        *b = (buffer){.data = setup->buffer + i * setup->buffer_bytes, .at = -1, .layout = -1};
        b->queue = cake_alloc(most, sizeof *b->queue);
        b->listed = cake_alloc(most, sizeof *b->listed);
        b->left = cake_alloc(most, sizeof *b->left);
    }
    for (int i = 0; i < s->layers.n; i++) /* pointers are valid even if nothing can be read */
        bind_layer(s, &s->layers.layer[i], s->buffers[0].data);
}

static void start_threads(cake_weight_stream *s, int n_reader)
{
    while (s->n_thread < n_reader && cake_thread_start(&s->thread[s->n_thread], STACK, read_ahead, s))
        s->n_thread++;
    s->asks = s->model->store && cake_thread_start(&s->asker, STACK, ask_ahead, s);
}

/* If the page cache does not hold all layers, the first ones stay in it: with the last ones added, the system
 * would evict each layer before it is read again. */
static void share_cache(cake_weight_stream *s, const cake_loading *how)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->layers.n; i++) {
        bytes += s->layers.layer[i].in_files;
        s->layers.layer[i].drop = how->drop && bytes > how->cache;
    }
}

cake_err cake_weight_stream_open(const cake_stream_setup *setup, cake_weight_stream **out)
{
    cake_weight_stream *s = cake_alloc(1, sizeof *s);
    *s = (cake_weight_stream){.model = setup->model,
                              .kernels = setup->kernels,
                              .layers = setup->layers,
                              .bind = setup->how->bind,
                              .bind_arg = setup->how->arg,
                              .now = -1,
                              .many = !setup->model->config.moe.router.n_expert,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .work = PTHREAD_COND_INITIALIZER,
                              .done = PTHREAD_COND_INITIALIZER,
                              .ask = PTHREAD_COND_INITIALIZER};
    share_cache(s, setup->how);
    open_buffers(s, setup);
    cake_err err = open_readers(s, setup->how->threads);
    if (err) {
        cake_weight_stream_close(s);
        return err;
    }
    pthread_mutex_lock(&s->lock);
    assign_buffers(s);
    pthread_mutex_unlock(&s->lock);
    start_threads(s, readers_of(setup->how->threads));
    *out = s;
    return CAKE_OK;
}

void cake_weight_stream_close(cake_weight_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->ask);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n_thread; i++)
        pthread_join(s->thread[i], NULL);
    if (s->asks)
        pthread_join(s->asker, NULL);
    for (int i = 0; i < CAKE_STREAM_BUFFERS; i++) {
        free(s->buffers[i].queue);
        free(s->buffers[i].listed);
        free(s->buffers[i].left);
    }
    cake_stream_layers_free(&s->layers);
    cake_arena_close(&s->arena);
    free(s->readers);
    free(s->unused);
    free(s);
}
