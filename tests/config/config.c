/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "configs.h"

/* A config.json as transformers 4 wrote it. A change "field": value replaces the line of that field, or is
 * appended; an empty value drops the field. */
static const char *const base[][2] = {
    {"model_type", "\"llama\""},
    {"architectures", "[\"LlamaForCausalLM\"]"},
    {"hidden_size", "48"},
    {"num_hidden_layers", "3"},
    {"num_attention_heads", "4"},
    {"num_key_value_heads", "2"},
    {"intermediate_size", "100"},
    {"vocab_size", "517"},
    {"max_position_embeddings", "512"},
    {"rms_norm_eps", "1e-05"},
    {"rope_theta", "10000.0"},
    {"eos_token_id", "2"},
    {"torch_dtype", "\"bfloat16\""},
};

typedef struct change {
    const char *field, *value;
} change;

static void write_config(cake_buf *out, const change *changes, int n)
{
    bool done[8] = {false};
    cake_buf_cut(out, 0);
    cake_buf_adds(out, "{");
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) {
        const char *value = base[i][1];
        for (int c = 0; c < n; c++)
            if (!strcmp(changes[c].field, base[i][0])) {
                value = changes[c].value;
                done[c] = true;
            }
        if (*value)
            cake_buf_addf(out, "%s\"%s\": %s", out->len > 1 ? ", " : "", base[i][0], value);
    }
    for (int c = 0; c < n; c++)
        if (!done[c])
            cake_buf_addf(out, ", \"%s\": %s", changes[c].field, changes[c].value);
    cake_buf_adds(out, "}");
}

static cake_err read_changed(const change *changes, int n, cake_config *config, cake_buf *said)
{
    cake_buf text = {0};
    write_config(&text, changes, n);
    cake_err err = read_text(text.data, NULL, config, said);
    cake_buf_free(&text);
    return err;
}

