/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer's `post_processor`. Out: the ids before and after those of a single text, and around those
 * of a pair. Offsets, which post-processors also set, are not needed here.
 */
#include <string.h>

#include "base/log.h"

#include "tokenizer/internal.h"

typedef struct post_kind {
    const char *type;
    cake_err (*open)(const cake_json_path *path, cake_post_processor *out);
} post_kind;

static cake_err open_offsets(const cake_json_path *path, cake_post_processor *out)
{
    (void)path;
    (void)out; /* ByteLevel only changes offsets */
    return CAKE_OK;
}

/* A name may stand for thousands of ids, and occur thousands of times. */
static cake_err check_count(const cake_json_path *path, const cake_ids *ids)
{
    enum { MAX_IDS = 1 << 20 };
    return ids->len <= MAX_IDS
               ? CAKE_OK
               : cake_json_path_fail(path, "more than %d ids before or after the text", MAX_IDS);
}

/* Appends the ids of a name in special_tokens. */
static cake_err add_special(const cake_json_path *path, const cake_json_path *specials, const char *name,
                            cake_ids *ids)
{
    cake_json_path special = cake_json_path_key(specials, name);
    if (!special.node)
        return cake_json_path_fail(path, "\"%.80s\" is not in special_tokens", name);
    cake_json_path list = cake_json_path_key(&special, "ids");
    cake_err err = cake_json_path_need(&list, CAKE_JSON_ARRAY, "an array");
    for (size_t i = 0; !err && i < cake_json_size(list.node); i++) {
        cake_json_path member = cake_json_path_at(&list, i);
        int64_t id = cake_json_int(member.node, -1);
        if (id < 0 || id >= CAKE_MAX_VOCAB)
            return cake_json_path_fail(&member, "found %s, expected an id from 0 to %d",
                                       cake_json_kind_name(member.node), CAKE_MAX_VOCAB - 1);
        cake_ids_add(ids, (int32_t)id);
        err = check_count(path, ids);
    }
    return err;
}

/* Reads one element of `single`: a special token, or the place of the text. */
static cake_err read_piece(const cake_json_path *path, const cake_json_path *specials, bool *text_seen,
                           cake_post_processor *out)
{
    const char *name = NULL;
    cake_json_path special = cake_json_path_key(path, "SpecialToken"),
                   sequence = cake_json_path_key(path, "Sequence");
    if (special.node) {
        cake_err err = cake_json_path_text(&special, "id", &name, NULL);
        return err ? err : add_special(&special, specials, name, *text_seen ? &out->after : &out->before);
    }
    if (!sequence.node)
        return cake_json_path_fail(path, "found neither SpecialToken nor Sequence");
    cake_err err = cake_json_path_text(&sequence, "id", &name, NULL);
    if (!err && strcmp(name, "A"))
        err = cake_json_path_fail(&sequence, "the sequence \"%.40s\" is not that of a single text, A", name);
    if (!err && *text_seen)
        err = cake_json_path_fail(&sequence, "the text stands here a second time; once is supported");
    *text_seen = true;
    return err;
}

/* Adds the piece to the pair's ids. at: texts so far. False: this is not supported. */
static bool read_pair_piece(const cake_json_path *piece, const cake_json_path *specials, int *at,
                            cake_post_processor *out)
{
    static const char *const order[] = {"A", "B"};
    cake_json_path special = cake_json_path_key(piece, "SpecialToken"),
                   sequence = cake_json_path_key(piece, "Sequence");
    const cake_json *any = special.node ? special.node : sequence.node;
    const char *name = cake_json_text(cake_json_get(any, "id"), NULL);
    const int64_t type = cake_json_int(cake_json_get(any, "type_id"), 0);
    const bool turned = out->second >= 0;
    if (!name || type < 0 || type > 1 || (turned && type == 0))
        return false;
    if (type == 1 && !turned) { /* from here on */
        if (*at != 1)
            return false;
        out->second = (int)out->pair[1].len;
    }
    if (special.node)
        return !add_special(&special, specials, name, &out->pair[*at]);
    return *at < 2 && !strcmp(name, order[(*at)++]);
}

