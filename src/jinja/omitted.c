/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name. Out: whether Jinja or Python has it and this program leaves it out, for a message.
 */
#include "jinja/internal.h"

bool cake_jinja_omits(cake_omitted kind, cake_value name)
{
    static const char *const filters[] = {
        "batch",     "center",   "filesizeformat", "forceescape", "groupby",   "pprint",   "random",  "slice",
        "striptags", "truncate", "urlencode",      "urlize",      "wordcount", "wordwrap", "xmlattr", NULL,
    };
    static const char *const functions[] = {"cycler", "joiner", "lipsum", NULL};
    static const char *const methods[] = {
        "casefold",  "center",       "encode",    "expandtabs",  "format_map", "isascii",
        "isdecimal", "isidentifier", "isnumeric", "isprintable", "istitle",    "ljust",
        "maketrans", "rjust",        "swapcase",  "translate",   "zfill",      NULL,
    };
    const char *const *const lists[] = {filters, functions, methods};
    for (const char *const *n = lists[kind]; *n; n++)
        if (cake_value_is_text(name, *n))
            return true;
    return false;
}
