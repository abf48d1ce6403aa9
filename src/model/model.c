/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model directory and a weight set. Out: packed weights. Invariant: after open every tensor of the
 * model exists with the shape that the config requires; byte counts, checks and loading walk the same list of
 * tensors, so they agree.
 */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/log.h"
#include "config/not_a_model.h"
#include "formats/model_files.h"
#include "model/file_layout.h"
#include "model/tensor_walk.h"
#include "model/weight_split.h"
#include "model/weight_stream.h"

#define PROBES     16 /* positions at which a tied head is compared with the embedding */
#define PROBE_SIZE 4096

/* ---- open */

typedef struct census {
    cake_tensor_item first_expert;  /* of the spec that is visited */
    int64_t elements[CAKE_N_INPUT]; /* of matrices */
    int64_t parameters;
    cake_dtype embed;
    bool keeps[CAKE_N_INPUT];
    cake_weight_form stored[CAKE_MAX_FORM];
    int n_stored;
    bool *used; /* [cake_tensor_index_count] the files' tensors that belong to the model */
} census;

/* Returns the rank. */
static int expected_shape(const cake_tensor_item *p, int64_t *shape)
{
    int rank = 0;
    if (p->spec->head) {
        shape[rank++] = (int64_t)p->stack * (p->spec->transposed ? p->deep : p->all);
        shape[rank++] = p->spec->transposed ? p->all : p->n_in;
        return rank;
    }
    if (p->spec->stacked)
        shape[rank++] = p->stack;
    if (p->spec->transposed)
        shape[rank++] = p->n_in;
    shape[rank++] = p->all;
    if (p->spec->flat)
        shape[rank++] = 1;
    if (!p->spec->transposed && p->spec->in != CAKE_WIDTH_ONE)
        shape[rank++] = p->n_in;
    return rank;
}

