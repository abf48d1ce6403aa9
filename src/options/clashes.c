/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, each with a valid value. Out: whether they contradict each other or the command lacks one.
 */
#include <string.h>
#include <strings.h>

#include "formats/codec.h"
#include "options/internal.h"
#include "record/record.h"

static bool ends_in(const char *path, const char *ending)
{
    size_t len = strlen(path), n = strlen(ending);
    return len >= n && !strcasecmp(path + len - n, ending);
}

static cake_err check_required(const cake_options *o, int command)
{
    if (command & (MERGE | STATUS))
        return o->operands.n
                   ? CAKE_OK
                   : cake_fail_usage("no results: name the result files of %s; see cake-mpi %s --help",
                                     command & MERGE ? "all shards" : "a run", o->command);
    if (command & (PULL | REMOVE))
        return o->operands.n ? CAKE_OK
                             : cake_fail_usage("no model: give its name, owner/name; see cake-mpi %s --help",
                                               o->command);
    if (command & LIST)
        return CAKE_OK;
    if (!o->model)
        return cake_fail_usage("no model: give its directory or its name with -m; see cake-mpi %s --help",
                               o->command);
    if (command & STAGE && !o->directory)
        return cake_fail_usage(
            "no directory: give the one for the bundles with -d; see cake-mpi stage --help");
    if (command & (RUN | TOKENIZE) && !o->input && !o->prompts.n)
        return cake_fail_usage("no prompts: give a file with -i or a text with -p; see cake-mpi %s --help",
                               o->command);
    if (o->input && o->prompts.n)
        return cake_fail_usage("both -i and -p: give the prompts by one of them");
    return CAKE_OK;
}

static cake_err check_output(const cake_options *o, int command)
{
    bool packed = cake_codec_of(o->output) != NULL;
    const char *form = cake_record_form(o->output);
    if (o->output && ends_in(o->output, ".parquet"))
        return cake_fail_usage(
            "-o %s: Parquet cannot be written: give a .jsonl or .h5 file; cake-mpi-formats(5) "
            "has a command that converts it to Parquet",
            o->output);
    if (command & RUN && o->shard.of && cake_options_text(o->output))
        return cake_fail_usage(
            "--shard: a .txt file does not tell which request a line answers: give -o a .jsonl "
            "file; merge -o FILE.txt then writes text");
    if (command & RUN && o->shard.of && (packed || strcmp(form, "jsonl") != 0))
        return cake_fail_usage("--shard: only JSONL can be merged: give -o a .jsonl file; merge -o FILE.h5 "
                               "then writes HDF5");
    if (command & TOKENIZE && (packed || !strcmp(form, "h5")))
        return cake_fail_usage("-o %s: tokenize writes uncompressed JSON lines only; choose another ending",
                               o->output);
    return CAKE_OK;
}

