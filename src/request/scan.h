/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through all requests of the input (of a shard: its own) as the model would see them: several threads
 * parse, render and tokenize, and results come in input order. Needs no model. Memory: a few batches of lines
 * per thread.
 */
#ifndef CAKE_REQUEST_SCAN_H
#define CAKE_REQUEST_SCAN_H

#include "request/prepare.h"

typedef struct cake_scanner {
    void *self;
    /* Appends the caller's output for a request to out; NULL: none. Runs in any thread; text is empty if the
     * prompt came as ids. */
    void (*compose)(void *self, const cake_request *request, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out);
    /* Called in input order with a request (and its error), its number of tokens, and the output of compose
     * [len]. */
    cake_err (*take)(void *self, const cake_request *request, int64_t n_token, const char *composed,
                     size_t len);
} cake_scanner;

cake_err cake_scan_run(cake_preparation *preparation, int n_thread, const cake_scanner *scanner);

#endif
