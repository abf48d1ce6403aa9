/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a structural tag. Out: rules of an automaton.
 *
 * Each element is added together with the text that follows it, its stop: free text must know where it ends.
 */
#include "grammar/structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/search.h"
#include "grammar/vocabulary.h"

enum { MOST_ELEMENTS = 10000 };

typedef struct span {
    const char *at; /* [len]; NULL: none */
    size_t len;
} span;

typedef struct builder {
    cake_automaton *automaton;
    const cake_schema_options *options;
    int n_element;
    cake_fault *fault;
} builder;

static cake_err add(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to);
static cake_err check_keys(builder *b, const cake_json *element, const char *type);

static cake_err wrong(builder *b, const char *type, const char *what)
{
    return cake_fault_set(b->fault, NULL, "structural tag: %s%s%s", type, *type ? ": " : "", what);
}

static int32_t literal(builder *b, int32_t from, span t)
{
    return t.at ? cake_automaton_literal(b->automaton, from, t.at, t.len) : from;
}

static bool get_text(const cake_json *element, const char *name, span *out)
{
    out->at = cake_json_text(cake_json_get(element, name), &out->len);
    return out->at;
}

static int32_t through(builder *b, int32_t from, int rule)
{
    const int32_t to = cake_automaton_state(b->automaton);
    cake_automaton_call(b->automaton, from, rule, to);
    return to;
}

/* ---- single elements; each is followed by stop */

static cake_err add_string(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    span value;
    if (!get_text(element, "value", &value))
        return wrong(b, "const_string", "expected a string `value`");
    *to = literal(b, literal(b, from, value), stop);
    return CAKE_OK;
}

static cake_err add_token(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    span value;
    if (!get_text(element, "token", &value))
        return wrong(b, "token", "expected a string `token`");
    cake_buf_add(&b->automaton->special, value.at, strlen(value.at) + 1);
    const int32_t marked = cake_automaton_literal(b->automaton, from, CAKE_SPECIAL_MARK, 1);
    *to = literal(b, literal(b, marked, value), stop);
    return CAKE_OK;
}

static cake_err add_schema(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const cake_json *schema = cake_json_get(element, "json_schema");
    int rule;
    if (!schema)
        return wrong(b, "json_schema", "expected a schema `json_schema`");
    cake_err err = cake_schema_add(schema, b->options, b->automaton, &rule, b->fault);
    if (!err)
        *to = literal(b, through(b, from, rule), stop);
    return err;
}

static cake_err add_regex(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    span pattern;
    cake_exprs exprs = {0};
    cake_expr *e = NULL;
    if (!get_text(element, "pattern", &pattern))
        return wrong(b, "regex", "expected a string `pattern`");
    const int32_t end = cake_automaton_state(b->automaton);
    cake_err err = cake_regex_parse(pattern.at, pattern.len, true, &exprs, &e, b->fault);
    if (!err)
        cake_automaton_expr(b->automaton, from, e, CAKE_CODING_PLAIN, end);
    cake_exprs_free(&exprs);
    *to = literal(b, end, stop);
    return err;
}

static cake_err add_grammar(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    span grammar;
    int rule;
    if (!get_text(element, "grammar", &grammar))
        return wrong(b, "grammar", "expected a string `grammar`");
    cake_err err = cake_gbnf_parse(grammar.at, grammar.len, b->automaton, &rule, b->fault);
    if (!err)
        *to = literal(b, through(b, from, rule), stop);
    return err;
}

static cake_err add_any(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const cake_json *excludes = cake_json_get(element, "excludes");
    const size_t n = cake_json_size(excludes);
    const int32_t nowhere = cake_automaton_state(b->automaton);
    cake_search_text *texts = cake_alloc(n + 1, sizeof *texts);
    cake_err err = CAKE_OK;
    *to = cake_automaton_state(b->automaton);
    for (size_t i = 0; i < n && !err; i++) {
        texts[i] = (cake_search_text){.to = nowhere};
        texts[i].text = cake_json_text(cake_json_at(excludes, i), &texts[i].len);
        err = texts[i].text ? CAKE_OK : wrong(b, "any_text", "expected an array `excludes` of strings");
    }
    texts[n] = (cake_search_text){stop.at, stop.len, *to};
    if (!err && !cake_search_add(b->automaton, from, texts, n + (stop.at != NULL), stop.at ? -1 : *to))
        err =
            wrong(b, "any_text",
                  "a text that ends it, or that it excludes, is empty or not UTF-8, or these have more than "
                  "1,024 characters");
    free(texts);
    return err;
}

