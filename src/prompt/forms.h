/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of each kind of file becomes a request.
 */
#ifndef CAKE_PROMPT_FORMS_H
#define CAKE_PROMPT_FORMS_H

#include "prompt/prompt.h"
#include "prompt/seen.h"

#define CAKE_JSONL_WARNED 32

/* What lines of one file have in common. */
typedef struct cake_jsonl {
    const char *name; /* of the file, for messages */
    cake_seen seen;   /* every custom_id */
    uint64_t warned[CAKE_JSONL_WARNED];
    int n_warned;
} cake_jsonl;

/* request comes with index and defaults set. False: the line does not tell its form (no JSON object). */
bool cake_jsonl_parse(cake_jsonl *file, const char *line, size_t len, cake_request *request);
void cake_jsonl_free(cake_jsonl *file);

/* A line of a .txt file: \n, \t and \\ are escapes, other backslashes stay. */
void cake_text_parse(const char *line, size_t len, cake_request *request);
/* A prompt as it is, from the command line. */
void cake_text_take(const char *text, size_t len, cake_request *request);

#endif
