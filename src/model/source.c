/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a whole model. Out: its description as text, and its tensors' bytes. Invariant: tensors are listed in
 * file order, so that files are read sequentially.
 */
#include "model/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json.h"
#include "formats/model_files.h"
#include "model/dense.h"
#include "model/fingerprint.h"
#include "model/tensor_walk.h"

/* ---- description */

typedef struct listing {
    const cake_indexed_tensor **stored; /* [n] */
    size_t n;
} listing;

static void list_tensors(listing *l, const cake_indexed_tensor *const *tensors, int n)
{
    l->stored = cake_grow(l->stored, l->n + (size_t)n, sizeof *l->stored);
    for (int i = 0; i < n; i++)
        l->stored[l->n++] = tensors[i];
}

static cake_err list_piece(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    (void)model;
    const cake_indexed_tensor *parts[CAKE_N_QUANT];
    list_tensors(arg, parts, cake_tensor_item_parts(p, parts));
    return CAKE_OK;
}

static int in_file_order(const void *a, const void *b)
{
    const cake_indexed_tensor *x = *(const cake_indexed_tensor *const *)a,
                              *y = *(const cake_indexed_tensor *const *)b;
    int order = strcmp(cake_tensor_file_path(x->file), cake_tensor_file_path(y->file));
    return order ? order : (x->tensor->begin > y->tensor->begin) - (x->tensor->begin < y->tensor->begin);
}

/* Lists every tensor once, although some are cut into several items. */
static void list_all(const cake_model *model, listing *l)
{
    cake_range all = {0, model->config.n_layer};
    cake_weight_set whole = {.range = &all, .n_range = 1, .embed = true, .head = true};
    const cake_indexed_tensor *dense[CAKE_DENSE_TENSORS];
    size_t n = 0;
    cake_tensor_walk_visit(model, &whole, list_piece, l);
    list_tensors(l, dense, cake_model_dense_tensors(model, dense));
    qsort(l->stored, l->n, sizeof *l->stored, in_file_order);
    for (size_t i = 0; i < l->n; i++)
        if (!i || l->stored[i] != l->stored[i - 1])
            l->stored[n++] = l->stored[i];
    l->n = n;
}

