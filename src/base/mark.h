/* SPDX-License-Identifier: Apache-2.0
 *
 * How far an input has been read, and what it was up to there: prompt takes it, record keeps it.
 */
#ifndef CAKE_BASE_MARK_H
#define CAKE_BASE_MARK_H

#include <stdint.h>

typedef struct cake_mark {
    int64_t requests; /* so many were read, ... */
    int64_t line;     /* ... up to this line's number, which is not among them */
    uint32_t sum;     /* CRC-32C of all of these lines */
} cake_mark;

#endif
