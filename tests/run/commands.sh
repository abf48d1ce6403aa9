#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command and every form of input and output, as a user types them.
. "$(dirname "$0")/../shell.sh"

run() { "$cake" run -m "$model" "$@"; }

expect "--help" 0 'mpirun -np N cake-mpi' "$cake" --help
test ! -s "$dir/err"
ok "... on standard output" $?
for command in run tokenize plan info; do
    expect "$command --help" 0 "cake-mpi .*$command" "$cake" "$command" --help
done
expect "--version" 0 '^cake-mpi [0-9]+\.[0-9]+' "$cake" --version
expect "info" 0 'hwloc +[0-9]+\.' "$cake" info
expect "info: MPI" 0 'MPI +.*\(MPI [34]' "$cake" info
expect "info: limits" 0 'locked memory' "$cake" info
expect "info: huge pages" 0 '^huge pages  (allowed|not allowed|unknown)' "$cake" info
expect "info of a model" 0 'qwen3, 3542720 parameters, bf16' "$cake" info -m "$model"
expect "info of a model whose layers have two kinds of heads" 0 '4 query and 2 KV heads of 12 or 1 of 20,' \
    "$cake" info -m "$root/tests/golden/gemma4-dense"
expect "info of a mixture without dense layers, with latent attention" 0 '4 query heads on latents of 30 values$' \
    "$cake" info -m "$root/tests/golden/mistral4-scaled"
cp -r "$model" "$dir/mute"
echo '{% if %}' >"$dir/mute/chat_template.jinja"
expect "info of a model whose template does not work" 1 'chat_template.jinja:1: an expression is missing' "$cake" info -m "$dir/mute"
rm "$dir/mute/tokenizer.json"
expect "... or without a tokenizer" 1 'tokenizer.json' "$cake" info -m "$dir/mute"
expect "... which plan says, too" 1 'tokenizer.json' "$cake" plan -m "$dir/mute"
expect "a model without a name" 2 '"" is not a name; is a variable unset\?' "$cake" run -m "" -p x
expect "info of no model" 1 'nowhere' "$cake" info -m "$dir/nowhere"
expect "info under mpirun speaks once" 0 'hwloc' mpi 3 info
test "$(grep -c '^hwloc' "$dir/out")" -eq 1
ok "... once" $?

# run -p: the answer streams to standard output, and nothing else does
run -p 'What is 37 + 45?' >"$dir/out" 2>"$dir/err"
printf '37 + 45 = 82.\n' | cmp - "$dir/out" && test ! -s "$dir/err"
ok "run -p prints the answer alone" $?
if ! command -v script >/dev/null; then echo "  a terminal: skipped, there is no script(1)"; else
    CAKE_PROGRESS=auto script -qec "$cake -m $model -p 'What is 37 + 45?'" /dev/null </dev/null | tr -d "\r" >"$dir/out"
    printf '37 + 45 = 82.\n' | cmp - "$dir/out"
    ok "... on a terminal, too" $?
