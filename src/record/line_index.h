/* SPDX-License-Identifier: Apache-2.0
 *
 * Offset and length of the line of each index in a file: 16 bytes per index.
 */
#ifndef CAKE_RECORD_LINE_INDEX_H
#define CAKE_RECORD_LINE_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct cake_line_span {
    int64_t offset;
    int64_t len : 63;    /* 0: absent */
    uint64_t failed : 1; /* an error record */
} cake_line_span;

typedef struct cake_line_index {
    cake_line_span **chunk; /* [n_chunk] NULL: all its indices are absent. Chunks never move */
    size_t n_chunk;
    int64_t n, end; /* number of lines; highest index + 1 */
} cake_line_index;

void cake_line_index_set(cake_line_index *lines, int64_t index,
                         cake_line_span span); /* asserts that index is new */
cake_line_span cake_line_index_get(const cake_line_index *lines, int64_t index);
void cake_line_index_drop(cake_line_index *lines, int64_t index);
int64_t cake_line_index_missing(const cake_line_index *lines); /* first absent index below end; -1: none */
void cake_line_index_free(cake_line_index *lines);

#endif
