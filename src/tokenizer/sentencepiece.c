/* SPDX-License-Identifier: Apache-2.0
 *
 * In: SentencePiece's tokenizer.model, a protocol buffer (sentencepiece_model.proto). Out: a tokenizer.json.
 *
 * The class that transformers 5 chooses (tokenizer_class.c) decides what the file leaves open: Llama's
 * classes prepend a space and read every model as BPE, Gemma's prepend none, TokenizersBackend follows the
 * file. All ignore add_dummy_prefix, remove_extra_whitespaces and treat_whitespace_as_suffix.
 * Invariant: every length is checked against the bytes that remain.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/import.h"
#include "tokenizer/vocab.h"

enum { CONTROL = 3, USER_DEFINED = 4 };
enum { UNIGRAM = 1, BPE = 2 };
enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

typedef struct piece {
    const char *text;
    size_t len;
    float score;
    int64_t type;
} piece;

typedef struct spm {
    const char *where;
    piece *piece; /* [n] */
    size_t n, cap;
    int64_t model_type, byte_fallback;
    int64_t id[3];        /* of unk, bos, eos; negative: none */
    cake_buf own[3];      /* their texts */
    const char *charsmap; /* [charsmap_len] */
    size_t charsmap_len;
} spm;

/* --- the protocol buffer --- */

typedef struct field {
    uint64_t number, value; /* value: for VARINT and FIXED32 */
    int wire;
    const char *data; /* for BYTES */
    size_t len;
} field;

static bool read_varint(const char **at, const char *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)*(*at)++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads the field at *at; false: the buffer is cut off or malformed. */
static bool read_field(const char **at, const char *end, field *f)
{
    uint64_t key, size = 0;
    if (!read_varint(at, end, &key))
        return false;
    *f = (field){.number = key >> 3, .wire = (int)(key & 7)};
    if (f->wire == VARINT)
        return read_varint(at, end, &f->value);
    if (f->wire == BYTES && !read_varint(at, end, &size))
        return false;
    size = f->wire == FIXED64 ? 8 : f->wire == FIXED32 ? 4 : size;
    if ((f->wire != BYTES && !size) || size > (uint64_t)(end - *at))
        return false;
    f->data = *at;
    f->len = (size_t)size;
    for (size_t i = 0; f->wire == FIXED32 && i < 4; i++)
        f->value |= (uint64_t)(unsigned char)f->data[i] << 8 * i;
    *at += size;
    return true;
}

static cake_err broken(const spm *m, const char *what)
{
    return cake_fail("tokenizer", "%s: this is no SentencePiece model: %s", m->where, what);
}

static cake_err read_piece(spm *m, const field *outer)
{
    const char *at = outer->data, *end = at + outer->len;
    piece p = {.type = 1, .text = ""};
    field f;
    while (at < end) {
        if (!read_field(&at, end, &f))
            return broken(m, "a piece is cut short");
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.wire == BYTES) {
            p.text = f.data;
            p.len = f.len;
        } else if (f.number == 2 && f.wire == FIXED32) {
            memcpy(&p.score, &bits, sizeof bits);
        } else if (f.number == 3 && f.wire == VARINT) {
            p.type = (int64_t)f.value;
        }
    }
    if (cake_utf8_check(p.text, p.len) < p.len || memchr(p.text, 0, p.len))
        return cake_fail("tokenizer", "%s: piece %zu is not UTF-8, or holds a NUL", m->where, m->n);
    if (m->n == CAKE_MAX_VOCAB)
        return broken(m, "it has too many pieces");
    CAKE_RESERVE(m->piece, m->n, m->cap);
    m->piece[m->n++] = p;
    return CAKE_OK;
}

/* Reads the trainer's and the normalizer's specifications. */
static cake_err read_spec(spm *m, const field *outer)
{
    const char *at = outer->data, *end = at + outer->len;
    bool trainer = outer->number == 2;
    field f;
    while (at < end) {
        if (!read_field(&at, end, &f))
            return broken(m, trainer ? "trainer_spec is cut short" : "normalizer_spec is cut short");
        if (trainer && f.number == 3 && f.wire == VARINT)
            m->model_type = (int64_t)f.value;
        else if (trainer && f.number == 35 && f.wire == VARINT)
            m->byte_fallback = f.value != 0;
        else if (trainer && f.number >= 40 && f.number <= 42 && f.wire == VARINT)
            m->id[f.number - 40] = (int32_t)f.value;
        else if (trainer && f.number >= 45 && f.number <= 47 && f.wire == BYTES) {
            cake_buf_cut(&m->own[f.number - 45], 0);
            cake_buf_add(&m->own[f.number - 45], f.data, f.len);
        } else if (!trainer && f.number == 2 && f.wire == BYTES) {
            m->charsmap = f.data;
            m->charsmap_len = f.len;
        }
    }
    return CAKE_OK;
}

