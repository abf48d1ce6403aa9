/* SPDX-License-Identifier: Apache-2.0
 *
 * Every field that transformers has for config.json and generation_config.json is applied, without effect, or
 * has a row in the table of effects; and each row has the stated effect.
 */
#include "config/unsupported_fields.h"

#include <math.h>

#include "base/file.h"
#include "configs.h"
#include "tokenizer/unsupported_fields.h"

#define SIZES                                                                                                \
    "\"hidden_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 100," \
    "\"vocab_size\": 517, \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-6"

static bool is_in(const cake_unsupported_field *table, const char *name)
{
    while (table->name && strcmp(table->name, name))
        table++;
    return table->name;
}

static bool is_listed(const cake_json *list, const char *name)
{
    for (size_t i = 0; i < cake_json_size(list); i++)
        if (!strcmp(cake_json_text(cake_json_at(list, i), NULL), name))
            return true;
    return false;
}

/* Number of places that list a field: a table of warned and refused ones, or tests/golden/silent_fields.json.
 * There, generation's are about speed, caches, extra output or beams, the
 * config's about training, images or output format, the tokenizer's about names of files and classes,
 * truncation and padding; with a tokenizer.json, that file decides about lower case. */
static int places_of(const cake_json *silent, const char *owner, const char *field)
{
    bool generation = !strcmp(owner, "generation"), tokenizer = !strcmp(owner, "tokenizer");
    const cake_json *lists = cake_json_get(silent, generation || tokenizer ? owner : "config");
    int n =
        is_listed(cake_json_get(lists, "read"), field) + is_listed(cake_json_get(lists, "no effect"), field);
    if (generation || tokenizer)
        return n + is_in(generation ? cake_unsupported_generation : cake_unsupported_tokenizer, field);
    return n + is_in(cake_unsupported_config, field) + is_in(cake_unsupported_relative, field);
}

/* tests/golden/fields.json: the fields of each class. */
static void test_all_known(void)
{
    cake_json *lists = NULL, *silent = NULL;
    size_t n = 0, n_arch = 0;
    CU_ASSERT_EQUAL_FATAL(cake_json_load("test", suite_path("golden/fields.json"), false, &lists), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_json_load("test", suite_path("golden/silent_fields.json"), false, &silent),
                          CAKE_OK);
    for (void *it = cake_json_first(lists); it; it = cake_json_next(lists, it)) {
        const char *owner = cake_json_key(it, NULL);
        const cake_json *fields = cake_json_value(it);
        for (size_t i = 0; i < cake_json_size(fields); i++, n++) {
            const char *field = cake_json_text(cake_json_at(fields, i), NULL);
            int places = places_of(silent, owner, field);
            CU_ASSERT_EQUAL(places, 1);
            if (places != 1)
                printf("\n    %s has the field %s, which %d places list\n", owner, field, places);
        }
    }
    for (const cake_arch *arch = cake_archs; arch->name; arch++, n_arch++)
        CU_ASSERT(cake_json_size(cake_json_get(lists, arch->name)) > 30);
    CU_ASSERT(n > 30 * n_arch);
    cake_json_free(silent);
    cake_json_free(lists);
}

/* Reads a config.json or generation_config.json with one more field; said: the messages. */
static cake_err read_with(bool generation, const char *field, const char *value, cake_buf *said)
{
    cake_buf config = {0}, more = {0};
    cake_config c;
    cake_buf_addf(generation ? &more : &config, "{\"%s\": %s", field, value);
    cake_buf_adds(&more, generation ? "}" : "{}");
    cake_buf_addf(&config, "%s\"model_type\": \"llama\", " SIZES "}", generation ? "{" : ", ");
    cake_err err = read_text(config.data, more.data, &c, said);
    if (!err)
        cake_params_free(&c.defaults);
    cake_buf_free(&config);
    cake_buf_free(&more);
    return err;
}

/* Neutral values say nothing; others are warned of, or refused, by name. */
static void check_row(const cake_unsupported_field *e, bool generation)
{
    static const char *const others[] = {"[7]", "{\"a\": 1}", "\"x\"", "7", "-1"};
    cake_buf said = {0}, name = {0}, number = {0};
    bool refused = e->kind == CAKE_UNSUPPORTED_REFUSE;
    if (isfinite(e->neutral))
        cake_json_add_real(&number, e->neutral);
    const char *neutral[] = {e->null_counts ? "true" : "null", number.len ? number.data : "[]",
                             e->neutral == 0   ? "false"
                             : e->neutral == 1 ? "true"
                                               : "{}"};
    cake_buf_addf(&name, "DIR/%s.json: %s ", generation ? "generation_config" : "config", e->name);
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        CU_ASSERT_EQUAL(read_with(generation, e->name, neutral[i], &said), CAKE_OK);
        CU_ASSERT_EQUAL(said.len, 0);
        if (said.len)
            printf("\n    %s: %s: %s", e->name, neutral[i], said.data);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cake_err err = read_with(generation, e->name, others[i], &said);
        bool good = err == (refused ? CAKE_ERR_FATAL : CAKE_OK) && said.len && strstr(said.data, name.data) &&
                    strchr(said.data, '\n') == said.data + said.len - 1;
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s: %s: %s", e->name, others[i], said.len ? said.data : "silence\n");
    }
    cake_buf_free(&said);
    cake_buf_free(&name);
    cake_buf_free(&number);
}

