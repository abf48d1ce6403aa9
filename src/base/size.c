/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a text. Out: bytes or a percentage; and the reverse for messages.
 */
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cake_size_read(const char *text, int64_t *into)
{
    static const char units[] = "KMGT";
    char *end;
    double number = strtod(text, &end);
    size_t digits_only = strspn(text, "0123456789.");
    if (!isdigit((unsigned char)*text) || end != text + digits_only)
        return false; /* strtod takes 0x10, 1e9 and inf, too */
    if (end == text || !isfinite(number) || number <= 0)
        return false;
    if (!strcmp(end, "%") && number <= 100) {
        *into = -(int64_t)ceil(number);
        return true;
    }
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    errno = 0;
    char *digits_end;
    long long digits = strtoll(text, &digits_end, 10); /* a double would round a long number */
    if (!*digits_end && !errno && digits > 0)
        return *into = digits, true;
    if (unit) {
        number = ldexp(number, 10 * (int)(unit - units + 1));
        end++;
    }
    if (*end || number >= 9e18 || number < 1)
        return false;
    *into = (int64_t)number;
    return true;
}

int64_t cake_size_bytes(int64_t size, int64_t all)
{
    return size < 0 ? all / 100 * -size + all % 100 * -size / 100 : size;
}

cake_size_str cake_size_text(int64_t bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    cake_size_str text;
    double value = (double)bytes;
    int u = 0;
    for (; value >= 1024 && u < 6; u++)
        value /= 1024;
    snprintf(text.s, sizeof text.s, u ? "%.1f %s" : "%.0f %s", value, bytes == 1 ? "byte" : unit[u]);
    return text;
}
