/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers as messages: what each parser reads; what the models' own templates write comes back; a broken
 * answer loses nothing; what a demanded call takes is read as that call.
 */
#include "answer/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "chat/chat.h"
#include "grammar/grammar.h"
#include "tests/suite.h"

static const char tools_text[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"type\": "
    "\"object\", "
    "\"properties\": {\"city\": {\"type\": \"string\"}, \"days\": {\"type\": \"integer\", \"maximum\": 9}, "
    "\"opts\": "
    "{\"type\": \"object\"}, \"unit\": {\"type\": [\"string\", \"null\"]}, \"flag\": {\"type\": "
    "\"boolean\"}}, \"required\": [\"city\"]}}}, "
    "{\"type\": \"function\", \"function\": {\"name\": \"now\"}}]";

static cake_json *tools;

static cake_json *json_of(const char *text)
{
    cake_json *json = NULL;
    cake_fault fault = {0};
    CU_ASSERT_FATAL(!cake_json_parse(text, strlen(text), &json, &fault));
    return json;
}

/* Text in which <|...|> and [TOOL_CALLS] are special tokens; each byte is a token. */
static void make_text(const char *text, cake_answer_text *out)
{
    const size_t n = strlen(text);
    *out = (cake_answer_text){.token = cake_alloc(n + 1, sizeof *out->token), .n_token = n};
    cake_buf_add(&out->text, text, n);
    for (size_t i = 0; i < n; i++) {
        const size_t name =
            !strncmp(text + i, "<|", 2) ? strspn(text + i + 2, "abcdefghijklmnopqrstuvwxyz_") : 0;
        const char *end = name && !strncmp(text + i + 2 + name, "|>", 2) ? text + i + 2 + name : NULL;
        const size_t len = end                                      ? (size_t)(end + 2 - text) - i
                           : !strncmp(text + i, "[TOOL_CALLS]", 12) ? 12
                                                                    : 0;
        out->token[i] = i;
        if (!len)
            continue;
        CAKE_RESERVE(out->special, out->n_special, out->cap_special);
        out->special[out->n_special].begin = i;
        out->special[out->n_special++].end = i + len;
    }
}

static cake_answer_form form_of(const char *tool_parser, const char *reasoning_parser)
{
    cake_answer_form form;
    CU_ASSERT_FATAL(cake_answer_form_open(tool_parser, reasoning_parser, NULL, NULL, NULL, &form));
    return form;
}

/* As one line: [reasoning]content{name arguments}... */
static void show(const cake_message *m, cake_buf *out)
{
    cake_buf_cut(out, 0);
    if (m->reasoning)
        cake_buf_addf(out, "[%.*s]", (int)m->n_reasoning, m->reasoning);
    cake_buf_addf(out, "%.*s", (int)m->n_content, m->content);
    for (int i = 0; i < m->n_call; i++)
        cake_buf_addf(out, "{%s %s}", m->call[i].name, m->call[i].arguments);
}

static void reads(const char *tool_parser, const char *reasoning_parser, cake_answer_begin begin,
                  const char *text, const char *expected)
{
    const cake_answer_form form = form_of(tool_parser, reasoning_parser);
    cake_answer_text from;
    cake_message message;
    cake_buf line = {0};
    make_text(text, &from);
    cake_answer_read(&form, begin, tools, &from, &message);
    show(&message, &line);
    if (strcmp(line.data, expected) != 0)
        fprintf(stderr, "    %s %s: %s\n    is read as %s\n    instead of %s\n", tool_parser,
                reasoning_parser, text, line.data, expected);
    CU_ASSERT_STRING_EQUAL(line.data, expected);
    cake_buf_free(&line);
    cake_message_free(&message);
    cake_answer_text_free(&from);
}

#define FREE(tool, reasoning, text, expected) reads(tool, reasoning, CAKE_ANSWER_FREE, text, expected)
#define OPEN(tool, reasoning, text, expected) reads(tool, reasoning, CAKE_ANSWER_OPEN, text, expected)

static void test_reasoning(void)
{
    FREE("none", "think", "<think>\nhm\nso\n</think>\n\nYes.", "[hm\nso]Yes.");
    FREE("none", "think", "\n<think>hm</think>Yes. <think>no</think>", "[hm]Yes. <think>no</think>");
    FREE("none", "think", "<think>\n\n</think>\n\nYes.", "Yes.");
    FREE("none", "think", "Yes </think> no", "Yes </think> no");
    FREE("none", "think", "<think>\nhm", "[hm]");
    FREE("none", "think", "", "");
    OPEN("none", "think", "\nhm\n</think>\n\nYes.", "[hm]Yes.");
    OPEN("none", "think", "hm", "[hm]");
    OPEN("none", "none", "hm</think>Yes.", "hm</think>Yes.");
    FREE("none", "mistral", "[THINK]hm[/THINK]Yes.", "[hm]Yes.");
    FREE("none", "harmony",
         "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
         "[hm]Yes.");
    FREE("none", "harmony", "<|channel|>final<|message|>Yes", "Yes");
    FREE("none", "harmony", "Yes.", "Yes.");
    OPEN("none", "harmony", "hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "[hm]Yes.");
    FREE("none", "harmony",
         "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>",
         "[a\nb]");
    FREE("none", "none", "Yes<|end|>.", "Yes.");

    const cake_answer_form form = form_of("none", "think");
    cake_answer_text from;
    cake_message message;
    make_text("<think>\nhm\n</think>\n\nYes.", &from);
    cake_answer_read(&form, CAKE_ANSWER_FREE, NULL, &from, &message);
    CU_ASSERT_EQUAL(message.reasoning_tokens, 2);
    cake_message_free(&message);
    cake_answer_text_free(&from);
    CU_ASSERT_EQUAL(cake_answer_begins(&form, "a<think>\n", 9, false), CAKE_ANSWER_OPEN);
    CU_ASSERT_EQUAL(cake_answer_begins(&form, "<think>\n\n</think>\n\n", 19, false), CAKE_ANSWER_CLOSED);
    CU_ASSERT_EQUAL(cake_answer_begins(&form, "what is <think>?", 16, false), CAKE_ANSWER_FREE);
    CU_ASSERT_EQUAL(cake_answer_begins(&form, "a<think>\nhm so", 15, true), CAKE_ANSWER_OPEN);
    CU_ASSERT_EQUAL(cake_answer_begins(&form, "<think>hm</think>so", 19, true), CAKE_ANSWER_CLOSED);
}

#define CITY "{\"city\":\"Ulm\"}"

static void test_parameters(void)
{
    FREE("qwen3_coder", "none",
         "Look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\nNeu\n</"
         "parameter>\n<parameter=days>\n3\n</parameter>\n"
         "<parameter=opts>\n{\"a\": "
         "[1]}\n</parameter>\n<parameter=unit>\nnull\n</parameter>\n</function>\n</tool_call>",
         "Look.{get_weather {\"city\":\"Ulm\\nNeu\",\"days\":3,\"opts\":{\"a\":[1]},\"unit\":null}}");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=city>12</parameter></function></tool_call>",
         "{get_weather {\"city\":\"12\"}}");
    FREE("qwen3_coder", "none", "<tool_call>\n<function=now>\n</function>\n</tool_call>", "{now {}}");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=days>x</parameter></function></tool_call>",
         "<tool_call><function=get_weather><parameter=days>x</parameter></function></tool_call>");

    FREE("glm45", "none",
         "Look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Ulm\nNeu</arg_value>\n"
         "<arg_key>opts</arg_key>\n<arg_value>{\"a\": [1]}</arg_value>\n</tool_call>",
         "Look.{get_weather {\"city\":\"Ulm\\nNeu\",\"opts\":{\"a\":[1]}}}");
    FREE("glm45", "none",
         "<tool_call>get_weather<arg_key>city</arg_key><arg_value>12</arg_value><arg_key>days</arg_key>"
         "<arg_value>3</arg_value></tool_call><tool_call>now</tool_call>",
         "{get_weather {\"city\":\"12\",\"days\":3}}{now {}}");
    FREE("glm45", "none", "<tool_call>later<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>",
         "<tool_call>later<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>");
    FREE("glm45", "none", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>12</tool_call>",
         "<tool_call>get_weather<arg_key>city</arg_key><arg_value>12</tool_call>");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=city>True</parameter><parameter=flag>True</parameter>"
         "<parameter=unit>None</parameter></function></tool_call>",
         "{get_weather {\"city\":\"True\",\"flag\":true,\"unit\":null}}");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=city>a</parameter><parameter=city>b</parameter>"
         "</function></tool_call>",
         "<tool_call><function=get_weather><parameter=city>a</parameter><parameter=city>b</parameter>"
         "</function></tool_call>");
    FREE("glm45", "none", "<tool_call>now", "<tool_call>now"); /* cut off: perhaps of another tool */
    FREE("qwen3_coder", "none", "<tool_call><function=now></function>", "{now {}}");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=city>\"a\"</parameter><parameter=unit>\"C\"</parameter>"
         "</function></tool_call>",
         "{get_weather {\"city\":\"\\\"a\\\"\",\"unit\":\"C\"}}");
    FREE("qwen3_coder", "none",
         "<tool_call><function=get_weather><parameter=city>a</parameter><parameter=unit>C 5</parameter>"
         "</function></tool_call>",
         "{get_weather {\"city\":\"a\",\"unit\":\"C 5\"}}");
    FREE("glm45", "none", "<tool_call>now<arg_key>", "<tool_call>now<arg_key>");
}

