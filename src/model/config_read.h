/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of config.json (config.c, rope.c) and generation_config.json (generation_config.c)
 * share: one field at a time is taken from a JSON object, checked, and complained about by name. null
 * counts as absent, since transformers writes it for "not set".
 */
#ifndef CAKE_MODEL_CONFIG_READ_H
#define CAKE_MODEL_CONFIG_READ_H

#include <math.h>

#include "formats/json.h"
#include "model/config.h"

typedef struct cake_fields {
    const cake_json *object;
    const cake_json *defaults; /* what holds for fields that are not there (null is there); may be NULL */
    const char *file;          /* for messages */
    const char *outer;  /* "text_config." where the object below that has an object of its own, else NULL */
    const char *prefix; /* "rope_parameters." for messages about an inner object, else "" */
} cake_fields;

/* For `otherwise`: the field has to be there. */
#define CAKE_REQUIRED      INT64_MIN
#define CAKE_REQUIRED_REAL NAN

/* NULL if the field is null, or absent without a default. */
const cake_json *cake_field(const cake_fields *fields, const char *name);
/* Says "FILE: NAME is VALUE, but EXPECTED" and returns CAKE_ERR_FATAL. */
cake_err cake_field_fail(const cake_fields *fields, const char *name, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));
/* In the following *out is set on success only; least and most are inclusive. */
cake_err cake_field_int(const cake_fields *fields, const char *name, int64_t otherwise, int64_t least,
                        int64_t most, int *out);
cake_err cake_field_real(const cake_fields *fields, const char *name, double otherwise, double least,
                         double most, double *out);
cake_err cake_field_bool(const cake_fields *fields, const char *name, bool otherwise, bool *out);

/* rope.c: config->rope, and context where scaling extends it; context and head_dim are there already. */
cake_err cake_config_read_rope(const cake_fields *fields, cake_config *config);
/* layer_kinds.c: config->layer and the KV cache groups; n_layer and context are there already. */
cake_err cake_config_read_layers(const cake_fields *fields, cake_config *config);
/* generation_config.c: eos and defaults; top is the whole config.json, generation may hold a NULL object. */
cake_err cake_config_read_generation(const cake_fields *top, const cake_fields *fields,
                                     const cake_fields *generation, cake_config *config);

#endif
