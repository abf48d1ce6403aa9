/* SPDX-License-Identifier: Apache-2.0
 *
 * In: generation_config.json, if any, and config.json's end token. Out: end tokens and default sampling
 * parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "config/config_read.h"
#include "config/unsupported_fields.h"

static cake_err add_eos(const cake_fields *fields, const cake_json *node, cake_config *config)
{
    int64_t id = cake_json_int(node, -1);
    if (id < 0 || id > INT32_MAX)
        return cake_field_fail(fields, "eos_token_id", "token ids from 0 to %d are expected",
                               config->n_vocab - 1);
    if (id >= config->n_vocab) { /* such a token can never be sampled; some published files have it */
        cake_log(CAKE_WARN, "config", "%s: eos_token_id %lld is not in the vocabulary of %d, ignored",
                 fields->file, (long long)id, config->n_vocab);
        return CAKE_OK;
    }
    for (int i = 0; i < config->n_eos; i++)
        if (config->eos[i] == id)
            return CAKE_OK;
    if (config->n_eos == CAKE_MAX_EOS)
        return cake_field_fail(fields, "eos_token_id", "at most %d end tokens are supported", CAKE_MAX_EOS);
    config->eos[config->n_eos++] = (int32_t)id;
    return CAKE_OK;
}

static cake_err read_eos(const cake_fields *fields, cake_config *config)
{
    const cake_json *node = cake_field(fields, "eos_token_id");
    if (!node)
        return CAKE_OK;
    if (cake_json_kind(node) != CAKE_JSON_ARRAY)
        return add_eos(fields, node, config);
    for (size_t i = 0; i < cake_json_size(node); i++)
        if (add_eos(fields, cake_json_at(node, i), config))
            return CAKE_ERR_FATAL;
    return CAKE_OK;
}

/* Tokens that are never sampled, or never first. */
static cake_err read_suppressed(const cake_fields *fields, const char *name, bool first, cake_config *config)
{
    cake_params *defaults = &config->defaults;
    const cake_json *list = cake_field(fields, name);
    if (!list)
        return CAKE_OK;
    if (cake_json_kind(list) != CAKE_JSON_ARRAY)
        return cake_field_fail(fields, name, "an array of token ids is expected");
    defaults->bias =
        cake_grow(defaults->bias, defaults->n_bias + cake_json_size(list) + 1, sizeof *defaults->bias);
    for (size_t i = 0; i < cake_json_size(list); i++) {
        int64_t id = cake_json_int(cake_json_at(list, i), -1);
        if (id < 0 || id > INT32_MAX)
            return cake_field_fail(fields, name, "token ids from 0 to %d are expected", config->n_vocab - 1);
        if (id < config->n_vocab) /* others cannot be sampled anyway */
            defaults->bias[defaults->n_bias++] = (cake_logit_bias){(int32_t)id, -INFINITY, first};
    }
    return CAKE_OK;
}

/* Some token must remain, also at the first position. */
static cake_err check_suppressed(const cake_fields *fields, const cake_config *config)
{
    const cake_params *defaults = &config->defaults;
    bool *seen = cake_alloc((size_t)config->n_vocab, sizeof *seen);
    int left = config->n_vocab;
    for (int i = 0; i < (int)defaults->n_bias; i++) {
        left -= !seen[defaults->bias[i].id];
        seen[defaults->bias[i].id] = true;
    }
    free(seen);
    return left ? CAKE_OK
                : cake_fail("config", "%s: suppress_tokens and begin_suppress_tokens leave no token to draw",
                            fields->file);
}

/* max_length covers prompt and answer. max_new_tokens overrides it; a value equal to the model's context has
 * no effect. */
static void warn_length(const cake_fields *fields, const cake_config *config)
{
    double most = cake_json_real(cake_field(fields, "max_length"), INFINITY);
    if (most < config->context && !cake_field(fields, "max_new_tokens"))
        cake_log(CAKE_WARN, "config", "%s: max_length %g is not applied; give it with --context",
                 fields->file, most);
}

static cake_err read_sampling(const cake_fields *fields, cake_params *defaults)
{
    bool do_sample = true;
    int top_k;
    if (!cake_field_null(fields, "do_sample") && cake_field_bool(fields, "do_sample", true, &do_sample))
        return CAKE_ERR_FATAL;
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        const cake_json *node = f->real ? cake_field(fields, f->name) : NULL;
        double value = cake_json_real(node, NAN);
        char range[CAKE_PARAMS_RANGE];
        if (node && !cake_params_has(f, value))
            return cake_field_fail(fields, f->name, "%s is expected", cake_params_range(f, range));
        if (node)
            memcpy((char *)defaults + f->offset, &value, sizeof value);
    }
    if (cake_field(fields, "top_k")) {
        if (cake_field_int(fields, "top_k", CAKE_REQUIRED, -1, INT32_MAX, &top_k))
            return CAKE_ERR_FATAL;
        defaults->top_k = top_k;
    }
    int most = 0;
    if (cake_field(fields, "max_new_tokens") &&
        cake_field_int(fields, "max_new_tokens", CAKE_REQUIRED, 1, INT32_MAX, &most))
        return CAKE_ERR_FATAL;
    if (most)
        defaults->max_tokens = most;
    if (!do_sample)
        defaults->temperature = 0;
    return CAKE_OK;
}

cake_err cake_config_read_generation(const cake_fields *top, const cake_fields *fields,
                                     const cake_fields *generation, cake_config *config)
{
    config->defaults = cake_params_unset();
    config->n_eos = 0;
    if (generation->object) {
        if (cake_json_kind(generation->object) != CAKE_JSON_OBJECT)
            return cake_fail("config", "%s: found %s, expected an object", generation->file,
                             cake_json_kind_name(generation->object));
        if (read_eos(generation, config) || read_sampling(generation, &config->defaults) ||
            read_suppressed(generation, "suppress_tokens", false, config) ||
            read_suppressed(generation, "begin_suppress_tokens", true, config) ||
            check_suppressed(generation, config) ||
            cake_unsupported_check(cake_unsupported_generation, NULL, generation->object, "config",
                                   generation->file, ""))
            return CAKE_ERR_FATAL;
        warn_length(generation, config);
    }
    bool has_eos = cake_field(generation, "eos_token_id") != NULL;
    return has_eos ? CAKE_OK : read_eos(cake_field(top, "eos_token_id") ? top : fields, config);
}
