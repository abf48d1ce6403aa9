/* SPDX-License-Identifier: Apache-2.0
 *
 * A file as memory that is only read. A file that ends before its mapping does, or that cannot be read,
 * raises SIGBUS where it is looked at: as long as a mapping is open such a page becomes zeros instead,
 * and the mapping remembers that it was faulted. Whoever used what it gave then reads the same bytes in
 * another way, and learns there what is wrong.
 */
#ifndef CAKE_MODEL_MMAP_FILE_H
#define CAKE_MODEL_MMAP_FILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cake_mmap_file cake_mmap_file;

/* Maps bytes [0, size) of the file; NULL and errno if that is not possible. Mappings are opened and closed
 * while no thread looks into one. */
cake_mmap_file *cake_mmap_file_open(int fd, int64_t size);
void cake_mmap_file_close(cake_mmap_file *mapping); /* NULL is fine */

const char *cake_mmap_file_at(const cake_mmap_file *mapping, int64_t offset);
/* Whether some page that was looked at was not there. Once true it stays true. */
bool cake_mmap_file_faulted(const cake_mmap_file *mapping);
/* Bytes [begin, end) were used and need not count as this process's memory any longer. */
void cake_mmap_file_leave(cake_mmap_file *mapping, int64_t begin, int64_t end);

#endif
