/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tools, or the constraint of an answer. Out: the constraint of all that the model writes, in its own
 * form, as a structural tag (grammar/structure.h).
 */
#include <stdlib.h>
#include <string.h>

#include "answer/parts.h"
#include "base/alloc.h"

/* ---- elements */

static void add_member(cake_buf *out, const char *type, const char *member)
{
    cake_buf_addf(out, "{\"type\": \"%s\", \"%s\": ", type, member);
}

void cake_tag_text(cake_buf *out, const char *text)
{
    add_member(out, "const_string", "value");
    cake_json_add_text(out, text, strlen(text));
    cake_buf_addc(out, '}');
}

void cake_tag_mark(const cake_answer_form *form, cake_buf *out, const char *text)
{
    const int32_t id = cake_tokenizer_find(form->tokenizer, text, strlen(text));
    if (id < 0 || !cake_tokenizer_is_special(form->tokenizer, id)) {
        cake_tag_text(out, text);
        return;
    }
    add_member(out, "token", "token");
    cake_json_add_text(out, text, strlen(text));
    cake_buf_addc(out, '}');
}

static void open_sequence(cake_buf *out)
{
    add_member(out, "sequence", "elements");
    cake_buf_addc(out, '[');
}

static void add_next(cake_buf *out)
{
    cake_buf_adds(out, ", ");
}

static void close_sequence(cake_buf *out)
{
    cake_buf_adds(out, "]}");
}

/* The text that a name is in, as a JSON string or as it is. */
static void add_named(cake_buf *out, const char *before, const char *name, bool quoted, const char *after)
{
    cake_buf text = {0};
    cake_buf_adds(&text, before);
    if (quoted)
        cake_json_add_text(&text, name, strlen(name));
    else
        cake_buf_adds(&text, name);
    cake_buf_adds(&text, after);
    cake_tag_text(out, text.data);
    cake_buf_free(&text);
}

static void add_parameters(cake_buf *out, const char *type, const cake_json *schema)
{
    add_member(out, type, "json_schema");
    if (schema)
        cake_json_add_node(out, schema);
    else
        cake_buf_adds(out, "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}");
    cake_buf_addc(out, '}');
}

/* Appends an element for each tool, or for the only one. */
static void add_tools(const cake_answer_form *form, const cake_json *tools, const char *only,
                      void (*add)(const cake_answer_form *form, const char *name, const cake_json *parameters,
                                  cake_buf *out),
                      cake_buf *out)
{
    bool any = false;
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(tools, i), "function"),
                        *schema = cake_json_get(function, "parameters");
        const char *name = cake_json_text(cake_json_get(function, "name"), NULL);
        if (only && strcmp(name, only) != 0)
            continue;
        if (any)
            add_next(out);
        any = true;
        add(form, name, cake_json_kind(schema) == CAKE_JSON_NULL ? NULL : schema, out);
    }
}

static void open_calls(const char *separator, bool parallel, cake_buf *out)
{
    cake_buf_addf(out,
                  "{\"type\": \"tags_with_separator\", \"at_least_one\": true, \"stop_after_first\": %s, ",
                  parallel ? "false" : "true");
    cake_buf_adds(out, "\"separator\": ");
    cake_json_add_text(out, separator, strlen(separator));
    cake_buf_adds(out, ", \"tags\": [");
}

/* ---- forms of calls */

static void add_hermes(const cake_answer_form *form, const char *name, const cake_json *parameters,
                       cake_buf *out)
{
    open_sequence(out);
    cake_tag_mark(form, out, "<tool_call>");
    add_next(out);
    add_named(out, "\n{\"name\": ", name, true, ", \"arguments\": ");
    add_next(out);
    add_parameters(out, "json_schema", parameters);
    add_next(out);
    cake_tag_text(out, "}\n");
    add_next(out);
    cake_tag_mark(form, out, "</tool_call>");
    close_sequence(out);
}

void cake_tools_require_hermes(const cake_answer_form *form, const cake_json *tools, const char *only,
                               bool parallel, cake_buf *out)
{
    open_calls("\n", parallel, out);
    add_tools(form, tools, only, add_hermes, out);
    close_sequence(out);
}

static void add_qwen3_coder(const cake_answer_form *form, const char *name, const cake_json *parameters,
                            cake_buf *out)
{
    open_sequence(out);
    cake_tag_mark(form, out, "<tool_call>");
    add_next(out);
    add_named(out, "\n<function=", name, false, ">\n");
    add_next(out);
    add_parameters(out, "qwen_xml_parameter", parameters);
    add_next(out);
    cake_tag_text(out, "</function>\n");
    add_next(out);
    cake_tag_mark(form, out, "</tool_call>");
    close_sequence(out);
}

