/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantised matrices as each tool writes them: codes, scales, zero points and groups are drawn at random and
 * packed here once more; the loaded rows must be what these numbers say. Then files with one thing wrong.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/format.h"
#include "model/model.h"

#include "tensors.h"

/* FF: wide enough that threads read pieces of lines. */
enum { DIM = 160, FF = 3872, VOCAB = 16, MOST = FF * DIM };

typedef enum layout { FP8, INT8, PACKED, NVFP4, MODELOPT, MXFP4, GPTQ, AWQ } layout;

typedef struct scheme {
    const char *name, *config; /* the inside of quantization_config */
    layout layout;
    int bits, group; /* group 0: a row */
    bool zeros, any_order;
    const char *scales; /* dtype */
    int block;          /* FP8: rows that share scales; -1: all */
} scheme;

#define COMPRESSED "\"quant_method\":\"compressed-tensors\",\"format\":"

static const scheme schemes[] = {
    {"FP8 in blocks, F32", "\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]", FP8, 8, 128, false,
     false, "F32", 128},
    {"FP8 in blocks, BF16", "\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]", FP8, 8, 128, false,
     false, "BF16", 128},
    {"FP8 by channel", COMPRESSED "\"float-quantized\"", FP8, 8, 0, false, false, "BF16", 1},
    {"FP8 by tensor", COMPRESSED "\"float-quantized\"", FP8, 8, 0, false, false, "F32", -1},
    {"int8", COMPRESSED "\"int-quantized\"", INT8, 8, 0, false, false, "BF16", 1},
    {"int8 with zero points", COMPRESSED "\"int-quantized\"", INT8, 8, 0, true, false, "F32", 1},
    {"packed 4 bits", COMPRESSED "\"pack-quantized\"", PACKED, 4, 32, false, false, "BF16", 1},
    {"packed 4 bits with zero points", COMPRESSED "\"pack-quantized\"", PACKED, 4, 32, true, false, "F16", 1},
    {"packed 4 bits in any order", COMPRESSED "\"pack-quantized\"", PACKED, 4, 32, true, true, "F16", 1},
    {"packed 8 bits", COMPRESSED "\"pack-quantized\"", PACKED, 8, 16, true, false, "BF16", 1},
    {"NVFP4", COMPRESSED "\"nvfp4-pack-quantized\"", NVFP4, 4, 16, false, false, "F8_E4M3", 1},
    {"NVFP4 of ModelOpt", "\"quant_method\":\"modelopt\"", MODELOPT, 4, 16, false, false, "F8_E4M3", 1},
    {"MXFP4", COMPRESSED "\"mxfp4-pack-quantized\"", MXFP4, 4, 32, false, false, "U8", 1},
    {"GPTQ 4 bits", "\"quant_method\":\"gptq\",\"bits\":4", GPTQ, 4, 32, true, false, "F16", 1},
    {"GPTQ 4 bits, v2", "\"quant_method\":\"gptq\",\"bits\":4,\"checkpoint_format\":\"gptq_v2\"", GPTQ, 4, 0,
     true, false, "F16", 1},
    {"GPTQ 4 bits in any order", "\"quant_method\":\"gptq\",\"bits\":4,\"desc_act\":true", GPTQ, 4, 32, true,
     true, "F16", 1},
    {"GPTQ 8 bits", "\"quant_method\":\"gptq\",\"bits\":8", GPTQ, 8, 32, true, false, "BF16", 1},
    {"AWQ", "\"quant_method\":\"awq\",\"bits\":4,\"version\":\"GEMM\"", AWQ, 4, 32, true, false, "F16", 1},
    {"MXFP8", COMPRESSED "\"mxfp8-quantized\"", FP8, 8, 32, false, false, "U8", 1},
    {"GPTQ 4 bits, v2 by its later name", "\"quant_method\":\"gptq\",\"bits\":4,\"format\":\"gptq_v2\"", GPTQ,
     4, 0, true, false, "F16", 1},
};
/* A scheme without quantization_config. */
static const scheme unsaid = {"GPTQ, unsaid", NULL, GPTQ, 4, 32, true, false, "F16", 1};
enum { UNSAID = -1 };

