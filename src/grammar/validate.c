/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a schema and a value. Out: whether the value is valid.
 * Source: JSON Schema core and validation, draft 2020-12.
 *
 * What cannot be judged makes the whole value invalid, and not only a part of it, which `not` would turn
 * around: so it is kept in `failed`, and ends all loops.
 */
#include "grammar/validate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/schema_parts.h"
#include "grammar/state_sets.h"
#include "grammar/string_formats.h"

enum {
    MOST_STEPS = 1000000,  /* a schema's member, an item or the like: some 100 ns each */
    MOST_DEPTH = 200,      /* of schemas within schemas */
    PROPERTY_STEPS = 100,  /* for the ranges of one \p{...} */
    PATTERN_WORK = 8000000 /* of an automaton */
};

/* A pattern, compiled when a string first meets it. */
typedef struct pattern {
    const char *text; /* of the schema: equal addresses, equal patterns */
    cake_automaton automaton;
    cake_state_sets *sets;
    bool taken; /* it has texts */
    int64_t paid;
    bool unknown; /* regex.h does not have it */
} pattern;

struct cake_validator {
    cake_schema_compiler c; /* root, fault and anchors; exprs while a pattern is compiled */
    cake_fault fault;
    pattern **pattern; /* [n_pattern] */
    size_t n_pattern, cap_pattern;
    int64_t steps;
    int depth;
    bool failed;
};

typedef struct cake_validator validator;

/* A keyword of a schema that meets a value. */
typedef struct use {
    const char *name;
    const cake_json *schema, *own; /* own: the keyword's value */
    const cake_json *value;
} use;

static bool holds(validator *v, const cake_json *schema, const cake_json *value);

static bool fail(validator *v)
{
    v->failed = true;
    return false;
}

/* False: stop. */
static bool spend(validator *v, size_t steps)
{
    v->steps += steps < MOST_STEPS ? (int64_t)steps : MOST_STEPS;
    return v->steps <= MOST_STEPS && !v->failed ? true : fail(v);
}

/* For a step over a member, whose name is looked up or compared. */
static bool spend_member(validator *v, void *it)
{
    size_t len;
    cake_json_key(it, &len);
    return spend(v, 1 + len / 64);
}

/* ---- patterns */

static pattern *compile(validator *v, const use *u, const char *text, size_t len)
{
    size_t steps = 1 + len;
    if (!spend(v, 1 + v->n_pattern / 8))
        return NULL;
    for (size_t i = 0; i < v->n_pattern; i++)
        if (v->pattern[i]->text == text)
            return v->pattern[i];
    for (size_t i = 0; i + 1 < len; i++)
        steps += text[i] == '\\' && (text[i + 1] | 0x20) == 'p' ? PROPERTY_STEPS : 0;
    if (!spend(v, steps))
        return NULL;
    pattern *p = cake_alloc(1, sizeof *p);
    int rule = 0;
    CAKE_RESERVE(v->pattern, v->n_pattern, v->cap_pattern);
    v->pattern[v->n_pattern++] = p;
    p->text = text;
    p->automaton.work = CAKE_AUTOMATON_WORK - PATTERN_WORK;
    const cake_err err =
        cake_schema_pattern(&v->c, u->schema, u->name, text, len, CAKE_CODING_PLAIN, &p->automaton, &rule);
    cake_exprs_free(&v->c.exprs);
    p->unknown = err || p->automaton.full;
    const int64_t work = p->automaton.work - (CAKE_AUTOMATON_WORK - PATTERN_WORK);
    if (!spend(v, (size_t)work / 8) || p->unknown)
        return p;
    cake_automaton_finish(&p->automaton);
    p->taken = p->automaton.rule[rule].taken;
    p->sets = cake_state_sets_open(&p->automaton, rule);
    return p;
}

