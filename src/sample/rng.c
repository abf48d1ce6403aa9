/* SPDX-License-Identifier: Apache-2.0
 *
 * In: (seed, choice, position). Out: a random number; and seeds from ids and indices.
 * Invariant: these functions define the results; a change of any constant changes every sampled answer.
 */
#include "sample/rng.h"

#include <stddef.h>

#include "sample/sample.h"

#define FNV_BASIS 0xCBF29CE484222325u
#define FNV_PRIME 0x100000001B3u

void cake_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The finalizer of splitmix64: every bit of the sum reaches every bit of the seed. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t fnv(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ b[i]) * FNV_PRIME;
    return hash;
}

uint64_t cake_key_of_id(uint64_t job_seed, const char *id, size_t len)
{
    return mix(fnv(FNV_BASIS, id, len) + mix(job_seed + 1));
}

uint64_t cake_key_of_index(uint64_t job_seed, int64_t index)
{
    /* a byte that begins no JSON text distinguishes index 7 from the id 7; the byte order is fixed */
    unsigned char bytes[9] = {0};
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (unsigned char)((uint64_t)index >> 8 * i);
    return mix(fnv(FNV_BASIS, bytes, sizeof bytes) + mix(job_seed + 1));
}

double cake_key_uniform(const cake_key *key)
{
    uint32_t counter[4] = {key->pos, key->choice, 0, 0};
    uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    uint32_t out[4];
    cake_philox(counter, seed, out);
    return (double)(((uint64_t)out[0] << 32 | out[1]) >> 11) * 0x1p-53;
}
