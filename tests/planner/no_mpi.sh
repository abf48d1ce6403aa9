#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The planner is pure: its unit tests, which are linked without MPI, contain nothing of it. The program does.
set -u
root=${top_builddir:-.}
failed=0
for test in estimate memory_fit memory_plan parallelism partition simulate whatif_plan; do
    program=$root/tests/planner/$test
    symbols=$(nm "$program") || { echo "FAILED: nm cannot read $program"; exit 1; }
    found=$(grep -Eo '\b(P?MPI_[A-Z][A-Za-z_]*|cake_comm_[a-z_]*)$' <<<"$symbols" | sort -u | head -5)
    if [ -n "$found" ]; then
        echo "FAILED: $test has ${found//$'\n'/ }"
        failed=1
    fi
done
if ! nm "$root/cake-mpi" | grep -Eq '\bMPI_Init'; then
    echo "FAILED: nm does not find MPI in cake-mpi, where it is"
    failed=1
fi
exit $failed
