/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of every shape as lines.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "formats/json.h"
#include "record/format.h"
#include "records.h"

static void check_line(const cake_record_options *options, const cake_record *record, const char *want)
{
    cake_recorder *recorder;
    cake_buf line = {0};
    CU_ASSERT_EQUAL_FATAL(cake_record_open(options, &recorder), CAKE_OK);
    cake_record_line(recorder, record, &line);
    if (strcmp(line.data, want) != 0)
        printf("\n  got  %s\n  want %s\n", line.data, want);
    CU_ASSERT_STRING_EQUAL(line.data, want);
    cake_json *root = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL(cake_json_parse(line.data, line.len, &root, &fault), CAKE_OK);
    cake_json_free(root);
    cake_buf_free(&line);
    cake_record_close(recorder);
}

static void test_simple(void)
{
    cake_record_options options = options_of(path_of("shape.jsonl"));
    cake_record r = answer_of(4, "a\n\"\xC3\xA9\"");
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 4, \"text\": \"a\\n\\\"\xC3\xA9\\\"\", \"finish_reason\": \"stop\", "
        "\"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 3}}");
    r.id = "\"x\"";
    choice.finish = CAKE_FINISH_LENGTH;
    r.return_token_ids = true;
    check_line(
        &options, &r,
        "{\"id\": \"x\", \"index\": 4, \"text\": \"a\\n\\\"\xC3\xA9\\\"\", \"finish_reason\": \"length\", "
        "\"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 3}, \"prompt_token_ids\": [5, 6, 7], "
        "\"token_ids\": [1, 2, 0]}");
    cake_fault fault;
    cake_fault_set(&fault, "top_p", "top_p is 2; expected \"less\"");
    r.fault = &fault;
    r.id = "7";
    check_line(&options, &r,
               "{\"id\": 7, \"index\": 4, \"error\": {\"message\": \"top_p is 2; expected \\\"less\\\"\", "
               "\"type\": \"invalid_request_error\", \"param\": \"top_p\"}}");
}

static void test_openai(void)
{
    cake_record_options options = options_of(path_of("shape.jsonl"));
    cake_record r = answer_of(12, "Hello");
    r.form = CAKE_FORM_BATCH_CHAT;
    r.chat = true;
    r.id = "\"c-1\"";
    check_line(
        &options, &r,
        "{\"id\": \"batch_req-0000000000000abc-12\", \"custom_id\": \"c-1\", \"response\": {\"status_code\": "
        "200, \"request_id\": \"req-0000000000000abc-12\", \"body\": {\"id\": "
        "\"chatcmpl-0000000000000abc-12\", \"object\": \"chat.completion\", \"created\": 1700000000, "
        "\"model\": "
        "\"demo\", \"choices\": [{\"index\": 0, \"message\": {\"role\": \"assistant\", \"content\": "
        "\"Hello\", "
        "\"refusal\": null}, \"logprobs\": null, \"finish_reason\": \"stop\"}], \"usage\": "
        "{\"prompt_tokens\": "
        "3, \"completion_tokens\": 3, \"total_tokens\": 6}}}, \"error\": null}");
    options.deterministic_ids = true;
    r.form = CAKE_FORM_BATCH_COMPLETION;
    r.chat = false;
    r.model = "mine";
    r.return_token_ids = true;
    check_line(
        &options, &r,
        "{\"id\": \"batch_req-12\", \"custom_id\": \"c-1\", \"response\": {\"status_code\": 200, "
        "\"request_id\": \"req-12\", \"body\": {\"id\": \"cmpl-12\", \"object\": \"text_completion\", "
        "\"created\": 0, \"model\": \"mine\", \"choices\": [{\"index\": 0, \"text\": \"Hello\", "
        "\"logprobs\": "
        "null, \"finish_reason\": \"stop\", \"token_ids\": [1, 2, 0]}], \"usage\": {\"prompt_tokens\": 3, "
        "\"completion_tokens\": 3, \"total_tokens\": 6}, \"prompt_token_ids\": [5, 6, 7]}}, \"error\": "
        "null}");
    cake_fault fault;
    cake_fault_set(&fault, NULL, "invalid JSON at byte 3");
    r.fault = &fault;
    r.id = NULL;
    check_line(&options, &r,
               "{\"id\": \"batch_req-12\", \"custom_id\": null, \"response\": {\"status_code\": 400, "
               "\"request_id\": "
               "\"req-12\", \"body\": {\"error\": {\"message\": \"invalid JSON at byte 3\", \"type\": "
               "\"invalid_request_error\", \"param\": null, \"code\": null}}}, \"error\": null}");
    fault.status = 500;
    check_line(&options, &r,
               "{\"id\": \"batch_req-12\", \"custom_id\": null, \"response\": {\"status_code\": 500, "
               "\"request_id\": "
               "\"req-12\", \"body\": {\"error\": {\"message\": \"invalid JSON at byte 3\", \"type\": "
               "\"server_error\", \"param\": null, \"code\": null}}}, \"error\": null}");
}

