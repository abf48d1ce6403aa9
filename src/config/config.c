/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json from any source. Out: cake_config; every number is in range and consistent with the others.
 * Invariant: a field that would change the answer is applied or refused by name.
 */
#include "config/config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "config/config_read.h"
#include "config/not_a_model.h"
#include "config/unsupported_fields.h"
#include "formats/model_files.h"

#define MAX_DIM (1 << 20) /* of the residual stream: CAKE_MAX_WIDE * MAX_DIM * 4 bytes stay below 2^46 */

static cake_err read_sizes(const cake_fields *fields, cake_config *c)
{
    static const struct {
        const char *name;
        size_t offset;
        int64_t max;
    } sizes[] = {
        {"hidden_size", offsetof(cake_config, dim), MAX_DIM},
        {"num_hidden_layers", offsetof(cake_config, n_layer), CAKE_MAX_LAYER},
        {"num_attention_heads", offsetof(cake_config, n_head), 1 << 16},
        {"vocab_size", offsetof(cake_config, n_vocab), CAKE_MAX_WIDE},
        {"max_position_embeddings", offsetof(cake_config, context), INT32_MAX},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (cake_field_int(fields, sizes[i].name, CAKE_REQUIRED, 1, sizes[i].max,
                           (int *)((char *)c + sizes[i].offset)))
            return CAKE_ERR_FATAL;
    /* Where all layers have experts, the field may be absent or 0. */
    const bool optional = c->arch->experts;
    return cake_field_int(fields, "intermediate_size", optional ? 0 : CAKE_REQUIRED, !optional, CAKE_MAX_WIDE,
                          &c->n_ff);
}

/* Latent attention: all heads share one key. */
static cake_err read_latent(const cake_fields *fields, cake_config *c, cake_heads *heads)
{
    cake_latent *l = &c->latent;
    const int wide = CAKE_MAX_WIDE / c->n_head / 2;
    const bool turns_halves = cake_field_null(fields, "rope_interleave"); /* as false, in transformers */
    int n_kv;
    if (cake_field_int(fields, "num_key_value_heads", c->n_head, 1, 1 << 16, &n_kv) ||
        cake_field_int(fields, "q_lora_rank", 0, 1, MAX_DIM, &l->q_rank) ||
        cake_field_int(fields, "kv_lora_rank", CAKE_REQUIRED, 1, CAKE_LATENT_DIM, &l->rank) ||
        cake_field_int(fields, "qk_nope_head_dim", CAKE_REQUIRED, 1, wide, &l->n_nope) ||
        cake_field_int(fields, "qk_rope_head_dim", CAKE_REQUIRED, 2, CAKE_LATENT_DIM, &l->n_rope) ||
        cake_field_int(fields, "v_head_dim", CAKE_REQUIRED, 1, wide, &l->n_value) ||
        (!turns_halves && cake_field_bool(fields, "rope_interleave", true, &l->interleaved)))
        return CAKE_ERR_FATAL;
    if (n_kv != c->n_head)
        return cake_field_fail(fields, "num_key_value_heads",
                               "num_attention_heads (%d) is expected: family %s has latent attention",
                               c->n_head, c->arch->name);
    if (l->n_rope % 2)
        return cake_field_fail(fields, "qk_rope_head_dim",
                               "an even number is expected: rotary embedding rotates pairs");
    if (l->rank + l->n_rope > CAKE_LATENT_DIM)
        return cake_field_fail(fields, "kv_lora_rank", "with qk_rope_head_dim (%d), at most %d is supported",
                               l->n_rope, CAKE_LATENT_DIM);
    if ((int64_t)c->n_head * (l->n_nope + l->n_rope) > CAKE_MAX_WIDE)
        return cake_field_fail(fields, "num_attention_heads", "heads of %d elements together are too wide",
                               l->n_nope + l->n_rope);
    *heads = (cake_heads){.n_kv = 1, .head_dim = l->n_nope + l->n_rope};
    return CAKE_OK;
}

static cake_err read_head_dim(const cake_fields *fields, const cake_config *c, int *out)
{
    int head_dim = c->arch->head_dim;
    if (!head_dim && !cake_field(fields, "head_dim")) {
        if (c->dim % c->n_head)
            return cake_field_fail(fields, "num_attention_heads",
                                   "a divisor of hidden_size (%d) is expected where head_dim is not given",
                                   c->dim);
        head_dim = c->dim / c->n_head;
    }
    if (cake_field_int(fields, "head_dim", head_dim, 2, CAKE_MAX_WIDE / c->n_head, out))
        return CAKE_ERR_FATAL;
    if (*out % 2)
        return cake_fail(
            "config", "%s: a head has %d elements, but rotary embedding rotates pairs: head_dim must be even",
            fields->file, *out);
    return CAKE_OK;
}

static cake_err read_heads(const cake_fields *fields, cake_config *c, cake_heads_by_type *heads)
{
    cake_heads all = {0};
    if (c->arch->latent) {
        cake_err err = read_latent(fields, c, &all);
        *heads = (cake_heads_by_type){.full = all, .sliding = all};
        return err;
    }
    if (cake_field_int(fields, "num_key_value_heads", c->n_head, 1, c->n_head, &all.n_kv))
        return CAKE_ERR_FATAL;
    if (c->n_head % all.n_kv)
        return cake_field_fail(fields, "num_key_value_heads",
                               "a divisor of num_attention_heads (%d) is expected", c->n_head);
    if (read_head_dim(fields, c, &all.head_dim))
        return CAKE_ERR_FATAL;
    *heads = (cake_heads_by_type){.full = all, .sliding = all};
    return cake_config_read_full_heads(fields, c, &heads->full);
}

static cake_err read_bias(const cake_fields *fields, const char *name, cake_bias kind, bool *out)
{
    if (kind == CAKE_BIAS_AS_CONFIG)
        return cake_field_bool(fields, name, false, out);
    *out = kind == CAKE_BIAS_ALWAYS;
    return CAKE_OK;
}

static cake_err read_qk_norm(const cake_fields *fields, cake_config *c)
{
    bool per_head = false;
    c->qk_norm = c->arch->qk_norm;
    if (c->qk_norm != CAKE_QK_NORM_CONFIG)
        return CAKE_OK;
    cake_err err = cake_field_bool(fields, "use_qk_norm", false, &per_head);
    c->qk_norm = per_head ? CAKE_QK_NORM_HEAD : CAKE_QK_NORM_NONE;
    return err;
}

/* PyTorch's spelling, with or without prefix. "auto" means the dtype of the tensors. */
static cake_err read_dtype(const cake_fields *fields, cake_dtype *out)
{
    static const struct {
        const char *name;
        cake_dtype dtype;
    } names[] = {{"bfloat16", CAKE_BF16}, {"float16", CAKE_F16}, {"half", CAKE_F16},
                 {"float32", CAKE_F32},   {"float", CAKE_F32},   {"auto", CAKE_F32}};
    const char *name = cake_field(fields, "dtype") ? "dtype" : "torch_dtype";
    const cake_json *node = cake_field(fields, name);
    const char *text = cake_json_text(node, NULL);
    *out = CAKE_F32;
    if (text && !strncmp(text, "torch.", 6))
        text += 6;
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i].name)) {
            *out = names[i].dtype;
            return CAKE_OK;
        }
    return node ? cake_field_fail(fields, name, "only float32, bfloat16 and float16 are supported") : CAKE_OK;
}

