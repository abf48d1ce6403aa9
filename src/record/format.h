/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a record into one line without a newline: one function per format, and shared helpers.
 */
#ifndef CAKE_RECORD_FORMAT_H
#define CAKE_RECORD_FORMAT_H

#include "formats/json.h"
#include "record/record.h"

void cake_line_simple(const cake_record_options *options, const cake_record *record, cake_buf *out);
void cake_line_openai(const cake_record_options *options, const cake_record *record, cake_buf *out);

/* Appends the text of a JSONL line of either form, escaped as in .txt files; nothing for an error record.
 * False: the line is not JSON. */
bool cake_line_txt(const char *line, size_t len, cake_buf *out);

/* The request fields of a RESULTS line. False: the line is not JSON. */
typedef struct cake_line_info {
    int64_t index; /* -1: absent */
    bool failed;
    int64_t n_choice; /* 0: no list of choices */
} cake_line_info;
bool cake_line_info_read(const char *line, size_t len, cake_line_info *out);
int64_t cake_line_read_index(const cake_json *line); /* -1: absent */

/* Appends the `logprobs` value of a choice, in the shape of chat.completion or text_completion. */
void cake_line_logprobs_chat(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out);
void cake_line_logprobs_text(const cake_record_options *options, const cake_record *record,
                             const cake_choice *choice, cake_buf *out);

/* Appends the member `prompt_logprobs` in vLLM's shape, if the request wants it. */
void cake_line_prompt_logprobs(const cake_record_options *options, const cake_record *record, cake_buf *out);

void cake_line_text(const cake_record *record, const cake_choice *choice,
                    cake_buf *out); /* quoted; includes the echoed prompt */
/* The text of the message in the output of a response; NULL: there is none. */
const cake_json *cake_line_output_text(const cake_json *response);
/* Appends the API's object of /v1/responses. */
void cake_line_response(const cake_record_options *options, const cake_record *record, cake_buf *out);
/* Appends an id, quoted, that derives from job and index; and the name of the model, quoted. */
void cake_line_id(const cake_record_options *options, const cake_record *record, const char *prefix,
                  cake_buf *out);
void cake_line_model(const cake_record_options *options, const cake_record *record, cake_buf *out);
/* Appends the id, quoted, of call k of answer i. */
void cake_line_call_id(const cake_record_options *options, const cake_record *record, int i, int k,
                       cake_buf *out);
int64_t cake_line_reasoning_tokens(const cake_record *record); /* -1: answers were not read for reasoning */
/* Appends the members reasoning and reasoning_content, and tool_calls, each with a comma before it, as far as
 * the answer has them. i: its index. */
void cake_line_message(const cake_record_options *options, const cake_record *record, int i, cake_buf *out);
/* Appends completion_tokens_details, with a comma before it, if answers were read for reasoning. */
void cake_line_token_details(const cake_record *record, cake_buf *out);
/* What ended the answer. */
const char *cake_line_finish(const cake_choice *choice);
int64_t cake_line_completion_tokens(const cake_record *record); /* of all choices */
/* Appends the member that --timing adds to a line. */
void cake_line_timing(const cake_record_options *options, const cake_record *record, cake_buf *out);
void cake_line_string(cake_buf *out, const char *text); /* NULL or "": null */
void cake_line_int(cake_buf *out, int64_t value);
void cake_line_ids(cake_buf *out, const int32_t *ids, int n); /* [1, 2, 3] */
void cake_line_float(float value, cake_buf *out); /* 6 to 9 digits, as many as read back as the same float */
/* Appends `results`, of a query and documents, or `data`, of other pairs. */
void cake_line_ranking(const cake_record *record, cake_buf *out);
/* Appends an embedding [n] as an array, or as a string of base64; and reads either into floats. False: there
 * is none. */
void cake_line_embedding(const float *x, int n, bool base64, cake_buf *out);
bool cake_line_read_embedding(const cake_json *node, cake_buf *floats);
void cake_line_scores(const float *logprobs, size_t n, cake_buf *out); /* -1.5, -2.25 */
/* Appends the error object of the API; only the OpenAI form has a `code`. */
void cake_line_fault(const cake_fault *fault, bool code, cake_buf *out);

#endif
