#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --weights-memory: a rank that holds only a part of its weights writes the same bytes; it reads no expert that no row
# wants; and what cannot be read ends the run.
. "$(dirname "$0")/../shell.sh"

rainy "$(few 12 40)" >"$dir/in.jsonl"

answer() { # NP OUT ARGUMENT... : of $model
    mpi "$1" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$2.jsonl" --force -q "${@:3}" 2>"$dir/err" ||
        cat "$dir/err"
}
same() { # NAME NP ARGUMENT... : the bytes of one.jsonl, and weights were read for waves
    rm -f "$dir/two.jsonl"
    answer "$2" two --report "$dir/report.json" "${@:3}"
    cmp "$dir/one.jsonl" "$dir/two.jsonl" && test "$(sum bytes)" -ge "${streams:-1}"
    ok "${model##*/}: $1" $?
}
sum() { # KEY : of what the ranks of the report read for waves
    grep '"weights_read"' "$dir/report.json" | tr ',' '\n' | sed -n 's/.*"'"$1"'": \([0-9.]*\).*/\1/p' |
        awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}
smallest() { # NP ARGUMENT... : the smallest possible value
    mpi "$1" plan -m "$model" --weights-memory 100% --json "${@:2}" 2>"$dir/err" |
        sed -n 's/.*"min_weights_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -n 1
}
golden=$root/tests/golden demo=$model

for name in $(few "glm4moe-groups qwen3next-keys deepseek3-groups gemma4-wrap" \
    "demo glm4moe-groups qwen3next-keys deepseek3-groups deepseek3-whole mistral4-scaled gemma4-wrap gemma4-saved gptoss-bf16 qwen3moe-mixed qwen3.5moe-wrap minimax-part phi3-long gemma3-new llama-linear"); do
    model=$golden/$name
    [ "$name" = demo ] && model=$demo
    answer 1 one
    bytes=$(smallest 1)
    same "the least memory, $bytes bytes" 1 --weights-memory "$bytes"
    same "more of it, 2 threads" 1 --weights-memory $((bytes * 5 / 4)) --threads 2
    waves=$(sed -n 's/.*"waves": \([0-9]*\),.*/\1/p' "$dir/report.json")
    test "$(sum bytes)" -le $(($(sum max_wave_bytes) * (waves + 1)))
    ok "... nothing is read twice for a wave" $?
    same "each alone, decoding with one thread" 1 --weights-memory "$bytes" --max-seqs 1 --threads 2 --threads-decode 1
    expect "${name}: one byte less" 1 "holds at least .* of its .* of weights" \
        "$cake" run -m "$model" -p x --weights-memory $((bytes - 1))
    case $name in gptoss-bf16 | phi3-long | llama-linear) streams=0 ;; esac # a layer on each rank: they hold it
    bytes=$(smallest 2)
    same "2 ranks, --chunk 64" 2 --weights-memory "$bytes" --chunk 64
    unset streams
    answer 1 one --dtype int8
    same "int8" 1 --weights-memory "$(smallest 1 --dtype int8)" --dtype int8
done

# Ranks with one layer hold it; several hops and replicas.
model=$demo
answer 1 one
same "3 ranks" 3 --weights-memory "$(smallest 3)"
same "2 replicas" 2 --replicas 2 --weights-memory 60%
printf "a:\n  rank: 1\n  layers: ['model.layers.2-3', 'model.layers.6']\n" >"$dir/t.yml"
same "several hops a rank" 2 --topology "$dir/t.yml" --weights-memory 70%
"$cake" stage -m "$demo" -d "$dir/staged" --ranks 2 -q
model=$dir/staged
same "bundles" 2 --weights-memory 60%
model=$demo
for i in $(seq 1 "$(few 4 8)"); do
    printf '{"id": "g%d", "prompt": "There was once a king who had %d", "max_tokens": 170, "ignore_eos": %s, "temperature": 0.%s}\n' \
        "$i" "$i" "$([ $((i % 4)) -eq 0 ] && echo false || echo true)" "$i"
done >"$dir/in.jsonl"
answer 1 one
same "with evictions" 1 --weights-memory 60% --kv-memory 1050K --speculate "$steady"
grep -Eq '"evictions": [1-9]' "$dir/report.json"
ok "... which there were" $?
few_pages=(plan -m "$demo" --weights-memory 60% --kv-memory 4M --max-seqs 256)
expect "a plan says how many sequences the pages hold" 0 '^ +enough for about 4 sequences of 448 tokens at a time' \
    mpi 1 "${few_pages[@]}"
