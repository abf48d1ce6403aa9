/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the bytes of each token. Out: prefix trees.
 * Invariant: tokens without bytes (ends, and those that no text has) are in no tree.
 */
#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* ---- the bytes */

/* Whether a text loses its first blank: the decoder of SentencePiece's tokenizers removes it. */
static bool strips_blank(const cake_tokenizer *tokenizer, const cake_vocabulary *v)
{
    for (int32_t id = 0; id < v->n_vocab; id++) {
        const char *bytes = v->bytes + v->begin[id];
        const int64_t n = v->begin[id + 1] - v->begin[id];
        if (n < 2 || bytes[0] != ' ' || bytes[1] < 'a' || bytes[1] > 'z')
            continue;
        cake_decoder *decoder = cake_decoder_open(tokenizer);
        cake_buf text = {0};
        cake_decoder_push(decoder, id, &text);
        cake_decoder_end(decoder, &text);
        const bool strips = text.len && text.data[0] != ' ';
        cake_decoder_close(decoder);
        cake_buf_free(&text);
        return strips;
    }
    return false;
}

/* The number of characters of plain text; 0: it is none. */
static int plain_chars(const char *bytes, int64_t n)
{
    int chars = 0;
    for (int64_t at = 0; at < n; chars++) {
        uint32_t code;
        const int size = cake_utf8_next(bytes + at, (size_t)(n - at), &code);
        if (!size || code < ' ' || code == '"' || code == '\\')
            return 0;
        at += size;
    }
    return chars <= CAKE_PLAIN_CHARS ? chars : 0;
}

/* ---- trees */

typedef struct sorter {
    const cake_vocabulary *v;
    int32_t id;
} sorter;

