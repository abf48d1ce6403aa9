/* SPDX-License-Identifier: Apache-2.0
 *
 * Finished requests become lines of the result file. While the run goes on they are appended to
 * RESULTS.partial in the order they finish; at the end RESULTS appears whole, in the order of the input.
 * Without a file they go to standard output in input order, each as soon as all before it are out.
 * Memory: 16 bytes a request.
 */
#ifndef CAKE_RECORD_RECORD_H
#define CAKE_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/params.h"

typedef enum cake_finish { CAKE_FINISH_STOP, CAKE_FINISH_LENGTH } cake_finish;

typedef struct cake_scored {
    int32_t id;
    float logprob; /* natural logarithm */
} cake_scored;

/* One answer of a request. */
typedef struct cake_choice {
    const char *text; /* [text_len] valid UTF-8, without prompt, end token and stop string */
    size_t text_len;
    const int32_t *ids; /* [n_id] with the end token */
    int n_id;
    cake_finish finish;
    const cake_scored
        *logprobs;       /* [n_id, 1 + n_top]: the chosen token, then the n_top best; with n_top >= 0 */
    const size_t *begin; /* [n_id] ascending: byte of text at which each token begins; with n_top >= 0 */
} cake_choice;

/* One finished request; everything is borrowed for the time of the call. */
typedef struct cake_record {
    int64_t index; /* number of the request's line in the input */
    int64_t order; /* among the requests of the input, from 0, without holes */
    cake_form form;
    const char *id;          /* JSON text, or NULL */
    const char *model;       /* or NULL */
    const cake_fault *fault; /* not NULL: failed, and nothing below counts */

    const int32_t *prompt_ids; /* [n_prompt] */
    int n_prompt;
    const cake_choice *choices; /* [n_choice] at least one */
    int n_choice;
    bool chat;             /* chat.completion rather than text_completion */
    bool return_token_ids; /* prompt_ids and ids go into the record */
    int n_top;             /* alternatives of each token; -1: no logprobs */

    const char *echo; /* [echo_len] the prompt, which every text begins with; NULL: none */
    size_t echo_len;
    const cake_scored *prompt_logprobs; /* [n_prompt, 1 + n_top], nothing of the first token but its id; with
                                         * echo and n_top >= 0 */
    const size_t *prompt_begin;         /* [n_prompt] ascending: bytes of echo; with echo and n_top >= 0 */
} cake_record;

typedef enum cake_record_format { CAKE_RECORD_AUTO, CAKE_RECORD_JSONL, CAKE_RECORD_TXT } cake_record_format;

typedef struct cake_record_options {
    const char *path;          /* NULL: standard output */
    cake_record_format format; /* AUTO: by the ending of path */
    bool force;                /* overwrite a finished RESULTS, drop a left .partial */
    bool deterministic_ids;    /* created 0 and ids from the index alone */
    int64_t created;           /* seconds since 1970 */
    uint64_t job;              /* ids derive from it and the index */
    const char *model;         /* for records that name none: base name of the model directory */
    /* spelling of a token for logprobs; record knows no tokenizer */
    void (*token_bytes)(const void *token, int32_t id, cake_buf *out);
    const void *token;
} cake_record_options;

typedef struct cake_recorder cake_recorder;

/* Says why not (directory not writable, RESULTS or RESULTS.partial already there): called before loading. */
cake_err cake_record_open(const cake_record_options *options, cake_recorder **out);
bool cake_record_is_text(const cake_recorder *recorder); /* an answer a line: there is room for one */
cake_err cake_record_add(cake_recorder *recorder, const cake_record *record);
int64_t cake_record_failed(const cake_recorder *recorder); /* records with a fault so far */
/* Writes RESULTS (temporary file, fsync, rename), removes .partial. On failure .partial is intact. */
cake_err cake_record_finish(cake_recorder *recorder);
void cake_record_close(cake_recorder *recorder); /* without finish: .partial stays */

/* One record as the line (without newline) that goes into the file: for tests. */
void cake_record_line(const cake_recorder *recorder, const cake_record *record, cake_buf *out);

#endif
