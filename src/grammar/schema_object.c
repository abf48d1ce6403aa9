/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keywords about objects: properties, patternProperties, additionalProperties, propertyNames, required,
 * minProperties, maxProperties. Out: edges over objects that obey all.
 *
 * States stand in a table: how many of the listed members have been decided, and how many were written. A
 * member is written, or, unless it is required, left out; those that no schema lists come last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/intersect.h"
#include "grammar/schema_parts.h"
#include "grammar/texts.h"

enum { MOST_PATTERNS = 6, MOST_COUNT = 10000, MOST_MADE = 128 };

/* A pattern of patternProperties. */
typedef struct pattern {
    int part; /* of the list */
    const char *text;
    size_t len;
    const cake_json *schema;
    int rule; /* of names, in `rules` */
} pattern;

typedef struct member {
    const char *name;
    size_t len;
    bool required;
    int rule; /* of its name, ':' and value; -1: never allowed */
} member;

typedef struct object {
    cake_schema_compiler *c;
    const cake_schema_list *list;
    member *member; /* [n_member] */
    size_t n_member, cap_member;
    int32_t *slot; /* [n_slot] hash table of members: 1 + index */
    size_t n_slot;
    pattern pattern[MOST_PATTERNS];
    int n_pattern;
    char *made[MOST_MADE]; /* [n_made] owned names of members that no schema lists, but patterns allow */
    int n_made;
    cake_automaton rules; /* names: patterns, propertyNames, those that are listed */
    int names[CAKE_MAX_LANGUAGE];
    int n_names;  /* of propertyNames */
    bool no_name; /* propertyNames allows none */
    bool closed;  /* no members that no schema lists */
    int64_t min, max;
} object;

static bool is_schema(const cake_json *node)
{
    const cake_json_type kind = cake_json_kind(node);
    return kind == CAKE_JSON_ABSENT || kind == CAKE_JSON_BOOL || kind == CAKE_JSON_OBJECT;
}

/* ---- what the keywords say */

static size_t hash(const char *name, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)name[i]) * 0x100000001b3ull;
    return (size_t)(h ^ h >> 29);
}

static void resize(object *o)
{
    o->n_slot = o->n_slot ? 2 * o->n_slot : 32;
    free(o->slot);
    o->slot = cake_alloc(o->n_slot, sizeof *o->slot);
    for (size_t i = 0; i < o->n_member; i++) {
        size_t at = hash(o->member[i].name, o->member[i].len) & (o->n_slot - 1);
        while (o->slot[at])
            at = (at + 1) & (o->n_slot - 1);
        o->slot[at] = (int32_t)i + 1;
    }
}

static member *find_member(object *o, const char *name, size_t len)
{
    cake_automaton_spend(o->c->automaton, 8 + len / 4);
    if (2 * (o->n_member + 1) > o->n_slot)
        resize(o);
    size_t at = hash(name, len) & (o->n_slot - 1);
    for (; o->slot[at]; at = (at + 1) & (o->n_slot - 1)) {
        member *own = &o->member[o->slot[at] - 1];
        if (own->len == len && !memcmp(own->name, name, len))
            return own;
    }
    o->slot[at] = (int32_t)o->n_member + 1;
    CAKE_RESERVE(o->member, o->n_member, o->cap_member);
    o->member[o->n_member] = (member){.name = name, .len = len, .rule = -1};
    return &o->member[o->n_member++];
}

static cake_err read_members(object *o)
{
    for (int p = 0; p < o->list->n; p++) {
        const cake_json *schema = o->list->part[p].schema, *own = cake_json_get(schema, "properties");
        if (own && cake_json_kind(own) != CAKE_JSON_OBJECT)
            return cake_schema_wrong(o->c, schema, "properties", "expected an object of schemas");
        for (void *it = cake_json_first(own); it; it = cake_json_next(own, it)) {
            size_t len;
            const char *name = cake_json_key(it, &len);
            if (!is_schema(cake_json_value(it)))
                return cake_schema_wrong(o->c, schema, "properties",
                                         "expected schemas: objects, true or false");
            find_member(o, name, len);
        }
    }
    for (int p = 0; p < o->list->n; p++) {
        const cake_json *schema = o->list->part[p].schema, *own = cake_json_get(schema, "required");
        if (own && cake_json_kind(own) != CAKE_JSON_ARRAY)
            return cake_schema_wrong(o->c, schema, "required", "expected an array of names");
        for (size_t i = 0; i < cake_json_size(own); i++) {
            size_t len;
            const char *name = cake_json_text(cake_json_at(own, i), &len);
            if (!name)
                return cake_schema_wrong(o->c, schema, "required", "expected an array of names");
            find_member(o, name, len)->required = true;
        }
    }
    return CAKE_OK;
}