/* Options that contradict each other, or of which one would have no effect. */
static cake_err check_pairs(const cake_options *o, int command)
{
    const char *read_form = o->input_format ? o->input_format : cake_record_form(o->input);
    bool reads_txt = o->input && !strcmp(read_form, "txt"),
         writes_txt = !strcmp(cake_record_form(o->output), "txt");
    bool streams = cake_options_stream(o), no_file = !o->output || !strcmp(o->output, "-");
    bool scores = o->params.logprobs != CAKE_UNSET, fields = o->names.prompt || o->names.id;
    const struct {
        int commands;
        bool clash;
        const char *message;
    } clashes[] = {
        {RUN | PLAN, writes_txt && o->params.n != CAKE_UNSET && o->params.n > 1,
         "--n: a line of a .txt file holds one answer: give -o a .jsonl file"},
        {RUN | PLAN, writes_txt && scores, "--logprobs: a .txt file cannot hold them: give -o a .jsonl file"},
        {RUN | PLAN, writes_txt && o->timing,
         "--timing: a .txt file cannot hold times: give -o a .jsonl file"},
        {RUN, streams && scores, "--logprobs: a streamed answer (one -p) cannot hold them; give -o"},
        {RUN, streams && o->timing, "--timing: a streamed answer (one -p) cannot hold times; give -o"},
        {RUN | PLAN, no_file && !strcmp(o->resume, "must"),
         "--resume must: without a result file there is nothing to resume: give -o"},
        {RUN | PLAN, no_file && o->retry_errors,
         "--retry-errors: without a result file there is nothing to retry: give -o"},
        {RUN | PLAN, o->retry_errors && !strcmp(o->resume, "never"),
         "both --resume never and --retry-errors: only an earlier run's requests can be retried"},
        {RUN | PLAN | TOKENIZE, o->prompts.n && o->input_format,
         "both -p and --input-format: there is no input file"},
        {RUN | PLAN | TOKENIZE, o->prompts.n && fields,
         "--prompt-field and --id-field name fields of JSON lines or objects of HDF5: -p has none"},
        {RUN | PLAN | TOKENIZE, reads_txt && fields,
         "--prompt-field and --id-field name fields of JSON lines or objects of HDF5: .txt files have none"},
        {RUN | PLAN | TOKENIZE, o->params.truncate_prompt_tokens == 0,
         "--truncate-prompt-tokens 0: expected an integer from 1, or -1 for what fits"},
        {RUN | PLAN | TOKENIZE, o->raw && o->system,
         "both --raw and --system: only the chat template takes a system message"},
        {RUN | PLAN | TOKENIZE, !strcmp(o->task, "score") && o->system,
         "both --task score and --system: a text that is scored goes through no chat template"},
        {RUN | PLAN | TOKENIZE, !strcmp(o->task, "rerank") && o->system,
         "both --task rerank and --system: texts that are ranked go through no chat template"},
        {RUN | PLAN | TOKENIZE, !strcmp(o->task, "embed") && o->system,
         "both --task embed and --system: a text that is embedded goes through no chat template"},
        {RUN | PLAN | TOKENIZE, o->input && !reads_txt && o->system,
         "--system: it applies to .txt files and -p only; in other files give each line its own messages"},
    };
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
        if (clashes[i].commands & command && clashes[i].clash)
            return cake_fail_usage("%s", clashes[i].message);
    return CAKE_OK;
}

static cake_err check_devices(const cake_options *o)
{
    bool cpu = !strcmp(o->device, "cpu"), cuda = !strcmp(o->device, "cuda");
    if (o->rates && (cuda || (o->gpu_memory && !cpu)))
        return cake_fail_usage("both %s and --rates: these are speeds of CPUs; leave one of them out",
                               cuda ? "--device cuda" : "--gpu-memory");
    if (o->rates && o->keep_rates)
        return cake_fail_usage(
            "both --rates and --keep-rates: with --rates nothing is measured that could be "
            "kept; leave one of them out");
    if (cpu && o->gpu_layers > 0)
        return cake_fail_usage(
            "--gpu-layers %lld with --device cpu: no layer can be on a GPU; leave one of them out",
            (long long)o->gpu_layers);
    if (o->gpu_layers >= 0 && o->ranks)
        return cake_fail_usage(
            "both --gpu-layers and --ranks: a plan for ranks that are not here keeps all of "
            "their layers on GPUs; start that many ranks instead of --ranks: mpirun -np %lld",
            (long long)o->ranks);
    if (o->gpu_memory < 0)
        return cake_fail_usage("--gpu-memory: a percentage of unknown memory; give a size like 80G");
    return CAKE_OK;
}

static cake_err check_threads(const cake_options *o)
{
    if (o->threads && o->threads_decode > o->threads)
        return cake_fail_usage(
            "--threads-decode %lld: more than the %lld of --threads, of which they are a part",
            (long long)o->threads_decode, (long long)o->threads);
    return CAKE_OK;
}

cake_err cake_option_clashes(const cake_options *o, int command)
{
    if (command & (INFO | BENCH))
        return CAKE_OK;
    cake_err err = check_output(o, command);
    if (!err)
        err = check_required(o, command);
    if (!err)
        err = check_pairs(o, command);
    if (err || command & (MERGE | STATUS | STAGE | PULL | LIST | REMOVE))
        return err;
    err = check_devices(o);
    return err ? err : check_threads(o);
}
