/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the head of a bundle, bytes of its tensors. Out: a directory with the bundle.
 *
 * Until the end, tensors are in model.safetensors.partial, and bundle.partial has the head and one line with
 * the checksum of each finished tensor. A line counts only if the bytes match it, so writes need no order. At
 * the end data, files and bundle.json are synced in this order.
 *
 * Invariant: a directory with a bundle.json has everything that it names; one without is overwritten only if
 * it has a bundle.partial or no tensors.
 */
#include "bundle/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/io.h"
#include "base/log.h"

#define DATA         "model.safetensors"
#define DATA_TEMP    DATA ".partial"
#define JOURNAL      "bundle.partial"
#define JOURNAL_TEMP JOURNAL ".tmp" /* left by an attempt that was killed at once */
#define LARGEST      ((size_t)1 << 30)

enum { CHUNK = 1 << 20, LINE = 24 };

struct cake_bundle_writer {
    cake_buf path; /* of the directory */
    cake_bundle *wanted;
    const char *head;
    int fd; /* of the directory: its lock */
    int data, journal;
    cake_buf header; /* header of the data file */
    int64_t *at;     /* [n_tensor] offset of each in the file */
    int64_t size, kept;
    bool *complete; /* [n_tensor] */
    bool whole;
};

void cake_bundle_writer_path(const char *dir, int rank, cake_buf *out)
{
    cake_buf_addf(out, "%s/rank-%04d", dir, rank);
}

/* The path of a file of the bundle; valid until the next call. */
static const char *name_of(const cake_bundle_writer *s, const char *name)
{
    static cake_buf path;
    cake_buf_cut(&path, 0);
    cake_buf_addf(&path, "%s/%s", s->path.data, name);
    return path.data;
}

static bool exists(const cake_bundle_writer *s, const char *name)
{
    struct stat st;
    return !lstat(name_of(s, name), &st);
}

static cake_err fail(const char *path, const char *what, int error)
{
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return cake_fail(
        "bundle", "%s: cannot be %s: %s%s", path, what, strerror(error),
        full ? "; what is written so far is kept: free some space, and start the same command again" : "");
}

/* ---- files of an earlier attempt */

/* Reads bundle.json or bundle.partial: the text of its head, and the head with its checksums. NULL: missing
 * or unusable. */
static cake_bundle *read_earlier(const char *dir, bool finished, cake_buf *head)
{
    cake_buf path = {0}, text = {0}, dropped = {0};
    cake_bundle *b = NULL;
    cake_buf *previous = cake_log_capture(&dropped);
    cake_buf_addf(&path, "%s/" JOURNAL, dir);
    if (finished) {
        if (!cake_bundle_open(dir, &b)) {
            const char *name = CAKE_BUNDLE_NAME;
            cake_buf_cut(&path, path.len - (sizeof JOURNAL - 1));
            cake_buf_adds(&path, name);
            cake_file_read("bundle", path.data, false, LARGEST, &text);
        }
    } else if (!cake_file_read("bundle", path.data, true, LARGEST, &text) && text.data) {
        char *end = strchr(text.data, '\n');
        if (end && !cake_bundle_parse(text.data, (size_t)(end - text.data), path.data, &b)) {
            unsigned index, sum;
            for (char *line = end + 1; sscanf(line, "%8x %u\n", &sum, &index) == 2; line = end + 1) {
                end = strchr(line, '\n');
                if (!end || index >= (unsigned)b->n_tensor) /* a line that a killed attempt left incomplete */
                    break;
                b->held[index] = true;
                b->sum[index] = sum;
            }
        }
    }
    if (b && head) {
        size_t len = strcspn(text.data, "\n");
        cake_buf_add(head, text.data, len);
        if (finished) { /* the checksums follow, so a comma replaces the closing brace */
            cake_buf_cut(head, len - 1);
            cake_buf_addc(head, '}');
        }
    }
    cake_log_capture(previous);
    cake_buf_free(&dropped);
    cake_buf_free(&path);
    cake_buf_free(&text);
    return b;
}

int cake_bundle_writer_beyond(const char *dir, int n_rank)
{
    DIR *list = opendir(dir);
    int lowest = -1;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        int rank, used = 0;
        bool is_rank = sscanf(entry->d_name, "rank-%9d%n", &rank, &used) == 1 && !entry->d_name[used];
        if (!is_rank || rank < n_rank || (lowest >= 0 && rank > lowest))
            continue;
        cake_bundle *old = cake_bundle_writer_peek(dir, rank);
        lowest = old ? rank : lowest;
        cake_bundle_close(old);
    }
    if (list)
        closedir(list);
    return lowest;
}