/* ---- drawing */

static uint32_t state = 1;

static int draw(int n) /* from 0 to n - 1 */
{
    state = state * 1664525 + 1013904223;
    return (int)((state >> 8) % (uint32_t)n);
}

static float e4m3_value(int bits)
{
    int e = bits >> 3 & 15, m = bits & 7;
    float v = e ? (1 + (float)m / 8) * powf(2, (float)e - 7) : (float)m / 8 * powf(2, -6);
    return bits & 128 ? -v : v;
}

static float e2m1_value(int bits)
{
    static const float size[] = {0, .5F, 1, 1.5F, 2, 3, 4, 6};
    return bits & 8 ? -size[bits & 7] : size[bits & 7];
}

/* One matrix: what is stored, and what it means. */
typedef struct drawn {
    int out, in, groups, shared;
    int code[MOST], zero[MOST], index[FF];
    float scale[MOST], factor; /* zero, scale [out / shared, groups] */
    float value[MOST];
} drawn;

static float draw_scale(const scheme *s)
{
    if (!strcmp(s->scales, "F8_E4M3"))
        return e4m3_value(draw(126) + 1);
    if (!strcmp(s->scales, "U8"))
        return powf(2, (float)(draw(9) - 8));
    float v = (float)(draw(200) + 1) / 4096; /* exact in 16 bits */
    return strcmp(s->scales, "F32") ? v : v * 1.0000001F + 1e-7F;
}

static drawn *draw_matrix(const scheme *s, int out, int in)
{
    static drawn d;
    const int size = s->group ? s->group : in, range = 1 << s->bits;
    d.out = out;
    d.in = in;
    d.groups = (in + size - 1) / size;
    d.shared = s->block < 0 ? out : s->block;
    d.factor = s->layout == NVFP4 ? 96.5F : s->layout == MODELOPT ? 0.0123F : 1;
    for (int k = 0; k < in; k++)
        d.index[k] = s->any_order ? draw(d.groups) : k / size;
    for (int i = 0; i < out * d.groups; i++) {
        d.scale[i] = draw_scale(s);
        d.zero[i] = s->layout == GPTQ ? 1 + draw(range - 1) : draw(range);
    }
    for (int i = 0; i < out * in; i++) {
        int at = i / in / d.shared * d.groups + d.index[i % in];
        d.code[i] = s->layout == FP8 ? draw(254) / 127 * 128 + draw(127) : draw(range);
        int zero = s->zeros ? d.zero[at] : range / 2;
        float scale = s->layout == NVFP4 ? d.scale[at] / d.factor : d.scale[at] * d.factor;
        float plain = s->layout == FP8                           ? e4m3_value(d.code[i])
                      : s->layout >= NVFP4 && s->layout <= MXFP4 ? e2m1_value(d.code[i])
                                                                 : (float)(d.code[i] - zero);
        d.value[i] = plain * scale;
    }
    return &d;
}

/* ---- writing */

static void put(writer *w, const char *name, const char *suffix, const char *dtype, int rows, int columns,
                const void *bytes, size_t n)
{
    size_t begin = w->data.len;
    cake_buf_add(&w->data, bytes, n);
    cake_buf_addf(&w->header, "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", w->header.len ? "," : "{", name,
                  suffix, dtype);
    cake_buf_addf(&w->header, columns ? "%d,%d" : "%d", rows, columns);
    cake_buf_addf(&w->header, "],\"data_offsets\":[%zu,%zu]}", begin, w->data.len);
}

static void put_scales(writer *w, const char *name, const char *suffix, const scheme *s, const float *scale,
                       int rows, int columns)
{
    static char bytes[4 * MOST / 8];
    size_t n = 0;
    for (int i = 0; i < rows * (columns ? columns : 1); i++) {
        uint16_t half =
            !strcmp(s->scales, "BF16") ? cake_bf16_from_f32(scale[i]) : cake_f16_from_f32(scale[i]);
        uint8_t byte = 0;
        if (!strcmp(s->scales, "U8"))
            byte = (uint8_t)(127 + (int)log2f(scale[i]));
        while (!strcmp(s->scales, "F8_E4M3") && e4m3_value(byte) != scale[i])
            byte++;
        size_t size = !strcmp(s->scales, "F32")                          ? 4
                      : s->scales[0] == 'B' || !strcmp(s->scales, "F16") ? 2
                                                                         : 1;
        memcpy(bytes + n,
               size == 4   ? (const void *)&scale[i]
               : size == 2 ? (const void *)&half
                           : &byte,
               size);
        n += size;
    }
    put(w, name, suffix, s->scales, rows, columns, bytes, n);
}

