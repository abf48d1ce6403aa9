/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a journal's descriptor and its line index. Out: a new file with the lines in input order, its size and
 * checksum. Invariant: memory is one block or the longest line; the checksum covers the bytes of the file
 * itself.
 */
#include "record/finalize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/io.h"
#include "formats/codec.h"
#include "record/hdf5.h"

#define BLOCK ((size_t)1 << 20)

/* Buffered output, compressed if `pack` is set. */
typedef struct sink {
    int from, fd;
    cake_buf block;
    const cake_codec *pack; /* NULL: not compressed */
    void *packer;
    cake_buf packed;
    cake_file_digest all;
} sink;

static bool flush(sink *out, bool last)
{
    cake_buf *bytes = &out->block;
    if (out->pack) {
        bytes = &out->packed;
        cake_buf_cut(bytes, 0);
        out->pack->pack(out->packer, out->block.data, out->block.len, last, bytes);
    }
    bool done = cake_io_write(out->fd, bytes->data, bytes->len);
    out->all.sum = cake_crc_on(out->all.sum, bytes->data, bytes->len);
    out->all.bytes += (int64_t)bytes->len;
    cake_buf_cut(&out->block, 0);
    return done;
}

static bool copy_range(int64_t offset, int64_t len, char *piece, sink *out)
{
    while (len > 0) {
        size_t n = len < (int64_t)BLOCK ? (size_t)len : BLOCK;
        if (!cake_io_read_at(out->from, piece, n, offset))
            return false;
        cake_buf_add(&out->block, piece, n);
        if (out->block.len >= BLOCK && !flush(out, false))
            return false;
        offset += (int64_t)n;
        len -= (int64_t)n;
    }
    return true;
}

/* Copies contiguous lines as one range. */
static bool copy_all(const cake_line_index *lines, sink *out)
{
    char *piece = cake_alloc(BLOCK, 1);
    bool done = true;
    for (int64_t i = 0; i < lines->end && done;) {
        cake_line_span span = cake_line_index_get(lines, i), next;
        int64_t len = span.len;
        while (++i < lines->end && (next = cake_line_index_get(lines, i)).offset == span.offset + len)
            len += next.len;
        done = copy_range(span.offset, len, piece, out);
    }
    free(piece);
    return done && flush(out, true);
}

static bool convert_all(const cake_line_index *lines, cake_convert *convert, sink *out)
{
    bool done = true;
    cake_buf line = {0};
    for (int64_t i = 0; done && i < lines->end; i++) {
        cake_line_span span = cake_line_index_get(lines, i);
        cake_buf_room(&line, (size_t)span.len);
        done = cake_io_read_at(out->from, line.data, line.len, span.offset);
        if (done && !convert(line.data, line.len - 1, &out->block)) {
            done = false;
            errno = EBADMSG;
        }
        if (done) {
            cake_buf_addc(&out->block, '\n');
            if (out->block.len >= BLOCK)
                done = flush(out, false);
        }
    }
    cake_buf_free(&line);
    return done && flush(out, true);
}

void cake_finalize_fsync_dir(const char *path)
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

/* Checksums a file that another library wrote. */
static bool sum_up(sink *out)
{
    char *piece = cake_alloc(BLOCK, 1);
    ssize_t n;
    while ((n = pread(out->fd, piece, BLOCK, (off_t)out->all.bytes)) > 0) {
        out->all.sum = cake_crc_on(out->all.sum, piece, (size_t)n);
        out->all.bytes += n;
    }
    free(piece);
    return n == 0;
}

static bool write_columns(const cake_line_index *lines, const cake_journal_header *header,
                          const char *command, const char *path, sink *out)
{
    int why = cake_hdf5_write(out->from, lines, header, command, path);
    errno = why;
    return !why && sum_up(out);
}

int cake_finalize_write(int fd, const cake_line_index *lines, const cake_journal_header *header,
                        const cake_finalize_form *form, const char *tmp, cake_file_digest *result)
{
    struct stat info;
    unlink(tmp); /* left by a killed run */
    sink out = {.from = fd, .fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), .pack = form->pack};
    if (out.fd < 0)
        return errno;
    out.packer = out.pack ? out.pack->pack_open() : NULL;
    bool done = !fstat(fd, &info) && !fchmod(out.fd, info.st_mode & 0777);
    if (done && form->hdf5)
        done = write_columns(lines, header, form->command, tmp, &out);
    else if (done)
        done = form->convert ? convert_all(lines, form->convert, &out) : copy_all(lines, &out);
    done = done && (!fsync(out.fd) || errno == EINVAL);
    int why = done ? 0 : errno;
    if (close(out.fd) && !why)
        why = errno;
    if (why)
        unlink(tmp);
    if (out.packer)
        out.pack->pack_close(out.packer);
    cake_buf_free(&out.packed);
    cake_buf_free(&out.block);
    *result = out.all;
    return why;
}
