/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the rotary fields of config.json, in either generation. Out: the sets of rotary parameters and their
 * frequencies. Invariant: an unsupported kind of scaling is refused by name, never taken for another one.
 */
#include <string.h>

#include "config/config_read.h"

#define DEFAULT_THETA 10000.0 /* transformers' default for older files */
#define N_KIND        7

static const char *const kind_names[N_KIND] = {[CAKE_ROPE_DEFAULT] = "default",
                                               [CAKE_ROPE_LINEAR] = "linear",
                                               [CAKE_ROPE_LLAMA3] = "llama3",
                                               [CAKE_ROPE_YARN] = "yarn",
                                               [CAKE_ROPE_DYNAMIC] = "dynamic",
                                               [CAKE_ROPE_LONGROPE] = "longrope",
                                               [CAKE_ROPE_PROPORTIONAL] = "proportional"};

const char *cake_rope_name(cake_rope_kind kind)
{
    return kind_names[kind];
}

static cake_err read_kind(const cake_fields *fields, cake_rope_kind *out)
{
    const char *name = cake_field(fields, "rope_type") ? "rope_type" : "type";
    const cake_json *node = cake_field(fields, name);
    if (!node) {
        *out = CAKE_ROPE_DEFAULT;
        return CAKE_OK;
    }
    const char *text = cake_json_text(node, NULL);
    if (text && !strcmp(text, "su")) /* longrope's former name */
        text = kind_names[CAKE_ROPE_LONGROPE];
    for (size_t kind = 0; text && kind < N_KIND; kind++)
        if (!strcmp(text, kind_names[kind])) {
            /* phi3 once used this name; only longrope has lists. */
            bool lists = kind == CAKE_ROPE_YARN && cake_field(fields, "short_factor");
            *out = lists ? CAKE_ROPE_LONGROPE : (cake_rope_kind)kind;
            return CAKE_OK;
        }
    return cake_field_fail(
        fields, name, "only default, linear, llama3, yarn, dynamic, longrope and proportional are supported");
}

/* Refuses fields that would change the rotation. */
static cake_err refuse_others(const cake_fields *fields, const cake_arch *arch)
{
    const struct {
        const char *name;
        bool known;
    } others[] = {{"llama_4_scaling_beta", arch->rope_scaled_q}, {"mrope_section", arch->rope_sections}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!others[i].known && cake_field(fields, others[i].name))
            return cake_field_fail(fields, others[i].name, "this kind of rotary embedding is not supported");
    return CAKE_OK;
}

/* Latent attention rotates n_rope elements; partial_rotary_factor may say so, too. */
static cake_err read_latent_part(const cake_fields *top, const cake_fields *fields, const cake_latent *l,
                                 int head_dim, cake_rope *rope)
{
    const cake_fields *both[] = {top, fields};
    for (int i = 0; i < 2; i++) {
        double part;
        if (cake_field_real(both[i], "partial_rotary_factor", 1, 1e-6, 1, &part))
            return CAKE_ERR_FATAL;
        if (part < 1 && fabs(part * head_dim - l->n_rope) > 0.01)
            return cake_field_fail(both[i], "partial_rotary_factor",
                                   "1, or qk_rope_head_dim's share of a head (%d of %d), is expected",
                                   l->n_rope, head_dim);
    }
    rope->width = rope->n_rot = l->n_rope;
    return CAKE_OK;
}

/* Reads how many elements of a head are rotated. */
static cake_err read_part(const cake_fields *top, const cake_fields *fields, const cake_arch *arch,
                          int head_dim, cake_rope *rope)
{
    const bool all = rope->kind == CAKE_ROPE_PROPORTIONAL; /* pairs lie as if all elements were rotated */
    double part = 1, least = all ? 0 : arch->rope_partial ? 1e-6 : 1;
    int n;
    if (arch->rotary_dim && cake_field(top, "rotary_dim")) {
        if (cake_field_int(top, "rotary_dim", CAKE_REQUIRED, 2, head_dim, &n))
            return CAKE_ERR_FATAL;
        part = (double)n / head_dim;
    }
    if (cake_field_real(top, "partial_rotary_factor", part, least, 1, &part) ||
        cake_field_real(fields, "partial_rotary_factor", part, least, 1, &part))
        return CAKE_ERR_FATAL;
    rope->n_rotated_pair = (int)(head_dim * part / 2);
    rope->width = all ? head_dim : (int)(head_dim * part);
    if (rope->width < 1)
        return cake_field_fail(top, "partial_rotary_factor",
                               "at least two of the %d elements of a head must be rotated", head_dim);
    rope->n_rot = rope->width + rope->width % 2;
    return CAKE_OK;
}