cake_bundle *cake_bundle_writer_peek(const char *dir, int rank)
{
    cake_buf path = {0};
    cake_bundle_writer_path(dir, rank, &path);
    cake_bundle *b = read_earlier(path.data, false, NULL);
    b = b ? b : read_earlier(path.data, true, NULL);
    cake_buf_free(&path);
    return b;
}

/* Whether the tensor's bytes in the file have the checksum. */
static bool verify(const cake_bundle_writer *s, int fd, int tensor, uint32_t expected)
{
    const cake_tensor *t = &s->wanted->tensor[tensor];
    int64_t bytes = t->end - t->begin;
    char *chunk = cake_alloc(CHUNK, 1);
    uint32_t sum = 0;
    bool right = true;
    for (int64_t at = 0; right && at < bytes; at += CHUNK) {
        size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        right = cake_io_read_at(fd, chunk, n, s->at[tensor] + at);
        sum = right ? cake_crc_on(sum, chunk, n) : sum;
    }
    free(chunk);
    return right && sum == expected;
}

static bool same_header(const cake_bundle_writer *s, int fd)
{
    struct stat st;
    char *found = cake_alloc(s->header.len, 1);
    bool same = !fstat(fd, &st) && st.st_size == s->size && cake_io_read_at(fd, found, s->header.len, 0) &&
                !memcmp(found, s->header.data, s->header.len);
    free(found);
    return same;
}

/* Finds the tensors that are complete, of those that `earlier` lists. Returns whether the whole file is. */
static bool find_complete(cake_bundle_writer *s, const cake_bundle *earlier, const char *name)
{
    int fd = open(name_of(s, name), O_RDONLY | O_CLOEXEC);
    bool all = fd >= 0 && same_header(s, fd);
    for (int i = 0; i < earlier->n_tensor && fd >= 0; i++) {
        if (!s->wanted->held[i])
            continue;
        s->complete[i] = earlier->held[i] && verify(s, fd, i, earlier->sum[i]);
        s->wanted->sum[i] = earlier->sum[i];
        s->kept += s->complete[i] ? earlier->tensor[i].end - earlier->tensor[i].begin : 0;
        all = all && s->complete[i];
    }
    if (fd >= 0)
        close(fd);
    return all;
}

static bool files_right(const cake_bundle_writer *s)
{
    cake_buf dropped = {0};
    cake_buf *previous = cake_log_capture(&dropped);
    bool right = !cake_bundle_check_files(s->wanted, s->path.data);
    cake_log_capture(previous);
    cake_buf_free(&dropped);
    return right;
}

/* Examines the files of an earlier attempt. *finished: there is a bundle.json. */
static void examine(cake_bundle_writer *s, bool *finished)
{
    *finished = exists(s, CAKE_BUNDLE_NAME);
    for (int i = *finished; i >= 0; i--) {
        cake_buf head = {0};
        cake_bundle *earlier = read_earlier(s->path.data, i, &head);
        bool same = earlier && !strcmp(head.data, s->head);
        if (same) {
            bool all = find_complete(s, earlier, i || !exists(s, DATA_TEMP) ? DATA : DATA_TEMP);
            s->whole = all && i && files_right(s);
        }
        cake_bundle_close(earlier);
        cake_buf_free(&head);
        if (same)
            return;
    }
}

/* ---- writing */

static cake_err write_all(int fd, const char *path, int64_t at, const void *bytes, size_t len)
{
    return cake_io_write_at(fd, bytes, len, at) ? CAKE_OK : fail(path, "written", errno);
}

