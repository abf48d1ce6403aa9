#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Promise 1 for each kind of layer: windows with full attention, heads that differ, recurrent states, and rotary embedding that depends on the length. The
# same bits for every number of ranks, size of waves, mix of requests and amount of KV memory.
. "$(dirname "$0")/../shell.sh"

# Some begin inside windows and original contexts and grow out of them, some are longer from the start.
text="the rain in the hills turns the small river into a lake and the road to the house is lost in it "
for i in $(seq 1 9); do
    long=
    for _ in $(seq 1 $((i % 4))); do long="$long$text"; done
    how='"temperature": 0'
    test $((i % 2)) -eq 0 && how='"temperature": 0.9, "seed": '$i
    printf '{"id": "w%d", "prompt": "%sand %d", "max_tokens": %d, "ignore_eos": true, "logprobs": 2, %s}\n' \
        "$i" "$long" "$i" $((20 + 17 * (i % 5))) "$how"
done >"$dir/in.jsonl"
# Short ones that grow long together: with little KV memory some have to give way.
for i in $(seq 1 4); do
    printf '{"id": "g%d", "prompt": "A house and %d", "max_tokens": 200, "ignore_eos": true, "temperature": 0.%d}\n' \
        "$i" "$i" "$i"
done >>"$dir/in.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    mpi "$np" run -m "$model" -i "$dir/${in:-in}.jsonl" -o "$dir/$out.jsonl" --force --deterministic-ids -q "$@" \
        2>"$dir/$out.err" || cat "$dir/$out.err"
}

same() { # NAME ARGUMENT... : as answer
    local name=$1
    shift
    answer "$1" two "${@:2}"
    echo "    sha256 $(sha256sum <"$dir/one.jsonl")"
    cmp "$dir/one.jsonl" "$dir/two.jsonl"
    ok "${model##*/}: $name" $?
}

# Choices that begin with one prompt's pages and states.
for i in 0 3; do
    printf '{"id": "n%d", "prompt": "%sand %d", "n": 3, "max_tokens": 30, "ignore_eos": true, "seed": 9, "logprobs": 1}\n' \
        "$i" "${text:$((5 * i))}" "$i"
done >>"$dir/in.jsonl"

# One alone, whose rows follow each other through the stages in wave after wave.
long=
for _ in 1 2 3 4; do long="$long$text"; done
printf '{"id": "long", "prompt": "%s", "max_tokens": 12, "ignore_eos": true, "logprobs": 2}\n' "$long" >"$dir/long.jsonl"

# name, KV memory of one rank that is not enough for all at a time, what else decides that
while read -r name memory more <&3; do
    model=$root/tests/golden/$name
    answer 1 one
    test "$(grep -c '"finish_reason": *"length"' "$dir/one.jsonl")" -eq 15
    ok "$name: one rank answers all" $?
    for np in $(few 4 "2 3 4"); do # 2 and 3 are below, too
        test "$np" -eq 4 && test "$name" = phi3-long && np=3 # it has three layers
        same "$np ranks" "$np" --threads $((np % 2 + 1))
    done
    same "--chunk 64" 2 --chunk 64
    same "--max-seqs 1" 1 --max-seqs 1
    # shellcheck disable=SC2086
    same "little KV memory" 1 --kv-memory "$memory" $more --speculate "$steady" --report "$dir/report.json"
    grep -Eq '"evictions": [1-9]' "$dir/report.json"
    ok "$name: ... sequences were evicted" $?
    in=long answer 1 one --chunk 1000
    in=long same "a long prompt alone, 3 ranks, --chunk 64" 3 --chunk 64
done 3<<MODELS
gemma3-new 280K
qwen3.5-hub 270K --max-seqs 6
phi3-long 350K
gemma4-dense 330K
MODELS

# Pages that leave the window are freed: three of them (31 KB each) suffice for sequences of six.
model=$root/tests/golden/mistral-window
answer 1 one
same "sequences longer than the KV memory" 1 --chunk 64 --kv-memory 100K
test "$(grep -c '"finish_reason": *"length"' "$dir/two.jsonl")" -eq 15
ok "mistral-window: ... all are answered" $?

# BF16 weights are the same numbers in float32.
model=$root/tests/golden/qwen3-bias
answer 1 one
same "--dtype f32 of a BF16 file" 2 --dtype f32 --kv-dtype bf16
answer 1 one --dtype bf16 --kv-dtype f32
same "--dtype bf16, 2 ranks, --chunk 64" 2 --dtype bf16 --kv-dtype f32 --chunk 64
answer 1 one --dtype int4
same "--dtype int4, 2 ranks, --chunk 64" 2 --dtype int4 --chunk 64
answer 1 one --dtype int4 --activations bf16
same "--dtype int4 --activations bf16, 2 ranks" 2 --dtype int4 --activations bf16

# Weights in int8, those of narrow matrices too.
for name in $(few "qwen3.5-hub gemma4-dense" "qwen3.5-hub gemma3-new gemma4-dense"); do
    model=$root/tests/golden/$name
    answer 1 one --dtype int8
    same "int8, 2 ranks, --chunk 64" 2 --dtype int8 --chunk 64
    same "int8, --max-seqs 1" 1 --dtype int8 --max-seqs 1
done
model=$root/tests/golden/qwen3-bias

# A KV cache in int8, of heads and of latents: codes do not depend on who computes them, when and beside whom.
while read -r name np memory <&3; do
    model=$root/tests/golden/$name
    answer 1 one --kv-dtype int8
    same "--kv-dtype int8, $np ranks, --chunk 64" "$np" --kv-dtype int8 --chunk 64 --threads 2
    same "--kv-dtype int8, little KV memory" 1 --kv-dtype int8 --kv-memory "$memory" --speculate "$steady" --report "$dir/report.json"
    grep -Eq '"evictions": [1-9]' "$dir/report.json"
    ok "$name: ... sequences were evicted" $?
done 3<<MODELS
gemma4-dense 4 200K
deepseek3-groups 2 100K
MODELS
model=$root/tests/golden/qwen3-bias

# Products that round activations, where this CPU has them.
bf16=$("$cake" info | sed -nE 's/^isa .*\b([a-z0-9]+bf16)\b.*/\1/p')
if [ -n "$bf16" ]; then
    answer 1 one --isa "$bf16"
    same "$bf16: 2 ranks, --chunk 64" 2 --isa "$bf16" --chunk 64
    same "$bf16: --max-seqs 1" 1 --isa "$bf16" --max-seqs 1
else
    echo "SKIPPED: this build or CPU has no products in BF16"
fi
finish
