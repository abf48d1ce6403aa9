/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of --config: a YAML map of options by their names, as "max-tokens: 100". What options there are
 * and what they may be is options.c's matter.
 */
#ifndef CAKE_OPTIONS_CONFIG_FILE_H
#define CAKE_OPTIONS_CONFIG_FILE_H

#include "formats/yaml.h"

typedef struct cake_setting {
    char *name, *value; /* owned; an entry of a list has a setting of its own; value NULL: it is null */
    bool listed;
    cake_yaml_position at, value_at;
} cake_setting;

typedef struct cake_config_file {
    cake_setting *setting; /* [n] owned, in the order of the file */
    int n;
} cake_config_file;

/* *out (owned, cake_config_file_free) is set in any case; errors as those of cake_yaml_read. A name stands
 * once. */
cake_err cake_config_file_parse(const char *text, size_t len, cake_config_file *out, cake_yaml_fault *fault);
void cake_config_file_free(cake_config_file *settings);

#endif
