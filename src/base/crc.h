/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli; RFC 3720, appendix B.4): the checksum of what is staged. Parts of a text may be summed
 * in any order, by several threads, and put together.
 */
#ifndef CAKE_BASE_CRC_H
#define CAKE_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t cake_crc(const void *data, size_t len);
/* The same of data [len] behind what `before` is the checksum of; that of nothing is 0. */
uint32_t cake_crc_on(uint32_t before, const void *data, size_t len);

/* A part of something longer, with `behind` bytes behind it. The exclusive or of those of all parts,
 * whichever way they are cut, is what cake_crc_whole makes the checksum of. */
uint32_t cake_crc_part(const void *data, size_t len, int64_t behind);
uint32_t cake_crc_whole(uint32_t parts, int64_t len); /* len: of all of it */

/* By tables, whatever the processor has (tests). */
uint32_t cake_crc_plain(uint32_t before, const void *data, size_t len);

#endif