/* ---- several */

/* An element that is nothing but a text ends the free text before it. */
static span text_of(const cake_json *element)
{
    span own = {0};
    const char *type = cake_json_text(cake_json_get(element, "type"), NULL);
    if (type && !strcmp(type, "const_string"))
        get_text(element, "value", &own);
    return own;
}

static cake_err add_sequence(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const cake_json *list = cake_json_get(element, "elements");
    const size_t n = cake_json_size(list);
    cake_err err = CAKE_OK;
    if (cake_json_kind(list) != CAKE_JSON_ARRAY)
        return wrong(b, "sequence", "expected an array `elements`");
    for (size_t i = 0; i < n && !err; i++) {
        const span next = text_of(cake_json_at(list, i + 1));
        const bool last = i + 1 == n;
        err = add(b, cake_json_at(list, i), from, last ? stop : next, to);
        i += next.at != NULL;
        if (!last && i + 1 == n)
            *to = err ? *to : literal(b, *to, stop);
        from = *to;
    }
    if (!n)
        *to = literal(b, from, stop);
    return err;
}

/* One of the elements of a list. */
static cake_err add_choice(builder *b, const cake_json *list, const char *type, int32_t from, span stop,
                           int32_t *to)
{
    cake_err err = CAKE_OK;
    *to = cake_automaton_state(b->automaton);
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || !cake_json_size(list))
        return wrong(b, type, "expected an array of elements, one or more");
    for (size_t i = 0; i < cake_json_size(list) && !err; i++) {
        int32_t end;
        err = add(b, cake_json_at(list, i), from, stop, &end);
        if (!err)
            cake_automaton_empty(b->automaton, end, *to);
    }
    return err;
}

static cake_err add_or(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    return add_choice(b, cake_json_get(element, "elements"), "or", from, stop, to);
}

/* At least min times, at most once unless again. */
static cake_err add_times(builder *b, const cake_json *element, int min, bool again, int32_t from, span stop,
                          int32_t *to)
{
    const int32_t begin = cake_automaton_state(b->automaton), end = cake_automaton_state(b->automaton);
    int32_t after;
    cake_err err = add(b, cake_json_get(element, "content"), begin, (span){0}, &after);
    if (err)
        return err;
    cake_automaton_empty(b->automaton, from, begin);
    cake_automaton_empty(b->automaton, after, end);
    if (again)
        cake_automaton_empty(b->automaton, after, begin);
    if (!min)
        cake_automaton_empty(b->automaton, from, end);
    *to = literal(b, end, stop);
    return CAKE_OK;
}

static cake_err add_optional(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    return add_times(b, element, 0, false, from, stop, to);
}

static cake_err add_star(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    return add_times(b, element, 0, true, from, stop, to);
}

static cake_err add_plus(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    return add_times(b, element, 1, true, from, stop, to);
}

/* What follows the first `skip` bytes of a tag's begin. */
static cake_err add_tag_after(builder *b, const cake_json *tag, size_t skip, int32_t from, span stop,
                              int32_t *to)
{
    span begin, end;
    const cake_json *ends = cake_json_get(tag, "end");
    const bool several = cake_json_kind(ends) == CAKE_JSON_ARRAY;
    const size_t n = several ? cake_json_size(ends) : 1;
    cake_err err = check_keys(b, tag, "tag");
    if (err)
        return err;
    if (!get_text(tag, "begin", &begin) || !n)
        return wrong(b, "tag", "expected the strings `begin` and `end`, or an array of these");
    from = literal(b, from, (span){begin.at + skip, begin.len - skip});
    *to = cake_automaton_state(b->automaton);
    for (size_t i = 0; i < n && !err; i++) {
        int32_t after;
        end.at = cake_json_text(several ? cake_json_at(ends, i) : ends, &end.len);
        if (!end.at)
            return wrong(b, "tag", "expected the strings `begin` and `end`, or an array of these");
        err = add(b, cake_json_get(tag, "content"), from, end.len ? end : stop, &after);
        if (!err)
            cake_automaton_empty(b->automaton, end.len ? literal(b, after, stop) : after, *to);
    }
    return err;
}

