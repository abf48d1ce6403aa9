/* SPDX-License-Identifier: Apache-2.0
 *
 * The floors of a GPU do what they are timed for: all of the memory is read, all tiles are multiplied.
 */
#include <stdlib.h>

#include "../suite.h"
#include "kernels/cuda/layout.h"

enum { BLOCKS = 2048, WARPS = BLOCKS * 8 };

static void test_read(void)
{
    const size_t n = 4 * 3001;
    uint32_t *memory = aligned_alloc(16, n * sizeof *memory), *sum = malloc(WARPS * sizeof *sum);
    for (size_t i = 0; i < n; i++)
        memory[i] = (uint32_t)(i * 2654435761U);
    uint32_t expected = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        expected ^= memory[i];
    cake_cuda_read_all(sum, memory, n * sizeof *memory);
    for (int i = 0; i < WARPS; i++)
        all ^= sum[i];
    CU_ASSERT_EQUAL(all, expected);
    free(memory);
    free(sum);
}

static void test_multiply(void)
{
    float *sum = malloc(WARPS * sizeof *sum);
    double operations = cake_cuda_multiply_all(sum, 2);
    CU_ASSERT(operations == 2.0 * 4096 / 2 * 8 * 2 * WARPS);
    for (int i = 0; i < WARPS; i++)
        CU_ASSERT(sum[i] == 8 * 4 * 2 * 16.0F); /* tiles, elements of a lane, steps, k */
    free(sum);
}

int main(void)
{
    static const suite_test tests[] = {
        {"memory is read", test_read},
        {"tiles are multiplied", test_multiply},
    };
    return SUITE_MAIN("peak", tests);
}
