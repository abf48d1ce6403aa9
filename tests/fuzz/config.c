/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a config.json and, after a NUL byte, a generation_config.json. Accepted values must be inside
 * the bounds that the rest of the program relies on.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "config/config_read.h"
#include "formats/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_moe(const cake_config *c)
{
    const cake_router *r = &c->moe.router;
    for (int i = 0; i < c->n_layer; i++)
        CAKE_ASSERT(c->layer[i].mlp == CAKE_MLP_EXPERTS || c->n_ff > 0);
    for (int i = 0; i < c->n_layer; i++)
        CAKE_ASSERT(c->layer[i].mlp == CAKE_MLP_DENSE ||
                    (c->moe.n_ff > 0 && c->moe.n_ff_shared >= 0 && r->n_chosen > 0 &&
                     r->n_chosen <= CAKE_MAX_CHOSEN && r->n_expert <= CAKE_MAX_EXPERTS && r->n_group > 0 &&
                     r->n_expert % r->n_group == 0 && r->n_group_chosen > 0 &&
                     r->n_group_chosen <= r->n_group && r->n_group <= CAKE_MAX_CHOSEN &&
                     r->n_chosen <= r->n_group_chosen * (r->n_expert / r->n_group) &&
                     (int64_t)r->n_expert * (2 * c->moe.n_ff + c->dim) <= INT32_MAX));
}

static void check_rope(const cake_rope *rope)
{
    CAKE_ASSERT(rope->n_rot >= 2 && rope->n_rot <= CAKE_MAX_WIDE);
    CAKE_ASSERT(rope->attention >= 0 && rope->attention <= 1e6);
    double *freq = cake_alloc((size_t)rope->n_rot / 2, sizeof *freq);
    for (int far = 0; far < 2; far++) {
        cake_rope_frequencies(rope, far ? INT32_MAX : 1, freq);
        for (int i = 0; i < rope->n_rot / 2; i++)
            CAKE_ASSERT(freq[i] >= 0 && freq[i] <= 1e6);
    }
    free(freq);
}

static void check(const cake_config *c)
{
    CAKE_ASSERT(c->dim > 0 && c->n_layer > 0 && c->n_vocab > 0 && c->context > 0);
    int head_dim = 0; /* of the largest */
    for (int group = 0; group < c->n_kv_group; group++) {
        const cake_heads *h = &c->heads[group];
        CAKE_ASSERT(h->n_kv > 0 && c->n_head % h->n_kv == 0 && h->head_dim > 0 &&
                    (h->head_dim % 2 == 0 || c->latent.rank));
        CAKE_ASSERT((int64_t)c->n_head * h->head_dim <= 1 << 24);
        head_dim = h->head_dim > head_dim ? h->head_dim : head_dim;
    }
    const cake_quantization *q = &c->quantization;
    CAKE_ASSERT(q->block[0] >= 0 && q->block[1] >= 0 && !q->block[0] == !q->block[1] && q->less >= 0);
    CAKE_ASSERT(c->norm_eps >= 0 && c->norm_eps <= 1 && c->n_eos >= 0 && c->n_eos <= CAKE_MAX_EOS);
    for (size_t i = 0; i < c->defaults.n_bias; i++)
        CAKE_ASSERT(c->defaults.bias[i].id >= 0 && c->defaults.bias[i].id < c->n_vocab);
    for (int i = 0; i < c->n_eos; i++)
        CAKE_ASSERT(c->eos[i] >= 0 && c->eos[i] < c->n_vocab);
    CAKE_ASSERT(c->n_kv_group >= 0 && c->n_kv_group <= CAKE_MAX_KV_GROUPS && c->n_rope > 0 &&
                c->n_rope <= CAKE_MAX_ROPE);
    const cake_deltanet *d = &c->delta;
    for (int i = 0; i < c->n_layer; i++)
        if (c->layer[i].mixer == CAKE_MIX_DELTA)
            CAKE_ASSERT(d->n_key > 0 && d->n_value % d->n_key == 0 && d->key_dim > 0 &&
                        d->key_dim <= CAKE_DELTA_DIM && d->value_dim > 0 && d->value_dim <= CAKE_DELTA_DIM &&
                        d->width > 0 && d->width <= CAKE_DELTA_WIDTH && d->n_value > 0 &&
                        cake_delta_channels(d) <= 1 << 24);
    for (int i = 0; i < c->n_layer; i++)
        CAKE_ASSERT(c->layer[i].group < c->n_kv_group &&
                    (c->layer[i].rope == CAKE_NO_ROPE ||
                     (c->layer[i].rope < c->n_rope &&
                      c->rope[c->layer[i].rope].n_rot <= c->heads[c->layer[i].group].head_dim)));
    const cake_latent *l = &c->latent;
    CAKE_ASSERT(!l->rank || (l->rank + l->n_rope <= CAKE_LATENT_DIM && l->n_rope % 2 == 0 && l->n_nope > 0 &&
                             l->n_value > 0 && l->q_rank >= 0 && l->n_nope + l->n_rope == head_dim &&
                             (int64_t)c->n_head * (l->n_nope + l->n_value) <= 1 << 24));
    for (int i = 0; i < c->n_layer; i++)
        CAKE_ASSERT((c->layer[i].mixer == CAKE_MIX_LATENT) == (l->rank > 0));
    for (int group = 0; group < c->n_kv_group; group++)
        CAKE_ASSERT(c->arch->v_norm || !c->heads[group].v_is_k);
    check_moe(c);
    CAKE_ASSERT(c->score_scale > 0 && c->score_cap >= 0 && c->logit_cap >= 0);
    for (int r = 0; r < c->n_rope; r++) /* no layer may use it: then it may be wider than all heads */
        check_rope(&c->rope[r]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    const char *text = (const char *)data, *second = memchr(text, 0, size);
    size_t len = second ? (size_t)(second - text) : size;
    cake_json *doc = NULL, *generation = NULL;
    cake_fault fault;
    cake_config config;
    if (!cake_json_parse(text, len, &doc, &fault) &&
        (!second || !cake_json_parse(second + 1, size - len - 1, &generation, &fault))) {
        if (!cake_config_read(doc, generation, "DIR", &config)) {
            check(&config);
            cake_params_free(&config.defaults);
        } else {
            CAKE_ASSERT(said.len > 0);
        }
    }
    cake_json_free(doc);
    cake_json_free(generation);
    cake_log_capture(NULL);
    return 0;
}
