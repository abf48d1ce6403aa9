/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keys and lists of a GGUF file about rotary embedding. Out: the fields of a config.json. Invariant: a
 * kind of scaling that is not known is refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf_writer.h"

/* What llama.cpp's converter makes of Llama 3's scaling, of one pair. */
static double llama3_factor(double theta, int64_t dim, int64_t pair, double factor, double context)
{
    double freq = pow(theta, -2.0 * (double)pair / (double)dim), wave = 2 * M_PI / freq;
    if (wave < context / 4)
        return 1;
    if (wave > context)
        return factor;
    double smooth = (context / wave - 1) / 3;
    return 1 / ((1 - smooth) / factor + smooth);
}

static bool is_llama3(const float *list, int64_t n, double theta, double factor, double context)
{
    for (int64_t i = 0; i < n; i++) {
        double want = llama3_factor(theta, 2 * n, i, factor, context);
        if (fabs((double)list[i] - want) > 1e-4 * want)
            return false;
    }
    return true;
}

/* rope_freqs: factors of Llama 3's scaling. Its parameters are found again where they are usual ones: then
 * frequencies are those of the original model to the last bit. Other factors stay a list. */
static void put_freqs(cake_gguf_writer *w, double theta)
{
    float *list = NULL;
    int64_t n = 0;
    double found = 0;
    w->err = w->err ? w->err : cake_gguf_parts_floats(w->parts, w->topic, "rope_freqs.weight", &list, &n);
    if (w->err)
        return;
    float most = 1;
    for (int64_t i = 0; i < n; i++)
        most = list[i] > most ? list[i] : most;
    for (double context = 16; context <= 1 << 20 && !found; context *= 2)
        found = is_llama3(list, n, theta, (double)most, context) ? context : 0;
    if (found) {
        cake_buf_adds(w->out, ", \"rope_scaling\": {\"rope_type\": \"llama3\"");
        cake_gguf_put_real(w, "factor", (double)most);
        cake_buf_addf(w->out,
                      ", \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                      "\"original_max_position_embeddings\": %.0f}",
                      found);
    } else {
        cake_buf_adds(w->out, ", \"rope_scaling\": {\"rope_type\": \"longrope\", \"factor\": 1, "
                              "\"attention_factor\": 1");
        cake_gguf_put_list(w, "short_factor", list, n);
        cake_gguf_put_list(w, "long_factor", list, n);
        cake_buf_addc(w->out, '}');
    }
    free(list);
}

