/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "prompt/prompt.h"
#include "suite.h"

static cake_prompt *from(const char *bytes, cake_prompt_format format)
{
    cake_prompt *prompt = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(bytes, strlen(bytes), format, &prompt), CAKE_OK);
    return prompt;
}

/* The only request of a JSONL text. */
static cake_request only(const char *line)
{
    cake_prompt *prompt = from(line, CAKE_PROMPT_JSONL);
    cake_request request, more;
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

    r = only("{\"id\": \"a\\\"\\u00e9\", \"prompt\": [1, 2, 3]}");
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
        {"{\"id\": 1.5, \"prompt\": \"a\"}", "id", "id is 1.5; expected a string or an integer"},
        {"{\"prompt\": 5}", "prompt", "prompt is 5; expected a string or an array"},
        {"{\"prompt\": []}", "prompt", "empty array"},
        {"{\"prompt\": [1, -2]}", "prompt[1]", "prompt[1] is -2; expected a token id"},
        {"{\"prompt\": [1, 2147483648]}", "prompt[1]", "2147483648"},
        {"{\"prompt\": [1, \"a\"]}", "prompt[1]", "\"a\""},
        {"{\"prompt\": [\"a\", \"b\"]}", "prompt", "array of 2 prompts"},
        {"{\"prompt\": [[1], [2]]}", "prompt", "array of 2 prompts"},
        {"{\"prompt\": \"a\", \"n\": 2}", "n",
         "n is 2; this version does not support it: leave it out or give 1"},
        {"{\"prompt\": \"a\", \"min_p\": 0.1}", "min_p", "min_p is 0.1"},
        {"{\"prompt\": \"a\", \"stop_token_ids\": [3]}", "stop_token_ids", "does not support"},
        {"{\"prompt\": \"a\", \"echo\": true}", "echo", "echo is true"},
        {"{\"prompt\": \"a\", \"tools\": [1]}", "tools", "tools does not go with a prompt"},
        {"{\"prompt\": \"a\", \"repetition_penalty\": 1.1}", "repetition_penalty", "1.1"},
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
        {P("\"max_tokens\": 1e300"), "max_tokens", "max_tokens is 1e+300"},
        {P("\"max_tokens\": 3, \"max_completion_tokens\": 4"), "max_completion_tokens", "differ"},
        {P("\"seed\": 1.5"), "seed", "seed is 1.5; expected an integer from -9223372036854775807 to"},
        {P("\"seed\": -9223372036854775808"), "seed", "seed is -9223372036854775808"},
        {P("\"seed\": 9223372036854775808"), "seed", "seed is 9.22"},
        {P("\"stop\": 3"), "stop", "stop is 3; expected a string or an array of up to 16 strings"},
        {P("\"stop\": [\"a\", \"\"]"), "stop[1]", "stop[1] is \"\"; expected a string that is not empty"},
        {P("\"stop\": \"\""), "stop", "not empty"},
        {P("\"stop\": \"a\\u0000\""), "stop", "without \\u0000"},
        {P("\"stop\": [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7]"), "stop", "stop is an array of 17"},
        {P("\"ignore_eos\": 1"), "ignore_eos", "ignore_eos is 1; expected true or false"},
        {P("\"logprobs\": 21"), "logprobs", "logprobs is 21; expected an integer from 0 to 20"},
        {P("\"top_logprobs\": 2"), "top_logprobs", "expected \"logprobs\": true beside it"},
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
        {"{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{}}", "url",
         "url is \"/v1/embeddings\"; expected \"/v1/chat/completions\""},
        {"{\"custom_id\":\"c\"," POST "}", "body", "body is missing"},
        {"{\"custom_id\":\"c\"," POST ",\"body\":[]}", "body", "body is an array; expected an object"},
        {CHAT("{}"), "messages", "messages is missing"},
        {CHAT("{" HI ",\"temprature\":1}"), "temprature", "temprature is not a field of a request"},
        {CHAT("{" HI ",\"id\":\"x\"}"), "id", "not a field"},
        {CHAT("{" HI ",\"prompt\":\"x\"}"), "prompt", "no field of /v1/chat/completions"},
        {CHAT("{" HI ",\"logprobs\":3}"), "logprobs", "expected true or false"},
        {CHAT("{" HI ",\"response_format\":{\"type\":\"json_object\"}}"), "response_format",
         "does not support"},
        {CHAT("{" HI ",\"tool_choice\":\"required\"}"), "tool_choice", "tool_choice is \"required\""},
        {CHAT("{" HI
              ",\"tool_choice\":\"none\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"),
         "tool_choice", "tool_choice is \"none\""},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"web\"}]}"), "tools[0].type", "expected \"function\""},
        {CHAT("{" HI ",\"tools\":[{\"type\":\"function\"}]}"), "tools[0].function.name", "missing"},
        {CHAT("{" HI ",\"tools\":{}}"), "tools", "tools is an object; expected an array"},
        {COMPLETION("{" HI "}"), "messages", "no field of /v1/completions"},
        {COMPLETION("{}"), "prompt", "prompt is missing"},
        {COMPLETION("{\"prompt\":\"x\",\"logprobs\":true}"), "logprobs",
         "logprobs is true; expected an integer"},
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