static void test_calls(void)
{
    FREE("hermes", "none",
         "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\"}}\n</tool_call>",
         "{get_weather " CITY "}");
    FREE("hermes", "think",
         "<think>\nhm\n</think>\n\nLook.\n<tool_call>{\"arguments\": {\"city\": \"Ulm\"}, \"name\": "
         "\"get_weather\"}</tool_call>\n"
         "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n",
         "[hm]Look.{get_weather " CITY "}{now {}}");
    FREE("hermes", "none",
         "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a\", \"city\": "
         "\"b\"}}</tool_call>",
         "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a\", \"city\": "
         "\"b\"}}</tool_call>");
    FREE("mistral", "none", "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"a\", \"city\": \"b\"}",
         "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"a\", \"city\": \"b\"}");
    FREE("hermes", "none", "<tool_call>{\"name\": \"now\"}", "{now {}}");
    FREE("hermes", "none", "a<tool_call>{\"name\": \"now\"}</tool_call>b", "a\nb{now {}}");
    FREE("hermes", "none", "<tool_call>{\"name\": \"later\"}</tool_call>",
         "<tool_call>{\"name\": \"later\"}</tool_call>");
    FREE("hermes", "none",
         "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 19.99, \"b\": [0.1, 1e300, "
         "12345678901234567890123]}}"
         "</tool_call>",
         "{now {\"a\":19.99,\"b\":[0.1,1e300,12345678901234567890123]}}");
    FREE("hermes", "none", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": 3}}</tool_call>",
         "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": 3}}</tool_call>");
    FREE("hermes", "none", "<tool_call>{\"name\": \"get_weather\"}</tool_call>x",
         "<tool_call>{\"name\": \"get_weather\"}</tool_call>x");
    FREE("hermes", "none",
         "<tool_call>{\"name\": \"now\"</tool_call><tool_call>{\"name\": \"now\"}</tool_call>",
         "<tool_call>{\"name\": \"now\"</tool_call>{now {}}");

    FREE("llama3_json", "none", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Ulm\"}}",
         "{get_weather " CITY "}");
    FREE("llama3_json", "none",
         "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"now\", \"arguments\": {}}",
         "{now {}}{now {}}");
    FREE("llama3_json", "none", "{\"name\": \"now\"} and more", "{\"name\": \"now\"} and more");
    FREE("llama3_json", "none", "Yes.", "Yes.");

    FREE(
        "mistral", "none",
        "Look.[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\"}, \"id\": \"abc\"}, "
        "{\"name\": \"now\", \"arguments\": {}}]",
        "Look.{get_weather " CITY "}{now {}}");
    FREE("mistral", "none", "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Ulm\"}[TOOL_CALLS]now{}",
         "{get_weather " CITY "}{now {}}");
    FREE("mistral", "none", "[TOOL_CALLS]now[CALL_ID]123[ARGS]{}", "{now {}}");
    FREE("mistral", "none", "[TOOL_CALLS][{\"name\": \"later\"}]", "[TOOL_CALLS][{\"name\": \"later\"}]");

    FREE("harmony", "harmony",
         "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>Look.<|"
         "end|><|start|>assistant"
         "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": "
         "\"Ulm\"}<|call|>",
         "[hm]Look.{get_weather " CITY "}");
    FREE("harmony", "harmony", " to=functions.now<|channel|>commentary json<|message|>{}", "{now {}}");
    FREE("harmony", "harmony", "<|channel|>commentary to=functions.later<|message|>{}<|call|>",
         "<|channel|>commentary to=functions.later<|message|>{}<|call|>");
    FREE("harmony", "harmony", "<|channel|>analysis", "");
    FREE("hermes", "none",
         "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"</tool_call>\"}}</tool_call>",
         "{get_weather {\"city\":\"</tool_call>\"}}");
    FREE("mistral", "none", "a[TOOL_CALLS]later[ARGS]{}<|x|>", "a[TOOL_CALLS]later[ARGS]{}<|x|>");
    FREE("hermes", "none", "a<|x|>b", "ab");
    FREE("none", "none", "<tool_call>{\"name\": \"now\"}</tool_call>",
         "<tool_call>{\"name\": \"now\"}</tool_call>");
}

