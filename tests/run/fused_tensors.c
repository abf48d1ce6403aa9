/* SPDX-License-Identifier: Apache-2.0
 *
 * Golden mixtures written once more as transformers 5 saves them, with one tensor for all experts of a layer:
 * the same bits come out of them. And messages where one of these tensors is missing.
 */
#include <glob.h>

#include "base/file.h"
#include "base/log.h"
#include "golden_models.h"
#include "tests/model/tensors.h"

enum { MAX_FILES = 4, HEADER_AT = 8 };

/* A golden model's files as they are. */
typedef struct stored_model {
    cake_buf bytes[MAX_FILES];
    cake_json *header[MAX_FILES];
    size_t data_at[MAX_FILES];
    int n;
} stored_model;

static void read_stored(const char *model, stored_model *m)
{
    glob_t files;
    CU_ASSERT_EQUAL_FATAL(glob(golden_path(model, "*.safetensors"), 0, NULL, &files), 0);
    CU_ASSERT_FATAL(files.gl_pathc <= MAX_FILES);
    *m = (stored_model){.n = (int)files.gl_pathc};
    for (int i = 0; i < m->n; i++) {
        cake_fault fault;
        uint64_t length;
        CU_ASSERT_EQUAL_FATAL(
            cake_file_read("test", files.gl_pathv[i], false, (size_t)64 << 20, &m->bytes[i]), CAKE_OK);
        memcpy(&length, m->bytes[i].data, sizeof length);
        m->data_at[i] = HEADER_AT + (size_t)length;
        CU_ASSERT_EQUAL_FATAL(
            cake_json_parse(m->bytes[i].data + HEADER_AT, (size_t)length, &m->header[i], &fault), CAKE_OK);
    }
    globfree(&files);
}

static void free_stored(stored_model *m)
{
    for (int i = 0; i < m->n; i++) {
        cake_json_free(m->header[i]);
        cake_buf_free(&m->bytes[i]);
    }
}

/* Appends a tensor's bytes and returns its entry of the header; NULL: there is none. */
static const cake_json *append(const stored_model *m, const char *name, cake_buf *data)
{
    for (int i = 0; i < m->n; i++) {
        const cake_json *entry = cake_json_get(m->header[i], name);
        const cake_json *offsets = cake_json_get(entry, "data_offsets");
        const int64_t from = cake_json_int(cake_json_at(offsets, 0), 0),
                      to = cake_json_int(cake_json_at(offsets, 1), 0);
        if (!entry)
            continue;
        cake_buf_add(data, m->bytes[i].data + m->data_at[i] + from, (size_t)(to - from));
        return entry;
    }
    return NULL;
}

static void add_entry(writer *w, const char *name, const cake_json *like, const char *shape, size_t begin)
{
    cake_buf_addf(&w->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                  w->header.len ? "," : "{", name, cake_json_text(cake_json_get(like, "dtype"), NULL), shape,
                  begin, w->data.len);
}

/* The matrices `parts` [n] of all experts, whose names begin with `stem`, as one tensor. */
static void fuse(writer *w, const stored_model *m, const char *stem, const char *const *parts, int n,
                 const char *name)
{
    const size_t begin = w->data.len;
    const cake_json *like = NULL, *entry;
    int n_expert = 0;
    for (bool more = true; more; n_expert += more)
        for (int i = 0; i < n && more; i++) {
            char of[256];
            snprintf(of, sizeof of, "%s%d.%s.weight", stem, n_expert, parts[i]);
            entry = append(m, of, &w->data);
            more = entry;
            like = entry ? entry : like;
        }
    char shape[96];
    const cake_json *of_one = cake_json_get(like, "shape");
    snprintf(shape, sizeof shape, "[%d,%lld,%lld]", n_expert,
             (long long)cake_json_int(cake_json_at(of_one, 0), 0) * n,
             (long long)cake_json_int(cake_json_at(of_one, 1), 0));
    add_entry(w, name, like, shape, begin);
}

/* A tensor that is no expert's, or all experts' of a layer where it is one of the first expert's. */
static void add_fused(writer *w, const stored_model *m, const char *name)
{
    static const char *const gate_up[][2] = {{"gate_proj", "up_proj"}, {"w1", "w3"}}, *const down[] = {
                                                                                          "down_proj", "w2"};
    const char *old = strstr(name, "block_sparse_moe."), *expert = strstr(name, ".experts.");
    char to[256], stem[256], *at;
    snprintf(to, sizeof to, "%.*s%s%s", old ? (int)(old - name) : (int)strlen(name), name, old ? "mlp." : "",
             old ? old + strlen("block_sparse_moe.") : "");
    if (!expert) {
        cake_buf shape = {0};
        const size_t begin = w->data.len;
        const cake_json *entry = append(m, name, &w->data);
        cake_json_add_node(&shape, cake_json_get(entry, "shape"));
        at = strstr(to, "mlp.gate.e_score_correction_bias");
        if (old && at)
            memmove(at + 4, at + 9, strlen(at + 9) + 1);
        add_entry(w, to, entry, shape.data, begin);
        cake_buf_free(&shape);
        return;
    }
    expert += strlen(".experts.");
    snprintf(stem, sizeof stem, "%.*s", (int)(expert - name), name);
    at = strstr(to, ".experts.") + strlen(".experts.");
    for (int i = 0; i < 2; i++) {
        char first[32], last[32];
        snprintf(first, sizeof first, "0.%s.weight", gate_up[i][0]);
        snprintf(last, sizeof last, "0.%s.weight", down[i]);
        if (!strcmp(expert, first)) {
            strcpy(at, "gate_up_proj");
            fuse(w, m, stem, gate_up[i], 2, to);
        } else if (!strcmp(expert, last)) {
            strcpy(at, "down_proj");
            fuse(w, m, stem, &down[i], 1, to);
        }
    }
}

