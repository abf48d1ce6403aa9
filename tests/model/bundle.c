/* SPDX-License-Identifier: Apache-2.0
 *
 * Bundles of small odd models have the tensors of the whole model; inconsistent manifests; unfinished
 * bundles.
 */
#include "model/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/log.h"
#include "bundle/stage.h"
#include "bundle/writer.h"
#include "model/tensor_walk.h"
#include "models.h"
#include "tests/suite.h"

static cake_buf said;

static void listen(void)
{
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
}

/* Whether the messages since listen() contain text. */
static bool heard(const char *text)
{
    cake_log_capture(NULL);
    bool yes = said.data && strstr(said.data, text);
    if (!yes)
        printf("\n    expected: %s\n    said: %s\n", text, said.data ? said.data : "nothing");
    return yes;
}

/* A fresh name below suite_tmp; in a static buffer. */
static const char *fresh(void)
{
    static char dir[256];
    static int n;
    snprintf(dir, sizeof dir, "%s/bundles-%d", suite_tmp(), n++);
    return dir;
}

static cake_err stage(const char *model, const char *dir, int ranks)
{
    const char *name = strrchr(model, '/');
    cake_stage_options options = {
        .model = model, .name = name ? name + 1 : model, .directory = dir, .n_rank = ranks};
    cake_comm world = {.size = 1, .local_size = 1};
    return cake_stage(&options, &world);
}

static cake_model *load(const char *dir, const cake_weight_set *share)
{
    cake_model *model = NULL;
    cake_model_options options = {0};
    CU_ASSERT_EQUAL_FATAL(cake_model_open(dir, &options, &model), CAKE_OK);
    CU_ASSERT_EQUAL(cake_model_load(model, share, cake_kernels_at(0), &(cake_loading){.threads = 2}),
                    CAKE_OK);
    return model;
}

/* A bundle's weights in memory are those of the whole model, byte for byte, for all kinds of files. */
static void test_same(void)
{
    static const form forms[] = {
        {.dtype = CAKE_F32, .shards = 1, .tied = true},
        {.dtype = CAKE_BF16, .shards = 3},
        {.dtype = CAKE_F16, .shards = 4, .tied = true, .both = true},
        {.dtype = CAKE_BF16, .shards = 2, .tied = true, .both = true, .head_differs = true},
        {.dtype = CAKE_F16, .shards = 1, .header_odd = 3},
        {.dtype = CAKE_F32, .shards = 2, .tied = true, .without = "model.embed_tokens.weight", .both = true},
        {.dtype = CAKE_BF16, .shards = 1, .tied = true, .body = ""},
        {.dtype = CAKE_BF16, .shards = 2, .twice = "model.layers.1.self_attn.k_proj.weight", .body = ""},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char whole[256], dir[256];
        snprintf(whole, sizeof whole, "%s", write_model(&forms[i]));
        snprintf(dir, sizeof dir, "%s", fresh());
        listen();
        CU_ASSERT_EQUAL_FATAL(stage(whole, dir, 2), CAKE_OK);
        CU_ASSERT(heard("2 written"));
        cake_log_level(CAKE_ERROR); /* the model with two heads warns */
        for (int rank = 0; rank < 2; rank++) {
            cake_range range = {rank, 1};
            cake_weight_set share = {.range = &range, .n_range = 1, .embed = !rank, .head = !rank};
            cake_buf own = {0};
            cake_bundle_writer_path(dir, rank, &own);
            cake_model *a = load(whole, &share), *b = load(own.data, &share);
            CU_ASSERT_EQUAL_FATAL(a->held[0].arena.size, b->held[0].arena.size);
            CU_ASSERT(!memcmp(a->held[0].arena.base, b->held[0].arena.base, a->held[0].arena.size));
            CU_ASSERT(a->config.tied == b->config.tied && a->parameters == b->parameters &&
                      a->dtype == b->dtype && a->embed_dtype == b->embed_dtype &&
                      !memcmp(a->keeps, b->keeps, sizeof a->keeps));
            CU_ASSERT(!a->bundle && b->bundle && b->bundle->rank == rank);
            cake_model_close(a);
            cake_model_close(b);
            cake_buf_free(&own);
        }
        cake_log_level(CAKE_INFO);
    }
}

