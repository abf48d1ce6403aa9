/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of each family, with fields as in published files, absent or null. Expected values are those of
 * transformers 5.23's config classes for the same text.
 */
#include <math.h>

#include "configs.h"

#define SIZES                                                                                                \
    "\"hidden_size\": 48, \"num_attention_heads\": 8, \"intermediate_size\": 100, \"vocab_size\": 517,"      \
    "\"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-6"

/* Gemma 4 without embeddings in its layers. */
#define NO_INPUTS "\"hidden_size_per_layer_input\": 0"

/* A letter per layer: S slides, F is full, D is a delta net; small ones do not turn their heads. */
typedef struct family {
    const char *type, *fields, *layers;
    int window; /* of S */
} family;

static const family families[] = {
    {"llama", "\"num_hidden_layers\": 2, \"sliding_window\": 16", "FF", 0},
    {"qwen2",
     "\"num_hidden_layers\": 3, \"use_sliding_window\": true, \"sliding_window\": 64,"
     "\"max_window_layers\": 1",
     "FSS", 64},
    {"qwen2",
     "\"num_hidden_layers\": 3, \"use_sliding_window\": false, \"sliding_window\": 64,"
     "\"max_window_layers\": 1",
     "FFF", 0},
    {"qwen2", "\"num_hidden_layers\": 3, \"use_sliding_window\": true, \"max_window_layers\": 0", "SSS",
     4096},
    {"qwen3", "\"num_hidden_layers\": 3, \"use_sliding_window\": true, \"sliding_window\": null", "FFF", 0},
    {"qwen3",
     "\"num_hidden_layers\": 3, \"use_sliding_window\": true, \"sliding_window\": 5,"
     "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"]",
     "SFS", 5},
    {"qwen3_5_text", "\"num_hidden_layers\": 6", "DDDFDD", 0},
    {"qwen3_5_text", "\"num_hidden_layers\": 3, \"full_attention_interval\": 2", "DFD", 0},
    {"qwen3_5_text", "\"num_hidden_layers\": 2, \"full_attention_interval\": 1", "FF", 0},
    {"qwen3_5_text", "\"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\", \"linear_attention\"]",
     "FD", 0},
    {"mistral", "\"num_hidden_layers\": 2", "SS", 4096},
    {"mistral", "\"num_hidden_layers\": 2, \"sliding_window\": null", "FF", 0},
    {"mistral", "\"num_hidden_layers\": 2, \"sliding_window\": 8192", "FF", 0}, /* holds the context */
    {"ministral", "\"num_hidden_layers\": 2, \"sliding_window\": 7", "SS", 7},
    {"ministral",
     "\"num_hidden_layers\": 3, \"sliding_window\": 7,"
     "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"]",
     "FSF", 7},
    {"gemma2", "\"num_hidden_layers\": 5", "SFSFS", 4096},
    {"gemma3_text", "\"num_hidden_layers\": 7, \"sliding_window\": 512", "SSSSSFS", 512},
    {"gemma3_text", "\"num_hidden_layers\": 4, \"sliding_window\": 512, \"sliding_window_pattern\": 2",
     "SFSF", 512},
    {"gemma4_text", NO_INPUTS ", \"num_hidden_layers\": 8", "SSSSSFSF", 512},
    {"gemma4_unified_text", "\"num_hidden_layers\": 1", "F", 0},
    {"gemma4_unified_text",
     "\"num_hidden_layers\": 3, \"sliding_window\": 9,"
     "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\"]",
     "FSF", 9},
    {"phi3", "\"num_hidden_layers\": 2", "FF", 0},
    {"phi3", "\"num_hidden_layers\": 2, \"sliding_window\": 2047", "SS", 2047},
    {"olmo2", "\"num_hidden_layers\": 2", "FF", 0},
    {"olmo3", "\"num_hidden_layers\": 5", "SSSFS", 4096},
    {"exaone4", "\"num_hidden_layers\": 5", "SSSfS", 4096},
    {"exaone4", "\"num_hidden_layers\": 5, \"sliding_window_pattern\": \"LLG\"", "SSfSf", 4096},
    {"exaone4",
     "\"num_hidden_layers\": 2, \"sliding_window\": null, \"sliding_window_pattern\": null,"
     "\"layer_types\": [\"full_attention\", \"full_attention\"]",
     "FF", 0},
    {"smollm3", "\"num_hidden_layers\": 5", "FFFfF", 0},
    {"smollm3", "\"num_hidden_layers\": 4, \"no_rope_layers\": [0, 1, 1, 0]", "fFFf", 0},
    {"smollm3",
     "\"num_hidden_layers\": 4, \"no_rope_layer_interval\": 2, \"use_sliding_window\": true,"
     "\"sliding_window\": 99",
     "FsFs", 99},
};

