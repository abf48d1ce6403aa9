/* SPDX-License-Identifier: Apache-2.0
 *
 * In: text from anywhere. Out: nodes to read; JSON to write.
 * Invariant: jansson never sees an integer beyond 64 bits, which passes through it as a marked string; long
 * strings bypass it, for speed (formats/json_strings.h).
 */
#include "formats/json.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/utf8.h"
#include "formats/json_strings.h"

#define LARGEST_FILE ((size_t)512 << 20)
#define MAX_SHOWN    80 /* bytes of a foreign value in a message */

/* A cake_json is a json_t of jansson under another name. */
static const json_t *node_of(const cake_json *node)
{
    return (const json_t *)node;
}

/* Words that Python writes for what JSON cannot express. */
static const char *const python_word[] = {"NaN", "Infinity", "-Infinity"};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '+' || c == '-' || c == '.';
}

/* An integer beyond 64 bits passes through jansson as a string that begins with U+0000, which no string does
 * after cake_json_strings_take. Afterwards it is kept as a string that begins with a byte that is invalid in
 * UTF-8. */
static const char big_mark[] = "\"\\u0000#";
#define BIG '\xFF'

static bool is_big(const json_t *node)
{
    return json_is_string(node) && json_string_value(node)[0] == BIG;
}

/* Returns whether the string was a marked integer. */
static bool settle_big(json_t *node)
{
    const char *text = json_string_value(node);
    size_t len = json_string_length(node);
    if (len < 2 || text[0] || text[1] != big_mark[7])
        return false;
    char *digits = cake_copy(text + 1, len - 1);
    digits[0] = BIG;
    if (json_string_setn_nocheck(node, digits, len - 1))
        cake_die("out of memory: a JSON number of %zu digits", len - 2);
    free(digits);
    return true;
}

/* Appends a literal [n] from outside of strings: marks integers beyond 64 bits; with `python`, turns NaN and
 * infinities into strings, which the reader of the field can report. */
static void add_literal(cake_buf *out, const char *literal, size_t n, bool python)
{
    size_t digits = 0, sign = *literal == '-';
    while (sign + digits < n && isdigit((unsigned char)literal[sign + digits]))
        digits++;
    cake_buf_add(out, literal, n);
    if (digits >= 19 && sign + digits == n) {
        errno = 0;
        strtoll(out->data + out->len - n, NULL, 10);
        bool good = literal[sign] != '0'; /* else the parser reports the error */
        if (errno == ERANGE && good) {
            cake_buf_cut(out, out->len - n);
            cake_buf_addf(out, "%s%.*s\"", big_mark, (int)n, literal);
        }
    }
    for (size_t i = 0; python && i < sizeof python_word / sizeof *python_word; i++)
        if (strlen(python_word[i]) == n && !memcmp(literal, python_word[i], n)) {
            cake_buf_cut(out, out->len - n);
            cake_buf_addf(out, "\"%s\"", python_word[i]);
        }
}

/* Whether text has a literal that add_literal would change. Usually not, and then nothing is copied. */
static bool needs_care(const char *text, size_t len, bool python)
{
    size_t run = 0;
    for (size_t i = 0; i < len; i++) {
        run = isdigit((unsigned char)text[i]) ? run + 1 : 0;
        if (run >= 19 || (python && (text[i] == 'N' || text[i] == 'I')))
            return true;
    }
    return false;
}

static void rewrite(const char *text, size_t len, bool python, cake_buf *out)
{
    bool in_string = false;
    for (size_t i = 0, n; i < len; i += n) {
        n = 1;
        if (in_string) {
            n = text[i] == '\\' && i + 1 < len ? 2 : 1;
            in_string = text[i] != '"';
        } else if (text[i] == '"') {
            in_string = true;
        } else if (is_word(text[i])) {
            while (i + n < len && is_word(text[i + n]))
                n++;
            add_literal(out, text + i, n, python);
            continue;
        }
        cake_buf_add(out, text + i, n);
    }
}

