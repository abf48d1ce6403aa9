/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a config file of options. If it is accepted, each option has a name and a value, in the order of
 * the file; else the error has a position.
 */
#include <stdint.h>
#include <string.h>

#include "options/config_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cake_config_file settings;
    cake_yaml_fault fault = {.message = ""};
    if (cake_config_file_parse((const char *)data, size, &settings, &fault)) {
        CAKE_ASSERT(fault.at.line > 0 && fault.at.column > 0 && fault.message[0]);
    } else {
        for (int i = 0; i < settings.n; i++) {
            const cake_setting *s = &settings.setting[i], *other = s - 1;
            CAKE_ASSERT(s->name && s->name[0] && s->at.line > 0 &&
                        s->value_at.line >= s->at.line); /* a value that is NULL is null */
            CAKE_ASSERT(!i || s->at.line > other->at.line ||
                        (s->at.line == other->at.line && s->at.column >= other->at.column));
            CAKE_ASSERT(!i || !strcmp(s->name, other->name) ==
                                  (s->at.line == other->at.line && s->at.column == other->at.column));
        }
    }
    cake_config_file_free(&settings);
    return 0;
}
