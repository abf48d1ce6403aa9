/* SPDX-License-Identifier: Apache-2.0
 *
 * In: values of a schema: those of enum and const. Out: their types, whether they are equal, and sets of them
 * in which one is found without looking at all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/numbers.h"
#include "grammar/schema_parts.h"

int cake_schema_type_of(const cake_json *value)
{
    static const int types[] = {[CAKE_JSON_NULL] = CAKE_TYPE_NULL,   [CAKE_JSON_BOOL] = CAKE_TYPE_BOOL,
                                [CAKE_JSON_INT] = CAKE_TYPE_INTEGER, [CAKE_JSON_STRING] = CAKE_TYPE_STRING,
                                [CAKE_JSON_ARRAY] = CAKE_TYPE_ARRAY, [CAKE_JSON_OBJECT] = CAKE_TYPE_OBJECT,
                                [CAKE_JSON_REAL] = CAKE_TYPE_NUMBER, [CAKE_JSON_ABSENT] = 0};
    const double real = cake_json_real(value, NAN);
    return cake_json_is_number(value) && real == rint(real) ? CAKE_TYPE_INTEGER
                                                            : types[cake_json_kind(value)];
}

int cake_schema_compare_numbers(const cake_json *a, const cake_json *b)
{
    const int64_t i = cake_json_int(a, 0), j = cake_json_int(b, 0);
    const double x = cake_json_real(a, 0), y = cake_json_real(b, 0);
    cake_number_limits read = {0};
    size_t n, m;
    if (cake_json_kind(a) == CAKE_JSON_INT && cake_json_kind(b) == CAKE_JSON_INT)
        return (i > j) - (i < j);
    if (x != y) /* rounding to doubles swaps no numbers; it makes some equal */
        return x < y ? -1 : 1;
    if (cake_json_kind(a) == cake_json_kind(b) && !cake_json_digits(a, &n) && !cake_json_digits(b, &m))
        return 0;
    cake_decimal_read(a, &read.min); /* integers of more digits than it likes are read nevertheless */
    cake_decimal_read(b, &read.max);
    const int order = cake_decimal_compare(&read.min, &read.max);
    cake_number_limits_free(&read);
    return order;
}

bool cake_schema_equal(const cake_json *a, const cake_json *b, size_t *work)
{
    ++*work;
    if (cake_json_is_number(a) && cake_json_is_number(b))
        return !cake_schema_compare_numbers(a, b);
    if (cake_json_kind(a) != cake_json_kind(b) || cake_json_size(a) != cake_json_size(b))
        return false;
    switch (cake_json_kind(a)) {
    case CAKE_JSON_BOOL:
        return cake_json_bool(a, false) == cake_json_bool(b, false);
    case CAKE_JSON_STRING: {
        size_t n, m;
        const char *x = cake_json_text(a, &n), *y = cake_json_text(b, &m);
        *work += n == m ? n / 64 : 0;
        return n == m && !memcmp(x, y, n);
    }
    case CAKE_JSON_ARRAY:
        for (size_t i = 0; i < cake_json_size(a); i++)
            if (!cake_schema_equal(cake_json_at(a, i), cake_json_at(b, i), work))
                return false;
        return true;
    case CAKE_JSON_OBJECT:
        for (void *it = cake_json_first(a); it; it = cake_json_next(a, it)) {
            const cake_json *other = cake_json_get(b, cake_json_key(it, NULL));
            if (!other || !cake_schema_equal(cake_json_value(it), other, work))
                return false;
        }
        return true;
    default:
        return true;
    }
}

/* ---- sets */

