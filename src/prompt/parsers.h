/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsers of one line for each kind of file.
 */
#ifndef CAKE_PROMPT_PARSERS_H
#define CAKE_PROMPT_PARSERS_H

#include "prompt/prompt.h"

/* request has index and defaults set. task: what a simple line with a prompt asks for. */
void cake_jsonl_parse(const cake_names *names, cake_task task, const char *line, size_t len,
                      cake_request *request);

/* A line of a .txt file, with the escapes of base/escape.h; other backslashes stay. */
void cake_txt_parse(const char *line, size_t len, cake_request *request);
/* A prompt from the command line, taken unchanged. */
void cake_txt_take(const char *text, size_t len, cake_request *request);

#endif
