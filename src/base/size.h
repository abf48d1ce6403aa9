/* SPDX-License-Identifier: Apache-2.0
 *
 * SIZE as users write it, on the command line and in files.
 */
#ifndef CAKE_BASE_SIZE_H
#define CAKE_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "512M", "16G" in powers of 1024 as bytes, "80%" as -80. False, and *into unchanged, for anything else. */
bool cake_size_read(const char *text, int64_t *into);

#endif