static const struct {
    const char *field, *value, *message;
} bad_fields[] = {
    {"hidden_size", "", "DIR/config.json: hidden_size is missing, but an integer from 1 to 1048576"},
    {"hidden_size", "null", "hidden_size is null"},
    {"hidden_size", "-48", "hidden_size is -48"},
    {"hidden_size", "0", "hidden_size is 0"},
    {"hidden_size", "1048577", "hidden_size is 1048577"},
    {"hidden_size", "48.0", "hidden_size is 48.0"},
    {"hidden_size", "\"48\"", "hidden_size is \"48\""},
    {"hidden_size", "9223372036854775807", "hidden_size is 9223372036854775807"},
    {"hidden_size", "-9223372036854775808", "hidden_size is -9223372036854775808"},
    {"num_hidden_layers", "4097", "num_hidden_layers is 4097"},
    {"num_hidden_layers", "", "num_hidden_layers is missing"},
    {"num_attention_heads", "[]", "num_attention_heads is []"},
    {"num_attention_heads", "10", "a divisor of hidden_size (48)"},
    {"num_key_value_heads", "3", "num_key_value_heads is 3, but a divisor of num_attention_heads (4)"},
    {"num_key_value_heads", "8", "num_key_value_heads is 8"},
    {"head_dim", "13", "head_dim must be even"},
    {"head_dim", "-2", "head_dim is -2"},
    {"head_dim", "16777216", "head_dim is 16777216"},
    {"intermediate_size", "16777217", "intermediate_size is 16777217"},
    {"vocab_size", "16777217", "vocab_size is 16777217"},
    {"max_position_embeddings", "2147483648", "max_position_embeddings is 2147483648"},
    {"rms_norm_eps", "", "rms_norm_eps is missing"},
    {"rms_norm_eps", "-1e-5", "rms_norm_eps is"},
    {"rms_norm_eps", "\"NaN\"", "rms_norm_eps is \"NaN\""},
    {"rope_theta", "0", "rope_theta is 0"},
    {"rope_theta", "1e300", "rope_theta is"},
    {"model_type", "", "model_type is missing, but the supported ones are llama, qwen2, qwen3"},
    {"model_type", "\"mamba\"", "model_type is \"mamba\", but the supported ones are llama, qwen2, qwen3"},
    {"architectures", "[\"LlamaForTokenClassification\"]", "LlamaForCausalLM is expected"},
    {"architectures", "[\"LlamaForSequenceClassification\"]", "the classifier has 2 labels; one"},
    {"tie_word_embeddings", "1", "tie_word_embeddings is 1, but true or false"},
    {"attention_bias", "\"no\"", "attention_bias is \"no\""},
    {"hidden_act", "\"gelu\"", "hidden_act is \"gelu\", but only silu"},
    {"torch_dtype", "\"float8_e4m3fn\"", "torch_dtype is \"float8_e4m3fn\""},
    {"dtype", "\"float64\"", "dtype is \"float64\""},
    {"quantization_config", "{\"bits\": 4}",
     "quantization_config.quant_method is missing, but fp8, compressed"},
    {"quantization_config", "4", "quantization_config is 4, but an object"},
    {"quantization_config", "{\"quant_method\": \"bitsandbytes\"}",
     "quantization_config.quant_method is \"bitsandbytes\", but fp8, compressed-tensors, gptq, awq, mxfp4 "
     "or"},
    {"quantization_config", "{\"quant_method\": \"fp8\", \"fmt\": \"e5m2\"}", "fmt is \"e5m2\", but e4m3"},
    {"quantization_config", "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 0]}",
     "weight_block_size is [128,0], but an array of two sizes"},
    {"quantization_config", "{\"quant_method\": \"fp8\", \"weight_block_size\": [128]}",
     "weight_block_size is [128], but an array of two sizes"},
    {"quantization_config", "{\"quant_method\": \"gptq\", \"bits\": 3}",
     "quantization_config.bits is 3, but 4 or 8 is expected"},
    {"quantization_config", "{\"quant_method\": \"gptq\"}", "quantization_config.bits is missing, but"},
    {"quantization_config", "{\"quant_method\": \"gptq\", \"bits\": 4, \"checkpoint_format\": \"marlin\"}",
     "checkpoint_format is \"marlin\", but gptq or gptq_v2"},
    {"quantization_config", "{\"quant_method\": \"gptq\", \"bits\": 4, \"desc_act\": 2}",
     "desc_act is 2, but true"},
    {"quantization_config", "{\"quant_method\": \"gptq\", \"bits\": 4, \"format\": \"marlin\"}",
     "quantization_config.format is \"marlin\", but gptq or gptq_v2"},
    {"quantization_config", "{\"quant_method\": \"compressed-tensors\", \"config_groups\": []}",
     "quantization_config.config_groups is [], but an object with a group"},
    {"quantization_config", "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": 3}}",
     "quantization_config.config_groups.g is 3, but an object"},
    {"quantization_config", "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4_AWQ\"}",
     "quantization_config.quant_algo is \"NVFP4_AWQ\", but FP8, "},
    {"quantization_config", "{\"quant_method\": \"awq\", \"bits\": 8}",
     "quantization_config.bits is 8, but 4"},
    {"quantization_config", "{\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemv\"}",
     "version is \"gemv\", but gemm"},
    {"quantization_config", "{\"quant_method\": \"compressed-tensors\", \"format\": \"marlin-24\"}",
     "quantization_config.format is \"marlin-24\", but int-quantized"},
    {"quantization_config",
     "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"weights\": {\"num_bits\": "
     "6}}}}",
     "quantization_config.config_groups.a.weights.num_bits is 6, but 4 or 8"},
    {"quantization_config",
     "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"weights\": {\"strategy\": "
     "\"x\"}}}}",
     "config_groups.a.weights.strategy is \"x\", but tensor, channel, group, block"},
    {"quantization_config",
     "{\"quant_method\": \"compressed-tensors\", \"transform_config\": {\"config_groups\": {}}}",
     "transform_config is {\"config_groups\":{}}, but weights without transforms"},
    {"num_experts", "8", "num_experts is 8"},
    {"num_local_experts", "8", "num_local_experts is 8"},
    {"query_pre_attn_scalar", "256", "query_pre_attn_scalar is 256"},
    {"attention_multiplier", "0.01", "attention_multiplier is 0.01"},
    {"final_logit_softcapping", "30.0", "final_logit_softcapping is 30.0"},
    {"partial_rotary_factor", "0.5", "partial_rotary_factor is 0.5"},
    {"use_sliding_window", "true", "use_sliding_window is true"},
    {"layer_types", "[\"full_attention\", \"sliding_attention\", \"full_attention\"]",
     "layer_types[1] is sliding_attention, but layers of family llama are full_attention"},
    {"layer_types", "[7, 7, 7]", "layer_types[0] is an integer"},
    {"layer_types", "[\"full_attention\", \"chunked_attention\", \"full_attention\"]",
     "layer_types[1] is chunked_attention, but only"},
    {"layer_types", "[\"full_attention\"]", "but an array of 3 names"},
    {"eos_token_id", "-1", "eos_token_id is -1, but token ids from 0 to 516"},
    {"eos_token_id", "[2, \"x\"]", "eos_token_id is [2,\"x\"]"},
    {"rope_scaling", "3", "rope_scaling is 3"},
    {"rope_scaling", "{\"type\": \"yarm\", \"factor\": 2.0}",
     "rope_scaling.type is \"yarm\", but only default"},
    {"rope_scaling", "{\"type\": \"dynamic\"}", "rope_scaling.factor is missing"},
    {"rope_scaling", "{\"rope_type\": \"yarn\"}", "rope_scaling.factor"},
    {"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 2, \"beta_fast\": \"x\"}", "beta_fast is \"x\""},
    {"rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1, 1, 1]}",
     "long_factor is missing"},
    {"rope_scaling", "{\"type\": \"su\", \"short_factor\": [1]}", "short_factor is [1], but an array of 6"},
    {"rope_scaling", "{\"type\": \"yarn\", \"short_factor\": [1, 1, 1, 1, 1, 0]}",
     "short_factor[5]: a number"},
    {"rope_scaling", "{\"type\": \"yarn\", \"factor\": 2, \"llama_4_scaling_beta\": 0.1}",
     "llama_4_scaling_beta is 0.1"},
    {"use_bidirectional_attention", "true", "only causal attention"},
    {"clip_qkv", "8.0", "clip_qkv is 8.0, but this is not supported: take a model without it\n"},
    {"rope_scaling", "{\"rope_type\": \"linear\"}", "rope_scaling.factor is missing"},
    {"rope_scaling", "{\"type\": \"linear\", \"factor\": 0.5}", "rope_scaling.factor is 0.5"},
    {"rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2, \"mrope_section\": [2, 2, 2]}",
     "mrope_section is"},
    {"rope_parameters", "{\"full_attention\": {\"rope_type\": \"default\"}}",
     "rope_parameters.full_attention is"},
    {"rope_parameters", "{\"rope_theta\": -3}", "rope_parameters.rope_theta is -3"},
    {"rope_parameters", "{\"partial_rotary_factor\": 0.25}", "rope_parameters.partial_rotary_factor is 0.25"},
    {"rope_scaling",
     "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 4}",
     "high_freq_factor is 4, but more than low_freq_factor (4)"},
    {"rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1}",
     "rope_scaling.high_freq_factor is missing"},
};

