/* SPDX-License-Identifier: Apache-2.0
 *
 * What the first bytes of an input say of it, whatever its name says: data that would make an error record of
 * every line is told once, before anything is done.
 */
#ifndef CAKE_PROMPT_SNIFF_H
#define CAKE_PROMPT_SNIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Whether head [n] is that of text, or may be. If not, it is said what it is and what to do. name: of the
 * input, for messages. */
cake_err cake_sniff_text(const char *name, const char *head, size_t n);
/* The same of the first line [len] of JSON Lines that is not blank, without its end. whole: there is no
 * other. */
cake_err cake_sniff_line(const char *name, const char *line, size_t len, bool whole);
/* Warns if the first line of text is a request as JSON Lines have them: it is a prompt as it stands. */
void cake_sniff_prompt(const char *name, const char *line, size_t len);
/* What makes JSON Lines of a file whose name has that ending, as ".csv"; NULL: unknown. */
const char *cake_sniff_ending(const char *ending);

#endif