/* As in transformers: a value outside the object has precedence, and the context is the last resort. */
static cake_err read_original(const cake_fields *top, const cake_fields *fields, const cake_config *c,
                              cake_rope *rope)
{
    const cake_fields *owner = cake_field(top, "original_max_position_embeddings") ? top : fields;
    return cake_field_int(owner, "original_max_position_embeddings", c->context, 1, INT32_MAX,
                          &rope->original_context);
}

static cake_err read_llama3(const cake_fields *fields, cake_rope *rope)
{
    if (cake_field_real(fields, "low_freq_factor", CAKE_REQUIRED_REAL, 1e-6, 1e6, &rope->low_freq) ||
        cake_field_real(fields, "high_freq_factor", CAKE_REQUIRED_REAL, 1e-6, 1e6, &rope->high_freq))
        return CAKE_ERR_FATAL;
    if (rope->high_freq <= rope->low_freq)
        return cake_field_fail(fields, "high_freq_factor", "more than low_freq_factor (%g) is expected",
                               rope->low_freq);
    return CAKE_OK;
}

/* A factor of null is the growth of the context. */
static cake_err read_growth(const cake_fields *fields, const cake_config *c, cake_rope *rope)
{
    return cake_field_real(fields, "factor", (double)c->context / rope->original_context, 1e-6, 1e6,
                           &rope->factor);
}

static double yarn_magnitude(double factor, double scale)
{
    return factor <= 1 ? 1 : 0.1 * scale * log(factor) + 1;
}

/* The (fractional) pair with this number of rotations within the original context. */
static double yarn_pair(const cake_rope *rope, double turns)
{
    return rope->width * log(rope->original_context / (turns * 2 * M_PI)) / (2 * log(rope->theta));
}

/* Peng et al. 2023. 0 means that a value is not given. */
static cake_err read_yarn(const cake_fields *fields, const cake_config *c, cake_rope *rope)
{
    double fast, slow, mscale, all_dim;
    bool truncate;
    if (!cake_json_get(fields->object, "factor"))
        return cake_field_fail(fields, "factor",
                               "a number, or null for the growth of the context, is expected");
    if (read_growth(fields, c, rope) || cake_field_real(fields, "beta_fast", 32, 0, 1e6, &fast) ||
        cake_field_real(fields, "beta_slow", 1, 0, 1e6, &slow) ||
        cake_field_real(fields, "mscale", 0, 0, 1e6, &mscale) ||
        cake_field_real(fields, "mscale_all_dim", 0, 0, 1e6, &all_dim) ||
        cake_field_bool(fields, "truncate", true, &truncate))
        return CAKE_ERR_FATAL;
    if (rope->theta <= 1)
        return cake_field_fail(fields, "rope_theta", "yarn needs more than 1");
    if (c->arch->rope_by_type) /* transformers reads it outside the sets, where none is */
        truncate = true;
    double usual = mscale && all_dim
                       ? yarn_magnitude(rope->factor, mscale) / yarn_magnitude(rope->factor, all_dim)
                       : yarn_magnitude(rope->factor, 1);
    if (cake_field_real(fields, "attention_factor", usual, 0, 1e6, &rope->attention))
        return CAKE_ERR_FATAL;
    if (c->arch->rope_scaled_q && cake_field_real(fields, "llama_4_scaling_beta", 0, 0, 1e3, &rope->beta))
        return CAKE_ERR_FATAL;
    if (all_dim)
        rope->score = pow(yarn_magnitude(rope->factor, all_dim), 2);
    double low = yarn_pair(rope, fast ? fast : 32), high = yarn_pair(rope, slow ? slow : 1);
    low = truncate ? floor(low) : low;
    high = truncate ? ceil(high) : high;
    rope->low_pair = low > 0 ? low : 0;
    rope->high_pair = high < rope->width - 1 ? high : rope->width - 1;
    if (rope->low_pair == rope->high_pair)
        rope->high_pair += 0.001;
    return CAKE_OK;
}

