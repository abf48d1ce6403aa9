/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the keys tokenizer.* of a GGUF file. Out: the tokenizer.json that the original model had, and the names
 * of its special tokens. How byte-level BPE cuts texts follows from tokenizer.ggml.pre; a vocabulary of
 * SentencePiece is read as BPE with merges by its scores, or as its unigram model ("t5").
 * Invariant: ids are those of the file; a tokenizer that is not known is refused by name.
 */
#include "formats/gguf_tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/gguf_merges.h"
#include "formats/json.h"

#define KEY(name) "tokenizer.ggml." name
#define MARK      "\xE2\x96\x81" /* SentencePiece's space */
#define MAX_TOKEN (1 << 24)

enum { MAX_CUT = 7 }; /* patterns, and a NULL */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

#define SHORTS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORDS(digits)                                                                                        \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                                          \
           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MARKED_WORDS                                                                                         \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"                                                   \
           "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED(ending, digits)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" ending "|"   \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" ending       \
    "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SEED                                                                                                 \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"                                                        \
           "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define DEEPSEEK                                                                                             \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"      \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* From U+4E00 to U+9FA5, from U+3040 to U+309F, from U+30A0 to U+30FF. */
#define CHINESE "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+"
/* Letters that have two cases, as DeepSeek LLM lists them. */
#define CASES                                                                                                \
    "\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"                \
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}"                    \
    "\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}"          \
    "\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"          \
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"        \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"         \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"         \
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"        \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"          \
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"                   \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"                   \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"         \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"        \
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"                       \
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"                   \
    "\\x{1E900}-\\x{1E943}"
#define EAST  "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define SIGNS "[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"
#define KIMI                                                                                                 \
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"                     \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+" SHORTS "?|[^\\r\\n\\p{L}\\p{N}]?"                          \
    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" SHORTS   \
    "?"                                                                                                      \
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* How texts are cut, by the name of tokenizer.ggml.pre. */
static const struct {
    const char *names; /* each between spaces */
    bool nfc;          /* texts are normalized first */
    bool whole;        /* a word that is a token is taken whole */
    bool begins;       /* a text begins with BOS unless add_bos_token says otherwise */
    const char *pattern[MAX_CUT];
} cuts[] = {
    {" llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 ",
     false,
     true,
     true,
     {WORDS("\\p{N}{1,3}")}},
    {" dbrx smaug-bpe chatglm-bpe ", false, false, false, {WORDS("\\p{N}{1,3}")}},
    {" glm4 glm5 ", false, true, false, {WORDS("\\p{N}{1,3}")}},
    {" qwen2 deepseek-r1-qwen megrez ", true, false, false, {WORDS("\\p{N}")}},
    {" hunyuan stablelm2 grok-2 kormo ", false, false, false, {WORDS("\\p{N}")}},
    {" qwen35 ", true, false, false, {MARKED_WORDS}},
    {" gpt-4o llama4 minimax-m2 kanana2 ", false, false, false, {CASED(SHORTS "?", "\\p{N}{1,3}")}},
    {" tekken ", false, true, true, {CASED("", "\\p{N}")}},
    {" deepseek-v3 hunyuan-dense joyai-llm ", false, false, false, {"\\p{N}{1,3}", CHINESE, DEEPSEEK}},
    {" deepseek-llm ",
     false,
     false,
     false,
     {"[\\r\\n]", "\\s?[A-Za-z" CASES "]+", "\\s?" SIGNS, "\\s+$", EAST, "\\p{N}+"}},
    {" deepseek-coder ", false, false, false, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EAST, "\\p{N}"}},
    {" kimi-k2 ", false, true, false, {KIMI}},
    {" minicpm5 ", false, true, false, {"\\p{N}{1,3}", WORDS("\\p{N}+")}},
    {" seed-coder ", false, false, false, {SEED}},
    {" smollm starcoder refact command-r codeshell exaone minerva-7b ",
     false,
     false,
     false,
     {"\\p{N}", GPT2}},
    {" gpt-2 phi-2 gigachat mellum modern-bert exaone4 a.x-4.0 olmo jais mpt trillion granite-docling ",
     false,
     false,
     false,
     {GPT2}},
};

enum { N_CUT = sizeof cuts / sizeof *cuts };

