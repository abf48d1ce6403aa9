/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of sentence-transformers: what is read, and what is refused by name.
 */
#include "config/embedder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/suite.h"

static const char *dir;

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

#define TYPE      "\"sentence_transformers.models."
#define MODEL     "{\"path\": \"\", \"type\": " TYPE "Transformer\"}"
#define POOLING   "{\"path\": \"1_Pooling\", \"type\": " TYPE "Pooling\"}"
#define DENSE     "{\"path\": \"2_Dense\", \"type\": \"some.newer.module.Dense\"}"
#define NORMALIZE "{\"path\": \"3\", \"type\": " TYPE "Normalize\"}"

typedef struct file_case {
    const char *modules, *pooling, *dense, *limits;
    const char *message; /* NULL: good */
} file_case;

static const file_case cases[] = {
    {"[" MODEL ", " POOLING ", " DENSE ", " NORMALIZE "]", "{\"pooling_mode_cls_token\": true}",
     "{\"in_features\": 8, \"out_features\": 4}", "{\"max_seq_length\": 7}", NULL},
    {"[" MODEL ", " POOLING "]", "{\"pooling_mode\": \"median\"}", "{}", "{}", "one of cls, mean, max"},
    {"[" MODEL ", " POOLING "]",
     "{\"pooling_mode\": [\"cls\", \"cls\", \"cls\", \"cls\", \"cls\", \"cls\", \"cls\"]}", "{}", "{}",
     "an array of at most 6 of these"},
    {"[" MODEL ", " POOLING ", " POOLING "]", "{}", "{}", "{}", "a second Pooling module"},
    {"[" MODEL ", " POOLING "]", "{\"pooling_mode\": \"mean\", \"embedding_dimension\": 9}", "{}", "{}",
     "the model's hidden_size, 8, is expected"},
    {"[" MODEL ", " DENSE "]", "{}", "{\"in_features\": 8, \"out_features\": 4}", "{}",
     "a Dense module before the pooling"},
    {"[" MODEL ", " POOLING ", " DENSE "]", "{\"pooling_mode\": \"mean\"}",
     "{\"in_features\": 9, \"out_features\": 4}", "{}", "8, what the module before gives, is expected"},
    {"[" MODEL ", " POOLING ", " DENSE "]", "{\"pooling_mode\": \"mean\"}",
     "{\"in_features\": 8, \"out_features\": 4, \"activation_function\": \"torch.nn.ELU\"}", "{}",
     "Identity, Tanh, GELU or ReLU is expected"},
    {"[" MODEL ", " POOLING ", {\"path\": \"x\", \"type\": \"a.CNN\"}]", "{\"pooling_mode\": \"mean\"}", "{}",
     "{}", "a module of type CNN is not supported"},
    {"[" MODEL ", {\"path\": \"../x\", \"type\": \"a.Pooling\"}]", "{}", "{}", "{}",
     "a path inside the model's directory"},
    {"[" POOLING "]", "{}", "{}", "{}", "the first module is Pooling"},
    {"[]", "{}", "{}", "{}", "expected an array of modules"},
    {"[" MODEL ", " POOLING "]", "{\"pooling_mode\": \"mean\"}", "{}", "{\"do_lower_case\": true}",
     "let the tokenizer's normalizer do it"},
    {"[" MODEL ", " POOLING "]", "{\"pooling_mode\": \"mean\"}", "{}", "[]", "expected an object"},
    {"[" MODEL ", " NORMALIZE ", " POOLING "]", "{}", "{}", "{}", "a Normalize module before the pooling"},
    {"[" MODEL "]", "{}", "{}", "{}", "there is no Pooling among its modules"}};

static void test_files(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_embedder e = cake_embedder_default(8, false);
        cake_buf said = {0};
        put("modules.json", cases[i].modules);
        put("1_Pooling/config.json", cases[i].pooling);
        put("2_Dense/config.json", cases[i].dense);
        put("sentence_bert_config.json", cases[i].limits);
        cake_buf *before = cake_log_capture(&said);
        cake_err err = cake_embedder_read(dir, 8, &e);
        cake_log_capture(before);
        CU_ASSERT_EQUAL(err, cases[i].message ? CAKE_ERR_FATAL : CAKE_OK);
        CU_ASSERT(!cases[i].message || (said.data && strstr(said.data, cases[i].message)));
        CU_ASSERT(cases[i].message ? !e.given && e.pooling[0] == CAKE_POOL_LAST
                                   : e.given && e.pooling[0] == CAKE_POOL_FIRST && e.normalize &&
                                         e.n_dense == 1 && e.dense[0].act == CAKE_DENSE_TANH &&
                                         e.dense[0].bias && e.n_out == 4 && e.max_tokens == 7);
        cake_buf_free(&said);
    }
}

/* Several poolings: in the order of the list, or of the older switches. */
static void test_several(void)
{
    static const struct {
        const char *config;
        int n;
        cake_pooling pooling[CAKE_N_POOLING];
    } of[] = {{"{\"pooling_mode\": [\"mean\", \"cls\", \"mean\"]}",
               3,
               {CAKE_POOL_MEAN, CAKE_POOL_FIRST, CAKE_POOL_MEAN}},
              {"{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": true}",
               2,
               {CAKE_POOL_FIRST, CAKE_POOL_MEAN}},
              {"{}", 1, {CAKE_POOL_MEAN}}};
    put("modules.json", "[" MODEL ", " POOLING "]");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        cake_embedder e = cake_embedder_default(8, false);
        put("1_Pooling/config.json", of[i].config);
        CU_ASSERT_EQUAL(cake_embedder_read(dir, 8, &e), CAKE_OK);
        CU_ASSERT(e.n_pooling == of[i].n && e.n_out == 8 * of[i].n);
        CU_ASSERT(!memcmp(e.pooling, of[i].pooling, sizeof e.pooling));
    }
}

static void test_missing(void)
{
    char path[256];
    cake_embedder e = cake_embedder_default(8, true);
    cake_buf said = {0};
    put("modules.json", cases[0].modules);
    put("1_Pooling/config.json", cases[0].pooling);
    snprintf(path, sizeof path, "%s/2_Dense/config.json", dir);
    unlink(path);
    cake_buf *before = cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_embedder_read(dir, 8, &e), CAKE_ERR_FATAL);
    cake_log_capture(before);
    CU_ASSERT(said.data && strstr(said.data, "modules.json names it"));
    cake_buf_free(&said);
    snprintf(path, sizeof path, "%s/modules.json", dir);
    unlink(path);
    CU_ASSERT(!cake_embedder_read(dir, 8, &e) && !e.given && e.pooling[0] == CAKE_POOL_MEAN && !e.normalize);
}

int main(void)
{
    static const suite_test tests[] = {{"modules, pooling, limits", test_files},
                                       {"several poolings", test_several},
                                       {"missing files", test_missing}};
    char path[256];
    dir = suite_tmp();
    snprintf(path, sizeof path, "%s/1_Pooling", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/2_Dense", dir);
    mkdir(path, 0700);
    return SUITE_MAIN("embedder", tests);
}
