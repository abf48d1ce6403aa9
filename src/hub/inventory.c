/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cache. Out: its models, or one less.
 * Invariant: what is deleted lies below models--NAME and .locks/models--NAME of the cache.
 */
#include "hub/inventory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "hub/cache.h"
#include "hub/folder.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Calls `each` for the entries of a directory that is not a link, in order. */
static void for_each_name(int parent, const char *name, void (*each)(void *own, int folder, const char *name),
                          void *own)
{
    char **all = NULL;
    size_t n = 0, cap = 0;
    int fd = cake_folder_open(parent, name, false);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        close(fd);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        CAKE_RESERVE(all, n, cap);
        all[n++] = cake_copy(entry->d_name, strlen(entry->d_name));
    }
    if (n)
        qsort(all, n, sizeof *all, compare_names);
    for (size_t i = 0; i < n; i++) {
        each(own, fd, all[i]);
        free(all[i]);
    }
    free(all);
    if (list)
        closedir(list);
}

/* A model that is being read. */
typedef struct reading {
    cake_hub_inventory *out;
    const char *cache, *folder, *id;
    int model;
    cake_hub_entry *entry; /* whose revisions are looked for */
    cake_buf prefix;       /* of revisions with slashes */
} reading;

static cake_hub_entry *add_entry(reading *r)
{
    cake_hub_inventory *all = r->out;
    all->entry = cake_grow(all->entry, all->n + 1, sizeof *all->entry);
    cake_hub_entry *e = &all->entry[all->n++];
    *e = (cake_hub_entry){0};
    memcpy(e->id, r->id, strlen(r->id) + 1);
    return e;
}

static void find_refs(void *own, int folder, const char *name)
{
    reading *r = own;
    struct stat info;
    cake_buf text = {0};
    size_t from = r->prefix.len;
    if (!fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISDIR(info.st_mode)) {
        cake_buf_addf(&r->prefix, "%s/", name);
        if (r->prefix.len < CAKE_HUB_REVISION)
            for_each_name(folder, name, find_refs, r);
        cake_buf_cut(&r->prefix, from);
    } else if (cake_folder_read(folder, name, CAKE_HUB_COMMIT - 1, &text) &&
               !strcmp(text.data, r->entry->commit)) {
        cake_buf *all = &r->entry->revisions;
        cake_buf_addf(all, "%s%s%s", all->len ? " " : "", from ? r->prefix.data : "", name);
    }
    cake_buf_free(&text);
}

static bool add_file(void *own, const char *path, cake_hub_file_kind kind, int64_t bytes)
{
    (void)path;
    cake_hub_entry *e = own;
    e->bytes += bytes;
    e->n_lost += kind == CAKE_HUB_LOST;
    e->foreign |= kind == CAKE_HUB_FOREIGN;
    return true;
}

static void read_snapshot(void *own, int folder, const char *name)
{
    reading *r = own;
    struct stat info;
    if (!cake_hub_is_commit(name) || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) ||
        !S_ISDIR(info.st_mode))
        return;
    cake_hub_entry *e = r->entry = add_entry(r);
    memcpy(e->commit, name, sizeof e->commit);
    e->when = info.st_mtime;
    cake_buf_addf(&e->path, "%s/%s/snapshots/%s", r->cache, r->folder, name);
    cake_hub_walk(r->model, name, add_file, e);
    for_each_name(r->model, "refs", find_refs, r);
}

static void read_model(void *own, int top, const char *folder)
{
    reading r = {.out = ((reading *)own)->out, .cache = ((reading *)own)->cache, .folder = folder};
    char id[CAKE_HUB_ID];
    struct stat info;
    r.id = id;
    if (!cake_hub_name_of_folder(folder, id) || fstatat(top, folder, &info, AT_SYMLINK_NOFOLLOW))
        return;
    r.model = cake_folder_open(top, folder, false);
    size_t before = r.out->n;
    if (r.model >= 0)
        for_each_name(r.model, "snapshots", read_snapshot, &r);
    if (r.out->n == before) {
        cake_hub_entry *e = add_entry(&r);
        e->when = info.st_mtime;
        e->bytes = cake_folder_bytes(top, folder);
        e->foreign = r.model < 0;
        cake_buf_addf(&e->path, "%s/%s", r.cache, folder);
    }
    if (r.model >= 0)
        close(r.model);
    cake_buf_free(&r.prefix);
}