/* Puts the long strings and large integers back in the places of their marks. */
static void put_back(json_t *node, const cake_json_strings *strings)
{
    size_t len, i;
    const char *key;
    json_t *value;
    switch (json_typeof(node)) {
    case JSON_STRING: {
        if (settle_big(node))
            break;
        const char *text =
            cake_json_strings_find(strings, json_string_value(node), json_string_length(node), &len);
        if (text && json_string_setn_nocheck(node, text, len))
            cake_die("out of memory: a JSON string of %zu bytes", len);
        break;
    }
    case JSON_ARRAY:
        json_array_foreach(node, i, value) put_back(value, strings);
        break;
    case JSON_OBJECT:
        json_object_foreach(node, key, value) put_back(value, strings);
        break;
    default:
        break;
    }
}

/* jansson reports a failed allocation as invalid text; this ends the run instead. */
static void *take(size_t bytes)
{
    return cake_grow(NULL, bytes, 1);
}

static void use_take(void)
{
    json_set_alloc_funcs(take, free);
}

/* strings: those that were taken out; NULL: the result is only tested. */
static json_t *load(const char *text, size_t len, bool python, const cake_json_strings *strings,
                    json_error_t *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cake_buf care = {0};
    bool careful = needs_care(text, len, python);
    pthread_once(&once, use_take);
    if (careful) {
        rewrite(text, len, python, &care);
        text = care.data;
        len = care.len;
    }
    json_t *root = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, error);
    cake_buf_free(&care);
    if (root && strings && (strings->n || careful))
        put_back(root, strings);
    return root;
}

static cake_err parse(const char *text, size_t len, bool python, cake_json **out, cake_fault *fault)
{
    size_t bad = cake_utf8_check(text, len);
    if (bad < len)
        return cake_fault_set(fault, NULL, "invalid UTF-8 at byte %zu: 0x%02X", bad,
                              (unsigned char)text[bad]);
    json_error_t error;
    json_t *root = NULL;
    cake_json_strings strings = {0};
    cake_json_strings_take(&strings, text, len);
    if (strings.n)
        root = load(strings.text.data, strings.text.len, python, &strings, &error);
    bool taken = strings.n > 0;
    cake_json_strings_free(&strings);
    if (!root && !taken)
        root = load(text, len, python, &strings, &error);
    else if (!root) /* parse the whole text to find the byte of the error */
        json_decref(load(text, len, python, NULL, &error));
    const char *nul = root ? NULL : memchr(text, 0, len); /* jansson takes it for the end of the text */
    if (nul && (taken || nul - text <= error.position))
        return cake_fault_set(fault, NULL, "invalid JSON: byte %zu is NUL", (size_t)(nul - text));
    if (!root)
        return cake_fault_set(fault, NULL, "invalid JSON at byte %d: %s",
                              error.position < 0 ? 0 : error.position, error.text);
    *out = (cake_json *)root;
    return CAKE_OK;
}

cake_err cake_json_parse(const char *text, size_t len, cake_json **out, cake_fault *fault)
{
    return parse(text, len, false, out, fault);
}

cake_err cake_json_load(const char *topic, const char *path, bool optional, cake_json **out)
{
    cake_buf text = {0};
    cake_fault fault;
    cake_err err = cake_file_read(topic, path, optional, LARGEST_FILE, &text);
    if (!err && parse(text.data ? text.data : "", text.len, true, out, &fault))
        err = cake_fail(topic, "%s: %s", path, fault.message);
    cake_buf_free(&text);
    return err;
}

cake_json *cake_json_peek(const char *path)
{
    cake_json *root = NULL;
    cake_buf text = {0};
    cake_fault fault;
    if (!cake_file_peek(path, LARGEST_FILE, &text) &&
        parse(text.data ? text.data : "", text.len, true, &root, &fault))
        root = NULL;
    cake_buf_free(&text);
    return root;
}

void cake_json_free(cake_json *root)
{
    json_decref((json_t *)root);
}

cake_json_type cake_json_kind(const cake_json *node)
{
    static const cake_json_type kinds[] = {
        [JSON_OBJECT] = CAKE_JSON_OBJECT, [JSON_ARRAY] = CAKE_JSON_ARRAY, [JSON_STRING] = CAKE_JSON_STRING,
        [JSON_INTEGER] = CAKE_JSON_INT,   [JSON_REAL] = CAKE_JSON_REAL,   [JSON_TRUE] = CAKE_JSON_BOOL,
        [JSON_FALSE] = CAKE_JSON_BOOL,    [JSON_NULL] = CAKE_JSON_NULL};
    if (!node)
        return CAKE_JSON_ABSENT;
    cake_json_type kind = kinds[json_typeof(node_of(node))];
    return kind == CAKE_JSON_STRING && is_big(node_of(node)) ? CAKE_JSON_REAL : kind;
}

