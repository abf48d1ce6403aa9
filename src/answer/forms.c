/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a chat template, or names. Out: the form in which the model writes answers.
 */
#include <string.h>

#include "answer/parts.h"

static const cake_call_form hermes_call = {.part = {{CAKE_CALL_MARK, "<tool_call>", NULL},
                                                    {CAKE_CALL_QUOTED, "\n{\"name\": ", ", \"arguments\": "},
                                                    {CAKE_CALL_PARAMETERS, "json_schema", NULL},
                                                    {CAKE_CALL_TEXT, "}\n", NULL},
                                                    {CAKE_CALL_MARK, "</tool_call>", NULL}},
                                           .separator = "\n"};

static const cake_call_form qwen3_coder_call = {.part = {{CAKE_CALL_MARK, "<tool_call>", NULL},
                                                         {CAKE_CALL_NAME, "\n<function=", ">\n"},
                                                         {CAKE_CALL_PARAMETERS, "qwen_xml_parameter", NULL},
                                                         {CAKE_CALL_TEXT, "</function>\n", NULL},
                                                         {CAKE_CALL_MARK, "</tool_call>", NULL}},
                                                .separator = "\n"};

/* Members may begin with an end of line, and so may the closing mark: a model's own template decides. */
static const cake_call_form glm45_call = {.part = {{CAKE_CALL_MARK, "<tool_call>", NULL},
                                                   {CAKE_CALL_NAME, "", ""},
                                                   {CAKE_CALL_PARAMETERS, "glm_xml_parameter", NULL},
                                                   {CAKE_CALL_MARK, "</tool_call>", NULL}},
                                          .separator = "\n"};

static const cake_call_form llama3_call = {.part = {{CAKE_CALL_QUOTED, "{\"name\": ", ", \"parameters\": "},
                                                    {CAKE_CALL_PARAMETERS, "json_schema", NULL},
                                                    {CAKE_CALL_TEXT, "}", NULL}},
                                           .separator = "; "};

static const cake_call_form mistral_call = {.part = {{CAKE_CALL_QUOTED, "{\"name\": ", ", \"arguments\": "},
                                                     {CAKE_CALL_PARAMETERS, "json_schema", NULL},
                                                     {CAKE_CALL_TEXT, "}", NULL}},
                                            .separator = ", ",
                                            .open_mark = "[TOOL_CALLS]",
                                            .open = "[",
                                            .close = "]"};

static const cake_call_form mistral_named_call = {.part = {{CAKE_CALL_MARK, "[TOOL_CALLS]", NULL},
                                                           {CAKE_CALL_NAME, "", ""},
                                                           {CAKE_CALL_MARK, "[ARGS]", NULL},
                                                           {CAKE_CALL_PARAMETERS, "json_schema", NULL}},
                                                  .separator = ""};

/* One call: the model waits for its result. */
static const cake_call_form harmony_call = {.part = {{CAKE_CALL_MARK, "<|channel|>", NULL},
                                                     {CAKE_CALL_NAME, "commentary to=functions.", " "},
                                                     {CAKE_CALL_MARK, "<|constrain|>", NULL},
                                                     {CAKE_CALL_TEXT, "json", NULL},
                                                     {CAKE_CALL_MARK, "<|message|>", NULL},
                                                     {CAKE_CALL_PARAMETERS, "json_schema", NULL}}};

/* The first row whose marks a template has is taken. */
static const cake_tool_parser tool_parsers[] = {
    {.name = "harmony", .marks = {"<|channel|>", "<|message|>"}, .call = &harmony_call},
    {.name = "qwen3_coder",
     .marks = {"<tool_call>", "<function="},
     .read = cake_tools_read_qwen3_coder,
     .call = &qwen3_coder_call},
    {.name = "glm45",
     .marks = {"<tool_call>", "<arg_key>"},
     .read = cake_tools_read_glm45,
     .call = &glm45_call},
    {.name = "hermes",
     .marks = {"<tool_call>", "</tool_call>"},
     .others = {"<invoke", "<tool_calls>"},
     .read = cake_tools_read_hermes,
     .call = &hermes_call},
    {.name = "mistral",
     .marks = {"[TOOL_CALLS]"},
     .read = cake_tools_read_mistral,
     .call = &mistral_call,
     .named_call = &mistral_named_call,
     .short_ids = true},
    {.name = "llama3_json",
     .marks = {"{\"name\": function name, \"parameters\":"},
     .read = cake_tools_read_llama3_json,
     .call = &llama3_call},
};

