/* SPDX-License-Identifier: Apache-2.0
 *
 * A file becomes requests, one at a time, in order, in memory that does not grow with the file.
 */
#ifndef CAKE_PROMPT_PROMPT_H
#define CAKE_PROMPT_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"
#include "types/input_checkpoint.h"
#include "types/params.h"

/* One request. Either it failed (err CAKE_ERR_REQUEST and the fault), or exactly one of messages, text and
 * ids is the prompt. Everything is owned by the request; cake_request_free. */
typedef struct cake_request {
    int64_t index; /* number of its line in the input, from 0; blank lines have numbers too */
    int64_t order; /* among the requests of the input, from 0, without holes */
    uint64_t sum;  /* of its line and index: sums of many lines differ if one of the lines does */
    cake_form form;
    char *id;      /* the id (custom_id) as JSON text ("\"a\"", "7"); NULL: none given */
    int64_t again; /* how many lines before it had that id; of a simple line, once it is settled */
    char *model;   /* what the request called the model; NULL */

    cake_json *root;           /* the parsed line, or NULL */
    bool chat;                 /* it comes, or came, as messages */
    const cake_json *messages; /* borrowed from root */
    const cake_json *tools, *kwargs;
    bool add_generation_prompt, continue_final_message;
    char *text; /* [text_len] prompt as text */
    size_t text_len;
    bool use_template; /* text is to be put through the chat template as a user message (.txt, -p) */
    cake_ids ids;      /* prompt as ids (ids.len > 0) */

    cake_params params; /* what the request itself says */
    bool told;          /* the line has said its form */
    cake_buf unknown;   /* names of fields that nobody knows, each with its NUL */
    cake_err err;
    cake_fault fault;
} cake_request;

void cake_request_free(cake_request *request); /* leaves zeros */

typedef struct cake_prompt cake_prompt;

typedef enum cake_prompt_format {
    CAKE_PROMPT_AUTO,
    CAKE_PROMPT_JSONL,
    CAKE_PROMPT_TXT,
    CAKE_PROMPT_HDF5
} cake_prompt_format;

/* path "-" is standard input (JSONL unless said otherwise). Says why it cannot be opened. */
cake_err cake_prompt_open(const char *path, cake_prompt_format format, cake_prompt **out);
/* How the fields are called in other people's simple lines; borrowed, NULL: as here. A name that is no key is
 * a path: turns.0 is the first of turns. Of HDF5: objects of the file. */
typedef struct cake_names {
    const char *prompt, *id;
} cake_names;
/* Before the first line is read. Says what is wrong with an HDF5 file, and with one that does not begin as
 * prompts do. */
cake_err cake_prompt_name(cake_prompt *prompt, const cake_names *names);
/* From memory (fuzzing, -p): one prompt a string, use_template set. */
cake_err cake_prompt_from_texts(char *const *texts, int n, cake_prompt **out);
cake_err cake_prompt_from_bytes(const char *bytes, size_t len, cake_prompt_format format, cake_prompt **out);
/* CAKE_OK and *request (also one with a fault), CAKE_END, or CAKE_ERR_FATAL if reading failed. */
cake_err cake_prompt_next(cake_prompt *prompt, cake_request *request);

/* The same in three steps, for parsing in several threads: lines are read in order, parsed anywhere, and
 * settled in order. Only records of lines that tell no form come out differently: in that of simple ones. */
typedef struct cake_line {
    const char *text; /* [len] without its end; NULL: longer than is let through */
    size_t len;
    int64_t index, order; /* as in cake_request */
    uint64_t sum;         /* of the line and its index, as in cake_request */
    bool given;           /* from the command line: no escapes */
    bool unended;         /* the input ends behind it, without a newline */
} cake_line;

/* The next line that is not blank, valid until the next call. CAKE_OK, CAKE_END or CAKE_ERR_FATAL. */
cake_err cake_prompt_read(cake_prompt *prompt, cake_line *line);
/* Called from any thread. */
void cake_prompt_parse(const cake_prompt *prompt, const cake_line *line, cake_request *request);
/* What depends on the lines before: a custom_id must be new, another id may come again; unknown fields are
 * warned about once. */
void cake_prompt_settle(cake_prompt *prompt, cake_request *request);

/* Whether cake_prompt_next has something to give, be it the end, without waiting for more of a pipe. (One
 * whose first lines do not tell their form is waited for.) */
bool cake_prompt_ready(cake_prompt *prompt);

/* What was read so far. */
cake_input_checkpoint cake_prompt_checkpoint(const cake_prompt *prompt);
/* The input has to be what it was at marks [n], in ascending order; more may follow. Reading fails at the
 * first one where it is not, and says which lines are not the same. Before the first line is read; copied. */
void cake_prompt_expect(cake_prompt *prompt, const cake_input_checkpoint *marks, size_t n);
bool cake_prompt_changed(const cake_prompt *prompt); /* whether that is why reading failed */

/* Share of the file that was read so far, 0 to 1; negative if its size is unknown. */
double cake_prompt_progress(const cake_prompt *prompt);
void cake_prompt_close(cake_prompt *prompt);

#endif