static void describe(const cake_config *c, int window, char *out)
{
    for (int i = 0; i < c->n_layer; i++) {
        int sees = c->window[c->layer[i].group];
        bool turns = c->layer[i].rope != CAKE_NO_ROPE;
        bool delta = c->layer[i].mixer == CAKE_MIX_DELTA;
        out[i] = delta ? 'D' : sees == 0 ? (turns ? 'F' : 'f') : sees != window ? '?' : turns ? 'S' : 's';
    }
    out[c->n_layer] = 0;
}

static cake_err read_family(const family *f, cake_config *c, cake_buf *said)
{
    cake_buf text = {0};
    cake_buf_addf(&text, "{\"model_type\": \"%s\", " SIZES ", %s}", f->type, f->fields);
    cake_err err = read_text(text.data, NULL, c, said);
    cake_buf_free(&text);
    return err;
}

static void test_layers(void)
{
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        cake_config c;
        char found[16] = "";
        cake_err err = read_family(&families[i], &c, &said);
        CU_ASSERT_EQUAL(err, CAKE_OK);
        if (!err)
            describe(&c, families[i].window, found);
        CU_ASSERT_STRING_EQUAL(found, families[i].layers);
        if (err || strcmp(found, families[i].layers))
            printf("\n    %s, %s: %s, not %s %s", families[i].type, families[i].fields, found,
                   families[i].layers, err ? said.data : "");
    }
    cake_buf_free(&said);
}

/* A member that is refused, and what is said. */
typedef struct refusal {
    family f;
    const char *message;
} refusal;

static void check_refusals(const refusal *cases, size_t n)
{
    cake_buf said = {0};
    for (size_t i = 0; i < n; i++) {
        cake_config c;
        cake_err err = read_family(&cases[i].f, &c, &said);
        bool good = err == CAKE_ERR_FATAL && said.data && strstr(said.data, cases[i].message);
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s: %s: %s", cases[i].f.type, cases[i].f.fields, said.data ? said.data : "silence");
    }
    cake_buf_free(&said);
}

