/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the rank, the preparation's defaults. Out: a JSON object that identifies the job.
 * Invariant: it has everything that may change a result's bits, apart from the requests; numbers of ranks and
 * threads are not in it.
 */
#include "run/identity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "base/version.h"
#include "formats/json.h"
#include "model/side_files.h"
#include "record/record.h"

/* Sums of the files next to the weights. Those of the tokenizer are added, since directories have no
 * order. */
typedef struct sums {
    uint32_t config, generation, tokenizer;
} sums;

static cake_err sum_file(void *self, const char *name, cake_buf *text)
{
    sums *s = self;
    uint32_t sum = cake_side_files_sum(name, text);
    if (!strcmp(name, "config.json"))
        s->config = sum;
    else if (!strcmp(name, "generation_config.json"))
        s->generation = sum;
    else
        s->tokenizer += sum;
    cake_buf_free(text);
    return CAKE_OK;
}

static void add_text(cake_buf *out, const char *key, const char *text)
{
    cake_buf_addf(out, ", \"%s\": ", key);
    if (text)
        cake_json_add_text(out, text, strlen(text));
    else
        cake_buf_adds(out, "null");
}

static void add_int(cake_buf *out, const char *key, int64_t value)
{
    cake_buf_addf(out, ", \"%s\": %lld", key, (long long)value);
}

static void add_sum(cake_buf *out, const char *key, uint32_t sum)
{
    cake_buf_addf(out, ", \"%s\": \"%08x\"", key, sum);
}

/* The defaults of request parameters. */
static void add_params(cake_buf *out, const cake_params *params)
{
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        const char *at = (const char *)params + f->offset;
        cake_buf_addf(out, ", \"%s\": ", f->name);
        if (f->real)
            cake_json_add_real(out, *(const double *)(const void *)at);
        else if (*(const int64_t *)(const void *)at == CAKE_UNSET)
            cake_buf_adds(out, "null");
        else
            cake_buf_addf(out, "%lld", (long long)*(const int64_t *)(const void *)at);
    }
    cake_buf_adds(out, ", \"stop\": [");
    for (int i = 0; i < params->n_stop; i++) {
        cake_buf_adds(out, i ? ", " : "");
        cake_json_add_text(out, params->stop[i], strlen(params->stop[i]));
    }
    cake_buf_addc(out, ']');
}

cake_err cake_identity_add(const cake_options *o, const cake_rank *me, const cake_preparation *preparation,
                           cake_buf *out)
{
    sums s = {0};
    cake_err err = cake_side_files_read(o->model, "record", sum_file, &s);
    const char *form = o->input_format ? o->input_format : o->input ? cake_record_form(o->input) : "txt";
    cake_json_put_text(out, "{\"version\": ", cake_version());
    add_sum(out, "config.json", s.config);
    add_sum(out, "generation_config.json", s.generation);
    add_sum(out, "tokenizer", s.tokenizer);
    add_sum(out, "tensors", cake_model_identity(me->input.model));
    add_sum(out, "weights", me->weights);
    add_int(out, "dummy_weights", o->dummy);
    add_text(out, "isa", me->isa.data);
    add_text(out, "dtype", o->dtype);
    if (cake_model_quantized(me->input.model))
        add_text(out, "activations", cake_model_has_codes(me->input.model) ? "int8" : "bf16");
    add_text(out, "kv_dtype", cake_dtype_name(me->input.kv_dtype));
    add_int(out, "context", me->input.context);
    add_text(out, "input_format", form);
    add_text(out, "prompt_field", o->names.prompt);
    add_text(out, "id_field", o->names.id);
    add_int(out, "raw", o->raw);
    add_text(out, "system", o->system);
    if (preparation->form.tools)
        add_text(out, "tool_parser", cake_answer_tool_parser_name(&preparation->form));
    if (preparation->form.reasoning)
        add_text(out, "reasoning_parser", cake_answer_reasoning_parser_name(&preparation->form));
    add_int(out, "job_seed", o->seed);
    add_int(out, "deterministic_ids", o->deterministic_ids);
    if (strcmp(o->task, "generate"))
        add_text(out, "task", o->task);
    if (o->timing)
        add_int(out, "timing", 1);
    char shard[CAKE_SHARD_TEXT];
    add_text(out, "shard", cake_shard_text(&o->shard, shard));
    add_text(out, "output", cake_record_form(o->output));
    add_params(out, &preparation->defaults);
    cake_buf_addc(out, '}');
    return err;
}

void cake_identity_isa(const cake_options *o, char isa[CAKE_IDENTITY_ISA])
{
    cake_buf text = {0};
    cake_json *root = NULL;
    cake_fault fault;
    isa[0] = 0;
    if (!o->output || cake_identity_resume(o) == CAKE_RESUME_NEVER)
        return;
    cake_record_read_identity(o->output, o->force, &text);
    if (text.len && !cake_json_parse(text.data, text.len, &root, &fault)) {
        const char *name = cake_json_text(cake_json_get(root, "isa"), NULL);
        if (name && cake_kernels_level(name) >= 0)
            snprintf(isa, CAKE_IDENTITY_ISA, "%s", name);
    }
    cake_json_free(root);
    cake_buf_free(&text);
}

cake_resume cake_identity_resume(const cake_options *o)
{
    return !strcmp(o->resume, "never")  ? CAKE_RESUME_NEVER
           : !strcmp(o->resume, "must") ? CAKE_RESUME_MUST
                                        : CAKE_RESUME_AUTO;
}
