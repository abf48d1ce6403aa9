/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the options that parse.c finds, as text. Out: cake_options, checked.
 */
#include "options/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/log.h"

static int command_bit(const char *name)
{
    for (int i = 0; i < N_COMMAND; i++)
        if (!strcmp(cake_command_rows[i].name, name))
            return cake_command_rows[i].bit;
    return 0;
}

/* A streamed answer usually shares the terminal with messages: only warnings, unless more is asked for. */
static bool is_streaming(const cake_options *o)
{
    return !strcmp(o->command, "run") && cake_options_stream(o) && !o->verbose && !o->log;
}

static cake_err set_log_levels(cake_options *o)
{
    bool streaming = is_streaming(o);
    if (o->quiet + o->verbose + !!o->log > 1)
        return cake_fail_usage("both %s and %s: give one of them to choose the messages",
                               o->quiet ? "-q" : "-v", o->log ? "--log" : "-v");
    if (streaming && !strcmp(o->progress, "auto"))
        o->progress = "none";
    const char *error = cake_log_levels(o->log                  ? o->log
                                        : o->verbose            ? "debug"
                                        : o->quiet || streaming ? "warn"
                                                                : "info");
    return error ? cake_fail_usage("--log: \"%s\": %s", o->log, error) : CAKE_OK;
}

cake_err cake_options_parse(int argc, char **argv, cake_options *options)
{
    *options = (cake_options){.command = "run",
                              .params = cake_params_unset(),
                              .dtype = "auto",
                              .tool_parser = "auto",
                              .speculate = "auto",
                              .reasoning_parser = "auto",
                              .kv_dtype = "auto",
                              .activations = "auto",
                              .isa = "auto",
                              .bind = "auto",
                              .device = "auto",
                              .gpu_launch = "auto",
                              .link = "auto",
                              .gpu_layers = -1,
                              .load = "read",
                              .resume = "auto",
                              .task = "auto",
                              .dummy = -1,
                              .max_runtime = -1,
                              .stop_before = -1,
                              .watchdog = -1,
                              .progress = "auto",
                              .words = {argv, argc}};
    int skip = 0;
    if (argc > 1 && argv[1][0] != '-') {
        if (!command_bit(argv[1]))
            return cake_fail_usage("\"%s\" is not a command; see cake-mpi --help", argv[1]);
        options->command = argv[1];
        skip = 1;
    }
    const char *command = options->command;
    cake_err err = cake_sources_read(argc - skip, argv + skip, command_bit(command), options);
    bool help = !strcmp(options->command, "help") || !strcmp(options->command, "version");
    if (help)
        options->help_of = skip ? command : NULL;
    if (!err && !help)
        err = set_log_levels(options);
    return err || help ? err : cake_option_clashes(options, command_bit(options->command));
}

static int64_t checksum_of_list(char *const *text, int n)
{
    uint32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = cake_crc_on(sum, text[i], strlen(text[i]) + 1);
    return sum;
}

static int64_t checksum_of_value(const cake_options *o, const option_row *row)
{
    const void *value = (const char *)o + row->offset;
    size_t len = row->kind == FLAG    ? sizeof(bool)
                 : row->kind == REAL  ? sizeof(double)
                 : row->kind == SHARD ? sizeof(cake_shard)
                                      : sizeof(int64_t);
    if (cake_option_is_own(row))
        return 0;
    if (row->kind == STOP)
        return checksum_of_list(o->params.stop, o->params.n_stop);
    if (row->kind == TEXTS)
        return checksum_of_list(((const cake_texts *)value)->text, ((const cake_texts *)value)->n);
    if (row->kind == TEXT) {
        value = *(const char *const *)value;
        len = value ? strlen(value) + 1 : 0;
    }
    return cake_crc_on(0, value ? value : "", len);
}

cake_err cake_options_agree(const cake_options *o, const cake_comm *world)
{
    int64_t checksums[N_ROW + 1];
    cake_mismatch odd;
    checksums[0] = cake_crc_on(0, o->command, strlen(o->command)); /* commands differ in their options */
    for (int i = 0; i < N_ROW; i++)
        checksums[1 + i] = checksum_of_value(o, &cake_option_rows[i]);
    if (cake_comm_same(world, checksums, N_ROW + 1, &odd))
        return CAKE_OK;
    if (world->rank)
        return CAKE_ERR_FATAL;
    return cake_fail("options",
                     "%s%s: rank %d on %s and rank %d on %s were started with different values; "
                     "give all ranks the same command line",
                     odd.at ? "--" : "the command", odd.at ? cake_option_rows[odd.at - 1].name : "",
                     odd.rank[0], odd.host[0], odd.rank[1], odd.host[1]);
}

