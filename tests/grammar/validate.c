/* SPDX-License-Identifier: Apache-2.0
 *
 * Values against schemas: the suite of tests/golden/schemas.py, the keywords that no grammar expresses, and
 * schemas and values that are wrong or want too much.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/json.h"
#include "grammar/validate.h"
#include "tests/suite.h"

static cake_json *parse(const char *text, size_t len)
{
    cake_json *node = NULL;
    cake_fault fault;
    return cake_json_parse(text, len, &node, &fault) ? NULL : node;
}

static cake_json *schema_of(const char *text)
{
    cake_json *schema = parse(text, strlen(text));
    if (!schema)
        fprintf(stderr, "    this is no JSON: %s\n", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(schema);
    return schema;
}

/* ---- the suite */

static int n_schema, n_valid, n_invalid, n_broken;

static void check_text(const char *name, const cake_json *schema, const cake_json *node, bool valid)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    cake_json *value = parse(text, len);
    const bool is = cake_schema_valid(schema, value);
    if (is != valid)
        fprintf(stderr, "    %s: %s: %.*s\n", name, is ? "valid" : "invalid", (int)len, text);
    CU_ASSERT_EQUAL(is, valid);
    CU_ASSERT(value || !valid);
    n_broken += !value;
    n_valid += value && valid;
    n_invalid += value && !valid;
    cake_json_free(value);
}

static void check_line(const char *line, size_t len)
{
    cake_json *root = parse(line, len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    const char *name = cake_json_text(cake_json_get(root, "name"), NULL);
    for (int valid = 0; valid < 2; valid++) {
        const cake_json *texts = cake_json_get(root, valid ? "valid" : "invalid");
        for (size_t i = 0; i < cake_json_size(texts); i++)
            check_text(name, cake_json_get(root, "schema"), cake_json_at(texts, i), valid);
    }
    n_schema++;
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
    CU_ASSERT(n_schema >= 200 && n_valid >= 1900 && n_invalid >= 1200 && n_broken >= 800);
    cake_buf_free(&text);
}

/* ---- own cases */

/* A schema, and values as items of arrays. */
typedef struct values {
    const char *schema, *valid, *invalid;
} values;

static void check_values(const char *schema_text, const char *list, bool valid)
{
    cake_json *schema = schema_of(schema_text), *items = schema_of(list);
    for (size_t i = 0; i < cake_json_size(items); i++) {
        const bool is = cake_schema_valid(schema, cake_json_at(items, i));
        if (is != valid)
            fprintf(stderr, "    %s: item %zu of %s is %s\n", schema_text, i, list, is ? "valid" : "invalid");
        CU_ASSERT_EQUAL(is, valid);
    }
    cake_json_free(schema);
    cake_json_free(items);
}

static void check_all(const values *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_values(v[i].schema, v[i].valid, true);
        check_values(v[i].schema, v[i].invalid, false);
    }
}
#define CHECK_ALL(list) check_all(list, sizeof(list) / sizeof(list)[0])

static void test_any(void)
{
    static const values list[] = {
        {"true", "[null, 1, {}]", "[]"},
        {"false", "[]", "[null, 1, {}]"},
        {"{\"unknown\": 1, \"description\": false, \"$comment\": []}", "[null, 1, {}]", "[]"},
        {"{\"type\": \"integer\"}", "[1, 1.0, -0.0, 1e3, 12345678901234567890123]",
         "[1.5, \"1\", true, null]"},
        {"{\"type\": [\"null\", \"number\"]}", "[null, 1, 1.5]", "[\"\", [], false]"},
        {"{\"type\": []}", "[]", "[1, null]"},
        {"{\"enum\": [1, \"a\", null, {\"a\": [1], \"b\": 2}]}",
         "[1, 1.0, 10e-1, \"a\", null, {\"b\": 2.0, \"a\": [1.0]}]",
         "[true, \"1\", 2, {\"a\": [1]}, {\"a\": [1], \"c\": 2}, {\"a\": [1, 1], \"b\": 2}, [1]]"},
        {"{\"const\": false}", "[false]", "[0, null, true, [false]]"},
        {"{\"const\": 9007199254740993}", "[9007199254740993]", "[9007199254740992, 9007199254740992.0]"},
        {"{\"const\": 100000000000000000000}", "[100000000000000000000, 1e20]", "[100000000000000000001]"},
        {"{\"const\": \"a\\u0000b\"}", "[\"a\\u0000b\"]", "[\"a\", \"a\\u0000c\"]"},
        {"{\"not\": {\"type\": \"string\"}}", "[1, null]", "[\"\", \"a\"]"},
        {"{\"not\": {}}", "[]", "[1, null]"},
        {"{\"not\": {\"required\": [\"a\", \"b\"]}}", "[{}, {\"a\": 1}]", "[{\"a\": 1, \"b\": 2}, 3]"},
        {"{\"if\": {\"minimum\": 10}, \"then\": {\"multipleOf\": 10}, \"else\": {\"multipleOf\": 3}}",
         "[10, 20, 3, 6, \"a\"]", "[11, 33, 4, 5]"},
        {"{\"if\": {\"type\": \"string\"}, \"then\": {\"minLength\": 2}}", "[\"ab\", 1]", "[\"a\"]"},
        {"{\"if\": false, \"else\": {\"type\": \"null\"}}", "[null]", "[1]"},
        {"{\"then\": false, \"else\": false}", "[1]", "[]"},
        {"{\"oneOf\": [{\"minimum\": 2}, {\"multipleOf\": 2}, {\"const\": 9}]}", "[0, 3, 5, -2]",
         "[2, 4, 9, 1, \"a\"]"},
        {"{\"anyOf\": [{\"minimum\": 2}, {\"multipleOf\": 2}]}", "[0, 2, 3]", "[1, -1]"},
        {"{\"allOf\": [{\"minimum\": 2}, {\"multipleOf\": 2}], \"maximum\": 5}", "[2, 4]", "[0, 3, 6]"}};
    CHECK_ALL(list);
}

