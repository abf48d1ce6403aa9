#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A chain of jobs, where jobs may not be queued again by themselves:
#     jobs/chain.sh N [OPTION OF sbatch...] jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]
# submits N jobs. Each begins if the one before it was stopped by its time limit, and goes on where that was; as soon as one
# has finished, Slurm drops the rest. Prints the numbers of the jobs.
set -eu
n=${1:?usage: jobs/chain.sh N jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]}
shift
after=
for ((i = 0; i < n; i++)); do
    # shellcheck disable=SC2086
    id=$(sbatch --parsable --no-requeue ${after:+--dependency=afternotok:$after --kill-on-invalid-dep=yes} "$@")
    after=${after:+$after:}${id%%;*} # all before it: a job that has finished drops all behind it, not the next one only
    echo "${id%%;*}"                 # NUMBER;CLUSTER, where there are several
done
