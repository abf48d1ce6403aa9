/* SPDX-License-Identifier: Apache-2.0
 *
 * The suite of tests/golden/schemas.py: of each schema valid texts are taken, invalid ones refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/json.h"
#include "grammar/grammar.h"
#include "tests/suite.h"

static int n_schema, n_text;

static void check_text(const char *name, cake_grammar *g, const cake_json *node, bool valid)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    const bool has = cake_grammar_has(g, text, len);
    if (has != valid)
        fprintf(stderr, "    %s: %s: %.*s\n", name, has ? "taken" : "refused", (int)len, text);
    CU_ASSERT_EQUAL(has, valid);
    n_text++;
}

static void check_line(const char *line, size_t len)
{
    cake_json *root = NULL;
    cake_fault fault = {0};
    cake_buf schema = {0};
    cake_grammar *g = NULL;
    CU_ASSERT_FATAL(!cake_json_parse(line, len, &root, &fault));
    const char *name = cake_json_text(cake_json_get(root, "name"), NULL);
    cake_json_add_node(&schema, cake_json_get(root, "schema"));
    cake_err err = cake_grammar_open(
        &(cake_constraint_source){.kind = CAKE_CONSTRAINT_SCHEMA, .text = schema.data, .len = schema.len}, &g,
        &fault);
    if (err)
        fprintf(stderr, "    %s: %s\n", name, fault.message);
    CU_ASSERT(!err);
    for (int valid = 0; valid < 2 && !err; valid++) {
        const cake_json *texts = cake_json_get(root, valid ? "valid" : "invalid");
        for (size_t i = 0; i < cake_json_size(texts); i++)
            check_text(name, g, cake_json_at(texts, i), valid);
    }
    n_schema++;
    cake_grammar_close(g);
    cake_buf_free(&schema);
    cake_json_free(root);
}

static void test_suite(void)
{
    cake_buf text = {0};
    const char *path = getenv("CAKE_TEST_SCHEMAS"); /* a larger suite */
    CU_ASSERT_FATAL(
        !cake_file_read("test", path ? path : suite_path("golden/schemas.jsonl"), false, 1 << 30, &text));
    for (const char *at = text.data, *end; (end = strchr(at, '\n')); at = end + 1)
        check_line(at, (size_t)(end - at));
    CU_ASSERT(n_schema >= 200 && n_text >= 4000);
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {{"valid texts are taken, invalid ones refused", test_suite}};
    return SUITE_MAIN("schemas", tests);
}
