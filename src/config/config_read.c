/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a JSON object and a field's name. Out: its value in range, or a message with file, field, what was
 * found and what is expected. Invariant: type and range of every value are checked.
 */
#include "config/config_read.h"

#include <stdarg.h>

const cake_json *cake_field(const cake_fields *fields, const char *name)
{
    const cake_json *node = cake_json_get(fields->object, name);
    if (!node)
        node = cake_json_get(fields->defaults, name);
    return cake_json_kind(node) == CAKE_JSON_NULL ? NULL : node;
}

bool cake_field_null(const cake_fields *fields, const char *name)
{
    const cake_json *node = cake_json_get(fields->object, name);
    return node && cake_json_kind(node) == CAKE_JSON_NULL;
}

cake_err cake_field_fail(const cake_fields *fields, const char *name, const char *expected, ...)
{
    cake_buf text = {0};
    const cake_json *node = cake_json_get(fields->object, name);
    cake_buf_addf(&text, "%s%s%s is ", fields->outer ? fields->outer : "", fields->prefix, name);
    if (node)
        cake_json_add_part(&text, node);
    else
        cake_buf_adds(&text, "missing");
    cake_buf_adds(&text, ", but ");
    va_list args;
    va_start(args, expected);
    cake_buf_addv(&text, expected, args);
    va_end(args);
    cake_err err = cake_fail("config", "%s: %s", fields->file, text.data);
    cake_buf_free(&text);
    return err;
}

cake_err cake_field_int(const cake_fields *fields, const char *name, int64_t otherwise, int64_t least,
                        int64_t most, int *out)
{
    const cake_json *node = cake_field(fields, name);
    int64_t value = cake_json_int(node, node ? CAKE_REQUIRED : otherwise);
    if (value == CAKE_REQUIRED || (node && (value < least || value > most)))
        return least == most ? cake_field_fail(fields, name, "only %lld is supported", (long long)least)
                             : cake_field_fail(fields, name, "an integer from %lld to %lld is expected",
                                               (long long)least, (long long)most);
    *out = (int)value;
    return CAKE_OK;
}

cake_err cake_field_real(const cake_fields *fields, const char *name, double otherwise, double least,
                         double most, double *out)
{
    const cake_json *node = cake_field(fields, name);
    double value = cake_json_real(node, node ? NAN : otherwise);
    if (!isfinite(value) || (node && (value < least || value > most)))
        return least == most
                   ? cake_field_fail(fields, name, "only %g is supported", least)
                   : cake_field_fail(fields, name, "a number from %g to %g is expected", least, most);
    *out = value;
    return CAKE_OK;
}

cake_err cake_field_bool(const cake_fields *fields, const char *name, bool otherwise, bool *out)
{
    const cake_json *node = cake_field(fields, name);
    if (cake_field_null(fields, name) || (node && cake_json_kind(node) != CAKE_JSON_BOOL))
        return cake_field_fail(fields, name, "true or false is expected");
    *out = cake_json_bool(node, otherwise);
    return CAKE_OK;
}
