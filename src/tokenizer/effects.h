/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of tokenizer_config.json that are not followed. tests/model/effects.c compares the table, and
 * tests/golden/silent_fields.json, with all fields that the tokenizers of transformers take.
 */
#ifndef CAKE_TOKENIZER_EFFECTS_H
#define CAKE_TOKENIZER_EFFECTS_H

#include "formats/effects.h"

extern const cake_effect cake_tokenizer_effects[]; /* ends with a NULL name */

#endif
