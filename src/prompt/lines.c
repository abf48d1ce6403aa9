/* SPDX-License-Identifier: Apache-2.0
 *
 * In: blocks of bytes. Out: lines.
 * Invariant: a byte is searched for a newline once, and the buffer never holds more than CAKE_LINE_MAX and a
 * block.
 */
#include "prompt/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "formats/codec.h"
#include "prompt/sniff.h"

#define BLOCK ((size_t)1 << 20)

/* Makes room for a block after `to`: drops what was returned already, and frees the memory that one long line
 * needed. */
static void make_room(cake_lines *lines)
{
    size_t waiting = lines->to - lines->from;
    if (lines->from) {
        memmove(lines->data, lines->data + lines->from, waiting);
        lines->scanned -= lines->from;
        lines->from = 0;
        lines->to = waiting;
    }
    size_t cap = lines->cap;
    if (cap - waiting < BLOCK)
        cap = 2 * cap < waiting + BLOCK ? waiting + BLOCK : 2 * cap;
    else if (cap > 8 * BLOCK && waiting < BLOCK)
        cap = 2 * BLOCK;
    if (cap > CAKE_LINE_MAX + 2 * BLOCK)
        cap = CAKE_LINE_MAX + 2 * BLOCK;
    if (cap != lines->cap)
        lines->data = cake_grow(lines->data, cap, 1);
    lines->cap = cap;
}

/* Reads the next bytes of the file; *n is 0 at its end. */
static cake_err read_block(cake_lines *lines, char *into, size_t *n)
{
    ssize_t got;
    do
        got = read(lines->fd, into, BLOCK);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return cake_fail("prompt", "%s: cannot be read at byte %lld: %s", lines->name, (long long)lines->read,
                         strerror(errno));
    lines->read += got;
    *n = (size_t)got;
    return CAKE_OK;
}

/* Decompresses the bytes at hand, or else those of one more read, up to a block, so that a pipe is waited for
 * only once. */
static cake_err unpack(cake_lines *lines)
{
    cake_codec_flow flow = {.out = lines->data + lines->to, .n_out = BLOCK};
    cake_err err = CAKE_OK;
    for (int reads = 0; !err && reads < 2; reads++) {
        flow.in = lines->packed + lines->packed_from;
        flow.n_in = lines->packed_to - lines->packed_from;
        const char *wrong = lines->pack->unpack(lines->unpacker, &flow, &lines->whole);
        lines->packed_from = lines->packed_to - flow.n_in;
        if (wrong)
            return cake_fail("prompt", "%s: is damaged at byte %lld, or no %s: %s", lines->name,
                             (long long)cake_lines_used(lines), lines->pack->name, wrong);
        if (reads || flow.n_out < BLOCK)
            break;
        lines->packed_from = lines->packed_to = 0;
        err = read_block(lines, lines->packed, &lines->packed_to);
        lines->ended = !err && !lines->packed_to;
    }
    lines->to += BLOCK - flow.n_out;
    if (!err && lines->ended && !lines->whole)
        err = cake_fail("prompt", "%s: ends at byte %lld in the middle of its %s data: was it cut short?",
                        lines->name, (long long)lines->read, lines->pack->name);
    return err;
}

/* Reads, and decompresses if need be. */
static cake_err fill_plain(cake_lines *lines)
{
    make_room(lines);
    if (lines->pack)
        return unpack(lines);
    size_t n = 0;
    cake_err err = read_block(lines, lines->data + lines->to, &n);
    lines->ended = !err && !n;
    lines->to += n;
    return err;
}

static void use_pack(cake_lines *lines, const cake_codec *pack)
{
    if (!pack)
        return;
    lines->pack = pack;
    lines->unpacker = pack->unpack_open();
    lines->packed = cake_alloc(BLOCK, 1);
    lines->whole = true;
}

/* Starts to decompress when the first block shows a compressed file that its name does not. */
static cake_err look_again(cake_lines *lines, const cake_codec *pack)
{
    use_pack(lines, pack);
    lines->packed_to = lines->to;
    memcpy(lines->packed, lines->data, lines->to);
    lines->to = 0;
    return fill_plain(lines);
}

static cake_err fill(cake_lines *lines)
{
    cake_err err = fill_plain(lines);
    if (err || lines->begun)
        return err;
    lines->begun = true;
    const cake_codec *pack = lines->pack ? NULL : cake_codec_detect(lines->data, lines->to);
    if (pack && (err = look_again(lines, pack)))
        return err;
    return cake_sniff_text(lines->name, lines->data, lines->to);
}

