/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `decoder`, then the text of a token at a time. Out: what each of its stages makes of it.
 *
 * The library runs each stage over the list of all tokens. Here a stage takes one token, holds what later
 * ones may still change, and passes the rest on, with the number of its token: where its text begins.
 * Invariant: the last stage emits valid UTF-8, with ascending token numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/pattern.h"
#include "tokenizer/decode_parts.h"

void cake_decoder_begin_until(cake_decoder *d, int64_t count)
{
    for (; d->begun < count; d->begun++)
        if (d->begin)
            d->begin[d->begun - d->base] = d->text->len;
}

/* Whether len bytes exceed the limit; then decoding stops. */
static bool outgrown(cake_decoder *d, size_t len)
{
    if (!d->err)
        d->err = cake_text_grown(len, "decoder", &d->fault);
    return d->err;
}

static void next(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_decode_stages *stages = &d->token->stages;
    if (outgrown(d, d->made += len))
        return;
    if (i + 1 < stages->n) {
        stages->step[i + 1].kind->push(d, i + 1, text, len);
    } else if (len) {
        cake_decoder_begin_until(d, d->owner + 1);
        cake_buf_add(d->text, text, len);
    }
}

/* Marks what is held from `at` on as belonging to the current owner. */
static void mark_held(const cake_decoder *d, cake_decoder_state *s, size_t at)
{
    if (at == s->held.len)
        return;
    CAKE_RESERVE(s->mark, s->n_mark, s->cap_mark);
    s->mark[s->n_mark++] = (cake_decoder_mark){at, d->owner};
}

static void hold(cake_decoder *d, cake_decoder_state *s, const char *text, size_t len)
{
    if (outgrown(d, s->held.len + len))
        return;
    cake_buf_add(&s->held, text, len);
    mark_held(d, s, s->held.len - len);
}

void cake_decoder_drop(cake_decoder_state *s, size_t n)
{
    size_t k = 0, left = s->held.len - n;
    while (k < s->n_mark && (k + 1 < s->n_mark ? s->mark[k + 1].at : s->held.len) <= n)
        k++;
    for (size_t m = k; m < s->n_mark; m++)
        s->mark[m - k] = (cake_decoder_mark){s->mark[m].at > n ? s->mark[m].at - n : 0, s->mark[m].owner};
    s->n_mark -= k;
    if (left)
        memmove(s->held.data, s->held.data + n, left);
    cake_buf_cut(&s->held, left);
}

static void flush(cake_decoder *d, size_t i)
{
    cake_decoder_state *s = &d->state[i];
    if (s->out.len)
        next(d, i, s->out.data, s->out.len);
    cake_buf_cut(&s->out, 0);
}

/* Gathers text for held bytes from `at` on, to be passed as one piece for each token, or as one piece if the
 * next stage treats pieces as tokens. *m: the mark at or before `at`. */
static void gather(cake_decoder *d, size_t i, size_t at, size_t *m, const char *text, size_t len)
{
    const cake_decode_stages *stages = &d->token->stages;
    cake_decoder_state *s = &d->state[i];
    bool splits = i + 1 == stages->n || stages->step[i + 1].fused || stages->step[i + 1].kind->fuses;
    while (*m + 1 < s->n_mark && s->mark[*m + 1].at <= at)
        (*m)++;
    if (outgrown(d, s->out.len + len))
        return;
    int64_t owner = s->mark[*m].owner;
    if (owner != d->owner && (splits || !s->out.len)) {
        flush(d, i);
        d->owner = owner;
    }
    cake_buf_add(&s->out, text, len);
}

/* Passes on the gathered text of the first n bytes held, then restores the owner. */
static void pass_gathered(cake_decoder *d, size_t i, size_t n, int64_t owner)
{
    cake_decoder_drop(&d->state[i], n);
    flush(d, i);
    d->owner = owner;
}

/* --- ByteLevel: tokens are written in the byte-level alphabet --- */

/* Passes on the complete part of the held bytes; each invalid part becomes one U+FFFD, as Unicode
 * recommends. */
