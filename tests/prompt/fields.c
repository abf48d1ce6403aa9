/* SPDX-License-Identifier: Apache-2.0
 *
 * Every field of a request: accepted values, their meaning, and the messages about others.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "prompt/prompt.h"
#include "tests/suite.h"

/* The only request of a JSONL text. */
static cake_request only(const char *line)
{
    cake_prompt *prompt = NULL;
    cake_request request, more;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(line, strlen(line), CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_prompt_next(prompt, &request), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &more), CAKE_END);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &more), CAKE_END);
    cake_prompt_close(prompt);
    return request;
}

#define CHAT(body)                                                                                           \
    "{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":" body "}"
#define COMPLETION(body)                                                                                     \
    "{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":" body "}"
#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void test_simple(void)
{
    cake_request r =
        only("{\"id\": 7, \"prompt\": \"a\\u0000b\", \"model\": \"m\", \"max_tokens\": 5, \"seed\": -3, "
             "\"temperature\": 0.5, \"top_p\": 1, \"top_k\": -1, \"stop\": [\"x\", \"yz\"], "
             "\"ignore_eos\": true, \"logprobs\": 3, \"return_token_ids\": false}");
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT_EQUAL(r.index, 0);
    CU_ASSERT_EQUAL(r.form, CAKE_FORM_SIMPLE);
    CU_ASSERT_STRING_EQUAL(r.id, "7");
    CU_ASSERT_STRING_EQUAL(r.model, "m");
    CU_ASSERT(r.text_len == 3 && !memcmp(r.text, "a\0b", 3));
    CU_ASSERT_FALSE(r.use_template);
    CU_ASSERT(r.params.max_tokens == 5 && r.params.seed == -3 && r.params.top_k == -1);
    CU_ASSERT(r.params.temperature == 0.5 && r.params.top_p == 1);
    CU_ASSERT(r.params.ignore_eos == 1 && r.params.return_token_ids == 0 && r.params.logprobs == 3);
    CU_ASSERT_EQUAL_FATAL(r.params.n_stop, 2);
    CU_ASSERT_STRING_EQUAL(r.params.stop[1], "yz");
    cake_request_free(&r);

    r = only("{\"id\": \"a\\\"\\u00e9\", \"prompt\": [1, 2.0, 3e0]}");
    CU_ASSERT_STRING_EQUAL(r.id, "\"a\\\"\xC3\xA9\"");
    CU_ASSERT(!r.text && r.ids.len == 3 && r.ids.id[2] == 3);
    CU_ASSERT(isnan(r.params.temperature) && r.params.max_tokens == CAKE_UNSET && r.params.n_stop == -1);
    cake_request_free(&r);

    r = only(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"logprobs\": true, \"top_logprobs\": 2,"
        "\"chat_template_kwargs\": {\"enable_thinking\": false}, \"continue_final_message\": true}");
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT(!r.id && !r.text && cake_json_size(r.messages) == 1 && cake_json_size(r.kwargs) == 1);
    CU_ASSERT(r.params.logprobs == 2 && r.continue_final_message && !r.add_generation_prompt);
    cake_request_free(&r);
}

static void test_batch(void)
{
    cake_request r =
        only(CHAT("{\"model\":\"m\"," HI ",\"max_completion_tokens\":9,\"max_tokens\":9,\"stream\":true,"
                  "\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"store\":false,\"logprobs\":true,"
                  "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"stop\":\"s\"}"));
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT_EQUAL(r.form, CAKE_FORM_BATCH_CHAT);
    CU_ASSERT_STRING_EQUAL(r.id, "\"c\"");
    CU_ASSERT(r.params.max_tokens == 9 && r.params.logprobs == 0 && r.params.n_stop == 1);
    CU_ASSERT(cake_json_size(r.tools) == 1 && r.add_generation_prompt);
    cake_request_free(&r);

    r = only(COMPLETION("{\"prompt\":[\"one\"],\"logprobs\":5}"));
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT_EQUAL(r.form, CAKE_FORM_BATCH_COMPLETION);
    CU_ASSERT_STRING_EQUAL(r.text, "one");
    CU_ASSERT_EQUAL(r.params.logprobs, 5);
    cake_request_free(&r);
}

