/* SPDX-License-Identifier: Apache-2.0
 *
 * In: items that match one character in Oniguruma's Ruby syntax: characters, properties, nested classes and
 * their intersections. Out: one item of a PCRE2 pattern. Called by regex.c. Properties have Oniguruma's
 * members, including characters younger than PCRE2's Unicode (unicode_age.h).
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "text/categories.h"
#include "text/regex_parts.h"
#include "text/unicode_age.h"

/* --- sets of characters that have a name --- */

#define BIT(c)     (1u << (c))
#define SPAN(a, b) ((2u << (b)) - (1u << (a)))
#define LETTERS    SPAN(LU, LO)
#define MARKS      SPAN(MN, ME)
#define SYMBOLS    SPAN(SM, SO)
#define POINTS     SPAN(PC, PO)
#define GRAPHIC    (SPAN(LU, SO) | BIT(CF))
#define IN_WORDS   (LETTERS | MARKS | BIT(ND) | BIT(NL) | BIT(PC))

#define SPACE   "\\x{9}-\\x{D}\\x{85}\\p{Z}"
#define CIRCLED "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
#define WORD    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}" CIRCLED
#define SUPER   "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}" /* \w alone has these, not in a class */
/* Members in Unicode 16 that PCRE2 10.42 lacks and categories do not give. */
#define ALPHA                                                                                                \
    "\\p{Alphabetic}\\x{363}-\\x{36F}\\x{897}\\x{C04}\\x{CF3}\\x{F82}-\\x{F83}\\x{1DD3}-\\x{1DE6}\\x{10D69}" \
    "\\x{10EFC}\\x{11080}-\\x{11081}\\x{11241}\\x{113B8}-\\x{113C0}\\x{113C2}\\x{113C5}\\x{113C7}-\\x{"      \
    "113CA}"                                                                                                 \
    "\\x{113CC}-\\x{113CD}\\x{11F00}-\\x{11F01}\\x{11F03}\\x{11F34}-\\x{11F3A}\\x{11F3E}-\\x{11F40}"         \
    "\\x{1611E}-\\x{1612E}\\x{1E08F}"
#define LOWER "\\p{Lowercase}\\x{10FC}\\x{A7F2}-\\x{A7F4}\\x{AB69}\\x{1E030}-\\x{1E06D}"
#define EMOJI                                                                                                \
    "\\x{1F6DC}\\x{1FA75}-\\x{1FA77}\\x{1FA87}-\\x{1FA89}\\x{1FA8F}\\x{1FAAD}-\\x{1FAAF}\\x{1FABB}-\\x{"     \
    "1FABF}"                                                                                                 \
    "\\x{1FAC6}\\x{1FACE}-\\x{1FACF}\\x{1FADA}-\\x{1FADC}\\x{1FADF}\\x{1FAE8}-\\x{1FAE9}\\x{1FAF7}-\\x{"     \
    "1FAF8}"
#define GRAPH "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

typedef struct set {
    const char *name, *members;
    uint32_t young; /* categories whose young characters are members */
    bool negative;  /* the complement of members */
} set;

static const set sets[] = {
    {"alnum", ALPHA "\\p{Nd}", LETTERS | BIT(ND) | BIT(NL), false},
    {"alpha", ALPHA, LETTERS | BIT(NL), false},
    {"alphabetic", ALPHA, LETTERS | BIT(NL), false},
    {"any", "\\x{0}-\\x{10FFFF}", 0, false},
    {"ascii", "\\x{0}-\\x{7F}", 0, false},
    {"assigned", GRAPH "\\p{Z}\\p{Cc}", GRAPHIC, false},
    {"blank", "\\x{9}\\p{Zs}", 0, false},
    {"c", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Z}", SPAN(LU, SO), true},
    {"cn", GRAPH "\\p{Z}\\p{Cc}\\p{Cs}", GRAPHIC, true},
    {"cntrl", "\\p{Cc}", 0, false},
    {"digit", "\\p{Nd}", BIT(ND), false},
    {"emoji", "\\p{Emoji}" EMOJI, 0, false},
    {"emojipresentation", "\\p{Emoji_Presentation}" EMOJI, 0, false},
    {"graph", GRAPH, GRAPHIC, false},
    {"han", "\\p{sc:Han}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}", 0, false},
    {"l", "\\p{L}", LETTERS, false},
    {"latin", "\\p{sc:Latin}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{1DF25}-\\x{1DF2A}", 0, false},
    {"lc", "\\p{Lu}\\p{Ll}\\p{Lt}", SPAN(LU, LT), false},
    {"lower", LOWER, BIT(LL), false},
    {"lowercase", LOWER, BIT(LL), false},
    {"m", "\\p{M}", MARKS, false},
    {"n", "\\p{N}", SPAN(ND, NO), false},
    {"p", "\\p{P}", POINTS, false},
    {"print", GRAPH "\\p{Zs}", GRAPHIC, false},
    {"punct", "\\p{P}", POINTS, false},
    {"s", "\\p{S}", SYMBOLS, false},
    {"space", SPACE, 0, false},
    {"upper", "\\p{Uppercase}", BIT(LU), false},
    {"uppercase", "\\p{Uppercase}", BIT(LU), false},
    {"whitespace", SPACE, 0, false},
    {"word", WORD SUPER, IN_WORDS, false},
    {"xdigit", "0-9A-Fa-f", 0, false},
    {"z", "\\p{Z}", 0, false},
};

