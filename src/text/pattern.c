/* SPDX-License-Identifier: Apache-2.0
 *
 * In: patterns in Oniguruma's syntax. Out: matches. The only file that includes PCRE2.
 * Invariant: a pattern is read-only once compiled; a match is bounded by MATCH_LIMIT.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "text/regex.h"

/* Maximum steps of one match. Long runs of spaces need about one a character; a pattern that backtracks
 * without end is stopped within a second. */
#define MATCH_LIMIT 20000000

struct cake_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
    bool fast; /* compiled to machine code (JIT) */
};

cake_err cake_pattern_open(const cake_json_path *path, const char *text, size_t len, bool literal,
                           cake_pattern **out)
{
    cake_buf source = {0};
    cake_err err = CAKE_OK;
    if (literal)
        cake_buf_add(&source, text, len);
    else if (strlen(text) != len)
        err = cake_json_path_fail(path, "the pattern contains a NUL at byte %zu; write \\x00", strlen(text));
    else
        err = cake_regex_translate(path, text, len, &source);
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
            err = cake_json_path_fail(path, "the pattern cannot be used: %s (at byte %zu of %.200s)",
                                      (const char *)why, (size_t)at, source.data);
        }
    }
    cake_buf_free(&source);
    if (err)
        return err;
    cake_pattern *pattern = cake_alloc(1, sizeof *pattern);
    pattern->fast = !pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
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

/* The first match at or after s->at; CAKE_END: none. */
static cake_err find(const cake_pattern *pattern, cake_search *s, cake_fault *fault)
{
    if (!*s->match)
        *s->match = pcre2_match_data_create(1, NULL);
    if (!*s->match)
        cake_die("out of memory: a match");
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (pattern->fast)
        rc =
            pcre2_jit_match(pattern->code, (PCRE2_SPTR)s->text, s->len, s->at, 0, *s->match, pattern->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its frames on the heap */
        rc = pcre2_match(pattern->code, (PCRE2_SPTR)s->text, s->len, s->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         *s->match, pattern->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
        return CAKE_END;
    if (rc < 0) {
        PCRE2_UCHAR why[160];
        pcre2_get_error_message(rc, why, sizeof why);
        return cake_fault_set(fault, NULL,
                              "the tokenizer's pattern stopped at byte %zu of the text: %s; shorten the text",
                              s->at, (const char *)why);
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(*s->match);
    s->start = ends[0];
    s->end = ends[1] < ends[0] ? ends[0] : ends[1]; /* \K can make the end precede the start */
    return CAKE_OK;
}

cake_err cake_pattern_next(const cake_pattern *pattern, cake_search *s, cake_fault *fault)
{
    while (s->at <= s->len) {
        cake_err err = find(pattern, s, fault);
        if (err)
            return err;
        if (s->start != s->end || s->last != s->end) {
            s->at = s->last = s->end;
            return CAKE_OK;
        }
        s->at += s->at < s->len ? (size_t)cake_utf8_next(s->text + s->at, s->len - s->at, NULL) : 1;
    }
    return CAKE_END;
}

cake_err cake_pattern_scripts(const cake_json_path *path, const char *const *names, size_t n, uint8_t *script)
{
    cake_buf source = {0}, text = {0};
    int code = 0;
    PCRE2_SIZE at = 0;
    cake_buf_adds(&source, "[\\p{Cn}\\p{Co}]++"); /* the bulk of the code points, skipped quickly */
    for (size_t i = 0; i < n; i++)
        cake_buf_addf(&source, "|(\\p{sc:%s}++)", names[i]);
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)source.data, source.len, PCRE2_UTF, &code, &at, NULL);
    cake_buf_free(&source);
    if (!compiled)
        return cake_json_path_fail(path,
                                   "this build's PCRE2 does not support scripts: expected 10.40 or later");
    pcre2_match_data *match = pcre2_match_data_create((uint32_t)n + 1, NULL);
    if (!match)
        cake_die("out of memory: a match");
    for (uint32_t c = 0; c < 0x110000; c++) {
        char bytes[4];
        if (c < 0xD800 || c > 0xDFFF)
            cake_buf_add(&text, bytes, (size_t)cake_utf8_put(bytes, c));
    }
    int rc;
    for (size_t from = 0; (rc = pcre2_match(compiled, (PCRE2_SPTR)text.data, text.len, from,
                                            PCRE2_NO_UTF_CHECK, match, NULL)) > 0;) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
        for (size_t i = ends[0], k; i < ends[1]; i += k) {
            uint32_t c = 0;
            k = (size_t)cake_utf8_next(text.data + i, ends[1] - i, &c);
            script[c] = (uint8_t)(rc - 1); /* 0: the first alternative, which has no number */
        }
        from = ends[1];
    }
    pcre2_match_data_free(match);
    pcre2_code_free(compiled);
    cake_buf_free(&text);
    return CAKE_OK;
}

void cake_pattern_match_free(void *match)
{
    pcre2_match_data_free(match);
}
