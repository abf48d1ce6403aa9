/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the rotary fields of config.json, in either generation. Out: cake_rope and the frequencies it stands for.
 * config.c reads, slice asks for the frequencies. Invariant: a kind of scaling that is not computed here is
 * refused by name, never taken for another one.
 */
#include <string.h>

#include "model/config_read.h"

#define DEFAULT_THETA 10000.0 /* transformers' own, for files older than the field */

static const char *const kind_names[] = {
    [CAKE_ROPE_DEFAULT] = "default", [CAKE_ROPE_LINEAR] = "linear", [CAKE_ROPE_LLAMA3] = "llama3"};

static cake_err read_kind(const cake_fields *fields, cake_rope_kind *out)
{
    const char *name = cake_field(fields, "rope_type") ? "rope_type" : "type";
    const cake_json *node = cake_field(fields, name);
    if (!node) {
        *out = CAKE_ROPE_DEFAULT;
        return CAKE_OK;
    }
    const char *text = cake_json_text(node, NULL);
    for (size_t kind = 0; text && kind < sizeof kind_names / sizeof *kind_names; kind++)
        if (!strcmp(text, kind_names[kind])) {
            *out = (cake_rope_kind)kind;
            return CAKE_OK;
        }
    return cake_field_fail(fields, name, "only default, linear and llama3 are supported");
}

/* What would turn less than all of a head, or pair its elements in another way. */
static cake_err refuse_others(const cake_fields *fields)
{
    double partial;
    if (cake_field_real(fields, "partial_rotary_factor", 1, 1, 1, &partial))
        return CAKE_ERR_FATAL;
    if (cake_field(fields, "mrope_section"))
        return cake_field_fail(fields, "mrope_section", "multimodal rotary embedding is not supported");
    return CAKE_OK;
}

static cake_err read_llama3(const cake_fields *top, const cake_fields *fields, const cake_config *config,
                            cake_rope *rope)
{
    /* a value outside the object has precedence, and the context is the last resort, as in transformers */
    const cake_fields *owner = cake_field(top, "original_max_position_embeddings") ? top : fields;
    if (cake_field_int(owner, "original_max_position_embeddings", config->context, 1, INT32_MAX,
                       &rope->original_context) ||
        cake_field_real(fields, "low_freq_factor", CAKE_REQUIRED_REAL, 1e-6, 1e6, &rope->low_freq) ||
        cake_field_real(fields, "high_freq_factor", CAKE_REQUIRED_REAL, 1e-6, 1e6, &rope->high_freq))
        return CAKE_ERR_FATAL;
    if (rope->high_freq <= rope->low_freq)
        return cake_field_fail(fields, "high_freq_factor", "more than low_freq_factor (%g) is expected",
                               rope->low_freq);
    return CAKE_OK;
}

cake_err cake_config_read_rope(const cake_fields *top, cake_config *config)
{
    cake_fields fields = {.object = NULL, .file = top->file, .prefix = "rope_scaling."};
    const char *name = "rope_scaling";
    const cake_json *scaling = cake_field(top, name);
    if (!scaling || (cake_json_kind(scaling) == CAKE_JSON_OBJECT && !cake_json_size(scaling))) {
        name = "rope_parameters";
        fields.prefix = "rope_parameters.";
    }
    fields.object = cake_field(top, name);
    if (fields.object && cake_json_kind(fields.object) != CAKE_JSON_OBJECT)
        return cake_field_fail(top, name, "an object or null is expected");
    for (void *it = cake_json_first(fields.object); it; it = cake_json_next(fields.object, it))
        if (cake_json_kind(cake_json_value(it)) == CAKE_JSON_OBJECT)
            return cake_field_fail(&fields, cake_json_key(it, NULL),
                                   "rotary parameters of their own for some layers are not supported");

    cake_rope rope = {.factor = 1};
    double theta;
    if (refuse_others(top) || refuse_others(&fields) || read_kind(&fields, &rope.kind) ||
        cake_field_real(top, "rope_theta", DEFAULT_THETA, 1, 1e15, &theta) ||
        cake_field_real(&fields, "rope_theta", theta, 1, 1e15, &rope.theta))
        return CAKE_ERR_FATAL;
    if (rope.kind != CAKE_ROPE_DEFAULT &&
        cake_field_real(&fields, "factor", CAKE_REQUIRED_REAL, 1, 1e6, &rope.factor))
        return CAKE_ERR_FATAL;
    if (rope.kind == CAKE_ROPE_LLAMA3 && read_llama3(top, &fields, config, &rope))
        return CAKE_ERR_FATAL;
    config->rope = rope;
    return CAKE_OK;
}

/* Long wavelengths are stretched by factor, short ones stay, those between are blended. */
static double llama3_frequency(const cake_rope *rope, double freq)
{
    double turns = rope->original_context * freq / (2 * M_PI); /* within the original context */
    if (turns < rope->low_freq)
        return freq / rope->factor;
    if (turns > rope->high_freq)
        return freq;
    double smooth = (turns - rope->low_freq) / (rope->high_freq - rope->low_freq);
    return (1 - smooth) * freq / rope->factor + smooth * freq;
}

void cake_config_rope(const cake_config *config, double *freq)
{
    const cake_rope *rope = &config->rope;
    for (int i = 0; i < config->head_dim / 2; i++) {
        double plain = pow(rope->theta, -2.0 * i / config->head_dim);
        freq[i] = rope->kind == CAKE_ROPE_LLAMA3 ? llama3_frequency(rope, plain) : plain / rope->factor;
    }
}