static void test_lines(void)
{
    cake_prompt *prompt =
        from("\xEF\xBB\xBF{\"prompt\": \"a\"}\r\n\n  \t\r\n{\"prompt\": \"b\"}", CAKE_PROMPT_JSONL);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.index == 0 && !strcmp(r.text, "a"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.index == 3 && r.order == 1 && !strcmp(r.text, "b"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_progress(prompt), 1);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    prompt = from("", CAKE_PROMPT_JSONL);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
}

/* The form of what cannot be parsed is that of the first line that tells it, before and after. */
static void test_unparsable_forms(void)
{
    cake_prompt *prompt =
        from("oops\n[]\n" COMPLETION("{\"prompt\":\"x\"}") "\n{bad\n{\"prompt\": \"s\"}\n{worse\n",
             CAKE_PROMPT_JSONL);
    static const cake_form forms[] = {CAKE_FORM_BATCH_COMPLETION, CAKE_FORM_BATCH_COMPLETION,
                                      CAKE_FORM_BATCH_COMPLETION, CAKE_FORM_BATCH_COMPLETION,
                                      CAKE_FORM_SIMPLE,           CAKE_FORM_BATCH_COMPLETION};
    for (int i = 0; i < 6; i++) {
        cake_request r;
        CU_ASSERT_EQUAL_FATAL(cake_prompt_next(prompt, &r), CAKE_OK);
        CU_ASSERT_EQUAL(r.index, i);
        CU_ASSERT_EQUAL(r.form, forms[i]);
        CU_ASSERT_EQUAL(r.err, i == 2 || i == 4 ? CAKE_OK : CAKE_ERR_REQUEST);
        CU_ASSERT(r.err == CAKE_OK || r.id == NULL);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);

    cake_buf text = {0}; /* nothing but rubbish: simple, and bounded */
    for (int i = 0; i < 2500; i++)
        cake_buf_adds(&text, "rubbish\n");
    prompt = from(text.data, CAKE_PROMPT_JSONL);
    cake_request r;
    int64_t n = 0;
    for (; !cake_prompt_next(prompt, &r); n++) {
        if (r.index != n || r.form != CAKE_FORM_SIMPLE)
            CU_FAIL("order or form");
        cake_request_free(&r);
    }
    CU_ASSERT_EQUAL(n, 2500);
    cake_prompt_close(prompt);
    prompt = from(text.data, CAKE_PROMPT_JSONL); /* closed in the middle */
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    cake_prompt_close(prompt);
    cake_buf_free(&text);
}

static void test_duplicates(void)
{
    cake_buf text = {0};
    enum { N = 100000 };
    for (int i = 0; i <= N; i++)
        cake_buf_addf(
            &text,
            "{\"custom_id\":\"request-%d\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":{%s}}\n",
            i < N ? i : 4711, i == 4711 ? "" : "\"prompt\":\"x\"");
    cake_prompt *prompt = from(text.data, CAKE_PROMPT_JSONL);
    cake_request r;
    int faults = 0;
    while (!cake_prompt_next(prompt, &r)) {
        faults += r.err != CAKE_OK;
        if (r.index == N) {
            CU_ASSERT_STRING_EQUAL(r.fault.param, "custom_id");
            CU_ASSERT_PTR_NOT_NULL(
                strstr(r.fault.message, "custom_id is \"request-4711\", as in an earlier line"));
            CU_ASSERT_STRING_EQUAL(r.id, "\"request-4711\"");
        }
        cake_request_free(&r);
    }
    CU_ASSERT_EQUAL(faults, 2); /* the empty body, and its id again */
    cake_prompt_close(prompt);
    cake_buf_free(&text);
    prompt =
        from("{\"id\": \"a\", \"prompt\": \"x\"}\n{\"id\": \"a\", \"prompt\": \"x\"}\n", CAKE_PROMPT_JSONL);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
        CU_ASSERT_EQUAL(r.err, CAKE_OK);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);
}

