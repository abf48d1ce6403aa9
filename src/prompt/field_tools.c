/* SPDX-License-Identifier: Apache-2.0
 *
 * In: fields about tools and reasoning. Out: which tools an answer may, or must, call.
 */
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"
#include "prompt/field.h"

cake_err cake_field_read_tool_choice(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    static const struct {
        const char *name;
        cake_tool_choice choice;
    } rows[] = {{"none", CAKE_TOOLS_NONE}, {"auto", CAKE_TOOLS_AUTO}, {"required", CAKE_TOOLS_REQUIRED}};
    cake_request *r = p->request;
    const char *text = cake_json_text(node, NULL), *type = cake_json_text(cake_json_get(node, "type"), NULL);
    for (size_t i = 0; text && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, text)) {
            r->tool_choice = rows[i].choice;
            return CAKE_OK;
        }
    size_t n;
    const bool flat = p->kind == CAKE_FIELDS_RESPONSE;
    const char *name =
        cake_json_text(cake_json_get(flat ? node : cake_json_get(node, "function"), "name"), &n);
    if (type && strcmp(type, "function") != 0)
        return cake_fault_set(&r->fault, f->name,
                              "%s of type \"%.40s\" is not supported; a function, \"none\", \"auto\" and "
                              "\"required\" are",
                              f->name, type);
    if (!type || !name || memchr(name, 0, n))
        return cake_field_wrong(p, f->name, node,
                                flat ? "\"none\", \"auto\", \"required\", or {\"type\": \"function\", "
                                       "\"name\": NAME}"
                                     : "\"none\", \"auto\", \"required\", or {\"type\": \"function\", "
                                       "\"function\": {\"name\": NAME}}");
    r->tool_choice = CAKE_TOOLS_NAMED;
    r->tool_name = cake_copy(name, n);
    return CAKE_OK;
}

cake_err cake_field_read_parallel(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    if (cake_json_kind(node) != CAKE_JSON_BOOL)
        return cake_field_wrong(p, f->name, node, "true or false");
    p->request->one_call = !cake_json_bool(node, true);
    return CAKE_OK;
}

cake_err cake_field_read_effort(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    size_t n;
    const char *text = cake_json_text(node, &n);
    if (!text || !n || memchr(text, 0, n))
        return cake_field_wrong(p, f->name, node, "a string such as \"low\", \"medium\" or \"high\"");
    p->request->reasoning_effort = cake_copy(text, n);
    return CAKE_OK;
}

cake_err cake_field_check_tools(cake_field_pass *p)
{
    cake_request *r = p->request;
    if (r->tool_choice < CAKE_TOOLS_REQUIRED)
        return CAKE_OK;
    if (!cake_json_size(r->tools))
        return cake_fault_set(&r->fault, "tool_choice", "tool_choice demands a call, but there are no tools");
    if (r->constraint.kind)
        return cake_fault_set(&r->fault, "tool_choice",
                              "%s and tool_choice both say what the answer must look like; expected one",
                              r->constraint_field);
    r->constraint_field = "tool_choice";
    return CAKE_OK;
}
