/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json of a ...ForSequenceClassification. Out: its pooling and the modules of its head, as a
 * cake_embedder whose only element is the score.
 * Source: transformers' modeling files; the activation as in sentence_transformers/cross_encoder.
 */
#include <string.h>

#include "config/config_read.h"

/* Labels of the classifier: one, whose output is the score. */
static cake_err check_labels(const cake_fields *top)
{
    const cake_json *names = cake_field(top, "id2label");
    int n = 2;
    if (names)
        n = (int)cake_json_size(names);
    else if (cake_field_int(top, "num_labels", 2, 1, 1 << 20, &n))
        return CAKE_ERR_FATAL;
    return n == 1 ? CAKE_OK
                  : cake_fail("config",
                              "%s: the classifier has %d labels; one, the score of a pair, is supported",
                              top->file, n);
}

static cake_err read_pooling(const cake_fields *top, const cake_config *c, cake_pooling *out)
{
    const char *name = cake_json_text(cake_field(top, "classifier_pooling"), NULL);
    *out = !c->both_ways ? CAKE_POOL_LAST : name && !strcmp(name, "mean") ? CAKE_POOL_MEAN : CAKE_POOL_FIRST;
    return !name || !strcmp(name, "mean") || !strcmp(name, "cls")
               ? CAKE_OK
               : cake_field_fail(top, "classifier_pooling", "cls or mean is expected");
}

/* A sigmoid of the output, unless the files say that it is the score itself. */
static bool wants_sigmoid(const cake_fields *top)
{
    const cake_json *own = cake_field(top, "sentence_transformers");
    const cake_json *act =
        own ? cake_json_get(own, "activation_fn") : cake_field(top, "sbert_ce_default_activation_function");
    const char *text = cake_json_text(act, NULL);
    const size_t len = text ? strlen(text) : 0, end = strlen("Identity");
    return len < end || strcmp(text + len - end, "Identity") != 0;
}

cake_err cake_config_read_classifier(const cake_fields *top, cake_config *c)
{
    static const cake_head_module only = {.tensor = "score", .bare = true};
    const cake_head_module *head = c->arch->head[0].tensor ? c->arch->head : &only;
    cake_embedder *e = &c->embedder;
    bool biased;
    if (!c->classifier)
        return CAKE_OK;
    *e = (cake_embedder){.n_pooling = 1, .n_out = c->dim, .sigmoid = wants_sigmoid(top)};
    if (check_labels(top) || read_pooling(top, c, &e->pooling[0]) ||
        cake_field_bool(top, "classifier_bias", false, &biased))
        return CAKE_ERR_FATAL;
    for (int i = 0; i < (head == &only ? 1 : 2); i++, e->n_dense++) {
        e->n_out = i + 1 < (head == &only ? 1 : 2) ? c->dim : 1;
        e->dense[i] = (cake_dense){.tensor = head[i].tensor,
                                   .norm = head[i].norm,
                                   .n_in = c->dim,
                                   .n_out = e->n_out,
                                   .bias = !head[i].bare || (biased && head != &only),
                                   .act = head[i].act};
    }
    return CAKE_OK;
}