/* ---- keys */

static bool is(cake_gguf_text text, const char *word)
{
    return text.len == strlen(word) && !memcmp(text.at, word, text.len);
}

static cake_err get_text(const cake_gguf *g, const char *key, cake_gguf_text *out)
{
    return cake_gguf_text_of(g, key, out);
}

typedef enum kind { BYTE_LEVEL, MERGED, UNIGRAM } kind; /* the last two are SentencePiece's, with scores */

/* The kind that tokenizer.ggml.model names, or an error. */
static cake_err find_kind(const cake_gguf *g, const char *topic, kind *out)
{
    static const struct {
        const char *name;
        kind kind;
    } rows[] = {{"gpt2", BYTE_LEVEL}, {"llama", MERGED}, {"gemma4", MERGED}, {"t5", UNIGRAM}};
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
                     "(SentencePiece) and t5 (its unigram model): put the original model's tokenizer.json "
                     "beside it, in a directory of its own",
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
    if (find_kind(g, topic, &t->kind))
        return CAKE_ERR_FATAL;
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

/* The row of `pre`, or an error. */
static cake_err find_cut(const cake_gguf *g, const char *topic, int *out)
{
    cake_gguf_text pre;
    cake_buf word = {0};
    if (get_text(g, KEY("pre"), &pre))
        return CAKE_ERR_FATAL;
    cake_buf_addc(&word, ' ');
    cake_buf_add(&word, pre.at, pre.len);
    cake_buf_addc(&word, ' ');
    int i = 0;
    while (i < N_CUT && !strstr(cuts[i].names, word.data))
        i++;
    cake_buf_free(&word);
    *out = i;
    if (i < N_CUT && pre.len && !memchr(pre.at, ' ', pre.len))
        return CAKE_OK;
    return cake_fail(
        topic,
        "%s: tokenizer.ggml.pre is \"%.*s\": how its model cuts texts into words is not known; put the "
        "original model's tokenizer.json (and tokenizer_config.json) beside it, in a directory of its "
        "own",
        cake_gguf_path(g), (int)(pre.len < 80 ? pre.len : 80), pre.len ? pre.at : "");
}

/* Text of a token in the vocabulary. A vocabulary of SentencePiece has a sign for spaces. */
static void add_text(const tokens *t, int64_t i, cake_buf *out)
{
    const cake_gguf_text text = t->text[i];
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

static void add_cut(int cut, cake_buf *out)
{
    cake_buf_addf(out,
                  ", \"normalizer\": %s, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [",
                  cuts[cut].nfc ? "{\"type\": \"NFC\"}" : "null");
    for (int i = 0; cuts[cut].pattern[i]; i++) {
        cake_buf_adds(out, "{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        cake_json_add_text(out, cuts[cut].pattern[i], strlen(cuts[cut].pattern[i]));
        cake_buf_adds(out, "}, \"behavior\": \"Isolated\", \"invert\": false}, ");
    }
    cake_buf_adds(
        out, "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
             "\"use_regex\": false}]}, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
             "\"trim_offsets\": true, \"use_regex\": true}");
}

/* Ids that are put around a text; begins, ends: whether they are where the keys do not say it. */
static cake_err find_ends(const tokens *t, bool begins, bool ends, int64_t *before, int64_t *after)
{
    bool bos, eos;
    if (cake_gguf_bool(t->g, KEY("add_bos_token"), begins, &bos) ||
        cake_gguf_bool(t->g, KEY("add_eos_token"), ends, &eos) || get_id(t, KEY("bos_token_id"), before) ||
        get_id(t, KEY("eos_token_id"), after))
        return CAKE_ERR_FATAL;
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
    int cut;
    int64_t before, after;
    if (find_cut(t->g, t->topic, &cut) || find_ends(t, cuts[cut].begins, false, &before, &after))
        return CAKE_ERR_FATAL;
    add_header(cuts[cut].whole, false, out);
    add_vocab(t, out);
    cake_err err = add_merges(t, out);
    cake_buf_adds(out, "}");
    add_cut(cut, out);
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
        [BYTE_LEVEL] = add_bpe, [MERGED] = add_spm, [UNIGRAM] = add_unigram};
    err = add[t.kind](&t, out);
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
