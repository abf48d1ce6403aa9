/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wave.h"

#include "base/arena.h"

static size_t body_offset(int n_tok, int n_page)
{
    return cake_arena_round(sizeof(cake_wave) + (size_t)n_tok * sizeof(cake_row) +
                            (size_t)n_page * sizeof(cake_page));
}

size_t cake_wave_bytes(int n_tok, int n_page, int dim)
{
    return body_offset(n_tok, n_page) + (size_t)n_tok * (size_t)dim * sizeof(float);
}

cake_row *cake_wave_rows(cake_wave *wave)
{
    return (cake_row *)(wave + 1);
}

cake_page *cake_wave_pages(cake_wave *wave)
{
    return (cake_page *)(cake_wave_rows(wave) + wave->n_tok);
}

float *cake_wave_body(cake_wave *wave)
{
    return (float *)((char *)wave + body_offset(wave->n_tok, wave->n_page));
}
