/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by tests of the planner: models by their config alone, ranks and their memory by numbers.
 */
#ifndef CAKE_TESTS_PLANNER_WORLD_H
#define CAKE_TESTS_PLANNER_WORLD_H

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bench/shapes.h"
#include "planner/rank.h"
#include "tests/suite.h"

#define CONFIG(model, more)                                                                                  \
    "{\"model_type\": \"" model "\", \"vocab_size\": 512, \"hidden_size\": 64, \"intermediate_size\": 128,"  \
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16,"                             \
    " \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e4,"                       \
    " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\", " more "}"

/* Eight layers; layers 3 and 7 are of full attention, the others delta nets. */
#define DELTA                                                                                                \
    CONFIG("qwen3_5_text",                                                                                   \
           "\"num_hidden_layers\": 8, \"full_attention_interval\": 4, \"linear_num_key_heads\": 2,"          \
           " \"linear_num_value_heads\": 4, \"linear_key_head_dim\": 8, \"linear_value_head_dim\": 16,"      \
           " \"linear_conv_kernel_dim\": 4")

/* Layers 0 and 2 see 64 positions, layer 1 sees all. */
#define WINDOWS                                                                                              \
    CONFIG("qwen3", "\"num_hidden_layers\": 3, \"use_sliding_window\": true, \"sliding_window\": 64,"        \
                    " \"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"]")

/* A page of one layer of these models and of "tiny": K and V, 64 positions, 2 heads of 16, two bytes. */
enum { PAGE_BYTES = 2 * 64 * 2 * 16 * 2 };

/* Rank 0 of n ranks, each alone on a host with so many bytes. */
static inline void open_world(cake_rank *me, const char *config, int n, int64_t memory)
{
    cake_model_options options = {.config = config, .dummy = true};
    *me = (cake_rank){.mapping = INT64_MAX, .machine = {.memory = memory}};
    CU_ASSERT_FATAL(!cake_model_open("the model", &options, &me->model));
    me->input = (cake_plan_input){.model = me->model,
                                  .kernels = &cake_kernels_ref,
                                  .max_gpu_layers = INT_MAX,
                                  .kv_dtype = CAKE_BF16,
                                  .context = 256,
                                  .n_thread = 1};
    me->cluster.n_rank = n;
    me->cluster.rate = cake_alloc((size_t)n, sizeof *me->cluster.rate);
    me->cluster.resources = cake_alloc((size_t)n, sizeof *me->cluster.resources);
    for (int i = 0; i < n; i++) {
        snprintf(me->cluster.rate[i].host, sizeof me->cluster.rate[i].host, "node%d", i);
        me->cluster.resources[i] = (cake_rank_resources){
            .node = i, .local_size = 1, .n_thread = 1, .memory = memory, .mapping = INT64_MAX};
    }
    cake_planning_normalize(&me->cluster, &me->input, n);
    cake_planning_set_layers(&me->cluster, &me->input);
    me->planning =
        (cake_planning){.cluster = &me->cluster, .input = &me->input, .n_replica = 1, .max_positions = 256};
}

/* A world of the shape "tiny". */
static inline void open_tiny(cake_rank *me, int n, int64_t memory)
{
    cake_buf config = {0};
    CU_ASSERT_FATAL(shape_config("tiny", 0, &config));
    open_world(me, config.data, n, memory);
    cake_buf_free(&config);
}

static inline void close_world(cake_rank *me)
{
    cake_plan_free(&me->planning.plan);
    cake_cluster_free(&me->cluster);
    cake_plan_input_free(&me->input);
    cake_model_close(me->model);
}

/* Sets the plan of n hops. */
static inline void set_plan(cake_rank *me, int n_rank, int n_hop, const cake_hop *hop)
{
    cake_plan_free(&me->planning.plan);
    me->planning.plan =
        (cake_plan){.hop = cake_alloc((size_t)n_hop, sizeof *hop), .n_hop = n_hop, .n_rank = n_rank};
    memcpy(me->planning.plan.hop, hop, (size_t)n_hop * sizeof *hop);
}

/* Asserts that a call whose messages are captured in text has said `wanted`; NULL: nothing. */
static inline void expect_said(cake_buf *text, const char *wanted)
{
    cake_log_capture(NULL);
    cake_buf_adds(text, "");
    bool right = wanted ? strstr(text->data, wanted) != NULL : !text->len;
    CU_ASSERT(right);
    if (!right)
        printf("\n    said \"%s\",\n    expected \"%s\"", text->data, wanted ? wanted : "");
    cake_buf_free(text);
}

#endif
