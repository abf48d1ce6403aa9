/* SPDX-License-Identifier: Apache-2.0
 *
 * In: -m. Out: the directory that this rank reads.
 * Invariant: all ranks of a run have bundles of one staging, or all have the whole model. A host needs only
 * the bundles of its own ranks.
 */
#include "bundle/locate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "bundle/writer.h"
#include "formats/model_files.h"

/* The bundle that a rank needs. */
typedef struct request {
    const char *dir; /* -m */
    int rank;        /* rank in its replica; -1: any */
    int n_rank;      /* required number of bundles; 0: any */
} request;

static bool has(const char *dir, const char *name)
{
    struct stat info;
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    bool exists = !lstat(path.data, &info); /* of a dangling link its reader says so */
    cake_buf_free(&path);
    return exists;
}

/* The lowest rank with a bundle directory in dir; -1: none. */
static int first_rank(const char *dir)
{
    int lowest = -1, rank, end;
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        end = 0;
        if (sscanf(entry->d_name, "rank-%7d%n", &rank, &end) == 1 && end && !entry->d_name[end] &&
            rank >= 0 && (lowest < 0 || rank < lowest))
            lowest = rank;
    }
    if (list)
        closedir(list);
    return lowest;
}

static cake_err fail_number(const request *w, int n, int n_rank, const cake_comm *world)
{
    int parts = world->size / w->n_rank;
    char whole[64] = "";
    if (parts > 1)
        snprintf(whole, sizeof whole, " (%d ranks in %d replicas)", world->size, parts);
    return cake_fail_usage(
        "%s: its bundles are for %d rank%s, but this run has %d%s; "
        "start it with -np %d (or a multiple, with as many --replicas), or stage the model for %d",
        w->dir, n, n == 1 ? "" : "s", n_rank, whole, n, n_rank);
}

/* Opens the bundle in `own` and checks that it is the right one. */
static cake_err read_bundle(const request *w, const char *own, bool direct, const cake_comm *world,
                            cake_bundle **out)
{
    cake_err err = cake_bundle_open(own, out);
    if (err)
        return err;
    const cake_bundle *b = *out;
    if (w->n_rank && direct && b->n_rank > 1)
        return cake_fail_usage(
            "%s is one of %d bundles, that of rank %d; give the directory that contains them", own, b->n_rank,
            b->rank);
    if (w->n_rank && b->n_rank != w->n_rank)
        return fail_number(w, b->n_rank, w->n_rank, world);
    if (w->rank >= 0 && b->rank != w->rank && !direct)
        return cake_fail("bundle", "%s: is the bundle of rank %d, not of %d: stage the model again", own,
                         b->rank, w->rank);
    return cake_bundle_check_files(b, own);
}

/* Explains why this rank's bundle is missing. CAKE_END: dir has no bundles at all. */
static cake_err fail_missing(const request *w, const char *own, int first, const cake_comm *world)
{
    cake_bundle *other = cake_bundle_writer_peek(w->dir, first);
    int n = other ? other->n_rank : 0;
    cake_bundle_close(other);
    if (!n && !has(own, "bundle.partial")) /* not written by stage */
        return CAKE_END;
    if (n && w->n_rank && n != w->n_rank)
        return fail_number(w, n, w->n_rank, world);
    return has(own, "bundle.partial")
               ? cake_fail("bundle", "%s: this bundle is not finished; start the same cake-mpi stage again",
                           own)
               : cake_fail("bundle",
                           "%s: no bundle of rank %d is on %s, only of others (rank %d): "
                           "ranks had other hosts when the model was staged; "
                           "stage it again with this job's hosts",
                           w->dir, w->rank, world->host, first);
}

/* CAKE_END: a whole model, or none. *own: the directory. */
static cake_err find_bundle(const request *w, const cake_comm *world, cake_buf *own, cake_bundle **out)
{
    int first;
    cake_buf_adds(own, w->dir);
    if (has(w->dir, CAKE_BUNDLE_NAME))
        return read_bundle(w, w->dir, true, world, out);
    if (has(w->dir, "config.json") || (first = first_rank(w->dir)) < 0)
        return CAKE_END;
    cake_buf_cut(own, 0);
    cake_bundle_writer_path(w->dir, w->rank < 0 ? first : w->rank, own);
    if (has(own->data, CAKE_BUNDLE_NAME))
        return read_bundle(w, own->data, false, world, out);
    return fail_missing(w, own->data, first, world);
}

/* A rank's findings, which ranks compare. */
typedef struct found {
    bool bundle, whole;
    uint32_t identity;
    char host[64];
} found;

static const char *kind_of(const found *f, const found *root)
{
    return f->bundle && root->bundle ? "one of another model or plan"
           : f->bundle               ? "a bundle"
           : f->whole                ? "the whole model"
                                     : "nothing";
}

/* Checks that all ranks have bundles of one staging, or none has one. */
static cake_err compare_ranks(const cake_comm *world, const char *model, const cake_bundle *mine)
{
    const bool whole = has(model, "config.json") || cake_model_files_gguf(model);
    found own = {.bundle = mine, .whole = whole, .identity = mine ? mine->identity : 0};
    found *all = cake_alloc((size_t)world->size, sizeof own);
    cake_err err = CAKE_OK;
    snprintf(own.host, sizeof own.host, "%s", world->host);
    cake_comm_gather(world, &own, all, sizeof own);
    for (int r = 1; r < world->size && !world->rank && !err; r++)
        if (all[r].bundle != all->bundle || all[r].identity != all->identity)
            err = cake_fail(
                "bundle",
                "%s: rank 0 on %s has %s, rank %d on %s %s: stage the model on all hosts with one command",
                model, all->host, all->bundle ? "a bundle" : kind_of(all, &all[r]), r, all[r].host,
                kind_of(&all[r], all));
    free(all);
    return cake_comm_agree(world, err);
}

cake_err cake_bundle_locate(const cake_locate_options *o, const cake_comm *world, cake_located *out)
{
    const bool any = o->any;
    int n = o->n_replica ? o->n_replica : 1, n_rank = world->size % n ? world->size : world->size / n;
    request w = {.dir = o->model, .rank = any ? -1 : world->rank % n_rank, .n_rank = any ? 0 : n_rank};
    cake_buf own = {0};
    cake_bundle *bundle = NULL;
    *out = (cake_located){0};
    cake_err err = CAKE_END;
    for (int turn = 0; turn < 2; turn++) { /* rank 0 first, so that an error common to all is logged once */
        if ((world->rank > 0) == turn)
            err = find_bundle(&w, world, &own, &bundle);
        cake_err all = cake_comm_agree(world, err == CAKE_END ? CAKE_OK : err);
        if (all) {
            err = all;
            break;
        }
    }
    err = err == CAKE_END ? CAKE_OK : err;
    if (!err && bundle && o->n_rank)
        err = world->rank
                  ? CAKE_ERR_USAGE
                  : cake_fail_usage("--ranks %d: %s holds bundles, which were made for %d rank%s; "
                                    "plan these with mpirun -np %d, and other numbers with the whole model",
                                    o->n_rank, o->model, bundle->n_rank, bundle->n_rank == 1 ? "" : "s",
                                    bundle->n_rank);
    err = cake_comm_agree(world, err);
    if (!err && !any)
        err = compare_ranks(world, o->model, bundle);
    if (!err && bundle)
        *out = (cake_located){.dir = cake_copy(own.data, own.len),
                              .name = cake_copy(bundle->name, strlen(bundle->name))};
    cake_bundle_close(bundle);
    cake_buf_free(&own);
    return err;
}