static void test_numbers(void)
{
    static const values list[] = {
        {"{\"maximum\": 3}", "[3, 3.0, -7, 2.999]", "[3.001, 4, 12345678901234567890]"},
        {"{\"minimum\": 0.1}", "[0.1, 1, 12345678901234567890]", "[0, 0.09999, -1]"},
        {"{\"exclusiveMinimum\": 0, \"exclusiveMaximum\": 1}", "[0.5, 1e-9]", "[0, 1, -0.0, 1.0, 2]"},
        {"{\"maximum\": 9007199254740993}", "[9007199254740993]", "[9007199254740994]"},
        {"{\"minimum\": 3, \"exclusiveMinimum\": true, \"maximum\": 5, \"exclusiveMaximum\": false}",
         "[3.5, 5]", "[3, 5.5]"},
        {"{\"multipleOf\": 0.01}", "[19.99, 0.07, 4.35, 1e300, 0, -1.1]", "[0.001, 19.995]"},
        {"{\"multipleOf\": 2.5}", "[5, 7.5, -2.5, 0]", "[4, 2.55, 1]"},
        {"{\"multipleOf\": 123456789}", "[123456789, 15241578750190521, 0]", "[123456788, 0.5]"},
        {"{\"multipleOf\": 3}", "[300000000000000000000, 3e1, \"a\"]", "[300000000000000000001, 1e1]"}};
    CHECK_ALL(list);
}

#define LABEL "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456" /* 59 characters */

static void test_strings(void)
{
    static const values list[] = {
        {"{\"minLength\": 2, \"maxLength\": 3}", "[\"ab\", \"é漢🙂\", 1]",
         "[\"é\", \"🙂\", \"abcd\"]"},
        {"{\"maxLength\": 2.0}", "[\"ab\"]", "[\"abc\"]"},
        {"{\"pattern\": \"b+\"}", "[\"b\", \"abbc\", 1]", "[\"\", \"ac\"]"},
        {"{\"pattern\": \"^b|c$\"}", "[\"ba\", \"ac\"]", "[\"abca\"]"},
        {"{\"pattern\": \"^.$\"}", "[\"é\", \"🙂\", \"\\\"\"]", "[\"\\n\", \"ab\"]"},
        {"{\"pattern\": \"a\\u0000b\"}", "[\"a\\u0000bc\"]", "[\"ab\", \"a\"]"},
        {"{\"pattern\": \"(?=a)\"}", "[\"a\", \"b\"]", "[]"}, /* not known: anything */
        {"{\"pattern\": \"^\\\\p{Lu}\"}", "[\"Éa\"]", "[\"éa\"]"},
        {"{\"format\": \"date\"}", "[\"2024-02-29\", 5]", "[\"2023-02-29\", \"x2024-02-29\", \"\"]"},
        {"{\"format\": \"hostname\"}", "[\"a.b\", \"abcd." LABEL "." LABEL "." LABEL "." LABEL ".abcdefgh\"]",
         "[\"a.\", \"abcd." LABEL "." LABEL "." LABEL "." LABEL ".abcdefghi\"]"}, /* 253 and 254 */
        {"{\"format\": \"uuid\"}", "[\"123e4567-e89b-12d3-a456-426614174000\"]", "[\"123e4567\"]"},
        {"{\"format\": \"regex\"}", "[\"(\"]", "[]"},
        {"{\"format\": \"our-own\"}", "[\"(\"]", "[]"}};
    CHECK_ALL(list);
}