static uint64_t mix(uint64_t h, uint64_t more)
{
    h = (h ^ more) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

static uint64_t hash_text(const char *text, size_t len, size_t *work)
{
    uint64_t h = len;
    *work += len / 64;
    for (size_t i = 0; i < len; i++)
        h = mix(h, (uint8_t)text[i]);
    return h;
}

uint64_t cake_schema_hash(const cake_json *value, size_t *work)
{
    const cake_json_type kind = cake_json_kind(value);
    uint64_t h = 0;
    size_t len;
    ++*work;
    if (cake_json_is_number(value)) {
        const double real = cake_json_real(value, 0) + 0.0; /* -0 is 0 */
        memcpy(&h, &real, sizeof h);
        return mix(CAKE_JSON_REAL, h);
    }
    if (kind == CAKE_JSON_STRING) {
        const char *text = cake_json_text(value, &len);
        h = hash_text(text, len, work);
    } else if (kind == CAKE_JSON_ARRAY) {
        for (size_t i = 0; i < cake_json_size(value); i++)
            h = mix(h, cake_schema_hash(cake_json_at(value, i), work));
    } else if (kind == CAKE_JSON_OBJECT) {
        for (void *it = cake_json_first(value); it; it = cake_json_next(value, it)) { /* in any order */
            const char *name = cake_json_key(it, &len);
            h += mix(hash_text(name, len, work), cake_schema_hash(cake_json_value(it), work));
        }
    } else {
        h = cake_json_bool(value, false);
    }
    return mix(kind, h);
}

static int by_hash(const void *a, const void *b)
{
    const cake_hashed_value *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

bool cake_schema_has_value(cake_schema_compiler *c, const cake_value_set *set, const cake_hashed_value *value)
{
    size_t lo = 0, hi = set->n, work = 4;
    bool found = false;
    while (lo < hi) {
        const size_t middle = (lo + hi) / 2;
        if (set->value[middle].hash < value->hash)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < set->n && set->value[lo].hash == value->hash && !found && !c->automaton->full; lo++) {
        found = cake_schema_equal(set->value[lo].value, value->value, &work);
        cake_automaton_spend(c->automaton, work);
        work = 0;
    }
    cake_automaton_spend(c->automaton, 4);
    return found;
}

static void fill(cake_schema_compiler *c, cake_value_set *set)
{
    const cake_json *all = cake_json_get(set->schema, "enum"), *one = cake_json_get(set->schema, "const");
    const size_t n = one ? 1 : cake_json_size(all);
    size_t work = 8;
    set->value = cake_alloc(n + 1, sizeof *set->value);
    for (; set->n < n && !c->automaton->full; set->n++) {
        const cake_json *value = one ? one : cake_json_at(all, set->n);
        set->value[set->n] = (cake_hashed_value){cake_schema_hash(value, &work), value};
        set->types |= cake_schema_type_of(value);
        cake_automaton_spend(c->automaton, 4 * work);
        work = 1;
    }
    if (set->n > 1)
        qsort(set->value, set->n, sizeof *set->value, by_hash);
    if (!one || !all) /* else the one must be among all */
        return;
    bool found = false;
    for (size_t i = 0; i < cake_json_size(all) && !found && !c->automaton->full; i++) {
        found = cake_schema_equal(cake_json_at(all, i), one, &work);
        cake_automaton_spend(c->automaton, work);
        work = 0;
    }
    set->n = found ? 1 : 0;
}

static size_t place_of(const cake_schema_compiler *c, const cake_json *schema)
{
    size_t at = (size_t)((uint64_t)(uintptr_t)schema * 0x9E3779B97F4A7C15ull >> 32) & (c->n_set_slot - 1);
    while (c->set_slot[at] && c->set_slot[at]->schema != schema)
        at = (at + 1) & (c->n_set_slot - 1);
    return at;
}

const cake_value_set *cake_schema_values(cake_schema_compiler *c, const cake_json *schema)
{
    if (!cake_json_get(schema, "enum") && !cake_json_get(schema, "const"))
        return NULL;
    if (2 * (c->n_set + 1) > c->n_set_slot) {
        cake_value_set **old = c->set_slot;
        const size_t n_old = c->n_set_slot;
        c->n_set_slot = n_old ? 2 * n_old : 64;
        c->set_slot = cake_alloc(c->n_set_slot, sizeof *c->set_slot);
        for (size_t i = 0; i < n_old; i++)
            if (old[i])
                c->set_slot[place_of(c, old[i]->schema)] = old[i];
        free(old);
    }
    const size_t at = place_of(c, schema);
    if (!c->set_slot[at]) {
        c->set_slot[at] = cake_alloc(1, sizeof(cake_value_set));
        c->set_slot[at]->schema = schema;
        c->n_set++;
        fill(c, c->set_slot[at]);
    }
    return c->set_slot[at];
}

void cake_schema_free_values(cake_schema_compiler *c)
{
    for (size_t i = 0; i < c->n_set_slot; i++)
        if (c->set_slot[i]) {
            free(c->set_slot[i]->value);
            free(c->set_slot[i]);
        }
    free(c->set_slot);
}