static void pass_utf8(cake_decoder *d, size_t i, bool all)
{
    cake_decoder_state *s = &d->state[i];
    int64_t owner = d->owner;
    size_t at = 0, m = 0;
    cake_buf_cut(&s->out, 0);
    while (at < s->held.len) {
        const char *text = s->held.data + at;
        size_t left = s->held.len - at, n = (size_t)cake_utf8_next(text, left, NULL);
        if (n) {
            gather(d, i, at, &m, text, n);
            at += n;
            continue;
        }
        size_t part = left < 3 ? left : 3;
        while (part > 1 && cake_utf8_pending(text, part) != part)
            part--;
        if (!all && part == left && cake_utf8_pending(text, part) == part)
            break;
        gather(d, i, at, &m, "\xEF\xBF\xBD", 3);
        at += part;
    }
    pass_gathered(d, i, at, owner);
}

static void push_bytes(cake_decoder *d, size_t i, const char *text, size_t len)
{
    cake_decoder_state *s = &d->state[i];
    size_t at = s->held.len;
    if (cake_byte_level_read(text, len, &s->held) < 0)
        cake_buf_add(&s->held, text, len);
    mark_held(d, s, at);
    if (s->held.len)
        pass_utf8(d, i, false);
}

static void end_bytes(cake_decoder *d, size_t i)
{
    if (d->state[i].held.len)
        pass_utf8(d, i, true);
}

static void own_bytes(const cake_decode_stage *s, cake_buf *text, cake_buf *spare)
{
    (void)s;
    cake_buf_cut(spare, 0);
    if (cake_byte_level_read(text->data, text->len, spare) >= 0) {
        cake_buf_cut(text, 0);
        cake_buf_add(text, spare->data, spare->len);
    }
}

/* --- ByteFallback: <0x0A> stands for a byte --- */

/* Passes on the first len bytes held, unchanged or as one U+FFFD for each. */
static void pass_fallback(cake_decoder *d, size_t i, size_t len, bool valid)
{
    cake_decoder_state *s = &d->state[i];
    int64_t owner = d->owner;
    cake_buf_cut(&s->out, 0);
    for (size_t at = 0, m = 0, n; at < len; at += n) {
        n = valid ? (size_t)cake_utf8_next(s->held.data + at, len - at, NULL) : 1;
        gather(d, i, at, &m, valid ? s->held.data + at : "\xEF\xBF\xBD", valid ? n : 3);
    }
    pass_gathered(d, i, len, owner);
}

/* A run of byte tokens is text if all of it is valid, else one U+FFFD for each byte. It stays open until
 * another token ends it. */
static void end_fallback(cake_decoder *d, size_t i)
{
    cake_decoder_state *s = &d->state[i];
    if (s->held.len)
        pass_fallback(d, i, s->held.len, cake_utf8_check(s->held.data, s->held.len) == s->held.len);
}

static void settle_fallback(cake_decoder *d, size_t i)
{
    const cake_buf *held = &d->state[i].held;
    pass_fallback(d, i, cake_utf8_check(held->data, held->len), true);
}

static void push_fallback(cake_decoder *d, size_t i, const char *text, size_t len)
{
    int byte = cake_byte_token(text, len);
    if (byte >= 0) {
        hold(d, &d->state[i], &(char){(char)byte}, 1);
        return;
    }
    end_fallback(d, i);
    next(d, i, text, len);
}

static void own_fallback(const cake_decode_stage *s, cake_buf *text, cake_buf *spare)
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

static cake_err open_replace(const cake_json_path *path, cake_decode_stage *out)
{
    return cake_replace_open(path, &out->replace);
}

static cake_err replace_into(const cake_decode_stage *s, const char *text, size_t len, cake_buf *out,
                             cake_fault *fault)
{
    void *match = NULL;
    cake_buf_cut(out, 0);
    cake_err err = cake_replace_run(&s->replace, text, len, out, NULL, &match, fault);
    cake_pattern_match_free(match);
    return err;
}

