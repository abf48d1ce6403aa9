/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types, and the weight matrix, which is opaque except to the table that packed it.
 */
#ifndef CAKE_KERNELS_TENSOR_H
#define CAKE_KERNELS_TENSOR_H

#include <stddef.h>
#include <stdint.h>

/* Marks small functions that GPU kernels call, too. */
#ifdef __CUDACC__
#define CAKE_ANYWHERE __host__ __device__
#else
#define CAKE_ANYWHERE
#endif

typedef enum cake_dtype {
    CAKE_F32,
    CAKE_BF16,
    CAKE_F16,
    CAKE_N_DTYPE,           /* number of element types in files and caches */
    CAKE_I8 = CAKE_N_DTYPE, /* of matrices in memory only; rows as in int8.h */
    CAKE_Q8,                /* of quantised matrices whose products are of integer codes (codes.h) */
    CAKE_N_KEPT             /* number of types that a matrix may be kept in */
} cake_dtype;

#ifdef __cplusplus
extern "C" {
#endif

size_t cake_dtype_bytes(cake_dtype dtype);     /* bytes of an element; not for CAKE_I8 */
const char *cake_dtype_name(cake_dtype dtype); /* "f32", "bf16", "f16", "int8" */

float cake_bf16_to_f32(uint16_t bits);
uint16_t cake_bf16_from_f32(float value); /* round to nearest even; NaN stays NaN */
float cake_f16_to_f32(uint16_t bits);
uint16_t cake_f16_from_f32(float value);

/* Converts n elements from dtype to float32, and back. */
void cake_to_f32(float *out, const void *in, cake_dtype dtype, int64_t n);
void cake_from_f32(void *out, const float *in, cake_dtype dtype, int64_t n);

#ifdef __cplusplus
}
#endif

struct cake_format; /* format.h */

/* y = x W^T with W [n_out, n_in], as transformers stores the weight of a Linear. */
typedef struct cake_weight {
    void *data; /* packed; borrowed from the model's arena */
    int n_out, n_in;
    cake_dtype dtype; /* of its products, for which x is packed */
    /* how it is stored (format.h); NULL: as elements of dtype. Quantised matrices are multiplied as if they
     * were F32. Borrowed */
    const struct cake_format *format;
} cake_weight;

/* Bytes of a row as weight_pack takes it. */
#ifdef __cplusplus
extern "C"
#endif
    size_t
    cake_weight_row_bytes(const cake_weight *w);

#endif
