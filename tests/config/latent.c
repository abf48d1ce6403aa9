/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json's fields about latent attention: sizes with the defaults of transformers, the scale of scores,
 * parts of larger models; and messages where they do not fit together.
 */
#include <math.h>

#include "configs.h"

#define SIZES                                                                                                \
    "\"num_hidden_layers\": 2, \"vocab_size\": 517, \"hidden_size\": 48, \"num_key_value_heads\": null"

static cake_err read_family(const char *type, const char *fields, cake_config *c, cake_buf *said)
{
    cake_buf text = {0};
    cake_buf_addf(&text, "{\"model_type\": \"%s\", " SIZES "%s}", type, fields);
    cake_err err = read_text(text.data, NULL, c, said);
    cake_buf_free(&text);
    return err;
}

static void test_sizes(void)
{
    static const struct {
        const char *type, *fields;
        cake_latent latent;
        int n_head;
    } cases[] = {
        {"deepseek_v3", "", {512, 1536, 128, 64, 128, true}, 128},
        {"kimi_k2", ", \"num_attention_heads\": 64", {512, 1536, 128, 64, 128, true}, 64},
        {"deepseek_v3",
         ", \"q_lora_rank\": null, \"kv_lora_rank\": 5, \"qk_nope_head_dim\": 3, \"qk_rope_head_dim\": 2,"
         "\"v_head_dim\": 7, \"rope_interleave\": false",
         {5, 0, 3, 2, 7, false},
         128},
        {"deepseek_v3", ", \"rope_interleave\": null", {512, 1536, 128, 64, 128, false}, 128},
        {"glm4_moe_lite", "", {512, 768, 192, 64, 256, true}, 20},
        {"mistral4", "", {256, 1024, 64, 64, 128, true}, 32},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        const cake_latent *l = &c.latent, *want = &cases[i].latent;
        CU_ASSERT_EQUAL_FATAL(read_family(cases[i].type, cases[i].fields, &c, &said), CAKE_OK);
        CU_ASSERT(l->rank == want->rank && l->q_rank == want->q_rank && l->n_nope == want->n_nope);
        CU_ASSERT(l->n_rope == want->n_rope && l->n_value == want->n_value);
        CU_ASSERT(l->interleaved == want->interleaved && c.n_head == cases[i].n_head);
        CU_ASSERT(c.heads[0].n_kv == 1 && c.heads[0].head_dim == l->n_nope + l->n_rope);
        CU_ASSERT(c.layer[0].mixer == CAKE_MIX_LATENT && c.rope[0].n_rot == l->n_rope);
        CU_ASSERT(cake_config_kept(&c, 0) == l->rank + l->n_rope);
        CU_ASSERT(cake_config_seen_flops(&c, 0) == 2.0 * c.n_head * (2 * l->rank + l->n_rope));
    }
    cake_buf_free(&said);
}

#define YARN                                                                                                 \
    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"original_max_position_embeddings\": 4096,"     \
    "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0"

/* DeepSeek V3's own: (0.1 ln 40 + 1)^2 / sqrt(192), and cos and sin as they are. */
static void test_scale(void)
{
    cake_buf said = {0};
    cake_config c;
    const double grown = 0.1 * log(40) + 1;
    CU_ASSERT_EQUAL_FATAL(read_family("deepseek_v3", ", " YARN "}", &c, &said), CAKE_OK);
    CU_ASSERT(fabs((double)c.score_scale - grown * grown / sqrt(192)) < 1e-6);
    CU_ASSERT(c.rope[0].attention == 1 && c.rope[0].beta == 0 && c.context == 163840);
    CU_ASSERT_EQUAL_FATAL(read_family("deepseek_v3", "", &c, &said), CAKE_OK);
    CU_ASSERT(fabs((double)c.score_scale - 1 / sqrt(192)) < 1e-6);
    CU_ASSERT_EQUAL_FATAL(read_family("mistral4", "", &c, &said), CAKE_OK); /* its own rotary parameters */
    CU_ASSERT(c.rope[0].kind == CAKE_ROPE_YARN && c.rope[0].beta == 0.1 &&
              c.rope[0].original_context == 8192);
    CU_ASSERT_EQUAL_FATAL(read_family("deepseek_v3", ", " YARN ", \"llama_4_scaling_beta\": 0.1}", &c, &said),
                          CAKE_ERR_FATAL);
    CU_ASSERT(strstr(said.data, "rope_scaling.llama_4_scaling_beta is 0.1") != NULL);
    cake_buf_free(&said);
}

