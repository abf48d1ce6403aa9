/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a rank's bundle (docs/formats.md, "Bundles"). Tensors from an earlier attempt are kept if their
 * checksums are right. A directory becomes a bundle at the very end, by its bundle.json.
 */
#ifndef CAKE_BUNDLE_WRITER_H
#define CAKE_BUNDLE_WRITER_H

#include "model/bundle.h"

typedef struct cake_bundle_writer cake_bundle_writer;

/* Appends the directory of a rank's bundle. */
void cake_bundle_writer_path(const char *dir, int rank, cake_buf *out);

/* Makes a directory and its missing parents. */
cake_err cake_bundle_writer_make(const char *path);

/* The plan and model that dir/rank-NNNN, complete or not, was made for; NULL: none, or unreadable. Owned. */
cake_bundle *cake_bundle_writer_peek(const char *dir, int rank);

/* The lowest rank >= n_rank with a bundle in dir, left by an earlier stage for more ranks; -1: none. */
int cake_bundle_writer_beyond(const char *dir, int n_rank);

/* Opens, or makes, the directory of a bundle. wanted: the parsed head, whose `held` marks the tensors to
 * write; head: its text; both borrowed. */
cake_err cake_bundle_writer_open(const char *dir, cake_bundle *wanted, const char *head,
                                 cake_bundle_writer **out);
void cake_bundle_writer_close(cake_bundle_writer *writer); /* NULL is fine; files stay for the next attempt */

/* Whether the bundle was already complete. Then nothing was changed and nothing needs to be written. */
bool cake_bundle_writer_whole(const cake_bundle_writer *writer);
/* Whether the tensor is already written. */
bool cake_bundle_writer_has(const cake_bundle_writer *writer, int tensor);
int64_t cake_bundle_writer_kept(const cake_bundle_writer *writer); /* bytes kept from earlier attempts */

/* Writes bytes [offset, offset + len) of a tensor, in ascending order. */
cake_err cake_bundle_writer_write(cake_bundle_writer *writer, int tensor, int64_t offset, const void *bytes,
                                  size_t len);
/* After all tensors: syncs the bundle to disk with its files; text [n_file of the head]. */
cake_err cake_bundle_writer_finish(cake_bundle_writer *writer, const cake_buf *text);

#endif
