/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-token prediction against float64 (tests/golden/mtp.py): what the layer expects after each position of
 * a prompt that comes in two waves, with tokens that are unknown in between.
 */
#include "engine/mtp.h"

#include <unistd.h>

#include "tests/run/golden_models.h"

enum { FIRST = 37 /* rows of the first wave */ };

static const struct {
    const char *name;
    double tolerance; /* of a gap between the best two */
} families[] = {{"qwen3.5-text", 0.06},
                {"qwen3next-keys", 0.004},
                {"deepseek3-groups", 0.004},
                {"glm4moe-groups", 0.004}};

/* A directory with a golden model and its layer of multi-token prediction, in a static buffer. */
static const char *assemble(const char *name, const char *scratch)
{
    static char at[256];
    char command[1200];
    snprintf(at, sizeof at, "%s/%s", scratch, name);
    int n = snprintf(command, sizeof command, "mkdir '%s' && cp '%s'/*", at, golden_path(name, "."));
    n += snprintf(command + n, sizeof command - (size_t)n, " '%s' && chmod u+w '%s'/*", at, at);
    snprintf(command + n, sizeof command - (size_t)n, " && cp '%s'/%s/* '%s'", suite_path("golden/mtp"), name,
             at);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    return at;
}

/* Rows [pos, pos + n) of the prompt ids [all]; the predictions that the reference does not share. */
static int run_wave(golden_model *r, cake_mtp *mtp, const int32_t *ids, int pos, int n, int all,
                    const cake_json *top, double tolerance)
{
    int32_t row[MAX_ROW], got[MAX_ROW];
    int wrong = 0;
    step(r, ids + pos, n, pos, all);
    for (int i = 0; i < n; i++) {
        cake_mtp_ids(mtp)[i] = pos + i + 1 < all ? ids[pos + i + 1] : 0;
        row[i] = i;
    }
    CU_ASSERT_EQUAL_FATAL(cake_mtp_forward(mtp, 1, r->wave), CAKE_OK);
    cake_mtp_predict(mtp, 1, r->logits, row, n, got);
    for (int i = 0; i < n && pos + i + 1 < all; i++) {
        const cake_json *best = cake_json_at(top, (size_t)(pos + i));
        const double gap = real_at(cake_json_at(best, 0), 1) - real_at(cake_json_at(best, 1), 1);
        wrong += got[i] != cake_json_int(cake_json_at(cake_json_at(best, 0), 0), -1) && gap > tolerance;
    }
    return wrong;
}

/* Tokens behind the wave's last row as if each followed that was predicted; later waves are not disturbed. */
static void go_on(cake_mtp *mtp, cake_logits *logits, const cake_json *further, double tolerance)
{
    int32_t row = FIRST - 1, got = 0;
    bool same = true; /* as the reference until a near tie */
    CU_ASSERT_EQUAL(cake_json_size(further), 3);
    for (size_t i = 0; i < cake_json_size(further); i++) {
        const cake_json *best = cake_json_at(further, i);
        cake_mtp_predict(mtp, 1, logits, &row, 1, &got);
        same = same && real_at(best, 1) > tolerance;
        CU_ASSERT(!same || got == cake_json_int(cake_json_at(best, 0), -1));
        CU_ASSERT(cake_mtp_goes_on(mtp, row));
        CU_ASSERT_EQUAL(cake_mtp_go_on(mtp, 1, &row, 1, &got), CAKE_OK);
        row = 0;
    }
}

static void check(const char *dir, double tolerance, const cake_kernels *kernels)
{
    golden_model r = {.mtp = true};
    cake_json *expected = NULL;
    cake_mtp *mtp = NULL;
    int32_t ids[CONTEXT];
    char path[300];
    snprintf(path, sizeof path, "%s/expected.json", dir);
    CU_ASSERT_EQUAL_FATAL(cake_json_load("golden", path, false, &expected), CAKE_OK);
    const cake_json *given = cake_json_get(expected, "ids"), *top = cake_json_get(expected, "top");
    const int n = (int)cake_json_size(given);
    CU_ASSERT_FATAL(n > FIRST && n - FIRST <= MAX_ROW && (int)cake_json_size(top) == n - 1);
    for (int i = 0; i < n; i++)
        ids[i] = (int32_t)cake_json_int(cake_json_at(given, (size_t)i), -1);
    open_model_in(&r, dir, kernels, "auto", CAKE_F32);
    const cake_config *c = cake_model_config(r.model);
    const size_t bytes = cake_wave_bytes(MAX_ROW, 2 * CAKE_MAX_KV_GROUPS, c->dim);
    CU_ASSERT_EQUAL_FATAL(cake_mtp_open(&(cake_mtp_setup){r.model, kernels, r.behind, bytes, MAX_ROW}, &mtp),
                          CAKE_OK);
    /* as after a wrong draft: the rows of the first wave once more, now with the right tokens */
    CU_ASSERT(run_wave(&r, mtp, ids, 0, FIRST, FIRST, top, tolerance) == 0);
    CU_ASSERT_EQUAL(run_wave(&r, mtp, ids, 0, FIRST, n, top, tolerance), 0);
    go_on(mtp, r.logits, cake_json_get(expected, "further"), tolerance);
    CU_ASSERT_EQUAL(run_wave(&r, mtp, ids, FIRST, n - FIRST, n, top, tolerance), 0);
    cake_mtp_close(mtp);
    close_model(&r);
    cake_json_free(expected);
}

static void test_predictions(void)
{
    char scratch[] = "/tmp/cake-mtp-XXXXXX", command[64];
    CU_ASSERT_FATAL(mkdtemp(scratch) != NULL);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *dir = assemble(families[i].name, scratch);
        for (int level = 0; level <= cake_kernels_exact(); level++)
            if (cake_kernels_at(level))
                check(dir, families[i].tolerance, cake_kernels_at(level));
    }
    snprintf(command, sizeof command, "rm -r '%s'", scratch);
    CU_ASSERT_EQUAL(system(command), 0);
}

int main(void)
{
    static const suite_test tests[] = {{"what the model expects next but one", test_predictions}};
    return SUITE_MAIN("mtp", tests);
}
