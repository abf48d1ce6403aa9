/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs as parts: what is cut keeps the tokens at both ends; prompts; limits.
 */
#include "request/inputs.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/suite.h"

static cake_tokenizer *tokenizer;
static cake_prompt_names names;

static cake_request request_of(const char *text)
{
    cake_request r = {.params = cake_params_unset()};
    r.text = cake_copy(text, strlen(text));
    r.text_len = strlen(text);
    return r;
}

/* The tokens of a text, cut to `most` of them (CAKE_UNSET: whole), in a context of so many; NULL: a fault,
 * which has the message. Owned. */
static cake_ids tokens(const char *text, int64_t most, int context, const char *message)
{
    cake_request r = request_of(text);
    cake_buf out = {0};
    cake_ids ids = {0};
    r.params.truncate_prompt_tokens = most;
    const cake_inputs_limits limits = {.context = context, .n_embed = 16};
    cake_err err = cake_inputs_encode(tokenizer, &names, &limits, &r, &out, &ids);
    CU_ASSERT_EQUAL(err, message ? CAKE_ERR_REQUEST : CAKE_OK);
    CU_ASSERT(!message || strstr(r.fault.message, message));
    CU_ASSERT(message || (r.n_part == 1 && r.parts[0].n_token == (int)ids.len));
    cake_buf_free(&out);
    cake_request_free(&r);
    return ids;
}

/* A cut text has the first tokens of the whole one, and its last one. */
static void test_cut(void)
{
    const char *text = "the ship sailed past the old keeper";
    cake_ids whole = tokens(text, CAKE_UNSET, 100, NULL);
    CU_ASSERT(whole.len > 6 && whole.id[0] == 2 && whole.id[whole.len - 1] == 3);
    for (int64_t most = 3; most <= (int64_t)whole.len + 1; most++) {
        cake_ids cut = tokens(text, most, 100, NULL);
        const size_t n = most < (int64_t)whole.len ? (size_t)most : whole.len;
        CU_ASSERT_EQUAL_FATAL(cut.len, n);
        CU_ASSERT(!memcmp(cut.id, whole.id, (n - 1) * sizeof *cut.id) && cut.id[n - 1] == 3);
        cake_ids_free(&cut);
    }
    cake_ids fits = tokens(text, -1, 5, NULL), none = tokens(text, 2, 100, "the tokenizer adds 2 tokens");
    CU_ASSERT(fits.len == 5 && fits.id[4] == 3);
    cake_ids_free(&fits);
    cake_ids_free(&none);
    none = tokens(text, CAKE_UNSET, 5, "expected at most 5");
    cake_ids_free(&none);
    cake_ids_free(&whole);
}

static void test_names(void)
{
    cake_buf known = {0};
    CU_ASSERT_STRING_EQUAL(cake_prompt_names_text(&names, NULL, &known), "light: ");
    CU_ASSERT_STRING_EQUAL(cake_prompt_names_text(&names, "query", &known), "ship: ");
    CU_ASSERT(known.len == 0 && !cake_prompt_names_text(&names, "quarry", &known));
    CU_ASSERT_STRING_EQUAL(known.data, "\"query\", \"document\"");
    cake_buf_free(&known);
}

static void test_dimensions(void)
{
    for (int64_t n = 15; n < 18; n++) {
        cake_request r = request_of("rain");
        cake_buf out = {0};
        cake_ids ids = {0};
        r.params.dimensions = n;
        cake_err err =
            cake_inputs_encode(tokenizer, &names, &(cake_inputs_limits){.n_embed = 16}, &r, &out, &ids);
        CU_ASSERT(err == (n > 16 ? CAKE_ERR_REQUEST : CAKE_OK));
        CU_ASSERT(n > 16 || !strcmp(out.data, "light: rain"));
        cake_buf_free(&out);
        cake_ids_free(&ids);
        cake_request_free(&r);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"a cut text keeps the tokens at both ends", test_cut},
        {"prompts by name, and the default", test_names},
        {"dimensions", test_dimensions},
    };
    const char *model = suite_path("golden/embed/gemma");
    if (cake_tokenizer_open(model, &tokenizer) || cake_prompt_names_read(model, &names))
        return 1;
    int status = SUITE_MAIN("inputs", tests);
    cake_prompt_names_free(&names);
    cake_tokenizer_close(tokenizer);
    return status;
}
