/* SPDX-License-Identifier: Apache-2.0
 *
 * What all files of schemas need: errors with a place, references, lists of schemas and their rules.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/schema_parts.h"

/* ---- places */

/* One step of a JSON pointer (RFC 6901). */
static void add_step(const char *name, cake_buf *out)
{
    cake_buf_addc(out, '/');
    for (; *name; name++)
        if (*name == '~' || *name == '/')
            cake_buf_adds(out, *name == '~' ? "~0" : "~1");
        else
            cake_buf_addc(out, *name);
}

/* Appends the path from node to the schema; false: it is not below. */
static bool find_place(const cake_json *node, const cake_json *schema, cake_buf *out)
{
    const size_t len = out->len;
    if (node == schema)
        return true;
    if (cake_json_kind(node) == CAKE_JSON_OBJECT)
        for (void *it = cake_json_first(node); it; it = cake_json_next(node, it)) {
            add_step(cake_json_key(it, NULL), out);
            if (find_place(cake_json_value(it), schema, out))
                return true;
            cake_buf_cut(out, len);
        }
    for (size_t i = 0; cake_json_kind(node) == CAKE_JSON_ARRAY && i < cake_json_size(node); i++) {
        cake_buf_addf(out, "/%zu", i);
        if (find_place(cake_json_at(node, i), schema, out))
            return true;
        cake_buf_cut(out, len);
    }
    return false;
}

static void add_place(const cake_schema_compiler *c, const cake_json *schema, cake_buf *out)
{
    cake_buf_adds(out, " at #");
    if (!find_place(c->root, schema, out))
        cake_buf_cut(out, strlen(" at #"));
    cake_buf_adds(out, " of the schema");
}

cake_err cake_schema_wrong(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                           const char *what)
{
    cake_buf place = {0};
    add_place(c, schema, &place);
    cake_err err = cake_fault_set(c->fault, NULL, "%s%s: %s", keyword, place.data, what);
    cake_buf_free(&place);
    return err;
}

cake_err cake_schema_too_large(cake_schema_compiler *c, const cake_json *schema)
{
    cake_buf place = {0};
    add_place(c, schema, &place);
    cake_err err = cake_automaton_check(c->automaton, place.data, c->fault);
    cake_buf_free(&place);
    return err;
}

cake_err cake_schema_count(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                           int64_t *count)
{
    const cake_json *node = cake_json_get(schema, keyword);
    const double real = cake_json_real(node, -1);
    if (!node)
        return CAKE_OK;
    if (!(real >= 0) || (real < 0x1p53 && real != (double)(int64_t)real))
        return cake_schema_wrong(c, schema, keyword, "expected an integer from 0");
    *count = real < 0x1p53 ? (int64_t)real : (int64_t)1 << 53; /* more than any value has */
    return CAKE_OK;
}

int32_t cake_schema_byte(cake_schema_compiler *c, int32_t from, char byte)
{
    return cake_automaton_literal(c->automaton, from, &byte, 1);
}

int32_t cake_schema_call(cake_schema_compiler *c, int32_t from, int rule)
{
    const int32_t to = cake_automaton_state(c->automaton);
    cake_automaton_call(c->automaton, from, rule, to);
    return to;
}

int32_t cake_schema_space(cake_schema_compiler *c, int32_t from)
{
    return cake_schema_call(c, from, c->json.space);
}

/* ---- references */

/* One step of a JSON pointer, with ~0, ~1 and %XX. */
static void read_step(const char **at, cake_buf *step)
{
    bool tilde = false; /* the last character is one, and no escape */
    cake_buf_cut(step, 0);
    cake_buf_adds(step, "");
    for (; **at && **at != '/'; (*at)++) {
        char ch = **at;
        if (ch == '%' && isxdigit((unsigned char)(*at)[1]) && isxdigit((unsigned char)(*at)[2])) {
            const char hex[3] = {(*at)[1], (*at)[2], 0};
            ch = (char)strtol(hex, NULL, 16);
            *at += 2;
        }
        const bool escape = tilde && (ch == '0' || ch == '1');
        if (escape)
            cake_buf_cut(step, step->len - 1);
        tilde = !escape && ch == '~';
        cake_buf_addc(step, !escape ? ch : ch == '0' ? '~' : '/');
    }
}

