/* SPDX-License-Identifier: Apache-2.0
 *
 * In: names and shapes of tensors. Out: which of them are a quantised matrix, and in what format its rows
 * are. Invariant: after check the bytes of every tensor are as many as its rows need.
 */
#include "model/quantized.h"

#include <string.h>

#define MOST_PARTS 3

/* A way of storing. A tensor's name is that of the weight without ".weight", then one of these. */
typedef struct scheme {
    const char *codes, *codes_dtype;
    const char *scales[2]; /* the first one that is there */
    const char *zeros, *factor, *index;
    const char *scales_dtype; /* NULL: any floating-point type */
    cake_code code;
    bool flips, divides, packed_zeros;
    int offset; /* without zero points */
} scheme;

static const scheme by_rows[] = {
    {.codes = ".weight",
     .codes_dtype = "F8_E4M3",
     .scales = {".weight_scale_inv", ".weight_scale"},
     .code = CAKE_CODE_E4M3},
    {.codes = ".weight",
     .codes_dtype = "I8",
     .scales = {".weight_scale"},
     .zeros = ".weight_zero_point",
     .code = CAKE_CODE_U8,
     .flips = true,
     .offset = 128},
    {.codes = ".weight",
     .codes_dtype = "U8",
     .scales = {".weight_scale"},
     .factor = ".weight_scale_2",
     .scales_dtype = "F8_E4M3",
     .code = CAKE_CODE_E2M1},
    {.codes = ".weight_packed",
     .codes_dtype = "U8",
     .scales = {".weight_scale"},
     .factor = ".weight_global_scale",
     .scales_dtype = "F8_E4M3",
     .code = CAKE_CODE_E2M1,
     .divides = true},
    {.codes = ".weight_packed",
     .codes_dtype = "U8",
     .scales = {".weight_scale"},
     .scales_dtype = "U8",
     .code = CAKE_CODE_E2M1},
    {.codes = ".weight_packed",
     .codes_dtype = "I32",
     .scales = {".weight_scale"},
     .zeros = ".weight_zero_point",
     .index = ".weight_g_idx",
     .code = CAKE_CODE_U4,
     .packed_zeros = true,
     .offset = 8},
    {.codes = "_blocks",
     .codes_dtype = "U8",
     .scales = {"_scales"},
     .scales_dtype = "U8",
     .code = CAKE_CODE_E2M1},
};

static const scheme by_columns = {.codes = ".qweight",
                                  .codes_dtype = "I32",
                                  .scales = {".scales"},
                                  .zeros = ".qzeros",
                                  .index = ".g_idx",
                                  .code = CAKE_CODE_U4};

/* ---- find */

typedef struct search {
    const cake_tensor_index *index;
    const char *name;
    size_t length; /* of the name without ".weight" */
} search;

static const cake_indexed_tensor *find(const search *s, const char *suffix)
{
    if (!suffix)
        return NULL;
    cake_buf name = {0};
    cake_buf_add(&name, s->name, s->length);
    cake_buf_adds(&name, suffix);
    const cake_indexed_tensor *found = cake_tensor_index_find(s->index, name.data);
    cake_buf_free(&name);
    return found;
}

static bool is_type(const cake_indexed_tensor *t, const char *dtype)
{
    return !strcmp(t->tensor->dtype_name, dtype);
}

/* The type of scales; false: it is none. */
static bool scale_type(const cake_indexed_tensor *t, cake_scale *out)
{
    static const struct {
        const char *dtype;
        cake_scale scale;
    } types[] = {{"F32", CAKE_SCALE_F32},      {"BF16", CAKE_SCALE_BF16},    {"F16", CAKE_SCALE_F16},
                 {"F8_E4M3", CAKE_SCALE_E4M3}, {"F8_E8M0", CAKE_SCALE_E8M0}, {"U8", CAKE_SCALE_E8M0}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_type(t, types[i].dtype)) {
            *out = types[i].scale;
            return true;
        }
    return false;
}

/* Whether the tensors of a scheme are there, with its types. */
static bool matches(const search *s, const scheme *of, cake_quantized *q)
{
    *q = (cake_quantized){.flips = of->flips, .packed_zeros = of->packed_zeros, .shared = 1};
    q->part[CAKE_QUANT_CODES] = find(s, of->codes);
    if (!q->part[CAKE_QUANT_CODES] || !is_type(q->part[CAKE_QUANT_CODES], of->codes_dtype))
        return false;
    for (int i = 0; i < 2 && !q->part[CAKE_QUANT_SCALES]; i++)
        q->part[CAKE_QUANT_SCALES] = find(s, of->scales[i]);
    const cake_indexed_tensor *scales = q->part[CAKE_QUANT_SCALES];
    if (!scales || (of->scales_dtype && !is_type(scales, of->scales_dtype)))
        return false;
    q->part[CAKE_QUANT_ZEROS] = find(s, of->zeros);
    q->part[CAKE_QUANT_FACTOR] = find(s, of->factor);
    q->part[CAKE_QUANT_INDEX] = find(s, of->index);
    return true;
}