/* Every field that shapes the answer. */
static void test_sampling_fields(void)
{
    cake_request r = only(
        COMPLETION("{\"prompt\":\"x\",\"n\":3,\"best_of\":3,\"min_p\":0.05,\"min_tokens\":2,\"echo\":true,"
                   "\"max_tokens\":0,\"repetition_penalty\":1.2,\"presence_penalty\":-2,"
                   "\"frequency_penalty\":0.5,\"stop_token_ids\":[7,0.0],\"logprobs\":5,"
                   "\"logit_bias\":{\"0\":-100,\"2147483647\":1.5},\"prompt_cache_options\":{}}"));
    const cake_params *p = &r.params;
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT(p->n == 3 && p->min_p == 0.05 && p->min_tokens == 2 && p->echo == 1 && p->max_tokens == 0);
    CU_ASSERT(p->repetition_penalty == 1.2 && p->presence_penalty == -2 && p->frequency_penalty == 0.5);
    CU_ASSERT_FATAL(p->stop_ids.len == 2 && p->n_bias == 2);
    CU_ASSERT(p->stop_ids.id[0] == 7 && p->stop_ids.id[1] == 0);
    CU_ASSERT(p->bias[0].id == 0 && p->bias[0].bias == -100 && p->bias[1].id == 2147483647);
    CU_ASSERT(p->bias[1].bias == 1.5f);
    cake_request_free(&r);
    r = only(COMPLETION("{\"prompt\":\"x\",\"best_of\":1,\"stop_token_ids\":[],\"logit_bias\":{}}"));
    CU_ASSERT(r.err == CAKE_OK && !r.params.stop_ids.len && !r.params.n_bias && r.params.n == CAKE_UNSET);
    cake_request_free(&r);
}

/* Fields of other people's files under their own names. */
static cake_request named(const char *line, const char *prompt_name, const char *id_name)
{
    cake_prompt *prompt = NULL;
    cake_request request;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(line, strlen(line), CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    cake_prompt_name(prompt, &(cake_names){prompt_name, id_name});
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &request), CAKE_OK);
    cake_prompt_close(prompt);
    return request;
}

static void test_names(void)
{
    static const char line[] = "{\"id\": 1, \"prompt\": \"no\", \"question\": \"why\", \"key\": \"k\","
                               " \"turns\": [\"first\", \"second\"], \"chat\": [{\"role\": \"user\", "
                               "\"content\": \"hi\"}], \"top_k\": 3}";
    static const struct {
        const char *name, *text; /* NULL: messages */
    } good[] = {{"question", "why"}, {"turns.0", "first"}, {"turns.1", "second"}, {"chat", NULL}};
    static const struct {
        const char *name, *message;
    } bad[] = {{"missing", "missing is missing; expected a string"},
               {"turns.2", "turns.2 is missing"},
               {"turns.x", "turns.x is missing"},
               {"top_k", "top_k is 3; expected a string"},
               {"turns", "array of 2 prompts"}};
    cake_buf said = {0};
    cake_log_capture(&said);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cake_request r = named(line, good[i].name, "key");
        CU_ASSERT(r.err == CAKE_OK && r.params.top_k == 3);
        CU_ASSERT_STRING_EQUAL(r.id, "\"k\"");
        CU_ASSERT(good[i].text ? r.text && !strcmp(r.text, good[i].text) : cake_json_size(r.messages) == 1);
        cake_request_free(&r);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cake_request r = named(line, bad[i].name, NULL);
        CU_ASSERT(r.err == CAKE_ERR_REQUEST && strstr(r.fault.message, bad[i].message));
        cake_request_free(&r);
    }
    cake_log_capture(NULL);
    cake_buf_free(&said);
}

/* Defaults of the API, and null, are as good as absent. */
static void test_defaults(void)
{
    cake_request r = only(CHAT("{" HI ",\"n\":1,\"presence_penalty\":0,\"frequency_penalty\":0.0,\"logit_"
                               "bias\":{},\"tool_choice\":\"auto\","
                               "\"response_format\":{\"type\":\"text\"},\"temperature\":null,\"stop\":null,"
                               "\"max_tokens\":null,\"tools\":null,"
                               "\"parallel_tool_calls\":true,\"repetition_penalty\":1.0,\"min_p\":0,\"stop_"
                               "token_ids\":[],\"audio\":null,"
                               "\"service_tier\":\"auto\",\"modalities\":[\"text\"],\"top_logprobs\":0,"
                               "\"logprobs\":false,\"seed\":null}"));
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT(r.params.n_stop == -1 && r.params.logprobs == CAKE_UNSET && !r.tools);
    cake_request_free(&r);
    r = only(CHAT("{" HI ",\"tool_choice\":\"none\",\"max_tokens\":7.0}"));
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT_EQUAL(r.params.max_tokens, 7);
    cake_request_free(&r);
    r = only("{\"id\": -123456789012345678901, \"prompt\": \"a\"}");
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.id, "-123456789012345678901"));
    cake_request_free(&r);
    r = only("{\"prompt\": \"a\", \"seed\": 9223372036854775807}");
    CU_ASSERT(r.err == CAKE_OK && r.params.seed == INT64_MAX);
    cake_request_free(&r);
}

