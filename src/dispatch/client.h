/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of a replica that is not world rank 0's: where its sequences come from and go to. Requests come by
 * message from world rank 0, and what becomes of them goes back there, tokens as they come.
 */
#ifndef CAKE_DISPATCH_CLIENT_H
#define CAKE_DISPATCH_CLIENT_H

#include <stdbool.h>

#include "engine/engine.h"
#include "link/channel.h"
#include "link/comm.h"
#include "options/options.h"

typedef struct cake_dispatch_client cake_dispatch_client;

/* Opens the tokenizer, which world rank 0 has opened too: what is wrong with it is said there. */
cake_err cake_dispatch_client_open(const cake_options *options, const cake_config *config, int context,
                                   cake_dispatch_client **out);
cake_sequence_io cake_dispatch_client_io(cake_dispatch_client *client);
/* The way to world rank 0; root: borrowed, to be stopped where the run fails. */
cake_err cake_dispatch_client_connect(cake_dispatch_client *client, const cake_comm *world,
                                      cake_engine *root);
/* Connects by an open channel, which the client takes over. */
void cake_dispatch_client_attach(cake_dispatch_client *client, cake_channel *channel, cake_engine *root);
size_t cake_dispatch_client_bytes(void); /* of its buffers */

/* Letters come and go; called often. Whether there was something to do. */
bool cake_dispatch_client_poll(cake_dispatch_client *client);
/* After the last sequence, or what ended the loop: says so, until all has arrived. Returns err, unless rank 0
 * has told it to quit, which then has the reason. */
cake_err cake_dispatch_client_finish(cake_dispatch_client *client, cake_err err);
void cake_dispatch_client_close(cake_dispatch_client *client); /* NULL is fine */

#endif
