/* SPDX-License-Identifier: Apache-2.0
 *
 * In: response_format, structured_outputs and guided_... fields. Out: a request's constraint, which
 * preparation compiles.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"
#include "prompt/field.h"

/* Takes over a constraint; text is copied. */
static cake_err set(cake_field_pass *p, const char *field, cake_constraint_kind kind, const char *text,
                    size_t len)
{
    cake_request *r = p->request;
    if (r->constraint.kind)
        return cake_fault_set(&r->fault, field,
                              "%s and %s both say what the answer must look like; expected one",
                              r->constraint_field, field);
    r->constraint.kind = kind;
    r->constraint.text = cake_copy(text, len);
    r->constraint.len = len;
    r->constraint_field = field;
    return CAKE_OK;
}

/* A schema or structural tag: as JSON, or as a string that has its text. */
static cake_err set_json(cake_field_pass *p, const char *field, cake_constraint_kind constraint,
                         const char *name, const cake_json *node)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    const cake_json_type kind = cake_json_kind(node);
    if (text)
        return set(p, field, constraint, text, len);
    if (kind != CAKE_JSON_OBJECT && kind != CAKE_JSON_BOOL)
        return cake_field_wrong(p, name, node,
                                constraint == CAKE_CONSTRAINT_SCHEMA ? "a JSON schema (an object)"
                                                                     : "a structural tag (an object)");
    cake_buf json = {0};
    cake_json_add_node(&json, node);
    cake_err err = set(p, field, constraint, json.data, json.len);
    cake_buf_free(&json);
    return err;
}

static cake_err set_text(cake_field_pass *p, const char *field, const char *name, cake_constraint_kind kind,
                         const cake_json *node)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    return text ? set(p, field, kind, text, len) : cake_field_wrong(p, name, node, "a string");
}

static cake_err set_choice(cake_field_pass *p, const char *field, const char *name, const cake_json *node)
{
    const size_t n = cake_json_size(node);
    bool strings = cake_json_kind(node) == CAKE_JSON_ARRAY && n;
    for (size_t i = 0; i < n && strings; i++)
        strings = cake_json_kind(cake_json_at(node, i)) == CAKE_JSON_STRING;
    if (!strings)
        return cake_field_wrong(p, name, node, "an array of strings, one or more");
    cake_buf json = {0};
    cake_json_add_node(&json, node);
    cake_err err = set(p, field, CAKE_CONSTRAINT_CHOICE, json.data, json.len);
    cake_buf_free(&json);
    return err;
}

static cake_err read_flag(cake_field_pass *p, const char *name, const cake_json *node, bool *flag)
{
    const cake_json_type kind = cake_json_kind(node);
    if (kind != CAKE_JSON_BOOL && kind != CAKE_JSON_NULL && kind != CAKE_JSON_ABSENT)
        return cake_field_wrong(p, name, node, "true or false");
    *flag = cake_json_bool(node, *flag);
    return CAKE_OK;
}