/* Codes [rows, columns] of `from`, whose lines are `step` apart, in words of 32 bits along columns. */
static void put_words(writer *w, const char *name, const char *suffix, const int *from, int rows, int columns,
                      int step, int stride, int bits, int less, const int *order)
{
    int per = 32 / bits, words = (columns + per - 1) / per;
    uint32_t *word = cake_alloc((size_t)(rows * words), sizeof *word);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            int place = order ? order[c % per] : c % per;
            word[r * words + c / per] |= (uint32_t)(from[r * step + c * stride] - less) << place * bits;
        }
    put(w, name, suffix, "I32", rows, words, word, (size_t)(rows * words) * 4);
    free(word);
}

/* The same with words along rows: [rows / per, columns]. */
static void put_columns(writer *w, const char *name, const char *suffix, const int *from, int rows,
                        int columns, int step, int stride, int bits, int less)
{
    int per = 32 / bits, lines = (rows + per - 1) / per;
    uint32_t *word = cake_alloc((size_t)(lines * columns), sizeof *word);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            word[r / per * columns + c] |= (uint32_t)(from[r * step + c * stride] - less) << r % per * bits;
    put(w, name, suffix, "I32", lines, columns, word, (size_t)(lines * columns) * 4);
    free(word);
}

static void put_bytes(writer *w, const char *name, const char *suffix, const char *dtype, const int *from,
                      int rows, int columns, int flip)
{
    uint8_t *byte = cake_alloc((size_t)(rows * columns), 1);
    for (int i = 0; i < rows * columns; i++)
        byte[i] = (uint8_t)(from[i] ^ flip);
    put(w, name, suffix, dtype, rows, columns, byte, (size_t)(rows * columns));
    free(byte);
}

static void put_halves(writer *w, const char *name, const char *suffix, const drawn *d)
{
    uint8_t *byte = cake_alloc((size_t)(d->out * d->in / 2), 1);
    for (int i = 0; i < d->out * d->in; i++)
        byte[i / 2] |= (uint8_t)(d->code[i] << i % 2 * 4);
    put(w, name, suffix, "U8", d->out, d->in / 2, byte, (size_t)(d->out * d->in / 2));
    free(byte);
}

/* [groups, out] of [out, groups] */
static const float *transposed(const drawn *d)
{
    static float to[MOST];
    for (int r = 0; r < d->out; r++)
        for (int g = 0; g < d->groups; g++)
            to[g * d->out + r] = d->scale[r * d->groups + g];
    return to;
}

