/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `pre_tokenizer`, then text. Out: the pieces for the model, one at a time.
 * Each step cuts its text at matches of a pattern, a character, or a function of its kind.
 * Invariant: pieces keep the text's order, and none is empty.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/pattern.h"
#include "text/unicode.h"
#include "tokenizer/internal.h"

typedef struct cake_pre_tokenizer_kind {
    const char *type;
    /* The end of the match at the beginning of text (not empty), 0: none. NULL: use the pattern. */
    size_t (*match)(const cake_pre_tokenizer *step, const char *text, size_t len);
    bool (*is)(uint32_t code); /* of match_class */
} splitter_kind;

typedef enum behaviour { ISOLATED, REMOVED, WITH_PREVIOUS, WITH_NEXT, CONTIGUOUS } behaviour;

static cake_pre_tokenizer *add_step(cake_pre_tokenizers *out, const splitter_kind *kind)
{
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_pre_tokenizer){.kind = kind};
    return &out->step[out->n++];
}

/* --- matches --- */

static size_t match_class(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    uint32_t code = 0;
    size_t n = (size_t)cake_utf8_next(text, len, &code);
    return step->kind->is(code) ? n : 0;
}

static size_t match_character(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    uint32_t code = 0;
    size_t n = (size_t)cake_utf8_next(text, len, &code);
    return code == step->character ? n : 0;
}

/* A run of word characters, or a run of characters that are neither word characters nor white space. */
static size_t match_word(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    (void)step;
    int kind = -1;
    size_t at = 0;
    for (size_t n; at < len; at += n) {
        uint32_t code = 0;
        n = (size_t)cake_utf8_next(text + at, len - at, &code);
        int is = cake_char_is_space(code) ? 0 : cake_char_is_word(code) ? 1 : 2;
        if (!is || (kind >= 0 && is != kind))
            break;
        kind = is;
    }
    return at;
}

static size_t match_length(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    size_t at = 0;
    for (int64_t i = 0; i < step->length && at < len; i++)
        at += (size_t)cake_utf8_next(text + at, len - at, NULL);
    return at;
}

static size_t match_known(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    return step->known(text, len);
}

static size_t match_script(const cake_pre_tokenizer *step, const char *text, size_t len)
{
    return cake_scripts_match(step->script, text, len);
}

/* --- opening --- */

static cake_err open_behaviour(const cake_json_path *path, cake_pre_tokenizer *out)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
    const char *text;
    cake_err err = cake_json_path_text(path, "behavior", &text, NULL);
    if (err)
        return err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i])) {
            out->behaviour = (int)i;
            return CAKE_OK;
        }
    }
    cake_json_path member = cake_json_path_key(path, "behavior");
    return cake_json_path_fail(&member,
                               "\"%.40s\" is not supported; known are Isolated, Removed, MergedWithPrevious, "
                               "MergedWithNext, Contiguous",
                               text);
}

/* A member that is one character. */
static cake_err open_character(const cake_json_path *path, const char *key, uint32_t *out)
{
    const char *text = NULL;
    size_t len = 0;
    cake_err err = cake_json_path_text(path, key, &text, &len);
    cake_json_path member = cake_json_path_key(path, key);
    if (!err && (!len || (size_t)cake_utf8_next(text, len, out) != len))
        err = cake_json_path_fail(&member, "\"%.40s\" is not one character", text);
    return err;
}

static const splitter_kind split = {"Split", NULL, NULL};
static const splitter_kind known = {"Split", match_known, NULL};
static const splitter_kind bytes = {"ByteLevel", NULL, NULL};
static const splitter_kind spaces = {"WhitespaceSplit", match_class, cake_char_is_space};
static const splitter_kind words = {"Whitespace", match_word, NULL};
static const splitter_kind punctuation = {"Punctuation", match_class, cake_char_is_punctuation};
static const splitter_kind numbers = {"Digits", match_class, cake_char_is_number};
static const splitter_kind character = {"Metaspace", match_character, NULL};
static const splitter_kind scripts = {"UnicodeScripts", match_script, NULL};
static const splitter_kind lengths = {"FixedLength", match_length, NULL};