static void test_unknown_said_once(void)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    cake_prompt *prompt =
        from("{\"prompt\":\"x\",\"answer\":\"y\"}\n{\"prompt\":\"x\",\"answer\":\"y\"}\n", CAKE_PROMPT_JSONL);
    cake_request r;
    while (!cake_prompt_next(prompt, &r)) {
        CU_ASSERT_EQUAL(r.err, CAKE_OK);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);
    cake_log_capture(NULL);
    const char *first = said.data ? strstr(said.data, "field \"answer\" is unknown and ignored") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 10, "answer"));
    cake_buf_free(&said);
}

static void test_txt(void)
{
    cake_prompt *prompt = from("one\\ntwo\\t\\\\n \\x\\\n\n   \r\nlast\xFF", CAKE_PROMPT_TXT);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.use_template && r.form == CAKE_FORM_SIMPLE && !r.id);
    CU_ASSERT_STRING_EQUAL(r.text, "one\ntwo\t\\n \\x\\");
    CU_ASSERT_EQUAL(r.text_len, strlen(r.text));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.index == 3 && r.order == 1 && r.err == CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.fault.message, "invalid UTF-8 at byte 4: 0xFF"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);

    char *texts[] = {"a\\n", ""};
    CU_ASSERT_EQUAL(cake_prompt_from_texts(texts, 2, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(!strcmp(r.text, "a\\n") && r.use_template); /* the shell has escapes of its own */
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.text && !r.text_len && r.index == 1);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
}

static void test_open(void)
{
    static const struct {
        const char *path, *message;
        cake_err err;
    } cases[] = {
        {"/nonexistent/p.jsonl", "/nonexistent/p.jsonl: cannot be opened: No such file", CAKE_ERR_FATAL},
        {"/tmp", "/tmp: is a directory", CAKE_ERR_FATAL},
        {"p.h5", "p.h5: the ending \".h5\" tells no format", CAKE_ERR_USAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_prompt *prompt = NULL;
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_prompt_open(cases[i].path, CAKE_PROMPT_AUTO, &prompt), cases[i].err);
        cake_log_capture(NULL);
        CU_ASSERT_PTR_NULL(prompt);
        CU_ASSERT(said.data && strstr(said.data, cases[i].message));
        cake_buf_free(&said);
    }
}

