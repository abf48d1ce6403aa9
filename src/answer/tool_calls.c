/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer behind its reasoning. Out: the calls in it, in the forms of Hermes and Qwen, of Qwen3-Coder,
 * of GLM-4.5 and later ones, of Llama 3 and of Mistral.
 * Source: the chat templates of these models, which write calls of earlier turns in the same form.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/parts.h"
#include "base/alloc.h"
#include "grammar/validate.h"

#define TOOL_CALL  "<tool_call>"
#define TOOL_CLOSE "</tool_call>"

static size_t last_end(const cake_reading *r)
{
    return r->n_span ? r->span[r->n_span - 1].end : 0;
}

/* A call as an object with name and arguments (or parameters), and nothing that would be lost. */
static bool call_of(cake_reading *r, const cake_json *object)
{
    size_t n, n_known = 0;
    const cake_json *arguments = NULL;
    const char *name = cake_json_text(cake_json_get(object, "name"), &n);
    static const char *const known[] = {"name", "id", "type", "arguments", "parameters"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const cake_json *member = cake_json_get(object, known[i]);
        n_known += member != NULL;
        if (i >= 3 && cake_json_kind(member) > CAKE_JSON_NULL) {
            if (arguments)
                return false;
            arguments = member;
        }
    }
    return name && n_known == cake_json_size(object) &&
           cake_reading_call(r, name, n, arguments, cake_json_text(cake_json_get(object, "id"), NULL));
}

/* The JSON in bytes [from, to): a call, or an array of calls. */
static bool read_json(cake_reading *r, size_t from, size_t to)
{
    const size_t before = r->n_call;
    cake_json *json = NULL;
    bool right = cake_reading_parse(r->text + from, to - from, &json);
    const bool several = cake_json_kind(json) == CAKE_JSON_ARRAY;
    for (size_t i = 0; right && several && i < cake_json_size(json); i++)
        right = call_of(r, cake_json_at(json, i));
    right = right && (several ? cake_json_size(json) > 0 : call_of(r, json));
    if (!right)
        cake_reading_drop_calls(r, before);
    cake_json_free(json);
    return right;
}

/* ---- <tool_call>...</tool_call> */

/* read: reads a call at byte from, and returns its end, or from. What does not end with the closing mark is
 * none; or with the answer, if the call by itself shows where it ends. */
static void read_tagged(cake_reading *r, size_t (*read)(cake_reading *r, size_t from), bool shows_end)
{
    size_t at = last_end(r);
    for (;;) {
        const size_t open = cake_reading_find(r, TOOL_CALL, at, r->len), inner = open + strlen(TOOL_CALL);
        const size_t n_call = r->n_call;
        if (open == r->len)
            return;
        const size_t end = read(r, inner), close = cake_reading_blanks(r, end, r->len);
        size_t said = open;
        if (end == inner || (close < r->len ? !cake_reading_has(r, TOOL_CLOSE, close) : !shows_end)) {
            cake_reading_drop_calls(r, n_call);
            at = cake_reading_find(r, TOOL_CLOSE, inner, r->len);
            at += at < r->len ? strlen(TOOL_CLOSE) : 0;
            const size_t next = cake_reading_find(r, TOOL_CALL, inner, at);
            at = next < at ? next : at;
            cake_reading_add(r, CAKE_SPAN_CONTENT, open);
            cake_reading_add(r, CAKE_SPAN_FAILED, at);
            continue;
        }
        while (said > last_end(r) && r->text[said - 1] == '\n')
            said--;
        cake_reading_add(r, CAKE_SPAN_CONTENT, said);
        cake_reading_add(r, CAKE_SPAN_MARK, open);
        at = close < r->len ? close + strlen(TOOL_CLOSE) : r->len;
        cake_reading_add(r, CAKE_SPAN_CALL, at);
        at += at < r->len && r->text[at] == '\n';
        cake_reading_add(r, CAKE_SPAN_MARK, at);
    }
}

static size_t read_object(cake_reading *r, size_t from)
{
    const size_t at = cake_reading_blanks(r, from, r->len), end = cake_reading_json(r, at, r->len);
    return end > at && read_json(r, at, end) ? end : from;
}