static cake_err check_shape(const cake_model *model, const cake_tensor_item *p)
{
    const cake_tensor *t = p->from->tensor;
    if (p->spec->scalar && (t->rank == 0 || (t->rank == 1 && t->shape[0] == 1)))
        return CAKE_OK;
    int64_t want[3];
    int rank = expected_shape(p, want);
    if (t->rank == rank && !memcmp(t->shape, want, (size_t)rank * sizeof *want))
        return CAKE_OK;
    cake_buf text = {0};
    for (int i = 0; i < t->rank; i++)
        cake_buf_addf(&text, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    cake_buf_adds(&text, "], but config.json says [");
    for (int i = 0; i < rank; i++)
        cake_buf_addf(&text, "%s%lld", i ? ", " : "", (long long)want[i]);
    cake_err err = cake_fail("model", "%s: tensor %s has shape [%s]: they are not of one model",
                             cake_indexed_tensor_path(p->from, model->dir), p->name, text.data);
    cake_buf_free(&text);
    return err;
}

/* The tensor's type and shape, or those of all tensors that a quantised matrix consists of. */
static cake_err check_stored(const cake_model *model, const cake_tensor_item *p)
{
    cake_buf why = {0};
    cake_err err = CAKE_OK;
    if (p->quantized.part[CAKE_QUANT_CODES]) {
        const bool transposed = p->spec->transposed;
        if (!cake_quantized_check(&p->quantized, (int64_t)p->stack * (transposed ? p->deep : p->all),
                                  transposed ? p->all : p->n_in, &why))
            err = cake_fail("model", "%s: %s", cake_indexed_tensor_path(p->from, model->dir), why.data);
        cake_buf_free(&why);
        return err;
    }
    const cake_tensor *t = p->from->tensor;
    if (!t->readable)
        return cake_fail("model",
                         "%s: tensor %s has dtype %s, and no scales stand beside it: F32, BF16 and F16, and "
                         "the quantised forms of docs/models.md are read",
                         cake_indexed_tensor_path(p->from, model->dir), p->name, t->dtype_name);
    if (t->format && p->spec->transposed)
        return cake_fail("model",
                         "%s: tensor %s has dtype %s, but it is needed transposed; convert it to F16",
                         cake_indexed_tensor_path(p->from, model->dir), p->name, t->dtype_name);
    if (t->format && !cake_tensor_spec_matrix(p->spec))
        return cake_fail("model", "%s: tensor %s has dtype %s, but a vector must not be quantised",
                         cake_indexed_tensor_path(p->from, model->dir), p->name, t->dtype_name);
    return check_shape(model, p);
}

/* The matrices of all experts are multiplied together, so they must be of one type. */
static cake_err check_expert(const cake_model *model, const cake_tensor_item *p, cake_tensor_item *first)
{
    if (p->spec->expert && p->expert == 0)
        *first = *p;
    const cake_format *format = p->kept_format, *other = first->kept_format;
    if (!p->spec->expert || (p->kept == first->kept && format == other))
        return CAKE_OK;
    return cake_fail("model",
                     "%s: tensor %s has dtype %s, but the same tensor of expert 0 has %s: all experts of a "
                     "layer must have one; --dtype bf16 converts them",
                     cake_indexed_tensor_path(p->from, model->dir), p->name,
                     format ? format->name : cake_dtype_name(p->dtype),
                     other ? other->name : cake_dtype_name(first->dtype));
}

static cake_err fail_missing(const cake_model *model, const cake_tensor_item *p)
{
    const char *why = "an incomplete download, or config.json is of another model";
    const bool first = p->layer == cake_file_layout_first_experts(&model->config);
    if (p->spec->when == CAKE_WHEN_EXPERTS_FUSED && !first)
        why =
            "the first layer with experts has one tensor for all of them, and so must every other one; or an "
            "incomplete download";
    else if (p->spec->when == CAKE_WHEN_EXPERTS_APART && !first)
        why =
            "the first layer with experts has a tensor for each of them, and so must every other one; or an "
            "incomplete download";
    return cake_fail("model", "%s: tensor %s is missing: %s", model->dir, p->name, why);
}

static void count_form(census *c, const cake_tensor_item *p, int64_t elements)
{
    const cake_format *format = p->kept_format;
    int i = 0;
    while (i < c->n_stored && (c->stored[i].format != format || c->stored[i].dtype != p->kept))
        i++;
    if (i == CAKE_MAX_FORM)
        i--;
    else if (i == c->n_stored)
        c->stored[c->n_stored++] = (cake_weight_form){.format = format, .dtype = p->kept};
    c->stored[i].matrices++;
    c->stored[i].parameters += elements;
}

static cake_err check_tensor(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    census *c = arg;
    if (model->store && !p->from && p->spec->when == CAKE_WHEN_UNTIED)
        return cake_fail("model",
                         "%s: tensor %s is missing, and tie_word_embeddings is not true: "
                         "a model without a head, such as an embedding model, cannot generate text",
                         model->dir, p->name);
    if (model->store && !p->from)
        return fail_missing(model, p);
    if (p->from && check_stored(model, p))
        return CAKE_ERR_FATAL;
    if (check_expert(model, p, &c->first_expert))
        return CAKE_ERR_FATAL;
    const cake_indexed_tensor *parts[CAKE_N_QUANT];
    for (int i = 0, n = cake_tensor_item_parts(p, parts); i < n; i++)
        c->used[parts[i] - cake_tensor_index_at(model->store, 0)] = true;
    int64_t elements = (int64_t)p->n_out * p->n_in;
    if (cake_tensor_spec_matrix(p->spec)) {
        count_form(c, p, elements);
        c->elements[p->kept_format ? CAKE_BF16 : p->kept] += elements; /* as activations of such models are */
        c->keeps[p->kept] |= p->spec->owner == CAKE_SPEC_LAYER;
    }
    if (p->spec->owner == CAKE_SPEC_EMBED)
        c->embed = p->format ? model->config.dtype : p->kept == CAKE_I8 ? p->dtype : p->kept;
    c->parameters += elements;
    return CAKE_OK;
}

/* What stands beside quantised weights for other uses: their shape, and the scales of activations and caches
 * that are quantised, too. */
static bool is_companion(const char *name)
{
    static const char *const ends[] = {
        ".weight_shape",     ".activation_scale", ".input_scale", ".input_global_scale",
        ".input_zero_point", ".output_scale",     ".k_scale",     ".v_scale"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t length = strlen(name), end = strlen(ends[i]);
        if (length > end && !strcmp(name + length - end, ends[i]))
            return true;
    }
    return false;
}

/* Of models that embed: buffers, and the heads of other tasks. */
static bool is_other_head(const cake_model *model, const char *name)
{
    static const char *const parts[] = {"embeddings.position_ids",
                                        "pooler.",
                                        "cls.",
                                        "lm_head.",
                                        "head.",
                                        "decoder.",
                                        "classifier.",
                                        "score."};
    const size_t prefix = strlen(model->name_prefix->body);
    name += strncmp(name, model->name_prefix->body, prefix) ? 0 : prefix;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strncmp(name, parts[i], strlen(parts[i])))
            return true;
    return false;
}