static void test_logprobs(void)
{
    static const int32_t ids[] = {1, 2, 3, 4, 5, 0};
    static const cake_token_logprob scored[] = {
        /* 2 and 6 are spelled alike */
        {1, -0.5f}, {1, -0.5f}, {2, -1.25f},    {2, -3},     {6, -0.1f},  {2, -3},
        {3, 0},     {3, 0},     {4, -INFINITY}, {4, -2},     {4, -2},     {3, -3},
        {5, -1},    {5, -1},    {0, -1e-7f},    {0, -1e-7f}, {0, -1e-7f}, {1, -16.25f},
    };
    cake_record_options options = options_of(path_of("shape.jsonl"));
    cake_record r = answer_of(0, "Hello\xC3\xA9 \"w\"");
    choice.ids = ids;
    choice.n_id = 6;
    static const size_t begin[] = {0, 3, 5, 6, 7, 11};
    choice.logprobs = scored;
    choice.begin = begin;
    r.n_top = r.n_logprob = 2;
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 0, \"text\": \"Hello\xC3\xA9 \\\"w\\\"\", \"finish_reason\": \"stop\", "
        "\"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 6}, \"logprobs\": {\"tokens\": [\"Hel\", "
        "\"lo\", \"bytes:\\\\xc3\", \"bytes:\\\\xa9\", \" \\\"w\\\"\", \"<end>\"], \"token_logprobs\": "
        "[-0.5, "
        "-3.0, 0.0, -2.0, -1.0, -1e-07], \"top_logprobs\": [{\"Hel\": -0.5, \"lo\": -1.25}, {\"lo\": -0.1}, "
        "{\"bytes:\\\\xc3\": 0.0, \"bytes:\\\\xa9\": -9999.0}, {\"bytes:\\\\xa9\": -2.0, \"bytes:\\\\xc3\": "
        "-3.0}, {\" \\\"w\\\"\": -1.0, \"<end>\": -1e-07}, {\"<end>\": -1e-07, \"Hel\": -16.25}], "
        "\"text_offset\": [0, 3, 5, 6, 6, 10]}}");

    static const cake_token_logprob zero[] = {
        {7, -0.5f}, {7, -0.5f}, {1, -2}}; /* no key of JSON to many parsers */
    choice.ids = &zero[0].id;
    choice.n_id = 1;
    choice.logprobs = zero;
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 0, \"text\": \"Hello\xC3\xA9 \\\"w\\\"\", \"finish_reason\": \"stop\", "
        "\"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 1}, \"logprobs\": {\"tokens\": "
        "[\"bytes:\\\\x00\"], \"token_logprobs\": [-0.5], \"top_logprobs\": [{\"bytes:\\\\x00\": -0.5, "
        "\"Hel\": -2.0}], \"text_offset\": [0]}}");
    choice.ids = ids;
    choice.n_id = 6;
    choice.logprobs = scored;

    options.deterministic_ids = true;
    r.form = CAKE_FORM_BATCH_CHAT;
    r.chat = true;
    choice.ids = ids + 2;
    choice.n_id = 1;
    r.n_top = r.n_logprob = 1;
    choice.logprobs = scored + 6;
    choice.text = "\xEF\xBF\xBD";
    choice.text_len = 3;
    check_line(
        &options, &r,
        "{\"id\": \"batch_req-0\", \"custom_id\": null, \"response\": {\"status_code\": 200, \"request_id\": "
        "\"req-0\", \"body\": {\"id\": \"chatcmpl-0\", \"object\": \"chat.completion\", \"created\": 0, "
        "\"model\": \"demo\", \"choices\": [{\"index\": 0, \"message\": {\"role\": \"assistant\", "
        "\"content\": "
        "\"\xEF\xBF\xBD\", \"refusal\": null}, \"logprobs\": {\"content\": [{\"token\": \"\xEF\xBF\xBD\", "
        "\"logprob\": 0.0, \"bytes\": [195], \"top_logprobs\": [{\"token\": \"\xEF\xBF\xBD\", \"logprob\": "
        "0.0, "
        "\"bytes\": [195]}]}], \"refusal\": null}, \"finish_reason\": \"stop\"}], \"usage\": "
        "{\"prompt_tokens\": 3, \"completion_tokens\": 1, \"total_tokens\": 4}}}, \"error\": null}");
}