static void test_refused(void)
{
    static const refusal cases[] = {
        {{"mistral", "\"num_hidden_layers\": 1, \"layer_types\": [\"full_attention\"]", "", 0},
         "layer_types[0] is full_attention, but layers of family mistral are sliding_attention here"},
        {{"mistral", "\"num_hidden_layers\": 1, \"use_sliding_window\": false", "", 0},
         "family mistral supports sliding_window only"},
        {{"mistral", "\"num_hidden_layers\": 1, \"sliding_window\": 0", "", 0}, "sliding_window is 0"},
        {{"qwen2", "\"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]", "", 0},
         "layer_types[0] is sliding_attention, but sliding_window is null or switched off"},
        {{"qwen3", "\"num_hidden_layers\": 1, \"use_sliding_window\": 1", "", 0}, "use_sliding_window is 1"},
        {{"exaone4", "\"num_hidden_layers\": 1, \"sliding_window_pattern\": \"LxG\"", "", 0},
         "sliding_window_pattern is \"LxG\", but letters G and L"},
        {{"smollm3", "\"num_hidden_layers\": 2, \"no_rope_layers\": [1]", "", 0}, "an array of 2 numbers"},
        {{"smollm3", "\"num_hidden_layers\": 2, \"no_rope_layers\": [1, 3]", "", 0},
         "no_rope_layers[1]: 0 or 1"},
        {{"gemma3_text", "\"num_hidden_layers\": 2, \"rope_parameters\": {\"rope_theta\": 3.0}", "", 0},
         "an object each for full_attention and sliding_attention"},
        {{"gemma3_text",
          "\"num_hidden_layers\": 2, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, "
          "\"rope_parameters\":"
          "{\"full_attention\": {}}",
          "", 0},
         "rope_parameters.full_attention exists, too"},
        {{"olmo2", "\"num_hidden_layers\": 2, \"partial_rotary_factor\": 0.5", "", 0},
         "partial_rotary_factor is 0.5"},
        {{"olmo2", "\"num_hidden_layers\": 2, \"final_logit_softcapping\": 5.0", "", 0},
         "final_logit_softcapping is 5.0"},
        {{"phi3", "\"num_hidden_layers\": 2, \"partial_rotary_factor\": 0.1", "", 0},
         "at least two of the 6"},
        {{"gemma2", "\"num_hidden_layers\": 2, \"hidden_activation\": \"gelu\"", "", 0},
         "hidden_activation is \"gelu\", but only silu and gelu_pytorch_tanh"},
        {{"gemma2", "\"num_hidden_layers\": 2, \"use_bidirectional_attention\": true", "", 0}, "only causal"},
        {{"qwen3_5_text", "\"linear_num_value_heads\": 24", "", 0},
         "linear_num_value_heads is 24, but a multiple of linear_num_key_heads (16)"},
        {{"qwen3_5_text", "\"linear_key_head_dim\": 512", "", 0}, "an integer from 1 to 256"},
        {{"qwen3_5_text", "\"linear_conv_kernel_dim\": 0", "", 0}, "an integer from 1 to 16"},
        {{"qwen3_5_text", "\"linear_num_key_heads\": null", "", 0}, "linear_num_key_heads is null"},
        {{"qwen3_5_text", "\"attn_output_gate\": false", "", 0}, "always has this gate"},
        {{"qwen3_5_text", "\"hidden_act\": \"gelu_pytorch_tanh\"", "", 0}, "with silu only"},
        {{"qwen3_5_text", "\"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]", "", 0},
         "only full_attention and linear_attention are supported in family qwen3_5_text"},
        {{"qwen3_5_text", "\"num_experts\": 64", "", 0}, "num_experts is 64"},
        {{"llama", "\"num_hidden_layers\": 1, \"layer_types\": [\"linear_attention\"]", "", 0},
         "layer_types[0] is linear_attention"},
        {{"qwen3", "\"num_hidden_layers\": 1, \"rope_scaling\": {\"mrope_section\": [1, 1, 2]}", "", 0},
         "mrope_section is [1"},
        {{"llama", "\"num_hidden_layers\": 1, \"architectures\": [\"LlamaModelForTokenClassification\"]", "",
          0},
         "LlamaForCausalLM is expected"},
        {{"gemma3", "\"text_config\": 3", "", 0}, "text_config is 3, but an object"},
        {{"gemma3", "\"text_config\": {\"model_type\": \"llama\"}", "", 0},
         "text_config.model_type is \"llama\", but gemma3_text is expected"},
        {{"gemma3", "\"text_config\": {\"model_type\": \"gemma3_text\", \"num_attention_heads\": -1}", "", 0},
         "text_config.num_attention_heads is -1"},
        {{"gemma3",
          "\"text_config\": {\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"full_attention\": "
          "{\"rope_type\": \"frob\"}}}",
          "", 0},
         "text_config.rope_parameters.full_attention.rope_type is \"frob\""},
        {{"llama", "\"num_hidden_layers\": 2, \"text_config\": {\"a\": 1}", "", 0}, "text_config is {"},
        {{"llama", "\"num_hidden_layers\": 2, \"per_layer_config\": {\"1\": {\"head_dim\": 4}}", "", 0},
         "layers of different sizes"},
    };
    check_refusals(cases, sizeof cases / sizeof *cases);
}

