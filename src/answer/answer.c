/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer as the model wrote it. Out: a message.
 * Invariant: spans follow each other without gaps, so that nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/parts.h"
#include "base/alloc.h"
#include "grammar/validate.h"

/* ---- helpers of the parsers */

void cake_reading_add(cake_reading *r, cake_span_kind kind, size_t end)
{
    const size_t begin = r->n_span ? r->span[r->n_span - 1].end : 0;
    if (end <= begin)
        return;
    if (r->n_span && r->span[r->n_span - 1].kind == kind && kind == CAKE_SPAN_CONTENT) {
        r->span[r->n_span - 1].end = end;
        return;
    }
    CAKE_RESERVE(r->span, r->n_span, r->cap_span);
    r->span[r->n_span++] = (cake_span){kind, begin, end};
}

size_t cake_reading_find(const cake_reading *r, const char *text, size_t from, size_t to)
{
    const char *at = from < to ? memmem(r->text + from, to - from, text, strlen(text)) : NULL;
    return at ? (size_t)(at - r->text) : to;
}

bool cake_reading_has(const cake_reading *r, const char *text, size_t from)
{
    const size_t n = strlen(text);
    return from <= r->len && r->len - from >= n && !memcmp(r->text + from, text, n);
}

size_t cake_reading_blanks(const cake_reading *r, size_t from, size_t to)
{
    while (from < to && r->text[from] && strchr(" \t\r\n", r->text[from]))
        from++;
    return from;
}

size_t cake_reading_json(const cake_reading *r, size_t from, size_t to)
{
    int64_t depth = 0;
    bool quoted = false;
    for (size_t i = from; i < to; i++) {
        const char c = r->text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (--depth <= 0)
                return depth ? from : i + 1;
        }
    }
    return from;
}

const cake_json *cake_tool_parameters(const cake_json *tools, const char *name, size_t n_name, bool *found)
{
    *found = false;
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(tools, i), "function");
        size_t n;
        const char *own = cake_json_text(cake_json_get(function, "name"), &n);
        if (!own || n != n_name || memcmp(own, name, n) != 0)
            continue;
        *found = true;
        return cake_json_get(function, "parameters");
    }
    return NULL;
}

bool cake_reading_call(cake_reading *r, const char *name, size_t n_name, const cake_json *arguments,
                       const char *id)
{
    bool found;
    const cake_json *schema = cake_tool_parameters(r->tools, name, n_name, &found);
    cake_json *none = NULL;
    cake_fault fault = {0};
    if (!arguments && !cake_json_parse("{}", 2, &none, &fault))
        arguments = none;
    found = found && cake_json_kind(arguments) == CAKE_JSON_OBJECT &&
            (cake_json_kind(schema) <= CAKE_JSON_NULL || cake_schema_valid(schema, arguments));
    if (found) {
        cake_buf text = {0};
        cake_json_add_node(&text, arguments);
        CAKE_RESERVE(r->call, r->n_call, r->cap_call);
        r->call[r->n_call++] = (cake_tool_call){.name = cake_copy(name, n_name),
                                                .arguments = cake_copy(text.data, text.len),
                                                .id = id ? cake_copy(id, strlen(id)) : NULL};
        cake_buf_free(&text);
    }
    cake_json_free(none);
    return found;
}

void cake_reading_drop_calls(cake_reading *r, size_t n)
{
    while (r->n_call > n) {
        const cake_tool_call *last = &r->call[--r->n_call];
        free(last->name);
        free(last->arguments);
        free(last->id);
    }
}

/* ---- reasoning between two marks, at the beginning */

static void read_reasoning(cake_reading *r, bool open)
{
    const cake_answer_form *form = r->form;
    size_t at = cake_reading_blanks(r, 0, r->len);
    const bool marked = cake_reading_has(r, form->think, at);
    if (!marked && !open)
        return;
    at = marked ? at + strlen(form->think) : 0;
    while (at < r->len && r->text[at] == '\n')
        at++;
    cake_reading_add(r, CAKE_SPAN_MARK, at);
    const size_t end = cake_reading_find(r, form->unthink, at, r->len);
    size_t last = end;
    while (last > at && r->text[last - 1] == '\n')
        last--;
    cake_reading_add(r, CAKE_SPAN_REASONING, end == r->len ? end : last);
    if (end == r->len)
        return;
    at = end + strlen(form->unthink);
    while (at < r->len && r->text[at] == '\n')
        at++;
    cake_reading_add(r, CAKE_SPAN_MARK, at);
}

