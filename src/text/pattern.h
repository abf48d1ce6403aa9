/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of tokenizer.json: Oniguruma's Ruby syntax over Unicode characters, run by PCRE2. Where
 * the two differ the pattern is rewritten; what cannot be rewritten is refused.
 */
#ifndef CAKE_TEXT_PATTERN_H
#define CAKE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/json_path.h"

typedef struct cake_pattern cake_pattern;

/* literal: the text is matched as it is. */
cake_err cake_pattern_open(const cake_json_path *path, const char *text, size_t len, bool literal,
                           cake_pattern **out);
/* Finds the script of each character: 1 + its index in the names, 0: none of them. script: [0x110000] */
cake_err cake_pattern_scripts(const cake_json_path *path, const char *const *names, size_t n,
                              uint8_t *script);
void cake_pattern_close(cake_pattern *pattern);
/* The state of a search in a text of valid UTF-8; set text, len, match and last = SIZE_MAX at the start. */
typedef struct cake_search {
    const char *text; /* borrowed */
    size_t len;
    void **
        match; /* memory of this thread, for any pattern: NULL at first, freed with cake_pattern_match_free */
    size_t at, last;   /* where the next search begins; end of the previous match */
    size_t start, end; /* the match that was found */
} cake_search;

/* Finds the next match; CAKE_END: none. An empty match at the end of the previous one is skipped. */
cake_err cake_pattern_next(const cake_pattern *pattern, cake_search *search, cake_fault *fault);
void cake_pattern_match_free(void *match);

#endif
