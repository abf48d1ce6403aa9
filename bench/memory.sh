#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/memory.sh CAKE_MPI [REQUESTS...]
# Memory of a rank in addition to weights and KV pages, as the number of requests grows, on the demo model. It has to
# stay below 200 MB + 48 bytes per request. Most requests are out of range, so that a large file is read quickly.
# MODEL=DIR: also for each rank with 64 prompts of 128 + 16 tokens on that model, at np 1 and 2, read and mapped.
set -eu
[ $# -ge 1 ] || {
    sed -n '3s/^# /usage: /p' "$0" >&2
    exit 2
}
cake=$(realpath "$1")
shift
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ $# -gt 0 ] || set -- 1000 1000000 4000000
printf '%10s %12s %14s %16s\n' requests 'file MB' 'other MB' 'allowed MB'
for n in "$@"; do
    awk -v n="$n" 'BEGIN { for (i = 0; i < n; i++) printf "{\"custom_id\": \"request-%d\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"What is 3 + 4?\"}], \"temperature\": %d}}\n", i, i % 1000 ? 9 : 0 }' >"$dir/in.jsonl"
    "$cake" run -m "$root/jobs/demo/model" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --progress none --report "$dir/report.json" || [ $? = 3 ]
    value() { sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p" "$dir/report.json" | head -1; }
    awk -v n="$n" -v peak="$(value peak_bytes)" -v weights="$(value weights_bytes)" -v size="$(stat -c %s "$dir/in.jsonl")" \
        'BEGIN { printf "%10d %12.1f %14.1f %16.1f\n", n, size / 1e6, (peak - weights) / 1e6, 200 + 48e-6 * n }'
done

[ -n "${MODEL:-}" ] || exit 0
awk 'BEGIN { srand(1); for (i = 0; i < 64; i++) { printf "{\"prompt\": [%d", i; for (j = 1; j < 128; j++) printf ", %d", int(rand() * 1000)
    print "], \"max_tokens\": 16, \"ignore_eos\": true}" } }' >"$dir/in.jsonl"
printf '\n%4s %6s %12s %12s %12s %14s\n' np load 'weights MB' 'KV MB' 'peak MB' 'other MB'
for np in 1 2; do
    for how in read mmap; do
        "$root/tests/mpirun.sh" "$np" "$cake" run -m "$MODEL" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --progress none \
            --kv-memory 1G --threads $(($(nproc) > np ? $(nproc) / np : 1)) --load $how --report "$dir/report.json"
        tr ',' '\n' <"$dir/report.json" | awk -F': ' -v np=$np -v how=$how '
            /"weights_bytes"/ { weights = $NF / 1e6 } /"kv_bytes"/ { kv = $NF / 1e6 }
            /"peak_bytes"/ { peak = $NF / 1e6
                printf "%4d %6s %12.1f %12.1f %12.1f %14.1f\n", np, how, weights, kv, peak, peak - weights - kv }'
    done
done
