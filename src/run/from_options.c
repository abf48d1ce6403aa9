/* SPDX-License-Identifier: Apache-2.0
 *
 * In: checked options. Out: the structs that modules take.
 */
#include "run/from_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "bundle/locate.h"
#include "formats/model_files.h"
#include "run/resolve_model.h"

enum { SAMPLE_BYTES = 1 << 20 }; /* read from an input to estimate its number of lines */

static cake_purpose purpose_of(const char *command)
{
    return !strcmp(command, "run")     ? CAKE_PURPOSE_RUN
           : !strcmp(command, "plan")  ? CAKE_PURPOSE_PLAN
           : !strcmp(command, "stage") ? CAKE_PURPOSE_STAGE
                                       : CAKE_PURPOSE_BENCH;
}

static cake_model_options model_options(const cake_options *o)
{
    cake_model_options open = {.config = o->config,
                               .dummy = o->dummy >= 0,
                               .dummy_seed = o->dummy >= 0 ? (uint64_t)o->dummy : 0,
                               .convert = strcmp(o->dtype, "auto"),
                               .mtp = !strcmp(o->speculate, "mtp"),
                               .dequantize = !strcmp(o->activations, "bf16")};
    for (int i = 0; i < CAKE_N_KEPT && open.convert; i++)
        if (!strcmp(o->dtype, cake_dtype_name((cake_dtype)i)))
            open.dtype = (cake_dtype)i;
    open.int4 = !strcmp(o->dtype, "int4");
    open.dtype = open.int4 ? CAKE_I8 : open.dtype;
    return open;
}

cake_rank_options cake_rank_options_from(const cake_options *o)
{
    const cake_purpose purpose = purpose_of(o->command);
    const bool plan = purpose == CAKE_PURPOSE_PLAN;
    return (cake_rank_options){
        .purpose = purpose,
        .model = o->model,
        .staged = o->staged.given,
        .open = model_options(o),
        .isa = o->isa,
        .isa_from = o->isa_from,
        .kv_dtype = o->kv_dtype,
        .codes = !strcmp(o->activations, "int8"),
        .link = o->link,
        .rates = o->rates,
        .keep_rates = o->keep_rates,
        /* bench compares runs with rates measured on the mask that it was started with */
        .affinity = {.bind = purpose == CAKE_PURPOSE_BENCH ? "none" : o->bind,
                     .threads = cake_options_threads(o, 0)},
        .gpu = {.device = o->device,
                .launch = o->gpu_launch,
                .isa = o->isa,
                .memory = o->gpu_memory,
                .layers = o->gpu_layers,
                .plan = plan},
        /* a run opens the GPUs and finds out itself */
        .topology_file = {.path = o->topology, .plan = plan, .check_gpus = plan && !o->gpu_memory},
        .context = o->context,
        .max_seqs = o->max_seqs,
        /* a bench measures passes, unless it is asked for drafts */
        .speculate = strcmp(o->speculate, purpose == CAKE_PURPOSE_BENCH ? "auto" : "off") != 0 &&
                     strcmp(o->speculate, "off") != 0,
        .chunk = o->chunk,
        .kv_memory = o->kv_memory,
        .weights_memory = o->weights_memory,
        .threads = (int)o->threads,
        .threads_decode = (int)o->threads_decode,
        .n_rank = (int)o->ranks,
        .n_replica = (int)o->replicas,
        .mapped = !strcmp(o->load, "mmap"),
        .lock = o->mlock,
        .report = o->report != NULL,
    };
}

static bool is_classifier(const cake_json *config)
{
    const char *name = cake_json_text(cake_json_at(cake_json_get(config, "architectures"), 0), NULL);
    return name && strstr(name, "ForSequenceClassification");
}

