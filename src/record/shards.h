/* SPDX-License-Identifier: Apache-2.0
 *
 * The finished results of all shards of a job, as one iterator over their lines in the order of the input.
 * Files are only read; lines of those that are packed or HDF5 lie in a temporary file meanwhile, which has no
 * name. Memory: 16 bytes a request, and some 64 MiB of blocks.
 */
#ifndef CAKE_RECORD_SHARDS_H
#define CAKE_RECORD_SHARDS_H

#include "record/journal_format.h"
#include "types/shard.h"

typedef struct cake_shards cake_shards;

/* paths: of RESULTS of each (or of its .partial). Reads all of them once. Says everything that keeps them
 * from being one job with each request exactly once: shards that are missing, there twice, not finished (with
 * what they lack), of another job, of another input, changed since they were written. beside: as in unpack.h;
 * borrowed. */
cake_err cake_shards_open(char *const *paths, int n, const char *beside, cake_shards **out);
/* What one run of the whole job would have; its identity has the shard null. Borrowed. */
const cake_journal_head *cake_shards_head(const cake_shards *shards);
cake_input_checkpoint cake_shards_checkpoint(const cake_shards *shards); /* the end of the input */
int64_t cake_shards_count(const cake_shards *shards);                    /* of requests */
int64_t cake_shards_failed(const cake_shards *shards); /* of requests whose result is an error record */
/* The next request's line [len], with its newline, valid until the next call. CAKE_END; CAKE_ERR_FATAL, said,
 * if a file cannot be read or changed meanwhile. */
cake_err cake_shards_next(cake_shards *shards, cake_entry *entry, const char **line, size_t *len);
void cake_shards_close(cake_shards *shards); /* NULL is fine */

/* An identity (JSON object) with another value (JSON text) for a key, appended. */
void cake_shards_identity(const char *identity, const char *key, const char *value, cake_buf *out);

#endif
