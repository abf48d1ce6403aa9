/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `normalizer`, then text. Out: the normalized text.
 * A step works on the whole text or on one character at a time; BertNormalizer is several steps.
 * Invariant: valid UTF-8 stays valid UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/unicode.h"
#include "tokenizer/internal.h"

typedef struct cake_normalizer_kind {
    const char *type;
    cake_err (*open)(const cake_json_path *path, cake_normalizers *out); /* NULL: no members to read */
    /* from scratch->normal, which is not empty, to scratch->spare; sets scratch->moved if the beginning is
     * removed */
    cake_err (*run)(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault);
    int (*map)(uint32_t code, uint32_t out[3]); /* or the replacement of a character; returns its length */
    cake_unicode_form form;
    size_t shrink; /* maximum factor by which it shortens a text; 0: unbounded */
} normalizer_kind;

static cake_normalizer *add_step(cake_normalizers *out, const normalizer_kind *kind)
{
    out->step = cake_grow(out->step, out->n + 1, sizeof *out->step);
    out->step[out->n] = (cake_normalizer){.kind = kind};
    return &out->step[out->n++];
}

/* --- the whole text --- */

static cake_err run_form(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    (void)fault;
    cake_unicode_normalize(step->kind->form, scratch->normal.data, scratch->normal.len, &scratch->spare);
    return CAKE_OK;
}

static cake_err run_prepend(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    (void)fault;
    cake_buf_add(&scratch->spare, step->replace.to, step->replace.to_len);
    cake_buf_add(&scratch->spare, scratch->normal.data, scratch->normal.len);
    return CAKE_OK;
}

/* The replacement of a match has the position of its last character. */
static cake_err run_replace(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    const cake_buf *text = &scratch->normal;
    size_t first = 0;
    cake_err err = cake_replace_run(&step->replace, text->data, text->len, &scratch->spare, &first,
                                    &scratch->match, fault);
    if (first && (!step->replace.to_len || first > (size_t)cake_utf8_next(text->data, text->len, NULL)))
        scratch->moved = true;
    return err;
}

static cake_err run_precompiled(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    (void)fault;
    cake_charsmap_run(step->charsmap, scratch->normal.data, scratch->normal.len, &scratch->spare);
    return CAKE_OK;
}

static cake_err run_strip(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    (void)fault;
    const char *text = scratch->normal.data;
    size_t from = 0, to = scratch->normal.len, at;
    uint32_t code = 0;
    for (size_t n; step->left && from < to; from += n) {
        n = (size_t)cake_utf8_next(text + from, to - from, &code);
        if (!cake_char_is_space(code))
            break;
        scratch->moved = true;
    }
    while (step->right && to > from && cake_char_is_space(cake_text_last(text, to, &at)))
        to = at;
    cake_buf_add(&scratch->spare, text + from, to - from);
    return CAKE_OK;
}

static cake_err run_bytes(const cake_normalizer *step, cake_encode_ws *scratch, cake_fault *fault)
{
    (void)step, (void)fault;
    cake_byte_level_spell(scratch->normal.data, scratch->normal.len, &scratch->spare);
    return CAKE_OK;
}

/* --- a character at a time --- */

static int map_mark(uint32_t code, uint32_t out[3])
{
    out[0] = code;
    return !cake_char_is_mark(code);
}

