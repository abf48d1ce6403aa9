/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the keys tokenizer.* of a GGUF file. Out: the tokenizer.json that the original model had, and the names
 * of its special tokens. How byte-level BPE cuts texts follows from tokenizer.ggml.pre (gguf_pre.c); a
 * vocabulary of SentencePiece is read as BPE with merges by its scores, or as its unigram model ("t5"); that
 * of BERT as WordPiece.
 * Invariant: ids are those of the file; a tokenizer that is not known is refused by name.
 */
#include "formats/gguf_tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/gguf_merges.h"
#include "formats/gguf_pre.h"
#include "formats/json.h"

#define KEY(name) "tokenizer.ggml." name
#define MARK      "\xE2\x96\x81" /* SentencePiece's space */
#define MAX_TOKEN (1 << 24)

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

/* ---- keys */

static bool is(cake_gguf_text text, const char *word)
{
    return text.len == strlen(word) && !memcmp(text.at, word, text.len);
}

static cake_err get_text(const cake_gguf *g, const char *key, cake_gguf_text *out)
{
    return cake_gguf_text_of(g, key, out);
}

typedef enum kind { BYTE_LEVEL, MERGED, UNIGRAM, WORDPIECE } kind; /* two are SentencePiece's, with scores */

/* The kind that tokenizer.ggml.model names, or an error. */
static cake_err find_kind(const cake_gguf *g, const char *topic, kind *out)
{
    static const struct {
        const char *name;
        kind kind;
    } rows[] = {
        {"gpt2", BYTE_LEVEL}, {"llama", MERGED}, {"gemma4", MERGED}, {"t5", UNIGRAM}, {"bert", WORDPIECE}};
    cake_gguf_text model;
    if (get_text(g, KEY("model"), &model))
        return CAKE_ERR_FATAL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is(model, rows[i].name)) {
            *out = rows[i].kind;
            return CAKE_OK;
        }
    return cake_fail(topic,
                     "%s: tokenizer.ggml.model is \"%.*s\"; supported are gpt2 (byte-level BPE), llama "
                     "(SentencePiece), t5 (its unigram model) and bert (WordPiece): put the original "
                     "model's tokenizer.json beside it, in a directory of its own",
                     cake_gguf_path(g), (int)(model.len < 80 ? model.len : 80), model.len ? model.at : "");
}

/* The vocabulary. */
typedef struct tokens {
    const cake_gguf *g;
    const char *topic;
    cake_gguf_text *text; /* [n] owned */
    int64_t n;
    const cake_gguf_value *type, *score; /* NULL: none */
    kind kind;
} tokens;

/* A list beside the tokens has as many elements. */
static cake_err check_list(const tokens *t, const cake_gguf_value *v)
{
    if (!v || (v->array && v->n == t->n && v->kind != CAKE_GGUF_STRING))
        return CAKE_OK;
    return cake_gguf_fail(t->g, v, "an array of %lld numbers is expected, one for each token",
                          (long long)t->n);
}

static cake_err open_tokens(const cake_gguf *g, const char *topic, tokens *t)
{
    const cake_gguf_value *v = cake_gguf_find(g, KEY("tokens"));
    *t = (tokens){.g = g, .topic = topic};
    if (!v)
        return cake_fail(topic,
                         "%s: has no tokenizer (no key tokenizer.ggml.tokens): put the model's "
                         "tokenizer.json beside it, in a directory of its own",
                         cake_gguf_path(g));
    if (!v->array || v->kind != CAKE_GGUF_STRING || !v->n || v->n > MAX_TOKEN)
        return cake_gguf_fail(g, v, "an array of 1 to %d strings is expected", MAX_TOKEN);
    t->n = v->n;
    t->type = cake_gguf_find(g, KEY("token_type"));
    t->score = cake_gguf_find(g, KEY("scores"));
    if (check_list(t, t->type) || check_list(t, t->score))
        return CAKE_ERR_FATAL;
    t->text = cake_gguf_texts(v);
    for (int64_t i = 0; i < t->n; i++)
        if (cake_utf8_check(t->text[i].at, t->text[i].len) < t->text[i].len ||
            memchr(t->text[i].at, 0, t->text[i].len)) {
            free(t->text);
            return cake_gguf_fail(g, v, "token %lld is not UTF-8, or holds a NUL", (long long)i);
        }
    return CAKE_OK;
}

static int64_t type_of(const tokens *t, int64_t i)
{
    return cake_gguf_int_at(t->type, i, NORMAL);
}

/* The id under a key; -1: none. */
static cake_err get_id(const tokens *t, const char *key, int64_t *out)
{
    return cake_gguf_int(t->g, key, -1, 0, t->n - 1, out);
}