/* Several answers: in the API's place, and in a list of the simple form; the prompt counts once. */
static void test_choices(void)
{
    cake_record_options options = options_of(path_of("shape.jsonl"));
    options.deterministic_ids = true;
    cake_record r = answer_of(3, "Hello");
    cake_choice both[2] = {choice, choice};
    both[1].text = "";
    both[1].text_len = 0;
    both[1].n_id = 2;
    both[1].finish = CAKE_FINISH_LENGTH;
    r.choices = both;
    r.n_choice = 2;
    r.return_token_ids = true;
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 3, \"choices\": [{\"index\": 0, \"text\": \"Hello\", \"finish_reason\": "
        "\"stop\", \"token_ids\": [1, 2, 0]}, {\"index\": 1, \"text\": \"\", \"finish_reason\": \"length\", "
        "\"token_ids\": [1, 2]}], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 5}, "
        "\"prompt_token_ids\": [5, 6, 7]}");
    r.form = CAKE_FORM_BATCH_CHAT;
    r.chat = true;
    check_line(
        &options, &r,
        "{\"id\": \"batch_req-3\", \"custom_id\": null, \"response\": {\"status_code\": 200, \"request_id\": "
        "\"req-3\", \"body\": {\"id\": \"chatcmpl-3\", \"object\": \"chat.completion\", \"created\": 0, "
        "\"model\": "
        "\"demo\", \"choices\": [{\"index\": 0, \"message\": {\"role\": \"assistant\", \"content\": "
        "\"Hello\", "
        "\"refusal\": null}, \"logprobs\": null, \"finish_reason\": \"stop\", \"token_ids\": [1, 2, 0]}, "
        "{\"index\": "
        "1, \"message\": {\"role\": \"assistant\", \"content\": \"\", \"refusal\": null}, \"logprobs\": "
        "null, "
        "\"finish_reason\": \"length\", \"token_ids\": [1, 2]}], \"usage\": {\"prompt_tokens\": 3, "
        "\"completion_tokens\": 5, \"total_tokens\": 8}, \"prompt_token_ids\": [5, 6, 7]}}, \"error\": "
        "null}");
}

