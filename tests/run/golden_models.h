/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden models of tests/golden, layer by layer without the program around them: fed with the tokens of
 * transformers in float64, by whichever operations.
 */
#ifndef CAKE_TESTS_GOLDEN_MODELS_H
#define CAKE_TESTS_GOLDEN_MODELS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "embed/embed.h"
#include "formats/json.h"
#include "logits/logits.h"
#include "slice/slice.h"
#include "tests/suite.h"

static const char *const models[] = {
    "qwen3.5-text",    "qwen3.5-wrap",   "qwen3.5-hub",      "qwen3.5-tiles",   "llama-plain",
    "llama-linear",    "llama-llama3",   "llama-old3",       "qwen2-wide",      "qwen2-split",
    "qwen3-nine",      "qwen3-bias",     "qwen2-slide",      "qwen3-dynamic",   "mistral-window",
    "ministral-mixed", "gemma2-caps",    "gemma3-new",       "gemma3-old",      "gemma3-vision",
    "mistral3-vision", "phi3-long",      "phi3-window",      "olmo2-after",     "olmo3-yarn",
    "exaone4-mixed",   "smollm3-nope",   "apertus-plain",    "gemma4-dense",    "ministral3-scaled",
    "qwen3moe-mixed",  "qwen3moe-step",  "mixtral-eight",    "olmoe-plain",     "glm4moe-groups",
    "minimax-part",    "qwen3next-keys", "qwen3.5moe-wrap",  "gptoss-sinks",    "gptoss-bf16",
    "gemma4-wrap",     "gemma4-saved",   "deepseek3-groups", "deepseek3-whole", "glm4lite-list",
    "mistral4-scaled", "kimi25-hub",     "large3-wrap"};
enum {
    N_MODEL = sizeof models / sizeof *models,
    N_DELTA = 4 /* the first ones */,
    N_MIXTURE = 18 /* the last ones */,
    N_LATENT = 6 /* the last of these */,
    N_DENSE = N_MODEL - N_MIXTURE,
    N_GPU = N_DENSE - 3 /* all before apertus: those that GPUs have kernels for */,
    MAX_ROW = 64,
    CONTEXT = 512,
    N_TOP = 5
};

/* "golden/MODEL/file" in the source tree; in a static buffer. */
static inline const char *golden_path(const char *model, const char *file)
{
    char name[128];
    snprintf(name, sizeof name, "golden/%s/%s", model, file);
    return suite_path(name);
}

static inline cake_json *read_expected(const char *model)
{
    cake_json *root = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_json_load("golden", golden_path(model, "expected.json"), false, &root),
                          CAKE_OK);
    CU_ASSERT_FATAL(cake_json_size(cake_json_get(root, "sequences")) > 0);
    return root;
}

static inline double real_at(const cake_json *array, size_t i)
{
    return cake_json_real(cake_json_at(array, i), NAN);
}

typedef struct golden_model {
    cake_model *model;
    const cake_kernels *kernels;
    cake_slice *slice;
    cake_logits *logits;
    cake_wave *wave;
    bool spares;        /* of a prompt only the last row is read */
    cake_slice *behind; /* the layer of multi-token prediction; set mtp before the model is opened */
    bool mtp;
} golden_model;

