/* SPDX-License-Identifier: Apache-2.0
 *
 * In: shapes, a plan. Out: bytes of the buffers of engine.c and pipeline.c.
 * Invariant: pure, and needs no MPI to link: the planner counts with it.
 */
#include "engine/internal.h"
#include "engine/pipeline.h"

size_t cake_engine_wave_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round(cake_wave_bytes(shape->max_row, cake_schedule_changes(shape), config->dim));
}

size_t cake_engine_host_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * cake_engine_wave_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_row * sizeof(int32_t)) +
           cake_arena_round((size_t)config->n_vocab * sizeof(float));
}

/* A row for each sequence, and those of drafts. Hidden states take far less memory than scores of a
 * vocabulary. */
int cake_engine_max_score(const cake_config *config, const cake_schedule_shape *shape)
{
    const int rows = shape->lane_seqs + shape->n_draft;
    return config->headless || rows > shape->max_row ? shape->max_row : rows;
}

size_t cake_engine_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread)
{
    return cake_engine_host_bytes(config, shape) +
           cake_sampler_bytes(config->n_vocab, cake_engine_max_score(config, shape), n_thread);
}

size_t cake_engine_body_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round((size_t)shape->max_row * (size_t)config->dim * sizeof(float));
}

size_t cake_engine_device_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * cake_engine_body_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_row * sizeof(int32_t));
}

int cake_pipeline_depth(int n_lane)
{
    return n_lane + 1; /* + the stop wave */
}

size_t cake_pipeline_bytes(const cake_plan *plan, int rank, int n_lane, size_t wave_bytes)
{
    size_t bytes = 0;
    for (int e = 0; e <= plan->n_hop; e++)
        if (cake_plan_to(plan, e) == rank && cake_plan_from(plan, e) != rank)
            bytes += (size_t)cake_pipeline_depth(n_lane) * wave_bytes;
    return bytes;
}
