#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Promise 1: the result file depends on model, requests and seed only. One sha256 for every number of ranks and
# threads, every size of waves, every amount of KV memory, and for the input in reverse.
. "$(dirname "$0")/../shell.sh"

# Long prompts that are cut, answers long enough to be evicted, greedy and sampled, with seeds and without.
story="Continue the story: once upon a time there was a little girl who lived in a house by the wood with her mother"
n=$(few 6 18) growing=$(few 4 6) growth=$(few 6 12)
for i in $(seq 1 "$n"); do
    long=
    for _ in $(seq 1 $((i % 6))); do long="$long $story"; done
    case $((i % 3)) in
    0) how='"temperature": 0' ;;
    1) how='"temperature": 0.9, "top_p": 0.95, "seed": '$i ;;
    2) how='"temperature": 1.1, "top_k": 40' ;;
    esac
    printf '{"id": "r%02d", "messages": [{"role": "user", "content": "%s and %d.%s"}], "max_tokens": %d, "ignore_eos": %s, "logprobs": 2, "return_token_ids": true, %s}\n' \
        "$i" "$story" "$i" "$long" $((growth + 8 + growth * (i % 7))) "$([ $((i % 4)) -eq 0 ] && echo true || echo false)" "$how"
done >"$dir/in.jsonl"
# Short prompts that grow long together: with little KV memory some have to give way.
for i in $(seq 1 "$growing"); do
    printf '{"id": "g%d", "prompt": "There was once a king who had %d", "max_tokens": 170, "ignore_eos": true, "temperature": %s}\n' \
        "$i" "$i" "0.$i"
done >>"$dir/in.jsonl"
# Several answers to one prompt, which share its pages, and prompts whose own tokens are scored.
for i in 1 2 3; do
    printf '{"id": "n%d", "prompt": "%s%s", "n": %d, "max_tokens": %d, "ignore_eos": true, "temperature": 0.9, "min_p": 0.01, "logprobs": 1}\n' \
        "$i" "$story" "$([ "$i" -eq 2 ] && echo " $story $story")" $((i + 2)) $((growth * 4 + 42 - 20 * i))
    printf '{"id": "e%d", "prompt": "%s and %s", "n": %d, "max_tokens": %d, "echo": true, "logprobs": 2, "repetition_penalty": 1.2}\n' \
        "$i" "$story" "$story" "$i" $((12 * (i - 1)))
done >>"$dir/in.jsonl"
tac "$dir/in.jsonl" >"$dir/reverse.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    mpi "$np" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$out.jsonl" --force --deterministic-ids -q "$@" \
        2>"$dir/$out.err" || cat "$dir/$out.err"
}

same() { # NAME OUT
    cmp "$dir/one.jsonl" "$dir/$2.jsonl"
    ok "$1" $?
}

mpi 2 run -m "$model" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/demo.jsonl" --deterministic-ids -q
cmp "$root/jobs/demo/expected.jsonl" "$dir/demo.jsonl"
ok "the demo's answers are those of every build" $?

answer 1 one
test "$(wc -l <"$dir/one.jsonl")" -eq $((n + growing + 6))
ok "one rank answers all" $?
sed -n '/"id": "n/s/"n": [0-9]/"n": 1/p' "$dir/in.jsonl" >"$dir/alone.jsonl"
mpi 1 run -m "$model" -i "$dir/alone.jsonl" -o "$dir/alone.out.jsonl" -q
test "$(grep '"id": "n' "$dir/one.jsonl" | grep -o '"choices": \[{"index": 0, "text": "[^"]*"' | sed 's/.*"text"/"text"/')" = \
    "$(grep -o '"text": "[^"]*"' "$dir/alone.out.jsonl")"
ok "the first of several answers is the one without n" $?
test "$(grep '"id": "n3"' "$dir/one.jsonl" | grep -o '"text": "[^"]*"' | sort -u | wc -l)" -eq 5
ok "... and the others differ" $?
echo "    sha256 $(sha256sum <"$dir/one.jsonl")"
# Without logprobs a token is drawn from the head's best scores alone where those are enough.
sed 's/"logprobs": 2, //' "$dir/in.jsonl" >"$dir/bare.jsonl"
mpi 1 run -m "$model" -i "$dir/bare.jsonl" -o "$dir/bare.out.jsonl" -q
tokens() { grep -o '"id": "r[0-9]*"\|"token_ids": \[[^]]*\]' "$1"; }
test "$(tokens "$dir/one.jsonl" | wc -l)" -ge $((2 * n)) &&
    cmp <(tokens "$dir/one.jsonl") <(tokens "$dir/bare.out.jsonl")
ok "logprobs do not change tokens" $?
for np in 2 3 4; do
    answer "$np" "np$np"
    same "$np ranks" "np$np"
done
answer 1 threads --threads 2
same "2 threads" threads
answer 2 threads22 --threads 2
same "2 ranks of 2 threads" threads22
np=$(few 1 2)
answer "$np" decode --threads 3 --threads-decode 2 --report "$dir/decode.json"
same "$np ranks of 3 threads, 2 for generated tokens" decode
test "$(grep -c '"threads": 3, "threads_decode": 2' "$dir/decode.json")" -eq "$np"
ok "... which the report has" $?
for chunk in $(few 64 "64 100 1000"); do
    answer 2 "chunk$chunk" --chunk "$chunk"
    same "--chunk $chunk" "chunk$chunk"
done
for seqs in $(few 5 "1 2 5"); do
    answer 2 "seqs$seqs" --max-seqs "$seqs"
    same "--max-seqs $seqs" "seqs$seqs"
done
for np in 1 3; do
    # a page of all 8 layers is 128 KiB; the longest sequence alone needs 5
    answer "$np" "kv$np" --kv-memory $((1050 / np))K --speculate "$steady" --report "$dir/report$np.json"
    same "$np ranks with little KV memory" "kv$np"
    grep -Eq '"evictions": [1-9]' "$dir/report$np.json"
    ok "... sequences were evicted" $?
done
mpi 2 run -m "$model" -i "$dir/reverse.jsonl" -o "$dir/reverse.out.jsonl" --deterministic-ids -q
# the index is the line's number and belongs to the order; all else must not
strip() { sed -E 's/"index": ?[0-9]+, ?//' "$1" | sort; }
cmp <(strip "$dir/one.jsonl") <(strip "$dir/reverse.out.jsonl")
ok "the input in reverse" $?

# Weights in int8: other numbers, the same promise.
cp "$dir/one.jsonl" "$dir/whole.jsonl"
answer 1 one --dtype int8
cmp -s "$dir/one.jsonl" "$dir/whole.jsonl"
ok "int8 is another model" $((1 - $?))
for np in $(few 3 "2 3 4"); do
    answer "$np" "int8np$np" --dtype int8 --threads $((1 + np % 2))
    same "int8, $np ranks" "int8np$np"
done
answer 2 int8chunk --dtype int8 --chunk 64
same "int8, --chunk 64" int8chunk
answer 1 int8seqs --dtype int8 --max-seqs 1
same "int8, --max-seqs 1" int8seqs
for isa in $(few avx2 "avx2 avx512bf16"); do
    "$cake" info | grep -q "^isa .*$isa " || continue
    [ -n "${CAKE_ALL:-}" ] || ! "$cake" info | grep -q "^isa  *$isa" || continue # it is what the others were computed with
    answer 1 one --dtype int8 --isa "$isa"
    answer 2 "int8$isa" --dtype int8 --isa "$isa" --threads 2 --chunk 100
    same "int8, $isa, 2 ranks, --chunk 100" "int8$isa"
done
finish
