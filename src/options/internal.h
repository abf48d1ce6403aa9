/* SPDX-License-Identifier: Apache-2.0
 *
 * Between options.c, which knows what options are, and parse.c, which finds them.
 */
#ifndef CAKE_OPTIONS_INTERNAL_H
#define CAKE_OPTIONS_INTERNAL_H

#include "options/options.h"

enum { RUN = 1, TOKENIZE = 2, INFO = 4, PLAN = 8, BENCH = 16, STAGE = 32, MERGE = 64, STATUS = 128 };

typedef enum kind { FLAG, TEXT, TEXTS, INTEGER, REAL, SIZE, DURATION, STOP, SEED, SHARD } kind;

typedef struct option_row {
    const char *group;
    int commands;
    const char *name;
    char letter;
    kind kind;
    const char *argument;
    size_t offset;
    double least, most;
    const char *help;
} option_row;

enum {
    N_ROW = 0
#define OPTION(...) +1
#include "options/options.def"
#undef OPTION
};

extern const option_row cake_option_rows[]; /* [N_ROW] */

/* Whether word is one of "a|b|c". */
bool cake_option_among(const char *choices, const char *word);
/* Whether hosts may differ in it: a rank's own variable then counts, where it has one. */
bool cake_option_is_own(const option_row *row);
/* plan takes what run takes, too, so that a job's line becomes its plan by one word. */
bool cake_option_takes(int command, const option_row *row);
/* from: what is called so in messages; value: NULL for a flag on the command line. Text is borrowed. */
cake_err cake_option_set(cake_options *o, const option_row *row, const char *from, char *value);

/* Whether the options go together, and all is there that the command works on; CAKE_ERR_USAGE is said. */
cake_err cake_option_clashes(const cake_options *o, int command);

/* Options of the environment, of --config's file and of argv, into options that have their defaults; or
 * "help" or "version" in options->command. CAKE_ERR_USAGE, or CAKE_ERR_FATAL for a file that cannot be read,
 * is said. */
cake_err cake_sources_read(int argc, char **argv, int command, cake_options *options);

#endif