static bool takes_act(const cake_arch *arch, cake_act act)
{
    return arch->encoder ? act != CAKE_ACT_XIELU
                         : act != CAKE_ACT_GELU_ERF && (act == CAKE_ACT_XIELU) == arch->ungated;
}

static cake_err read_act(const cake_fields *fields, const cake_arch *arch, cake_act *out)
{
    static const struct {
        const char *name;
        cake_act act;
    } names[] = {{"silu", CAKE_ACT_SILU},
                 {"swish", CAKE_ACT_SILU}, /* aliases */
                 {"gelu_pytorch_tanh", CAKE_ACT_GELU},
                 {"gelu_new", CAKE_ACT_GELU},
                 {"gelu_fast", CAKE_ACT_GELU},
                 {"gelu", CAKE_ACT_GELU_ERF},
                 {"xielu", CAKE_ACT_XIELU}};
    const char *key = arch->act_key ? arch->act_key : "hidden_act";
    const cake_json *node = cake_field(fields, key);
    const char *text = cake_json_text(node, NULL);
    *out = arch->act;
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i].name) && takes_act(arch, names[i].act)) {
            *out = names[i].act;
            return CAKE_OK;
        }
    return node ? cake_field_fail(fields, key, "only %s supported",
                                  arch->encoder   ? "gelu, gelu_pytorch_tanh and silu are"
                                  : arch->ungated ? "xielu is"
                                                  : "silu and gelu_pytorch_tanh are")
                : CAKE_OK;
}

