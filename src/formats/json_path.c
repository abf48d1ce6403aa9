/* SPDX-License-Identifier: Apache-2.0
 *
 * In: places in a JSON file. Out: values of the right type, or one message that names the place.
 * Invariant: whoever returns CAKE_ERR_FATAL first has logged the message.
 */
#include "formats/json_path.h"

#include <stdarg.h>
#include <string.h>

#include "base/buf.h"

#define KEY_SHOWN 80 /* bytes of a key or value in a message */

cake_json_path cake_json_path_root(const char *file, const cake_json *node)
{
    return (cake_json_path){.key = file, .node = node};
}

cake_json_path cake_json_path_key(const cake_json_path *parent, const char *key)
{
    return (cake_json_path){.parent = parent, .key = key, .node = cake_json_get(parent->node, key)};
}

cake_json_path cake_json_path_at(const cake_json_path *parent, size_t index)
{
    return (cake_json_path){.parent = parent, .index = index, .node = cake_json_at(parent->node, index)};
}

static void add_path(cake_buf *out, const cake_json_path *path)
{
    if (!path->parent) {
        cake_buf_addf(out, "%s: ", path->key);
        return;
    }
    add_path(out, path->parent);
    if (!path->key) {
        cake_buf_addf(out, "[%zu]", path->index);
        return;
    }
    if (path->parent->parent)
        cake_buf_addc(out, '.');
    cake_buf_addf(out, "%.*s", KEY_SHOWN, path->key);
}

cake_err cake_json_path_fail(const cake_json_path *path, const char *fmt, ...)
{
    cake_buf text = {0};
    add_path(&text, path);
    if (path->parent)
        cake_buf_adds(&text, ": ");
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&text, fmt, args);
    va_end(args);
    cake_err err = cake_fail("tokenizer", "%s", text.data);
    cake_buf_free(&text);
    return err;
}

cake_err cake_json_path_need(const cake_json_path *path, cake_json_type kind, const char *what)
{
    if (cake_json_kind(path->node) == kind)
        return CAKE_OK;
    return cake_json_path_fail(path, "found %s, expected %s", cake_json_kind_name(path->node), what);
}

cake_err cake_json_path_text(const cake_json_path *path, const char *key, const char **text, size_t *len)
{
    cake_json_path member = cake_json_path_key(path, key);
    cake_err err = cake_json_path_need(&member, CAKE_JSON_STRING, "a string");
    if (!err)
        *text = cake_json_text(member.node, len);
    return err;
}

cake_err cake_json_path_flag(const cake_json_path *path, const char *key, bool otherwise, bool *out)
{
    cake_json_path member = cake_json_path_key(path, key);
    if (cake_json_kind(member.node) > CAKE_JSON_NULL) {
        cake_err err = cake_json_path_need(&member, CAKE_JSON_BOOL, "true or false");
        if (err)
            return err;
    }
    *out = cake_json_bool(member.node, otherwise);
    return CAKE_OK;
}

cake_err cake_json_path_added(const cake_json_path *path, bool otherwise, cake_token_flags *out)
{
    cake_err err = cake_json_path_flag(path, "special", otherwise, &out->special);
    if (!err)
        err = cake_json_path_flag(path, "lstrip", false, &out->left);
    if (!err)
        err = cake_json_path_flag(path, "rstrip", false, &out->right);
    if (!err)
        err = cake_json_path_flag(path, "single_word", false, &out->word);
    return err ? err : cake_json_path_flag(path, "normalized", !out->special, &out->normalized);
}

cake_err cake_json_path_int(const cake_json_path *path, const char *key, int64_t least, int64_t most,
                            int64_t *out)
{
    cake_json_path member = cake_json_path_key(path, key);
    cake_err err = cake_json_path_need(&member, CAKE_JSON_INT, "an integer");
    if (err)
        return err;
    int64_t value = cake_json_int(member.node, 0);
    if (value < least || value > most)
        return cake_json_path_fail(&member, "%lld is out of range; it must lie between %lld and %lld",
                                   (long long)value, (long long)least, (long long)most);
    *out = value;
    return CAKE_OK;
}

/* The name of row i: rows of all types begin with it. */
static const char *name_of(const void *table, size_t stride, size_t i)
{
    const char *name;
    memcpy(&name, (const char *)table + i * stride, sizeof name);
    return name;
}

cake_err cake_json_path_choose(const cake_json_path *path, const void *table, size_t stride, size_t rows,
                               size_t *row)
{
    cake_err err = cake_json_path_need(path, CAKE_JSON_OBJECT, "an object");
    const char *type = NULL;
    if (!err)
        err = cake_json_path_text(path, "type", &type, NULL);
    if (err)
        return err;
    for (size_t i = 0; i < rows; i++) {
        if (!strcmp(type, name_of(table, stride, i))) {
            *row = i;
            return CAKE_OK;
        }
    }
    cake_buf known = {0};
    for (size_t i = 0; i < rows; i++)
        cake_buf_addf(&known, "%s%s", i ? ", " : "", name_of(table, stride, i));
    cake_json_path member = cake_json_path_key(path, "type");
    err =
        cake_json_path_fail(&member, "\"%.*s\" is not supported; known are %s", KEY_SHOWN, type, known.data);
    cake_buf_free(&known);
    return err;
}

cake_err cake_json_path_walk(const cake_json_path *path, const cake_json_path_table *table,
                             cake_json_path_function each, void *own)
{
    if (cake_json_kind(path->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    size_t row = 0;
    cake_err err = cake_json_path_choose(path, table->rows, table->stride, table->n, &row);
    if (err || row)
        return err ? err : each(path, row, own);
    cake_json_path list = cake_json_path_key(path, table->list);
    err = cake_json_path_need(&list, CAKE_JSON_ARRAY, "an array");
    for (size_t i = 0; !err && i < cake_json_size(list.node); i++) {
        cake_json_path member = cake_json_path_at(&list, i);
        err = cake_json_path_need(&member, CAKE_JSON_OBJECT, "an object");
        if (!err)
            err = cake_json_path_walk(&member, table, each, own);
    }
    return err;
}
