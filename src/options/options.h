/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, a configuration file and CAKE_* variables become checked values. The parser, --help, the
 * man page and the completion are all made from options.def.
 */
#ifndef CAKE_OPTIONS_OPTIONS_H
#define CAKE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "link/comm.h"
#include "options/config_file.h"
#include "prompt/prompt.h"
#include "types/params.h"
#include "types/shard.h"

typedef struct cake_texts {
    char **text; /* borrowed from argv, the configuration file and the environment */
    int n;
} cake_texts;

/* A model in bundles; zeros: a whole model. */
typedef struct cake_staged {
    const char *given; /* the value of -m; options->model is then the directory of this rank's bundle */
    char *dir, *name;  /* owned: that directory; the name of the whole model */
} cake_staged;

/* A model in the cache of `pull`; zeros: a directory. */
typedef struct cake_pulled {
    const char *given; /* the value of -m; options->model is then the directory of the snapshot */
    char *dir, *name;  /* owned: that directory; the name without the revision */
} cake_pulled;

typedef struct cake_options {
    const char *command; /* a name in commands.def, "help" or "version" */
    const char *help_of; /* help: for this command; NULL: for all */
    const char *model, *input, *input_format, *output, *system;
    cake_texts prompts;
    cake_texts operands;          /* bench, pull, rm: names; merge, status: result files */
    cake_texts include, exclude;  /* pull */
    cake_texts words;             /* the command line */
    const char *config_path;      /* --config; NULL: none */
    cake_config_file config_file; /* its content, owned */
    cake_names names;             /* of fields in simple JSONL lines */
    /* With --shape: the text of config.json; model is then only a name. */
    const char *config;
    const char *shape, *batch; /* bench */
    int64_t layers, stages, flops, bandwidth;
    bool raw, force, retry_errors, deterministic_ids, timing, smoke;
    const char *resume, *task;
    cake_shard shard;
    const char *isa_from; /* the file that gave isa; NULL: the user did */
    cake_params params;   /* stop strings are owned */
    int64_t seed;
    int64_t context, max_seqs, chunk, threads; /* 0: planned */
    int64_t max_runtime, stop_before;          /* seconds; -1: not given */
    int64_t watchdog;                          /* seconds; 0: never, -1: not given */
    int64_t replicas;                          /* 0: not given */
    int64_t ranks;                             /* plan, stage; 0: those of this job */
    int64_t threads_decode;                    /* 0: all */
    int64_t kv_memory;                         /* bytes; negative: percent of the free memory; 0: planned */
    int64_t weights_memory;                    /* bytes; negative: percent of the weights; 0: all */
    const char *tool_parser, *reasoning_parser, *speculate;
    const char *dtype, *kv_dtype, *activations, *isa, *load, *bind, *device, *link, *gpu_launch;
    int64_t gpu_memory; /* bytes; 0: what the GPUs have */
    int64_t gpu_layers; /* -1: all that fit */
    bool mlock;
    int64_t dummy; /* seed of dummy weights; -1: real weights */
    const char *topology, *write_topology;
    const char *directory; /* stage: where to write bundles */
    cake_staged staged;
    cake_pulled pulled;
    const char *rates, *keep_rates;
    bool json;
    const char *progress, *progress_file, *report, *trace;
    const char *log; /* NULL: not given */
    bool quiet, verbose, yes;
} cake_options;

/* Gives rank 0's CAKE_* variables to all ranks, since a launcher need not pass them on; options in which
 * hosts may differ keep a rank's own value. All ranks call, once, before parsing. */
void cake_options_broadcast(const cake_comm *world);
/* Options not given have their defaults. --help and --version set `command`. Errors come with a message. */
cake_err cake_options_parse(int argc, char **argv, cake_options *options);
/* CAKE_ERR_FATAL, with a message of rank 0, if two ranks were given different options (except those in which
 * hosts may differ): collective calls depend on them. All ranks call. */
cake_err cake_options_agree(const cake_options *options, const cake_comm *world);
void cake_options_free(cake_options *options);
/* --threads, else OMP_NUM_THREADS, else `suggested`. */
int cake_options_threads(const cake_options *options, int suggested);
/* One answer to one -p without -o is streamed. */
bool cake_options_stream(const cake_options *options);
bool cake_options_text(const char *path); /* whether the name ends in .txt; false for NULL */
const char *cake_options_model_given(const cake_options *options); /* the value of -m */
/* The model's name in records: the last part of its path; for a bundle that of the original model. */
enum { CAKE_MODEL_NAME = 256 };
const char *cake_options_model_name(const cake_options *options, char name[CAKE_MODEL_NAME]);
/* --help of a command ("run", ...) on standard output. */
void cake_options_help(const char *command);

#endif