cake_err cake_lines_open(const char *path, cake_lines *lines)
{
    bool standard = !strcmp(path, "-");
    const char *name = standard ? "standard input" : path;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) {
        int why = errno;
        if (fd > STDIN_FILENO)
            close(fd);
        return cake_fail("prompt", "%s: cannot be opened: %s", name, strerror(why));
    }
    if (S_ISDIR(info.st_mode)) {
        if (!standard)
            close(fd);
        return cake_fail("prompt", "%s: is a directory; expected a file of prompts", name);
    }
    *lines = (cake_lines){.name = cake_copy(name, strlen(name)), .fd = fd, .close = !standard};
    lines->size = S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
    use_pack(lines, standard ? NULL : cake_codec_of(path));
    return CAKE_OK;
}

void cake_lines_from_bytes(const char *bytes, size_t len, cake_lines *lines)
{
    *lines = (cake_lines){.fd = -1, .begun = true, .ended = true, .to = len, .cap = len};
    lines->name = cake_copy("memory", 6);
    lines->data = cake_copy(bytes, len);
    lines->size = lines->read = (int64_t)len;
}

/* The end of the next line in the buffer: after its newline, or at the end of input. NULL: not in the buffer
 * yet. */
static const char *find_end(cake_lines *lines)
{
    size_t length = lines->to - lines->scanned;
    const char *end = length ? memchr(lines->data + lines->scanned, '\n', length) : NULL;
    lines->scanned = end ? (size_t)(end - lines->data) : lines->to;
    lines->unended = !end;
    if (!end && lines->ended && (lines->from < lines->to || lines->dropped))
        end = lines->data + lines->to;
    return end;
}

/* Reads on to the end of a line, which may be the end of input. */
static cake_err reach_end(cake_lines *lines, const char **end, bool (*more)(const cake_lines *lines))
{
    while (!(*end = find_end(lines))) {
        if (lines->ended || !more(lines))
            return CAKE_END;
        if (lines->to - lines->from > CAKE_LINE_MAX + 1) {
            lines->dropped += lines->to - lines->from;
            lines->from = lines->scanned = lines->to;
        }
        cake_err err = fill(lines);
        if (err)
            return err;
    }
    return CAKE_OK;
}

static bool always(const cake_lines *lines)
{
    (void)lines;
    return true;
}

/* Whether a read would not block. Files never do; sources that cannot be polled count as files. */
static bool at_hand(const cake_lines *lines)
{
    struct pollfd asked = {.fd = lines->fd, .events = POLLIN};
    return lines->size >= 0 || lines->packed_from < lines->packed_to || poll(&asked, 1, 0) != 0;
}

bool cake_lines_peek(cake_lines *lines, const char **line, size_t *len)
{
    const char *end;
    *line = NULL;
    *len = 0;
    lines->failed = lines->failed ? lines->failed : reach_end(lines, &end, at_hand);
    if (lines->failed == CAKE_END && !lines->ended) {
        lines->failed = CAKE_OK;
        return false;
    }
    if (!lines->failed && !lines->dropped) {
        *line = lines->data + lines->from;
        *len = (size_t)(end - *line);
    }
    return true;
}

cake_err cake_lines_next(cake_lines *lines, const char **line, size_t *len)
{
    const char *end;
    cake_err err = lines->failed ? lines->failed : reach_end(lines, &end, always);
    if (err)
        return lines->failed = err;
    if (!lines->started && end - lines->data >= 3 && !memcmp(lines->data, "\xEF\xBB\xBF", 3))
        lines->from = 3; /* the first line does not include a byte order mark */
    lines->started = true;
    const char *begin = lines->data + lines->from;
    uint64_t length = (uint64_t)(end - begin) + lines->dropped;
    lines->from = (size_t)(end - lines->data) + !lines->unended;
    lines->scanned = lines->from;
    lines->dropped = 0;
    if (length <= CAKE_LINE_MAX + 1 && length > 0 && end[-1] == '\r')
        length--;
    *line = length > CAKE_LINE_MAX ? NULL : begin;
    *len = (size_t)length;
    return CAKE_OK;
}

int64_t cake_lines_used(const cake_lines *lines)
{
    size_t waiting = lines->pack ? lines->packed_to - lines->packed_from : lines->to - lines->from;
    return lines->read - (int64_t)waiting;
}

void cake_lines_close(cake_lines *lines)
{
    if (lines->unpacker)
        lines->pack->unpack_close(lines->unpacker);
    free(lines->packed);
    if (lines->close)
        close(lines->fd);
    free(lines->name);
    free(lines->data);
    *lines = (cake_lines){.fd = -1};
}
