/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: what an answer must look like. The first byte is the kind, the rest is a schema, pattern,
 * list or grammar. It compiles or is refused with a message; then every answer that takes allowed tokens
 * goes on until it may end.
 */
#include <string.h>

#include "base/die.h"
#include "base/utf8.h"
#include "grammar/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_VOCAB = 260, EOS = 256, STEPS = 12 };

/* All bytes, and three longer tokens. */
static const cake_vocabulary *vocabulary(void)
{
    static cake_vocabulary *v;
    if (!v) {
        char bytes[256 + 16];
        int32_t length[N_VOCAB] = {[EOS + 1] = 2, [EOS + 2] = 4, [EOS + 3] = 3};
        for (int i = 0; i < 256; i++) {
            bytes[i] = (char)i;
            length[i] = 1;
        }
        memcpy(bytes + 256, "{\"\": \"abc", 10);
        v = cake_vocabulary_build(bytes, length, N_VOCAB, false);
    }
    return v;
}

static bool allows(const cake_mask *mask, int32_t id)
{
    for (int32_t i = 0; i < mask->n; i++)
        if (mask->id[i] == id)
            return mask->allowed;
    return !mask->allowed;
}

/* Takes an allowed token each time, which the input chooses. */
static void walk(cake_grammar *g, const uint8_t *data, size_t size)
{
    const int32_t end = EOS;
    cake_constraint *c = cake_constraint_open(cake_grammar_share(g), vocabulary(), &end, 1, true);
    for (int step = 0; step < STEPS; step++) {
        const cake_mask mask = cake_constraint_mask(c);
        const char *stuck = cake_constraint_stuck(c);
        int32_t id = data[(size_t)step * 7 % size];
        CAKE_ASSERT(!stuck || strstr(stuck, "too ambiguous"));
        if (stuck)
            break;
        for (int i = 0; i < N_VOCAB && !allows(&mask, id); i++)
            id = (id + 1) % N_VOCAB;
        CAKE_ASSERT(allows(&mask, id));
        if (id == EOS)
            break;
        cake_constraint_add(c, id);
    }
    cake_constraint_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cake_grammar *g = NULL;
    cake_fault fault = {0};
    cake_constraint_source source = {.text = (char *)(uintptr_t)data + 1, .len = size - 1};
    if (!size || cake_utf8_check(source.text, source.len) != source.len) /* as those of requests are */
        return 0;
    source.kind = CAKE_CONSTRAINT_SCHEMA + data[0] % (CAKE_CONSTRAINT_STRUCTURE - CAKE_CONSTRAINT_SCHEMA + 1);
    source.compact = data[0] & 64;
    source.closed = data[0] & 128;
    cake_err err = cake_grammar_open(&source, &g, &fault);
    CAKE_ASSERT(err ? err == CAKE_ERR_REQUEST && fault.message[0] && !g : g != NULL);
    if (!err)
        walk(g, data, size);
    cake_grammar_close(g);
    return 0;
}
