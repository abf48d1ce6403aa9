/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what each rank runs and reads. Out: agreement, or one message with two ranks, their hosts and the first
 * thing that they differ in.
 * Invariant: ranks do nothing together that depends on something not yet compared.
 */
#include "planner/consistency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/version.h"
#include "model/bundle.h"
#include "model/fingerprint.h"
#include "model/side_files.h"

enum { VERSION = 96 };

cake_err cake_consistency_build(const cake_comm *world)
{
    cake_mismatch mismatch;
    cake_buf build = {0};
    char version[2][VERSION] = {"", ""};
    cake_build_describe(&build);
    int64_t values[] = {cake_crc(cake_version(), strlen(cake_version())), cake_crc(build.data, build.len)};
    cake_buf_free(&build);
    if (cake_comm_same(world, values, 2, &mismatch))
        return CAKE_OK;
    for (int k = 0; k < 2; k++) {
        snprintf(version[k], VERSION, "%s", cake_version());
        cake_comm_bcast_from(world, mismatch.rank[k], version[k], VERSION);
    }
    if (world->rank)
        return CAKE_ERR_FATAL;
    if (mismatch.at)
        return cake_fail("planner",
                         "rank %d on %s and rank %d on %s run different builds of version %s; "
                         "`cake-mpi info` on each host shows what differs: all ranks need the same build",
                         mismatch.rank[0], mismatch.host[0], mismatch.rank[1], mismatch.host[1], version[0]);
    return cake_fail("planner",
                     "rank %d on %s runs version %s, rank %d on %s version %s: "
                     "all ranks need the same build of cake-mpi",
                     mismatch.rank[0], mismatch.host[0], version[0], mismatch.rank[1], mismatch.host[1],
                     version[1]);
}

/* Compared before the tensors. */
static const struct {
    const char *name; /* a file in the model's directory; NULL: all files without a row */
    const char *text; /* for messages */
} files[] = {
    {"config.json", "config.json"},
    {"generation_config.json", "generation_config.json"},
    {"tokenizer.json", "tokenizer.json"},
    {"tokenizer_config.json", "tokenizer_config.json"},
    {"chat_template.jinja", "chat_template.jinja"},
    {NULL, "the files of the tokenizer"},
};

enum { N_FILE = sizeof files / sizeof *files, HEADERS = N_FILE, BUNDLE, N_FACT };

/* Sums of the files of one row are added, since directories have no order. */
static cake_err sum_file(void *self, const char *name, cake_buf *text)
{
    int64_t *sums = self;
    int i = 0;
    while (files[i].name && strcmp(files[i].name, name))
        i++;
    sums[i] = (sums[i] + cake_side_files_sum(name, text)) & UINT32_MAX;
    cake_buf_free(text);
    return CAKE_OK;
}

/* A bundle has the config; only rank 0's has the other files. */
static cake_err gather_facts(const char *dir, const cake_comm *world, const cake_model *model,
                             int64_t facts[N_FACT])
{
    const cake_bundle *bundle = cake_model_bundle(model);
    cake_err err = !dir || world->size == 1 ? CAKE_OK : cake_side_files_read(dir, "model", sum_file, facts);
    for (int i = 1; i < N_FILE && bundle && world->rank; i++)
        facts[i] = CAKE_UNKNOWN;
    facts[HEADERS] = cake_model_identity(model);
    facts[BUNDLE] = bundle ? bundle->identity : 0;
    return err;
}

static cake_err fail_differs(const cake_comm *world, const cake_mismatch *mismatch, const char *what,
                             const char *name)
{
    if (world->rank)
        return CAKE_ERR_FATAL;
    return cake_fail("planner",
                     "rank %d on %s and rank %d on %s do not have the same model: %s%s differs; "
                     "-m must name the same files on every host",
                     mismatch->rank[0], mismatch->host[0], mismatch->rank[1], mismatch->host[1], what, name);
}

cake_err cake_consistency_tensors(const cake_comm *world, int64_t *sums, int n,
                                  const char *(*name)(const void *self, int i), const void *self)
{
    cake_mismatch mismatch;
    return cake_comm_same(world, sums, n, &mismatch)
               ? CAKE_OK
               : fail_differs(world, &mismatch, "the content of tensor ", name(self, mismatch.at));
}

static const char *name_in_model(const void *self, int i)
{
    return cake_model_tensor_name(self, i);
}

/* Compares the sampled bytes of every tensor; a rank whose bundle lacks a tensor takes its sum from
 * others. */
static cake_err compare_tensors(const cake_comm *world, const cake_model *model, uint32_t *weights)
{
    int n = cake_model_tensors(model);
    int64_t *sums = cake_alloc((size_t)n, sizeof *sums);
    cake_err err = cake_comm_agree(world, cake_model_fingerprint(model, sums));
    if (!err)
        err = cake_consistency_tensors(world, sums, n, name_in_model, model);
    *weights = 0;
    for (int i = 0; i < n && !err; i++)
        *weights = cake_crc_on(*weights, &sums[i], sizeof sums[i]);
    free(sums);
    return err;
}

cake_err cake_consistency_model(const char *dir, bool alone, const cake_comm *world, const cake_model *model,
                                uint32_t *weights)
{
    int64_t facts[N_FACT] = {0};
    cake_mismatch mismatch;
    *weights = 0;
    if (world->size == 1 && !alone)
        return CAKE_OK;
    cake_err err = cake_comm_agree(world, gather_facts(dir, world, model, facts));
    if (!err && !cake_comm_same(world, facts, N_FACT, &mismatch))
        err = fail_differs(world, &mismatch,
                           mismatch.at < N_FILE     ? files[mismatch.at].text
                           : mismatch.at == HEADERS ? "the list of tensors and their shapes"
                                                    : "bundle.json",
                           "");
    return err ? err : compare_tensors(world, model, weights);
}
