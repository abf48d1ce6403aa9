/* SPDX-License-Identifier: Apache-2.0
 *
 * In: CAKE_* variables, a configuration file, argv. Out: their values in the options; the last source wins.
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

/* A later source wins over those before it. */
typedef enum source { DEFAULT, ENVIRONMENT, CONFIG_FILE, COMMAND_LINE } source;

typedef struct parsing {
    cake_options *options;
    int command;
    source source[N_ROW]; /* of each option's value */
} parsing;

/* A stronger source replaces what a weaker one set; `--input` also clears `--prompt`, and the reverse. */
static void clear_weaker(parsing *p, const option_row *row, source now)
{
    cake_options *o = p->options;
    if (p->source[row - cake_option_rows] == now)
        return;
    p->source[row - cake_option_rows] = now;
    if (row->kind == STOP)
        cake_params_free(&o->params);
    if (row->kind == TEXTS)
        ((cake_texts *)((char *)o + row->offset))->n = 0;
    for (int i = 0; i < N_ROW; i++) {
        if (p->source[i] == now)
            continue;
        if (!strcmp(row->name, "prompt") && !strcmp(cake_option_rows[i].name, "input"))
            o->input = NULL;
        if (!strcmp(row->name, "input") && !strcmp(cake_option_rows[i].name, "prompt"))
            o->prompts.n = 0;
    }
}

static cake_err apply(parsing *p, const option_row *row, source now, const char *from, char *value)
{
    clear_weaker(p, row, now);
    return cake_option_set(p->options, row, from, value);
}

enum { MAX_NAME = 64 };

/* CAKE_MAX_TOKENS for --max-tokens. */
static char *variable_of(const option_row *row, char name[MAX_NAME])
{
    size_t at = (size_t)snprintf(name, MAX_NAME, "CAKE_%s", row->name);
    while (at-- > 5)
        name[at] = name[at] == '-' ? '_' : (char)toupper((unsigned char)name[at]);
    return name;
}

void cake_options_broadcast(const cake_comm *world)
{
    cake_buf all = {0};
    char name[MAX_NAME];
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
        const char *variable = at;
        at += strlen(at) + 1;
        setenv(variable, at, 0);
    }
    if (world->rank)
        free(text);
    cake_buf_free(&all);
}

/* The option of that name that this command takes, else that of another command, else NULL. */
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

/* Edit distance (Levenshtein) of two names, ignoring case. */
static size_t edit_distance(const char *a, size_t n_a, const char *b)
{
    size_t row[MAX_NAME], n_b = strlen(b);
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 0; i < n_a; i++) {
        size_t before = row[0]++;
        for (size_t j = 0; j < n_b; j++) {
            size_t changed = before + (toupper((unsigned char)a[i]) != toupper((unsigned char)b[j]));
            size_t min = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
            before = row[j + 1];
            row[j + 1] = changed < min ? changed : min;
        }
    }
    return row[n_b];
}

/* The name, [len], without separators. */
static size_t strip_separators(const char *name, size_t len, char out[MAX_NAME])
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < MAX_NAME - 1; i++)
        if (name[i] != '-' && name[i] != '_')
            out[n++] = name[i];
    out[n] = 0;
    return n;
}

/* The option whose name differs least, by two characters at most; NULL: there is none. */
static const char *closest_option(const char *name, size_t len)
{
    char asked[MAX_NAME], own[MAX_NAME];
    size_t n = strip_separators(name, len, asked), best = n > 4 ? 3 : 2;
    const char *found = NULL;
    for (int i = 0; i < N_ROW; i++) {
        strip_separators(cake_option_rows[i].name, strlen(cake_option_rows[i].name), own);
        size_t distance = edit_distance(asked, n, own);
        if (distance < best) {
            best = distance;
            found = cake_option_rows[i].name;
        }
    }
    return found;
}