/* *out 0: no cap. */
static cake_err read_cap(const cake_fields *fields, const char *name, bool known, float *out)
{
    double cap = 0;
    *out = 0;
    if (known && cake_field(fields, name) &&
        cake_field_real(fields, name, CAKE_REQUIRED_REAL, 1e-3, 1e6, &cap))
        return CAKE_ERR_FATAL;
    *out = (float)cap;
    return CAKE_OK;
}

/* Scale and cap of attention scores, and cap of the logits. */
static cake_err read_scores(const cake_fields *fields, const cake_heads_by_type *heads, cake_config *c)
{
    double over = heads->full.head_dim;
    if (c->arch->query_scalar && cake_field_real(fields, "query_pre_attn_scalar", 256, 1e-6, 1e9, &over))
        return CAKE_ERR_FATAL;
    c->score_scale = c->arch->unscaled ? 1 : (float)(1 / sqrt(over));
    if (!c->arch->score_cap && cake_json_real(cake_field(fields, "attn_logit_softcapping"), 0) != 0)
        cake_log(CAKE_WARN, "config",
                 "%s: %sattn_logit_softcapping is not applied, as in transformers for %s", fields->file,
                 fields->prefix, c->arch->name);
    return read_cap(fields, "attn_logit_softcapping", c->arch->score_cap, &c->score_cap)
               ? CAKE_ERR_FATAL
               : read_cap(fields, "final_logit_softcapping", c->arch->logit_cap, &c->logit_cap);
}

static bool is_classifier(const char *architecture, const char *name)
{
    size_t stem = (size_t)(strstr(architecture, "For") - architecture);
    return !strncmp(name, architecture, stem) && !strcmp(name + stem, "ForSequenceClassification");
}

/* Whether a class is this one, which generates, or its decoder alone as AutoModel saves it. */
static bool is_class(const char *architecture, const char *name)
{
    if (is_classifier(architecture, name))
        return true;
    size_t stem = (size_t)(strstr(architecture, "For") - architecture);
    return !strcmp(name, architecture) ||
           (!strncmp(name, architecture, stem) &&
            (!strcmp(name + stem, "Model") || !strcmp(name + stem, "TextModel")));
}

static cake_err read_arch(const cake_fields *fields, const cake_arch **out, bool *classifier)
{
    const char *type = cake_json_text(cake_field(fields, "model_type"), NULL);
    const cake_arch *arch = type ? cake_arch_find(type) : NULL;
    const cake_json *classes = cake_field(fields, "architectures");
    bool fits = !classes;
    for (size_t i = 0; arch && i < cake_json_size(classes); i++) {
        const char *name = cake_json_text(cake_json_at(classes, i), NULL);
        *classifier = *classifier || (name && is_classifier(arch->architecture, name));
        fits = fits || (name && (is_class(arch->architecture, name) ||
                                 (arch->spelling && is_class(arch->spelling, name))));
    }
    if (arch && !fits)
        return cake_field_fail(fields, "architectures", "%s is expected for model_type %s",
                               arch->architecture, arch->name);
    if (!arch) {
        cake_buf known = {0};
        cake_arch_list(&known);
        cake_err err = cake_field_fail(fields, "model_type", "the supported ones are %s", known.data);
        cake_buf_free(&known);
        return err;
    }
    *out = arch;
    return CAKE_OK;
}

