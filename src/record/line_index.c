/* SPDX-License-Identifier: Apache-2.0
 *
 * Indices and places enter, places leave. Invariant: n counts the places whose len is not 0.
 */
#include "record/line_index.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

#define CHUNK    4096
#define MAX_REQS ((int64_t)1 << 40) /* an index beyond is a broken one, not a larger file */

void cake_line_index_set(cake_line_index *places, int64_t index, cake_line_at place)
{
    CAKE_ASSERT(index >= 0 && index < MAX_REQS && place.len > 0);
    size_t c = (size_t)(index / CHUNK);
    if (c >= places->n_chunk) {
        size_t more = 2 * places->n_chunk > c ? 2 * places->n_chunk : c + 1;
        places->chunk = cake_grow(places->chunk, more, sizeof *places->chunk);
        while (places->n_chunk < more)
            places->chunk[places->n_chunk++] = NULL;
    }
    if (!places->chunk[c])
        places->chunk[c] = cake_alloc(CHUNK, sizeof **places->chunk);
    cake_line_at *into = &places->chunk[c][index % CHUNK];
    CAKE_ASSERT(into->len == 0); /* one record a request */
    *into = place;
    places->n++;
    if (index >= places->end)
        places->end = index + 1;
}

cake_line_at cake_line_index_get(const cake_line_index *places, int64_t index)
{
    size_t c = (size_t)(index / CHUNK);
    if (c >= places->n_chunk || !places->chunk[c])
        return (cake_line_at){0};
    return places->chunk[c][index % CHUNK];
}

void cake_line_index_drop(cake_line_index *places, int64_t index)
{
    CAKE_ASSERT(cake_line_index_get(places, index).len > 0);
    places->chunk[index / CHUNK][index % CHUNK] = (cake_line_at){0};
    places->n--;
}

int64_t cake_line_index_missing(const cake_line_index *places)
{
    for (int64_t i = 0; places->n < places->end && i < places->end; i++)
        if (!cake_line_index_get(places, i).len)
            return i;
    return -1;
}

void cake_line_index_free(cake_line_index *places)
{
    for (size_t c = 0; c < places->n_chunk; c++)
        free(places->chunk[c]);
    free(places->chunk);
    *places = (cake_line_index){0};
}