static cake_err open_split(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &split);
    cake_json_path pattern = cake_json_path_key(path, "pattern");
    bool literal = cake_json_get(pattern.node, "String") != NULL;
    const char *text = NULL;
    size_t len = 0;
    cake_err err = cake_json_path_need(&pattern, CAKE_JSON_OBJECT, "an object");
    if (!err)
        err = cake_json_path_text(&pattern, literal ? "String" : "Regex", &text, &len);
    if (!err)
        err = open_behaviour(path, out);
    if (!err)
        err = cake_json_path_flag(path, "invert", false, &out->invert);
    out->known = err || literal ? NULL : cake_fast_pattern_find(text, len);
    if (out->known)
        out->kind = &known;
    else if (!err)
        err = cake_pattern_open(&pattern, text, len, literal, &out->pattern);
    return err;
}

static cake_err open_bytes(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &bytes);
    bool pattern = true;
    cake_err err = cake_json_path_flag(path, "add_prefix_space", true, &out->prefix_space);
    if (!err)
        err = cake_json_path_flag(path, "use_regex", true, &pattern);
    if (pattern) {
        out->kind = &known;
        out->known = cake_fast_pattern_find(cake_fast_pattern_gpt2, strlen(cake_fast_pattern_gpt2));
    }
    out->bytes = true;
    return err;
}

static cake_err open_scheme(const cake_json_path *path, cake_pre_tokenizer *out)
{
    static const char *const names[] = {"always", "first", "never"};
    bool prefix = true;
    cake_json_path scheme = cake_json_path_key(path, "prepend_scheme");
    cake_err err = cake_json_path_flag(path, "add_prefix_space", true, &prefix);
    out->scheme = prefix ? CAKE_META_ALWAYS : CAKE_META_NEVER; /* as in older files */
    if (err || !scheme.node)
        return err;
    const char *text = NULL;
    err = cake_json_path_text(path, "prepend_scheme", &text, NULL);
    for (int i = 0; !err && i < 3; i++) {
        if (strcmp(text, names[i]))
            continue;
        out->scheme = (cake_meta)i;
        if (!prefix && i != CAKE_META_NEVER)
            return cake_json_path_fail(&scheme, "\"%s\" contradicts add_prefix_space, which is false", text);
        return CAKE_OK;
    }
    return err ? err
               : cake_json_path_fail(&scheme, "\"%.40s\" is not supported; known are always, first, never",
                                     text);
}

static cake_err open_meta(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &character);
    bool cuts = true;
    cake_err err = open_character(path, "replacement", &out->character);
    if (!err)
        err = open_scheme(path, out);
    if (!err)
        err = cake_json_path_flag(path, "split", true, &cuts);
    out->meta = true;
    out->behaviour = WITH_NEXT;
    if (!cuts)
        out->kind = &split; /* without a pattern: one piece */
    return err;
}

static cake_err open_delimiter(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &character);
    out->behaviour = REMOVED;
    return open_character(path, "delimiter", &out->character);
}

static cake_err open_digits(const cake_json_path *path, cake_pre_tokenizers *list)
{
    bool each = false;
    cake_err err = cake_json_path_flag(path, "individual_digits", false, &each);
    add_step(list, &numbers)->behaviour = each ? ISOLATED : CONTIGUOUS;
    return err;
}

static cake_err open_punctuation(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &punctuation);
    return cake_json_get(path->node, "behavior") ? open_behaviour(path, out) : CAKE_OK;
}

/* Kinds that keep only matches. */
static cake_err open_words(const cake_json_path *path, cake_pre_tokenizers *list)
{
    (void)path;
    cake_pre_tokenizer *out = add_step(list, &words);
    out->behaviour = REMOVED;
    out->invert = true;
    return CAKE_OK;
}

static cake_err open_scripts(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &scripts);
    out->behaviour = REMOVED;
    out->invert = true;
    return cake_scripts_open(path, &out->script);
}

static cake_err open_spaces(const cake_json_path *path, cake_pre_tokenizers *list)
{
    (void)path;
    add_step(list, &spaces)->behaviour = REMOVED;
    return CAKE_OK;
}

static cake_err open_bert(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_err err = open_spaces(path, list);
    add_step(list, &punctuation);
    return err;
}

static cake_err open_length(const cake_json_path *path, cake_pre_tokenizers *list)
{
    cake_pre_tokenizer *out = add_step(list, &lengths);
    out->length = 5;
    return cake_json_get(path->node, "length")
               ? cake_json_path_int(path, "length", 1, INT32_MAX, &out->length)
               : CAKE_OK;
}