expect "... and counts on no more" 0 '"generated_wave_tokens": 4,' mpi 1 "${few_pages[@]}" --json
expect "all weights fit" 0 "82" "$cake" run -m "$demo" -p 'What is 37 + 45?' --weights-memory 1G
expect "random weights" 0 "1 request" "$cake" run -m "$demo" -p x --n 1 --dummy-weights --max-tokens 2 -o "$dir/x.jsonl" --weights-memory 60%
for size in 0 -1 101% x; do
    expect "--weights-memory $size" 2 "weights-memory" "$cake" run -m "$demo" -p x --weights-memory=$size
done

# One row wants two of the experts of a layer, many want all.
model=$golden/glm4moe-groups
bytes=$(smallest 1)
printf '{"prompt": "x", "max_tokens": 20, "ignore_eos": true}\n' >"$dir/in.jsonl"
answer 1 alone --weights-memory "$bytes" --threads 2 --report "$dir/report.json"
waves=$(sed -n 's/.*"waves": \([0-9]*\),.*/\1/p' "$dir/report.json")
test $(($(sum bytes) * 10)) -lt $(($(sum max_wave_bytes) * waves * 7)) && test "$(sum bytes)" -gt 0
ok "experts that no row wants are not read" $?

# Many rows, whose routers have no preference: all of them want the first experts, and others are read once.
model=$dir/hot
cp -r "$golden/qwen3moe-mixed" "$model"
chmod -R u+w "$model"
for layer in 0 2 3; do
    blank "$model" "model.layers.$layer.mlp.gate.weight"
done
for i in $(seq 1 12); do
    printf '{"id": "%d", "prompt": "x%d", "max_tokens": 20, "ignore_eos": true}\n' "$i" "$i"
done >"$dir/in.jsonl"
answer 1 one
same "all rows on three experts of seven" 1 --weights-memory "$(smallest 1)" --threads 2
waves=$(sed -n 's/.*"waves": \([0-9]*\),.*/\1/p' "$dir/report.json")
test $(($(sum bytes) * 10)) -lt $(($(sum max_wave_bytes) * waves * 7))
ok "... the others are not read for each wave" $?

# Kill and resume; files that change. A model that answers slowly enough to be stopped.
model=$dir/model
cp -r "$demo" "$model"
chmod -R u+w "$model"
for i in $(seq 1 "$(few 12 20)"); do
    printf '{"id": "%d", "prompt": "%s", "max_tokens": 120, "ignore_eos": true, "temperature": 0}\n' "$i" "${rain:i}"
done >"$dir/in.jsonl"
started() { # PID : waits until some results are there
    for _ in $(seq 1 500); do
        [ "$(grep -c '"text"' "$dir/long.jsonl.partial" 2>/dev/null)" -gt 0 ] 2>/dev/null && return 0
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}
"$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/one.jsonl" -q --force --deterministic-ids 2>/dev/null
long=(run -m "$model" -i "$dir/in.jsonl" -o "$dir/long.jsonl" --max-seqs 1 --weights-memory 60% --deterministic-ids --speculate off)
"$cake" "${long[@]}" 2>"$dir/err" &
started $! && kill -9 $!
ok "killed under way" $?
wait $! 2>/dev/null
expect "continued" 0 "in addition .* results? of earlier runs" "$cake" "${long[@]}"
cmp "$dir/one.jsonl" "$dir/long.jsonl"
ok "... with the same bytes" $?
rm -f "$dir"/long.jsonl*
"$cake" "${long[@]}" 2>"$dir/err" &
started $! && touch "$model/model.safetensors"
wait $!
test $? -eq 1 && grep -q 'model.safetensors: was changed while it was read' "$dir/err"
ok "a file that is written to under way ends the run" $?
rm -f "$dir"/long.jsonl*
"$cake" "${long[@]}" 2>"$dir/err" &
started $! && truncate -s 3000000 "$model/model.safetensors"
ok "a file that is truncated under way" $?
wait $!
test $? -eq 1 && grep -Eq 'model.safetensors: (ends at byte 3000000, but data are expected up to|was changed while it was read)' "$dir/err"
ok "... ends the run with a message" $?
test "$(grep -c 'error' "$dir/err")" -eq 1
ok "... which is said once" $?

# A bundle whose streamed part is damaged is found when it is loaded.
read -r -a where <<<"$(tensor_at "$dir/staged/rank-0001" model.layers.6.mlp.down_proj.weight)"
printf '\377' | dd of="${where[0]}" bs=1 seek=$((where[1] + 1001)) conv=notrunc 2>/dev/null
expect "a damaged bundle" 1 "has the checksum [0-9a-f]{8}, but [0-9a-f]{8} was staged" mpi 2 run -m "$dir/staged" -p x --weights-memory 50%
finish