/* Tensors that are unused but expected: buffers in old files, and the second copy of a tied matrix. */
static bool is_redundant(const cake_model *model, const cake_indexed_tensor *stored)
{
    return (model->config.quantization.method && is_companion(stored->tensor->name)) ||
           (model->config.headless && is_other_head(model, stored->tensor->name)) ||
           strstr(stored->tensor->name, "rotary_emb.inv_freq") ||
           (model->config.tied && stored == cake_tensor_walk_find_head(model));
}

/* True for tensors of a larger model that are not needed for text: vision, multi-token prediction. */
static bool is_other_modality(const char *name)
{
    static const char *const parts[] = {"vision_tower.", "multi_modal_projector.", "visual.",
                                        "mtp.",          "audio_tower.",           "embed_vision.",
                                        "embed_audio.",  "vision_embedder.",       "mm_projector."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = strstr(name, parts[i]);
        if (at && (at == name || (at - name == 6 && !strncmp(name, "model.", 6))))
            return true;
    }
    return false;
}

/* The number after `key` in a tensor's name; -1: there is none. */
static int64_t number_after(const char *name, const char *key)
{
    const char *at = strstr(name, key);
    if (!at || at[strlen(key)] < '0' || at[strlen(key)] > '9')
        return -1;
    return strtol(at + strlen(key), NULL, 10);
}

/* Unused tensors of an expert that config.json does not count: the router of these files chooses among
 * more. */
static cake_err check_experts(const cake_model *model, const char *name)
{
    const cake_config *c = &model->config;
    int64_t layer = number_after(name, ".layers."), expert = number_after(name, ".experts.");
    if (!c->moe.router.n_expert || expert < c->moe.router.n_expert || layer < 0 || layer >= c->n_layer)
        return CAKE_OK;
    return cake_fail("model",
                     "%s: has tensor %s, but config.json counts %d experts: they are not of one model",
                     model->dir, name, c->moe.router.n_expert);
}

/* Unused tensors without which products of quantised weights are wrong. */
static cake_err check_corrections(const cake_model *model, const char *name)
{
    static const char *const needed[] = {".pre_quant_scale", ".svdquant_lora_a", ".svdquant_lora_b"};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < sizeof needed / sizeof *needed; i++)
        if (!strcmp(end, needed[i]))
            return cake_fail("model",
                             "%s: has tensor %s: weights whose activations are scaled or corrected (AWQ and "
                             "SVDQuant of ModelOpt) are not read; export the model as NVFP4 or FP8",
                             model->dir, name);
    return CAKE_OK;
}