static cake_err add_tag(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    return add_tag_after(b, element, 0, from, stop, to);
}

static cake_err add_separated(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const int32_t head = cake_automaton_state(b->automaton), end = cake_automaton_state(b->automaton);
    span separator = {0};
    int32_t after;
    get_text(element, "separator", &separator);
    cake_err err =
        add_choice(b, cake_json_get(element, "tags"), "tags_with_separator", head, (span){0}, &after);
    if (err)
        return err;
    cake_automaton_empty(b->automaton, from, head);
    cake_automaton_empty(b->automaton, after, end);
    if (!cake_json_bool(cake_json_get(element, "at_least_one"), false))
        cake_automaton_empty(b->automaton, from, end);
    if (!cake_json_bool(cake_json_get(element, "stop_after_first"), false))
        cake_automaton_empty(b->automaton, literal(b, after, separator), head);
    *to = literal(b, end, stop);
    return CAKE_OK;
}

/* From behind a trigger through the rest of the tags that begin with it. */
static cake_err add_triggered(builder *b, const cake_json *tags, span trigger, int32_t from, int32_t to)
{
    bool any = false;
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < cake_json_size(tags) && !err && !b->automaton->full; i++) {
        const cake_json *tag = cake_json_at(tags, i);
        cake_automaton_spend(b->automaton, 4);
        span begin;
        int32_t end;
        if (!get_text(tag, "begin", &begin) || begin.len < trigger.len ||
            memcmp(begin.at, trigger.at, trigger.len) != 0)
            continue;
        any = true;
        err = add_tag_after(b, tag, trigger.len, from, (span){0}, &end);
        if (!err)
            cake_automaton_empty(b->automaton, end, to);
    }
    return err || any ? err : wrong(b, "triggered_tags", "no tag begins with one of the triggers");
}

static cake_err add_triggers(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const cake_json *triggers = cake_json_get(element, "triggers"), *tags = cake_json_get(element, "tags");
    const size_t n = cake_json_size(triggers);
    const bool some = cake_json_bool(cake_json_get(element, "at_least_one"), false),
               once = cake_json_bool(cake_json_get(element, "stop_after_first"), false);
    cake_search_text *found = cake_alloc(n + 2, sizeof *found);
    const int32_t head = cake_automaton_state(b->automaton), after = cake_automaton_state(b->automaton),
                  end = cake_automaton_state(b->automaton);
    cake_err err = cake_json_kind(triggers) == CAKE_JSON_ARRAY && n
                       ? CAKE_OK
                       : wrong(b, "triggered_tags", "expected an array `triggers` of strings, one or more");
    for (size_t i = 0; i < n && !err; i++) {
        span trigger = {0};
        trigger.at = cake_json_text(cake_json_at(triggers, i), &trigger.len);
        found[i] = (cake_search_text){trigger.at, trigger.len, cake_automaton_state(b->automaton)};
        err = !trigger.len ? wrong(b, "triggered_tags", "a trigger is no text")
                           : add_triggered(b, tags, trigger, found[i].to, after);
    }
    if (!err && some)
        err = add_choice(b, tags, "triggered_tags", from, (span){0}, to);
    if (!err && some)
        cake_automaton_empty(b->automaton, *to, after);
    if (!err && !some)
        cake_automaton_empty(b->automaton, from, head);
    if (!err && !once)
        cake_automaton_empty(b->automaton, after, head);
    if (!err && once)
        cake_automaton_empty(b->automaton, literal(b, after, stop), end);
    if (!err && stop.at)
        found[n] = (cake_search_text){stop.at, stop.len, end};
    if (!err && !cake_search_add(b->automaton, head, found, n + (stop.at != NULL), stop.at ? -1 : end))
        err = wrong(b, "triggered_tags", "a trigger is not UTF-8, or they have more than 1,024 characters");
    free(found);
    *to = end;
    return err;
}

/* ---- parameters each by itself */

/* How they are written: name and value in between. */
typedef struct parameter_form {
    const char *type;
    const char *name, *value, *end; /* what stands before these two, and ends the value */
    const char *after, *last;       /* behind each, and behind all of them */
    bool loose;                     /* ends of lines may be missing */
    const char *marks[4];           /* what no string has; NULL ends them */
} parameter_form;

