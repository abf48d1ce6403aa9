/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json's fields about experts: layers, routers and widths of each family, with transformers' defaults
 * where a field is absent; and messages where they do not fit together.
 */
#include <math.h>

#include "configs.h"

#define SIZES                                                                                                \
    "\"hidden_size\": 48, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"vocab_size\": 517,"      \
    "\"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-6"

/* A letter per layer: D is dense, E has experts, B has both. */
typedef struct family {
    const char *type, *fields, *layers;
    int n_expert, n_chosen, n_ff, n_ff_shared;
    cake_router_score score;
    bool renormalise;
    float scale;
} family;

static const family families[] = {
    {"qwen3_moe", "\"num_hidden_layers\": 3", "EEE", 128, 8, 768, 0, CAKE_ROUTER_SOFTMAX, false, 1},
    {"qwen3_moe",
     "\"num_hidden_layers\": 4, \"decoder_sparse_step\": 2, \"mlp_only_layers\": [3], \"num_experts\": 9,"
     "\"num_experts_per_tok\": 9, \"norm_topk_prob\": true, \"moe_intermediate_size\": 7",
     "DEDD", 9, 9, 7, 0, CAKE_ROUTER_SOFTMAX, true, 1},
    {"qwen3_moe", "\"num_hidden_layers\": 1, \"num_local_experts\": 16", "E", 16, 8, 768, 0,
     CAKE_ROUTER_SOFTMAX, false, 1}, /* as transformers 5 saves it */
    {"qwen3_moe", "\"num_hidden_layers\": 1, \"num_local_experts\": 16, \"num_experts\": 9", "E", 9, 8, 768,
     0, CAKE_ROUTER_SOFTMAX, false, 1},
    {"mixtral", "\"num_hidden_layers\": 2, \"intermediate_size\": 40", "EE", 8, 2, 40, 0, CAKE_ROUTER_SOFTMAX,
     true, 1},
    {"olmoe", "\"num_hidden_layers\": 2, \"intermediate_size\": 40", "EE", 64, 8, 40, 0, CAKE_ROUTER_SOFTMAX,
     false, 1},
    {"glm4_moe", "\"num_hidden_layers\": 3, \"intermediate_size\": 40", "DEE", 128, 8, 1408, 1408,
     CAKE_ROUTER_SIGMOID, true, 1},
    {"glm4_moe",
     "\"num_hidden_layers\": 4, \"intermediate_size\": 40, \"first_k_dense_replace\": 3, \"n_group\": 4,"
     "\"topk_group\": 2, \"n_shared_experts\": 3, \"moe_intermediate_size\": 10, \"n_routed_experts\": 16,"
     "\"routed_scaling_factor\": 2.5, \"norm_topk_prob\": false",
     "DDDE", 16, 8, 10, 30, CAKE_ROUTER_SIGMOID, false, 2.5F},
    {"glm4_moe", "\"num_hidden_layers\": 2, \"first_k_dense_replace\": 0, \"n_shared_experts\": 0", "EE", 128,
     8, 1408, 0, CAKE_ROUTER_SIGMOID, true, 1},
    {"minimax_m2", "\"num_hidden_layers\": 2, \"intermediate_size\": 40", "EE", 256, 8, 40, 0,
     CAKE_ROUTER_SIGMOID, true, 1},
    {"deepseek_v3", "\"num_hidden_layers\": 4, \"num_key_value_heads\": 8", "DDDE", 256, 8, 2048, 2048,
     CAKE_ROUTER_SIGMOID, true, 2.5F},
    {"glm4_moe_lite", "\"num_hidden_layers\": 3, \"num_key_value_heads\": 8", "DEE", 64, 4, 1536, 1536,
     CAKE_ROUTER_SIGMOID, true, 1.8F},
    {"glm4_moe_lite",
     "\"num_hidden_layers\": 3, \"num_key_value_heads\": 8,"
     "\"mlp_layer_types\": [\"sparse\", \"dense\", \"sparse\"]",
     "EDE", 64, 4, 1536, 1536, CAKE_ROUTER_SIGMOID, true, 1.8F},
    {"mistral4", "\"num_hidden_layers\": 2, \"num_key_value_heads\": 8", "EE", 128, 4, 2048, 2048,
     CAKE_ROUTER_SOFTMAX, true, 1},
    {"qwen3_next", "\"num_hidden_layers\": 2", "EE", 512, 10, 512, 512, CAKE_ROUTER_SOFTMAX, true, 1},
    {"qwen3_5_moe_text", "\"num_hidden_layers\": 2", "EE", 256, 8, 512, 512, CAKE_ROUTER_SOFTMAX, true, 1},
    {"gpt_oss", "\"num_hidden_layers\": 2, \"intermediate_size\": 40", "EE", 128, 4, 40, 0,
     CAKE_ROUTER_TOPK_SOFTMAX, false, 1},
    {"gemma4_text",
     "\"num_hidden_layers\": 2, \"hidden_size_per_layer_input\": 0, \"enable_moe_block\": true,"
     "\"num_experts\": 9, \"top_k_experts\": 2, \"moe_intermediate_size\": 7",
     "BB", 9, 2, 7, 0, CAKE_ROUTER_SOFTMAX, true, 1},
    {"gemma4_text",
     "\"num_hidden_layers\": 2, \"hidden_size_per_layer_input\": 0, \"num_experts\": null,"
     "\"top_k_experts\": null",
     "DD", 0, 0, 0, 0, CAKE_ROUTER_SOFTMAX, false, 0},
    {"llama", "\"num_hidden_layers\": 2, \"intermediate_size\": 40", "DD", 0, 0, 0, 0, CAKE_ROUTER_SOFTMAX,
     false, 0},
};

