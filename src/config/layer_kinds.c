/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json's fields about single layers: layer_types, sliding windows, rotary embedding. Out: the kind
 * of each layer and the KV cache groups. Invariant: layers with equal windows and heads are in one group.
 */
#include <string.h>

#include "base/log.h"
#include "config/config_read.h"
#include "formats/gguf_config.h"

#define MAX_DELTA_HEADS (1 << 14) /* all heads together must fit an int */

typedef enum layer_type { FULL, SLIDING, LINEAR, N_TYPE } layer_type;

static const char *const type_names[N_TYPE] = {
    [FULL] = "full_attention", [SLIDING] = "sliding_attention", [LINEAR] = "linear_attention"};

/* *window 0: no layer slides. */
static cake_err read_window(const cake_fields *fields, const cake_config *c, int *window)
{
    cake_sliding sliding = c->arch->sliding;
    bool may_switch = sliding == CAKE_SLIDING_FROM || sliding == CAKE_SLIDING_NO_ROPE ||
                      sliding == CAKE_SLIDING_SWITCH,
         use;
    if (cake_field_bool(fields, "use_sliding_window", !may_switch && sliding != CAKE_SLIDING_NONE, &use))
        return CAKE_ERR_FATAL;
    if (use && sliding == CAKE_SLIDING_NONE)
        return cake_field_fail(fields, "use_sliding_window", "layers of family %s have no sliding window",
                               c->arch->name);
    *window = 0;
    if (sliding == CAKE_SLIDING_LOCAL) { /* so many positions around a row's own */
        if (cake_field_int(fields, "local_attention", CAKE_REQUIRED, 1, INT32_MAX, window))
            return CAKE_ERR_FATAL;
        *window = *window / 2 + 1;
        return CAKE_OK;
    }
    if (sliding == CAKE_SLIDING_NONE || (!use && may_switch))
        return CAKE_OK;
    if (cake_field(fields, "sliding_window") &&
        cake_field_int(fields, "sliding_window", CAKE_REQUIRED, 1, INT32_MAX, window))
        return CAKE_ERR_FATAL;
    if (c->both_ways) /* half of it on either side, as in transformers */
        *window = *window / 2 + (*window > 0);
    if (!use && *window)
        return cake_field_fail(fields, "use_sliding_window",
                               "family %s supports sliding_window only: set that to null", c->arch->name);
    return CAKE_OK;
}

/* rotates [n_layer]: whether a list gives the layer rotary embedding. */
static cake_err read_rotates(const cake_fields *fields, const cake_config *c, bool *rotates)
{
    const cake_json *list = NULL;
    int every = 0;
    if (c->arch->nope == CAKE_NOPE_LISTED) {
        list = cake_field(fields, "no_rope_layers");
        if (list && (cake_json_kind(list) != CAKE_JSON_ARRAY || cake_json_size(list) < (size_t)c->n_layer))
            return cake_field_fail(fields, "no_rope_layers", "an array of %d numbers 0 or 1 is expected",
                                   c->n_layer);
        if (!list &&
            cake_field_int(fields, "no_rope_layer_interval", CAKE_REQUIRED, 1, CAKE_MAX_LAYER, &every))
            return CAKE_ERR_FATAL;
    }
    for (int i = 0; i < c->n_layer; i++) {
        rotates[i] = !every || (i + 1) % every != 0;
        if (!list)
            continue;
        int64_t value = cake_json_int(cake_json_at(list, (size_t)i), -1);
        if (value < 0 || value > 1)
            return cake_fail("config", "%s: %sno_rope_layers[%d]: 0 or 1 is expected", fields->file,
                             fields->prefix, i);
        rotates[i] = value == 1;
    }
    return CAKE_OK;
}

/* Every period-th layer is full: given as a number, or as letters G (full) and L (sliding) that repeat; the
 * last layer is always full. */
static cake_err read_period(const cake_fields *fields, const cake_config *c, layer_type *types)
{
    const char *letters = NULL;
    int period = c->arch->period;
    if (!period && cake_field(fields, "sliding_window_pattern")) {
        size_t n;
        letters = cake_json_text(cake_field(fields, "sliding_window_pattern"), &n);
        if (letters && (n == 0 || n > CAKE_MAX_LAYER || strspn(letters, "GL") != n))
            return cake_field_fail(fields, "sliding_window_pattern", "letters G and L are expected");
        if (letters)
            period = (int)n;
        else if (cake_field_int(fields, "sliding_window_pattern", CAKE_REQUIRED, 0, CAKE_MAX_LAYER, &period))
            return CAKE_ERR_FATAL;
    }
    for (int i = 0; i < c->n_layer; i++)
        if (letters)
            types[i] = letters[i % period] == 'L' && i < c->n_layer - 1 ? SLIDING : FULL;
        else
            types[i] = period && (i + 1) % period ? SLIDING : FULL;
    return CAKE_OK;
}

