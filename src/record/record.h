/* SPDX-License-Identifier: Apache-2.0
 *
 * Finished requests become lines of the result file. While the run goes on they are appended to
 * RESULTS.partial in the order they finish; at the end RESULTS appears whole, in the order of the input. What
 * a run that was stopped has left there counts, if it was of the same job.
 * Without a file they go to standard output in input order, each as soon as all before it are out.
 * Memory: 16 bytes a request.
 */
#ifndef CAKE_RECORD_RECORD_H
#define CAKE_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/journal_writer.h"
#include "types/input_checkpoint.h"
#include "types/params.h"

typedef enum cake_finish { CAKE_FINISH_STOP, CAKE_FINISH_LENGTH } cake_finish;

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
    uint64_t sum;  /* of its line (cake_request) */
    cake_form form;
    const char *id;          /* JSON text, or NULL */
    const char *model;       /* or NULL */
    const cake_fault *fault; /* not NULL: failed, and nothing below counts */

    const char
        *prompt; /* [prompt_len] the text of the prompt; NULL: it came as ids. See cake_record_wants_prompt */
    size_t prompt_len;
    const int32_t *prompt_ids; /* [n_prompt] */
    int n_prompt;
    const cake_choice *choices; /* [n_choice] at least one */
    int n_choice;
    bool chat;             /* chat.completion rather than text_completion */
    bool return_token_ids; /* prompt_ids and ids go into the record */
    int n_top;             /* alternatives of each token; -1: no logprobs */

    double ttft, waited; /* seconds from when it was taken up to its first token, 0: unknown; to its last */

    const char *echo; /* [echo_len] the prompt, which every text begins with; NULL: none */
    size_t echo_len;
    const cake_scored *prompt_logprobs; /* [n_prompt, 1 + n_top], nothing of the first token but its id; with
                                         * echo and n_top >= 0 */
    const size_t *prompt_begin;         /* [n_prompt] ascending: bytes of echo; with echo and n_top >= 0 */
} cake_record;

typedef enum cake_record_format {
    CAKE_RECORD_AUTO,
    CAKE_RECORD_JSONL,
    CAKE_RECORD_TXT,
    CAKE_RECORD_HDF5
} cake_record_format;

typedef struct cake_record_options {
    const char *path;          /* NULL: standard output */
    cake_record_format format; /* AUTO: by the ending of path */
    cake_resume resume;        /* whether to go on from what an earlier run left */
    bool force;                /* overwrite a finished RESULTS, drop a .partial of another job */
    bool copies;               /* nothing is added that is not elsewhere, too: what fails may be undone */
    bool retry;                /* failed requests of an earlier run are not done */
    const char *identity;      /* JSON: what has to be the same for results to be; NULL: nothing */
    bool deterministic_ids;    /* created 0 and ids from the index alone */
    bool timing;               /* records say how long they took */
    int64_t created;     /* seconds since 1970; like the next two that of the earlier run, if there is one */
    uint64_t job;        /* ids derive from it and the index */
    const char *model;   /* for records that name none: base name of the model directory */
    const char *command; /* for a file that says where it comes from; NULL: unknown */
    /* spelling of a token for logprobs; record knows no tokenizer */
    void (*token_bytes)(const void *token, int32_t id, cake_buf *out);
    const void *token;
} cake_record_options;

typedef struct cake_recorder cake_recorder;

/* What the journal took, in seconds; negative: there is none. */
typedef struct cake_record_cost {
    double write;  /* of who adds to it: until records, and what was begun, are on their way to the disk */
    double sync;   /* of a processor, by the thread that brings them there */
    double finish; /* RESULTS was made of it */
} cake_record_cost;

/* What the ending of path says: "txt", "h5" or "jsonl". */
const char *cake_record_form(const char *path);
/* Whether what goes to path is streamed: to standard output (NULL, "-"), a device, a pipe. */
bool cake_record_streams(const char *path);
/* Says why not (directory not writable, files of another job there): called before loading. */
cake_err cake_record_open(const cake_record_options *options, cake_recorder **out);
/* Says what it goes on from, if anything: when nothing speaks against it any more. */
void cake_record_log_resume(cake_recorder *recorder);
/* RESULTS is there, finished, and of this job: there is nothing to write. */
bool cake_record_finished(const cake_recorder *recorder);
/* It is to be added to all the same. */
cake_err cake_record_reopen(cake_recorder *recorder);
/* What earlier runs did: whether they have a request's result, how many, and how far they had read. */
bool cake_record_has(const cake_recorder *recorder, int64_t order);
int64_t cake_record_resumed(const cake_recorder *recorder);
const cake_input_checkpoint *cake_record_input_checkpoints(const cake_recorder *recorder, size_t *n);

/* With options.retry, where the input is not what earlier runs read: whether the lines of requests with an
 * answer are, whose sum this is of; see cake_journal_writer_recall. False: it is not known. */
bool cake_record_recall(cake_recorder *recorder, uint64_t *sum);
bool cake_record_answered(const cake_recorder *recorder, int64_t order);
void cake_record_corrected(cake_recorder *recorder, cake_input_checkpoint read);

/* The tokens of a request that an earlier run began; NULL: it did not. Borrowed. */
const cake_inflight *cake_record_inflight(const cake_recorder *recorder, int64_t order, int *n);
/* Answers under way, for a later run: tokens from part->at on, then, when all are told, the line is written.
 * A result must not come in between. */
void cake_record_add_inflight(cake_recorder *recorder, const cake_inflight *part);
cake_err cake_record_checkpoint(cake_recorder *recorder);

bool cake_record_wants_prompt(
    const cake_recorder *recorder);                      /* results hold the text of prompts; false of NULL */
bool cake_record_is_text(const cake_recorder *recorder); /* an answer a line: there is room for one */
/* read: how far this run has read, ahead of its records. */
void cake_record_read_to(cake_recorder *recorder, cake_input_checkpoint read);
cake_err cake_record_add(cake_recorder *recorder, const cake_record *record);
/* A line [len], with its newline, that another run has made. */
cake_err cake_record_add_line(cake_recorder *recorder, cake_entry entry, const char *line, size_t len);
/* share: of the input that is answered; left: seconds to its end; negative: unknown. */
void cake_record_reached(cake_recorder *recorder, double share, double left);
/* Records are safe from a killed program after a moment, if this is called often; from a killed machine soon
 * after. An error, which was said, means that they are not safe any more. */
cake_err cake_record_tick(cake_recorder *recorder);
cake_err cake_record_flush(cake_recorder *recorder); /* what there is, now */
/* The run stops before its end, and says what it leaves. */
cake_err cake_record_stop(cake_recorder *recorder);
/* The input is not that of the job: the records of this run go. */
void cake_record_rollback(cake_recorder *recorder);
/* Records with a fault so far, of earlier runs too. */
int64_t cake_record_failed(const cake_recorder *recorder);
cake_record_cost cake_record_costs(const cake_recorder *recorder); /* NULL is fine */
/* Writes RESULTS (temporary file, fsync, rename) and RESULTS.job, removes .partial. On failure .partial is
 * intact. */
cake_err cake_record_finish(cake_recorder *recorder);
void cake_record_close(cake_recorder *recorder); /* without finish: .partial stays */

/* The identity of what a run to path would go on from, appended; nothing, if there is none. force: path is
 * made anew. */
void cake_record_read_identity(const char *path, bool force, cake_buf *identity);

/* One record as the line (without newline) that goes into the file: for tests. */
void cake_record_line(const cake_recorder *recorder, const cake_record *record, cake_buf *out);

#endif