typedef struct bad_case {
    const char *line, *param, *message;
} bad_case;

static void check_bad(const bad_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cake_request r = only(cases[i].line);
        bool right = r.err == CAKE_ERR_REQUEST && r.fault.status == 400 &&
                     !strcmp(r.fault.param, cases[i].param) && strstr(r.fault.message, cases[i].message);
        if (!right)
            printf("\n  %s\n  -> %d %s: %s\n", cases[i].line, (int)r.err, r.fault.param, r.fault.message);
        CU_ASSERT(right);
        cake_request_free(&r);
    }
}
#define CHECK_BAD(cases) check_bad(cases, sizeof(cases) / sizeof *(cases))

static void test_bad_lines(void)
{
    static const bad_case cases[] = {
        {"{\"prompt\": \"a\",}", "", "invalid JSON at byte"},
        {"{\"prompt\": \"a", "", "was it cut short?"},
        {"{\"prompt\": \"\xFF\"}\n", "", "invalid UTF-8 at byte 12: 0xFF"},
        {"{\"prompt\": \"a\", \"temperature\": NaN}", "", "invalid JSON at byte"},
        {"{\"prompt\": \"a\", \"temperature\": 1e999}", "", "overflow"},
        {"[1, 2]", "", "the line is an array; expected an object"},
        {"7", "", "the line is an integer"},
        {"{}", "prompt", "prompt and messages are missing"},
        {"{\"prompt\": null}", "prompt", "missing"},
        {"{\"prompt\": \"a\", " HI "}", "prompt", "prompt does not go with messages"},
        {"{\"id\": 5.0, \"prompt\": \"a\"}", "id", "id is 5.0; expected a string or an integer"},
        {"{\"id\": 1.5, \"prompt\": \"a\"}", "id", "id is 1.5; expected a string or an integer"},
        {"{\"prompt\": 5}", "prompt", "prompt is 5; expected a string or an array"},
        {"{\"prompt\": []}", "prompt", "empty array"},
        {"{\"prompt\": [1, -2]}", "prompt[1]", "prompt[1] is -2; expected a token id"},
        {"{\"prompt\": [1, 2147483648]}", "prompt[1]", "2147483648"},
        {"{\"prompt\": [1, \"a\"]}", "prompt[1]", "\"a\""},
        {"{\"prompt\": [\"a\", \"b\"]}", "prompt", "array of 2 prompts"},
        {"{\"prompt\": [[1], [2]]}", "prompt", "array of 2 prompts"},
        {"{\"prompt\": \"a\", \"use_beam_search\": true}", "use_beam_search",
         "use_beam_search is true; this version does not support it: leave it out or give false"},
        {"{\"prompt\": \"a\", \"prompt_logprobs\": 21}", "prompt_logprobs", "an integer from 0 to 20"},
        {"{\"prompt\": \"a\", \"truncate_prompt_tokens\": 0}", "truncate_prompt_tokens", "an integer from 1"},
        {"{\"prompt\": \"a\", \"tools\": [1]}", "tools", "only messages take tools; take it out"},
        {"{\"prompt\": \"a\", \"model\": 3}", "model", "model is 3; expected a string"},
    };
    CHECK_BAD(cases);
}