const char *cake_json_kind_name(const cake_json *node)
{
    static const char *const name[] = {"nothing",  "null",     "a boolean", "an integer",
                                       "a number", "a string", "an array",  "an object"};
    return name[cake_json_kind(node)];
}

bool cake_json_is_number(const cake_json *node)
{
    return node && (json_is_number(node_of(node)) || is_big(node_of(node)));
}

const cake_json *cake_json_get(const cake_json *object, const char *key)
{
    return (const cake_json *)json_object_get(node_of(object), key);
}

const cake_json *cake_json_at(const cake_json *array, size_t i)
{
    return (const cake_json *)json_array_get(node_of(array), i);
}

size_t cake_json_size(const cake_json *node)
{
    return json_is_object(node_of(node)) ? json_object_size(node_of(node)) : json_array_size(node_of(node));
}

const char *cake_json_text(const cake_json *string, size_t *len)
{
    bool is_text = string && !is_big(node_of(string));
    if (len)
        *len = is_text ? json_string_length(node_of(string)) : 0;
    return is_text ? json_string_value(node_of(string)) : NULL;
}

cake_json_type cake_json_look(const cake_json *node, const char **text, size_t *len)
{
    *text = NULL;
    if (!node || !json_is_string(node_of(node)))
        return cake_json_kind(node);
    const char *value = json_string_value(node_of(node));
    if (*value == BIG)
        return CAKE_JSON_REAL;
    *text = value;
    *len = json_string_length(node_of(node));
    return CAKE_JSON_STRING;
}

int64_t cake_json_int(const cake_json *node, int64_t otherwise)
{
    return json_is_integer(node_of(node)) ? json_integer_value(node_of(node)) : otherwise;
}

const char *cake_json_digits(const cake_json *node, size_t *len)
{
    bool big = node && is_big(node_of(node));
    *len = big ? json_string_length(node_of(node)) - 1 : 0;
    return big ? json_string_value(node_of(node)) + 1 : NULL;
}

double cake_json_real(const cake_json *node, double otherwise)
{
    if (node && is_big(node_of(node)))
        return strtod(json_string_value(node_of(node)) + 1, NULL);
    return json_is_number(node_of(node)) ? json_number_value(node_of(node)) : otherwise;
}

bool cake_json_bool(const cake_json *node, bool otherwise)
{
    return json_is_boolean(node_of(node)) ? json_is_true(node_of(node)) : otherwise;
}

void *cake_json_first(const cake_json *object)
{
    return json_object_iter((json_t *)(uintptr_t)object);
}

void *cake_json_next(const cake_json *object, void *it)
{
    return json_object_iter_next((json_t *)(uintptr_t)object, it);
}

const char *cake_json_key(void *it, size_t *len)
{
    const char *key = json_object_iter_key(it);
    if (len)
        *len = strlen(key); /* jansson allows no NUL in a key */
    return key;
}

const cake_json *cake_json_value(void *it)
{
    return (const cake_json *)json_object_iter_value(it);
}

void cake_json_add_text(cake_buf *buf, const char *text, size_t len)
{
    uint32_t code;
    cake_buf_addc(buf, '"');
    for (size_t i = 0, n; i < len; i += n) {
        size_t plain = i;
        while (plain < len && (unsigned char)text[plain] >= 0x20 && (unsigned char)text[plain] < 0x7F &&
               text[plain] != '"' && text[plain] != '\\')
            plain++;
        if ((n = plain - i) > 0) {
            cake_buf_add(buf, text + i, n);
            continue;
        }
        const char *escape = strchr("\"\\\b\f\n\r\t", text[i]);
        n = 1;
        if (escape && *escape)
            cake_buf_addf(buf, "\\%c", "\"\\bfnrt"[escape - "\"\\\b\f\n\r\t"]);
        else if ((unsigned char)text[i] < 0x20)
            cake_buf_addf(buf, "\\u%04x", (unsigned char)text[i]);
        else if ((n = (size_t)cake_escape_ends_line(text + i, len - i, &code)) > 0)
            cake_buf_addf(buf, "\\u%04x", (unsigned)code);
        else if ((n = (size_t)cake_utf8_next(text + i, len - i, NULL)) > 0)
            cake_buf_add(buf, text + i, n);
        else
            cake_buf_adds(buf, "\xEF\xBF\xBD"), n = 1;
    }
    cake_buf_addc(buf, '"');
}

