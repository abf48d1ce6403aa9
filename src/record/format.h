/* SPDX-License-Identifier: Apache-2.0
 *
 * A record becomes a line, without newline: one function per form, and what they share.
 */
#ifndef CAKE_RECORD_FORMAT_H
#define CAKE_RECORD_FORMAT_H

#include "formats/json.h"
#include "record/record.h"

void cake_line_simple(const cake_record_options *options, const cake_record *record, cake_buf *out);
void cake_line_openai(const cake_record_options *options, const cake_record *record, cake_buf *out);

/* The text of a JSONL line of either form, escaped as in .txt files; nothing for a failed one. False: it is
 * no JSON. */
bool cake_line_txt(const char *line, size_t len, cake_buf *out);

/* What a line of RESULTS says of its request. False: it is no JSON. */
typedef struct cake_line_info {
    int64_t index; /* -1: not said */
    bool failed;
    int64_t n_choice; /* 0: there is no list of them */
} cake_line_info;
bool cake_line_info_read(const char *line, size_t len, cake_line_info *out);
int64_t cake_line_read_index(const cake_json *line); /* -1: not said */

/* The value of `logprobs` of a choice, in the shape of chat.completion or of text_completion. */
void cake_line_logprobs_chat(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out);
void cake_line_logprobs_text(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out);

void cake_line_text(const cake_record *record, const cake_choice *choice,
                    cake_buf *out);                             /* with echo, quoted */
int64_t cake_line_completion_tokens(const cake_record *record); /* of all choices */
/* --timing: a member of the line. */
void cake_line_timing(const cake_record_options *options, const cake_record *record, cake_buf *out);
void cake_line_string(cake_buf *out, const char *text); /* NULL or "": null */
void cake_line_int(cake_buf *out, int64_t value);
void cake_line_ids(cake_buf *out, const int32_t *ids, int n);          /* [1, 2, 3] */
void cake_line_scores(const float *logprobs, size_t n, cake_buf *out); /* -1.5, -2.25 */
const char *cake_line_finish(cake_finish finish);
/* The object behind "error", as the API has it; only its own form has a `code`. */
void cake_line_fault(const cake_fault *fault, bool code, cake_buf *out);

#endif