/* Of a single text nothing depends on it, so what is not supported is an error only where a pair is given. */
static void open_pair(const cake_json_path *path, const cake_json_path *specials, cake_post_processor *out)
{
    cake_buf said = {0};
    cake_buf *before = cake_log_capture(&said);
    cake_json_path pair = cake_json_path_key(path, "pair");
    int at = 0;
    out->no_pair = out->no_pair || out->pair[1].len > 0; /* a second template */
    for (size_t i = 0; i < cake_json_size(pair.node) && !out->no_pair; i++) {
        cake_json_path piece = cake_json_path_at(&pair, i);
        out->no_pair = !read_pair_piece(&piece, specials, &at, out);
    }
    out->no_pair = out->no_pair || at != 2;
    cake_log_capture(before);
    cake_buf_free(&said);
}

static cake_err open_template(const cake_json_path *path, cake_post_processor *out)
{
    cake_json_path single = cake_json_path_key(path, "single"),
                   specials = cake_json_path_key(path, "special_tokens");
    cake_err err = cake_json_path_need(&single, CAKE_JSON_ARRAY, "an array");
    bool text_seen = false;
    cake_post_processor own = {0};
    for (size_t i = 0; !err && i < cake_json_size(single.node); i++) {
        cake_json_path piece = cake_json_path_at(&single, i);
        err = read_piece(&piece, &specials, &text_seen, &own);
    }
    if (!err && !text_seen)
        err = cake_json_path_fail(&single, "found no Sequence, which is the place of the text");
    if (!err)
        open_pair(path, &specials, out);
    /* the ids of an earlier processor go inside */
    for (size_t i = 0; i < out->before.len; i++)
        cake_ids_add(&own.before, out->before.id[i]);
    for (size_t i = 0; i < own.after.len; i++)
        cake_ids_add(&out->after, own.after.id[i]);
    cake_ids_free(&out->before);
    cake_ids_free(&own.after);
    out->before = own.before;
    return err;
}

/* ["text", id] */
static cake_err read_pair(const cake_json_path *path, const char *key, int32_t *out)
{
    cake_json_path pair = cake_json_path_key(path, key), second = cake_json_path_at(&pair, 1);
    cake_err err = cake_json_path_need(&pair, CAKE_JSON_ARRAY, "[\"token\", id]");
    int64_t id = cake_json_int(second.node, -1);
    if (!err && (id < 0 || id >= CAKE_MAX_VOCAB))
        err = cake_json_path_fail(&second, "found %s, expected an id from 0 to %d",
                                  cake_json_kind_name(second.node), CAKE_MAX_VOCAB - 1);
    *out = (int32_t)id;
    return err;
}

/* BERT and RoBERTa: one token before the text, one after; between texts one or two. */
static cake_err open_around(const cake_json_path *path, cake_post_processor *out)
{
    int32_t before, after;
    cake_err err = read_pair(path, "cls", &before);
    if (!err)
        err = read_pair(path, "sep", &after);
    if (err)
        return err;
    cake_ids_add(&out->before, before);
    memmove(out->before.id + 1, out->before.id, (out->before.len - 1) * sizeof *out->before.id);
    out->before.id[0] = before;
    cake_ids_add(&out->after, after);
    const bool bert = !strcmp(cake_json_text(cake_json_get(path->node, "type"), NULL), "BertProcessing");
    out->no_pair = out->no_pair || out->pair[1].len > 0;
    cake_ids_add(&out->pair[0], before);
    for (int i = 0; i < (bert ? 1 : 2); i++)
        cake_ids_add(&out->pair[1], after);
    cake_ids_add(&out->pair[2], after);
    out->second = bert ? 1 : -1;
    return CAKE_OK;
}

static const post_kind kinds[] = {
    {"Sequence", NULL},
    {"ByteLevel", open_offsets},
    {"TemplateProcessing", open_template},
    {"BertProcessing", open_around},
    {"RobertaProcessing", open_around},
};

static cake_err open_step(const cake_json_path *path, size_t row, void *out)
{
    cake_post_processor *post = out;
    cake_err err = kinds[row].open(path, post);
    if (!err)
        err = check_count(path, &post->before);
    return err ? err : check_count(path, &post->after);
}

cake_err cake_post_processor_open(const cake_json_path *path, cake_post_processor *out)
{
    static const cake_json_path_table table = {kinds, sizeof *kinds, sizeof kinds / sizeof *kinds,
                                               "processors"};
    out->second = -1;
    return cake_json_path_walk(path, &table, open_step, out);
}

void cake_post_processor_close(cake_post_processor *post)
{
    cake_ids_free(&post->before);
    cake_ids_free(&post->after);
    for (int i = 0; i < 3; i++)
        cake_ids_free(&post->pair[i]);
}
