/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of golden files about tokenizers: {"text", "ids", "full" (with what the post-processor adds),
 * "decoded"}.
 */
#ifndef CAKE_TESTS_ROWS_H
#define CAKE_TESTS_ROWS_H

#include "formats/json.h"
#include "tokenizer/tokenizer.h"

cake_json *rows_load(const char *path); /* owned; fails the test if the file cannot be read */
bool rows_same(const cake_ids *ids, const cake_json *expected);
void rows_decode(const cake_tokenizer *token, const cake_ids *ids, cake_buf *out); /* a token at a time */
/* Holds one row against the library; says which, where they differ. */
bool rows_check(const cake_tokenizer *token, const char *name, const cake_json *row);

#endif
