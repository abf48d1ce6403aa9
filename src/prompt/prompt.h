/* SPDX-License-Identifier: Apache-2.0
 *
 * A file as requests, one at a time, in order, in memory that does not grow with the file.
 */
#ifndef CAKE_PROMPT_PROMPT_H
#define CAKE_PROMPT_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"
#include "types/constraint.h"
#include "types/input_checkpoint.h"
#include "types/message.h"
#include "types/params.h"
#include "types/task.h"

/* A text, or ids (ids.len > 0). Owned by the request. */
typedef struct cake_input {
    char *text; /* [len] */
    size_t len;
    cake_ids ids;
} cake_input;

/* A part of a prompt. */
typedef struct cake_part {
    int32_t n_token;
    int32_t score_from; /* the first token that is scored, >= 1; 0: none */
    int32_t type_from;  /* the first one with token type 1; 0: none */
    int32_t pool_from;  /* the first one that is pooled */
} cake_part;

/* One request. Either it failed (err CAKE_ERR_REQUEST and the fault), or exactly one of messages, text and
 * ids is the prompt. The request owns everything; cake_request_free. */
typedef struct cake_request {
    int64_t index; /* number of its line in the input, from 0, counting blank lines */
    int64_t order; /* number among the requests of the input, from 0 */
    uint64_t sum;  /* of its line and index: a change of one line changes the sum of many */
    cake_form form;
    cake_task task;
    char *id;      /* the id (custom_id) as JSON text ("\"a\"", "7"); NULL: none given */
    int64_t again; /* number of earlier lines with that id; for simple lines, once settled */
    char *model;   /* the model that the request names; NULL */

    cake_json *root;           /* the parsed line, or NULL */
    bool chat;                 /* the prompt is, or was, messages */
    const cake_json *messages; /* borrowed from root */
    const cake_json *tools, *kwargs;
    bool add_generation_prompt, continue_final_message;
    char *text; /* [text_len] prompt as text */
    size_t text_len;
    bool use_template; /* text goes through the chat template as a user message (.txt, -p) */
    bool bare;         /* the tokenizer's post-processor adds nothing to it */
    cake_ids ids;      /* prompt as ids (ids.len > 0) */
    /* CAKE_TASK_SCORE: if set, the prompt is the context, and this follows it, as text or as ids. */
    char *continuation; /* [continuation_len] */
    size_t continuation_len;
    cake_ids continuation_ids;
    int64_t scored_bytes; /* of the text that is scored; preparation sets it */
    /* CAKE_TASK_EMBED: what is embedded, each apart; none: the prompt is. CAKE_TASK_RERANK: the second texts
     * of pairs; the first ones are as many, or one. */
    cake_input *inputs; /* [n_input] */
    int n_input;
    cake_input *lefts; /* [n_left] */
    int n_left;
    bool ranked;       /* they are documents and a query: the best ones come first */
    char *prompt_name; /* of the text that is put before each input (sentence-transformers); NULL: default */
    /* The prompt's tokens are those of parts, one after another, and each part is a sequence of its own;
     * preparation sets them. */
    cake_part *parts; /* [n_part]; NULL: the prompt is one sequence */
    int n_part;

    cake_constraint_source constraint; /* of the answers */
    const char *constraint_field;      /* the field that has it */
    cake_tool_choice tool_choice;
    char *tool_name;        /* of CAKE_TOOLS_NAMED */
    bool one_call;          /* no several calls in one answer */
    char *repeated;         /* CAKE_FORM_BATCH_RESPONSE: members of the response, as JSON, with commas */
    char *reasoning_effort; /* NULL: not said */
    /* How answers are read; preparation sets it. */
    bool is_message;  /* as messages */
    char *tools_text; /* the tools that may be called, as JSON; NULL: none */
    cake_answer_begin begin;

    cake_params params; /* set by the request itself */
    bool form_known;    /* the line shows its form */
    cake_buf unknown;   /* names of unknown fields, each with its NUL */
    cake_err err;
    cake_fault fault;
} cake_request;

void cake_request_free(cake_request *request); /* zeroes the request */

typedef struct cake_prompt cake_prompt;

typedef enum cake_prompt_format {
    CAKE_PROMPT_AUTO,
    CAKE_PROMPT_JSONL,
    CAKE_PROMPT_TXT,
    CAKE_PROMPT_HDF5
} cake_prompt_format;

/* path "-" is standard input (JSONL by default). Logs why it cannot be opened. */
cake_err cake_prompt_open(const char *path, cake_prompt_format format, cake_prompt **out);
/* Names of the fields in simple lines of other origin; borrowed, NULL: ours. A name that is not a key is a
 * path: turns.0 is the first item of turns. For HDF5: objects of the file. */
typedef struct cake_names {
    const char *prompt, *id;
} cake_names;
/* To be called before the first line is read. Logs what is wrong with an HDF5 file, or with a file that does
 * not begin as prompts do. */
cake_err cake_prompt_name(cake_prompt *prompt, const cake_names *names);
/* What texts and simple lines with a prompt ask for; without a call: answers. */
void cake_prompt_set_task(cake_prompt *prompt, cake_task task);
/* From memory (fuzzing, -p): each string is a prompt, with use_template set. */
cake_err cake_prompt_from_texts(char *const *texts, int n, cake_prompt **out);
cake_err cake_prompt_from_bytes(const char *bytes, size_t len, cake_prompt_format format, cake_prompt **out);
/* CAKE_OK and *request (also one with a fault), CAKE_END, or CAKE_ERR_FATAL if reading failed. */
cake_err cake_prompt_next(cake_prompt *prompt, cake_request *request);

/* The steps of cake_prompt_next, for parsing in several threads: lines are read in order, parsed anywhere,
 * and settled in order. One difference: error records of lines that show no form get the simple one. */
typedef struct cake_line {
    const char *text; /* [len] without its end; NULL: overlong */
    size_t len;
    int64_t index, order; /* as in cake_request */
    uint64_t sum;         /* of the line and its index, as in cake_request */
    bool given;           /* from the command line: no escapes */
    bool unended;         /* the input ends after it, without a newline */
} cake_line;

/* The next non-blank line, valid until the next call. CAKE_OK, CAKE_END or CAKE_ERR_FATAL. */
cake_err cake_prompt_read(cake_prompt *prompt, cake_line *line);
/* Thread-safe. */
void cake_prompt_parse(const cake_prompt *prompt, const cake_line *line, cake_request *request);
/* Does what depends on the lines before: a custom_id must be new, another id may repeat; warns once of
 * unknown fields. */
void cake_prompt_settle(cake_prompt *prompt, cake_request *request);

/* Whether cake_prompt_next would return, be it the end, without waiting for a pipe. (First lines that do not
 * show their form are waited for.) */
bool cake_prompt_ready(cake_prompt *prompt);

/* The position read so far. */
cake_input_checkpoint cake_prompt_checkpoint(const cake_prompt *prompt);
/* Requires the input to be unchanged up to each of marks [n], in ascending order; more may follow. Reading
 * fails at the first mark that differs, with a message that names the lines. To be called before the first
 * line is read; copied. */
void cake_prompt_expect(cake_prompt *prompt, const cake_input_checkpoint *marks, size_t n);
bool cake_prompt_changed(const cake_prompt *prompt); /* whether reading failed for that reason */

/* Fraction of the file read so far, 0 to 1; negative if its size is unknown. */
double cake_prompt_progress(const cake_prompt *prompt);
void cake_prompt_close(cake_prompt *prompt);

#endif
