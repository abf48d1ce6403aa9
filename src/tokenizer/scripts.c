/* SPDX-License-Identifier: Apache-2.0
 *
 * UnicodeScripts: cuts a text where its script changes. Out: a number for the script of each character.
 *
 * The library has the scripts of Unicode 9, counts the Japanese syllabaries as Han, and gives spaces and
 * unknown characters the script of the previous character.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/pattern.h"
#include "text/unicode_age.h"
#include "tokenizer/internal.h"

static const char *const names[] = {
#define SCRIPT(name) #name,
#include "text/unicode_scripts.inc"
#undef SCRIPT
};

enum script {
    NONE,
#define SCRIPT(name) name,
#include "text/unicode_scripts.inc"
#undef SCRIPT
};

cake_err cake_scripts_open(const cake_json_path *path, uint8_t **out)
{
    uint8_t *script = cake_alloc(CAKE_CODES, sizeof *script);
    cake_err err = cake_pattern_scripts(path, names, sizeof names / sizeof *names, script);
    for (uint32_t code = 0; !err && code < CAKE_CODES; code++) {
        int category;
        if (code == ' ' || cake_age_find(code, &category) > CAKE_AGE_FORM)
            script[code] = NONE;
        else if (script[code] == Hiragana || script[code] == Katakana || code == 0x30FC)
            script[code] = Han;
    }
    if (err)
        free(script);
    else
        *out = script;
    return err;
}

size_t cake_scripts_match(const uint8_t *script, const char *text, size_t len)
{
    uint8_t same = 0;
    size_t at = 0;
    for (size_t n; at < len; at += n) {
        uint32_t code = 0;
        n = (size_t)cake_utf8_next(text + at, len - at, &code);
        if (!same)
            same = script[code];
        if (!same || (script[code] && script[code] != same))
            break;
    }
    return at;
}
