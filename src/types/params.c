/* SPDX-License-Identifier: Apache-2.0
 *
 * In: parameters that are set or unset. Out: the same, unset ones filled.
 * Invariant: the table has every field that is one number; lists are handled one by one.
 */
#include "types/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define INTEGER(field, min, max, base)                                                                       \
    {                                                                                                        \
#field, offsetof(cake_params, field), false, min, max, false, base                                   \
    }
#define REAL(field, min, max, above, base)                                                                   \
    {                                                                                                        \
#field, offsetof(cake_params, field), true, min, max, above, base                                    \
    }

const cake_params_field cake_params_fields[] = {
    INTEGER(max_tokens, 1, INT32_MAX, NAN),
    INTEGER(min_tokens, 0, INT32_MAX, 0),
    INTEGER(n, 1, CAKE_MAX_CHOICE, 1),
    INTEGER(top_k, -1, INT32_MAX, 0),
    INTEGER(seed, -9223372036854775808.0, 9223372036854774784.0, NAN),
    INTEGER(ignore_eos, 0, 1, 0),
    INTEGER(echo, 0, 1, 0),
    INTEGER(logprobs, 0, CAKE_MAX_TOP, NAN),
    INTEGER(prompt_logprobs, 0, CAKE_MAX_TOP, NAN),
    INTEGER(return_token_ids, 0, 1, 0),
    INTEGER(truncate_prompt_tokens, -1, INT32_MAX, NAN),
    INTEGER(dimensions, 1, INT32_MAX, NAN),
    INTEGER(top_n, 1, INT32_MAX, NAN),
    INTEGER(return_documents, 0, 1, 0),
    INTEGER(base64, 0, 1, 0),
    REAL(temperature, 0, 2, false, 1),
    REAL(top_p, 0, 1, true, 1),
    REAL(min_p, 0, 1, false, 0),
    REAL(repetition_penalty, 0, INFINITY, true, 1),
    REAL(presence_penalty, -2, 2, false, 0),
    REAL(frequency_penalty, -2, 2, false, 0),
    {0},
};

const char *cake_request_name(cake_form form, int64_t index, const char *id, char out[CAKE_REQUEST_NAME])
{
    enum { SHOWN = 60 };
    int n = snprintf(out, CAKE_REQUEST_NAME, "line %lld", (long long)index + 1);
    size_t shown = id && strlen(id) > SHOWN ? cake_utf8_check(id, SHOWN) : SHOWN;
    if (id)
        snprintf(out + n, CAKE_REQUEST_NAME - (size_t)n, " (%s %.*s%s)",
                 form == CAKE_FORM_SIMPLE ? "id" : "custom_id", (int)shown, id,
                 strlen(id) > SHOWN ? "..." : "");
    return out;
}

bool cake_params_has(const cake_params_field *field, double value)
{
    return isfinite(value) && value >= field->min && value <= field->max &&
           !(field->above_min && value == field->min);
}

const char *cake_params_range(const cake_params_field *field, char out[CAKE_PARAMS_RANGE])
{
    const char *what = field->real ? "a number" : "an integer";
    if (field->above_min && isinf(field->max))
        snprintf(out, CAKE_PARAMS_RANGE, "%s above %.15g", what, field->min);
    else if (field->above_min)
        snprintf(out, CAKE_PARAMS_RANGE, "%s above %.15g and at most %.15g", what, field->min, field->max);
    else if (field->max > 0x1p53) /* an integer as wide as its type; INT64_MIN means unset */
        snprintf(out, CAKE_PARAMS_RANGE, "%s from %lld to %lld", what, (long long)-INT64_MAX,
                 (long long)INT64_MAX);
    else
        snprintf(out, CAKE_PARAMS_RANGE, "%s from %.15g to %.15g", what, field->min, field->max);
    return out;
}

cake_params cake_params_unset(void)
{
    cake_params params = {.n_stop = -1};
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        if (f->real)
            *(double *)((char *)&params + f->offset) = NAN;
        else
            *(int64_t *)((char *)&params + f->offset) = CAKE_UNSET;
    }
    return params;
}

cake_params cake_params_base(void)
{
    cake_params params = cake_params_unset();
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        if (f->real)
            *(double *)((char *)&params + f->offset) = f->base;
        else if (!isnan(f->base))
            *(int64_t *)((char *)&params + f->offset) = (int64_t)f->base;
    }
    params.n_stop = 0;
    return params;
}

static void merge_bias(cake_params *params, const cake_params *over)
{
    if (!over->n_bias)
        return;
    params->bias = cake_grow(params->bias, params->n_bias + over->n_bias, sizeof *params->bias);
    memcpy(params->bias + params->n_bias, over->bias, over->n_bias * sizeof *params->bias);
    params->n_bias += over->n_bias;
}

void cake_params_merge(cake_params *params, const cake_params *over)
{
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        void *into = (char *)params + f->offset;
        const void *from = (const char *)over + f->offset;
        if (f->real && isnan(*(double *)into))
            memcpy(into, from, sizeof(double));
        else if (!f->real && *(int64_t *)into == CAKE_UNSET)
            memcpy(into, from, sizeof(int64_t));
    }
    if (params->n_stop < 0 && over->n_stop >= 0) {
        params->n_stop = over->n_stop;
        for (int i = 0; i < over->n_stop; i++)
            params->stop[i] = cake_copy(over->stop[i], strlen(over->stop[i]));
    }
    merge_bias(params, over);
}

void cake_params_free(cake_params *params)
{
    for (int i = 0; i < params->n_stop; i++)
        free(params->stop[i]);
    params->n_stop = -1;
    cake_ids_free(&params->stop_ids);
    free(params->bias);
    params->bias = NULL;
    params->n_bias = 0;
}
