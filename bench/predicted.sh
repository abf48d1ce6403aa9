#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/predicted.sh CAKE_MPI MODEL
# Predicted and real seconds of five files with answers of a fixed length, on one rank with two threads and on two with one
# each: `plan` with rates that `bench peak` measures just before (RATES: a file instead), and the report of `run`. Medians of
# RUNS (default 3) pairs; a line of CSV each: file, ranks, predicted, real, deviation in percent.
set -eu
[ $# -ge 2 ] || {
    sed -n '3s/^# /usage: /p' "$0" >&2
    exit 2
}
cake=$(realpath "$1")
model=$(realpath "$2")
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Requests of FROM ids, the first COMMON of which are equal, with answers of TOKENS; several lengths in turn.
prompts() { # FILE REQUESTS COMMON "FROM..." "TOKENS..."
    awk -v n="$2" -v common="$3" -v from="$4" -v tokens="$5" 'BEGIN { srand(1); f = split(from, ids); t = split(tokens, most)
        for (j = 0; j < common; j++) shared[j] = int(3 + rand() * 500)
        for (i = 0; i < n; i++) { m = ids[i % f + 1]; printf "{\"prompt\": ["
            for (j = 0; j < m; j++) printf "%s%d", j ? ", " : "", j < common ? shared[j] : int(3 + rand() * 500)
            printf "], \"max_tokens\": %d, \"ignore_eos\": true, \"temperature\": 0}\n", most[i % t + 1] } }' >"$dir/$1.jsonl"
}
prompts batch 32 0 128 32
prompts mixed 24 0 "16 400 80 250" "4 16 48"
prompts prefill 6 0 700 2
prompts decode 6 0 48 40
prompts shared 40 512 552 40

on() { # NP ARGUMENT...
    OMP_NUM_THREADS=$((2 / $1)) "$root/tests/mpirun.sh" "$1" "$cake" "${@:2}"
}
number() { sed -nE "s/.*\"$1\": ([0-9.e-]+).*/\1/p" | head -1; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "file,ranks,predicted_s,real_s,off_percent"
for np in 1 2; do
    for file in batch mixed prefill decode shared; do
        : >"$dir/predicted" && : >"$dir/real"
        for _ in $(seq "${RUNS:-3}"); do
            rates=${RATES:-$dir/rates.json}
            [ -n "${RATES:-}" ] || on $np bench peak -o "$rates" >/dev/null
            on $np plan -m "$model" -i "$dir/$file.jsonl" --replicas 1 --rates "$rates" --json -q |
                sed -n 's/.*"prediction"//p' | number seconds >>"$dir/predicted"
            on $np run -m "$model" -i "$dir/$file.jsonl" -o "$dir/out.jsonl" --replicas 1 --resume never --force -q \
                --progress none --report "$dir/report.json"
            number run <"$dir/report.json" >>"$dir/real"
        done
        awk -v f=$file -v np=$np -v p="$(median <"$dir/predicted")" -v r="$(median <"$dir/real")" \
            'BEGIN { printf "%s,%d,%.2f,%.2f,%+.0f\n", f, np, p, r, 100 * (p / r - 1) }'
    done
done