void cake_tools_read_hermes(cake_reading *r)
{
    read_tagged(r, read_object, true);
}

/* ---- parameters each by itself */

/* Appends a parameter's value as JSON: strings are written as they are, other values as JSON, and strings,
 * too, where other values may stand (grammar/structure.c). */
static void add_value(const cake_json *root, const cake_json *schema, const char *text, size_t len,
                      cake_buf *out)
{
    /* as Jinja writes them */
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const char *type = cake_json_text(cake_json_get(schema, "type"), NULL), *value = text;
    size_t n = len;
    cake_json *json = NULL;
    cake_fault fault = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (len == strlen(words[i][0]) && !memcmp(text, words[i][0], len)) {
            value = words[i][1];
            n = strlen(value);
        }
    const bool string = !schema || (type && !strcmp(type, "string"));
    if (!string && !cake_json_parse(value, n, &json, &fault) && cake_schema_valid_at(root, schema, json))
        cake_buf_add(out, value, n);
    else
        cake_json_add_text(out, text, len);
    cake_json_free(json);
}

/* What stands around the name of a parameter and its value. */
typedef struct parameter_marks {
    const char *name, *name_end, *value, *value_end;
    bool lines; /* a value begins and ends with an end of line, which is not part of it */
} parameter_marks;

static const parameter_marks qwen3_coder_marks = {"<parameter=", ">", "", "</parameter>", true};
static const parameter_marks glm45_marks = {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", false};

/* Appends one parameter, whose name begins at byte *at; *at: its end. */
static bool read_parameter(const cake_reading *r, const parameter_marks *marks, const cake_json *schema,
                           size_t *at, cake_buf *out)
{
    const size_t name = *at + strlen(marks->name), end = cake_reading_find(r, marks->name_end, name, r->len);
    const size_t after = end + strlen(marks->name_end);
    size_t begin = *marks->value ? cake_reading_blanks(r, after, r->len) : after;
    if (end == r->len || !cake_reading_has(r, marks->value, begin))
        return false;
    begin += strlen(marks->value);
    size_t close = cake_reading_find(r, marks->value_end, begin, r->len);
    if (close == r->len)
        return false;
    *at = close + strlen(marks->value_end);
    begin += marks->lines && begin < close && r->text[begin] == '\n';
    close -= marks->lines && close > begin && r->text[close - 1] == '\n';
    cake_buf_adds(out, out->len > 1 ? ", " : "");
    cake_json_add_text(out, r->text + name, end - name);
    char *member = cake_copy(r->text + name, end - name);
    const cake_json *own = cake_json_get(cake_json_get(schema, "properties"), member);
    free(member);
    cake_buf_adds(out, ": ");
    add_value(schema, own, r->text + begin, close - begin, out);
    return true;
}

/* Adds the call of a tool whose parameters begin at byte from; returns what follows them, or 0: there is no
 * call. */
static size_t read_parameters(cake_reading *r, const parameter_marks *marks, const char *name, size_t n_name,
                              size_t from)
{
    bool found, right = true;
    const cake_json *schema = cake_tool_parameters(r->tools, name, n_name, &found);
    cake_buf text = {0};
    cake_json *arguments = NULL;
    size_t at = cake_reading_blanks(r, from, r->len);
    cake_buf_adds(&text, "{");
    while (right && found && cake_reading_has(r, marks->name, at)) {
        right = read_parameter(r, marks, schema, &at, &text);
        at = cake_reading_blanks(r, at, r->len);
    }
    cake_buf_adds(&text, "}");
    right = right && found && cake_reading_parse(text.data, text.len, &arguments) &&
            cake_reading_call(r, name, n_name, arguments, NULL);
    cake_json_free(arguments);
    cake_buf_free(&text);
    return right ? at : 0;
}

/* <function=NAME><parameter=NAME>VALUE</parameter></function> */
static size_t read_function(cake_reading *r, size_t from)
{
    static const char end_mark[] = "</function>";
    const size_t open = cake_reading_blanks(r, from, r->len), name = open + strlen("<function=");
    if (!cake_reading_has(r, "<function=", open))
        return from;
    const size_t end = cake_reading_find(r, ">", name, r->len), n_call = r->n_call;
    const size_t close =
        end < r->len ? read_parameters(r, &qwen3_coder_marks, r->text + name, end - name, end + 1) : 0;
    if (close && cake_reading_has(r, end_mark, close))
        return close + sizeof end_mark - 1;
    cake_reading_drop_calls(r, n_call);
    return from;
}

void cake_tools_read_qwen3_coder(cake_reading *r)
{
    read_tagged(r, read_function, true);
}

/* NAME<arg_key>NAME</arg_key><arg_value>VALUE</arg_value>, with ends of lines between these or without */
static size_t read_keys(cake_reading *r, size_t from)
{
    const size_t name = cake_reading_blanks(r, from, r->len);
    size_t end = name;
    while (end < r->len && !strchr("<\n", r->text[end]))
        end++;
    const size_t close = read_parameters(r, &glm45_marks, r->text + name, end - name, end);
    return close ? close : from;
}

void cake_tools_read_glm45(cake_reading *r)
{
    read_tagged(r, read_keys, false);
}

/* ---- {"name": ..., "parameters": ...}; ... and nothing else */

void cake_tools_read_llama3_json(cake_reading *r)
{
    static const char mark[] = "<|python_tag|>";
    const size_t begin = last_end(r);
    size_t at = cake_reading_blanks(r, begin, r->len);
    at = cake_reading_blanks(r, cake_reading_has(r, mark, at) ? at + strlen(mark) : at, r->len);
    while (at < r->len && r->text[at] == '{') {
        const size_t end = cake_reading_json(r, at, r->len);
        if (end == at || !read_json(r, at, end))
            break;
        at = cake_reading_blanks(r, end, r->len);
        if (at < r->len && r->text[at] == ';')
            at = cake_reading_blanks(r, at + 1, r->len);
    }
    if (at < r->len || !r->n_call) {
        cake_reading_drop_calls(r, 0);
        cake_reading_add(r, CAKE_SPAN_FAILED, r->len);
    } else {
        cake_reading_add(r, CAKE_SPAN_CALL, r->len);
    }
}

/* ---- [TOOL_CALLS][{...}], or [TOOL_CALLS]NAME[ARGS]{...} */

#define TOOL_CALLS "[TOOL_CALLS]"

/* One call behind its mark, or a list of them; returns its end, or `from`. */
static size_t read_marked(cake_reading *r, size_t from)
{
    const size_t at = cake_reading_blanks(r, from, r->len);
    if (at < r->len && r->text[at] == '[') {
        const size_t end = cake_reading_json(r, at, r->len);
        return end > at && read_json(r, at, end) ? end : from;
    }
    size_t name_end = at;
    while (name_end < r->len && r->text[name_end] != '{' && r->text[name_end] != '[')
        name_end++;
    size_t begin = name_end;
    char *id = NULL;
    if (cake_reading_has(r, "[CALL_ID]", begin)) {
        const size_t own = begin + strlen("[CALL_ID]");
        begin = cake_reading_find(r, "[", own, r->len);
        id = cake_copy(r->text + own, begin - own);
    }
    begin += cake_reading_has(r, "[ARGS]", begin) ? strlen("[ARGS]") : 0;
    begin = cake_reading_blanks(r, begin, r->len);
    const size_t end = begin < r->len && r->text[begin] == '{' ? cake_reading_json(r, begin, r->len) : begin;
    cake_json *arguments = NULL;
    const bool right = end > begin && cake_reading_parse(r->text + begin, end - begin, &arguments) &&
                       cake_reading_call(r, r->text + at, name_end - at, arguments, id);
    cake_json_free(arguments);
    free(id);
    return right ? end : from;
}

void cake_tools_read_mistral(cake_reading *r)
{
    size_t at = last_end(r);
    for (;;) {
        const size_t mark = cake_reading_find(r, TOOL_CALLS, at, r->len), inner = mark + strlen(TOOL_CALLS);
        if (mark == r->len)
            return;
        at = read_marked(r, inner);
        const bool right = at > inner;
        at = right ? at : cake_reading_find(r, TOOL_CALLS, inner, r->len);
        cake_reading_add(r, CAKE_SPAN_CONTENT, mark);
        cake_reading_add(r, right ? CAKE_SPAN_CALL : CAKE_SPAN_FAILED, at);
    }
}
