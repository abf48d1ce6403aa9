/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of tasks.
 */
#include "types/task.h"

const cake_task_row cake_tasks[CAKE_N_TASK] = {
    [CAKE_TASK_GENERATE] = {.name = "generate", .generates = true},
    [CAKE_TASK_SCORE] = {.name = "score", .targets = true},
    [CAKE_TASK_EMBED] = {.name = "embed", .pools = true},
    [CAKE_TASK_RERANK] = {.name = "rerank", .pools = true, .pairs = true},
};