static void test_bad_values(void)
{
#define P(rest) "{\"prompt\": \"a\", " rest "}"
    static const bad_case cases[] = {
        {P("\"temperature\": 3.5"), "temperature", "temperature is 3.5; expected a number from 0 to 2"},
        {P("\"temperature\": -1e-9"), "temperature", "temperature is -1e-09"},
        {P("\"temperature\": \"hot\""), "temperature", "temperature is \"hot\"; expected a number"},
        {P("\"temperature\": true"), "temperature", "temperature is true"},
        {P("\"top_p\": 0"), "top_p", "top_p is 0; expected a number above 0 and at most 1"},
        {P("\"top_p\": 1.0001"), "top_p", "top_p is 1.0001"},
        {P("\"top_k\": 1.5"), "top_k", "top_k is 1.5; expected an integer from -1 to 2147483647"},
        {P("\"top_k\": -2"), "top_k", "top_k is -2"},
        {P("\"max_tokens\": 0"), "max_tokens", "max_tokens is 0; expected an integer from 1"},
        {P("\"max_completion_tokens\": -1"), "max_completion_tokens", "max_completion_tokens is -1"},
        {P("\"max_completion_tokens\": 0, \"echo\": false"), "max_completion_tokens",
         "max_completion_tokens is 0; expected an integer from 1, or \"echo\": true as well"},
        {"{" HI ", \"max_tokens\": 0}", "max_tokens", "max_tokens is 0; expected an integer from 1"},
        {P("\"n\": 0"), "n", "n is 0; expected an integer from 1 to 128"},
        {P("\"n\": 129"), "n", "n is 129"},
        {P("\"n\": 2, \"best_of\": 3"), "best_of", "best_of is 3; expected the value of n"},
        {P("\"n\": 2.5"), "n", "n is 2.5"},
        {P("\"min_p\": 1.1"), "min_p", "min_p is 1.1; expected a number from 0 to 1"},
        {P("\"min_tokens\": -1"), "min_tokens", "min_tokens is -1; expected an integer from 0"},
        {P("\"repetition_penalty\": 0"), "repetition_penalty",
         "repetition_penalty is 0; expected a number above 0"},
        {P("\"repetition_penalty\": \"a\""), "repetition_penalty", "is \"a\""},
        {P("\"presence_penalty\": 2.1"), "presence_penalty",
         "presence_penalty is 2.1; expected a number from -2"},
        {P("\"frequency_penalty\": -3"), "frequency_penalty", "frequency_penalty is -3"},
        {P("\"stop_token_ids\": 3"), "stop_token_ids", "expected an array of token ids"},
        {P("\"stop_token_ids\": [1, -1]"), "stop_token_ids[1]",
         "stop_token_ids[1] is -1; expected a token id"},
        {P("\"stop_token_ids\": [1.5]"), "stop_token_ids[0]", "is 1.5; expected a token id"},
        {P("\"stop_token_ids\": [2147483648.0]"), "stop_token_ids[0]", "expected a token id"},
        {P("\"stop_token_ids\": [\"a\"]"), "stop_token_ids[0]", "is \"a\""},
        {P("\"logit_bias\": [1]"), "logit_bias", "logit_bias is an array; expected an object"},
        {P("\"logit_bias\": {\"1\": 100.5}"), "logit_bias[\"1\"]",
         "is 100.5; expected a number from -100 to 100"},
        {P("\"logit_bias\": {\"1\": null}"), "logit_bias[\"1\"]", "expected a number"},
        {P("\"logit_bias\": {\"a\": 1}"), "logit_bias", "logit_bias has the key \"a\"; expected token ids"},
        {P("\"logit_bias\": {\"\": 1}"), "logit_bias", "the key \"\""},
        {P("\"logit_bias\": {\"07\": 1}"), "logit_bias", "the key \"07\""},
        {P("\"logit_bias\": {\"-1\": 1}"), "logit_bias", "the key \"-1\""},
        {P("\"logit_bias\": {\"2147483648\": 1}"), "logit_bias", "the key \"2147483648\""},
        {P("\"logit_bias\": {\"99999999999999999999\": 1}"), "logit_bias", "the key \"9999"},
        {P("\"echo\": 1"), "echo", "echo is 1; expected true or false"},
        {"{" HI ", \"echo\": true}", "echo", "only a prompt takes echo; take it out"},
        {P("\"max_tokens\": 1e300"), "max_tokens", "max_tokens is 1e+300"},
        {P("\"max_tokens\": 3, \"max_completion_tokens\": 4"), "max_completion_tokens", "differ"},
        {P("\"seed\": 1.5"), "seed", "seed is 1.5; expected an integer from -9223372036854775807 to"},
        {P("\"seed\": -9223372036854775808"), "seed", "seed is -9223372036854775808"},
        {P("\"seed\": 9223372036854775808"), "seed", "seed is 9223372036854775808; expected"},
        {P("\"stop\": 3"), "stop", "stop is 3; expected a string or an array of up to 16 strings"},
        {P("\"stop\": [\"a\", \"\"]"), "stop[1]", "stop[1] is \"\"; expected a string that is not empty"},
        {P("\"stop\": \"\""), "stop", "not empty"},
        {P("\"stop\": \"a\\u0000\""), "stop", "without \\u0000"},
        {P("\"stop\": [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7]"), "stop", "stop is an array of 17"},
        {P("\"ignore_eos\": 1"), "ignore_eos", "ignore_eos is 1; expected true or false"},
        {P("\"logprobs\": 21"), "logprobs", "logprobs is 21; expected an integer from 0 to 20"},
        {P("\"top_logprobs\": 2"), "top_logprobs", "expected \"logprobs\": true as well"},
        {"{" HI ", \"top_logprobs\": 21, \"logprobs\": true}", "top_logprobs", "top_logprobs is 21"},
        {"{" HI ", \"chat_template_kwargs\": 3}", "chat_template_kwargs", "expected an object"},
        {"{" HI ", \"continue_final_message\": true, \"add_generation_prompt\": true}",
         "continue_final_message", "both true"},
    };
    CHECK_BAD(cases);
}