/* Unused tensors are a hint that config.json and files do not belong together. */
static cake_err warn_unused(const cake_model *model, const census *c)
{
    const char *first = NULL;
    int n = 0, n_other = 0;
    for (int i = 0; i < cake_tensor_index_count(model->store); i++) {
        const cake_indexed_tensor *stored = cake_tensor_index_at(model->store, i);
        if (c->used[i] || is_redundant(model, stored) || stored->tensor->begin == stored->tensor->end)
            continue;
        if (check_experts(model, stored->tensor->name) || check_corrections(model, stored->tensor->name))
            return CAKE_ERR_FATAL;
        const int n_layer = model->config.n_layer;
        int64_t layer = number_after(stored->tensor->name, ".layers.");
        if (is_other_modality(stored->tensor->name) ||
            (layer >= n_layer && layer < n_layer + model->config.moe.n_mtp)) {
            n_other++;
            continue;
        }
        first = first ? first : stored->tensor->name;
        n++;
    }
    if (n_other)
        cake_log(
            CAKE_WARN, "model",
            "%s: %d tensor%s of vision, sound or layers behind the last one (multi-token prediction%s) %s "
            "skipped: only text is computed",
            model->dir, n_other, cake_plural(n_other),
            model->config.mtp ? "; the model's embedding and head serve it" : "",
            n_other == 1 ? "is" : "are");
    if (n)
        cake_log(CAKE_WARN, "model", "%s: %d tensor%s to this model and %s not used, the first is %s",
                 model->dir, n, n == 1 ? " does not belong" : "s do not belong", n == 1 ? "is" : "are",
                 first);
    return CAKE_OK;
}

/* Compares two tensors of equal shape at a few positions. */
static cake_err compare_probes(const cake_indexed_tensor *a, const cake_indexed_tensor *b, bool *same)
{
    char left[PROBE_SIZE], right[PROBE_SIZE];
    int64_t size = a->tensor->end - a->tensor->begin;
    *same = a->tensor->dtype == b->tensor->dtype && size == b->tensor->end - b->tensor->begin;
    for (int i = 0; i < PROBES && *same; i++) {
        size_t len = size < PROBE_SIZE ? (size_t)size : PROBE_SIZE;
        int64_t offset = (size - (int64_t)len) / (PROBES - 1) * i;
        if (cake_tensor_file_read(a->file, a->tensor, offset, left, len, NULL) ||
            cake_tensor_file_read(b->file, b->tensor, offset, right, len, NULL))
            return CAKE_ERR_FATAL;
        *same = !memcmp(left, right, len);
    }
    return CAKE_OK;
}

/* A file may hold a head although config.json calls it tied. Usually it is a copy of the embedding, and one
 * of them is enough. If they differ, the head of the file is used, as transformers does. */
static cake_err check_tied(cake_model *model)
{
    const cake_indexed_tensor *embedding =
        cake_tensor_walk_find(model, model->name_prefix->body, "embed_tokens.weight");
    const cake_indexed_tensor *head = cake_tensor_walk_find_head(model);
    bool same = true;
    if (!model->config.tied || model->config.headless || !embedding || !head)
        return CAKE_OK;
    if (compare_probes(embedding, head, &same))
        return CAKE_ERR_FATAL;
    if (!same)
        cake_log(CAKE_WARN, "model",
                 "%s: tie_word_embeddings is true, "
                 "but lm_head.weight differs from %sembed_tokens.weight and is used",
                 model->dir, model->name_prefix->body);
    model->config.tied = same;
    return CAKE_OK;
}

static uint32_t identify(const cake_model *model, const bool *used)
{
    uint32_t sum = 0;
    for (int i = 0; model->store && i < cake_tensor_index_count(model->store); i++) {
        const cake_tensor *t = cake_tensor_index_at(model->store, i)->tensor;
        int64_t shape = 0;
        if (!used[i])
            continue;
        sum = cake_crc_on(sum, t->name, strlen(t->name) + 1);
        sum = cake_crc_on(sum, t->dtype_name, strlen(t->dtype_name) + 1);
        for (int d = 0; d < t->rank; d++) {
            shape = t->shape[d];
            sum = cake_crc_on(sum, &shape, sizeof shape);
        }
    }
    return sum;
}