/* attention_factor only where it is not the one that follows from the factor, which is exact. */
static void put_yarn(cake_gguf_writer *w)
{
    static const char *const betas[][2] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                           {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    double factor = cake_gguf_get_real(w, "rope.scaling.factor", NAN), magnitude = 0;
    double attention = cake_gguf_get_real(w, "rope.scaling.yarn_attn_factor", 0);
    int64_t context = cake_gguf_get_int(w, "rope.scaling.original_context_length", CAKE_GGUF_REQUIRED, 1);
    if (cake_gguf_get_real(w, "rope.scaling.yarn_ext_factor", 1) != 1)
        cake_gguf_refuse(w, "rope.scaling.yarn_ext_factor", "only 1 is supported");
    cake_gguf_put_real(w, "factor", factor);
    cake_gguf_put_int(w, "original_max_position_embeddings", context);
    for (int i = 0; i < 2; i++)
        if (cake_gguf_value_of(w, betas[i][0]))
            cake_gguf_put_real(w, betas[i][1], cake_gguf_get_real(w, betas[i][0], 0));
    if (w->arch->latent && cake_gguf_value_of(w, "rope.scaling.yarn_log_multiplier")) {
        char text[32]; /* the shortest decimal of float32 is what was multiplied by 0.1 */
        snprintf(text, sizeof text, "%.7g", cake_gguf_get_real(w, "rope.scaling.yarn_log_multiplier", 0));
        snprintf(text, sizeof text, "%.7g", 10 * strtod(text, NULL));
        cake_buf_addf(w->out, ", \"mscale\": %s, \"mscale_all_dim\": %s", text, text);
    } else if (w->arch->grows && cake_gguf_value_of(w, "rope.scaling.yarn_log_multiplier")) {
        cake_gguf_put_real(w, "mscale", 1);
        cake_gguf_put_real(w, "mscale_all_dim", cake_gguf_get_real(w, "rope.scaling.yarn_log_multiplier", 0));
    } else {
        cake_gguf_refuse(w, "rope.scaling.yarn_log_multiplier", "it is not supported for this architecture");
    }
    if (w->arch->grows)
        cake_gguf_put_real(w, "llama_4_scaling_beta",
                           cake_gguf_get_real(w, "attention.temperature_scale", 0));
    magnitude = 0.1 * log(factor) + 1;
    if (attention != 0 && fabs(attention - magnitude) > 1e-6)
        cake_gguf_put_real(w, "attention_factor", attention);
}

static void put_scaling(cake_gguf_writer *w, const char *type)
{
    cake_buf_addf(w->out, ", \"rope_scaling\": {\"rope_type\": \"%s\"", type);
    if (!strcmp(type, "linear"))
        cake_gguf_put_real(w, "factor", cake_gguf_get_real(w, "rope.scaling.factor", NAN));
    else
        put_yarn(w);
    if (!strcmp(w->arch->name, "gpt-oss")) /* its yarn is never rounded to whole pairs */
        cake_buf_adds(w->out, ", \"truncate\": false");
    cake_buf_addc(w->out, '}');
}

/* The old spelling of linear scaling is a factor of the positions. */
void cake_gguf_put_rope(cake_gguf_writer *w)
{
    cake_gguf_text type = {0};
    double theta = cake_gguf_get_real(w, "rope.freq_base", 10000),
           scale = cake_gguf_get_real(w, "rope.scale_linear", 1);
    if (!w->err)
        w->err = cake_gguf_text_of(w->g, cake_gguf_key_of(w, "rope.scaling.type"), &type);
    cake_gguf_put_real(w, "rope_theta", theta);
    if (w->err)
        return;
    if (scale != 1 && !type.len) {
        cake_buf_adds(w->out, ", \"rope_scaling\": {\"rope_type\": \"linear\"");
        cake_gguf_put_real(w, "factor", scale);
        cake_buf_addc(w->out, '}');
    } else if (type.len == 6 && !memcmp(type.at, "linear", 6)) {
        put_scaling(w, "linear");
    } else if (type.len == 4 && !memcmp(type.at, "yarn", 4)) {
        put_scaling(w, "yarn");
    } else if (type.len && !(type.len == 4 && !memcmp(type.at, "none", 4)) &&
               !(type.len == 8 && !memcmp(type.at, "longrope", 8) &&
                 cake_gguf_has_tensor(w, "rope_factors_long.weight"))) {
        cake_gguf_refuse(w, "rope.scaling.type", "only none, linear, yarn and longrope are supported");
    } else if (cake_gguf_has_tensor(w, "rope_freqs.weight")) {
        put_freqs(w, theta);
    }
}

/* Heads of which not all elements are rotated. */
void cake_gguf_put_part(cake_gguf_writer *w)
{
    int64_t n = cake_gguf_get_int(w, "rope.dimension_count", w->head_dim, 1);
    if (n != w->head_dim)
        cake_buf_addf(w->out, ", \"partial_rotary_factor\": %.17g", (double)n / (double)w->head_dim);
}

void cake_gguf_check_whole(cake_gguf_writer *w)
{
    if (!w->err && cake_gguf_get_int(w, "rope.dimension_count", w->head_dim, 1) != w->head_dim)
        cake_gguf_refuse(w, "rope.dimension_count",
                         "heads that are rotated in part are not supported for this architecture");
}
