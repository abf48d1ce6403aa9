/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind of an input by its first bytes, whatever its name: data that would give an error record for every
 * line is reported once, before anything else is done.
 */
#ifndef CAKE_PROMPT_SNIFF_H
#define CAKE_PROMPT_SNIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Fails unless head [n] is, or may be, the start of text; the message says what it is and what to do. name:
 * of the input. */
cake_err cake_sniff_text(const char *name, const char *head, size_t n);
/* Fails unless the first non-blank line [len], without its end, is one of JSON Lines. whole: it is the only
 * one. */
cake_err cake_sniff_line(const char *name, const char *line, size_t len, bool whole);
/* Warns if the first line of text looks like a request of JSON Lines: it will be taken as a prompt. */
void cake_sniff_prompt(const char *name, const char *line, size_t len);
/* A command that converts a file with that ending, such as ".csv", to JSON Lines; NULL: unknown. */
const char *cake_sniff_ending(const char *ending);

#endif