/* ---- the message */

/* Appends bytes of the text, with or without special tokens. */
static void add_text(const cake_answer_text *from, size_t begin, size_t end, bool special, cake_buf *out)
{
    for (size_t i = 0; i < from->n_special && !special; i++) {
        if (from->special[i].end <= begin || from->special[i].begin >= end)
            continue;
        if (from->special[i].begin > begin)
            cake_buf_add(out, from->text.data + begin, from->special[i].begin - begin);
        begin = from->special[i].end < end ? from->special[i].end : end;
    }
    cake_buf_add(out, from->text.data + begin, end - begin);
}

static bool is_blank(const cake_buf *text)
{
    size_t i = 0;
    while (i < text->len && text->data[i] && strchr(" \t\r\n", text->data[i]))
        i++;
    return i == text->len;
}

static int64_t count_tokens(const cake_answer_text *from, const cake_span *span)
{
    int64_t n = 0;
    for (size_t i = 0; i < from->n_token; i++)
        n += from->token[i] >= span->begin && from->token[i] < span->end;
    return n;
}

static void make_message(const cake_reading *r, cake_message *out)
{
    cake_buf content = {0}, reasoning = {0};
    bool apart = false; /* something stood between two spans of content */
    cake_buf_adds(&content, "");
    for (size_t i = 0; i < r->n_span; i++) {
        const cake_span *span = &r->span[i];
        const bool said = span->kind == CAKE_SPAN_CONTENT || span->kind == CAKE_SPAN_FAILED;
        if (span->kind == CAKE_SPAN_REASONING) {
            cake_buf_adds(&reasoning, reasoning.len ? "\n" : "");
            add_text(r->from, span->begin, span->end, false, &reasoning);
            out->reasoning_tokens += count_tokens(r->from, span);
        }
        if (said) {
            cake_buf_adds(&content, apart && content.len ? "\n" : "");
            add_text(r->from, span->begin, span->end, span->kind == CAKE_SPAN_FAILED, &content);
        }
        apart = !said;
    }
    if (r->n_call && is_blank(&content))
        cake_buf_cut(&content, 0);
    out->content = content.data;
    out->n_content = content.len;
    out->reasoning = reasoning.len ? reasoning.data : NULL;
    out->n_reasoning = reasoning.len;
    if (!reasoning.len)
        cake_buf_free(&reasoning);
    out->call = r->call;
    out->n_call = (int)r->n_call;
    out->reads_reasoning = r->form->reasoning;
    out->short_ids = r->form->tools && r->form->tools->short_ids;
}

void cake_answer_read(const cake_answer_form *form, cake_answer_begin begin, const cake_json *tools,
                      const cake_answer_text *text, cake_message *out)
{
    cake_reading r = {.form = form,
                      .from = text,
                      .text = text->text.data ? text->text.data : "",
                      .len = text->text.len,
                      .tools = form->tools ? tools : NULL};
    *out = (cake_message){0};
    if (form->think)
        read_reasoning(&r, begin == CAKE_ANSWER_OPEN);
    const bool harmony = (form->reasoning && !form->think) || (form->tools && !form->tools->read);
    if (harmony)
        cake_harmony_read(&r, begin);
    else if (r.tools)
        form->tools->read(&r);
    cake_reading_add(&r, CAKE_SPAN_CONTENT, r.len);
    make_message(&r, out);
    free(r.span);
}

void cake_message_free(cake_message *message)
{
    for (int i = 0; i < message->n_call; i++) {
        free(message->call[i].name);
        free(message->call[i].arguments);
        free(message->call[i].id);
    }
    free(message->call);
    free(message->content);
    free(message->reasoning);
    *message = (cake_message){0};
}

void cake_answer_text_free(cake_answer_text *text)
{
    cake_buf_free(&text->text);
    free(text->special);
    free(text->token);
    *text = (cake_answer_text){0};
}
