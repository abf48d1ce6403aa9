/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json's quantization_config. Out: the method, and what the files do not show. Invariant: a scheme
 * that is not read exactly is refused with its field.
 */
#include <string.h>
#include <strings.h>

#include "config/config_read.h"

#define MOST_BLOCK 65536

/* Fails unless the text of a field, if it is there, is one of n names, in any case. */
static cake_err check_text(const cake_fields *fields, const char *name, const char *const *names, int n,
                           const char *expected)
{
    const cake_json *node = cake_field(fields, name);
    const char *text = cake_json_text(node, NULL);
    for (int i = 0; text && i < n; i++)
        if (!strcasecmp(text, names[i]))
            return CAKE_OK;
    return node ? cake_field_fail(fields, name, "%s is expected", expected) : CAKE_OK;
}

/* Two numbers; blocks stays as it is if they are not there. */
static cake_err read_block(const cake_fields *fields, const char *name, int block[2])
{
    const cake_json *node = cake_field(fields, name);
    if (!node)
        return CAKE_OK;
    for (size_t i = 0; i < 2; i++) {
        int64_t size = cake_json_int(cake_json_at(node, i), -1);
        if (cake_json_size(node) != 2 || size < 1 || size > MOST_BLOCK)
            return cake_field_fail(fields, name, "an array of two sizes from 1 to %d is expected",
                                   MOST_BLOCK);
        block[i] = (int)size;
    }
    return CAKE_OK;
}

static cake_err read_fp8(const cake_fields *fields, cake_quantization *q)
{
    static const char *const kinds[] = {"e4m3", "float8_e4m3fn"};
    cake_err err = check_text(fields, "fmt", kinds, 2, "e4m3");
    return err ? err : read_block(fields, "weight_block_size", q->block);
}

/* Inside an object of quantization_config; room holds the prefix for messages. */
static cake_fields inside(const cake_fields *fields, const char *name, cake_buf *room)
{
    cake_fields in = *fields;
    in.object = cake_field(fields, name);
    cake_buf_addf(room, "%s%s.", fields->prefix, name);
    in.prefix = room->data;
    return in;
}

/* weights of a member of config_groups. */
static cake_err read_group(const cake_fields *group, cake_quantization *q)
{
    static const char *const types[] = {"int", "float"};
    static const char *const strategies[] = {"tensor", "channel", "group", "block", "tensor_group"};
    cake_buf room = {0};
    const cake_fields fields = inside(group, "weights", &room);
    int bits = 8;
    cake_err err = CAKE_OK;
    if (cake_json_kind(fields.object) == CAKE_JSON_OBJECT) {
        err = cake_field_int(&fields, "num_bits", 8, 1, 64, &bits);
        if (!err && bits != 4 && bits != 8)
            err = cake_field_fail(&fields, "num_bits", "4 or 8 is expected");
        if (!err)
            err = check_text(&fields, "type", types, 2, "int or float");
        if (!err)
            err = check_text(&fields, "strategy", strategies, 5,
                             "tensor, channel, group, block or tensor_group");
        if (!err)
            err = read_block(&fields, "block_structure", q->block);
    }
    cake_buf_free(&room);
    return err;
}

static cake_err read_compressed(const cake_fields *fields, cake_quantization *q)
{
    static const char *const formats[] = {"dense",           "int-quantized",        "float-quantized",
                                          "naive-quantized", "pack-quantized",       "nvfp4-pack-quantized",
                                          "mixed-precision", "mxfp4-pack-quantized", "mxfp8-quantized"};
    cake_err err =
        check_text(fields, "format", formats, sizeof formats / sizeof *formats,
                   "int-quantized, float-quantized, naive-quantized, pack-quantized, "
                   "nvfp4-pack-quantized, mxfp4-pack-quantized, mxfp8-quantized or mixed-precision");
    cake_buf room = {0};
    const cake_json *rotated = cake_field(fields, "transform_config");
    if (!err && cake_json_size(rotated))
        err = cake_field_fail(fields, "transform_config", "weights without transforms are expected");
    const cake_fields groups = inside(fields, "config_groups", &room);
    if (!err && groups.object &&
        (cake_json_kind(groups.object) != CAKE_JSON_OBJECT || !cake_json_size(groups.object)))
        err = cake_field_fail(fields, "config_groups", "an object with a group or more is expected");
    for (void *it = cake_json_first(groups.object); !err && it; it = cake_json_next(groups.object, it)) {
        cake_buf more = {0};
        const cake_fields group = inside(&groups, cake_json_key(it, NULL), &more);
        err = cake_json_kind(group.object) == CAKE_JSON_OBJECT
                  ? read_group(&group, q)
                  : cake_field_fail(&groups, cake_json_key(it, NULL), "an object is expected");
        cake_buf_free(&more);
    }
    cake_buf_free(&room);
    return err;
}

