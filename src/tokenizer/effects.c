/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of effects.h; tokenizer.c checks tokenizer_config.json against it.
 * Invariant: a field that changes ids or text in transformers is not NONE.
 */
#include "tokenizer/effects.h"

#include <math.h>

#define READ(field) CAKE_EFFECT_OF(field, READ)
#define NONE(field) CAKE_EFFECT_OF(field, NONE)

/* Names of files and classes, truncation and padding do not change a text's ids; with a tokenizer.json, that
 * file decides about lower case. */
const cake_effect cake_tokenizer_effects[] = {
    {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", CAKE_EFFECT_WARN, 0, NULL, 0,
     false},
    {"fix_mistral_regex", CAKE_EFFECT_WARN, 0,
     "the pattern is tokenizer.json's, which is right if it was saved after the fix", 0, false},
    {"post_processor", CAKE_EFFECT_WARN, NAN, "that of tokenizer.json is", 0, false},
    READ(add_bos_token),
    READ(add_eos_token),
    READ(add_prefix_space),
    READ(added_tokens_decoder),
    READ(additional_special_tokens),
    READ(bos_token),
    READ(chat_template),
    READ(clean_up_tokenization_spaces),
    READ(cls_token),
    READ(eos_token),
    READ(eot_token),
    READ(extra_special_tokens),
    READ(fill_token),
    READ(legacy),
    READ(mask_token),
    READ(middle_token),
    READ(model_specific_special_tokens),
    READ(pad_token),
    READ(prefix_token),
    READ(sep_token),
    READ(split_special_tokens),
    READ(suffix_token),
    READ(tokenizer_class),
    READ(unk_token),
    NONE(auto_map),
    NONE(backend),
    NONE(chat_control_tokens),
    NONE(do_lower_case),
    NONE(errors),
    NONE(files_loaded),
    NONE(gguf_file),
    NONE(init_inputs),
    NONE(is_local),
    NONE(local_files_only),
    NONE(max_len),
    NONE(merges),
    NONE(merges_file),
    NONE(model_input_names),
    NONE(model_max_length),
    NONE(name_or_path),
    NONE(padding_side),
    NONE(processor_class),
    NONE(response_schema),
    NONE(response_template),
    NONE(sp_model_kwargs),
    NONE(spaces_between_special_tokens),
    NONE(tokenizer),
    NONE(tokenizer_file),
    NONE(tokenizer_object),
    NONE(tokenizer_padding),
    NONE(tokenizer_truncation),
    NONE(truncation_side),
    NONE(unk_id),
    NONE(use_default_system_prompt),
    NONE(verbose),
    NONE(vocab),
    NONE(vocab_file),
    {0},
};