/* ---- tokenizer.json */

/* A token of WordPiece: the original has "##" inside of words, the file a mark at their beginning. */
static void add_part_of_word(const tokens *t, int64_t i, cake_buf *out)
{
    const size_t mark = sizeof MARK - 1;
    const cake_gguf_text text = t->text[i];
    const bool begins = text.len >= mark && !memcmp(text.at, MARK, mark);
    const bool named = text.len > 2 && text.at[0] == '[' && text.at[text.len - 1] == ']'; /* [unused0] */
    if (!begins && !named && type_of(t, i) == NORMAL)
        cake_buf_adds(out, "##");
    cake_buf_add(out, text.at + (begins ? mark : 0), text.len - (begins ? mark : 0));
}

/* Text of a token in the vocabulary. A vocabulary of SentencePiece has a sign for spaces. */
static void add_text(const tokens *t, int64_t i, cake_buf *out)
{
    const cake_gguf_text text = t->text[i];
    if (t->kind == WORDPIECE) {
        add_part_of_word(t, i, out);
        return;
    }
    for (size_t k = 0; k < text.len; k++)
        if (t->kind != BYTE_LEVEL && type_of(t, i) == USER_DEFINED && text.at[k] == ' ')
            cake_buf_adds(out, MARK);
        else
            cake_buf_addc(out, text.at[k]);
}

static void add_vocab(const tokens *t, cake_buf *out)
{
    const char *comma = "";
    cake_buf text = {0};
    cake_buf_adds(out, "\"vocab\": {");
    for (int64_t i = 0; i < t->n; i++) {
        if (type_of(t, i) == UNUSED || !t->text[i].len)
            continue;
        cake_buf_cut(&text, 0);
        add_text(t, i, &text);
        cake_buf_adds(out, comma);
        cake_json_add_text(out, text.data, text.len);
        cake_buf_addf(out, ":%lld", (long long)i);
        comma = ",";
    }
    cake_buf_adds(out, "}");
    cake_buf_free(&text);
}

/* "a b": the first space behind the first character parts them. */
static cake_err add_merges(const tokens *t, cake_buf *out)
{
    const cake_gguf_value *v = cake_gguf_find(t->g, KEY("merges"));
    cake_gguf_text *merge = cake_gguf_texts(v);
    cake_err err = CAKE_OK;
    if (!merge)
        return v ? cake_gguf_fail(t->g, v, "an array of strings is expected")
                 : cake_fail(t->topic,
                             "%s: key tokenizer.ggml.merges is missing: put the original model's "
                             "tokenizer.json beside it, in a directory of its own",
                             cake_gguf_path(t->g));
    cake_buf_adds(out, ", \"merges\": [");
    for (int64_t i = 0; i < v->n && !err; i++) {
        const char *at = merge[i].at, *end = at + merge[i].len;
        const char *space = merge[i].len > 1 ? memchr(at + 1, ' ', merge[i].len - 1) : NULL;
        if (!space || space + 1 == end || cake_utf8_check(at, merge[i].len) < merge[i].len) {
            err = cake_gguf_fail(t->g, v, "merge %lld is not two texts with a space between them",
                                 (long long)i);
            break;
        }
        cake_buf_adds(out, i ? ",[" : "[");
        cake_json_add_text(out, at, (size_t)(space - at));
        cake_buf_addc(out, ',');
        cake_json_add_text(out, space + 1, (size_t)(end - space - 1));
        cake_buf_addc(out, ']');
    }
    cake_buf_addc(out, ']');
    free(merge);
    return err;
}

static bool is_spaces(cake_gguf_text text)
{
    size_t i = 0;
    while (i < text.len && text.at[i] == ' ')
        i++;
    return i == text.len;
}

static void add_added(const tokens *t, cake_buf *out)
{
    const char *comma = "";
    cake_buf_adds(out, ", \"added_tokens\": [");
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t type = type_of(t, i);
        if ((type != CONTROL && type != USER_DEFINED && type != UNKNOWN) || !t->text[i].len)
            continue;
        if (t->kind == MERGED && is_spaces(t->text[i])) /* merges make it */
            continue;
        cake_buf_addf(out, "%s{\"id\": %lld, \"content\": ", comma, (long long)i);
        cake_json_add_text(out, t->text[i].at, t->text[i].len);
        cake_buf_addf(
            out,
            ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
            "\"special\": %s}",
            type == USER_DEFINED ? "false" : "true");
        comma = ", ";
    }
    cake_buf_adds(out, "]");
}