void cake_json_add_real(cake_buf *buf, double value)
{
    char text[32];
    if (!isfinite(value)) {
        cake_buf_adds(buf, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    cake_buf_adds(buf, text);
    if (!strpbrk(text, ".e"))
        cake_buf_adds(buf, ".0");
}

void cake_json_put_real(cake_buf *buf, const char *before, double value)
{
    cake_buf_adds(buf, before);
    cake_json_add_real(buf, value);
}

void cake_json_put_text(cake_buf *buf, const char *before, const char *text)
{
    cake_buf_adds(buf, before);
    cake_json_add_text(buf, text, strlen(text));
}

void cake_json_put_known(cake_buf *buf, const char *before, double value)
{
    cake_buf_adds(buf, before);
    if (value >= 0 && isfinite(value))
        cake_json_add_real(buf, value);
    else
        cake_buf_adds(buf, "null");
}

void cake_json_put_count(cake_buf *buf, const char *before, int64_t value)
{
    cake_buf_addf(buf, value ? "%s%lld" : "%snull", before, (long long)value);
}

void cake_json_put_name(cake_buf *buf, const char *before, const char *text)
{
    if (text && text[0])
        cake_json_put_text(buf, before, text);
    else
        cake_buf_addf(buf, "%snull", before);
}

static int add_chunk(const char *chunk, size_t size, void *buf)
{
    cake_buf_add(buf, chunk, size);
    return 0;
}

void cake_json_add_node(cake_buf *buf, const cake_json *node)
{
    cake_json_type kind = cake_json_kind(node);
    size_t len;
    const char *digits = cake_json_digits(node, &len);
    if (kind == CAKE_JSON_ARRAY) {
        cake_buf_addc(buf, '[');
        for (size_t i = 0; i < cake_json_size(node); i++) {
            cake_buf_adds(buf, i ? "," : "");
            cake_json_add_node(buf, cake_json_at(node, i));
        }
        cake_buf_addc(buf, ']');
    } else if (kind == CAKE_JSON_OBJECT) {
        char before = '{';
        for (void *it = cake_json_first(node); it; it = cake_json_next(node, it), before = ',') {
            const char *key = cake_json_key(it, &len);
            cake_buf_addc(buf, before);
            cake_json_add_text(buf, key, len);
            cake_buf_addc(buf, ':');
            cake_json_add_node(buf, cake_json_value(it));
        }
        cake_buf_adds(buf, before == '{' ? "{}" : "}");
    } else if (digits) {
        cake_buf_add(buf, digits, len);
    } else if (kind == CAKE_JSON_STRING) {
        const char *text = cake_json_text(node, &len);
        cake_json_add_text(buf, text, len);
    } else if (kind == CAKE_JSON_REAL) {
        size_t start = buf->len;
        cake_json_add_real(buf, cake_json_real(node, 0));
        char *plus = strchr(buf->data + start, '+'); /* 1e300, not 1e+300 */
        if (plus)
            memmove(plus, plus + 1, strlen(plus)), buf->len--;
    } else {
        json_dump_callback(node_of(node), add_chunk, buf, JSON_COMPACT | JSON_ENCODE_ANY);
    }
}

void cake_json_add_part(cake_buf *buf, const cake_json *node)
{
    size_t start = buf->len;
    cake_json_add_node(buf, node);
    if (buf->len - start <= MAX_SHOWN)
        return;
    cake_buf_cut(buf, start + MAX_SHOWN - cake_utf8_pending(buf->data + start, MAX_SHOWN));
    cake_buf_adds(buf, "...");
}