static cake_err fail_inner(const cake_fields *fields, const cake_arch *outer)
{
    cake_buf names = {0};
    for (int i = 0; i < CAKE_MAX_INNER && outer->inner[i]; i++) {
        const bool last = i + 1 == CAKE_MAX_INNER || !outer->inner[i + 1];
        cake_buf_addf(&names, "%s%s", !i ? "" : last ? " or " : ", ", outer->inner[i]);
    }
    cake_err err =
        cake_field_fail(fields, "model_type", "%s is expected inside model_type %s", names.data, outer->name);
    cake_buf_free(&names);
    return err;
}

/* In models of several parts: *fields becomes the text part, *arch its row. */
static cake_err enter_text(const cake_arch **arch, cake_fields *fields)
{
    const cake_json *inner = cake_field(fields, "text_config");
    if (cake_json_kind(inner) != CAKE_JSON_OBJECT)
        return cake_field_fail(fields, "text_config", "an object is expected for model_type %s",
                               (*arch)->name);
    *fields = (cake_fields){.object = inner, .file = fields->file, .prefix = "text_config."};
    const cake_json *type = cake_field(fields, "model_type");
    const char *text = cake_json_text(type, NULL);
    const char *const *names = (*arch)->inner;
    int i = 0;
    while (type && i < CAKE_MAX_INNER && names[i] && (!text || strcmp(text, names[i])))
        i++;
    if (i == CAKE_MAX_INNER || !names[i])
        return fail_inner(fields, *arch);
    *arch = cake_arch_find(names[i]);
    CAKE_ASSERT(*arch);
    return CAKE_OK;
}

static cake_err check_unsupported(const cake_fields *top, const cake_fields *fields, const cake_arch *arch)
{
    const cake_json *all = top->object, *text = fields->object;
    cake_err err = cake_unsupported_check(cake_unsupported_relative, NULL, all, "config", top->file, "");
    if (!err && text != all)
        err = cake_unsupported_check(cake_unsupported_relative, NULL, text, "config", fields->file,
                                     fields->prefix);
    return err ? err
               : cake_unsupported_check(cake_unsupported_config, arch, text, "config", fields->file,
                                        fields->prefix);
}

/* Fields whose default may be one that is not supported. */
static cake_err refuse_others(const cake_fields *fields)
{
    const char *inputs = "hidden_size_per_layer_input";
    const cake_json *size = cake_field(fields, inputs);
    if (size && cake_json_real(size, NAN) != 0)
        return cake_field_fail(fields, inputs,
                               "models with an embedding in each layer (Gemma 4 E2B and E4B) are not "
                               "supported: 0 is expected");
    return CAKE_OK;
}

/* Whether rows see what follows them. "vision": only images do. */
static cake_err read_direction(const cake_fields *fields, cake_config *c)
{
    const char *name = "use_bidirectional_attention";
    const cake_json *both = cake_field(fields, name);
    const char *who = cake_json_text(both, NULL);
    const bool on =
        both && !(who && !strcmp(who, "vision")) && cake_json_bool(both, cake_json_real(both, NAN) != 0);
    if (on && !c->arch->both_ways)
        return cake_field_fail(fields, name, "only causal attention is supported for family %s",
                               c->arch->name);
    bool decoder = false;
    if (c->arch->encoder && cake_field_bool(fields, "is_decoder", false, &decoder))
        return CAKE_ERR_FATAL;
    if (decoder)
        return cake_field_fail(fields, "is_decoder", "family %s is supported as an encoder only",
                               c->arch->name);
    c->both_ways = c->arch->encoder || on;
    c->headless = c->both_ways;
    return CAKE_OK;
}

