/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of ids that occurred: 64-bit hashes, at most 22 bytes an id (and 64 KiB). Two different ids of a
 * file of ten million count as the same with probability 3e-6; the second one then gets an error record.
 */
#ifndef CAKE_PROMPT_ID_SET_H
#define CAKE_PROMPT_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAKE_SEEN_PARTS 16

typedef struct cake_id_set {
    struct {
        uint64_t *slot; /* [cap], a power of two; 0: free */
        size_t n, cap;
    } part[CAKE_SEEN_PARTS];
} cake_id_set;

bool cake_id_set_add(cake_id_set *seen, const char *id, size_t len); /* false: it was in the set already */
/* Returns how often the id was counted before. Each count takes the memory of an id. Not for sets filled with
 * cake_id_set_add. */
int64_t cake_id_set_count(cake_id_set *seen, const char *id, size_t len);
void cake_id_set_free(cake_id_set *seen);

#endif
