/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the workspace of an encoding. Out: zeros.
 */
#include <stdlib.h>

#include "text/pattern.h"
#include "tokenizer/internal.h"

void cake_encode_ws_free(cake_encode_ws *scratch)
{
    cake_pattern_match_free(scratch->match);
    for (size_t i = 0; i < scratch->n_step; i++)
        cake_buf_free(&scratch->step[i]);
    free(scratch->step);
    free(scratch->symbols);
    free(scratch->heap);
    free(scratch->path);
    cake_buf_free(&scratch->character);
    cake_buf_free(&scratch->spelled);
    cake_buf_free(&scratch->normal);
    cake_buf_free(&scratch->spare);
    *scratch = (cake_encode_ws){0};
}