static void test_arrays(void)
{
    static const values list[] = {
        {"{\"prefixItems\": [{\"type\": \"null\"}, {\"type\": \"integer\"}], \"items\": {\"type\": "
         "\"string\"}}",
         "[[], [null], [null, 1], [null, 1, \"a\", \"b\"], 7]", "[[1], [null, null], [null, 1, 1]]"},
        {"{\"items\": [{\"type\": \"null\"}], \"additionalItems\": false}", "[[], [null]]",
         "[[1], [null, 1]]"},
        {"{\"items\": [{\"type\": \"null\"}]}", "[[], [null, 1]]", "[[1]]"},
        {"{\"minItems\": 1, \"maxItems\": 2}", "[[1], [1, 2], \"\"]", "[[], [1, 2, 3]]"},
        {"{\"contains\": {\"type\": \"integer\"}}", "[[1], [\"a\", 1], [1, 1], 3]", "[[], [\"a\"]]"},
        {"{\"contains\": {\"type\": \"integer\"}, \"minContains\": 2, \"maxContains\": 3}",
         "[[1, 2], [1, \"a\", 2, 3]]", "[[1], [\"a\", \"b\"], [1, 2, 3, 4]]"},
        {"{\"contains\": {\"type\": \"integer\"}, \"minContains\": 0}", "[[], [\"a\"], [1]]", "[]"},
        {"{\"minContains\": 2, \"maxContains\": 0}", "[[], [1]]", "[]"},
        {"{\"uniqueItems\": true}",
         "[[], [1], [1, \"1\", true, null, [1], {\"a\": 1}], [0, false], [[1, 2], [2, 1]], [{\"a\": 1}, "
         "{\"a\": 2}], "
         "[9007199254740992, 9007199254740993], \"aa\", {}]",
         "[[1, 1], [1, 2, 1.0], [\"a\", \"b\", \"a\"], [0.0, -0.0], [[1], [1]], "
         "[{\"a\": 1, \"b\": 2}, {\"b\": 2, \"a\": 1}], [null, null], [12345678901234567890, "
         "12345678901234567890]]"},
        {"{\"uniqueItems\": false}", "[[1, 1]]", "[]"}};
    CHECK_ALL(list);
}

static void test_objects(void)
{
    static const values list[] = {
        {"{\"properties\": {\"a\": {\"type\": \"null\"}, \"b\": false}, \"required\": [\"a\"]}",
         "[{\"a\": null}, {\"c\": 1, \"a\": null}, []]", "[{}, {\"a\": 1}, {\"a\": null, \"b\": 1}]"},
        {"{\"properties\": {\"a\": {}, \"b\": {}}, \"additionalProperties\": false}",
         "[{}, {\"b\": 1, \"a\": 1}]", "[{\"c\": 1}, {\"a\": 1, \"c\": 1}]"},
        {"{\"patternProperties\": {\"^x\": {\"type\": \"null\"}, \"y$\": {}}, \"properties\": {\"a\": {}}, "
         "\"additionalProperties\": {\"type\": \"string\"}}",
         "[{\"x1\": null, \"y\": 1, \"a\": 1, \"b\": \"\"}, {\"xy\": null}]",
         "[{\"x\": 1}, {\"b\": 1}, {\"xy\": 1}]"},
        {"{\"propertyNames\": {\"maxLength\": 2, \"not\": {\"const\": \"no\"}}}",
         "[{}, {\"ab\": 1, \"é漢\": 2, \"\\\"\\n\": 3}]", "[{\"abc\": 1}, {\"no\": 1}]"},
        {"{\"propertyNames\": false}", "[{}]", "[{\"a\": 1}]"},
        {"{\"minProperties\": 1, \"maxProperties\": 2}", "[{\"a\": 1}, {\"a\": 1, \"b\": 1}, []]",
         "[{}, {\"a\": 1, \"b\": 1, \"c\": 1}]"},
        {"{\"dependentRequired\": {\"card\": [\"name\", \"code\"], \"x\": []}}",
         "[{}, {\"name\": 1}, {\"card\": 1, \"name\": 1, \"code\": 1}, {\"x\": 1}, []]",
         "[{\"card\": 1}, {\"card\": null, \"name\": 1}]"},
        {"{\"dependencies\": {\"a\": {\"required\": [\"b\"]}, \"c\": [\"d\"]}}", "[{}, {\"a\": 1, \"b\": 1}]",
         "[{\"a\": 1}, {\"c\": 1}]"},
        {"{\"dependentSchemas\": {\"a\": {\"required\": [\"b\"]}, \"c\": false}}",
         "[{}, {\"b\": 1}, {\"a\": 1, \"b\": 1}]", "[{\"a\": 1}, {\"c\": 1}]"}};
    CHECK_ALL(list);
}

