#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `bench`: its names, what it prints and writes, on one rank and on two, and what it refuses. That each measurement
# works is tried by `make bench-smoke`; how fast it is, a test cannot say.
. "$(dirname "$0")/shell.sh"

"$cake" bench >"$dir/list"
ok "bench lists its names" $?
names=$(sed -n 's/^  \([a-z][^ ]*\) .*/\1/p' "$dir/list")
[ "$(wc -l <<<"$names")" -ge 60 ] && [ -z "$(sort <<<"$names" | uniq -d)" ]
ok "60 names or more, each once" $?
for name in peak.f32 linear.k.8 attend.generated-8x512 delta.rule-512 rows.silu-mul scores.top-p links.self; do
    "$cake" bench "$name" --smoke >"$dir/out" 2>"$dir/err" && grep -q "^$name .* [0-9.e+]* *[A-Za-z/]*" "$dir/out"
    ok "bench $name" $?
done

mpi 2 bench --smoke peak linear.k links -o "$dir/two.csv" >"$dir/out" 2>"$dir/err"
ok "two ranks" $?
for name in peak.f32,.*,2,0 peak.f32,.*,2,1 peak.mpi-latency,.*,2,0,1 peak.mpi-bandwidth,.*,2,0,1 links.rows-8,.*,2,0,1 links.self,.*,2,1 linear.k.512,.*,2,1; do
    grep -Eq "^$name" "$dir/two.csv"
    ok "two.csv has $name" $?
done
columns=$(head -n 1 "$dir/two.csv" | tr -cd , | wc -c)
awk -F, -v n="$columns" 'NF != n + 1 || (NR > 1 && !($8 > 0)) { exit 1 }' "$dir/two.csv"
ok "two.csv: every line has every column, and a value" $?

"$cake" bench --smoke linear.q.8 -o "$dir/one.json" >/dev/null
grep -Eq '^\{"name": "linear.q.8", "isa": "[a-z0-9]*", .*"value": [0-9.e+]*, "unit": "G[A-Z]*[B/]*[A-Za-z/]*", "share": [0-9.]*, "bound": "peak\.[a-z0-9]*"\}$' "$dir/one.json"
ok "one.json" $?
expect "a name that is none" 2 '"frob" is no measurement' "$cake" bench frob
expect "a name needs its dot" 2 '"pea" is no measurement' "$cake" bench pea
expect "a file that cannot be written" 1 'cannot be written' "$cake" bench --smoke peak.f32 -o "$dir/no/file.csv"
expect "no instruction set of that name" 2 'is not one of' "$cake" bench --smoke peak.f32 --isa sse
finish
