/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a format's name. Out: its pattern.
 * Sources: RFC 3339 (dates, times, durations), RFC 4122 (uuid), RFC 5321 (email), RFC 1123 (hostname),
 * RFC 2673 (ipv4), RFC 4291 (ipv6), RFC 3986 (uri).
 */
#include "grammar/string_formats.h"

#include <stddef.h>
#include <string.h>

enum { MOST_HOST = 253 }; /* RFC 1035, section 2.3.4, as text */

#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE                                                                                                 \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"                 \
    "|02-(0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define HOST  LABEL "(\\." LABEL ")*"
#define BYTE  "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4  BYTE "(\\." BYTE "){3}"
#define H     "[0-9A-Fa-f]{1,4}"
#define LAST  "(" H ":" H "|" IPV4 ")"
#define IPV6                                                                                                 \
    "((" H ":){6}" LAST "|::(" H ":){5}" LAST "|(" H ")?::(" H ":){4}" LAST "|((" H ":){0,1}" H ")?::(" H    \
    ":){3}" LAST "|((" H ":){0,2}" H ")?::(" H ":){2}" LAST "|((" H ":){0,3}" H ")?::" H ":" LAST "|((" H    \
    ":){0,4}" H ")?::" LAST "|((" H ":){0,5}" H ")?::" H "|((" H ":){0,6}" H ")?::)"
#define ATOM          "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define PCT           "%[0-9A-Fa-f]{2}"
#define SUB           "!$&'()*+,;="
#define NAME          "A-Za-z0-9._~"
#define PART          "([" NAME SUB ":@-]|" PCT ")"
#define AUTHORITY     "//(([" NAME SUB ":-]|" PCT ")*@)?(\\[" IPV6 "\\]|([" NAME SUB "-]|" PCT ")*)(:[0-9]*)?"
#define DURATION_TIME "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define DURATION_DATE "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration", "P(" DURATION_DATE "(" DURATION_TIME ")?|" DURATION_TIME "|[0-9]+W)"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"email", ATOM "(\\." ATOM ")*@" HOST},
    {"hostname", HOST},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]*:(" AUTHORITY "(/" PART "*)*|/(" PART "+(/" PART "*)*)?|" PART "+(/" PART
            "*)*)?(\\?(" PART "|[/?])*)?(#(" PART "|[/?])*)?"},
    /* of the standard, and not supported */
    {"idn-email", NULL},
    {"idn-hostname", NULL},
    {"uri-reference", NULL},
    {"iri", NULL},
    {"iri-reference", NULL},
    {"uri-template", NULL},
    {"json-pointer", NULL},
    {"relative-json-pointer", NULL},
    {"regex", NULL},
};

const char *cake_string_format(const char *name, bool *supported)
{
    *supported = true;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name)) {
            *supported = formats[i].pattern != NULL;
            return formats[i].pattern;
        }
    return NULL;
}

int cake_string_format_most(const char *name)
{
    return !strcmp(name, "hostname") ? MOST_HOST : 0;
}