/* Applies the family's rule where layer_types is absent. */
static cake_err apply_rule(const cake_fields *fields, const cake_config *c, int window, const bool *rotates,
                           layer_type *types)
{
    int from = 0, every;
    if (c->arch->delta) {
        if (cake_field_int(fields, "full_attention_interval", CAKE_REQUIRED, 1, CAKE_MAX_LAYER, &every))
            return CAKE_ERR_FATAL;
        for (int i = 0; i < c->n_layer; i++)
            types[i] = (i + 1) % every ? LINEAR : FULL;
    }
    if (!window)
        return CAKE_OK;
    if (c->arch->sliding == CAKE_SLIDING_PERIOD)
        return read_period(fields, c, types);
    if (c->arch->sliding == CAKE_SLIDING_LOCAL) {
        if (cake_field_int(fields, "global_attn_every_n_layers", CAKE_REQUIRED, 1, CAKE_MAX_LAYER, &every))
            return CAKE_ERR_FATAL;
        for (int i = 0; i < c->n_layer; i++)
            types[i] = i % every ? SLIDING : FULL;
        return CAKE_OK;
    }
    if (c->arch->sliding == CAKE_SLIDING_FROM &&
        cake_field_int(fields, "max_window_layers", CAKE_REQUIRED, 0, INT32_MAX, &from))
        return CAKE_ERR_FATAL;
    for (int i = from; i < c->n_layer; i++)
        types[i] = c->arch->sliding == CAKE_SLIDING_NO_ROPE && rotates[i] ? FULL : SLIDING;
    return CAKE_OK;
}

static cake_err read_type(const cake_fields *fields, const cake_config *c, const cake_json *list, int i,
                          layer_type *out)
{
    layer_type other = c->arch->delta ? LINEAR : SLIDING;
    const cake_json *node = cake_json_at(list, (size_t)i);
    const char *text = cake_json_text(node, NULL);
    for (int type = 0; text && type < N_TYPE; type++)
        if ((type == FULL || type == (int)other) && !strcmp(text, type_names[type])) {
            *out = (layer_type)type;
            return CAKE_OK;
        }
    return cake_fail("config",
                     "%s: %slayer_types[%d] is %s, but only full_attention and %s are supported in family %s",
                     fields->file, fields->prefix, i, text ? text : cake_json_kind_name(node),
                     type_names[other], c->arch->name);
}

/* Applies layer_types if the family supports it; otherwise it must agree with the rule. */
static cake_err read_types(const cake_fields *fields, const cake_config *c, int window, layer_type *types)
{
    const cake_json *list = cake_field(fields, "layer_types");
    cake_sliding sliding = c->arch->sliding;
    bool ruled = !c->arch->delta && (sliding == CAKE_SLIDING_NONE || sliding == CAKE_SLIDING_UNIFORM ||
                                     sliding == CAKE_SLIDING_SWITCH);
    if (!list)
        return CAKE_OK;
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || cake_json_size(list) != (size_t)c->n_layer)
        return cake_field_fail(fields, "layer_types",
                               "an array of %d names, one per layer, or null is expected", c->n_layer);
    for (int i = 0; i < c->n_layer; i++) {
        layer_type type = FULL;
        if (read_type(fields, c, list, i, &type))
            return CAKE_ERR_FATAL;
        if (ruled && type != types[i])
            return cake_fail("config", "%s: %slayer_types[%d] is %s, but layers of family %s are %s here",
                             fields->file, fields->prefix, i, type_names[type], c->arch->name,
                             type_names[types[i]]);
        if (type == SLIDING && !window)
            return cake_fail("config",
                             "%s: %slayer_types[%d] is sliding_attention, "
                             "but sliding_window is null or switched off",
                             fields->file, fields->prefix, i);
        types[i] = type;
    }
    return CAKE_OK;
}

