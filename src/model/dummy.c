/* SPDX-License-Identifier: Apache-2.0
 *
 * In: seed, name of a tensor, range of elements. Out: the elements. model.c calls where it would read a file.
 * Invariant: no state; the n-th element is a hash of n.
 */
#include "model/dummy.h"

/* Finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t seed, const char *name)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3;
    return mix(mix(seed + 0x9E3779B97F4A7C15) ^ hash);
}

void cake_dummy_fill(uint64_t seed, const char *name, bool norm, cake_dtype dtype, int64_t first, int64_t n,
                     void *into)
{
    const float width = 2 * 0.02F * 1.7320508F; /* of a uniform distribution of deviation 0.02 */
    uint64_t key = key_of(seed, name);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = mix(key + (uint64_t)(first + i) * 0x9E3779B97F4A7C15);
        float value = norm ? 1 : width * ((float)(bits >> 40) * 0x1p-24F - 0.5F);
        if (dtype == CAKE_F32)
            ((float *)into)[i] = value;
        else
            ((uint16_t *)into)[i] = dtype == CAKE_BF16 ? cake_bf16_from_f32(value) : cake_f16_from_f32(value);
    }
}