/* -1: more than 63 bits hold. */
static int64_t elements(const cake_tensor *t, int from)
{
    int64_t n = 1;
    for (int i = from; i < t->rank; i++)
        if (__builtin_mul_overflow(n, t->shape[i], &n))
            return -1;
    return n;
}

static int64_t up(int64_t n, int64_t by)
{
    return by ? n / by + (n % by != 0) : 1;
}

/* Values of a group; 0: the whole row is one, or the shapes do not tell. Sets what rows share. */
static int group_of(cake_quantized *q, const scheme *of, const cake_quantization *how, int64_t n_row,
                    int n_in)
{
    const cake_tensor *t = q->part[CAKE_QUANT_SCALES]->tensor;
    if (elements(t, 0) == 1) {
        q->shared = n_row;
        return 0;
    }
    if (of->code == CAKE_CODE_E4M3 && how->block[0] && t->rank == 2 &&
        t->shape[0] == up(n_row, how->block[0]) && t->shape[1] == up(n_in, how->block[1])) {
        q->shared = how->block[0];
        return how->block[1];
    }
    const int64_t n = of == &by_columns ? (t->rank ? t->shape[0] : 0)
                      : t->rank < 2     ? 1
                                        : t->shape[t->rank - 1];
    return n > 1 && n_in % n == 0 ? (int)(n_in / n) : 0;
}

/* Codes of 8 bits take twice the words. */
static cake_code code_of(const cake_quantized *q, const scheme *of, bool awq, int n_in)
{
    const cake_tensor *t = q->part[CAKE_QUANT_CODES]->tensor;
    if (of->code != CAKE_CODE_U4 || awq || !t->rank)
        return of->code;
    return t->shape[of == &by_columns ? 0 : t->rank - 1] == up(n_in, 4) ? CAKE_CODE_U8 : CAKE_CODE_U4;
}

static void describe(cake_quantized *q, const scheme *of, const cake_quantization *how, int64_t n_row,
                     int n_in)
{
    cake_format f = {.factor = q->part[CAKE_QUANT_FACTOR], .divides = of->divides};
    const bool columns = of == &by_columns, awq = how->method == CAKE_QUANT_AWQ;
    q->layout = !columns ? CAKE_QUANT_BY_ROWS : awq ? CAKE_QUANT_BY_AWQ : CAKE_QUANT_BY_GPTQ;
    q->unsaid = columns && !awq && how->method != CAKE_QUANT_GPTQ;
    q->any_order = columns && how->any_order;
    if (!scale_type(q->part[CAKE_QUANT_SCALES], &f.scale))
        return;
    f.group = group_of(q, of, how, n_row, n_in);
    f.code = code_of(q, of, columns && awq, n_in);
    f.zero = q->part[CAKE_QUANT_ZEROS];
    f.offset = f.zero ? (columns && !awq ? how->less : 0) : f.code == CAKE_CODE_U8 ? 128 : of->offset;
    f.indexed = q->part[CAKE_QUANT_INDEX] && (!columns || how->any_order);
    q->format = cake_format_grouped(&f);
}

void cake_quantized_find(const cake_tensor_index *index, const cake_quantization *how, const char *name,
                         int64_t n_row, int n_in, cake_quantized *out)
{
    const char *suffix = ".weight";
    const size_t length = strlen(name), end = strlen(suffix);
    const bool has = length > end && !strcmp(name + length - end, suffix);
    const search s = {index, name, has ? length - end : length};
    *out = (cake_quantized){0};
    cake_quantized q;
    for (size_t i = 0; i < sizeof by_rows / sizeof *by_rows; i++)
        if (matches(&s, &by_rows[i], &q)) {
            describe(&q, &by_rows[i], how, n_row, n_in);
            *out = q;
            return;
        }
    if (matches(&s, &by_columns, &q)) {
        describe(&q, &by_columns, how, n_row, n_in);
        *out = q;
    }
}

/* ---- check */

static bool fail_shape(const cake_tensor *is, int64_t rows, int64_t columns, cake_buf *why)
{
    cake_buf_addf(why, "tensor %s has shape [", is->name);
    for (int i = 0; i < is->rank; i++)
        cake_buf_addf(why, "%s%lld", i ? ", " : "", (long long)is->shape[i]);
    cake_buf_addf(why, "], but its matrix needs [%lld, %lld]", (long long)rows, (long long)columns);
    return false;
}

/* Adds to why unless the tensor's first dimensions are so many rows, and the others so many columns. */
static bool need(const cake_indexed_tensor *t, int64_t rows, int64_t columns, cake_buf *why)
{
    const cake_tensor *is = t->tensor;
    for (int split = 0; split <= is->rank; split++)
        if (elements(is, split) == columns && elements(is, 0) == rows * columns)
            return true;
    return fail_shape(is, rows, columns, why);
}