static cake_err read_factors(const cake_fields *fields, const char *name, const cake_rope *rope, float *out)
{
    const cake_json *list = cake_field(fields, name);
    size_t n = (size_t)rope->n_rot / 2;
    if (n > CAKE_MAX_ROPE_FACTORS)
        return cake_field_fail(fields, name,
                               "heads with more than %d rotated elements are not supported with it",
                               2 * CAKE_MAX_ROPE_FACTORS);
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || cake_json_size(list) != n)
        return cake_field_fail(fields, name, "an array of %zu numbers is expected", n);
    for (size_t i = 0; i < n; i++) {
        double value = cake_json_real(cake_json_at(list, i), NAN);
        if (!(value >= 1e-6 && value <= 1e6))
            return cake_fail("config", "%s: %s%s%s[%zu]: a number from 1e-6 to 1e6 is expected", fields->file,
                             fields->outer, fields->prefix, name, i);
        out[i] = (float)value;
    }
    return CAKE_OK;
}

/* Ding et al. 2024. */
static cake_err read_longrope(const cake_fields *fields, const cake_config *c, cake_rope *rope)
{
    if (read_growth(fields, c, rope) || read_factors(fields, "short_factor", rope, rope->factors[0]) ||
        read_factors(fields, "long_factor", rope, rope->factors[1]))
        return CAKE_ERR_FATAL;
    double usual = 1;
    if (rope->factor > 1 && rope->original_context > 1)
        usual = sqrt(1 + log(rope->factor) / log(rope->original_context));
    return cake_field_real(fields, "attention_factor", usual, 0, 1e6, &rope->attention);
}

/* bloc97 and emozilla 2023: the base grows with the length. */
static cake_err read_dynamic(const cake_fields *fields, const cake_config *c, cake_rope *rope)
{
    rope->original_context = c->context;
    if (rope->width == 2)
        return cake_field_fail(fields, "rope_type", "more than 2 rotated elements of a head are expected");
    return CAKE_OK;
}

static cake_err read_scaling(const cake_fields *top, const cake_fields *fields, const cake_config *c,
                             cake_rope *rope)
{
    bool own = rope->kind == CAKE_ROPE_YARN || rope->kind == CAKE_ROPE_LONGROPE ||
               rope->kind == CAKE_ROPE_PROPORTIONAL;
    if (rope->kind != CAKE_ROPE_DEFAULT && !own &&
        cake_field_real(fields, "factor", CAKE_REQUIRED_REAL, 1, 1e6, &rope->factor))
        return CAKE_ERR_FATAL;
    if (rope->kind == CAKE_ROPE_PROPORTIONAL)
        return cake_field_real(fields, "factor", 1, 1e-6, 1e6, &rope->factor);
    if ((own || rope->kind == CAKE_ROPE_LLAMA3) && read_original(top, fields, c, rope))
        return CAKE_ERR_FATAL;
    switch (rope->kind) {
    case CAKE_ROPE_LLAMA3:
        return read_llama3(fields, rope);
    case CAKE_ROPE_YARN:
        return read_yarn(fields, c, rope);
    case CAKE_ROPE_LONGROPE:
        return read_longrope(fields, c, rope);
    case CAKE_ROPE_DYNAMIC:
        return read_dynamic(fields, c, rope);
    default:
        return CAKE_OK;
    }
}

/* One set. `fields` is the inner object, top the file (or its text part), whose field `base` is the theta of
 * an object without one. */
