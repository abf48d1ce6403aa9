/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fields of foreign files mean for this program. The reader of such a file lists every field that it
 * may have, so that one which would change the answers is never ignored silently.
 */
#ifndef CAKE_FORMATS_EFFECTS_H
#define CAKE_FORMATS_EFFECTS_H

#include <stddef.h>

#include "base/err.h"
#include "formats/json.h"

typedef enum cake_effect_kind {
    CAKE_EFFECT_READ,  /* the reader follows it, or refuses it itself */
    CAKE_EFFECT_NONE,  /* does not affect answers */
    CAKE_EFFECT_WARN,  /* not followed; a warning says so */
    CAKE_EFFECT_REFUSE /* refused: without it, it would be a different model */
} cake_effect_kind;

/* WARN and REFUSE apply to values other than the neutral ones: null, empty lists and objects, and the number
 * `neutral` (false is 0, true is 1). */
typedef struct cake_effect {
    const char *name;
    cake_effect_kind kind;
    double neutral;   /* NaN: no number is neutral */
    const char *text; /* WARN: what to do instead, or NULL; REFUSE: what is expected, NULL: a default text */
    size_t known;     /* REFUSE: offset of a bool in the owner that makes it READ if true; 0: none */
    bool null_counts; /* null is not neutral */
} cake_effect;

/* A row without a message: READ or NONE. */
#define CAKE_EFFECT_OF(field, kind)                                                                          \
    {                                                                                                        \
#field, CAKE_EFFECT_##kind, 0, NULL, 0, false                                                        \
    }

/* The row of a name, NULL if there is none. The table ends with a NULL name. */
const cake_effect *cake_effects_find(const cake_effect *table, const char *name);
/* Warns "FILE: PREFIXname VALUE is not applied" for WARN fields of the object, or fails by the first REFUSE
 * field. object may be NULL; owner: the struct of the offsets `known`, NULL if there are none. */
cake_err cake_effects_check(const cake_effect *table, const void *owner, const cake_json *object,
                            const char *topic, const char *file, const char *prefix);

#endif
