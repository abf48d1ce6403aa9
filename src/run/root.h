/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of a replica: it owns the page tables and the lanes, embeds, scores and samples. Sequences come from
 * the conductor and go back to it finished; in between this is their only owner.
 */
#ifndef CAKE_RUN_ROOT_H
#define CAKE_RUN_ROOT_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/roof.h"
#include "link/link.h"
#include "model/model.h"
#include "place/plan.h"
#include "run/handout.h"
#include "run/schedule.h"
#include "run/trace.h"
#include "run/window.h"

typedef struct cake_root cake_root;

typedef struct cake_root_stats {
    double embed_s, head_s, sample_s;
    double read_s, write_s; /* in the conductor: reading and tokenizing requests, making records */
    int64_t waves, rows;
    int64_t begun, begun_tok; /* requests whose prompts are under way or through; the tokens of these */
    cake_schedule_stats schedule;
    cake_roof roof; /* what the head had to do */
} cake_root_stats;

/* embed, head: by whom these were loaded. Where embed's memory is not the host's waves leave with a body there, which hop 0 has
 * to take. plan tells whose layer it is that gives no finite
 * numbers; it outlives the root, as model and kernels do. n_decode: of the
 * n_thread, for waves that generate; 0: all. */
cake_err cake_root_open(const cake_model *model, const cake_kernels *embed, const cake_kernels *head,
                        const cake_plan *plan, const cake_schedule_shape *shape, int n_thread, int n_decode,
                        const cake_conductor *conductor, cake_root **out);
/* What open takes, beside the head's part (cake_logits_bytes). */
size_t cake_root_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread);
/* And of embed's memory, if that is not the host's. */
size_t cake_root_bytes_there(const cake_config *config, const cake_schedule_shape *shape);
void cake_root_close(cake_root *root);

/* Admits sequences and sends every lane that is not under way and has something to do. Once an error came up,
 * nothing new is sent. True if something was sent. */
bool cake_root_send(cake_root *root, cake_link *first);
/* A lane's wave is back: scores, tokens, finished sequences. The parcel is released. */
void cake_root_receive(cake_root *root, cake_parcel *parcel);
/* No lane is under way and nothing is left to do, or an error stops it. */
bool cake_root_done(const cake_root *root);
void cake_root_watch(cake_root *root, cake_trace *trace); /* borrowed; NULL: nothing is traced */
int cake_root_away(const cake_root *root);                /* waves under way */
int cake_root_active(const cake_root *root);              /* sequences */
/* Somebody else has met an error, and has said it: as if it were the root's own. CAKE_STOPPED: what waves under way finish
 * still counts. */
void cake_root_stop(cake_root *root, cake_err err);
cake_headway cake_root_headway(const cake_root *root);
cake_err cake_root_error(const cake_root *root);
cake_root_stats cake_root_statistics(const cake_root *root);

#endif