static cake_err read_patterns(object *o, int part)
{
    const cake_json *schema = o->list->part[part].schema, *own = cake_json_get(schema, "patternProperties");
    cake_err err = CAKE_OK;
    if (own && cake_json_kind(own) != CAKE_JSON_OBJECT)
        return cake_schema_wrong(o->c, schema, "patternProperties", "expected an object of schemas");
    for (void *it = cake_json_first(own); it && !err; it = cake_json_next(own, it)) {
        pattern *to = &o->pattern[o->n_pattern];
        if (o->n_pattern == MOST_PATTERNS)
            return cake_schema_wrong(o->c, schema, "patternProperties",
                                     "more than 6 patterns hold for one value");
        if (!is_schema(cake_json_value(it)))
            return cake_schema_wrong(o->c, schema, "patternProperties",
                                     "expected schemas: objects, true or false");
        *to = (pattern){.part = part, .schema = cake_json_value(it)};
        to->text = cake_json_key(it, &to->len);
        o->n_pattern++;
        err = cake_schema_pattern(o->c, schema, "patternProperties", to->text, to->len, CAKE_CODING_JSON,
                                  &o->rules, &to->rule);
    }
    return err;
}

/* propertyNames: a schema of strings. */
static cake_err read_names(object *o, int part)
{
    const cake_json *schema = o->list->part[part].schema, *own = cake_json_get(schema, "propertyNames");
    cake_schema_list names = {0};
    cake_language language[CAKE_MAX_LANGUAGE] = {{0}};
    int n = 0;
    static const char *const other[] = {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"};
    int types = 0;
    if (cake_json_kind(own) == CAKE_JSON_BOOL)
        o->no_name = o->no_name || !cake_json_bool(own, true);
    if (!own || cake_json_kind(own) == CAKE_JSON_BOOL)
        return CAKE_OK;
    if (cake_json_kind(own) != CAKE_JSON_OBJECT)
        return cake_schema_wrong(o->c, schema, "propertyNames",
                                 "expected a schema: an object, true or false");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (cake_json_get(own, other[i]))
            return cake_schema_wrong(o->c, own, other[i], "this keyword is not supported in propertyNames");
    cake_err err = cake_schema_check_keywords(o->c, own);
    if (!err)
        err = cake_schema_types(o->c, own, &types);
    if (err)
        return err;
    o->no_name = o->no_name || !(types & CAKE_TYPE_STRING);
    cake_schema_list_add(&names, own);
    err = cake_schema_string_rules(o->c, &names, CAKE_CODING_JSON, &o->rules, language, &n);
    /* lengths alone make no language there */
    int64_t min = 0, max = -1;
    if (!err)
        err = cake_schema_count(o->c, own, "minLength", &min);
    if (!err)
        err = cake_schema_count(o->c, own, "maxLength", &max);
    if (!err && !n && (min || max >= 0))
        err = cake_schema_wrong(o->c, own, min ? "minLength" : "maxLength",
                                "in propertyNames it is supported beside a pattern only");
    for (int i = 0; i < n && !err; i++) {
        if (o->n_names + 1 >= CAKE_MAX_LANGUAGE - MOST_PATTERNS - 2)
            return cake_schema_wrong(o->c, schema, "propertyNames", "too many of these hold for one value");
        o->names[o->n_names++] = language[i].rule;
    }
    free(names.part);
    return err;
}

static cake_err read_counts(object *o, int part)
{
    const cake_json *schema = o->list->part[part].schema;
    int64_t min = 0, max = -1;
    if (!is_schema(cake_json_get(schema, "additionalProperties")))
        return cake_schema_wrong(o->c, schema, "additionalProperties",
                                 "expected a schema: an object, true or false");
    cake_err err = cake_schema_count(o->c, schema, "minProperties", &min);
    if (!err)
        err = cake_schema_count(o->c, schema, "maxProperties", &max);
    max = max > CAKE_AUTOMATON_STATES ? -1 : max; /* no answer has so many */
    if (!err && (min > MOST_COUNT || max > MOST_COUNT))
        err = cake_schema_wrong(o->c, schema, min > MOST_COUNT ? "minProperties" : "maxProperties",
                                "expected at most 10000");
    o->min = min > o->min ? min : o->min;
    o->max = o->max < 0 || (max >= 0 && max < o->max) ? max : o->max;
    return err;
}

/* ---- members */

/* Adds the schema of members that the part neither lists nor has a pattern for. */
static void add_additional(const object *o, int part, cake_schema_list *value)
{
    const cake_json *more = cake_json_get(o->list->part[part].schema, "additionalProperties");
    if (more)
        cake_schema_list_add(value, more);
}

/* Whether members must be listed by some schema, whichever of them: only if one lists any, and none says
 * something about others. */
static bool is_closed(const object *o)
{
    bool some = false, more = false;
    for (int p = 0; p < o->list->n; p++) {
        const cake_json *schema = o->list->part[p].schema;
        some = some || cake_json_get(schema, "properties") || cake_json_get(schema, "patternProperties");
        more = more || cake_json_get(schema, "additionalProperties");
    }
    return o->c->options->closed && some && !more;
}

/* Edges over ':' and the value, after the name. */
static void add_value(cake_schema_compiler *c, int32_t from, int value, int32_t to)
{
    const int32_t colon = cake_schema_byte(c, cake_schema_space(c, from), ':');
    cake_automaton_empty(c->automaton, cake_schema_call(c, cake_schema_space(c, colon), value), to);
}

/* The name as it stands in a text, to be compared with patterns of names. */
static bool matches(object *o, int rule, const member *m)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    cake_buf text = {0};
    cake_buf_adds(&text, "");
    for (size_t i = 0; i < m->len; i++) {
        const char ch = m->name[i], *at = ch ? strchr(from, ch) : NULL;
        if (at)
            cake_buf_addf(&text, "\\%c", to[at - from]);
        else if ((unsigned char)ch < ' ')
            cake_buf_addf(&text, "\\u%04x", (unsigned)ch);
        else
            cake_buf_addc(&text, ch);
    }
    const bool has = cake_language_has(&o->rules, rule, text.data, text.len);
    cake_automaton_spend(o->c->automaton, (size_t)o->rules.work);
    o->rules.work = 0;
    cake_buf_free(&text);
    return has;
}