static void list_used(cake_model *model, const bool *used)
{
    int n = model->store ? cake_tensor_index_count(model->store) : 0;
    model->used = cake_alloc((size_t)n, sizeof *model->used);
    for (int i = 0; i < n; i++)
        if (used[i])
            model->used[model->n_used++] = i;
}

/* Checks the layer of multi-token prediction, if it is wanted: of what all layers have, it counts only for
 * the types of matrices. */
static cake_err check_mtp(cake_model *model, census *all)
{
    cake_range behind = {model->config.n_layer, 1};
    cake_weight_set share = {.range = &behind, .n_range = 1};
    census own = {.used = all->used};
    if (!model->options.mtp)
        return CAKE_OK;
    cake_err err = cake_file_layout_choose_mtp(model);
    if (!err)
        err = cake_tensor_walk_visit(model, &share, check_tensor, &own);
    for (int i = 0; i < CAKE_N_INPUT; i++)
        all->keeps[i] = all->keeps[i] || own.keeps[i];
    return err;
}

static cake_err check_all(cake_model *model)
{
    cake_range all = {0, model->config.n_layer};
    cake_weight_set share = {.range = &all, .n_range = 1, .embed = true, .head = true};
    census c = {
        .used = cake_alloc(model->store ? (size_t)cake_tensor_index_count(model->store) : 0, sizeof *c.used)};
    cake_err err = cake_tensor_walk_visit(model, &share, check_tensor, &c);
    model->identity = identify(model, c.used);
    list_used(model, c.used);
    if (!err)
        err = check_mtp(model, &c);
    if (!err && model->store)
        err = warn_unused(model, &c);
    free(c.used);
    for (int i = 0; i < CAKE_N_INPUT; i++)
        if (c.elements[i] > c.elements[model->dtype])
            model->dtype = (cake_dtype)i;
    model->parameters = c.parameters;
    model->embed_dtype = c.embed;
    memcpy(model->keeps, c.keeps, sizeof c.keeps);
    memcpy(model->stored, c.stored, sizeof c.stored);
    model->n_stored = c.n_stored;
    return err;
}

/* Opens the files or the bundle, and decides whether the head is tied to the embedding. */
static cake_err open_tensors(cake_model *model)
{
    const cake_bundle *index = model->options.index;
    cake_err err = index                               ? CAKE_OK
                   : cake_model_files_gguf(model->dir) ? CAKE_END
                                                       : cake_bundle_open(model->dir, &model->bundle);
    if (err && err != CAKE_END)
        return err;
    const cake_bundle *source = index ? index : model->bundle;
    err = source ? cake_tensor_index_open_bundle(index ? NULL : model->dir, source, &model->store)
                 : cake_tensor_index_open(model->dir, &model->store);
    if (err)
        return err;
    err = cake_file_layout_choose(model);
    if (err)
        return err;
    if (!source)
        return check_tied(model);
    model->config.tied = source->tied || model->config.headless;
    return source->n_layer == model->config.n_layer
               ? CAKE_OK
               : cake_fail("model", "%s: has %d layers, but config.json %d: they are not of one model",
                           source->path, source->n_layer, model->config.n_layer);
}

cake_err cake_model_open(const char *dir, const cake_model_options *options, cake_model **out)
{
    cake_model *model = cake_alloc(1, sizeof *model);
    model->options = *options;
    model->dir = cake_copy(dir, strlen(dir));
    model->name_prefix = cake_name_prefix_at(0);
    cake_err err = options->config ? cake_config_parse(options->config, dir, &model->config)
                                   : cake_config_load(dir, &model->config);
    if (!err && !options->dummy)
        err = open_tensors(model);
    if (!err && !options->dummy && !options->index)
        cake_not_a_model_warn(dir);
    if (!err)
        err = check_all(model);
    if (err) {
        cake_model_close(model);
        return err;
    }
    model->layer = cake_alloc((size_t)model->config.n_layer + 1, sizeof *model->layer);
    *out = model;
    return CAKE_OK;
}

