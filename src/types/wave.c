/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave's header. Out: the places and sizes of its parts.
 * Invariant: sizes and places follow from n_row, n_change and dim alone, so that both ends of a link agree
 * on them.
 */
#include "types/wave.h"

#include "base/arena.h"

size_t cake_wave_header_bytes(int n_row, int n_change)
{
    return cake_arena_round(sizeof(cake_wave) + (size_t)n_row * sizeof(cake_row) +
                            (size_t)n_change * sizeof(cake_change));
}

size_t cake_wave_bytes(int n_row, int n_change, int dim)
{
    return cake_wave_header_bytes(n_row, n_change) + (size_t)n_row * (size_t)dim * sizeof(float);
}

cake_row *cake_wave_rows(cake_wave *wave)
{
    return (cake_row *)(wave + 1);
}

cake_change *cake_wave_changes(cake_wave *wave)
{
    return (cake_change *)(cake_wave_rows(wave) + wave->n_row);
}

float *cake_wave_body(cake_wave *wave)
{
    return (float *)((char *)wave + cake_wave_header_bytes(wave->n_row, wave->n_change));
}

bool cake_wave_generates(cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    int n = 0;
    while (n < wave->n_row && rows[n].kind == CAKE_ROW_GENERATED)
        n++;
    return n == wave->n_row;
}

int cake_pages_held(int window, int length, int step)
{
    int64_t all = ((int64_t)length + CAKE_PAGE - 1) / CAKE_PAGE;
    if (!window)
        return (int)all;
    /* the window before the first row plus the rows, at the worst alignment to pages */
    int64_t seen = ((int64_t)window - 1 + step + CAKE_PAGE - 2) / CAKE_PAGE + 1;
    return (int)(seen < all ? seen : all);
}
