/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a config.json from the keys of a GGUF file. For gguf_config.c, gguf_families.c and gguf_rope.c.
 */
#ifndef CAKE_FORMATS_GGUF_WRITER_H
#define CAKE_FORMATS_GGUF_WRITER_H

#include "formats/gguf_config.h"

/* The file that is being read, and the text so far. */
typedef struct cake_gguf_writer {
    const cake_gguf_parts *parts;
    const cake_gguf *g;
    const char *topic;
    const cake_gguf_arch *arch;
    cake_buf *out;
    cake_err err; /* the first one */
    int64_t n_layer, dim, n_head, head_dim;
} cake_gguf_writer;

/* The key "ARCH.name", valid until the next call; its value, NULL: none. */
const char *cake_gguf_key_of(const cake_gguf_writer *w, const char *name);
const cake_gguf_value *cake_gguf_value_of(const cake_gguf_writer *w, const char *name);
/* After an error these return something harmless. */
int64_t cake_gguf_get_int(cake_gguf_writer *w, const char *name, int64_t otherwise, int64_t least);
double cake_gguf_get_real(cake_gguf_writer *w, const char *name, double otherwise);
/* A number for each layer, or one for all; they must be equal. */
int64_t cake_gguf_get_equal(cake_gguf_writer *w, const char *name, int64_t otherwise);
bool cake_gguf_has_tensor(const cake_gguf_writer *w, const char *name);
/* Fails if the key exists. */
void cake_gguf_refuse(cake_gguf_writer *w, const char *name, const char *why);

void cake_gguf_put_int(cake_gguf_writer *w, const char *field, int64_t value);
/* field NULL: only the number. */
void cake_gguf_put_real(cake_gguf_writer *w, const char *field, double value);
void cake_gguf_put_text(cake_gguf_writer *w, const char *field, const char *text);
void cake_gguf_put_bool(cake_gguf_writer *w, const char *field, bool value);
void cake_gguf_put_list(cake_gguf_writer *w, const char *field, const float *list, int64_t n);
void cake_gguf_copy_int(cake_gguf_writer *w, const char *name, int64_t otherwise, int64_t least,
                        const char *field);

/* gguf_families.c: a name may have several rows, of which keys choose. */
typedef struct cake_gguf_family {
    cake_gguf_arch arch;
    void (*more)(cake_gguf_writer *w); /* fields of the family */
} cake_gguf_family;

enum { CAKE_GGUF_FAMILIES = 27 };
extern const cake_gguf_family cake_gguf_families[CAKE_GGUF_FAMILIES];

/* gguf_rope.c: base and scaling; the share of a head that is rotated, or a check that it is all of it. */
void cake_gguf_put_rope(cake_gguf_writer *w);
void cake_gguf_put_part(cake_gguf_writer *w);
void cake_gguf_check_whole(cake_gguf_writer *w);

#endif
