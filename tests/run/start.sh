#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The start of a run: the tokenizer is opened while weights load, and what is wrong is said once, by whoever fails first.
. "$(dirname "$0")/../shell.sh"

# A broken tokenizer, and one of a model that takes long to load.
mkdir "$dir/broken" "$dir/large" && cp "$model"/* "$dir/broken" && head -c 60000 "$model/tokenizer.json" >"$dir/broken/tokenizer.json"
head -3 "$root/jobs/demo/prompts.jsonl" >"$dir/in.jsonl"
one() { "$cake" run --log info,model=debug -p "Spell the word river." --max-tokens 2 "$@"; }
wrong='^cake-mpi: error: tokenizer: .*tokenizer.json: invalid JSON'
said_once() { test "$(grep -c 'error: ' "$dir/err")" -eq 1 && [ ! -s "$dir/out" ]; }

expect "a broken tokenizer" 1 "$wrong" one -m "$dir/broken"
said_once
ok "... is said once" $?
grep -q 'became .* of weights' "$dir/err"
ok "... while weights load" $?
expect "... with results" 1 "$wrong" one -m "$dir/broken" -o "$dir/r.jsonl"
said_once && ! ls "$dir"/r.jsonl* >"$dir/out" 2>&1 && ! grep -q 'of weights' "$dir/err"
ok "... before anything is loaded or written" $?

# 2.1 billion parameters, of which nothing is read; but they would have to fit.
sed 's/"vocab_size": [0-9]*/"vocab_size": 4000000/; s/"hidden_size": [0-9]*/"hidden_size": 512/' "$model/config.json" >"$dir/large/config.json"
cp "$dir/broken/tokenizer.json" "$model/tokenizer_config.json" "$dir/large"
if [ "$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)" -gt 4000000 ]; then
    expect "... of a large model" 1 "$wrong" one -m "$dir/large" --dummy-weights --dtype int8
    said_once && ! grep -q 'of weights' "$dir/err"
    ok "... before it is loaded" $?
else
    echo "not checked here: a broken tokenizer of a large model: too little memory is free"
fi

# Results of an earlier run stay.
"$cake" run -q -m "$model" -i "$dir/in.jsonl" -o "$dir/kept.jsonl" --max-tokens 2 && cp "$dir/kept.jsonl" "$dir/before"
expect "... with results of another run" 1 "$wrong" "$cake" run -m "$dir/broken" -i "$dir/in.jsonl" -o "$dir/kept.jsonl" --max-tokens 3 --force
alike "$dir/before" "$dir/kept.jsonl" && [ ! -e "$dir/kept.jsonl.partial" ]
ok "... which stay" $?

# What is wrong with the command line or the input comes first, alone.
first() { # STATUS ARGUMENT...
    local words="${*:2}"
    expect "before the tokenizer: ${words//$dir\//}" "$1" 'cake-mpi: error: ' "$cake" run -m "$dir/broken" "${@:2}"
    said_once && ! grep -q 'tokenizer.json' "$dir/err"
    ok "... alone" $?
}
first 1 -i "$dir/absent.jsonl"
first 1 -i "$dir/absent.jsonl" -o "$dir/r.jsonl"
first 2 -i "$dir/in.jsonl" -o "$dir/in.jsonl"
first 2 -p x --context 999999

# Replicas open their own.
expect "replicas without a tokenizer" 1 'tokenizer.json' mpi 2 run -m "$dir/broken" --replicas 2 -i "$dir/in.jsonl" -o "$dir/two.jsonl"
test "$(grep -c 'error: ' "$dir/err")" -eq 1
ok "... say so once" $?
mpi 2 run -q -m "$model" --replicas 2 -i "$dir/in.jsonl" -o "$dir/two.jsonl" --max-tokens 8 --deterministic-ids >"$dir/out" 2>"$dir/err" &&
    "$cake" run -q -m "$model" -i "$dir/in.jsonl" -o "$dir/one.jsonl" --max-tokens 8 --deterministic-ids && alike "$dir/one.jsonl" "$dir/two.jsonl"
ok "... and with one answer as one pipeline does" $?

# Warnings about the tokenizer reach the user of an answer that streams.
expect "a warning of the thread" 0 'but the model.s chat template shows no tools' one -m "$model" --tool-parser hermes
test "$(grep -c 'shows no tools' "$dir/err")" -eq 1
ok "... once" $?

# --keep-rates: measured once, then taken from the file.
unset CAKE_RATES
kept=$dir/kept.json
# Other tests run meanwhile, and what they disturb is not kept: several tries.
measured() { # LINES : a run that measures, until FILE has so many lines
    for _ in $(seq 30); do
        "$cake" run -q -m "$model" -i "$dir/in.jsonl" -o "$dir/r.jsonl" --force --max-tokens 1 --isa ref --threads 1 --report "$dir/report.json" --keep-rates "$kept" \
            >"$dir/out" 2>"$dir/err" || return
        [ ! -e "$kept" ] || [ "$(wc -l <"$kept")" -ne "$1" ] || return 0
        sleep 0.1
    done
    echo "not checked here: speeds that are kept: these CPUs are never free"
    false
}
if measured 2; then
    grep -q '"name": "peak.f32", "isa": "ref"' "$kept" && grep -q '"name": "peak.read"' "$kept"
    ok "speeds are kept" $?
    expect "... for --rates" 0 '^rates ' "$cake" plan -m "$model" --isa ref --threads 1 --rates "$kept"
    sed -i 's/"value": [0-9.e+]*/"value": 123/' "$kept" && cp "$kept" "$dir/before"
    measured 2 && alike "$dir/before" "$kept" && grep -q '"peak_flops": 123000000000' "$dir/report.json"
    ok "... and taken from the file" $?
    sed "s/\"host\": \"[^\"]*/&-of-another-rack/" "$kept" >"$dir/other" && cp "$dir/other" "$kept"
    if measured 4; then
        head -2 "$kept" >"$dir/before"
        alike "$dir/other" "$dir/before" && ! grep -q '"peak_flops": 123000000000' "$dir/report.json"
        ok "... but not those of another host, which stay" $?
    fi
fi
keep() { "$cake" run -q -m "$model" -p x -o "$dir/x.jsonl" --force --max-tokens 1 --report "$dir/report.json" --keep-rates "$@"; }
cp "$dir/in.jsonl" "$dir/before"
expect "a file of something else" 1 'in.jsonl:1: expected a line of' keep "$dir/in.jsonl"
alike "$dir/before" "$dir/in.jsonl"
ok "... stays" $?
expect "... of results" 2 '-o and --keep-rates are the same file' keep "$dir/x.jsonl"
expect "... where nothing can be written" 1 'the speeds cannot be written to .*/nowhere/kept.json: No such file' keep "$dir/nowhere/kept.json"
head -c 50 "$kept" >"$dir/torn.json" 2>/dev/null || printf '{"name": "pe' >"$dir/torn.json"
expect "a torn file" 1 'torn.json:1: invalid JSON' keep "$dir/torn.json"
grep -q 'without .*torn.json the speeds are measured again' "$dir/err" || "$cake" run -m "$model" -p x -o "$dir/x.jsonl" --force --max-tokens 1 --report "$dir/report.json" --keep-rates "$dir/torn.json" 2>&1 | grep -q 'without .*torn.json the speeds are measured again'
ok "... and what to do with it" $?
expect "--rates and --keep-rates" 2 'both --rates and --keep-rates' keep "$kept" --rates "$kept"

finish