/* The sizes of delta nets. */
static cake_err read_delta(const cake_fields *fields, cake_config *c)
{
    cake_deltanet *d = &c->delta;
    bool gate;
    if (!c->arch->delta)
        return CAKE_OK;
    if (cake_field_int(fields, "linear_num_key_heads", CAKE_REQUIRED, 1, MAX_DELTA_HEADS, &d->n_key) ||
        cake_field_int(fields, "linear_num_value_heads", CAKE_REQUIRED, 1, MAX_DELTA_HEADS, &d->n_value) ||
        cake_field_int(fields, "linear_key_head_dim", CAKE_REQUIRED, 1, CAKE_DELTA_DIM, &d->key_dim) ||
        cake_field_int(fields, "linear_value_head_dim", CAKE_REQUIRED, 1, CAKE_DELTA_DIM, &d->value_dim) ||
        cake_field_int(fields, "linear_conv_kernel_dim", CAKE_REQUIRED, 1, CAKE_DELTA_WIDTH, &d->width) ||
        cake_field_bool(fields, CAKE_GGUF_TILED, false, &d->tiled) ||
        cake_field_bool(fields, "attn_output_gate", true, &gate))
        return CAKE_ERR_FATAL;
    if (d->n_value % d->n_key)
        return cake_field_fail(fields, "linear_num_value_heads",
                               "a multiple of linear_num_key_heads (%d) is expected", d->n_key);
    if (!gate)
        return cake_field_fail(fields, "attn_output_gate", "family %s always has this gate", c->arch->name);
    if (c->act != CAKE_ACT_SILU)
        return cake_field_fail(fields, "hidden_act", "family %s is supported with silu only", c->arch->name);
    return CAKE_OK;
}

/* The group of layers with this window and these heads. */
static int group_of(cake_config *c, int window, const cake_heads *heads)
{
    int group = 0;
    while (group < c->n_kv_group &&
           (c->window[group] != window || c->heads[group].n_kv != heads->n_kv ||
            c->heads[group].head_dim != heads->head_dim || c->heads[group].v_is_k != heads->v_is_k))
        group++;
    if (group == c->n_kv_group) {
        c->window[group] = window;
        c->kept_window[group] = c->both_ways ? 0 : window;
        c->heads[group] = *heads;
        c->n_kv_group++;
    }
    return group;
}

/* The last layer is full where it must be, and layers with heads of their own are full. */
static cake_err settle_full(const cake_fields *fields, const cake_config *c, layer_type *types)
{
    bool full[CAKE_MAX_LAYER];
    if (c->arch->last_full && types[c->n_layer - 1] == SLIDING) {
        types[c->n_layer - 1] = FULL;
        if (cake_field(fields, "layer_types"))
            cake_log(CAKE_WARN, "config",
                     "%s: %slayer_types[%d] is sliding_attention, but the last layer of family %s is always "
                     "full_attention",
                     fields->file, fields->prefix, c->n_layer - 1, c->arch->name);
    }
    for (int i = 0; i < c->n_layer; i++)
        full[i] = types[i] == FULL;
    return c->arch->heads_by_type ? cake_config_check_listed(fields, c->n_layer, full) : CAKE_OK;
}

void cake_config_set_mtp_layer(cake_config *c)
{
    int like = c->n_layer - 1;
    while (like > 0 && (c->layer[like].mixer == CAKE_MIX_DELTA || c->window[c->layer[like].group]))
        like--;
    c->layer[c->n_layer] = c->layer[like];
    c->layer[c->n_layer].mlp = c->layer[c->n_layer - 1].mlp;
}

cake_err cake_config_read_layers(const cake_fields *fields, const cake_heads_by_type *heads, cake_config *c)
{
    layer_type types[CAKE_MAX_LAYER] = {FULL};
    bool rotates[CAKE_MAX_LAYER];
    int window;
    if (read_window(fields, c, &window) || read_rotates(fields, c, rotates) ||
        apply_rule(fields, c, window, rotates, types) || read_types(fields, c, window, types) ||
        settle_full(fields, c, types) || read_delta(fields, c))
        return CAKE_ERR_FATAL;
    c->delta_joined = c->arch->delta_fused;
    for (int i = 0; i < c->n_layer; i++) {
        bool sliding = types[i] == SLIDING;
        c->layer[i].mixer = types[i] == LINEAR ? CAKE_MIX_DELTA
                            : c->arch->latent  ? CAKE_MIX_LATENT
                                               : CAKE_MIX_ATTENTION;
        /* A window as long as the longest sequence counts as none. */
        c->layer[i].group = (uint8_t)group_of(c, sliding && window < c->context ? window : 0,
                                              sliding ? &heads->sliding : &heads->full);
        c->layer[i].rope = c->arch->rope_by_type && sliding ? 1 : 0;
        if (!rotates[i] || c->arch->nope == CAKE_NOPE_ALL ||
            (c->arch->nope == CAKE_NOPE_FULL && window && !sliding))
            c->layer[i].rope = CAKE_NO_ROPE;
    }
    return CAKE_OK;
}