/* Writes a file atomically and syncs it. */
static cake_err write_file(const cake_bundle_writer *s, const char *name, const char *bytes, size_t len)
{
    cake_buf path = {0}, temp = {0};
    cake_buf_addf(&path, "%s/%s", s->path.data, name);
    cake_buf_addf(&temp, "%s.tmp", path.data);
    int fd = open(temp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    cake_err err = fd < 0 ? fail(temp.data, "written", errno) : write_all(fd, temp.data, 0, bytes, len);
    if (!err && fsync(fd))
        err = fail(temp.data, "written", errno);
    if (fd >= 0 && close(fd) && !err)
        err = fail(temp.data, "written", errno);
    if (!err && rename(temp.data, path.data))
        err = fail(path.data, "written", errno);
    if (err && fd >= 0)
        unlink(temp.data);
    cake_buf_free(&temp);
    cake_buf_free(&path);
    return err;
}

static void add_line(const cake_bundle_writer *s, int tensor, cake_buf *out)
{
    cake_buf_addf(out, "%08x %d\n", (unsigned)s->wanted->sum[tensor], tensor);
}

static cake_err start_journal(cake_bundle_writer *s)
{
    cake_buf text = {0};
    cake_buf_addf(&text, "%s\n", s->head);
    for (int i = 0; i < s->wanted->n_tensor; i++)
        if (s->complete[i])
            add_line(s, i, &text);
    cake_err err = write_file(s, JOURNAL, text.data, text.len);
    cake_buf_free(&text);
    if (err)
        return err;
    s->journal = open(name_of(s, JOURNAL), O_WRONLY | O_APPEND | O_CLOEXEC);
    return s->journal < 0 ? fail(name_of(s, JOURNAL), "opened", errno) : CAKE_OK;
}

/* Makes the tensor file at its full size, so that a full disk shows before anything is read. */
static cake_err start_data(cake_bundle_writer *s)
{
    if (!exists(s, DATA_TEMP) && exists(s, DATA)) {
        cake_buf from = {0};
        cake_buf_adds(&from, name_of(s, DATA));
        int failed = rename(from.data, name_of(s, DATA_TEMP)) ? errno : 0;
        cake_buf_free(&from);
        if (failed)
            return fail(name_of(s, DATA), "renamed", failed);
    }
    const char *path = name_of(s, DATA_TEMP);
    s->data = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->data < 0)
        return fail(path, "written", errno);
    int error = posix_fallocate(s->data, 0, (off_t)s->size);
    if (error && error != EOPNOTSUPP && error != EINVAL)
        return fail(path, "set to its size", error);
    if (ftruncate(s->data, (off_t)s->size))
        return fail(path, "set to its size", errno);
    return write_all(s->data, path, 0, s->header.data, s->header.len);
}

/* Checks that the files to write are regular files of this bundle: no links to another bundle, no
 * directories. */
static cake_err check_own(const cake_bundle_writer *s)
{
    static const char *const names[] = {DATA, DATA_TEMP, JOURNAL, JOURNAL_TEMP, CAKE_BUNDLE_NAME};
    struct stat st;
    if (!lstat(s->path.data, &st) && S_ISLNK(st.st_mode))
        return cake_fail("bundle", "%s: is a symbolic link, perhaps to a bundle of another set: remove it",
                         s->path.data);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = name_of(s, names[i]);
        if (!lstat(path, &st) && !S_ISREG(st.st_mode))
            return cake_fail("bundle", "%s: is %s, where stage writes a file of its own: remove it", path,
                             S_ISLNK(st.st_mode) ? "a symbolic link" : "a directory or a device");
    }
    return CAKE_OK;
}

/* Refuses a non-empty directory that stage did not write. */
static cake_err check_foreign(const cake_bundle_writer *s)
{
    DIR *dir = opendir(s->path.data);
    cake_err err = dir ? CAKE_OK : fail(s->path.data, "opened", errno);
    for (struct dirent *e; !err && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, JOURNAL_TEMP))
            err = cake_fail(
                "bundle",
                "%s already exists, but cake-mpi stage did not write it: give another directory with -d",
                name_of(s, e->d_name));
    if (dir)
        closedir(dir);
    return err;
}

/* Starts writing: from now until it is finished the directory is no bundle. */
static cake_err start(cake_bundle_writer *s, bool finished)
{
    if (!finished && !exists(s, JOURNAL)) {
        cake_err foreign = check_foreign(s);
        if (foreign)
            return foreign;
    }
    if (finished)
        cake_log(CAKE_INFO, "bundle", "%s: %s", s->path.data,
                 s->kept ? "damaged parts are replaced"
                         : "a bundle of another model or plan, or damaged: replaced");
    cake_err err = check_own(s);
    if (!err)
        err = start_journal(s);
    if (!err && finished && unlink(name_of(s, CAKE_BUNDLE_NAME)))
        err = fail(name_of(s, CAKE_BUNDLE_NAME), "removed", errno);
    return err ? err : start_data(s);
}

cake_err cake_bundle_writer_make(const char *path)
{
    char *part = cake_copy(path, strlen(path));
    cake_err err = CAKE_OK;
    for (char *at = part + 1; !err; at++) {
        char separator = *at;
        if (separator && separator != '/')
            continue;
        *at = 0;
        struct stat st;
        if (mkdir(part, 0777) && errno != EEXIST)
            err = fail(part, "made", errno);
        else if (!stat(part, &st) && !S_ISDIR(st.st_mode))
            err = cake_fail("bundle", "%s: is not a directory", part);
        *at = separator;
        if (!separator)
            break;
    }
    free(part);
    return err;
}

