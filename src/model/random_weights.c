/* SPDX-License-Identifier: Apache-2.0
 *
 * In: seed, tensor name, range of elements. Out: the elements. Invariant: stateless; element n is a hash of
 * n.
 */
#include "model/random_weights.h"

#include <string.h>

#define LEVELS 4096

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

/* Quantiles of a uniform distribution with standard deviation 0.02. */
static void make_levels(bool norm, cake_dtype dtype, uint32_t *level)
{
    const float width = 2 * 0.02F * 1.7320508F;
    for (int i = 0; i < LEVELS; i++) {
        float value = norm ? 1 : width * (((float)i + 0.5F) / LEVELS - 0.5F);
        if (dtype == CAKE_F32)
            memcpy(&level[i], &value, sizeof value);
        else
            level[i] = dtype == CAKE_BF16 ? cake_bf16_from_f32(value) : cake_f16_from_f32(value);
    }
}

/* Four elements per hash, twelve bits each, since filling a model of billions of weights is part of every
 * benchmark. */
void cake_random_weights_fill(uint64_t seed, const char *name, bool norm, cake_dtype dtype, int64_t first,
                              int64_t n, void *into)
{
    uint32_t level[LEVELS];
    make_levels(norm, dtype, level);
    uint64_t key = key_of(seed, name), bits = 0;
    for (int64_t i = first; i < first + n; i++) {
        if (i == first || i % 4 == 0)
            bits = mix(key + (uint64_t)(i / 4) * 0x9E3779B97F4A7C15) >> i % 4 * 16;
        uint32_t value = level[bits % LEVELS];
        bits >>= 16;
        if (dtype == CAKE_F32)
            ((uint32_t *)into)[i - first] = value;
        else
            ((uint16_t *)into)[i - first] = (uint16_t)value;
    }
}
