/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece's tokenizer.model. In: its protocol buffer (sentencepiece_model.proto). Out: a tokenizer.json.
 *
 * What the model leaves open follows transformers 5 and the class that tokenizer_config.json names, else the
 * model_type of config.json: Llama's tokenizers prepend a space and take every model as BPE, Gemma's prepend none,
 * any other is built from the model's own fields.
 * Invariant: no length is believed before it is checked against what is left.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "token/files.h"

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
    size_t n, room;
    int64_t model_type, unk_id, byte_fallback;
    cake_buf unk;
    const char *charsmap; /* [charsmap_len] */
    size_t charsmap_len;
} spm;

/* --- the protocol buffer --- */

typedef struct field {
    uint64_t number, value; /* value: of a VARINT or FIXED32 */
    int wire;
    const char *data; /* of BYTES */
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

/* The field at *at; false: the buffer is cut short or no such thing. */
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
    return cake_fail("token", "%s: this is no SentencePiece model: %s", m->where, what);
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
        return cake_fail("token", "%s: piece %zu is not UTF-8, or holds a NUL", m->where, m->n);
    if (m->n == CAKE_VOCAB_MOST)
        return broken(m, "it has too many pieces");
    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 1024;
        m->piece = cake_grow(m->piece, m->room, sizeof *m->piece);
    }
    m->piece[m->n++] = p;
    return CAKE_OK;
}

/* The trainer's and the normalizer's specifications. */
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
        else if (trainer && f.number == 40 && f.wire == VARINT)
            m->unk_id = (int64_t)f.value;
        else if (trainer && f.number == 45 && f.wire == BYTES) {
            cake_buf_cut(&m->unk, 0);
            cake_buf_add(&m->unk, f.data, f.len);
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
            return cake_fail("token", "%s: this is no SentencePiece model: it is cut short at byte %zu",
                             m->where, (size_t)(at - bytes));
        if (f.wire == BYTES && f.number == 1)
            err = read_piece(m, &f);
        else if (f.wire == BYTES && (f.number == 2 || f.number == 3))
            err = read_spec(m, &f);
    }
    if (!err && m->model_type != UNIGRAM && m->model_type != BPE)
        err = cake_fail("token", "%s: model_type %lld is not supported; known are 1 (unigram) and 2 (BPE)",
                        m->where, (long long)m->model_type);
    if (!err && m->unk.len && cake_utf8_check(m->unk.data, m->unk.len) < m->unk.len)
        err = broken(m, "unk_piece is not UTF-8");
    return err;
}

/* --- the tokenizer.json --- */

/* Every way to put a piece together of two others, the shorter beginning first: the order of merges is that of the
 * pieces they make. */
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

static void add_bpe(const spm *m, const cake_vocab *ids, bool bytes, bool unknown, cake_buf *out)
{
    cake_buf_adds(out, "{\"type\": \"BPE\", \"fuse_unk\": true, ");
    cake_buf_addf(out, "\"byte_fallback\": %s, \"unk_token\": ", bytes ? "true" : "false");
    if (unknown)
        cake_json_add_text(out, m->unk.data, m->unk.len);
    else
        cake_buf_adds(out, "null");
    cake_buf_adds(out, ", \"vocab\": {");
    for (size_t i = 0; i < m->n; i++) {
        cake_buf_adds(out, i ? "," : "");
        cake_json_add_text(out, m->piece[i].text, m->piece[i].len);
        cake_buf_addf(out, ":%zu", i);
    }
    cake_buf_adds(out, "}, \"merges\": [");
    add_merges(m, ids, out);
    cake_buf_adds(out, "]}");
}

static void add_unigram(const spm *m, cake_buf *out)
{
    cake_buf_addf(out, "{\"type\": \"Unigram\", \"byte_fallback\": %s, \"unk_id\": %lld, \"vocab\": [",
                  m->byte_fallback ? "true" : "false", (long long)m->unk_id);
    for (size_t i = 0; i < m->n; i++) {
        cake_buf_adds(out, i ? ",[" : "[");
        cake_json_add_text(out, m->piece[i].text, m->piece[i].len);
        cake_buf_addc(out, ',');
        cake_json_add_real(out, (double)m->piece[i].score);
        cake_buf_addc(out, ']');
    }
    cake_buf_adds(out, "]}");
}

