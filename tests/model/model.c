/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"
#include "model/tensor_spec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "kernels/int8.h"
#include "model/fingerprint.h"
#include "models.h"
#include "tests/suite.h"

/* ---- reading them back */

static cake_buf said;
static int kept = -1;   /* the dtype that is asked for; -1: none */
static int threads = 1; /* that pack */
static bool mapped;     /* --load mmap */

static cake_err open_quietly(const char *dir, bool dummy, cake_model **out)
{
    cake_model_options options = {.dummy = dummy, .dummy_seed = 42, .convert = kept >= 0};
    options.dtype = kept < 0 ? CAKE_F32 : (cake_dtype)kept;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_err err = cake_model_open(dir, &options, out);
    cake_log_capture(NULL);
    return err;
}

static bool was_said(const char *what)
{
    bool found = said.data && strstr(said.data, what);
    if (!found)
        printf("\n    expected: %s\n    said: %s\n", what, said.len ? said.data : "nothing");
    return found;
}

/* Opening has to fail with one message. */
static void refuse(const char *dir, const char *what)
{
    cake_model *model = NULL;
    CU_ASSERT_EQUAL(open_quietly(dir, false, &model), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NULL(model);
    CU_ASSERT(was_said(what));
    CU_ASSERT(said.len && strchr(said.data, '\n') == said.data + said.len - 1);
}

static cake_model *load(const char *dir, bool dummy, const cake_weight_set *share)
{
    cake_model *model = NULL;
    CU_ASSERT_EQUAL_FATAL(open_quietly(dir, dummy, &model), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(
        cake_model_load(model, share, &cake_kernels_ref,
                        &(cake_loading){.threads = threads, .mapped = mapped, .drop = threads > 1}),
        CAKE_OK);
    return model;
}

/* The matrix as float32, owned. */
static float *rows_of(const cake_weight *w)
{
    cake_exec one = {.rank = 0, .size = 1};
    float *out = cake_alloc((size_t)w->n_out * (size_t)w->n_in, sizeof *out);
    int32_t *row = cake_alloc((size_t)w->n_out, sizeof *row);
    for (int i = 0; i < w->n_out; i++)
        row[i] = i;
    cake_kernels_ref.gather(&one, out, w, row, w->n_out, 1);
    free(row);
    return out;
}

static bool is_matrix(const cake_weight *w, int out, int in, const char *name)
{
    if (!w->data || w->n_out != out || w->n_in != in)
        return false;
    float *values = rows_of(w), *expected = cake_alloc((size_t)in, sizeof *expected);
    void *quantized = cake_alloc(1, cake_row_bytes(CAKE_I8, in));
    bool same = true;
    for (int row = 0; row < out; row++) {
        for (int i = 0; i < in; i++)
            expected[i] = value_of(name, (int64_t)row * in + i);
        if (w->dtype == CAKE_I8) {
            cake_i8_from(quantized, expected, CAKE_F32, in);
            cake_i8_to_f32(expected, quantized, in);
        }
        same = same && !memcmp(values + row * in, expected, (size_t)in * sizeof *expected);
    }
    free(values);
    free(expected);
    free(quantized);
    return same;
}

static bool is_vector(const float *v, int n, const char *name)
{
    bool same = v != NULL;
    for (int i = 0; same && i < n; i++)
        same = v[i] == value_of(name, i);
    return same;
}

static void check_layer(const cake_model *model, int layer)
{
    const cake_layer_weights *l = cake_model_layer(model, layer);
    const struct {
        const char *name;
        const cake_weight *matrix;
        const float *vector;
    } places[] = {
        {"input_layernorm.weight", NULL, l->attn_norm},
        {"post_attention_layernorm.weight", NULL, l->mlp_norm},
        {"self_attn.q_proj.weight", &l->q, NULL},
        {"self_attn.k_proj.weight", &l->k, NULL},
        {"self_attn.v_proj.weight", &l->v, NULL},
        {"self_attn.o_proj.weight", &l->o, NULL},
        {"self_attn.q_proj.bias", NULL, l->q_bias},
        {"self_attn.k_proj.bias", NULL, l->k_bias},
        {"self_attn.v_proj.bias", NULL, l->v_bias},
        {"self_attn.o_proj.bias", NULL, l->o_bias},
        {"self_attn.q_norm.weight", NULL, l->q_norm},
        {"self_attn.k_norm.weight", NULL, l->k_norm},
        {"mlp.gate_proj.weight", &l->gate, NULL},
        {"mlp.up_proj.weight", &l->up, NULL},
        {"mlp.down_proj.weight", &l->down, NULL},
    };
    for (int i = 0; i < N_LAYER_SPEC; i++) {
        char name[128];
        CU_ASSERT_STRING_EQUAL(places[i].name, layer_specs[i].name);
        snprintf(name, sizeof name, "model.layers.%d.%s", layer, places[i].name);
        if (places[i].matrix)
            CU_ASSERT(is_matrix(places[i].matrix, layer_specs[i].out, layer_specs[i].in, name));
        if (!places[i].matrix)
            CU_ASSERT(is_vector(places[i].vector, layer_specs[i].out, name));
    }
    CU_ASSERT(!l->gate_bias && !l->up_bias && !l->down_bias);
}

static const cake_range both_layers = {0, LAYERS};
static const cake_weight_set everything = {.range = &both_layers, .n_range = 1, .embed = true, .head = true};

static void test_values(void)
{
    for (int dtype = 0; dtype < CAKE_N_DTYPE; dtype++)
        for (int shards = 1; shards <= 4; shards += 3) {
            threads = shards;
            mapped = !mapped;
            form f = {.dtype = (cake_dtype)dtype, .shards = shards, .header_odd = dtype};
            cake_model *m = load(write_model(&f), false, &everything);
            CU_ASSERT_EQUAL(said.len, 0);
            CU_ASSERT(is_matrix(cake_model_embedding(m), VOCAB, DIM, "model.embed_tokens.weight"));
            CU_ASSERT(is_matrix(cake_model_head(m), VOCAB, DIM, "lm_head.weight"));
            CU_ASSERT(is_vector(cake_model_ends(m)->final_norm, DIM, "model.norm.weight"));
            for (int layer = 0; layer < LAYERS; layer++)
                check_layer(m, layer);
            CU_ASSERT_EQUAL(cake_model_dtype(m), (cake_dtype)dtype);
            int64_t parameters = 2 * VOCAB * DIM + DIM;
            for (int i = 0; i < N_LAYER_SPEC; i++)
                parameters += LAYERS * layer_specs[i].out * (layer_specs[i].in ? layer_specs[i].in : 1);
            CU_ASSERT_EQUAL(cake_model_parameters(m), parameters);
            CU_ASSERT_EQUAL(cake_model_bytes_read(m),
                            parameters * (int64_t)cake_dtype_bytes((cake_dtype)dtype));
            CU_ASSERT_EQUAL(cake_model_bytes_read(m), cake_model_bytes_in_files(m, &everything));
            cake_model_close(m);
        }
    mapped = false;
}

/* Matrices are kept in the requested dtype, whatever the file has; values that it cannot hold are
 * reported. */
static void test_kept(void)
{
    for (int dtype = 0; dtype < CAKE_N_DTYPE; dtype++)
        for (kept = 0; kept < CAKE_N_KEPT; kept++) {
            threads = 1 + kept;
            form f = {.dtype = (cake_dtype)dtype, .shards = 1};
            const char *dir = write_model(&f);
            for (int dummy = 0; dummy < 2; dummy++) {
                mapped = !mapped;
                cake_model *m = load(dir, dummy, &everything);
                CU_ASSERT_EQUAL(cake_model_dtype(m), (cake_dtype)kept);
                CU_ASSERT_EQUAL(cake_model_head(m)->dtype, (cake_dtype)kept);
                CU_ASSERT_EQUAL(cake_model_layer(m, 1)->down.dtype, (cake_dtype)kept);
                for (int layer = 0; layer < LAYERS && !dummy; layer++)
                    check_layer(m, layer);
                cake_model_close(m);
            }
        }
    form f = {.dtype = CAKE_BF16, .shards = 1, .huge = "model.layers.1.mlp.down_proj.weight"};
    const char *dir = write_model(&f);
    cake_model *m = NULL;
    kept = CAKE_F16;
    CU_ASSERT_EQUAL_FATAL(open_quietly(dir, false, &m), CAKE_OK);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_model_load(m, &everything, &cake_kernels_ref, &(cake_loading){.threads = 2}),
                    CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(was_said("model.layers.1.mlp.down_proj.weight holds 99840, which is more than f16 can hold"));
    cake_model_close(m);
    kept = -1;
    threads = 1;
}

/* A rank holds and reads its own share; shares add up to the whole. */
static void test_shares(void)
{
    form f = {.dtype = CAKE_BF16, .shards = 1};
    const char *dir = write_model(&f);
    static const cake_range second = {1, 1}, first = {0, 1};
    const cake_weight_set shares[] = {
        {.embed = true}, {.head = true}, {.range = &first, .n_range = 1}, {.range = &second, .n_range = 1}};
    cake_model *whole = load(dir, false, &everything);
    int64_t read = 0;
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        cake_model *m = load(dir, false, &shares[i]);
        CU_ASSERT_EQUAL(!cake_model_embedding(m)->data, i != 0);
        CU_ASSERT_EQUAL(!cake_model_head(m)->data, i != 1);
        CU_ASSERT_EQUAL(!cake_model_ends(m)->final_norm, i != 1);
        CU_ASSERT_EQUAL(!cake_model_layer(m, 0)->q.data, i != 2);
        CU_ASSERT_EQUAL(!cake_model_layer(m, 1)->q.data, i != 3);
        if (i == 3)
            check_layer(m, 1);
        read += cake_model_bytes_read(m);
        bytes += cake_model_bytes(m, &shares[i], &cake_kernels_ref);
        cake_model_close(m);
    }
    CU_ASSERT_EQUAL(read, cake_model_bytes_read(whole));
    CU_ASSERT_EQUAL(bytes, cake_model_bytes(whole, &everything, &cake_kernels_ref));
    cake_model_close(whole);
}

static void test_tied(void)
{
    static const cake_weight_set embed = {.embed = true}, head = {.head = true},
                                 ends = {.embed = true, .head = true};
    form f = {.shards = 1, .tied = true};
    cake_model *m = load(write_model(&f), false, &ends);
    CU_ASSERT_PTR_EQUAL(cake_model_head(m)->data, cake_model_embedding(m)->data);
    CU_ASSERT(is_matrix(cake_model_head(m), VOCAB, DIM, "model.embed_tokens.weight"));
    size_t matrix = cake_model_bytes(m, &embed, &cake_kernels_ref);
    CU_ASSERT(matrix >= VOCAB * DIM * sizeof(float));
    CU_ASSERT_EQUAL(cake_model_bytes(m, &head, &cake_kernels_ref), matrix + 64);
    CU_ASSERT_EQUAL(cake_model_bytes(m, &ends, &cake_kernels_ref), matrix + 64);
    cake_model_close(m);

    f.both = true; /* the copy of the embedding that some files have */
    m = load(write_model(&f), false, &head);
    CU_ASSERT(cake_model_config(m)->tied && !said.len);
    CU_ASSERT(is_matrix(cake_model_head(m), VOCAB, DIM, "model.embed_tokens.weight"));
    cake_model_close(m);

    f.head_differs = true; /* the file is believed, as transformers does */
    m = load(write_model(&f), false, &ends);
    CU_ASSERT(!cake_model_config(m)->tied);
    CU_ASSERT(was_said("lm_head.weight differs"));
    CU_ASSERT(is_matrix(cake_model_head(m), VOCAB, DIM, "lm_head.weight"));
    CU_ASSERT(is_matrix(cake_model_embedding(m), VOCAB, DIM, "model.embed_tokens.weight"));
    cake_model_close(m);

    f.without = "model.embed_tokens.weight"; /* the one matrix under its other name */
    m = load(write_model(&f), false, &ends);
    CU_ASSERT(is_matrix(cake_model_embedding(m), VOCAB, DIM, "lm_head.weight"));
    cake_model_close(m);
}

static void test_wrong_tensors(void)
{
    static const char k[] = "model.layers.1.self_attn.k_proj.weight";
    static const struct {
        form form;
        const char *message;
    } cases[] = {
        {{.shards = 1, .without = "lm_head.weight"}, "tensor lm_head.weight is missing"},
        {{.shards = 1, .without = k}, "tensor model.layers.1.self_attn.k_proj.weight is missing"},
        {{.shards = 1, .tied = true, .without = "model.embed_tokens.weight"},
         "embed_tokens.weight is missing"},
        {{.shards = 1, .odd = k, .odd_entry = "\"dtype\":\"F32\",\"shape\":[6,4]"},
         "k_proj.weight has shape [6, 4], but config.json says [4, 6]"},
        {{.shards = 1, .odd = k, .odd_entry = "\"dtype\":\"F32\",\"shape\":[24]"},
         "k_proj.weight has shape [24], but config.json says [4, 6]"},
        {{.shards = 1, .odd = "model.norm.weight", .odd_entry = "\"dtype\":\"F32\",\"shape\":[6,1]"},
         "model.norm.weight has shape [6, 1], but config.json says [6]"},
        {{.shards = 1, .odd = k, .odd_entry = "\"dtype\":\"I32\",\"shape\":[4,6]"},
         "has dtype I32, and no scales stand beside it: F32"},
        {{.shards = 3, .twice = k, .unsaid = true}, "k_proj.weight is in both "},
        {{.shards = 1, .body = "transformer."},
         "no tensor is named model.embed_tokens.weight, with any known prefix; the first "
         "of 33"},
        {{.shards = 1, .body = "", .without = "lm_head.weight"}, "a model without a head"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(write_model(&cases[i].form), cases[i].message);
}

static void test_unused(void)
{
    form f = {.shards = 1};
    const char *dir = write_model(&f);
    cake_buf text = {0};
    cake_buf_addf(&text, config_text, "float32", "false");
    *strstr(text.data, "layers\": 2") = 'L'; /* a field of another name: the number is missing */
    write_bytes(dir, "config.json", text.data, text.len);
    refuse(dir, "num_hidden_layers is missing");
    cake_buf_cut(&text, 0);
    cake_buf_addf(&text, config_text, "float32", "false");
    strstr(text.data, "layers\": 2")[9] = '1';
    write_bytes(dir, "config.json", text.data, text.len);
    cake_model *m = NULL;
    CU_ASSERT_EQUAL_FATAL(open_quietly(dir, false, &m), CAKE_OK);
    CU_ASSERT(
        was_said("15 tensors do not belong to this model and are not used, the first is model.layers.1."));
    cake_model_close(m);
    cake_buf_free(&text);
}

/* As AutoModel saves a decoder, as others save it inside of another model: the names differ, no byte does. */
static void test_prefixes(void)
{
    static const char *const bodies[] = {"", "language_model.", "model.language_model."};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (int shards = 1; shards < 3; shards++) {
            form f = {.shards = shards, .body = bodies[i], .tied = shards == 1};
            cake_model *m = load(write_model(&f), false, &everything);
            CU_ASSERT_EQUAL(said.len, 0);
            CU_ASSERT(is_matrix(cake_model_embedding(m), VOCAB, DIM, "model.embed_tokens.weight"));
            CU_ASSERT(is_vector(cake_model_ends(m)->final_norm, DIM, "model.norm.weight"));
            for (int layer = 0; layer < LAYERS; layer++)
                check_layer(m, layer);
            cake_model_close(m);
        }
}

/* Unneeded tensors may be missing; of two tensors with one name the index selects one. */
static void test_index_decides(void)
{
    form f = {.shards = 2, .twice = "model.layers.1.self_attn.k_proj.weight"};
    const char *dir = write_model(&f);
    for (int more = 0; more < 2; more++) {
        cake_model *m = load(dir, false, &everything);
        CU_ASSERT_EQUAL(said.len, 0);
        check_layer(m, 1);
        cake_model_close(m);
        cake_buf text = {0};
        CU_ASSERT_EQUAL(
            cake_file_read("test", path_in(dir, "model.safetensors.index.json"), false, 1 << 20, &text),
            CAKE_OK);
        cake_buf_cut(&text, text.len - 2);
        cake_buf_adds(&text, ",\"mtp.fc.weight\":\"part-1.safetensors\"}}");
        write_bytes(dir, "model.safetensors.index.json", text.data, text.len);
        cake_buf_free(&text);
    }
}

static void test_index(void)
{
    form f = {.shards = 2};
    const char *dir = write_model(&f);
    static const struct {
        const char *index, *message;
    } cases[] = {
        {"{}", "weight_map is empty or missing"},
        {"{\"weight_map\": [1]}", "weight_map is an array, an object"},
        {"{\"weight_map\": {\"a\": \"../part-0.safetensors\"}}", "found ../part-0.safetensors"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}",
         "found /etc/passwd, expected the name of a file in the same directory"},
        {"{\"weight_map\": {\"a\": \"..\"}}", "found .."},
        {"{\"weight_map\": {\"a\": \"\"}}", "the name of a file"},
        {"{\"weight_map\": {\"a\": \"part-0.safetensors\\u0000x\"}}", "the name of a file"},
        {"{\"weight_map\": {\"a\": 3}}", "found an integer"},
        {"{\"weight_map\": {\"a\": \"part-7.safetensors\"}}", "part-7.safetensors: cannot be opened"},
        {"{\"weight_map\": {\"a\": \"part-0.safetensors\"}}", "tensor lm_head.weight is missing"},
        {"{\"weight_map\": {\"model.embed_tokens.weight\": \"part-1.safetensors\", \"lm_head.weight\": "
         "\"part-0.safetensors\"}}",
         "model.embed_tokens.weight should be in part-1.safetensors, but is in "},
        {"{\"weight_map\"", "invalid JSON at byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bytes(dir, "model.safetensors.index.json", cases[i].index, strlen(cases[i].index));
        refuse(dir, cases[i].message);
    }
    unlink(path_in(dir, "model.safetensors.index.json"));
    refuse(dir, "has no model.safetensors, but part-0.safetensors, weights without an index");
}

/* ---- folders that are no model */

static void test_not_a_model(void)
{
    static const struct {
        const char *file, *bytes, *message;
    } cases[] = {
        {"adapter_config.json", "{\"base_model_name_or_path\": \"some/base\"}",
         "only an adapter (adapter_config.json, LoRA or another of PEFT) of some/base: merge it"},
        {"adapter_config.json", "", "of an unnamed model: merge it"},
        {"consolidated.safetensors", "x", "but consolidated.safetensors, weights in Mistral's own"},
        {"pytorch_model-00001-of-00002.bin", "x", "weights in PyTorch's format: load it with transformers"},
        {"consolidated.00.pth", "x", "consolidated.00.pth, weights in PyTorch's format"},
        {"last.ckpt", "x", "last.ckpt, a training checkpoint"},
        {"model.onnx", "x", "model.onnx, a model in ONNX's format"},
        {"training_args.bin", "x", ": cannot be opened: No such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int config = 0; config < 2; config++) {
            form f = {.shards = 1};
            const char *dir = write_model(&f), *missing = config ? "config.json" : "model.safetensors";
            unlink(path_in(dir, "model.safetensors"));
            if (config)
                unlink(path_in(dir, missing));
            write_bytes(dir, cases[i].file, cases[i].bytes, strlen(cases[i].bytes));
            refuse(dir, cases[i].message);
            CU_ASSERT(was_said(missing));
        }
    form f = {.shards = 2};
    const char *dir = write_model(&f);
    cake_model *m;
    write_bytes(dir, "a.gguf", "x", 1); /* besides safetensors it does not count */
    m = load(dir, false, &everything);
    cake_model_close(m);
    unlink(path_in(dir, "a.gguf"));
    write_bytes(dir, "adapter_config.json", "{\"base_model_name_or_path\": \"a/b\"}", 34);
    m = load(dir, false, &everything);
    CU_ASSERT(was_said("also holds an adapter of a/b (adapter_config.json), which is not applied"));
    cake_model_close(m);
    unlink(path_in(dir, "model.safetensors.index.json"));
    unlink(path_in(dir, "adapter_config.json"));
    refuse(dir, "has no model.safetensors, but part-0.safetensors, weights without an index");
    unlink(path_in(dir, "config.json"));
    refuse(dir, "/config.json: cannot be opened: No such file");
    f = (form){.shards = 1};
    dir = write_model(&f);
    unlink(path_in(dir, "model.safetensors"));
    unlink(path_in(dir, "config.json"));
    write_bytes(dir, "b.gguf", "x", 1);
    refuse(dir, "b.gguf: byte 0: the magic number needs 4 bytes, but the file ends at byte 1");
    write_bytes(dir, "a.gguf", "x", 1);
    refuse(dir, "has no config.json, but a.gguf, one of several models in llama.cpp's format: give the path");
}

/* ---- files that break */

#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 13984112\n"

/* A clone without git-lfs has files of three lines. */
static void test_pointers(void)
{
    static const char *const names[] = {"config.json", "generation_config.json", "part-1.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        form f = {.shards = 2};
        const char *dir = write_model(&f);
        char expected[128];
        write_bytes(dir, names[i], POINTER, sizeof POINTER - 1);
        snprintf(expected, sizeof expected, "/%s: is a git-lfs pointer, not the file: run `git lfs pull`",
                 names[i]);
        refuse(dir, expected);
    }
}

static void test_broken_files(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } cases[] = {
        {"", 0, "has 0 bytes, too short"},
        {"\x02\0\0\0\0\0\0", 7, "has 7 bytes, too short"},
        {"\x03\0\0\0\0\0\0\0{}", 10, "states a header of 3 bytes, but the file has only 10"},
        {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10, "states a header of 18446744073709551615 bytes"},
        {"\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10, "states a header of 18446744073709551608 bytes"},
        {"<!DOCTYPE html>", 15, "not a safetensors file"},
    };
    form f = {.shards = 1};
    const char *dir = write_model(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bytes(dir, "model.safetensors", cases[i].bytes, cases[i].len);
        refuse(dir, cases[i].message);
    }
    unlink(path_in(dir, "model.safetensors"));
    CU_ASSERT_EQUAL(mkdir(path_in(dir, "model.safetensors"), 0700), 0);
    refuse(dir, "model.safetensors: is a directory; expected a regular file");
    unlink(path_in(dir, "config.json"));
    refuse(dir, "/config.json: cannot be opened: No such file");
    refuse("/nonexistent", "/nonexistent: cannot be opened: No such file");
    refuse(suite_path("model/model.c"), "model.c: a directory with config.json");
}

/* ---- seeded weights */

static void test_dummy(void)
{
    form f = {.dtype = CAKE_BF16, .shards = 1};
    const char *dir = write_model(&f);
    unlink(path_in(dir, "model.safetensors"));
    cake_model *whole = load(dir, true, &everything);
    CU_ASSERT(cake_model_dtype(whole) == CAKE_BF16 && cake_model_bytes_read(whole) == 0);
    static const cake_range second = {1, 1};
    static const cake_weight_set part = {.range = &second, .n_range = 1, .head = true};
    cake_model *some = load(dir, true, &part);
    const cake_layer_weights *a = cake_model_layer(whole, 1), *b = cake_model_layer(some, 1);
    float *x = rows_of(&a->down), *y = rows_of(&b->down), *z = rows_of(&a->gate);
    CU_ASSERT(!memcmp(x, y, DIM * FF * sizeof *x));
    CU_ASSERT(memcmp(x, z, DIM * FF * sizeof *x) != 0);
    CU_ASSERT(!memcmp(a->q_bias, b->q_bias, HEADS * HEAD * sizeof(float)));
    CU_ASSERT(a->attn_norm[0] == 1 && a->q_norm[HEAD - 1] == 1 &&
              cake_model_ends(some)->final_norm[DIM - 1] == 1);
    free(x);
    free(y);
    free(z);
    cake_model_close(whole);
    cake_model_close(some);
}

/* ---- files of others */

/* The sharded BF16 form is the F32 one, rounded. */
static bool is_rounded(const cake_weight *exact, const cake_weight *rounded)
{
    float *x = rows_of(exact), *y = rows_of(rounded);
    bool same = exact->n_out == rounded->n_out && exact->n_in == rounded->n_in && rounded->dtype == CAKE_BF16;
    for (int i = 0; same && i < exact->n_out * exact->n_in; i++)
        same = cake_bf16_to_f32(cake_bf16_from_f32(x[i])) == y[i];
    free(x);
    free(y);
    return same;
}

static void test_stories(void)
{
    char single[512];
    const char *path = suite_asset("models/stories260K-hf");
    snprintf(single, sizeof single, "%s", path ? path : "");
    const char *sharded = suite_asset("models/stories260K-hf-bf16-sharded");
    if (!path || !sharded)
        return;
    static const cake_range five = {0, 5};
    static const cake_weight_set all = {.range = &five, .n_range = 1, .embed = true, .head = true};
    cake_model *a = load(single, false, &all), *b = load(sharded, false, &all);
    CU_ASSERT(cake_model_dtype(a) == CAKE_F32 && cake_model_dtype(b) == CAKE_BF16);
    CU_ASSERT_EQUAL(cake_model_parameters(a), 260032); /* total_size of the BF16 index, halved */
    CU_ASSERT(is_rounded(cake_model_embedding(a), cake_model_embedding(b)));
    for (int i = 0; i < 5; i++) {
        const cake_layer_weights *l = cake_model_layer(a, i), *m = cake_model_layer(b, i);
        CU_ASSERT(is_rounded(&l->q, &m->q) && is_rounded(&l->k, &m->k) && is_rounded(&l->v, &m->v));
        CU_ASSERT(is_rounded(&l->o, &m->o) && is_rounded(&l->gate, &m->gate) && is_rounded(&l->up, &m->up));
        CU_ASSERT(is_rounded(&l->down, &m->down));
    }
    cake_model_close(a);
    cake_model_close(b);
}

/* Weights that are written while they are loaded are of no one version. */
static void test_written(void)
{
    form f = {.dtype = CAKE_F32, .shards = 1};
    const char *dir = write_model(&f);
    char path[512];
    cake_model *model = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CU_ASSERT_EQUAL_FATAL(open_quietly(dir, false, &model), CAKE_OK);
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, (struct timespec[]){{.tv_sec = 1}, {.tv_sec = 2}}, 0), 0);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_model_load(model, &everything, &cake_kernels_ref, &(cake_loading){.threads = 1}),
                    CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(was_said("model.safetensors: was changed while it was read"));
    cake_model_close(model);
}

static void fingerprint(const char *dir, int64_t sums[2 + LAYERS * N_LAYER_SPEC + 1])
{
    cake_model *model = NULL;
    CU_ASSERT_EQUAL_FATAL(open_quietly(dir, false, &model), CAKE_OK);
    CU_ASSERT_EQUAL(cake_model_tensors(model), 2 + LAYERS * N_LAYER_SPEC + 1);
    CU_ASSERT_EQUAL(cake_model_fingerprint(model, sums), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(cake_model_tensor_name(model, 0), "lm_head.weight");
    cake_model_close(model);
}

/* The fingerprint of a tensor does not depend on the file that it is in; one value changes that of its own
 * tensor only. */
static void test_fingerprint(void)
{
    int64_t one[2 + LAYERS * N_LAYER_SPEC + 1], four[sizeof one / sizeof *one],
        other[sizeof one / sizeof *one];
    form f = {.dtype = CAKE_BF16, .shards = 1};
    fingerprint(write_model(&f), one);
    f.shards = 4;
    fingerprint(write_model(&f), four);
    f.huge = "lm_head.weight";
    fingerprint(write_model(&f), other);
    CU_ASSERT(!memcmp(one, four, sizeof one));
    CU_ASSERT(one[0] != other[0]);
    CU_ASSERT(!memcmp(one + 1, other + 1, sizeof one - sizeof *one));
}

static void test_free(void)
{
    cake_model_close(NULL);
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"every tensor in its place: F32, BF16, F16, single and sharded", test_values},
        {"matrices kept in another precision than the file's", test_kept},
        {"shares hold and read their own, and add up", test_shares},
        {"tied embeddings are held once", test_tied},
        {"missing, misshapen, repeated tensors", test_wrong_tensors},
        {"tensors without a place are mentioned", test_unused},
        {"names with other prefixes", test_prefixes},
        {"the index decides, and may name too much", test_index_decides},
        {"an index that lies or leads out of the directory", test_index},
        {"folders of adapters and of other formats", test_not_a_model},
        {"pointers of git-lfs", test_pointers},
        {"files that are no safetensors", test_broken_files},
        {"dummy weights are the same for any split", test_dummy},
        {"files of others: stories260K, single and sharded", test_stories},
        {"weights that change while they are read", test_written},
        {"a fingerprint is of a tensor's bytes", test_fingerprint},
        {"closing nothing is fine", test_free},
    };
    return SUITE_MAIN("model", tests);
}