static int by_bytes(const void *a, const void *b)
{
    const sorter *x = a, *y = b;
    const cake_vocabulary *v = x->v;
    const size_t n = (size_t)(v->begin[x->id + 1] - v->begin[x->id]),
                 m = (size_t)(v->begin[y->id + 1] - v->begin[y->id]);
    const int order = memcmp(v->bytes + v->begin[x->id], v->bytes + v->begin[y->id], n < m ? n : m);
    return order ? order : n != m ? (n < m ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

static void add_node(cake_vocabulary_tree *tree, size_t *cap, uint8_t byte, int64_t depth)
{
    CAKE_RESERVE(tree->node, (size_t)tree->n, *cap);
    tree->node[tree->n++] = (cake_vocabulary_node){.token = -1, .byte = byte, .depth = (uint8_t)depth};
}

/* Builds the tree of sorted tokens [n]; of equal ones the first is in it. */
static void build(const cake_vocabulary *v, const sorter *sorted, int32_t n, cake_vocabulary_tree *tree)
{
    int32_t path[CAKE_TOKEN_BYTES + 1]; /* the node of each byte of the previous token */
    size_t cap = 0;
    int64_t depth = 0;
    const char *previous = NULL;
    for (int32_t i = 0; i < n; i++) {
        const char *bytes = v->bytes + v->begin[sorted[i].id];
        const int64_t len = v->begin[sorted[i].id + 1] - v->begin[sorted[i].id];
        int64_t common = 0;
        while (common < len && common < depth && bytes[common] == previous[common])
            common++;
        if (common == len && len == depth) /* equal to the previous one */
            continue;
        for (int64_t d = common; d < depth; d++)
            tree->node[path[d]].skip = tree->n;
        for (int64_t d = common; d < len; d++) {
            path[d] = tree->n;
            add_node(tree, &cap, (uint8_t)bytes[d], d);
        }
        tree->node[path[len - 1]].token = sorted[i].id;
        depth = len;
        previous = bytes;
    }
    for (int64_t d = 0; d < depth; d++)
        tree->node[path[d]].skip = tree->n;
}

/* Fills everything from bytes and begin. */
static void build_trees(cake_vocabulary *v)
{
    sorter *sorted = cake_alloc((size_t)v->n_vocab + 1, sizeof *sorted);
    int32_t n = 0, n_other = 0;
    v->same = cake_alloc((size_t)v->n_vocab + 1, sizeof *v->same);
    const size_t words = (size_t)v->n_vocab / 64 + 1;
    v->plain = cake_alloc((1 + CAKE_PLAIN_CHARS) * words, sizeof *v->plain);
    for (int32_t id = 0; id < v->n_vocab; id++) {
        const int64_t len = v->begin[id + 1] - v->begin[id];
        v->same[id] = -1;
        if (len > 0 && len <= CAKE_TOKEN_BYTES)
            sorted[n++] = (sorter){v, id};
    }
    if (n)
        qsort(sorted, (size_t)n, sizeof *sorted, by_bytes);
    build(v, sorted, n, &v->all);
    for (int32_t i = 0; i < n; i++) {
        const int32_t id = sorted[i].id;
        const int64_t len = v->begin[id + 1] - v->begin[id];
        if (i && len == v->begin[sorted[i - 1].id + 1] - v->begin[sorted[i - 1].id] &&
            !memcmp(v->bytes + v->begin[id], v->bytes + v->begin[sorted[i - 1].id], (size_t)len))
            v->same[sorted[i - 1].id] = id;
        const int chars = plain_chars(v->bytes + v->begin[id], len);
        for (int k = chars; chars && k <= CAKE_PLAIN_CHARS; k++)
            v->plain[(size_t)k * words + (size_t)id / 64] |= (uint64_t)1 << id % 64;
    }
    for (int32_t i = 0; i < n; i++)
        if (!(v->plain[CAKE_PLAIN_CHARS * words + (size_t)sorted[i].id / 64] >> sorted[i].id % 64 & 1))
            sorted[n_other++] = sorted[i];
    build(v, sorted, n_other, &v->others);
    free(sorted);
}

/* Appends a token's bytes: none, if it is an end, or if it has a byte that no text has. */
static void add_bytes(const cake_tokenizer *tokenizer, int32_t id, const int32_t *eos, int n_eos,
                      cake_buf *out)
{
    const size_t before = out->len;
    bool is_end = id >= cake_tokenizer_count(tokenizer);
    for (int i = 0; i < n_eos; i++)
        is_end |= eos[i] == id;
    if (is_end)
        return;
    cake_tokenizer_bytes(tokenizer, id, out);
    if (memchr(out->data + before, CAKE_SPECIAL_MARK[0], out->len - before) || out->len == before) {
        cake_buf_cut(out, before);
    } else if (cake_tokenizer_is_special(tokenizer, id)) {
        cake_buf_addc(out, 0);
        memmove(out->data + before + 1, out->data + before, out->len - before - 1);
        out->data[before] = CAKE_SPECIAL_MARK[0];
    }
}

bool cake_vocabulary_is_special(const cake_vocabulary *v, int32_t id)
{
    const int64_t at = v->begin[id];
    return at == v->begin[id + 1] || v->bytes[at] == CAKE_SPECIAL_MARK[0];
}

bool cake_vocabulary_has_special(const cake_vocabulary *v, const char *text)
{
    const size_t len = strlen(text);
    for (int32_t id = 0; id < v->n_vocab; id++)
        if ((size_t)(v->begin[id + 1] - v->begin[id]) == len + 1 &&
            v->bytes[v->begin[id]] == CAKE_SPECIAL_MARK[0] && !memcmp(v->bytes + v->begin[id] + 1, text, len))
            return true;
    return false;
}

cake_vocabulary *cake_vocabulary_build(const char *bytes, const int32_t *length, int32_t n_vocab, bool strips)
{
    cake_vocabulary *v = cake_alloc(1, sizeof *v);
    v->n_vocab = n_vocab;
    v->strips = strips;
    v->begin = cake_alloc((size_t)n_vocab + 1, sizeof *v->begin);
    for (int32_t id = 0; id < n_vocab; id++)
        v->begin[id + 1] = v->begin[id] + length[id];
    v->bytes = cake_copy(bytes, (size_t)v->begin[n_vocab]);
    build_trees(v);
    return v;
}

cake_vocabulary *cake_vocabulary_open(const cake_tokenizer *tokenizer, int n_vocab, const int32_t *eos,
                                      int n_eos)
{
    cake_buf bytes = {0};
    int32_t *length = cake_alloc((size_t)n_vocab + 1, sizeof *length);
    cake_buf_adds(&bytes, "");
    for (int32_t id = 0; id < n_vocab; id++) {
        const size_t before = bytes.len;
        add_bytes(tokenizer, id, eos, n_eos, &bytes);
        length[id] = (int32_t)(bytes.len - before);
    }
    cake_vocabulary *v = cake_vocabulary_build(bytes.data, length, n_vocab, false);
    v->strips = strips_blank(tokenizer, v);
    free(length);
    cake_buf_free(&bytes);
    return v;
}

void cake_vocabulary_close(cake_vocabulary *v)
{
    if (!v)
        return;
    free(v->bytes);
    free(v->begin);
    free(v->same);
    free(v->plain);
    free(v->all.node);
    free(v->others.node);
    free(v);
}