static const char *last_part(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static cake_err add_weights(const listing *l, cake_buf *out)
{
    const cake_tensor_file *file = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct stat st;
        if (l->stored[i]->file == file)
            continue;
        const char *path = cake_tensor_file_path(l->stored[i]->file);
        if (stat(path, &st))
            return cake_fail("model", "%s: cannot be examined: %s", path, strerror(errno));
        cake_buf_adds(out, file ? ", " : "");
        file = l->stored[i]->file;
        cake_json_add_text(out, last_part(path), strlen(last_part(path)));
        cake_buf_addf(out, ": [%lld, %lld]", (long long)st.st_size,
                      (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    }
    return CAKE_OK;
}

static void add_tensors(const listing *l, cake_buf *out)
{
    int file = -1;
    for (size_t i = 0; i < l->n; i++) {
        const cake_tensor *t = l->stored[i]->tensor;
        file += !i || l->stored[i]->file != l->stored[i - 1]->file;
        cake_buf_adds(out, i ? ", " : "");
        cake_json_add_text(out, t->name, strlen(t->name));
        cake_buf_addf(out, ": {\"dtype\": \"%s\", \"shape\": [", t->dtype_name);
        for (int d = 0; d < t->rank; d++)
            cake_buf_addf(out, "%s%lld", d ? ", " : "", (long long)t->shape[d]);
        cake_buf_addf(out, "], \"file\": %d, \"begin\": %lld", file, (long long)t->begin);
        if (t->undo.kind) {
            cake_buf_adds(out, ", \"undo\": ");
            cake_tensor_undo_add(&t->undo, out);
        }
        cake_buf_addc(out, '}');
    }
}

cake_err cake_source_describe(const cake_model *model, const char *name, const cake_bundle_file *file,
                              int n_file, cake_buf *out)
{
    CAKE_ASSERT(model->store && !model->options.convert);
    listing l = {0};
    list_all(model, &l);
    cake_buf_adds(out, "{\"name\": ");
    cake_json_add_text(out, name, strlen(name));
    cake_buf_addf(out, ", \"layers\": %d, \"tied\": %s, \"files\": {", model->config.n_layer,
                  model->config.tied ? "true" : "false");
    for (int i = 0; i < n_file; i++) {
        cake_buf_adds(out, i ? ", " : "");
        cake_json_add_text(out, file[i].name, strlen(file[i].name));
        cake_buf_addf(out, ": [%lld, \"%08x\"]", (long long)file[i].bytes, (unsigned)file[i].sum);
    }
    cake_buf_adds(out, "}, \"weights\": {");
    cake_err err = add_weights(&l, out);
    cake_buf_adds(out, "}, \"tensors\": {");
    add_tensors(&l, out);
    cake_buf_adds(out, "}}");
    free(l.stored);
    return err;
}

/* ---- weight sets */

typedef struct marking {
    const cake_bundle *index;
    bool *held;
} marking;

static cake_err mark_piece(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    (void)model;
    const marking *m = arg;
    const cake_indexed_tensor *parts[CAKE_N_QUANT];
    for (int i = 0, n = cake_tensor_item_parts(p, parts); i < n; i++)
        m->held[parts[i]->tensor - m->index->tensor] = true;
    return CAKE_OK;
}

/* Dense modules are read where the head is. An index does not say what they are: they have what nothing else
 * of the model has. */
static void mark_dense(const cake_model *model, bool *held)
{
    const cake_bundle *index = model->options.index;
    cake_range layers = {0, model->config.n_layer};
    cake_weight_set whole = {.range = &layers, .n_range = 1, .embed = true, .head = true};
    bool *other = cake_alloc((size_t)index->n_tensor, sizeof *other);
    cake_tensor_walk_visit(model, &whole, mark_piece, &(marking){index, other});
    for (int i = 0; i < index->n_tensor; i++)
        held[i] = held[i] || !other[i];
    free(other);
}

void cake_source_mark(const cake_model *model, const cake_weight_set *share, bool *held)
{
    marking m = {model->options.index, held};
    cake_tensor_walk_visit(model, share, mark_piece, &m);
    if (share->head)
        mark_dense(model, held);
}

/* ---- bytes */

struct cake_source {
    cake_buf dir;
    const cake_bundle *bundle;
    int *fd; /* [n_source] -1: not opened yet */
};

cake_source *cake_source_open(const char *dir, const cake_bundle *bundle)
{
    cake_source *s = cake_alloc(1, sizeof *s);
    *s = (cake_source){.bundle = bundle};
    cake_model_files_dir(dir, &s->dir);
    s->fd = cake_alloc((size_t)bundle->n_source, sizeof *s->fd);
    for (int i = 0; i < bundle->n_source; i++)
        s->fd[i] = -1;
    return s;
}

void cake_source_close(cake_source *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->bundle->n_source; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    free(s->fd);
    cake_buf_free(&s->dir);
    free(s);
}

static cake_err open_file(cake_source *s, int i, const char *path)
{
    const cake_bundle_source *from = &s->bundle->source[i];
    struct stat st;
    cake_err err = cake_file_check("model", path);
    if (err)
        return err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cake_fail("model", "%s: cannot be opened: %s", path, strerror(errno));
    s->fd[i] = fd;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (fstat(fd, &st))
        return cake_fail("model", "%s: cannot be examined: %s", path, strerror(errno));
    if (st.st_size == from->bytes)
        return CAKE_OK;
    return cake_fail("model",
                     "%s: has %lld bytes here, but %lld on rank 0: -m must name the same model on every host",
                     path, (long long)st.st_size, (long long)from->bytes);
}

/* A file of the model, for cake_tensor_undo_read. */
typedef struct raw {
    cake_source *source;
    int file;
} raw;

static cake_err read_raw(void *self, int64_t at, void *into, size_t len)
{
    const raw *r = self;
    cake_source *s = r->source;
    const cake_bundle_source *from = &s->bundle->source[r->file];
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", s->dir.data, from->name);
    cake_err err = s->fd[r->file] < 0 ? open_file(s, r->file, path.data) : CAKE_OK;
    for (size_t got = 0; got < len && !err;) {
        ssize_t n = pread(s->fd[r->file], (char *)into + got, len - got, (off_t)(at + (int64_t)got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            err = cake_fail("model", "%s: byte %lld cannot be read: %s", path.data,
                            (long long)at + (long long)got, strerror(errno));
        else if (n == 0)
            err = cake_fail("model",
                            "%s: ends at byte %lld, but had %lld bytes at the start: is it being replaced?",
                            path.data, (long long)at + (long long)got, (long long)from->bytes);
        else
            got += (size_t)n;
    }
    cake_buf_free(&path);
    return err;
}

cake_err cake_source_read(cake_source *s, int tensor, int64_t offset, void *into, size_t len)
{
    return cake_tensor_undo_read(&s->bundle->tensor[tensor], read_raw, &(raw){s, s->bundle->from[tensor]},
                                 offset, into, len);
}

/* A tensor being sampled. */
typedef struct sampling {
    cake_source *source;
    int tensor;
} sampling;

static cake_err read_sample(void *self, int64_t offset, void *into, size_t len)
{
    const sampling *s = self;
    return cake_source_read(s->source, s->tensor, offset, into, len);
}

cake_err cake_source_fingerprint(cake_source *source, int tensor, int64_t *sum)
{
    return cake_fingerprint_tensor(&source->bundle->tensor[tensor], read_sample, &(sampling){source, tensor},
                                   sum);
}