void cake_model_close(cake_model *model)
{
    if (!model)
        return;
    cake_weight_stream_close(model->stream);
    for (int i = 0; i < model->n_held; i++)
        cake_memory_close(model->held[i].memory, &model->held[i].arena);
    cake_tensor_index_close(model->store);
    cake_bundle_close(model->bundle);
    cake_params_free(&model->config.defaults);
    for (int i = 0; model->layer && i <= model->config.n_layer; i++) {
        free(model->layer[i].expert_gate.at);
        free(model->layer[i].expert_up.at);
        free(model->layer[i].expert_down.at);
    }
    free(model->layer);
    free(model->used);
    free(model->dir);
    free(model);
}

typedef struct byte_count {
    const cake_kernels *kernels;
    bool experts; /* count their matrices only */
    size_t bytes; /* packed */
    int64_t in_files;
} byte_count;

static cake_err count_tensor(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    (void)model;
    byte_count *t = arg;
    if (t->experts && !p->spec->expert)
        return CAKE_OK;
    t->bytes += t->kernels ? cake_tensor_walk_bytes(p, t->kernels) : 0;
    t->in_files += p->from ? cake_tensor_item_bytes(p) : 0;
    return CAKE_OK;
}

size_t cake_model_bytes(const cake_model *model, const cake_weight_set *share, const cake_kernels *kernels)
{
    if (share->limit) {
        cake_weight_split split;
        cake_weight_split_make(model, share, kernels, &split);
        int64_t bytes = cake_weight_split_bytes(&split);
        cake_weight_split_free(&split);
        return (size_t)bytes;
    }
    byte_count t = {.kernels = kernels};
    cake_tensor_walk_visit(model, share, count_tensor, &t);
    return t.bytes;
}

size_t cake_model_expert_bytes(const cake_model *model, const cake_weight_set *share,
                               const cake_kernels *kernels)
{
    byte_count t = {.kernels = kernels, .experts = true};
    cake_tensor_walk_visit(model, share, count_tensor, &t);
    return t.bytes;
}

int64_t cake_model_bytes_in_files(const cake_model *model, const cake_weight_set *share)
{
    byte_count t = {0};
    cake_tensor_walk_visit(model, share, count_tensor, &t);
    return t.in_files;
}

/* ---- accessors */

const cake_config *cake_model_config(const cake_model *model)
{
    return &model->config;
}

const cake_bundle *cake_model_bundle(const cake_model *model)
{
    return model->bundle;
}

cake_dtype cake_model_dtype(const cake_model *model)
{
    return model->dtype;
}

bool cake_model_keeps(const cake_model *model, cake_dtype dtype)
{
    return model->keeps[dtype];
}

const cake_weight_form *cake_model_form(const cake_model *model, int i)
{
    return i < model->n_stored ? &model->stored[i] : NULL;
}

bool cake_model_quantized(const cake_model *model)
{
    for (int i = 0; i < model->n_stored; i++)
        if (model->stored[i].format)
            return true;
    return false;
}

bool cake_model_has_codes(const cake_model *model)
{
    for (int i = 0; i < model->n_stored; i++)
        if (model->stored[i].dtype == CAKE_Q8)
            return true;
    return false;
}

uint32_t cake_model_identity(const cake_model *model)
{
    return model->identity;
}

int64_t cake_model_parameters(const cake_model *model)
{
    return model->parameters;
}

cake_err cake_model_lock(cake_model *model)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < model->n_held && !err; i++)
        if (!model->held[i].memory)
            err = cake_arena_lock(&model->held[i].arena, "weights");
    return err;
}

int64_t cake_model_bytes_read(const cake_model *model)
{
    return model->bytes_read;
}

cake_weight_stream *cake_model_stream(const cake_model *model)
{
    return model->stream;
}

const cake_layer_weights *cake_model_layer(const cake_model *model, int layer)
{
    CAKE_ASSERT(layer >= 0 && layer < model->config.n_layer + model->config.mtp);
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

const cake_ends *cake_model_ends(const cake_model *model)
{
    return &model->ends;
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
