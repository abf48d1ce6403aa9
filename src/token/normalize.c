/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `normalizer`, then text. Out: the text as the model wants to see it.
 * Invariant: valid UTF-8 stays valid UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "token/parts.h"
#include "token/unicode.h"

typedef struct cake_normalizer_kind {
    const char *type;
    cake_err (*open)(const cake_spot *spot, cake_normalizer *out); /* NULL: nothing to read */
    void (*run)(const cake_normalizer *step, const cake_buf *text, cake_buf *out);
    cake_unicode_form form;
} normalizer_kind;

static void run_form(const cake_normalizer *step, const cake_buf *text, cake_buf *out)
{
    cake_unicode_normalize(step->kind->form, text->data, text->len, out);
}

static cake_err open_prepend(const cake_spot *spot, cake_normalizer *out)
{
    const char *text;
    cake_err err = cake_spot_text(spot, "prepend", &text, &out->to_len);
    if (!err)
        out->to = cake_copy(text, out->to_len);
    return err;
}

static void run_prepend(const cake_normalizer *step, const cake_buf *text, cake_buf *out)
{
    if (text->len)
        cake_buf_add(out, step->to, step->to_len);
    cake_buf_add(out, text->data, text->len);
}

static cake_err open_replace(const cake_spot *spot, cake_normalizer *out)
{
    cake_spot pattern = cake_spot_key(spot, "pattern");
    const char *from = NULL, *to;
    cake_err err = cake_spot_need(&pattern, CAKE_JSON_OBJECT, "an object");
    if (!err && cake_json_get(pattern.node, "Regex"))
        return cake_spot_fail(&pattern, "a Regex is not supported here; known is String");
    if (!err)
        err = cake_spot_text(&pattern, "String", &from, &out->from_len);
    if (!err && !out->from_len)
        err = cake_spot_fail(&pattern, "the String is empty; what shall be replaced?");
    if (!err)
        err = cake_spot_text(spot, "content", &to, &out->to_len);
    if (err)
        return err;
    out->from = cake_copy(from, out->from_len);
    out->to = cake_copy(to, out->to_len);
    return CAKE_OK;
}

void cake_text_replace(const char *text, size_t len, const char *from, size_t from_len, const char *to,
                       size_t to_len, cake_buf *out)
{
    size_t at = 0;
    while (at < len) {
        const char *hit = memmem(text + at, len - at, from, from_len);
        size_t end = hit ? (size_t)(hit - text) : len;
        cake_buf_add(out, text + at, end - at);
        if (!hit)
            return;
        cake_buf_add(out, to, to_len);
        at = end + from_len;
    }
}

static void run_replace(const cake_normalizer *step, const cake_buf *text, cake_buf *out)
{
    cake_text_replace(text->data, text->len, step->from, step->from_len, step->to, step->to_len, out);
}

static const normalizer_kind kinds[] = {
    {"Sequence", NULL, NULL, 0},
    {"NFC", NULL, run_form, CAKE_NFC},
    {"NFD", NULL, run_form, CAKE_NFD},
    {"NFKC", NULL, run_form, CAKE_NFKC},
    {"NFKD", NULL, run_form, CAKE_NFKD},
    {"Prepend", open_prepend, run_prepend, 0},
    {"Replace", open_replace, run_replace, 0},
};

cake_err cake_normalizers_open(const cake_spot *spot, cake_normalizers *out)
{
    if (cake_json_kind(spot->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    size_t row = 0;
    cake_err err = cake_spot_choose(spot, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &row);
    if (err)
        return err;
    if (!row) {
        cake_spot list = cake_spot_key(spot, "normalizers");
        err = cake_spot_need(&list, CAKE_JSON_ARRAY, "an array");
        for (size_t i = 0; !err && i < cake_json_size(list.node); i++) {
            cake_spot member = cake_spot_at(&list, i);
            err = cake_spot_need(&member, CAKE_JSON_OBJECT, "an object");
            if (!err)
                err = cake_normalizers_open(&member, out);
        }
        return err;
    }
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_normalizer){.kind = &kinds[row]};
    out->n++;
    return kinds[row].open ? kinds[row].open(spot, &out->step[out->n - 1]) : CAKE_OK;
}

/* Kelvin's sign, three bytes, becomes K; and, where forms are made compatible, four bytes a digit. */
size_t cake_normalizers_shrink(const cake_normalizers *normalizers)
{
    size_t shrink = 1;
    for (size_t i = 0; i < normalizers->n; i++) {
        const cake_normalizer *step = &normalizers->step[i];
        size_t by = 1;
        if (step->kind->run == run_form)
            by = step->kind->form == CAKE_NFKC || step->kind->form == CAKE_NFKD ? 4 : 3;
        else if (step->kind->run == run_replace && !step->to_len)
            return 0;
        else if (step->kind->run == run_replace && step->from_len > step->to_len)
            by = (step->from_len + step->to_len - 1) / step->to_len;
        if (__builtin_mul_overflow(shrink, by, &shrink))
            return 0;
    }
    return shrink;
}

void cake_normalizers_close(cake_normalizers *normalizers)
{
    for (size_t i = 0; i < normalizers->n; i++) {
        free(normalizers->step[i].from);
        free(normalizers->step[i].to);
    }
    free(normalizers->step);
    *normalizers = (cake_normalizers){0};
}

void cake_normalizers_run(const cake_normalizers *normalizers, cake_buf *text, cake_buf *spare)
{
    for (size_t i = 0; i < normalizers->n; i++) {
        cake_buf_cut(spare, 0);
        normalizers->step[i].kind->run(&normalizers->step[i], text, spare);
        cake_buf swap = *text;
        *text = *spare;
        *spare = swap;
    }
}
