/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `decoder`, then tokens one at a time. Out: text as soon as it is certain.
 *
 * The original runs each stage over the list of all tokens. Here every stage takes one token, keeps what later
 * tokens may still change, and hands the rest to the next stage; so the pieces add up to the same text.
 * Invariant: what leaves the last stage is valid UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "token/parts.h"
#include "token/pattern.h"

/* What a stage remembers between two tokens. */
typedef struct state {
    cake_buf held;
    cake_buf out;  /* scratch */
    int64_t taken; /* Strip: characters taken from the beginning; -1: the beginning is over */
    bool any;      /* a token came by */
} state;

struct cake_decoder {
    const cake_token *token;
    cake_buf *text; /* of the call under way */
    state state[];  /* [stages.n + 1] */
};

typedef struct cake_stage_kind {
    const char *type;
    cake_err (*open)(const cake_spot *spot, cake_stage *out); /* NULL: nothing to read */
    void (*push)(cake_decoder *d, size_t i, const char *text, size_t len);
    void (*end)(cake_decoder *d, size_t i);                              /* NULL: nothing is held */
    void (*bytes)(const cake_stage *s, cake_buf *text, cake_buf *spare); /* NULL: nothing of one token's */
    bool fuses;                                                          /* makes one string of all tokens */
    bool wants_apart; /* has no meaning for one long string */
} stage_kind;

static void next(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_stages *stages = &d->token->stages;
    if (i + 1 == stages->n)
        cake_buf_add(d->text, text, len);
    else
        stages->step[i + 1].kind->push(d, i + 1, text, len);
}

/* --- ByteLevel: tokens spell bytes --- */

/* Hands on what of the held bytes is settled; an invalid part becomes one U+FFFD, as Unicode recommends. */
static void pass_utf8(cake_decoder *d, size_t i, bool all)
{
    state *s = &d->state[i];
    size_t at = 0;
    cake_buf_cut(&s->out, 0);
    while (at < s->held.len) {
        const char *text = s->held.data + at;
        size_t left = s->held.len - at, n = (size_t)cake_utf8_next(text, left, NULL);
        if (n) {
            cake_buf_add(&s->out, text, n);
            at += n;
            continue;
        }
        size_t part = left < 3 ? left : 3;
        while (part > 1 && cake_utf8_pending(text, part) != part)
            part--;
        if (!all && part == left && cake_utf8_pending(text, part) == part)
            break;
        cake_buf_adds(&s->out, "\xEF\xBF\xBD");
        at += part;
    }
    memmove(s->held.data, s->held.data + at, s->held.len - at);
    cake_buf_cut(&s->held, s->held.len - at);
    if (s->out.len)
        next(d, i, s->out.data, s->out.len);
}

static void push_bytes(cake_decoder *d, size_t i, const char *text, size_t len)
{
    if (cake_alphabet_read(text, len, &d->state[i].held) < 0)
        cake_buf_add(&d->state[i].held, text, len);
    if (d->state[i].held.len)
        pass_utf8(d, i, false);
}

static void end_bytes(cake_decoder *d, size_t i)
{
    if (d->state[i].held.len)
        pass_utf8(d, i, true);
}

static void own_bytes(const cake_stage *s, cake_buf *text, cake_buf *spare)
{
    (void)s;
    cake_buf_cut(spare, 0);
    if (cake_alphabet_read(text->data, text->len, spare) >= 0) {
        cake_buf_cut(text, 0);
        cake_buf_add(text, spare->data, spare->len);
    }
}

/* --- ByteFallback: <0x0A> stands for a byte --- */

/* A run of byte tokens is a text if all of it is valid, else one U+FFFD for each. It stays open until another
 * token ends it. */
static void end_fallback(cake_decoder *d, size_t i)
{
    state *s = &d->state[i];
    if (!s->held.len)
        return;
    bool valid = cake_utf8_check(s->held.data, s->held.len) == s->held.len;
    cake_buf_cut(&s->out, 0);
    for (size_t k = 0; !valid && k < s->held.len; k++)
        cake_buf_adds(&s->out, "\xEF\xBF\xBD");
    if (valid)
        cake_buf_add(&s->out, s->held.data, s->held.len);
    cake_buf_cut(&s->held, 0);
    next(d, i, s->out.data, s->out.len);
}