/* Text parts may have any of a model's types. */
static void test_parts(void)
{
    static const char *const types[][3] = {{"kimi_k25", "KimiK25ForConditionalGeneration", "kimi_k2"},
                                           {"kimi_k25", "KimiK25ForConditionalGeneration", "deepseek_v3"},
                                           {"kimi_k25", "Kimi_K25ForConditionalGeneration", "kimi_k2"},
                                           {"kimi_k25", "Kimi_K25Model", "deepseek_v3"},
                                           {"mistral3", "Mistral3ForConditionalGeneration", "mistral4"},
                                           {"mistral3", "Mistral3ForConditionalGeneration", "deepseek_v3"}};
    cake_buf said = {0}, text = {0};
    cake_config c;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        cake_buf_cut(&text, 0);
        cake_buf_addf(
            &text,
            "{\"model_type\": \"%s\", \"architectures\": [\"%s\"], \"text_config\": {\"model_type\": "
            "\"%s\", " SIZES "}}",
            types[i][0], types[i][1], types[i][2]);
        CU_ASSERT_EQUAL(read_text(text.data, NULL, &c, &said), CAKE_OK);
        CU_ASSERT(c.layer[1].mixer == CAKE_MIX_LATENT);
    }
    cake_buf_cut(&text, 0);
    cake_buf_addf(
        &text, "{\"model_type\": \"kimi_k25\", \"text_config\": {\"model_type\": \"mistral4\", " SIZES "}}");
    CU_ASSERT_EQUAL(read_text(text.data, NULL, &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT(strstr(said.data,
                     "model_type is \"mistral4\", but deepseek_v3 or kimi_k2 is expected inside model_type "
                     "kimi_k25") != NULL);
    cake_buf_cut(&text, 0);
    cake_buf_addf(&text,
                  "{\"model_type\": \"mistral3\", \"text_config\": {\"model_type\": \"llama\", " SIZES "}}");
    CU_ASSERT_EQUAL(read_text(text.data, NULL, &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT(strstr(said.data, "mistral, ministral3, mistral4 or deepseek_v3 is expected") != NULL);
    cake_buf_free(&text);
    cake_buf_free(&said);
}

static void test_refused(void)
{
    static const char *const cases[][3] = {
        {"deepseek_v3", ", \"kv_lora_rank\": 0", "kv_lora_rank is 0"},
        {"deepseek_v3", ", \"kv_lora_rank\": 513",
         "kv_lora_rank is 513, but with qk_rope_head_dim (64), at most 576 is supported"},
        {"deepseek_v3", ", \"qk_rope_head_dim\": 63",
         "qk_rope_head_dim is 63, but an even number is expected"},
        {"deepseek_v3", ", \"qk_rope_head_dim\": null", "qk_rope_head_dim is null"},
        {"deepseek_v3", ", \"q_lora_rank\": -1", "q_lora_rank is -1"},
        {"deepseek_v3", ", \"v_head_dim\": 16777216", "v_head_dim is 16777216"},
        {"deepseek_v3", ", \"rope_interleave\": 1", "rope_interleave is 1"},
        {"deepseek_v3",
         ", \"num_attention_heads\": 65536, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 576,"
         "\"kv_lora_rank\": 0",
         "kv_lora_rank is 0"},
        {"deepseek_v3",
         ", \"num_attention_heads\": 65536, \"qk_nope_head_dim\": 1, \"qk_rope_head_dim\": 570,"
         "\"kv_lora_rank\": 6, \"v_head_dim\": 1",
         "num_attention_heads is 65536, but heads of 571 elements together are too wide"},
        {"deepseek_v3", ", \"partial_rotary_factor\": 0.5",
         "partial_rotary_factor is 0.5, but 1, or qk_rope_head_dim's share of a head (64 of 192), is "
         "expected"},
        {"glm4_moe_lite", ", \"mlp_layer_types\": [\"dense\"]",
         "mlp_layer_types is [\"dense\"], but an array of 2 names"},
        {"glm4_moe_lite", ", \"mlp_layer_types\": [\"dense\", \"experts\"]",
         "mlp_layer_types[1]: dense or sparse is expected"},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        cake_err err = read_family(cases[i][0], cases[i][1], &c, &said);
        bool good = err == CAKE_ERR_FATAL && said.data && strstr(said.data, cases[i][2]);
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s%s: %s", cases[i][0], cases[i][1], said.data ? said.data : "accepted");
    }
    CU_ASSERT_EQUAL(read_family("deepseek_v3", "", &(cake_config){0}, &said), CAKE_OK);
    cake_buf_free(&said);
}

/* GQA beside latent attention is refused: each head has its own key and value. */
static void test_kv_heads(void)
{
    cake_buf said = {0};
    cake_config c;
    const char *text =
        "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 2, \"num_key_value_heads\": 8}";
    CU_ASSERT_EQUAL(read_text(text, NULL, &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT(strstr(said.data, "num_key_value_heads is 8, but num_attention_heads (128) is expected") !=
              NULL);
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"sizes", test_sizes},
        {"the scale of scores", test_scale},
        {"parts of larger models", test_parts},
        {"numbers that do not fit together", test_refused},
        {"heads of K and V", test_kv_heads},
    };
    return SUITE_MAIN("latent_config", tests);
}