static int compare_entries(const void *a, const void *b)
{
    const cake_hub_entry *x = a, *y = b;
    int by_name = strcasecmp(x->id, y->id);
    if (!by_name)
        by_name = strcmp(x->id, y->id);
    if (!by_name && x->when != y->when)
        return x->when < y->when ? 1 : -1;
    return by_name ? by_name : strcmp(x->commit, y->commit);
}

cake_err cake_hub_inventory_read(const char *cache, cake_hub_inventory *out)
{
    *out = (cake_hub_inventory){0};
    int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 && errno == ENOENT)
        return CAKE_OK;
    if (top < 0)
        return cake_fail("hub", "%s: cannot be read: %s", cache, strerror(errno));
    for_each_name(top, ".", read_model, &(reading){.out = out, .cache = cache});
    close(top);
    if (out->n)
        qsort(out->entry, out->n, sizeof *out->entry, compare_entries);
    return CAKE_OK;
}

void cake_hub_inventory_free(cake_hub_inventory *inventory)
{
    for (size_t i = 0; i < inventory->n; i++) {
        cake_buf_free(&inventory->entry[i].revisions);
        cake_buf_free(&inventory->entry[i].path);
    }
    free(inventory->entry);
    *inventory = (cake_hub_inventory){0};
}

cake_err cake_hub_inventory_match(const cake_hub_inventory *all, const char *cache, const char *ending,
                                  const char **id)
{
    size_t len = strlen(ending), n = 0;
    cake_buf text = {0};
    const char *found = NULL;
    if (strchr(ending, '@'))
        return cake_fail_usage("%s: all revisions of a model are deleted together; give its name without @",
                               ending);
    for (size_t i = 0; i < all->n; i++) {
        const char *own = all->entry[i].id;
        size_t own_len = strlen(own);
        if (!strcmp(own, ending)) {
            n = 1;
            found = own;
            break;
        }
        if (!len || own_len < len || strcmp(own + own_len - len, ending) || (found && !strcmp(own, found)))
            continue;
        found = own;
        cake_buf_addf(&text, "%s%s", n++ ? ", " : "", own);
    }
    cake_err err = CAKE_OK;
    if (n == 1)
        *id = found;
    else if (n)
        err = cake_fail_usage("%s is the end of several names: %s; give more of one", ending, text.data);
    else
        err = cake_fail_usage("%s: no model in %s has a name that ends so; cake-mpi list shows them", ending,
                              cache);
    cake_buf_free(&text);
    return err;
}

int64_t cake_hub_model_bytes(const char *cache, const char *id)
{
    char folder[CAKE_HUB_FOLDER];
    cake_hub_name_folder(id, folder);
    int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t bytes = top >= 0 ? cake_folder_bytes(top, folder) : 0;
    if (top >= 0)
        close(top);
    return bytes;
}

static void look_for_holder(void *own, int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        *(bool *)own = true;
    if (fd >= 0)
        close(fd);
}

cake_err cake_hub_delete(const char *cache, const char *id)
{
    char folder[CAKE_HUB_FOLDER];
    bool held = false;
    cake_hub_name_folder(id, folder);
    int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return cake_fail("hub", "%s: cannot be read: %s", cache, strerror(errno));
    int locks = cake_folder_open(top, ".locks", false), model = cake_folder_open(top, folder, false);
    cake_err err = CAKE_OK;
    if (locks >= 0)
        for_each_name(locks, folder, look_for_holder, &held);
    if (held)
        err = cake_fail("hub", "%s: a process downloads it now; stop that first", id);
    /* Its name goes first: what an interrupted deletion leaves is not taken for the model. */
    bool good = err || model < 0 || !cake_folder_has(model, "refs") || cake_folder_remove(model, "refs");
    good = good && (err || cake_folder_remove(top, folder));
    if (!good)
        err = cake_fail("hub", "%s/%s: cannot be deleted: %s", cache, folder, strerror(errno));
    if (!err && locks >= 0 && cake_folder_has(locks, folder))
        cake_folder_remove(locks, folder);
    if (model >= 0)
        close(model);
    if (locks >= 0)
        close(locks);
    close(top);
    return err;
}
