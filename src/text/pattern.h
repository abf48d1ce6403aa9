/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions as tokenizer.json means them: Oniguruma's Ruby syntax over Unicode characters, run by
 * PCRE2. Where the two disagree the pattern is rewritten; what cannot be rewritten is refused.
 */
#ifndef CAKE_TEXT_PATTERN_H
#define CAKE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/json_path.h"

typedef struct cake_pattern cake_pattern;

/* literal: the text stands for itself. */
cake_err cake_pattern_open(const cake_json_path *spot, const char *text, size_t len, bool literal,
                           cake_pattern **out);
/* Which of the scripts each character belongs to: its place among the names from 1, 0: to none. script:
 * [0x110000] */
cake_err cake_pattern_scripts(const cake_json_path *spot, const char *const *names, size_t n,
                              uint8_t *script);
void cake_pattern_close(cake_pattern *pattern);
/* Where a search stands. {0, SIZE_MAX} is the beginning. */
typedef struct cake_search {
    size_t at, last; /* last: end of the match before */
} cake_search;

/* The next match in text (valid UTF-8); CAKE_END if there is none. An empty match at the end of the one
 * before is none. *match is memory for this thread: NULL at first, kept for the next call, given back with
 * cake_pattern_match_free; any pattern may use it. */
cake_err cake_pattern_next(const cake_pattern *pattern, const char *text, size_t len, cake_search *search,
                           void **match, size_t *start, size_t *end, cake_fault *fault);
void cake_pattern_match_free(void *match);

#endif