static void test_gemma4_refused(void)
{
    static const refusal cases[] = {
        {{"gemma4_text", "\"num_hidden_layers\": 2", "", 0},
         "hidden_size_per_layer_input is missing, but models with an embedding in each layer (Gemma 4 E2B"},
        {{"gemma4_text", "\"hidden_size_per_layer_input\": 256", "", 0},
         "hidden_size_per_layer_input is 256, but models with an embedding"},
        {{"gemma4_text", NO_INPUTS ", \"num_kv_shared_layers\": 20", "", 0},
         "num_kv_shared_layers is 20, but layers that take K and V from earlier ones"},
        {{"gemma4_text", NO_INPUTS ", \"use_bidirectional_attention\": \"all\"", "", 0},
         "use_bidirectional_attention is \"all\", but only causal attention is supported"},
        {{"gemma4_text", NO_INPUTS ", \"global_head_dim\": 13", "", 0}, "global_head_dim is 13, but an even"},
        {{"gemma4_text", NO_INPUTS ", \"attention_k_eq_v\": true, \"num_global_key_value_heads\": 3", "", 0},
         "num_global_key_value_heads is 3, but a divisor of num_attention_heads (8)"},
        {{"gemma4_text", NO_INPUTS ", \"rope_scaling\": {\"factor\": 2.0}", "", 0},
         "rope_scaling is {\"factor\":2.0}, but family gemma4_text has rope_parameters instead"},
        {{"gemma4_text", NO_INPUTS ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 5}}", "", 0},
         "an object each for full_attention and sliding_attention"},
        {{"gemma4_text", NO_INPUTS ", \"per_layer_config\": [1]", "", 0}, "but an object is expected"},
        {{"gemma4_text", NO_INPUTS ", \"per_layer_config\": {\"5\": 3}", "", 0}, "an object for each layer"},
        {{"gemma4_text", NO_INPUTS ", \"per_layer_config\": {\"5\": {\"hidden_size\": 3}}", "", 0},
         "per_layer_config, in one layer: hidden_size is 3, but layers may differ in head_dim and"},
        {{"gemma4_text",
          NO_INPUTS ", \"num_hidden_layers\": 6, \"per_layer_config\": {\"4\": {\"head_dim\": 8}}", "", 0},
         "full_attention layers and no others; layer 4 is not so"},
        {{"gemma4_text",
          NO_INPUTS ", \"num_hidden_layers\": 7, \"per_layer_config\": {\"5\": {\"head_dim\": 8},"
                    "\"6\": {\"head_dim\": 10}}",
          "", 0},
         "equal heads in all full_attention layers are expected"},
        {{"gemma4_text", NO_INPUTS ", \"num_hidden_layers\": 6, \"per_layer_config\": {\"6\": {}}", "", 0},
         "layer numbers from 0 to 5 are expected"},
        {{"gemma4_text", NO_INPUTS ", \"num_hidden_layers\": 6, \"per_layer_config\": {\"x\": {}}", "", 0},
         "layer numbers from 0 to 5 are expected"},
        {{"gemma4_text", NO_INPUTS ", \"intermediate_size\": 0", "", 0}, "the width of the dense layers"},
        {{"gemma4_unified_text", "\"num_experts\": 8", "", 0}, "num_experts is 8"},
    };
    check_refusals(cases, sizeof cases / sizeof *cases);
}

