#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lines with a context and its continuation: the log probability is that of transformers (float32; tests/golden/scores.py), tokens
# are divided as lm-evaluation-harness does, and the sum is that of the prompt's scores with echo.
. "$(dirname "$0")/../shell.sh"

run() { mpi "${np:-1}" run -m "$model" --deterministic-ids "$@"; }

# ---- the reference: context, continuation, tokens, log probability, whether all are the likeliest
while IFS=$'\t' read -r context continuation n logprob greedy; do
    printf '{"context": %s, "continuation": %s}\n' "$context" "$continuation" >>"$dir/in.jsonl"
    printf '%s\t%s\t%s\n' "$logprob" "$greedy" "$n" >>"$dir/want"
done <"$root/tests/golden/scores.tsv"
fields() { sed -nE 's/.*"logprob": ([-0-9.e]+), "is_greedy": (true|false), "tokens": ([0-9]+),.*/\1\t\2\t\3/p' "$1"; }
for np in 1 4; do
    run -i "$dir/in.jsonl" -o "$dir/f32.jsonl" --dtype f32 --kv-dtype f32 --force -q
    fields "$dir/f32.jsonl" | paste "$dir/want" - | awk -F'\t' '
        { off = $1 - $4; most = off > most ? off : -off > most ? -off : most; bad += $2 != $5 || $3 != $6 }
        END { print "    furthest from transformers: " most; exit !(NR > 15 && most < 1e-3 && !bad) }'
    ok "log probabilities on $np ranks are those of transformers" $?
done

# ---- the sum of what echo and logprobs say of the same tokens
ids=$(seq -s, 20 90)
for i in 1 2 3; do
    printf '{"context": [%s], "continuation": [%s]}\n' "$ids" "$(seq -s, 30 $((30 + i)))"
    printf '{"prompt": [%s, %s], "echo": true, "max_tokens": 0, "logprobs": 0}\n' "$ids" "$(seq -s, 30 $((30 + i)))"
done >"$dir/echo.jsonl"
run -i "$dir/echo.jsonl" -o "$dir/echoed.jsonl" -q
awk -F'"token_logprobs": \\[' '
    /"is_greedy"/ { sum = $0; sub(/.*"logprob": /, "", sum); sub(/,.*/, "", sum); n = $0; sub(/.*"tokens": /, "", n); next }
    { sub(/\].*/, "", $2); count = split($2, each, ", "); for (i = count - n + 1; i <= count; i++) sum -= each[i]
      bad += sum > 1e-5 || sum < -1e-5; lines++ }
    END { exit !(lines == 3 && !bad) }' "$dir/echoed.jsonl"
ok "a continuation's sum is that of the prompt's last scores" $?

# ---- what is wrong, and what is not
{
    echo '{"id": "a", "context": "Once", "continuation": ""}'
    echo '{"id": "b", "continuation": " upon"}'
    echo '{"id": "c", "context": "Once", "continuation": " upon", "temperature": 0.5}'
    echo '{"id": "d", "context": "Once", "continuation": 7}'
    echo '{"id": "e", "context": [], "continuation": " upon"}'
    echo '{"id": "f", "context": "Once", "continuation": [99999999]}'
    echo '{"id": "g", "prompt": "Once", "context": "a dataset has its own", "max_tokens": 2}'
    echo '{"custom_id": "h", "method": "POST", "url": "/v1/completions", "body": {"prompt": "a", "context": "b"}}'
    echo '{"id": "i", "context": "Once", "continuation": " upon", "question": 1, "user": "u"}'
} >"$dir/bad.jsonl"
expect "bad continuations fail alone" 3 'requests failed' run -i "$dir/bad.jsonl" -o "$dir/bad-out.jsonl" --max-tokens 2
while IFS='|' read -r id text; do
    grep "\"$id\"" "$dir/bad-out.jsonl" | grep -Fq -- "$text"
    ok "... $id: $text" $?
done <<'SAID'
a|continuation is empty; expected a string or an array of token ids
b|context is missing; expected a string or an array of token ids, beside the continuation
c|a context and its continuation take no temperature; take it out
d|continuation is 7; expected a string or an array of token ids
e|context is an empty array; expected one token id or more
f|token id 99999999 at position
g|"finish_reason"
h|context is not a field of a request; take it out
i|"is_greedy"
SAID

# ---- other forms
run -i "$dir/in.jsonl" -o "$dir/out.txt" -q
test "$(wc -l <"$dir/out.txt")" -eq "$(wc -l <"$dir/in.jsonl")" && ! grep -vqE '^-[0-9.e-]+$' "$dir/out.txt"
ok "text has the sums" $?
run -i "$dir/in.jsonl" -o "$dir/out.jsonl" -q
if "$cake" info 2>/dev/null | grep -q '^HDF5  *[0-9]'; then
    run -i "$dir/in.jsonl" -o "$dir/out.h5" -q
    "$cake" merge "$dir/out.h5" -o "$dir/merged.jsonl" 2>/dev/null
    cmp "$dir/out.jsonl" "$dir/merged.jsonl"
    ok "HDF5 keeps their lines" $?
fi
fields "$dir/out.jsonl" | cut -f1 | diff - "$dir/out.txt"
ok "... which are those of JSONL" $?
expect "plan counts them" 0 'requests' mpi 1 plan -m "$model" -i "$dir/in.jsonl"
expect "tokenize shows both texts as one" 0 '"prompt": "Once upon a time"' \
    mpi 1 tokenize -m "$model" -i <(echo '{"context": "Once upon", "continuation": " a time"}') --input-format jsonl
finish