static cake_err read_set(const cake_fields *top, const cake_fields *fields, const char *base,
                         const cake_config *c, int head_dim, cake_rope *out)
{
    cake_rope rope = {.factor = 1, .attention = 1, .score = 1};
    double theta;
    if (refuse_others(top, c->arch) || refuse_others(fields, c->arch) || read_kind(fields, &rope.kind) ||
        cake_field_real(top, base, DEFAULT_THETA, 1, 1e15, &theta) ||
        cake_field_real(fields, "rope_theta", theta, 1, 1e15, &rope.theta) ||
        (c->latent.rank ? read_latent_part(top, fields, &c->latent, head_dim, &rope)
                        : read_part(top, fields, c->arch, head_dim, &rope)) ||
        read_scaling(top, fields, c, &rope))
        return CAKE_ERR_FATAL;
    *out = rope;
    return CAKE_OK;
}

static bool empty(const cake_json *node)
{
    return !node || (cake_json_kind(node) == CAKE_JSON_OBJECT && !cake_json_size(node));
}

/* fields->object becomes the named object of `from`, or NULL. */
static cake_err enter(const cake_fields *from, const char *name, const char *prefix, cake_fields *fields)
{
    *fields = (cake_fields){.object = cake_field(from, name),
                            .file = from->file,
                            .outer = from->outer ? from->outer : from->prefix,
                            .prefix = prefix};
    if (fields->object && cake_json_kind(fields->object) != CAKE_JSON_OBJECT)
        return cake_field_fail(from, name, "an object or null is expected");
    return CAKE_OK;
}

/* Separate sets for full layers, to which an old file's rope_scaling applies, and for sliding ones. `all` is
 * rope_parameters, or the family's own in its place. */
static cake_err read_both(const cake_fields *top, const cake_fields *all, const cake_heads_by_type *heads,
                          cake_config *c)
{
    const bool both = c->arch->rope; /* the family has no rules for the absence of one */
    cake_fields full, sliding, scaling;
    if (enter(all, "full_attention", "rope_parameters.full_attention.", &full) ||
        enter(all, "sliding_attention", "rope_parameters.sliding_attention.", &sliding) ||
        enter(top, "rope_scaling", "rope_scaling.", &scaling))
        return CAKE_ERR_FATAL;
    if (both && !empty(scaling.object))
        return cake_field_fail(top, "rope_scaling", "family %s has rope_parameters instead", c->arch->name);
    if (!empty(all->object) && (both ? !full.object || !sliding.object : !full.object && !sliding.object))
        return cake_field_fail(top, "rope_parameters",
                               "an object each for full_attention and sliding_attention is expected");
    if (!empty(scaling.object) && full.object)
        return cake_field_fail(top, "rope_scaling",
                               "rope_parameters.full_attention exists, too: keep one of the two");
    c->n_rope = 2;
    const char *own = c->arch->thetas[0] ? c->arch->thetas[0] : "rope_theta";
    const char *local = c->arch->thetas[1] ? c->arch->thetas[1] : "rope_local_base_freq";
    return read_set(top, empty(scaling.object) ? &full : &scaling, own, c, heads->full.head_dim, &c->rope[0])
               ? CAKE_ERR_FATAL
               : read_set(top, &sliding, local, c, heads->sliding.head_dim, &c->rope[1]);
}

/* Rotary parameters of a config.json without any; owned. */
static cake_json *usual_rope(const cake_arch *arch)
{
    cake_json *usual = NULL;
    cake_fault fault;
    CAKE_ASSERT(!cake_json_parse(arch->rope, strlen(arch->rope), &usual, &fault));
    return usual;
}

static cake_err read_by_type(const cake_fields *top, const cake_heads_by_type *heads, cake_config *c)
{
    cake_fields all;
    if (enter(top, "rope_parameters", "rope_parameters.", &all))
        return CAKE_ERR_FATAL;
    cake_json *usual = empty(all.object) && c->arch->rope ? usual_rope(c->arch) : NULL;
    all.object = usual ? usual : all.object;
    cake_err err = read_both(top, &all, heads, c);
    cake_json_free(usual);
    return err;
}

