/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the line of each index lies in a file: 16 bytes an index.
 */
#ifndef CAKE_RECORD_PLACES_H
#define CAKE_RECORD_PLACES_H

#include <stddef.h>
#include <stdint.h>

typedef struct cake_place {
    int64_t offset;
    int64_t len : 63;    /* 0: not there */
    uint64_t failed : 1; /* the line is an error record */
} cake_place;

typedef struct cake_places {
    cake_place **chunk; /* [n_chunk] NULL: none of its indices is there. Chunks never move */
    size_t n_chunk;
    int64_t n, end; /* how many are there; one more than the highest */
} cake_places;

void cake_places_set(cake_places *places, int64_t index, cake_place place); /* asserts that it is new */
cake_place cake_places_get(const cake_places *places, int64_t index);
void cake_places_drop(cake_places *places, int64_t index);
int64_t
cake_places_missing(const cake_places *places); /* the first index below end that is not there; or -1 */
void cake_places_free(cake_places *places);

#endif
