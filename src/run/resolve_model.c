/* SPDX-License-Identifier: Apache-2.0
 *
 * In: -m. Out: the directory of a snapshot in the cache, if -m is a name.
 * Invariant: a launcher need not pass HF_HOME on, and a branch may move between the looks of two ranks: rank
 * 0 tells the others its cache and commit. A rank whose own environment names a cache uses that.
 */
#include "run/resolve_model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "hub/cache.h"

/* What rank 0 found. */
typedef struct found {
    char given[2 * CAKE_HUB_ID]; /* its -m, if that is as short as a name */
    char cache[PATH_MAX];
    char commit[CAKE_HUB_COMMIT]; /* "": its -m is no name */
} found;

/* Whether -m is a name. A file or directory that is called so comes first, and rank 0 decides for all ranks
 * that were given the same: a host may lack the directory, as a bundle on its own disk. */
static bool is_name(const cake_options *o, const cake_comm *world, const found *root, cake_hub_name *name)
{
    struct stat info;
    const char *ending = strrchr(o->model, '.');
    const bool file = ending && !strcmp(ending, ".gguf"); /* a path, though it may look like a name */
    bool may_be = !o->config && !file && cake_hub_name_read(o->model, name);
    return may_be &&
           (world->rank && !strcmp(o->model, root->given) ? root->commit[0] : lstat(o->model, &info) != 0);
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
        o->model, cache, has_main ? " (only its revision main is there)" : "", o->model);
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

/* The model of this rank, if -m is a name. Rank 0 also fills *root. */
static cake_err locate(cake_options *o, const cake_comm *world, found *root)
{
    cake_hub_name name;
    cake_buf cache = {0};
    cake_hub_snapshot snapshot = {0};
    if (!world->rank)
        snprintf(root->given, sizeof root->given, "%s", o->model);
    if (!is_name(o, world, root, &name))
        return CAKE_OK;
    cake_err err = choose_cache(world, root, &cache);
    if (!err && world->rank && !strcmp(o->model, root->given))
        snprintf(name.revision, sizeof name.revision, "%s", root->commit);
    if (!err)
        err = find(o, world, &name, cache.data, &snapshot);
    if (!err) {
        o->pulled = (cake_pulled){.given = o->model,
                                  .dir = cake_copy(snapshot.path.data, snapshot.path.len),
                                  .name = cake_copy(name.id, strlen(name.id))};
        o->model = o->pulled.dir;
    }
    if (!err && !world->rank) {
        memcpy(root->commit, snapshot.commit, sizeof root->commit);
        snprintf(root->cache, sizeof root->cache, "%s", cache.data);
    }
    cake_hub_snapshot_free(&snapshot);
    cake_buf_free(&cache);
    return err;
}

cake_err cake_resolve_model(cake_options *o, const cake_comm *world)
{
    found root = {.commit = ""};
    cake_err err = world->rank ? CAKE_OK : locate(o, world, &root);
    if ((err = cake_comm_agree(world, err)))
        return err;
    cake_comm_bcast(world, &root, sizeof root);
    return cake_comm_agree(world, world->rank ? locate(o, world, &root) : CAKE_OK);
}