static const struct {
    const char *type;
    cake_err (*open)(const cake_json_path *path, cake_pre_tokenizers *out);
} kinds[] = {
    {"Sequence", NULL},
    {"Split", open_split},
    {"ByteLevel", open_bytes},
    {"Metaspace", open_meta},
    {"Digits", open_digits},
    {"Punctuation", open_punctuation},
    {"Whitespace", open_words},
    {"WhitespaceSplit", open_spaces},
    {"UnicodeScripts", open_scripts},
    {"BertPreTokenizer", open_bert},
    {"CharDelimiterSplit", open_delimiter},
    {"FixedLength", open_length},
};

static cake_err open_step(const cake_json_path *path, size_t row, void *out)
{
    cake_pre_tokenizers *list = out;
    if (list->n >= CAKE_MAX_STEPS)
        return cake_json_path_fail(path, "more than %d pre-tokenizers cannot be run", CAKE_MAX_STEPS);
    return kinds[row].open(path, list);
}

cake_err cake_pre_tokenizers_open(const cake_json_path *path, cake_pre_tokenizers *out)
{
    static const cake_json_path_table table = {kinds, sizeof *kinds, sizeof kinds / sizeof *kinds,
                                               "pretokenizers"};
    cake_err err = cake_json_path_walk(path, &table, open_step, out);
    out->raw = out->n && out->step[out->n - 1].bytes;
    return err;
}

bool cake_pre_tokenizers_spell(const cake_pre_tokenizers *splitters)
{
    bool spell = false;
    for (size_t i = 0; i < splitters->n; i++)
        spell = spell || splitters->step[i].bytes;
    return spell;
}

bool cake_pre_tokenizers_drop(const cake_pre_tokenizers *splitters)
{
    bool drop = false;
    for (size_t i = 0; i < splitters->n; i++)
        drop = drop || splitters->step[i].behaviour == REMOVED;
    return drop;
}

void cake_pre_tokenizers_close(cake_pre_tokenizers *splitters)
{
    for (size_t i = 0; i < splitters->n; i++) {
        cake_pattern_close(splitters->step[i].pattern);
        free(splitters->step[i].script);
    }
    free(splitters->step);
    *splitters = (cake_pre_tokenizers){0};
}

/* One run over a text, with the receiver of the pieces. */
typedef struct splitting {
    const cake_pre_tokenizers *splitters;
    cake_encode_ws *scratch;
    const cake_split_sink *sink;
    cake_fault *fault;
} splitting;

static cake_err split_from(const splitting *s, size_t step, const char *text, size_t len, size_t head);

/* Joins the parts of a text, matches and the parts between them, as the step's behaviour requires. Parts that
 * belong together are adjacent, so a piece is a range of the text. */
typedef struct cutter {
    const splitting *run;
    size_t index; /* of the step */
    const cake_pre_tokenizer *step;
    const char *text;
    size_t from, to; /* of the piece that may still grow */
    bool was_match;  /* the previous part */
    size_t head;     /* bytes of the text that belong to its first character */
} cutter;

/* Counts the bytes that a step wrote. */
static cake_err note_made(const splitting *s, const cake_pre_tokenizer *step, size_t len)
{
    s->scratch->made += len;
    return cake_text_grown(s->scratch->made, step->meta ? "Metaspace" : "ByteLevel", s->fault);
}

/* Passes the piece to the next step. */
static cake_err end_piece(cutter *c)
{
    const char *piece = c->text + c->from;
    size_t len = c->to - c->from, head = c->head > c->from ? c->head - c->from : 0;
    head = head < len ? head : len;
    if (!len)
        return CAKE_OK;
    if (c->step->bytes && (!c->run->splitters->raw || c->index + 1 < c->run->splitters->n)) {
        cake_buf *spelled = &c->run->scratch->step[2 * c->index + 1];
        cake_buf_cut(spelled, 0);
        cake_byte_level_spell(piece, head, spelled);
        size_t spelled_head = spelled->len;
        cake_byte_level_spell(piece + head, len - head, spelled);
        piece = spelled->data;
        len = spelled->len;
        head = spelled_head;
        cake_err err = note_made(c->run, c->step, len);
        if (err)
            return err;
    }
    return split_from(c->run, c->index + 1, piece, len, head);
}

