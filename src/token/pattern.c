/* SPDX-License-Identifier: Apache-2.0
 *
 * In: patterns in Oniguruma's syntax. Out: matches. The only file that includes PCRE2.
 *
 * What differs, and is rewritten: \s is Unicode's White_Space (PCRE2 adds U+180E), \w has marks and connectors
 * (PCRE2 has not), \h is a hexadecimal digit, \uHHHH is a character, ^ and $ match at every line.
 * What is refused: classes inside classes, their intersection, and the option m, which means something else.
 * Invariant: a pattern is read-only once compiled; a match is bounded by MATCH_LIMIT.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "token/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

/* Steps of one match. Long runs of spaces need about one a character; a pattern that backtracks without end is
 * stopped within a second. */
#define MATCH_LIMIT 20000000

struct cake_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

#define SPACE "\\x{9}-\\x{D}\\x{85}\\p{Z}"
#define WORD  "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}"
#define HEX   "0-9a-fA-F"

/* The escape at p (behind the backslash) as PCRE2 spells it; returns how many bytes of the pattern it was. */
static size_t add_escape(cake_buf *out, const char *p, size_t len, bool in_class)
{
    static const struct {
        char letter;
        const char *in_class, *alone;
    } escapes[] = {
        {'s', SPACE, "[" SPACE "]"}, {'S', "\\S", "[^" SPACE "]"}, {'w', WORD, "[" WORD "]"},
        {'W', "\\W", "[^" WORD "]"}, {'h', HEX, "[" HEX "]"},
    };
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (p[0] == escapes[i].letter) {
            cake_buf_adds(out, in_class ? escapes[i].in_class : escapes[i].alone);
            return 1;
        }
    }
    if (p[0] == 'u' && len >= 5 && strspn(p + 1, "0123456789abcdefABCDEF") >= 4) {
        cake_buf_addf(out, "\\x{%.4s}", p + 1);
        return 5;
    }
    cake_buf_addc(out, '\\');
    cake_buf_addc(out, p[0]);
    return 1;
}

/* What of Oniguruma's syntax begins at p and cannot be said in PCRE2's; NULL: nothing. */
static const char *refused(const char *p, bool in_class)
{
    if (in_class && p[0] == '[' && p[1] != ':')
        return "a character class inside another";
    if (in_class && p[0] == '&' && p[1] == '&')
        return "the intersection of character classes";
    if (!in_class && p[0] == '(' && p[1] == '?' && p[2 + strspn(p + 2, "ix-")] == 'm')
        return "the option m";
    return NULL;
}

static cake_err rewrite(const cake_spot *spot, const char *text, size_t len, cake_buf *out)
{
    bool in_class = false;
    for (size_t i = 0; i < len; i++) {
        const char *why = refused(text + i, in_class);
        if (why)
            return cake_spot_fail(spot, "at byte %zu of the pattern: %s is not supported", i, why);
        if (text[i] == '\\' && i + 1 < len) {
            i += add_escape(out, text + i + 1, len - i - 1, in_class);
            continue;
        }
        cake_buf_addc(out, text[i]);
        if (in_class && text[i] == '[') { /* [:alpha:] */
            size_t end = strcspn(text + i, "]");
            cake_buf_add(out, text + i + 1, end - (i + end < len ? 0 : 1));
            i += end;
        } else if (!in_class && text[i] == '[') {
            in_class = true;
            if (text[i + 1] == '^')
                cake_buf_addc(out, text[++i]);
        } else if (text[i] == ']') {
            in_class = false;
        }
    }
    return CAKE_OK;
}

cake_err cake_pattern_open(const cake_spot *spot, const char *text, size_t len, bool literal,
                           cake_pattern **out)
{
    cake_buf source = {0};
    cake_err err = CAKE_OK;
    if (literal)
        cake_buf_add(&source, text, len);
    else if (strlen(text) != len)
        err = cake_spot_fail(spot, "the pattern holds a NUL at byte %zu; write \\x00", strlen(text));
    else
        err = rewrite(spot, text, len, &source);
    if (!err)
        cake_buf_addc(&source, 0); /* so that data is never NULL */
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *compiled = NULL;
    if (!err) {
        uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
        compiled = pcre2_compile((PCRE2_SPTR)source.data, source.len - 1, options, &code, &at, NULL);
        if (!compiled) {
            PCRE2_UCHAR why[160];
            pcre2_get_error_message(code, why, sizeof why);
            err = cake_spot_fail(spot, "the pattern cannot be used: %s (at byte %zu of %.200s)",
                                 (const char *)why, (size_t)at, source.data);
        }
    }
    cake_buf_free(&source);
    if (err)
        return err;
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* where there is no JIT, the interpreter does it */
    cake_pattern *pattern = cake_alloc(1, sizeof *pattern);
    pattern->code = compiled;
    pattern->limits = pcre2_match_context_create(NULL);
    if (!pattern->limits)
        cake_die("out of memory: a pattern's context");
    pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
    *out = pattern;
    return CAKE_OK;
}

void cake_pattern_close(cake_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    pcre2_match_context_free(pattern->limits);
    free(pattern);
}

cake_err cake_pattern_next(const cake_pattern *pattern, const char *text, size_t len, size_t from,
                           void **match, size_t *start, size_t *end, cake_fault *fault)
{
    if (!*match)
        *match = pcre2_match_data_create(1, NULL);
    if (!*match)
        cake_die("out of memory: a match");
    int rc =
        pcre2_match(pattern->code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK, *match, pattern->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its frames on the heap */
        rc = pcre2_match(pattern->code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         *match, pattern->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
        return CAKE_END;
    if (rc < 0) {
        PCRE2_UCHAR why[160];
        pcre2_get_error_message(rc, why, sizeof why);
        return cake_fault_set(
            fault, NULL, "the tokenizer's pattern gives up at byte %zu of the text: %s; shorten the text",
            from, (const char *)why);
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(*match);
    *start = ends[0];
    *end = ends[1] < ends[0] ? ends[0] : ends[1]; /* \K can turn them round */
    return CAKE_OK;
}

void cake_pattern_match_free(void *match)
{
    pcre2_match_data_free(match);
}
