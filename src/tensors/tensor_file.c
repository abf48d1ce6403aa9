/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file of tensors and their list. Out: the bytes of each. Invariant: a tensor's content is that of the
 * original model, whatever order the file keeps it in.
 */
#include "tensors/tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tensors/mmap_file.h"
#include "tensors/safetensors.h"

struct cake_tensor_file {
    char *path;
    int fd;
    int64_t size;
    struct timespec time;     /* modification time at open */
    cake_mmap_file *mapping;  /* NULL: not mapped */
    cake_tensor_list tensors; /* by begin */
};

/* Opens the file; its tensors are still to be read. */
static cake_err open_file(const char *path, cake_tensor_file **out)
{
    struct stat st;
    cake_err err = cake_file_check("tensors", path);
    if (err)
        return err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cake_fail("tensors", "%s: cannot be opened: %s%s", path, strerror(errno),
                         errno == ENOENT ? "; download or copy it again" : "");
    if (fstat(fd, &st)) {
        err = cake_fail("tensors", "%s: cannot be examined: %s", path, strerror(errno));
        close(fd);
        return err;
    }
    cake_tensor_file *f = cake_alloc(1, sizeof *f);
    *f = (cake_tensor_file){.path = cake_copy(path, strlen(path)), .fd = fd};
    f->size = (int64_t)st.st_size;
    f->time = st.st_mtim;
    *out = f;
    return CAKE_OK;
}

cake_err cake_tensor_file_open(const char *path, cake_tensor_file **out)
{
    cake_tensor_file *f = NULL;
    cake_err err = open_file(path, &f);
    if (err)
        return err;
    err = cake_safetensors_read(f->fd, f->size, path, &f->tensors);
    if (err)
        cake_tensor_file_close(f);
    else
        *out = f;
    return err;
}

cake_err cake_tensor_file_open_list(const char *path, int64_t size, cake_tensor_list *tensors,
                                    cake_tensor_file **out)
{
    cake_tensor_file *f = NULL;
    cake_err err = open_file(path, &f);
    if (err)
        return err;
    if (f->size != size) {
        cake_tensor_file_close(f);
        return cake_fail("tensors", "%s: was changed while it was read; start again when it is complete",
                         path);
    }
    f->tensors = *tensors;
    *tensors = (cake_tensor_list){0};
    *out = f;
    return CAKE_OK;
}

void cake_tensor_file_close(cake_tensor_file *file)
{
    if (!file)
        return;
    cake_tensor_file_unmap(file);
    if (file->fd >= 0)
        close(file->fd);
    cake_tensor_list_free(&file->tensors);
    free(file->path);
    free(file);
}

const char *cake_tensor_file_path(const cake_tensor_file *file)
{
    return file->path;
}

int cake_tensor_file_count(const cake_tensor_file *file)
{
    return file->tensors.n;
}

const cake_tensor *cake_tensor_file_at(const cake_tensor_file *file, int i)
{
    return &file->tensors.at[i];
}

/* Bytes of the file, for cake_tensor_undo_read. */
typedef struct raw {
    const cake_tensor_file *file;
    cake_buf *why;
} raw;

static cake_err read_raw(void *self, int64_t at, void *into, size_t len)
{
    const raw *r = self;
    return cake_file_read_at("tensors", r->file->fd, r->file->path, at, into, len, r->why);
}

cake_err cake_tensor_file_read(const cake_tensor_file *file, const cake_tensor *tensor, int64_t offset,
                               void *into, size_t len, cake_buf *why)
{
    CAKE_ASSERT(offset >= 0 && (int64_t)len <= tensor->end - tensor->begin - offset);
    return cake_tensor_undo_read(tensor, read_raw, &(raw){file, why}, offset, into, len);
}

void cake_tensor_file_ahead(const cake_tensor_file *file, int64_t begin, int64_t len)
{
    posix_fadvise(file->fd, (off_t)begin, (off_t)len, POSIX_FADV_WILLNEED);
}

cake_err cake_tensor_file_map(cake_tensor_file *file)
{
    CAKE_ASSERT(!file->mapping);
    file->mapping = cake_mmap_file_open(file->fd, file->size);
    return file->mapping ? CAKE_OK
                         : cake_fail("tensors", "%s: cannot be mapped: %s; use --load read", file->path,
                                     strerror(errno));
}

void cake_tensor_file_unmap(cake_tensor_file *file)
{
    cake_mmap_file_close(file->mapping);
    file->mapping = NULL;
}

const void *cake_tensor_file_view(const cake_tensor_file *file, const cake_tensor *tensor, int64_t offset)
{
    return file->mapping && !tensor->undo.kind ? file->mapping->base + tensor->begin + offset : NULL;
}

cake_err cake_tensor_file_unchanged(const cake_tensor_file *file)
{
    struct stat st;
    if (fstat(file->fd, &st))
        return cake_fail("tensors", "%s: cannot be examined: %s", file->path, strerror(errno));
    if (st.st_size == file->size && st.st_mtim.tv_sec == file->time.tv_sec &&
        st.st_mtim.tv_nsec == file->time.tv_nsec)
        return CAKE_OK;
    return cake_fail("tensors",
                     "%s: was changed while it was read, so some weights may be old and some new; start "
                     "again when it is complete",
                     file->path);
}

/* If the file shrinks, the rest of its last page reads as zeros without a signal. */
bool cake_tensor_file_faulted(const cake_tensor_file *file)
{
    struct stat st;
    return atomic_load(&file->mapping->faulted) || fstat(file->fd, &st) || (int64_t)st.st_size < file->size;
}

void cake_tensor_file_leave(const cake_tensor_file *file, int64_t begin, int64_t end, bool drop)
{
    int64_t first = begin - begin % sysconf(_SC_PAGESIZE); /* the page in which the previous tensor ended */
    if (file->mapping)
        cake_mmap_file_leave(file->mapping, first, end);
    if (drop)
        posix_fadvise(file->fd, (off_t)first, (off_t)(end - first), POSIX_FADV_DONTNEED);
}