static cake_err read_one(const cake_fields *top, int head_dim, cake_config *c)
{
    cake_fields fields;
    cake_err err = empty(cake_field(top, "rope_scaling"))
                       ? enter(top, "rope_parameters", "rope_parameters.", &fields)
                       : enter(top, "rope_scaling", "rope_scaling.", &fields);
    if (err)
        return err;
    for (void *it = cake_json_first(fields.object); it; it = cake_json_next(fields.object, it))
        if (cake_json_kind(cake_json_value(it)) == CAKE_JSON_OBJECT)
            return cake_field_fail(&fields, cake_json_key(it, NULL),
                                   "separate rotary parameters for some layers are not supported");
    c->n_rope = 1;
    if (!empty(fields.object) || !c->arch->rope)
        return read_set(top, &fields, "rope_theta", c, head_dim, &c->rope[0]);
    cake_json *usual = usual_rope(c->arch);
    fields.object = usual;
    err = read_set(top, &fields, "rope_theta", c, head_dim, &c->rope[0]);
    cake_json_free(usual);
    return err;
}

/* The context where scaling extends it beyond max_position_embeddings. */
static int extended(const cake_config *c)
{
    const cake_rope *rope = &c->rope[0];
    double reach = 0;
    if (rope->kind == CAKE_ROPE_DYNAMIC || rope->kind == CAKE_ROPE_YARN)
        reach = rope->original_context * rope->factor;
    return reach > c->context ? (int)(reach < INT32_MAX ? reach : INT32_MAX) : c->context;
}

cake_err cake_config_read_rope(const cake_fields *top, const cake_heads_by_type *heads, cake_config *config)
{
    if (config->arch->nope == CAKE_NOPE_ALL)
        return CAKE_OK;
    cake_err err = config->arch->rope_by_type ? read_by_type(top, heads, config)
                                              : read_one(top, heads->full.head_dim, config);
    if (!err)
        config->context = extended(config);
    return err;
}

/* Long wavelengths are divided by factor, short ones are kept, those in between are blended. */
static double llama3_frequency(const cake_rope *rope, double freq)
{
    double turns = rope->original_context * freq / (2 * M_PI); /* rotations within the original context */
    if (turns < rope->low_freq)
        return freq / rope->factor;
    if (turns > rope->high_freq)
        return freq;
    double smooth = (turns - rope->low_freq) / (rope->high_freq - rope->low_freq);
    return (1 - smooth) * freq / rope->factor + smooth * freq;
}

static double yarn_frequency(const cake_rope *rope, double freq, int pair)
{
    double ramp = (pair - rope->low_pair) / (rope->high_pair - rope->low_pair);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return freq / rope->factor * ramp + freq * (1 - ramp);
}

int cake_rope_epoch(const cake_rope *rope, int span)
{
    bool beyond = span > rope->original_context;
    if (rope->kind == CAKE_ROPE_DYNAMIC)
        return beyond ? span : 0;
    return rope->kind == CAKE_ROPE_LONGROPE && beyond;
}

void cake_rope_frequencies(const cake_rope *rope, int span, double *freq)
{
    double theta = rope->theta, width = rope->width;
    int epoch = cake_rope_epoch(rope, span);
    if (rope->kind == CAKE_ROPE_DYNAMIC && epoch)
        theta *= pow(rope->factor * span / rope->original_context - (rope->factor - 1), width / (width - 2));
    for (int i = 0; i < rope->n_rot / 2; i++) {
        freq[i] = pow(theta, -2.0 * i / width);
        if (rope->kind == CAKE_ROPE_LINEAR)
            freq[i] /= rope->factor;
        else if (rope->kind == CAKE_ROPE_LLAMA3)
            freq[i] = llama3_frequency(rope, freq[i]);
        else if (rope->kind == CAKE_ROPE_YARN)
            freq[i] = yarn_frequency(rope, freq[i], i);
        else if (rope->kind == CAKE_ROPE_LONGROPE)
            freq[i] /= (double)rope->factors[epoch][i];
        else if (rope->kind == CAKE_ROPE_PROPORTIONAL)
            freq[i] = i < rope->n_rotated_pair ? freq[i] / rope->factor : 0;
    }
}
