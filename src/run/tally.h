/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks bring their figures together on rank 0: what each did and how far it is from the next. Every function is called by all ranks together.
 */
#ifndef CAKE_RUN_TALLY_H
#define CAKE_RUN_TALLY_H

#include "link/world.h"
#include "run/pipeline.h"
#include "run/report.h"
#include "run/stage.h"

/* How long a message takes along each edge of the ring. Before the run, when messages meet nobody else's. */
void cake_tally_links(const cake_world *world, cake_stage *stage);
typedef struct cake_tally {
    cake_report_stage *stages; /* [size] owned; on rank 0 */
    double *layer_s;           /* [n_layer] owned; on rank 0 of all ranks */
} cake_tally;

/* root: NULL on other ranks than 0. */
void cake_tally_gather(const cake_world *world, cake_stage *stage, const cake_pipeline *pipeline,
                       const cake_root *root, cake_tally *out);
void cake_tally_free(cake_tally *tally); /* zeros are fine */

#endif
