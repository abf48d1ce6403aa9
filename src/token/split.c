/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `pre_tokenizer`, then text. Out: the pieces that the model sees one at a time.
 * Invariant: pieces keep the text's order, and none is empty.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "token/parts.h"
#include "token/pattern.h"

typedef struct cake_splitter_kind {
    const char *type;
    cake_err (*open)(const cake_spot *spot, cake_splitter *out);
} splitter_kind;

typedef enum behaviour { ISOLATED, REMOVED, WITH_PREVIOUS, WITH_NEXT, CONTIGUOUS } behaviour;

/* The pattern of GPT-2, which ByteLevel brings along. */
static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static cake_err open_behaviour(const cake_spot *spot, cake_splitter *out)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
    const char *text;
    cake_err err = cake_spot_text(spot, "behavior", &text, NULL);
    if (err)
        return err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i])) {
            out->behaviour = (int)i;
            return CAKE_OK;
        }
    }
    cake_spot member = cake_spot_key(spot, "behavior");
    return cake_spot_fail(&member,
                          "\"%.40s\" is not supported; known are Isolated, Removed, MergedWithPrevious, "
                          "MergedWithNext, Contiguous",
                          text);
}

static cake_err open_split(const cake_spot *spot, cake_splitter *out)
{
    cake_spot pattern = cake_spot_key(spot, "pattern");
    bool literal = cake_json_get(pattern.node, "String") != NULL;
    const char *text = NULL;
    size_t len = 0;
    cake_err err = cake_spot_need(&pattern, CAKE_JSON_OBJECT, "an object");
    if (!err)
        err = cake_spot_text(&pattern, literal ? "String" : "Regex", &text, &len);
    if (!err)
        err = open_behaviour(spot, out);
    if (!err)
        err = cake_spot_flag(spot, "invert", false, &out->invert);
    if (!err)
        err = cake_pattern_open(&pattern, text, len, literal, &out->pattern);
    return err;
}

static cake_err open_bytes(const cake_spot *spot, cake_splitter *out)
{
    bool pattern = true;
    cake_err err = cake_spot_flag(spot, "add_prefix_space", true, &out->prefix_space);
    if (!err)
        err = cake_spot_flag(spot, "use_regex", true, &pattern);
    if (!err && pattern)
        err = cake_pattern_open(spot, gpt2, strlen(gpt2), false, &out->pattern);
    out->behaviour = ISOLATED;
    out->bytes = true;
    return err;
}

static const splitter_kind kinds[] = {
    {"Sequence", NULL},
    {"Split", open_split},
    {"ByteLevel", open_bytes},
};

