/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name and globs. Out: blobs, then the links of the snapshot, then the ref.
 */
#include "hub/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "hub/cache.h"
#include "hub/folder.h"

/* Makes the directories of the path. */
static bool make_path(const char *path)
{
    char *copy = cake_copy(path, strlen(path));
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)!mkdir(copy, 0777);
        *slash = '/';
    }
    bool good = !mkdir(copy, 0777) || errno == EEXIST;
    free(copy);
    return good;
}

static void close_place(cake_hub_place *p)
{
    int *fds[] = {&p->top, &p->model, &p->blobs, &p->snapshots, &p->refs, &p->locks};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

static cake_err open_place(const char *cache, const char *id, cake_hub_place *p)
{
    char folder[CAKE_HUB_FOLDER];
    cake_hub_name_folder(id, folder);
    *p = (cake_hub_place){-1, -1, -1, -1, -1, -1};
    p->top = make_path(cache) ? open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (p->top < 0)
        return cake_fail("hub", "%s: the cache cannot be written: %s; HF_HOME names another place", cache,
                         strerror(errno));
    int locks = cake_folder_open(p->top, ".locks", true);
    p->locks = locks >= 0 ? cake_folder_open(locks, folder, true) : -1;
    if (locks >= 0)
        close(locks);
    p->model = cake_folder_open(p->top, folder, true);
    if (p->model >= 0) {
        p->blobs = cake_folder_open(p->model, "blobs", true);
        p->snapshots = p->blobs < 0 ? -1 : cake_folder_open(p->model, "snapshots", true);
        p->refs = p->snapshots < 0 ? -1 : cake_folder_open(p->model, "refs", true);
    }
    if (p->refs >= 0)
        return CAKE_OK;
    bool link = errno == ELOOP || errno == ENOTDIR;
    return cake_fail("hub", "%s/%s: %s%s", cache, folder,
                     link ? "has a symbolic link or a file where a directory belongs" : "cannot be written: ",
                     link ? "" : strerror(errno));
}

/* A file that is wanted and not in the snapshot yet. */
typedef struct wanted_file {
    const char *file; /* borrowed from the listing */
    cake_hub_meta meta;
} wanted_file;

/* A pull under way. */
typedef struct pull {
    const cake_hub_pull_options *o;
    cake_hub_client *client;
    cake_hub_listing listing;
    cake_hub_place place;
    wanted_file *file; /* [n] */
    size_t n, n_file;  /* n_file: all that are wanted */
    int64_t bytes, have;
} pull;

static bool is_in_snapshot(const pull *p, const char *file, int64_t *bytes)
{
    cake_hub_file_kind kind = cake_hub_look(p->place.model, p->listing.commit, file, bytes);
    return kind == CAKE_HUB_PLAIN || kind == CAKE_HUB_BLOB || kind == CAKE_HUB_SHARED;
}

static cake_err describe_files(pull *p)
{
    cake_err err = CAKE_OK;
    p->file = cake_alloc(p->listing.n, sizeof *p->file);
    for (size_t i = 0; i < p->listing.n && !err; i++) {
        const char *file = p->listing.file[i];
        int64_t bytes;
        if (!p->listing.wanted[i])
            continue;
        p->n_file++;
        if (is_in_snapshot(p, file, &bytes)) {
            p->bytes += bytes;
            p->have += bytes;
            continue;
        }
        wanted_file *f = &p->file[p->n++];
        f->file = file;
        err = cake_hub_client_meta(p->client, &(cake_hub_source){p->o->name.id, p->listing.commit, file},
                                   &f->meta);
        if (!err && f->meta.size > INT64_MAX / 2 - p->bytes)
            err = cake_fail("hub", "%s: the hub says that %s is larger than any disk", p->o->name.id, file);
        if (err)
            break;
        p->bytes += f->meta.size;
        p->have += cake_hub_blob_have(&p->place, &f->meta);
    }
    return err;
}

static cake_err check_space(const pull *p)
{
    struct statvfs info;
    int64_t missing = p->bytes - p->have;
    if (fstatvfs(p->place.blobs, &info))
        return CAKE_OK;
    double space = (double)info.f_bavail * (double)info.f_frsize;
    if ((double)missing <= space)
        return CAKE_OK;
    return cake_fail("hub", "%s: %s are missing, but only %s are free in %s; HF_HOME names another place",
                     p->o->name.id, cake_size_text(missing).s, cake_size_text((int64_t)space).s, p->o->cache);
}

static cake_err fetch_files(pull *p)
{
    cake_err err = CAKE_OK;
    size_t n_unsummed = 0;
    for (size_t i = 0; i < p->n; i++)
        n_unsummed += !cake_hub_blob_is_summed(&p->file[i].meta);
    if (n_unsummed)
        cake_log(CAKE_WARN, "hub", "%s: the hub gives no checksum of %zu file%s: only sizes are checked",
                 p->o->name.id, n_unsummed, cake_plural((int64_t)n_unsummed));
    for (size_t i = 0; i < p->n && !err; i++)
        err = cake_hub_blob_fetch(p->client, &p->place,
                                  &(cake_hub_source){p->o->name.id, p->listing.commit, p->file[i].file},
                                  &p->file[i].meta, p->o->progress, p->o->own);
    return err;
}

/* A hub that gives two files one ETag has overwritten the first. */
static cake_err check_blobs(const pull *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (cake_hub_blob_have(&p->place, &p->file[i].meta) != p->file[i].meta.size)
            return cake_fail(
                "hub", "%s: %s has another size than the hub says: it gives the ETag %s to several files",
                p->o->name.id, p->file[i].file, p->file[i].meta.etag);
    return CAKE_OK;
}

/* The links of the snapshot, then the name of the commit. */
static cake_err link_files(const pull *p)
{
    const char *commit = p->listing.commit, *revision = p->o->name.revision;
    int snapshot = cake_folder_open(p->place.snapshots, commit, true);
    bool good = snapshot >= 0;
    for (size_t i = 0; i < p->n && good; i++) {
        cake_buf text = {0};
        cake_buf_adds(&text, "../../");
        for (const char *c = p->file[i].file; *c; c++)
            if (*c == '/')
                cake_buf_adds(&text, "../");
        cake_buf_addf(&text, "blobs/%s", p->file[i].meta.etag);
        good = cake_folder_link(snapshot, p->file[i].file, text.data);
        cake_buf_free(&text);
    }
    if (good && strcmp(revision, commit) != 0)
        good = cake_folder_write(p->place.refs, revision, commit);
    cake_err err = good ? CAKE_OK
                        : cake_fail("hub", "%s: the snapshot cannot be written to %s: %s", p->o->name.id,
                                    p->o->cache, strerror(errno));
    if (snapshot >= 0)
        close(snapshot);
    return err;
}

cake_err cake_hub_pull(const cake_hub_pull_options *o, cake_buf *path)
{
    pull p = {.o = o, .place = {-1, -1, -1, -1, -1, -1}};
    char folder[CAKE_HUB_FOLDER];
    cake_err err = cake_hub_client_open(&p.client);
    if (!err)
        err = cake_hub_client_listing(p.client, &o->name, &p.listing);
    if (!err)
        err = cake_hub_select(o->name.id, &o->globs, &p.listing);
    if (!err)
        err = open_place(o->cache, o->name.id, &p.place);
    if (!err)
        err = describe_files(&p);
    if (!err)
        err = check_space(&p);
    if (!err && o->begin)
        o->begin(o->own, p.n_file, p.bytes, p.have);
    if (!err)
        err = fetch_files(&p);
    if (!err)
        err = check_blobs(&p);
    if (!err)
        err = link_files(&p);
    if (!err) {
        cake_hub_name_folder(o->name.id, folder);
        cake_buf_addf(path, "%s/%s/snapshots/%s", o->cache, folder, p.listing.commit);
    }
    free(p.file);
    close_place(&p.place);
    cake_hub_listing_free(&p.listing);
    cake_hub_client_close(p.client);
    return err;
}
