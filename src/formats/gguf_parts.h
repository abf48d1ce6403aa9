/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that is a GGUF file, or one split into several: which file it is, and all of its parts.
 */
#ifndef CAKE_FORMATS_GGUF_PARTS_H
#define CAKE_FORMATS_GGUF_PARTS_H

#include "formats/gguf.h"

/* Where the files of a model are, given as -m. */
typedef struct cake_gguf_place {
    cake_buf path; /* of the (first) GGUF file */
    cake_buf dir;  /* its directory */
    bool alone;    /* no other model is in that directory, so files beside it belong to it */
} cake_gguf_place;

/* Whether the model is a GGUF file, or a directory with only one (or one split) and no other weights. */
bool cake_gguf_locate(const char *model, cake_gguf_place *out);
void cake_gguf_place_free(cake_gguf_place *place);

typedef struct cake_gguf_parts {
    cake_gguf **part; /* [n] the first has the keys */
    int n;
} cake_gguf_parts;

/* Opens the file and, if it is the first part of several, the others, which must belong to it. */
cake_err cake_gguf_parts_open(const char *topic, const char *path, cake_gguf_parts *out);
void cake_gguf_parts_close(cake_gguf_parts *parts);
/* In any part; NULL: none. */
const cake_gguf_tensor *cake_gguf_parts_find(const cake_gguf_parts *parts, const char *name);
/* All elements of an F32 tensor, read from its file; owned. */
cake_err cake_gguf_parts_floats(const cake_gguf_parts *parts, const char *topic, const char *name,
                                float **out, int64_t *n);

#endif
