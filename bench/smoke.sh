#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/smoke.sh CAKE_MPI: runs every measurement once and small, on one rank and on two; status 1 if one fails, or its
# result is missing or not a number. The values mean nothing. `make bench-smoke`, and so CI, runs it.
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
        *.peak.bf16 | *.peak.int8 | *.peak.gpu-*) continue ;;       # of processors that have it, of GPUs
        1.links.self) ;; 1.links.* | 1.peak.mpi*) continue ;;       # of two ranks
        esac
        grep -q "^$name," "$dir/$np.csv" || wrong "$name printed nothing on $np"
    done <"$dir/names"
    echo "bench-smoke: $np rank(s), $(($(wc -l <"$dir/$np.csv") - 1)) results of $(wc -l <"$dir/names") measurements"
done

# A scaling study: a line for each run, a table, plots; with predicted seconds.
"$root/bench/scaling" --cake "$cake" -m "$root/jobs/demo/model" --launch "$root/tests/mpirun.sh {n}" --ranks "1 2" --threads 1 --load 4x8+4 --batches 2 \
    --runs 1 -o "$dir/scaling" -- --dummy-weights >"$dir/out" 2>&1 || { wrong "bench/scaling: status $?"; tail -n 5 "$dir/out"; }
awk -F, 'NR > 1 && !($9 > 0 && $9 < 1e3 && $11 > 0 && $12 > 0 && $12 < 1e3) { print; bad = 1 } END { exit bad || NR != 8 }' "$dir/scaling.csv" ||
    { wrong "bench/scaling: not the seven runs that were asked for"; cat "$dir/scaling.csv"; }
[ "$(grep -c '^| [12] | 1 | ' "$dir/scaling.md")" = 7 ] || { wrong "bench/scaling: the table"; cat "$dir/scaling.md"; }
! command -v gnuplot >/dev/null || [ "$(find "$dir" -name 'scaling-*.*g' -size +1k | wc -l)" = 8 ] || wrong "bench/scaling: plots"
echo "bench-smoke: bench/scaling, $(($(wc -l <"$dir/scaling.csv") - 1)) runs"

"$root/tests/mpirun.sh" 2 "$cake" run -m "$root/jobs/demo/model" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/out.jsonl" -q --trace "$dir/run.json" \
    --report "$dir/report.json" || wrong "a run with trace and report: status $?"
! command -v gnuplot >/dev/null || "$root/bench/plot" "$dir/run.json" "$dir/report.json" || wrong "bench/plot: status $?"
exit $status
