/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine runs on rank 0 of a replica: it owns page tables and lanes, embeds, scores and samples. It takes
 * sequences from the io, owns them meanwhile, and returns them finished.
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
#include "placement/plan.h"
#include "schedule/schedule.h"
#include "slice/slice.h"
#include "trace/trace.h"

typedef struct cake_engine cake_engine;

/* model, kernels and plan outlive the engine. If embed has a GPU's memory, waves are sent with
 * their bodies in that memory, and hop 0 must accept them there. */
typedef struct cake_engine_setup {
    const cake_model *model;
    const cake_kernels *embed, *head; /* the kernels that loaded the embedding and the LM head */
    const cake_plan *plan;            /* to name the rank of a layer in warnings */
    const cake_schedule_shape *shape; /* copied */
    cake_slice *mtp;   /* the layer of multi-token prediction, in the host's memory; NULL: none; borrowed */
    size_t wave_bytes; /* of the largest wave; needed with mtp only */
    int n_thread, n_decode; /* n_decode: for waves without prompt rows; 0: all n_thread */
} cake_engine_setup;

cake_err cake_engine_open(const cake_engine_setup *setup, const cake_sequence_io *io, cake_engine **out);
/* Bytes of host memory that open takes, in addition to cake_logits_bytes. */
size_t cake_engine_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread);
/* Rows whose scores are computed at a time: cake_logits_bytes counts with them. */
int cake_engine_max_score(const cake_config *config, const cake_schedule_shape *shape);
/* Bytes of GPU memory that open takes if embed is a GPU's. */
size_t cake_engine_device_bytes(const cake_config *config, const cake_schedule_shape *shape);
void cake_engine_close(cake_engine *engine);

/* Admits sequences and sends a wave in every lane that has none in flight and has something to do. After an
 * error it sends nothing. True if it sent a wave. */
bool cake_engine_send(cake_engine *engine, cake_link *first);
/* Takes a wave that went through all layers: scores it, samples tokens, finishes sequences. Releases msg. */
void cake_engine_receive(cake_engine *engine, cake_wave_msg *msg);
/* True if no wave is in flight and nothing is left to do or an error stops the engine. */
bool cake_engine_done(const cake_engine *engine);
void cake_engine_set_trace(cake_engine *engine, cake_trace *trace); /* borrowed; NULL: nothing is traced */
int cake_engine_in_flight(const cake_engine *engine);               /* waves */
int cake_engine_active(const cake_engine *engine);                  /* sequences */
/* Stops because of an error that somebody else has met and reported. CAKE_STOPPED: no more waves are sent,
 * but answers that the waves in flight finish are kept. */
void cake_engine_stop(cake_engine *engine, cake_err err);
cake_replica_progress cake_engine_progress(const cake_engine *engine);
cake_err cake_engine_error(const cake_engine *engine);
cake_engine_stats cake_engine_statistics(const cake_engine *engine);

#endif
