#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Promise 1 for prompts with common beginnings, which are computed once: every answer is the one that its request gets alone, for every
# number of ranks, amount of KV memory and kind of layer.
. "$(dirname "$0")/../shell.sh"

head="the rain in the hills turns the small river into a lake and the road to the house is lost in it " # 96 tokens; 28 of the demo's
more="and then the water came over the wall of the mill so that all who were there had to go up the hill " # 99

# Three beginnings, one within the other, that part in the middle of a page and at its end; several answers, scores of prompts,
# answers that stop early.
for i in $(seq 1 "$(few 18 24)"); do
    case $((i % 4)) in
    0) text="$head$i" ;;
    1) text="$head${more}now $i" ;;
    2) text="$head$more${head:$((i % 3))}so $i" ;;
    3) text="${more}$((i % 2)) or $i" ;;
    esac
    how='"max_tokens": '$((4 + 9 * (i % 5)))
    test $((i % 5)) -eq 0 && how=$how', "n": 3, "seed": 7'
    test $((i % 6)) -eq 0 && how='"max_tokens": '$((i % 4))', "echo": true, "logprobs": 1'
    test $((i % 7)) -eq 0 && how=$how', "stop": ["a", "e"], "temperature": 1.1'
    printf '{"id": "r%d", "prompt": "%s", "return_token_ids": true, %s}\n' "$i" "$text" "$how"
done >"$dir/in.jsonl"
# Continuations of one context, whose scores need no others.
for i in 1 2 3 4; do
    printf '{"id": "c%d", "context": "%s", "continuation": " they went up the hill %d"}\n' "$i" "$head$more" "$i"
done >>"$dir/in.jsonl"
# One of 128 tokens, which is two pages: its last row is computed all the same.
ids=$(seq -s, 3 130)
for i in 1 2 3; do
    printf '{"id": "p%d", "prompt": [%s], "max_tokens": %d, "logprobs": 2}\n' "$i" "$ids" $((5 * i))
done >>"$dir/in.jsonl"

# Some that grow long together: with little KV memory some have to give way.
for i in 1 2 3 4; do
    printf '{"id": "g%d", "prompt": "%s%d", "max_tokens": %d, "ignore_eos": true}\n' "$i" "$head" $((i / 3)) $((150 + i))
done >>"$dir/in.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    mpi "$np" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$out.jsonl" --force --deterministic-ids -q \
        "$@" 2>"$dir/$out.err" || cat "$dir/$out.err"
}

report=(--report "$dir/report.json")
same() { # NAME ARGUMENT... : as answer; all is as each request alone has it
    local name=$1
    shift
    answer "$1" two "${@:2}"
    echo "    sha256 $(sha256sum <"$dir/one.jsonl")"
    cmp "$dir/one.jsonl" "$dir/two.jsonl"
    ok "${model##*/}: $name" $?
}

enough() { # LEAST : tokens of prompts that were shared
    local n
    n=$(grep -o '"prompt_shared": *[0-9]*' "$dir/report.json" | grep -o '[0-9]*$')
    test "$n" -ge "$1"
    ok "${model##*/}: ... $n tokens of prompts were shared" $?
}

planned() { # a run's number is that of plan
    local plan n
    plan=$("$cake" plan -m "$model" -i "$dir/in.jsonl" | sed -nE 's/^ +([0-9]+) of them .* computed once$/\1/p')
    n=$(grep -o '"prompt_shared": *[0-9]*' "$dir/report.json" | grep -o '[0-9]*$')
    test "$plan" = "$n"
    ok "${model##*/}: ... as plan says: $plan and $n" $?
}

# Each request in a run of its own, put together in order. The index is the line's number.
alone() {
    local n=0 line
    rm -rf "$dir/alone" && mkdir "$dir/alone"
    split -l 1 -a 3 "$dir/in.jsonl" "$dir/alone/"
    printf '%s\n' "$dir"/alone/??? | xargs -P "$(env -u OMP_NUM_THREADS nproc)" -I{} \
        "$cake" run -m "$model" -i {} --input-format jsonl -o {}.jsonl --deterministic-ids -q
    for line in "$dir"/alone/*.jsonl; do
        sed "s/\"index\": 0,/\"index\": $n,/" "$line"
        n=$((n + 1))
    done >"$dir/one.jsonl"
}

# name, KV memory that is not enough for all at a time, tokens that are shared at least (few where rotary embedding goes by the
# length of the prompt), sequences that are evicted at least
while read -r name memory least evicted <&3; do
    case $(few "demo gemma3-new qwen3.5-hub" "$name") in *"$name"*) ;; *) continue ;; esac # each request alone takes its time
    model=$root/tests/golden/$name
    test "$name" = demo && model=$root/jobs/demo/model
    alone
    for np in $(few "1 4" "1 2 3 4"); do
        test "$np" -eq 4 && test "$name" = mistral-window && np=3 # it has three layers
        same "$np ranks" "$np" "${report[@]}"
        enough "$least"
        test "$np" -gt 1 || test "$name" = qwen3.5-hub || planned # states are kept at few places only
    done
    same "waves of one step, few sequences" 2 --chunk 64 --max-seqs 3
    same "one sequence after the other" 1 --max-seqs 1 "${report[@]}"
    enough 100
    same "little KV memory" 1 --kv-memory "$memory" --max-seqs 6 --speculate "$steady" "${report[@]}"
    test "$(grep -o '"evictions": [0-9]*' "$dir/report.json" | grep -o '[0-9]*$')" -ge "$evicted"
    ok "$name: ... at least $evicted of them evicted" $?
done 3<<MODELS
demo 1050K $(few 150 200) 1
gemma3-new 240K 1000 0
mistral-window 90K 1000 0
qwen3-dynamic 130K 500 0
qwen3.5-hub 260K 1000 1
MODELS
finish