/* Variables that our scripts and tests read, not the program. */
static const char script_variables[] =
    "CAKE_ALL|CAKE_ALL_GPU|CAKE_ASSETS|CAKE_BUILD|CAKE_FUZZ_SECONDS|CAKE_GPU_PARTS|CAKE_GPU_SECONDS|"
    "CAKE_LLAMA|CAKE_LONG_DIR|CAKE_MPI|CAKE_NETNS|CAKE_OBJECTS|CAKE_ON_GPU|CAKE_PACKAGING|CAKE_POWERCAP|"
    "CAKE_PYTHON|CAKE_ROUNDS|CAKE_ROUNDS_SEED|CAKE_SLURM|CAKE_SOURCE|CAKE_STAGE_DIR";

/* variable: its name of len bytes, not terminated. */
static bool is_known_variable(const char *variable, size_t len)
{
    char own[MAX_NAME], name[MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)len, variable);
    bool known =
        len >= sizeof name || cake_option_among(script_variables, name) || !strncmp(name, "CAKE_TEST_", 10);
    for (int i = 0; i < N_ROW && !known; i++)
        known = !strcmp(variable_of(&cake_option_rows[i], own), name);
    return known;
}

/* Without a warning a misspelt variable would be ignored, and the option's default used. */
static void warn_of_unknown_variables(void)
{
    for (char **at = environ; at && *at; at++) {
        size_t len = strcspn(*at, "=");
        if (strncmp(*at, "CAKE_", 5) || is_known_variable(*at, len))
            continue;
        const char *closest = closest_option(*at + 5, len - 5);
        char variable[MAX_NAME];
        cake_log(CAKE_WARN, "usage", "%.*s in the environment belongs to no option and is ignored%s%s%s",
                 (int)len, *at, closest ? "; did you mean " : "",
                 closest ? variable_of(row_of_name(0, closest), variable) : "", closest ? "?" : "");
    }
}

static cake_err read_environment(parsing *p)
{
    warn_of_unknown_variables();
    for (int i = 0; i < N_ROW; i++) {
        char name[MAX_NAME], *value = getenv(variable_of(&cake_option_rows[i], name));
        if (value && *value && cake_option_takes(p->command, &cake_option_rows[i])) {
            cake_err err = apply(p, &cake_option_rows[i], ENVIRONMENT, name, value);
            if (err)
                return err;
        }
    }
    return CAKE_OK;
}

/* Values that getopt_long returns, above all characters; of a row LONG + its index. */
enum { HELP = 1000, VERSION, LONG };