/* Gathers held bytes [at, end), token by token. */
static void pass_held(cake_decoder *d, size_t i, size_t at, size_t end, size_t *m)
{
    cake_decoder_state *s = &d->state[i];
    while (at < end) {
        while (*m + 1 < s->n_mark && s->mark[*m + 1].at <= at)
            (*m)++;
        size_t until = *m + 1 < s->n_mark && s->mark[*m + 1].at < end ? s->mark[*m + 1].at : end;
        gather(d, i, at, m, s->held.data + at, until - at);
        at = until;
    }
}

/* In one long string the end may be the start of a `from`: that much is held; for a pattern all of it. */
static void push_replace(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_decode_stage *stage = &d->token->stages.step[i];
    cake_decoder_state *s = &d->state[i];
    if (!stage->fused) {
        d->err = replace_into(stage, text, len, &s->out, &d->fault);
        next(d, i, s->out.data ? s->out.data : "", s->out.len);
        return;
    }
    hold(d, s, text, len);
    const char *from = stage->replace.from, *hit;
    size_t at = 0, n = stage->replace.from_len, m = 0; /* everything before `at` is done */
    int64_t owner = d->owner;
    if (!from || !s->held.len)
        return;
    cake_buf_cut(&s->out, 0);
    while ((hit = memmem(s->held.data + at, s->held.len - at, from, n))) {
        pass_held(d, i, at, (size_t)(hit - s->held.data), &m);
        gather(d, i, (size_t)(hit - s->held.data), &m, stage->replace.to, stage->replace.to_len);
        at = (size_t)(hit - s->held.data) + n;
    }
    size_t keep = s->held.len - at < n - 1 ? s->held.len - at : n - 1;
    while (keep && memcmp(s->held.data + s->held.len - keep, from, keep))
        keep--;
    pass_held(d, i, at, s->held.len - keep, &m);
    pass_gathered(d, i, s->held.len - keep, owner);
}

static void end_replace(cake_decoder *d, size_t i)
{
    const cake_decode_stage *stage = &d->token->stages.step[i];
    cake_decoder_state *s = &d->state[i];
    const cake_buf *rest = stage->replace.from ? &s->held : &s->out;
    if (!s->held.len)
        return;
    d->owner = s->mark[0].owner;
    if (rest == &s->out)
        d->err = replace_into(stage, s->held.data, s->held.len, &s->out, &d->fault);
    next(d, i, rest->data ? rest->data : "", rest->len);
}

/* If the replacement fails the token stays as it is; decoding the answer reports the error. */
static void own_replace(const cake_decode_stage *s, cake_buf *text, cake_buf *spare)
{
    cake_fault fault;
    if (replace_into(s, text->data, text->len, spare, &fault))
        return;
    cake_buf_cut(text, 0);
    cake_buf_add(text, spare->data, spare->len);
}

/* --- Fuse, and the spaces between tokens if there is no decoder --- */

static void push_join(cake_decoder *d, size_t i, const char *text, size_t len)
{
    if (d->state[i].any)
        next(d, i, " ", 1);
    d->state[i].any = true;
    next(d, i, text, len);
}

/* --- Metaspace: its character becomes a space, but not in the first token --- */

static cake_err open_meta(const cake_json_path *path, cake_decode_stage *out)
{
    cake_pre_tokenizers list = {0}; /* it has the members of the pre-tokenizer of that name */
    cake_err err = cake_pre_tokenizers_open(path, &list);
    if (!err) {
        char text[4];
        out->replace.from_len = (size_t)cake_utf8_put(text, list.step[0].character);
        out->replace.from = cake_copy(text, out->replace.from_len);
        out->replace.to = cake_copy(" ", 1);
        out->replace.to_len = 1;
        out->keeps = list.step[0].scheme == CAKE_META_NEVER;
    }
    cake_pre_tokenizers_close(&list);
    return err;
}

