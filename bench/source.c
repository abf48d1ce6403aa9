/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/source.h"

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
    (void)sequence, (void)waited;
    ((source *)self)->generated++;
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

cake_conductor source_conductor(source *s)
{
    return (cake_conductor){.self = s, .next = next, .token = token, .done = done};
}