/* The prompt is part of the text, and its tokens of the logprobs; the first has no probability. */
static void test_echo(void)
{
    static const int32_t prompt[] = {0, 3, 4};
    static const cake_token_logprob prompt_logprobs[] = {{0, 9},  {0, 9},     {3, -2},
                                                         {5, -1}, {4, -0.5f}, {4, -0.5f}};
    static const size_t prompt_begin[] = {0, 0, 1}, begin[] = {0, 3, 9};
    static const cake_token_logprob scored[] = {{1, -1}, {1, -1}, {2, -2}, {1, -1.5f}, {0, -3}, {1, -1}};
    cake_record_options options = options_of(path_of("shape.jsonl"));
    cake_record r = answer_of(0, "Hello");
    r.prompt_ids = prompt;
    r.echo = "\xC3\xA9";
    r.echo_len = 2;
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 0, \"text\": \"\xC3\xA9Hello\", \"finish_reason\": \"stop\", \"usage\": "
        "{\"prompt_tokens\": 3, \"completion_tokens\": 3}}");
    r.n_top = r.n_logprob = 1;
    r.prompt_logprobs = prompt_logprobs;
    r.prompt_begin = prompt_begin;
    choice.logprobs = scored;
    choice.begin = begin;
    const char *want =
        "{\"id\": null, \"index\": 0, \"text\": \"\xC3\xA9Hello\", \"finish_reason\": \"stop\", \"usage\": "
        "{\"prompt_tokens\": 3, \"completion_tokens\": 3}, \"logprobs\": {\"tokens\": [\"<end>\", "
        "\"bytes:\\\\xc3\", \"bytes:\\\\xa9\", \"Hel\", \"lo\", \"<end>\"], \"token_logprobs\": [null, -2.0, "
        "-0.5, "
        "-1.0, -2.0, -3.0], \"top_logprobs\": [null, {\" \\\"w\\\"\": -1.0, \"bytes:\\\\xc3\": -2.0}, "
        "{\"bytes:\\\\xa9\": -0.5}, {\"Hel\": -1.0}, {\"Hel\": -1.5, \"lo\": -2.0}, {\"Hel\": -1.0, "
        "\"<end>\": "
        "-3.0}], \"text_offset\": [0, 0, 1, 1, 4, 6]}}";
    check_line(&options, &r, want);
    choice.text_len = choice.n_id = 0; /* max_tokens 0: the prompt alone */
    choice.finish = CAKE_FINISH_LENGTH;
    check_line(
        &options, &r,
        "{\"id\": null, \"index\": 0, \"text\": \"\xC3\xA9\", \"finish_reason\": \"length\", \"usage\": "
        "{\"prompt_tokens\": 3, \"completion_tokens\": 0}, \"logprobs\": {\"tokens\": [\"<end>\", "
        "\"bytes:\\\\xc3\", \"bytes:\\\\xa9\"], \"token_logprobs\": [null, -2.0, -0.5], \"top_logprobs\": "
        "[null, {\" \\\"w\\\"\": -1.0, \"bytes:\\\\xc3\": -2.0}, {\"bytes:\\\\xa9\": -0.5}], "
        "\"text_offset\": [0, 0, 1]}}");
}

/* A changed result with a correct checksum is reported; it becomes neither text nor a column. */
static void test_forged(void)
{
    static const char *const names[] = {"forged.txt", "forged.h5"};
    static const char line[] = "no JSON\n";
    for (int i = 0; i < 2; i++) {
        cake_record_options options = options_of(path_of(names[i]));
        cake_recorder *recorder;
        cake_err err = cake_record_open(&options, &recorder);
        if (err && i) /* a build without HDF5 */
            continue;
        CU_ASSERT_EQUAL_FATAL(err, CAKE_OK);
        CU_ASSERT_EQUAL(cake_record_add_line(recorder, (cake_entry){.order = 0}, line, sizeof line - 1),
                        CAKE_OK);
        cake_buf said = {0};
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data ? said.data : "", "a result in it is not JSON"));
        cake_buf_free(&said);
        CU_ASSERT(access(path_of(names[i]), F_OK));
        cake_record_close(recorder);
    }
}

/* Floats of all sizes: their texts read back, and are those of printf with the fewest digits that do. */
static void test_floats(void)
{
    uint32_t state = 1;
    int wrong = 0, longer = 0;
    cake_buf out = {0};
    for (int i = 0; i < 400000; i++) {
        float value;
        char text[32];
        state = state * 1664525 + 1013904223;
        uint32_t bits = i % 2 ? state : (state >> 9 | (uint32_t)(100 + i % 40) << 23 | state << 31);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        cake_buf_cut(&out, 0);
        cake_line_float(value, &out);
        for (int digits = 6; digits <= 9; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, (double)value);
            if (strtof(text, NULL) == value)
                break;
        }
        wrong += strtof(out.data, NULL) != value || (float)strtod(out.data, NULL) != value;
        longer += strlen(out.data) > strlen(text);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(longer, 0);
    cake_buf_free(&out);
}

int main(void)
{
    static const suite_test tests[] = {
        {"simple lines", test_simple},
        {"floats", test_floats},
        {"lines of OpenAI's batch output", test_openai},
        {"logprobs in both shapes", test_logprobs},
        {"several choices", test_choices},
        {"the prompt in text and logprobs", test_echo},
        {"a result that somebody has changed", test_forged},
    };
    return SUITE_MAIN("line", tests);
}
