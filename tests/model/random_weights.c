/* SPDX-License-Identifier: Apache-2.0 */
#include "model/random_weights.h"

#include <math.h>
#include <string.h>

#include "tests/suite.h"

/* Pieces of any length are pieces of the same tensor. */
static void test_pieces(void)
{
    enum { N = 50 };
    for (int dtype = 0; dtype < CAKE_N_DTYPE; dtype++) {
        size_t width = cake_dtype_bytes((cake_dtype)dtype);
        char whole[N * 4], pieces[N * 4];
        cake_random_weights_fill(7, "name", false, (cake_dtype)dtype, 0, N, whole);
        for (int first = 0, n = 1; first < N; first += n, n = n % 7 + 1) {
            n = n < N - first ? n : N - first;
            cake_random_weights_fill(7, "name", false, (cake_dtype)dtype, first, n,
                                     pieces + (size_t)first * width);
        }
        CU_ASSERT(!memcmp(whole, pieces, N * width));
        cake_random_weights_fill(8, "name", false, (cake_dtype)dtype, 0, N, pieces);
        CU_ASSERT(memcmp(whole, pieces, N * width) != 0);
    }
}

static void test_spread(void)
{
    enum { N = 1 << 16 };
    static float value[N];
    double sum = 0, square = 0, next = 0;
    cake_random_weights_fill(1, "model.layers.0.mlp.up_proj.weight", false, CAKE_F32, 0, N, value);
    for (int i = 0; i < N; i++) {
        sum += value[i];
        square += value[i] * value[i];
        next += value[i] * value[(i + 1) % N];
    }
    CU_ASSERT(fabs(sum / N) < 0.0004);
    CU_ASSERT(fabs(sqrt(square / N) - 0.02) < 0.0002);
    CU_ASSERT(fabs(next / square) < 0.02); /* neighbours do not know of each other */
    cake_random_weights_fill(1, "model.norm.weight", true, CAKE_F32, 5, 3, value);
    CU_ASSERT(value[0] == 1 && value[1] == 1 && value[2] == 1);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the same for any piece", test_pieces},
        {"mean, deviation, independence", test_spread},
    };
    return SUITE_MAIN("dummy", tests);
}
