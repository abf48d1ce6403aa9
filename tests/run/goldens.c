/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden models of tests/golden (see models.py there) against transformers in float64: first the
 * arithmetic alone, fed with the reference's own tokens, then whole runs of the program on one rank and on
 * several.
 */
#include "fake_device.h"
#include "golden_models.h"
#include "launch.h"

/* ---- the arithmetic alone */

/* Of a table with a faster one beside it, which has the same bits, some models are enough. */
static int model_step(const cake_kernels *kernels)
{
    return suite_all() || kernels != &cake_kernels_ref || !cake_kernels_exact() ? 1 : 3;
}

/* The reference keeps keys and values in full, so with a cache in float32 nothing but rounding is left,
 * whatever the weights are. kernels: NULL of a level that does not run here. */
static void check_arithmetic(const cake_kernels *kernels, const char *dtype, cake_dtype kv_dtype,
                             double tolerance, int from, int to)
{
    double sum = 0, all = 0;
    int n = 0;
    for (int m = from; kernels && m < to; m += model_step(kernels), n++) {
        cake_json *expected = read_expected(models[m]);
        const cake_json *sequences = cake_json_get(expected, "sequences");
        double most = 0;
        golden_model r = {0};
        open_model(&r, models[m], kernels, dtype, kv_dtype);
        for (size_t s = 0; s < cake_json_size(sequences); s++) {
            double off = follow(&r, cake_json_at(sequences, s), tolerance);
            most = off > most ? off : most;
        }
        printf("\n    %-6s %-15s %-4s KV %-4s: logprobs off by %.2g at most, %g allowed ", kernels->name,
               models[m], dtype, cake_dtype_name(kv_dtype), most, tolerance);
        sum += most;
        all = most > all ? most : all;
        close_model(&r);
        cake_json_free(expected);
    }
    if (n)
        printf("\n    %-6s %-4s KV %-4s: off by %.2g on average of the models, %.2g at most ", kernels->name,
               dtype, cake_dtype_name(kv_dtype), sum / n, all);
}

/* Tables that round activations too are held against plain C and float64 product by product (kernels.c). */
static void test_arithmetic(void)
{
    for (int level = 0; level <= cake_kernels_exact(); level++) {
        check_arithmetic(cake_kernels_at(level), "auto", CAKE_F32, 0.0005, 0, N_MODEL);
        check_arithmetic(cake_kernels_at(level), "auto", CAKE_BF16, 0.03, 0, N_MODEL);
    }
}

/* Accuracy of int8 compared with activations in BF16. Random weights amplify errors, those of delta nets ten
 * times as much, so delta nets are left out; so are mixtures, where a row near a tie takes another expert. */
static void test_int8(void)
{
    check_arithmetic(cake_kernels_at(cake_kernels_best()), "bf16", CAKE_BF16, 0.25, N_DELTA, N_DENSE);
    check_arithmetic(cake_kernels_at(cake_kernels_exact()), "int8", CAKE_BF16, 0.75, N_DELTA, N_DENSE);
}

/* A cache in int8: three times as far off as one in BF16, and no further. Of mixtures those with latent
 * attention, which have no row near a tie here. */
static void test_int8_cache(void)
{
    for (int level = 0; level <= cake_kernels_exact(); level++) {
        check_arithmetic(cake_kernels_at(level), "auto", CAKE_I8, 0.08, 0, N_DENSE);
        check_arithmetic(cake_kernels_at(level), "auto", CAKE_I8, 0.15, N_MODEL - N_LATENT, N_MODEL);
    }
}

/* The last layer leaves out rows without output; the others have the same bits, there and later. */
static void check_unread(const char *model, const cake_json *sequence, const cake_kernels *kernels)
{
    golden_model r = {0};
    open_model(&r, model, kernels, "auto", CAKE_BF16);
    size_t bytes = (1 + 2) * (size_t)cake_model_config(r.model)->n_vocab * sizeof(float);
    float *all = scores_of(&r, sequence, false), *few = scores_of(&r, sequence, true);
    CU_ASSERT_EQUAL(memcmp(all, few, bytes), 0);
    free(all);
    free(few);
    close_model(&r);
}

/* In `make check` each model by one table. */
static void test_unread(void)
{
    for (int m = 0; m < N_MODEL; m++) {
        cake_json *expected = read_expected(models[m]);
        const cake_json *sequences = cake_json_get(expected, "sequences");
        const cake_json *longest = cake_json_at(sequences, cake_json_size(sequences) - 1);
        CU_ASSERT(cake_json_size(cake_json_get(longest, "prompt")) > 2 * MAX_ROW);
        for (int level = 0; level <= cake_kernels_best(); level++)
            if (cake_kernels_at(level) && (suite_all() || m % (1 + cake_kernels_best()) == level))
                check_unread(models[m], longest, cake_kernels_at(level));
        cake_json_free(expected);
    }
}