/* Another rank's layers are known, but not here. */
static void test_share(void)
{
    const char *whole = write_model(&(form){.dtype = CAKE_F32, .shards = 1});
    char dir[256];
    snprintf(dir, sizeof dir, "%s", fresh());
    cake_model *model = NULL;
    cake_model_options options = {0};
    cake_range range = {0, 2};
    cake_weight_set share = {.range = &range, .n_range = 1};
    cake_buf own = {0};
    listen();
    CU_ASSERT_EQUAL_FATAL(stage(whole, dir, 2), CAKE_OK);
    cake_bundle_writer_path(dir, 1, &own);
    CU_ASSERT_EQUAL_FATAL(cake_model_open(own.data, &options, &model), CAKE_OK);
    CU_ASSERT_EQUAL(cake_model_load(model, &share, cake_kernels_at(0), &(cake_loading){.threads = 1}),
                    CAKE_ERR_FATAL);
    CU_ASSERT(heard("tensor model.layers.0.input_layernorm.weight is in the bundle of another rank"));
    cake_model_close(model);
    cake_buf_free(&own);
}

/* ---- manifests */

static const char good_head[] = "{\"cake_bundle\": 1, \"model\": {\"name\": \"m\", \"layers\": 2, \"tied\": "
                                "false, \"files\": {\"config.json\": [3, "
                                "\"00000001\"]}, \"weights\": {\"w\": [100, 5]}, \"tensors\": {\"a\": "
                                "{\"dtype\": \"F32\", \"shape\": [2, 3], \"file\": "
                                "0, \"begin\": 16}, \"b\": {\"dtype\": \"F16\", \"shape\": [], \"file\": 0, "
                                "\"begin\": 98}}}, \"ranks\": 2, \"plan\": "
                                "[[0, 0, 1], [1, 1, 1]], \"rank\": 1}";

static void test_broken(void)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"cake_bundle\": 1", "\"cake_bundle\": 2", "not a bundle of this version"},
        {"\"layers\": 2", "\"layers\": 0", "model.layers"},
        {"\"layers\": 2", "\"layers\": 2000000000", "model.layers"},
        {"\"layers\": 2", "\"layers\": 3", "do not cover the layers"},
        {"[3, \"00000001\"]", "[3, \"0000001\"]", "names, sizes and checksums"},
        {"[3, \"00000001\"]", "[3, \"0000000G\"]", "names, sizes and checksums"},
        {"[3, \"00000001\"]", "[-3, \"00000001\"]", "names, sizes and checksums"},
        {"\"config.json\"", "\"../config.json\"", "names, sizes and checksums"},
        {"\"config.json\"", "\"a/../../b\"", "names, sizes and checksums"},
        {"\"config.json\"", "\"/etc/passwd\"", "names, sizes and checksums"},
        {"\"F32\"", "\"F7\"", "dtype \"F7\" is unknown"},
        {"[2, 3]", "[2, 300]", "has an impossible offset"},
        {"[2, 3]", "[-2, 3]", "shape holds a size"},
        {"[2, 3]", "7", "shape has to be an array"},
        {"\"begin\": 98", "\"begin\": 99", "has an impossible offset"},
        {"\"begin\": 98", "\"begin\": 9223372036854775807", "has an impossible offset"},
        {"\"file\": 0, \"begin\": 98", "\"file\": 1, \"begin\": 98", "has an impossible offset"},
        {"\"tensors\": {", "\"tensors\": 1, \"x\": {", "tensors are not an object"},
        {"\"ranks\": 2", "\"ranks\": 1", "do not cover the layers"},
        {"\"ranks\": 2", "\"ranks\": 99999999", "do not cover the layers"},
        {"\"rank\": 1", "\"rank\": 2", "do not cover the layers"},
        {"[1, 1, 1]", "[1, 0, 1]", "do not cover the layers"},
        {"[1, 1, 1]", "[1, 1, 2]", "do not cover the layers"},
        {"[1, 1, 1]", "[1, 1, 0]", "do not cover the layers"},
        {"[1, 1, 1]", "[2, 1, 1]", "do not cover the layers"},
        {", [1, 1, 1]", "", "do not cover the layers"},
        {"\"rank\": 1}", "\"rank\": 1, \"sums\": {\"c\": \"00000000\"}}", "sums hold entries other"},
        {"\"rank\": 1}", "\"rank\": 1, \"sums\": {\"a\": 1}}", "sums hold entries other"},
        {"\"rank\": 1}", "\"rank\": 1", "bundle.json: "},
        {"{\"cake_bundle\"", "[{\"cake_bundle\"", "bundle.json: "},
    };
    cake_bundle *b = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_bundle_parse(good_head, strlen(good_head), "bundle.json", &b), CAKE_OK);
    CU_ASSERT(b->n_tensor == 2 && b->tensor[0].end == 40 && b->tensor[1].end == 100 && !b->held[0] &&
              b->n_hop == 2);
    cake_bundle_close(b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(good_head, cases[i].from);
        cake_buf text = {0};
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        cake_buf_add(&text, good_head, (size_t)(at - good_head));
        cake_buf_adds(&text, cases[i].to);
        cake_buf_adds(&text, at + strlen(cases[i].from));
        b = NULL;
        listen();
        CU_ASSERT_EQUAL(cake_bundle_parse(text.data, text.len, "bundle.json", &b), CAKE_ERR_FATAL);
        CU_ASSERT(heard(cases[i].message) && !b);
        cake_buf_free(&text);
    }
}