static const set points_and_symbols = {"punct", "\\p{P}\\p{S}", POINTS | SYMBOLS, false};
static const set words = {"word", WORD, IN_WORDS, false};

/* The short and the long name. */
static const char *const categories[][2] = {
#define CATEGORY(name, long_name) {#name, long_name},
#include "text/categories.def"
#undef CATEGORY
};

static const char *const long_names[][2] = {{"letter", "l"},     {"mark", "m"},   {"combiningmark", "m"},
                                            {"number", "n"},     {"symbol", "s"}, {"punctuation", "p"},
                                            {"separator", "z"},  {"other", "c"},  {"casedletter", "lc"},
                                            {"unassigned", "cn"}};

/* Properties other than scripts; PCRE2 has them under the same names. */
static const char *const properties[] = {
    "cased",
    "caseignorable",
    "dash",
    "defaultignorablecodepoint",
    "diacritic",
    "emoji",
    "emojicomponent",
    "emojimodifier",
    "emojimodifierbase",
    "emojipresentation",
    "extendedpictographic",
    "extender",
    "hexdigit",
    "idcontinue",
    "idstart",
    "ideographic",
    "joincontrol",
    "math",
    "quotationmark",
    "regionalindicator",
    "unifiedideograph",
    "variationselector",
    "xidcontinue",
    "xids",
    "xidc",
    "xidstart",
};

/* A class is collected as members, which PCRE2 takes in one class, and alternatives to them. */
typedef struct class
{
    cake_buf members, others; /* others: each begins with "|" */
} class;

static void add_set(class *c, const set *s, bool negated)
{
    if (negated == s->negative) {
        cake_buf_adds(&c->members, s->members);
        cake_age_add_class(s->young, &c->members);
    } else {
        cake_buf_adds(&c->others, "|[^");
        cake_buf_adds(&c->others, s->members);
        cake_age_add_class(s->young, &c->others);
        cake_buf_adds(&c->others, "]");
    }
}

/* The set that a property's name means; `made` gets its members if the table lacks them. */
static set find_set(const char *name, cake_buf *made)
{
    for (size_t i = 0; i < sizeof long_names / sizeof *long_names; i++)
        if (!strcmp(name, long_names[i][0]))
            name = long_names[i][1];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (!strcmp(name, sets[i].name))
            return sets[i];
    for (size_t i = 1; i < sizeof categories / sizeof *categories; i++) {
        if (!strcasecmp(name, categories[i][0]) || !strcmp(name, categories[i][1])) {
            cake_buf_addf(made, "\\p{%c%c}", categories[i][0][0],
                          tolower((unsigned char)categories[i][0][1]));
            return (set){name, made->data, BIT(i), false};
        }
    }
    bool property = false;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        property = property || !strcmp(name, properties[i]);
    cake_buf_addf(made, property ? "\\p{%s}" : "\\p{sc:%s}", name);
    return (set){name, made->data, 0, false};
}

/* --- reading --- */

cake_err cake_regex_refuse(const cake_regex *r, const char *what)
{
    return cake_json_path_fail(r->path, "at byte %zu of the pattern: %s", r->at, what);
}

bool cake_regex_looking(const cake_regex *r, const char *what)
{
    size_t n = strlen(what);
    return r->len - r->at >= n && !memcmp(r->text + r->at, what, n);
}

/* Reads {Name} after \p or \P. */
static cake_err read_property(cake_regex *r, bool negated, class *c)
{
    const char *end =
        r->at < r->len && r->text[r->at] == '{' ? memchr(r->text + r->at, '}', r->len - r->at) : NULL;
    if (!end)
        return cake_regex_refuse(r, "\\p needs a {Name}");
    cake_buf name = {0}, made = {0};
    for (const char *p = r->text + r->at + 1; p < end; p++) {
        if (*p == '^' && !name.len)
            negated = !negated;
        else if (*p != ' ' && *p != '_' && *p != '-')
            cake_buf_addc(&name, (char)tolower((unsigned char)*p));
    }
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.data[i]) && !err)
            err = cake_regex_refuse(r, "this property is not supported");
    if (!err && !name.len)
        err = cake_regex_refuse(r, "a property without a name");
    if (!err) {
        set s = find_set(name.data, &made);
        add_set(c, &s, negated);
        r->at = (size_t)(end - r->text) + 1;
    }
    cake_buf_free(&name);
    cake_buf_free(&made);
    return err;
}

