/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns in Oniguruma's Ruby syntax, said in PCRE2's.
 */
#ifndef CAKE_TEXT_REGEX_H
#define CAKE_TEXT_REGEX_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json_path.h"

/* Appends the pattern as PCRE2 understands it (UTF, UCP and multiline on) to *out. Fails, naming the place,
 * where it holds something that cannot be said. text: UTF-8, [len]. */
cake_err cake_regex_translate(const cake_json_path *spot, const char *text, size_t len, cake_buf *out);

#endif
