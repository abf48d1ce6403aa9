/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file's name, or its first bytes. Out: the functions of its compression format.
 * Invariant: a name that consists of the ending alone means no compression.
 */
#include "formats/codec.h"

#include <string.h>
#include <strings.h>

static const cake_codec *const packs[] = {&cake_codec_gzip, &cake_codec_zstd};

const cake_codec *cake_codec_of(const char *path)
{
    size_t len = path ? strlen(path) : 0;
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++) {
        size_t n = strlen(packs[i]->ending);
        if (len > n && !strcasecmp(path + len - n, packs[i]->ending))
            return packs[i];
    }
    return NULL;
}

const cake_codec *cake_codec_detect(const char *head, size_t n)
{
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++) {
        size_t len = strlen(packs[i]->magic);
        if (n >= len && !memcmp(head, packs[i]->magic, len))
            return packs[i];
    }
    return NULL;
}