static cake_err read_model(spm *m, const char *bytes, size_t len)
{
    const char *at = bytes, *end = bytes + len;
    cake_err err = CAKE_OK;
    field f;
    while (!err && at < end) {
        if (!read_field(&at, end, &f))
            return cake_fail("tokenizer", "%s: this is no SentencePiece model: it is cut short at byte %zu",
                             m->where, (size_t)(at - bytes));
        if (f.wire == BYTES && f.number == 1)
            err = read_piece(m, &f);
        else if (f.wire == BYTES && (f.number == 2 || f.number == 3))
            err = read_spec(m, &f);
    }
    if (!err && m->model_type != UNIGRAM && m->model_type != BPE)
        err =
            cake_fail("tokenizer", "%s: model_type %lld is not supported; known are 1 (unigram) and 2 (BPE)",
                      m->where, (long long)m->model_type);
    for (int i = 0; !err && i < 3; i++)
        if (cake_utf8_check(m->own[i].data, m->own[i].len) < m->own[i].len)
            err = broken(m, "the name of its unknown, first or last token is not UTF-8");
    return err;
}

/* --- the tokenizer.json --- */

/* Every pair of pieces that joins to a piece, the shorter first part first: merges have the order of their
 * results. */
static void add_merges(const spm *m, const cake_vocab *ids, cake_buf *out)
{
    const char *comma = "";
    for (size_t i = 0; i < m->n; i++) {
        const piece *p = &m->piece[i];
        for (size_t at = (size_t)cake_utf8_next(p->text, p->len, NULL); at && at < p->len;
             at += (size_t)cake_utf8_next(p->text + at, p->len - at, NULL)) {
            if (cake_vocab_find(ids, p->text, at) < 0 || cake_vocab_find(ids, p->text + at, p->len - at) < 0)
                continue;
            cake_buf_addf(out, "%s[", comma);
            cake_json_add_text(out, p->text, at);
            cake_buf_addc(out, ',');
            cake_json_add_text(out, p->text + at, p->len - at);
            cake_buf_addc(out, ']');
            comma = ",";
        }
    }
}

/* unknown [len]: the token for unknown characters; NULL: none. */
static void add_bpe(const spm *m, const char *merges, bool bytes, const char *unknown, size_t len,
                    cake_buf *out)
{
    cake_buf_adds(out, "{\"type\": \"BPE\", \"fuse_unk\": true, ");
    cake_buf_addf(out, "\"byte_fallback\": %s, \"unk_token\": ", bytes ? "true" : "false");
    if (unknown)
        cake_json_add_text(out, unknown, len);
    else
        cake_buf_adds(out, "null");
    cake_buf_adds(out, ", \"vocab\": {");
    for (size_t i = 0; i < m->n; i++) {
        cake_buf_adds(out, i ? "," : "");
        cake_json_add_text(out, m->piece[i].text, m->piece[i].len);
        cake_buf_addf(out, ":%zu", i);
    }
    cake_buf_addf(out, "}, \"merges\": [%s]}", merges);
}

static void add_unigram(const spm *m, cake_buf *out)
{
    cake_buf_addf(out, "{\"type\": \"Unigram\", \"byte_fallback\": %s, \"unk_id\": %lld, \"vocab\": [",
                  m->byte_fallback ? "true" : "false", (long long)m->id[0]);
    for (size_t i = 0; i < m->n; i++) {
        cake_buf_adds(out, i ? ",[" : "[");
        cake_json_add_text(out, m->piece[i].text, m->piece[i].len);
        cake_buf_addc(out, ',');
        cake_json_add_real(out, (double)m->piece[i].score);
        cake_buf_addc(out, ']');
    }
    cake_buf_adds(out, "]}");
}