static void push_fallback(cake_decoder *d, size_t i, const char *text, size_t len)
{
    int byte = cake_byte_token(text, len);
    if (byte >= 0) {
        cake_buf_addc(&d->state[i].held, (char)byte);
        return;
    }
    end_fallback(d, i);
    next(d, i, text, len);
}

static void own_fallback(const cake_stage *s, cake_buf *text, cake_buf *spare)
{
    (void)s;
    (void)spare;
    int byte = cake_byte_token(text->data, text->len);
    if (byte >= 0) {
        cake_buf_cut(text, 0);
        cake_buf_addc(text, (char)byte);
    }
}

/* --- Replace --- */

static cake_err open_replace(const cake_spot *spot, cake_stage *out)
{
    return cake_replace_open(spot, &out->replace);
}

/* A pattern that gives up leaves the text as it is: it would take a token longer than any model has. */
static void replace_into(const cake_stage *s, const char *text, size_t len, cake_buf *out)
{
    void *match = NULL;
    cake_fault fault;
    cake_buf_cut(out, 0);
    if (cake_replace_run(&s->replace, text, len, out, NULL, &match, &fault)) {
        cake_buf_cut(out, 0);
        cake_buf_add(out, text, len);
    }
    cake_pattern_match_free(match);
}

/* In one long string the end may be the beginning of a `from`: that much is held; all of it, if a pattern is to be
 * found. */
static void push_replace(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_stage *stage = &d->token->stages.step[i];
    state *s = &d->state[i];
    if (!stage->fused) {
        replace_into(stage, text, len, &s->out);
        next(d, i, s->out.data ? s->out.data : "", s->out.len);
        return;
    }
    cake_buf_add(&s->held, text, len);
    const char *from = stage->replace.from, *hit;
    size_t at = 0, n = stage->replace.from_len; /* everything before `at` is settled */
    if (!from || !s->held.len)
        return;
    while ((hit = memmem(s->held.data + at, s->held.len - at, from, n)))
        at = (size_t)(hit - s->held.data) + n;
    size_t keep = s->held.len - at < n - 1 ? s->held.len - at : n - 1;
    while (keep && memcmp(s->held.data + s->held.len - keep, from, keep))
        keep--;
    size_t settled = s->held.len - keep;
    replace_into(stage, s->held.data, settled, &s->out);
    memmove(s->held.data, s->held.data + settled, keep);
    cake_buf_cut(&s->held, keep);
    if (s->out.len)
        next(d, i, s->out.data, s->out.len);
}

static void end_replace(cake_decoder *d, size_t i)
{
    const cake_stage *stage = &d->token->stages.step[i];
    state *s = &d->state[i];
    if (s->held.len && !stage->replace.from) {
        replace_into(stage, s->held.data, s->held.len, &s->out);
        next(d, i, s->out.data ? s->out.data : "", s->out.len);
    } else if (s->held.len) {
        next(d, i, s->held.data, s->held.len);
    }
    cake_buf_cut(&s->held, 0);
}

static void own_replace(const cake_stage *s, cake_buf *text, cake_buf *spare)
{
    replace_into(s, text->data, text->len, spare);
    cake_buf_cut(text, 0);
    cake_buf_add(text, spare->data, spare->len);
}

/* --- Fuse, and the spaces between tokens where there is no decoder --- */

static void push_fuse(cake_decoder *d, size_t i, const char *text, size_t len)
{
    next(d, i, text, len);
}

static void push_join(cake_decoder *d, size_t i, const char *text, size_t len)
{
    if (d->state[i].any)
        next(d, i, " ", 1);
    d->state[i].any = true;
    next(d, i, text, len);
}

/* --- Metaspace: its character stands for a space, but not in the first token --- */

static cake_err open_meta(const cake_spot *spot, cake_stage *out)
{
    cake_splitters list = {0}; /* it has the members of its namesake among the pre-tokenizers */
    cake_err err = cake_splitters_open(spot, &list);
    if (!err) {
        char text[4];
        out->replace.from_len = (size_t)cake_utf8_put(text, list.step[0].character);
        out->replace.from = cake_copy(text, out->replace.from_len);
        out->replace.to = cake_copy(" ", 1);
        out->replace.to_len = 1;
        out->keeps = list.step[0].scheme == CAKE_META_NEVER;
    }
    cake_splitters_close(&list);
    return err;
}

