/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli; RFC 3720, appendix B.4): the checksum of bundles and journals. Parts of a text may be
 * summed in any order, by several threads, and combined.
 */
#ifndef CAKE_BASE_CRC_H
#define CAKE_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t cake_crc(const void *data, size_t len);
/* The checksum of a text that continues with data [len]; before: the checksum so far, 0 for none. */
uint32_t cake_crc_on(uint32_t before, const void *data, size_t len);

/* A part of a longer text that `n_after` more bytes follow. The exclusive or over all parts, however they are
 * cut, goes into cake_crc_whole. */
uint32_t cake_crc_part(const void *data, size_t len, int64_t n_after);
uint32_t cake_crc_whole(uint32_t parts, int64_t len); /* len: of the whole text */

/* By tables, even where the processor has the instruction (for tests). */
uint32_t cake_crc_plain(uint32_t before, const void *data, size_t len);

#endif
