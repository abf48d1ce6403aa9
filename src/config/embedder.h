/* SPDX-License-Identifier: Apache-2.0
 *
 * How hidden states become an embedding, as sentence-transformers' files beside a model say: modules.json,
 * the config.json of its Pooling and Dense modules, sentence_bert_config.json.
 */
#ifndef CAKE_CONFIG_EMBEDDER_H
#define CAKE_CONFIG_EMBEDDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define CAKE_MAX_DENSE   4
#define CAKE_MODULE_PATH 64

/* Which hidden states of a text an embedding is made of. In brackets pooling_mode in the files. */
typedef enum cake_pooling {
    CAKE_POOL_LAST,     /* that of the last token (lasttoken) */
    CAKE_POOL_FIRST,    /* of the first one (cls) */
    CAKE_POOL_MEAN,     /* the mean of all (mean) */
    CAKE_POOL_MAX,      /* the largest of each element (max) */
    CAKE_POOL_ROOT,     /* the sum of all over the root of their number (mean_sqrt_len_tokens) */
    CAKE_POOL_WEIGHTED, /* the mean, token i counting i + 1 times (weightedmean) */
    CAKE_N_POOLING
} cake_pooling;

typedef enum cake_dense_act {
    CAKE_DENSE_PLAIN,
    CAKE_DENSE_TANH,
    CAKE_DENSE_GELU,
    CAKE_DENSE_RELU,
    CAKE_N_DENSE_ACT
} cake_dense_act;

/* A product with a matrix after pooling. Its weights are linear.weight and linear.bias of PATH's
 * model.safetensors; or tensors of the model itself, which begin with `tensor`. */
typedef struct cake_dense {
    /* LogitScore: the product with the LM head's row of the token `yes`, less that with the row of `no`; -1:
     * not less anything. */
    bool logits;
    int yes, no;
    char path[CAKE_MODULE_PATH];
    const char *tensor; /* NULL: in path */
    const char *norm;   /* LayerNorm of the result: its weight begins so; NULL: none */
    int n_in, n_out;
    bool bias;
    cake_dense_act act; /* of the product */
    bool normalized;    /* its input is given the length 1 before */
} cake_dense;

typedef struct cake_embedder {
    bool given;                           /* there is a modules.json: the model is made for embeddings */
    cake_pooling pooling[CAKE_N_POOLING]; /* [n_pooling] their results stand one after another */
    int n_pooling;
    bool apart;     /* tokens of the prompt before a text are not pooled */
    bool normalize; /* the embedding has length 1 */
    int n_dense;
    cake_dense dense[CAKE_MAX_DENSE];
    int n_out;              /* elements of an embedding */
    bool sigmoid;           /* of a classifier's output */
    bool templated;         /* a pair of texts goes through the chat template, as a query and a document; */
    bool generation_prompt; /* which is asked for the beginning of an answer */
    int max_tokens;         /* of a text; 0: as many as the model has positions */
} cake_embedder;

/* What holds without such files: of a decoder the last token, normalised, as in vLLM; of an encoder the mean,
 * as in sentence-transformers. */
cake_embedder cake_embedder_default(int dim, bool encoder);
/* Reads the files of a model with hidden states of `dim`, if there are any; else *out stays. Errors name the
 * file. */
cake_err cake_embedder_read(const char *dir, int dim, cake_embedder *out);
const char *cake_pooling_name(cake_pooling pooling); /* as in the files */

#endif
