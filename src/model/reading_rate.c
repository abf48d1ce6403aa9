/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model that is open. Out: rates. Invariant: the sample is read twice by the same code as weights are;
 * before the first time it leaves the page cache.
 */
#include "model/reading_rate.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/int8.h"
#include "model/row_reader.h"
#include "model/stream_layers.h"

enum {
    SAMPLE = 48,        /* chunks of about a megabyte */
    MAX_CHUNK = 1 << 26 /* bytes of a chunk in the sample */
};

#define MAX_MATRIX ((size_t)1 << 33) /* bytes of a packed matrix, of which a thread fills a chunk */

typedef struct sample {
    const cake_model *model;
    const cake_kernels *kernels;
    cake_read_item item[SAMPLE];
    int n;
    int64_t seen, step; /* matrices visited; every step-th is in the sample */
    size_t max_bytes;   /* of a packed matrix */
    atomic_int next;
    atomic_bool failed;
    atomic_int_fast64_t read;
} sample;

static cake_err pick(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    sample *s = arg;
    if (!cake_tensor_spec_matrix(p->spec) || p->spec->exact || p->at ||
        (model->store && !(p->from && p->from->file)))
        return CAKE_OK;
    const size_t bytes = cake_tensor_walk_bytes(p, s->kernels);
    /* These would take as long as a whole model, or as much memory. */
    if (cake_tensor_item_row(p) > MAX_CHUNK / (size_t)cake_stream_chunk_rows(p) || bytes > MAX_MATRIX)
        return CAKE_OK;
    if (s->step && s->seen % s->step == 0 && s->n < SAMPLE) {
        s->max_bytes = bytes > s->max_bytes ? bytes : s->max_bytes;
        s->item[s->n++] = cake_read_item_of(p);
    }
    s->seen++;
    return CAKE_OK;
}

static void read_some(const cake_exec *exec, void *arg)
{
    sample *s = arg;
    cake_row_reader reader = {.model = s->model, .kernels = s->kernels};
    void *data = aligned_alloc(CAKE_ALIGN, cake_arena_round(s->max_bytes));
    cake_buf why = {0};
    (void)exec;
    for (int i; data && (i = atomic_fetch_add(&s->next, 1)) < s->n;) {
        cake_read_item it = s->item[i];
        int rows = cake_stream_chunk_rows(&it.piece);
        rows = rows < it.piece.n_out ? rows : it.piece.n_out;
        it.data = data;
        for (int row = 0, n; row < rows; row += n) {
            n = cake_row_reader_step(&it.piece, row, rows - row);
            if (!cake_row_reader_take(&reader, &it, row, n, &why)) {
                atomic_store(&s->failed, true);
                break;
            }
            atomic_fetch_add(&s->read, n * (int64_t)cake_tensor_item_row(&it.piece));
        }
    }
    cake_row_reader_close(&reader);
    cake_buf_free(&why);
    free(data);
}

static double measure(sample *s, int n_thread)
{
    double begin = cake_clock_now();
    atomic_store(&s->next, 0);
    atomic_store(&s->read, 0);
    cake_exec_run(n_thread, read_some, s);
    double seconds = cake_clock_now() - begin;
    return atomic_load(&s->failed) || seconds <= 0 ? 0 : (double)atomic_load(&s->read) / seconds;
}

cake_reading_rate cake_reading_rate_measure(const cake_model *model, const cake_kernels *kernels,
                                            int n_thread)
{
    cake_reading_rate rate = {0};
    cake_range range = {0, model->config.n_layer};
    cake_weight_set layers = {.range = &range, .n_range = 1};
    sample *s = cake_alloc(1, sizeof *s);
    *s = (sample){.model = model, .kernels = kernels};
    cake_tensor_walk_visit(model, &layers, pick, s);
    s->step = (s->seen + SAMPLE - 1) / SAMPLE;
    s->seen = 0;
    cake_tensor_walk_visit(model, &layers, pick, s);
    for (int i = 0; i < s->n && model->store; i++) {
        const cake_read_item *it = &s->item[i];
        cake_tensor_file_leave(it->piece.from->file, it->begin, it->end, true);
    }
    for (int i = 0; i < s->n && model->store; i++) {
        const cake_tensor_item *p = &s->item[i].piece;
        int rows = cake_stream_chunk_rows(p);
        cake_row_reader_ahead(p, 0, rows < p->n_out ? rows : p->n_out);
    }
    rate.disk = s->n ? measure(s, n_thread) : 0;
    rate.cached = s->n ? measure(s, n_thread) : 0;
    rate.disk = model->store ? rate.disk : 0;
    for (int i = 0; i < s->n; i++)
        free(s->item[i].name);
    free(s);
    return rate;
}
