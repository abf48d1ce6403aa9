/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an automaton is after a text: a set of states, each with the calls it returns to. Sets are made when
 * a text first leads to them, get numbers, and are kept, so that a second byte of the same kind costs a
 * look-up. One thread at a time.
 */
#ifndef CAKE_GRAMMAR_STATE_SETS_H
#define CAKE_GRAMMAR_STATE_SETS_H

#include "grammar/automaton.h"

/* Rules that are entered and not left; what would need more is refused. */
#define CAKE_STATE_SETS_DEPTH 2000

typedef struct cake_state_sets cake_state_sets;

/* From the beginning of rule `root`. automaton: finished, borrowed. CAKE_STATE_SETS_WORK is allowed. */
cake_state_sets *cake_state_sets_open(const cake_automaton *automaton, int root);
void cake_state_sets_close(cake_state_sets *states);

#define CAKE_STATE_NONE  0 /* no text leads on */
#define CAKE_STATE_BEGIN 1 /* before the first byte */

/* Steps that sets may take from now on; some 3 to 8 ns each, whatever the automaton is like. */
#define CAKE_STATE_SETS_WORK 100000000
void cake_state_sets_allow(cake_state_sets *states, int64_t work);
/* Whether they took more, since then: sets that were not known are CAKE_STATE_NONE, and nothing is kept of
 * them. */
bool cake_state_sets_over(const cake_state_sets *states);

/* The set after one more byte. */
int32_t cake_state_sets_next(cake_state_sets *states, int32_t set, uint8_t byte);
/* Whether the text may end here; whether no byte can follow. */
bool cake_state_sets_ends(const cake_state_sets *states, int32_t set);
bool cake_state_sets_last(cake_state_sets *states, int32_t set);
int32_t cake_state_sets_count(const cake_state_sets *states);
/* Steps that were taken to make sets, since open: a measure of time. */
int64_t cake_state_sets_work(const cake_state_sets *states);
size_t cake_state_sets_bytes(const cake_state_sets *states);

#endif
