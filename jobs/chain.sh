#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A chain of jobs, for centres where jobs may not be requeued:
#     jobs/chain.sh N [OPTION OF sbatch...] jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]
# submits N jobs. Each begins if the one before it was stopped by its time limit, and resumes where that was; as soon as one
# has finished, Slurm cancels the rest. Prints the numbers of the jobs.
set -eu
n=${1:?usage: jobs/chain.sh N jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]}
shift
after=
for ((i = 0; i < n; i++)); do
    # shellcheck disable=SC2086
    id=$(sbatch --parsable --no-requeue ${after:+--dependency=afternotok:$after --kill-on-invalid-dep=yes} "$@")
    after=${after:+$after:}${id%%;*} # all before it: a finished job cancels all later ones, not only the next
    echo "${id%%;*}"                 # NUMBER;CLUSTER if there are several clusters
done