/* The numbers that gemma's rows change, and the two bases. */
static void test_gemma(void)
{
    cake_buf said = {0};
    cake_config c;
    family gemma2 = {"gemma2", "\"num_hidden_layers\": 2, \"head_dim\": 24, \"query_pre_attn_scalar\": 144",
                     "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&gemma2, &c, &said), CAKE_OK);
    CU_ASSERT(c.score_scale == (float)(1 / 12.0) && c.score_cap == 50 && c.logit_cap == 30);
    CU_ASSERT(c.tied && c.act == CAKE_ACT_GELU && c.heads[0].head_dim == 24 && c.heads[0].n_kv == 4 &&
              c.n_rope == 1);

    family old = {
        "gemma3_text",
        "\"num_hidden_layers\": 6, \"head_dim\": 32, \"rope_theta\": 1000000.0,"
        "\"rope_local_base_freq\": 10000.0, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"},"
        "\"attn_logit_softcapping\": null, \"final_logit_softcapping\": null",
        "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&old, &c, &said), CAKE_OK);
    CU_ASSERT(c.n_rope == 2 && c.rope[0].theta == 1e6 && c.rope[1].theta == 1e4);
    CU_ASSERT(c.rope[0].kind == CAKE_ROPE_LINEAR && c.rope[0].factor == 8 &&
              c.rope[1].kind == CAKE_ROPE_DEFAULT);
    CU_ASSERT(c.layer[0].rope == 1 && c.layer[5].rope == 0 && c.score_scale == 1 / 16.0F && c.logit_cap == 0);

    /* as transformers 5 writes it; absent bases are the family's */
    family new = {
        "gemma3_text",
        "\"num_hidden_layers\": 6, \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"},"
        "\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 7000.0}},"
        "\"attn_logit_softcapping\": 50.0",
        "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&new, &c, &said), CAKE_OK);
    CU_ASSERT(c.rope[0].theta == 1e6 && c.rope[1].theta == 7000 && c.heads[0].head_dim == 256 &&
              c.score_cap == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "attn_logit_softcapping is not applied"));
    cake_buf_free(&said);
}

