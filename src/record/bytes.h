/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole reads and writes: interrupted or short ones go on. False: errno says why.
 */
#ifndef CAKE_RECORD_BYTES_H
#define CAKE_RECORD_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cake_bytes_write(int fd, const char *bytes, size_t len); /* at the file's position */
bool cake_bytes_write_at(int fd, const char *bytes, size_t len, int64_t offset);
bool cake_bytes_read_at(int fd, char *bytes, size_t len, int64_t offset); /* a file that ends early: EIO */

#endif