static void put_quantized(writer *w, const char *name, const scheme *s, const drawn *d)
{
    static const int awq[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int shared = (d->out + d->shared - 1) / d->shared, g = d->groups,
              less = !s->config || !strstr(s->config, "_v2");
    switch (s->layout) {
    case FP8:
        put_bytes(w, name, ".weight", "F8_E4M3", d->code, d->out, d->in, 0);
        put_scales(w, name, s->group ? ".weight_scale_inv" : ".weight_scale", s, d->scale, shared,
                   s->block < 0 ? 0 : g);
        break;
    case INT8:
        put_bytes(w, name, ".weight", "I8", d->code, d->out, d->in, 128);
        put_scales(w, name, ".weight_scale", s, d->scale, d->out, g);
        if (s->zeros)
            put_bytes(w, name, ".weight_zero_point", "I8", d->zero, d->out, g, 128);
        break;
    case PACKED:
        put_words(w, name, ".weight_packed", d->code, d->out, d->in, d->in, 1, s->bits, 0, NULL);
        put_scales(w, name, ".weight_scale", s, d->scale, d->out, g);
        if (s->zeros)
            put_columns(w, name, ".weight_zero_point", d->zero, d->out, g, g, 1, s->bits, 0);
        if (s->any_order)
            put(w, name, ".weight_g_idx", "I32", d->in, 0, d->index, (size_t)d->in * 4);
        break;
    case NVFP4:
    case MODELOPT:
    case MXFP4:
        put_halves(w, name, s->layout == MODELOPT ? ".weight" : ".weight_packed", d);
        put_scales(w, name, ".weight_scale", s, d->scale, d->out, g);
        if (s->layout != MXFP4)
            put(w, name, s->layout == NVFP4 ? ".weight_global_scale" : ".weight_scale_2", "F32", 1, 0,
                &d->factor, 4);
        break;
    case GPTQ:
        put_columns(w, name, ".qweight", d->code, d->in, d->out, 1, d->in, s->bits, 0);
        put_scales(w, name, ".scales", s, transposed(d), g, d->out);
        put_words(w, name, ".qzeros", d->zero, g, d->out, 1, g, s->bits, less, NULL);
        put(w, name, ".g_idx", "I32", d->in, 0, d->index, (size_t)d->in * 4);
        break;
    case AWQ:
        put_words(w, name, ".qweight", d->code, d->in, d->out, 1, d->in, 4, 0, awq);
        put_scales(w, name, ".scales", s, transposed(d), g, d->out);
        put_words(w, name, ".qzeros", d->zero, g, d->out, 1, g, 4, 0, awq);
        break;
    }
}

typedef struct spec {
    const char *name;
    int out, in; /* in 0: a vector */
} spec;

static const spec matrices[] = {
    {"model.layers.0.self_attn.q_proj", 64, DIM}, {"model.layers.0.self_attn.k_proj", 32, DIM},
    {"model.layers.0.self_attn.v_proj", 32, DIM}, {"model.layers.0.self_attn.o_proj", DIM, 64},
    {"model.layers.0.mlp.gate_proj", FF, DIM},    {"model.layers.0.mlp.up_proj", FF, DIM},
    {"model.layers.0.mlp.down_proj", DIM, FF},
};
enum { N_MATRIX = sizeof matrices / sizeof *matrices };

static float *expected[N_MATRIX];

static const char *write_quantized(const scheme *s, const char *from, const char *to)
{
    static char dir[256];
    static int n;
    static const spec plain[] = {{"model.embed_tokens.weight", VOCAB, DIM},
                                 {"lm_head.weight", VOCAB, DIM},
                                 {"model.norm.weight", DIM, 0},
                                 {"model.layers.0.input_layernorm.weight", DIM, 0},
                                 {"model.layers.0.post_attention_layernorm.weight", DIM, 0}};
    writer w = {0};
    cake_buf text = {0};
    state = 17;
    snprintf(dir, sizeof dir, "%s/quantized-%d", suite_tmp(), n++);
    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
    cake_buf_addf(
        &text,
        "{\"model_type\":\"llama\",\"hidden_size\":%d,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"head_dim\":32,\"intermediate_size\":%d,\"vocab_size\":%d,"
        "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6%s%s%s}",
        DIM, FF, VOCAB, s->config ? ",\"quantization_config\":{" : "", s->config ? s->config : "",
        s->config ? "}" : "");
    write_bytes(dir, "config.json", text.data, text.len);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        float ones[VOCAB * DIM];
        for (int j = 0; j < VOCAB * DIM; j++)
            ones[j] = 1;
        put(&w, plain[i].name, "", "F32", plain[i].out, plain[i].in, ones,
            (size_t)(plain[i].out * (plain[i].in ? plain[i].in : 1)) * 4);
    }
    for (int i = 0; i < N_MATRIX; i++) {
        const drawn *d = draw_matrix(s, matrices[i].out, matrices[i].in);
        put_quantized(&w, matrices[i].name, s, d);
        free(expected[i]);
        expected[i] = cake_alloc((size_t)(d->out * d->in), sizeof(float));
        memcpy(expected[i], d->value, (size_t)(d->out * d->in) * sizeof(float));
    }
    cake_buf_addc(&w.header, '}');
    char *at = from ? strstr(w.header.data, from) : NULL;
    CU_ASSERT(!from || at);
    if (at) {
        char *rest = cake_copy(at + strlen(from), strlen(at + strlen(from)));
        cake_buf_cut(&w.header, (size_t)(at - w.header.data));
        cake_buf_adds(&w.header, to);
        cake_buf_adds(&w.header, rest);
        free(rest);
    }
    write_tensors(dir, "model.safetensors", w.header.data, w.header.len, w.data.data, w.data.len);
    cake_buf_free(&w.header);
    cake_buf_free(&w.data);
    cake_buf_free(&text);
    return dir;
}

