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
    "Adlam",
    "Ahom",
    "Anatolian_Hieroglyphs",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Bassa_Vah",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Canadian_Aboriginal",
    "Carian",
    "Caucasian_Albanian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Duployan",
    "Egyptian_Hieroglyphs",
    "Elbasan",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Imperial_Aramaic",
    "Inherited",
    "Inscriptional_Pahlavi",
    "Inscriptional_Parthian",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kayah_Li",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Linear_A",
    "Linear_B",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Meetei_Mayek",
    "Mende_Kikakui",
    "Meroitic_Cursive",
    "Meroitic_Hieroglyphs",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "New_Tai_Lue",
    "Newa",
    "Nko",
    "Ogham",
    "Ol_Chiki",
    "Old_Hungarian",
    "Old_Italic",
    "Old_North_Arabian",
    "Old_Permic",
    "Old_Persian",
    "Old_South_Arabian",
    "Old_Turkic",
    "Oriya",
    "Osage",
    "Osmanya",
    "Pahawh_Hmong",
    "Palmyrene",
    "Pau_Cin_Hau",
    "Phags_Pa",
    "Phoenician",
    "Psalter_Pahlavi",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "SignWriting",
    "Sinhala",
    "Sora_Sompeng",
    "Sundanese",
    "Syloti_Nagri",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Tai_Le",
    "Tai_Tham",
    "Tai_Viet",
    "Takri",
    "Tamil",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Ugaritic",
    "Vai",
    "Warang_Citi",
    "Yi",
};

#define HAN      42 /* numbers are indices in the list, from 1 */
#define HIRAGANA 47
#define KATAKANA 55

cake_err cake_scripts_open(const cake_json_path *path, uint8_t **out)
{
    uint8_t *script = cake_alloc(CAKE_CODES, sizeof *script);
    cake_err err = cake_pattern_scripts(path, names, sizeof names / sizeof *names, script);
    for (uint32_t code = 0; !err && code < CAKE_CODES; code++) {
        int category;
        if (code == ' ' || cake_age_find(code, &category) > CAKE_AGE_FORM)
            script[code] = 0;
        else if (script[code] == HIRAGANA || script[code] == KATAKANA || code == 0x30FC)
            script[code] = HAN;
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
