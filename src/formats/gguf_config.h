/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a config.json from a GGUF file's keys. One reader then checks both formats.
 */
#ifndef CAKE_FORMATS_GGUF_CONFIG_H
#define CAKE_FORMATS_GGUF_CONFIG_H

#include "formats/gguf_parts.h"

/* What converters do to the tensors of an architecture, beside giving them other names. */
typedef struct cake_gguf_arch {
    const char *name;       /* general.architecture */
    const char *model_type; /* in config.json */
    const char *class;      /* in config.json's architectures */
    const char *chosen_by;  /* of two rows with a name: the second is meant where this key is above 0 */
    bool permuted;          /* rows of q and k: the halves of each head alternate */
    bool plus_one;          /* norms are stored as w + 1, where config.json's families store w */
    bool both_norms;        /* ffn_norm stands before the MLP, beside a norm after attention */
    bool latent;            /* latent attention, whose heads of k and v are counted in another way */
    bool by_type;           /* heads and rotation of layers with a window and of those without differ */
    bool grows;             /* queries grow with the position, by attention.temperature_scale */
    bool encoder;           /* its positions are a tensor; layers have none of their own */
    bool tiled; /* value heads of delta nets: the first of each key head, the second of each, ... */
} cake_gguf_arch;

/* A field of config.json that no other model has: value heads of delta nets stay in the order of the file. */
#define CAKE_GGUF_TILED "linear_value_heads_tiled"

/* Whether it is set: blocks of an output projection hold parts of several heads, so that its columns cannot
 * be put in order. `value_dim` is the size of a head. */
bool cake_gguf_keeps_tiles(const cake_gguf_parts *parts, const cake_gguf_arch *arch, int64_t value_dim);

/* Appends the text of config.json. Errors name the file and the key. */
cake_err cake_gguf_config(const cake_gguf_parts *parts, const char *topic, cake_buf *json);
/* Appends modules.json or 1_Pooling/config.json of sentence-transformers. CAKE_END: the file does not say
 * that its model embeds. */
cake_err cake_gguf_modules(const cake_gguf *g, const char *topic, const char *name, cake_buf *out);
/* Which of the supported architectures it is; fails by name if none. */
cake_err cake_gguf_arch_of(const cake_gguf_parts *parts, const char *topic, cake_gguf_arch *out);
/* Layers of the model, without those for multi-token prediction behind them. */
cake_err cake_gguf_layers(const cake_gguf_parts *parts, const cake_gguf_arch *arch, int64_t *out);

#endif
