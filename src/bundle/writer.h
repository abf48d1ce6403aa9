/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's bundle as it is being written (docs/formats.md, "Bundles"). What an earlier try has left there is
 * kept as far as its checksums say that it is right; a bundle becomes one at the very end, by its
 * bundle.json.
 */
#ifndef CAKE_BUNDLE_WRITER_H
#define CAKE_BUNDLE_WRITER_H

#include "model/bundle.h"

typedef struct cake_bundle_writer cake_bundle_writer;

/* The directory of a rank's bundle, appended. */
void cake_bundle_writer_path(const char *dir, int rank, cake_buf *out);

/* Makes a directory and those above it, where they are not there. */
cake_err cake_bundle_writer_make(const char *path);

/* What dir/rank-NNNN, whole or begun, was made for; NULL: nothing, or nothing that can be understood.
 * Owned. */
cake_bundle *cake_bundle_writer_peek(const char *dir, int rank);

/* The first rank from n_rank on that dir has a bundle of: what an earlier staging for more ranks has left;
 * -1: none. */
int cake_bundle_writer_beyond(const char *dir, int n_rank);

/* Opens (and makes) the directory of the bundle that head is of: a parsed head whose `held` says what it
 * shall hold, and its text; both are borrowed. */
cake_err cake_bundle_writer_open(const char *dir, cake_bundle *wanted, const char *head,
                                 cake_bundle_writer **out);
void cake_bundle_writer_close(
    cake_bundle_writer *scratch); /* NULL is fine; what is there stays for the next try */

/* Whether all of it was there. Then nothing was touched, and nothing is to be written. */
bool cake_bundle_writer_whole(const cake_bundle_writer *scratch);
/* Whether the tensor need not be written. */
bool cake_bundle_writer_has(const cake_bundle_writer *scratch, int tensor);
int64_t cake_bundle_writer_kept(const cake_bundle_writer *scratch); /* bytes of tensors that were there */

/* Bytes [offset, offset + len) of a tensor, in ascending order; with its last ones it is there. */
cake_err cake_bundle_writer_write(cake_bundle_writer *scratch, int tensor, int64_t offset, const void *bytes,
                                  size_t len);
/* All tensors are there: brings the bundle onto the disk, with its files: text [n_file of the head]. */
cake_err cake_bundle_writer_finish(cake_bundle_writer *scratch, const cake_buf *text);

#endif
