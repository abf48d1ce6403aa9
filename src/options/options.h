/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, a file of settings and CAKE_* variables become checked values. options.def is the one
 * place where an option is written down; --help, the man page's test and the parser read it.
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
    char **text; /* borrowed from argv, settings and the environment */
    int n;
} cake_texts;

/* Where the model is in bundles; zeros: it is whole. */
typedef struct cake_staged {
    const char *given; /* -m, while options->model is the directory of this rank's bundle */
    char *dir, *name;  /* owned: that directory; what the model was called */
} cake_staged;

typedef struct cake_options {
    const char *command; /* "run", "tokenize" and so on, of a table in options.c; "help", "version" */
    const char *help_of; /* the command that help is wanted for; NULL: all */
    const char *model, *input, *input_format, *output, *system;
    cake_texts prompts;
    cake_texts operands;   /* of bench: names; of merge and status: results */
    cake_texts words;      /* the command line */
    const char *settings;  /* the file of --config; NULL: none */
    cake_config_file said; /* what it has, owned */
    cake_names names;      /* of fields in other people's lines */
    const char
        *config; /* the text of a made-up model's config.json, with dummy weights; model is its name then */
    const char *shape, *batch; /* of bench */
    int64_t stages, flops, bandwidth;
    bool raw, force, retry_errors, deterministic_ids, timing, smoke;
    const char *resume;
    cake_shard shard;     /* which requests of the input are this run's */
    const char *isa_from; /* the file that isa was found in; NULL: it was asked for */
    cake_params params;   /* stop strings are owned */
    int64_t seed;
    int64_t context, max_seqs, chunk, threads; /* 0: planned */
    int64_t max_runtime, stop_before;          /* seconds; -1: not said */
    int64_t watchdog;                          /* seconds; 0: never, -1: not said */
    int64_t replicas;                          /* 0: not said */
    int64_t ranks;                             /* of plan and stage; 0: those that are there */
    int64_t threads_decode;                    /* 0: all */
    int64_t kv_memory;                         /* bytes; negative: percent of the free memory; 0: planned */
    const char *dtype, *kv_dtype, *isa, *load, *bind, *device, *link;
    int64_t gpu_memory; /* bytes; 0: what GPUs have */
    int64_t gpu_layers; /* -1: all that fit */
    bool mlock;
    int64_t dummy; /* seed of dummy weights, -1: real ones */
    const char *topology, *write_topology;
    const char *directory; /* of stage: where bundles go */
    cake_staged staged;
    const struct cake_bundle *index; /* the model's tensors, where there are no files (cake_model_options) */
    const char *rates;
    bool json;
    const char *progress, *progress_file, *report, *trace;
    const char *log; /* levels of messages; NULL: not said */
    bool quiet, verbose;
} cake_options;

/* Rank 0's CAKE_* variables become those of all ranks, since a launcher need not pass them on; of what
 * differs from host to host a rank keeps its own. All ranks call, once, before anything is parsed. */
void cake_options_share(const cake_comm *world);
/* Options not given have their defaults. Help and version are commands too. CAKE_ERR_USAGE is said. */
cake_err cake_options_parse(int argc, char **argv, cake_options *options);
/* CAKE_ERR_FATAL if two ranks were given different options, but for those that hosts may differ in: what all
 * ranks do together depends on them. Rank 0 says so. All ranks call. */
cake_err cake_options_agree(const cake_options *options, const cake_comm *world);
void cake_options_free(cake_options *options);
/* --threads, else OMP_NUM_THREADS, else what the machine suggests. */
int cake_options_threads(const cake_options *options, int suggested);
/* Whether the answer streams: one answer to one -p, and nowhere else to go. */
bool cake_options_stream(const cake_options *options);
bool cake_options_text(const char *path); /* whether a name ends in .txt; NULL does not */
/* What the model is called in records: the last part of its path, of a bundle that of the model it was made
 * from. */
enum { CAKE_MODEL_NAME = 256 };
const char *cake_options_model_name(const cake_options *options, char name[CAKE_MODEL_NAME]);
/* --help of a command ("run", ...) on standard output. */
void cake_options_help(const char *command);

#endif
