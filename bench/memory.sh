#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/memory.sh CAKE_MPI [REQUESTS...]
# What a rank holds besides its weights and KV pages, as the number of requests grows, on the demo model. It has to
# stay below 200 MB + 48 bytes a request. Most requests are out of range, so that a large file is read quickly.
set -eu
cake=$(realpath "$1")
shift
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ $# -gt 0 ] || set -- 1000 1000000 4000000
printf '%10s %12s %14s %16s\n' requests 'file MB' 'beside MB' 'allowed MB'
for n in "$@"; do
    awk -v n="$n" 'BEGIN { for (i = 0; i < n; i++) printf "{\"custom_id\": \"request-%d\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"What is 3 + 4?\"}], \"temperature\": %d}}\n", i, i % 1000 ? 9 : 0 }' >"$dir/in.jsonl"
    "$cake" run -m "$root/jobs/demo/model" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --progress none --report "$dir/report.json" || [ $? = 3 ]
    value() { sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p" "$dir/report.json" | head -1; }
    awk -v n="$n" -v peak="$(value peak_bytes)" -v weights="$(value weights_bytes)" -v size="$(stat -c %s "$dir/in.jsonl")" \
        'BEGIN { printf "%10d %12.1f %14.1f %16.1f\n", n, size / 1e6, (peak - weights) / 1e6, 200 + 48e-6 * n }'
done