static void test_references(void)
{
    static const values list[] = {
        {"{\"$defs\": {\"a/b c~\": {\"type\": \"null\"}}, \"$ref\": \"#/$defs/a~1b%20c~0\"}", "[null]",
         "[1]"},
        {"{\"$defs\": {\"n\": {\"$anchor\": \"here\", \"type\": \"null\"}}, \"$ref\": \"#here\"}", "[null]",
         "[1]"},
        {"{\"properties\": {\"next\": {\"$ref\": \"#\"}}, \"additionalProperties\": false}",
         "[{}, {\"next\": {\"next\": {}}}]", "[{\"x\": 1}, {\"next\": {\"next\": {\"x\": 1}}}]"},
        {"{\"$defs\": {\"small\": {\"maximum\": 9}}, \"$ref\": \"#/$defs/small\", \"minimum\": 3}", "[3, 9]",
         "[2, 10]"},
        {"{\"prefixItems\": [{\"type\": \"null\"}, {\"$ref\": \"#/prefixItems/0\"}]}", "[[null, null]]",
         "[[null, 1]]"}};
    CHECK_ALL(list);
}

/* A schema within another one. */
static void test_within(void)
{
    cake_json *root =
        schema_of("{\"$defs\": {\"n\": {\"type\": \"null\"}}, \"items\": {\"$ref\": \"#/$defs/n\"}}");
    cake_json *list = schema_of("[null, 1]");
    const cake_json *items = cake_json_get(root, "items");
    CU_ASSERT(cake_schema_valid_at(root, items, cake_json_at(list, 0)));
    CU_ASSERT(!cake_schema_valid_at(root, items, cake_json_at(list, 1)));
    CU_ASSERT(!cake_schema_valid(items, cake_json_at(list, 0)));
    cake_json_free(root);
    cake_json_free(list);
}

/* Nothing is valid, whether `not` stands before it or not. */
static void test_wrong(void)
{
    static const char *const wrong[] = {"{\"$ref\": \"#\"}",
                                        "{\"$ref\": \"#/$defs/none\"}",
                                        "{\"$ref\": \"http://example.org/other\"}",
                                        "{\"$ref\": 1}",
                                        "{\"anyOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}",
                                        "{\"pattern\": 1}",
                                        "{\"type\": \"text\"}",
                                        "{\"type\": [1]}",
                                        "{\"enum\": \"a\"}",
                                        "{\"minLength\": -1}",
                                        "{\"minLength\": \"1\"}",
                                        "{\"maxLength\": 1.5}",
                                        "{\"allOf\": [1]}",
                                        "{\"oneOf\": {}}",
                                        "{\"not\": null}",
                                        "{\"if\": 1}",
                                        "{\"if\": true, \"then\": 1}",
                                        "[]",
                                        "null"};
    static const char *const numbers[] = {"{\"multipleOf\": 0}", "{\"multipleOf\": -1}",
                                          "{\"minimum\": \"1\"}",
                                          "{\"multipleOf\": 123456789012345678901234567890}"};
    for (int negated = 0; negated < 2; negated++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong + sizeof numbers / sizeof *numbers; i++) {
            const size_t n = sizeof wrong / sizeof *wrong;
            cake_buf text = {0};
            cake_buf_addf(&text, negated ? "{\"not\": %s}" : "%s", i < n ? wrong[i] : numbers[i - n]);
            check_values(text.data, i < n ? "[\"a\"]" : "[1]", false);
            cake_buf_free(&text);
        }
    /* what is wrong is not met */
    check_values("{\"pattern\": \"(\", \"minItems\": -1, \"required\": 1, \"multipleOf\": 0}", "[null, true]",
                 true);
    CU_ASSERT(!cake_schema_valid(NULL, NULL));
}

/* ---- limits */

/* n times `each`, `middle`, n times `close`. */
static void add_nested(cake_buf *out, int n, const char *each, const char *middle, const char *close)
{
    for (int i = 0; i < n; i++)
        cake_buf_adds(out, each);
    cake_buf_adds(out, middle);
    for (int i = 0; i < n; i++)
        cake_buf_adds(out, close);
}

