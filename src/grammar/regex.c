/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a pattern. Out: an expression.
 * Source: ECMA-262, section 22.2.1, with the u flag; \d, \w, \s as there. `(?i)` and other flags are unknown.
 */
#include "grammar/regex.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

enum {
    DEPTH = 200,        /* of groups */
    MOST_TIMES = 100000 /* in {n,m}; the automaton has its own limit */
};

typedef struct reader {
    const char *text; /* [len] */
    size_t len, at;
    cake_exprs *exprs;
    cake_fault *fault;
    int depth;
    bool whole;
    bool left_out;         /* within [^...] */
    uint32_t lower, upper; /* \d, \w and \s, and their opposites, within [...]: a bit for each letter */
} reader;

static cake_err wrong(const reader *r, const char *what)
{
    return cake_fault_set(r->fault, NULL, "at byte %zu of the pattern \"%.*s%s\": %s", r->at,
                          r->len > 80 ? 80 : (int)r->len, r->text, r->len > 80 ? "..." : "", what);
}

static bool looking(const reader *r, const char *what)
{
    const size_t n = strlen(what);
    return r->len - r->at >= n && !memcmp(r->text + r->at, what, n);
}

static bool take(reader *r, const char *what)
{
    const bool is = looking(r, what);
    r->at += is ? strlen(what) : 0;
    return is;
}

static cake_err next_char(reader *r, uint32_t *code)
{
    const int n = r->at < r->len ? cake_utf8_next(r->text + r->at, r->len - r->at, code) : 0;
    if (!n)
        return wrong(r, r->at < r->len ? "invalid UTF-8" : "the pattern ends too early");
    r->at += (size_t)n;
    return CAKE_OK;
}

/* ---- escapes */

/* \p{...} by General_Category's first letter, and a few others. */
static const struct {
    const char *name;
    bool (*is)(uint32_t code);
} properties[] = {{"L", cake_char_is_letter},         {"Letter", cake_char_is_letter},
                  {"Lu", cake_char_is_upper},         {"Uppercase_Letter", cake_char_is_upper},
                  {"Ll", cake_char_is_lower},         {"Lowercase_Letter", cake_char_is_lower},
                  {"N", cake_char_is_number},         {"Number", cake_char_is_number},
                  {"Nd", cake_char_is_digit},         {"Decimal_Number", cake_char_is_digit},
                  {"M", cake_char_is_mark},           {"Mark", cake_char_is_mark},
                  {"White_Space", cake_char_is_space}};

/* Adds the characters of properties[i]. To look at all characters takes milliseconds, so each set is made
 * once, and stays. */
static void add_property(size_t i, cake_chars *out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cake_chars known[sizeof properties / sizeof *properties];
    pthread_mutex_lock(&lock);
    if (!known[i].n)
        cake_chars_add_class(&known[i], properties[i].is);
    cake_chars_add_set(out, &known[i]);
    pthread_mutex_unlock(&lock);
}

static cake_err read_property(reader *r, bool negated, cake_chars *out)
{
    const char *begin = r->text + r->at + 1, *end = memchr(r->text + r->at, '}', r->len - r->at);
    cake_chars set = {0};
    if (!looking(r, "{") || !end)
        return wrong(r, "\\p without {...}");
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        const size_t n = strlen(properties[i].name);
        if ((size_t)(end - begin) != n || memcmp(begin, properties[i].name, n) != 0)
            continue;
        add_property(i, &set);
        if (negated)
            cake_chars_negate(&set);
        cake_chars_add_set(out, &set);
        cake_chars_free(&set);
        r->at = (size_t)(end + 1 - r->text);
        return CAKE_OK;
    }
    return wrong(r, "this property is not supported; L, Lu, Ll, M, N, Nd and White_Space are");
}

static void add_ranges(const cake_char_range *range, size_t n, cake_chars *out)
{
    for (size_t i = 0; i < n; i++)
        cake_chars_add(out, range[i].lo, range[i].hi);
}