static cake_err read_family(const char *type, const char *fields, cake_config *c, cake_buf *said)
{
    cake_buf text = {0};
    cake_buf_addf(&text, "{\"model_type\": \"%s\", " SIZES ", %s}", type, fields);
    cake_err err = read_text(text.data, NULL, c, said);
    cake_buf_free(&text);
    return err;
}

static void test_families(void)
{
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        cake_config c;
        char layers[16] = "";
        cake_err err = read_family(f->type, f->fields, &c, &said);
        CU_ASSERT_EQUAL(err, CAKE_OK);
        if (err) {
            printf("\n    %s, %s: %s", f->type, f->fields, said.data);
            continue;
        }
        const cake_router *r = &c.moe.router;
        for (int layer = 0; layer < c.n_layer; layer++)
            layers[layer] = "DEB"[c.layer[layer].mlp];
        CU_ASSERT_STRING_EQUAL(layers, f->layers);
        CU_ASSERT(r->n_expert == f->n_expert && r->n_chosen == f->n_chosen);
        CU_ASSERT(c.moe.n_ff == f->n_ff && c.moe.n_ff_shared == f->n_ff_shared);
        CU_ASSERT(r->score == f->score && r->renormalise == f->renormalise && r->scale == f->scale);
        CU_ASSERT((c.n_ff == 0) == !strpbrk(layers, "DB"));
    }
    cake_buf_free(&said);
}

static void test_details(void)
{
    cake_buf said = {0};
    cake_config c;
    CU_ASSERT_EQUAL_FATAL(
        read_family("gpt_oss", "\"num_hidden_layers\": 3, \"intermediate_size\": 40", &c, &said), CAKE_OK);
    CU_ASSERT(c.act == CAKE_ACT_CLAMPED && c.act_param[CAKE_ALPHA] == 1.702F && c.act_param[CAKE_LIMIT] == 7);
    CU_ASSERT(c.window[c.layer[0].group] == 128 && c.window[c.layer[1].group] == 0);
    CU_ASSERT(c.qkv_bias && c.o_bias);
    CU_ASSERT_EQUAL_FATAL(read_family("glm4_moe",
                                      "\"num_hidden_layers\": 2, \"intermediate_size\": 40, \"n_group\": 8,"
                                      "\"topk_group\": 4, \"use_qk_norm\": true, \"attention_bias\": true,"
                                      "\"head_dim\": 16, \"num_nextn_predict_layers\": 2",
                                      &c, &said),
                          CAKE_OK);
    CU_ASSERT(c.moe.router.n_group == 8 && c.moe.router.n_group_chosen == 4 && c.moe.router.group_best == 2);
    CU_ASSERT(c.moe.router.epsilon == 1e-20F && c.moe.n_mtp == 2);
    CU_ASSERT(c.qk_norm == CAKE_QK_NORM_HEAD && c.qkv_bias && !c.o_bias && c.rope[0].n_rot == 8);
    CU_ASSERT_EQUAL_FATAL(read_family("minimax_m2",
                                      "\"num_hidden_layers\": 2, \"intermediate_size\": 40, \"head_dim\": 16,"
                                      "\"rotary_dim\": 12",
                                      &c, &said),
                          CAKE_OK);
    CU_ASSERT(c.rope[0].n_rot == 12 && c.rope[0].theta == 5e6 && c.qk_norm == CAKE_QK_NORM_ALL);
    CU_ASSERT_EQUAL_FATAL(read_family("qwen3_moe",
                                      "\"num_hidden_layers\": 2, \"use_sliding_window\": true,"
                                      "\"sliding_window\": 64, \"max_window_layers\": 2",
                                      &c, &said),
                          CAKE_OK);
    CU_ASSERT(c.window[c.layer[0].group] == 64 && c.window[c.layer[1].group] == 64);
    cake_buf_free(&said);
}

