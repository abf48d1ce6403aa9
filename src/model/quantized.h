/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantised weights in safetensors: the tensors that together make a matrix, and how its rows are put
 * together from them. Layouts: compressed-tensors, Hugging Face's FP8 and MXFP4, ModelOpt, GPTQ, AWQ.
 */
#ifndef CAKE_MODEL_QUANTIZED_H
#define CAKE_MODEL_QUANTIZED_H

#include "base/buf.h"
#include "config/quantization.h"
#include "kernels/format.h"
#include "model/tensor_index.h"

typedef enum cake_quant_layout {
    CAKE_QUANT_BY_ROWS, /* codes and scales row by row */
    CAKE_QUANT_BY_GPTQ, /* codes [n_in / codes of a word, n_out], scales and zero points [groups, n_out] */
    CAKE_QUANT_BY_AWQ   /* codes [n_in, n_out / 8], scales and zero points [groups, n_out] */
} cake_quant_layout;

enum {
    CAKE_QUANT_CODES,
    CAKE_QUANT_SCALES,
    CAKE_QUANT_ZEROS,
    CAKE_QUANT_FACTOR, /* one number for the whole tensor */
    CAKE_QUANT_INDEX,  /* the group of each column, if they do not come in order */
    CAKE_N_QUANT
};

typedef struct cake_quantized {
    const cake_format *format; /* of rows; NULL: the tensor is not quantised */
    cake_quant_layout layout;
    const cake_indexed_tensor *part[CAKE_N_QUANT]; /* NULL: there is none */
    int64_t shared;                                /* rows that share a row of scales */
    bool flips;                                    /* codes and zero points are signed in the file */
    bool packed_zeros;                             /* by rows: several rows' zero points in a word */
    bool unsaid;    /* by columns: quantization_config does not say which of the two it is */
    bool any_order; /* by columns: it says that groups do not come in order */
} cake_quantized;

/* A matrix of n_row rows (of all experts, if they are one tensor) and n_in columns, by the name that it would
 * have if it were not quantised. */
void cake_quantized_find(const cake_tensor_index *index, const cake_quantization *how, const char *name,
                         int64_t n_row, int n_in, cake_quantized *out);
/* Whether the shapes of its tensors fit together; else why says which one does not, and how. */
bool cake_quantized_check(const cake_quantized *q, int64_t n_row, int n_in, cake_buf *why);

/* Codes in a word of 32 bits. */
static inline int cake_quantized_per_word(const cake_quantized *q)
{
    return q->format->code == CAKE_CODE_U8 ? 4 : 8;
}

#endif