static const parameter_form qwen_form = {
    .type = "qwen_xml_parameter",
    .name = "<parameter=",
    .value = ">\n",
    .end = "\n</parameter>",
    .after = "\n",
    .last = "",
    .marks = {"</parameter>", "</function>", "</tool_call>", "<tool_call>"}};
static const parameter_form glm_form = {.type = "glm_xml_parameter",
                                        .name = "\n<arg_key>",
                                        .value = "</arg_key>\n<arg_value>",
                                        .end = "</arg_value>",
                                        .after = "",
                                        .last = "\n",
                                        .loose = true,
                                        .marks = {"</tool_call>", "<tool_call>"}};

static span span_of(const char *text)
{
    return (span){text, strlen(text)};
}

/* A text of the form. */
static int32_t formed(builder *b, const parameter_form *form, int32_t from, const char *text)
{
    for (; form->loose && *text; text++) {
        const int32_t next = cake_automaton_literal(b->automaton, from, text, 1);
        if (*text == '\n')
            cake_automaton_empty(b->automaton, from, next);
        from = next;
    }
    return literal(b, from, span_of(text));
}

/* Free text up to stop that has none of the marks around it. */
static cake_err add_string_value(builder *b, const parameter_form *form, int32_t from, span stop, int32_t *to)
{
    enum { N_MARK = sizeof form->marks / sizeof *form->marks };
    const int32_t nowhere = cake_automaton_state(b->automaton);
    cake_search_text texts[1 + N_MARK];
    size_t n = 0;
    *to = cake_automaton_state(b->automaton);
    texts[n++] = (cake_search_text){stop.at, stop.len, *to};
    for (size_t i = 0; i < N_MARK && form->marks[i]; i++)
        texts[n++] = (cake_search_text){form->marks[i], strlen(form->marks[i]), nowhere};
    return cake_search_add(b->automaton, from, texts, n, -1) ? CAKE_OK : wrong(b, form->type, "");
}

static cake_err add_fixed_value(builder *b, const parameter_form *form, const cake_json *value, int32_t from,
                                span stop, int32_t to)
{
    span text = {0};
    text.at = cake_json_text(value, &text.len);
    if (!text.at)
        return CAKE_OK; /* no string: not valid */
    if (memmem(text.at, text.len, "</", 2))
        return wrong(b, form->type, "a value of enum or const has </, which would end it");
    cake_automaton_empty(b->automaton, literal(b, literal(b, from, text), stop), to);
    return CAKE_OK;
}

/* The value of a parameter, and the text behind it: strings as they are, others as JSON. */
static cake_err add_value(builder *b, const parameter_form *form, const cake_json *root,
                          const cake_json *schema, int32_t from, int32_t *to)
{
    static const char *const refused[] = {"allOf", "anyOf", "oneOf", "$ref"};
    const char *type = cake_json_text(cake_json_get(schema, "type"), NULL);
    const cake_json *list = cake_json_get(schema, "enum"), *only = cake_json_get(schema, "const");
    const span stop = span_of(form->end);
    int rule;
    bool any;
    if (!type || strcmp(type, "string") != 0) {
        cake_err err = cake_schema_add_at(root, schema, b->options, b->automaton, &rule, b->fault);
        *to = err ? from : literal(b, through(b, from, rule), stop);
        return err;
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (cake_json_get(schema, refused[i]))
            return cake_fault_set(b->fault, NULL, "structural tag: %s: a string with %s is not supported",
                                  form->type, refused[i]);
    *to = cake_automaton_state(b->automaton);
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < cake_json_size(list) && !err; i++)
        err = add_fixed_value(b, form, cake_json_at(list, i), from, stop, *to);
    if (list || only)
        return only && !err ? add_fixed_value(b, form, only, from, stop, *to) : err;
    const int32_t end = cake_automaton_state(b->automaton);
    err = cake_schema_add_text(root, schema, b->automaton, from, end, &any, b->fault);
    if (any && !err)
        return add_string_value(b, form, from, stop, to);
    cake_automaton_empty(b->automaton, literal(b, end, stop), *to);
    return err;
}

