/* SPDX-License-Identifier: Apache-2.0
 *
 * In: text. Out: the end of the match of a well-known pattern.
 *
 * All of these have the same alternatives in the same order: an English ending; letters, with one character
 * before them; digits; other characters with a space before and line ends after; white space up to its last
 * line end; white space except its last character, if something follows; white space.
 * Invariant: a match has at least one character.
 */
#include "tokenizer/fast_patterns.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define BLANKS  "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define PLAIN   "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define MARKED  "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|"
#define OTHERS  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS
#define NO_MARK "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" BLANKS

const char cake_fast_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* The class and length of the character at `at`; CAKE_CLASS_SPACE and 0 at the end. */
static cake_class class_at(const char *text, size_t len, size_t at, size_t *n)
{
    uint32_t code = at < len ? (unsigned char)text[at] : ' ';
    *n = at < len;
    if (code >= 0x80)
        *n = (size_t)cake_utf8_next(text + at, len - at, &code);
    return cake_char_class(code);
}

/* The end of the run of at most max characters of these classes (a bit each) from `at`. */
static size_t run(const char *text, size_t len, size_t at, unsigned classes, size_t max)
{
    size_t n;
    for (size_t i = 0; i < max && at < len && (classes >> class_at(text, len, at, &n) & 1); i++)
        at += n;
    return at;
}

/* 's 't 're 've 'm 'll 'd: its length, or 0. */
static size_t ending(const char *text, size_t len, bool any_case)
{
    static const char endings[][3] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (text[0] != '\'')
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]), same = 0;
        while (same < n && same + 1 < len &&
               (any_case ? text[same + 1] | 0x20 : text[same + 1]) == endings[i][same])
            same++;
        if (same == n)
            return n + 1;
    }
    return any_case && len > 2 && !memcmp(text + 1, "\xC5\xBF", 2) ? 3 : 0; /* the long s */
}

/* A run of white space, cut as in the last three alternatives. */
static size_t blanks(const char *text, size_t len, bool lines)
{
    size_t at = 0, last = 0, line = 0;
    for (size_t n; at < len && class_at(text, len, at, &n) == CAKE_CLASS_SPACE; at += n) {
        last = at;
        if (text[at] == '\n' || text[at] == '\r')
            line = at + 1;
    }
    if (lines && line)
        return line;
    return at == len || !last ? at : last;
}

#define BIT(class) (1u << (class))

static size_t match(const char *text, size_t len, bool marks, size_t digits)
{
    unsigned letters = BIT(CAKE_CLASS_LETTER) | (marks ? BIT(CAKE_CLASS_MARK) : 0);
    unsigned others = (BIT(CAKE_CLASS_OTHER) | BIT(CAKE_CLASS_MARK)) & ~letters;
    size_t first, second, end = ending(text, len, true);
    if (end)
        return end;
    cake_class here = class_at(text, len, 0, &first);
    bool newline = text[0] == '\n' || text[0] == '\r';
    if (letters >> here & 1)
        return run(text, len, first, letters, SIZE_MAX);
    if (here == CAKE_CLASS_NUMBER)
        return run(text, len, first, BIT(CAKE_CLASS_NUMBER), digits - 1);
    cake_class next = class_at(text, len, first, &second);
    if (!newline && second && (letters >> next & 1))
        return run(text, len, first + second, letters, SIZE_MAX);
    if ((others >> here & 1) || (text[0] == ' ' && second && (others >> next & 1))) {
        for (end = run(text, len, first, others, SIZE_MAX);
             end < len && (text[end] == '\n' || text[end] == '\r');)
            end++;
        return end;
    }
    return blanks(text, len, true);
}

static size_t match_1(const char *text, size_t len)
{
    return match(text, len, false, 1);
}

static size_t match_3(const char *text, size_t len)
{
    return match(text, len, false, 3);
}

static size_t match_marked(const char *text, size_t len)
{
    return match(text, len, true, 1);
}

static size_t match_gpt2(const char *text, size_t len)
{
    static const unsigned runs[] = {[CAKE_CLASS_OTHER] = BIT(CAKE_CLASS_OTHER) | BIT(CAKE_CLASS_MARK),
                                    [CAKE_CLASS_MARK] = BIT(CAKE_CLASS_OTHER) | BIT(CAKE_CLASS_MARK),
                                    [CAKE_CLASS_LETTER] = BIT(CAKE_CLASS_LETTER),
                                    [CAKE_CLASS_NUMBER] = BIT(CAKE_CLASS_NUMBER),
                                    [CAKE_CLASS_SPACE] = 0};
    size_t first, end = ending(text, len, false), begin = text[0] == ' ';
    if (end)
        return end;
    unsigned same = runs[class_at(text, len, begin, &first)];
    return same ? run(text, len, begin + first, same, SIZE_MAX) : blanks(text, len, false);
}

cake_fast_pattern cake_fast_pattern_find(const char *pattern, size_t len)
{
    static const struct {
        const char *pattern;
        cake_fast_pattern match;
    } known[] = {
        {cake_fast_pattern_gpt2, match_gpt2},
        {ENDINGS PLAIN "\\p{N}" OTHERS, match_1},
        {ENDINGS PLAIN "\\p{N}{1,3}" OTHERS, match_3},
        {ENDINGS MARKED "\\p{N}" NO_MARK, match_marked},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].pattern) == len && !memcmp(known[i].pattern, pattern, len))
            return known[i].match;
    return NULL;
}
