/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of foreign files that this program does not follow although they would change the answers: none is
 * ignored silently. tests/golden/silent_fields.json lists the others, which are followed or have no effect.
 */
#ifndef CAKE_FORMATS_UNSUPPORTED_H
#define CAKE_FORMATS_UNSUPPORTED_H

#include <stddef.h>

#include "base/err.h"
#include "formats/json.h"

typedef enum cake_unsupported_kind {
    CAKE_UNSUPPORTED_WARN,  /* not followed; a warning says so */
    CAKE_UNSUPPORTED_REFUSE /* refused: without it, it would be a different model */
} cake_unsupported_kind;

/* Rows apply to values other than the neutral ones: null, empty lists and objects, and the number `neutral`
 * (false is 0, true is 1). The table ends with a NULL name. */
typedef struct cake_unsupported_field {
    const char *name;
    cake_unsupported_kind kind;
    double neutral;   /* NaN: no number is neutral */
    const char *text; /* WARN: what to do instead, or NULL; REFUSE: what is expected, NULL: a default text */
    size_t known; /* offset of a bool in the owner; if that is true, the reader follows the field; 0: none */
    bool null_counts; /* null is not neutral */
} cake_unsupported_field;

/* Warns "FILE: PREFIXname VALUE is not applied" for WARN fields of the object, or fails by the first REFUSE
 * field. object may be NULL; owner: the struct of the offsets `known`, NULL if there are none. */
cake_err cake_unsupported_check(const cake_unsupported_field *table, const void *owner,
                                const cake_json *object, const char *topic, const char *file,
                                const char *prefix);

#endif