/* Whether the string [n] matches the pattern [len] of a keyword. */
static bool matches(validator *v, const use *u, const char *text, size_t len, const char *string, size_t n)
{
    pattern *p = compile(v, u, text, len);
    if (p && p->unknown)
        return fail(v);
    if (!p || !p->sets || !spend(v, 1 + n / 16))
        return false;
    int32_t at = p->taken ? CAKE_STATE_BEGIN : CAKE_STATE_NONE;
    for (size_t i = 0; i < n && at != CAKE_STATE_NONE; i++) {
        const int64_t work = cake_state_sets_work(p->sets) - p->paid;
        if (work >= 4 && !spend(v, (size_t)work / 4)) /* new sets were made */
            return false;
        p->paid += work;
        at = cake_state_sets_next(p->sets, at, (uint8_t)string[i]);
    }
    return cake_state_sets_ends(p->sets, at);
}

static bool matches_pattern(validator *v, const use *u)
{
    size_t len, n;
    const char *text = cake_json_text(u->own, &len), *string = cake_json_text(u->value, &n);
    pattern *p = compile(v, u, text, len);
    return (p && p->unknown) ||
           matches(v, u, text, len, string, n); /* what is not known is not held against it */
}

static bool has_format(validator *v, const use *u)
{
    bool supported;
    size_t n;
    const char *string = cake_json_text(u->value, &n);
    const char *text = cake_string_format(cake_json_text(u->own, NULL), &supported);
    if (!text || !matches(v, u, text, strlen(text), string, n))
        return !text;
    const int most = cake_string_format_most(cake_json_text(u->own, NULL));
    return !most || n <= (size_t)most; /* hosts are ASCII */
}

/* ---- any value */

static bool has_type(validator *v, const use *u)
{
    int types = 0;
    if (!spend(v, cake_json_size(u->own)) || cake_schema_types(&v->c, u->schema, &types))
        return fail(v);
    return types & cake_schema_type_of(u->value);
}

static bool equals(validator *v, const cake_json *a, const cake_json *b)
{
    size_t work = 0;
    const bool equal = cake_schema_equal(a, b, &work);
    return spend(v, work) && equal;
}

static bool is_const(validator *v, const use *u)
{
    return equals(v, u->own, u->value);
}

static bool is_listed(validator *v, const use *u)
{
    bool found = false;
    for (size_t i = 0; i < cake_json_size(u->own) && !found && !v->failed; i++)
        found = equals(v, cake_json_at(u->own, i), u->value);
    return found;
}

/* ---- sizes and numbers */

/* An integer from 0 on; the same as -1: there is none. */
static int64_t count(validator *v, const cake_json *schema, const char *name)
{
    int64_t own = -1;
    if (cake_schema_count(&v->c, schema, name, &own))
        fail(v);
    return own;
}

/* Characters of a string, items, members. */
static int64_t size_of(validator *v, const cake_json *value)
{
    size_t len, n = 0;
    const char *text = cake_json_text(value, &len);
    if (!text)
        return (int64_t)cake_json_size(value);
    if (!spend(v, len / 64))
        return 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return (int64_t)n;
}

static bool has_min_size(validator *v, const use *u)
{
    return size_of(v, u->value) >= count(v, u->schema, u->name);
}

static bool has_max_size(validator *v, const use *u)
{
    return size_of(v, u->value) <= count(v, u->schema, u->name);
}

/* The value less the keyword's: below 0, 0, above 0. */
static int order(validator *v, const use *u)
{
    size_t a, b;
    cake_json_digits(u->own, &a);
    cake_json_digits(u->value, &b);
    return spend(v, (a + b) / 8) ? cake_schema_compare_numbers(u->value, u->own) : 0;
}

/* In draft 4 exclusiveMinimum and exclusiveMaximum say whether minimum and maximum are excluded. */
static bool is_at_least(validator *v, const use *u)
{
    return order(v, u) >= cake_json_bool(cake_json_get(u->schema, "exclusiveMinimum"), false);
}

static bool is_at_most(validator *v, const use *u)
{
    return order(v, u) <= -cake_json_bool(cake_json_get(u->schema, "exclusiveMaximum"), false);
}

