/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of --config: a YAML map of options by name, as "max-tokens: 100". parse.c checks the options.
 */
#ifndef CAKE_OPTIONS_CONFIG_FILE_H
#define CAKE_OPTIONS_CONFIG_FILE_H

#include "formats/yaml.h"

typedef struct cake_setting {
    char *name, *value; /* owned; value NULL: null */
    bool listed;        /* one entry of a list */
    cake_yaml_position at, value_at;
} cake_setting;

typedef struct cake_config_file {
    cake_setting *setting; /* [n] owned, in the order of the file */
    int n;
} cake_config_file;

/* *out (owned, cake_config_file_free) is set even on error. Errors as those of cake_yaml_read, also for a
 * name that occurs twice. */
cake_err cake_config_file_parse(const char *text, size_t len, cake_config_file *out, cake_yaml_fault *fault);
void cake_config_file_free(cake_config_file *settings);

#endif