/* A directory with the model so, without the tensors that have `without` in their names; in a static
 * buffer. */
static const char *write_fused(const char *model, const char *without)
{
    static char dir[256];
    static int n_dir;
    stored_model m;
    writer w = {0};
    cake_buf config = {0};
    snprintf(dir, sizeof dir, "%s/fused-%d", suite_tmp(), n_dir++);
    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
    CU_ASSERT_EQUAL_FATAL(
        cake_file_read("test", golden_path(model, "config.json"), false, (size_t)1 << 20, &config), CAKE_OK);
    write_bytes(dir, "config.json", config.data, config.len);
    read_stored(model, &m);
    for (int i = 0; i < m.n; i++)
        for (void *it = cake_json_first(m.header[i]); it; it = cake_json_next(m.header[i], it))
            if (strcmp(cake_json_key(it, NULL), "__metadata__") &&
                !(without && strstr(cake_json_key(it, NULL), without)))
                add_fused(&w, &m, cake_json_key(it, NULL));
    cake_buf_addc(&w.header, '}');
    write_tensors(dir, "model.safetensors", w.header.data, w.header.len, w.data.data, w.data.len);
    cake_buf_free(&w.header);
    cake_buf_free(&w.data);
    cake_buf_free(&config);
    free_stored(&m);
    return dir;
}

static void check_bits(const char *model)
{
    cake_json *expected = read_expected(model);
    const cake_json *sequence = cake_json_at(cake_json_get(expected, "sequences"), 0);
    const cake_kernels *kernels = cake_kernels_at(cake_kernels_best());
    golden_model apart = {0}, fused = {0};
    open_model(&apart, model, kernels, "auto", CAKE_BF16);
    open_model_in(&fused, write_fused(model, NULL), kernels, "auto", CAKE_BF16);
    const size_t bytes = (1 + 2) * (size_t)cake_model_config(apart.model)->n_vocab * sizeof(float);
    float *one = scores_of(&apart, sequence, false), *other = scores_of(&fused, sequence, false);
    CU_ASSERT(!cake_model_config(apart.model)->moe.fused && cake_model_config(fused.model)->moe.fused);
    CU_ASSERT_EQUAL(memcmp(one, other, bytes), 0);
    free(one);
    free(other);
    close_model(&apart);
    close_model(&fused);
    cake_json_free(expected);
}

static void test_bits(void)
{
    static const char *const mixtures[] = {"qwen3moe-mixed",   "qwen3moe-step",   "mixtral-eight",
                                           "olmoe-plain",      "glm4moe-groups",  "minimax-part",
                                           "deepseek3-groups", "deepseek3-whole", "glm4lite-list"};
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
        check_bits(mixtures[i]);
}

/* In the first layer with experts, too. */
static void test_missing(void)
{
    static const char *const cases[][3] = {
        {"glm4moe-groups", "layers.1.mlp.experts.0.gate_proj", "model.layers.1.mlp.experts.gate_up_proj is"},
        {"glm4moe-groups", "layers.1.mlp.experts.0.down_proj", "model.layers.1.mlp.experts.down_proj is"},
        {"mixtral-eight", "layers.0.block_sparse_moe.experts.0.w2",
         "model.layers.0.mlp.experts.down_proj is"},
        {"mixtral-eight", "layers.2.block_sparse_moe.gate", "model.layers.2.mlp.gate.weight is"},
        {"glm4moe-groups", "layers.1.mlp.experts.0.",
         "model.layers.1.mlp.experts.0.gate_proj.weight is missing: an incomplete download"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_model *model = NULL;
        const cake_model_options options = {0};
        const char *dir = write_fused(cases[i][0], cases[i][1]);
        cake_buf *previous = cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_model_open(dir, &options, &model), CAKE_ERR_FATAL);
        cake_log_capture(previous);
        CU_ASSERT(strstr(said.data, cases[i][2]) != NULL);
        cake_buf_free(&said);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"the bits are those of a tensor for each expert", test_bits},
        {"a missing tensor is named", test_missing},
    };
    return SUITE_MAIN("fused", tests);
}