/* Every byte of it is under its own checksum, or is it. */
static void test_flips(void)
{
    const char *dir = fresh();
    cake_bundle *b = NULL;
    cake_buf text = {0};
    char path[300];
    CU_ASSERT_EQUAL_FATAL(cake_bundle_writer_make(dir), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_bundle_parse(good_head, strlen(good_head), "head", &b), CAKE_OK);
    b->held[1] = true;
    b->sum[1] = 0xABCDEF;
    cake_bundle_add(b, good_head, &text);
    cake_bundle_close(b);
    snprintf(path, sizeof path, "%s/bundle.json", dir);
    for (size_t at = 0; at <= text.len; at++) {
        if (at < text.len)
            text.data[at] ^= 1;
        write_bytes(dir, "bundle.json", text.data, text.len);
        listen();
        b = NULL;
        CU_ASSERT_EQUAL(cake_bundle_open(dir, &b), at < text.len ? CAKE_ERR_FATAL : CAKE_OK);
        CU_ASSERT(at == text.len || heard("bundle.json: "));
        cake_log_capture(NULL);
        if (at < text.len)
            text.data[at] ^= 1;
        else
            CU_ASSERT(b && b->held[1] && b->sum[1] == 0xABCDEF && !b->held[0]);
        cake_bundle_close(b);
    }
    unlink(path);
    CU_ASSERT_EQUAL(cake_bundle_open(dir, &b), CAKE_END);
    cake_buf_free(&text);
}

/* ---- begun and left */

typedef struct piecework {
    cake_bundle *wanted;
    char data[100];
} piecework;

static piecework begin_work(void)
{
    piecework p = {0};
    CU_ASSERT_EQUAL_FATAL(cake_bundle_parse(good_head, strlen(good_head), "head", &p.wanted), CAKE_OK);
    p.wanted->held[0] = p.wanted->held[1] = true;
    for (int i = 0; i < 100; i++)
        p.data[i] = (char)(3 * i + 1);
    return p;
}

