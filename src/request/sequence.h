/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way from prompt to answer: what crosses the cut between the io, which reads and
 * writes files, and the root of a replica, which samples. A request of several choices is a lead, which holds
 * request and prompt and never generates, and a sequence for each choice.
 */
#ifndef CAKE_REQUEST_SEQUENCE_H
#define CAKE_REQUEST_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "prompt/prompt.h"
#include "record/record.h"
#include "sample/penalties.h"
#include "sample/sample.h"
#include "tokenizer/tokenizer.h"

typedef struct cake_sequence cake_sequence;

struct cake_sequence {
    cake_sequence *lead;   /* has the request: itself, but for one of several choices */
    cake_request request;  /* of a lead; params complete; request.err tells whether it failed */
    bool chat;             /* it came as messages */
    cake_ids ids;          /* prompt and what was generated */
    int n_prompt, max_len; /* ids.len never exceeds max_len */
    cake_key key;
    const cake_tokenizer *token; /* NULL where nothing is decoded */
    cake_decoder *decoder;
    cake_penalties *penalties; /* the root's: changes of the next scores, or NULL */
    cake_buf text;             /* of what was generated; cut before a stop string */
    cake_finish finish;
    bool over;           /* the latest token ended the answer */
    int n_top;           /* alternatives of each token; -1: no logprobs wanted */
    cake_scored *scored; /* [generated, 1 + n_top] */
    size_t *begin;       /* [generated] where each token begins in text, if n_top >= 0 and text is decoded */
    size_t cap_scored;   /* tokens for which scored and begin have room */
    double admitted, first, latest; /* seconds; of admission and of its first and latest token */
    double ttft;   /* the io's: seconds from admission to the first token; 0: an earlier run had it */
    double waited; /* the io's: seconds from admission to the latest token */

    int listed; /* the io's: 1 + its place among those that have begun; 0: none */
    int kept;   /* the io's: tokens that are in the journal */

    /* of a lead */
    bool begun;     /* rows of its prompt have left */
    int32_t *chain; /* the nodes of its prompt (cake_schedule_chain), while the root has it; or NULL */
    cake_sequence **choice; /* [n_choice] owned: those that were begun, of params.n > 1 */
    int n_choice, n_done;
    int n_back; /* the last of them: an earlier run began them, and they are not in slots yet */
    cake_scored *prompt_scored; /* [n_prompt, 1 + n_top] with echo and logprobs: rows [0, n_prompt_scored) */
    size_t *prompt_begin;       /* [n_prompt] byte of request.text at which each token begins */
    int n_prompt_scored;
    int nonfinite; /* where the first of its rows was not finite: see cake_row */
};

/* A lead; owned. Takes *request over. Its prompt is in ids already; token outlives it. With echo,
 * request.text is what is echoed (of a prompt that came as ids: their text). */
cake_sequence *cake_sequence_open(cake_request *request, cake_ids *ids, int context, uint64_t job_seed,
                                  const cake_tokenizer *token);
/* The next choice of a lead that has params.n > 1 and fewer so far; the lead's. */
cake_sequence *cake_sequence_branch(cake_sequence *lead);
void cake_sequence_close(cake_sequence *lead);

/* Adds a generated token; true if the answer is finished. scored: [1 + n_top], read if n_top >= 0. */
bool cake_sequence_push(cake_sequence *sequence, int32_t id, const cake_scored *scored, const int32_t *eos,
                        int n_eos);
/* Adds what an earlier run generated of a lead's answers, running [n]; false: it is not of this request, or
 * leaves nothing to generate though the prompt is to be scored, and nothing was added. */
bool cake_sequence_restore(cake_sequence *lead, const cake_inflight *inflight, int n, int n_vocab,
                           const int32_t *eos, int n_eos);
/* Whether it generates, which the lead of several choices does not, and can do so in a later run. */
bool cake_sequence_restores(const cake_sequence *sequence);
/* The first choices of a lead up to n are there, as if they were to go on; and one of them has these tokens,
 * ids [n_id], scored [n_id, 1 + n_top]. */
void cake_sequence_revive(cake_sequence *lead, int n);
void cake_sequence_regain(cake_sequence *sequence, const int32_t *ids, size_t n_id, const cake_scored *scored,
                          const int32_t *eos, int n_eos);
int cake_sequence_generated(const cake_sequence *sequence);
/* Whether prompt tokens are scored too, and the answer begins when all of them are. */
bool cake_sequence_scores_prompt(const cake_sequence *sequence);
/* scored [1 + n_top] of the prompt's token pos >= 1, in ascending order; what is known already is left. */
void cake_sequence_score_prompt(cake_sequence *sequence, int pos, const cake_scored *scored);
/* How much of the text can no longer be cut off by a stop string that is half there. */
size_t cake_sequence_settled(const cake_sequence *sequence);

#endif
