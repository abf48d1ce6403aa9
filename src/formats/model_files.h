/* SPDX-License-Identifier: Apache-2.0
 *
 * The small files of a model by name: those in its directory, or what a GGUF file has in their place.
 * Whoever reads one of them reads it here, so that all users agree.
 *
 * Of a GGUF file, config.json always is made from its keys, which describe its own tensors. The
 * tokenizer's files and templates are those beside it, if there are any and no other model lies in its
 * directory; else they are made from its keys.
 */
#ifndef CAKE_FORMATS_MODEL_FILES_H
#define CAKE_FORMATS_MODEL_FILES_H

#include "formats/json.h"

/* Appends the file. CAKE_END: the model has none. Failures are logged with topic and path. */
cake_err cake_model_files_read(const char *topic, const char *model, const char *name, size_t most,
                               cake_buf *out);
/* The same, parsed. */
cake_err cake_model_files_load(const char *topic, const char *model, const char *name, cake_json **out);
/* Parses a file that may be absent or broken: then NULL. Of a broken file nothing is logged. */
cake_json *cake_model_files_peek(const char *model, const char *name);
/* Whether the model is a GGUF file, or a directory with one. */
bool cake_model_files_gguf(const char *model);
/* Appends the directory where the model's files are. */
void cake_model_files_dir(const char *model, cake_buf *out);

#endif
