/* SPDX-License-Identifier: Apache-2.0
 *
 * A read-only mapping of a file. If the file is shorter than its mapping, or unreadable, an access raises
 * SIGBUS. While a mapping is open, such a page is replaced by zeros and the mapping remembers that it
 * faulted. The user then reads the same bytes by read(), which reports the error.
 */
#ifndef CAKE_TENSORS_MMAP_FILE_H
#define CAKE_TENSORS_MMAP_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cake_mmap_file {
    char *base; /* [size] */
    size_t size;
    atomic_bool faulted; /* some access has; never reset */
    struct cake_mmap_file *next;
} cake_mmap_file;

/* Maps bytes [0, size); NULL and errno on failure. Open and close mappings only while no thread accesses
 * one. */
cake_mmap_file *cake_mmap_file_open(int fd, int64_t size);
void cake_mmap_file_close(cake_mmap_file *mapping); /* NULL is fine */
/* Bytes [begin, end) are no longer needed; they may leave this process's memory. */
void cake_mmap_file_leave(cake_mmap_file *mapping, int64_t begin, int64_t end);

#endif