int cake_options_threads(const cake_options *o, int suggested)
{
    enum { MAX_THREADS = 4096 };
    const char *omp = getenv("OMP_NUM_THREADS");
    if (o->threads)
        return (int)o->threads;
    int64_t n = omp ? strtoll(omp, NULL, 10) : 0; /* of a list for nested regions: the first */
    return n > 0 && n <= MAX_THREADS ? (int)n : suggested;
}

const char *cake_options_model_given(const cake_options *o)
{
    return o->pulled.given ? o->pulled.given : o->staged.given ? o->staged.given : o->model;
}

const char *cake_options_model_name(const cake_options *o, char name[CAKE_MODEL_NAME])
{
    const char *path = o->staged.name ? o->staged.name : o->pulled.name ? o->pulled.name : o->model;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t from = len;
    while (from > 0 && path[from - 1] != '/')
        from--;
    snprintf(name, CAKE_MODEL_NAME, "%.*s", (int)(len - from), path + from);
    return name;
}

void cake_options_free(cake_options *options)
{
    cake_params_free(&options->params);
    free(options->prompts.text);
    free(options->include.text);
    free(options->exclude.text);
    cake_config_file_free(&options->config_file);
    free(options->staged.dir);
    free(options->staged.name);
    free(options->pulled.dir);
    free(options->pulled.name);
}

/* Breaks text between words; its lines begin at column `indent`, where the cursor is. */
static void print_wrapped(const char *text, int indent)
{
    enum { WIDTH = 100 };
    for (int column = indent; *text;) {
        int len = (int)strcspn(text, " ");
        bool first = column == indent;
        if (!first && column + 1 + len > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
            first = true;
        }
        column += printf("%s%.*s", first ? "" : " ", len, text);
        text += len + (text[len] == ' ');
    }
    printf("\n");
}

static void print_option(const option_row *row)
{
    enum { INDENT = 31 };
    char left[128];
    int n = row->letter ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
                        : snprintf(left, sizeof left, "      --%s", row->name);
    if (row->argument)
        n += snprintf(left + n, sizeof left - (size_t)n, row->kind == SEED ? "[=%s]" : " %s", row->argument);
    if (n >= INDENT)
        printf("%s\n%*s", left, INDENT, "");
    else
        printf("%-*s", INDENT, left);
    print_wrapped(row->help, INDENT);
}

void cake_options_help(const char *command)
{
    int bit = command ? command_bit(command) : RUN;
    printf("Usage:\n");
    for (int i = 0; i < N_COMMAND; i++)
        if (!command || cake_command_rows[i].bit == bit)
            printf("  %s\n", cake_command_rows[i].usage);
    printf("\n");
    for (int i = 0; i < N_COMMAND; i++)
        if (!command || cake_command_rows[i].bit == bit) {
            printf("%-10s ", cake_command_rows[i].name);
            print_wrapped(cake_command_rows[i].help, 11);
        }
    const char *group = "";
    for (int i = 0; i < N_ROW; i++) {
        if (!(cake_option_rows[i].commands & bit))
            continue;
        if (strcmp(group, cake_option_rows[i].group))
            printf("\n%s%s:\n", group = cake_option_rows[i].group, command ? "" : " (run)");
        print_option(&cake_option_rows[i]);
    }
    if (bit == PLAN)
        printf("\nAll other options of run are accepted, too: change the word run to plan in a job's command "
               "line.\n");
    printf("\n  -h, --help                   print this text; each command has its own\n"
           "      --version                print the version\n\n"
           "CAKE_<OPTION> in the environment (CAKE_MAX_TOKENS=9) sets an option's default. The file of\n"
           "--config wins over it, and the command line over both.\n"
           "Exit status: 0 all done, 1 fatal, 2 wrong usage, 3 finished but some requests failed,\n"
           "75 stopped early: the same command continues the run.\n");
}