/* The heads of both kinds of layers, however the file says them, and their rotary parameters. */
static void test_gemma4(void)
{
    static const struct {
        const char *fields;
        cake_heads full;
    } cases[] = {
        {"", {4, 512, false}},
        {", \"attention_k_eq_v\": true", {4, 512, true}},
        {", \"global_head_dim\": null", {4, 256, false}},
        {", \"attention_k_eq_v\": true, \"num_global_key_value_heads\": 2, \"global_head_dim\": 20",
         {2, 20, true}},
        {", \"num_global_key_value_heads\": 2, \"use_bidirectional_attention\": \"vision\"", {4, 512, false}},
        {", \"per_layer_config\": null, \"global_head_dim\": 20", {4, 256, false}},
        {", \"attention_k_eq_v\": true, \"per_layer_config\": {}", {4, 256, true}},
        {", \"per_layer_config\": {\"05\": {\"num_key_value_heads\": 1}, \"6\": {\"num_key_value_heads\": "
         "1}}",
         {1, 256, false}},
        {", \"per_layer_config\": {\"5\": {\"head_dim\": 30, \"num_key_value_heads\": 8}, \"06\":"
         "{\"num_key_value_heads\": 8, \"head_dim\": 30}}",
         {8, 30, false}},
    };
    cake_buf said = {0}, fields = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        cake_buf_cut(&fields, 0);
        cake_buf_addf(&fields, NO_INPUTS ", \"num_hidden_layers\": 7%s", cases[i].fields);
        family of = {"gemma4_text", fields.data, "", 0};
        cake_err err = read_family(&of, &c, &said);
        CU_ASSERT_EQUAL(err, CAKE_OK);
        if (err) {
            printf("\n    %s: %s", cases[i].fields, said.data);
            continue;
        }
        const cake_heads *full = &c.heads[c.layer[5].group], *sliding = &c.heads[c.layer[0].group];
        CU_ASSERT(full->n_kv == cases[i].full.n_kv && full->head_dim == cases[i].full.head_dim &&
                  full->v_is_k == cases[i].full.v_is_k);
        CU_ASSERT(sliding->n_kv == 4 && sliding->head_dim == 256 && !sliding->v_is_k);
        CU_ASSERT(c.n_kv_group == 2 && c.window[c.layer[0].group] == 512 && !c.window[c.layer[6].group]);
        CU_ASSERT(c.score_scale == 1 && c.act == CAKE_ACT_GELU && c.tied && !c.moe.router.n_expert);
        CU_ASSERT(c.n_rope == 2 && c.rope[1].theta == 1e4 && c.rope[1].n_rot == 256);
        CU_ASSERT(c.rope[0].kind == CAKE_ROPE_PROPORTIONAL && c.rope[0].theta == 1e6 &&
                  c.rope[0].n_rot == full->head_dim && c.rope[0].n_rotated_pair == full->head_dim / 8);
    }
    /* A window as long as the context is none, but the heads still differ. */
    cake_config c;
    family wide = {"gemma4_text", NO_INPUTS ", \"num_hidden_layers\": 6, \"sliding_window\": 8192", "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&wide, &c, &said), CAKE_OK);
    CU_ASSERT(c.n_kv_group == 2 && !c.window[0] && !c.window[1] && c.layer[0].group != c.layer[5].group);
    family both = {"gemma4_text",
                   NO_INPUTS ", \"num_hidden_layers\": 6, \"layer_types\": [\"full_attention\","
                             "\"full_attention\", \"full_attention\", \"full_attention\","
                             "\"full_attention\", \"sliding_attention\"]",
                   "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&both, &c, &said), CAKE_OK);
    CU_ASSERT(c.n_kv_group == 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "layer_types[5] is sliding_attention, but the last layer"));
    cake_buf_free(&fields);
    cake_buf_free(&said);
}

/* A file of several parts says little about the text and leaves the rest to the family. */
static void test_parts(void)
{
    static const char *const text =
        "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"model_type\": \"gemma3\","
        "\"eos_token_id\": [1, 106], \"torch_dtype\": \"bfloat16\", \"vision_config\": {\"hidden_size\": "
        "1152},"
        "\"text_config\": {\"hidden_size\": 2560, \"intermediate_size\": 10240, \"model_type\": "
        "\"gemma3_text\","
        "\"num_hidden_layers\": 34, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"},"
        "\"sliding_window\": 1024}}";
    cake_buf said = {0};
    cake_config c;
    CU_ASSERT_EQUAL_FATAL(read_text(text, NULL, &c, &said), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(c.arch->name, "gemma3_text");
    CU_ASSERT(c.dim == 2560 && c.n_head == 8 && c.heads[0].n_kv == 4 && c.heads[0].head_dim == 256 &&
              c.n_vocab == 262208);
    CU_ASSERT(c.context == 131072 && c.norm_eps == 1e-6F && c.tied && c.dtype == CAKE_BF16);
    CU_ASSERT(c.n_eos == 2 && c.eos[1] == 106 && c.n_kv_group == 2 && c.rope[0].kind == CAKE_ROPE_LINEAR);
    cake_buf_free(&said);
}

