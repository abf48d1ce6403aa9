/* SPDX-License-Identifier: Apache-2.0
 *
 * How far an input has been read, and what it was up to there: prompt takes it, record keeps it.
 */
#ifndef CAKE_TYPES_INPUT_CHECKPOINT_H
#define CAKE_TYPES_INPUT_CHECKPOINT_H

#include <stdint.h>

typedef struct cake_input_checkpoint {
    int64_t requests; /* how many were read */
    int64_t line;     /* the first line that was not read, by its number */
    uint32_t sum;     /* CRC-32C of the lines before it */
} cake_input_checkpoint;

#endif
