/* SPDX-License-Identifier: Apache-2.0
 *
 * Status of a result file (RESULTS, .partial, .job and .lock) for read-only observers.
 */
#ifndef CAKE_RECORD_INSPECT_H
#define CAKE_RECORD_INSPECT_H

#include "record/journal_format.h"
#include "record/lock.h"

typedef enum cake_state {
    CAKE_STARTING, /* locked, no file yet */
    CAKE_RUNNING,
    CAKE_PAUSED, /* stopped early */
    CAKE_FINISHED
} cake_state;

typedef struct cake_result_status {
    cake_state state;
    char *shard;          /* owned; "0/8", or NULL */
    int64_t done, failed; /* includes error records */
    int64_t begun;        /* tokens of unfinished answers */
    int64_t torn, lost;   /* bytes of an incomplete last group; bytes of damaged groups */
    bool changed;         /* RESULTS does not match its .job */
    int64_t created;      /* when the job first began, seconds since 1970 */
    int64_t wrote;        /* time of the latest change; 0: none */
    double share;         /* answered fraction of the input; negative: unknown */
    double rate;          /* results per second of the latest run; negative: unknown */
    double left;          /* estimated seconds to the end; negative: unknown */
    bool held;            /* locked by `holder` */
    cake_holder holder;
} cake_result_status;

char *cake_inspect_results(const char *path); /* path of RESULTS, given that of RESULTS or .partial; owned */
/* path: RESULTS or its .partial. Fails with a message if no file exists or one cannot be read. */
cake_err cake_inspect(const char *path, cake_result_status *out);
void cake_inspect_free(cake_result_status *status); /* zeros are fine */

#endif