/* The schema of a member in `properties`; names may hold NULs, which cake_json_get does not look past. */
static const cake_json *listed_schema(object *o, const cake_json *all, const member *m)
{
    const cake_json *own = NULL;
    cake_automaton_spend(o->c->automaton, 8 + m->len / 8);
    if (!memchr(m->name, 0, m->len))
        return cake_json_get(all, m->name);
    for (void *it = cake_json_first(all); it && !own; it = cake_json_next(all, it)) {
        size_t len;
        const char *name = cake_json_key(it, &len);
        cake_automaton_spend(o->c->automaton, 1);
        own = len == m->len && !memcmp(name, m->name, len) ? cake_json_value(it) : NULL;
    }
    return own;
}

static void write_member(object *o, member *m)
{
    cake_schema_compiler *c = o->c;
    cake_schema_list value = {.never = o->no_name};
    bool listed = false;
    for (int i = 0; i < o->n_names; i++)
        value.never = value.never || !matches(o, o->names[i], m);
    for (int p = 0; p < o->list->n; p++) {
        const cake_json *own = listed_schema(o, cake_json_get(o->list->part[p].schema, "properties"), m);
        bool known = own != NULL;
        if (own)
            cake_schema_list_add(&value, own);
        for (int i = 0; i < o->n_pattern; i++)
            if (o->pattern[i].part == p && matches(o, o->pattern[i].rule, m)) {
                cake_schema_list_add(&value, o->pattern[i].schema);
                known = true;
            }
        if (!known)
            add_additional(o, p, &value);
        listed = listed || known;
    }
    value.never = value.never || (o->closed && !listed);
    const int rule = cake_schema_rule_of(c, &value);
    m->rule = cake_automaton_rule(c->automaton);
    const cake_rule own = c->automaton->rule[m->rule];
    const int32_t quote = cake_schema_byte(c, own.begin, '"'), name = cake_automaton_state(c->automaton);
    cake_text_add(c->automaton, quote, m->name, m->len, CAKE_CODING_JSON, name);
    add_value(c, cake_schema_byte(c, name, '"'), rule, own.end);
}

