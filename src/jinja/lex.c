/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a template's source. Out: its tokens, after the treatment of white space by trim_blocks, lstrip_blocks
 * and the signs - and +.
 * Invariant: every token has its line; the last one is CAKE_LEX_END.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

#define MAX_DEPTH 64 /* nesting of brackets in an expression */

typedef struct lexer {
    cake_jinja *jinja;
    char *text; /* [len], newlines normalized */
    size_t len, at;
    int line;
    bool line_start; /* the previous token ended with a newline */
    cake_lex *out;
    size_t n, cap;
} lexer;

static cake_err fail_at(const lexer *x, const char *what)
{
    return cake_fail("jinja", "%s:%d: %s", x->jinja->where, x->line, what);
}

static cake_lex *push(lexer *x, cake_lex_kind kind, size_t at, size_t len)
{
    CAKE_RESERVE(x->out, x->n, x->cap);
    x->out[x->n] = (cake_lex){.kind = kind, .line = x->line, .at = x->text + at, .len = len};
    return &x->out[x->n++];
}

/* Moves to `to`, counting lines. */
static void advance(lexer *x, size_t to)
{
    for (; x->at < to; x->at++)
        x->line += x->text[x->at] == '\n';
    x->line_start = to && x->text[to - 1] == '\n';
}

static bool looking_at(const lexer *x, size_t at, const char *text)
{
    size_t n = strlen(text);
    return x->len - at >= n && !memcmp(x->text + at, text, n);
}

/* Bytes of white space at `at` (forward) or before it (backward). */
static size_t skip_space(const lexer *x, size_t at)
{
    uint32_t code;
    for (int n;
         at < x->len && (n = cake_utf8_next(x->text + at, x->len - at, &code)) && cake_text_space(code);)
        at += (size_t)n;
    return at;
}

static size_t trim_end(const lexer *x, size_t from, size_t to)
{
    while (to > from) {
        uint32_t code = 0;
        size_t at = to - 1;
        while (at > from && ((unsigned char)x->text[at] & 0xC0) == 0x80)
            at--;
        if (!cake_utf8_next(x->text + at, to - at, &code) || !cake_text_space(code))
            break;
        to = at;
    }
    return to;
}

/* The end of the data at x->at: the next tag. */
static size_t find_tag(const lexer *x)
{
    for (size_t i = x->at; i + 1 < x->len; i++)
        if (x->text[i] == '{' && (x->text[i + 1] == '{' || x->text[i + 1] == '%' || x->text[i + 1] == '#'))
            return i;
    return x->len;
}

/* Pushes the data before a tag, without what the tag's sign and lstrip_blocks remove from its end. */
static void push_data(lexer *x, size_t to, char sign, bool block)
{
    size_t from = x->at, end = to;
    if (sign == '-') {
        end = trim_end(x, from, to);
    } else if (block && sign != '+') {
        size_t line = to;
        while (line > from && x->text[line - 1] != '\n')
            line--;
        if ((line > from || x->line_start) && line < to && skip_space(x, line) >= to)
            end = line;
    }
    if (end > from)
        push(x, CAKE_LEX_DATA, from, end - from)->value = cake_value_text(x->text + from, end - from);
    advance(x, to);
}

/* Where the data continues after a tag that ended before `at` with this sign. */
static size_t after_tag(const lexer *x, size_t at, char sign, bool block)
{
    if (sign == '-')
        return skip_space(x, at);
    return block && sign != '+' && at < x->len && x->text[at] == '\n' ? at + 1 : at;
}

/* Digits with single underscores between them. */
static size_t digits(const lexer *x, size_t at, const char *set)
{
    size_t i = at;
    while (i < x->len &&
           (strchr(set, x->text[i]) ||
            (i > at && x->text[i] == '_' && i + 1 < x->len && strchr(set, x->text[i + 1]))) &&
           x->text[i])
        i++;
    return i;
}

