/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a JSON text, piece by piece. Out: whether an object of it has a name twice.
 * Invariant: names are compared as they read, whichever way they are written: "a" is "\u0061".
 */
#include "grammar/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

static void put_byte(cake_names *n, char byte)
{
    n->hash = (n->hash ^ (unsigned char)byte) * 0x100000001b3ull; /* FNV-1a */
}

static void put_char(cake_names *n, uint32_t code)
{
    char bytes[4];
    const int len = cake_utf8_put(bytes, code);
    for (int i = 0; i < len; i++)
        put_byte(n, bytes[i]);
}

/* The first half of a surrogate pair whose second half does not come. */
static void flush_high(cake_names *n)
{
    if (n->high)
        put_char(n, n->high);
    n->high = 0;
}

static void put_escaped(cake_names *n, uint32_t code)
{
    if (n->high && code >> 10 == 0xDC00 >> 10) {
        put_char(n, 0x10000 + ((n->high & 0x3FF) << 10) + (code & 0x3FF));
        n->high = 0;
        return;
    }
    flush_high(n);
    if (code >> 10 == 0xD800 >> 10)
        n->high = code;
    else
        put_char(n, code);
}

static void step_escape(cake_names *n, char byte)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (n->hex) {
        const int digit = byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10;
        n->code = n->code << 4 | (uint32_t)(digit & 15);
        n->escape = --n->hex;
        if (!n->hex)
            put_escaped(n, n->code);
    } else if (byte == 'u') {
        n->hex = 4;
        n->code = 0;
    } else {
        const char *at = byte ? strchr(from, byte) : NULL;
        n->escape = false;
        flush_high(n);
        put_byte(n, at ? to[at - from] : byte);
    }
}

/* The closing quote of a name. */
static void end_name(cake_names *n)
{
    flush_high(n);
    for (int i = n->open[n->n_open - 1].from; i < n->n_name; i++)
        n->repeated = n->repeated || n->name[i] == n->hash;
    CAKE_RESERVE(n->name, n->n_name, n->cap_name);
    n->name[n->n_name++] = n->hash;
}

static void step_string(cake_names *n, char byte)
{
    if (n->escape) {
        step_escape(n, byte);
    } else if (byte == '\\') {
        n->escape = true;
    } else if (byte == '"') {
        if (n->key)
            end_name(n);
        n->string = n->key = false;
    } else {
        flush_high(n);
        put_byte(n, byte);
    }
}

static void step(cake_names *n, char byte)
{
    if (n->string) {
        step_string(n, byte);
        return;
    }
    switch (byte) {
    case '"':
        n->string = true;
        n->key = n->awaits;
        n->awaits = false;
        n->hash = 0xcbf29ce484222325ull;
        break;
    case '{':
    case '[':
        CAKE_RESERVE(n->open, n->n_open, n->cap_open);
        n->open[n->n_open++] = (cake_names_level){n->n_name, byte == '{'};
        n->awaits = byte == '{';
        break;
    case '}':
    case ']':
        n->n_name = n->n_open ? n->open[--n->n_open].from : 0;
        n->awaits = false;
        break;
    case ',':
        n->awaits = n->n_open && n->open[n->n_open - 1].object;
        break;
    default:
        break;
    }
}

void cake_names_add(cake_names *n, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        step(n, bytes[i]);
}

static void copy(const cake_names *from, cake_names *to)
{
    cake_names_level *open = to->open;
    uint64_t *name = to->name;
    if (from->n_open > to->cap_open) {
        to->cap_open = 2 * from->n_open;
        open = cake_grow(open, (size_t)to->cap_open, sizeof *open);
    }
    if (from->n_name > to->cap_name) {
        to->cap_name = 2 * from->n_name;
        name = cake_grow(name, (size_t)to->cap_name, sizeof *name);
    }
    const int cap_open = to->cap_open, cap_name = to->cap_name;
    if (from->n_open)
        memcpy(open, from->open, (size_t)from->n_open * sizeof *open);
    if (from->n_name)
        memcpy(name, from->name, (size_t)from->n_name * sizeof *name);
    *to = *from;
    to->open = open;
    to->name = name;
    to->cap_open = cap_open;
    to->cap_name = cap_name;
}

bool cake_names_would_repeat(const cake_names *n, const char *bytes, size_t len, cake_names *trial)
{
    if (n->repeated || !memchr(bytes, '"', len))
        return false;
    copy(n, trial);
    cake_names_add(trial, bytes, len);
    return trial->repeated;
}

void cake_names_free(cake_names *n)
{
    free(n->open);
    free(n->name);
    *n = (cake_names){0};
}