static void test_rows(void)
{
    static const struct {
        const cake_unsupported_field *table;
        bool generation;
    } tables[] = {{cake_unsupported_generation, true},
                  {cake_unsupported_relative, false},
                  {cake_unsupported_config, false}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const cake_unsupported_field *e = tables[i].table; e->name; e++)
            check_row(e, tables[i].generation);
}

static void test_single(void)
{
    static const struct {
        bool generation;
        const char *field, *value, *said; /* NULL: nothing */
    } cases[] = {
        {false, "is_causal", "false",
         "config.json: is_causal is false, but only causal attention is supported"},
        {false, "is_causal", "null", "is_causal is null"}, /* transformers takes it for false */
        {false, "per_layer_config", "{\"0\": {\"intermediate_size\": 50}}", "layers of different sizes"},
        {true, "suppress_tokens", "3", "suppress_tokens is 3, but an array of token ids"},
        {true, "suppress_tokens", "[5, -1]", "suppress_tokens is [5,-1], but token ids from 0 to 516"},
        {true, "begin_suppress_tokens", "[\"x\"]", "begin_suppress_tokens is [\"x\"], but token ids"},
        {true, "suppress_tokens", "[]", NULL},
        {true, "suppress_tokens", "null", NULL},
        {true, "begin_suppress_tokens", "[3, 517]", NULL}, /* what is not there is never drawn */
        {true, "max_length", "512", NULL},
        {true, "max_length", "20, \"max_new_tokens\": 20", NULL},
        {true, "max_length", "20", "generation_config.json: max_length 20 is not applied; give it with"},
        {true, "stop_strings", "[\"a\"]", "stop_strings [\"a\"] is not applied; give them with --stop"},
        {true, "guidance_scale", "1.5", "guidance_scale 1.5 is not applied"},
        {true, "nobody_knows", "1.5", NULL},
        {false, "nobody_knows", "1.5", NULL},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_with(cases[i].generation, cases[i].field, cases[i].value, &said);
        bool good = cases[i].said ? said.len && strstr(said.data, cases[i].said) : !said.len;
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s: %s: %s", cases[i].field, cases[i].value, said.len ? said.data : "silence\n");
    }
    cake_buf_free(&said);
}

/* A model of several parts may say it in either place. */
static void test_parts(void)
{
    static const char *const cases[][3] = {
        {"", ", \"is_causal\": false", "config.json: text_config.is_causal is false"},
        {", \"is_causal\": false", "", "config.json: is_causal is false"},
        {", \"quantization_config\": {\"bits\": 4}", "",
         "config.json: quantization_config.quant_method is missing"},
        {"", "", NULL}};
    cake_buf said = {0}, text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        cake_buf_cut(&text, 0);
        cake_buf_addf(
            &text,
            "{\"model_type\": \"mistral3\", \"vision_config\": {\"a\": 1}%s, \"text_config\": {" SIZES
            "%s, \"num_key_value_heads\": 2}}",
            cases[i][0], cases[i][1]);
        CU_ASSERT_EQUAL(read_text(text.data, NULL, &c, &said), cases[i][2] ? CAKE_ERR_FATAL : CAKE_OK);
        CU_ASSERT(cases[i][2] ? said.len && strstr(said.data, cases[i][2]) : !said.len);
    }
    cake_buf_free(&said);
    cake_buf_free(&text);
}

static void test_suppressed(void)
{
    cake_buf said = {0};
    cake_config c;
    cake_params own = cake_params_unset();
    CU_ASSERT_EQUAL_FATAL(read_text("{\"model_type\": \"llama\", " SIZES "}",
                                    "{\"suppress_tokens\": [5, 900, 6], \"begin_suppress_tokens\": [7]}", &c,
                                    &said),
                          CAKE_OK);
    CU_ASSERT_FATAL(c.defaults.n_bias == 3);
    CU_ASSERT(c.defaults.bias[0].id == 5 && c.defaults.bias[1].id == 6 && c.defaults.bias[2].id == 7);
    CU_ASSERT(c.defaults.bias[1].bias == -INFINITY && !c.defaults.bias[1].first && c.defaults.bias[2].first);
    cake_params_merge(&own, &c.defaults);
    CU_ASSERT(own.n_bias == 3 && own.bias[2].id == 7 && own.bias != c.defaults.bias);
    cake_params_free(&own);
    cake_params_free(&c.defaults);

    cake_buf all = {0}; /* of which a half is for the first place only */
    cake_buf_adds(&all, "{\"suppress_tokens\": [");
    for (int id = 0; id < 517; id++)
        cake_buf_addf(&all, "%s%d", id == 250 ? "], \"begin_suppress_tokens\": [" : id ? ", " : "", id);
    cake_buf_adds(&all, "]}");
    CU_ASSERT_EQUAL(read_text("{\"model_type\": \"llama\", " SIZES "}", all.data, &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT(said.len && strstr(said.data, "leave no token to draw"));
    cake_params_free(&c.defaults);
    cake_buf_free(&all);
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"every field that transformers has is known", test_all_known},
        {"neutral values say nothing, others are named", test_rows},
        {"values that are neither", test_single},
        {"in models of several parts", test_parts},
        {"suppressed tokens become biases of all requests", test_suppressed},
    };
    return SUITE_MAIN("unsupported fields", tests);
}
