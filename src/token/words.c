/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `model`. Out: its vocabulary and the algorithm that makes tokens of a piece of text.
 */
#include <stdlib.h>

#include "token/parts.h"

typedef struct cake_words_kind {
    const char *type;
    cake_err (*open)(const cake_spot *model, cake_words *words); /* vocab is there already */
    void (*close)(cake_words *words);
    void (*run)(const cake_words *words, const char *piece, size_t len, cake_scratch *scratch, cake_ids *ids);
    bool (*drop)(const cake_words *words, bool spelled);
} words_kind;

static const words_kind kinds[] = {
    {"BPE", cake_bpe_open, cake_bpe_close, cake_bpe_run, cake_bpe_drop},
};

static cake_err open_vocab(const cake_spot *model, cake_vocab *vocab)
{
    cake_spot spot = cake_spot_key(model, "vocab");
    cake_err err = cake_spot_need(&spot, CAKE_JSON_OBJECT, "an object");
    if (err)
        return err;
    for (void *it = cake_json_first(spot.node); it; it = cake_json_next(spot.node, it)) {
        size_t len;
        const char *text = cake_json_key(it, &len);
        cake_spot member = {.parent = &spot, .key = text, .node = cake_json_value(it)};
        int64_t id = cake_json_int(member.node, -1);
        err = cake_spot_need(&member, CAKE_JSON_INT, "an id");
        if (err)
            return err;
        if (id < 0 || id >= CAKE_VOCAB_MOST)
            return cake_spot_fail(&member, "id %lld is out of range; ids are 0 to %d", (long long)id,
                                  CAKE_VOCAB_MOST - 1);
        if (cake_vocab_add(vocab, text, len, (int32_t)id) < 0) {
            size_t other_len;
            const char *other = cake_vocab_text(vocab, (int32_t)id, &other_len);
            return cake_spot_fail(&member, "id %lld is that of \"%.*s\" already", (long long)id,
                                  (int)(other_len < 80 ? other_len : 80), other);
        }
    }
    return CAKE_OK;
}

cake_err cake_words_open(const cake_spot *spot, cake_words *out)
{
    size_t row = 0;
    cake_err err = cake_spot_need(spot, CAKE_JSON_OBJECT, "an object");
    /* Files of old have no type; only BPE has merges. */
    if (!err && (cake_json_get(spot->node, "type") || !cake_json_get(spot->node, "merges")))
        err = cake_spot_choose(spot, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &row);
    if (!err)
        err = open_vocab(spot, &out->vocab);
    if (err)
        return err;
    out->kind = &kinds[row];
    return kinds[row].open(spot, out);
}

void cake_words_close(cake_words *words)
{
    if (words->kind)
        words->kind->close(words);
    cake_vocab_free(&words->vocab);
    *words = (cake_words){0};
}

bool cake_words_drop(const cake_words *words, bool spelled)
{
    return words->kind->drop(words, spelled);
}

void cake_words_run(const cake_words *words, const char *piece, size_t len, cake_scratch *scratch,
                    cake_ids *ids)
{
    words->kind->run(words, piece, len, scratch, ids);
}

void cake_words_scratch_free(cake_scratch *scratch)
{
    free(scratch->symbols);
    free(scratch->heap);
    cake_buf_free(&scratch->character);
}