/* The number of an element, as a JSON pointer has it; SIZE_MAX: it is none. */
static size_t index_of(const char *step)
{
    const size_t digits = strspn(step, "0123456789");
    const bool number = digits && digits < 10 && !step[digits] && (step[0] != '0' || digits == 1);
    return number ? strtoul(step, NULL, 10) : SIZE_MAX;
}

static void list_anchors(cake_schema_compiler *c, const cake_json *node)
{
    const char *own = cake_json_text(cake_json_get(node, "$anchor"), NULL);
    if (own) {
        CAKE_RESERVE(c->anchor, c->n_anchor, c->cap_anchor);
        c->anchor[c->n_anchor] = (cake_schema_anchor){own, node, c->n_anchor};
        c->n_anchor++;
    }
    if (cake_json_kind(node) == CAKE_JSON_OBJECT)
        for (void *it = cake_json_first(node); it; it = cake_json_next(node, it))
            list_anchors(c, cake_json_value(it));
    for (size_t i = 0; cake_json_kind(node) == CAKE_JSON_ARRAY && i < cake_json_size(node); i++)
        list_anchors(c, cake_json_at(node, i));
}

static int by_name(const void *a, const void *b)
{
    const cake_schema_anchor *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static const cake_json *find_anchor(cake_schema_compiler *c, const char *name)
{
    size_t lo = 0, hi;
    if (!c->anchor) {
        CAKE_RESERVE(c->anchor, c->n_anchor, c->cap_anchor);
        list_anchors(c, c->root);
        qsort(c->anchor, c->n_anchor, sizeof *c->anchor, by_name);
    }
    for (hi = c->n_anchor; lo < hi;) { /* the first of them */
        const size_t middle = (lo + hi) / 2;
        if (strcmp(c->anchor[middle].name, name) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < c->n_anchor && !strcmp(c->anchor[lo].name, name) ? c->anchor[lo].schema : NULL;
}

const cake_json *cake_schema_resolve(cake_schema_compiler *c, const char *reference)
{
    const char *id = cake_json_text(cake_json_get(c->root, "$id"), NULL);
    const size_t len = id ? strcspn(id, "#") : 0;
    cake_buf step = {0};
    const cake_json *node = c->root;
    if (len && !strncmp(reference, id, len)) /* a whole address of this schema */
        reference += len;
    if (*reference != '#' && *reference)
        return NULL;
    reference += *reference == '#';
    if (*reference && *reference != '/')
        return find_anchor(c, reference);
    while (*reference && node) {
        reference++;
        read_step(&reference, &step);
        node = cake_json_kind(node) == CAKE_JSON_ARRAY ? cake_json_at(node, index_of(step.data))
                                                       : cake_json_get(node, step.data);
    }
    cake_buf_free(&step);
    return node;
}

/* ---- lists */

static bool has_part(const cake_schema_list *list, const cake_json *schema, cake_schema_share share)
{
    for (int i = 0; i < list->n; i++)
        if (list->part[i].schema == schema && list->part[i].share == share)
            return true;
    return false;
}

void cake_schema_list_add_part(cake_schema_list *list, const cake_json *schema, cake_schema_share share,
                               int by)
{
    if (has_part(list, schema, share) ||
        (share == CAKE_SHARE_WHOLE && has_part(list, schema, CAKE_SHARE_OWN)))
        return;
    CAKE_RESERVE(list->part, list->n, list->cap);
    list->part[list->n++] = (cake_schema_part){schema, share, by};
}

void cake_schema_list_add(cake_schema_list *list, const cake_json *schema)
{
    if (cake_json_kind(schema) == CAKE_JSON_BOOL)
        list->never = list->never || !cake_json_bool(schema, true);
    else
        cake_schema_list_add_part(list, schema, CAKE_SHARE_WHOLE, -1);
}

static size_t hash_list(const cake_schema_list *list)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (int i = 0; i < list->n; i++)
        h = (h ^ (uint64_t)(uintptr_t)list->part[i].schema ^ (uint64_t)list->part[i].share << 60) *
            0x9E3779B97F4A7C15ull;
    return (size_t)(h ^ h >> 30);
}

static bool same_list(const cake_schema_list *a, const cake_schema_list *b)
{
    bool same = a->n == b->n && a->never == b->never;
    for (int i = 0; i < a->n && same; i++)
        same = a->part[i].schema == b->part[i].schema && a->part[i].share == b->part[i].share;
    return same;
}

int cake_schema_rule_of(cake_schema_compiler *c, cake_schema_list *list)
{
    if (!list->n && !list->never) {
        free(list->part);
        return c->json.value;
    }
    if (2 * (c->n_known + 1) > c->n_slot) {
        c->n_slot = c->n_slot ? 2 * c->n_slot : 64;
        free(c->slot);
        c->slot = cake_alloc(c->n_slot, sizeof *c->slot);
        for (size_t i = 0; i < c->n_known; i++) {
            size_t at = hash_list(&c->known[i].list) & (c->n_slot - 1);
            while (c->slot[at])
                at = (at + 1) & (c->n_slot - 1);
            c->slot[at] = (int32_t)i + 1;
        }
    }
    size_t at = hash_list(list) & (c->n_slot - 1);
    for (; c->slot[at]; at = (at + 1) & (c->n_slot - 1))
        if (same_list(&c->known[c->slot[at] - 1].list, list)) {
            free(list->part);
            return c->known[c->slot[at] - 1].rule;
        }
    CAKE_RESERVE(c->known, c->n_known, c->cap_known);
    c->known[c->n_known] = (cake_schema_rule){*list, cake_automaton_rule(c->automaton)};
    c->slot[at] = (int32_t)++c->n_known;
    return c->known[c->n_known - 1].rule;
}

/* ---- types */

cake_err cake_schema_types(cake_schema_compiler *c, const cake_json *schema, int *types)
{
    static const struct {
        const char *name;
        int types;
    } names[] = {{"null", CAKE_TYPE_NULL},       {"boolean", CAKE_TYPE_BOOL},
                 {"integer", CAKE_TYPE_INTEGER}, {"number", CAKE_TYPE_INTEGER | CAKE_TYPE_NUMBER},
                 {"string", CAKE_TYPE_STRING},   {"array", CAKE_TYPE_ARRAY},
                 {"object", CAKE_TYPE_OBJECT}};
    const cake_json *type = cake_json_get(schema, "type");
    const size_t n = cake_json_kind(type) == CAKE_JSON_ARRAY ? cake_json_size(type) : 1;
    *types = type ? 0 : CAKE_TYPE_ALL;
    for (size_t i = 0; i < n && type; i++) {
        const char *text =
            cake_json_text(cake_json_kind(type) == CAKE_JSON_ARRAY ? cake_json_at(type, i) : type, NULL);
        int found = 0;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            found |= text && !strcmp(text, names[k].name) ? names[k].types : 0;
        if (!found)
            return cake_schema_wrong(
                c, schema, "type",
                "expected null, boolean, integer, number, string, array or object, or an array of these");
        *types |= found;
    }
    return CAKE_OK;
}

/* ---- keywords that are refused */

/* Keywords that say something about valid values and are not supported. All others are annotations, or known
 * to the functions below. */
static const char *const refused[] = {"not",
                                      "if",
                                      "then",
                                      "else",
                                      "dependentSchemas",
                                      "dependentRequired",
                                      "dependencies",
                                      "contains",
                                      "minContains",
                                      "maxContains",
                                      "unevaluatedProperties",
                                      "unevaluatedItems",
                                      "$dynamicRef",
                                      "$recursiveRef"};

static bool has_reference(cake_schema_compiler *c, const cake_json *node)
{
    bool has = cake_json_text(cake_json_get(node, "$ref"), NULL);
    cake_automaton_spend(c->automaton, 8);
    for (void *it = cake_json_first(node); it && !has && !c->automaton->full; it = cake_json_next(node, it))
        has = has_reference(c, cake_json_value(it));
    for (size_t i = 0; cake_json_kind(node) == CAKE_JSON_ARRAY && i < cake_json_size(node) && !has; i++)
        has = has_reference(c, cake_json_at(node, i));
    return has;
}

cake_err cake_schema_check_keywords(cake_schema_compiler *c, const cake_json *schema)
{
    if (schema != c->root && cake_json_text(cake_json_get(schema, "$id"), NULL) && has_reference(c, schema))
        return cake_schema_wrong(c, schema, "$id",
                                 "below the root, and with a $ref within, this keyword is not supported");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (cake_json_get(schema, refused[i]))
            return cake_schema_wrong(c, schema, refused[i], "this keyword is not supported");
    if (cake_json_bool(cake_json_get(schema, "uniqueItems"), false))
        return cake_schema_wrong(c, schema, "uniqueItems", "this keyword is not supported");
    return CAKE_OK;
}