static const cake_reasoning_parser reasoning_parsers[] = {
    {"harmony", "<|channel|>", NULL, NULL},
    {"mistral", "[THINK]", "[THINK]", "[/THINK]"},
    {"think", "</think>", "<think>", "</think>"},
};

enum {
    N_TOOL_PARSER = sizeof tool_parsers / sizeof *tool_parsers,
    N_REASONING_PARSER = sizeof reasoning_parsers / sizeof *reasoning_parsers
};

static bool has_form(const cake_tool_parser *parser, bool (*mentions)(const void *, const char *),
                     const void *chat)
{
    bool has = chat;
    for (const char *const *mark = parser->marks; *mark && has; mark++)
        has = mentions(chat, *mark);
    for (const char *const *other = parser->others; *other && has; other++)
        has = !mentions(chat, *other);
    return has;
}

bool cake_answer_form_open(const char *tools, const char *reasoning,
                           bool (*mentions)(const void *chat, const char *text), const void *chat,
                           const cake_tokenizer *tokenizer, cake_answer_form *out)
{
    const bool auto_tools = !strcmp(tools, "auto"), auto_reasoning = !strcmp(reasoning, "auto");
    *out = (cake_answer_form){.tokenizer = tokenizer};
    for (int i = N_TOOL_PARSER; i-- > 0;)
        if (auto_tools ? has_form(&tool_parsers[i], mentions, chat) : !strcmp(tool_parsers[i].name, tools))
            out->tools = &tool_parsers[i];
    for (int i = N_REASONING_PARSER; i-- > 0;)
        if (auto_reasoning ? chat && mentions(chat, reasoning_parsers[i].mark)
                           : !strcmp(reasoning_parsers[i].name, reasoning))
            out->reasoning = &reasoning_parsers[i];
    out->think = out->reasoning ? out->reasoning->begin : NULL;
    out->unthink = out->reasoning ? out->reasoning->end : NULL;
    out->named_arguments = chat && mentions(chat, "[ARGS]");
    return (auto_tools || out->tools || !strcmp(tools, "none")) &&
           (auto_reasoning || out->reasoning || !strcmp(reasoning, "none"));
}

const char *cake_answer_tool_parser_name(const cake_answer_form *form)
{
    return form->tools ? form->tools->name : "none";
}

const char *cake_answer_reasoning_parser_name(const cake_answer_form *form)
{
    return form->reasoning ? form->reasoning->name : "none";
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    const size_t n = strlen(end);
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len >= n && !memcmp(text + len - n, end, n);
}

/* The end of the last occurrence of a mark; 0: there is none. */
static size_t last_end(const char *text, size_t len, const char *mark)
{
    const size_t n = strlen(mark);
    size_t end = 0;
    for (const char *at = text; (at = memmem(at, len - (size_t)(at - text), mark, n)); at += n)
        end = (size_t)(at - text) + n;
    return end;
}

cake_answer_begin cake_answer_begins(const cake_answer_form *form, const char *prompt, size_t len,
                                     bool continues)
{
    if (!form->reasoning)
        return CAKE_ANSWER_FREE;
    if (continues && form->think && last_end(prompt, len, form->think) > last_end(prompt, len, form->unthink))
        return CAKE_ANSWER_OPEN;
    if (continues && form->think)
        return CAKE_ANSWER_CLOSED;
    return ends_with(prompt, len, form->think ? form->think : "<|channel|>analysis<|message|>")
               ? CAKE_ANSWER_OPEN
           : ends_with(prompt, len, form->unthink ? form->unthink : "<|channel|>final<|message|>")
               ? CAKE_ANSWER_CLOSED
               : CAKE_ANSWER_FREE;
}
