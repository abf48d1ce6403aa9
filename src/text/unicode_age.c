/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a character. Out: the version of Unicode, after 8, that introduced it, and its general category
 * (unicode_age.inc).
 *
 * Parts of the tokenizers library know different versions of Unicode: for the oldest, all characters of this
 * table are unassigned. The libraries on this machine know other versions again, so young characters are
 * looked up here.
 * Invariant: rows are in order and do not overlap.
 */
#include "text/unicode_age.h"

#include <stdio.h>

#include "text/categories.h"

static const struct age {
    uint32_t first, last;
    uint8_t version, category;
} ages[] = {
#include "text/unicode_age.inc"
};

#define N_AGES (sizeof ages / sizeof *ages)

int cake_age_find(uint32_t code, int *category)
{
    size_t low = 0, high = N_AGES;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ages[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == N_AGES || ages[low].first > code)
        return 0;
    *category = ages[low].category;
    return ages[low].version;
}

void cake_age_add_class(uint32_t categories, cake_buf *out)
{
    for (size_t i = 0; i < N_AGES; i++)
        if (ages[i].version >= 15 && ages[i].version <= CAKE_AGE_PATTERN &&
            (categories >> ages[i].category & 1))
            cake_buf_addf(out, "\\x{%X}-\\x{%X}", ages[i].first, ages[i].last);
}
