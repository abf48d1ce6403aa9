/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that all ranks run the same build and read the same model: an old copy on one node would give wrong
 * results, or hang. All ranks call; rank 0 logs which two ranks differ in what.
 */
#ifndef CAKE_PLANNER_CONSISTENCY_H
#define CAKE_PLANNER_CONSISTENCY_H

#include "link/comm.h"
#include "model/model.h"

/* Compares version and build of the program. Call before anything else is exchanged. */
cake_err cake_consistency_build(const cake_comm *world);
/* Compares config, tokenizer, tensors and a sample of each tensor's weights. *weights: checksum of these
 * samples, the same for a model and for bundles of it; 0: dummy weights. dir: the model's; NULL: it has no
 * files. alone: do it for a single rank, too. */
cake_err cake_consistency_model(const char *dir, bool alone, const cake_comm *world, const cake_model *model,
                                uint32_t *weights);

/* Compares the fingerprints of n tensors; fills in CAKE_UNKNOWN where another rank knows the value.
 * name(self, i): name of tensor i. */
cake_err cake_consistency_tensors(const cake_comm *world, int64_t *sums, int n,
                                  const char *(*name)(const void *self, int i), const void *self);

#endif