/* Everything but the model and the added tokens. */
static void add_stages(const spm *m, const cake_specials *specials, cake_buf *out)
{
#define MARK "\"\xE2\x96\x81\""
    static const char back[] =
        "{\"type\": \"Replace\", \"pattern\": {\"String\": " MARK "}, \"content\": \" \"}";
    static const char spaces[] =
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": " MARK "}";
    cake_tokenizer_class_spm kind = specials->class->spm;
    bool llama = kind == CAKE_SPM_LLAMA || kind == CAKE_SPM_CODE_LLAMA;
    bool prefix = cake_json_bool(cake_json_get(specials->config, "add_prefix_space"), true);
    bool legacy = kind == CAKE_SPM_LLAMA && cake_json_bool(cake_json_get(specials->config, "legacy"), false);
    cake_buf_adds(out, "\"normalizer\": ");
    if (llama) {
        cake_buf_addf(out,
                      "null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": " MARK
                      ", \"prepend_scheme\": \"%s\", \"split\": false}, ",
                      !prefix  ? "never"
                      : legacy ? "always"
                               : "first");
    } else {
        cake_buf_adds(out, "{\"type\": \"Sequence\", \"normalizers\": [");
        if (kind == CAKE_SPM_OWN && m->charsmap_len) {
            cake_buf_adds(out, "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"");
            cake_buf_add_base64(out, m->charsmap, m->charsmap_len);
            cake_buf_adds(out, "\"}, ");
        }
        cake_buf_addf(out, "%s]}, \"pre_tokenizer\": ", spaces);
        cake_buf_adds(out, kind == CAKE_SPM_GEMMA
                               ? "{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
                                 "\"MergedWithPrevious\", \"invert\": false}, "
                               : "null, ");
    }
    cake_buf_addf(out, "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [%s", back);
    if (kind != CAKE_SPM_OWN || m->byte_fallback)
        cake_buf_adds(out, ", {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}");
    if (kind == CAKE_SPM_CODE_LLAMA || (llama && prefix))
        cake_buf_adds(out, ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}");
    cake_buf_adds(out, "]}}");
}

/* Pieces whose ids are listed for other tokens take their texts, unless these are pieces, too. */
static void rename_pieces(spm *m, cake_vocab *ids, const cake_special_list *listed)
{
    for (size_t i = 0; i < listed->n; i++) {
        const cake_special *s = &listed->at[i];
        if ((uint64_t)s->id >= m->n || !s->len || cake_vocab_find(ids, s->text, s->len) >= 0)
            continue;
        m->piece[s->id].text = s->text;
        m->piece[s->id].len = s->len;
        cake_vocab_put(ids, s->text, s->len, ids->count);
    }
}

static void add_model(spm *m, cake_vocab *ids, const cake_specials *specials, cake_buf *json)
{
    cake_tokenizer_class_spm kind = specials->class->spm;
    const cake_special *unk = specials->named.n ? &specials->named.at[CAKE_UNK] : NULL;
    const cake_buf *own = &m->own[0];
    cake_buf merges = {0};
    if (kind == CAKE_SPM_OWN && m->model_type != BPE) {
        add_unigram(m, json);
        return;
    }
    add_merges(m, ids, &merges);
    cake_buf_adds(&merges, "");
    if (kind == CAKE_SPM_OWN) {
        if (specials->all)
            rename_pieces(m, ids, &specials->listed);
        add_bpe(m, merges.data, m->byte_fallback, own->data, own->len, json);
    } else if (kind == CAKE_SPM_LLAMA) {
        add_bpe(m, merges.data, true, NULL, 0, json);
    } else { /* transformers writes an absent token as Python's None here */
        bool none = !unk || !unk->text;
        add_bpe(m, merges.data, true, none ? "None" : unk->text, none ? 4 : unk->len, json);
    }
    cake_buf_free(&merges);
}

/* Control pieces are special, user-defined ones are not; then the model's own special tokens. */
static void add_specials(const spm *m, cake_specials *specials)
{
    static const int index[] = {CAKE_UNK, CAKE_BOS, CAKE_EOS};
    static const char *const infill[] = {"\xE2\x96\x81<PRE>", "\xE2\x96\x81<MID>", "\xE2\x96\x81<SUF>",
                                         "\xE2\x96\x81<EOT>", "<FILL_ME>"};
    if (!specials->extra_given)
        cake_specials_drop(specials);
    for (size_t i = 0; i < m->n && !specials->extra_given; i++)
        if (m->piece[i].type == CONTROL || m->piece[i].type == USER_DEFINED)
            cake_specials_extra(specials, m->piece[i].text, m->piece[i].len, m->piece[i].type == CONTROL);
    for (size_t i = 0; i < sizeof infill / sizeof *infill; i++)
        if (specials->class->spm == CAKE_SPM_CODE_LLAMA && !specials->extra_given)
            cake_specials_extra(specials, infill[i], strlen(infill[i]), true);
    for (int i = 0; i < 3; i++)
        if (specials->class->spm == CAKE_SPM_OWN && !specials->given[index[i]] && m->id[i] >= 0)
            cake_specials_name(specials, index[i], m->own[i].data, m->own[i].len);
}

cake_err cake_sentencepiece_convert(const char *bytes, size_t len, const char *where, cake_specials *specials,
                                    cake_buf *json)
{
    spm m = {.where = where, .model_type = UNIGRAM, .id = {0, 1, 2}};
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    cake_vocab ids = {0};
    for (int i = 0; i < 3; i++)
        cake_buf_adds(&m.own[i], names[i]);
    cake_err err = read_model(&m, bytes, len);
    if (!err && specials->class->spm == CAKE_SPM_NONE)
        err = cake_fail("tokenizer",
                        "%s: a SentencePiece model of %.80s (the tokenizer_class of tokenizer_config.json, "
                        "else the model_type of config.json) is not supported; "
                        "known are LlamaTokenizer, CodeLlamaTokenizer, GemmaTokenizer, TokenizersBackend",
                        where, specials->reader);
    for (size_t i = 0; !err && i < m.n; i++)
        if (cake_vocab_add(&ids, m.piece[i].text, m.piece[i].len, (int32_t)i) != (int32_t)i)
            err = cake_fail("tokenizer", "%s: piece %zu, \"%.*s\", is a duplicate", where, i,
                            (int)(m.piece[i].len < 80 ? m.piece[i].len : 80), m.piece[i].text);
    if (!err) {
        add_specials(&m, specials);
        cake_buf_adds(json, "{\"model\": ");
        add_model(&m, &ids, specials, json);
        cake_buf_adds(json, ", ");
        add_stages(&m, specials, json);
    }
    cake_vocab_free(&ids);
    for (int i = 0; i < 3; i++)
        cake_buf_free(&m.own[i]);
    free(m.piece);
    return err;
}
