/* SPDX-License-Identifier: Apache-2.0
 *
 * In: CAKE_* variables, a file of settings, argv. Out: what they say, in the options; the last of them wins.
 * options.c calls.
 */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "options/internal.h"

extern char **environ;

/* Where options come from; a later one wins over those before it. */
typedef enum source { DEFAULT, ENVIRONMENT, FILE_OF_SETTINGS, COMMAND_LINE } source;

typedef struct parsing {
    cake_options *options;
    int command;
    source last[N_ROW]; /* that said something of the option */
} parsing;

/* What was said of an option by what counts less is forgotten, prompts for an input and the other way round,
 * too. */
static void forget(parsing *p, const option_row *row, source now)
{
    cake_options *o = p->options;
    if (p->last[row - cake_option_rows] == now)
        return;
    p->last[row - cake_option_rows] = now;
    if (row->kind == STOP)
        cake_params_free(&o->params);
    if (row->kind == TEXTS)
        o->prompts.n = 0;
    for (int i = 0; i < N_ROW; i++) {
        if (p->last[i] == now)
            continue;
        if (row->kind == TEXTS && !strcmp(cake_option_rows[i].name, "input"))
            o->input = NULL;
        if (!strcmp(row->name, "input") && cake_option_rows[i].kind == TEXTS)
            o->prompts.n = 0;
    }
}

static cake_err take(parsing *p, const option_row *row, source now, const char *from, char *value)
{
    forget(p, row, now);
    return cake_option_set(p->options, row, from, value);
}

enum { VARIABLE = 64 };

/* CAKE_MAX_TOKENS of --max-tokens, and so on. */
static char *variable_of(const option_row *row, char name[VARIABLE])
{
    size_t at = (size_t)snprintf(name, VARIABLE, "CAKE_%s", row->name);
    while (at-- > 5)
        name[at] = name[at] == '-' ? '_' : (char)toupper((unsigned char)name[at]);
    return name;
}

void cake_options_share(const cake_comm *world)
{
    cake_buf all = {0};
    char name[VARIABLE];
    const char *value;
    for (int i = 0; !world->rank && i < N_ROW; i++)
        if ((value = getenv(variable_of(&cake_option_rows[i], name)))) {
            cake_buf_add(&all, name, strlen(name) + 1);
            cake_buf_add(&all, value, strlen(value) + 1);
        }
    int64_t len = (int64_t)all.len;
    cake_comm_bcast(world, &len, sizeof len);
    char *text = world->rank ? cake_alloc((size_t)len, 1) : all.data;
    cake_comm_bcast(world, text, (size_t)len);
    for (int i = 0; world->rank && i < N_ROW; i++)
        if (!cake_option_is_own(&cake_option_rows[i]))
            unsetenv(variable_of(&cake_option_rows[i], name));
    for (const char *at = text; world->rank && at < text + len; at += strlen(at) + 1) {
        const char *of = at;
        at += strlen(at) + 1;
        setenv(of, at, 0);
    }
    if (world->rank)
        free(text);
    cake_buf_free(&all);
}

/* The option of that name that this command takes; else that of another command; NULL: there is none. */
static const option_row *row_of_name(int command, const char *name)
{
    const option_row *other = NULL;
    for (int i = 0; i < N_ROW; i++)
        if (!strcmp(cake_option_rows[i].name, name)) {
            if (cake_option_takes(command, &cake_option_rows[i]))
                return &cake_option_rows[i];
            other = &cake_option_rows[i];
        }
    return other;
}

/* How many characters have to be put in, left out or changed to make one name of the other. Case and what
 * stands between words do not count. */
static size_t distance(const char *a, size_t n_a, const char *b)
{
    size_t row[VARIABLE], n_b = strlen(b);
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 0; i < n_a; i++) {
        size_t before = row[0]++;
        for (size_t j = 0; j < n_b; j++) {
            size_t changed = before + (toupper((unsigned char)a[i]) != toupper((unsigned char)b[j]));
            size_t least = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
            before = row[j + 1];
            row[j + 1] = changed < least ? changed : least;
        }
    }
    return row[n_b];
}

/* The words of a name, [len], as one. */
static size_t join(const char *name, size_t len, char out[VARIABLE])
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < VARIABLE - 1; i++)
        if (name[i] != '-' && name[i] != '_')
            out[n++] = name[i];
    out[n] = 0;
    return n;
}

/* The option whose name is nearly that, by two characters at most; NULL: there is none. */
static const char *nearest(const char *name, size_t len)
{
    char asked[VARIABLE], own[VARIABLE];
    size_t n = join(name, len, asked), best = n > 4 ? 3 : 2;
    const char *found = NULL;
    for (int i = 0; i < N_ROW; i++) {
        join(cake_option_rows[i].name, strlen(cake_option_rows[i].name), own);
        size_t far = distance(asked, n, own);
        if (far < best) {
            best = far;
            found = cake_option_rows[i].name;
        }
    }
    return found;
}