cake_err cake_field_read_format(cake_field_pass *p, const char *field, const cake_json *node,
                                const cake_json *own)
{
    const char *type = cake_json_text(cake_json_get(node, "type"), NULL);
    char name[64];
    bool strict = false;
    if (type && !strcmp(type, "text"))
        return CAKE_OK;
    if (type && !strcmp(type, "json_object"))
        return set(p, field, CAKE_CONSTRAINT_OBJECT, "", 0);
    if (type && !strcmp(type, "structural_tag"))
        return set_json(p, field, CAKE_CONSTRAINT_STRUCTURE, field, node);
    snprintf(name, sizeof name, "%s.type", field);
    if (!type || strcmp(type, "json_schema") != 0)
        return cake_field_wrong(p, name, cake_json_get(node, "type"),
                                "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"");
    snprintf(name, sizeof name, "%s.json_schema", field);
    if (cake_json_kind(own) != CAKE_JSON_OBJECT)
        return cake_field_wrong(p, name, own, "an object with a schema");
    const char *within = own == node ? "" : ".json_schema";
    snprintf(name, sizeof name, "%s.name", field);
    if (own == node && cake_json_kind(cake_json_get(own, "name")) != CAKE_JSON_STRING)
        return cake_field_wrong(p, name, cake_json_get(own, "name"), "a string");
    snprintf(name, sizeof name, "%s%s.strict", field, within);
    cake_err err = read_flag(p, name, cake_json_get(own, "strict"), &strict);
    snprintf(name, sizeof name, "%s%s.schema", field, within);
    if (!err)
        err = set_json(p, field, CAKE_CONSTRAINT_SCHEMA, name, cake_json_get(own, "schema"));
    p->request->constraint.compact = p->request->constraint.closed = strict;
    return err;
}

cake_err cake_field_read_response_format(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    return cake_field_read_format(p, f->name, node, cake_json_get(node, "json_schema"));
}

/* Members of structured_outputs that say what the answer must look like; guided_... have the same ends. */
static cake_err read_kind(cake_field_pass *p, const char *field, const char *name, const char *kind,
                          const cake_json *node)
{
    if (!strcmp(kind, "json"))
        return set_json(p, field, CAKE_CONSTRAINT_SCHEMA, name, node);
    if (!strcmp(kind, "regex"))
        return set_text(p, field, name, CAKE_CONSTRAINT_REGEX, node);
    if (!strcmp(kind, "choice"))
        return set_choice(p, field, name, node);
    if (!strcmp(kind, "structural_tag"))
        return set_json(p, field, CAKE_CONSTRAINT_STRUCTURE, name, node);
    return set_text(p, field, name, CAKE_CONSTRAINT_GRAMMAR, node);
}

cake_err cake_field_read_guided(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    return read_kind(p, f->name, f->name, f->name + strlen("guided_"), node);
}

cake_err cake_field_read_structured_outputs(cake_field_pass *p, const cake_field_row *f,
                                            const cake_json *node)
{
    static const char *const kinds[] = {"json", "regex", "choice", "grammar", "structural_tag"};
    cake_request *r = p->request;
    const char *first = NULL; /* the member that says what the answer must look like */
    bool compact = false, closed = false, object = false;
    cake_err err = CAKE_OK;
    if (cake_json_kind(node) != CAKE_JSON_OBJECT)
        return cake_field_wrong(p, f->name, node,
                                "an object with json, regex, choice, grammar or structural_tag");
    for (void *it = cake_json_first(node); it && !err; it = cake_json_next(node, it)) {
        const char *key = cake_json_key(it, NULL);
        const cake_json *value = cake_json_value(it);
        char name[64];
        size_t kind = 0;
        snprintf(name, sizeof name, "structured_outputs.%.40s", key);
        while (kind < sizeof kinds / sizeof *kinds && strcmp(kinds[kind], key) != 0)
            kind++;
        if (cake_json_kind(value) == CAKE_JSON_NULL)
            continue;
        const bool says = kind < sizeof kinds / sizeof *kinds ||
                          (!strcmp(key, "json_object") && cake_json_bool(value, false));
        if (says && first)
            return cake_fault_set(&r->fault, f->name,
                                  "structured_outputs.%s and %s both say what the answer must look like; "
                                  "expected one",
                                  first, name);
        first = says ? key : first;
        if (kind < sizeof kinds / sizeof *kinds)
            err = read_kind(p, f->name, name, key, value);
        else if (!strcmp(key, "json_object"))
            err = read_flag(p, name, value, &object);
        else if (!strcmp(key, "disable_any_whitespace"))
            err = read_flag(p, name, value, &compact);
        else if (!strcmp(key, "disable_additional_properties"))
            err = read_flag(p, name, value, &closed);
        else if (strcmp(key, "disable_fallback") != 0)
            err = cake_fault_set(
                &r->fault, f->name,
                "%s is not supported; expected json, json_object, regex, choice, "
                "grammar or structural_tag, and disable_any_whitespace or disable_additional_properties",
                name);
    }
    if (!err && object)
        err = set(p, f->name, CAKE_CONSTRAINT_OBJECT, "", 0);
    if (!err && r->constraint_field != f->name)
        return cake_field_wrong(p, f->name, node,
                                "an object with json, regex, choice, grammar or structural_tag");
    r->constraint.compact = compact;
    r->constraint.closed = closed;
    return err;
}
