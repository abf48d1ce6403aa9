/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary frequencies and the factor of cos and sin against transformers 5.23 (float32), for heads of 12
 * elements and a context of 512.
 */
#include <math.h>

#include "configs.h"

static const char *const form =
    "{\"model_type\": \"llama\", \"hidden_size\": 48, \"num_hidden_layers\": 3, \"num_attention_heads\": 4,"
    "\"intermediate_size\": 100, \"vocab_size\": 517, \"max_position_embeddings\": 512, \"rms_norm_eps\": "
    "1e-5,"
    "\"rope_theta\": %s, \"%s\": %s}";

typedef struct rope_case {
    const char *field, *value, *theta;
    int rope_len;
    double attention, freq[6];
} rope_case;

static const rope_case cases[] = {
    {"rope_scaling",
     "null",
     "10000",
     1,
     1,
     {1.0, 0.2154434472322464, 0.04641588404774666, 0.009999999776482582, 0.002154434332624078,
      0.00046415894757956266}},
    {"rope_scaling",
     "{\"type\": \"linear\", \"factor\": 4.0}",
     "500000",
     1,
     1,
     {0.25, 0.028061548247933388, 0.0031498020980507135, 0.0003535533614922315, 3.968501550843939e-05,
      4.454494956007693e-06}},
    {"rope_parameters",
     "{\"rope_type\": \"llama3\", \"factor\": 8, \"rope_theta\": 500000, \"low_freq_factor\": 1,"
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}",
     "3",
     1,
     1, /* the inner base counts */
     {1.0, 0.01872318983078003, 0.0015749010490253568, 0.00017677668074611574, 1.9842507754219696e-05,
      2.2272474780038465e-06}},
    {"rope_scaling",
     "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1,"
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}",
     "500000",
     1,
     1,
     {1.0, 0.01872318983078003, 0.0015749010490253568, 0.00017677668074611574, 1.9842507754219696e-05,
      2.2272474780038465e-06}},
    {"rope_scaling",
     "{\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 64}",
     "10000.0",
     1,
     1.13862944,
     {1, 0.134652153, 0.011603971, 0.00249999994, 0.000538608583, 0.000116039737}},
    {"rope_scaling",
     "{\"type\": \"yarn\", \"factor\": 8.0, \"original_max_position_embeddings\": 4096, \"beta_fast\": 64, "
     "\"beta_slow\": 2, \"truncate\": false, \"mscale\": 1.0, \"mscale_all_dim\": 0.7}",
     "10000.0",
     1,
     1.05445651,
     {1, 0.215443447, 0.0376373269, 0.00423313351, 0.000269304292, 5.80198684e-05}},
    {"rope_scaling",
     "{\"type\": \"yarn\", \"factor\": 2.5, \"attention_factor\": 0.9, \"original_max_position_embeddings\": "
     "4096, \"beta_fast\": null}",
     "500.0",
     1,
     0.9,
     {1, 0.354953676, 0.125992104, 0.0393547975, 0.0120642474, 0.00360610476}},
    {"rope_scaling",
     "{\"type\": \"yarn\", \"factor\": null, \"original_max_position_embeddings\": 64}",
     "500.0",
     1,
     1.20794415,
     {1, 0.251425505, 0.0524967089, 0.00559017016, 0.0019842512, 0.000704317412}},
    {"rope_scaling",
     "{\"type\": \"dynamic\", \"factor\": 4.0}",
     "10000.0",
     512,
     1,
     {1, 0.215443447, 0.046415884, 0.00999999978, 0.00215443433, 0.000464158948}},
    {"rope_scaling",
     "{\"type\": \"dynamic\", \"factor\": 4.0}",
     "10000.0",
     1000,
     1,
     {1, 0.157347247, 0.0247581583, 0.00389562873, 0.000612966367, 9.64486171e-05}},
    {"rope_scaling",
     "{\"type\": \"longrope\", \"short_factor\": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], \"long_factor\": [1.0, 2.0, "
     "3.0, 5.0, 9.0, 20.0], \"original_max_position_embeddings\": 64}",
     "10000.0",
     64,
     1.22474487,
     {1, 0.195857689, 0.0386799015, 0.0076923077, 0.00153888157, 0.000309439318}},
    {"rope_scaling",
     "{\"type\": \"longrope\", \"short_factor\": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], \"long_factor\": [1.0, 2.0, "
     "3.0, 5.0, 9.0, 20.0], \"original_max_position_embeddings\": 64}",
     "10000.0",
     65,
     1.22474487,
     {1, 0.107721724, 0.0154719604, 0.00200000009, 0.000239381596, 2.32079474e-05}},
    {"rope_scaling",
     "{\"type\": \"longrope\", \"factor\": 32, \"short_factor\": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], "
     "\"long_factor\": [1.0, 2.0, 3.0, 5.0, 9.0, 20.0], \"original_max_position_embeddings\": 128}",
     "10000.0",
     1,
     1.30930734,
     {1, 0.195857689, 0.0386799015, 0.0076923077, 0.00153888157, 0.000309439318}},
    {"rope_scaling",
     "{\"type\": \"su\", \"attention_factor\": 1.5, \"short_factor\": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], "
     "\"long_factor\": [1.0, 2.0, 3.0, 5.0, 9.0, 20.0], \"original_max_position_embeddings\": 128}",
     "10000.0",
     200,
     1.5,
     {1, 0.107721724, 0.0154719604, 0.00200000009, 0.000239381596, 2.32079474e-05}},
    {"rope_parameters",
     "{\"rope_type\": \"proportional\", \"partial_rotary_factor\": 0.6, \"factor\": 2.0}",
     "10000.0",
     1,
     1,
     {0.5, 0.107721724, 0.023207942, 0, 0, 0}},
};

