/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a table of fields and an object with some of them. Out: warnings, or the refusal of one.
 * Invariant: fields with their neutral value, and fields that no table has, are ignored.
 */
#include "formats/unsupported.h"

#include <math.h>

#include "base/log.h"

static bool is_neutral(const cake_unsupported_field *field, const cake_json *value)
{
    cake_json_type kind = cake_json_kind(value);
    if (kind == CAKE_JSON_NULL)
        return !field->null_counts;
    if (kind == CAKE_JSON_BOOL)
        return cake_json_bool(value, false) == field->neutral;
    if (kind == CAKE_JSON_OBJECT || kind == CAKE_JSON_ARRAY)
        return cake_json_size(value) == 0;
    return cake_json_real(value, NAN) == field->neutral;
}

cake_err cake_unsupported_check(const cake_unsupported_field *table, const void *owner,
                                const cake_json *object, const char *topic, const char *file,
                                const char *prefix)
{
    cake_buf value = {0};
    cake_err err = CAKE_OK;
    for (const cake_unsupported_field *e = table; e->name && !err; e++) {
        const cake_json *node = cake_json_get(object, e->name);
        if (!node || (e->known && *((const bool *)owner + e->known)) || is_neutral(e, node))
            continue;
        cake_buf_cut(&value, 0);
        cake_json_add_part(&value, node);
        if (e->kind == CAKE_UNSUPPORTED_REFUSE)
            err = cake_fail(topic, "%s: %s%s is %s, but %s", file, prefix, e->name, value.data,
                            e->text ? e->text : "this is not supported: take a model without it");
        else
            cake_log(CAKE_WARN, topic, "%s: %s%s %s is not applied%s%s", file, prefix, e->name, value.data,
                     e->text ? "; " : "", e->text ? e->text : "");
    }
    cake_buf_free(&value);
    return err;
}
