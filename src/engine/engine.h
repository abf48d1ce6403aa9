/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of a replica: it owns the page tables and the lanes, embeds, scores and samples. Sequences come
 * from the io and go back to it finished; in between this is their only owner.
 */
#ifndef CAKE_ENGINE_ENGINE_H
#define CAKE_ENGINE_ENGINE_H

#include <stdbool.h>

#include "engine/progress.h"
#include "engine/request_queue.h"
#include "engine/stats.h"
#include "kernels/kernels.h"
#include "kernels/roofline.h"
#include "link/link.h"
#include "model/model.h"
#include "place/plan.h"
#include "schedule/schedule.h"
#include "trace/trace.h"

typedef struct cake_engine cake_engine;

/* embed, head: the kernels that these were loaded by. If embed's memory is not the host's, waves leave with a
 * body there, which hop 0 has to take. plan tells whose layer gives numbers that are not finite; it outlives
 * the root, as model and kernels do. n_decode: of the n_thread threads, those for waves that only generate;
 * 0: all. */
cake_err cake_engine_open(const cake_model *model, const cake_kernels *embed, const cake_kernels *head,
                          const cake_plan *plan, const cake_schedule_shape *shape, int n_thread, int n_decode,
                          const cake_sequence_io *io, cake_engine **out);
/* Bytes of the host's memory that open takes, beside the head's part (cake_logits_bytes). */
size_t cake_engine_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread);
/* Bytes that open takes of embed's memory, if that is not the host's. */
size_t cake_engine_device_bytes(const cake_config *config, const cake_schedule_shape *shape);
void cake_engine_close(cake_engine *root);

/* Admits sequences, and sends a wave in every lane that has none under way and has something to do. After an
 * error nothing new is sent. True if something was sent. */
bool cake_engine_send(cake_engine *root, cake_link *first);
/* Takes a lane's wave that is back: scores it, draws tokens, finishes sequences. Releases the msg. */
void cake_engine_receive(cake_engine *root, cake_wave_msg *msg);
/* Whether no wave is under way and nothing is left to do, or an error stops it. */
bool cake_engine_done(const cake_engine *root);
void cake_engine_set_trace(cake_engine *root, cake_trace *trace); /* borrowed; NULL: nothing is traced */
int cake_engine_in_flight(const cake_engine *root);               /* waves under way */
int cake_engine_active(const cake_engine *root);                  /* sequences */
/* Somebody else has met an error, and has said it: treats it as the root's own. CAKE_STOPPED: no more waves
 * are sent; what those under way finish still counts. */
void cake_engine_stop(cake_engine *root, cake_err err);
cake_replica_progress cake_engine_progress(const cake_engine *root);
cake_err cake_engine_error(const cake_engine *root);
cake_engine_stats cake_engine_statistics(const cake_engine *root);

#endif
