/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates patterns from Oniguruma's Ruby syntax to PCRE2's.
 */
#ifndef CAKE_TEXT_REGEX_H
#define CAKE_TEXT_REGEX_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json_path.h"

/* Appends the pattern in PCRE2's syntax (with UTF, UCP and multiline on) to *out. Fails, naming the place,
 * where that is impossible. text: UTF-8, [len]. */
cake_err cake_regex_translate(const cake_json_path *path, const char *text, size_t len, cake_buf *out);

#endif