/* Read by scripts and tests of ours, not by the program. */
static const char scripts_own[] =
    "CAKE_ALL|CAKE_ALL_GPU|CAKE_ASSETS|CAKE_BUILD|CAKE_FUZZ_SECONDS|CAKE_GPU_SECONDS|CAKE_LLAMA|"
    "CAKE_LONG_DIR|CAKE_MPI|CAKE_NETNS|CAKE_ON_GPU|CAKE_PACKAGING|CAKE_POWERCAP|CAKE_PYTHON|CAKE_ROUNDS|"
    "CAKE_ROUNDS_SEED|CAKE_SLURM|CAKE_SOURCE";

/* Whether a variable, its name of len bytes, is one of an option, or of our scripts. */
static bool is_known(const char *variable, size_t len)
{
    char own[VARIABLE], name[VARIABLE];
    snprintf(name, sizeof name, "%.*s", (int)len, variable);
    bool known =
        len >= sizeof name || cake_option_among(scripts_own, name) || !strncmp(name, "CAKE_TEST_", 10);
    for (int i = 0; i < N_ROW && !known; i++)
        known = !strcmp(variable_of(&cake_option_rows[i], own), name);
    return known;
}

/* A slip in a name would be passed over otherwise, and the option's default taken. */
static void warn_of_slips(void)
{
    for (char **at = environ; at && *at; at++) {
        size_t len = strcspn(*at, "=");
        if (strncmp(*at, "CAKE_", 5) || is_known(*at, len))
            continue;
        const char *near = nearest(*at + 5, len - 5);
        char variable[VARIABLE];
        cake_log(CAKE_WARN, "usage", "%.*s in the environment is no option's variable, and is ignored%s%s",
                 (int)len, *at, near ? "; meant is perhaps " : "",
                 near ? variable_of(row_of_name(0, near), variable) : "");
    }
}

static cake_err read_environment(parsing *p)
{
    warn_of_slips();
    for (int i = 0; i < N_ROW; i++) {
        char name[VARIABLE], *value = getenv(variable_of(&cake_option_rows[i], name));
        if (value && *value && cake_option_takes(p->command, &cake_option_rows[i])) {
            cake_err err = take(p, &cake_option_rows[i], ENVIRONMENT, name, value);
            if (err)
                return err;
        }
    }
    return CAKE_OK;
}

enum { HELP = 1000, VERSION, LONG }; /* LONG + a row; no character is that large */

/* --max_tokens as --max-tokens: other tools spell it so. NULL: there is nothing to spell otherwise. */
static const char *alias_of(int i)
{
    static char alias[N_ROW][VARIABLE];
    if (!strchr(cake_option_rows[i].name, '-'))
        return NULL;
    snprintf(alias[i], VARIABLE, "%s", cake_option_rows[i].name);
    for (char *c = alias[i]; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return alias[i];
}

static void getopt_tables(int command, struct option *longs, char *shorts)
{
    *shorts++ = ':'; /* a missing argument is told apart from an unknown option */
    for (int i = 0; i < N_ROW; i++) {
        if (!cake_option_takes(command, &cake_option_rows[i]))
            continue;
        int has = cake_option_rows[i].kind == FLAG   ? no_argument
                  : cake_option_rows[i].kind == SEED ? optional_argument
                                                     : required_argument;
        *longs++ = (struct option){cake_option_rows[i].name, has, NULL, LONG + i};
        const char *alias = alias_of(i);
        if (alias)
            *longs++ = (struct option){alias, has, NULL, LONG + i};
        if (cake_option_rows[i].letter) {
            *shorts++ = cake_option_rows[i].letter;
            if (has == required_argument)
                *shorts++ = ':';
        }
    }
    *longs++ = (struct option){"help", no_argument, NULL, HELP};
    *longs++ = (struct option){"version", no_argument, NULL, VERSION};
    *shorts++ = 'h';
    *longs = (struct option){0};
    *shorts = 0;
}

static const option_row *row_of_letter(int letter)
{
    for (int i = 0; i < N_ROW; i++)
        if (cake_option_rows[i].letter == letter)
            return &cake_option_rows[i];
    return NULL;
}

static cake_err complain(int found, int argc, char **argv, const char *command)
{
    const char *word = optind <= argc && optind > 0 ? argv[optind - 1] : "";
    char letter[3] = {'-', (char)optopt, 0};
    bool is_long = !strncmp(word, "--", 2);
    const char *name = is_long || optopt >= HELP || optopt <= 0 || optopt < ' ' ? word : letter;
    if (found == ':')
        return cake_fail_usage("%s needs an argument; see cake-mpi %s --help", name, command);
    size_t len = is_long ? strcspn(name + 2, "=") : 0;
    const char *near = len ? nearest(name + 2, len) : NULL;
    if (near && strlen(near) == len && !strncmp(near, name + 2, len)) /* another command has it */
        near = NULL;
    return cake_fail_usage(
        "%s is not an option of cake-mpi %s, or is ambiguous; %s%s%ssee cake-mpi %s --help", name, command,
        near ? "meant is perhaps --" : "", near ? near : "", near ? "; " : "", command);
}

/* An option of the command line. */
typedef struct word {
    const option_row *row;
    char *value;
} word;

/* The words [*n] are owned by the caller, in any case. */
static cake_err read_words(int argc, char **argv, int command, cake_options *o, word **words, int *n)
{
    struct option longs[2 * N_ROW + 3];
    char shorts[3 * N_ROW + 8];
    getopt_tables(command, longs, shorts);
    optind = 1;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (found == '?' || found == ':')
            return complain(found, argc, argv, o->command);
        if (found == HELP || found == 'h' || found == VERSION) {
            o->command = found == VERSION ? "version" : "help";
            return CAKE_OK;
        }
        *words = cake_grow(*words, (size_t)*n + 1, sizeof **words);
        (*words)[(*n)++] =
            (word){found >= LONG ? &cake_option_rows[found - LONG] : row_of_letter(found), optarg};
    }
    o->operands = (cake_texts){argv + optind, argc - optind};
    if (optind < argc && !(command & (BENCH | MERGE | STATUS)))
        return cake_fail_usage("\"%s\" is neither a command nor an option; see cake-mpi --help",
                               argv[optind]);
    return CAKE_OK;
}