static cake_err cut_part(cutter *c, size_t start, size_t end, bool match)
{
    match = match != c->step->invert;
    bool joins = false; /* with the previous part */
    cake_err err = CAKE_OK;
    switch ((behaviour)c->step->behaviour) {
    case REMOVED:
        if (match)
            return CAKE_OK;
        break;
    case WITH_PREVIOUS:
        joins = match && !c->was_match;
        break;
    case WITH_NEXT: /* from the right: a match joins the next part, unless that is a match too */
        joins = c->was_match && !match;
        break;
    case CONTIGUOUS:
        joins = match == c->was_match;
        break;
    case ISOLATED:
        break;
    }
    if (!joins) {
        err = end_piece(c);
        c->from = start;
    }
    c->to = end;
    c->was_match = match;
    return err;
}

/* Cuts text at matches of the pattern. */
static cake_err cut_pattern(cutter *c, size_t len)
{
    cake_search s = {.text = c->text, .len = len, .match = &c->run->scratch->match, .last = SIZE_MAX};
    size_t done = 0;
    cake_err err;
    while (!(err = cake_pattern_next(c->step->pattern, &s, c->run->fault))) {
        if (done != s.start)
            err = cut_part(c, done, s.start, false);
        if (!err)
            err = cut_part(c, s.start, s.end, true);
        if (err)
            return err;
        done = s.end;
    }
    if (err != CAKE_END)
        return err;
    return done != len ? cut_part(c, done, len, false) : CAKE_OK;
}

/* Cuts text at matches of the kind. */
static cake_err cut_kind(cutter *c, size_t len)
{
    size_t done = 0;
    cake_err err = CAKE_OK;
    for (size_t at = 0; !err && at < len;) {
        size_t n = c->step->kind->match(c->step, c->text + at, len - at);
        if (!n) {
            at += (size_t)cake_utf8_next(c->text + at, len - at, NULL);
            continue;
        }
        if (done != at)
            err = cut_part(c, done, at, false);
        if (!err)
            err = cut_part(c, at, at + n, true);
        done = at += n;
    }
    return err || done == len ? err : cut_part(c, done, len, false);
}

/* The text that a step cuts: ByteLevel may put a space before it, Metaspace replaces spaces. A prefix of the
 * whole text belongs to its first character, as the library's offsets have it. */
static cake_err prepare(const splitting *s, size_t index, const char **text, size_t *len, size_t *head)
{
    const cake_pre_tokenizer *step = &s->splitters->step[index];
    cake_buf *made = &s->scratch->step[2 * index];
    char mark[4] = {' '};
    size_t n = step->meta ? (size_t)cake_utf8_put(mark, step->character) : 1;
    if (!step->meta && !(step->prefix_space && **text != ' '))
        return CAKE_OK;
    bool begins = **text == ' ' || (*len >= n && !memcmp(*text, mark, n));
    cake_buf_cut(made, 0);
    if (!begins &&
        (!step->meta || step->scheme == CAKE_META_ALWAYS || (step->scheme == CAKE_META_FIRST && *head)))
        cake_buf_add(made, mark, n);
    size_t made_head = 0;
    if (step->meta) {
        cake_text_replace(*text, *head, " ", 1, mark, n, made);
        made_head = made->len;
        cake_text_replace(*text + *head, *len - *head, " ", 1, mark, n, made);
    } else {
        made_head = n + *head;
        cake_buf_add(made, *text, *len);
    }
    *head = *head ? made_head : 0;
    *text = made->data;
    *len = made->len;
    return note_made(s, step, made->len);
}

/* Runs the steps from this one on; after the last the piece is complete. */
static cake_err split_from(const splitting *s, size_t step, const char *text, size_t len, size_t head)
{
    if (step == s->splitters->n)
        return s->sink->add(s->sink->self, text, len);
    cutter c = {.run = s, .index = step, .step = &s->splitters->step[step]};
    cake_err err = prepare(s, step, &text, &len, &head);
    if (err)
        return err;
    c.text = text;
    c.head = head;
    err = c.step->pattern       ? cut_pattern(&c, len)
          : c.step->kind->match ? cut_kind(&c, len)
                                : cut_part(&c, 0, len, false);
    return err ? err : end_piece(&c);
}

cake_err cake_pre_tokenizers_run(const cake_pre_tokenizers *splitters, const char *text, size_t len,
                                 bool first, cake_encode_ws *scratch, const cake_split_sink *sink,
                                 cake_fault *fault)
{
    splitting s = {splitters, scratch, sink, fault};
    if (!scratch->step) {
        scratch->n_step = 2 * splitters->n;
        scratch->step = cake_alloc(scratch->n_step, sizeof *scratch->step);
    }
    return split_from(&s, 0, text, len, first ? (size_t)cake_utf8_next(text, len, NULL) : 0);
}
