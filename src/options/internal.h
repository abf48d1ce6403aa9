/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by options.c (the whole), values.c (the table and its values), parse.c (where values come from) and
 * the checks.
 */
#ifndef CAKE_OPTIONS_INTERNAL_H
#define CAKE_OPTIONS_INTERNAL_H

#include "options/options.h"

enum {
    RUN = 1,
    TOKENIZE = 2,
    INFO = 4,
    PLAN = 8,
    BENCH = 16,
    STAGE = 32,
    MERGE = 64,
    STATUS = 128,
    PULL = 256,
    LIST = 512,
    REMOVE = 1024
};

typedef enum kind { FLAG, TEXT, TEXTS, INTEGER, REAL, SIZE, DURATION, STOP, SEED, SHARD } kind;

typedef struct option_row {
    const char *group;
    int commands;
    const char *name;
    char letter;
    kind kind;
    const char *argument;
    size_t offset;
    double min, max; /* inclusive */
    const char *help;
} option_row;

enum {
    N_ROW = 0
#define OPTION(...) +1
#include "options/options.def"
#undef OPTION
};

extern const option_row cake_option_rows[]; /* [N_ROW] */

typedef struct command_row {
    const char *name;
    int bit;
    const char *usage, *help;
} command_row;

enum {
    N_COMMAND = 0
#define COMMAND(...) +1
#include "options/commands.def"
#undef COMMAND
};

extern const command_row cake_command_rows[]; /* [N_COMMAND] */

/* Whether word is one of the choices "a|b|c". */
bool cake_option_among(const char *choices, const char *word);
/* Options in which ranks may differ: there a rank's own CAKE_ variable wins over rank 0's. */
bool cake_option_is_own(const option_row *row);
/* What the option's values are, for messages: "a number". */
const char *cake_option_expects(const char *name);
/* Appends the names of the commands that have the option: "plan and stage". */
void cake_option_add_commands(const char *name, cake_buf *out);
/* plan also takes all options of run, so that a job's command line becomes its plan by changing one word. */
bool cake_option_takes(int command, const option_row *row);
/* from: name of the source for messages; value (borrowed): NULL for a flag on the command line. */
cake_err cake_option_set(cake_options *o, const option_row *row, const char *from, char *value);

/* CAKE_ERR_USAGE, with a message, if options contradict each other or the command lacks one that it needs. */
cake_err cake_option_clashes(const cake_options *o, int command);

/* Applies the environment, the file of --config and argv to options, which hold the defaults; --help and
 * --version set options->command to "help" or "version". After a message: CAKE_ERR_USAGE, or CAKE_ERR_FATAL
 * for a file that cannot be read. */
cake_err cake_sources_read(int argc, char **argv, int command, cake_options *options);

#endif