fi
expect "... with -v all messages" 0 '^cake-mpi: 1 request \(0 failed\)' run -p 'What is 37 + 45?' -v
grep -q '^cake-mpi: rank  host' "$dir/err" && grep -q '^cake-mpi:    0  ' "$dir/err"
ok "... the table of its rank, too" $?
expect "... with --log info those of other runs" 0 '^cake-mpi: 1 request \(0 failed\)' run -p 'What is 37 + 45?' --log info
"$cake" -m "$model" -p 'Spell the word garden.' -q >"$dir/out" 2>"$dir/err"
printf 'g-a-r-d-e-n.\n' | cmp - "$dir/out" && test ! -s "$dir/err"
ok "run is the default command, -q is quiet" $?
# another end than the tokenizer's is warned of once, by name; also where one answer streams
mkdir "$dir/ends" && ln -s "$(realpath "$model")"/* "$dir/ends/" && rm "$dir/ends/generation_config.json" "$dir/ends/config.json" &&
    sed 's/"eos_token_id": 2/"eos_token_id": 3/' "$model/config.json" >"$dir/ends/config.json"
expect "an eos_token that ends nothing" 0 "ends: the tokenizer's eos_token [0-9]+ \(\"<.im_end.>\"\) ends no answer: the model's eos_token_id is 3 \(" \
    "$cake" -m "$dir/ends" -p x -p y --max-tokens 1
test "$(grep -c eos_token "$dir/err")" -eq 1
ok "... once" $?
expect "... also with one -p" 0 "^cake-mpi: warning: .*eos_token" "$cake" -m "$dir/ends" -p x --max-tokens 1
expect "a stop text" 0 '^37 \+ $' run -p 'What is 37 + 45?' --stop 45
expect "defaults from the environment" 0 '^37$' env CAKE_MAX_TOKENS=2 "$cake" -m "$model" -p 'What is 37 + 45?'
expect "the command line wins" 0 '^37 $' env CAKE_MAX_TOKENS=1 "$cake" -m "$model" -p 'What is 37 + 45?' --max-tokens 3
printf 'model: %s\nprompt: ["What is 37 + 45?"]\nmax-tokens: 2\nstop: [never, so]\nquiet: true\ndirectory: of another command\n' "$model" >"$dir/job.yaml"
expect "options from a file" 0 '^37$' "$cake" --config "$dir/job.yaml" --report "$dir/report.json"
grep -q '"settings": \["model: .*", "prompt: What is 37 + 45?", "max-tokens: 2", "stop: never", "stop: so", ' "$dir/report.json" && test ! -s "$dir/err"
ok "... the report has them" $?
expect "... on all ranks, as of other commands" 0 '"generated": ?2[,}]' mpi 2 plan --json --config "$dir/job.yaml"
expect "... over the environment, and prompts over others" 0 '^41$' env CAKE_MAX_TOKENS=1 "$cake" --config "$dir/job.yaml" -p 'What is 41 + 41?'
expect "... named by it" 0 '^37$' env CAKE_CONFIG="$dir/job.yaml" "$cake"
expect "... which wins in lists, too" 0 '^37 \+ 45 = 82' "$cake" --config "$dir/job.yaml" --max-tokens 20 --stop none
while IFS='|' read -r text wanted; do
    printf '%b\n' "$text" >"$dir/bad.yaml"
    expect "settings: $text" 2 "^cake-mpi: error: usage: $dir/bad.yaml:$wanted" run -p x --config "$dir/bad.yaml"
done <<'END'
max_tokens: 3|1:1: 'max_tokens' is not an option; did you mean 'max-tokens'\\?
seed: 1\nfrob: 1|2:1: 'frob' is not an option; cake-mpi run --help lists
seed: 1\nmax-tokens: x|2:13: max-tokens: "x" is not an integer
model: [a]|1:9: model is a list, but takes one value
raw: maybe|1:6: raw: "maybe" is not true or false, 1 or 0
max-token: 3|1:1: 'max-token' is not an option; did you mean 'max-tokens'
stop: [null]|1:8: stop is empty
stop: []|1:8: stop is an empty list
seed:|1:6: seed is empty; expected an integer
temperature:|1:13: temperature is empty; expected a number
temperature: {a: 1}|1:14: temperature is a map; expected a number
dummy-weights: maybe|1:16: dummy-weights: "maybe" is not an integer
seed: 1\nseed: 2|2:1: 'seed' occurs twice; the first one is in line 1
seed: &a 1|1:7: anchors and aliases are not supported
\tseed: 1|1:1: a tab: YAML is indented by spaces
config: other|1:1: config: a configuration file cannot name another one
[seed]|1:1: a configuration file is a map of options by name; this is a list
END
# Words as other tools spell them; what falls away in silence elsewhere.
for word in true True TRUE; do
    printf 'quiet: %s\nraw: FALSE\nmax-tokens: null\nseed: ~\n' "$word" >"$dir/core.yaml"
    expect "settings of YAML's core schema: $word" 0 '^37 \+ 45 = 82' run -p 'What is 37 + 45?' --config "$dir/core.yaml"
    test ! -s "$dir/err"
    ok "... true" $?
done
for word in true False; do
    wanted=$([ $word = true ] && echo "^[^3]" || echo "^37\$")
    echo "dummy-weights: $word" >"$dir/dummy.yaml"
    expect "dummy-weights: $word" 0 "$wanted" run -p 'What is 37 + 45?' --max-tokens 2 --config "$dir/dummy.yaml"
    expect "... in the environment" 0 "$wanted" env CAKE_DUMMY_WEIGHTS=$word "$cake" -m "$model" -p 'What is 37 + 45?' --max-tokens 2
done
expect "an ambiguous option" 2 'usage: --max is ambiguous: --max-tokens, --max-seqs, --max-runtime$' run -p x --max 3
expect "an option of other commands" 2 '\-\-ranks is not an option of cake-mpi run; it belongs to plan and stage$' run -p x --ranks 3
expect "... by its letter" 2 '\-d is not an option of cake-mpi run; it belongs to stage$' run -p x -d 3
expect "a value that an option does not take" 2 '\-\-quiet takes no argument' run -p x --quiet=1
expect "underscores in options" 0 '^37$' run -p 'What is 37 + 45?' --max_tokens 2
expect "a slip in an option" 2 'did you mean --max-tokens\?' run -p x --maxtoken 2
newline=$("$cake" tokenize -m "$model" --raw -p "$(printf 'a\nb')" -q | grep -oE '"token_ids": \[[0-9]+, [0-9]+' | grep -oE '[0-9]+$')
echo "{\"prompt\": \"a\", \"max_tokens\": 3, \"logit_bias\": {\"$newline\": 100}}" >"$dir/newlines.jsonl"
expect "escapes in stop texts" 0 '"text": ?"", ?"finish_reason": ?"stop"' run -i "$dir/newlines.jsonl" --stop '\n'
expect "a slip in a variable" 0 'CAKE_MAXTOKENS in the environment belongs to no option and is ignored; did you mean CAKE_MAX_TOKENS\?' \
    env CAKE_MAXTOKENS=1 "$cake" -m "$model" -p x --max-tokens 1 -q
test "$(wc -l <"$dir/err")" -eq 1
ok "... said once, and nothing of our scripts' own" $?
mapfile -t variables < <(grep -ohE '\$\{CAKE_[A-Z_]+' "$root"/jobs/*.sbatch | tr -d '${' | sort -u)
[ ${#variables[@]} -ge 3 ] && env "${variables[@]/%/=x}" "$cake" -m "$model" -p x --max-tokens 1 -q >/dev/null 2>"$dir/err" && test ! -s "$dir/err"
ok "variables of the job scripts cause no warning: ${variables[*]}" $?
# Messages about requests: lines as editors count them, ids, the number of failed requests and the first of them.
printf '{"prompt": "a", "max_tokens": 1}\n\n{"id": "x", "prompt": "a", "top_p": 7}\n' >"$dir/bad.jsonl"
expect "failed requests are named at the end" 3 '1 request failed: the run is complete, its exit status is 3' run -i "$dir/bad.jsonl" -o "$dir/bad.out" -q
grep -q 'run: line 3 (id "x"): top_p is 7' "$dir/err"
ok "... by their line and id" $?
expect "... by plan, too" 3 'run: line 3 \(id "x"\): top_p is 7' "$cake" plan -m "$model" -i "$dir/bad.jsonl"
echo '{"prompt": "b", "max_tokens": 1}' >>"$dir/bad.jsonl"
expect "failed ones of earlier runs are counted" 3 'in addition 2 results of earlier runs \(1 failed: --retry-errors' run -i "$dir/bad.jsonl" -o "$dir/bad.out"
grep -q '1 request failed in an earlier run, none in this one: the run is complete, its exit status is 3' "$dir/err"
ok "... and the status is explained" $?
printf '\0\0\0\0\0\0\n{"prompt": "a", "tools": "x"}\n' >"$dir/nul.jsonl"
expect "a line of NUL bytes" 3 'line 1: invalid JSON: byte 0 is NUL' run -i "$dir/nul.jsonl"
grep -q 'line 2: only messages take tools; take it out' "$dir/err"
ok "... and tools of a plain prompt" $?
: >"$dir/empty.jsonl"
expect "an empty input" 0 'empty.jsonl: it has no prompts' run -i "$dir/empty.jsonl" -q
for i in 1 2; do
    echo "{\"custom_id\": \"c$i\", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"Once\"}}"
done >"$dir/completions.jsonl"
expect "completions without max_tokens" 0 'line 1 \(custom_id "c1"\), and perhaps others: /v1/completions without max_tokens' run -i "$dir/completions.jsonl" -q --context 20
test "$(wc -l <"$dir/err")" -eq 1
ok "... said once" $?
expect "... and not where the command line has it" 0 . run -i "$dir/completions.jsonl" -q --max-tokens 1
test ! -s "$dir/err"
ok "... quietly" $?
run -i "$dir/completions.jsonl" -q --max-tokens 1 -o "$dir/a
b"
expect "status shows names as merge does" 0 'a.x0ab: finished: 2 done' "$cake" status "$dir/a
b"
# Contradictory options, and outputs without a destination, are refused before anything is read.
while IFS='|' read -r words wanted; do
    # shellcheck disable=SC2086
    expect "clash: $words" 2 "^cake-mpi: error: usage: $wanted" run $words
done <<'END'
-i a -i b|--input is given twice, as "a" and as "b"
-p x -o a --output=b|--output is given twice
-p x --max-tokens 1 --max_tokens 2|--max-tokens is given twice
-i a -o b.txt --n 2|--n: a line of a .txt file holds one answer
-i a -o b.txt.gz --logprobs 2|--logprobs: a .txt file cannot hold
-i a -o b.txt --timing|--timing: a .txt file cannot hold
-p x --timing|--timing: a streamed answer
-p x --logprobs 1|--logprobs: a streamed answer
-i a --resume must|--resume must: without a result file there is nothing to resume
-i a -o - --retry-errors|--retry-errors: without a result file there is nothing to retry
-i a -o b --retry-errors --resume never|both --resume never and --retry-errors
-p x --input-format txt|both -p and --input-format
-p x --id-field k|--prompt-field and --id-field name fields of JSON lines or objects of HDF5: -p has none
-i a.txt --prompt-field k|--prompt-field and --id-field .*: .txt files have none
-i a.jsonl --input-format txt --id-field k|--prompt-field and --id-field .*: .txt files have none
-p x --raw --system s|both --raw and --system
-i a.jsonl --system s|--system: it applies to .txt files and -p only
-i a -o b.txt --shard 0/2|--shard: a .txt file does not tell
END
expect "... plan finds it, too" 2 '--n: a line of a .txt file' "$cake" plan -m "$model" -i a -o b.txt --n 2
expect "twice the same is once" 0 '^37$' run -p 'What is 37 + 45?' --max-tokens 2 --max-tokens 2
expect "settings that are nowhere" 1 'nowhere: cannot be opened' run -p x --config "$dir/nowhere"
expect "messages of one topic" 0 '^cake-mpi: debug: planner: ' run -p x --max-tokens 1 --device cpu --log warn,planner=debug
test "$(grep -vc '^cake-mpi: debug: planner: ' "$dir/err")" -eq 0
ok "... alone" $?
expect "a level that is none" 2 'log: "loud": levels are error, warn, info and debug' run -p x --log loud
expect "a topic that is none" 2 'log: "info,folder=debug": topics are answer, base, bench, ' run -p x --log info,folder=debug
expect "two levels" 2 'log: "placement=info,warn": the level of all topics comes first' run -p x --log placement=info,warn
expect "a level and -q" 2 'both -q and --log' run -p x --log info -q
for topic in $(grep -rhoE 'cake_(log|fail|log_now|file_read|json_load)\((CAKE_[A-Z]+, )?"[a-z]+"' "$root/src" "$root/kernels" "$root/bench" | grep -oE '"[a-z]+"' | sort -u | tr -d '"'); do
    expect "topic $topic" 0 . "$cake" info --log "info,$topic=error"
done
expect "-p twice gives JSONL" 0 '"index": ?1,.*"text": ?"g-a' run -p 'What is 1 + 1?' -p 'Spell the word garden.'
expect "-p with --n gives JSONL" 0 '"choices": \[\{"index": 0, "text": "g-a.*"index": 1, "text": "g-a' run --n 2 -p 'Spell the word garden.'
expect "weights from mapped files" 0 '^37 \+ 45 = 82' run -p 'What is 37 + 45?' --load mmap
expect "another way to load" 2 'is not one of read\|mmap' run -p 'What is 37 + 45?' --load copy
# The limit of locked memory holds without the capability to lock memory.
most=$(ulimit -H -l)
limited() { # KILOBYTES COMMAND...
    (ulimit -l "$1" && shift && if [ "$(id -u)" -eq 0 ]; then setpriv --bounding-set=-ipc_lock "$@"; else "$@"; fi)
}
if [ "$most" != unlimited ] && [ "$most" -lt 8192 ] || ! limited 64 true 2>/dev/null; then
    echo "  locked memory: skipped, the limit is $most and cannot be set"
else
    expect "locked memory" 0 '^37 \+ 45 = 82' limited 8192 "$cake" -m "$model" -p 'What is 37 + 45?' --mlock --kv-memory 1M
    expect "more than may be locked" 1 'mlock: [0-9.]+ MiB of memory would be locked.*KV cache.*allows this process 64.0 KiB' \
        limited 64 "$cake" -m "$model" -p 'What is 37 + 45?' --mlock --kv-memory 1M
    expect "... as plan knows too" 1 'mlock: ' limited 64 "$cake" plan -m "$model" --mlock --kv-memory 1M
fi
expect "penalties and filters from the command line" 0 '^[0-9]' run --repetition-penalty 1.1 --presence-penalty 0.1 \
    --frequency-penalty -0.1 --min-p 0.1 --temperature 0.1 -p 'What is 37 + 45?'
expect "--raw leaves the template out" 0 '"prompt_tokens": ?2' run --raw --max-tokens 2 -p 'What is' -p 1+1

# .txt in and out, with its escapes; a line that fails is empty, and its message goes to standard error
echo '{"prompt": "Once"}' >"$dir/lines.txt"
expect "lines of JSON under the name of text" 0 'lines.txt: looks like JSON Lines, but is read as text' run -i "$dir/lines.txt" --max-tokens 1 -q
printf '\n[\n {"prompt": "a"},\n {"prompt": "b"}\n]\n' >"$dir/array.json"
expect "an array over lines" 1 'array.json: is a JSON array' run -i "$dir/array.json"
expect "... from a pipe" 1 'standard input: is a JSON array' sh -c "cat '$dir/array.json' | '$cake' -m '$model' -i -"
test ! -s "$dir/out"
ok "... answers nothing" $?
printf 'What is 37 + 45?\n\nSpell the word garden.\n' >"$dir/in.txt"
expect "text in, text out" 0 . run -i "$dir/in.txt" -o "$dir/out.txt"
printf '37 + 45 = 82.\ng-a-r-d-e-n.\n' | cmp - "$dir/out.txt"
ok "... one answer a line" $?
run -i "$dir/in.txt" -o "$dir/out3.jsonl" -q
grep -q '"index": 2, ' "$dir/out3.jsonl" && test "$(wc -l <"$dir/out3.jsonl")" -eq 2
ok "... the index is the number of the line, blank ones counted" $?
run -i - --input-format txt -o "$dir/out2.txt" <"$dir/in.txt" 2>/dev/null
cmp "$dir/out.txt" "$dir/out2.txt"
ok "... from standard input" $?

# All forms in one file, broken lines among them; the order of the output is that of the input.
cat >"$dir/in.jsonl" <<'EOF'
{"id": "a", "prompt": "Once upon a time", "max_tokens": 4}
{"custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "What is 3 + 4?"}]}}
{"custom_id": "c", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once upon", "max_tokens": 3, "logprobs": 1}}
not JSON
{"id": 7, "messages": [{"role": "user", "content": "What is 3 + 4?"}], "return_token_ids": true}
{"id": "long", "prompt": "x", "max_tokens": 5, "temperature": 9}
{"id": "ids", "prompt": [1, 2, 3], "max_tokens": 1}
{"id": "far", "prompt": [1, 99999], "max_tokens": 1}
{"custom_id": "d", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "x"}], "frob": 1}}
EOF
printf '{"prompt": "a", "n": 2}\n{"prompt": "a", "max_tokens": 2}\n' >"$dir/n.jsonl"
expect "two answers have no room in a line of text" 3 'n is 2; a .txt file holds one answer per line' run -i "$dir/n.jsonl" -o "$dir/n.txt"
cat >"$dir/wrong.jsonl" <<'EOF'
{"prompt": "a", "logit_bias": {"99999": 1}}
{"prompt": "a", "stop_token_ids": [99999]}
{"prompt": "a", "min_tokens": 3, "max_tokens": 2}
EOF
expect "ids that the model has not" 3 'logit_bias has the token id 99999' run -i "$dir/wrong.jsonl"
grep -q 'stop_token_ids\[0\] is 99999' "$dir/out" && grep -q 'min_tokens is 3; expected at most max_tokens, 2' "$dir/out"
ok "... and more than is wanted" $?
expect "mixed forms, some broken" 3 '9 requests \(4 failed\)' mpi 2 run -m "$model" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --deterministic-ids
# Launchers report "has been aborted" for a nonzero status, so the status is explained before.
grep -q 'status 3: all requests are done, 4 of them failed; see .*/out.jsonl (the launcher' "$dir/err"
ok "... status 3 is explained under a launcher" $?
awk '/status 3/ { said = NR } /non-zero exit/ && !cried { cried = NR } END { exit !said || (cried && cried < said) }' "$dir/err"
ok "... before the launcher speaks" $?
run -i "$dir/in.jsonl" -o "$dir/alone.jsonl" 2>"$dir/err"
grep -q 'status 3' "$dir/err"
ok "... and not without one" $((! $?))
line() { sed -n "$1p" "$dir/out.jsonl" | grep -Eq -- "$3"; ok "$2" $?; }
line 1 "simple line" '"id": ?"a", ?"index": ?0, ?"text": '
line 2 "batch chat" '"custom_id": ?"b".*"status_code": ?200.*"chat.completion".*3 \+ 4 = 7\.'
line 3 "batch completion" '"custom_id": ?"c".*"text_completion".*"token_logprobs"'
line 4 "broken line" '"id": ?null, ?"index": ?3, ?"error".*invalid JSON'
line 5 "token ids" '"id": ?7,.*"prompt_token_ids": ?\[1.*"token_ids": ?\['
line 6 "a value out of range names its field" '"param": ?"temperature"'
line 7 "prompt as ids" '"id": ?"ids".*"prompt_tokens": ?3'
line 8 "an id beyond the vocabulary" '"error".*99999'
line 9 "an unknown field in a batch body" '"custom_id": ?"d".*"status_code": ?400.*frob'
"$cake" run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -q >"$dir/stdout.jsonl"
cmp "$dir/out.jsonl" "$dir/stdout.jsonl"
ok "standard output has the same lines in the same order" $?

mpi 2 run -m "$model" -i "$dir/in.jsonl" -o "$dir/timed.jsonl" --deterministic-ids -q --timing
[ "$(sed -nE 's/.*, "timing": \{"ttft_ms": ([0-9.]+), "total_ms": ([0-9.]+)\}\}$/\1 \2/p' "$dir/timed.jsonl" |
    awk '0 < $1 && $1 <= $2' | wc -l)" = 5 ] && sed 's/, "timing": {[^}]*}}$/}/' "$dir/timed.jsonl" | cmp - "$dir/out.jsonl"
ok "with their times each answer, and nothing else differs" $?

expect "the echo of a single token, with its logprobs" 0 '"token_logprobs": \[null, -' \
    run -i <(echo '{"prompt": [42], "echo": true, "logprobs": 0, "max_tokens": 1}') --input-format jsonl
expect "a closed standard input is no other file" 1 'standard input: cannot be read' \
    bash -c '"$0" run -m "$1" -i - <&-' "$cake" "$model"

# tokenize: no config, no weights
mkdir "$dir/tok"
cp "$model/tokenizer.json" "$model/tokenizer_config.json" "$model/chat_template.jinja" "$dir/tok"
expect "tokenize shows prompt and ids" 0 '"prompt": ?"<\|im_start\|>user\\nWhat is 1 \+ 1\?<\|im_end\|>\\n<\|im_start\|>assistant\\n", ?"token_ids": ?\[1, ?' \
    "$cake" tokenize -m "$dir/tok" -p 'What is 1 + 1?'
echo '{"text_config": {"vocab_size": 2000}}' >"$dir/tok/config.json"
expect "tokenize tells of ids that the model does not have" 0 'ids up to 2047, the model.s embedding 2000 rows' \
    "$cake" tokenize -m "$dir/tok" -p 'x'
echo '{"vocab_size": ' >"$dir/tok/config.json"
expect "... and needs no config.json" 0 '^\{"id": null' "$cake" tokenize -m "$dir/tok" -p 'x'
rm "$dir/tok/config.json"
expect "tokenize tells of broken lines" 3 'invalid JSON' "$cake" tokenize -m "$dir/tok" -i "$dir/in.jsonl"

cmp <("$cake" tokenize -m "$model" -i "$root/jobs/demo/prompts.jsonl" --threads 1) \
    <("$cake" tokenize -m "$model" -i "$root/jobs/demo/prompts.jsonl" --threads 4)
ok "... the same with one thread and with four" $?
printf '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "a"}}\n%.0s' 1 2 >"$dir/twice.jsonl"
expect "... and of an id that occurs twice" 3 '"index": 1, "error".*as in an earlier line' \
    "$cake" tokenize -m "$dir/tok" -i "$dir/twice.jsonl"

expect "tokenize leaves no half of a file" 1 'cannot be written: File too large' bash -c \
    'trap "" XFSZ; ulimit -f 4; exec "$0" tokenize -m "$1" -i "$2" -o "$3"' "$cake" "$model" \
    "$root/jobs/demo/prompts.jsonl" "$dir/half.jsonl"
test ! -e "$dir/half.jsonl"
ok "... it is removed" $?

# plan: no weights
cp "$model/config.json" "$dir/tok"
expect "plan shows who owns what" 0 '^1 +.* 4-7 ' mpi 2 plan -m "$model"
expect "plan counts the tokens of prompts" 0 'min 7, median 22, p99 53, max 53; total 1333' \
    "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl"
expect "plan tells of what does not fit" 3 '43 of them because they do not fit the context of 20' \
    "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl" --context 20
echo '{"id": 1}' >"$dir/none.jsonl"
expect "plan of a file of which nothing can be used" 3 'requests  1, of which 1 would fail' "$cake" plan -m "$model" -i "$dir/none.jsonl"
expect "plan says what drafts cost" 0 '^drafts    up to 16 tokens an answer and [0-9]+ a wave; a pass of one answer takes [0-9.]+ ms, with 16 drafts [0-9.]+ ms' \
    "$cake" plan -m "$model"
expect "... unless there are none" 1 '^0$' sh -c '"$0" plan -m "$1" --speculate off --json | grep -c drafts' "$cake" "$model"
expect "plan without weights" 0 'waves' "$cake" plan -m "$dir/tok" --dummy-weights -i "$dir/in.txt"
expect "plan as one object" 0 '^  "prediction": ."least": ."generated": 60, ' \
    "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl" --json
expect "plan says how long it would take, by rates that it measures" 0 '^time      .* to .* predicted.*\(7844 tokens' \
    env -u CAKE_RATES "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl"
echo a >"$dir/a.txt"
"$cake" plan -m "$model" -i "$dir/a.txt" --max-tokens 1 >"$dir/out" && grep -q '^time ' "$dir/out" && ! grep -q 'node-hours' "$dir/out"
ok "... no node-hours of a moment" $?
expect "a job's line becomes its plan by one word" 0 '^time .*\(7844 tokens' "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl" \
    -o "$dir/none/out.jsonl" --resume must --temperature 0.3 --load mmap --report "$dir/none/report" --stop .
expect "... all answers counted" 0 '^time .*\([0-9]{5} tokens' "$cake" plan -m "$model" -i "$root/jobs/demo/prompts.jsonl" --n 4
test ! -e "$dir/none"
ok "... and nothing is written" $?
expect "... or about, where it knows nothing" 0 '^0 .* 0-7 .* 0 %' "$cake" plan -m "$model"
rate() { # NAME HOST VALUE
    echo "{\"name\": \"$1\", \"isa\": \"ref\", \"host\": \"$2\", \"threads\": 1, \"value\": $3}"
}
rates() { "$cake" plan -m "$model" --isa ref --threads 1 --rates "$dir/rates" "$@"; }
{ rate peak.f32 a 3 && rate peak.f32 a 7 && rate peak.copy b 5 && rate peak.read a 9; } >"$dir/rates"
expect "rates of another time" 0 'rates +7 GFLOP/s of products and 9 GB/s' rates
expect "... as bench writes them" 0 '^peak.read' "$cake" bench peak --smoke --threads 1 --isa ref -o "$dir/rates"
expect "... are those of a run, too" 0 '.' "$cake" run -m "$model" -p x --max-tokens 1 --isa ref --threads 1 --rates "$dir/rates"
expect "... and serve this host" 0 'rates ' rates
{ rate peak.f32 a 3 && rate peak.read a 9 && { rate peak.f32 a 50 && rate peak.read a 70; } | sed 's/"threads": 1/"threads": 16/'; } >"$dir/rates"
elsewhere() { "$cake" plan -m "$model" --isa ref --rates "$dir/rates" --ranks 2 "$@"; }
expect "... of more threads than a rank has here" 0 'rates +50 GFLOP/s of products and 70 GB/s' elsewhere --threads 16
OMP_NUM_THREADS=1 expect "... are told of" 0 'rates for up to 16 threads; 1 is used, since a rank here has 1. Give .--threads 16. to plan with 16' elsewhere
expect "a replica without a request is idle" 0 '^1 .* 100 %' elsewhere --threads 16 --replicas 2 -p x
{ rate peak.f32 a 3 && rate peak.f32 b 3 && rate peak.read b 9; } >"$dir/rates"
expect "rates of other hosts" 1 'has no peak.f32 of ref with 1 thread on ' rates
{ rate peak.f32 a 3 && rate peak.read a -9; } >"$dir/rates"
expect "a rate below 0" 1 'rates:2: value: expected a number above 0' rates
expect "the input is looked for before rates" 1 'absent.jsonl' rates -i "$dir/absent.jsonl"
echo 'name,isa,host' >"$dir/rates"
expect "rates that are no JSON" 1 'rates:1: .*; expected JSON lines' rates
rm "$dir/rates"
expect "no rates" 1 'rates' rates

best=$("$cake" info | sed -nE 's/^isa +([a-z0-9]+).*/\1/p')
expect "a small model's activations are not rounded" 0 'instruction set (ref|avx2|avx512|neon|sve512),' "$cake" plan -m "$model"
mkdir "$dir/large" && cp "$dir/tok/tokenizer.json" "$dir/large" &&
    sed 's/"intermediate_size": 512/"intermediate_size": 65536/' "$model/config.json" >"$dir/large/config.json"
expect "a large model is computed with the best there is" 0 "instruction set $best," "$cake" plan -m "$dir/large" --dummy-weights

# plan for ranks that are not there
columns() { awk '/^[0-9]+ / { print $1, $(NF - 8), $(NF - 7), $(NF - 6), $(NF - 5), $(NF - 4) }'; }
mpi 4 plan -m "$model" --kv-memory 8M 2>&1 </dev/null | columns >"$dir/here"
expect "plan for ranks that are not there" 0 '^3 +[^ ]+\+3 .* 6-7 ' "$cake" plan -m "$model" --kv-memory 8M --ranks 4
columns <"$dir/out" | cmp - "$dir/here" && test "$(wc -l <"$dir/here")" -eq 4
ok "... is that of ranks that are" $?
expect "... on hosts of as many as here" 0 '"nodes": 3, ' mpi 2 plan -m "$model" --ranks 6 --json
expect "... more than layers" 2 '9 ranks for a model of 8 layers.* use --ranks 8 or fewer' "$cake" plan -m "$model" --ranks 9
expect "... that replicas do not divide" 2 'evenly; use --ranks 70 or another multiple of 7' "$cake" plan -m "$model" --ranks 64 --replicas 7
printf 'foo: {\n' >"$dir/broken.yml"
expect "a topology that is not YAML" 1 'broken.yml:2:1: this is not YAML: [^;]*$' "$cake" plan -m "$model" --topology "$dir/broken.yml"
expect "... of two replicas" 0 '^replicas  2, of 8 ranks each' "$cake" plan -m "$model" --ranks 16 --replicas 2
expect "... of replicas that are alike" 0 '^[0-9]+ to 127: the same, 1[0-9] times more$' "$cake" plan -m "$model" --ranks 128 --replicas 16
expect "... of a machine that hwloc is told of" 1 'but 8.0 MiB of memory are free' env -u HWLOC_COMPONENTS HWLOC_SYNTHETIC="[numa(memory=8MiB)] core:2 pu:1" "$cake" plan -m "$model"
env SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 "$cake" plan -m "$model" 2>&1 | grep -q 'srun started 2 processes, but each one is alone'
ok "tasks of srun that do not know of each other are told of" $?
mkdir "$dir/huge" && sed -e 's/"hidden_size": [0-9]*/"hidden_size": 16384/' -e 's/"intermediate_size": 512/"intermediate_size": 10000000/' \
    "$model/config.json" >"$dir/huge/config.json"
expect "a model larger than all memory" 1 'the model does not fit: for 2 ranks .* are free on .* too little' \
    "$cake" plan -m "$dir/huge" --dummy-weights --ranks 2

expect "... is said once" 1 'however many ranks there are, one of them needs [0-9.]+ GiB|such hosts with 2 ranks each would do' mpi 2 plan -m "$dir/huge" --dummy-weights --replicas 1
test "$(grep -c 'error: planner' "$dir/err")" -eq 1
ok "... on each host" $?
sed -E -e 's/"(num_key_value_heads|num_attention_heads)": [0-9]+/"\1": 64/' -e 's/"head_dim": [0-9]+/"head_dim": 1024/' \
    -e 's/"max_position_embeddings": [0-9]+/"max_position_embeddings": 1000000/' "$model/config.json" >"$dir/huge/config.json"
expect "KV memory that is not there" 1 'a KV cache of 90.0 TiB on each rank is more than the layers leave free: .* use less --kv-memory' \
    "$cake" plan -m "$dir/huge" --dummy-weights --ranks 2 --kv-memory 90T

expect "plan counts recurrent states" 0 'states +64, one a sequence, 8 for shared prefixes, and 4 for drafts, each of 31.1 KiB' \
    "$cake" plan -m "$root/tests/golden/qwen3.5-hub"

# the report
expect "--report" 0 . run -i "$dir/in.txt" -o "$dir/r.txt" --max-tokens 4 --report "$dir/report.json"
grep -q '"requests": {"done": 2, "failed": 0' "$dir/report.json" && grep -q '"idle_share"' "$dir/report.json" &&
    grep -q '"read_bytes": 7' "$dir/report.json"
ok "... counts, idle times, bytes read" $?
grep -q '"advice": null' "$dir/report.json"
ok "... no advice of a run too short to judge by" $?
finish