/* A rule for members that are not listed: for each set of patterns, names that match these and no others. */
static int write_others(object *o)
{
    cake_schema_compiler *c = o->c;
    const int rule = cake_automaton_rule(c->automaton);
    const cake_rule own = c->automaton->rule[rule];
    const int any = cake_automaton_rule(&o->rules), listed = cake_automaton_rule(&o->rules);
    const int32_t loop = cake_automaton_state(&o->rules);
    cake_automaton_empty(&o->rules, o->rules.rule[any].begin, loop);
    cake_json_rules_plain(&o->rules, loop, loop);
    cake_automaton_empty(&o->rules, loop, o->rules.rule[any].end);
    cake_text *names = cake_alloc(o->n_member + 1, sizeof *names);
    for (size_t i = 0; i < o->n_member; i++)
        names[i] = (cake_text){o->member[i].name, o->member[i].len};
    cake_texts_add(&o->rules, o->rules.rule[listed].begin, names, o->n_member, CAKE_CODING_JSON,
                   o->rules.rule[listed].end);
    free(names);
    free(o->rules.first); /* it grew since it was finished */
    free(o->rules.rule_at);
    o->rules.first = o->rules.rule_at = NULL;
    for (int set = 0; set < 1 << o->n_pattern && !c->automaton->full; set++) {
        cake_schema_list value = {.never = o->no_name || (o->closed && !set)};
        cake_language language[CAKE_MAX_LANGUAGE] = {{any, false}, {listed, true}};
        int n = 2;
        for (int i = 0; i < o->n_names; i++)
            language[n++] = (cake_language){o->names[i], false};
        for (int i = 0; i < o->n_pattern; i++)
            language[n++] = (cake_language){o->pattern[i].rule, !(set >> i & 1)};
        for (int p = 0; p < o->list->n; p++) {
            bool known = false;
            for (int i = 0; i < o->n_pattern; i++)
                if (set >> i & 1 && o->pattern[i].part == p) {
                    cake_schema_list_add(&value, o->pattern[i].schema);
                    known = true;
                }
            if (!known)
                add_additional(o, p, &value);
        }
        if (value.never) {
            free(value.part);
            continue;
        }
        const int of_value = cake_schema_rule_of(c, &value);
        const int32_t begin = cake_schema_byte(c, own.begin, '"'), end = cake_automaton_state(c->automaton);
        if (n == 2 && !o->n_member)
            cake_automaton_call(c->automaton, own.begin, c->json.string, end); /* any escapes, too */
        else
            cake_intersect(&o->rules, language, n, c->automaton, begin, end);
        add_value(c, n == 2 && !o->n_member ? end : cake_schema_byte(c, end, '"'), of_value, own.end);
    }
    return rule;
}

/* Whether members may have names that no schema lists and no pattern matches. */
static bool allows_any(const object *o)
{
    cake_schema_list value = {.never = o->no_name || o->closed};
    for (int p = 0; p < o->list->n; p++)
        add_additional(o, p, &value);
    free(value.part);
    return !value.never;
}

/* Where members are counted and the names that they may have are few, lists these as `properties` would: then
 * none comes twice, and the last one is not waited for in vain. */