/* Standard input that ends in the middle of a line: what came whole is served, the rest is an error record. */
static void test_cut_stdin(void)
{
    static const char text[] = "{\"prompt\": \"whole\"}\n{\"id\": 7, \"prompt\": \"cut sh";
    int ends[2], before = dup(STDIN_FILENO);
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(write(ends[1], text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    cake_prompt *prompt;
    cake_request r;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open("-", CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "whole"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && r.index == 1 && r.form == CAKE_FORM_SIMPLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.fault.message, "ends here without a newline: was it cut short?"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
}

/* A disk that fails while it is read; the kernel's own memory file plays it. */
static void test_read_error(void)
{
    cake_prompt *prompt;
    cake_request r;
    cake_buf said = {0};
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open("/proc/self/mem", CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    const char *first = said.data ? strstr(said.data, "/proc/self/mem: cannot be read at byte 0: ") : NULL;
    CU_ASSERT(first && !strstr(first + 1, "/proc/self/mem")); /* said once */
    cake_buf_free(&said);
    cake_prompt_close(prompt);
}

/* Lines around the limit, through a pipe that delivers them in pieces. */
static void test_long_lines(void)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t writer = fork();
    if (!writer) {
        static char block[1 << 16];
        memset(block, 'x', sizeof block);
        FILE *f = fdopen(ends[1], "w");
        close(ends[0]);
        /* 64 MiB exactly, with its quotes and braces; 200 MiB; a short one */
        fputs("{\"prompt\": \"", f);
        for (size_t left = (64u << 20) - 14; left;) {
            size_t n = left < sizeof block ? left : sizeof block;
            left -= fwrite(block, 1, n, f);
        }
        fputs("\"}\r\n", f);
        for (int i = 0; i < 3200; i++)
            fwrite(block, 1, sizeof block, f);
        fputs("\n{\"prompt\": \"end\"}", f);
        fclose(f);
        _exit(0);
    }
    close(ends[1]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    CU_ASSERT(cake_prompt_progress(prompt) < 0);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.text_len == (64u << 20) - 14);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && strstr(r.fault.message, "the line has 209715200 bytes"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "end") && r.index == 2);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    close(ends[0]);
}

/* AddressSanitizer keeps freed memory for a while, so that peaks say nothing. */
extern void __asan_init(void) __attribute__((weak));

/* A file much larger than what may be held passes through memory that does not grow with it. */
static void test_bounded_memory(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/large.jsonl", suite_tmp());
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    static char filler[1000];
    memset(filler, 'y', sizeof filler - 1);
    for (int i = 0; i < 100000; i++)
        fprintf(f, "{\"id\": %d, \"prompt\": \"%s\"}\n", i, filler);
    fclose(f);
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    struct rusage before, after;
    cake_request r;
    int n = 0;
    double last = -1;
    while (!cake_prompt_next(prompt, &r)) {
        cake_request_free(&r);
        double progress = cake_prompt_progress(prompt);
        if (progress < last || progress > 1)
            CU_FAIL("progress");
        last = progress;
        if (n++ == 10000)
            getrusage(RUSAGE_SELF, &before);
    }
    getrusage(RUSAGE_SELF, &after);
    CU_ASSERT_EQUAL(n, 100000);
    CU_ASSERT_EQUAL(last, 1);
    CU_ASSERT(__asan_init || after.ru_maxrss - before.ru_maxrss < 4096); /* KiB, while 90 MB went by */
    cake_prompt_close(prompt);
    unlink(path);
}

static void test_batch_file_of_vllm(void)
{
    const char *path = suite_asset("prompts/vllm_openai_example_batch.jsonl");
    if (!path)
        return;
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    cake_request r;
    int n = 0;
    while (!cake_prompt_next(prompt, &r)) {
        CU_ASSERT(r.err == CAKE_OK && r.form == CAKE_FORM_BATCH_CHAT && r.params.max_tokens == 1000);
        CU_ASSERT_EQUAL(cake_json_size(r.messages), 2);
        cake_request_free(&r);
        n++;
    }
    CU_ASSERT_EQUAL(n, 2);
    cake_prompt_close(prompt);
}

/* A line that would become gigabytes is refused unparsed. */
static void test_heavy_line(void)
{
    size_t n = 2 << 20;
    cake_buf line = {0};
    cake_buf_adds(&line, "{\"prompt\": \"a\", \"x\": [");
    for (size_t i = 0; i < n; i++)
        cake_buf_adds(&line, "{},");
    cake_buf_adds(&line, "1]}\n{\"prompt\": \"b\"}\n");
    cake_prompt *prompt;
    cake_request r;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(line.data, line.len, CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && strstr(r.fault.message, "too many values"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "b"));
    cake_request_free(&r);
    cake_prompt_close(prompt);
    cake_buf_free(&line);
}

int main(void)
{
    static const suite_test tests[] = {
        {"a line that would become gigabytes", test_heavy_line},
        /* first, while the peak of memory is still low */
        {"memory is bounded", test_bounded_memory},
        {"simple lines", test_simple},
        {"batch lines", test_batch},
        {"defaults and null pass", test_defaults},
        {"bad lines name what is wrong", test_bad_lines},
        {"bad values name the field, what was found and what is expected", test_bad_values},
        {"bad batch lines", test_bad_batch},
        {"bad messages name the place", test_bad_messages},
        {"BOM, CRLF, blank lines, a last line without newline", test_lines},
        {"lines that cannot be parsed take the file's form", test_unparsable_forms},
        {"duplicate custom_id", test_duplicates},
        {"unknown fields of simple lines are said once", test_unknown_said_once},
        {"text files and -p", test_txt},
        {"files that cannot be opened", test_open},
        {"standard input that ends in mid-line", test_cut_stdin},
        {"a file that cannot be read to its end", test_read_error},
        {"lines of 64 MiB and longer ones", test_long_lines},
        {"a batch file of vLLM", test_batch_file_of_vllm},
    };
    return SUITE_MAIN("prompt", tests);
}
