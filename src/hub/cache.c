/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the environment, the cache. Out: where a model's files are, and that they are where they seem to be.
 * Invariant: read only; a link is judged by its text, part by part, never by following it.
 */
#include "hub/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hub/folder.h"

enum { MAX_DEPTH = 16, MAX_REF = 64 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Appends a path, in which ~ at the beginning is the home directory. */
static bool add_path(const char *path, const char *below, cake_buf *out)
{
    const char *home = variable("HOME");
    bool tilde = path[0] == '~' && (!path[1] || path[1] == '/');
    if (tilde && !home)
        return false;
    cake_buf_addf(out, "%s%s%s", tilde ? home : "", path + tilde, below);
    return true;
}

bool cake_hub_home(cake_buf *out)
{
    const char *own = variable("HF_HOME"), *xdg = variable("XDG_CACHE_HOME");
    return own ? add_path(own, "", out) : add_path(xdg ? xdg : "~/.cache", "/huggingface", out);
}

cake_err cake_hub_cache(cake_buf *out, bool *chosen)
{
    const char *own = variable("HF_HUB_CACHE");
    own = own ? own : variable("HUGGINGFACE_HUB_CACHE"); /* its older name */
    if (chosen)
        *chosen = own || variable("HF_HOME");
    size_t from = out->len;
    bool good = own ? add_path(own, "", out) : cake_hub_home(out);
    if (!good)
        return cake_fail("hub", "there is no home directory for the cache of models: set HF_HOME");
    if (!own)
        cake_buf_adds(out, "/hub");
    while (out->len > from + 1 && out->data[out->len - 1] == '/')
        cake_buf_cut(out, out->len - 1);
    return CAKE_OK;
}

/* Reads the commit of a branch or tag. */
static bool read_ref(int model, const char *revision, char commit[CAKE_HUB_COMMIT])
{
    const char *last;
    cake_buf text = {0};
    int refs = cake_folder_open(model, "refs", false);
    int parent = refs >= 0 ? cake_folder_open_parent(refs, revision, false, &last) : -1;
    bool good = parent >= 0 && cake_folder_read(parent, last, MAX_REF, &text);
    if (good) {
        text.data[strcspn(text.data, "\r\n ")] = 0;
        good = cake_hub_is_commit(text.data);
        if (good)
            memcpy(commit, text.data, CAKE_HUB_COMMIT);
    }
    if (parent >= 0)
        close(parent);
    if (refs >= 0)
        close(refs);
    cake_buf_free(&text);
    return good;
}

static cake_err fail_link(const char *cache, const char *folder)
{
    return cake_fail(
        "hub",
        "%s/%s: is a symbolic link where the cache has a directory; what it leads to is not read: "
        "give that directory itself with -m",
        cache, folder);
}

cake_err cake_hub_find(const char *cache, const cake_hub_name *name, cake_hub_snapshot *out)
{
    char folder[CAKE_HUB_FOLDER];
    *out = (cake_hub_snapshot){0};
    cake_hub_name_folder(name->id, folder);
    int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC), snapshots = -1, snapshot = -1;
    int model = top >= 0 ? cake_folder_open(top, folder, false) : -1;
    bool is_link =
        top >= 0 && model < 0 && errno != ENOENT && errno != EACCES && cake_folder_has(top, folder);
    bool known = model >= 0;
    if (known && cake_hub_is_commit(name->revision))
        memcpy(out->commit, name->revision, sizeof out->commit);
    else if (known)
        known = read_ref(model, name->revision, out->commit);
    if (known) {
        snapshots = cake_folder_open(model, "snapshots", false);
        snapshot = snapshots >= 0 ? cake_folder_open(snapshots, out->commit, false) : -1;
    }
    if (snapshot >= 0)
        cake_buf_addf(&out->path, "%s/%s/snapshots/%s", cache, folder, out->commit);
    for (int i = 0, fd; i < 4; i++)
        if ((fd = (int[]){top, model, snapshots, snapshot}[i]) >= 0)
            close(fd);
    return snapshot >= 0 ? CAKE_OK : is_link ? fail_link(cache, folder) : CAKE_END;
}

void cake_hub_snapshot_free(cake_hub_snapshot *snapshot)
{
    cake_buf_free(&snapshot->path);
}

/* Whether text is "XX/HASH" and HASH begins with XX. */
static bool is_shared_name(const char *text)
{
    return strlen(text) == 67 && text[2] == '/' && cake_hub_is_hex(text + 3, 64) &&
           !strncmp(text, text + 3, 2);
}