static void add_piece(const tokens *t, int64_t id, cake_buf *out)
{
    cake_buf_adds(out, "{\"SpecialToken\": {\"id\": ");
    cake_json_add_text(out, t->text[id].at, t->text[id].len);
    cake_buf_adds(out, ", \"type_id\": 0}}");
}

/* What is put around a text; ids below 0: nothing. */
static void add_post(const tokens *t, int64_t before, int64_t after, cake_buf *out)
{
    const int64_t id[] = {before, after};
    const char *comma = "";
    if (before < 0 && after < 0)
        return;
    cake_buf_adds(out, ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [");
    if (before >= 0) {
        add_piece(t, before, out);
        cake_buf_adds(out, ", ");
    }
    cake_buf_adds(out, "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}");
    if (after >= 0) {
        cake_buf_adds(out, ", ");
        add_piece(t, after, out);
    }
    cake_buf_adds(
        out, "], \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", "
             "\"type_id\": 1}}], \"special_tokens\": {");
    for (int i = 0; i < 2; i++) {
        if (id[i] < 0 || (i && id[i] == id[0]))
            continue;
        const cake_gguf_text text = t->text[id[i]];
        cake_buf_adds(out, comma);
        cake_json_add_text(out, text.at, text.len);
        cake_buf_adds(out, ": {\"id\": ");
        cake_json_add_text(out, text.at, text.len);
        cake_buf_addf(out, ", \"ids\": [%lld], \"tokens\": [", (long long)id[i]);
        cake_json_add_text(out, text.at, text.len);
        cake_buf_adds(out, "]}");
        comma = ", ";
    }
    cake_buf_adds(out, "}}");
}

/* Ids that are put around a text; begins, ends: whether they are where the keys do not say it. */
static cake_err find_ends(const tokens *t, bool begins, bool ends, int64_t *before, int64_t *after)
{
    bool bos, eos;
    if (cake_gguf_bool(t->g, KEY("add_bos_token"), begins, &bos) ||
        cake_gguf_bool(t->g, KEY("add_eos_token"), ends, &eos) || get_id(t, KEY("bos_token_id"), before) ||
        get_id(t, KEY("eos_token_id"), after))
        return CAKE_ERR_FATAL;
    int64_t cls, sep; /* in files of BERT, in place of the others */
    if (get_id(t, KEY("cls_token_id"), &cls) || get_id(t, KEY("seperator_token_id"), &sep))
        return CAKE_ERR_FATAL;
    if (t->kind == WORDPIECE) {
        *before = cls >= 0 ? cls : *before;
        *after = sep >= 0 ? sep : *after;
    }
    *before = bos ? *before : -1;
    *after = eos ? *after : -1;
    return CAKE_OK;
}

static void add_header(bool whole, bool spm, cake_buf *out)
{
    cake_buf_addf(out, "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"ignore_merges\": %s, ",
                  whole ? "true" : "false");
    if (spm)
        cake_buf_adds(out, "\"fuse_unk\": true, \"byte_fallback\": true, ");
}

/* Byte-level BPE. */
static cake_err add_bpe(const tokens *t, cake_buf *out)
{
    const cake_gguf_pre *cut;
    int64_t before, after;
    if (cake_gguf_pre_find(t->g, t->topic, &cut) || find_ends(t, cut->begins, false, &before, &after))
        return CAKE_ERR_FATAL;
    add_header(cut->whole, false, out);
    add_vocab(t, out);
    cake_err err = add_merges(t, out);
    cake_buf_adds(out, "}");
    cake_gguf_pre_add(cut, out);
    add_post(t, before, after, out);
    return err;
}

/* Merges from scores. Tokens that texts may contain are the best results. */
static void add_spm_merges(const tokens *t, cake_buf *out)
{
    cake_gguf_piece *piece = cake_alloc((size_t)t->n, sizeof *piece);
    cake_buf *text = cake_alloc((size_t)t->n, sizeof *text);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t type = type_of(t, i);
        add_text(t, i, &text[i]);
        piece[i] = (cake_gguf_piece){.text = {text[i].data, text[i].len},
                                     .score = (float)cake_gguf_real_at(t->score, i, 0),
                                     .joins = text[i].len && (type == NORMAL || type == USER_DEFINED)};
        if (type == USER_DEFINED || !isfinite(piece[i].score))
            piece[i].score = type == USER_DEFINED ? 0 : -INFINITY;
    }
    cake_buf_adds(out, ", \"merges\": ");
    cake_gguf_merges_add(piece, t->n, out);
    for (int64_t i = 0; i < t->n; i++)
        cake_buf_free(&text[i]);
    free(text);
    free(piece);
}

/* Bytes and spaces of SentencePiece; space: each text was given one. */
static void add_decoder(bool space, cake_buf *out)
{
    cake_buf_addf(out,
                  "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
                  "{\"String\": \"" MARK
                  "\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}%s]}",
                  space ? ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}" : "");
}

/* SentencePiece: a space before each text, unless the keys say otherwise; unknown characters become bytes. */
static cake_err add_spm(const tokens *t, cake_buf *out)
{
    int64_t before, after, unknown;
    bool space;
    if (find_ends(t, true, false, &before, &after) || get_id(t, KEY("unknown_token_id"), &unknown) ||
        cake_gguf_bool(t->g, KEY("add_space_prefix"), true, &space))
        return CAKE_ERR_FATAL;
    add_header(false, true, out);
    if (unknown >= 0 && t->text[unknown].len) {
        cake_buf_adds(out, "\"unk_token\": ");
        cake_json_add_text(out, t->text[unknown].at, t->text[unknown].len);
        cake_buf_adds(out, ", ");
    }
    add_vocab(t, out);
    if (cake_gguf_find(t->g, KEY("merges"))) {
        if (add_merges(t, out))
            return CAKE_ERR_FATAL;
    } else {
        add_spm_merges(t, out);
    }
    cake_buf_adds(out, "}, \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [");
    if (space)
        cake_buf_adds(out, "{\"type\": \"Prepend\", \"prepend\": \"" MARK "\"}, ");
    cake_buf_adds(out, "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" MARK
                       "\"}]}, \"pre_tokenizer\": null, ");
    add_decoder(space, out);
    add_post(t, before, after, out);
    return CAKE_OK;
}

/* [[text, score], ...], in the order of ids. */
static cake_err add_scored_vocab(const tokens *t, cake_buf *out)
{
    for (int64_t i = 0; i < t->n; i++) {
        const double score = cake_gguf_real_at(t->score, i, NAN);
        if (!isfinite(score))
            return t->score ? cake_gguf_fail(t->g, t->score, "the score of token %lld is not a finite number",
                                             (long long)i)
                            : cake_fail(t->topic, "%s: key tokenizer.ggml.scores is missing",
                                        cake_gguf_path(t->g));
        cake_buf_adds(out, i ? ",[" : "[");
        cake_json_add_text(out, t->text[i].at, t->text[i].len);
        cake_buf_addc(out, ',');
        cake_json_add_real(out, score);
        cake_buf_addc(out, ']');
    }
    return CAKE_OK;
}

/* The normal forms of characters, a table of SentencePiece. */
static cake_err add_charsmap(const tokens *t, cake_buf *out)
{
    const cake_gguf_value *v = cake_gguf_find(t->g, KEY("precompiled_charsmap"));
    if (v && (!v->array || (v->kind != CAKE_GGUF_U8 && v->kind != CAKE_GGUF_I8)))
        return cake_gguf_fail(t->g, v, "an array of bytes is expected");
    if (!v || !v->n) {
        cake_buf_adds(out, "null");
        return CAKE_OK;
    }
    cake_buf_adds(out, "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"");
    cake_buf_add_base64(out, v->data, (size_t)v->n);
    cake_buf_adds(out, "\"}");
    return CAKE_OK;
}

/* BERT's WordPiece. Whether it lowers texts and removes their accents is not in the file: it does if no token
 * has a capital letter. */
static cake_err add_wordpiece(const tokens *t, cake_buf *out)
{
    int64_t before, after, unknown;
    bool cased = false;
    if (find_ends(t, true, true, &before, &after) || get_id(t, KEY("unknown_token_id"), &unknown))
        return CAKE_ERR_FATAL;
    for (int64_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->text[i].len && type_of(t, i) == NORMAL && t->text[i].at[0] != '['; k++)
            cased = cased || (t->text[i].at[k] >= 'A' && t->text[i].at[k] <= 'Z');
    cake_buf_adds(out, "{\"version\": \"1.0\", \"model\": {\"type\": \"WordPiece\", \"unk_token\": ");
    if (unknown >= 0)
        cake_json_add_text(out, t->text[unknown].at, t->text[unknown].len);
    else
        cake_buf_adds(out, "\"[UNK]\"");
    cake_buf_adds(out, ", \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, ");
    add_vocab(t, out);
    cake_buf_addf(out,
                  "}, \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
                  "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": %s}, "
                  "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
                  "\"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}",
                  cased ? "false" : "true");
    add_post(t, before, after, out);
    return CAKE_OK;
}

/* SentencePiece's unigram model, as transformers' T5Tokenizer and XLMRobertaTokenizer read it. */
static cake_err add_unigram(const tokens *t, cake_buf *out)
{
    int64_t before, after, unknown;
    bool space, squeezed, bytes = false;
    if (find_ends(t, false, true, &before, &after) || get_id(t, KEY("unknown_token_id"), &unknown) ||
        cake_gguf_bool(t->g, KEY("add_space_prefix"), true, &space) ||
        cake_gguf_bool(t->g, KEY("remove_extra_whitespaces"), false, &squeezed))
        return CAKE_ERR_FATAL;
    for (int64_t i = 0; i < t->n; i++) {
        bytes = bytes || type_of(t, i) == BYTE;
        unknown = unknown < 0 && type_of(t, i) == UNKNOWN ? i : unknown;
    }
    cake_buf_addf(out, "{\"version\": \"1.0\", \"model\": {\"type\": \"Unigram\", \"byte_fallback\": %s, ",
                  bytes ? "true" : "false");
    if (unknown >= 0)
        cake_buf_addf(out, "\"unk_id\": %lld, ", (long long)unknown);
    cake_buf_adds(out, "\"vocab\": [");
    if (add_scored_vocab(t, out))
        return CAKE_ERR_FATAL;
    cake_buf_adds(out, "]}, \"normalizer\": ");
    if (add_charsmap(t, out))
        return CAKE_ERR_FATAL;
    cake_buf_addf(out, ", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [%s",
                  squeezed ? "{\"type\": \"WhitespaceSplit\"}, " : "");
    cake_buf_addf(out,
                  "{\"type\": \"Metaspace\", \"replacement\": \"" MARK
                  "\", \"prepend_scheme\": \"%s\", \"split\": true}]}, ",
                  space ? "always" : "never");
    add_decoder(space, out);
    add_post(t, before, after, out);
    return CAKE_OK;
}

cake_err cake_gguf_tokenizer_json(const cake_gguf *g, const char *topic, cake_buf *out)
{
    tokens t;
    const size_t start = out->len;
    cake_err err = open_tokens(g, topic, &t);
    if (err)
        return err;
    static cake_err (*const add[])(const tokens *, cake_buf *) = {
        [BYTE_LEVEL] = add_bpe, [MERGED] = add_spm, [UNIGRAM] = add_unigram, [WORDPIECE] = add_wordpiece};
    err = find_kind(g, topic, &t.kind); /* here only: a tokenizer.json beside the file may be of any kind */
    err = err ? err : add[t.kind](&t, out);
    if (!err) {
        add_added(&t, out);
        cake_buf_adds(out, "}\n");
    } else {
        cake_buf_cut(out, start);
    }
    free(t.text);
    return err;
}

/* ---- tokenizer_config.json */

static cake_err add_named(const tokens *t, cake_buf *out)
{
    static const char *const names[][2] = {
        {"bos_token", KEY("bos_token_id")},     {"eos_token", KEY("eos_token_id")},
        {"unk_token", KEY("unknown_token_id")}, {"sep_token", KEY("seperator_token_id")},
        {"pad_token", KEY("padding_token_id")}, {"cls_token", KEY("cls_token_id")},
        {"mask_token", KEY("mask_token_id")}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t id;
        if (get_id(t, names[i][1], &id))
            return CAKE_ERR_FATAL;
        cake_buf_addf(out, ", \"%s\": ", names[i][0]);
        if (id < 0 || !t->text[id].len)
            cake_buf_adds(out, "null");
        else
            cake_json_add_text(out, t->text[id].at, t->text[id].len);
    }
    return CAKE_OK;
}

/* The auto_map makes the class count, whatever the model's type. */
cake_err cake_gguf_tokenizer_config(const cake_gguf *g, const char *topic, cake_buf *out)
{
    tokens t;
    if (open_tokens(g, topic, &t))
        return CAKE_ERR_FATAL;
    cake_buf_adds(out, "{\"tokenizer_class\": \"TokenizersBackend\", \"auto_map\": {\"AutoTokenizer\": "
                       "[\"gguf\", null]}, \"clean_up_tokenization_spaces\": false");
    cake_err err = add_named(&t, out);
    cake_buf_adds(out, "}\n");
    free(t.text);
    return err;
}

cake_err cake_gguf_chat_template(const cake_gguf *g, const char *name, cake_gguf_text *out)
{
    cake_buf key = {0};
    cake_buf_addf(&key, "tokenizer.chat_template%s%s", name ? "." : "", name ? name : "");
    cake_err err = get_text(g, key.data, out);
    cake_buf_free(&key);
    return err;
}
