/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a load (cost.h). Out: sequences for an engine, and the time of each token.
 * Invariant: a prompt depends only on the load and the number of its sequence, so every run has the same
 * ones.
 */
#include "bench/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

source_steady *source_steady_open(int seqs)
{
    source_steady *s = cake_alloc(1, sizeof *s);
    int **const each[] = {&s->got, &s->round_of, &s->then};
    for (int i = 0; i < 3; i++)
        *each[i] = cake_alloc((size_t)seqs, sizeof **each[i]);
    s->round = 1;
    return s;
}

void source_steady_close(source_steady *steady)
{
    if (!steady)
        return;
    free(steady->got);
    free(steady->round_of);
    free(steady->then);
    free(steady);
}

/* Sequence i has a token. */
static void look(source_steady *s, int i, int seqs)
{
    s->until = cake_clock_now();
    if (s->round_of[i] == s->round) { /* a new round, and the one before has ended */
        s->round++;
        if (s->begun == seqs && s->seen == 0)
            s->since = s->until;
        else if (s->begun == seqs && s->seen == 1)
            memcpy(s->then, s->got, (size_t)seqs * sizeof *s->then);
        s->seen += s->begun == seqs && s->seen < 2;
    }
    s->round_of[i] = s->round;
    s->begun += !s->got[i]++;
}

static cake_err next(void *self, cake_sequence **out)
{
    source *s = self;
    if (s->given == s->load.seqs)
        return CAKE_END;
    cake_request request = {.index = s->given, .order = s->given, .params = cake_params_base()};
    request.params.max_tokens = s->load.generated;
    request.params.temperature = 0;
    request.params.ignore_eos = 1;
    cake_ids ids = {0};
    uint64_t random = (uint64_t)s->given + 1;
    int n_prompt = cost_load_prompt(&s->load, s->given);
    for (int i = 0; i < n_prompt; i++) {
        random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
        cake_ids_add(&ids, (int32_t)((random >> 33) % (uint64_t)s->n_vocab));
    }
    *out = cake_sequence_open(&request, &ids, n_prompt + s->load.generated, 0, NULL);
    s->given++;
    return CAKE_OK;
}

static void token(void *self, cake_sequence *sequence, double waited)
{
    source *s = self;
    (void)waited;
    s->generated++;
    if (s->steady)
        look(s->steady, (int)sequence->request.index, s->load.seqs);
}

static cake_err done(void *self, cake_sequence *sequence)
{
    (void)self;
    cake_err err = sequence->request.err
                       ? cake_fail("bench", "a sequence failed: %s", sequence->request.fault.message)
                       : CAKE_OK;
    cake_sequence_close(sequence);
    return err;
}

cake_sequence_io source_io(source *s)
{
    return (cake_sequence_io){.self = s, .next = next, .token = token, .done = done};
}
