/* SPDX-License-Identifier: Apache-2.0
 *
 * In: plans, and what was said of their ranks. Out: a topology file that topology.c makes the same of.
 * planner/topology_io.c calls.
 */
#include <stdlib.h>

#include "place/topology.h"

/* In single quotes, which are doubled within; what is not printable would not be read again. */
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

static void add_said(const cake_topology_rank *said, cake_buf *out)
{
    static const char *const where[] = {NULL, "cpus", "numa"}, *const device[] = {NULL, "cpu", "cuda"};
    char list[1 << 15]; /* every second cpu */
    if (said->where) {
        cake_cpuset_text(&said->set, list, sizeof list);
        cake_buf_addf(out, "  %s: '%s'\n", where[said->where], list);
    }
    if (said->threads)
        cake_buf_addf(out, "  threads: %d\n", said->threads);
    add_size("memory", said->memory, out);
    add_size("kv_memory", said->kv_memory, out);
    if (said->device)
        cake_buf_addf(out, "  device: %s\n", device[said->device]);
    if (said->has_gpu)
        cake_buf_addf(out, "  gpu: %d\n", said->gpu);
}

static bool says(const cake_topology_rank *said)
{
    return said->where || said->threads || said->memory || said->kv_memory || said->device || said->has_gpu;
}

void cake_topology_write(const cake_plan *plan, int n_replica, const cake_topology_rank *rank,
                         const char *const *about, cake_buf *out)
{
    size_t before = out->len;
    for (int i = 0; i < n_replica; i++)
        for (int own = 0; own < plan[i].n_rank; own++) {
            int r = plan[i].first + own;
            if (n_replica == 1 && own == 0 && !says(&rank[r]))
                continue; /* what nobody lists is rank 0's */
            cake_buf_addf(out, "\nrank%d:\n  rank: %d\n", r, r);
            if (n_replica > 1)
                cake_buf_addf(out, "  replica: %d\n", i);
            cake_buf_adds(out, "  description: ");
            add_quoted(out, about[r]);
            cake_buf_addc(out, '\n');
            add_said(&rank[r], out);
            if (own)
                add_layers(&plan[i], own, out);
        }
    if (out->len == before)
        cake_buf_adds(out, "\n{}\n"); /* one rank that has all: a file of nothing is refused */
}