/* The parts of the embedding beside that of tokens. */
static cake_err read_embedding(const cake_fields *fields, cake_config *c)
{
    int pad = -1;
    if (!c->arch->positions)
        return CAKE_OK;
    const cake_json *kind = cake_field(fields, "position_embedding_type");
    if (kind && strcmp(cake_json_text(kind, NULL) ? cake_json_text(kind, NULL) : "", "absolute") != 0)
        return cake_field_fail(fields, "position_embedding_type", "only absolute is supported");
    if (cake_field_int(fields, "type_vocab_size", CAKE_REQUIRED, 1, 1 << 16, &c->n_type) ||
        (c->arch->from_pad && cake_field_int(fields, "pad_token_id", CAKE_REQUIRED, 0, 1 << 20, &pad)))
        return CAKE_ERR_FATAL;
    c->n_position = c->context;
    c->first_position = pad + 1;
    if (c->context <= c->first_position)
        return cake_field_fail(fields, "max_position_embeddings",
                               "more than pad_token_id + 1 (%d) is expected", c->first_position);
    c->context -= c->first_position;
    return CAKE_OK;
}

/* top is the whole file, fields its text part (usually the same). */
static cake_err read_text(const cake_fields *top, const cake_fields *fields, const cake_fields *generation,
                          cake_config *c)
{
    double eps;
    cake_heads_by_type heads;
    bool tied_above = cake_field(top, "tie_word_embeddings");
    bool typed_above = cake_field(top, "dtype") || cake_field(top, "torch_dtype");
    if (check_unsupported(top, fields, c->arch) || refuse_others(top) || refuse_others(fields) ||
        read_direction(fields, c) || read_act(fields, c->arch, &c->act) || read_sizes(fields, c) ||
        read_heads(fields, c, &heads) || read_scores(fields, &heads, c) ||
        cake_field_real(fields, c->arch->norm_eps ? c->arch->norm_eps : "rms_norm_eps", CAKE_REQUIRED_REAL, 0,
                        1, &eps) ||
        read_embedding(fields, c) || read_bias(fields, "norm_bias", c->arch->norm_bias, &c->norm_bias) ||
        cake_field_bool(tied_above ? top : fields, "tie_word_embeddings", false, &c->tied) ||
        read_bias(fields, "attention_bias", c->arch->qkv_bias, &c->qkv_bias) ||
        read_bias(fields, "attention_bias", c->arch->o_bias, &c->o_bias) || read_qk_norm(fields, c) ||
        read_bias(fields, "mlp_bias", c->arch->mlp_bias, &c->mlp_bias) ||
        read_dtype(typed_above ? top : fields, &c->dtype) || cake_config_read_rope(fields, &heads, c) ||
        cake_config_read_layers(fields, &heads, c) || cake_config_read_moe(fields, c) ||
        cake_config_read_quantization(cake_field(top, "quantization_config") ? top : fields,
                                      &c->quantization) ||
        cake_config_read_generation(top, fields, generation, c))
        return CAKE_ERR_FATAL;
    cake_config_set_mtp_layer(c);
    c->norm_eps = (float)eps;
    c->headless = c->headless || c->classifier;
    c->tied = c->tied || c->headless;
    c->embedder = cake_embedder_default(c->dim, c->both_ways);
    if (cake_config_read_classifier(top, c))
        return CAKE_ERR_FATAL;
    if (c->arch->latent)
        c->score_scale = (float)(c->rope[0].score / sqrt(heads.full.head_dim));
    return CAKE_OK;
}

int64_t cake_config_kept(const cake_config *config, int group)
{
    const cake_latent *l = &config->latent;
    const cake_heads *heads = &config->heads[group];
    return l->rank ? l->rank + l->n_rope : (int64_t)2 * heads->n_kv * heads->head_dim;
}

int64_t cake_config_kept_bytes(const cake_config *config, int group, cake_dtype dtype)
{
    const cake_latent *l = &config->latent;
    const cake_heads *heads = &config->heads[group];
    return l->rank ? (int64_t)cake_kv_line_bytes(dtype, l->rank + l->n_rope, l->rank)
                   : (int64_t)2 * heads->n_kv * (int64_t)cake_kv_line_bytes(dtype, heads->head_dim, 0);
}

double cake_config_seen_flops(const cake_config *config, int group)
{
    const cake_latent *l = &config->latent;
    return 2.0 * config->n_head * (l->rank ? 2 * l->rank + l->n_rope : 2 * config->heads[group].head_dim);
}

