/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes finished requests as lines of the result file. During the run they are appended to RESULTS.partial
 * in the order they finish; at the end RESULTS appears complete and in input order. Results left by a stopped
 * run of the same job are kept. Without a file, lines go to standard output in input order, each as soon as
 * all before it are written. Memory: 16 bytes per request.
 */
#ifndef CAKE_RECORD_RECORD_H
#define CAKE_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/journal_format.h"
#include "types/input_checkpoint.h"
#include "types/message.h"
#include "types/params.h"
#include "types/task.h"

typedef enum cake_finish { CAKE_FINISH_STOP, CAKE_FINISH_LENGTH } cake_finish;

/* One answer of a request, or of a text that is scored one of its parts: then only the tokens that are
 * scored, and their scores. */
typedef struct cake_choice {
    const char *text; /* [text_len] valid UTF-8, without prompt, end token and stop string */
    size_t text_len;
    const int32_t *ids; /* [n_id] including the end token */
    int n_id;
    cake_finish finish;
    const cake_token_logprob
        *logprobs;       /* [n_id, 1 + n_top]: the chosen token, then the n_top most likely; if n_top >= 0 */
    const size_t *begin; /* [n_id] ascending: byte of text at which each token begins; if n_top >= 0 */
    const cake_message *message; /* what the text says; NULL: it is taken as it is */
    const float *embedding;      /* [n_embedding] of an input, which has nothing else; or NULL */
    int n_embedding;
} cake_choice;

/* One finished request. Everything is borrowed for the call. */
typedef struct cake_record {
    int64_t index; /* line number in the input */
    int64_t order; /* index among the requests of the input, from 0, without gaps */
    uint64_t sum;  /* checksum of its input line (cake_request) */
    cake_form form;
    cake_task task;
    const char *id;       /* JSON text, or NULL */
    const char *model;    /* or NULL */
    const char *repeated; /* CAKE_FORM_BATCH_RESPONSE: members of the response, each with a comma before it */
    const cake_fault *fault; /* not NULL: failed, and the fields below are unused */

    const char
        *prompt; /* [prompt_len] text of the prompt; NULL: it came as ids. See cake_record_wants_prompt */
    size_t prompt_len;
    const int32_t *prompt_ids; /* [n_prompt] */
    int n_prompt;
    const cake_choice *choices; /* [n_choice] at least one */
    int n_choice;
    int64_t scored_bytes; /* of the text or continuation that is scored */
    /* Pairs: of each a score, and its second text, if that is wanted (NULL: it came as
     * ids) */
    const float *score;          /* [n_score] */
    const char *const *document; /* [n_score], or NULL */
    int n_score, n_best;         /* n_best: of a query's documents, so many are given, the best first */
    bool ranked;                 /* they are a query's documents */
    bool base64;                 /* embeddings are written so */
    bool chat;                   /* chat.completion rather than text_completion */
    bool return_token_ids;       /* write prompt_ids and ids into the record */
    int n_top;                   /* alternatives per token that are given; -1: none, and no logprobs */
    int n_logprob,
        n_prompt_logprob; /* of them wanted for each token of the answers, and of the prompt; -1: none */

    double ttft, waited; /* seconds from admission to the first token (0: unknown) and to the last */

    const char *echo; /* [echo_len] the prompt, with which every text begins; NULL: none */
    size_t echo_len;
    int score_from;                            /* the first token of the prompt with logprobs; 0: none */
    const cake_token_logprob *prompt_logprobs; /* [n_prompt, 1 + n_top], if score_from */
    const int32_t *prompt_rank;                /* [n_prompt] 1: the likeliest; if n_prompt_logprob >= 0 */
    const size_t *prompt_begin; /* [n_prompt] ascending: bytes of echo; if echo and n_top >= 0 */
} cake_record;

/* The logprobs of an answer's tokens, summed, and whether each token was the likeliest; n_top >= 1. */
typedef struct cake_loglikelihood {
    double logprob;
    bool greedy;
} cake_loglikelihood;
cake_loglikelihood cake_choice_loglikelihood(const cake_choice *choice, int n_top);

/* Sums over texts and continuations that were scored. */
typedef struct cake_scored {
    int64_t texts, tokens, bytes;
    double logprob; /* natural logarithm */
} cake_scored;

typedef enum cake_record_format {
    CAKE_RECORD_AUTO,
    CAKE_RECORD_JSONL,
    CAKE_RECORD_TXT,
    CAKE_RECORD_HDF5
} cake_record_format;

typedef enum cake_resume { CAKE_RESUME_AUTO, CAKE_RESUME_NEVER, CAKE_RESUME_MUST } cake_resume;

