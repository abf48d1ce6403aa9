/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden models computed by the operations of a GPU, real or emulated. CAKE_ALL_GPU: all models, else a
 * few.
 */
#include "kernels/device.h"
#include "tests/run/golden_models.h"

static const cake_kernels *kernels;

/* A kind of layer each: delta nets, caps on scores, partial rotary embedding, windows. */
static bool is_tried(const char *model)
{
    static const char *const few[] = {"qwen3.5-text", "gemma2-caps", "phi3-window"};
    bool found = getenv("CAKE_ALL_GPU") != NULL;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        found = found || !strcmp(few[i], model);
    return found;
}

/* The first sequence of each model. gemma3-old's scale of the embedding is another one in float32 than in
 * bfloat16; of what BF16 rounds delta nets with random weights make ten times as much as others. */
static void check(const char *dtype, cake_dtype kv_dtype, double tolerance)
{
    for (int m = 0; m < N_GPU; m++) {
        if (!is_tried(models[m]))
            continue;
        bool exact = !strcmp(dtype, "f32");
        double allowed = exact && !strcmp(models[m], "gemma3-old") ? 0.03
                         : !exact && m < N_DELTA                   ? 1
                                                                   : tolerance;
        cake_json *expected = read_expected(models[m]);
        golden_model r = {0};
        open_model(&r, models[m], kernels, dtype, kv_dtype);
        double off = follow(&r, cake_json_at(cake_json_get(expected, "sequences"), 0), allowed);
        printf("\n    %-6s %-15s %-4s KV %-4s: logprobs off by %.2g at most, %g allowed ", kernels->name,
               models[m], dtype, cake_dtype_name(kv_dtype), off, allowed);
        close_model(&r);
        cake_json_free(expected);
    }
}

static void test_exact(void)
{
    check("f32", CAKE_F32, 0.0005);
}

static void test_rounded(void)
{
    check("auto", CAKE_BF16, 0.25);
}

/* The last layer leaves out rows without output; the others have the same bits. */
static void test_unread(void)
{
    for (int m = 0; m < N_GPU; m++) {
        if (!is_tried(models[m]) || (!getenv("CAKE_ALL_GPU") && strcmp(models[m], "gemma2-caps") != 0))
            continue;
        cake_json *expected = read_expected(models[m]);
        const cake_json *sequence = cake_json_at(cake_json_get(expected, "sequences"), 0);
        golden_model r = {0}, other = {0};
        open_model(&r, models[m], kernels, "auto", CAKE_BF16);
        open_model(&other, models[m], kernels, "auto", CAKE_BF16);
        float *all = scores_of(&r, sequence, false), *few = scores_of(&other, sequence, true);
        size_t bytes = (1 + 2) * (size_t)cake_model_config(r.model)->n_vocab * sizeof(float);
        CU_ASSERT_EQUAL(memcmp(all, few, bytes), 0);
        free(all);
        free(few);
        close_model(&r);
        close_model(&other);
        cake_json_free(expected);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"the arithmetic in float32", test_exact},
        {"the arithmetic in the precision of the file", test_rounded},
        {"rows that nobody reads", test_unread},
    };
    if (cake_device_open(0, 0, CAKE_GPU_LAUNCH_AUTO, &kernels))
        return 1;
    int status = SUITE_MAIN("golden", tests);
    cake_device_close();
    return status;
}