/* --max_tokens for --max-tokens, as other tools spell it. NULL: the name has no dash. */
static const char *underscore_name(int i)
{
    static char alias[N_ROW][MAX_NAME];
    if (!strchr(cake_option_rows[i].name, '-'))
        return NULL;
    snprintf(alias[i], MAX_NAME, "%s", cake_option_rows[i].name);
    for (char *c = alias[i]; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return alias[i];
}

static void getopt_tables(int command, struct option *longs, char *shorts)
{
    *shorts++ = ':'; /* getopt_long then returns ':' for a missing argument, '?' for an unknown option */
    for (int i = 0; i < N_ROW; i++) {
        if (!cake_option_takes(command, &cake_option_rows[i]))
            continue;
        int has = cake_option_rows[i].kind == FLAG   ? no_argument
                  : cake_option_rows[i].kind == SEED ? optional_argument
                                                     : required_argument;
        *longs++ = (struct option){cake_option_rows[i].name, has, NULL, LONG + i};
        const char *alias = underscore_name(i);
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

/* Appends the options of the command that begin with name [len], or equal it: "--max-seqs, --max-tokens". */
static int add_candidates(int command, const char *name, size_t len, cake_buf *out)
{
    int n = 0;
    for (int i = 0; i < N_ROW; i++) {
        const char *alias = underscore_name(i), *own = cake_option_rows[i].name;
        if (cake_option_takes(command, &cake_option_rows[i]) &&
            (!strncmp(own, name, len) || (alias && !strncmp(alias, name, len))))
            cake_buf_addf(out, "%s--%s", n++ ? ", " : "", own);
    }
    return n;
}

/* The option that another command has under this name. */
static const option_row *option_elsewhere(const char *name, size_t len)
{
    for (int i = 0; i < N_ROW; i++) {
        const char *own = cake_option_rows[i].name, *alias = underscore_name(i);
        if (strlen(own) == len && (!strncmp(own, name, len) || (alias && !strncmp(alias, name, len))))
            return &cake_option_rows[i];
    }
    return NULL;
}

/* A name that getopt does not know, or knows as the beginning of several. */
static cake_err report_unknown(const char *word, const option_row *elsewhere, int command_bit,
                               const char *command)
{
    bool is_long = !strncmp(word, "--", 2);
    size_t len = is_long ? strcspn(word + 2, "=") : 0;
    cake_buf text = {0};
    cake_err err;
    if (elsewhere) {
        cake_option_add_commands(elsewhere->name, &text);
        err =
            cake_fail_usage("%s is not an option of cake-mpi %s; it belongs to %s", word, command, text.data);
    } else if (len && add_candidates(command_bit, word + 2, len, &text) > 1) {
        err = cake_fail_usage("%.*s is ambiguous: %s", (int)len + 2, word, text.data);
    } else {
        const char *closest = len ? closest_option(word + 2, len) : NULL;
        err = cake_fail_usage("%s is not an option of cake-mpi %s; %s%s%ssee cake-mpi %s --help", word,
                              command, closest ? "did you mean --" : "", closest ? closest : "",
                              closest ? "? " : "", command);
    }
    cake_buf_free(&text);
    return err;
}

static cake_err report_bad_option(int found, int argc, char **argv, int bit, const char *command)
{
    const char *word = optind <= argc && optind > 0 ? argv[optind - 1] : "";
    char letter[3] = {'-', (char)optopt, 0};
    bool is_long = !strncmp(word, "--", 2);
    if (!is_long && optopt < HELP && optopt >= ' ')
        word = letter;
    if (found == ':')
        return cake_fail_usage("%s needs an argument; see cake-mpi %s --help", word, command);
    const option_row *row = is_long          ? option_elsewhere(word + 2, strcspn(word + 2, "="))
                            : word == letter ? row_of_letter(optopt)
                                             : NULL;
    if (row && is_long && cake_option_takes(bit, row_of_name(bit, row->name))) /* known: so it is --quiet=1 */
        return cake_fail_usage("--%s takes no argument; see cake-mpi %s --help", row->name, command);
    return report_unknown(word, row, bit, command);
}

/* An option of the command line. */
typedef struct given_option {
    const option_row *row;
    char *value;
} given_option;

/* *given [*n] is owned by the caller, also after an error. */
static cake_err scan_command_line(int argc, char **argv, int command, cake_options *o, given_option **given,
                                  int *n)
{
    struct option longs[2 * N_ROW + 3];
    char shorts[3 * N_ROW + 8];
    getopt_tables(command, longs, shorts);
    optind = 1;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (found == '?' || found == ':')
            return report_bad_option(found, argc, argv, command, o->command);
        if (found == HELP || found == 'h' || found == VERSION) {
            o->command = found == VERSION ? "version" : "help";
            return CAKE_OK;
        }
        *given = cake_grow(*given, (size_t)*n + 1, sizeof **given);
        (*given)[(*n)++] =
            (given_option){found >= LONG ? &cake_option_rows[found - LONG] : row_of_letter(found), optarg};
    }
    o->operands = (cake_texts){argv + optind, argc - optind};
    if (optind < argc && !(command & (BENCH | MERGE | STATUS | PULL | REMOVE)))
        return cake_fail_usage("\"%s\" is neither a command nor an option; see cake-mpi --help",
                               argv[optind]);
    return CAKE_OK;
}

/* An option given twice with two values: getopt would silently use the last one. */
static cake_err check_repeats(const given_option *given, int n)
{
    for (int i = 0; i < n; i++) {
        const option_row *row = given[i].row;
        bool may_repeat = row->kind == TEXTS || row->kind == STOP || row->kind == FLAG;
        for (int j = 0; j < i && !may_repeat; j++) {
            const char *first = given[j].value ? given[j].value : "",
                       *second = given[i].value ? given[i].value : "";
            if (!strcmp(given[j].row->name, row->name) && strcmp(first, second))
                return cake_fail_usage("--%s is given twice, as \"%s\" and as \"%s\"; give it once",
                                       row->name, first, second);
        }
    }
    return CAKE_OK;
}

static cake_err apply_command_line(parsing *p, const given_option *given, int n)
{
    cake_err err = check_repeats(given, n);
    for (int i = 0; i < n && !err; i++) {
        char from[64];
        snprintf(from, sizeof from, "--%s", given[i].row->name);
        err = apply(p, given[i].row, COMMAND_LINE, from, given[i].value);
    }
    return err;
}

static cake_err report_unknown_setting(const char *path, const cake_setting *s)
{
    const char *closest = closest_option(s->name, strlen(s->name));
    return cake_fail_usage("%s:%d:%d: '%s' is not an option; %s%s%s", path, s->at.line, s->at.column,
                           cake_yaml_show(s->name, strlen(s->name)).s,
                           closest ? "did you mean '" : "cake-mpi run --help lists them",
                           closest ? closest : "", closest ? "'?" : "");
}

/* Options of other commands are ignored, so that one file serves plan and run. */
static cake_err apply_setting(parsing *p, const char *path, const cake_setting *s)
{
    const option_row *row = row_of_name(p->command, s->name);
    char *value = s->value;
    if (!row)
        return report_unknown_setting(path, s);
    if (!strcmp(s->name, "config"))
        return cake_fail_usage("%s:%d:%d: config: a configuration file cannot name another one", path,
                               s->at.line, s->at.column);
    if (s->listed && row->kind != TEXTS && row->kind != STOP)
        return cake_fail_usage("%s:%d:%d: %s is a list, but takes one value", path, s->value_at.line,
                               s->value_at.column, s->name);
    if (!cake_option_takes(p->command, row) || !value) /* null: not given */
        return CAKE_OK;
    cake_buf from = {0};
    cake_buf_addf(&from, "%s:%d:%d: %s", path, s->value_at.line, s->value_at.column, s->name);
    cake_err err = apply(p, row, CONFIG_FILE, from.data, value);
    cake_buf_free(&from);
    return err;
}

static cake_err apply_config_file(parsing *p, const char *path)
{
    cake_options *o = p->options;
    cake_buf text = {0};
    cake_yaml_fault fault;
    cake_err err = cake_file_read("usage", path, false, CAKE_YAML_BYTES, &text);
    if (!err && cake_config_file_parse(text.data ? text.data : "", text.len, &o->config_file, &fault))
        err = cake_fail_usage("%s:%d:%d: %s", path, fault.at.line, fault.at.column, fault.message);
    for (int i = 0; i < o->config_file.n && !err; i++)
        err = apply_setting(p, path, &o->config_file.setting[i]);
    cake_buf_free(&text);
    return err;
}

/* The weakest source first. */
static cake_err apply_sources(parsing *p, const given_option *given, int n)
{
    cake_options *o = p->options;
    cake_err err = read_environment(p);
    for (int i = 0; i < n; i++)
        if (!strcmp(given[i].row->name, "config"))
            o->config_path = given[i].value;
    if (!err && o->config_path)
        err = apply_config_file(p, o->config_path);
    return err ? err : apply_command_line(p, given, n);
}

cake_err cake_sources_read(int argc, char **argv, int command, cake_options *o)
{
    given_option *given = NULL;
    int n = 0;
    cake_err err = scan_command_line(argc, argv, command, o, &given, &n);
    if (!err && strcmp(o->command, "help") && strcmp(o->command, "version"))
        err = apply_sources(&(parsing){.options = o, .command = command}, given, n);
    free(given);
    return err;
}