static void test_bad_batch(void)
{
#define POST "\"method\":\"POST\",\"url\":\"/v1/chat/completions\""
    static const bad_case cases[] = {
        {"{" POST ",\"body\":{}}", "custom_id", "custom_id is missing; expected a string"},
        {"{\"custom_id\":3," POST ",\"body\":{}}", "custom_id", "custom_id is 3"},
        {"{\"custom_id\":\"c\",\"method\":\"GET\",\"url\":\"/v1/completions\",\"body\":{}}", "method",
         "\"GET\""},
        {"{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/images\",\"body\":{}}", "url",
         "url is \"/v1/images\"; expected \"/v1/chat/completions\""},
        {"{\"custom_id\":\"c\"," POST "}", "body", "body is missing"},
        {"{\"custom_id\":\"c\"," POST ",\"body\":[]}", "body", "body is an array; expected an object"},
        {CHAT("{}"), "messages", "messages is missing"},
        {CHAT("{" HI ",\"temprature\":1}"), "temprature", "temprature is not a field of a request"},
        {CHAT("{" HI ",\"id\":\"x\"}"), "id", "not a field"},
        {CHAT("{" HI ",\"prompt\":\"x\"}"), "prompt", "not a field of /v1/chat/completions"},
        {CHAT("{" HI ",\"logprobs\":3}"), "logprobs", "expected true or false"},
        {CHAT("{" HI ",\"response_format\":{\"type\":\"xml\"}}"), "response_format.type",
         "expected \"text\", \"json_object\", \"json_schema\" or \"structural_tag\""},
        {CHAT("{" HI ",\"response_format\":{\"type\":\"json_schema\"}}"), "response_format.json_schema",
         "is missing"},
        {CHAT("{" HI ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":3}}}"),
         "response_format.json_schema.schema", "expected a JSON schema"},
        {CHAT("{" HI ",\"structured_outputs\":{}}"), "structured_outputs", "expected an object with json"},
        {CHAT("{" HI ",\"structured_outputs\":{\"regex\":3}}"), "structured_outputs.regex",
         "expected a string"},
        {CHAT("{" HI ",\"structured_outputs\":{\"whitespace_pattern\":\" \"}}"), "structured_outputs",
         "structured_outputs.whitespace_pattern is not supported"},
        {CHAT("{" HI ",\"guided_choice\":[1]}"), "guided_choice", "expected an array of strings"},
        {CHAT("{" HI ",\"tool_choice\":\"required\"}"), "tool_choice", "there are no tools"},
        {CHAT("{" HI ",\"tool_choice\":\"any\"}"), "tool_choice",
         "tool_choice is \"any\"; expected \"none\""},
        {CHAT("{" HI ",\"tool_choice\":{\"type\":\"function\"}}"), "tool_choice", "{\"name\": NAME}}"},
        {CHAT("{" HI
              ",\"tool_choice\":\"required\",\"response_format\":{\"type\":\"json_object\"},\"tools\":[{"
              "\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"),
         "tool_choice", "response_format and tool_choice both say"},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"\"}}]}"),
         "tools[0].function.name", "expected a string of 1 to 128"},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}]}"),
         "tools[0].function.name", "expected a string of 1 to 128"},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a\\u0000b\"}}]}"),
         "tools[0].function.name", "expected a string of 1 to 128"},
        {CHAT("{" HI
              ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":true}}]}"),
         "tools[0].function.parameters", "expected a JSON schema of an object"},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
              "\"type\":\"array\"}}}]}"),
         "tools[0].function.parameters.type", "expected \"object\""},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"type\":"
              "\"function\",\"function\":{\"name\":\"f\"}}]}"),
         "tools[1].function.name", "no tool before it has"},
        {CHAT("{" HI ",\"parallel_tool_calls\":1}"), "parallel_tool_calls", "true or false"},
        {CHAT("{" HI ",\"reasoning_effort\":3}"), "reasoning_effort", "expected a string"},
        {COMPLETION("{\"prompt\":\"a\",\"tool_choice\":\"required\"}"), "tool_choice",
         "tool_choice is \"required\""},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"web\"}]}"), "tools[0].type", "expected \"function\""},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\"}]}"), "tools[0].function.name", "missing"},
        {CHAT("{" HI ",\"tools\":{}}"), "tools", "tools is an object; expected an array"},
        {COMPLETION("{" HI "}"), "messages", "not a field of /v1/completions"},
        {COMPLETION("{}"), "prompt", "prompt is missing"},
        {COMPLETION("{\"prompt\":\"x\",\"logprobs\":true}"), "logprobs",
         "logprobs is true; expected an integer"},
        {COMPLETION("{\"prompt\":\"x\",\"logprobs\":6}"), "logprobs",
         "logprobs is 6; expected an integer from 0 to 5"},
        {CHAT("{" HI ",\"echo\":true}"), "echo", "not a field of /v1/chat/completions"},
        {CHAT("{" HI ",\"best_of\":2}"), "best_of", "not a field of /v1/chat/completions"},
        {CHAT("{" HI ",\"moderation\":{}}"), "moderation", "does not support"},
        {COMPLETION("{\"prompt\":\"x\",\"suffix\":\"y\"}"), "suffix", "suffix is \"y\""},
        {COMPLETION("{\"prompt\":\"x\",\"best_of\":3}"), "best_of", "best_of is 3"},
    };
    CHECK_BAD(cases);
}