static bool is_required(builder *b, const cake_json *schema, const char *name)
{
    const cake_json *list = cake_json_get(schema, "required");
    for (size_t i = 0; i < cake_json_size(list) && !b->automaton->full; i++) {
        cake_automaton_spend(b->automaton, 1);
        const char *text = cake_json_text(cake_json_at(list, i), NULL);
        if (text && !strcmp(text, name))
            return true;
    }
    return false;
}

/* Whether each member of an object can be written by itself. */
static cake_err check_parameters(builder *b, const parameter_form *form, const cake_json *schema)
{
    static const char *const refused[] = {
        "$ref", "allOf", "anyOf",         "oneOf",         "not",           "if",
        "enum", "const", "minProperties", "maxProperties", "propertyNames", "patternProperties"};
    const cake_json *members = cake_json_get(schema, "properties"), *list = cake_json_get(schema, "required");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (cake_json_get(schema, refused[i]))
            return cake_fault_set(b->fault, NULL,
                                  "structural tag: %s: %s at # of the schema is not supported", form->type,
                                  refused[i]);
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const char *name = cake_json_text(cake_json_at(list, i), NULL);
        if (!name || !cake_json_get(members, name))
            return wrong(b, form->type, "required has a name that is not in properties");
    }
    for (void *it = cake_json_first(members); it; it = cake_json_next(members, it))
        if (strpbrk(cake_json_key(it, NULL), "<>\n"))
            return wrong(b, form->type, "the name of a parameter has <, > or an end of line");
    return CAKE_OK;
}

static cake_err add_parameters(builder *b, const parameter_form *form, const cake_json *schema, int32_t from,
                               int32_t *to)
{
    const cake_json *members = cake_json_get(schema, "properties");
    cake_err err = cake_json_kind(schema) == CAKE_JSON_OBJECT
                       ? check_parameters(b, form, schema)
                       : wrong(b, form->type, "expected a schema of an object `json_schema`");
    for (void *it = cake_json_first(members); it && !err; it = cake_json_next(members, it)) {
        const char *name = cake_json_key(it, NULL);
        int32_t after = from;
        const int32_t at =
            formed(b, form, literal(b, formed(b, form, from, form->name), span_of(name)), form->value);
        err = add_value(b, form, schema, cake_json_value(it), at, &after);
        after = formed(b, form, after, form->after);
        if (!err && !is_required(b, schema, name))
            cake_automaton_empty(b->automaton, from, after);
        from = after;
    }
    *to = err ? from : formed(b, form, from, form->last);
    return err;
}

static cake_err add_qwen(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    cake_err err = add_parameters(b, &qwen_form, cake_json_get(element, "json_schema"), from, to);
    *to = err ? from : literal(b, *to, stop);
    return err;
}

static cake_err add_glm(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    cake_err err = add_parameters(b, &glm_form, cake_json_get(element, "json_schema"), from, to);
    *to = err ? from : literal(b, *to, stop);
    return err;
}

/* ---- all */

static const struct {
    const char *type;
    cake_err (*add)(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to);
    const char *keys[5]; /* beside type */
} rows[] = {{"const_string", add_string, {"value"}},
            {"token", add_token, {"token"}},
            {"json_schema", add_schema, {"json_schema"}},
            {"regex", add_regex, {"pattern"}},
            {"grammar", add_grammar, {"grammar"}},
            {"any_text", add_any, {"excludes"}},
            {"sequence", add_sequence, {"elements"}},
            {"or", add_or, {"elements"}},
            {"optional", add_optional, {"content"}},
            {"star", add_star, {"content"}},
            {"plus", add_plus, {"content"}},
            {"tag", add_tag, {"begin", "content", "end"}},
            {"tags_with_separator", add_separated, {"tags", "separator", "at_least_one", "stop_after_first"}},
            {"triggered_tags", add_triggers, {"triggers", "tags", "at_least_one", "stop_after_first"}},
            {"qwen_xml_parameter", add_qwen, {"json_schema"}},
            {"glm_xml_parameter", add_glm, {"json_schema"}}};

enum { N_ROW = sizeof rows / sizeof *rows };

static size_t row_of(const char *type)
{
    size_t i = 0;
    while (i < N_ROW && strcmp(rows[i].type, type) != 0)
        i++;
    return i;
}

