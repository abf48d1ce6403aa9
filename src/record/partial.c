/* SPDX-License-Identifier: Apache-2.0
 *
 * Finished lines enter in any order, a whole file in the order of the input leaves. Invariant: at any moment
 * RESULTS.partial is whole lines up to `size` and perhaps the beginning of one more, and RESULTS is either
 * absent (or what it was) or complete.
 */
#include "record/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "record/bytes.h"
#include "record/places.h"
#include "record/sync.h"

#define BLOCK ((size_t)1 << 20)

struct cake_partial {
    char *results, *path; /* owned; path is results.partial */
    bool force, broken;   /* broken: a write failed, and that was said */
    int fd;
    int64_t size;
    cake_places places;
    cake_sync *sync;
};

static bool exists(const char *path)
{
    struct stat info;
    return !lstat(path, &info);
}

static cake_err refuse_existing(const char *results)
{
    return cake_fail("record", "%s: exists already; --force overwrites it, or name another file with -o",
                     results);
}

/* Whole lines of the file; -1 if it cannot be read. */
static int64_t count_lines(int fd)
{
    char *block = cake_alloc(BLOCK, 1);
    int64_t lines = 0, offset = 0;
    ssize_t n;
    while ((n = pread(fd, block, BLOCK, (off_t)offset)) > 0) {
        offset += n;
        for (const char *at = block; (at = memchr(at, '\n', (size_t)(block + n - at))) != NULL; at++)
            lines++;
    }
    free(block);
    return n < 0 ? -1 : lines;
}

/* The lock ends with the descriptor. File systems without locks are no reason to stop. */
static bool is_taken(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) && (errno == EAGAIN || errno == EACCES);
}

static cake_err take_file(cake_partial *partial)
{
    partial->fd = open(partial->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (partial->fd < 0)
        return cake_fail("record", "%s: cannot be created: %s; name a place that can be written to with -o",
                         partial->path, errno == ELOOP ? "a symbolic link is in its place" : strerror(errno));
    struct stat info;
    if (fstat(partial->fd, &info) || !S_ISREG(info.st_mode))
        return cake_fail("record", "%s: is not a regular file; remove it, or name another file with -o",
                         partial->path);
    if (is_taken(partial->fd))
        return cake_fail("record", "%s: another run is writing it; wait for it, or name another file with -o",
                         partial->path);
    int64_t lines = partial->force ? 0 : count_lines(partial->fd);
    if (lines < 0)
        return cake_fail("record", "%s: cannot be read: %s", partial->path, strerror(errno));
    if (lines > 0)
        return cake_fail(
            "record",
            "%s: holds %lld finished requests of a run that was stopped; keep it under another name, "
            "or drop it with --force",
            partial->path, (long long)lines);
    if (ftruncate(partial->fd, 0))
        return cake_fail("record", "%s: cannot be emptied: %s", partial->path, strerror(errno));
    return CAKE_OK;
}

cake_err cake_partial_open(const char *results, bool force, cake_partial **out)
{
    if (!force && exists(results))
        return refuse_existing(results);
    cake_partial *partial = cake_alloc(1, sizeof *partial);
    cake_buf path = {0};
    cake_buf_adds(&path, results);
    cake_buf_adds(&path, ".partial");
    partial->results = cake_copy(results, strlen(results));
    partial->path = path.data;
    partial->force = force;
    cake_err err = take_file(partial);
    if (!err) {
        partial->sync = cake_sync_open(partial->fd);
        *out = partial;
        return CAKE_OK;
    }
    partial->size = 1; /* not ours: it stays */
    cake_partial_close(partial);
    return err;
}

static cake_err broken(cake_partial *partial, int why)
{
    partial->broken = true;
    return cake_fail("record",
                     "%s: cannot be written at byte %lld: %s; the %lld requests finished so far are in it",
                     partial->path, (long long)partial->size, strerror(why), (long long)partial->places.n);
}

cake_err cake_partial_append(cake_partial *partial, int64_t order, const char *line, size_t len)
{
    if (partial->broken)
        return CAKE_ERR_FATAL;
    int late = cake_sync_error(partial->sync);
    if (late)
        return broken(partial, late);
    if (!cake_bytes_write_at(partial->fd, line, len, partial->size)) {
        int why = errno;
        if (ftruncate(partial->fd, (off_t)partial->size))
            why = errno; /* what is left of the line stays; readers take whole lines only */
        return broken(partial, why);
    }
    cake_places_set(&partial->places, order, (cake_place){.offset = partial->size, .len = (int64_t)len});
    partial->size += (int64_t)len;
    cake_sync_dirty(partial->sync);
    return CAKE_OK;
}

/* What finish writes through: bytes gather in block until there are enough of them. */
typedef struct sink {
    int fd;
    cake_buf block;
} sink;

static bool sink_flush(sink *out)
{
    bool done = cake_bytes_write(out->fd, out->block.data, out->block.len);
    cake_buf_cut(&out->block, 0);
    return done;
}

/* Copies [offset, +len) of the partial file. */
static bool copy_range(const cake_partial *partial, int64_t offset, int64_t len, char *piece, sink *out)
{
    while (len > 0) {
        size_t n = len < (int64_t)BLOCK ? (size_t)len : BLOCK;
        if (!cake_bytes_read_at(partial->fd, piece, n, offset))
            return false;
        cake_buf_add(&out->block, piece, n);
        if (out->block.len >= BLOCK && !sink_flush(out))
            return false;
        offset += (int64_t)n;
        len -= (int64_t)n;
    }
    return true;
}

/* Lines that were finished in the order of the input are copied as one range. */
static bool copy_all(const cake_partial *partial, char *piece, sink *out)
{
    for (int64_t i = 0; i < partial->places.end;) {
        cake_place place = cake_places_get(&partial->places, i), next;
        while (++i < partial->places.end &&
               (next = cake_places_get(&partial->places, i)).offset == place.offset + place.len)
            place.len += next.len;
        if (!copy_range(partial, place.offset, place.len, piece, out))
            return false;
    }
    return sink_flush(out);
}

static bool convert_all(const cake_partial *partial,
                        void (*convert)(const char *line, size_t len, cake_buf *out), sink *out)
{
    bool done = true;
    cake_buf line = {0};
    for (int64_t i = 0; done && i < partial->places.end; i++) {
        cake_place place = cake_places_get(&partial->places, i);
        if ((size_t)place.len > line.cap) {
            line.cap = 2 * (size_t)place.len;
            line.data = cake_grow(line.data, line.cap, 1);
        }
        done = cake_bytes_read_at(partial->fd, line.data, (size_t)place.len, place.offset);
        if (done) {
            convert(line.data, (size_t)place.len - 1, &out->block);
            cake_buf_addc(&out->block, '\n');
            if (out->block.len >= BLOCK)
                done = sink_flush(out);
        }
    }
    cake_buf_free(&line);
    return done && sink_flush(out);
}

/* The directory's entry is on disk too, where the file system lets itself be asked. */
static void sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = slash ? cake_copy(path, (size_t)(slash - path) + 1) : cake_copy(".", 1);
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(name);
}