/* Operands in a memory that the host cannot touch: the same bits, for the models that may be there. */
static void test_device(void)
{
    for (int m = 0; m < N_GPU; m += suite_all() ? 1 : 7) {
        cake_json *expected = read_expected(models[m]);
        const cake_json *sequences = cake_json_get(expected, "sequences");
        const cake_json *longest = cake_json_at(sequences, cake_json_size(sequences) - 1);
        for (int spares = 0; spares < 2; spares++) {
            golden_model here = {0}, device = {0};
            open_model(&here, models[m], &cake_kernels_ref, "auto", CAKE_BF16);
            open_model(&device, models[m], &fake_device_kernels, "auto", CAKE_BF16);
            size_t bytes = (1 + 2) * (size_t)cake_model_config(here.model)->n_vocab * sizeof(float);
            float *one = scores_of(&here, longest, spares), *other = scores_of(&device, longest, spares);
            CU_ASSERT_EQUAL(memcmp(one, other, bytes), 0);
            free(one);
            free(other);
            close_model(&here);
            close_model(&device);
        }
        cake_json_free(expected);
    }
}

/* ---- the whole program */

/* The expected sequence of that id. */
static const cake_json *find_sequence(const cake_json *sequences, const cake_json *id)
{
    const char *wanted = cake_json_text(id, NULL);
    for (size_t i = 0; wanted && i < cake_json_size(sequences); i++) {
        const cake_json *sequence = cake_json_at(sequences, i);
        if (!strcmp(cake_json_text(cake_json_get(sequence, "id"), NULL), wanted))
            return sequence;
    }
    return NULL;
}

static int downwards(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* The five best of a step by value: two tokens may be spelled alike, and then the object holds fewer. */
static bool same_top(const cake_json *found, const cake_json *top, double tolerance)
{
    double value[N_TOP];
    size_t n = 0;
    if (cake_json_size(found) != N_TOP)
        return cake_json_size(found) > 0;
    for (void *it = cake_json_first(found); it; it = cake_json_next(found, it))
        value[n++] = cake_json_real(cake_json_value(it), NAN);
    qsort(value, N_TOP, sizeof *value, downwards);
    for (size_t i = 0; i < N_TOP; i++)
        if (!(fabs(value[i] - real_at(cake_json_at(top, i), 1)) < tolerance))
            return false;
    return true;
}

static void check_result(const cake_json *result, const cake_json *expected, double tolerance)
{
    const cake_json *ids = cake_json_get(expected, "ids"), *found = cake_json_get(result, "token_ids");
    const cake_json *logprobs = cake_json_get(result, "logprobs");
    CU_ASSERT(launch_same_ids(cake_json_get(result, "prompt_token_ids"), cake_json_get(expected, "prompt")));
    CU_ASSERT_EQUAL(cake_json_size(found), cake_json_size(ids));
    CU_ASSERT_EQUAL(cake_json_size(cake_json_get(logprobs, "token_logprobs")), cake_json_size(ids));
    const char *finish = cake_json_text(cake_json_get(result, "finish_reason"), NULL);
    CU_ASSERT(finish && !strcmp(finish, "length"));
    for (size_t i = 0; i < cake_json_size(ids); i++) {
        if (cake_json_int(cake_json_at(found, i), -2) != cake_json_int(cake_json_at(ids, i), -1)) {
            CU_ASSERT(real_at(cake_json_get(expected, "gaps"), i) <= 2 * tolerance);
            return; /* from here on it is another text */
        }
        double off = real_at(cake_json_get(logprobs, "token_logprobs"), i) -
                     real_at(cake_json_get(expected, "logprobs"), i);
        CU_ASSERT(fabs(off) < tolerance);
        CU_ASSERT(same_top(cake_json_at(cake_json_get(logprobs, "top_logprobs"), i),
                           cake_json_at(cake_json_get(expected, "top"), i), tolerance));
    }
}

static int layers_of(const char *model)
{
    cake_config config;
    CU_ASSERT_EQUAL_FATAL(cake_config_load(golden_path(model, "."), &config), CAKE_OK);
    cake_params_free(&config.defaults);
    return config.n_layer;
}

/* In `make check` every sixth model, which the other ranks leave out; the arithmetic above has all. */
static void check_runs(int most, int first)
{
    for (int m = suite_all() ? 0 : first; m < N_MODEL; m += suite_all() ? 1 : 6) {
        int np = layers_of(models[m]) < most ? layers_of(models[m]) : most;
        cake_json *expected = read_expected(models[m]);
        char model[512];
        snprintf(model, sizeof model, "%s", golden_path(models[m], "."));
        cake_json *results = launch_run(model, golden_path(models[m], "requests.jsonl"), np);
        const cake_json *sequences = cake_json_get(expected, "sequences");
        double tolerance = cake_json_real(cake_json_get(expected, "tolerance"), 0);
        CU_ASSERT_EQUAL(cake_json_size(results), cake_json_size(sequences));
        for (size_t i = 0; i < cake_json_size(results); i++) {
            const cake_json *result = cake_json_at(results, i);
            const cake_json *sequence = find_sequence(sequences, cake_json_get(result, "id"));
            CU_ASSERT_PTR_NOT_NULL(sequence);
            check_result(result, sequence, tolerance);
        }
        cake_json_free(results);
        cake_json_free(expected);
    }
}

static void test_one_rank(void)
{
    check_runs(1, 0);
}

static void test_ranks(void)
{
    check_runs(3, 3);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the arithmetic, fed with the reference's tokens", test_arithmetic},
        {"the arithmetic in int8", test_int8},
        {"the arithmetic with a cache in int8", test_int8_cache},
        {"rows that nobody reads", test_unread},
        {"operands that are not with the host", test_device},
        {"the program on one rank", test_one_rank},
        {"the program on three ranks, on two where there are two layers", test_ranks},
    };
    return SUITE_MAIN("golden", tests);
}
