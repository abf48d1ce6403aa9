/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the key pooling_type of a GGUF file. Out: the files of sentence-transformers that say the same.
 * Source: enum llama_pooling_type of llama.cpp's include/llama.h. Its programs normalise embeddings.
 */
#include "formats/gguf_config.h"

#include <stdio.h>
#include <string.h>

static const char *const poolings[] = {NULL, "mean", "cls", "lasttoken"}; /* NULL: none */

enum { N_POOLING = sizeof poolings / sizeof *poolings };

/* The name of the file's pooling; NULL: the model does not embed. */
static cake_err read_pooling(const cake_gguf *g, const char *topic, const char **out)
{
    cake_gguf_text arch;
    char key[160];
    int64_t type;
    if (cake_gguf_text_of(g, "general.architecture", &arch))
        return CAKE_ERR_FATAL;
    snprintf(key, sizeof key, "%.*s.pooling_type", (int)(arch.len < 80 ? arch.len : 80),
             arch.len ? arch.at : "");
    if (cake_gguf_int(g, key, 0, -1, INT32_MAX, &type))
        return CAKE_ERR_FATAL;
    if (type >= N_POOLING)
        return cake_fail(topic,
                         "%s: %s is %lld; 1 (mean), 2 (the first token) and 3 (the last) are supported",
                         cake_gguf_path(g), key, (long long)type);
    *out = type > 0 ? poolings[type] : NULL;
    return CAKE_OK;
}

cake_err cake_gguf_modules(const cake_gguf *g, const char *topic, const char *name, cake_buf *out)
{
    const char *pooling = NULL;
    if (read_pooling(g, topic, &pooling))
        return CAKE_ERR_FATAL;
    if (!pooling)
        return CAKE_END;
    if (!strcmp(name, "modules.json"))
        cake_buf_adds(out, "[{\"type\": \"Transformer\", \"path\": \"\"}, {\"type\": \"Pooling\", \"path\": "
                           "\"1_Pooling\"}, {\"type\": \"Normalize\", \"path\": \"2_Normalize\"}]");
    else
        cake_buf_addf(out, "{\"pooling_mode\": \"%s\"}", pooling);
    return CAKE_OK;
}
