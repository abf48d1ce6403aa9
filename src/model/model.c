/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model directory and what a rank shall hold of it. Out: packed weights. run opens and loads; embed,
 * slice and logits read. Invariant: after open every tensor of the model is known to be there with the shape
 * that the config asks for; bytes, checks and loading walk the same list of pieces, so they agree.
 */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "model/dummy.h"
#include "model/part.h"
#include "model/store.h"

#define PACKERS    64        /* that pack: more wait for memory */
#define READ_BYTES (8 << 20) /* of one read: large enough for parallel file systems */
#define PROBES     16        /* places at which a tied head is compared with the embedding */
#define PROBE_SIZE 4096

struct cake_model {
    cake_config config;
    cake_model_options options;
    char *dir;
    cake_store *store; /* NULL: dummy weights */
    const cake_naming *naming;
    cake_dtype dtype, embed_dtype;
    int64_t parameters, bytes_read;

    cake_arena arena;          /* what load took */
    cake_layer_weights *layer; /* [n_layer] */
    cake_ends ends;
};

/* One tensor that a share holds. */
typedef struct piece {
    const cake_part *part;
    int layer;
    const char *name;
    int n_out, n_in;
    int all, before;         /* rows of the tensor, and which is the first of these */
    int run;                 /* rows that stand together; others of equal number follow */
    const cake_stored *from; /* NULL: dummy, or not in the files */
    cake_dtype dtype;        /* there */
    cake_dtype kept;         /* of a matrix: in memory */
} piece;

/* A tensor by its name behind `prefix`. */
static const cake_stored *find(const cake_model *model, const char *prefix, const char *name)
{
    cake_buf whole = {0};
    cake_buf_addf(&whole, "%s%s", prefix, name);
    const cake_stored *found = cake_store_find(model->store, whole.data);
    cake_buf_free(&whole);
    return found;
}

static const cake_stored *find_head(const cake_model *model)
{
    return find(model, model->naming->head, "lm_head.weight");
}

typedef cake_err (*piece_fn)(const cake_model *model, const piece *p, void *arg);

static cake_err visit_one(const cake_model *model, const cake_part *part, int layer, piece_fn fn, void *arg)
{
    const cake_config *c = &model->config;
    cake_buf name = {0};
    cake_part_name(part, model->naming, layer, &name);
    piece p = {.part = part,
               .layer = layer,
               .n_out = cake_width_of(part->out, c),
               .n_in = cake_width_of(part->in, c),
               .all = cake_width_of(part->all ? part->all : part->out, c),
               .before = cake_width_of(part->before, c),
               .run = cake_width_of(part->run ? part->run : part->out, c),
               .dtype = c->dtype};
    if (model->store) {
        p.from = cake_store_find(model->store, name.data);
        if (!p.from && c->tied && part->owner == CAKE_PART_EMBED) /* one matrix, under its other name */
            p.from = find_head(model);
        if (p.from)
            p.dtype = p.from->tensor->dtype;
    }
    p.kept = model->options.convert ? model->options.dtype : p.dtype;
    p.name = name.data;
    cake_err err = fn(model, &p, arg);
    cake_buf_free(&name);
    return err;
}

/* Calls fn for every tensor of the share until one fails. */
static cake_err visit(const cake_model *model, const cake_share *share, piece_fn fn, void *arg)
{
    const cake_config *c = &model->config;
    for (const cake_part *part = cake_parts; part->name; part++) {
        bool held = part->owner == CAKE_PART_EMBED ? share->embed || (share->head && c->tied) : share->head;
        if (part->owner == CAKE_PART_LAYER || !held || !cake_part_present(part, c, 0))
            continue;
        cake_err err = visit_one(model, part, 0, fn, arg);
        if (err)
            return err;
    }
    for (int r = 0; r < share->n_range; r++) {
        cake_range range = share->range[r];
        CAKE_ASSERT(range.first >= 0 && range.count >= 0 && range.count <= c->n_layer - range.first);
        for (int layer = range.first; layer < range.first + range.count; layer++)
            for (const cake_part *part = cake_parts; part->name; part++) {
                if (part->owner != CAKE_PART_LAYER || !cake_part_present(part, c, layer))
                    continue;
                cake_err err = visit_one(model, part, layer, fn, arg);
                if (err)
                    return err;
            }
    }
    return CAKE_OK;
}