typedef struct cake_record_options {
    const char *path;          /* NULL: standard output */
    cake_record_format format; /* AUTO: by the extension of path */
    cake_resume resume;        /* whether to resume an earlier run */
    bool force;                /* overwrite a finished RESULTS; drop a .partial of another job */
    bool copies;               /* all lines also exist elsewhere (merge), so a failure may be rolled back */
    bool retry;                /* redo requests that failed in an earlier run */
    const char *identity;      /* JSON that must be equal for results to be equal; NULL: nothing */
    bool deterministic_ids;    /* created is 0 and ids derive from the index alone */
    bool timing;               /* records include their latency */
    int64_t created;           /* seconds since 1970; created, job and model are kept from an earlier run */
    uint64_t job;              /* ids derive from this and the index */
    const char *model;         /* for records that name no model: base name of the model directory */
    const char *command;       /* recorded in HDF5 files; NULL: unknown */
    /* Appends the bytes of a token for logprobs; record knows no tokenizer. */
    void (*token_bytes)(const void *token, int32_t id, cake_buf *out);
    const void *token;
} cake_record_options;

typedef struct cake_recorder cake_recorder;

/* Seconds spent on the journal; negative: there is none. */
typedef struct cake_record_cost {
    double write;  /* in the caller: until records and checkpoints are handed to the system */
    double sync;   /* CPU time of the fsync thread */
    double finish; /* making RESULTS from the journal */
} cake_record_cost;

/* The format that the extension of path selects: "txt", "h5" or "jsonl". */
const char *cake_record_form(const char *path);
/* Whether output to path is a stream: standard output (NULL, "-"), a device, a pipe. */
bool cake_record_streams(const char *path);
/* Fails with a message (directory not writable, files of another job). Called before the model is loaded. */
cake_err cake_record_open(const cake_record_options *options, cake_recorder **out);
/* Logs what is resumed, if anything. Called once all checks have passed. */
void cake_record_log_resume(cake_recorder *recorder);
/* RESULTS is finished and belongs to this job: nothing to write. */
bool cake_record_finished(const cake_recorder *recorder);
/* Reopens a finished RESULTS to append more. */
cake_err cake_record_reopen(cake_recorder *recorder);
/* State of earlier runs: has a request a result, number of results, checkpoints of the input they read. */
bool cake_record_has(const cake_recorder *recorder, int64_t order);
int64_t cake_record_resumed(const cake_recorder *recorder);
/* Adds those of the results of earlier runs, which are read. */
void cake_record_add_scored(const cake_recorder *recorder, cake_scored *to);
const cake_input_checkpoint *cake_record_input_checkpoints(const cake_recorder *recorder, size_t *n);

/* For --retry-errors, when the input differs from what earlier runs read: *sum is the checksum of the input
 * lines that have a successful result; false: unknown. answered: the request has one; recall must come first.
 * corrected: accepts the changed input. */
bool cake_record_recall(cake_recorder *recorder, uint64_t *sum);
bool cake_record_answered(const cake_recorder *recorder, int64_t order);
void cake_record_corrected(cake_recorder *recorder, cake_input_checkpoint read);

/* Tokens of a request that an earlier run left unfinished; NULL: none. Borrowed. */
const cake_inflight *cake_record_inflight(const cake_recorder *recorder, int64_t order, int *n);
/* Checkpoints of unfinished answers: first one call per part (tokens from part->at on), then
 * cake_record_checkpoint writes the line. No result may be added in between. */
void cake_record_add_inflight(cake_recorder *recorder, const cake_inflight *part);
cake_err cake_record_checkpoint(cake_recorder *recorder);

bool cake_record_wants_prompt(
    const cake_recorder *recorder);                      /* results include the prompt text; false for NULL */
bool cake_record_is_text(const cake_recorder *recorder); /* plain text: one answer per request */
/* read: how far this run has read the input; may be ahead of its records. */
void cake_record_read_to(cake_recorder *recorder, cake_input_checkpoint read);
cake_err cake_record_add(cake_recorder *recorder, const cake_record *record);
/* A line [len, with newline] that another run made. */
cake_err cake_record_add_line(cake_recorder *recorder, cake_entry entry, const char *line, size_t len);
/* share: answered fraction of the input; left: seconds to the end; negative: unknown. */
void cake_record_reached(cake_recorder *recorder, double share, double left);
/* Call it often: it makes records safe from a killed process within a moment, and from a killed machine soon
 * after. An error (reported) means that they are no longer safe. */
cake_err cake_record_tick(cake_recorder *recorder);
cake_err cake_record_flush(cake_recorder *recorder); /* writes everything pending now */
/* Stops before the end and logs what is left. */
cake_err cake_record_stop(cake_recorder *recorder);
/* Removes the records of this run: the input is not the job's. */
void cake_record_rollback(cake_recorder *recorder);
/* Number of error records, including earlier runs. */
int64_t cake_record_failed(const cake_recorder *recorder);
cake_record_cost cake_record_costs(const cake_recorder *recorder); /* NULL is fine */
/* Writes RESULTS (temporary file, fsync, rename) and RESULTS.job, then removes .partial. On failure .partial
 * stays intact. */
cake_err cake_record_finish(cake_recorder *recorder);
void cake_record_close(cake_recorder *recorder); /* without finish, .partial stays */

/* Appends the identity that a run to path would resume; nothing if there is none. force: path will be
 * overwritten. */
void cake_record_read_identity(const char *path, bool force, cake_buf *identity);

/* Appends the line (without newline) of one record. For tests. */
void cake_record_line(const cake_recorder *recorder, const cake_record *record, cake_buf *out);

#endif
