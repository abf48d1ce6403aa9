/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 and SHA-1 (FIPS 180-4), by which a hub names files: large ones by the SHA-256 of their bytes, small
 * ones by git's SHA-1.
 */
#ifndef CAKE_HUB_SHA_H
#define CAKE_HUB_SHA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cake_sha_kind { CAKE_SHA1, CAKE_SHA256 } cake_sha_kind;

enum { CAKE_SHA_HEX = 65 }; /* bytes of the longest sum as text */

typedef struct cake_sha {
    cake_sha_kind kind;
    uint32_t state[8];
    uint64_t len; /* bytes so far */
    unsigned char block[64];
} cake_sha;

void cake_sha_begin(cake_sha *sha, cake_sha_kind kind);
void cake_sha_add(cake_sha *sha, const void *bytes, size_t len);
/* Whether SHA-256 takes the instructions of this processor from here on; plain: never (for tests). */
bool cake_sha_choose(bool plain);
/* Ends the sum. */
void cake_sha_hex(cake_sha *sha, char hex[CAKE_SHA_HEX]);

#endif