static cake_err number(lexer *x)
{
    static const char decimal[] = "0123456789";
    size_t end = digits(x, x->at, decimal), start = x->at;
    bool real = false,
         dotted = x->n && x->out[x->n - 1].kind == CAKE_LEX_SIGN && x->out[x->n - 1].at[0] == '.';
    int base = 10;
    if (x->text[start] == '0' && start + 2 < x->len && x->text[start + 1] &&
        strchr("xXoObB", x->text[start + 1])) {
        int kind = x->text[start + 1] | 0x20;
        base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
        end = digits(x, start + 2, base == 16 ? "0123456789abcdefABCDEF" : base == 8 ? "01234567" : "01");
    } else if (!dotted) {
        size_t fraction = end < x->len && x->text[end] == '.' ? digits(x, end + 1, decimal) : end;
        if (fraction > end + 1)
            end = fraction, real = true;
        size_t e = end < x->len && (x->text[end] | 0x20) == 'e' ? end + 1 : 0;
        if (e && e < x->len && strchr("+-", x->text[e]) && x->text[e])
            e++;
        if (e && digits(x, e, decimal) > e)
            end = digits(x, e, decimal), real = true;
    }
    char plain[64];
    size_t n = 0;
    for (size_t i = base == 10 ? start : start + 2; i < end && n + 1 < sizeof plain; i++)
        if (x->text[i] != '_')
            plain[n++] = x->text[i];
    plain[n] = 0;
    errno = 0;
    cake_value v = real ? cake_value_real(strtod(plain, NULL)) : cake_value_int(strtoll(plain, NULL, base));
    if (!real && errno && base == 10 && n + 1 < sizeof plain) {
        char *kept = cake_jinja_arena_take(&x->jinja->arena, n);
        v = cake_value_digits(memcpy(kept, plain, n), n);
        errno = 0;
    }
    if (n + 1 == sizeof plain || (!real && errno))
        return fail_at(x, "a number that is too large");
    push(x, real ? CAKE_LEX_REAL : CAKE_LEX_INT, start, end - start)->value = v;
    advance(x, end);
    return CAKE_OK;
}

/* Reads one escape of a string, after the backslash; returns its bytes. Unknown ones stay as they are. */
static size_t unescape(const char *p, size_t len, cake_buf *out)
{
    static const char plain[] = "n\nt\tr\r\\\\'\'\"\"a\ab\bf\fv\v";
    for (size_t i = 0; i + 1 < sizeof plain; i += 2) {
        if (p[0] == plain[i]) {
            cake_buf_addc(out, plain[i + 1]);
            return 1;
        }
    }
    size_t want = p[0] == 'x' ? 2 : p[0] == 'u' ? 4 : p[0] == 'U' ? 8 : 0, n = 1;
    uint32_t code = 0;
    if (p[0] == '\n')
        return 1;
    if (p[0] >= '0' && p[0] <= '7') {
        for (n = 0; n < 3 && n < len && p[n] >= '0' && p[n] <= '7'; n++)
            code = 8 * code + (uint32_t)(p[n] - '0');
    } else {
        for (; n <= want && n < len && strchr("0123456789abcdefABCDEF", p[n]) && p[n]; n++)
            code = 16 * code + (uint32_t)(p[n] <= '9' ? p[n] - '0' : (p[n] | 0x20) - 'a' + 10);
        if (!want || n <= want || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            cake_buf_addc(out, '\\');
            return 0;
        }
    }
    char text[4];
    cake_buf_add(out, text, (size_t)cake_utf8_put(text, code));
    return n;
}

static cake_err string(lexer *x)
{
    char quote = x->text[x->at];
    size_t start = x->at + 1, end = start;
    while (end < x->len && x->text[end] != quote)
        end += x->text[end] == '\\' ? 2 : 1;
    if (end >= x->len)
        return fail_at(x, "a string that does not end");
    cake_buf text = {0};
    for (size_t i = start; i < end;) {
        if (x->text[i] != '\\')
            cake_buf_addc(&text, x->text[i++]);
        else
            i += 1 + unescape(x->text + i + 1, end - i - 1, &text);
    }
    char *kept = cake_jinja_arena_take(&x->jinja->arena, text.len + 1);
    if (text.len)
        memcpy(kept, text.data, text.len);
    push(x, CAKE_LEX_TEXT, start, end - start)->value = cake_value_text(kept, text.len);
    cake_buf_free(&text);
    advance(x, end + 1);
    return CAKE_OK;
}

static size_t name_end(const lexer *x, size_t at)
{
    uint32_t code;
    for (int n; at < x->len && (n = cake_utf8_next(x->text + at, x->len - at, &code));) {
        bool word = code < 0x80 ? strchr("_", (int)code) || (code >= '0' && code <= '9') ||
                                      ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')
                                : cake_char_is_word(code);
        if (!word || !code)
            break;
        at += (size_t)n;
    }
    return at;
}

static cake_err sign(lexer *x, char *open, size_t *depth)
{
    static const char *const two[] = {"==", "!=", ">=", "<=", "//", "**"};
    char c = x->text[x->at];
    size_t n = 1;
    if (!c || !strchr("+-/*%~[](){}=<>.:|,;!", c))
        return fail_at(x, "a character that has no meaning in an expression");
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (looking_at(x, x->at, two[i]))
            n = 2;
    if (n == 1 && c == '!')
        return fail_at(x, "a ! that is not part of !=");
    if (strchr("([{", c)) {
        if (*depth == MAX_DEPTH)
            return fail_at(x, "brackets nest too deeply");
        open[(*depth)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c)) {
        if (!*depth || open[*depth - 1] != c)
            return fail_at(x, "a bracket that closes nothing");
        (*depth)--;
    }
    push(x, CAKE_LEX_SIGN, x->at, n);
    advance(x, x->at + n);
    return CAKE_OK;
}

