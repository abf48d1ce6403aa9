/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes of a file as its converter left them. Out: those of the original model's tensor. Invariant: every
 * byte of the content can be read alone, and has the same value whatever the range.
 */
#include "tensors/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"

#define GROUP_BYTES 16384 /* groups of small units are read at once */
#define UNIT_BYTES  1024  /* larger ones are read one by one */

void cake_tensor_list_free(cake_tensor_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->at[i].name);
    free(list->at);
    *list = (cake_tensor_list){0};
}

static size_t smaller(int64_t a, size_t b)
{
    return a < (int64_t)b ? (size_t)a : b;
}

/* Position in the file's order of a unit in the tensor's. */
static int64_t unit_in_file(const cake_tensor_undo *u, int64_t i)
{
    const int64_t group = u->rows * u->columns, in = i % group;
    return i - in + in % u->columns * u->rows + in / u->columns;
}

/* A part of the units of one group, which is read whole. at: in the units' bytes. */
static cake_err read_group(const cake_tensor *t, cake_tensor_undo_raw *raw, void *self, int64_t at,
                           char *into, size_t len)
{
    char group[GROUP_BYTES];
    const cake_tensor_undo *u = &t->undo;
    const int64_t bytes = u->rows * u->columns * u->unit, begin = at - at % bytes;
    cake_err err = raw(self, t->begin + u->first + begin, group, (size_t)bytes);
    for (size_t done = 0, n; !err && done < len; done += n) {
        const int64_t in = at - begin + (int64_t)done, unit = in / u->unit, within = in % u->unit;
        n = smaller(u->unit - within, len - done);
        memcpy(into + done, group + unit_in_file(u, unit) * u->unit + within, n);
    }
    return err;
}

static cake_err read_order(const cake_tensor *t, cake_tensor_undo_raw *raw, void *self, int64_t offset,
                           char *into, size_t len)
{
    const cake_tensor_undo *u = &t->undo;
    const int64_t group = u->rows * u->columns * u->unit;
    const bool whole = u->unit < UNIT_BYTES && group <= GROUP_BYTES;
    cake_err err = CAKE_OK;
    size_t done = 0, n;
    if (offset < u->first) {
        done = smaller(u->first - offset, len);
        err = raw(self, t->begin + offset, into, done);
    }
    for (; !err && done < len; done += n) {
        const int64_t at = offset + (int64_t)done - u->first;
        if (whole) {
            n = smaller(group - at % group, len - done);
            err = read_group(t, raw, self, at, into + done, n);
            continue;
        }
        const int64_t within = at % u->unit;
        n = smaller(u->unit - within, len - done);
        err =
            raw(self, t->begin + u->first + unit_in_file(u, at / u->unit) * u->unit + within, into + done, n);
    }
    return err;
}

/* What was stored as w + 1 is w again, exactly: the sum was rounded to a multiple of its unit in the last
 * place, and the difference is one, too. */
static float undone(cake_undo_kind kind, float stored)
{
    return kind == CAKE_UNDO_PLUS_ONE ? stored - 1 : logf(-stored);
}

static cake_err read_values(const cake_tensor *t, cake_tensor_undo_raw *raw, void *self, int64_t offset,
                            char *into, size_t len)
{
    float value[256];
    const size_t size = sizeof *value;
    cake_err err = CAKE_OK;
    for (size_t done = 0, n; !err && done < len; done += n) {
        const int64_t at = offset + (int64_t)done, begin = at - at % (int64_t)size;
        const size_t skip = (size_t)(at - begin), room = sizeof value - skip;
        n = len - done < room ? len - done : room;
        const size_t all = (skip + n + size - 1) / size;
        err = t->undo.unit ? read_order(t, raw, self, begin, (char *)value, all * size)
                           : raw(self, t->begin + begin, value, all * size);
        for (size_t i = 0; !err && i < all; i++)
            value[i] = undone(t->undo.kind, value[i]);
        if (!err)
            memcpy(into + done, (const char *)value + skip, n);
    }
    return err;
}

cake_err cake_tensor_undo_read(const cake_tensor *t, cake_tensor_undo_raw *raw, void *self, int64_t offset,
                               void *into, size_t len)
{
    switch (t->undo.kind) {
    case CAKE_UNDO_ORDER:
        return read_order(t, raw, self, offset, into, len);
    case CAKE_UNDO_PLUS_ONE:
    case CAKE_UNDO_EXP:
        return read_values(t, raw, self, offset, into, len);
    case CAKE_UNDO_CONSTANT:
        memcpy(into, (const char *)&t->undo.value + offset, len);
        return CAKE_OK;
    default:
        return raw(self, t->begin + offset, into, len);
    }
}

void cake_tensor_undo_add(const cake_tensor_undo *u, cake_buf *out)
{
    cake_buf_addf(out, "[%d, %lld, %lld, %lld, %lld, ", (int)u->kind, (long long)u->first, (long long)u->unit,
                  (long long)u->rows, (long long)u->columns);
    cake_json_add_real(out, (double)u->value);
    cake_buf_addc(out, ']');
}

/* Whether the groups of units fill the tensor. */
static bool fits(const cake_tensor_undo *u, int64_t bytes)
{
    int64_t group;
    return u->first >= 0 && u->first <= bytes && u->unit > 0 && u->rows > 0 && u->columns > 0 &&
           !__builtin_mul_overflow(u->rows, u->columns, &group) &&
           !__builtin_mul_overflow(group, u->unit, &group) && (bytes - u->first) % group == 0;
}

bool cake_tensor_undo_parse(const cake_json *node, cake_tensor *t)
{
    const int64_t kind = cake_json_int(cake_json_at(node, 0), -1), bytes = t->end - t->begin;
    const bool floats = t->readable && t->dtype == CAKE_F32;
    if (kind < 0 || kind >= CAKE_UNDO_N)
        return false;
    t->undo = (cake_tensor_undo){.kind = (cake_undo_kind)kind,
                                 .first = cake_json_int(cake_json_at(node, 1), -1),
                                 .unit = cake_json_int(cake_json_at(node, 2), -1),
                                 .rows = cake_json_int(cake_json_at(node, 3), -1),
                                 .columns = cake_json_int(cake_json_at(node, 4), -1),
                                 .value = (float)cake_json_real(cake_json_at(node, 5), 0)};
    if ((kind == CAKE_UNDO_ORDER || t->undo.unit) && !fits(&t->undo, bytes))
        return false;
    return kind == CAKE_UNDO_NONE || kind == CAKE_UNDO_ORDER ||
           (floats && (kind != CAKE_UNDO_CONSTANT || bytes == (int64_t)sizeof(float)));
}