static bool is_above(validator *v, const use *u)
{
    return cake_json_kind(u->own) == CAKE_JSON_BOOL || order(v, u) > 0;
}

static bool is_below(validator *v, const use *u)
{
    return cake_json_kind(u->own) == CAKE_JSON_BOOL || order(v, u) < 0;
}

/* The digits as one integer that may be multiplied by ten; 0: too large, or zero. */
static uint64_t digits_of(const cake_decimal *d)
{
    uint64_t value = 0;
    for (size_t i = 0; i < d->whole.len + d->fraction.len; i++) {
        if (value > UINT64_MAX / 100 - 1)
            return 0;
        value = 10 * value +
                (uint64_t)((i < d->whole.len ? d->whole.data[i] : d->fraction.data[i - d->whole.len]) - '0');
    }
    return value;
}

static bool is_multiple(validator *v, const use *u)
{
    cake_decimal d = {0}, of = {0};
    uint64_t rest = 0;
    if (!cake_decimal_read(u->value, &d) || !cake_decimal_read(u->own, &of))
        fail(v);
    spend(v, (d.whole.len + d.fraction.len + of.whole.len + of.fraction.len) / 8);
    const uint64_t unit = digits_of(&of);
    if (!unit || of.negative)
        fail(v);
    /* a value with more digits behind the point is no multiple: both have no zeros at the end */
    bool is = d.fraction.len <= of.fraction.len;
    for (size_t i = 0; i < d.whole.len + of.fraction.len && is && !v->failed; i++) {
        const size_t behind = i - d.whole.len;
        const char digit = i < d.whole.len           ? d.whole.data[i]
                           : behind < d.fraction.len ? d.fraction.data[behind]
                                                     : '0';
        rest = (10 * rest + (uint64_t)(digit - '0')) % unit;
    }
    cake_number_limits_free(&(cake_number_limits){.min = d, .max = of});
    return is && !rest;
}

/* ---- arrays */

static bool has_prefix(validator *v, const cake_json *schemas, const cake_json *array)
{
    bool valid = true;
    for (size_t i = 0; i < cake_json_size(schemas) && i < cake_json_size(array) && valid; i++)
        valid = holds(v, cake_json_at(schemas, i), cake_json_at(array, i));
    return valid;
}

static bool has_items(validator *v, const cake_json *schema, const cake_json *array, size_t first)
{
    bool valid = true;
    for (size_t i = first; i < cake_json_size(array) && valid; i++)
        valid = spend(v, 1) && holds(v, schema, cake_json_at(array, i));
    return valid;
}

static bool prefix_is_valid(validator *v, const use *u)
{
    return has_prefix(v, u->own, u->value);
}

static bool items_are_valid(validator *v, const use *u)
{
    if (cake_json_kind(u->own) != CAKE_JSON_ARRAY)
        return has_items(v, u->own, u->value, cake_json_size(cake_json_get(u->schema, "prefixItems")));
    const cake_json *more = cake_json_get(u->schema, "additionalItems"); /* draft 7 */
    return has_prefix(v, u->own, u->value) && (!more || has_items(v, more, u->value, cake_json_size(u->own)));
}

static bool contains(validator *v, const use *u)
{
    int64_t n = 0;
    const int64_t min = count(v, u->schema, "minContains"), max = count(v, u->schema, "maxContains");
    for (size_t i = 0; i < cake_json_size(u->value) && spend(v, 1); i++)
        n += holds(v, u->own, cake_json_at(u->value, i));
    return n >= (min < 0 ? 1 : min) && (max < 0 || n <= max);
}

