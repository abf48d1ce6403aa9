/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterates over the result lines of all finished shards of a job in input order. Files are only read; lines
 * of compressed or HDF5 files are expanded into an unlinked temporary file. Memory: 16 bytes per request and
 * about 64 MiB of blocks.
 */
#ifndef CAKE_RECORD_SHARDS_H
#define CAKE_RECORD_SHARDS_H

#include "record/journal_format.h"
#include "types/shard.h"

typedef struct cake_shards cake_shards;

/* paths: RESULTS of each shard (or its .partial). Reads all files once and reports everything that keeps them
 * from being one job with each request exactly once: shards that are missing, duplicate, unfinished (and what
 * they lack), of another job or input, or changed since they were written. sibling: as in unpack.h;
 * borrowed. */
cake_err cake_shards_open(char *const *paths, int n, const char *sibling, cake_shards **out);
/* The header that a single run of the whole job would have: "shard" is null in its identity. Borrowed. */
const cake_journal_header *cake_shards_header(const cake_shards *shards);
cake_input_checkpoint cake_shards_checkpoint(const cake_shards *shards); /* the end of the input */
int64_t cake_shards_count(const cake_shards *shards);                    /* number of requests */
int64_t cake_shards_failed(const cake_shards *shards);                   /* number of error records */
/* The next request's line [len, with newline], valid until the next call. CAKE_END; CAKE_ERR_FATAL (reported)
 * if a file cannot be read or has changed. */
cake_err cake_shards_next(cake_shards *shards, cake_entry *entry, const char **line, size_t *len);
void cake_shards_close(cake_shards *shards); /* NULL is fine */

/* Appends an identity (JSON object) with the value (JSON text) of one key replaced. */
void cake_shards_identity(const char *identity, const char *key, const char *value, cake_buf *out);

#endif
