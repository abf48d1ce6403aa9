/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is of a result file, for those who only look: RESULTS, its .partial, .job and .lock. Nothing is
 * changed.
 */
#ifndef CAKE_RECORD_INSPECT_H
#define CAKE_RECORD_INSPECT_H

#include "record/journal_format.h"
#include "record/lock.h"

typedef enum cake_state {
    CAKE_STARTING, /* locked, and nothing is there yet */
    CAKE_RUNNING,
    CAKE_PAUSED, /* stopped before its end */
    CAKE_FINISHED
} cake_state;

typedef struct cake_result_status {
    cake_state state;
    char *shard;          /* owned; "0/8", or NULL */
    int64_t done, failed; /* results, error records among them */
    int64_t begun;        /* tokens of answers that were under way */
    int64_t torn, lost;   /* bytes of a group that is, or was, being written; of damaged ones */
    bool changed;         /* RESULTS is not what its .job says */
    int64_t created;      /* when the job first began, seconds since 1970 */
    int64_t wrote;        /* the latest change, likewise; 0: none */
    double share;         /* of the input that was answered then; negative: not known */
    double rate;          /* results a second of the latest run; negative: not known */
    double left;          /* seconds that it would take to the end; negative: not known */
    bool held;            /* by the holder */
    cake_holder holder;
} cake_result_status;

char *cake_inspect_results(const char *path); /* RESULTS, of its own name or of that of its .partial; owned */
/* path: of RESULTS, or of its .partial. Says what is wrong: nothing of it is there, it cannot be read. */
cake_err cake_inspect(const char *path, cake_result_status *out);
void cake_inspect_free(cake_result_status *status); /* zeros are fine */

#endif
