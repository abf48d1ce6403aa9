/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of a replica: it owns the page tables and the lanes, embeds, scores and samples. Sequences come
 * from the conductor and go back to it finished; in between this is their only owner.
 */
#ifndef CAKE_ENGINE_ROOT_H
#define CAKE_ENGINE_ROOT_H

#include <stdbool.h>

#include "engine/headway.h"
#include "engine/stats.h"
#include "engine/window.h"
#include "kernels/kernels.h"
#include "kernels/roof.h"
#include "link/link.h"
#include "model/model.h"
#include "place/plan.h"
#include "schedule/schedule.h"
#include "trace/trace.h"

typedef struct cake_root cake_root;

/* embed, head: the kernels that these were loaded by. If embed's memory is not the host's, waves leave with a
 * body there, which hop 0 has to take. plan tells whose layer gives numbers that are not finite; it outlives
 * the root, as model and kernels do. n_decode: of the n_thread threads, those for waves that only generate;
 * 0: all. */
cake_err cake_root_open(const cake_model *model, const cake_kernels *embed, const cake_kernels *head,
                        const cake_plan *plan, const cake_schedule_shape *shape, int n_thread, int n_decode,
                        const cake_conductor *conductor, cake_root **out);
/* Bytes of the host's memory that open takes, beside the head's part (cake_logits_bytes). */
size_t cake_root_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread);
/* Bytes that open takes of embed's memory, if that is not the host's. */
size_t cake_root_bytes_there(const cake_config *config, const cake_schedule_shape *shape);
void cake_root_close(cake_root *root);

/* Admits sequences, and sends a wave in every lane that has none under way and has something to do. After an
 * error nothing new is sent. True if something was sent. */
bool cake_root_send(cake_root *root, cake_link *first);
/* Takes a lane's wave that is back: scores it, draws tokens, finishes sequences. Releases the parcel. */
void cake_root_receive(cake_root *root, cake_wave_msg *parcel);
/* Whether no wave is under way and nothing is left to do, or an error stops it. */
bool cake_root_done(const cake_root *root);
void cake_root_watch(cake_root *root, cake_trace *trace); /* borrowed; NULL: nothing is traced */
int cake_root_away(const cake_root *root);                /* waves under way */
int cake_root_active(const cake_root *root);              /* sequences */
/* Somebody else has met an error, and has said it: treats it as the root's own. CAKE_STOPPED: no more waves
 * are sent; what those under way finish still counts. */
void cake_root_stop(cake_root *root, cake_err err);
cake_headway cake_root_headway(const cake_root *root);
cake_err cake_root_error(const cake_root *root);
cake_root_stats cake_root_statistics(const cake_root *root);

#endif