static int by_hash(const void *a, const void *b)
{
    const cake_hashed_value *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static bool is_unique(validator *v, const use *u)
{
    const size_t n = cake_json_size(u->value);
    bool unique = true;
    if (!cake_json_bool(u->own, false) || n < 2)
        return true;
    if (!spend(v, n))
        return false;
    cake_hashed_value *list = cake_alloc(n, sizeof *list);
    for (size_t i = 0; i < n && !v->failed; i++) {
        size_t work = 0;
        list[i].value = cake_json_at(u->value, i);
        list[i].hash = cake_schema_hash(list[i].value, &work);
        spend(v, work);
    }
    qsort(list, n, sizeof *list, by_hash);
    for (size_t i = 0; i < n && unique; i++)
        for (size_t j = i + 1; j < n && list[j].hash == list[i].hash && unique && !v->failed; j++)
            unique = !equals(v, list[i].value, list[j].value);
    free(list);
    return unique;
}

/* ---- objects */

static bool has_all(validator *v, const cake_json *names, const cake_json *object)
{
    bool all = true;
    for (size_t i = 0; i < cake_json_size(names) && all; i++) {
        size_t len;
        const char *name = cake_json_text(cake_json_at(names, i), &len);
        all = name && spend(v, 1 + len / 64) ? cake_json_get(object, name) != NULL : fail(v);
    }
    return all;
}

static bool has_required(validator *v, const use *u)
{
    return has_all(v, u->own, u->value);
}

/* For members that are there: names that must be there, too (an array), or a schema of the object. */
static bool dependents_hold(validator *v, const use *u)
{
    bool valid = true;
    for (void *it = cake_json_first(u->own); it && valid && spend_member(v, it);
         it = cake_json_next(u->own, it)) {
        const cake_json *own = cake_json_value(it);
        if (cake_json_get(u->value, cake_json_key(it, NULL)))
            valid =
                cake_json_kind(own) == CAKE_JSON_ARRAY ? has_all(v, own, u->value) : holds(v, own, u->value);
    }
    return valid;
}

static bool properties_are_valid(validator *v, const use *u)
{
    bool valid = true;
    for (void *it = cake_json_first(u->own); it && valid && spend_member(v, it);
         it = cake_json_next(u->own, it)) {
        const cake_json *member = cake_json_get(u->value, cake_json_key(it, NULL));
        valid = !member || holds(v, cake_json_value(it), member);
    }
    return valid;
}

/* Whether the name of a member of the value matches the pattern, a key of patternProperties. */
static bool name_matches(validator *v, const use *u, void *key, void *member)
{
    size_t len, n;
    const char *text = cake_json_key(key, &len), *name = cake_json_key(member, &n);
    return matches(v, u, text, len, name, n);
}

static bool patterns_are_valid(validator *v, const use *u)
{
    bool valid = true;
    for (void *it = cake_json_first(u->own); it && valid && spend_member(v, it);
         it = cake_json_next(u->own, it))
        for (void *m = cake_json_first(u->value); m && valid && spend_member(v, m);
             m = cake_json_next(u->value, m))
            if (name_matches(v, u, it, m))
                valid = holds(v, cake_json_value(it), cake_json_value(m));
    return valid;
}

static bool others_are_valid(validator *v, const use *u)
{
    const cake_json *listed = cake_json_get(u->schema, "properties");
    const cake_json *patterns = cake_json_get(u->schema, "patternProperties");
    bool valid = true;
    for (void *m = cake_json_first(u->value); m && valid && spend_member(v, m);
         m = cake_json_next(u->value, m)) {
        bool known = cake_json_get(listed, cake_json_key(m, NULL));
        for (void *it = cake_json_first(patterns); it && !known && !v->failed;
             it = cake_json_next(patterns, it))
            known = name_matches(v, u, it, m);
        valid = known || holds(v, u->own, cake_json_value(m));
    }
    return valid;
}

static bool names_are_valid(validator *v, const use *u)
{
    bool valid = true;
    cake_buf text = {0};
    for (void *m = cake_json_first(u->value); m && valid && spend_member(v, m);
         m = cake_json_next(u->value, m)) {
        size_t len;
        const char *name = cake_json_key(m, &len);
        cake_json *node = NULL;
        cake_buf_cut(&text, 0);
        cake_json_add_text(&text, name, len);
        valid = spend(v, 4 + len / 16) && !cake_json_parse(text.data, text.len, &node, v->c.fault) &&
                holds(v, u->own, node);
        cake_json_free(node);
    }
    cake_buf_free(&text);
    return valid;
}

/* ---- other schemas for the same value */

static bool is_all(validator *v, const use *u)
{
    bool valid = true;
    for (size_t i = 0; i < cake_json_size(u->own) && valid; i++)
        valid = holds(v, cake_json_at(u->own, i), u->value);
    return valid;
}

static bool is_any(validator *v, const use *u)
{
    bool valid = false;
    for (size_t i = 0; i < cake_json_size(u->own) && !valid && !v->failed; i++)
        valid = holds(v, cake_json_at(u->own, i), u->value);
    return valid;
}

static bool is_one(validator *v, const use *u)
{
    int n = 0;
    for (size_t i = 0; i < cake_json_size(u->own) && n < 2 && !v->failed; i++)
        n += holds(v, cake_json_at(u->own, i), u->value);
    return n == 1;
}

static bool is_not(validator *v, const use *u)
{
    return !holds(v, u->own, u->value);
}

static bool is_if(validator *v, const use *u)
{
    const cake_json *next = cake_json_get(u->schema, holds(v, u->own, u->value) ? "then" : "else");
    return !next || holds(v, next, u->value);
}

static size_t n_nodes(const cake_json *node)
{
    size_t n = 1;
    for (void *it = cake_json_first(node); it; it = cake_json_next(node, it))
        n += n_nodes(cake_json_value(it));
    for (size_t i = 0; cake_json_kind(node) == CAKE_JSON_ARRAY && i < cake_json_size(node); i++)
        n += n_nodes(cake_json_at(node, i));
    return n;
}

static bool is_target(validator *v, const use *u)
{
    size_t len;
    const char *text = cake_json_text(u->own, &len);
    const char *anchor = strchr(text, '#'); /* is looked for everywhere */
    const bool everywhere = anchor && anchor[1] && anchor[1] != '/';
    if (!spend(v, 1 + len / 8 + (everywhere && !v->c.anchor ? n_nodes(v->c.root) : 0)))
        return false;
    const cake_json *target = cake_schema_resolve(&v->c, text);
    return target ? holds(v, target, u->value) : fail(v);
}

/* ---- keywords */

/* Kinds of values, a bit each. */
enum {
    BOOLEAN = 1 << CAKE_JSON_BOOL,
    NUMBER = 1 << CAKE_JSON_INT | 1 << CAKE_JSON_REAL,
    STRING = 1 << CAKE_JSON_STRING,
    ARRAY = 1 << CAKE_JSON_ARRAY,
    OBJECT = 1 << CAKE_JSON_OBJECT,
    SCHEMA = BOOLEAN | OBJECT,
    ANY = ~0
};

static const struct keyword {
    const char *name;
    int of; /* the values that it says something about */
    int as; /* what its own value may be */
    bool (*holds)(validator *v, const use *u);
} keywords[] = {
    {"type", ANY, STRING | ARRAY, has_type},
    {"enum", ANY, ARRAY, is_listed},
    {"const", ANY, ANY, is_const},
    {"minimum", NUMBER, NUMBER, is_at_least},
    {"maximum", NUMBER, NUMBER, is_at_most},
    {"exclusiveMinimum", NUMBER, NUMBER | BOOLEAN, is_above},
    {"exclusiveMaximum", NUMBER, NUMBER | BOOLEAN, is_below},
    {"multipleOf", NUMBER, NUMBER, is_multiple},
    {"minLength", STRING, NUMBER, has_min_size},
    {"maxLength", STRING, NUMBER, has_max_size},
    {"pattern", STRING, STRING, matches_pattern},
    {"format", STRING, STRING, has_format},
    {"minItems", ARRAY, NUMBER, has_min_size},
    {"maxItems", ARRAY, NUMBER, has_max_size},
    {"uniqueItems", ARRAY, BOOLEAN, is_unique},
    {"prefixItems", ARRAY, ARRAY, prefix_is_valid},
    {"items", ARRAY, SCHEMA | ARRAY, items_are_valid},
    {"contains", ARRAY, SCHEMA, contains},
    {"minProperties", OBJECT, NUMBER, has_min_size},
    {"maxProperties", OBJECT, NUMBER, has_max_size},
    {"required", OBJECT, ARRAY, has_required},
    {"dependentRequired", OBJECT, OBJECT, dependents_hold},
    {"dependentSchemas", OBJECT, OBJECT, dependents_hold},
    {"dependencies", OBJECT, OBJECT, dependents_hold}, /* draft 7 */
    {"propertyNames", OBJECT, SCHEMA, names_are_valid},
    {"properties", OBJECT, OBJECT, properties_are_valid},
    {"patternProperties", OBJECT, OBJECT, patterns_are_valid},
    {"additionalProperties", OBJECT, SCHEMA, others_are_valid},
    {"allOf", ANY, ARRAY, is_all},
    {"anyOf", ANY, ARRAY, is_any},
    {"oneOf", ANY, ARRAY, is_one},
    {"not", ANY, SCHEMA, is_not},
    {"if", ANY, SCHEMA, is_if},
    {"$ref", ANY, STRING, is_target},
};

static bool keyword_holds(validator *v, const use *u)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const struct keyword *k = &keywords[i];
        if (strcmp(u->name, k->name) != 0)
            continue;
        if (!(k->of & 1 << cake_json_kind(u->value)))
            return true;
        return k->as & 1 << cake_json_kind(u->own) ? k->holds(v, u) : fail(v);
    }
    return true;
}