cake_err cake_splitters_open(const cake_spot *spot, cake_splitters *out)
{
    if (cake_json_kind(spot->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    size_t row = 0;
    cake_err err = cake_spot_choose(spot, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &row);
    if (err)
        return err;
    if (!row) {
        cake_spot list = cake_spot_key(spot, "pretokenizers");
        err = cake_spot_need(&list, CAKE_JSON_ARRAY, "an array");
        for (size_t i = 0; !err && i < cake_json_size(list.node); i++) {
            cake_spot member = cake_spot_at(&list, i);
            err = cake_spot_need(&member, CAKE_JSON_OBJECT, "an object");
            if (!err)
                err = cake_splitters_open(&member, out);
        }
        return err;
    }
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_splitter){.kind = &kinds[row]};
    out->n++;
    return kinds[row].open(spot, &out->step[out->n - 1]);
}

bool cake_splitters_spell(const cake_splitters *splitters)
{
    bool spell = false;
    for (size_t i = 0; i < splitters->n; i++)
        spell = spell || splitters->step[i].bytes;
    return spell;
}

bool cake_splitters_drop(const cake_splitters *splitters)
{
    bool drop = false;
    for (size_t i = 0; i < splitters->n; i++)
        drop = drop || splitters->step[i].behaviour == REMOVED;
    return drop;
}

void cake_splitters_close(cake_splitters *splitters)
{
    for (size_t i = 0; i < splitters->n; i++)
        cake_pattern_close(splitters->step[i].pattern);
    free(splitters->step);
    *splitters = (cake_splitters){0};
}

/* One run over a text; where the pieces go. */
typedef struct splitting {
    const cake_splitters *splitters;
    cake_scratch *scratch;
    cake_piece_function each;
    void *own;
    cake_fault *fault;
} splitting;

static cake_err split_from(const splitting *s, size_t step, const char *text, size_t len);

/* The parts of one text, matches and what lies between them, put together as the step's behaviour asks: parts
 * that belong together touch, so a piece is a stretch of the text. */
typedef struct cutter {
    const splitting *run;
    size_t index; /* of the step */
    const cake_splitter *step;
    const char *text;
    size_t from, to; /* of the piece that may still grow */
    bool was_match;  /* the part before */
} cutter;

/* Hands the piece to the next step. */
static cake_err end_piece(cutter *c)
{
    const char *piece = c->text + c->from;
    size_t len = c->to - c->from;
    if (!len)
        return CAKE_OK;
    if (c->step->bytes) {
        cake_buf *spelled = &c->run->scratch->step[2 * c->index + 1];
        cake_buf_cut(spelled, 0);
        cake_alphabet_spell(piece, len, spelled);
        piece = spelled->data;
        len = spelled->len;
    }
    return split_from(c->run, c->index + 1, piece, len);
}

static cake_err cut_part(cutter *c, size_t start, size_t end, bool match)
{
    match = match != c->step->invert;
    bool joins = false; /* to the part before */
    cake_err err = CAKE_OK;
    switch ((behaviour)c->step->behaviour) {
    case REMOVED:
        if (match)
            return CAKE_OK;
        break;
    case WITH_PREVIOUS:
        joins = match && !c->was_match;
        break;
    case WITH_NEXT: /* seen from the right: a match goes to what follows, unless that is a match too */
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

/* Cuts text where the pattern matches. An empty match at the end of the match before it is no match. */
static cake_err cut(cutter *c, size_t len)
{
    size_t done = 0, at = 0, last = SIZE_MAX;
    cake_err err;
    for (;;) {
        size_t start, end;
        err = cake_pattern_next(c->step->pattern, c->text, len, at, &c->run->scratch->match, &start, &end,
                                c->run->fault);
        if (err == CAKE_END)
            break;
        if (err)
            return err;
        if (start == end && last == end) {
            int n = at < len ? cake_utf8_next(c->text + at, len - at, NULL) : 1;
            at += (size_t)(n ? n : 1);
            if (at > len)
                break;
            continue;
        }
        if (done != start)
            err = cut_part(c, done, start, false);
        if (!err)
            err = cut_part(c, start, end, true);
        if (err)
            return err;
        done = at = last = end;
    }
    return done != len ? cut_part(c, done, len, false) : CAKE_OK;
}

/* The steps from this one on; behind the last, the piece is done. */
static cake_err split_from(const splitting *s, size_t step, const char *text, size_t len)
{
    if (step == s->splitters->n) {
        s->each(s->own, text, len);
        return CAKE_OK;
    }
    cutter c = {.run = s, .index = step, .step = &s->splitters->step[step]};
    if (c.step->prefix_space && text[0] != ' ') {
        cake_buf *prefixed = &s->scratch->step[2 * step];
        cake_buf_cut(prefixed, 0);
        cake_buf_addc(prefixed, ' ');
        cake_buf_add(prefixed, text, len);
        text = prefixed->data;
        len = prefixed->len;
    }
    c.text = text;
    cake_err err = c.step->pattern ? cut(&c, len) : cut_part(&c, 0, len, false);
    return err ? err : end_piece(&c);
}

cake_err cake_splitters_run(const cake_splitters *splitters, const char *text, size_t len,
                            cake_scratch *scratch, cake_piece_function each, void *own, cake_fault *fault)
{
    splitting s = {splitters, scratch, each, own, fault};
    if (!scratch->step)
        scratch->step = cake_alloc(2 * splitters->n, sizeof *scratch->step);
    return split_from(&s, 0, text, len);
}

void cake_splitters_scratch_free(const cake_splitters *splitters, cake_scratch *scratch)
{
    cake_pattern_match_free(scratch->match);
    for (size_t i = 0; scratch->step && i < 2 * splitters->n; i++)
        cake_buf_free(&scratch->step[i]);
    free(scratch->step);
}
