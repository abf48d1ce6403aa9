/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of unsupported_fields.h; tokenizer.c checks tokenizer_config.json against it.
 * Invariant: a field that changes ids or text in transformers has a row, unless it is followed.
 */
#include "tokenizer/unsupported_fields.h"

#include <math.h>

const cake_unsupported_field cake_unsupported_tokenizer[] = {
    {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", CAKE_UNSUPPORTED_WARN, 0,
     NULL, 0, false},
    {"fix_mistral_regex", CAKE_UNSUPPORTED_WARN, 0,
     "the pattern is tokenizer.json's, which is right if it was saved after the fix", 0, false},
    {"post_processor", CAKE_UNSUPPORTED_WARN, NAN, "that of tokenizer.json is", 0, false},
    {0},
};
