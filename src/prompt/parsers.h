/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of each kind of file becomes a request.
 */
#ifndef CAKE_PROMPT_PARSERS_H
#define CAKE_PROMPT_PARSERS_H

#include "prompt/prompt.h"

/* request comes with index and defaults set. */
void cake_jsonl_parse(const cake_names *names, const char *line, size_t len, cake_request *request);

/* A line of a .txt file, with the escapes of base/escape.h; other backslashes stay. */
void cake_txt_parse(const char *line, size_t len, cake_request *request);
/* A prompt as it is, from the command line. */
void cake_txt_take(const char *text, size_t len, cake_request *request);

#endif
