/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads rows of a tensor from its file, converts them and packs them while they are in the cache of one
 * thread. load.c reads all held weights with it, weight_stream.c those of each wave.
 */
#ifndef CAKE_MODEL_ROW_READER_H
#define CAKE_MODEL_ROW_READER_H

#include "model/tensor_walk.h"

#define CAKE_READ_GRAIN 64 /* rows in whole panels: two threads may pack such parts of a matrix */

/* A tensor and its destination. */
typedef struct cake_read_item {
    cake_tensor_item piece;
    char *name;         /* owned; piece.name is the same */
    void *data;         /* NULL: only read, for its checksum */
    int64_t begin, end; /* byte range of its rows in the file */
} cake_read_item;

/* One thread's memory and counters. model and kernels are set by the caller; rank of size readers that share
 * every item: one of them notes a part that all read. */
typedef struct cake_row_reader {
    const cake_model *model;
    const cake_kernels *kernels;
    int rank, size;
    /* Called for bytes of a tensor with a known checksum while they are in cache; NULL: nothing is noted. */
    void (*note)(void *arg, const cake_tensor_item *p, int64_t offset, const void *bytes, int64_t n);
    void *arg;
    bool fixed;                 /* the memory below is the caller's and large enough */
    char *bounce, *kept, *slab; /* rows as in the file; rows as weight_pack takes them; rows of a transposed
                                 * matrix */
    size_t bounce_size, kept_size, slab_size;
    int64_t read; /* bytes from files */
    double read_s, pack_s;
} cake_row_reader;

/* An item with the tensor's place in its file, and without a destination. */
cake_read_item cake_read_item_of(const cake_tensor_item *p);
/* Enters the tensor's destination into the model's tables. bytes: of a packed matrix. */
void cake_read_item_bind(const cake_model *model, const cake_tensor_item *p, void *data, size_t bytes);

/* How many of the rows from `first` on, at most n, one step takes. */
int cake_row_reader_step(const cake_tensor_item *p, int first, int n);
/* Hint: these rows will be read soon. */
void cake_row_reader_ahead(const cake_tensor_item *p, int first, int n);
/* Hint: these rows will not be read soon: they leave the page cache. */
void cake_row_reader_leave(const cake_tensor_item *p, int first, int n);
/* Reads and packs the rows of a step. False: failed, with the reason in why. */
bool cake_row_reader_take(cake_row_reader *reader, const cake_read_item *it, int first, int n, cake_buf *why);
void cake_row_reader_close(cake_row_reader *reader);

/* Sizes of bounce, kept and slab that are enough for every matrix of the model's layers. */
void cake_row_reader_sizes(const cake_model *model, size_t size[3]);

#endif
