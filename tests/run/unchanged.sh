#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results of the demo and the golden models, greedy and sampled, have the checksums in tests/golden/results.sha256, which a build
# of commit 4c64a70 gave before files were renamed. tests/run/unchanged.sh print: the checksums of this build.
. "$(dirname "$0")/../shell.sh"
sums=$root/tests/golden/results.sha256

for i in 1 2 3 4 5 6; do
    printf '{"id": "g%d", "prompt": [%d, 3, %d, 5, 2], "max_tokens": 12, "ignore_eos": true, "logprobs": 3, "return_token_ids": true}\n' $i $i $((i + 6))
    printf '{"id": "s%d", "prompt": [%d, 4, 3], "max_tokens": 12, "ignore_eos": true, "temperature": 0.9, "top_p": 0.95, "top_k": 11, "seed": %d, "return_token_ids": true}\n' $i $i $i
done >"$dir/ids.jsonl"
printf '%s\n' 'Once upon a time' 'The little dog' 'In a big house lived a girl who' >"$dir/stories.txt"
results() { # NAME ISA MODEL INPUT OPTION... : "SUM NAME ISA"
    local name=$1 isa=$2 model=$3 input=$4
    shift 4
    "$cake" run -m "$model" -i "$input" -o - --deterministic-ids --isa "$isa" -q "$@" >"$dir/results" 2>"$dir/err" || cat "$dir/err" >&2
    printf '%s %s %s\n' "$(sha256sum <"$dir/results" | cut -c 1-64)" "$name" "$isa"
}
all() {
    local isa golden
    for isa in $(few avx2 "ref avx2"); do
        [ $isa = ref ] || grep -q ' avx2 ' /proc/cpuinfo || { echo "not checked here: --isa $isa" >&2; continue; }
        results demo $isa "$root/jobs/demo/model" "$root/jobs/demo/prompts.jsonl" --temperature 0
        results demo-sampled $isa "$root/jobs/demo/model" "$root/jobs/demo/prompts.jsonl" --temperature 0.8 --seed 7
        results demo-int8 $isa "$root/jobs/demo/model" "$root/jobs/demo/prompts.jsonl" --temperature 0 --dtype int8
        for golden in "$root"/tests/golden/*/config.json; do
            golden=${golden%/config.json}
            results "${golden##*/}" $isa "$golden" "$dir/ids.jsonl"
        done
        if [ -d "${CAKE_ASSETS:-$root/../shared/assets}/models/stories260K-hf" ]; then
            results stories260K $isa "${CAKE_ASSETS:-$root/../shared/assets}/models/stories260K-hf" "$dir/stories.txt" --max-tokens 60 --temperature 0.7 --seed 3
        fi
    done
}
[ "${1:-}" != print ] || { CAKE_ALL=1 all; exit; }
all >"$dir/now"
while read -r sum name isa; do
    grep -q " $name $isa\$" "$sums" || continue # a model that is newer than the sums
    grep -q "^$sum $name $isa\$" "$sums"
    ok "$name by $isa" $?
done <"$dir/now"
finish