/* What is said twice, and not the same: the first one would fall away in silence. */
static cake_err check_once(const word *words, int n)
{
    for (int i = 0; i < n; i++) {
        const option_row *row = words[i].row;
        bool many = row->kind == TEXTS || row->kind == STOP || row->kind == FLAG;
        for (int j = 0; j < i && !many; j++) {
            const char *first = words[j].value ? words[j].value : "",
                       *now = words[i].value ? words[i].value : "";
            if (!strcmp(words[j].row->name, row->name) && strcmp(first, now))
                return cake_fail_usage("--%s is given twice, as \"%s\" and as \"%s\": it has one value",
                                       row->name, first, now);
        }
    }
    return CAKE_OK;
}

static cake_err take_words(parsing *p, const word *words, int n)
{
    cake_err err = check_once(words, n);
    for (int i = 0; i < n && !err; i++) {
        char from[64];
        snprintf(from, sizeof from, "--%s", words[i].row->name);
        err = take(p, words[i].row, COMMAND_LINE, from, words[i].value);
    }
    return err;
}

static cake_err no_option(const char *path, const cake_setting *s)
{
    const char *near = nearest(s->name, strlen(s->name));
    return cake_fail_usage("%s:%d:%d: '%s' is no option; %s%s%s", path, s->at.line, s->at.column,
                           cake_yaml_show(s->name, strlen(s->name)),
                           near ? "meant is perhaps '" : "see cake-mpi run --help for those there are",
                           near ? near : "", near ? "'" : "");
}

/* Options of other commands are left to these: one file may serve plan and run. */
static cake_err take_setting(parsing *p, const char *path, const cake_setting *s)
{
    const option_row *row = row_of_name(p->command, s->name);
    char *value = s->value;
    if (!row)
        return no_option(path, s);
    if (!strcmp(s->name, "config"))
        return cake_fail_usage("%s:%d:%d: config: a file of settings names no other", path, s->at.line,
                               s->at.column);
    if (s->listed && row->kind != TEXTS && row->kind != STOP)
        return cake_fail_usage("%s:%d:%d: %s is a list; it has one value", path, s->value_at.line,
                               s->value_at.column, s->name);
    if (!cake_option_takes(p->command, row) || !value) /* null: as if it were not there */
        return CAKE_OK;
    cake_buf from = {0};
    cake_buf_addf(&from, "%s:%d:%d: %s", path, s->value_at.line, s->value_at.column, s->name);
    cake_err err = take(p, row, FILE_OF_SETTINGS, from.data,
                        row->kind == SEED && cake_option_among("true|True|TRUE", value) ? NULL : value);
    cake_buf_free(&from);
    return err;
}

static cake_err read_settings(parsing *p, const char *path)
{
    cake_options *o = p->options;
    cake_buf text = {0};
    cake_yaml_fault fault;
    cake_err err = cake_file_read("usage", path, false, CAKE_YAML_BYTES, &text);
    if (!err && cake_config_file_parse(text.data ? text.data : "", text.len, &o->said, &fault))
        err = cake_fail_usage("%s:%d:%d: %s", path, fault.at.line, fault.at.column, fault.message);
    for (int i = 0; i < o->said.n && !err; i++)
        err = take_setting(p, path, &o->said.setting[i]);
    cake_buf_free(&text);
    return err;
}

/* What counts less first. */
static cake_err read_all(parsing *p, const word *words, int n)
{
    cake_options *o = p->options;
    cake_err err = read_environment(p);
    for (int i = 0; i < n; i++)
        if (!strcmp(words[i].row->name, "config"))
            o->settings = words[i].value;
    if (!err && o->settings)
        err = read_settings(p, o->settings);
    return err ? err : take_words(p, words, n);
}

cake_err cake_sources_read(int argc, char **argv, int command, cake_options *o)
{
    word *words = NULL;
    int n = 0;
    cake_err err = read_words(argc, argv, command, o, &words, &n);
    if (!err && strcmp(o->command, "help") && strcmp(o->command, "version"))
        err = read_all(&(parsing){.options = o, .command = command}, words, n);
    free(words);
    return err;
}