static cake_err lock(cake_bundle_writer *s)
{
    s->fd = open(s->path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->fd < 0)
        return fail(s->path.data, "opened", errno);
    if (flock(s->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return cake_fail("bundle", "%s: another cake-mpi stage is writing there: wait for it", s->path.data);
    return CAKE_OK;
}

cake_err cake_bundle_writer_open(const char *dir, cake_bundle *wanted, const char *head,
                                 cake_bundle_writer **out)
{
    cake_bundle_writer *s = cake_alloc(1, sizeof *s);
    *s = (cake_bundle_writer){.wanted = wanted, .head = head, .fd = -1, .data = -1, .journal = -1};
    s->at = cake_alloc((size_t)wanted->n_tensor, sizeof *s->at);
    s->complete = cake_alloc((size_t)wanted->n_tensor, sizeof *s->complete);
    s->size = cake_bundle_add_tensors(wanted, &s->header, s->at);
    cake_bundle_writer_path(dir, wanted->rank, &s->path);
    bool finished = false;
    cake_err err = cake_bundle_writer_make(s->path.data);
    if (!err)
        err = lock(s);
    if (!err)
        examine(s, &finished);
    if (!err && !s->whole)
        err = start(s, finished);
    else if (!err)
        unlink(name_of(s, JOURNAL)); /* of an attempt that was killed just before its end */
    if (err)
        cake_bundle_writer_close(s);
    else
        *out = s;
    return err;
}

void cake_bundle_writer_close(cake_bundle_writer *s)
{
    if (!s)
        return;
    for (int i = 0; i < 3; i++) {
        int fd = i == 0 ? s->data : i == 1 ? s->journal : s->fd;
        if (fd >= 0)
            close(fd);
    }
    cake_buf_free(&s->header);
    cake_buf_free(&s->path);
    free(s->at);
    free(s->complete);
    free(s);
}

bool cake_bundle_writer_whole(const cake_bundle_writer *s)
{
    return s->whole;
}

bool cake_bundle_writer_has(const cake_bundle_writer *s, int tensor)
{
    return s->complete[tensor];
}

int64_t cake_bundle_writer_kept(const cake_bundle_writer *s)
{
    return s->kept;
}

cake_err cake_bundle_writer_write(cake_bundle_writer *s, int tensor, int64_t offset, const void *bytes,
                                  size_t len)
{
    const cake_tensor *t = &s->wanted->tensor[tensor];
    uint32_t *sum = &s->wanted->sum[tensor];
    *sum = cake_crc_on(offset ? *sum : 0, bytes, len);
    cake_err err = write_all(s->data, name_of(s, DATA_TEMP), s->at[tensor] + offset, bytes, len);
    if (err || offset + (int64_t)len < t->end - t->begin)
        return err;
    cake_buf line = {0};
    add_line(s, tensor, &line);
    s->complete[tensor] = true;
    if (write(s->journal, line.data, line.len) != (ssize_t)line.len)
        err = fail(name_of(s, JOURNAL), "written", errno);
    cake_buf_free(&line);
    return err;
}

static cake_err finish_data(cake_bundle_writer *s)
{
    cake_buf from = {0};
    cake_err err = CAKE_OK;
    cake_buf_adds(&from, name_of(s, DATA_TEMP));
    if (fsync(s->data))
        err = fail(from.data, "synced to disk", errno);
    else if (rename(from.data, name_of(s, DATA)))
        err = fail(from.data, "renamed", errno);
    cake_buf_free(&from);
    return err;
}

static cake_err finish_files(cake_bundle_writer *s, const cake_buf *text)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < s->wanted->n_file && !err; i++) {
        const char *name = s->wanted->file[i].name, *part = strchr(name, '/');
        if (!cake_bundle_has_file(s->wanted, i))
            continue;
        if (part) {
            cake_buf parent = {0};
            cake_buf_addf(&parent, "%s/%.*s", s->path.data, (int)(part - name), name);
            err = cake_bundle_writer_make(parent.data);
            cake_buf_free(&parent);
        }
        if (!err)
            err = write_file(s, name, text[i].data, text[i].len);
    }
    return err;
}

cake_err cake_bundle_writer_finish(cake_bundle_writer *s, const cake_buf *text)
{
    cake_buf manifest = {0};
    cake_err err = finish_data(s);
    if (!err)
        err = finish_files(s, text);
    cake_bundle_add(s->wanted, s->head, &manifest);
    if (!err)
        err = write_file(s, CAKE_BUNDLE_NAME, manifest.data, manifest.len);
    cake_buf_free(&manifest);
    if (!err && fsync(s->fd) && errno != EINVAL) /* some file systems cannot sync directories */
        err = fail(s->path.data, "synced to disk", errno);
    if (!err)
        unlink(name_of(s, JOURNAL));
    return err;
}
