/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a text. Out: seconds, and the reverse.
 */
#include "base/duration.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9 };

/* Reads digits at *text and moves it past them. */
static bool take_number(const char **text, int64_t *number)
{
    size_t len = strspn(*text, "0123456789");
    if (!len || len > DIGITS)
        return false;
    *number = strtoll(*text, NULL, 10);
    *text += len;
    return true;
}

/* The parts after colons, each below 60. days: the first number was days, so hours come next. */
static bool take_clock(const char *text, int64_t first, bool days, int64_t *seconds)
{
    int64_t part[3] = {first, 0, 0};
    int n = 1;
    for (; *text == ':' && n < 3; n++) {
        text++;
        if (!take_number(&text, &part[n]) || part[n] >= 60)
            return false;
    }
    if (*text || (!days && n == 1))
        return false;
    *seconds = !days && n == 2 ? part[0] * 60 + part[1] : part[0] * 3600 + part[1] * 60 + part[2];
    return true;
}

bool cake_duration_read(const char *text, int64_t *into)
{
    static const char units[] = "smhd";
    static const int64_t seconds[] = {1, 60, 3600, 86400};
    int64_t number, hours, rest;
    if (!take_number(&text, &number))
        return false;
    const char *unit =
        *text && *text != '-' && *text != ':' ? strchr(units, tolower((unsigned char)*text)) : NULL;
    if (!*text || (unit && !text[1])) {
        *into = number * (unit ? seconds[unit - units] : 1);
        return true;
    }
    if (*text == '-') {
        text++;
        if (!take_number(&text, &hours) || hours >= 24 || !take_clock(text, hours, true, &rest))
            return false;
        *into = number * 86400 + rest;
        return true;
    }
    return *text == ':' && take_clock(text, number, false, into);
}

void cake_duration_add(cake_buf *out, double seconds)
{
    static const double max = 99.0 * 365 * 86400;
    int64_t s = seconds < max ? (int64_t)(seconds + 0.5) : (int64_t)max;
    if (s >= 86400)
        cake_buf_addf(out, "%d-%02d", (int)(s / 86400), (int)(s / 3600 % 24));
    else
        cake_buf_addf(out, "%d", (int)(s / 3600));
    cake_buf_addf(out, ":%02d:%02d", (int)(s / 60 % 60), (int)(s % 60));
}