/* The defaults are JSON literals of this program. */
static cake_json *parse_defaults(const cake_arch *arch)
{
    cake_json *defaults = NULL;
    cake_fault fault;
    CAKE_ASSERT(!arch->defaults ||
                !cake_json_parse(arch->defaults, strlen(arch->defaults), &defaults, &fault));
    return defaults;
}

static cake_err read_all(cake_fields *top, const cake_fields *generation, cake_config *c)
{
    if (cake_json_kind(top->object) != CAKE_JSON_OBJECT)
        return cake_fail("config", "%s: found %s, expected an object", top->file,
                         cake_json_kind_name(top->object));
    cake_json *defaults = NULL, *inner_defaults = NULL;
    cake_err err = read_arch(top, &c->arch, &c->classifier);
    if (err)
        return err;
    const cake_arch *outer = c->arch;
    cake_fields fields = *top;
    if (outer->inner[0])
        err = enter_text(&c->arch, &fields);
    top->defaults = defaults = parse_defaults(outer);
    fields.defaults = inner_defaults = parse_defaults(c->arch);
    if (!err)
        err = read_text(top, &fields, generation, c);
    cake_json_free(inner_defaults);
    cake_json_free(defaults);
    return err;
}

cake_err cake_config_read(const cake_json *doc, const cake_json *generation, const char *dir,
                          cake_config *config)
{
    cake_buf file = {0}, generation_file = {0};
    cake_buf_addf(&file, "%s/config.json", dir);
    cake_buf_addf(&generation_file, "%s/generation_config.json", dir);
    cake_fields fields = {.object = doc, .file = file.data, .prefix = ""};
    cake_fields more = {.object = generation, .file = generation_file.data, .prefix = ""};
    cake_config read = {0};
    cake_err err = read_all(&fields, &more, &read);
    if (!err)
        *config = read;
    else
        cake_params_free(&read.defaults);
    cake_buf_free(&file);
    cake_buf_free(&generation_file);
    return err;
}

cake_err cake_config_parse(const char *text, const char *name, cake_config *config)
{
    cake_json *doc = NULL;
    cake_fault fault;
    if (cake_json_parse(text, strlen(text), &doc, &fault))
        return cake_fail("config", "%s: %s", name, fault.message);
    cake_err err = cake_config_read(doc, NULL, name, config);
    cake_json_free(doc);
    return err;
}

/* Applies what stands beside a model that embeds. */
static cake_err read_embedder(const char *dir, cake_config *c)
{
    cake_err err = c->classifier ? CAKE_OK : cake_embedder_read(dir, c->dim, &c->embedder);
    if (!err && c->embedder.templated) {
        const cake_dense *score = &c->embedder.dense[0];
        c->classifier = true;
        if (score->yes >= c->n_vocab || score->no >= c->n_vocab)
            return cake_fail("config",
                             "%s: the tokens of LogitScore, %d and %d, are not below vocab_size, %d", dir,
                             score->yes, score->no, c->n_vocab);
    }
    if (!err && c->embedder.given) {
        const int most = c->embedder.max_tokens;
        c->headless = c->tied = true;
        c->context = most && most < c->context ? most : c->context;
    }
    return err;
}

cake_err cake_config_load(const char *dir, cake_config *config)
{
    cake_json *doc = NULL, *generation = NULL;
    struct stat st;
    if (stat(dir, &st))
        return cake_fail("config", "%s: cannot be opened: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode) && !cake_model_files_gguf(dir))
        return cake_fail(
            "config",
            "%s: a directory with config.json, tokenizer.json and *.safetensors, or a .gguf file, is "
            "expected",
            dir);
    cake_err err = cake_model_files_load("config", dir, "config.json", &doc);
    if (err == CAKE_END)
        err = cake_not_a_model_fail(dir, "config.json");
    if (!err)
        err = cake_model_files_load("config", dir, "generation_config.json", &generation);
    if (err != CAKE_ERR_FATAL)
        err = cake_config_read(doc, generation, dir, config);
    if (!err && (err = read_embedder(dir, config)))
        cake_params_free(&config->defaults);
    cake_json_free(generation);
    cake_json_free(doc);
    return err;
}
