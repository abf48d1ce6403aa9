#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/load.sh CAKE_MPI MODEL
# Seconds to load weights, compared with dd on the same files from a warm page cache, in turn: the largest load_s of all
# ranks, without MPI_Init, and all of start-up (`seconds.load`: tokenizer, plan and checks, too). Medians of RUNS (default
# 5). Needs two cores.
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
echo '{"prompt": [1, 2, 3, 4], "max_tokens": 1}' >"$dir/in.jsonl"

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

row() { # NAME NP THREADS ARGUMENT...
    : >"$dir/dd" && : >"$dir/load" && : >"$dir/start"
    for _ in $(seq "${RUNS:-5}"); do
        cat "$model"/*.safetensors >/dev/null
        for file in "$model"/*.safetensors; do LC_ALL=C dd if="$file" of=/dev/null bs=8M 2>&1; done |
            sed -nE 's/.*copied, ([0-9.e-]+) s.*/\1/p' | awk '{ s += $1 } END { print s }' >>"$dir/dd"
        "$root/tests/mpirun.sh" "$2" "$cake" run -m "${from:-$model}" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --progress none \
            --kv-memory 512M --threads "$3" --report "$dir/report.json" "${@:4}"
        sed -nE 's/.*"load_s": ([0-9.]+).*/\1/p' "$dir/report.json" | sort -g | tail -1 >>"$dir/load"
        sed -nE 's/.*"seconds": \{"load": ([0-9.]+).*/\1/p' "$dir/report.json" >>"$dir/start"
    done
    awk -v name="$1" -v dd="$(median <"$dir/dd")" -v load="$(median <"$dir/load")" -v start="$(median <"$dir/start")" \
        'BEGIN { printf "%-32s dd %6.3f s   weights %6.3f s (%4.1f x)   start %6.3f s\n", name, dd, load, load / dd, start }'
}

row "1 rank, 2 threads" 1 2
row "1 rank, 2 threads, mmap" 1 2 --load mmap
row "2 ranks, 1 thread each" 2 1
row "1 rank, 2 threads, --dtype f16" 1 2 --dtype f16
row "1 rank, 2 threads, --dtype f32" 1 2 --dtype f32
row "1 rank, 2 threads, --dtype int8" 1 2 --dtype int8
row "1 rank, 1 thread" 1 1
"$cake" stage -m "$model" -d "$dir/bundle" --ranks 1 -q
from=$dir/bundle row "a bundle, 1 rank, 2 threads" 1 2