static void list_names(object *o)
{
    cake_buf texts = {0};
    bool all = o->min > 1 && (o->n_names || !allows_any(o));
    if (all && o->n_names)
        all = cake_language_list(&o->rules, o->names[0], MOST_MADE, &texts);
    for (int i = 0; i < o->n_pattern && all && !o->n_names; i++)
        all = cake_language_list(&o->rules, o->pattern[i].rule, MOST_MADE, &texts);
    for (size_t at = 0, len; at < texts.len && all; at += len + 1) {
        len = strlen(texts.data + at);
        if (o->n_made == MOST_MADE || memchr(texts.data + at, '\\', len))
            break; /* enough, or a name with escapes: these stay as they are */
        char *name = o->made[o->n_made] = cake_copy(texts.data + at, len);
        const size_t before = o->n_member;
        find_member(o, name, len);
        if (o->n_member > before)
            o->n_made++;
        else
            free(name);
    }
    cake_automaton_spend(o->c->automaton, (size_t)o->rules.work);
    o->rules.work = 0;
    cake_buf_free(&texts);
}

/* ---- the object */

/* Edges from `from` over a member, after a comma unless it is the first, to `to`. */
static void write_step(cake_schema_compiler *c, int32_t from, bool first, int rule, int32_t to)
{
    if (!first)
        from = cake_schema_space(c, cake_schema_byte(c, cake_schema_space(c, from), ','));
    cake_automaton_call(c->automaton, from, rule, to);
}

static void write_object(object *o, int others, int32_t from, int32_t to)
{
    cake_schema_compiler *c = o->c;
    cake_automaton *a = c->automaton;
    const int64_t most = o->max >= 0 ? o->max : o->min > 1 ? o->min : 1;
    int32_t *row = cake_alloc((size_t)most + 1, sizeof *row),
            *next = cake_alloc((size_t)most + 1, sizeof *next);
    const int32_t begin = cake_schema_space(c, cake_schema_byte(c, from, '{'));
    if (o->min > 1 && others >= 0) { /* members are counted here, with the same name or not */
        a->counted = a->counted ? a->counted : 1 + cake_automaton_rule(a);
        const cake_rule counted = a->rule[a->counted - 1];
        cake_automaton_call(a, counted.begin, others, counted.end);
    }
    for (int64_t n = 0; n <= most; n++)
        row[n] = n ? cake_automaton_state(a) : begin;
    for (size_t i = 0; i < o->n_member && !a->full; i++) {
        for (int64_t n = 0; n <= most; n++)
            next[n] = cake_automaton_state(a);
        for (int64_t n = 0; n <= most; n++) {
            const bool counts = n < most || o->max < 0;
            if (counts)
                write_step(c, row[n], !n, o->member[i].rule, next[n < most ? n + 1 : n]);
            if (!o->member[i].required)
                cake_automaton_empty(a, row[n], next[n]);
        }
        memcpy(row, next, ((size_t)most + 1) * sizeof *row);
    }
    for (int64_t n = 0; n <= most && !a->full; n++) { /* others; they lead back to the row */
        const bool counts = n < most || o->max < 0;
        if (counts && others >= 0) {
            const int32_t own = n < most ? row[n + 1] : row[n];
            write_step(c, row[n], !n, others, own);
        }
        if (n >= o->min)
            cake_automaton_bytes(a, n ? cake_schema_space(c, row[n]) : row[n], '}', '}', to);
    }
    free(row);
    free(next);
}

cake_err cake_schema_add_object(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                                int32_t to)
{
    object o = {.c = c, .list = list, .max = -1};
    cake_err err = read_members(&o);
    for (int p = 0; p < list->n && !err; p++) {
        err = read_patterns(&o, p);
        err = err ? err : read_names(&o, p);
        err = err ? err : read_counts(&o, p);
    }
    o.closed = is_closed(&o);
    if (!err) {
        list_names(&o);
        for (size_t i = 0; i < o.n_member && !c->automaton->full; i++)
            write_member(&o, &o.member[i]);
        if (!c->automaton->full)
            write_object(&o, write_others(&o), from, to);
    }
    cake_automaton_free(&o.rules);
    while (o.n_made)
        free(o.made[--o.n_made]);
    free(o.member);
    free(o.slot);
    return err;
}