/* Qwen3.5's config.json as the hub has it, and the sizes that transformers takes where it says nothing. */
static void test_qwen3_5(void)
{
    static const char *const hub =
        "{\"architectures\": [\"Qwen3_5ForConditionalGeneration\"], \"image_token_id\": 248056,"
        "\"model_type\": \"qwen3_5\", \"text_config\": {\"attn_output_gate\": true, \"dtype\": \"bfloat16\","
        "\"eos_token_id\": 248044, \"full_attention_interval\": 4, \"hidden_size\": 1024,"
        "\"num_hidden_layers\": 24, \"num_attention_heads\": 8, \"num_key_value_heads\": 2,"
        "\"linear_num_value_heads\": 48, \"mamba_ssm_dtype\": \"float32\", \"mlp_only_layers\": [],"
        "\"model_type\": \"qwen3_5_text\", \"mtp_num_hidden_layers\": 1, \"max_position_embeddings\": 262144,"
        "\"rope_parameters\": {\"mrope_interleaved\": true, \"mrope_section\": [11, 11, 10],"
        "\"rope_type\": \"default\", \"rope_theta\": 10000000, \"partial_rotary_factor\": 0.25}},"
        "\"tie_word_embeddings\": true, \"vision_config\": {\"depth\": 12}, \"vision_end_token_id\": 248054}";
    cake_buf said = {0};
    cake_config c;
    CU_ASSERT_EQUAL_FATAL(read_text(hub, NULL, &c, &said), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(c.arch->name, "qwen3_5_text");
    CU_ASSERT(c.tied && c.dtype == CAKE_BF16 && c.context == 262144 && c.n_eos == 1 && c.eos[0] == 248044);
    CU_ASSERT(c.heads[0].head_dim == 256 && c.rope[0].n_rot == 64 && c.rope[0].theta == 1e7 &&
              c.n_kv_group == 1);
    CU_ASSERT(c.delta.n_key == 16 && c.delta.n_value == 48 && c.delta.key_dim == 128 &&
              c.delta.value_dim == 128 && c.delta.width == 4);
    CU_ASSERT(c.layer[0].mixer == CAKE_MIX_DELTA && c.layer[23].mixer == CAKE_MIX_ATTENTION);

    CU_ASSERT_EQUAL_FATAL(read_text("{\"model_type\": \"qwen3_5\", \"text_config\": {}}", NULL, &c, &said),
                          CAKE_OK);
    CU_ASSERT(c.dim == 4096 && c.n_ff == 12288 && c.n_layer == 32 && c.n_head == 16 && c.heads[0].n_kv == 4);
    CU_ASSERT(c.n_vocab == 248320 && c.context == 32768 && !c.tied && c.norm_eps == 1e-6F);
    CU_ASSERT(c.rope[0].n_rot == 64 && c.rope[0].theta == 1e4 && c.delta.n_value == 32);
    cake_buf_free(&said);
}

/* The original context stands outside and counts before the one inside; three quarters of a head turn. */
static void test_phi3(void)
{
    cake_buf said = {0};
    cake_config c;
    family phi3 = {"phi3",
                   "\"num_hidden_layers\": 2, \"head_dim\": 16, \"partial_rotary_factor\": 0.75,"
                   "\"original_max_position_embeddings\": 2048, \"rope_scaling\": {\"type\": \"su\","
                   "\"original_max_position_embeddings\": 1024, \"short_factor\": [1, 1, 1, 1, 1, 1.5],"
                   "\"long_factor\": [1, 2, 3, 4, 5, 6]}",
                   "", 0};
    CU_ASSERT_EQUAL_FATAL(read_family(&phi3, &c, &said), CAKE_OK);
    CU_ASSERT(c.rope[0].kind == CAKE_ROPE_LONGROPE && c.rope[0].n_rot == 12 &&
              c.rope[0].original_context == 2048);
    CU_ASSERT(fabs(c.rope[0].attention - sqrt(1 + log(4) / log(2048))) < 1e-12);
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"which layers slide, and which turn", test_layers},
        {"what a family does not have is refused", test_refused},
        {"gemma: scales, caps, two bases, both generations of the file", test_gemma},
        {"gemma4: heads by the type of layer", test_gemma4},
        {"gemma4: what is refused", test_gemma4_refused},
        {"gemma3 with vision: the text part", test_parts},
        {"qwen3.5: as the hub has it, and as a family's row has it", test_qwen3_5},
        {"phi3: longrope by its first name", test_phi3},
    };
    return SUITE_MAIN("arch", tests);
}
