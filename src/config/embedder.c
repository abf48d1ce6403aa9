/* SPDX-License-Identifier: Apache-2.0
 *
 * In: modules.json and the files it names. Out: a cake_embedder. Invariant: a module that would change the
 * embedding is applied or refused by name.
 * Source of the fields: sentence_transformers/models/{Pooling,Dense,Normalize,Transformer}.py; releases from
 * 5 on name some of them differently, and both names are read.
 */
#include "config/embedder.h"

#include <string.h>

#include "base/log.h"
#include "config/config_read.h"
#include "formats/json.h"
#include "formats/model_files.h"

static const struct {
    const char *name;  /* value of pooling_mode */
    const char *older; /* the older switch that says the same */
} poolings[CAKE_N_POOLING] = {
    [CAKE_POOL_LAST] = {"lasttoken", "pooling_mode_lasttoken"},
    [CAKE_POOL_FIRST] = {"cls", "pooling_mode_cls_token"},
    [CAKE_POOL_MEAN] = {"mean", "pooling_mode_mean_tokens"},
    [CAKE_POOL_MAX] = {"max", "pooling_mode_max_tokens"},
    [CAKE_POOL_ROOT] = {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
    [CAKE_POOL_WEIGHTED] = {"weightedmean", "pooling_mode_weightedmean_tokens"}};

const char *cake_pooling_name(cake_pooling pooling)
{
    return poolings[pooling].name;
}

cake_embedder cake_embedder_default(int dim, bool encoder)
{
    return (cake_embedder){.pooling = {encoder ? CAKE_POOL_MEAN : CAKE_POOL_LAST},
                           .n_pooling = 1,
                           .normalize = !encoder,
                           .n_out = dim};
}

/* The module that is read: fields of its config.json, and what is known so far. */
typedef struct module {
    cake_fields fields;
    const char *path;
    cake_embedder *to;
    bool pooled; /* a Pooling module came before */
} module;

static cake_err find_pooling(const char *name, cake_pooling *out)
{
    for (int i = 0; i < CAKE_N_POOLING; i++)
        if (!strcmp(poolings[i].name, name)) {
            *out = (cake_pooling)i;
            return CAKE_OK;
        }
    return CAKE_END;
}

/* Appends the pooling of a name. */
static cake_err add_named_mode(const module *m, const cake_json *name)
{
    cake_embedder *to = m->to;
    const char *text = cake_json_text(name, NULL);
    if (!text || to->n_pooling == CAKE_N_POOLING || find_pooling(text, &to->pooling[to->n_pooling]))
        return cake_field_fail(&m->fields, "pooling_mode",
                               "one of cls, mean, max, lasttoken, mean_sqrt_len_tokens and weightedmean, or "
                               "an array of at most 6 of these, is expected");
    to->n_pooling++;
    return CAKE_OK;
}

/* The older form, in which the order is always the same. */
static cake_err read_switches(const module *m)
{
    static const cake_pooling order[CAKE_N_POOLING] = {CAKE_POOL_FIRST, CAKE_POOL_MAX,      CAKE_POOL_MEAN,
                                                       CAKE_POOL_ROOT,  CAKE_POOL_WEIGHTED, CAKE_POOL_LAST};
    cake_embedder *to = m->to;
    for (int i = 0; i < CAKE_N_POOLING; i++) {
        bool on;
        if (cake_field_bool(&m->fields, poolings[order[i]].older, false, &on))
            return CAKE_ERR_FATAL;
        if (on)
            to->pooling[to->n_pooling++] = order[i];
    }
    if (!to->n_pooling)
        to->pooling[to->n_pooling++] = CAKE_POOL_MEAN;
    return CAKE_OK;
}

static cake_err read_modes(const module *m)
{
    const cake_json *mode = cake_field(&m->fields, "pooling_mode");
    cake_err err = CAKE_OK;
    m->to->n_pooling = 0;
    if (!mode)
        return read_switches(m);
    if (!cake_json_size(mode))
        return add_named_mode(m, mode);
    for (size_t i = 0; i < cake_json_size(mode) && !err; i++)
        err = add_named_mode(m, cake_json_at(mode, i));
    return err;
}

static cake_err read_pooling(module *m)
{
    int dim = m->to->n_out;
    bool whole;
    const char *name =
        cake_field(&m->fields, "embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension";
    if (m->pooled)
        return cake_fail("config", "%s: a second Pooling module is not supported", m->fields.file);
    m->pooled = true;
    if (cake_field_int(&m->fields, name, dim, 1, INT32_MAX, &dim) ||
        cake_field_bool(&m->fields, "include_prompt", true, &whole) || read_modes(m))
        return CAKE_ERR_FATAL;
    if (dim != m->to->n_out)
        return cake_field_fail(&m->fields, name, "the model's hidden_size, %d, is expected", m->to->n_out);
    m->to->n_out *= m->to->n_pooling;
    m->to->apart = !whole;
    return CAKE_OK;
}

static cake_err read_act(const module *m, cake_dense_act *out)
{
    static const char *const names[CAKE_N_DENSE_ACT] = {[CAKE_DENSE_PLAIN] = "Identity",
                                                        [CAKE_DENSE_TANH] = "Tanh",
                                                        [CAKE_DENSE_GELU] = "GELU",
                                                        [CAKE_DENSE_RELU] = "ReLU"};
    const char *act = cake_json_text(cake_field(&m->fields, "activation_function"), NULL);
    const char *last = act ? strrchr(act, '.') : NULL;
    int i = 0;
    last = last ? last + 1 : act ? act : names[CAKE_DENSE_TANH];
    while (i < CAKE_N_DENSE_ACT && strcmp(names[i], last) != 0)
        i++;
    *out = (cake_dense_act)i;
    return i < CAKE_N_DENSE_ACT ? CAKE_OK
                                : cake_field_fail(&m->fields, "activation_function",
                                                  "Identity, Tanh, GELU or ReLU is expected");
}

static cake_err read_dense(module *m)
{
    cake_embedder *to = m->to;
    if (!m->pooled || to->n_dense == CAKE_MAX_DENSE)
        return cake_fail("config", "%s: %s", m->fields.file,
                         m->pooled ? "more than 4 Dense modules are not supported"
                                   : "a Dense module before the pooling is not supported");
    cake_dense *dense = &to->dense[to->n_dense++];
    if (strlen(m->path) >= sizeof dense->path)
        return cake_fail("config", "%s: the path has more than %d bytes", m->fields.file, CAKE_MODULE_PATH);
    strcpy(dense->path, m->path);
    if (read_act(m, &dense->act) ||
        cake_field_int(&m->fields, "in_features", CAKE_REQUIRED, 1, 1 << 20, &dense->n_in) ||
        cake_field_int(&m->fields, "out_features", CAKE_REQUIRED, 1, 1 << 20, &dense->n_out) ||
        cake_field_bool(&m->fields, "bias", true, &dense->bias))
        return CAKE_ERR_FATAL;
    if (dense->n_in != to->n_out)
        return cake_field_fail(&m->fields, "in_features", "%d, what the module before gives, is expected",
                               to->n_out);
    dense->normalized = to->normalize;
    to->normalize = false;
    to->n_out = dense->n_out;
    return CAKE_OK;
}

/* A decoder that answers yes or no: the score is how much likelier yes is. */
static cake_err read_logit_score(module *m)
{
    cake_dense *dense = &m->to->dense[0];
    if (m->pooled || m->to->n_dense)
        return cake_fail("config", "%s: LogitScore is supported as the only module after the Transformer",
                         m->fields.file);
    *dense = (cake_dense){.logits = true, .n_in = m->to->n_out, .n_out = 1};
    m->pooled = true;
    m->to->pooling[0] = CAKE_POOL_LAST;
    m->to->n_pooling = 1;
    m->to->n_dense = m->to->n_out = 1;
    m->to->sigmoid = m->to->templated = true;
    return cake_field_int(&m->fields, "true_token_id", CAKE_REQUIRED, 0, INT32_MAX, &dense->yes) ||
                   cake_field_int(&m->fields, "false_token_id", -1, 0, INT32_MAX, &dense->no)
               ? CAKE_ERR_FATAL
               : CAKE_OK;
}

static cake_err read_normalize(module *m)
{
    if (!m->pooled)
        return cake_fail("config", "%s: a Normalize module before the pooling is not supported",
                         m->fields.file);
    m->to->normalize = true;
    return CAKE_OK;
}

static cake_err read_dropout(module *m)
{
    (void)m; /* does nothing after training */
    return CAKE_OK;
}

static const struct {
    const char *type;
    cake_err (*read)(module *m);
    bool configured; /* has a config.json */
} modules[] = {{"Pooling", read_pooling, true},
               {"Dense", read_dense, true},
               {"LogitScore", read_logit_score, true},
               {"Normalize", read_normalize, false},
               {"Dropout", read_dropout, false}};

enum { N_MODULE = sizeof modules / sizeof *modules };

/* Reads one entry of modules.json, but the first, which is the model itself. */
static cake_err read_module(const char *dir, const char *type, const char *path, module *m)
{
    cake_json *config = NULL;
    cake_buf name = {0}, file = {0};
    int i = 0;
    cake_err err = CAKE_OK;
    while (i < N_MODULE && strcmp(modules[i].type, type) != 0)
        i++;
    cake_buf_addf(&name, "%s/config.json", path);
    cake_buf_addf(&file, "%s/%s", dir, i < N_MODULE && modules[i].configured ? name.data : "modules.json");
    if (i == N_MODULE)
        err = cake_fail("config",
                        "%s: a module of type %.100s is not supported: Transformer, Pooling, Dense, "
                        "Normalize and LogitScore are",
                        file.data, type);
    else if (modules[i].configured)
        err = cake_model_files_load("config", dir, name.data, &config);
    if (err == CAKE_END || (!err && modules[i].configured && cake_json_kind(config) != CAKE_JSON_OBJECT))
        err = cake_fail("config",
                        "%s: cannot be read as an object; modules.json names it: an incomplete "
                        "download?",
                        file.data);
    m->fields = (cake_fields){.object = config, .file = file.data, .prefix = ""};
    m->path = path;
    if (!err)
        err = modules[i].read(m);
    cake_json_free(config);
    cake_buf_free(&name);
    cake_buf_free(&file);
    return err;
}

/* A path of a module stays inside the model's directory. */
static bool is_inside(const char *path)
{
    return path[0] != '/' && !strstr(path, "..");
}

static cake_err read_modules(const char *dir, const cake_json *list, cake_embedder *to)
{
    module m = {.to = to};
    cake_err err = CAKE_OK;
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || !cake_json_size(list))
        return cake_fail("config", "%s/modules.json: expected an array of modules", dir);
    for (size_t i = 0; i < cake_json_size(list) && !err; i++) {
        const cake_json *entry = cake_json_at(list, i);
        const char *type = cake_json_text(cake_json_get(entry, "type"), NULL);
        const char *path = cake_json_text(cake_json_get(entry, "path"), NULL);
        const char *last = type ? strrchr(type, '.') : NULL;
        last = last ? last + 1 : type;
        if (!last || !path || !is_inside(path))
            err = cake_fail("config",
                            "%s/modules.json: entry %zu: expected type, and a path inside the model's "
                            "directory",
                            dir, i);
        else if (i == 0 && (strcmp(last, "Transformer") != 0 || path[0]))
            err = cake_fail("config",
                            "%s/modules.json: the first module is %.60s at \"%.60s\"; expected a "
                            "Transformer at \"\"",
                            dir, last, path);
        else if (i > 0)
            err = read_module(dir, last, path, &m);
    }
    return err || m.pooled
               ? err
               : cake_fail("config", "%s/modules.json: there is no Pooling among its modules", dir);
}

/* What the chat template is given, beside the messages. */
static cake_err read_template_words(const char *file, const cake_json *config, cake_embedder *to)
{
    const cake_json *words = cake_json_get(cake_json_get(config, "processing_kwargs"), "chat_template");
    const cake_fields fields = {.object = words, .file = file, .prefix = "processing_kwargs.chat_template."};
    for (void *it = cake_json_first(words); it && to->templated; it = cake_json_next(words, it)) {
        const char *key = cake_json_key(it, NULL);
        if (strcmp(key, "add_generation_prompt") && strcmp(key, "restore_suffix"))
            return cake_field_fail(&fields, key, "only add_generation_prompt is supported");
    }
    return to->templated && words
               ? cake_field_bool(&fields, "add_generation_prompt", false, &to->generation_prompt)
               : CAKE_OK;
}

static cake_err read_limits(const char *dir, cake_embedder *to)
{
    cake_json *config = NULL;
    cake_buf file = {0};
    bool lower = false;
    cake_err err = cake_model_files_load("config", dir, "sentence_bert_config.json", &config);
    if (err)
        return err == CAKE_END ? CAKE_OK : err;
    cake_buf_addf(&file, "%s/sentence_bert_config.json", dir);
    const cake_fields fields = {.object = config, .file = file.data, .prefix = ""};
    if (cake_json_kind(config) != CAKE_JSON_OBJECT)
        err = cake_fail("config", "%s: expected an object", file.data);
    else
        err = cake_field_int(&fields, "max_seq_length", 0, 1, INT32_MAX, &to->max_tokens);
    if (!err)
        err = cake_field_bool(&fields, "do_lower_case", false, &lower);
    if (!err)
        err = read_template_words(file.data, config, to);
    if (!err && lower)
        err = cake_field_fail(&fields, "do_lower_case",
                              "false is expected; let the tokenizer's normalizer do it");
    cake_json_free(config);
    cake_buf_free(&file);
    return err;
}

/* config_sentence_transformers.json, but its prompts: the activation of a score is a sigmoid, unless the file
 * says that it is the score itself. */
static cake_err read_settings(const char *dir, cake_embedder *to)
{
    cake_json *config = NULL;
    cake_buf file = {0};
    cake_err err = cake_model_files_load("config", dir, "config_sentence_transformers.json", &config);
    const char *act = to->templated ? cake_json_text(cake_json_get(config, "activation_fn"), NULL) : NULL;
    const char *last = act ? strrchr(act, '.') : NULL;
    cake_buf_addf(&file, "%s/config_sentence_transformers.json", dir);
    const cake_fields fields = {.object = config, .file = file.data, .prefix = ""};
    to->sigmoid = to->templated && !(last && !strcmp(last, ".Identity"));
    if (!err && act && last && strcmp(last, ".Identity") && strcmp(last, ".Sigmoid"))
        err = cake_field_fail(&fields, "activation_fn", "Sigmoid or Identity is expected");
    if (!err && cake_json_kind(cake_json_get(config, "truncate_dim")) > CAKE_JSON_NULL)
        err = cake_field_fail(&fields, "truncate_dim",
                              "null is expected; give \"dimensions\" in requests, and the embeddings have "
                              "length 1 again");
    cake_json_free(config);
    cake_buf_free(&file);
    return err == CAKE_END ? CAKE_OK : err;
}

cake_err cake_embedder_read(const char *dir, int dim, cake_embedder *out)
{
    cake_json *list = NULL;
    cake_embedder read = {.given = true, .n_out = dim};
    cake_err err = cake_model_files_load("config", dir, "modules.json", &list);
    if (err)
        return err == CAKE_END ? CAKE_OK : err;
    err = read_modules(dir, list, &read);
    if (!err)
        err = read_limits(dir, &read);
    if (!err)
        err = read_settings(dir, &read);
    if (!err)
        *out = read;
    cake_json_free(list);
    return err;
}