/* ---- templates */

static const char conversation[] = "[{\"role\": \"user\", \"content\": \"How warm will it be?\"}";
static const char reasoning[] = "I think so.\n\nOr not: <b>5 > 4</b>.";
static const char content[] = "Let me \"look\" it up,\n- here\n- there. \xC3\xA4\xE2\x82\xAC";
static const char first_arguments[] = "{\"city\":\"Neu-Ulm \\\"\xC3\xBC\\\" "
                                      "</b>\",\"days\":3,\"opts\":{\"a\":[1,2.5,{\"b\":null}],\"t\":true}}";

typedef struct template_case {
    const char *file, *tools, *reasoning; /* the parsers that it is expected to have */
    bool has_reasoning, has_content;
    int n_call;
} template_case;

static bool mentions(const void *chat, const char *text)
{
    return cake_chat_mentions(chat, text);
}

static void add_assistant(const template_case *c, cake_buf *out)
{
    cake_buf_adds(out, ", {\"role\": \"assistant\", \"content\": ");
    cake_json_add_text(out, content, c->has_content ? sizeof content - 1 : 0);
    if (c->has_reasoning) {
        cake_buf_adds(out, ", \"reasoning_content\": ");
        cake_json_add_text(out, reasoning, sizeof reasoning - 1);
    }
    for (int i = 0; i < c->n_call; i++)
        cake_buf_addf(out,
                      "%s{\"id\": \"abcde123%d\", \"type\": \"function\", \"function\": {\"name\": \"%s\", "
                      "\"arguments\": %s}}",
                      i ? ", " : ", \"tool_calls\": [", i, i ? "now" : "get_weather",
                      i ? "{}" : first_arguments);
    cake_buf_adds(out, c->n_call ? "]}" : "}");
}

