/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed access to fields of config.json and generation_config.json, with checks and messages. null counts as
 * absent, since transformers writes it for "not set".
 */
#ifndef CAKE_CONFIG_CONFIG_READ_H
#define CAKE_CONFIG_CONFIG_READ_H

#include <math.h>

#include "config/config.h"
#include "formats/json.h"

typedef struct cake_fields {
    const cake_json *object;
    const cake_json *defaults; /* defaults of absent fields (null is not absent); may be NULL */
    const char *file;          /* for messages */
    const char *outer;         /* "text_config." if the object is nested there, else NULL */
    const char *prefix;        /* "rope_parameters." for messages about an inner object, else "" */
} cake_fields;

/* As `otherwise`: the field is required. */
#define CAKE_REQUIRED      INT64_MIN
#define CAKE_REQUIRED_REAL NAN

/* NULL if the field is null, or absent without a default. */
const cake_json *cake_field(const cake_fields *fields, const char *name);
bool cake_field_null(const cake_fields *fields, const char *name); /* it is there, as null */
/* Reports "FILE: NAME is VALUE, but EXPECTED" and returns CAKE_ERR_FATAL. */
cake_err cake_field_fail(const cake_fields *fields, const char *name, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));
/* In the following *out is set on success only; min and max are inclusive. */
cake_err cake_field_int(const cake_fields *fields, const char *name, int64_t otherwise, int64_t least,
                        int64_t most, int *out);
cake_err cake_field_real(const cake_fields *fields, const char *name, double otherwise, double least,
                         double most, double *out);
cake_err cake_field_bool(const cake_fields *fields, const char *name, bool otherwise, bool *out);

/* Heads of layers that see all positions, and of those with a sliding window. */
typedef struct cake_heads_by_type {
    cake_heads full, sliding;
} cake_heads_by_type;

/* Max elements of what belongs to one row: vocabulary, MLP, all heads together. */
#define CAKE_MAX_WIDE (1 << 24)

/* layer_heads.c: *full, those of the other layers, becomes the heads of full layers. */
cake_err cake_config_read_full_heads(const cake_fields *fields, const cake_config *config, cake_heads *full);
/* Whether per_layer_config, if it lists layers, lists those that are full [n_layer]. */
cake_err cake_config_check_listed(const cake_fields *fields, int n_layer, const bool *full);
/* rope.c: fills in config->rope, and context where scaling extends it; needs context. */
cake_err cake_config_read_rope(const cake_fields *fields, const cake_heads_by_type *heads,
                               cake_config *config);
/* layer_kinds.c: fills in config->layer and the KV cache groups; needs n_layer and context. */
cake_err cake_config_read_layers(const cake_fields *fields, const cake_heads_by_type *heads,
                                 cake_config *config);
/* ... and sets the kind of the layer behind the last one, as that of the last one that sees everything; needs
 * the layers with their MLPs. */
void cake_config_set_mtp_layer(cake_config *config);
/* moe_config.c: fills in config->moe and the layers' MLPs; needs n_layer. */
cake_err cake_config_read_moe(const cake_fields *fields, cake_config *config);
/* classifier.c: of a classifier, fills in config->embedder: pooling and head. */
cake_err cake_config_read_classifier(const cake_fields *top, cake_config *config);
/* quantization.c: top is the whole config.json. */
cake_err cake_config_read_quantization(const cake_fields *top, cake_quantization *q);
/* generation_config.c: fills in eos and defaults. top is the whole config.json; generation may hold a NULL
 * object. */
cake_err cake_config_read_generation(const cake_fields *top, const cake_fields *fields,
                                     const cake_fields *generation, cake_config *config);

#endif
