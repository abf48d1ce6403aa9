/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of an HDF5 file as lines of JSON: {"id": ..., "prompt": text or ids}.
 */
#ifndef CAKE_PROMPT_HDF5_H
#define CAKE_PROMPT_HDF5_H

#include "prompt/prompt.h"

typedef struct cake_hdf5 cake_hdf5;

/* names: the datasets or groups of prompts and ids (docs/formats.md). Logs what is wrong. */
cake_err cake_hdf5_open(const char *path, const cake_names *names, cake_hdf5 **out);
/* As cake_lines_next. */
cake_err cake_hdf5_next(cake_hdf5 *table, const char **line, size_t *len);
double cake_hdf5_progress(const cake_hdf5 *table); /* fraction of the rows read so far */
void cake_hdf5_close(cake_hdf5 *table);            /* NULL is fine */

#endif