static void render(const cake_chat *chat, const char *messages_text, bool generate, cake_buf *out)
{
    cake_json *messages = json_of(messages_text);
    cake_fault fault = {0};
    const cake_chat_input input = {.messages = messages, .tools = tools, .add_generation_prompt = generate};
    const bool right = !cake_chat_render(chat, &input, out, &fault);
    if (!right)
        fprintf(stderr, "    %s\n", fault.message);
    CU_ASSERT_FATAL(right);
    cake_json_free(messages);
}

/* What the template writes of an assistant's message is what the model would have written. */
static void check_template(const template_case *c)
{
    static const char *const ends[] = {"<|im_end|>", "</s>", "<|eot_id|>", "<|end_of_text|>"};
    const char *path = suite_asset(c->file);
    cake_buf folder = {0}, command = {0};
    cake_chat *chat = NULL;
    if (!path)
        return;
    cake_buf_addf(&folder, "%s/template", suite_tmp());
    cake_buf_addf(&command,
                  "mkdir -p '%s' && cp '%s' '%s/chat_template.jinja' && "
                  "echo '{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}' >'%s/tokenizer_config.json'",
                  folder.data, path, folder.data, folder.data);
    CU_ASSERT_FATAL(!system(command.data));
    CU_ASSERT_FATAL(!cake_chat_open(folder.data, &chat));
    cake_answer_form form;
    cake_answer_form_open("auto", "auto", mentions, chat, NULL, &form);
    CU_ASSERT_STRING_EQUAL(cake_answer_tool_parser_name(&form), c->tools);
    CU_ASSERT_STRING_EQUAL(cake_answer_reasoning_parser_name(&form), c->reasoning);

    cake_buf messages = {0}, prompt = {0}, whole = {0}, line = {0}, expected = {0};
    cake_buf_addf(&messages, "%s]", conversation);
    render(chat, messages.data, true, &prompt);
    cake_buf_cut(&messages, sizeof conversation - 1);
    add_assistant(c, &messages);
    cake_buf_adds(&messages, "]");
    render(chat, messages.data, false, &whole);
    const bool begins = whole.len > prompt.len && !memcmp(whole.data, prompt.data, prompt.len);
    if (!begins)
        fprintf(stderr, "    %s: a prompt is not the beginning of what follows it\n", c->file);
    CU_ASSERT_FATAL(begins);
    char *written = whole.data + prompt.len;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *end = strstr(written, ends[i]);
        if (end)
            *end = 0;
    }
    cake_answer_text from;
    cake_message message;
    make_text(written, &from);
    cake_answer_read(&form, cake_answer_begins(&form, prompt.data, prompt.len, false), tools, &from,
                     &message);
    show(&message, &line);
    if (c->has_reasoning)
        cake_buf_addf(&expected, "[%s]", reasoning);
    cake_buf_addf(&expected, "%s", c->has_content ? content : "");
    if (c->n_call > 0)
        cake_buf_addf(&expected, "{get_weather %s}", first_arguments);
    if (c->n_call > 1)
        cake_buf_adds(&expected, "{now {}}");
    if (strcmp(line.data, expected.data) != 0)
        fprintf(stderr, "    %s: %s\n    is read as %s\n", c->file, written, line.data);
    CU_ASSERT_STRING_EQUAL(line.data, expected.data);
    cake_message_free(&message);
    cake_answer_text_free(&from);
    cake_buf_free(&folder);
    cake_buf_free(&command);
    cake_buf_free(&messages);
    cake_buf_free(&prompt);
    cake_buf_free(&whole);
    cake_buf_free(&line);
    cake_buf_free(&expected);
    cake_chat_close(chat);
}