/* ---- reading */

static const cake_range layers = {0, 1};
static const cake_weight_set everything = {.range = &layers, .n_range = 1, .embed = true, .head = true};

static int wrong_values(const cake_kernels *op, const cake_weight *w, const float *want)
{
    const cake_exec one = {.size = 1};
    float *got = cake_alloc((size_t)(w->n_out * w->n_in), sizeof *got);
    int32_t row[FF];
    int bad = 0;
    for (int i = 0; i < w->n_out; i++)
        row[i] = i;
    op->gather(&one, got, w, row, w->n_out, 1);
    for (int i = 0; i < w->n_out * w->n_in; i++)
        bad += got[i] != want[i];
    free(got);
    return bad;
}

static void check_loaded(const char *dir, bool convert, int threads, const cake_kernels *op)
{
    const cake_model_options options = {.convert = convert, .dtype = CAKE_F32};
    cake_model *m = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_model_open(dir, &options, &m), CAKE_OK);
    CU_ASSERT_EQUAL(cake_model_quantized(m), !convert);
    CU_ASSERT_EQUAL_FATAL(cake_model_load(m, &everything, op, &(cake_loading){.threads = threads}), CAKE_OK);
    const cake_layer_weights *l = cake_model_layer(m, 0);
    const cake_weight *w[N_MATRIX] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
    for (int i = 0; i < N_MATRIX; i++) {
        CU_ASSERT_EQUAL(w[i]->format != NULL, !convert);
        CU_ASSERT_EQUAL(wrong_values(op, w[i], expected[i]), 0);
    }
    cake_model_close(m);
}

static void test_schemes(void)
{
    const cake_kernels *best = cake_kernels_at(cake_kernels_best());
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const char *dir = write_quantized(&schemes[i], NULL, NULL);
        check_loaded(dir, false, 1, &cake_kernels_ref);
        check_loaded(dir, false, 3, best);
        check_loaded(dir, true, 2, best);
    }
}

/* ---- what is wrong */

static const struct {
    int scheme;
    const char *from, *to, *said; /* in the header */
} faults[] = {
    {0, "weight_scale_inv", "weight_scale_out", "has dtype F8_E4M3, and no scales stand beside it"},
    {0, "\"shape\":[1,2],", "\"shape\":[2,1],",
     "q_proj.weight_scale_inv has shape [2, 1], but its matrix needs"},
    {6, "\"shape\":[64,20]", "\"shape\":[20,64]",
     "q_proj.weight_packed has shape [20, 64], but its matrix needs [64, 20]"},
    {6, "\"dtype\":\"BF16\"", "\"dtype\":\"I16\" ",
     "q_proj.weight_scale has dtype I16, which no scales have"},
    {8, "weight_g_idx\":{\"dtype\":\"I32\"", "weight_g_idx\":{\"dtype\":\"F32\"",
     "q_proj.weight_g_idx has dtype F32, but I32"},
    {13, "q_proj.g_idx", "q_proj.pre_quant_scale",
     "q_proj.pre_quant_scale: weights whose activations are scaled or corrected"},
    {13, "q_proj.qzeros", "q_proj.qzerow", "q_proj.qweight has no qzeros beside it"},
    {13, "\"shape\":[20,64]", "\"shape\":[20,64,1]",
     "q_proj.qweight has shape [20, 64, 1], but its matrix needs [20, 64]"},
    {17, "\"shape\":[5,8]", "\"shape\":[5,8,1]",
     "q_proj.qzeros has shape [5, 8, 1], but its matrix needs [5, 8]"},
    {13, "\"dtype\":\"F16\",\"shape\":[5,64]", "\"dtype\":\"U8\",\"shape\":[5,128]",
     "q_proj.scales has dtype U8, but F16, BF16 or F32 is expected"},
    {13, "\"shape\":[20,64]", "\"shape\":[0,4611686018427387904,4611686018427387904]", "q_proj.qweight"},
    {15, "q_proj.g_idx", "q_proj.g_idz", "q_proj.qweight has no g_idx beside it, but desc_act"},
    {UNSAID, NULL, NULL, "q_proj.qweight is GPTQ's or AWQ's, but config.json has no quantization_config"},
    {13, "\"shape\":[20,64]", "\"shape\":[64,20]",
     "q_proj.qweight has shape [64, 20], but its matrix needs [20, 64]"},
};

