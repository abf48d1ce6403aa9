/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file's tag and size, its bytes from the hub. Out: blobs/ETAG.
 * Invariants: ETAG.incomplete is written at the offsets of the file and never cut, so two processes that
 * write it (where locks do not work) write the same bytes. It is renamed only after its sum was checked.
 */
#include "hub/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/log.h"
#include "hub/folder.h"
#include "hub/sha.h"

enum { PIECE = 1 << 20 };

typedef struct blob {
    const cake_hub_place *place;
    const cake_hub_source *source;
    const cake_hub_meta *meta;
    char incomplete[CAKE_HUB_ETAG + 16];
    int fd; /* of the incomplete file */
    bool summed;
    cake_sha sum;
    cake_hub_progress progress;
    void *own;
    int64_t reported; /* bytes that `progress` knows of */
} blob;

/* Bytes of a file in blobs/; -1: none. A link counts only if it leads to the shared blobs. */
static int64_t size_of_blob(const cake_hub_place *place, const char *name)
{
    struct stat info;
    cake_buf text = {0};
    if (fstatat(place->blobs, name, &info, AT_SYMLINK_NOFOLLOW))
        return -1;
    int64_t size = S_ISREG(info.st_mode) ? info.st_size : -1;
    if (S_ISLNK(info.st_mode) && cake_folder_read_link(place->blobs, name, &text) &&
        !strncmp(text.data, "../../blobs/", 12) && !strstr(text.data + 12, "..") &&
        !fstatat(place->top, text.data + 6, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode))
        size = info.st_size;
    cake_buf_free(&text);
    return size;
}

static void name_incomplete(const cake_hub_meta *meta, char name[CAKE_HUB_ETAG + 16])
{
    snprintf(name, CAKE_HUB_ETAG + 16, "%s.incomplete", meta->etag);
}

int64_t cake_hub_blob_have(const cake_hub_place *place, const cake_hub_meta *meta)
{
    char name[CAKE_HUB_ETAG + 16];
    name_incomplete(meta, name);
    int64_t whole = size_of_blob(place, meta->etag), part = size_of_blob(place, name);
    return whole == meta->size ? whole : part > 0 && part <= meta->size ? part : 0;
}

static cake_err fail_file(const blob *b, const char *doing)
{
    return cake_fail("hub", "%s: %s cannot be %s in the cache: %s%s", b->source->id, b->source->file, doing,
                     strerror(errno),
                     errno == ENOSPC || errno == EDQUOT ? "; the same command goes on from here" : "");
}

bool cake_hub_blob_is_summed(const cake_hub_meta *meta)
{
    return cake_hub_is_hex(meta->etag, 64) || cake_hub_is_hex(meta->etag, 40);
}

static void begin_sum(blob *b)
{
    char head[32];
    size_t len = strlen(b->meta->etag);
    b->summed = cake_hub_blob_is_summed(b->meta);
    cake_sha_begin(&b->sum, len == 64 ? CAKE_SHA256 : CAKE_SHA1);
    if (len == 40) /* git sums a header, too */
        cake_sha_add(&b->sum, head,
                     (size_t)snprintf(head, sizeof head, "blob %lld", (long long)b->meta->size) + 1);
}

static void tell(blob *b, int64_t have)
{
    if (b->progress)
        b->progress(b->own, have - b->reported);
    b->reported = have;
}

static bool take(void *own, int64_t at, const char *bytes, size_t len)
{
    blob *b = own;
    if (!cake_io_write_at(b->fd, bytes, len, at)) {
        fail_file(b, "written");
        return false;
    }
    if (b->summed)
        cake_sha_add(&b->sum, bytes, len);
    tell(b, at + (int64_t)len);
    return true;
}

static void restart(void *own)
{
    blob *b = own;
    begin_sum(b);
    tell(b, 0);
}

/* Sums what an interrupted download left. */
static cake_err sum_beginning(blob *b, int64_t have)
{
    char *piece = cake_alloc(PIECE, 1);
    cake_err err = CAKE_OK;
    for (int64_t at = 0; at < have && b->summed && !err;) {
        size_t n = have - at < PIECE ? (size_t)(have - at) : PIECE;
        if (!cake_io_read_at(b->fd, piece, n, at))
            err = fail_file(b, "read");
        else
            cake_sha_add(&b->sum, piece, n);
        at += (int64_t)n;
    }
    free(piece);
    return err;
}

