/* SPDX-License-Identifier: Apache-2.0
 *
 * A request from prompt to answer, shared by the io, which reads and writes files, and the engine, which
 * samples. Every request has a lead: the sequence that holds request and prompt. With n = 1 it generates the
 * only answer. With n > 1 it never generates, and each choice is a further sequence. Of a request in parts
 * each part is one, too, with its own tokens and scores.
 */
#ifndef CAKE_REQUEST_SEQUENCE_H
#define CAKE_REQUEST_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "grammar/grammar.h"
#include "prompt/prompt.h"
#include "record/record.h"
#include "sample/penalties.h"
#include "sample/sample.h"
#include "tokenizer/tokenizer.h"

typedef struct cake_sequence cake_sequence;

struct cake_sequence {
    cake_sequence *lead;   /* itself, or the lead of this choice */
    cake_request request;  /* of a lead; params are complete; request.err: it failed */
    bool chat;             /* the prompt came as messages */
    cake_ids ids;          /* prompt and generated tokens */
    int n_prompt, max_len; /* ids.len never exceeds max_len */
    int type_from;         /* the first token of the prompt with token type 1; 0: none */
    int pool_from;         /* of a part that is pooled: its first token that counts */
    cake_key key;
    const cake_tokenizer *tokenizer; /* NULL where nothing is decoded */
    cake_decoder *decoder;
    cake_penalties *penalties;   /* the engine's: penalties on the next scores, or NULL */
    cake_constraint *constraint; /* the engine's: what may come next, or NULL */
    cake_buf text;               /* generated text, cut before a stop string */
    cake_finish finish;
    bool over;                    /* the latest token ended the answer */
    int n_top;                    /* alternatives of each token, of answer and prompt; -1: no logprobs */
    cake_token_logprob *logprobs; /* [generated, 1 + n_top] */
    size_t *begin; /* [generated] byte of text where each token begins, if n_top >= 0 and text is decoded */
    size_t cap_logprobs;            /* capacity of logprobs and begin, in tokens */
    double admitted, first, latest; /* time of admission, and of the first and the latest token */
    double ttft;   /* the io's: seconds from admission to the first token; 0: an earlier run generated it */
    double waited; /* the io's: seconds from admission to the latest token */

    int listed; /* the io's: 1 + its index in the list of begun sequences; 0: not listed */
    int kept;   /* the io's: tokens already in the journal */

    /* of a lead */
    cake_grammar *grammar;             /* what its answers must look like, an own reference; NULL: anything */
    const cake_vocabulary *vocabulary; /* NULL: the grammar may not be compiled yet */
    bool begun;                        /* rows of its prompt were sent */
    int32_t *chain;         /* [cake_schedule_chain_len] prefix nodes, while the engine has it; or NULL */
    cake_sequence **choice; /* [n_choice] owned: choices or parts begun so far */
    int part_at;            /* where in ids the next part begins */
    int n_choice, n_done;
    int n_resumed;        /* how many of the last ones come from an earlier run and have no slot yet */
    size_t *prompt_begin; /* [n_prompt] byte of request.text at which each token begins */
    int nonfinite;        /* cause of its first non-finite row: see cake_row */

    double *pooled; /* of a part: [number of poolings, dim] sums over the hidden states of n_pooled rows,
                     * while it is computed */
    int n_pooled;
    float *embedding; /* of a part: [n_embedding]; NULL: none yet */
    int n_embedding;

    /* of a lead without parts, or of a part */
    cake_token_logprob *prompt_logprobs; /* [n_prompt, 1 + n_top], if prompt tokens are scored */
    int32_t *prompt_rank;  /* [n_prompt] 1: no other token is likelier; if params.prompt_logprobs is set */
    int n_prompt_logprobs; /* rows up to here are filled, or not wanted */
};

/* Returns an owned lead and takes *request over. The prompt is in ids already; tokenizer must outlive it.
 * With echo, request.text is the echoed text (set from ids if the prompt came as ids). */
cake_sequence *cake_sequence_open(cake_request *request, cake_ids *ids, int context, uint64_t job_seed,
                                  const cake_tokenizer *tokenizer);
/* How many sequences beside the lead there will be: parts, or choices; 0: the lead is the only one. */
int cake_sequence_n_branch(const cake_sequence *lead);
/* The next of them; owned by the lead. */
cake_sequence *cake_sequence_branch(cake_sequence *lead);
void cake_sequence_close(cake_sequence *lead);

/* Adds a generated token; true: the answer is finished. logprobs: [1 + n_top], read if n_top >= 0. */
bool cake_sequence_push(cake_sequence *sequence, int32_t id, const cake_token_logprob *logprobs,
                        const int32_t *eos, int n_eos);
/* Adds the tokens of a lead's answers from an earlier run, inflight [n]. false: nothing was added, because it
 * is of another request, or nothing is left to generate though the prompt must be scored. */
bool cake_sequence_restore(cake_sequence *lead, const cake_inflight *inflight, int n, int n_vocab,
                           const int32_t *eos, int n_eos);
/* Whether a later run can resume it; not a lead of several choices, which generates nothing. */
bool cake_sequence_is_resumable(const cake_sequence *sequence);
/* Creates the first n choices of a lead as resumed ones; adds earlier tokens to a sequence: ids [n_id],
 * logprobs [n_id, 1 + n_top]. */
void cake_sequence_resume_choices(cake_sequence *lead, int n);
void cake_sequence_resume(cake_sequence *sequence, const int32_t *ids, size_t n_id,
                          const cake_token_logprob *logprobs, const int32_t *eos, int n_eos);
int cake_sequence_generated(const cake_sequence *sequence);
/* Whether an answer follows the prompt. */
bool cake_sequence_generates(const cake_sequence *sequence);
/* Tokens of the prompt that are computed: the scores after the last one are needed for an answer only. */
int cake_sequence_n_computed(const cake_sequence *sequence);
/* The first token of the prompt that is scored, too, up to its end, where the answer then begins; 0: none.
 * A lead with parts has none of its own. */
int cake_sequence_score_from(const cake_sequence *sequence);
/* Adds the scores [1 + n_top] and the rank of the prompt's token pos. In ascending order; repeated ones are
 * ignored. True: nothing is left to compute. */
bool cake_sequence_score_prompt(cake_sequence *sequence, int pos, const cake_token_logprob *logprobs,
                                int32_t rank);
/* Length of the text that can no longer be cut off by an incomplete stop string. */
size_t cake_sequence_settled(const cake_sequence *sequence);

#endif