static void read_case(const rope_case *of, cake_config *config)
{
    cake_buf text = {0}, said = {0};
    cake_buf_addf(&text, form, of->theta, of->field, of->value);
    CU_ASSERT_EQUAL_FATAL(read_text(text.data, NULL, config, &said), CAKE_OK);
    cake_buf_free(&said);
    cake_buf_free(&text);
}

static void test_frequencies(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_config c;
        double freq[6];
        read_case(&cases[i], &c);
        CU_ASSERT(c.n_rope == 1 && c.rope[0].n_rot == 12);
        CU_ASSERT(fabs(c.rope[0].attention / cases[i].attention - 1) < 1e-6);
        cake_rope_frequencies(&c.rope[0], cases[i].rope_len, freq);
        for (int k = 0; k < 6; k++)
            CU_ASSERT(fabs(freq[k] - cases[i].freq[k]) <= 2e-6 * cases[i].freq[k]);
    }
}

/* Spans that share frequencies, and the length of the context. */
static void test_spans(void)
{
    cake_config c;
    read_case(&(rope_case){"rope_scaling", "{\"type\": \"dynamic\", \"factor\": 4.0}", "10000", 0, 0, {0}},
              &c);
    CU_ASSERT_EQUAL(c.context, 2048);
    CU_ASSERT_EQUAL(cake_rope_epoch(&c.rope[0], 512), cake_rope_epoch(&c.rope[0], 1));
    CU_ASSERT_NOT_EQUAL(cake_rope_epoch(&c.rope[0], 513), cake_rope_epoch(&c.rope[0], 512));
    CU_ASSERT_NOT_EQUAL(cake_rope_epoch(&c.rope[0], 514), cake_rope_epoch(&c.rope[0], 513));
    read_case(&(rope_case){"rope_scaling",
                           "{\"type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 256}",
                           "10000",
                           0,
                           0,
                           {0}},
              &c);
    CU_ASSERT_EQUAL(c.context, 1024);
    CU_ASSERT_EQUAL(cake_rope_epoch(&c.rope[0], 1 << 20), cake_rope_epoch(&c.rope[0], 1));
    read_case(&(rope_case){"rope_scaling",
                           "{\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1, 1, 1],"
                           "\"long_factor\": [1, 1, 1, 1, 1, 2], \"original_max_position_embeddings\": 256}",
                           "10000",
                           0,
                           0,
                           {0}},
              &c);
    CU_ASSERT_EQUAL(c.context, 512);
    CU_ASSERT_EQUAL(cake_rope_epoch(&c.rope[0], 256), cake_rope_epoch(&c.rope[0], 1));
    CU_ASSERT_NOT_EQUAL(cake_rope_epoch(&c.rope[0], 257), cake_rope_epoch(&c.rope[0], 256));
    CU_ASSERT_EQUAL(cake_rope_epoch(&c.rope[0], 257), cake_rope_epoch(&c.rope[0], 1 << 20));
}

int main(void)
{
    static const suite_test tests[] = {
        {"frequencies are those of transformers", test_frequencies},
        {"spans that share them; contexts that scaling extends", test_spans},
    };
    return SUITE_MAIN("rope", tests);
}
