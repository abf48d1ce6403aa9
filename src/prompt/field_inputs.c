/* SPDX-License-Identifier: Apache-2.0
 *
 * In: fields with texts and token ids. Out: prompts, inputs, queries and documents of a request.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"
#include "prompt/field.h"

cake_err cake_field_wrong(cake_field_pass *p, const char *name, const cake_json *node, const char *expected)
{
    char found[CAKE_FOUND];
    return cake_fault_set(&p->request->fault, name, "%s is %s; expected %s", name,
                          cake_field_found(node, found), expected);
}

int64_t cake_field_integer(const cake_json *node)
{
    double real = cake_json_real(node, NAN);
    if (cake_json_kind(node) == CAKE_JSON_REAL && fabs(real) < 0x1p53 && real == rint(real))
        return (int64_t)real;
    return cake_json_int(node, CAKE_UNSET);
}

cake_err cake_field_read_ids(cake_field_pass *p, const char *of, const cake_json *node, cake_ids *into)
{
    cake_ids_free(into);
    for (size_t i = 0; i < cake_json_size(node); i++) {
        int64_t id = cake_field_integer(cake_json_at(node, i));
        char name[40];
        snprintf(name, sizeof name, "%s[%zu]", of, i);
        if (id < 0 || id > INT32_MAX)
            return cake_field_wrong(p, name, cake_json_at(node, i), "a token id (an integer from 0)");
        cake_ids_add(into, (int32_t)id);
    }
    return CAKE_OK;
}

cake_err cake_field_read_text(cake_field_pass *p, const cake_field_row *f, const cake_json *node, char **text,
                              size_t *len, cake_ids *ids)
{
    cake_json_type kind = cake_json_kind(node);
    if (kind == CAKE_JSON_STRING) {
        const char *string = cake_json_text(node, len);
        *text = cake_copy(string, *len);
        return CAKE_OK;
    }
    if (kind != CAKE_JSON_ARRAY)
        return cake_field_wrong(p, f->name, node, "a string or an array of token ids");
    if (!cake_json_size(node))
        return cake_fault_set(&p->request->fault, f->name,
                              "%s is an empty array; expected one token id or more", f->name);
    return cake_field_read_ids(p, f->name, node, ids);
}

/* The text of a document, which may be an object that has it. */
static const cake_json *text_of(const cake_json *node)
{
    return cake_json_kind(node) == CAKE_JSON_OBJECT ? cake_json_get(node, "text") : node;
}

/* A text, ids, or an array of either: an owned list. */
static cake_err read_list(cake_field_pass *p, const char *name, const cake_json *node, cake_input **list,
                          int *n)
{
    cake_request *r = p->request;
    const cake_json_type first = cake_json_kind(cake_json_at(node, 0));
    const bool several = first == CAKE_JSON_STRING || first == CAKE_JSON_ARRAY || first == CAKE_JSON_OBJECT ||
                         !strcmp(name, "documents"); /* others may be the ids of one text */
    const size_t all = several ? cake_json_size(node) : 1;
    if (all > CAKE_MAX_INPUT)
        return cake_fault_set(&r->fault, name,
                              "%s is an array of %zu; expected at most %d texts: use more lines", name, all,
                              CAKE_MAX_INPUT);
    *list = cake_alloc(all, sizeof **list);
    *n = (int)all;
    for (size_t i = 0; i < all; i++) {
        char item[64];
        cake_input *into = &(*list)[i];
        snprintf(item, sizeof item, several ? "%.20s[%zu]" : "%.20s", name, i);
        cake_err err = cake_field_read_text(p, &(cake_field_row){.name = item},
                                            several ? text_of(cake_json_at(node, i)) : node, &into->text,
                                            &into->len, &into->ids);
        if (err)
            return err;
    }
    return CAKE_OK;
}

cake_err cake_field_read_input(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    if (r->inputs)
        return cake_fault_set(&r->fault, f->name, "input and prompt are both given; expected one");
    return read_list(p, f->name, node, &r->inputs, &r->n_input);
}

cake_err cake_field_read_query(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    const bool query = !strcmp(f->name, "query");
    if (r->lefts)
        return cake_fault_set(&r->fault, f->name, "query and text_1 are both given; expected one");
    if (query && cake_json_kind(node) != CAKE_JSON_STRING)
        return cake_field_wrong(p, f->name, node, "a string");
    r->ranked = query;
    return read_list(p, f->name, node, &r->lefts, &r->n_left);
}

cake_err cake_field_read_documents(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    if (r->inputs)
        return cake_fault_set(&r->fault, f->name, "documents and text_2 are both given; expected one");
    if (!strcmp(f->name, "documents") && (cake_json_kind(node) != CAKE_JSON_ARRAY || !cake_json_size(node)))
        return cake_field_wrong(p, f->name, node, "an array of texts, one or more");
    return read_list(p, f->name, node, &r->inputs, &r->n_input);
}

cake_err cake_field_read_prompt_name(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    if (!text || memchr(text, 0, len))
        return cake_field_wrong(p, f->name, node, "a string");
    p->request->prompt_name = cake_copy(text, len);
    return CAKE_OK;
}

cake_err cake_field_read_encoding(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    const char *text = cake_json_text(node, NULL);
    if (!text || strcmp(text, "base64") != 0)
        return cake_field_wrong(p, f->name, node, "\"float\" or \"base64\"");
    p->request->params.base64 = 1;
    return CAKE_OK;
}