/* Reads an escape that names a set, with r->at after the backslash; *found: there was one. */
static cake_err read_set(cake_regex *r, bool in_class, class *c, bool *found)
{
    static const char letters[] = "dswh";
    static const char *const names[] = {"digit", "space", "word", "xdigit"};
    char letter = r->text[r->at];
    const char *at = strchr(letters, tolower((unsigned char)letter));
    *found = true;
    if (letter == 'p' || letter == 'P') {
        r->at++;
        return read_property(r, letter == 'P', c);
    }
    *found = letter && at;
    if (!*found)
        return CAKE_OK;
    cake_buf made = {0};
    set s = in_class && at == letters + 2 ? words : find_set(names[at - letters], &made);
    add_set(c, &s, isupper((unsigned char)letter));
    cake_buf_free(&made);
    r->at++;
    return CAKE_OK;
}

/* Writes the members between two && as an item that matches one character. */
static void end_operand(class *c, cake_buf *out)
{
    if (!c->members.len && !c->others.len)
        cake_buf_adds(out, "(?!)");
    else if (!c->others.len)
        cake_buf_addf(out, "[%s]", c->members.data);
    else if (!c->members.len)
        cake_buf_addf(out, "(?:%s)", c->others.data + 1);
    else
        cake_buf_addf(out, "(?:[%s]%s)", c->members.data, c->others.data);
    cake_buf_cut(&c->members, 0);
    cake_buf_cut(&c->others, 0);
}

cake_err cake_regex_set(cake_regex *r, bool *found, cake_buf *out)
{
    class c = {0};
    r->at++;
    cake_err err = read_set(r, false, &c, found);
    if (!err && *found)
        end_operand(&c, out);
    else
        r->at--;
    cake_buf_free(&c.members);
    cake_buf_free(&c.others);
    return err;
}

void cake_regex_word(cake_buf *out)
{
    cake_buf_adds(out, "[" WORD SUPER);
    cake_age_add_class(IN_WORDS, out);
    cake_buf_adds(out, "]");
}

static size_t digits_at(const cake_regex *r, size_t at, size_t most, int base)
{
    size_t n = 0;
    while (n < most && at + n < r->len &&
           (base == 16 ? isxdigit((unsigned char)r->text[at + n]) != 0
                       : r->text[at + n] >= '0' && r->text[at + n] < '0' + base))
        n++;
    return n;
}

static uint32_t number(const cake_regex *r, size_t at, size_t n, uint32_t base)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        char c = r->text[at + i];
        uint32_t digit =
            (uint32_t)(isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
        value = value > UINT32_MAX / 32 ? UINT32_MAX : value * base + digit;
    }
    return value;
}

/* Reads one character, plain or escaped, at r->at. */
cake_err cake_regex_character(cake_regex *r, uint32_t *code)
{
    static const char from[] = "tnrfaev", to[] = "\t\n\r\f\a\x1B\v";
    size_t n;
    if (r->text[r->at] != '\\' || r->at + 1 == r->len) {
        n = (size_t)cake_utf8_next(r->text + r->at, r->len - r->at, code);
        r->at += n ? n : 1;
        return CAKE_OK;
    }
    char c = r->text[++r->at];
    if (c == 'u' && digits_at(r, r->at + 1, 4, 16) == 4) {
        *code = number(r, r->at + 1, 4, 16);
        r->at += 5;
    } else if (c == 'x' && r->at + 1 < r->len && r->text[r->at + 1] == '{') {
        n = digits_at(r, r->at + 2, 8, 16);
        if (!n || r->at + 2 + n >= r->len || r->text[r->at + 2 + n] != '}')
            return cake_regex_refuse(r, "this \\x{...} is not supported");
        *code = number(r, r->at + 2, n, 16);
        r->at += 3 + n;
    } else if (c == 'x') {
        n = digits_at(r, r->at + 1, 2, 16);
        *code = number(r, r->at + 1, n, 16);
        r->at += 1 + n;
    } else if (c >= '0' && c <= '7') {
        n = digits_at(r, r->at, 3, 8);
        *code = number(r, r->at, n, 8);
        r->at += n;
    } else if (c == 'c' || cake_regex_looking(r, "C-") || cake_regex_looking(r, "M-")) {
        return cake_regex_refuse(r, "named control and meta characters are not supported");
    } else {
        const char *hit = c ? strchr(from, c) : NULL;
        n = (size_t)cake_utf8_next(r->text + r->at, r->len - r->at, code);
        *code = hit ? (uint32_t)(unsigned char)to[hit - from] : *code;
        r->at += n ? n : 1;
    }
    return *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)
               ? cake_regex_refuse(r, "there is no character with this code")
               : CAKE_OK;
}