static void test_templates(void)
{
    static const template_case cases[] = {
        {"templates/qwen3.jinja", "hermes", "think", true, true, 2},
        {"templates/qwen3.jinja", "hermes", "think", true, true, 0},
        {"templates/qwen3.jinja", "hermes", "think", true, false, 1},
        {"templates/Qwen-Qwen3-0.6B.jinja", "hermes", "think", true, true, 2},
        {"templates/qwen2.5.jinja", "hermes", "none", false, true, 2},
        {"templates/qwen2.5.jinja", "hermes", "none", false, true, 0},
        {"templates/Qwen3.5-4B.jinja", "qwen3_coder", "think", true, true, 2},
        {"templates/Qwen3.5-4B.jinja", "qwen3_coder", "think", true, true, 0},
        {"templates/mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral", "none", false, false, 2},
        {"templates/mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral", "none", false, true, 0},
        {"templates/v3.jinja", "mistral", "none", false, true, 0},
        {"templates/meta-llama-Llama-3.2-3B-Instruct.jinja", "llama3_json", "none", false, false, 1},
        {"templates/meta-llama-Llama-3.2-3B-Instruct.jinja", "llama3_json", "none", false, true, 0},
        {"templates/phi-4.jinja", "none", "none", false, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_template(&cases[i]);
}

/* ---- broken answers */

static uint64_t state = 1;

static size_t draw(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

/* Deletes, copies or overwrites a few bytes. */
static void break_text(cake_buf *text)
{
    for (size_t n = 1 + draw(3); n > 0 && text->len > 8; n--) {
        const size_t at = draw(text->len - 4), len = 1 + draw(4), kind = draw(4);
        if (kind == 0) {
            memmove(text->data + at, text->data + at + len, text->len - at - len);
            cake_buf_cut(text, text->len - len);
        } else if (kind == 1) {
            cake_buf_cut(text, at + 1);
        } else if (kind == 2) {
            text->data[at] = "<>{}[]\"\\|/ \n"[draw(12)];
        } else {
            cake_buf tail = {0};
            cake_buf_add(&tail, text->data + at, text->len - at);
            cake_buf_add(text, tail.data, tail.len);
            cake_buf_free(&tail);
        }
    }
}

/* Words w17x that the text has are in the message. */
static void check_words(const char *what, const cake_buf *text, const cake_message *message)
{
    cake_buf all = {0};
    show(message, &all);
    for (size_t i = 0; i + 4 <= text->len; i++) {
        const char *at = text->data + i;
        char word[5] = {at[0], at[1], at[2], at[3], 0};
        if (at[0] != 'w' || at[3] != 'x' || at[1] < '0' || at[1] > '9' || at[2] < '0' || at[2] > '9')
            continue;
        if (!strstr(all.data, word))
            fprintf(stderr, "    %s: %.*s\n    has lost %s: %s\n", what, (int)text->len, text->data, word,
                    all.data);
        CU_ASSERT_PTR_NOT_NULL(strstr(all.data, word));
    }
    cake_buf_free(&all);
}

static void test_broken(void)
{
    static const struct {
        const char *tools, *reasoning, *text;
    } rows[] = {
        {"hermes", "think",
         "<think>\nw01x w02x\n</think>\n\nw03x\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
         "{\"city\": \"w04x\", \"opts\": "
         "{\"w05x\": \"w06x\"}}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
         "{\"city\": \"w07x\"}}\n</tool_call>"},
        {"qwen3_coder", "think",
         "<think>\nw01x\n</"
         "think>\n\nw02x\n<tool_call>\n<function=get_weather>\n<parameter=city>\nw03x\nw04x\n</parameter>\n"
         "<parameter=opts>\n{\"w05x\": 1}\n</parameter>\n</function>\n</tool_call>w06x"},
        {"glm45", "think",
         "<think>w01x</think>\nw02x\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>w03x\nw04x"
         "</arg_value>\n<arg_key>opts</arg_key>\n<arg_value>{\"w05x\": 1}</arg_value>\n</tool_call>w06x"},
        {"llama3_json", "none",
         "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"w01x\"}}; {\"name\": "
         "\"get_weather\", \"parameters\": "
         "{\"city\": \"w02x\"}}"},
        {"mistral", "mistral",
         "[THINK]w01x[/THINK]w02x[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": "
         "\"w03x\"}}, {\"name\": \"get_weather\", "
         "\"arguments\": {\"city\": \"w04x\"}}]"},
        {"mistral", "none",
         "w01x[TOOL_CALLS]get_weather[ARGS]{\"city\": \"w02x\"}[TOOL_CALLS]get_weather{\"city\": "
         "\"w03x\"}w04x"},
        {"harmony", "harmony",
         "<|channel|>analysis<|message|>w01x<|end|><|start|>assistant<|channel|>commentary<|message|>w02x<|"
         "end|><|start|>assistant"
         "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": "
         "\"w03x\"}<|call|><|start|>assistant"
         "<|channel|>final<|message|>w04x<|return|>"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const cake_answer_form form = form_of(rows[k].tools, rows[k].reasoning);
        for (int i = 0; i < (suite_all() ? 20000 : 1000); i++) {
            cake_buf text = {0};
            cake_answer_text from;
            cake_message message;
            cake_buf_adds(&text, rows[k].text);
            break_text(&text);
            cake_buf_addc(&text, 0);
            cake_buf_cut(&text, text.len - 1);
            make_text(text.data, &from);
            cake_answer_read(&form, draw(4) ? CAKE_ANSWER_FREE : CAKE_ANSWER_OPEN, tools, &from, &message);
            check_words(rows[k].tools, &text, &message);
            cake_message_free(&message);
            cake_answer_text_free(&from);
            cake_buf_free(&text);
        }
    }
}

/* ---- demanded calls */

static void check_demand(const cake_tokenizer *tokenizer, const char *parser, const char *reasoning_parser,
                         const char *only, bool parallel, const char *const *texts)
{
    cake_answer_form form;
    cake_constraint_source source = {0};
    cake_grammar *grammar = NULL;
    cake_fault fault = {0};
    CU_ASSERT_FATAL(cake_answer_form_open(parser, reasoning_parser, NULL, NULL, tokenizer, &form));
    form.named_arguments = !parallel; /* both of Mistral's forms */
    CU_ASSERT_FATAL(!cake_answer_require(&form, CAKE_ANSWER_FREE, tools, only, parallel, &source, &fault));
    const bool right = !cake_grammar_open(&source, &grammar, &fault);
    if (!right)
        fprintf(stderr, "    %s: %s: %s\n", parser, source.text, fault.message);
    CU_ASSERT_FATAL(right);
    for (int refused = 0; refused < 2; refused++, texts++)
        for (; *texts; texts++) {
            const bool has = cake_grammar_has(grammar, *texts, strlen(*texts));
            if (has == refused)
                fprintf(stderr, "    %s: %s is %s\n", parser, *texts, has ? "taken" : "refused");
            CU_ASSERT_EQUAL(has, !refused);
            if (!has)
                continue;
            cake_answer_text from;
            cake_message message;
            make_text(*texts, &from);
            cake_answer_read(&form, CAKE_ANSWER_FREE, tools, &from, &message);
            CU_ASSERT(message.n_call > 0 && !message.n_content);
            cake_message_free(&message);
            cake_answer_text_free(&from);
        }
    cake_grammar_close(grammar);
    free(source.text);
}

#define DEMANDS(parser, reasoning, only, parallel, ...)                                                      \
    check_demand(tokenizer, parser, reasoning, only, parallel, (const char *const[]){__VA_ARGS__, NULL})

static void test_demand(void)
{
    cake_tokenizer *tokenizer = NULL;
    CU_ASSERT_FATAL(!cake_tokenizer_open(suite_path("jobs/demo/model"), &tokenizer));
#define NOW "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
#define ULM                                                                                                  \
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": "                 \
    "3}}\n</tool_call>"
    DEMANDS("hermes", "think", NULL, true, NOW, ULM "\n" NOW, "<think>\nhm\n</think>\n\n" ULM, NULL, "",
            "x" NOW, NOW ULM,
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"days\": 3}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"more\": "
            "3}}\n</tool_call>",
            "hm</think>" NOW);
    DEMANDS("hermes", "none", NULL, false, NOW, NULL, NOW "\n" NOW, "<think></think>" NOW);
    DEMANDS("hermes", "none", "now", true, NOW, NULL, ULM, NOW "\n" NOW);
    DEMANDS("qwen3_coder", "none", NULL, true, "<tool_call>\n<function=now>\n</function>\n</tool_call>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n\nx\n</"
            "parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n"
            "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
            NULL, "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\na</tool_call>b\n</parameter>\n</"
            "function>\n</tool_call>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\na</parameter>b\n</parameter>\n</"
            "function>\n</tool_call>");
    DEMANDS("glm45", "think", NULL, true, "<tool_call>now\n</tool_call>", "<tool_call>now</tool_call>",
            "<think>hm</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Ulm\n\nx"
            "</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
            "<tool_call>now\n</tool_call>",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value></arg_value></tool_call>", NULL,
            "<tool_call>get_weather\n</tool_call>", "<tool_call>later</tool_call>",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>a</tool_call></arg_value></tool_call>",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>a</arg_value>b</arg_value></tool_call>");
    DEMANDS("llama3_json", "none", NULL, true, "{\"name\": \"now\", \"parameters\": {}}",
            "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"get_weather\", \"parameters\": {\"city\": "
            "\"\"}}",
            NULL, "{\"name\": \"later\", \"parameters\": {}}");
    DEMANDS("mistral", "none", NULL, true,
            "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"now\", \"arguments\": {}}]",
            NULL, "[TOOL_CALLS][]");
    DEMANDS("mistral", "mistral", NULL, false, "[TOOL_CALLS]now[ARGS]{}",
            "[THINK]x[/THINK][TOOL_CALLS]now[ARGS]{}", NULL,
            "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]now[ARGS]{}");
    DEMANDS("harmony", "harmony", NULL, true,
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.now "
            "<|constrain|>json<|message|>{}",
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Ulm\"}",
            NULL, "<|channel|>final<|message|>x");

    cake_answer_form form;
    cake_constraint_source source = {
        .kind = CAKE_CONSTRAINT_CHOICE, .text = cake_copy("[\"a\", \"b\"]", 10), .len = 10};
    cake_grammar *grammar = NULL;
    cake_fault fault = {0};
    cake_answer_form_open("none", "think", NULL, NULL, tokenizer, &form);
    CU_ASSERT_FATAL(!cake_answer_constrain(&form, CAKE_ANSWER_OPEN, &source, &fault));
    CU_ASSERT_FATAL(!cake_grammar_open(&source, &grammar, &fault));
    CU_ASSERT(cake_grammar_has(grammar, "hm a</think>\n\nb", 15));
    CU_ASSERT(!cake_grammar_has(grammar, "a", 1));
    cake_grammar_close(grammar);
    free(source.text);
    CU_ASSERT(cake_answer_require(&form, CAKE_ANSWER_FREE, tools, NULL, true, &source, &fault) ==
              CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "--tool-parser"));
    cake_tokenizer_close(tokenizer);
}

int main(void)
{
    static const suite_test tests[] = {{"reasoning", test_reasoning},
                                       {"parameters each by itself", test_parameters},
                                       {"tool calls", test_calls},
                                       {"templates and back", test_templates},
                                       {"broken answers lose nothing", test_broken},
                                       {"demanded calls", test_demand}};
    cake_fault fault = {0};
    if (cake_json_parse(tools_text, strlen(tools_text), &tools, &fault))
        return 1;
    const int failed = SUITE_MAIN("answer", tests);
    cake_json_free(tools);
    return failed;
}