static void test_bad_messages(void)
{
#define M(messages) "{\"messages\": " messages "}"
    static const bad_case cases[] = {
        {M("[]"), "messages", "messages is empty"},
        {M("\"hi\""), "messages", "messages is \"hi\"; expected an array"},
        {M("[1]"), "messages[0]", "messages[0] is 1; expected an object"},
        {M("[{\"content\":\"a\"}]"), "messages[0].role", "messages[0].role is missing"},
        {M("[{\"role\":\"king\",\"content\":\"a\"}]"), "messages[0].role", "\"king\"; expected \"system\""},
        {M("[{\"role\":\"user\"}]"), "messages[0].content", "messages[0].content is missing"},
        {M("[{\"role\":\"user\",\"content\":null}]"), "messages[0].content", "null"},
        {M("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\"}]}]"),
         "messages[0].content[1].type", "only text is read"},
        {M("[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]"), "messages[0].content[0].text",
         "missing"},
        {M("[{\"role\":\"user\",\"content\":[\"a\"]}]"), "messages[0].content[0]", "expected an object"},
        {M("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]}]"),
         "messages[0].tool_calls[0].function", "missing"},
        {M("[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":3}}]}]"),
         "messages[0].tool_calls[0].function.arguments", "is 3; expected a string of JSON"},
        {M("[{\"role\":\"tool\",\"content\":\"a\",\"tool_call_id\":3}]"), "messages[0].tool_call_id", "is 3"},
    };
    CHECK_BAD(cases);
    cake_request r =
        only(M("[{\"role\":\"developer\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},"
               "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\","
               "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}],\"reasoning_content\":\"hm\"},"
               "{\"role\":\"tool\",\"content\":\"b\",\"tool_call_id\":\"1\"}]"));
    CU_ASSERT_EQUAL(r.err, CAKE_OK);
    CU_ASSERT_EQUAL(cake_json_size(r.messages), 3);
    cake_request_free(&r);
}

int main(void)
{
    static const suite_test tests[] = {
        {"simple lines", test_simple},
        {"batch lines", test_batch},
        {"fields that shape the answer", test_sampling_fields},
        {"defaults and null pass", test_defaults},
        {"fields under other names", test_names},
        {"bad lines name what is wrong", test_bad_lines},
        {"bad values name the field, what was found and what is expected", test_bad_values},
        {"bad batch lines", test_bad_batch},
        {"bad messages name the place", test_bad_messages},
    };
    return SUITE_MAIN("fields", tests);
}