static bool holds(validator *v, const cake_json *schema, const cake_json *value)
{
    const cake_json_type kind = cake_json_kind(schema);
    bool valid = true;
    if (!spend(v, 1))
        return false;
    if (kind == CAKE_JSON_BOOL)
        return cake_json_bool(schema, false);
    if (kind != CAKE_JSON_OBJECT || v->depth == MOST_DEPTH)
        return fail(v);
    v->depth++;
    for (void *it = cake_json_first(schema); it && valid && spend_member(v, it);
         it = cake_json_next(schema, it))
        valid = keyword_holds(v, &(use){cake_json_key(it, NULL), schema, cake_json_value(it), value});
    v->depth--;
    return valid;
}

cake_validator *cake_validator_open(const cake_json *root)
{
    validator *v = cake_alloc(1, sizeof *v);
    v->c.root = root;
    v->c.fault = &v->fault;
    return v;
}

void cake_validator_close(cake_validator *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->n_pattern; i++) {
        cake_state_sets_close(v->pattern[i]->sets);
        cake_automaton_free(&v->pattern[i]->automaton);
        free(v->pattern[i]);
    }
    free(v->pattern);
    free(v->c.anchor);
    free(v);
}

bool cake_validator_own(cake_validator *v, const cake_json *schema, const cake_json *value, int64_t *steps)
{
    static const char *const others[] = {"enum", "const", "$ref", "allOf", "anyOf", "oneOf"};
    bool valid = true;
    v->failed = false;
    v->steps = 0;
    for (void *it = cake_json_first(schema); it && valid; it = cake_json_next(schema, it)) {
        const char *name = cake_json_key(it, NULL);
        bool other = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other = other || !strcmp(name, others[i]);
        valid = spend_member(v, it) &&
                (other || keyword_holds(v, &(use){name, schema, cake_json_value(it), value}));
    }
    *steps += v->steps;
    return valid && !v->failed;
}

bool cake_schema_valid_at(const cake_json *root, const cake_json *schema, const cake_json *value)
{
    cake_validator *v = cake_validator_open(root);
    const bool valid = value && holds(v, schema, value) && !v->failed;
    cake_validator_close(v);
    return valid;
}

bool cake_schema_valid(const cake_json *schema, const cake_json *value)
{
    return cake_schema_valid_at(schema, schema, value);
}