static cake_hub_file_kind look_at_shared(int model, const char *target, int64_t *bytes)
{
    static const char above[] = "../../blobs/";
    struct stat info;
    cake_hub_file_kind kind = CAKE_HUB_FOREIGN;
    if (strncmp(target, above, strlen(above)) != 0 || !is_shared_name(target + strlen(above)))
        return kind;
    const char *last;
    int top = openat(model, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int folder = top >= 0 ? cake_folder_open_parent(top, target + strlen("../../"), false, &last) : -1;
    if (folder >= 0 && fstatat(folder, last, &info, AT_SYMLINK_NOFOLLOW))
        kind = CAKE_HUB_LOST;
    else if (folder >= 0 && S_ISREG(info.st_mode)) {
        kind = CAKE_HUB_SHARED;
        *bytes = info.st_size;
    }
    if (folder >= 0)
        close(folder);
    if (top >= 0)
        close(top);
    return kind;
}

/* depth: of the directory that holds the link, 0 for the snapshot itself. */
static cake_hub_file_kind look_at_link(int model, int folder, const char *name, int depth, int64_t *bytes)
{
    cake_buf text = {0}, further = {0};
    struct stat info;
    cake_hub_file_kind kind = CAKE_HUB_FOREIGN;
    int blobs = cake_folder_open(model, "blobs", false);
    const char *blob = NULL;
    if (cake_folder_read_link(folder, name, &text)) {
        blob = text.data;
        for (int i = 0; i < depth + 2 && blob; i++)
            blob = strncmp(blob, "../", 3) ? NULL : blob + 3;
        blob = blob && !strncmp(blob, "blobs/", 6) && cake_hub_is_etag(blob + 6) ? blob + 6 : NULL;
    }
    if (blob && blobs < 0)
        kind = errno == ENOENT ? CAKE_HUB_LOST : CAKE_HUB_FOREIGN;
    else if (blob && fstatat(blobs, blob, &info, AT_SYMLINK_NOFOLLOW))
        kind = CAKE_HUB_LOST;
    else if (blob && S_ISREG(info.st_mode)) {
        kind = CAKE_HUB_BLOB;
        *bytes = info.st_size;
    } else if (blob && cake_folder_read_link(blobs, blob, &further)) {
        kind = look_at_shared(model, further.data, bytes);
    }
    if (blobs >= 0)
        close(blobs);
    cake_buf_free(&text);
    cake_buf_free(&further);
    return kind;
}

static cake_hub_file_kind look_at_file(int model, int folder, const char *name, int depth, int64_t *bytes)
{
    struct stat info;
    *bytes = 0;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW))
        return CAKE_HUB_LOST;
    if (S_ISLNK(info.st_mode))
        return look_at_link(model, folder, name, depth, bytes);
    *bytes = S_ISREG(info.st_mode) ? info.st_size : 0;
    return S_ISREG(info.st_mode) ? CAKE_HUB_PLAIN : CAKE_HUB_FOREIGN;
}

/* A walk under way. */
typedef struct walk {
    int model;
    cake_hub_visit visit;
    void *own;
    cake_buf path; /* of the current directory, with a slash at its end */
} walk;

/* Takes over the descriptor. */
static bool walk_folder(walk *w, int folder, int depth)
{
    DIR *list = folder >= 0 && depth < MAX_DEPTH ? fdopendir(folder) : NULL;
    bool good = list;
    if (!list && folder >= 0)
        close(folder);
    for (struct dirent *entry; good && (entry = readdir(list));) {
        struct stat info;
        int64_t bytes;
        size_t from = w->path.len;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        cake_buf_adds(&w->path, entry->d_name);
        if (!fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) && S_ISDIR(info.st_mode)) {
            cake_buf_addc(&w->path, '/');
            good = walk_folder(w, cake_folder_open(folder, entry->d_name, false), depth + 1);
        } else {
            cake_hub_file_kind kind = look_at_file(w->model, folder, entry->d_name, depth, &bytes);
            good = w->visit(w->own, w->path.data, kind, bytes);
        }
        cake_buf_cut(&w->path, from);
    }
    if (list)
        closedir(list);
    return good;
}

bool cake_hub_walk(int model, const char *commit, cake_hub_visit visit, void *own)
{
    walk w = {.model = model, .visit = visit, .own = own};
    int snapshots = cake_folder_open(model, "snapshots", false);
    bool good = snapshots >= 0 && walk_folder(&w, cake_folder_open(snapshots, commit, false), 0);
    if (snapshots >= 0)
        close(snapshots);
    cake_buf_free(&w.path);
    return good;
}

cake_hub_file_kind cake_hub_look(int model, const char *commit, const char *path, int64_t *bytes)
{
    cake_hub_file_kind kind = CAKE_HUB_LOST;
    const char *last;
    int depth = 0;
    for (const char *c = path; *c; c++)
        depth += *c == '/';
    int snapshots = cake_folder_open(model, "snapshots", false);
    int snapshot = snapshots >= 0 ? cake_folder_open(snapshots, commit, false) : -1;
    int folder = snapshot >= 0 ? cake_folder_open_parent(snapshot, path, false, &last) : -1;
    *bytes = 0;
    if (folder >= 0)
        kind = look_at_file(model, folder, last, depth, bytes);
    for (int i = 0, fd; i < 3; i++)
        if ((fd = (int[]){snapshots, snapshot, folder}[i]) >= 0)
            close(fd);
    return kind;
}

static bool find_foreign(void *own, const char *path, cake_hub_file_kind kind, int64_t bytes)
{
    (void)bytes;
    if (kind == CAKE_HUB_FOREIGN)
        cake_buf_adds(own, path);
    return kind != CAKE_HUB_FOREIGN;
}

cake_err cake_hub_check_links(const char *cache, const char *id, const char *commit)
{
    char folder[CAKE_HUB_FOLDER];
    cake_buf found = {0};
    cake_hub_name_folder(id, folder);
    int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int model = top >= 0 ? cake_folder_open(top, folder, false) : -1;
    bool good = model >= 0 && cake_hub_walk(model, commit, find_foreign, &found);
    cake_err err = CAKE_OK;
    if (!good && found.len) {
        cake_log_escape(&found);
        err = cake_fail("hub",
                        "%s/%s/snapshots/%s/%s: leads out of this model's blobs, so it is not read; "
                        "delete the model (cake-mpi rm %s) and pull it again",
                        cache, folder, commit, found.data, id);
    } else if (!good) {
        err = cake_fail("hub", "%s/%s/snapshots/%s: cannot be read: %s", cache, folder, commit,
                        strerror(errno));
    }
    if (model >= 0)
        close(model);
    if (top >= 0)
        close(top);
    cake_buf_free(&found);
    return err;
}
