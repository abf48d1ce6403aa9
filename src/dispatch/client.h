/* SPDX-License-Identifier: Apache-2.0
 *
 * Source and sink of sequences for the engine of a replica without world rank 0. It receives requests from
 * the dispatcher on world rank 0, and sends tokens and results there as they come.
 */
#ifndef CAKE_DISPATCH_CLIENT_H
#define CAKE_DISPATCH_CLIENT_H

#include <stdbool.h>

#include "engine/engine.h"
#include "link/channel.h"
#include "link/comm.h"

typedef struct cake_dispatch_client cake_dispatch_client;

/* Begins to open the tokenizer, without warnings: world rank 0 opens it too, and prints them. */
cake_dispatch_client *cake_dispatch_client_open(const char *model, const cake_config *config, int context);
/* Waits for the tokenizer, before the engine needs it. Further calls return the same. */
cake_err cake_dispatch_client_wait(cake_dispatch_client *client);
cake_sequence_io cake_dispatch_client_io(cake_dispatch_client *client);
/* Opens the channel to world rank 0. root: the engine, stopped if the run fails; borrowed. */
cake_err cake_dispatch_client_connect(cake_dispatch_client *client, const cake_comm *world,
                                      cake_engine *root);
/* Connects by an open channel, which the client takes over. */
void cake_dispatch_client_attach(cake_dispatch_client *client, cake_channel *channel, cake_engine *root);
size_t cake_dispatch_client_bytes(void); /* of its buffers */

/* Receives requests and sends events; called often. True if there was something to do. */
bool cake_dispatch_client_poll(cake_dispatch_client *client);
/* After the last sequence or an error: sends the rest and waits until all is delivered. Returns err, or
 * CAKE_OK if rank 0 has sent quit: then rank 0 has the error. */
cake_err cake_dispatch_client_finish(cake_dispatch_client *client, cake_err err);
void cake_dispatch_client_close(cake_dispatch_client *client); /* NULL is fine */

#endif
