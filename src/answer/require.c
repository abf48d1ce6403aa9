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

static void add_text(cake_buf *out, const char *text)
{
    add_member(out, "const_string", "value");
    cake_json_add_text(out, text, strlen(text));
    cake_buf_addc(out, '}');
}

static void add_mark(const cake_answer_form *form, cake_buf *out, const char *text)
{
    const int32_t id = cake_tokenizer_find(form->tokenizer, text, strlen(text));
    if (id < 0 || !cake_tokenizer_is_special(form->tokenizer, id)) {
        add_text(out, text);
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

static void add_parameters(cake_buf *out, const char *type, const cake_json *schema)
{
    add_member(out, type, "json_schema");
    if (cake_json_kind(schema) > CAKE_JSON_NULL) {
        const size_t at = out->len + 1;
        cake_json_add_node(out, schema);
        if (!cake_json_get(schema, "type")) { /* arguments are an object all the same */
            cake_buf tail = {0};
            cake_buf_add(&tail, out->data + at, out->len - at);
            cake_buf_cut(out, at);
            cake_buf_addf(out, "\"type\": \"object\"%s", cake_json_size(schema) ? ", " : "");
            cake_buf_add(out, tail.data, tail.len);
            cake_buf_free(&tail);
        }
    } else
        cake_buf_adds(out, "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}");
    cake_buf_addc(out, '}');
}

/* ---- calls */

static void add_part(const cake_answer_form *form, const cake_call_part *part, const cake_json *function,
                     cake_buf *out)
{
    cake_buf text = {0};
    const cake_json *name = cake_json_get(function, "name");
    switch (part->kind) {
    case CAKE_CALL_MARK:
        add_mark(form, out, part->text);
        break;
    case CAKE_CALL_TEXT:
        add_text(out, part->text);
        break;
    case CAKE_CALL_NAME:
    case CAKE_CALL_QUOTED:
        cake_buf_adds(&text, part->text);
        if (part->kind == CAKE_CALL_QUOTED)
            cake_json_add_node(&text, name);
        else
            cake_buf_adds(&text, cake_json_text(name, NULL));
        cake_buf_adds(&text, part->after);
        add_text(out, text.data);
        cake_buf_free(&text);
        break;
    default:
        add_parameters(out, part->text, cake_json_get(function, "parameters"));
    }
}

static void add_call(const cake_answer_form *form, const cake_call_form *call, const cake_json *function,
                     cake_buf *out)
{
    open_sequence(out);
    for (const cake_call_part *part = call->part; part->kind; part++) {
        if (part > call->part)
            add_next(out);
        add_part(form, part, function, out);
    }
    close_sequence(out);
}

/* Appends calls, one or more, or one; only: the name of the only tool. */
static void add_calls(const cake_answer_form *form, const cake_call_form *call, const cake_json *tools,
                      const char *only, bool parallel, cake_buf *out)
{
    const bool several = parallel && call->separator;
    bool any = false;
    if (call->open_mark) {
        add_mark(form, out, call->open_mark);
        add_next(out);
        add_text(out, call->open);
        add_next(out);
    }
    cake_buf_addf(out,
                  "{\"type\": \"tags_with_separator\", \"at_least_one\": true, \"stop_after_first\": %s, ",
                  several ? "false" : "true");
    cake_buf_adds(out, "\"separator\": ");
    cake_json_add_text(out, several ? call->separator : "", several ? strlen(call->separator) : 0);
    cake_buf_adds(out, ", \"tags\": [");
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(tools, i), "function");
        const char *name = cake_json_text(cake_json_get(function, "name"), NULL);
        if (only && strcmp(name, only) != 0)
            continue;
        if (any)
            add_next(out);
        any = true;
        add_call(form, call, function, out);
    }
    close_sequence(out);
    if (call->close) {
        add_next(out);
        add_text(out, call->close);
    }
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
    add_mark(form, out, form->unthink ? form->unthink : "<|end|>");
    add_next(out);
    if (form->unthink) {
        cake_buf_adds(out, "{\"type\": \"regex\", \"pattern\": \"\\\\n{0,2}\"}");
    } else {
        add_mark(form, out, "<|start|>");
        add_next(out);
        add_text(out, "assistant");
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
            add_mark(form, out, form->think);
        } else {
            add_mark(form, out, "<|channel|>");
            add_next(out);
            add_text(out, "analysis");
            add_next(out);
            add_mark(form, out, "<|message|>");
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
        add_mark(form, &text, "<|channel|>");
        add_next(&text);
        add_text(&text, "final");
        add_next(&text);
        add_mark(form, &text, "<|message|>");
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
    add_calls(form,
              form->named_arguments && form->tools->named_call ? form->tools->named_call : form->tools->call,
              tools, name, parallel && !name, &text);
    close_sequence(&text);
    take(&text, out);
    out->compact = false;
    out->closed = true; /* no arguments that the tool does not list */
    return CAKE_OK;
}