static void test_bad_fields(void)
{
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof bad_fields / sizeof *bad_fields; i++) {
        change c = {bad_fields[i].field, bad_fields[i].value};
        cake_config config = {.dim = 77};
        cake_err err = read_changed(&c, 1, &config, &said);
        bool good = err == CAKE_ERR_FATAL && said.data && strstr(said.data, bad_fields[i].message) &&
                    strstr(said.data, "DIR/config.json: ") && config.dim == 77 &&
                    strchr(said.data, '\n') == said.data + said.len - 1;
        CU_ASSERT(good);
        if (!good)
            printf("\n    %s = %s: %s", c.field, c.value, said.data ? said.data : "silence\n");
    }
    cake_buf_free(&said);
}

static void test_not_an_object(void)
{
    cake_buf said = {0};
    cake_config config;
    CU_ASSERT_EQUAL(read_text("[1]", NULL, &config, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "DIR/config.json: found an array, expected an object"));
    cake_buf_free(&said);
}

static void write_file(const char *name, const char *text)
{
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", suite_tmp(), name);
    FILE *f = fopen(path.data, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
    cake_buf_free(&path);
}

static void test_files(void)
{
    cake_buf said = {0}, text = {0};
    cake_config config;
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_config_load(suite_tmp(), &config), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/config.json: cannot be opened: No such file"));
    cake_buf_cut(&said, 0);
    write_file("config.json", "{\"rms_norm_eps\": nan}");
    CU_ASSERT_EQUAL(cake_config_load(suite_tmp(), &config), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/config.json: invalid JSON at byte"));
    cake_buf_cut(&said, 0);
    write_config(&text, NULL, 0);
    write_file("config.json", text.data);
    CU_ASSERT_EQUAL(cake_config_load(suite_tmp(), &config), CAKE_OK);
    CU_ASSERT_EQUAL(config.eos[0], 2);
    write_file("generation_config.json", "{\"eos_token_id\": 7");
    CU_ASSERT_EQUAL(cake_config_load(suite_tmp(), &config), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/generation_config.json: invalid JSON"));
    write_file("generation_config.json", "{\"eos_token_id\": [7, 8]}");
    CU_ASSERT_EQUAL(cake_config_load(suite_tmp(), &config), CAKE_OK);
    CU_ASSERT(config.n_eos == 2 && config.eos[0] == 7 && config.eos[1] == 8);
    cake_log_capture(NULL);
    cake_buf_free(&said);
    cake_buf_free(&text);
}

static void test_llama(void)
{
    cake_buf said = {0};
    cake_config c;
    CU_ASSERT_EQUAL_FATAL(read_changed(NULL, 0, &c, &said), CAKE_OK);
    CU_ASSERT_STRING_EQUAL(c.arch->name, "llama");
    CU_ASSERT(c.dim == 48 && c.n_layer == 3 && c.n_head == 4 && c.heads[0].n_kv == 2 &&
              c.heads[0].head_dim == 12);
    CU_ASSERT(c.n_ff == 100 && c.n_vocab == 517 && c.context == 512 && c.dtype == CAKE_BF16);
    CU_ASSERT(!c.tied && !c.qkv_bias && !c.o_bias && !c.mlp_bias);
    CU_ASSERT(c.norm_eps == 1e-5F && c.rope[0].theta == 10000 && c.rope[0].kind == CAKE_ROPE_DEFAULT);
    CU_ASSERT(c.n_eos == 1 && c.eos[0] == 2 && isnan(c.defaults.temperature));

    static const change bare = {"architectures", "[\"LlamaModel\"]"}; /* as AutoModel saves it */
    CU_ASSERT_EQUAL_FATAL(read_changed(&bare, 1, &c, &said), CAKE_OK);
    static const change more[] = {
        {"head_dim", "24"},         {"num_key_value_heads", "null"}, {"attention_bias", "true"},
        {"mlp_bias", "true"},       {"tie_word_embeddings", "true"}, {"rope_scaling", "null"},
        {"sliding_window", "4096"}, {"eos_token_id", "null"}};
    CU_ASSERT_EQUAL_FATAL(read_changed(more, 8, &c, &said), CAKE_OK);
    CU_ASSERT(c.heads[0].head_dim == 24 && c.heads[0].n_kv == 4 && c.tied && c.qkv_bias && c.o_bias &&
              c.mlp_bias && !c.n_eos);
    cake_buf_free(&said);
}

/* Of classifiers the head of one label, and what becomes of its output. */
static void test_classifiers(void)
{
    static const change one[] = {{"architectures", "[\"LlamaForSequenceClassification\"]"},
                                 {"id2label", "{\"0\": \"LABEL_0\"}"}},
                        as_it_is[] = {{"architectures", "[\"LlamaForSequenceClassification\"]"},
                                      {"id2label", "{\"0\": \"LABEL_0\"}"},
                                      {"sentence_transformers", "{\"activation_fn\": \"torch.Identity\"}"}};
    cake_buf said = {0};
    cake_config c;
    CU_ASSERT_EQUAL_FATAL(read_changed(one, 2, &c, &said), CAKE_OK);
    const cake_embedder *e = &c.embedder;
    CU_ASSERT(c.classifier && c.headless && c.tied && e->sigmoid && e->n_dense == 1 && e->n_out == 1 &&
              e->pooling[0] == CAKE_POOL_LAST && !strcmp(e->dense[0].tensor, "score") && !e->dense[0].bias);
    CU_ASSERT_EQUAL_FATAL(read_changed(as_it_is, 3, &c, &said), CAKE_OK);
    CU_ASSERT(c.classifier && !c.embedder.sigmoid);
    cake_buf_free(&said);
}

static void test_qwen(void)
{
    cake_buf said = {0};
    cake_config c;
    static const change qwen2[] = {
        {"model_type", "\"qwen2\""},     {"architectures", "[\"Qwen2ForCausalLM\"]"},
        {"use_sliding_window", "false"}, {"sliding_window", "131072"},
        {"max_window_layers", "21"},     {"attention_bias", "false"},
        {"torch_dtype", "\"float16\""},  {"num_experts", "0"}};
    CU_ASSERT_EQUAL_FATAL(read_changed(qwen2, 8, &c, &said), CAKE_OK);
    CU_ASSERT(c.qkv_bias && !c.o_bias && !c.arch->qk_norm && c.heads[0].head_dim == 12 &&
              c.dtype == CAKE_F16);
    static const change qwen3[] = {
        {"model_type", "\"qwen3\""},
        {"architectures", "[\"Qwen3ForCausalLM\"]"},
        {"head_dim", "null"},
        {"torch_dtype", ""},
        {"dtype", "\"float32\""},
        {"rope_theta", ""},
        {"rope_parameters", "{\"rope_theta\": 1000000, \"rope_type\": \"default\"}"},
        {"layer_types", "[\"full_attention\", \"full_attention\", \"full_attention\"]"}};
    CU_ASSERT_EQUAL_FATAL(read_changed(qwen3, 8, &c, &said), CAKE_OK);
    CU_ASSERT(!c.qkv_bias && c.arch->qk_norm && c.heads[0].head_dim == 128 && c.dtype == CAKE_F32);
    CU_ASSERT(c.rope[0].theta == 1e6 && c.rope[0].kind == CAKE_ROPE_DEFAULT);
    cake_buf_free(&said);
}

static void test_dtypes(void)
{
    static const struct {
        change c[2];
        cake_dtype dtype;
    } cases[] = {{{{"torch_dtype", "\"torch.bfloat16\""}, {"eos_token_id", "2"}}, CAKE_BF16},
                 {{{"torch_dtype", "\"half\""}, {"dtype", "null"}}, CAKE_F16},
                 {{{"dtype", "\"torch.float16\""}, {"torch_dtype", "\"float32\""}}, CAKE_F16},
                 {{{"dtype", "\"float\""}, {"torch_dtype", "\"bfloat16\""}}, CAKE_F32},
                 {{{"dtype", "\"auto\""}, {"torch_dtype", "null"}}, CAKE_F32},
                 {{{"dtype", "\"bfloat16\""}, {"torch_dtype", ""}}, CAKE_BF16}};
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        CU_ASSERT_EQUAL_FATAL(read_changed(cases[i].c, 2, &c, &said), CAKE_OK);
        CU_ASSERT_EQUAL(c.dtype, cases[i].dtype);
    }
    cake_buf_free(&said);
}

static void test_generation(void)
{
    cake_buf said = {0}, text = {0};
    cake_config c;
    write_config(&text, NULL, 0);
    static const struct {
        const char *generation;
        double temperature, top_p; /* negative: unset */
        int64_t top_k;
        int n_eos;
        int32_t eos;
    } good[] = {
        {"{}", -1, -1, CAKE_UNSET, 1, 2},
        {"{\"do_sample\": false, \"temperature\": 0.7, \"eos_token_id\": 3}", 0, -1, CAKE_UNSET, 1, 3},
        {"{\"do_sample\": true, \"temperature\": 0.6, \"top_k\": 20, \"top_p\": 0.95}", 0.6, 0.95, 20, 1, 2},
        {"{\"temperature\": 0.6, \"eos_token_id\": [5, 6, 516], \"top_p\": null}", 0.6, -1, CAKE_UNSET, 3, 5},
        {"{\"eos_token_id\": [517, 6]}", -1, -1, CAKE_UNSET, 1, 6},
        {"{\"eos_token_id\": null, \"top_k\": 0}", -1, -1, 0, 1, 2},
        {"{\"do_sample\": null, \"temperature\": 0.6}", 0.6, -1, CAKE_UNSET, 1, 2},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CU_ASSERT_EQUAL_FATAL(read_text(text.data, good[i].generation, &c, &said), CAKE_OK);
        CU_ASSERT(good[i].temperature < 0 ? isnan(c.defaults.temperature)
                                          : c.defaults.temperature == good[i].temperature);
        CU_ASSERT(good[i].top_p < 0 ? isnan(c.defaults.top_p) : c.defaults.top_p == good[i].top_p);
        CU_ASSERT_EQUAL(c.defaults.top_k, good[i].top_k);
        CU_ASSERT(c.n_eos == good[i].n_eos && c.eos[0] == good[i].eos);
    }
    CU_ASSERT_EQUAL(read_text(text.data,
                              "{\"repetition_penalty\": 1.05, \"min_p\": 0.1, \"presence_penalty\": 1.5, "
                              "\"frequency_penalty\": -1, \"no_repeat_ngram_size\": 3}",
                              &c, &said),
                    CAKE_OK);
    CU_ASSERT(c.defaults.repetition_penalty == 1.05 && c.defaults.min_p == 0.1);
    CU_ASSERT(c.defaults.presence_penalty == 1.5 && c.defaults.frequency_penalty == -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "no_repeat_ngram_size 3 is not applied"));
    for (int n = 40; n <= 300; n += 260) { /* many end tokens, and too many */
        cake_buf ids = {0};
        cake_buf_adds(&ids, "{\"eos_token_id\": [5");
        for (int id = 0; id < n; id++)
            cake_buf_addf(&ids, ", %d", id);
        cake_buf_adds(&ids, "]}");
        cake_err err = read_text(text.data, ids.data, &c, &said);
        CU_ASSERT_EQUAL(err, n > CAKE_MAX_EOS ? CAKE_ERR_FATAL : CAKE_OK);
        CU_ASSERT(err || (c.n_eos == n && c.eos[0] == 5 && c.eos[n - 1] == n - 1)); /* 5 only once */
        cake_buf_free(&ids);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "at most 256 end tokens"));
    CU_ASSERT_EQUAL(read_text(text.data, "{\"temperature\": -1}", &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "DIR/generation_config.json: temperature is -1, but"));
    CU_ASSERT_EQUAL(read_text(text.data, "{\"do_sample\": 0}", &c, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "do_sample is 0, but true or false"));
    CU_ASSERT_EQUAL(read_text(text.data, "7", &c, &said), CAKE_ERR_FATAL);
    cake_buf_free(&said);
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {
        {"every bad field is named, with what was found", test_bad_fields},
        {"config.json that is not an object", test_not_an_object},
        {"missing and broken files", test_files},
        {"llama: sizes, biases, nulls", test_llama},
        {"qwen2 and qwen3: biases, QK norm, both generations of the file", test_qwen},
        {"classifiers", test_classifiers},
        {"all names of a dtype", test_dtypes},
        {"generation_config.json: end tokens and sampling", test_generation},
    };
    return SUITE_MAIN("config", tests);
}