static void add_named(const char *name, cake_chars *out)
{
    size_t i = 0;
    while (strcmp(properties[i].name, name) != 0)
        i++;
    add_property(i, out);
}

/* \d, \w or \s as ECMA-262 has them, without or with what Python's re has in their place: validators use
 * both. */
static void add_named_class(char letter, bool either, cake_chars *out)
{
    static const cake_char_range digits[] = {{'0', '9'}},
                                 words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                                 spaces[] = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                                             {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                                             {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}},
                                 others[] = {{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}};
    if (letter == 'd')
        add_ranges(digits, 1, out);
    else if (letter == 'w')
        add_ranges(words, 4, out);
    else
        add_ranges(spaces, sizeof spaces / sizeof *spaces, out);
    if (either && letter == 'd')
        add_named("Nd", out);
    if (either && letter == 'w') {
        add_named("L", out);
        add_named("N", out);
    }
    if (either && letter == 's')
        add_ranges(others, 3, out);
}

/* \d, \w, \s and their opposites, which add a set: the characters that are in it for ECMA-262 and for Python;
 * within [^...], which leaves them out, those that are in it for one of them. False: the letter is none of
 * them. */
static bool add_class(char letter, bool left_out, cake_chars *out)
{
    const bool opposite = !(letter & 0x20);
    cake_chars set = {0};
    letter |= 0x20;
    if (letter != 'd' && letter != 'w' && letter != 's')
        return false;
    add_named_class(letter, opposite != left_out, &set);
    if (opposite)
        cake_chars_negate(&set);
    cake_chars_add_set(out, &set);
    cake_chars_free(&set);
    return true;
}

static bool read_hex(reader *r, int digits, uint32_t *code)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    uint32_t value = 0;
    for (int i = 0; i < digits; i++) {
        const char c = r->at + (size_t)i < r->len ? r->text[r->at + (size_t)i] : 0;
        if (!c || !strchr(hex, c))
            return false;
        value = 16 * value + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    r->at += (size_t)digits;
    *code = value;
    return true;
}

static cake_err read_unicode(reader *r, uint32_t *code)
{
    uint32_t low;
    if (take(r, "{")) {
        int n = 0;
        while (r->at + (size_t)n < r->len && r->text[r->at + (size_t)n] != '}')
            n++;
        if (n < 1 || n > 6 || !read_hex(r, n, code) || !take(r, "}") || *code > CAKE_LAST_CHAR)
            return wrong(r, "\\u{...} needs the number of a character");
        return CAKE_OK;
    }
    if (!read_hex(r, 4, code))
        return wrong(r, "\\u needs four hexadecimal digits");
    if (*code >= 0xD800 && *code < 0xDC00 && take(r, "\\u")) {
        if (!read_hex(r, 4, &low) || low < 0xDC00 || low > 0xDFFF)
            return wrong(r, "half of a surrogate pair");
        *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    }
    return CAKE_OK;
}

