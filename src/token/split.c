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

void cake_splitters_close(cake_splitters *splitters)
{
    for (size_t i = 0; i < splitters->n; i++)
        cake_pattern_close(splitters->step[i].pattern);
    free(splitters->step);
    *splitters = (cake_splitters){0};
}

/* Ends a piece: what was added to the text since the last one. */
static void end_piece(cake_pieces *pieces)
{
    size_t last = pieces->n ? pieces->end[pieces->n - 1] : 0;
    if (pieces->text.len == last)
        return;
    if (pieces->n == pieces->room) {
        pieces->room = pieces->room ? 2 * pieces->room : 64;
        pieces->end = cake_grow(pieces->end, pieces->room, sizeof *pieces->end);
    }
    pieces->end[pieces->n++] = pieces->text.len;
}

/* The parts of one piece, matches and what lies between them, put together as the step's behaviour asks. */
typedef struct cutter {
    const cake_splitter *step;
    const char *text;
    cake_pieces *out;
    bool was_match; /* the part before */
} cutter;

static void cut_part(cutter *c, size_t start, size_t end, bool match)
{
    match = match != c->step->invert;
    bool joins = false; /* to the part before */
    switch ((behaviour)c->step->behaviour) {
    case REMOVED:
        if (match)
            return;
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
    if (!joins)
        end_piece(c->out);
    if (c->step->bytes)
        cake_alphabet_spell(c->text + start, end - start, &c->out->text);
    else
        cake_buf_add(&c->out->text, c->text + start, end - start);
    c->was_match = match;
}

/* Cuts text where the pattern matches. An empty match at the end of the match before it is no match. */
static cake_err cut(cutter *c, size_t len, cake_scratch *scratch, cake_fault *fault)
{
    size_t done = 0, at = 0, last = SIZE_MAX;
    for (;;) {
        size_t start, end;
        cake_err err =
            cake_pattern_next(c->step->pattern, c->text, len, at, &scratch->match, &start, &end, fault);
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
            cut_part(c, done, start, false);
        cut_part(c, start, end, true);
        done = at = last = end;
    }
    if (done != len)
        cut_part(c, done, len, false);
    return CAKE_OK;
}

static cake_err run_step(const cake_splitter *step, const char *text, size_t len, cake_scratch *scratch,
                         cake_fault *fault)
{
    cake_buf prefixed = {0};
    if (step->prefix_space && text[0] != ' ') {
        cake_buf_addc(&prefixed, ' ');
        cake_buf_add(&prefixed, text, len);
        text = prefixed.data;
        len = prefixed.len;
    }
    cutter c = {.step = step, .text = text, .out = &scratch->next};
    cake_err err = CAKE_OK;
    if (step->pattern)
        err = cut(&c, len, scratch, fault);
    else
        cut_part(&c, 0, len, false);
    end_piece(&scratch->next);
    cake_buf_free(&prefixed);
    return err;
}

cake_err cake_splitters_run(const cake_splitters *splitters, const char *text, size_t len,
                            cake_scratch *scratch, cake_fault *fault)
{
    cake_pieces *now = &scratch->pieces, *next = &scratch->next;
    cake_buf_cut(&now->text, 0);
    now->n = 0;
    cake_buf_add(&now->text, text, len);
    end_piece(now);
    for (size_t i = 0; i < splitters->n; i++) {
        cake_buf_cut(&next->text, 0);
        next->n = 0;
        for (size_t p = 0; p < now->n; p++) {
            size_t start = p ? now->end[p - 1] : 0;
            cake_err err =
                run_step(&splitters->step[i], now->text.data + start, now->end[p] - start, scratch, fault);
            if (err)
                return err;
        }
        cake_pieces swap = *now;
        *now = *next;
        *next = swap;
    }
    return CAKE_OK;
}

void cake_splitters_scratch_free(cake_scratch *scratch)
{
    cake_pattern_match_free(scratch->match);
    cake_buf_free(&scratch->pieces.text);
    cake_buf_free(&scratch->next.text);
    free(scratch->pieces.end);
    free(scratch->next.end);
}