/* Reads the inside of {{ }} or {% %}, and its end. */
static cake_err inside(lexer *x, bool block)
{
    char open[MAX_DEPTH];
    size_t depth = 0;
    const char *close = block ? "%}" : "}}";
    cake_err err = CAKE_OK;
    while (!err) {
        advance(x, skip_space(x, x->at));
        if (x->at >= x->len)
            return fail_at(x, block ? "a {% that is not closed" : "a {{ that is not closed");
        char c = x->text[x->at], sign_of = c == '-' || (block && c == '+') ? c : 0;
        if (!depth && looking_at(x, x->at + (sign_of ? 1 : 0), close)) {
            push(x, CAKE_LEX_CLOSE, x->at, 2);
            advance(x, after_tag(x, x->at + (sign_of ? 3 : 2), sign_of, block));
            return CAKE_OK;
        }
        size_t end = name_end(x, x->at);
        if (c >= '0' && c <= '9') {
            err = number(x);
        } else if (c == '\'' || c == '"') {
            err = string(x);
        } else if (end > x->at) {
            push(x, CAKE_LEX_NAME, x->at, end - x->at);
            advance(x, end);
        } else {
            err = sign(x, open, &depth);
        }
    }
    return err;
}

/* Skips {# ... #}, with x->at after the {#. */
static cake_err comment(lexer *x)
{
    const char *end = memmem(x->text + x->at, x->len - x->at, "#}", 2);
    if (!end)
        return fail_at(x, "a {# that is not closed");
    size_t at = (size_t)(end - x->text);
    char sign_of = at > x->at ? x->text[at - 1] : 0;
    advance(x, after_tag(x, at + 2, sign_of, true));
    return CAKE_OK;
}

/* Whether {% name %} is at `at`; *end: its end, *open and *close: its signs. */
static bool word_tag(const lexer *x, size_t at, const char *name, size_t *end, char *open, char *close)
{
    *open = *close = 0;
    if (!looking_at(x, at, "{%"))
        return false;
    at += 2;
    if (at < x->len && (x->text[at] == '-' || x->text[at] == '+'))
        *open = x->text[at++];
    at = skip_space(x, at);
    if (!looking_at(x, at, name))
        return false;
    at = skip_space(x, at + strlen(name));
    if (at < x->len && (x->text[at] == '-' || x->text[at] == '+'))
        *close = x->text[at++];
    *end = at + 2;
    return looking_at(x, at, "%}");
}

/* {% raw %} at x->at: everything up to {% endraw %} is data. */
static cake_err raw(lexer *x, size_t body, char close)
{
    size_t end;
    char open, last;
    advance(x, close == '-' ? skip_space(x, body) : body);
    for (size_t at = x->at; at + 1 < x->len; at++) {
        if (!word_tag(x, at, "endraw", &end, &open, &last))
            continue;
        push_data(x, at, open, true);
        advance(x, after_tag(x, end, last, true));
        return CAKE_OK;
    }
    return fail_at(x, "a {% raw %} without {% endraw %}");
}

static cake_err tag(lexer *x)
{
    size_t at = find_tag(x), end;
    char kind = at < x->len ? x->text[at + 1] : 0, open, close;
    char sign_of = at + 2 < x->len && strchr("-+", x->text[at + 2]) ? x->text[at + 2] : 0;
    push_data(x, at, sign_of, kind && kind != '{');
    if (!kind)
        return CAKE_OK;
    if (kind == '%' && word_tag(x, at, "raw", &end, &open, &close))
        return raw(x, end, close);
    if (kind != '#')
        push(x, kind == '{' ? CAKE_LEX_VARIABLE : CAKE_LEX_BLOCK, at, 2);
    advance(x, at + (sign_of ? 3 : 2));
    return kind == '#' ? comment(x) : inside(x, kind == '%');
}

/* Normalizes newlines to \n and removes one at the very end. */
static void normalize(lexer *x, const char *source, size_t len)
{
    x->text = cake_jinja_arena_take(&x->jinja->arena, len + 1);
    for (size_t i = 0; i < len; i++) {
        if (source[i] == '\r' && i + 1 < len && source[i + 1] == '\n')
            continue;
        x->text[x->len++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (x->len && x->text[x->len - 1] == '\n')
        x->len--;
    x->text[x->len] = 0;
}

cake_err cake_lex_all(cake_jinja *jinja, const char *source, size_t len, cake_lex **out)
{
    lexer x = {.jinja = jinja, .line = 1, .line_start = true};
    normalize(&x, source, len);
    cake_err err = CAKE_OK;
    while (!err && x.at < x.len)
        err = tag(&x);
    push(&x, CAKE_LEX_END, x.len, 0);
    if (err)
        free(x.out);
    else
        *out = x.out;
    return err;
}
