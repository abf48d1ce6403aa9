/* SPDX-License-Identifier: Apache-2.0
 *
 * The one door to utf8proc: properties of characters, and normal forms.
 */
#ifndef CAKE_TEXT_UNICODE_H
#define CAKE_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

typedef enum cake_unicode_form { CAKE_NFC, CAKE_NFD, CAKE_NFKC, CAKE_NFKD } cake_unicode_form;

void cake_unicode_normalize(cake_unicode_form form, const char *text, size_t len, cake_buf *out);
/* The classes that patterns ask for most often: \s, \p{L}, \p{M}, \p{N}. */
typedef enum cake_class {
    CAKE_CLASS_OTHER,
    CAKE_CLASS_LETTER,
    CAKE_CLASS_MARK,
    CAKE_CLASS_NUMBER,
    CAKE_CLASS_SPACE
} cake_class;
cake_class cake_char_class(uint32_t code);
bool cake_char_is_space(uint32_t code);     /* White_Space */
bool cake_char_is_word(uint32_t code);      /* as \w */
bool cake_char_is_number(uint32_t code);    /* of any kind: digits, letters, fractions */
bool cake_char_is_printable(uint32_t code); /* as Python's str.isprintable */
bool cake_char_is_upper(uint32_t code);     /* also title case letters */
bool cake_char_is_lower(uint32_t code);
bool cake_char_is_letter(uint32_t code);
bool cake_char_is_digit(uint32_t code); /* decimal digits of any script */
bool cake_char_is_figure(
    uint32_t code); /* also circled, superscript, subscript digits (Numeric_Type Digit) */
/* As the older parts of the tokenizers library have them, with Unicode 8 or 9. */
bool cake_char_is_punctuation(uint32_t code); /* also ASCII punctuation and symbols */
bool cake_char_is_control(uint32_t code);     /* also format characters and private use */
bool cake_char_is_mark(uint32_t code);
bool cake_char_is_nonspacing(uint32_t code); /* a mark without a width of its own */
/* Bytes of the grapheme cluster that text (valid UTF-8, not empty) begins with. */
size_t cake_grapheme_next(const char *text, size_t len);
/* Upper, lower and title case: writes up to three characters and returns their number. */
int cake_char_upper(uint32_t code, uint32_t out[3]);
int cake_char_lower(uint32_t code, uint32_t out[3]);
int cake_char_title(uint32_t code, uint32_t out[3]);

#endif