static void push_meta(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_decode_stage *stage = &d->token->stages.step[i];
    const cake_replace *r = &stage->replace;
    cake_decoder_state *s = &d->state[i];
    bool drops = !stage->keeps && (stage->fused || !s->any);
    s->any = true;
    cake_buf_cut(&s->out, 0);
    cake_text_replace(text, len, r->from, r->from_len, r->to, drops ? 0 : r->to_len, &s->out);
    next(d, i, s->out.data ? s->out.data : "", s->out.len);
}

/* --- BPEDecoder: a suffix ends each word except the last --- */

static cake_err open_suffix(const cake_json_path *path, cake_decode_stage *out)
{
    const char *text = NULL;
    cake_err err = cake_json_path_text(path, "suffix", &text, &out->replace.from_len);
    if (!err && !out->replace.from_len)
        return cake_json_path_fail(path, "the suffix is empty; what ends a word?");
    if (!err)
        out->replace.from = cake_copy(text, out->replace.from_len);
    return err;
}

/* Passes on the held token with its suffixes as spaces, or removed if it is the last. */
static void pass_suffix(cake_decoder *d, size_t i, bool last)
{
    const cake_replace *r = &d->token->stages.step[i].replace;
    cake_decoder_state *s = &d->state[i];
    int64_t owner = d->owner;
    if (s->n_mark)
        d->owner = s->mark[0].owner;
    cake_buf_cut(&s->out, 0);
    cake_text_replace(s->held.data ? s->held.data : "", s->held.len, r->from, r->from_len, " ", !last,
                      &s->out);
    cake_decoder_drop(s, s->held.len);
    next(d, i, s->out.data ? s->out.data : "", s->out.len);
    d->owner = owner;
}

static void push_suffix(cake_decoder *d, size_t i, const char *text, size_t len)
{
    if (d->state[i].any && !d->token->stages.step[i].fused)
        pass_suffix(d, i, false);
    d->state[i].any = true;
    hold(d, &d->state[i], text, len);
}

static void own_suffix(const cake_decode_stage *s, cake_buf *text, cake_buf *spare)
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

/* --- WordPiece: a space before each token but the first and those that continue a word --- */

static void push_wordpiece(cake_decoder *d, size_t i, const char *text, size_t len)
{
    cake_decoder_state *s = &d->state[i];
    cake_buf_cut(&s->out, 0);
    cake_buf_cut(&s->held, 0);
    cake_wordpiece_spell(&d->token->stages.step[i], s->any, text, len, &s->out, &s->held);
    s->any = true;
    cake_buf_cut(&s->held, 0);
    next(d, i, s->out.data ? s->out.data : "", s->out.len);
}

static void own_wordpiece(const cake_decode_stage *stage, cake_buf *text, cake_buf *spare)
{
    cake_buf out = {0};
    cake_buf_cut(spare, 0);
    cake_wordpiece_spell(stage, true, text->data ? text->data : "", text->len, &out, spare);
    cake_buf_free(text);
    *text = out;
}

/* --- Strip --- */

static cake_err open_strip(const cake_json_path *path, cake_decode_stage *out)
{
    const char *text = NULL;
    size_t *n = &out->replace.from_len;
    cake_err err = cake_json_path_text(path, "content", &text, n);
    if (!err)
        err = cake_json_path_int(path, "start", 0, INT32_MAX, &out->start);
    if (!err)
        err = cake_json_path_int(path, "stop", 0, INT32_MAX, &out->stop);
    if (!err && (!*n || (size_t)cake_utf8_next(text, *n, NULL) != *n)) {
        cake_json_path member = cake_json_path_key(path, "content");
        err = cake_json_path_fail(&member, "\"%.40s\" is not one character", text);
    }
    if (!err)
        out->replace.from = cake_copy(text, *n);
    return err;
}

/* The bytes of up to max repetitions of `content` at text's beginning or end. */
static size_t run_at(const cake_decode_stage *stage, const char *text, size_t len, int64_t max, bool at_end)
{
    size_t run = 0, n = stage->replace.from_len;
    while (max-- > 0 && len - run >= n &&
           !memcmp(at_end ? text + len - run - n : text + run, stage->replace.from, n))
        run += n;
    return run;
}

