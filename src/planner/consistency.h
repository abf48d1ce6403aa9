/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of one run must be of one build and read one model: an old copy on one node would give answers of no
 * model, or a wait without end. All ranks call; rank 0 says which two ranks differ in what.
 */
#ifndef CAKE_PLANNER_CONSISTENCY_H
#define CAKE_PLANNER_CONSISTENCY_H

#include "link/comm.h"
#include "model/model.h"

/* The same version and build of the program. Before anything else is exchanged. */
cake_err cake_consistency_build(const cake_comm *world);
/* The same config, tokenizer, tensors and, as far as a sample of each tensor can tell, weights. *weights: the
 * checksum of these samples, the same for a model and for bundles of it; 0: dummy weights. dir: of the model;
 * NULL: it has no files. alone: wanted of one rank, too. */
cake_err cake_consistency_model(const char *dir, bool alone, const cake_comm *world, const cake_model *model,
                                uint32_t *weights);

/* The same fingerprints of n tensors; CAKE_UNKNOWN is filled in where another rank knows it. name: of
 * tensor i. */
cake_err cake_consistency_tensors(const cake_comm *world, int64_t *sums, int n,
                                  const char *(*name)(const void *self, int i), const void *self);

#endif