/* What a model is made for: classifiers rank; encoders, and what sentence-transformers has saved, embed. */
static const char *usual_task(const char *model)
{
    cake_json *modules = cake_model_files_peek(model, "modules.json");
    cake_json *config = cake_model_files_peek(model, "config.json");
    const char *type = cake_json_text(cake_json_get(config, "model_type"), NULL);
    const cake_arch *arch = type ? cake_arch_find(type) : NULL;
    bool scores = false; /* as one of sentence-transformers' cross encoders */
    for (size_t i = 0; i < cake_json_size(modules); i++) {
        const char *name = cake_json_text(cake_json_get(cake_json_at(modules, i), "type"), NULL);
        scores = scores || (name && strstr(name, "LogitScore"));
    }
    const bool embeds = modules || (arch && arch->encoder), ranks = is_classifier(config);
    cake_json_free(modules);
    cake_json_free(config);
    return ranks || scores ? "rerank" : embeds ? "embed" : "generate";
}

static cake_task task_of(const cake_options *o)
{
    int i = 0;
    while (i < CAKE_N_TASK && strcmp(cake_tasks[i].name, o->task) != 0)
        i++;
    return i < CAKE_N_TASK ? (cake_task)i : CAKE_TASK_GENERATE;
}

cake_prepare_options cake_prepare_options_from(const cake_options *o)
{
    return (cake_prepare_options){.model = o->model,
                                  .input = o->input,
                                  .input_format = o->input_format,
                                  .text = o->prompts.text,
                                  .n_text = o->prompts.n,
                                  .names = o->names,
                                  .task = task_of(o),
                                  .system = o->system,
                                  .raw = o->raw,
                                  .tool_parser = o->tool_parser,
                                  .reasoning_parser = o->reasoning_parser,
                                  .params = o->params,
                                  .context = o->context,
                                  .seed = o->seed,
                                  .shard = o->shard};
}

static int64_t count_lines(const cake_options *o)
{
    struct stat st;
    if (o->prompts.n)
        return o->prompts.n;
    if (!o->input || !strcmp(o->input, "-") || stat(o->input, &st) || !S_ISREG(st.st_mode))
        return 0;
    FILE *f = fopen(o->input, "rb");
    char *text = cake_alloc(SAMPLE_BYTES, 1);
    int64_t lines = 0;
    size_t n = f ? fread(text, 1, SAMPLE_BYTES, f) : 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n' || i + 1 == n;
    free(text);
    if (f)
        fclose(f);
    return n && (int64_t)n < st.st_size ? (int64_t)((double)lines * (double)st.st_size / (double)n) : lines;
}

int64_t cake_expected_requests(const cake_options *o)
{
    int64_t parts = o->shard.of ? o->shard.of : 1;
    return (count_lines(o) + parts - 1) / parts;
}

/* Of a directory with bundles, this rank's. */
static cake_err locate_bundle(cake_options *o, const cake_comm *world)
{
    /* these need no other rank, read no weights, or plan for other ranks */
    bool any = o->dummy >= 0 || o->ranks || !strcmp(o->command, "tokenize") || !strcmp(o->command, "info");
    cake_located found;
    cake_err err = cake_bundle_locate(&(cake_locate_options){o->model, (int)o->replicas, (int)o->ranks, any},
                                      world, &found);
    if (err || !found.dir)
        return err;
    o->staged = (cake_staged){.given = o->model, .dir = found.dir, .name = found.name};
    o->model = found.dir;
    if (!any && !o->replicas)
        o->replicas = 1; /* the bundles fix the number of stages, and so of replicas */
    return CAKE_OK;
}

cake_err cake_options_locate_model(cake_options *o, const cake_comm *world)
{
    if (!o->model || !strcmp(o->command, "help") || !strcmp(o->command, "version"))
        return CAKE_OK;
    cake_err err = cake_resolve_model(o, world);
    if (!err && strcmp(o->command, "stage"))
        err = locate_bundle(o, world);
    if (!err && !strcmp(o->task, "auto"))
        o->task = usual_task(o->model);
    return err;
}
