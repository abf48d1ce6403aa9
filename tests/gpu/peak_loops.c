/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops that measure peak rates of a GPU read all memory and multiply all tiles. Also: the capabilities
 * that a build has code for.
 */
#include <stdlib.h>

#include "kernels/cuda/layout.h"
#include "tests/suite.h"

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

static void test_code(void)
{
    static const struct {
        const char *archs;
        int capability;
        int code;
    } cases[] = {{" 75 80 90a", 75, 75}, {" 75 80 90a", 70, 0},  {" 75 80 90a", 86, 80},
                 {" 75 80 90a", 90, 90}, {" 75 80 90a", 100, 0}, {" 80", 90, 80},
                 {" 80", 75, 0},         {" 80 90", 89, 80},     {" 80 86 89", 89, 89},
                 {" 90a 120", 110, 0},   {" 90a 120", 121, 120}, {"", 90, 0},
                 {" 86", 80, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(cake_cuda_code(cases[i].archs, cases[i].capability), cases[i].code);
}

int main(void)
{
    static const suite_test tests[] = {
        {"memory is read", test_read},
        {"tiles are multiplied", test_multiply},
        {"which GPUs there is code for", test_code},
    };
    return SUITE_MAIN("peak", tests);
}
