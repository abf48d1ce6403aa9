/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name. Out: the config.json of a model of that size, with the numbers of the model's own file.
 */
#include "bench/shapes.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

static const struct {
    const char *name, *config;
} shapes[] = {
    {"qwen3-0.6b",
     "{\"model_type\": \"qwen3\", \"vocab_size\": 151936, \"hidden_size\": 1024, \"intermediate_size\": 3072,"
     " \"num_hidden_layers\": 28, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 128,"
     " \"max_position_embeddings\": 40960, \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6,"
     " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"qwen3.5-0.8b",
     "{\"model_type\": \"qwen3_5_text\", \"vocab_size\": 248320, \"hidden_size\": 1024,"
     " \"intermediate_size\": 3584, \"num_hidden_layers\": 24, \"num_attention_heads\": 8,"
     " \"num_key_value_heads\": 2, \"head_dim\": 256, \"full_attention_interval\": 4,"
     " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 16, \"linear_key_head_dim\": 128,"
     " \"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, \"max_position_embeddings\": 262144,"
     " \"rms_norm_eps\": 1e-6, \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e7,"
     " \"partial_rotary_factor\": 0.25}, \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"llama-3.2-1b",
     "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 2048, \"intermediate_size\": 8192,"
     " \"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 64,"
     " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5,"
     " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"llama-3.1-8b", "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 4096,"
                     " \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
                     " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 131072,"
                     " \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5, \"tie_word_embeddings\": false,"
                     " \"dtype\": \"bfloat16\"}"},
    {"qwen3-32b", "{\"model_type\": \"qwen3\", \"vocab_size\": 151936, \"hidden_size\": 5120,"
                  " \"intermediate_size\": 25600, \"num_hidden_layers\": 64, \"num_attention_heads\": 64,"
                  " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 40960,"
                  " \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6, \"tie_word_embeddings\": false,"
                  " \"dtype\": \"bfloat16\"}"},
    {"llama-3.1-405b",
     "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 16384,"
     " \"intermediate_size\": 53248, \"num_hidden_layers\": 126, \"num_attention_heads\": 128,"
     " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 131072,"
     " \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5, \"tie_word_embeddings\": false,"
     " \"dtype\": \"bfloat16\"}"},
    {"tiny",
     "{\"model_type\": \"qwen3\", \"vocab_size\": 512, \"hidden_size\": 64, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 8, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
     " \"head_dim\": 16, \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6,"
     " \"rope_theta\": 1e4, \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
};

enum { N_SHAPE = sizeof shapes / sizeof *shapes };

const char *shape_config(const char *name)
{
    for (int i = 0; i < N_SHAPE; i++)
        if (!strcmp(shapes[i].name, name))
            return shapes[i].config;
    cake_buf names = {0};
    for (int i = 0; i < N_SHAPE; i++)
        cake_buf_addf(&names, "%s%s", i ? ", " : "", shapes[i].name);
    cake_fail_usage("--shape %s: there are %s", name, names.data);
    cake_buf_free(&names);
    return NULL;
}
