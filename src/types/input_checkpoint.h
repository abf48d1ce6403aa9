/* SPDX-License-Identifier: Apache-2.0
 *
 * A position in the input, and a checksum of everything before it: prompt takes it, record stores it.
 */
#ifndef CAKE_TYPES_INPUT_CHECKPOINT_H
#define CAKE_TYPES_INPUT_CHECKPOINT_H

#include <stdint.h>

typedef struct cake_input_checkpoint {
    int64_t requests; /* requests read so far */
    int64_t line;     /* number of the first line that was not read */
    uint32_t sum;     /* CRC-32C of the lines before that one */
} cake_input_checkpoint;

#endif