/* The clean-up of neural machine translation: some controls are removed, some become blanks. */
static int map_nmt(uint32_t code, uint32_t out[3])
{
    static const uint32_t gone[][2] = {{1, 8},       {0xB, 0xB},   {0xE, 0x1F},
                                       {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}};
    static const uint32_t blank[][2] = {{'\t', '\n'},     {'\f', '\r'},     {0x1680, 0x1680},
                                        {0x200B, 0x200F}, {0x2028, 0x2029}, {0x2581, 0x2581},
                                        {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (code >= gone[i][0] && code <= gone[i][1])
            return 0;
    out[0] = code;
    for (size_t i = 0; i < sizeof blank / sizeof *blank; i++)
        if (code >= blank[i][0] && code <= blank[i][1])
            out[0] = ' ';
    return 1;
}

static int map_clean(uint32_t code, uint32_t out[3])
{
    out[0] = cake_char_is_space(code) ? ' ' : code;
    if (code == '\t' || code == '\n' || code == '\r')
        return 1;
    return code && code != 0xFFFD && !cake_char_is_control(code);
}

static int map_chinese(uint32_t code, uint32_t out[3])
{
    static const uint32_t chinese[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                          {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                          {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    for (size_t i = 0; code >= 0x3400 && i < sizeof chinese / sizeof *chinese; i++) {
        if (code >= chinese[i][0] && code <= chinese[i][1]) {
            out[0] = out[2] = ' ';
            out[1] = code;
            return 3;
        }
    }
    out[0] = code;
    return 1;
}

static int map_nonspacing(uint32_t code, uint32_t out[3])
{
    out[0] = code;
    return !cake_char_is_nonspacing(code);
}

static void map_text(const cake_normalizer *step, cake_encode_ws *scratch)
{
    const cake_buf *text = &scratch->normal;
    for (size_t at = 0, n; at < text->len; at += n) {
        uint32_t code = 0, to[3];
        n = (size_t)cake_utf8_next(text->data + at, text->len - at, &code);
        int many = step->kind->map(code, to);
        if (!at && !many)
            scratch->moved = true;
        for (int i = 0; i < many; i++) {
            char bytes[4];
            cake_buf_add(&scratch->spare, bytes, (size_t)cake_utf8_put(bytes, to[i]));
        }
    }
}

/* --- opening --- */

static const normalizer_kind nfd = {"NFD", NULL, run_form, NULL, CAKE_NFD, 3};
static const normalizer_kind lower = {"Lowercase", NULL, NULL, cake_char_lower, 0, 3};
static const normalizer_kind prepend = {"Prepend", NULL, run_prepend, NULL, 0, 1};
static const normalizer_kind replace = {"Replace", NULL, run_replace, NULL, 0, 0};
static const normalizer_kind strip = {"Strip", NULL, run_strip, NULL, 0, 0};
static const normalizer_kind precompiled = {"Precompiled", NULL, run_precompiled, NULL, 0, 0};
static const normalizer_kind clean = {"clean_text", NULL, NULL, map_clean, 0, 0};
static const normalizer_kind chinese = {"handle_chinese_chars", NULL, NULL, map_chinese, 0, 1};
static const normalizer_kind nonspacing = {"strip_accents", NULL, NULL, map_nonspacing, 0, 0};

static cake_err open_prepend(const cake_json_path *path, cake_normalizers *out)
{
    cake_replace *to = &add_step(out, &prepend)->replace;
    const char *text;
    cake_err err = cake_json_path_text(path, "prepend", &text, &to->to_len);
    if (!err)
        to->to = cake_copy(text, to->to_len);
    return err;
}

static cake_err open_replace(const cake_json_path *path, cake_normalizers *out)
{
    return cake_replace_open(path, &add_step(out, &replace)->replace);
}

static cake_err open_strip(const cake_json_path *path, cake_normalizers *out)
{
    cake_normalizer *step = add_step(out, &strip);
    cake_err err = cake_json_path_flag(path, "strip_left", false, &step->left);
    return err ? err : cake_json_path_flag(path, "strip_right", false, &step->right);
}

static cake_err open_precompiled(const cake_json_path *path, cake_normalizers *out)
{
    cake_json_path map = cake_json_path_key(path, "precompiled_charsmap");
    return cake_charsmap_open(&map, &add_step(out, &precompiled)->charsmap);
}

static cake_err open_bert(const cake_json_path *path, cake_normalizers *out)
{
    bool cleans = true, apart = true, lowers = true, strips = true;
    cake_err err = cake_json_path_flag(path, "clean_text", true, &cleans);
    if (!err)
        err = cake_json_path_flag(path, "handle_chinese_chars", true, &apart);
    if (!err)
        err = cake_json_path_flag(path, "lowercase", true, &lowers);
    if (!err)
        err = cake_json_path_flag(path, "strip_accents", lowers, &strips);
    if (!err && cleans)
        add_step(out, &clean);
    if (!err && apart)
        add_step(out, &chinese);
    if (!err && strips) {
        add_step(out, &nfd);
        add_step(out, &nonspacing);
    }
    if (!err && lowers)
        add_step(out, &lower);
    return err;
}

/* The Kelvin sign, three bytes, becomes K; with compatibility forms four bytes may become a digit. */
static const normalizer_kind kinds[] = {
    {"Sequence", NULL, NULL, NULL, 0, 0},
    {"NFC", NULL, run_form, NULL, CAKE_NFC, 3},
    {"NFD", NULL, run_form, NULL, CAKE_NFD, 3},
    {"NFKC", NULL, run_form, NULL, CAKE_NFKC, 4},
    {"NFKD", NULL, run_form, NULL, CAKE_NFKD, 4},
    {"Lowercase", NULL, NULL, cake_char_lower, 0, 3},
    {"StripAccents", NULL, NULL, map_mark, 0, 0},
    {"Nmt", NULL, NULL, map_nmt, 0, 0},
    {"ByteLevel", NULL, run_bytes, NULL, 0, 1},
    {"Prepend", open_prepend, NULL, NULL, 0, 0},
    {"Replace", open_replace, NULL, NULL, 0, 0},
    {"Strip", open_strip, NULL, NULL, 0, 0},
    {"Precompiled", open_precompiled, NULL, NULL, 0, 0},
    {"BertNormalizer", open_bert, NULL, NULL, 0, 0},
};

static cake_err open_step(const cake_json_path *path, size_t row, void *out)
{
    if (kinds[row].open)
        return kinds[row].open(path, out);
    add_step(out, &kinds[row]);
    return CAKE_OK;
}

cake_err cake_normalizers_open(const cake_json_path *path, cake_normalizers *out)
{
    static const cake_json_path_table table = {kinds, sizeof *kinds, sizeof kinds / sizeof *kinds,
                                               "normalizers"};
    return cake_json_path_walk(path, &table, open_step, out);
}

size_t cake_normalizers_shrink(const cake_normalizers *normalizers)
{
    size_t shrink = 1;
    for (size_t i = 0; i < normalizers->n; i++) {
        const cake_normalizer *step = &normalizers->step[i];
        size_t by = step->kind->shrink;
        if (step->kind == &replace && step->replace.from && step->replace.to_len)
            by = (step->replace.from_len + step->replace.to_len - 1) / step->replace.to_len;
        if (__builtin_mul_overflow(shrink, by, &shrink))
            return 0;
    }
    return shrink;
}

bool cake_normalizers_spell(const cake_normalizers *normalizers)
{
    bool spell = false;
    for (size_t i = 0; i < normalizers->n; i++)
        spell = spell || normalizers->step[i].kind->run == run_bytes;
    return spell;
}

void cake_normalizers_close(cake_normalizers *normalizers)
{
    for (size_t i = 0; i < normalizers->n; i++) {
        cake_replace_close(&normalizers->step[i].replace);
        cake_charsmap_close(normalizers->step[i].charsmap);
    }
    free(normalizers->step);
    *normalizers = (cake_normalizers){0};
}

cake_err cake_normalizers_run(const cake_normalizers *normalizers, cake_encode_ws *scratch, cake_fault *fault)
{
    cake_err err = CAKE_OK;
    scratch->moved = false;
    for (size_t i = 0; !err && i < normalizers->n && scratch->normal.len; i++) {
        const cake_normalizer *step = &normalizers->step[i];
        cake_buf_cut(&scratch->spare, 0);
        if (step->kind->map)
            map_text(step, scratch);
        else
            err = step->kind->run(step, scratch, fault);
        if (!err)
            err = cake_text_grown(scratch->spare.len, step->kind->type, fault);
        cake_buf swap = scratch->normal;
        scratch->normal = scratch->spare;
        scratch->spare = swap;
    }
    return err;
}
