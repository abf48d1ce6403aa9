/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an option and its value as text. Out: the value in cake_options.
 */
#include "options/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"

const option_row cake_option_rows[] = {
#define OPTION(group, commands, name, letter, kind, argument, field, min, max, help)                         \
    {group,         commands,      name, letter, kind, argument, offsetof(cake_options, field),              \
     (double)(min), (double)(max), help},
#include "options/options.def"
#undef OPTION
};

const command_row cake_command_rows[] = {
#define COMMAND(...) {__VA_ARGS__},
#include "options/commands.def"
#undef COMMAND
};

bool cake_option_among(const char *choices, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, word, len) && (at[len] == '|' || !at[len]))
            return true;
    return false;
}

static cake_err bad_value(const char *from, const char *value, const char *expected)
{
    return cake_fail_usage("%s: \"%s\" is not %s", from, value, expected);
}

static cake_err set_integer(const char *from, const option_row *row, const char *value, int64_t *into)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number == CAKE_UNSET || (double)number < row->min ||
        (double)number > row->max)
        return cake_fail_usage("%s: \"%s\" is not an integer from %lld to %lld", from, value,
                               row->min <= -0x1p63 ? (long long)-INT64_MAX : (long long)row->min,
                               row->max >= 0x1p63 ? (long long)INT64_MAX : (long long)row->max);
    *into = number;
    return CAKE_OK;
}

static cake_err set_real(const char *from, const option_row *row, const char *value, double *into)
{
    char *end;
    double number = strtod(value, &end);
    const cake_params_field *field = cake_params_fields;
    while (field->offset + offsetof(cake_options, params) != row->offset)
        field++;
    if (end == value || *end || !cake_params_has(field, number)) {
        char range[CAKE_PARAMS_RANGE];
        return cake_fail_usage("%s: \"%s\" is not %s", from, value, cake_params_range(field, range));
    }
    *into = number;
    return CAKE_OK;
}

static cake_err set_size(const char *from, const char *value, int64_t *into)
{
    return cake_size_read(value, into) ? CAKE_OK : bad_value(from, value, "a size like 512M, 16G or 80%");
}

static cake_err add_stop(const char *from, const char *value, cake_params *params)
{
    if (!*value)
        return cake_fail_usage("%s: an empty stop text would end every answer at once", from);
    if (params->n_stop < 0)
        params->n_stop = 0;
    if (params->n_stop == CAKE_MAX_STOP)
        return cake_fail_usage("%s: more than %d stop texts", from, CAKE_MAX_STOP);
    char *text = params->stop[params->n_stop++] = cake_copy(value, strlen(value));
    cake_escape_undo(text, strlen(text));
    return CAKE_OK;
}

/* The words of YAML's core schema, in configuration files and in the environment. */
#define TRUE  "1|true|True|TRUE"
#define FALSE "0|false|False|FALSE"

static cake_err set_flag(const char *from, const char *value, bool *into)
{
    if (value && !cake_option_among(TRUE "|" FALSE, value))
        return bad_value(from, value, "true or false, 1 or 0");
    *into = !value || cake_option_among(TRUE, value);
    return CAKE_OK;
}

cake_err cake_option_set(cake_options *o, const option_row *row, const char *from, char *value)
{
    void *into = (char *)o + row->offset;
    switch (row->kind) {
    case FLAG:
        return set_flag(from, value, into);
    case TEXT:
        if (strchr(row->argument, '|') && !cake_option_among(row->argument, value))
            return cake_fail_usage("%s: \"%s\" is not one of %s", from, value, row->argument);
        if (!*value && cake_option_among("MODEL|FILE|DIR", row->argument))
            return bad_value(from, value, "a name; is a variable unset?");
        *(const char **)into = value;
        return CAKE_OK;
    case TEXTS: {
        cake_texts *texts = into;
        texts->text = cake_grow(texts->text, (size_t)texts->n + 1, sizeof *texts->text);
        texts->text[texts->n++] = value;
        return CAKE_OK;
    }
    case INTEGER:
        return set_integer(from, row, value, into);
    case REAL:
        return set_real(from, row, value, into);
    case SIZE:
        return set_size(from, value, into);
    case DURATION:
        return cake_duration_read(value, into)
                   ? CAKE_OK
                   : bad_value(from, value, "a duration like 90, 15m, 2h or 1-12:00:00");
    case SHARD:
        return cake_shard_read(value, into)
                   ? CAKE_OK
                   : bad_value(from, value, "a shard like 0/8, the first of eight, to 7/8, the last");
    case STOP:
        return add_stop(from, value, &o->params);
    default: /* SEED */
        if (value && !cake_option_among("true|True|TRUE|false|False|FALSE", value))
            return set_integer(from, row, value, into);
        *(int64_t *)into = value && cake_option_among("false|False|FALSE", value) ? -1 : 0;
        return CAKE_OK;
    }
}

bool cake_option_is_own(const option_row *row)
{
    return cake_option_among("model|directory|threads|threads-decode|bind|log|quiet|verbose", row->name);
}

const char *cake_option_expects(const char *name)
{
    static const char *const kinds[] = {
        [FLAG] = "true or false",    [TEXT] = "a text",   [TEXTS] = "a text",
        [INTEGER] = "an integer",    [REAL] = "a number", [SIZE] = "a size like 16G",
        [DURATION] = "a duration",   [STOP] = "a text",   [SEED] = "true or a number",
        [SHARD] = "a shard like 0/8"};
    for (int i = 0; i < N_ROW; i++)
        if (!strcmp(cake_option_rows[i].name, name))
            return kinds[cake_option_rows[i].kind];
    return "a value";
}

void cake_option_add_commands(const char *name, cake_buf *out)
{
    int bits = 0, n = 0;
    for (int i = 0; i < N_ROW; i++)
        for (int c = 0; c < N_COMMAND && !strcmp(cake_option_rows[i].name, name); c++)
            bits |= cake_option_takes(cake_command_rows[c].bit, &cake_option_rows[i])
                        ? cake_command_rows[c].bit
                        : 0;
    for (int c = 0; c < N_COMMAND; c++) {
        if (!(bits & cake_command_rows[c].bit))
            continue;
        bits &= ~cake_command_rows[c].bit;
        cake_buf_addf(out, "%s%s", !n++ ? "" : bits ? ", " : " and ", cake_command_rows[c].name);
    }
}

bool cake_option_takes(int command, const option_row *row)
{
    return row->commands & (command == PLAN ? PLAN | RUN : command);
}

bool cake_options_text(const char *path)
{
    size_t len = path ? strlen(path) : 0;
    return len > 4 && !strcasecmp(path + len - 4, ".txt");
}

bool cake_options_stream(const cake_options *options)
{
    const bool generates = !strcmp(options->task, "generate") || !strcmp(options->task, "auto");
    return options->prompts.n == 1 && !options->output && generates &&
           (options->params.n == CAKE_UNSET || options->params.n == 1);
}
