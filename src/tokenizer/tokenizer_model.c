/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `model`. Out: its vocabulary and the algorithm that splits a piece of text into tokens.
 */
#include <stdlib.h>

#include "tokenizer/internal.h"

typedef struct cake_tokenizer_model_kind {
    const char *type;
    cake_err (*vocab)(const cake_json_path *vocab, cake_tokenizer_model *words);
    cake_err (*open)(const cake_json_path *model, cake_tokenizer_model *words); /* vocab is set already */
    void (*close)(cake_tokenizer_model *words);
    cake_err (*run)(const cake_tokenizer_model *words, const char *piece, size_t len, cake_encode_ws *scratch,
                    cake_ids *ids, cake_fault *fault);
    bool (*drop)(const cake_tokenizer_model *words, bool spelled);
    size_t (*cut)(const cake_tokenizer_model *words, const char *piece, size_t len,
                  size_t from); /* NULL: pieces are not split */
} words_kind;

/* {"token": id, ...} */
static cake_err open_vocab(const cake_json_path *path, cake_tokenizer_model *words)
{
    cake_vocab *vocab = &words->vocab;
    cake_err err = cake_json_path_need(path, CAKE_JSON_OBJECT, "an object");
    if (err)
        return err;
    for (void *it = cake_json_first(path->node); it; it = cake_json_next(path->node, it)) {
        size_t len;
        const char *text = cake_json_key(it, &len);
        cake_json_path member = {.parent = path, .key = text, .node = cake_json_value(it)};
        int64_t id = cake_json_int(member.node, -1);
        err = cake_json_path_need(&member, CAKE_JSON_INT, "an id");
        if (err)
            return err;
        if (id < 0 || id >= CAKE_MAX_VOCAB)
            return cake_json_path_fail(&member, "id %lld is out of range; ids are 0 to %d", (long long)id,
                                       CAKE_MAX_VOCAB - 1);
        if (cake_vocab_add(vocab, text, len, (int32_t)id) < 0) {
            size_t other_len;
            const char *other = cake_vocab_text(vocab, (int32_t)id, &other_len);
            return cake_json_path_fail(&member, "id %lld is that of \"%.*s\" already", (long long)id,
                                       (int)(other_len < 80 ? other_len : 80), other);
        }
    }
    return CAKE_OK;
}

static const words_kind kinds[] = {
    {"BPE", open_vocab, cake_bpe_open, cake_bpe_close, cake_bpe_run, cake_bpe_drop, cake_bpe_cut},
    {"Unigram", cake_unigram_vocab, cake_unigram_open, cake_unigram_close, cake_unigram_run,
     cake_unigram_drop, NULL},
    {"WordPiece", open_vocab, cake_wordpiece_open, cake_wordpiece_close, cake_wordpiece_run,
     cake_wordpiece_drop, NULL},
};

cake_err cake_tokenizer_model_open(const cake_json_path *path, cake_vocab_reader *lists,
                                   cake_tokenizer_model *out)
{
    size_t row = 0;
    cake_json_path vocab = cake_json_path_key(path, "vocab");
    cake_err err = cake_json_path_need(path, CAKE_JSON_OBJECT, "an object");
    /* Older files have no type; only BPE has merges, only Unigram has scores, only WordPiece limits words. */
    if (!err && !cake_json_get(path->node, "type") && cake_json_kind(vocab.node) == CAKE_JSON_ARRAY)
        row = 1;
    else if (!err && !cake_json_get(path->node, "type") &&
             cake_json_get(path->node, "max_input_chars_per_word"))
        row = 2;
    else if (!err && (cake_json_get(path->node, "type") || !cake_json_get(path->node, "merges")))
        err = cake_json_path_choose(path, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &row);
    if (err)
        return err;
    out->kind = &kinds[row];
    out->lists = lists;
    if (lists && lists->n && kinds[row].open == cake_bpe_open) {
        out->vocab = lists->vocab;
        lists->vocab = (cake_vocab){0};
    } else {
        err = kinds[row].vocab(&vocab, out);
    }
    if (!err)
        err = kinds[row].open(path, out);
    out->lists = NULL;
    if (!err)
        out->cache = cake_cache_open((size_t)out->vocab.count);
    return err;
}

bool cake_tokenizer_model_bpe(const cake_tokenizer_model *words)
{
    return words->kind == &kinds[0];
}

void cake_tokenizer_model_close(cake_tokenizer_model *words)
{
    if (words->kind && words->own)
        words->kind->close(words);
    cake_vocab_free(&words->vocab);
    cake_cache_close(words->cache);
    *words = (cake_tokenizer_model){0};
}

bool cake_tokenizer_model_drop(const cake_tokenizer_model *words, bool spelled)
{
    return words->kind->drop(words, spelled);
}

/* Encodes a part on its own, from the cache if it came before. */
static cake_err run_part(const cake_tokenizer_model *words, const char *piece, size_t len, bool raw,
                         cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    size_t before = ids->len;
    if (len <= CAKE_CACHE_KEY && cake_cache_get(words->cache, piece, len, ids))
        return CAKE_OK;
    const char *text = piece;
    size_t n = len;
    if (raw) {
        cake_buf_cut(&scratch->spelled, 0);
        cake_byte_level_spell(piece, len, &scratch->spelled);
        text = scratch->spelled.data;
        n = scratch->spelled.len;
    }
    cake_err err = words->kind->run(words, text, n, scratch, ids, fault);
    if (!err && len <= CAKE_CACHE_KEY)
        cake_cache_put(words->cache, piece, len, ids->len ? ids->id + before : NULL, ids->len - before);
    return err;
}

cake_err cake_tokenizer_model_run(const cake_tokenizer_model *words, const char *piece, size_t len, bool raw,
                                  cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault)
{
    if (raw || !words->kind->cut)
        return run_part(words, piece, len, raw, scratch, ids, fault);
    cake_err err = CAKE_OK;
    for (size_t from = 0, end; !err && from < len; from = end) {
        end = words->kind->cut(words, piece, len, from);
        err = run_part(words, piece + from, end - from, raw, scratch, ids, fault);
    }
    return err;
}
