#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Submits a chain of N jobs, for centres where jobs may not be requeued, and prints their job ids:
#     jobs/chain.sh N [OPTION OF sbatch...] jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]
# A job starts if the one before it was stopped by its time limit or failed, and resumes its run. When one has finished, Slurm
# cancels the rest. After an error that stays (a wrong path) the others fail in the same way, within seconds of their start:
# cancel them by the ids printed here, all in one command: a cancelled job starts the next.
set -eu
[ $# -ge 2 ] && [ "$1" -gt 0 ] 2>/dev/null || { echo "usage: jobs/chain.sh N jobs/batch.sbatch MODEL PROMPTS RESULTS [OPTION...]" >&2; exit 2; }
n=$1
shift
after=
for ((i = 0; i < n; i++)); do
    # shellcheck disable=SC2086
    id=$(sbatch --parsable --no-requeue ${after:+--dependency=afternotok:$after --kill-on-invalid-dep=yes} "$@")
    after=${after:+$after:}${id%%;*} # on all earlier jobs: a finished one cancels all later ones, not only the next
    echo "${id%%;*}"                 # sbatch prints ID;CLUSTER if there are several clusters
done