static void test_refused(void)
{
    static const struct {
        const char *type, *fields, *message;
    } cases[] = {
        {"qwen3_moe", "\"num_experts\": 4", "num_experts_per_tok is missing, but"},
        {"qwen3_moe", "\"num_experts\": 4, \"num_experts_per_tok\": 5",
         "num_experts_per_tok is 5, but at most num_experts (4) is expected"},
        {"qwen3_moe", "\"num_experts\": 0", "num_experts is 0"},
        {"qwen3_moe", "\"num_experts\": 4097", "num_experts is 4097"},
        {"qwen3_moe", "\"num_experts_per_tok\": 65", "num_experts_per_tok is 65"},
        {"qwen3_moe", "\"moe_intermediate_size\": 16777216",
         "moe_intermediate_size is 16777216, but so many rows of 128 experts in a tensor are not supported"},
        {"qwen3_moe", "\"moe_intermediate_size\": 0", "moe_intermediate_size is 0"},
        {"qwen3_moe", "\"decoder_sparse_step\": 0", "decoder_sparse_step is 0"},
        {"qwen3_moe", "\"mlp_only_layers\": 1", "mlp_only_layers is 1, but an array of layer numbers"},
        {"qwen3_moe", "\"mlp_only_layers\": [0, 2]",
         "mlp_only_layers[1] is 2, but a number from 0 to 1 is expected"},
        {"qwen3_moe", "\"mlp_only_layers\": [0], \"intermediate_size\": 0",
         "intermediate_size is 0, but the width of the dense layers is expected"},
        {"glm4_moe", "\"n_group\": 3",
         "n_group is 3, but a divisor of the number of experts (128) is expected"},
        {"glm4_moe", "\"n_group\": 4, \"topk_group\": 5", "topk_group is 5, but at most n_group (4)"},
        {"glm4_moe", "\"n_group\": 64, \"topk_group\": 3",
         "topk_group is 3, but num_experts_per_tok is 8, so that many experts are expected in the chosen "
         "groups "
         "of 2"},
        {"glm4_moe", "\"n_routed_experts\": 8, \"n_group\": 8, \"topk_group\": 8",
         "n_group is 8, but groups of at least 2 of the 8 experts are expected"},
        {"glm4_moe", "\"routed_scaling_factor\": -1", "routed_scaling_factor is -1"},
        {"glm4_moe", "\"n_shared_experts\": 20000000", "n_shared_experts is 20000000"},
        {"gpt_oss", "\"intermediate_size\": 40, \"swiglu_limit\": 0", "swiglu_limit is 0"},
        {"minimax_m2", "\"intermediate_size\": 40, \"rotary_dim\": 1", "rotary_dim is 1"},
        {"gemma4_text",
         "\"hidden_size_per_layer_input\": 0, \"enable_moe_block\": true, \"num_experts\": 4,"
         "\"moe_intermediate_size\": 8",
         "top_k_experts is missing"},
        {"gemma4_text",
         "\"hidden_size_per_layer_input\": 0, \"enable_moe_block\": true, \"num_experts\": 4,"
         "\"moe_intermediate_size\": 8, \"top_k_experts\": 5",
         "top_k_experts is 5, but at most num_experts (4) is expected"},
        {"gemma4_text", "\"hidden_size_per_layer_input\": 0, \"enable_moe_block\": 1",
         "enable_moe_block is 1"},
        {"llama", "\"intermediate_size\": 40, \"num_experts\": 8",
         "num_experts is 8, but this is not supported"},
        {"qwen3", "\"intermediate_size\": 40, \"moe_intermediate_size\": 8",
         "moe_intermediate_size is 8, but this is not supported"},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        cake_buf fields = {0};
        cake_buf_addf(&fields, "\"num_hidden_layers\": 2, %s", cases[i].fields);
        cake_err err = read_family(cases[i].type, fields.data, &c, &said);
        bool good = err == CAKE_ERR_FATAL && said.data && strstr(said.data, cases[i].message);
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s, %s: %s", cases[i].type, cases[i].fields, said.data ? said.data : "accepted");
        cake_buf_free(&fields);
    }
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"layers, routers and widths of each family", test_families},
        {"details of families", test_details},
        {"numbers that do not fit together", test_refused},
    };
    return SUITE_MAIN("moe_config", tests);
}
