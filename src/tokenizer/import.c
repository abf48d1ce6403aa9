/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the bytes of tokenizer.model or a .tiktoken file, and the special tokens of other files. Out: an
 * equivalent tokenizer.json.
 */
#include "tokenizer/import.h"

cake_err cake_import_convert(const char *bytes, size_t len, const char *where, cake_specials *specials,
                             cake_buf *json)
{
    /* A model begins with a piece, 0x0A; ranks begin with base64. */
    if (len && bytes[0] == '\n')
        return cake_sentencepiece_convert(bytes, len, where, specials, json);
    return cake_tiktoken_convert(bytes, len, where, specials, json);
}
