/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunked array of spans. Invariant: n counts the spans whose len is not 0.
 */
#include "record/line_index.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

#define CHUNK    4096
#define MAX_REQS ((int64_t)1 << 40) /* a larger index is corrupt */

void cake_line_index_set(cake_line_index *lines, int64_t index, cake_line_span span)
{
    CAKE_ASSERT(index >= 0 && index < MAX_REQS && span.len > 0);
    size_t c = (size_t)(index / CHUNK);
    if (c >= lines->n_chunk) {
        size_t more = 2 * lines->n_chunk > c ? 2 * lines->n_chunk : c + 1;
        lines->chunk = cake_grow(lines->chunk, more, sizeof *lines->chunk);
        while (lines->n_chunk < more)
            lines->chunk[lines->n_chunk++] = NULL;
    }
    if (!lines->chunk[c])
        lines->chunk[c] = cake_alloc(CHUNK, sizeof **lines->chunk);
    cake_line_span *into = &lines->chunk[c][index % CHUNK];
    CAKE_ASSERT(into->len == 0); /* one record per request */
    *into = span;
    lines->n++;
    if (index >= lines->end)
        lines->end = index + 1;
}

cake_line_span cake_line_index_get(const cake_line_index *lines, int64_t index)
{
    size_t c = (size_t)(index / CHUNK);
    if (c >= lines->n_chunk || !lines->chunk[c])
        return (cake_line_span){0};
    return lines->chunk[c][index % CHUNK];
}

void cake_line_index_drop(cake_line_index *lines, int64_t index)
{
    CAKE_ASSERT(cake_line_index_get(lines, index).len > 0);
    lines->chunk[index / CHUNK][index % CHUNK] = (cake_line_span){0};
    lines->n--;
}

int64_t cake_line_index_missing(const cake_line_index *lines)
{
    for (int64_t i = 0; lines->n < lines->end && i < lines->end; i++)
        if (!cake_line_index_get(lines, i).len)
            return i;
    return -1;
}

void cake_line_index_free(cake_line_index *lines)
{
    for (size_t c = 0; c < lines->n_chunk; c++)
        free(lines->chunk[c]);
    free(lines->chunk);
    *lines = (cake_line_index){0};
}
