#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `bench`: names of measurements, output and files on one rank and on two, and refused arguments. `make bench-smoke`
# runs every measurement; no test checks speed.
. "$(dirname "$0")/../shell.sh"

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
grep -Eq '^\{"name": "linear.q.8", "isa": "[a-z0-9]*", .*"value": [0-9.e+]*, "unit": "G[A-Z]*[B/]*[A-Za-z/]*", "share": [0-9.]*, "bound": "peak\.[a-z0-9]*", .*"version": "[^"]*"\}$' "$dir/one.json"
ok "one.json" $?
mpi 3 bench --smoke pipeline.modelled --stages 3 --batch 9x70+3 -o "$dir/three.csv" >"$dir/out" 2>"$dir/err"
ok "a modelled pipeline of three stages" $?
# what the model predicts is no less than what came of it, and stages are no busier than the run is long
awk -F, '$1 == "pipeline.modelled" { modelled = $8 } $1 == "pipeline.predicted" { predicted = $8 }
    $1 == "pipeline.stage" { n++; over += $10 > 1.01 } END { exit !(n == 3 && !over && modelled > 0 && modelled < 1.05 * predicted) }' "$dir/three.csv"
ok "it has three stages and a prediction" $?
# prompts of 32 to 4,096 tokens through four stages: waves cost the same, or the stages would wait for the dearest
mpi 4 bench --smoke pipeline.modelled --shape qwen3-0.6b --batch 48x32..4096+8 -o "$dir/mixed.csv" >"$dir/out" 2>"$dir/err"
awk -F, '$1 == "pipeline.predicted" { share = $10 } END { exit !(share > 0.9 && share <= 1) }' "$dir/mixed.csv"
ok "prompts of many lengths keep four stages busy" $?
mpi 2 bench --smoke pipeline.modelled --batch 2x64+150 --speculate ngram >"$dir/out" 2>"$dir/err"
grep -Eq '^pipeline.drafts .* accepted .* of drafts' "$dir/out"
ok "answers that repeat themselves are drafted" $?
"$cake" bench throughput.load --batch 3x70+2 -m "$model" --dummy-weights >"$dir/out" 2>"$dir/err" && grep -q '^throughput.load .* of floor' "$dir/out"
ok "throughput of a model" $?
"$cake" bench throughput.load --batch 3x70+20 -m "$model" --dummy-weights -o "$dir/steps.csv" >"$dir/out" 2>"$dir/err" && grep -q '^throughput.load.steps .* of floor' "$dir/out"
ok "... and of its steps, once the prompts are through" $?
"$cake" bench throughput.load --smoke --batch 3x70+2 -m "$model" --dummy-weights >"$dir/out" 2>"$dir/err" && ! grep -q floor "$dir/out"
ok "--smoke compares nothing with a floor that one short try made" $?
expect "bench without a name lists shapes, too" 0 '^--shape NAME: qwen3-0.6b, .*, tiny\.$' "$cake" bench
for shape in qwen3.5-0.8b llama-3.2-1b llama-3.1-405b; do
    "$cake" bench pipeline.modelled --shape $shape --batch 1x64+1 --flops 1000000000 --bandwidth 1000000000 >"$dir/out" 2>"$dir/err"
    ok "shape $shape" $?
done

"$cake" bench text --smoke -m "$model" >"$dir/out" 2>"$dir/err" && [ "$(grep -c '^text\..* MB/s' "$dir/out")" -eq 5 ]
ok "text of a model" $?
expect "a tokenizer without a model" 2 'nothing was measured: it needs a model.s directory' "$cake" bench text.encode --smoke
expect "drafts by a model that is not there" 2 "mtp: pipeline.modelled computes nothing" mpi 2 bench pipeline.modelled --speculate mtp --smoke
test "$(grep -c 'computes nothing' "$dir/err")" -eq 1
ok "... is said once" $?
expect "messages of one rank" 2 "nothing was measured: it needs two ranks" "$cake" bench peak.mpi-latency --smoke
expect "links of one rank" 2 "nothing was measured: it needs two ranks" "$cake" bench links.header --smoke
expect "an option that nothing takes" 2 "--batch is an option of throughput.load and pipeline.modelled, which is not measured" "$cake" bench linear.q.1 --smoke --batch 2x2+2

expect "stages that are no ranks" 2 'mpirun -np 8' "$cake" bench pipeline --stages 8
expect "a load that is none" 2 '"32x128" is not prompts' "$cake" bench throughput --batch 32x128
expect "a range of lengths that is none" 2 '"32x128..16.1" is not prompts' "$cake" bench throughput --batch 32x128..16+1
expect "a shape that is none" 2 'there are qwen3-0.6b, ' "$cake" bench throughput --shape gpt-9
expect "a model and a shape" 2 'both -m and --shape' "$cake" bench throughput --shape tiny -m "$model"
expect "a model that is nowhere" 1 'model: .*/nowhere: cannot be opened: No such' "$cake" bench rows.rope --smoke -m "$dir/nowhere"
expect "a load longer than the context" 2 "prompt and answer of 50010: this model's context is 40960" "$cake" bench throughput.load --batch 1x50000+10
expect "a name that is none" 2 '"frob" is not a measurement' "$cake" bench frob
expect "a name needs its dot" 2 '"pea" is not a measurement' "$cake" bench pea
expect "a file that cannot be written" 1 'cannot be written' "$cake" bench --smoke peak.f32 -o "$dir/no/file.csv"
expect "more ranks than layers" 2 '^cake-mpi: error: usage: 9 ranks for a model of 8 layers.* -np 8 or fewer$' mpi 9 bench pipeline.modelled --smoke
cp "$model/config.json" "$dir/config.json"
expect "a file of the model" 2 'is a file of the model' "$cake" bench --smoke throughput.load --batch 1x3+1 -m "$dir" -o "$dir/config.json"
expect "results into a full device" 1 'standard output cannot be written' sh -c "'$cake' bench --smoke scores.total >/dev/full"
expect "no instruction set of that name" 2 'is not one of' "$cake" bench --smoke peak.f32 --isa sse
finish
