#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/smoke.sh CAKE_MPI: every measurement once and small, on one rank and on two; status 1 if one fails, says
# nothing, or says something that is no number. Figures mean nothing here. `make bench-smoke`, and so CI, runs it.
set -u
cake=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1
status=0
wrong() { echo "bench-smoke: $1"; status=1; }

"$cake" bench | sed -n 's/^  \([a-z][^ ]*\) .*/\1/p' >"$dir/names"
[ "$(wc -l <"$dir/names")" -ge 60 ] || wrong "only $(wc -l <"$dir/names") names"
for np in 1 2; do
    "$root/tests/mpirun.sh" "$np" "$cake" bench --smoke all -m "$root/jobs/demo/model" -o "$dir/$np.csv" >"$dir/out" 2>&1 ||
        { wrong "status $? on $np"; tail -n 5 "$dir/out"; continue; }
    awk -F, 'NR == 1 { n = NF } NF != n || (NR > 1 && !($8 > 0 && $8 < 1e15)) { print; bad = 1 } END { exit bad }' "$dir/$np.csv" ||
        wrong "lines above, on $np"
    while read -r name; do
        case $np.$name in
        *.peak.bf16 | *.peak.int8) continue ;;                      # of processors that have it
        1.links.self) ;; 1.links.* | 1.peak.mpi*) continue ;;       # of two ranks
        esac
        grep -q "^$name," "$dir/$np.csv" || wrong "$name said nothing on $np"
    done <"$dir/names"
    echo "bench-smoke: $np rank(s), $(($(wc -l <"$dir/$np.csv") - 1)) results of $(wc -l <"$dir/names") measurements"
done
exit $status
