/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the input of a preparation. Out: calls to a scanner.
 * Invariant: one thread at a time reads, works on or delivers a batch; only take and settle know the order.
 */
#include "request/scan.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "request/worker_pool.h"

enum {
    BATCH_BYTES = 256 << 10, /* of lines: hundreds of requests, so that locking is cheap */
    BATCH_LINES = 512,
    MAX_KEPT = 4 << 20 /* buffers beyond this are freed after use */
};

typedef struct result {
    cake_request request; /* with its error */
    int64_t n_token;
    size_t end; /* end of its output in out */
} result;

typedef struct batch {
    cake_buf lines;
    cake_line *line; /* [n] text is set after all are read */
    size_t *from;    /* [n] offset of its text in lines */
    result *result;  /* [n] */
    int n;
    cake_buf out, text; /* output of compose; the rendered prompt of one request */
} batch;

typedef struct scan {
    cake_preparation *preparation;
    const cake_scanner *scanner;
    cake_err end; /* the latest result of reading */
} scan;

static cake_err read_batch(void *arg, void *item)
{
    scan *s = arg;
    batch *b = item;
    b->n = 0;
    cake_buf_cut(&b->lines, 0);
    while (!s->end && b->n < BATCH_LINES && b->lines.len < BATCH_BYTES) {
        cake_line *line = &b->line[b->n];
        s->end = cake_prompt_read(s->preparation->prompt, line);
        if (s->end)
            break;
        b->from[b->n++] = b->lines.len;
        if (line->text)
            cake_buf_add(&b->lines, line->text, line->len);
    }
    for (int i = 0; i < b->n; i++)
        if (b->line[i].text)
            b->line[i].text = b->lines.data + b->from[i];
    return b->n ? CAKE_OK : s->end;
}

static void compose(const scan *s, const cake_request *r, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out)
{
    if (s->scanner->compose)
        s->scanner->compose(s->scanner->self, r, text, ids, out);
}

/* Lines of other shards are only parsed, since ids must be unique in the whole input. */
static bool is_wanted(const scan *s, const cake_request *request)
{
    return cake_shard_has(&s->preparation->options.shard, request->index);
}

static void work_batch(void *arg, void *item)
{
    const scan *s = arg;
    batch *b = item;
    cake_buf_cut(&b->out, 0);
    for (int i = 0; i < b->n; i++) {
        result *r = &b->result[i];
        cake_ids ids = {0};
        cake_prompt_parse(s->preparation->prompt, &b->line[i], &r->request);
        if (is_wanted(s, &r->request)) {
            cake_prepare_request(s->preparation, &r->request, &b->text, &ids);
            compose(s, &r->request, &b->text, &ids, &b->out);
        }
        r->n_token = (int64_t)ids.len;
        r->end = b->out.len;
        cake_ids_free(&ids);
    }
}

/* A request may turn out to have the id of an earlier one: then its output is composed again. */
static cake_err take_result(scan *s, batch *b, int i)
{
    result *r = &b->result[i];
    size_t from = i ? b->result[i - 1].end : 0;
    bool failed = r->request.err;
    cake_prompt_settle(s->preparation->prompt, &r->request);
    if (!is_wanted(s, &r->request))
        return CAKE_OK;
    if (!failed && r->request.err) {
        cake_buf recomposed = {0};
        cake_buf_cut(&b->text, 0);
        compose(s, &r->request, &b->text, &(cake_ids){0}, &recomposed);
        cake_err err = s->scanner->take(s->scanner->self, &r->request, 0, recomposed.data, recomposed.len);
        cake_buf_free(&recomposed);
        return err;
    }
    return s->scanner->take(s->scanner->self, &r->request, r->n_token,
                            b->out.data ? b->out.data + from : NULL, r->end - from);
}

static void trim(cake_buf *buf)
{
    if (buf->cap > MAX_KEPT)
        cake_buf_free(buf);
}

static cake_err finish_batch(void *arg, void *item)
{
    batch *b = item;
    cake_err err = CAKE_OK;
    for (int i = 0; i < b->n; i++) {
        if (!err)
            err = take_result(arg, b, i);
        cake_request_free(&b->result[i].request);
    }
    b->n = 0;
    trim(&b->lines);
    trim(&b->out);
    trim(&b->text);
    return err;
}

cake_err cake_scan_run(cake_preparation *preparation, int n_thread, const cake_scanner *scanner)
{
    scan s = {.preparation = preparation, .scanner = scanner};
    int n = 2 * n_thread;
    batch *batches = cake_alloc((size_t)n, sizeof *batches);
    void **items = cake_alloc((size_t)n, sizeof *items);
    for (int i = 0; i < n; i++) {
        batches[i].line = cake_alloc(BATCH_LINES, sizeof *batches[i].line);
        batches[i].from = cake_alloc(BATCH_LINES, sizeof *batches[i].from);
        batches[i].result = cake_alloc(BATCH_LINES, sizeof *batches[i].result);
        items[i] = &batches[i];
    }
    cake_worker_job job = {.arg = &s, .read = read_batch, .work = work_batch, .finish = finish_batch};
    cake_err err = cake_worker_pool_run(&job, n_thread, items, n);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < batches[i].n; j++)
            cake_request_free(&batches[i].result[j].request);
        free(batches[i].line);
        free(batches[i].from);
        free(batches[i].result);
        cake_buf_free(&batches[i].lines);
        cake_buf_free(&batches[i].out);
        cake_buf_free(&batches[i].text);
    }
    free(items);
    free(batches);
    return err;
}