void cake_tools_require_qwen3_coder(const cake_answer_form *form, const cake_json *tools, const char *only,
                                    bool parallel, cake_buf *out)
{
    open_calls("\n", parallel, out);
    add_tools(form, tools, only, add_qwen3_coder, out);
    close_sequence(out);
}

static void add_llama3(const cake_answer_form *form, const char *name, const cake_json *parameters,
                       cake_buf *out)
{
    (void)form;
    open_sequence(out);
    add_named(out, "{\"name\": ", name, true, ", \"parameters\": ");
    add_next(out);
    add_parameters(out, "json_schema", parameters);
    add_next(out);
    cake_tag_text(out, "}");
    close_sequence(out);
}

void cake_tools_require_llama3_json(const cake_answer_form *form, const cake_json *tools, const char *only,
                                    bool parallel, cake_buf *out)
{
    open_calls("; ", parallel, out);
    add_tools(form, tools, only, add_llama3, out);
    close_sequence(out);
}

static void add_mistral(const cake_answer_form *form, const char *name, const cake_json *parameters,
                        cake_buf *out)
{
    (void)form;
    open_sequence(out);
    add_named(out, "{\"name\": ", name, true, ", \"arguments\": ");
    add_next(out);
    add_parameters(out, "json_schema", parameters);
    add_next(out);
    cake_tag_text(out, "}");
    close_sequence(out);
}

static void add_mistral_named(const cake_answer_form *form, const char *name, const cake_json *parameters,
                              cake_buf *out)
{
    open_sequence(out);
    cake_tag_mark(form, out, "[TOOL_CALLS]");
    add_next(out);
    add_named(out, "", name, false, "");
    add_next(out);
    cake_tag_mark(form, out, "[ARGS]");
    add_next(out);
    add_parameters(out, "json_schema", parameters);
    close_sequence(out);
}

void cake_tools_require_mistral(const cake_answer_form *form, const cake_json *tools, const char *only,
                                bool parallel, cake_buf *out)
{
    if (form->named_arguments) {
        open_calls("", parallel, out);
        add_tools(form, tools, only, add_mistral_named, out);
        close_sequence(out);
        return;
    }
    open_sequence(out);
    cake_tag_mark(form, out, "[TOOL_CALLS]");
    add_next(out);
    cake_tag_text(out, "[");
    add_next(out);
    open_calls(", ", parallel, out);
    add_tools(form, tools, only, add_mistral, out);
    close_sequence(out);
    add_next(out);
    cake_tag_text(out, "]");
    close_sequence(out);
}

static void add_harmony(const cake_answer_form *form, const char *name, const cake_json *parameters,
                        cake_buf *out)
{
    open_sequence(out);
    cake_tag_mark(form, out, "<|channel|>");
    add_next(out);
    add_named(out, "commentary to=functions.", name, false, " ");
    add_next(out);
    cake_tag_mark(form, out, "<|constrain|>");
    add_next(out);
    cake_tag_text(out, "json");
    add_next(out);
    cake_tag_mark(form, out, "<|message|>");
    add_next(out);
    add_parameters(out, "json_schema", parameters);
    close_sequence(out);
}

/* One call: the model waits for its result. */
void cake_tools_require_harmony(const cake_answer_form *form, const cake_json *tools, const char *only,
                                bool parallel, cake_buf *out)
{
    (void)parallel;
    add_member(out, "or", "elements");
    cake_buf_addc(out, '[');
    add_tools(form, tools, only, add_harmony, out);
    close_sequence(out);
}

/* ---- what comes before */

static void add_any(cake_buf *out)
{
    cake_buf_adds(out, "{\"type\": \"any_text\"}");
}

/* Appends the rest of reasoning, and its end. */
static void add_thought(const cake_answer_form *form, cake_buf *out)
{
    add_any(out);
    add_next(out);
    cake_tag_mark(form, out, form->unthink ? form->unthink : "<|end|>");
    add_next(out);
    if (form->unthink) {
        cake_buf_adds(out, "{\"type\": \"regex\", \"pattern\": \"\\\\n{0,2}\"}");
    } else {
        cake_tag_mark(form, out, "<|start|>");
        add_next(out);
        cake_tag_text(out, "assistant");
    }
}

