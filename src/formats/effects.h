/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of what the fields of other people's files change here: whoever reads such a file lists every field
 * that it may have, so that one which would change the answers is never passed over in silence.
 */
#ifndef CAKE_FORMATS_EFFECTS_H
#define CAKE_FORMATS_EFFECTS_H

#include <stddef.h>

#include "base/err.h"
#include "formats/json.h"

typedef enum cake_effect_kind {
    CAKE_EFFECT_READ,  /* its reader does as it says, or refuses it */
    CAKE_EFFECT_NONE,  /* changes no answer */
    CAKE_EFFECT_WARN,  /* not done, and said */
    CAKE_EFFECT_REFUSE /* without it the model would be another one */
} cake_effect_kind;

/* WARN and REFUSE: a value other than the neutral one counts. Neutral are null, empty lists and objects, and
 * the number `neutral` (false is 0, true is 1). */
typedef struct cake_effect {
    const char *name;
    cake_effect_kind kind;
    double neutral;   /* NaN: no number is */
    const char *text; /* WARN: what to do instead, or NULL; REFUSE: what is expected, NULL: a usual text */
    size_t known; /* REFUSE: offset in the owner of a bool: whether it is READ after all; 0: there is none */
    bool null_counts; /* null is a value like others */
} cake_effect;

/* A row of which nothing is said: READ or NONE. */
#define CAKE_EFFECT_OF(field, kind)                                                                          \
    {                                                                                                        \
#field, CAKE_EFFECT_##kind, 0, NULL, 0, false                                                        \
    }

/* The row of a name in a table that ends with a NULL name; NULL: there is none. */
const cake_effect *cake_effects_find(const cake_effect *table, const char *name);
/* Says what of the object is not done: "FILE: PREFIXname VALUE is not applied"; or fails by the first field
 * that is refused. object: NULL is fine; owner: what the offsets `known` are in, may be NULL where there are
 * none. */
cake_err cake_effects_check(const cake_effect *table, const void *owner, const cake_json *object,
                            const char *topic, const char *file, const char *prefix);

#endif
