/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of tokenizer_config.json that are not followed. tests/config/unsupported_fields.c compares the
 * table, and tests/golden/silent_fields.json, with all fields that the tokenizers of transformers take.
 */
#ifndef CAKE_TOKENIZER_UNSUPPORTED_FIELDS_H
#define CAKE_TOKENIZER_UNSUPPORTED_FIELDS_H

#include "formats/unsupported.h"

extern const cake_unsupported_field cake_unsupported_tokenizer[]; /* ends with a NULL name */

#endif
