/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a job: the requests whose index modulo `of` is `which`. `merge` puts the results together.
 */
#ifndef CAKE_TYPES_SHARD_H
#define CAKE_TYPES_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#define CAKE_SHARD_MAX (1 << 20)

typedef struct cake_shard {
    int64_t which, of; /* of 0: all requests */
} cake_shard;

/* "I/N", 0 <= I < N <= CAKE_SHARD_MAX. False, and *into unchanged, for anything else. */
bool cake_shard_read(const char *text, cake_shard *into);
bool cake_shard_has(const cake_shard *shard, int64_t index);
/* "I/N" into text, which is returned; NULL: all requests. */
enum { CAKE_SHARD_TEXT = 48 };
const char *cake_shard_text(const cake_shard *shard, char text[CAKE_SHARD_TEXT]);

#endif