/* What an element says beside what its type knows would be lost. */
static cake_err check_keys(builder *b, const cake_json *element, const char *type)
{
    const char *const *keys = rows[row_of(type)].keys;
    for (void *it = cake_json_first(element); it; it = cake_json_next(element, it)) {
        const char *key = cake_json_key(it, NULL);
        size_t k = 0;
        while (k < 5 && keys[k] && strcmp(keys[k], key) != 0)
            k++;
        if (strcmp(key, "type") != 0 && (k == 5 || !keys[k]))
            return cake_fault_set(b->fault, NULL, "structural tag: %s: %.40s is not supported", type, key);
    }
    return CAKE_OK;
}

static cake_err add(builder *b, const cake_json *element, int32_t from, span stop, int32_t *to)
{
    const char *type = cake_json_text(cake_json_get(element, "type"), NULL);
    if (!type && cake_json_get(element, "begin"))
        type = "tag"; /* in lists of tags nothing else stands */
    if (!type)
        return wrong(b, "", "expected an element, an object with a `type`");
    if (++b->n_element > MOST_ELEMENTS)
        return wrong(b, type, "there are more than 10,000 elements");
    const size_t i = row_of(type);
    if (i == N_ROW && !strcmp(type, "structural_tag"))
        return wrong(b, "", "expected a `format`, or `structures` and `triggers`");
    if (i == N_ROW)
        return cake_fault_set(b->fault, NULL, "structural tag: type %.40s is not supported", type);
    cake_err err = check_keys(b, element, type);
    return err ? err : rows[i].add(b, element, from, stop, to);
}

/* The older form as an element. */
static void add_older(const cake_json *root, cake_buf *out)
{
    const cake_json *list = cake_json_get(root, "structures");
    cake_buf_adds(out, "{\"type\": \"triggered_tags\", \"triggers\": ");
    cake_json_add_node(out, cake_json_get(root, "triggers"));
    cake_buf_adds(out, ", \"tags\": [");
    for (size_t i = 0; i < cake_json_size(list); i++) {
        static const char *const names[] = {"begin", "end"};
        const cake_json *each = cake_json_at(list, i), *schema = cake_json_get(each, "schema");
        cake_buf_adds(out, i ? ", {" : "{");
        for (size_t k = 0; k < 2; k++) {
            cake_buf_addf(out, "\"%s\": ", names[k]);
            cake_json_add_node(out, cake_json_get(each, names[k]));
            cake_buf_adds(out, ", ");
        }
        cake_buf_adds(out, "\"content\": {\"type\": \"json_schema\", \"json_schema\": ");
        cake_json_add_node(out, schema);
        cake_buf_adds(out, "}}");
    }
    cake_buf_adds(out, "]}");
}

static bool has_members(const cake_json *list, const char *a, const char *b, const char *c)
{
    bool all = cake_json_kind(list) == CAKE_JSON_ARRAY;
    for (size_t i = 0; i < cake_json_size(list) && all; i++)
        all = cake_json_get(cake_json_at(list, i), a) && cake_json_get(cake_json_at(list, i), b) &&
              cake_json_get(cake_json_at(list, i), c);
    return all;
}

cake_err cake_structure_add(const cake_json *root, const cake_schema_options *options,
                            cake_automaton *automaton, int *rule, cake_fault *fault)
{
    builder b = {.automaton = automaton, .options = options, .fault = fault};
    const char *type = cake_json_text(cake_json_get(root, "type"), NULL);
    cake_json *older = NULL;
    cake_err err = CAKE_OK;
    const bool named = type && !strcmp(type, "structural_tag");
    if (named && cake_json_get(root, "format"))
        root = cake_json_get(root, "format");
    else if ((named || !type) && cake_json_get(root, "triggers") &&
             has_members(cake_json_get(root, "structures"), "begin", "schema", "end")) {
        cake_buf text = {0};
        add_older(root, &text);
        err = cake_json_parse(text.data, text.len, &older, fault);
        cake_buf_free(&text);
        root = older;
    }
    *rule = cake_automaton_rule(automaton);
    const cake_rule own = automaton->rule[*rule];
    int32_t to = own.end;
    if (!err)
        err = add(&b, root, own.begin, (span){0}, &to);
    if (!err)
        cake_automaton_empty(automaton, to, own.end);
    cake_json_free(older);
    return err;
}
