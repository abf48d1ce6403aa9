/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by to_gguf.c and to_gguf_tokenizer.c.
 */
#ifndef CAKE_TESTS_RUN_TO_GGUF_H
#define CAKE_TESTS_RUN_TO_GGUF_H

#include "config/config.h"
#include "formats/json.h"
#include "model/tensor_index.h"
#include "tests/formats/gguf_build.h"

typedef struct family {
    const char *model_type, *arch;
    bool permuted, plus_one, both_norms;
    const char *n_expert, *n_ff; /* names of its fields of experts */
    const char *window;          /* of the sliding window; NULL: none is written */
} family;

typedef struct converter {
    cake_config config;
    const family *family;
    cake_json *doc;
    const cake_json *text; /* the part of a text in a larger model's */
    cake_tensor_index *index;
    gguf_build build;
    int cls, sep;        /* tokens around a text */
    bool blocks, values; /* matrices become Q8_0, or have its values in float32 */
} converter;

/* Writes the keys of the tokenizer in the model's directory. */
void to_gguf_tokenizer(converter *c, const char *dir);

#endif