/* What follows a backslash: a set, or one character (then *code, and *one is true). */
static cake_err read_escape(reader *r, cake_chars *set, uint32_t *code, bool *one)
{
    static const char from[] = "tnvfr0", to[] = "\t\n\v\f\r";
    *one = false;
    if (r->at == r->len)
        return wrong(r, "a backslash at the end");
    const char c = r->text[r->at++];
    if (add_class(c, r->left_out, set)) {
        *(c & 0x20 ? &r->lower : &r->upper) |= 1u << ((c | 0x20) - 'a');
        return CAKE_OK;
    }
    if (c == 'p' || c == 'P')
        return read_property(r, c == 'P', set);
    *one = true;
    if (c == 'u')
        return read_unicode(r, code);
    if (c == 'x')
        return read_hex(r, 2, code) ? CAKE_OK : wrong(r, "\\x needs two hexadecimal digits");
    if (c == 'c' && r->at < r->len && ((r->text[r->at] | 0x20) >= 'a' && (r->text[r->at] | 0x20) <= 'z')) {
        *code = (uint32_t)r->text[r->at++] & 0x1F;
        return CAKE_OK;
    }
    const char *at = strchr(from, c);
    if (c && at) {
        *code = (uint8_t)to[at - from];
        return CAKE_OK;
    }
    if ((c >= '1' && c <= '9') || c == 'k')
        return r->at--, wrong(r, "references back to a group are not supported");
    if (c == 'b' || c == 'B')
        return r->at--, wrong(r, "word boundaries (\\b, \\B) are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return r->at--, wrong(r, "this escape is unknown");
    r->at--;
    return next_char(r, code);
}

/* ---- classes */

static cake_err read_class_item(reader *r, cake_chars *set, uint32_t *code, bool *one)
{
    *one = true;
    if (!take(r, "\\"))
        return next_char(r, code);
    if (take(r, "b")) {
        *code = '\b';
        return CAKE_OK;
    }
    return read_escape(r, set, code, one);
}

static cake_err read_class(reader *r, cake_chars *out)
{
    const bool negated = r->left_out = take(r, "^");
    r->lower = r->upper = 0;
    cake_err err = CAKE_OK;
    while (!err && !looking(r, "]")) {
        uint32_t lo = 0, hi = 0;
        bool one, other = true;
        if (r->at == r->len)
            return wrong(r, "a class without ]");
        err = read_class_item(r, out, &lo, &one);
        hi = lo;
        if (!err && one && looking(r, "-") && r->at + 1 < r->len && r->text[r->at + 1] != ']') {
            r->at++;
            err = read_class_item(r, out, &hi, &other);
            if (!err && !other) { /* [a-\d]: three items */
                cake_chars_add(out, '-', '-');
                hi = lo;
            }
        }
        if (!err && hi < lo)
            return wrong(r, "a range that ends before it begins");
        if (!err && one)
            cake_chars_add(out, lo, hi);
    }
    r->left_out = false;
    if (r->lower & r->upper) /* [\s\S] is all there is */
        cake_chars_add(out, 0, CAKE_LAST_CHAR);
    if (err)
        return err;
    r->at++;
    if (negated)
        cake_chars_negate(out);
    else
        cake_chars_settle(out);
    return CAKE_OK;
}

/* ---- the rest */

static cake_err read_alternatives(reader *r, cake_expr **out);

static cake_err read_group(reader *r, cake_expr **out)
{
    if (take(r, "?")) {
        if (looking(r, "=") || looking(r, "!") || looking(r, "<=") || looking(r, "<!"))
            return wrong(r, "looking ahead or behind is not supported");
        if (take(r, "<")) {
            const char *end = memchr(r->text + r->at, '>', r->len - r->at);
            if (!end)
                return wrong(r, "a name without >");
            r->at = (size_t)(end + 1 - r->text);
        } else if (!take(r, ":")) {
            return wrong(r, "this kind of group is not supported");
        }
    }
    if (++r->depth > DEPTH)
        return wrong(r, "groups are nested too deeply");
    cake_err err = read_alternatives(r, out);
    r->depth--;
    if (!err && !take(r, ")"))
        err = wrong(r, "a group without )");
    return err;
}

static cake_err read_atom(reader *r, cake_expr **out)
{
    uint32_t code;
    bool one = true;
    if (take(r, "("))
        return read_group(r, out);
    if (looking(r, "*") || looking(r, "+") || looking(r, "?") || looking(r, "{"))
        return wrong(r, "nothing to repeat");
    if (looking(r, "^") || looking(r, "$"))
        return wrong(r, "^ and $ are supported at the ends only");
    if (looking(r, "]") || looking(r, "}"))
        return wrong(r, "it needs a backslash here");
    cake_expr *e = *out = cake_expr_new(r->exprs, CAKE_EXPR_CHARS);
    if (take(r, "["))
        return read_class(r, &e->chars);
    cake_err err = CAKE_OK;
    if (take(r, ".")) {
        static const uint32_t ends[] = {'\n', '\r', 0x2028, 0x2029};
        for (int i = 0; i < 4; i++)
            cake_chars_add(&e->chars, ends[i], ends[i]);
        cake_chars_negate(&e->chars);
        return CAKE_OK;
    }
    err = take(r, "\\") ? read_escape(r, &e->chars, &code, &one) : next_char(r, &code);
    if (!err && one)
        cake_chars_add(&e->chars, code, code);
    cake_chars_settle(&e->chars);
    return err;
}

static bool read_count(reader *r, int *count)
{
    const size_t from = r->at;
    *count = 0;
    for (; r->at < r->len && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
        *count = *count > MOST_TIMES ? *count : 10 * *count + (r->text[r->at] - '0');
    return r->at > from;
}

static cake_err read_times(reader *r, cake_expr **e)
{
    int min = 1, max = 1;
    if (take(r, "*"))
        min = 0, max = -1;
    else if (take(r, "+"))
        max = -1;
    else if (take(r, "?"))
        min = 0;
    else if (take(r, "{")) {
        if (!read_count(r, &min))
            return wrong(r, "{ needs a number, or a backslash before it");
        max = min;
        if (take(r, ",") && !read_count(r, &max))
            max = -1;
        if (!take(r, "}"))
            return wrong(r, "{ without }");
        if (max >= 0 && max < min)
            return wrong(r, "the numbers in {} are out of order");
        if (min > MOST_TIMES || max > MOST_TIMES)
            return wrong(r, "a number in {} is above 100000");
    } else {
        return CAKE_OK;
    }
    take(r, "?"); /* the language is the same */
    if (looking(r, "+") || looking(r, "*"))
        return wrong(r, "nothing to repeat");
    *e = cake_expr_repeat(r->exprs, *e, min, max);
    return CAKE_OK;
}

static cake_expr *anything(reader *r)
{
    cake_expr *any = cake_expr_new(r->exprs, CAKE_EXPR_CHARS);
    cake_chars_negate(&any->chars);
    return cake_expr_repeat(r->exprs, any, 0, -1);
}

/* One alternative. At the top it may begin with ^ and end with $; without them anything may stand there. */
static cake_err read_sequence(reader *r, cake_expr **out)
{
    cake_expr *seq = *out = cake_expr_new(r->exprs, CAKE_EXPR_SEQ);
    const bool top = !r->depth;
    bool begins = false, ends = false;
    while (top && take(r, "^"))
        begins = true;
    if (top && !begins && !r->whole)
        cake_expr_add(seq, anything(r));
    while (r->at < r->len && !looking(r, "|") && !looking(r, ")")) {
        cake_expr *item = NULL;
        if (top && looking(r, "$")) {
            while (take(r, "$"))
                ends = true;
            if (r->at < r->len && !looking(r, "|"))
                return wrong(r, "^ and $ are supported at the ends only");
            break;
        }
        cake_err err = read_atom(r, &item);
        err = err ? err : read_times(r, &item);
        if (err)
            return err;
        cake_expr_add(seq, item);
    }
    if (top && !ends && !r->whole)
        cake_expr_add(seq, anything(r));
    return CAKE_OK;
}

static cake_err read_alternatives(reader *r, cake_expr **out)
{
    cake_expr *alt = *out = cake_expr_new(r->exprs, CAKE_EXPR_ALT);
    do {
        cake_expr *seq = NULL;
        cake_err err = read_sequence(r, &seq);
        if (err)
            return err;
        cake_expr_add(alt, seq);
    } while (take(r, "|"));
    if (alt->n == 1)
        *out = alt->item[0];
    return CAKE_OK;
}

cake_err cake_regex_parse(const char *text, size_t len, bool whole, cake_exprs *exprs, cake_expr **out,
                          cake_fault *fault)
{
    reader r = {.text = text, .len = len, .exprs = exprs, .fault = fault, .whole = whole};
    cake_err err = read_alternatives(&r, out);
    if (!err && r.at < r.len)
        err = wrong(&r, "a ) without (");
    return err;
}
