/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json's fields about the heads of full layers, in families where these differ from those of
 * sliding ones. Out: the heads of full layers. Invariant: layers of one type have equal heads.
 */
#include <stdlib.h>
#include <string.h>

#include "config/config_read.h"

static cake_err read_some(const cake_fields *fields, const cake_config *c, const char *n_kv,
                          const char *head_dim, cake_heads *heads)
{
    if (cake_field_int(fields, n_kv, heads->n_kv, 1, c->n_head, &heads->n_kv) ||
        cake_field_int(fields, head_dim, heads->head_dim, 2, CAKE_MAX_WIDE / c->n_head, &heads->head_dim))
        return CAKE_ERR_FATAL;
    if (c->n_head % heads->n_kv)
        return cake_field_fail(fields, n_kv, "a divisor of num_attention_heads (%d) is expected", c->n_head);
    if (heads->head_dim % 2)
        return cake_field_fail(fields, head_dim, "an even number is expected, as pairs are rotated");
    return CAKE_OK;
}

/* One entry of per_layer_config. */
static cake_err read_entry(const cake_fields *fields, const cake_config *c, const cake_json *entry,
                           cake_heads *heads)
{
    const cake_fields own = {.object = entry,
                             .file = fields->file,
                             .outer = fields->prefix,
                             .prefix = "per_layer_config, in one layer: "};
    if (cake_json_kind(entry) != CAKE_JSON_OBJECT)
        return cake_field_fail(fields, "per_layer_config", "an object for each layer is expected");
    for (void *it = cake_json_first(entry); it; it = cake_json_next(entry, it))
        if (strcmp(cake_json_key(it, NULL), "head_dim") &&
            strcmp(cake_json_key(it, NULL), "num_key_value_heads"))
            return cake_field_fail(&own, cake_json_key(it, NULL),
                                   "layers may differ in head_dim and num_key_value_heads only");
    return read_some(&own, c, "num_key_value_heads", "head_dim", heads);
}

static cake_err read_listed(const cake_fields *fields, const cake_config *c, const cake_json *list,
                            cake_heads *full)
{
    const cake_heads base = *full;
    bool first = true;
    if (cake_json_kind(list) != CAKE_JSON_OBJECT)
        return cake_field_fail(fields, "per_layer_config", "an object is expected");
    for (void *it = cake_json_first(list); it; it = cake_json_next(list, it), first = false) {
        cake_heads own = base;
        if (read_entry(fields, c, cake_json_value(it), &own))
            return CAKE_ERR_FATAL;
        if (!first && (own.n_kv != full->n_kv || own.head_dim != full->head_dim))
            return cake_field_fail(fields, "per_layer_config",
                                   "equal heads in all full_attention layers are expected");
        *full = own;
    }
    return CAKE_OK;
}

cake_err cake_config_read_full_heads(const cake_fields *fields, const cake_config *c, cake_heads *full)
{
    if (!c->arch->heads_by_type)
        return CAKE_OK;
    if (cake_field_bool(fields, "attention_k_eq_v", false, &full->v_is_k))
        return CAKE_ERR_FATAL;
    /* transformers 5 writes this in place of the other two, and reads it before them, even if it is null */
    if (cake_json_get(fields->object, "per_layer_config")) {
        const cake_json *list = cake_field(fields, "per_layer_config");
        return list ? read_listed(fields, c, list, full) : CAKE_OK;
    }
    return read_some(fields, c, full->v_is_k ? "num_global_key_value_heads" : "num_key_value_heads",
                     "global_head_dim", full);
}

cake_err cake_config_check_listed(const cake_fields *fields, int n_layer, const bool *full)
{
    const cake_json *list = cake_field(fields, "per_layer_config");
    bool listed[CAKE_MAX_LAYER] = {false};
    if (!cake_json_size(list))
        return CAKE_OK;
    for (void *it = cake_json_first(list); it; it = cake_json_next(list, it)) {
        const char *key = cake_json_key(it, NULL);
        char *end;
        long layer = strtol(key, &end, 10);
        if (end == key || *end || layer < 0 || layer >= n_layer)
            return cake_field_fail(fields, "per_layer_config", "layer numbers from 0 to %d are expected",
                                   n_layer - 1);
        listed[layer] = true;
    }
    for (int i = 0; i < n_layer; i++)
        if (listed[i] != full[i])
            return cake_field_fail(fields, "per_layer_config",
                                   "heads of their own are supported in all full_attention layers "
                                   "and no others; layer %d is not so",
                                   i);
    return CAKE_OK;
}