static bool valid_texts(const char *schema_text, const char *value_text)
{
    cake_json *schema = schema_of(schema_text), *value = schema_of(value_text);
    const bool valid = cake_schema_valid(schema, value);
    cake_json_free(schema);
    cake_json_free(value);
    return valid;
}

static void test_depth(void)
{
    for (int deep = 0; deep < 2; deep++) {
        cake_buf schema = {0}, value = {0};
        add_nested(&schema, deep ? 250 : 150, "{\"not\": {\"not\": ", "true", "}}");
        add_nested(&value, deep ? 1500 : 150, "[", "", "]");
        CU_ASSERT(deep || valid_texts("{\"items\": {\"$ref\": \"#\"}}", "[[[[]]]]"));
        CU_ASSERT(!valid_texts(schema.data, "1"));
        CU_ASSERT_EQUAL(valid_texts("{\"items\": {\"$ref\": \"#\"}}", value.data), false);
        CU_ASSERT(valid_texts("{\"uniqueItems\": true}", value.data));
        cake_buf_free(&schema);
        cake_buf_free(&value);
    }
}

static void add_list(cake_buf *out, const char *open, int n, const char *item, const char *close)
{
    cake_buf_adds(out, open);
    for (int i = 0; i < n; i++)
        cake_buf_addf(out, "%s%s", i ? "," : "", item);
    cake_buf_adds(out, close);
}

/* Large values are judged; those that multiply with the schema are given up. */
static void test_work(void)
{
    cake_buf numbers = {0}, twice = {0}, schema = {0}, text = {0};
    cake_buf_adds(&numbers, "[-1");
    for (int i = 0; i < 100000; i++)
        cake_buf_addf(&numbers, ",%d", i);
    cake_buf_add(&twice, numbers.data, numbers.len);
    cake_buf_adds(&numbers, "]");
    cake_buf_adds(&twice, ",77]");
    CU_ASSERT(valid_texts("{\"items\": {\"type\": \"integer\", \"minimum\": -1}}", numbers.data));
    CU_ASSERT(!valid_texts("{\"items\": {\"type\": \"integer\", \"minimum\": 0}}", numbers.data));
    CU_ASSERT(valid_texts("{\"uniqueItems\": true}", numbers.data));
    CU_ASSERT(!valid_texts("{\"uniqueItems\": true}", twice.data));
    add_list(&schema, "{\"allOf\": [", 100, "{\"items\": {\"type\": \"integer\"}}", "]}");
    CU_ASSERT(!valid_texts(schema.data, numbers.data));
    cake_buf_free(&schema);
    /* twice as many steps for each item */
    cake_buf_cut(&numbers, 0);
    add_nested(&numbers, 60, "[", "1", "]");
    CU_ASSERT(!valid_texts("{\"anyOf\": [{\"items\": {\"$ref\": \"#\"}, \"type\": \"array\"}, "
                           "{\"items\": {\"$ref\": \"#\"}, \"type\": \"array\", \"minItems\": 1}]}",
                           numbers.data));
    /* long strings, and patterns that have many sets of states */
    cake_buf_adds(&text, "\"");
    for (int i = 0; i < 1000000; i++)
        cake_buf_addc(&text, (i * 7 % 13 + i / 3) % 2 ? 'a' : 'b');
    cake_buf_adds(&text, "\"");
    CU_ASSERT(
        valid_texts("{\"pattern\": \"^[ab]*$\", \"minLength\": 1000000, \"maxLength\": 1000000}", text.data));
    CU_ASSERT(!valid_texts("{\"pattern\": \"^(a|b)*a(a|b){2000}$\"}", text.data));
    CU_ASSERT(!valid_texts("{\"not\": {\"pattern\": \"^(a|b)*a(a|b){2000}$\"}}", text.data));
    cake_buf_free(&numbers);
    cake_buf_free(&twice);
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {{"the suite: valid texts are valid, others are not", test_suite},
                                       {"type, enum, const, not, if, and lists of schemas", test_any},
                                       {"numbers", test_numbers},
                                       {"strings", test_strings},
                                       {"arrays", test_arrays},
                                       {"objects", test_objects},
                                       {"references", test_references},
                                       {"a schema within another one", test_within},
                                       {"what is wrong makes nothing valid", test_wrong},
                                       {"depth is limited", test_depth},
                                       {"work is limited", test_work}};
    return SUITE_MAIN("validate", tests);
}