static cake_err open_incomplete(blob *b, int64_t *have)
{
    struct stat info;
    *have = 0;
    for (int turn = 0; turn < 2; turn++) {
        b->fd = openat(b->place->blobs, b->incomplete, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (b->fd < 0 && errno != ELOOP)
            return fail_file(b, "written");
        if (b->fd >= 0 && !fstat(b->fd, &info) && S_ISREG(info.st_mode) && info.st_size <= b->meta->size) {
            *have = info.st_size;
            return CAKE_OK;
        }
        if (b->fd >= 0) /* longer than the file, or no file: not ours */
            close(b->fd);
        b->fd = -1;
        unlinkat(b->place->blobs, b->incomplete, 0);
    }
    return fail_file(b, "written");
}

/* Waits for its turn; -1: this file system has no locks, and writing at offsets has to do. */
static int lock(const blob *b)
{
    char name[CAKE_HUB_ETAG + 8];
    snprintf(name, sizeof name, "%s.lock", b->meta->etag);
    int fd = openat(b->place->locks, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0664);
    if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
        return fd;
    bool held = errno == EWOULDBLOCK;
    if (held)
        cake_log(CAKE_INFO, "hub", "%s: another process downloads %s: waiting for it", b->source->id,
                 b->source->file);
    while (held && flock(fd, LOCK_EX))
        held = errno == EINTR;
    return fd;
}

/* Whether the bytes are those of the tag; a tag of another kind says nothing about them. */
static bool is_right(blob *b)
{
    char hex[CAKE_SHA_HEX];
    if (!b->summed)
        return true;
    cake_sha_hex(&b->sum, hex);
    return !strcmp(hex, b->meta->etag);
}

/* Gives the complete file its name. Another process may have done so. */
static cake_err finish(blob *b)
{
    if (fsync(b->fd))
        return fail_file(b, "written");
    if (!renameat(b->place->blobs, b->incomplete, b->place->blobs, b->meta->etag) ||
        size_of_blob(b->place, b->meta->etag) == b->meta->size)
        return CAKE_OK;
    return fail_file(b, "written");
}

/* One download. CAKE_END: the bytes are wrong. */
static cake_err download(cake_hub_client *client, blob *b)
{
    cake_hub_sink sink = {.size = b->meta->size, .take = take, .restart = restart, .own = b};
    cake_err err = open_incomplete(b, &sink.have);
    if (err)
        return err;
    begin_sum(b);
    tell(b, sink.have);
    err = sum_beginning(b, sink.have);
    if (!err)
        err = cake_hub_client_fetch(client, b->source, &sink);
    if (!err && !is_right(b)) {
        unlinkat(b->place->blobs, b->incomplete, 0);
        tell(b, 0);
        err = CAKE_END;
    }
    if (!err)
        err = finish(b);
    close(b->fd);
    return err;
}

cake_err cake_hub_blob_fetch(cake_hub_client *client, const cake_hub_place *place,
                             const cake_hub_source *source, const cake_hub_meta *meta,
                             cake_hub_progress progress, void *own)
{
    blob b = {.place = place, .source = source, .meta = meta, .fd = -1, .progress = progress, .own = own};
    cake_err err = CAKE_OK;
    b.reported = cake_hub_blob_have(place, meta);
    name_incomplete(meta, b.incomplete);
    int held = lock(&b);
    if (size_of_blob(place, meta->etag) == meta->size) {
        tell(&b, meta->size);
    } else {
        err = download(client, &b);
        if (err == CAKE_END) {
            cake_log(CAKE_WARN, "hub", "%s: %s has the wrong checksum: downloading it again", source->id,
                     source->file);
            err = download(client, &b);
        }
        if (err == CAKE_END)
            err = cake_fail(
                "hub", "%s: %s has the wrong checksum (%s), twice: the hub or something between changes it",
                source->id, source->file, b.summed && strlen(meta->etag) == 64 ? "SHA-256" : "git's SHA-1");
    }
    if (held >= 0)
        close(held);
    return err;
}