/* The same of a tensor with two dimensions, whose lines are read. */
static bool need_lines(const cake_indexed_tensor *t, int64_t lines, int64_t columns, cake_buf *why)
{
    const cake_tensor *is = t->tensor;
    return (is->rank == 2 && is->shape[0] == lines && is->shape[1] == columns) ||
           fail_shape(is, lines, columns, why);
}

static bool need_type(const cake_indexed_tensor *t, const char *dtype, cake_buf *why)
{
    if (is_type(t, dtype))
        return true;
    cake_buf_addf(why, "tensor %s has dtype %s, but %s is expected", t->tensor->name, t->tensor->dtype_name,
                  dtype);
    return false;
}

static bool check_rows(const cake_quantized *q, int64_t n_row, int n_in, cake_buf *why)
{
    const cake_indexed_tensor *codes = q->part[CAKE_QUANT_CODES], *zeros = q->part[CAKE_QUANT_ZEROS];
    const int64_t groups = cake_format_groups(q->format, n_in), word = cake_quantized_per_word(q);
    const bool small = q->format->code == CAKE_CODE_E2M1, words = is_type(codes, "I32");
    if (!need(codes, n_row,
              words   ? up(n_in, word)
              : small ? up(n_in, 2)
                      : n_in,
              why) ||
        !need(q->part[CAKE_QUANT_SCALES], up(n_row, q->shared), groups, why))
        return false;
    if (zeros && q->packed_zeros)
        return need_type(zeros, "I32", why) && need(zeros, up(n_row, word), groups, why);
    return !zeros || (need_type(zeros, "I8", why) && need(zeros, up(n_row, q->shared), groups, why));
}

static bool check_columns(const cake_quantized *q, int64_t n_row, int n_in, cake_buf *why)
{
    const cake_indexed_tensor *codes = q->part[CAKE_QUANT_CODES], *zeros = q->part[CAKE_QUANT_ZEROS],
                              *scales = q->part[CAKE_QUANT_SCALES];
    const int64_t groups = cake_format_groups(q->format, n_in), word = cake_quantized_per_word(q);
    const bool awq = q->layout == CAKE_QUANT_BY_AWQ;
    if (!zeros) {
        cake_buf_addf(why, "tensor %s has no qzeros beside it", codes->tensor->name);
        return false;
    }
    if (q->unsaid) {
        cake_buf_addf(
            why,
            "tensor %s is GPTQ's or AWQ's, but config.json has no quantization_config of either; add "
            "the object of quantize_config.json (with \"quant_method\": \"gptq\") or "
            "quant_config.json (\"awq\")",
            codes->tensor->name);
        return false;
    }
    if (q->any_order && !q->part[CAKE_QUANT_INDEX]) {
        cake_buf_addf(why, "tensor %s has no g_idx beside it, but desc_act in config.json is true",
                      codes->tensor->name);
        return false;
    }
    if (cake_scale_bytes(q->format->scale) == 1) {
        cake_buf_addf(why, "tensor %s has dtype %s, but F16, BF16 or F32 is expected", scales->tensor->name,
                      scales->tensor->dtype_name);
        return false;
    }
    if (!need_type(zeros, "I32", why))
        return false;
    if (n_row % word || n_in % word) {
        cake_buf_addf(why, "tensor %s is of %lld x %d values, but multiples of %lld are expected",
                      codes->tensor->name, (long long)n_row, n_in, (long long)word);
        return false;
    }
    return need_lines(codes, awq ? n_in : n_in / word, awq ? n_row / word : n_row, why) &&
           need_lines(scales, groups, n_row, why) && need_lines(zeros, groups, n_row / word, why);
}

bool cake_quantized_check(const cake_quantized *q, int64_t n_row, int n_in, cake_buf *why)
{
    const cake_indexed_tensor *scales = q->part[CAKE_QUANT_SCALES], *index = q->part[CAKE_QUANT_INDEX],
                              *factor = q->part[CAKE_QUANT_FACTOR];
    if (!q->format) {
        cake_buf_addf(why, "tensor %s has dtype %s, which no scales have", scales->tensor->name,
                      scales->tensor->dtype_name);
        return false;
    }
    if (index && cake_format_groups(q->format, n_in) > UINT16_MAX) {
        cake_buf_addf(why, "tensor %s chooses among %d groups, but at most %d are expected",
                      index->tensor->name, cake_format_groups(q->format, n_in), UINT16_MAX);
        return false;
    }
    if (index && !(need_type(index, "I32", why) && need(index, n_in, 1, why)))
        return false;
    if (factor && !(need_type(factor, "F32", why) && need(factor, 1, 1, why)))
        return false;
    return q->layout == CAKE_QUANT_BY_ROWS ? check_rows(q, n_row, n_in, why)
                                           : check_columns(q, n_row, n_in, why);
}
