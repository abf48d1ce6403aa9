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

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "run/options_parts.h"

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

void cake_options_share(const cake_world *world)
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
    cake_world_share(world, &len, sizeof len);
    char *text = world->rank ? cake_alloc((size_t)len, 1) : all.data;
    cake_world_share(world, text, (size_t)len);
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

static cake_err read_environment(parsing *p)
{
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
    return cake_fail_usage("%s is not an option of cake-mpi %s, or is ambiguous; see cake-mpi %s --help",
                           name, command, command);
}

/* An option of the command line. */
typedef struct word {
    const option_row *row;
    char *value;
} word;

/* The words [*n] are owned by the caller, in any case. */
static cake_err read_words(int argc, char **argv, int command, cake_options *o, word **words, int *n)
{
    struct option longs[N_ROW + 3];
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

static cake_err take_words(parsing *p, const word *words, int n)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < n && !err; i++) {
        char from[64];
        snprintf(from, sizeof from, "--%s", words[i].row->name);
        err = take(p, words[i].row, COMMAND_LINE, from, words[i].value);
    }
    return err;
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

static cake_err no_option(const char *path, const cake_setting *s)
{
    char *dashes = cake_copy(s->name, strlen(s->name));
    for (char *c = dashes; *c; c++)
        *c = *c == '_' ? '-' : *c;
    bool known = row_of_name(0, dashes);
    cake_err err =
        cake_fail_usage("%s:%d:%d: '%s' is no option; %s%s%s", path, s->at.line, s->at.column,
                        cake_yaml_show(s->name, strlen(s->name)),
                        known ? "meant is perhaps '" : "see cake-mpi run --help for those there are",
                        known ? dashes : "", known ? "'" : "");
    free(dashes);
    return err;
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
    if (!cake_option_takes(p->command, row))
        return CAKE_OK;
    if (row->kind == FLAG && (!strcmp(value, "true") || !strcmp(value, "false")))
        strcpy(value, *value == 't' ? "1" : "0");
    cake_buf from = {0};
    cake_buf_addf(&from, "%s:%d:%d: %s", path, s->value_at.line, s->value_at.column, s->name);
    cake_err err =
        take(p, row, FILE_OF_SETTINGS, from.data, row->kind == SEED && !strcmp(value, "true") ? NULL : value);
    cake_buf_free(&from);
    return err;
}

static cake_err read_settings(parsing *p, const char *path)
{
    cake_options *o = p->options;
    cake_buf text = {0};
    cake_yaml_fault fault;
    cake_err err = cake_file_read("usage", path, false, CAKE_YAML_BYTES, &text);
    if (!err && cake_settings_parse(text.data ? text.data : "", text.len, &o->said, &fault))
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
