/* SPDX-License-Identifier: Apache-2.0
 *
 * In: plans and settings of their ranks. Out: a topology file that topology.c reads back.
 */
#include <stdlib.h>

#include "placement/topology.h"

/* In single quotes, which are doubled within. Unprintable characters become ?: YAML would refuse them. */
static void add_quoted(cake_buf *out, const char *text)
{
    cake_buf_addc(out, '\'');
    for (const char *c = text; *c; c++)
        cake_buf_adds(out, *c == '\'' ? "''" : (unsigned char)*c < ' ' || *c == 127 ? "?" : (char[]){*c, 0});
    cake_buf_addc(out, '\'');
}

static void add_layers(const cake_plan *plan, int rank, cake_buf *out)
{
    const char *before = "  layers: [";
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (hop->rank != rank)
            continue;
        cake_buf_addf(out, "%s'model.layers.%d", before, hop->first);
        if (hop->count > 1)
            cake_buf_addf(out, "-%d", hop->first + hop->count - 1);
        cake_buf_addc(out, '\'');
        before = ", ";
    }
    if (*before == ',')
        cake_buf_adds(out, "]\n");
}

static void add_size(const char *key, int64_t size, cake_buf *out)
{
    if (size)
        cake_buf_addf(out, "  %s: %lld%s\n", key, (long long)llabs(size), size < 0 ? "%" : "");
}

static void add_settings(const cake_topology_rank *settings, cake_buf *out)
{
    static const char *const where[] = {NULL, "cpus", "numa"}, *const device[] = {NULL, "cpu", "cuda"};
    char list[1 << 15]; /* enough for every second cpu */
    if (settings->where) {
        cake_cpuset_text(&settings->set, list, sizeof list);
        cake_buf_addf(out, "  %s: '%s'\n", where[settings->where], list);
    }
    if (settings->threads)
        cake_buf_addf(out, "  threads: %d\n", settings->threads);
    add_size("memory", settings->memory, out);
    add_size("kv_memory", settings->kv_memory, out);
    if (settings->device)
        cake_buf_addf(out, "  device: %s\n", device[settings->device]);
    if (settings->has_gpu)
        cake_buf_addf(out, "  gpu: %d\n", settings->gpu);
}

static bool has_settings(const cake_topology_rank *settings)
{
    return settings->where || settings->threads || settings->memory || settings->kv_memory ||
           settings->device || settings->has_gpu;
}

void cake_topology_write(const cake_plan *plan, int n_replica, const cake_topology_rank *rank,
                         const char *const *about, cake_buf *out)
{
    size_t before = out->len;
    for (int i = 0; i < n_replica; i++)
        for (int own = 0; own < plan[i].n_rank; own++) {
            int r = plan[i].first + own;
            if (n_replica == 1 && own == 0 && !has_settings(&rank[r]))
                continue; /* layers that no worker lists belong to rank 0 */
            cake_buf_addf(out, "\nrank%d:\n  rank: %d\n", r, r);
            if (n_replica > 1)
                cake_buf_addf(out, "  replica: %d\n", i);
            cake_buf_adds(out, "  description: ");
            add_quoted(out, about[r]);
            cake_buf_addc(out, '\n');
            add_settings(&rank[r], out);
            if (own)
                add_layers(&plan[i], own, out);
        }
    if (out->len == before)
        cake_buf_adds(out, "\n{}\n"); /* one rank with all layers: an empty file would be refused */
}