/* Everything into a new file called tmp; errno if it fails. */
static int write_file(const cake_partial *partial, char *tmp,
                      void (*convert)(const char *line, size_t len, cake_buf *out))
{
    struct stat info;
    sink out = {.fd = mkostemp(tmp, O_CLOEXEC)};
    if (out.fd < 0)
        return errno;
    char *piece = cake_alloc(BLOCK, 1);
    bool done = !fstat(partial->fd, &info) && !fchmod(out.fd, info.st_mode & 0777);
    done = done && (convert ? convert_all(partial, convert, &out) : copy_all(partial, piece, &out));
    done = done && (!fsync(out.fd) || errno == EINVAL);
    int why = done ? 0 : errno;
    if (close(out.fd) && !why)
        why = errno;
    if (why)
        unlink(tmp);
    free(piece);
    cake_buf_free(&out.block);
    return why;
}

cake_err cake_partial_finish(cake_partial *partial,
                             void (*convert)(const char *line, size_t len, cake_buf *out))
{
    if (partial->broken)
        return CAKE_ERR_FATAL;
    int64_t missing = cake_places_missing(&partial->places);
    if (missing >= 0)
        return cake_fail("record", "%s: request %lld has no result; the %lld others are in it", partial->path,
                         (long long)missing, (long long)partial->places.n);
    if (!partial->force && exists(partial->results))
        return refuse_existing(partial->results);
    cake_buf tmp = {0};
    cake_buf_adds(&tmp, partial->results);
    cake_buf_adds(&tmp, ".XXXXXX");
    int why = write_file(partial, tmp.data, convert);
    if (!why && rename(tmp.data, partial->results)) {
        why = errno;
        unlink(tmp.data);
    }
    cake_buf_free(&tmp);
    if (why)
        return cake_fail("record", "%s: cannot be written: %s; all %lld results are in %s", partial->results,
                         strerror(why), (long long)partial->places.n, partial->path);
    sync_directory(partial->results);
    unlink(partial->path);
    return CAKE_OK;
}

void cake_partial_close(cake_partial *partial)
{
    if (!partial)
        return;
    cake_sync_close(partial->sync);
    if (partial->fd >= 0 && !partial->size)
        unlink(partial->path);
    if (partial->fd >= 0)
        close(partial->fd);
    cake_places_free(&partial->places);
    free(partial->results);
    free(partial->path);
    free(partial);
}
