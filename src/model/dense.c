/* SPDX-License-Identifier: Apache-2.0
 *
 * In: model.safetensors of a Dense module. Out: its weights in float32. Invariant: shapes are those of the
 * module's config.json.
 */
#include "model/dense.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/random_weights.h"
#include "model/tensor_walk.h"
#include "tensors/tensor_file.h"

/* A tensor, and the file it is in. */
typedef struct source {
    const cake_tensor_file *file;
    const cake_tensor *tensor;
} source;

static source find_in_file(const cake_tensor_file *file, const char *name)
{
    for (int i = 0; i < cake_tensor_file_count(file); i++)
        if (!strcmp(cake_tensor_file_at(file, i)->name, name))
            return (source){file, cake_tensor_file_at(file, i)};
    return (source){file, NULL};
}

/* Under the prefix of the model's tensors, or without one. */
static const cake_indexed_tensor *find_in_model(const cake_model *model, const char *name)
{
    const cake_indexed_tensor *at = cake_tensor_walk_find(model, model->name_prefix->body, name);
    return at ? at : cake_tensor_walk_find(model, "", name);
}

/* The LM head, which may be the embedding. */
static const cake_indexed_tensor *find_lm_head(const cake_model *model)
{
    const cake_indexed_tensor *at = cake_tensor_walk_find_head(model);
    return at ? at : find_in_model(model, "embed_tokens.weight");
}

static int add_found(const cake_indexed_tensor *at, const cake_indexed_tensor **out)
{
    *out = at;
    return at != NULL;
}

int cake_model_dense_tensors(const cake_model *model, const cake_indexed_tensor **out)
{
    static const char *const parts[] = {"weight", "bias"};
    const cake_embedder *e = &model->config.embedder;
    cake_buf name = {0};
    int n = 0;
    for (int i = 0; i < e->n_dense; i++) {
        const char *modules[] = {e->dense[i].tensor, e->dense[i].norm};
        for (int m = 0; m < 4; m++) {
            cake_buf_cut(&name, 0);
            if (modules[m / 2]) {
                cake_buf_addf(&name, "%s.%s", modules[m / 2], parts[m % 2]);
                n += add_found(find_in_model(model, name.data), out + n);
            }
        }
        if (e->dense[i].logits)
            n += add_found(find_lm_head(model), out + n);
    }
    cake_buf_free(&name);
    return n;
}

/* n_in 0: a vector [n_out]. dir: where the model is, for messages. */
static cake_err read_one(const char *dir, source from, const char *name, int n_out, int n_in, float *out)
{
    const cake_tensor *t = from.tensor;
    const int64_t n = (int64_t)n_out * (n_in ? n_in : 1);
    const char *path = from.file ? cake_tensor_file_path(from.file) : dir;
    if (!t || !t->readable || t->format || t->rank != (n_in ? 2 : 1) || t->shape[0] != n_out ||
        (n_in && t->shape[1] != n_in))
        return cake_fail("model", "%s: expected a tensor %s of F32, BF16 or F16 with %d rows of %d", path,
                         name, n_out, n_in ? n_in : 1);
    const size_t bytes = (size_t)n * cake_dtype_bytes(t->dtype);
    void *rows = cake_alloc(bytes, 1);
    cake_err err = cake_tensor_file_read(from.file, t, 0, rows, bytes, NULL);
    if (!err)
        cake_to_f32(out, rows, t->dtype, n);
    free(rows);
    return err;
}

static void fill_random(const cake_model *model, const char *name, const cake_dense *dense,
                        cake_dense_weights *to)
{
    cake_random_weights_fill(model->options.dummy_seed, name, false, CAKE_F32, 0,
                             (int64_t)dense->n_out * dense->n_in, to->weight);
    for (int i = 0; i < dense->n_out; i++) {
        to->bias[i] = to->norm_bias[i] = 0;
        to->norm[i] = 1;
    }
}

/* Reads NAME.PART. */
static cake_err read_part(const cake_model *model, const cake_tensor_file *file, const char *name,
                          const char *part, int n_out, int n_in, float *out)
{
    cake_buf whole = {0};
    cake_buf_addf(&whole, "%s.%s", name, part);
    const cake_indexed_tensor *at = file ? NULL : find_in_model(model, whole.data);
    source from = file ? find_in_file(file, whole.data) : at ? (source){at->file, at->tensor} : (source){0};
    cake_err err = read_one(model->dir, from, whole.data, n_out, n_in, out);
    cake_buf_free(&whole);
    return err;
}

/* The LM head's row of a token. */
static cake_err read_row(const cake_model *model, int token, float *out)
{
    const cake_config *c = &model->config;
    const cake_indexed_tensor *at = find_lm_head(model);
    const cake_tensor *t = at ? at->tensor : NULL;
    if (!t || !at->file || !t->readable || t->format || t->rank != 2 || t->shape[0] != c->n_vocab ||
        t->shape[1] != c->dim)
        return cake_fail("model",
                         "%s: expected lm_head.weight or an embedding of F32, BF16 or F16 for LogitScore",
                         model->dir);
    const size_t bytes = (size_t)c->dim * cake_dtype_bytes(t->dtype);
    void *row = cake_alloc(bytes, 1);
    cake_err err = cake_tensor_file_read(at->file, t, (int64_t)token * (int64_t)bytes, row, bytes, NULL);
    if (!err)
        cake_to_f32(out, row, t->dtype, c->dim);
    free(row);
    return err;
}

static cake_err read_logits(const cake_model *model, const cake_dense *dense, float *weight)
{
    float *less = cake_alloc((size_t)dense->n_in, sizeof *less);
    cake_err err = read_row(model, dense->yes, weight);
    if (!err && dense->no >= 0)
        err = read_row(model, dense->no, less);
    for (int i = 0; i < dense->n_in && !err; i++)
        weight[i] -= less[i];
    free(less);
    return err;
}

cake_err cake_model_read_dense(const cake_model *model, int i, cake_dense_weights *to)
{
    const cake_dense *dense = &model->config.embedder.dense[i];
    const char *name = dense->tensor ? dense->tensor : "linear";
    cake_tensor_file *file = NULL;
    cake_buf path = {0};
    if (dense->logits && !model->options.dummy)
        return read_logits(model, dense, to->weight);
    cake_buf_addf(&path, "%s/%s/model.safetensors", model->dir, dense->path);
    cake_err err = CAKE_OK;
    if (model->options.dummy)
        fill_random(model, path.data + strlen(model->dir), dense, to);
    else if (!dense->tensor)
        err = cake_tensor_file_open(path.data, &file);
    if (!err && !model->options.dummy)
        err = read_part(model, file, name, "weight", dense->n_out, dense->n_in, to->weight);
    if (!err && !model->options.dummy && dense->bias)
        err = read_part(model, file, name, "bias", dense->n_out, 0, to->bias);
    if (!err && !model->options.dummy && dense->norm)
        err = read_part(model, file, dense->norm, "weight", dense->n_out, 0, to->norm);
    if (!err && !model->options.dummy && dense->norm && model->config.norm_bias)
        err = read_part(model, file, dense->norm, "bias", dense->n_out, 0, to->norm_bias);
    cake_tensor_file_close(file);
    cake_buf_free(&path);
    return err;
}
