/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of config.json and generation_config.json that are not followed. tests/config/unsupported_fields.c
 * compares the tables, and tests/golden/silent_fields.json, to all fields that transformers has for the
 * families in cake_archs.
 */
#ifndef CAKE_CONFIG_UNSUPPORTED_FIELDS_H
#define CAKE_CONFIG_UNSUPPORTED_FIELDS_H

#include "formats/unsupported.h"

extern const cake_unsupported_field cake_unsupported_generation[]; /* end with a NULL name */
extern const cake_unsupported_field cake_unsupported_relative[];   /* of config.json and its text_config */
extern const cake_unsupported_field
    cake_unsupported_config[]; /* of the text part; the owner is the family's cake_arch row */

#endif