/* ---- open */

typedef struct census {
    int64_t elements[CAKE_N_DTYPE]; /* of matrices */
    int64_t parameters;
    cake_dtype embed;
    bool *used; /* [cake_store_count] which of the files' tensors the model has */
} census;

static cake_err check_shape(const piece *p)
{
    const cake_tensor *t = p->from->tensor;
    int rank = p->part->flat ? 3 : cake_part_matrix(p->part) ? 2 : 1;
    if (t->rank == rank && t->shape[0] == p->all && (rank == 1 || t->shape[rank - 1] == p->n_in) &&
        (rank < 3 || t->shape[1] == 1))
        return CAKE_OK;
    cake_buf text = {0};
    for (int i = 0; i < t->rank; i++)
        cake_buf_addf(&text, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    cake_buf_addf(&text, "], but config.json makes it [%d", p->all);
    if (rank > 1)
        cake_buf_addf(&text, "%s, %d", rank == 3 ? ", 1" : "", p->n_in);
    cake_err err = cake_fail("model", "%s: tensor %s has shape [%s]: they are not of one model",
                             cake_safetensors_path(p->from->file), p->name, text.data);
    cake_buf_free(&text);
    return err;
}

static cake_err check_piece(const cake_model *model, const piece *p, void *arg)
{
    census *c = arg;
    if (model->store && !p->from)
        return cake_fail(
            "model", "%s: tensor %s is missing: an incomplete download, or config.json is of another model",
            model->dir, p->name);
    if (p->from && !p->from->tensor->readable)
        return cake_fail("model", "%s: tensor %s has dtype %s, but only F32, BF16 and F16 are supported",
                         cake_safetensors_path(p->from->file), p->name, p->from->tensor->dtype_name);
    if (p->from && check_shape(p))
        return CAKE_ERR_FATAL;
    if (p->from)
        c->used[p->from - cake_store_at(model->store, 0)] = true;
    int64_t elements = (int64_t)p->n_out * p->n_in;
    if (cake_part_matrix(p->part))
        c->elements[p->kept] += elements;
    if (p->part->owner == CAKE_PART_EMBED)
        c->embed = p->kept;
    c->parameters += elements;
    return CAKE_OK;
}

/* Buffers that old files hold, and the second copy of a tied matrix, are of no use but no surprise. */
static bool surplus(const cake_model *model, const cake_stored *stored)
{
    return strstr(stored->tensor->name, "rotary_emb.inv_freq") ||
           (model->config.tied && stored == find_head(model));
}

/* Of the parts of a larger model that are not text. */
static bool elsewhere(const char *name)
{
    static const char *const parts[] = {"vision_tower.", "multi_modal_projector.", "visual.", "mtp."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = strstr(name, parts[i]);
        if (at && (at == name || (at - name == 6 && !strncmp(name, "model.", 6))))
            return true;
    }
    return false;
}

/* Tensors that no piece stands for are a hint that config.json and files do not belong together. */
static void warn_unused(const cake_model *model, const census *c)
{
    const char *first = NULL;
    int n = 0, n_else = 0;
    for (int i = 0; i < cake_store_count(model->store); i++) {
        const cake_stored *stored = cake_store_at(model->store, i);
        if (c->used[i] || surplus(model, stored))
            continue;
        if (elsewhere(stored->tensor->name)) {
            n_else++;
            continue;
        }
        first = first ? first : stored->tensor->name;
        n++;
    }
    if (n_else)
        cake_log(CAKE_WARN, "model",
                 "%s: %d tensors of vision or multi-token prediction are skipped: only text is computed",
                 model->dir, n_else);
    if (n)
        cake_log(CAKE_WARN, "model",
                 "%s: %d tensors have no place in this model and are not used, the first is %s", model->dir,
                 n, first);
}

/* Whether two tensors of equal shape hold the same bytes, as far as a few probes can tell. */
static cake_err compare(const cake_stored *a, const cake_stored *b, bool *same)
{
    char left[PROBE_SIZE], right[PROBE_SIZE];
    int64_t size = a->tensor->end - a->tensor->begin;
    *same = a->tensor->dtype == b->tensor->dtype && size == b->tensor->end - b->tensor->begin;
    for (int i = 0; i < PROBES && *same; i++) {
        size_t len = size < PROBE_SIZE ? (size_t)size : PROBE_SIZE;
        int64_t offset = (size - (int64_t)len) / (PROBES - 1) * i;
        if (cake_safetensors_read(a->file, a->tensor, offset, left, len) ||
            cake_safetensors_read(b->file, b->tensor, offset, right, len))
            return CAKE_ERR_FATAL;
        *same = !memcmp(left, right, len);
    }
    return CAKE_OK;
}

/* A file may hold a head although config.json calls it tied: mostly a copy of the embedding, and then one of
 * them is enough. If they differ the file is believed, as transformers does. */
static cake_err check_tied(cake_model *model)
{
    const cake_stored *embedding = find(model, model->naming->body, "embed_tokens.weight");
    const cake_stored *head = find_head(model);
    bool same = true;
    if (!model->config.tied || !embedding || !head)
        return CAKE_OK;
    if (compare(embedding, head, &same))
        return CAKE_ERR_FATAL;
    if (!same)
        cake_log(CAKE_WARN, "model",
                 "%s: tie_word_embeddings is true, but lm_head.weight differs from "
                 "%sembed_tokens.weight and is used",
                 model->dir, model->naming->body);
    model->config.tied = same;
    return CAKE_OK;
}

static cake_err check_all(cake_model *model)
{
    cake_range all = {0, model->config.n_layer};
    cake_share share = {.range = &all, .n_range = 1, .embed = true, .head = true};
    census c = {.used =
                    cake_alloc(model->store ? (size_t)cake_store_count(model->store) : 0, sizeof *c.used)};
    cake_err err = visit(model, &share, check_piece, &c);
    if (!err && model->store)
        warn_unused(model, &c);
    free(c.used);
    for (int i = 0; i < CAKE_N_DTYPE; i++)
        if (c.elements[i] > c.elements[model->dtype])
            model->dtype = (cake_dtype)i;
    model->parameters = c.parameters;
    model->embed_dtype = c.embed;
    return err;
}

/* The one under which there is an embedding, or a first norm where the head stands for that. */
static void choose_naming(cake_model *model)
{
    const cake_naming *naming;
    for (int i = 0; (naming = cake_naming_at(i)); i++)
        if (find(model, naming->body, "embed_tokens.weight") || find(model, naming->body, "norm.weight")) {
            model->naming = naming;
            return;
        }
}

cake_err cake_model_open(const char *dir, const cake_model_options *options, cake_model **out)
{
    cake_model *model = cake_alloc(1, sizeof *model);
    model->options = *options;
    model->dir = cake_copy(dir, strlen(dir));
    model->naming = cake_naming_at(0);
    cake_err err = cake_config_load(dir, &model->config);
    if (!err && !options->dummy && !(err = cake_store_open(dir, &model->store))) {
        choose_naming(model);
        err = check_tied(model);
    }
    if (!err)
        err = check_all(model);
    if (err) {
        cake_model_close(model);
        return err;
    }
    model->layer = cake_alloc((size_t)model->config.n_layer, sizeof *model->layer);
    *out = model;
    return CAKE_OK;
}

void cake_model_close(cake_model *model)
{
    if (!model)
        return;
    cake_arena_close(&model->arena);
    cake_store_close(model->store);
    cake_params_free(&model->config.defaults);
    free(model->layer);
    free(model->dir);
    free(model);
}

/* ---- load */

typedef struct tally {
    const cake_kernels *kernels;
    size_t bytes;
} tally;

static size_t piece_bytes(const piece *p, const cake_kernels *kernels)
{
    size_t bytes = cake_part_matrix(p->part) ? kernels->weight_bytes(p->kept, p->n_out, p->n_in)
                                             : (size_t)p->n_out * (size_t)p->n_in * sizeof(float);
    return cake_arena_round(bytes);
}

static cake_err count_piece(const cake_model *model, const piece *p, void *arg)
{
    (void)model;
    tally *t = arg;
    t->bytes += piece_bytes(p, t->kernels);
    return CAKE_OK;
}

size_t cake_model_bytes(const cake_model *model, const cake_share *share, const cake_kernels *kernels)
{
    tally t = {.kernels = kernels};
    visit(model, share, count_piece, &t);
    return t.bytes;
}

typedef struct loading {
    cake_model *model;
    const cake_kernels *kernels;
    void *bounce; /* [size] bytes as the file has them */
    size_t size;
    void *kept;            /* the same elements as a matrix keeps them, where that is something else */
    const cake_exec *exec; /* member 0 of the team that packs */
    const piece *piece;    /* whose rows [first, first + n) are in the bounce buffer; NULL: no more */
    const cake_weight *weight;
    int first, n;
    float bad[PACKERS]; /* what could not be held, by member; 0: nothing */
    const cake_share *share;
    cake_err err;
} loading;

/* Rows [first, first + n) of the piece, which stand together, come into the bounce buffer. */
static cake_err fetch_rows(const loading *l, const piece *p, int first, int n)
{
    int64_t row = (int64_t)first / p->run * 2 * p->run + p->before + first % p->run;
    int64_t element = row * p->n_in, count = (int64_t)n * p->n_in;
    if (!p->from) {
        cake_dummy_fill(l->model->options.dummy_seed, p->name, p->part->norm, p->dtype, element, count,
                        l->bounce);
        return CAKE_OK;
    }
    int64_t width = (int64_t)cake_dtype_bytes(p->dtype);
    cake_err err = cake_safetensors_read(p->from->file, p->from->tensor, element * width, l->bounce,
                                         (size_t)(count * width));
    if (!err)
        l->model->bytes_read += count * width;
    return err;
}

static void widen(float *out, const void *in, cake_dtype dtype, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = dtype == CAKE_F32    ? ((const float *)in)[i]
                 : dtype == CAKE_BF16 ? cake_bf16_to_f32(((const uint16_t *)in)[i])
                                      : cake_f16_to_f32(((const uint16_t *)in)[i]);
}

/* Rounds n elements to what the matrix keeps; false: f16 cannot hold one of them, *bad. */
static bool convert(const piece *p, void *to, const void *in, int64_t n, float *bad)
{
    const char *from = in;
    uint16_t *half = to;
    for (int64_t i = 0; i < n; i++, from += cake_dtype_bytes(p->dtype)) {
        float value;
        widen(&value, from, p->dtype, 1);
        if (p->kept == CAKE_F32)
            ((float *)to)[i] = value;
        else
            half[i] = p->kept == CAKE_BF16 ? cake_bf16_from_f32(value) : cake_f16_from_f32(value);
        if (p->kept == CAKE_F16 && isfinite(value) && !isfinite(cake_f16_to_f32(half[i]))) {
            *bad = value;
            return false;
        }
    }
    return true;
}

/* This member's part of the rows in the bounce buffer. */
static void pack_share(const cake_exec *exec, loading *l)
{
    const piece *p = l->piece;
    int64_t from, to, grain = 64; /* rows of whole panels, whose lines no two members write */
    cake_exec_share(exec, l->n, grain, &from, &to);
    const char *rows = (const char *)l->bounce + (size_t)(from * p->n_in) * cake_dtype_bytes(p->dtype);
    if (p->kept != p->dtype) {
        char *kept = (char *)l->kept + (size_t)(from * p->n_in) * cake_dtype_bytes(p->kept);
        if (!convert(p, kept, rows, (to - from) * p->n_in, &l->bad[exec->rank]))
            return;
        rows = kept;
    }
    if (to > from)
        l->kernels->weight_pack(l->weight, rows, l->first + (int)from, (int)(to - from));
}

/* Member 0 walks the pieces and reads; the others wait here for rows to pack. */
static void help(const cake_exec *exec, loading *l)
{
    for (;;) {
        cake_exec_barrier(exec);
        if (!l->piece)
            return;
        pack_share(exec, l);
        cake_exec_barrier(exec);
    }
}

static cake_err pack_rows(loading *l, const piece *p, const cake_weight *weight, int first, int n)
{
    if (p->kept != p->dtype)
        l->kept = cake_grow(l->kept, (size_t)n * (size_t)p->n_in, cake_dtype_bytes(p->kept));
    l->piece = p;
    l->weight = weight;
    l->first = first;
    l->n = n;
    cake_exec_barrier(l->exec);
    pack_share(l->exec, l);
    cake_exec_barrier(l->exec);
    for (int i = 0; i < l->exec->size; i++)
        if (l->bad[i] != 0)
            return cake_fail("model",
                             "%s: tensor %s holds %g, which is more than f16 can hold; keep it in bf16",
                             l->model->dir, p->name, (double)l->bad[i]);
    return CAKE_OK;
}

static cake_err load_piece(const cake_model *model, const piece *p, void *arg)
{
    loading *l = arg;
    void *data = cake_arena_take(&l->model->arena, piece_bytes(p, l->kernels));
    cake_weight weight = {.data = data, .n_out = p->n_out, .n_in = p->n_in, .dtype = p->kept};
    size_t row_bytes = (size_t)p->n_in * cake_dtype_bytes(p->dtype);
    if (row_bytes > l->size) {
        l->size = row_bytes;
        l->bounce = cake_grow(l->bounce, l->size, 1);
    }
    int step = (int)(l->size / row_bytes < (size_t)p->n_out ? l->size / row_bytes : (size_t)p->n_out);
    for (int first = 0, n; first < p->n_out; first += n) {
        int left = p->run - first % p->run; /* of its run; run divides n_out */
        n = left < step ? left : step;
        cake_err err = fetch_rows(l, p, first, n);
        if (!err && cake_part_matrix(p->part))
            err = pack_rows(l, p, &weight, first, n);
        else if (!err)
            widen((float *)data + (int64_t)first * p->n_in, l->bounce, p->dtype, n * p->n_in);
        if (err)
            return err;
    }
    if (p->part->norm && !p->part->whole && p->from && model->config.arch->norms_less_one)
        for (int i = 0; i < p->n_out; i++)
            ((float *)data)[i] += 1;
    char *owner =
        p->part->owner == CAKE_PART_LAYER ? (char *)&model->layer[p->layer] : (char *)&l->model->ends;
    if (cake_part_matrix(p->part))
        *(cake_weight *)(owner + p->part->offset) = weight;
    else
        *(const float **)(owner + p->part->offset) = data;
    return CAKE_OK;
}

static void load_team(const cake_exec *exec, void *arg)
{
    loading *l = arg;
    if (exec->rank) {
        help(exec, l);
        return;
    }
    l->exec = exec;
    l->err = visit(l->model, l->share, load_piece, l);
    l->piece = NULL;
    cake_exec_barrier(exec);
}

cake_err cake_model_load(cake_model *model, const cake_share *share, const cake_kernels *kernels, int threads)
{
    CAKE_ASSERT(!model->arena.base);
    cake_err err = cake_arena_open(&model->arena, "weights", cake_model_bytes(model, share, kernels));
    if (err)
        return err;
    loading l = {.model = model,
                 .kernels = kernels,
                 .share = share,
                 .bounce = cake_alloc(READ_BYTES, 1),
                 .size = READ_BYTES};
    cake_exec_run(threads < PACKERS ? threads : PACKERS, load_team, &l);
    free(l.bounce);
    free(l.kept);
    CAKE_ASSERT(l.err || model->arena.used == model->arena.size);
    if (!l.err && model->config.tied)
        model->ends.head = model->ends.embedding;
    return l.err;
}

/* ---- what there is */

const cake_config *cake_model_config(const cake_model *model)
{
    return &model->config;
}

cake_dtype cake_model_dtype(const cake_model *model)
{
    return model->dtype;
}

int64_t cake_model_parameters(const cake_model *model)
{
    return model->parameters;
}

int64_t cake_model_bytes_read(const cake_model *model)
{
    return model->bytes_read;
}

const cake_layer_weights *cake_model_layer(const cake_model *model, int layer)
{
    CAKE_ASSERT(layer >= 0 && layer < model->config.n_layer);
    return &model->layer[layer];
}

const cake_weight *cake_model_embedding(const cake_model *model)
{
    return &model->ends.embedding;
}

const cake_weight *cake_model_head(const cake_model *model)
{
    return &model->ends.head;
}

const float *cake_model_final_norm(const cake_model *model)
{
    return model->ends.final_norm;
}

float cake_model_embed_scale(const cake_model *model)
{
    if (!model->config.arch->scaled_embed)
        return 1;
    float scale = (float)sqrt(model->config.dim);
    if (model->embed_dtype == CAKE_BF16)
        return cake_bf16_to_f32(cake_bf16_from_f32(scale));
    return model->embed_dtype == CAKE_F16 ? cake_f16_to_f32(cake_f16_from_f32(scale)) : scale;
}
