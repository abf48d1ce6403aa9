/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the line of each index lies in a file: 16 bytes an index.
 */
#ifndef CAKE_RECORD_LINE_INDEX_H
#define CAKE_RECORD_LINE_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct cake_line_span {
    int64_t offset;
    int64_t len : 63;    /* 0: not there */
    uint64_t failed : 1; /* the line is an error record */
} cake_line_span;

typedef struct cake_line_index {
    cake_line_span **chunk; /* [n_chunk] NULL: none of its indices is there. Chunks never move */
    size_t n_chunk;
    int64_t n, end; /* how many are there; one more than the highest */
} cake_line_index;

void cake_line_index_set(cake_line_index *lines, int64_t index,
                         cake_line_span span); /* asserts that it is new */
cake_line_span cake_line_index_get(const cake_line_index *lines, int64_t index);
void cake_line_index_drop(cake_line_index *lines, int64_t index);
int64_t cake_line_index_missing(
    const cake_line_index *lines); /* the first index below end that is not there; or -1 */
void cake_line_index_free(cake_line_index *lines);

#endif
