/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads rows of a tensor from its file, converts them and packs them while they are in the cache of one
 * thread. load.c reads all held weights with it, weight_stream.c those of each wave.
 */
#ifndef CAKE_MODEL_ROW_READER_H
#define CAKE_MODEL_ROW_READER_H

#include "model/tensor_walk.h"

#define CAKE_READ_GRAIN   64   /* rows in whole panels: two threads may pack such parts of a matrix */
#define CAKE_READ_BETWEEN 8192 /* bytes that nobody wants: reading them takes as long as another call */

/* A tensor and its destination. */
typedef struct cake_read_item {
    cake_tensor_item piece;
    char *name;         /* owned; piece.name is the same */
    void *data;         /* NULL: only read, for its checksum */
    int64_t begin, end; /* byte range of its rows in the file */
} cake_read_item;

/* One thread's memory and counters. model and kernels are set by the caller. */
typedef struct cake_row_reader {
    const cake_model *model;
    const cake_kernels *kernels;
    /* Called for bytes of a tensor with a known checksum while they are in cache; NULL: nothing is noted. */
    void (*note)(void *arg, const cake_indexed_tensor *tensor, int64_t offset, const void *bytes, int64_t n);
    void *arg;
    bool fixed; /* the memory below is the caller's and large enough */
    /* rows as in the file; rows as weight_pack takes them; parts of rows, from which they are put together;
     * rows that were quantised, in float32 */
    char *bounce, *kept, *slab, *dequantized;
    size_t bounce_size, kept_size, slab_size, dequantized_size;
    int64_t read; /* bytes from files */
    double read_s, pack_s;
} cake_row_reader;

/* The reader's memory for `need` bytes: bounce, kept or slab. */
void *cake_row_reader_room(const cake_row_reader *reader, char **memory, size_t *size, size_t need);
/* Bytes of a tensor from `offset` on enter its checksum, if there is one. */
void cake_row_reader_note(const cake_row_reader *reader, const cake_indexed_tensor *tensor, int64_t offset,
                          const void *bytes, int64_t n);

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

/* Sizes of a reader's memory that are enough for every matrix of the model's layers. */
enum { CAKE_READER_BOUNCE, CAKE_READER_KEPT, CAKE_READER_SLAB, CAKE_READER_DEQUANTIZED, CAKE_N_READER };
typedef struct cake_reader_sizes {
    size_t of[CAKE_N_READER];
} cake_reader_sizes;
void cake_row_reader_sizes(const cake_model *model, cake_reader_sizes *sizes);

#endif
