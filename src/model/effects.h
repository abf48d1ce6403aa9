/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of config.json and generation_config.json that are not followed. tests/model/effects.c compares the
 * tables, and tests/golden/silent_fields.json, to all fields that transformers has for the families in
 * cake_archs.
 */
#ifndef CAKE_MODEL_EFFECTS_H
#define CAKE_MODEL_EFFECTS_H

#include "formats/effects.h"

extern const cake_effect cake_generation_effects[]; /* end with a NULL name */
extern const cake_effect cake_relative_effects[];   /* of config.json and its text_config */
extern const cake_effect
    cake_config_effects[]; /* of the text part; the owner is the family's cake_arch row */

#endif