static void push_meta(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_stage *stage = &d->token->stages.step[i];
    const cake_replace *r = &stage->replace;
    state *s = &d->state[i];
    bool drops = !stage->keeps && (stage->fused || !s->any);
    s->any = true;
    cake_buf_cut(&s->out, 0);
    cake_text_replace(text, len, r->from, r->from_len, r->to, drops ? 0 : r->to_len, &s->out);
    next(d, i, s->out.data ? s->out.data : "", s->out.len);
}

/* --- BPEDecoder: a suffix ends each word but the last --- */

static cake_err open_suffix(const cake_spot *spot, cake_stage *out)
{
    const char *text = NULL;
    cake_err err = cake_spot_text(spot, "suffix", &text, &out->replace.from_len);
    if (!err && !out->replace.from_len)
        return cake_spot_fail(spot, "the suffix is empty; what ends a word?");
    if (!err)
        out->replace.from = cake_copy(text, out->replace.from_len);
    return err;
}

/* The token held, with its suffixes as spaces, or without them if it is the last. */
static void pass_suffix(cake_decoder *d, size_t i, bool last)
{
    const cake_replace *r = &d->token->stages.step[i].replace;
    state *s = &d->state[i];
    cake_buf_cut(&s->out, 0);
    cake_text_replace(s->held.data ? s->held.data : "", s->held.len, r->from, r->from_len, " ", !last,
                      &s->out);
    cake_buf_cut(&s->held, 0);
    next(d, i, s->out.data ? s->out.data : "", s->out.len);
}

static void push_suffix(cake_decoder *d, size_t i, const char *text, size_t len)
{
    if (d->state[i].any && !d->token->stages.step[i].fused)
        pass_suffix(d, i, false);
    d->state[i].any = true;
    cake_buf_add(&d->state[i].held, text, len);
}

static void own_suffix(const cake_stage *s, cake_buf *text, cake_buf *spare)
{
    cake_buf_cut(spare, 0);
    cake_text_replace(text->data, text->len, s->replace.from, s->replace.from_len, " ", 1, spare);
    cake_buf_cut(text, 0);
    cake_buf_add(text, spare->data, spare->len);
}

static void end_suffix(cake_decoder *d, size_t i)
{
    if (d->state[i].any)
        pass_suffix(d, i, true);
}

/* --- Strip --- */

static cake_err open_strip(const cake_spot *spot, cake_stage *out)
{
    const char *text = NULL;
    size_t *n = &out->replace.from_len;
    cake_err err = cake_spot_text(spot, "content", &text, n);
    if (!err)
        err = cake_spot_int(spot, "start", 0, INT32_MAX, &out->start);
    if (!err)
        err = cake_spot_int(spot, "stop", 0, INT32_MAX, &out->stop);
    if (!err && (!*n || (size_t)cake_utf8_next(text, *n, NULL) != *n)) {
        cake_spot member = cake_spot_key(spot, "content");
        err = cake_spot_fail(&member, "\"%.40s\" is not one character", text);
    }
    if (!err)
        out->replace.from = cake_copy(text, *n);
    return err;
}

/* How many bytes of `content` repeated, at most `most` times, stand at text's beginning or end. */
static size_t run_at(const cake_stage *stage, const char *text, size_t len, int64_t most, bool at_end)
{
    size_t run = 0, n = stage->replace.from_len;
    while (most-- > 0 && len - run >= n &&
           !memcmp(at_end ? text + len - run - n : text + run, stage->replace.from, n))
        run += n;
    return run;
}

static void push_strip(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_stage *stage = &d->token->stages.step[i];
    state *s = &d->state[i];
    size_t cut = s->taken < 0 ? 0 : run_at(stage, text, len, stage->start - s->taken, false);
    if (!stage->fused) {
        size_t tail = run_at(stage, text + cut, len - cut, stage->stop, true);
        next(d, i, text + cut, len - cut - tail);
        return;
    }
    if (s->taken >= 0)
        s->taken = cut < len ? -1 : s->taken + (int64_t)(cut / stage->replace.from_len);
    cake_buf_add(&s->held, text + cut, len - cut);
    size_t tail = run_at(stage, s->held.data, s->held.len, stage->stop, true);
    cake_buf_cut(&s->out, 0);
    cake_buf_add(&s->out, s->held.data, s->held.len - tail);
    memmove(s->held.data, s->held.data + s->held.len - tail, tail);
    cake_buf_cut(&s->held, tail);
    if (s->out.len)
        next(d, i, s->out.data, s->out.len);
}

