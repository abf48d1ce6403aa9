#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/plot of a small trace with known figures: tokens per second, busy shares, titles, invalid files.
. "$(dirname "$0")/../shell.sh"

# Two ranks, 4 s: rank 0 computes in seconds 0 and 2, rank 1 in 1 and 3, but for a half; what lies within is not counted twice.
cat >"$dir/run.json" <<'END'
{"displayTimeUnit": "ms", "otherData": {"version": "9.8", "dropped": 0}, "traceEvents": [
{"ph": "M", "pid": 0, "name": "process_sort_index", "args": {"sort_index": 0}},
{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "rank 0 on vm, layers 0-3"}},
{"ph": "M", "pid": 1, "name": "process_sort_index", "args": {"sort_index": 1}},
{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "rank 1 on vm, layers 4-7"}},
{"ph": "X", "pid": 0, "tid": 0, "ts": 1000000, "dur": 9000000.000, "cat": "load", "name": "load"},
{"ph": "X", "pid": 0, "tid": 0, "ts": 10000000.000, "dur": 1000000.000, "cat": "wave", "name": "wave", "args": {"lane": 0, "rows": 100, "prompt": 90, "generated": 10, "layers": "0-3"}},
{"ph": "X", "pid": 0, "tid": 0, "ts": 10000000.000, "dur": 500000.000, "cat": "layer", "name": "layer 0"},
{"ph": "s", "pid": 0, "tid": 0, "ts": 11000000.000, "name": "link", "cat": "link", "id": "0.1.0"},
{"ph": "X", "pid": 1, "tid": 0, "ts": 10000000.000, "dur": 1000000.000, "cat": "wait", "name": "wait"},
{"ph": "X", "pid": 1, "tid": 0, "ts": 11000000.000, "dur": 1000000.000, "cat": "wave", "name": "wave", "args": {"lane": 0, "rows": 100, "prompt": 90, "generated": 10, "layers": "4-7"}},
{"ph": "X", "pid": 0, "tid": 0, "ts": 12000000.000, "dur": 1000000.000, "cat": "wave", "name": "wave", "args": {"lane": 0, "rows": 8, "prompt": 0, "generated": 8, "layers": "0-3"}},
{"ph": "X", "pid": 1, "tid": 0, "ts": 13500000.000, "dur": 500000.000, "cat": "wave", "name": "wave", "args": {"lane": 0, "rows": 8, "prompt": 0, "generated": 8, "layers": "4-7"}},
{"ph": "X", "pid": 0, "tid": 0, "ts": 13500000.000, "dur": 500000.000, "cat": "finish", "name": "finish", "args": {"lane": 0}},
{"ph": "X", "pid": 0, "tid": 0, "ts": 13500000.000, "dur": 500000.000, "cat": "head", "name": "head", "args": {"rows": 8}}
]}
END
cat >"$dir/report.json" <<'END'
{
  "model": "/models/it's \"one\"",
  "rate": {"prompt_per_s": 1.00, "generated_per_s": 2.00, "total_per_s": 123.45},
  "starved_share": 0.1,
    {"rank": 0, "idle_share": 0.3907, "waits_for": "rank 1",
    {"rank": 1, "idle_share": 0.4031, "waits_for": "rank 1",
}
END
plot=$root/bench/plot
command -v gnuplot >/dev/null || { printf '#!/bin/sh\n' >"$dir/gnuplot" && chmod +x "$dir/gnuplot" && PATH=$dir:$PATH; }

"$plot" "$dir/run.json" "$dir/report.json" --bins 4 2>"$dir/err"
ok "a plot" $?
printf '%s\n' second,prompt_per_s,generated_per_s,rank0,rank1 0.500000,90.00,10.00,1.0000,0.0000 1.500000,0.00,0.00,0.0000,1.0000 \
    2.500000,0.00,8.00,1.0000,0.0000 3.500000,0.00,0.00,0.5000,0.5000 | diff - "$dir/run.csv"
ok "its figures" $?
"$plot" "$dir/run.json" -o "$dir/other" 2>"$dir/err" && [ "$(wc -l <"$dir/other.csv")" = 5 ]
ok "no more parts than waves fit into the time" $?
if [ ! -e "$dir/gnuplot" ]; then
    [ "$(head -c 4 "$dir/run.png" | tail -c 3)" = PNG ] && grep -q '123.45 tokens/s' "$dir/run.svg" && grep -q '40 % idle' "$dir/run.svg"
    ok "the report's figures in the titles" $?
    grep -q '>2 ranks<' "$dir/other.svg" && grep -q '38 % idle' "$dir/other.svg" && grep -q '62 % idle' "$dir/other.svg"
    ok "without it, the trace's own" $?
fi
sed 's/"dropped": 0/"dropped": 77/' "$dir/run.json" >"$dir/dropped.json"
expect "spans that were dropped are said" 0 'lacks 77 earlier spans' "$plot" "$dir/dropped.json"
grep -v '"wave"' "$dir/run.json" >"$dir/none.json"
expect "no waves" 2 'has no waves' "$plot" "$dir/none.json"
expect "no trace" 2 'is no trace' "$plot" "$dir/report.json"
expect "no report" 2 'is no report' "$plot" "$dir/run.json" "$dir/run.json"
expect "no file" 2 'cannot be read' "$plot" "$dir/absent.json"
expect "an option that is none" 2 'is no option' "$plot" --frob
expect "parts that are no number" 2 'expected 1 to' "$plot" "$dir/run.json" --bins 0

# The plots of README.md and docs/benchmarks.md are those that bench/figures makes of the CSV files.
mkdir "$dir/img"
"$root/bench/figures" "$dir/img" && diff -r "$dir/img" "$root/docs/img"
ok "docs/img is what bench/figures makes of bench/results" $?
expect "a folder that is none" 2 'is a directory' "$root/bench/figures" "$dir/none"
finish
