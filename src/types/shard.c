/* SPDX-License-Identifier: Apache-2.0
 *
 * In: "I/N", an index. Out: whether the shard has it.
 * Invariant: exactly one of the shards 0/N to N-1/N has any index.
 */
#include "types/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 7 };

bool cake_shard_read(const char *text, cake_shard *into)
{
    size_t first = strspn(text, "0123456789"), second = 0;
    if (text[first] == '/')
        second = strspn(text + first + 1, "0123456789");
    if (!first || !second || first > DIGITS || second > DIGITS || text[first + 1 + second])
        return false;
    cake_shard found = {strtoll(text, NULL, 10), strtoll(text + first + 1, NULL, 10)};
    if (found.of > CAKE_SHARD_MAX || found.which >= found.of)
        return false;
    *into = found;
    return true;
}

bool cake_shard_has(const cake_shard *shard, int64_t index)
{
    return !shard->of || index % shard->of == shard->which;
}

const char *cake_shard_text(const cake_shard *shard, char text[CAKE_SHARD_TEXT])
{
    snprintf(text, CAKE_SHARD_TEXT, "%lld/%lld", (long long)shard->which, (long long)shard->of);
    return shard->of ? text : NULL;
}
