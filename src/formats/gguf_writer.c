/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keys of a GGUF file. Out: fields of a config.json. Invariant: after the first error nothing more is
 * read.
 */
#include "formats/gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST INT32_MAX

/* The key "ARCH.name"; valid until the next call. */
const char *cake_gguf_key_of(const cake_gguf_writer *w, const char *name)
{
    static _Thread_local char key[160];
    snprintf(key, sizeof key, "%s.%s", w->arch->name, name);
    return key;
}

const cake_gguf_value *cake_gguf_value_of(const cake_gguf_writer *w, const char *name)
{
    return cake_gguf_find(w->g, cake_gguf_key_of(w, name));
}

int64_t cake_gguf_get_int(cake_gguf_writer *w, const char *name, int64_t otherwise, int64_t least)
{
    int64_t value = otherwise;
    if (!w->err)
        w->err = cake_gguf_int(w->g, cake_gguf_key_of(w, name), otherwise, least, MOST, &value);
    return w->err ? 1 : value;
}

double cake_gguf_get_real(cake_gguf_writer *w, const char *name, double otherwise)
{
    double value = otherwise;
    if (!w->err)
        w->err = cake_gguf_real(w->g, cake_gguf_key_of(w, name), otherwise, &value);
    return value;
}

/* A number for each layer, or one for all; they must be equal. */
int64_t cake_gguf_get_equal(cake_gguf_writer *w, const char *name, int64_t otherwise)
{
    const cake_gguf_value *v = cake_gguf_value_of(w, name);
    if (!v || !v->array)
        return cake_gguf_get_int(w, name, otherwise, 1);
    int64_t first = cake_gguf_int_at(v, 0, -1);
    for (int64_t i = 0; i < v->n && !w->err; i++)
        if (cake_gguf_int_at(v, i, -1) != first || first < 1)
            w->err =
                cake_gguf_fail(w->g, v, "layers of different sizes are not supported for %s", w->arch->name);
    if (!v->n && !w->err)
        w->err = cake_gguf_fail(w->g, v, "the list is empty");
    return first;
}

void cake_gguf_put_int(cake_gguf_writer *w, const char *name, int64_t value)
{
    cake_buf_addf(w->out, ", \"%s\": %lld", name, (long long)value);
}

/* A number that was stored as float32: the shortest decimal that is the same float32 is what the original
 * config.json had. */
void cake_gguf_put_real(cake_gguf_writer *w, const char *name, double value)
{
    char text[32];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtof(text, NULL) != (float)value && ++digits <= 9);
    if (name)
        cake_buf_addf(w->out, ", \"%s\": ", name);
    cake_buf_adds(w->out, text);
}

void cake_gguf_put_text(cake_gguf_writer *w, const char *name, const char *text)
{
    cake_buf_addf(w->out, ", \"%s\": \"%s\"", name, text);
}

void cake_gguf_put_bool(cake_gguf_writer *w, const char *name, bool value)
{
    cake_buf_addf(w->out, ", \"%s\": %s", name, value ? "true" : "false");
}

void cake_gguf_copy_int(cake_gguf_writer *w, const char *name, int64_t otherwise, int64_t least,
                        const char *field)
{
    int64_t value = cake_gguf_get_int(w, name, otherwise, least);
    cake_gguf_put_int(w, field, value);
}

bool cake_gguf_has_tensor(const cake_gguf_writer *w, const char *name)
{
    return cake_gguf_parts_find(w->parts, name) != NULL;
}

void cake_gguf_refuse(cake_gguf_writer *w, const char *name, const char *why)
{
    const cake_gguf_value *v = cake_gguf_value_of(w, name);
    if (v && !w->err)
        w->err = cake_gguf_fail(w->g, v, "%s", why);
}

void cake_gguf_put_list(cake_gguf_writer *w, const char *name, const float *list, int64_t n)
{
    cake_buf_addf(w->out, ", \"%s\": [", name);
    for (int64_t i = 0; i < n; i++) {
        cake_buf_adds(w->out, i ? ", " : "");
        cake_gguf_put_real(w, NULL, (double)list[i]);
    }
    cake_buf_addc(w->out, ']');
}
