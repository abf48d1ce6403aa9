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

static const cake_tensor *find(const cake_tensor_file *file, const char *name)
{
    for (int i = 0; i < cake_tensor_file_count(file); i++)
        if (!strcmp(cake_tensor_file_at(file, i)->name, name))
            return cake_tensor_file_at(file, i);
    return NULL;
}

/* n_in 0: a vector [n_out]. */
static cake_err read_one(const cake_tensor_file *file, const char *name, int n_out, int n_in, float *out)
{
    const cake_tensor *t = find(file, name);
    const int64_t n = (int64_t)n_out * (n_in ? n_in : 1);
    const char *path = cake_tensor_file_path(file);
    if (!t || !t->readable || t->format || t->rank != (n_in ? 2 : 1) || t->shape[0] != n_out ||
        (n_in && t->shape[1] != n_in))
        return cake_fail("model", "%s: expected a tensor %s of F32, BF16 or F16 with the shape [%d%s%d]",
                         path, name, n_out, n_in ? ", " : "] = [", n_in ? n_in : n_out);
    const size_t bytes = (size_t)n * cake_dtype_bytes(t->dtype);
    void *rows = cake_alloc(bytes, 1);
    cake_err err = cake_tensor_file_read(file, t, 0, rows, bytes, NULL);
    if (!err)
        cake_to_f32(out, rows, t->dtype, n);
    free(rows);
    return err;
}

cake_err cake_model_read_dense(const cake_model *model, int i, float *weight, float *bias)
{
    const cake_dense *dense = &model->config.embedder.dense[i];
    cake_tensor_file *file = NULL;
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s/model.safetensors", model->dir, dense->path);
    if (model->options.dummy) {
        cake_random_weights_fill(model->options.dummy_seed, path.data + strlen(model->dir), false, CAKE_F32,
                                 0, (int64_t)dense->n_out * dense->n_in, weight);
        cake_buf_free(&path);
        return CAKE_OK;
    }
    cake_err err = cake_tensor_file_open(path.data, &file);
    if (!err)
        err = read_one(file, "linear.weight", dense->n_out, dense->n_in, weight);
    if (!err && dense->bias)
        err = read_one(file, "linear.bias", dense->n_out, 0, bias);
    cake_tensor_file_close(file);
    cake_buf_free(&path);
    return err;
}
