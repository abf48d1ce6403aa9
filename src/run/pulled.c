/* SPDX-License-Identifier: Apache-2.0
 *
 * In: -m. Out: the directory of a snapshot in the cache, if -m is a name.
 * Invariant: a launcher need not pass HF_HOME on, and a branch may move between the looks of two ranks: rank
 * 0 tells the others its cache and commit. A rank whose own environment names a cache uses that.
 */
#include "run/pulled.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "hub/cache.h"

/* What rank 0 found. */
typedef struct found {
    cake_hub_name name;
    char cache[PATH_MAX], commit[CAKE_HUB_COMMIT]; /* commit: "" for no name */
} found;

/* Whether -m is a name; a file or directory that is called so comes first. */
static bool is_name(const cake_options *o, cake_hub_name *name)
{
    struct stat info;
    return !o->config && lstat(o->model, &info) && cake_hub_name_read(o->model, name);
}

static cake_err fail_missing(const cake_options *o, const cake_hub_name *name, const char *cache)
{
    cake_hub_snapshot other;
    cake_hub_name any = *name;
    bool has_main = false;
    if (name->has_revision) {
        snprintf(any.revision, sizeof any.revision, "main");
        has_main = !cake_hub_find(cache, &any, &other);
        cake_hub_snapshot_free(&other);
    }
    return cake_fail(
        "hub",
        "%s: there is no such directory here, and no such model in %s%s; to download it, on a host with "
        "internet access: cake-mpi pull %s",
        o->model, cache, has_main ? " (but its revision main)" : "", o->model);
}

/* The model in the cache; *out is owned by the caller. One rank of a host looks at its links. */
static cake_err find(const cake_options *o, const cake_comm *world, const cake_hub_name *name,
                     const char *cache, cake_hub_snapshot *out)
{
    cake_err err = cake_hub_find(cache, name, out);
    if (err == CAKE_END)
        err = fail_missing(o, name, cache);
    return err || world->local_rank ? err : cake_hub_check_links(cache, name->id, out->commit);
}

static cake_err choose_cache(const cake_comm *world, const found *root, cake_buf *cache)
{
    bool chosen;
    cake_err err = cake_hub_cache(cache, &chosen);
    if (!err && world->rank && !chosen && root->cache[0]) {
        cake_buf_cut(cache, 0);
        cake_buf_adds(cache, root->cache);
    }
    if (!err && cache->len >= PATH_MAX)
        err = cake_fail("hub", "the path of the cache is too long");
    return err;
}

cake_err cake_pulled_locate(cake_options *o, const cake_comm *world)
{
    found root = {.commit = ""};
    cake_hub_name name;
    cake_err err = CAKE_OK;
    for (int turn = 0; turn < 2; turn++) { /* rank 0 first: then others know its cache and commit */
        bool mine = (world->rank > 0) == turn && is_name(o, &name);
        cake_buf cache = {0};
        cake_hub_snapshot snapshot = {0};
        if (mine && !(err = choose_cache(world, &root, &cache))) {
            if (turn && !strcmp(name.id, root.name.id) && !strcmp(name.revision, root.name.revision))
                snprintf(name.revision, sizeof name.revision, "%s", root.commit);
            err = find(o, world, &name, cache.data, &snapshot);
        }
        if (mine && !err) {
            o->pulled = (cake_pulled){.given = o->model,
                                      .dir = cake_copy(snapshot.path.data, snapshot.path.len),
                                      .name = cake_copy(name.id, strlen(name.id))};
            o->model = o->pulled.dir;
            root.name = name;
            memcpy(root.commit, snapshot.commit, sizeof root.commit);
            snprintf(root.cache, sizeof root.cache, "%s", cache.data);
        }
        cake_hub_snapshot_free(&snapshot);
        cake_buf_free(&cache);
        if ((err = cake_comm_agree(world, err)))
            break;
        if (!turn)
            cake_comm_bcast(world, &root, sizeof root);
    }
    return err;
}