static void push_strip(cake_decoder *d, size_t i, const char *text, size_t len)
{
    const cake_decode_stage *stage = &d->token->stages.step[i];
    cake_decoder_state *s = &d->state[i];
    size_t cut = s->taken < 0 ? 0 : run_at(stage, text, len, stage->start - s->taken, false);
    if (!stage->fused) {
        size_t tail = run_at(stage, text + cut, len - cut, stage->stop, true);
        next(d, i, text + cut, len - cut - tail);
        return;
    }
    if (s->taken >= 0)
        s->taken = cut < len ? -1 : s->taken + (int64_t)(cut / stage->replace.from_len);
    hold(d, s, text + cut, len - cut);
    size_t tail = run_at(stage, s->held.data, s->held.len, stage->stop, true), m = 0;
    int64_t owner = d->owner;
    cake_buf_cut(&s->out, 0);
    pass_held(d, i, 0, s->held.len - tail, &m);
    pass_gathered(d, i, s->held.len - tail, owner);
}

static const cake_stage_kind kinds[] = {
    {"Sequence", NULL, NULL, NULL, NULL, NULL, false, false},
    {"ByteLevel", NULL, push_bytes, end_bytes, NULL, own_bytes, true, true},
    {"Replace", open_replace, push_replace, end_replace, NULL, own_replace, false, false},
    {"ByteFallback", NULL, push_fallback, end_fallback, settle_fallback, own_fallback, false, true},
    {"Fuse", NULL, next, NULL, NULL, NULL, true, false},
    {"Strip", open_strip, push_strip, NULL, NULL, NULL, false, false},
    {"Metaspace", open_meta, push_meta, NULL, NULL, own_replace, false, false},
    {"BPEDecoder", open_suffix, push_suffix, end_suffix, NULL, own_suffix, false, false},
    {"WordPiece", cake_wordpiece_stage_open, push_wordpiece, NULL, NULL, own_wordpiece, false, false},
};

static const cake_stage_kind join = {"null", NULL, push_join, NULL, NULL, NULL, true, false};

static cake_decode_stage *add_stage(cake_decode_stages *out, const cake_stage_kind *kind)
{
    bool fused = out->n && (out->step[out->n - 1].fused || out->step[out->n - 1].kind->fuses);
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_decode_stage){.kind = kind, .fused = fused};
    return &out->step[out->n++];
}

static cake_err open_stage(const cake_json_path *path, size_t row, void *out)
{
    cake_decode_stages *list = out;
    if (list->n >= CAKE_MAX_STEPS)
        return cake_json_path_fail(path, "more than %d decoders cannot be run", CAKE_MAX_STEPS);
    cake_decode_stage *stage = add_stage(list, &kinds[row]);
    if (stage->fused && kinds[row].wants_apart)
        return cake_json_path_fail(path, "%s after a stage that joins all tokens is not supported",
                                   kinds[row].type);
    return kinds[row].open ? kinds[row].open(path, stage) : CAKE_OK;
}

cake_err cake_stages_open(const cake_json_path *path, cake_decode_stages *out)
{
    static const cake_json_path_table table = {kinds, sizeof *kinds, sizeof kinds / sizeof *kinds,
                                               "decoders"};
    cake_err err = cake_json_path_walk(path, &table, open_stage, out);
    if (!err && !out->n) /* an empty Sequence joins tokens without a separator */
        add_stage(out, cake_json_kind(path->node) <= CAKE_JSON_NULL ? &join : &kinds[4]);
    return err;
}

void cake_stages_close(cake_decode_stages *stages)
{
    for (size_t i = 0; i < stages->n; i++)
        cake_replace_close(&stages->step[i].replace);
    free(stages->step);
    *stages = (cake_decode_stages){0};
}

void cake_stages_bytes(const cake_decode_stages *stages, const char *text, size_t len, cake_buf *out)
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
