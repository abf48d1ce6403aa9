/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the text of a configuration file. Out: its names and values, each with its line and column.
 */
#include "options/config_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "options/internal.h"

static cake_setting *add(cake_config_file *s, const char *name, cake_yaml_position at)
{
    s->setting = cake_grow(s->setting, (size_t)s->n + 1, sizeof *s->setting);
    s->setting[s->n] = (cake_setting){.name = cake_copy(name, strlen(name)), .at = at};
    return &s->setting[s->n++];
}

/* Only a written null counts; an absent value is an error. */
static bool is_null(const cake_yaml *y)
{
    static const char *const words[] = {"~", "null", "Null", "NULL"};
    size_t i = 0, n = sizeof words / sizeof *words;
    if (cake_yaml_event(y) != CAKE_YAML_VALUE || !cake_yaml_plain(y))
        return false;
    while (i < n && strcmp(words[i], cake_yaml_value(y)))
        i++;
    return i < n;
}

/* Only a quoted value may be empty. */
static cake_err read_value(cake_yaml *y, cake_setting *setting)
{
    bool quoted = cake_yaml_event(y) == CAKE_YAML_VALUE && !cake_yaml_plain(y) && !cake_yaml_length(y);
    setting->value_at = cake_yaml_at(y);
    if (!setting->listed && is_null(y))
        return CAKE_OK;
    cake_err err = quoted ? CAKE_OK : cake_yaml_need(y, setting->name, cake_option_expects(setting->name));
    if (err)
        return err;
    setting->value = cake_copy(cake_yaml_value(y), cake_yaml_length(y));
    return CAKE_OK;
}

static cake_err read_list(cake_yaml *y, cake_config_file *s, const char *name, cake_yaml_position at)
{
    cake_err err = cake_yaml_next(y);
    if (!err && cake_yaml_event(y) == CAKE_YAML_LIST_END)
        return cake_yaml_refuse(y, "%s is an empty list; leave it out", name);
    while (!err && cake_yaml_event(y) != CAKE_YAML_LIST_END) {
        cake_setting *setting = add(s, name, at);
        setting->listed = true;
        err = read_value(y, setting);
        err = err ? err : cake_yaml_next(y);
    }
    return err;
}

static cake_err read_key(void *self, cake_yaml *y)
{
    cake_config_file *s = self;
    cake_yaml_position at = cake_yaml_at(y);
    cake_err err = cake_yaml_need_text(y, "the name of an option");
    if (err)
        return err;
    const char *name = cake_yaml_value(y);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->setting[i].name, name))
            return cake_yaml_refuse(y, "'%s' occurs twice; the first one is in line %d, column %d",
                                    cake_yaml_show(name, strlen(name)).s, s->setting[i].at.line,
                                    s->setting[i].at.column);
    char *kept = cake_copy(name, strlen(name)); /* name is valid only until the next event */
    err = cake_yaml_next(y);
    if (!err && cake_yaml_event(y) == CAKE_YAML_LIST)
        err = read_list(y, s, kept, at);
    else if (!err)
        err = read_value(y, add(s, kept, at));
    free(kept);
    return err;
}

cake_err cake_config_file_parse(const char *text, size_t len, cake_config_file *out, cake_yaml_fault *fault)
{
    static const cake_yaml_form form = {"a configuration file", "a map of options by name", read_key};
    *out = (cake_config_file){0};
    return cake_yaml_read(text, len, &form, out, NULL, fault);
}

void cake_config_file_free(cake_config_file *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->setting[i].name);
        free(s->setting[i].value);
    }
    free(s->setting);
    *s = (cake_config_file){0};
}