static inline void open_model_in(golden_model *r, const char *dir, const cake_kernels *kernels,
                                 const char *dtype, cake_dtype kv_dtype)
{
    cake_model_options options = {.convert = strcmp(dtype, "auto"), .mtp = r->mtp};
    for (int i = 0; i < CAKE_N_KEPT; i++)
        if (!strcmp(dtype, cake_dtype_name((cake_dtype)i)))
            options.dtype = (cake_dtype)i;
    CU_ASSERT_EQUAL_FATAL(cake_model_open(dir, &options, &r->model), CAKE_OK);
    const cake_config *c = cake_model_config(r->model);
    cake_range all = {0, c->n_layer + c->mtp};
    cake_weight_set share = {.range = &all, .n_range = 1, .embed = true, .head = true};
    cake_slice_shape shape = {.count = c->n_layer,
                              .max_row = MAX_ROW,
                              .n_slot = 1,
                              .n_page = {CONTEXT / CAKE_PAGE, CONTEXT / CAKE_PAGE, CONTEXT / CAKE_PAGE},
                              .context = CONTEXT,
                              .kv_dtype = kv_dtype,
                              .n_thread = 1};
    const cake_loading how = {.threads = 2};
    r->kernels = kernels;
    if (kernels->memory) { /* the embedding stays with the host */
        cake_weight_set embed = {.embed = true};
        CU_ASSERT_EQUAL_FATAL(cake_model_load(r->model, &embed, &cake_kernels_ref, &how), CAKE_OK);
        share.embed = false;
    }
    CU_ASSERT_EQUAL_FATAL(cake_model_load(r->model, &share, kernels, &how), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_slice_open(r->model, kernels, &shape, &r->slice), CAKE_OK);
    shape.first = c->n_layer;
    shape.count = 1;
    if (r->mtp)
        CU_ASSERT_EQUAL_FATAL(cake_slice_open(r->model, kernels, &shape, &r->behind), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_logits_open(r->model, kernels, MAX_ROW, 1, &r->logits), CAKE_OK);
    r->wave =
        aligned_alloc(CAKE_ALIGN, cake_arena_round(cake_wave_bytes(MAX_ROW, 2 * CAKE_MAX_KV_GROUPS, c->dim)));
}

static inline void open_model(golden_model *r, const char *name, const cake_kernels *kernels,
                              const char *dtype, cake_dtype kv_dtype)
{
    open_model_in(r, golden_path(name, "."), kernels, dtype, kv_dtype);
}

static inline void close_model(golden_model *r)
{
    free(r->wave);
    cake_logits_close(r->logits);
    cake_slice_close(r->slice);
    cake_slice_close(r->behind);
    cake_model_close(r->model);
}

static inline void no_messages(void *arg, bool layer)
{
    (void)arg, (void)layer;
}

/* Tokens ids [n] of a prompt of n_prompt, or behind it, at positions pos, pos + 1, ...; the scores behind the
 * last of them. */
static inline const float *step(golden_model *r, const int32_t *ids, int n, int pos, int n_prompt)
{
    int page = (pos + CAKE_PAGE - 1) / CAKE_PAGE, last = (pos + n - 1) / CAKE_PAGE;
    const cake_config *c = cake_model_config(r->model);
    *r->wave = (cake_wave){.kind = CAKE_WAVE_ROWS,
                           .n_row = n,
                           .n_change = page <= last ? c->n_kv_group * (last - page + 1) : 0,
                           .dim = c->dim};
    for (int i = 0; i < n; i++)
        cake_wave_rows(r->wave)[i] = (cake_row){.slot = 0,
                                                .pos = pos + i,
                                                .kind = pos < n_prompt ? CAKE_ROW_PROMPT : CAKE_ROW_GENERATED,
                                                .rope_len = pos < n_prompt ? n_prompt : pos + i + 1,
                                                .no_output = r->spares && pos + i < n_prompt - 1};
    for (int i = 0; i < r->wave->n_change; i++) /* pages in reverse, so that a table that is not used shows */
        cake_wave_changes(r->wave)[i] =
            (cake_change){.kind = CAKE_CHANGE_MAP,
                          .group = i % c->n_kv_group,
                          .index = page + i / c->n_kv_group,
                          .page = CONTEXT / CAKE_PAGE - 1 - page - i / c->n_kv_group};
    cake_embed_fill(r->model, r->kernels->memory ? &cake_kernels_ref : r->kernels, 1, ids, NULL, NULL,
                    r->wave);
    CU_ASSERT_EQUAL_FATAL(cake_slice_forward(r->slice, r->wave, (cake_wave_buffers){0}, no_messages, NULL),
                          CAKE_OK);
    int32_t row = n - 1;
    bool wanted = true;
    cake_topk best;
    cake_topk_clear(&best, 1);
    const float *score =
        cake_logits_forward(r->logits, 1, r->wave, NULL, &(cake_logits_rows){1, &row, &wanted, NULL}, &best);
    CU_ASSERT(!best.nonfinite && best.n == 1 && best.held[0].score == score[best.held[0].id]);
    for (int i = 0; i < cake_model_config(r->model)->n_vocab; i++)
        CU_ASSERT(!cake_ranked_before((cake_ranked){score[i], i}, best.held[0]));
    return score;
}