static void end_strip(cake_decoder *d, size_t i)
{
    cake_buf_cut(&d->state[i].held, 0);
}

static const stage_kind kinds[] = {
    {"Sequence", NULL, NULL, NULL, NULL, false, false},
    {"ByteLevel", NULL, push_bytes, end_bytes, own_bytes, true, true},
    {"Replace", open_replace, push_replace, end_replace, own_replace, false, false},
    {"ByteFallback", NULL, push_fallback, end_fallback, own_fallback, false, true},
    {"Fuse", NULL, push_fuse, NULL, NULL, true, false},
    {"Strip", open_strip, push_strip, end_strip, NULL, false, false},
    {"Metaspace", open_meta, push_meta, NULL, own_replace, false, false},
    {"BPEDecoder", open_suffix, push_suffix, end_suffix, own_suffix, false, false},
};

static const stage_kind join = {"null", NULL, push_join, NULL, NULL, true, false};

static cake_stage *add_stage(cake_stages *out, const stage_kind *kind)
{
    bool fused = out->n && (out->step[out->n - 1].fused || out->step[out->n - 1].kind->fuses);
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_stage){.kind = kind, .fused = fused};
    return &out->step[out->n++];
}

static cake_err open_stage(const cake_spot *spot, size_t row, void *out)
{
    cake_stage *stage = add_stage(out, &kinds[row]);
    if (stage->fused && kinds[row].wants_apart)
        return cake_spot_fail(spot, "%s behind a stage that joins all tokens is not supported",
                              kinds[row].type);
    return kinds[row].open ? kinds[row].open(spot, stage) : CAKE_OK;
}

cake_err cake_stages_open(const cake_spot *spot, cake_stages *out)
{
    static const cake_spot_table table = {kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, "decoders"};
    cake_err err = cake_spot_walk(spot, &table, open_stage, out);
    if (!err && !out->n) /* an empty Sequence joins tokens with nothing between them */
        add_stage(out, cake_json_kind(spot->node) <= CAKE_JSON_NULL ? &join : &kinds[4]);
    return err;
}

void cake_stages_close(cake_stages *stages)
{
    for (size_t i = 0; i < stages->n; i++)
        cake_replace_close(&stages->step[i].replace);
    free(stages->step);
    *stages = (cake_stages){0};
}

void cake_stages_bytes(const cake_stages *stages, const char *text, size_t len, cake_buf *out)
{
    cake_buf now = {0}, spare = {0};
    cake_buf_add(&now, text, len);
    for (size_t i = 0; i < stages->n && !stages->step[i].fused; i++)
        if (stages->step[i].kind->bytes)
            stages->step[i].kind->bytes(&stages->step[i], &now, &spare);
    cake_buf_add(out, now.data, now.len);
    cake_buf_free(&now);
    cake_buf_free(&spare);
}

cake_decoder *cake_decoder_open(const cake_token *token)
{
    cake_decoder *d = cake_alloc(1, sizeof *d + token->stages.n * sizeof *d->state);
    d->token = token;
    return d;
}

void cake_decoder_push(cake_decoder *decoder, int32_t id, cake_buf *text)
{
    const cake_token *token = decoder->token;
    if (id < 0 || id >= token->count || !token->known[id].text || token->known[id].special)
        return;
    decoder->text = text;
    token->stages.step[0].kind->push(decoder, 0, token->known[id].text, token->known[id].len);
}

void cake_decoder_end(cake_decoder *decoder, cake_buf *text)
{
    const cake_stages *stages = &decoder->token->stages;
    decoder->text = text;
    for (size_t i = 0; i < stages->n; i++) {
        if (stages->step[i].kind->end)
            stages->step[i].kind->end(decoder, i);
        cake_buf_cut(&decoder->state[i].held, 0);
        decoder->state[i].taken = 0;
        decoder->state[i].any = false;
    }
}

void cake_decoder_close(cake_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < decoder->token->stages.n; i++) {
        cake_buf_free(&decoder->state[i].held);
        cake_buf_free(&decoder->state[i].out);
    }
    free(decoder);
}