/* The name under which a field came: the older one rules. */
static const char *spelled(const cake_fields *fields, const char *name, const char *other)
{
    return cake_field(fields, name) ? name : other;
}

static cake_err read_gptq(const cake_fields *fields, cake_quantization *q)
{
    static const char *const formats[] = {"gptq", "gptq_v2", ""};
    const char *name = spelled(fields, "checkpoint_format", "format");
    int bits;
    if (check_text(fields, name, formats, 3, "gptq or gptq_v2") ||
        cake_field_int(fields, "bits", CAKE_REQUIRED, 1, 64, &bits))
        return CAKE_ERR_FATAL;
    if (bits != 4 && bits != 8)
        return cake_field_fail(fields, "bits", "4 or 8 is expected");
    const char *format = cake_json_text(cake_field(fields, name), NULL);
    if (cake_field_bool(fields, "desc_act", false, &q->any_order))
        return CAKE_ERR_FATAL;
    q->less = !format || strcasecmp(format, "gptq_v2");
    return CAKE_OK;
}

static cake_err read_awq(const cake_fields *fields, cake_quantization *q)
{
    static const char *const versions[] = {"gemm"};
    int bits;
    (void)q;
    if (check_text(fields, spelled(fields, "version", "format"), versions, 1, "gemm") ||
        cake_field_int(fields, "bits", cake_field(fields, "w_bit") ? 4 : CAKE_REQUIRED, 1, 64, &bits))
        return CAKE_ERR_FATAL;
    return bits == 4 ? CAKE_OK : cake_field_fail(fields, "bits", "4 is expected");
}

/* Other ones scale activations before the product (AWQ, SmoothQuant) or add to it (SVDQuant). */
static cake_err read_modelopt(const cake_fields *fields, cake_quantization *q)
{
    static const char *const algos[] = {
        "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4", "MXFP8", "MIXED_PRECISION"};
    (void)q;
    return check_text(
        fields, "quant_algo", algos, sizeof algos / sizeof *algos,
        "FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, MXFP8 or MIXED_PRECISION");
}

static cake_err read_nothing(const cake_fields *fields, cake_quantization *q)
{
    (void)fields;
    (void)q;
    return CAKE_OK;
}

static const struct {
    const char *name;
    cake_quant_method method;
    cake_err (*read)(const cake_fields *fields, cake_quantization *q);
} methods[] = {
    {"fp8", CAKE_QUANT_FP8, read_fp8},         {"compressed-tensors", CAKE_QUANT_COMPRESSED, read_compressed},
    {"gptq", CAKE_QUANT_GPTQ, read_gptq},      {"awq", CAKE_QUANT_AWQ, read_awq},
    {"mxfp4", CAKE_QUANT_MXFP4, read_nothing}, {"modelopt", CAKE_QUANT_MODELOPT, read_modelopt},
};

cake_err cake_config_read_quantization(const cake_fields *top, cake_quantization *q)
{
    cake_buf room = {0};
    *q = (cake_quantization){0};
    const cake_fields fields = inside(top, "quantization_config", &room);
    if (!fields.object) {
        cake_buf_free(&room);
        return CAKE_OK;
    }
    const char *method = cake_json_text(cake_field(&fields, "quant_method"), NULL);
    size_t i = 0, n = sizeof methods / sizeof *methods;
    while (method && i < n && strcmp(method, methods[i].name))
        i++;
    cake_err err = CAKE_OK;
    if (cake_json_kind(fields.object) != CAKE_JSON_OBJECT)
        err = cake_field_fail(top, "quantization_config", "an object is expected");
    else if (!method || i == n)
        err = cake_field_fail(&fields, "quant_method",
                              "fp8, compressed-tensors, gptq, awq, mxfp4 or modelopt is expected");
    else
        err = methods[i].read(&fields, q);
    if (!err)
        q->method = methods[i].method;
    cake_buf_free(&room);
    return err;
}