/* The largest difference of a logprob among the reference's best five. */
static inline double worst(const float *score, int n_vocab, const cake_json *top)
{
    double total = cake_logits_total(score, n_vocab), most = 0;
    for (size_t i = 0; i < N_TOP; i++) {
        int64_t id = cake_json_int(cake_json_at(cake_json_at(top, i), 0), -1);
        double off = fabs(score[id] - total - real_at(cake_json_at(top, i), 1));
        most = off <= most ? most : off;
    }
    return most;
}

static inline double follow(golden_model *r, const cake_json *sequence, double tolerance)
{
    const cake_json *prompt = cake_json_get(sequence, "prompt"), *ids = cake_json_get(sequence, "ids");
    int n_prompt = (int)cake_json_size(prompt), n_vocab = cake_model_config(r->model)->n_vocab;
    int32_t chunk[MAX_ROW];
    const float *score = NULL;
    double most = 0;
    for (int pos = 0, n; pos < n_prompt; pos += n) {
        n = n_prompt - pos < MAX_ROW ? n_prompt - pos : MAX_ROW;
        for (int i = 0; i < n; i++)
            chunk[i] = (int32_t)cake_json_int(cake_json_at(prompt, (size_t)(pos + i)), -1);
        score = step(r, chunk, n, pos, n_prompt);
    }
    for (size_t i = 0; i < cake_json_size(ids); i++) {
        int32_t best, id = (int32_t)cake_json_int(cake_json_at(ids, i), -1);
        if (i)
            score = step(r, chunk, 1, n_prompt + (int)i - 1, n_prompt);
        double off = worst(score, n_vocab, cake_json_at(cake_json_get(sequence, "top"), i));
        CU_ASSERT(off < tolerance);
        most = off > most ? off : most;
        cake_logits_top(score, n_vocab, 1, &best);
        CU_ASSERT(best == id || real_at(cake_json_get(sequence, "gaps"), i) <= 2 * tolerance);
        chunk[0] = id;
    }
    return most;
}

/* The scores behind a prompt and behind each of two tokens more; owned. */
static inline float *scores_of(golden_model *r, const cake_json *sequence, bool spares)
{
    enum { AFTER = 2 };
    const cake_json *prompt = cake_json_get(sequence, "prompt"), *ids = cake_json_get(sequence, "ids");
    int n_prompt = (int)cake_json_size(prompt), n_vocab = cake_model_config(r->model)->n_vocab;
    size_t bytes = (size_t)n_vocab * sizeof(float);
    float *scores = malloc((1 + AFTER) * bytes);
    int32_t id[MAX_ROW];
    r->spares = spares;
    for (int pos = 0, n; pos < n_prompt; pos += n) {
        n = n_prompt - pos < MAX_ROW ? n_prompt - pos : MAX_ROW;
        for (int i = 0; i < n; i++)
            id[i] = (int32_t)cake_json_int(cake_json_at(prompt, (size_t)(pos + i)), -1);
        memcpy(scores, step(r, id, n, pos, n_prompt), bytes);
    }
    for (int i = 0; i < AFTER; i++) {
        id[0] = (int32_t)cake_json_int(cake_json_at(ids, (size_t)i), -1);
        memcpy(scores + (i + 1) * n_vocab, step(r, id, 1, n_prompt + i, n_prompt), bytes);
    }
    return scores;
}

#endif