/* Appends elements, each with a comma: reasoning, which is under way, or may come, or is over. */
static void add_reasoning(const cake_answer_form *form, cake_answer_begin begin, cake_buf *out)
{
    if (!form->reasoning || begin == CAKE_ANSWER_CLOSED)
        return;
    if (begin == CAKE_ANSWER_FREE) {
        cake_buf_adds(out, "{\"type\": \"optional\", \"content\": ");
        open_sequence(out);
        if (form->think) {
            cake_tag_mark(form, out, form->think);
        } else {
            cake_tag_mark(form, out, "<|channel|>");
            add_next(out);
            cake_tag_text(out, "analysis");
            add_next(out);
            cake_tag_mark(form, out, "<|message|>");
        }
        add_next(out);
    }
    add_thought(form, out);
    if (begin == CAKE_ANSWER_FREE) {
        close_sequence(out);
        cake_buf_addc(out, '}');
    }
    add_next(out);
}

/* Appends a constraint as an element; false: its text is no JSON, though it should be. */
static cake_err add_constraint(const cake_constraint_source *c, cake_buf *out, cake_fault *fault)
{
    cake_json *json = NULL;
    cake_err err = CAKE_OK;
    switch (c->kind) {
    case CAKE_CONSTRAINT_OBJECT:
        cake_buf_adds(out, "{\"type\": \"json_schema\", \"json_schema\": {\"type\": \"object\"}}");
        break;
    case CAKE_CONSTRAINT_REGEX:
        add_member(out, "regex", "pattern");
        cake_json_add_text(out, c->text, c->len);
        cake_buf_addc(out, '}');
        break;
    case CAKE_CONSTRAINT_GRAMMAR:
        add_member(out, "grammar", "grammar");
        cake_json_add_text(out, c->text, c->len);
        cake_buf_addc(out, '}');
        break;
    case CAKE_CONSTRAINT_CHOICE:
        err = cake_json_parse(c->text, c->len, &json, fault);
        add_member(out, "or", "elements");
        cake_buf_addc(out, '[');
        for (size_t i = 0; i < cake_json_size(json); i++) {
            cake_buf_adds(out, i ? ", " : "");
            add_member(out, "const_string", "value");
            cake_json_add_node(out, cake_json_at(json, i));
            cake_buf_addc(out, '}');
        }
        close_sequence(out);
        break;
    default: /* JSON: a schema, or an element */
        err = cake_json_parse(c->text, c->len, &json, fault);
        if (c->kind == CAKE_CONSTRAINT_SCHEMA)
            add_member(out, "json_schema", "json_schema");
        const cake_json *format = cake_json_get(json, "format");
        cake_json_add_node(out, c->kind == CAKE_CONSTRAINT_STRUCTURE && format ? format : json);
        cake_buf_adds(out, c->kind == CAKE_CONSTRAINT_SCHEMA ? "}" : "");
    }
    cake_json_free(json);
    return err;
}

static void take(cake_buf *text, cake_constraint_source *out)
{
    free(out->text);
    out->kind = CAKE_CONSTRAINT_STRUCTURE;
    out->text = text->data;
    out->len = text->len;
}

cake_err cake_answer_constrain(const cake_answer_form *form, cake_answer_begin begin,
                               cake_constraint_source *constraint, cake_fault *fault)
{
    cake_buf text = {0};
    if (!constraint->kind || !form->reasoning || (form->think && begin == CAKE_ANSWER_CLOSED))
        return CAKE_OK;
    open_sequence(&text);
    add_reasoning(form, begin, &text);
    if (!form->think && begin != CAKE_ANSWER_CLOSED) {
        cake_tag_mark(form, &text, "<|channel|>");
        add_next(&text);
        cake_tag_text(&text, "final");
        add_next(&text);
        cake_tag_mark(form, &text, "<|message|>");
        add_next(&text);
    }
    cake_err err = add_constraint(constraint, &text, fault);
    close_sequence(&text);
    if (err)
        cake_buf_free(&text);
    else
        take(&text, constraint);
    return err;
}

cake_err cake_answer_require(const cake_answer_form *form, cake_answer_begin begin, const cake_json *tools,
                             const char *name, bool parallel, cake_constraint_source *out, cake_fault *fault)
{
    cake_buf text = {0};
    bool found = !name;
    if (!form->tools)
        return cake_fault_set(fault, "tool_choice",
                              "how this model writes tool calls is not known, so none can be demanded; name "
                              "the form with --tool-parser");
    if (name)
        cake_tool_parameters(tools, name, strlen(name), &found);
    if (!found || !cake_json_size(tools))
        return cake_fault_set(fault, "tool_choice", "tool_choice: there is no tool %s in tools",
                              name ? name : "at all");
    open_sequence(&text);
    add_reasoning(form, begin, &text);
    form->tools->require(form, tools, name, parallel && !name, &text);
    close_sequence(&text);
    take(&text, out);
    out->compact = false;
    out->closed = true; /* no arguments that the tool does not list */
    return CAKE_OK;
}