static void add_charsmap(const spm *m, cake_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    cake_buf_adds(out, "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"");
    uint32_t bits = 0;
    int n = 0;
    for (size_t i = 0; i < m->charsmap_len; i++) {
        bits = bits << 8 | (unsigned char)m->charsmap[i];
        for (n += 8; n >= 6; n -= 6)
            cake_buf_addc(out, digits[bits >> (n - 6) & 63]);
    }
    if (n)
        cake_buf_addc(out, digits[bits << (6 - n) & 63]);
    cake_buf_adds(out, "\"}, ");
}

typedef enum family { OTHER, LLAMA, GEMMA } family;

static family family_of(const cake_files_hints *hints)
{
    static const char *const llama[] = {"LlamaTokenizer",
                                        "LlamaTokenizerFast",
                                        "CodeLlamaTokenizer",
                                        "CodeLlamaTokenizerFast",
                                        "llama",
                                        "mistral",
                                        "mixtral",
                                        "phi3"};
    const char *name = cake_json_text(cake_json_get(hints->config, "tokenizer_class"), NULL);
    if (!name)
        name = cake_json_text(cake_json_get(hints->model, "model_type"), NULL);
    if (!name)
        return OTHER;
    for (size_t i = 0; i < sizeof llama / sizeof *llama; i++)
        if (!strcmp(name, llama[i]))
            return LLAMA;
    return !strncmp(name, "Gemma", 5) || !strncmp(name, "gemma", 5) ? GEMMA : OTHER;
}

/* Everything but the model and the added tokens. */
static void add_stages(const spm *m, family kind, const cake_files_hints *hints, cake_buf *out)
{
#define MARK "\"\xE2\x96\x81\""
    static const char back[] =
        "{\"type\": \"Replace\", \"pattern\": {\"String\": " MARK "}, \"content\": \" \"}";
    static const char spaces[] =
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": " MARK "}";
    bool prefix = cake_json_bool(cake_json_get(hints->config, "add_prefix_space"), true);
    bool legacy = cake_json_bool(cake_json_get(hints->config, "legacy"), false);
    cake_buf_adds(out, "\"normalizer\": ");
    if (kind == LLAMA) {
        cake_buf_addf(out,
                      "null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": " MARK
                      ", \"prepend_scheme\": \"%s\", \"split\": false}, ",
                      !prefix  ? "never"
                      : legacy ? "always"
                               : "first");
    } else {
        cake_buf_adds(out, "{\"type\": \"Sequence\", \"normalizers\": [");
        if (kind == OTHER && m->charsmap_len)
            add_charsmap(m, out);
        cake_buf_addf(out, "%s]}, \"pre_tokenizer\": ", spaces);
        cake_buf_adds(out, kind == GEMMA
                               ? "{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
                                 "\"MergedWithPrevious\", \"invert\": false}, "
                               : "null, ");
    }
    cake_buf_addf(out, "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [%s", back);
    if (kind != OTHER || m->byte_fallback)
        cake_buf_adds(out, ", {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}");
    if (kind == LLAMA && prefix)
        cake_buf_adds(out, ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}");
    cake_buf_adds(out, "]}, ");
}

/* Control pieces are special, those of the user are not; then the class's own special tokens. */
static cake_err add_tokens(const spm *m, family kind, const cake_files_hints *hints,
                           cake_files_tokens *tokens)
{
    static const char *const named[][3] = {
        {"unk_token", "<unk>", "<unk>"}, {"bos_token", "<s>", "<bos>"},  {"eos_token", "</s>", "<eos>"},
        {"pad_token", NULL, "<pad>"},    {"mask_token", NULL, "<mask>"},
    };
    for (size_t i = 0; i < m->n; i++)
        if (m->piece[i].type == CONTROL || m->piece[i].type == USER_DEFINED) {
            char *text = cake_copy(m->piece[i].text, m->piece[i].len);
            cake_files_add(tokens, hints, text, m->piece[i].len, m->piece[i].type == CONTROL);
            free(text);
        }
    cake_err err = cake_files_add_listed(tokens, hints, m->where);
    tokens->bos = named[1][kind == GEMMA ? 2 : 1];
    tokens->eos = named[2][kind == GEMMA ? 2 : 1];
    for (size_t i = 0; !err && i < sizeof named / sizeof *named; i++) {
        const char *text = cake_files_text(hints, named[i][0]);
        text = text ? text : named[i][kind == GEMMA ? 2 : 1];
        bool control = false;
        for (size_t k = 0; text && k < m->n && !control; k++)
            control = (m->piece[k].type == CONTROL || m->piece[k].type == USER_DEFINED) &&
                      m->piece[k].len == strlen(text) && !memcmp(m->piece[k].text, text, m->piece[k].len);
        if (text && *text && !control)
            cake_files_add(tokens, hints, text, strlen(text), true);
    }
    return err;
}

cake_err cake_spm_convert(const char *bytes, size_t len, const char *where, const cake_files_hints *hints,
                          cake_buf *json)
{
    spm m = {.where = where, .model_type = UNIGRAM};
    cake_files_tokens tokens = {.in_line = true};
    cake_buf_adds(&m.unk, "<unk>");
    family kind = family_of(hints);
    cake_err err = read_model(&m, bytes, len);
    for (size_t i = 0; !err && i < m.n; i++)
        if (cake_vocab_add(&tokens.ids, m.piece[i].text, m.piece[i].len, (int32_t)i) != (int32_t)i)
            err = cake_fail("token", "%s: piece %zu, \"%.*s\", is there twice", where, i,
                            (int)(m.piece[i].len < 80 ? m.piece[i].len : 80), m.piece[i].text);
    if (!err) {
        cake_buf_adds(json, "{\"model\": ");
        if (kind != OTHER || m.model_type == BPE)
            add_bpe(&m, &tokens.ids, kind != OTHER || m.byte_fallback, kind != LLAMA, json);
        else
            add_unigram(&m, json);
        cake_buf_adds(json, ", ");
        add_stages(&m, kind, hints, json);
        err = add_tokens(&m, kind, hints, &tokens);
    }
    if (!err) {
        cake_files_finish(&tokens, hints, json);
        cake_buf_addc(json, '}');
    }
    cake_files_free(&tokens);
    cake_buf_free(&m.unk);
    free(m.piece);
    return err;
}
