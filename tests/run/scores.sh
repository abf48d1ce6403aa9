#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lines with a context and its continuation, and whole texts (--task score): the log probability is that of transformers (float32;
# tests/golden/scores.py), tokens are divided as lm-evaluation-harness does, and the sum is that of the prompt's scores with echo.
. "$(dirname "$0")/../shell.sh"

run() { mpi "${np:-1}" run -m "$model" --deterministic-ids "$@"; }

# ---- the reference: context, continuation, tokens, log probability, whether all are the likeliest
while IFS=$'\t' read -r context continuation n logprob greedy; do
    if [ "$context" = null ]; then
        printf '{"prompt": %s}\n' "$continuation" >>"$dir/texts.jsonl"
        printf '%s\t%s\t%s\n' "$logprob" "$greedy" "$n" >>"$dir/texts.want"
    else
        printf '{"context": %s, "continuation": %s}\n' "$context" "$continuation" >>"$dir/in.jsonl"
        printf '%s\t%s\t%s\n' "$logprob" "$greedy" "$n" >>"$dir/want"
    fi
done <"$root/tests/golden/scores.tsv"
fields() { sed -nE 's/.*"logprob": ([-0-9.e]+), "is_greedy": (true|false), "tokens": ([0-9]+),.*/\1\t\2\t\3/p' "$1"; }
# compare WANT RESULTS LEAST: each line's log probability, whether all are the likeliest, and tokens; at least LEAST lines
compare() {
    fields "$2" | paste "$1" - | awk -F'\t' -v least="$3" '
        { off = $1 - $4; most = off > most ? off : -off > most ? -off : most; bad += $2 != $5 || $3 != $6 }
        END { print "    furthest from transformers: " most; exit !(NR >= least && most < 1e-3 && !bad) }'
}
for np in 1 4; do
    run -i "$dir/in.jsonl" -o "$dir/f32.jsonl" --dtype f32 --kv-dtype f32 --force -q
    compare "$dir/want" "$dir/f32.jsonl" 16
    ok "log probabilities on $np ranks are those of transformers" $?
    run -i "$dir/texts.jsonl" -o "$dir/texts-f32.jsonl" --task score --context 64 --dtype f32 --kv-dtype f32 --force -q \
        --report "$dir/report.json"
    compare "$dir/texts.want" "$dir/texts-f32.jsonl" 6
    ok "... and of texts in windows" $?
    awk -F'\t' '{ nats -= $1; tokens += $3 } END { printf "%.4f %d %.4f\n", nats, tokens, exp(nats / tokens) }' "$dir/texts.want" |
        { read -r nats tokens perplexity
          awk -F'[:,]' -v nats="$nats" -v tokens="$tokens" -v perplexity="$perplexity" '
              /"scores"/ { for (i = 1; i < NF; i++) { key = $i; gsub(/[ {"]/, "", key); have[key] = $(i + 1) + 0 } }
              function near(a, b) { return a - b < 1e-3 * b && b - a < 1e-3 * b }
              END { exit !(near(have["nats"], nats) && have["tokens"] == tokens && near(have["perplexity"], perplexity)) }' \
              "$dir/report.json"; }
    ok "... whose perplexity the report has" $?
done
cut -d'"' -f4- "$dir/texts.jsonl" | sed 's/"}$//' >"$dir/texts.txt"
run -i "$dir/texts.txt" -o "$dir/texts-txt.jsonl" --task score --context 64 --dtype f32 --kv-dtype f32 -q
cut -d, -f2- "$dir/texts-f32.jsonl" | diff - <(cut -d, -f2- "$dir/texts-txt.jsonl")
ok "lines of a .txt file are scored alike" $?
expect "plan counts the windows" 0 'requests' mpi 1 plan -m "$model" -i "$dir/texts.jsonl" --task score --context 64

# ---- the same bits on any ranks and replicas, in any waves, with little memory, after a stop
for i in $(seq 8); do grep -hv 'queen The king' "$dir/in.jsonl" "$dir/texts.jsonl"; done >"$dir/both.jsonl"
score() { mpi "$1" run -m "$model" --deterministic-ids -i "$dir/both.jsonl" --task score --context 64 -q "${@:2}"; }
score 1 -o "$dir/both-1.jsonl" --report "$dir/both-1.json"
for how in "2 --chunk 64" "3 --max-seqs 3" "4 --kv-memory 256K" "4 --replicas 2" "4 --replicas 4 --max-seqs 2"; do
    # shellcheck disable=SC2086
    score $how -o "$dir/both-2.jsonl" --force
    alike "$dir/both-1.jsonl" "$dir/both-2.jsonl"
    ok "the same bits: np $how" $?
done
killed 5 "$dir/both-3.jsonl" "$cake" run -m "$model" --deterministic-ids -i "$dir/both.jsonl" --task score --context 64 -q --max-seqs 1 -o "$dir/both-3.jsonl"
test -e "$dir/both-3.jsonl.partial" &&
    score 3 -o "$dir/both-3.jsonl" --resume must --report "$dir/both-3.json" && alike "$dir/both-1.jsonl" "$dir/both-3.jsonl"
ok "a run that was killed goes on to the same bits" $?
sums() { sed -nE 's/.*"texts": ([0-9]+), "tokens": ([0-9]+), "bytes": ([0-9]+), .*"perplexity": ([0-9]+\.[0-9]{3}).*/\1 \2 \3 \4/p' "$1"; }
test -n "$(sums "$dir/both-1.json")" && test "$(sums "$dir/both-1.json")" = "$(sums "$dir/both-3.json")"
ok "... and its report has the perplexity of both runs" $?

# ---- prompts that are cut
ids=$(seq -s, 20 119)
{
    echo "{\"context\": [$ids], \"continuation\": [31, 32, 33], \"truncate_prompt_tokens\": -1}"
    echo "{\"context\": [$(seq -s, 58 119)], \"continuation\": [31, 32, 33]}"
    echo "{\"prompt\": [$ids], \"truncate_prompt_tokens\": 10, \"max_tokens\": 5, \"temperature\": 0}"
    echo "{\"prompt\": [$(seq -s, 110 119)], \"max_tokens\": 5, \"temperature\": 0}"
    echo "{\"prompt\": [$ids], \"truncate_prompt_tokens\": -1, \"max_tokens\": 5, \"temperature\": 0}"
    echo "{\"prompt\": [$(seq -s, 61 119)], \"max_tokens\": 5, \"temperature\": 0}"
    echo "{\"context\": [$ids], \"continuation\": [31, 32, 33]}"
    echo "{\"prompt\": \"Once upon a time\", \"truncate_prompt_tokens\": 2, \"max_tokens\": 0, \"echo\": true, \"logprobs\": 0}"
} >"$dir/cut.jsonl"
run -i "$dir/cut.jsonl" -o "$dir/cut-out.jsonl" --context 64 -q
for i in 1 3 5; do
    diff <(sed -n "${i}p" "$dir/cut-out.jsonl" | cut -d, -f3-) <(sed -n "$((i + 1))p" "$dir/cut-out.jsonl" | cut -d, -f3-)
    ok "a prompt that is cut is its last tokens ($i)" $?
done
sed -n 7p "$dir/cut-out.jsonl" | grep -q 'context and continuation have 103 tokens; expected at most 65; shorten them'
ok "without it they are too long" $?
sed -n 8p "$dir/cut-out.jsonl" | grep -q '"prompt_tokens": 2, .*"tokens": \["[^"]*", "[^"]*"\]'
ok "... and its echo has two" $?

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

# ---- prompt_logprobs: the numbers of echo, and of the best ones their ranks; the same bits with replicas
while IFS=$'\t' read -r _ text _; do
    printf '{"prompt": %s, "prompt_logprobs": 3, "max_tokens": 2, "temperature": 0}\n' "$text"
    printf '{"prompt": %s, "echo": true, "logprobs": 0, "max_tokens": 0}\n' "$text"
done < <(grep -v '""' "$root/tests/golden/scores.tsv") >"$dir/ranks.jsonl"
run -i "$dir/ranks.jsonl" -o "$dir/ranked.jsonl" -q
python=${CAKE_PYTHON:-python3}
[ -z "${CI:-}" ] || command -v "$python" >/dev/null
ok "python3 is there where CI is set" $?
! command -v "$python" >/dev/null || "$python" - "$dir/ranked.jsonl" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
beyond = 0
for asked, echoed in zip(lines[::2], lines[1::2]):
    entries, own = asked["prompt_logprobs"], echoed["logprobs"]["token_logprobs"]
    assert entries[0] is None and len(entries) == len(own) == asked["usage"]["prompt_tokens"] and "logprobs" not in asked
    for entry, logprob in zip(entries[1:], own[1:]):
        first, *others = entry.values()
        assert first["logprob"] == logprob and [o["rank"] for o in others] == [r for r in (1, 2, 3) if r != first["rank"]]
        assert all((o["logprob"] > logprob) == (o["rank"] < first["rank"]) or o["logprob"] == logprob for o in others)
        beyond += first["rank"] > 3
assert len(lines) > 30 and beyond > 100
PYTHON
ok "logprobs of prompts are those of echo, with ranks" $?
np=4 run -i "$dir/ranks.jsonl" -o "$dir/ranked-4.jsonl" --replicas 2 -q
alike "$dir/ranked.jsonl" "$dir/ranked-4.jsonl"
ok "... the same bits on two replicas" $?
{
    echo '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once upon", "prompt_logprobs": 0, "max_tokens": 1, "n": 2, "logprobs": 1}}'
    echo '{"custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "Hi"}], "prompt_logprobs": 1, "max_tokens": 1}}'
    echo '{"custom_id": "c", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once upon", "prompt_logprobs": 21}}'
} >"$dir/forms.jsonl"
run -i "$dir/forms.jsonl" -o "$dir/forms-out.jsonl" -q
test "$(sed -n 1p "$dir/forms-out.jsonl" | grep -o '"prompt_logprobs": \[null, {"' | wc -l)" -eq 2 &&
    sed -n 2p "$dir/forms-out.jsonl" | grep -q '"total_tokens": [0-9]*}, "prompt_logprobs": \[null, {"[0-9]*": {"logprob": -' &&
    sed -n 3p "$dir/forms-out.jsonl" | grep -q 'prompt_logprobs is 21; expected an integer from 0 to 20'
ok "... in choices, or in the body of a chat" $?

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
    echo '{"id": "j", "context": "Once", "continuation": [20, 21, 22], "truncate_prompt_tokens": 3}'
    echo '{"id": "k", "prompt": "Once", "truncate_prompt_tokens": 0}'
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
f|continuation: token id 99999999 at position 0
g|"finish_reason"
h|context is not a field of a request; take it out
i|"is_greedy"
j|the continuation has 3 tokens; expected fewer than the 3 that are kept
k|truncate_prompt_tokens is 0; expected an integer from 1, or -1 for what fits
SAID
{
    echo '{"id": "a", "prompt": "Once upon", "temperature": 0.5}'
    echo '{"id": "b", "messages": [{"role": "user", "content": "Once"}]}'
    echo '{"id": "c", "prompt": ""}'
    echo '{"id": "d", "context": "Once", "continuation": " upon"}'
} >"$dir/bad-texts.jsonl"
expect "bad texts fail alone" 3 'requests failed' run -i "$dir/bad-texts.jsonl" -o "$dir/bad-texts-out.jsonl" --task score
while IFS='|' read -r id text; do
    grep "\"$id\"" "$dir/bad-texts-out.jsonl" | grep -Fq -- "$text"
    ok "... $id: $text" $?
done <<'SAID'
a|a prompt that is scored takes no temperature; take it out
b|messages are not scored (--task score); give the text as \"prompt\"
c|has no token whose probability could be given
d|"is_greedy"
SAID
expect "a text that is scored has no system message" 2 'task score and --system' run -p x --task score --system y
run -p 'Once upon a time' --task score -q | grep -q '"logprob": -'
ok "-p is scored, too" $?

# ---- bytes of what is scored
{
    echo '{"context": "Once upon a ", "continuation": "time"}'
    echo '{"context": "   ", "continuation": "x"}'
    echo '{"context": "", "continuation": "Once"}'
    echo '{"context": [20, 21], "continuation": "Once"}'
    echo '{"prompt": "Once upon", "truncate_prompt_tokens": -1, "max_tokens": 4096}'
    echo '{"context": "Once", "continuation": " upon", "prompt": null}'
} >"$dir/bytes.jsonl"
run -i "$dir/bytes.jsonl" -o "$dir/bytes-out.jsonl" -q
test "$(sed -nE 's/.*"bytes": ([0-9]+),.*/\1/p' "$dir/bytes-out.jsonl" | tr '\n' ' ')" = "5 4 4 4 5 "
ok "blanks before a continuation are its bytes, too" $?
sed -n 5p "$dir/bytes-out.jsonl" | grep -q 'max_tokens is 4096, and a context of [0-9]* leaves no token of the prompt'
ok "an answer that leaves no room for any prompt" $?

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