static void test_begun(void)
{
    char dir[300];
    const cake_buf text[] = {{.data = (char[]){"{} "}, .len = 3}};
    piecework p = begin_work();
    cake_bundle_writer *s = NULL;
    p.wanted->file[0].sum = cake_crc("{} ", 3);
    /* the head with that checksum */
    cake_buf head = {0};
    const char *at = strstr(good_head, "00000001");
    cake_buf_addf(&head, "%.*s%08x%s", (int)(at - good_head), good_head, (unsigned)p.wanted->file[0].sum,
                  at + 8);
    snprintf(dir, sizeof dir, "%s/deep/down", fresh());

    CU_ASSERT_EQUAL_FATAL(cake_bundle_writer_open(dir, p.wanted, head.data, &s), CAKE_OK);
    CU_ASSERT(!cake_bundle_writer_whole(s) && !cake_bundle_writer_has(s, 0) && !cake_bundle_writer_has(s, 1));
    CU_ASSERT_EQUAL(cake_bundle_writer_write(s, 0, 0, p.data, 10), CAKE_OK);
    CU_ASSERT(!cake_bundle_writer_has(s, 0));
    CU_ASSERT_EQUAL(cake_bundle_writer_write(s, 0, 10, p.data + 10, 14), CAKE_OK);
    CU_ASSERT(cake_bundle_writer_has(s, 0));
    cake_bundle_writer *second = NULL;
    listen();
    CU_ASSERT_EQUAL(cake_bundle_writer_open(dir, p.wanted, head.data, &second), CAKE_ERR_FATAL);
    CU_ASSERT(heard("another cake-mpi stage is writing there"));
    cake_bundle_writer_close(s); /* as if it had been killed */

    cake_bundle *peeked = cake_bundle_writer_peek(dir, 1);
    CU_ASSERT(peeked && peeked->n_rank == 2 && peeked->held[0] && !peeked->held[1]);
    cake_bundle_close(peeked);
    CU_ASSERT_EQUAL_FATAL(cake_bundle_writer_open(dir, p.wanted, head.data, &s), CAKE_OK);
    CU_ASSERT(!cake_bundle_writer_whole(s) && cake_bundle_writer_has(s, 0) && !cake_bundle_writer_has(s, 1));
    CU_ASSERT_EQUAL(cake_bundle_writer_kept(s), 24);
    CU_ASSERT_EQUAL(cake_bundle_writer_write(s, 1, 0, p.data + 50, 2), CAKE_OK);
    CU_ASSERT_EQUAL(cake_bundle_writer_finish(s, text), CAKE_OK);
    cake_bundle_writer_close(s);

    cake_buf own = {0};
    cake_bundle_writer_path(dir, 1, &own);
    cake_bundle *b = NULL;
    cake_tensor_index *store = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_bundle_open(own.data, &b), CAKE_OK);
    CU_ASSERT_EQUAL(b->sum[0], cake_crc(p.data, 24));
    CU_ASSERT_EQUAL(b->sum[1], cake_crc(p.data + 50, 2));
    CU_ASSERT_EQUAL(cake_bundle_check_files(b, own.data), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_tensor_index_open_bundle(own.data, b, &store), CAKE_OK);
    char read[24];
    const cake_indexed_tensor *stored = cake_tensor_index_find(store, "a");
    CU_ASSERT(stored && stored->has_crc);
    CU_ASSERT_EQUAL(cake_tensor_file_read(stored->file, stored->tensor, 0, read, 24, NULL), CAKE_OK);
    CU_ASSERT(!memcmp(read, p.data, 24));
    cake_tensor_index_close(store);
    CU_ASSERT_EQUAL_FATAL(cake_bundle_writer_open(dir, p.wanted, head.data, &s), CAKE_OK);
    CU_ASSERT(cake_bundle_writer_whole(s));
    cake_bundle_writer_close(s);

    /* its tensors contradict the manifest */
    b->held[0] = false;
    listen();
    CU_ASSERT_EQUAL(cake_tensor_index_open_bundle(own.data, b, &store), CAKE_ERR_FATAL);
    CU_ASSERT(heard("has 2 tensors, but"));
    b->held[0] = true;
    b->tensor[1].name[0] = 'c';
    listen();
    CU_ASSERT_EQUAL(cake_tensor_index_open_bundle(own.data, b, &store), CAKE_ERR_FATAL);
    CU_ASSERT(heard("has tensor b where c of"));
    cake_bundle_close(b);
    cake_bundle_close(p.wanted);
    cake_buf_free(&own);
    cake_buf_free(&head);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the weights of the whole model", test_same},
        {"layers of another rank", test_share},
        {"manifests that contradict themselves", test_broken},
        {"flipped bits of a manifest", test_flips},
        {"begun, left, finished", test_begun},
    };
    int status = SUITE_MAIN("bundle", tests);
    cake_buf_free(&said);
    return status;
}