static cake_err open_said(const char *dir, cake_buf *said)
{
    cake_model *m = NULL;
    cake_log_capture(said);
    cake_err err = cake_model_open(dir, &(cake_model_options){0}, &m);
    if (!err)
        err = cake_model_load(m, &everything, &cake_kernels_ref, &(cake_loading){.threads = 1});
    cake_log_capture(NULL);
    cake_model_close(m);
    return err;
}

static void test_faults(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        cake_buf said = {0};
        const scheme *s = faults[i].scheme == UNSAID ? &unsaid : &schemes[faults[i].scheme];
        const char *dir = write_quantized(s, faults[i].from, faults[i].to);
        CU_ASSERT_EQUAL(open_said(dir, &said), CAKE_ERR_FATAL);
        CU_ASSERT(said.data && strstr(said.data, faults[i].said));
        if (!said.data || !strstr(said.data, faults[i].said))
            printf("%s\n", said.data ? said.data : "nothing");
        cake_buf_free(&said);
    }
}

/* Values that are wrong in the data: the first scale is not finite; a group does not exist; groups that are
 * said to be in order are not. */
static void test_values(void)
{
    static const struct {
        int scheme;
        const char *tensor, *said;
        uint32_t word;
    } bad[] = {
        {0, "q_proj.weight_scale_inv", "weight_scale_inv holds inf for row 0", 0x7F800000},
        {10, "q_proj.weight_global_scale", "weight_global_scale holds 0 for row 0", 0},
        {15, "q_proj.g_idx", "g_idx holds 5 for column 0, but there are 5 groups", 5},
        {15, "q_proj.g_idx", "g_idx holds 65536 for column 0, but there are 5 groups", 65536},
        {13, "q_proj.g_idx", "g_idx holds 3 for column 0, but desc_act", 3},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cake_buf said = {0};
        const char *dir = write_quantized(&schemes[bad[i].scheme], NULL, NULL);
        FILE *f = fopen(path_in(dir, "model.safetensors"), "r+b");
        char header[16384] = "";
        uint64_t length = 0;
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        CU_ASSERT_EQUAL(fread(&length, 8, 1, f), 1);
        CU_ASSERT_FATAL(length < sizeof header && fread(header, length, 1, f) == 1);
        const char *at = strstr(header, bad[i].tensor);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        fseek(f, (long)(8 + length) + strtol(strstr(at, "offsets\":[") + 10, NULL, 10), SEEK_SET);
        CU_ASSERT_EQUAL(fwrite(&bad[i].word, 4, 1, f), 1);
        fclose(f);
        CU_ASSERT_EQUAL(open_said(dir, &said), CAKE_ERR_FATAL);
        CU_ASSERT(said.data && strstr(said.data, bad[i].said));
        if (!said.data || !strstr(said.data, bad[i].said))
            printf("%s\n", said.data ? said.data : "nothing");
        cake_buf_free(&said);
    }
    for (int i = 0; i < N_MATRIX; i++)
        free(expected[i]);
}

int main(void)
{
    static const suite_test tests[] = {{"each way of storing", test_schemes},
                                       {"tensors that do not fit", test_faults},
                                       {"values that cannot be", test_values}};
    return SUITE_MAIN("quantized weights", tests);
}
