/* SPDX-License-Identifier: Apache-2.0
 *
 * How the files of a model name and join its tensors, where families and tools differ.
 */
#ifndef CAKE_MODEL_FILE_LAYOUT_H
#define CAKE_MODEL_FILE_LAYOUT_H

#include "model/tensor_walk.h"

/* Chooses the prefix of names, and which tensors are joined, by those that are there. */
cake_err cake_file_layout_choose(cake_model *model);
/* The first layer with experts, which decides how those of all layers lie in the files; n_layer: there is
 * none. */
int cake_file_layout_first_experts(const cake_config *config);
/* Sets config.mtp if the files have a layer of multi-token prediction; without one it is a usage error. */
cake_err cake_file_layout_choose_mtp(cake_model *model);

#endif
