/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a tiny model directory, right or wrong in one place. Included by the tests that load one.
 */
#ifndef CAKE_TESTS_MODELS_H
#define CAKE_TESTS_MODELS_H

#include <stdio.h>
#include <string.h>

#include "kernels/tensor.h"
#include "tensors.h"

/* A tiny qwen3 with biases: two layers, head_dim that is not dim / n_head. Written down here once more, so
 * that the program's own table is held against something. */
enum { DIM = 6, HEADS = 2, KV = 1, HEAD = 4, FF = 10, VOCAB = 11, LAYERS = 2 };

typedef struct spec {
    const char *name;
    int out, in; /* in 0: a vector */
} spec;

static const spec layer_specs[] = {
    {"input_layernorm.weight", DIM, 0},
    {"post_attention_layernorm.weight", DIM, 0},
    {"self_attn.q_proj.weight", HEADS *HEAD, DIM},
    {"self_attn.k_proj.weight", KV *HEAD, DIM},
    {"self_attn.v_proj.weight", KV *HEAD, DIM},
    {"self_attn.o_proj.weight", DIM, HEADS *HEAD},
    {"self_attn.q_proj.bias", HEADS *HEAD, 0},
    {"self_attn.k_proj.bias", KV *HEAD, 0},
    {"self_attn.v_proj.bias", KV *HEAD, 0},
    {"self_attn.o_proj.bias", DIM, 0},
    {"self_attn.q_norm.weight", HEAD, 0},
    {"self_attn.k_norm.weight", HEAD, 0},
    {"mlp.gate_proj.weight", FF, DIM},
    {"mlp.up_proj.weight", FF, DIM},
    {"mlp.down_proj.weight", DIM, FF},
};
enum { N_LAYER_SPEC = sizeof layer_specs / sizeof *layer_specs };

static const char config_text[] =
    "{\"model_type\": \"qwen3\", \"hidden_size\": 6, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,"
    "\"num_key_value_heads\": 1, \"head_dim\": 4, \"intermediate_size\": 10, \"vocab_size\": 11,"
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"attention_bias\": true, \"dtype\": \"%s\","
    "\"tie_word_embeddings\": %s}";

/* ---- writing models */

typedef struct form {
    cake_dtype dtype;
    int shards; /* 1: model.safetensors */
    bool tied;
    bool both;           /* tied, but the file has a head too */
    bool head_differs;   /* ... of its own */
    const char *without; /* this tensor is not written */
    const char *twice;   /* this one goes into every shard, with other bytes than the index's */
    bool unsaid;         /* ... and the index does not have it */
    const char *body;    /* what names begin with in place of "model." */
    const char *odd;     /* this one has the odd entry in place of dtype and shape */
    const char *odd_entry;
    const char *huge; /* the last element of this one is 1e5 */
    int header_odd;   /* bytes that the header is longer than a multiple of 4 */
} form;

/* Exact in all three types. */
static float value_of(const char *name, int64_t i)
{
    uint32_t hash = 2166136261U;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return (float)((int)((hash + 7 * (uint32_t)i) % 31) - 15) / 8;
}

/* As the file has it. */
static const char *named(const form *f, const char *name)
{
    static char text[128];
    if (!f->body || strncmp(name, "model.", 6))
        return name;
    snprintf(text, sizeof text, "%s%s", f->body, name + 6);
    return text;
}

static void add_tensor(writer *w, const form *f, const char *name, int out, int in, bool other)
{
    static const char *const dtypes[] = {"F32", "BF16", "F16"};
    size_t begin = w->data.len;
    const char *like =
        !strcmp(name, "lm_head.weight") && f->both && !f->head_differs ? "model.embed_tokens.weight" : name;
    for (int64_t i = 0; i < (int64_t)out * (in ? in : 1); i++) {
        float value = f->huge && !strcmp(f->huge, name) && i == (int64_t)out * in - 1
                          ? 1e5F
                          : value_of(like, i + other);
        uint16_t half = f->dtype == CAKE_BF16 ? cake_bf16_from_f32(value) : cake_f16_from_f32(value);
        if (f->dtype == CAKE_F32)
            cake_buf_add(&w->data, &value, sizeof value);
        else
            cake_buf_add(&w->data, &half, sizeof half);
    }
    cake_buf_addf(&w->header, "%s\"%s\":{", w->header.len ? "," : "{", named(f, name));
    if (f->odd && !strcmp(f->odd, name))
        cake_buf_adds(&w->header, f->odd_entry);
    else if (in)
        cake_buf_addf(&w->header, "\"dtype\":\"%s\",\"shape\":[%d,%d]", dtypes[f->dtype], out, in);
    else
        cake_buf_addf(&w->header, "\"dtype\":\"%s\",\"shape\":[%d]", dtypes[f->dtype], out);
    cake_buf_addf(&w->header, ",\"data_offsets\":[%zu,%zu]}", begin, w->data.len);
}

/* Deals the tensors into the shards in turn. */
static void deal(writer *w, const form *f, cake_buf *map, int *turn, const char *name, int out, int in)
{
    if (f->without && !strcmp(f->without, name))
        return;
    for (int s = 0; s < f->shards; s++)
        if (s == *turn % f->shards || (f->twice && !strcmp(f->twice, name)))
            add_tensor(&w[s], f, name, out, in, s != *turn % f->shards);
    if (!f->unsaid || strcmp(f->twice, name))
        cake_buf_addf(map, "%s\"%s\":\"part-%d.safetensors\"", map->len ? "," : "", named(f, name),
                      *turn % f->shards);
    ++*turn;
}

/* A fresh directory below suite_tmp with the model; in a static buffer. */
static const char *write_model(const form *f)
{
    static char dir[256];
    static int n_dir;
    static const char *const dtypes[] = {"float32", "bfloat16", "float16"};
    writer w[4] = {0};
    cake_buf map = {0}, text = {0};
    int turn = 0;
    snprintf(dir, sizeof dir, "%s/model-%d", suite_tmp(), n_dir++);
    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
    cake_buf_addf(&text, config_text, dtypes[f->dtype], f->tied ? "true" : "false");
    write_bytes(dir, "config.json", text.data, text.len);
    deal(w, f, &map, &turn, "model.embed_tokens.weight", VOCAB, DIM);
    if (!f->tied || f->both)
        deal(w, f, &map, &turn, "lm_head.weight", VOCAB, DIM);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < N_LAYER_SPEC; i++) {
            char name[128];
            snprintf(name, sizeof name, "model.layers.%d.%s", layer, layer_specs[i].name);
            deal(w, f, &map, &turn, name, layer_specs[i].out, layer_specs[i].in);
        }
    deal(w, f, &map, &turn, "model.norm.weight", DIM, 0);
    for (int s = 0; s < f->shards; s++) {
        char name[64] = "model.safetensors";
        if (f->shards > 1)
            snprintf(name, sizeof name, "part-%d.safetensors", s);
        cake_buf_addc(&w[s].header, '}');
        while (w[s].header.len % 4 != (size_t)f->header_odd)
            cake_buf_addc(&w[s].header, ' ');
        write_tensors(dir, name, w[s].header.data, w[s].header.len, w[s].data.data, w[s].data.len);
        cake_buf_free(&w[s].header);
        cake_buf_free(&w[s].data);
    }
    cake_buf_cut(&text, 0);
    cake_buf_addf(&text, "{\"metadata\":{},\"weight_map\":{%s}}", map.data);
    if (f->shards > 1)
        write_bytes(dir, "model.safetensors.index.json", text.data, text.len);
    cake_buf_free(&map);
    cake_buf_free(&text);
    return dir;
}

#endif
