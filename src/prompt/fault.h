/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for the faults of requests.
 */
#ifndef CAKE_PROMPT_FAULT_H
#define CAKE_PROMPT_FAULT_H

#include "formats/json.h"

/* The value in words short enough for a message: 3.5, "abc", an array. */
#define CAKE_FOUND 80
const char *cake_field_found(const cake_json *node, char out[CAKE_FOUND]);

#endif
