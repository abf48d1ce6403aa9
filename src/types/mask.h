/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tokens may be drawn.
 */
#ifndef CAKE_TYPES_MASK_H
#define CAKE_TYPES_MASK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cake_mask {
    const int32_t *id; /* [n] ascending */
    int32_t n;
    bool allowed; /* these may be drawn, and no others; else these may not, and all others may */
} cake_mask;

#endif