/* --- classes --- */

/* [:name:] or [:^name:] */
static bool read_posix(cake_regex *r, class *c)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph",
                                        "lower", "print", "punct", "space", "upper", "word",  "xdigit"};
    bool negated = r->len - r->at > 2 && r->text[r->at + 2] == '^';
    size_t at = r->at + 2 + negated;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (at + n + 2 > r->len || memcmp(r->text + at, names[i], n) != 0 ||
            memcmp(r->text + at + n, ":]", 2) != 0)
            continue;
        cake_buf made = {0};
        set s = find_set(names[i], &made);
        if (!strcmp(names[i], "punct"))
            s = points_and_symbols;
        if (!strcmp(names[i], "word"))
            s = words;
        add_set(c, &s, negated);
        cake_buf_free(&made);
        r->at = at + n + 2;
        return true;
    }
    return false;
}

/* One member: a set, a class, a character or a range. */
static cake_err read_member(cake_regex *r, class *c)
{
    bool found = false;
    cake_err err;
    if (r->text[r->at] == '[') {
        if (r->at + 1 < r->len && r->text[r->at + 1] == ':' && read_posix(r, c))
            return CAKE_OK;
        cake_buf_adds(&c->others, "|");
        return cake_regex_class(r, &c->others);
    }
    if (r->text[r->at] == '\\' && r->at + 1 < r->len) {
        r->at++;
        err = read_set(r, true, c, &found);
        if (err || found)
            return err;
        r->at--;
    }
    uint32_t first = 0, last = 0;
    if (cake_regex_looking(r, "\\b")) {
        first = '\b';
        r->at += 2;
    } else if ((err = cake_regex_character(r, &first)) != CAKE_OK) {
        return err;
    }
    last = first;
    if (r->len - r->at > 1 && r->text[r->at] == '-' && r->text[r->at + 1] != ']' &&
        r->text[r->at + 1] != '[' &&
        memcmp(r->text + r->at + 1, r->len - r->at > 2 ? "&&" : "&", r->len - r->at > 2 ? 2 : 1) != 0) {
        r->at++;
        if (r->text[r->at] == '\\' && r->at + 1 < r->len && strchr("dDsSwWhHpP", r->text[r->at + 1]))
            return cake_regex_refuse(r, "the end of a range is a class");
        err = cake_regex_character(r, &last);
        if (!err && last < first)
            err = cake_regex_refuse(r, "a range whose end is below its start");
    }
    if (!err)
        cake_buf_addf(&c->members, last > first ? "\\x{%X}-\\x{%X}" : "\\x{%X}", first, last);
    return err;
}

/* Writes the class at r->at as an item that matches one character. */
cake_err cake_regex_class(cake_regex *r, cake_buf *out)
{
    class c = {0};
    cake_buf all = {0};
    cake_err err = ++r->depth > CAKE_REGEX_DEPTH
                       ? cake_regex_refuse(r, "groups and classes are nested too deeply")
                       : CAKE_OK;
    bool negated = r->at + 1 < r->len && r->text[r->at + 1] == '^', cut = false, begins = true;
    size_t begin = r->at;
    r->at += 1 + negated;
    while (!err && r->at < r->len && (r->text[r->at] != ']' || begins)) {
        begins = false;
        if (cake_regex_looking(r, "&&")) {
            cake_buf_adds(&all, "(?=");
            end_operand(&c, &all);
            cake_buf_adds(&all, ")");
            r->at += 2;
            cut = true;
            continue;
        }
        err = read_member(r, &c);
    }
    if (!err && r->at >= r->len) {
        r->at = begin;
        err = cake_regex_refuse(r, "a class is not closed");
    }
    if (!err && negated && !cut && !c.others.len && c.members.len) {
        cake_buf_addf(out, "[^%s]", c.members.data);
    } else if (!err) {
        end_operand(&c, &all);
        cake_buf_addf(out, negated ? "(?:(?!%s)(?s:.))" : cut ? "(?:%s)" : "%s", all.data);
    }
    r->at++;
    r->depth--;
    cake_buf_free(&c.members);
    cake_buf_free(&c.others);
    cake_buf_free(&all);
    return err;
}
