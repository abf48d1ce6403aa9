#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Drafts change nothing but the time: with them forced, spoilt with tokens that are none of the answer's, or off, every kind of layer
# and of request gives the same bytes on any number of ranks, with little KV memory, and after kill -9.
. "$(dirname "$0")/../shell.sh"

text="the rain in the hills turns the small river into a lake and the road to the house is lost in it "
for i in $(seq 1 10); do
    case $i in
    1) more='"temperature": 0, "logprobs": 2' ;;
    2) more='"temperature": 0.9, "repetition_penalty": 1.2, "frequency_penalty": 0.5' ;;
    3) more='"temperature": 0.4, "n": 3, "logprobs": 1' ;;
    4) more='"temperature": 0, "logit_bias": {"5": 3, "9": -100}, "min_tokens": 9' ;;
    5) more='"temperature": 0.7, "stop": ["a", "e"], "ignore_eos": true' ;;
    6) more='"temperature": 1.2, "structured_outputs": {"regex": "(the |rain |in |hills |lake ){9,20}"}' ;;
    7) more='"temperature": 0.2, "top_p": 0.8, "echo": true, "logprobs": 0' ;;
    9) more='"temperature": 1, "top_k": 5, "structured_outputs": {"regex": "(ab|ac|ad){20,30}"}' ;;
    10) more='"temperature": 1, "top_k": 5, "logprobs": 0, "structured_outputs": {"regex": "(ab|ac|ad){20,30}"}' ;;
    8) more='"temperature": 0, "structured_outputs": {"choice": ["the rain in the hills", "the rain in the house", "rain"]}' ;;
    esac
    printf '{"id": "s%d", "prompt": "%s%s", "max_tokens": %d, "seed": %d, "return_token_ids": true, %s}\n' \
        "$i" "$text" "${text:$((3 * i))}" $((30 + 5 * i)) "$i" "$more"
done >"$dir/in.jsonl"

cp "$dir/in.jsonl" "$dir/many-kinds.jsonl"
answer() { # NP OUT ARGUMENT...
    mpi "$1" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$2.jsonl" --force --deterministic-ids -q --report "$dir/report.json" "${@:3}" 2>"$dir/err" </dev/null ||
        cat "$dir/err"
}
counted() { # WHAT : a number of the report
    sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$dir/report.json"
}

while read -r name kv <&3; do
    model=$root/tests/golden/$name
    answer 1 off --speculate off
    [ "$(grep -c '"error"' "$dir/off.jsonl")" -eq 0 ] && [ "$(wc -l <"$dir/off.jsonl")" -eq 10 ] && [ "$(counted drafted)" -eq 0 ]
    ok "$name: answers without drafts" $?
    for drafts in all random; do
        export CAKE_TEST_DRAFTS=$drafts
        while read -r np options; do
            # shellcheck disable=SC2086
            answer "$np" on $options
            cmp "$dir/off.jsonl" "$dir/on.jsonl" && [ "$(counted drafted)" -gt 0 ]
            right=$?
            said="$(counted drafted) drafted, $(counted accepted) accepted"
            ok "$name: drafts $drafts, np $np $options: $said" $right
        done <<END
1 --max-seqs 1
2 --max-seqs 3 --threads 1
4 --replicas 2
1 --kv-memory $kv --max-seqs 4
END
        unset CAKE_TEST_DRAFTS
    done
done 3<<END
qwen3-bias 160K
qwen3.5-text 600K
gemma3-new 170K
deepseek3-whole 80K
qwen3moe-mixed 400K
END

# ---- at the tail of a file that repeats itself, drafts are right; and a run that was killed goes on to the same bytes
model=$root/jobs/demo/model
for i in $(seq 24); do
    printf '{"id": "t%d", "messages": [{"role": "user", "content": "Sort these words: river, apple, stone, plank, w%d."}], "max_tokens": 60, "temperature": 0}\n' "$i" $((i % 4))
done >"$dir/in.jsonl"
answer 1 off --speculate off
CAKE_TEST_DRAFTS=all answer 1 on --max-seqs 2
cmp "$dir/off.jsonl" "$dir/on.jsonl" && [ "$(counted accepted)" -gt $(($(counted generated) / 3)) ]
ok "answers like earlier ones are drafted from these" $?
awk -v n="$(counted generated)" -v right="$(counted accepted)" '
    match($0, /"per_pass": [0-9.]+/) { each = substr($0, RSTART + 12, RLENGTH - 12) }
    END { d = each - n / (n - right); exit !(d < 0.001 && d > -0.001) }' "$dir/report.json"
ok "... and the report says how many tokens a pass makes" $?
for i in $(seq 40); do sed "s/\"id\": \"/&$i-/" "$dir/in.jsonl"; done >"$dir/many.jsonl"
mv "$dir/many.jsonl" "$dir/in.jsonl"
answer 1 off --speculate off
rm -f "$dir/killed.jsonl"*
export CAKE_TEST_DRAFTS=random
killed 8 "$dir/killed.jsonl" "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/killed.jsonl" --deterministic-ids -q --max-seqs 2
[ -e "$dir/killed.jsonl.partial" ]
ok "killed under way" $?
mpi 2 run -m "$model" -i "$dir/in.jsonl" -o "$dir/killed.jsonl" --deterministic-ids -q
cmp "$dir/off.jsonl" "$dir/killed.jsonl"
ok "a run that was killed goes on to the same bytes" $?
unset CAKE_TEST_DRAFTS

# ---- drafts by the model's own layer of multi-token prediction, one of which has learned its requests
for name in $(few "qwen3.5-text deepseek3-groups" "qwen3.5-text qwen3next-keys deepseek3-groups glm4moe-groups"); do
    model=$dir/$name
    mkdir "$model"
    cp "$root/tests/golden/$name"/* "$model"
    chmod u+w "$model"/*
    cp "$root/tests/golden/mtp/$name"/* "$model"
    cat "$dir/many-kinds.jsonl" "$model/requests.jsonl" >"$dir/in.jsonl"
    answer 1 off --speculate off
    for drafts in "" all random; do
        export CAKE_TEST_DRAFTS=$drafts
        test -n "$drafts" || unset CAKE_TEST_DRAFTS
        while read -r np options; do
            # shellcheck disable=SC2086
            answer "$np" on $options --speculate mtp
            cmp "$dir/off.jsonl" "$dir/on.jsonl"
            ok "$name: mtp${drafts:+, drafts $drafts}, np $np $options" $?
            test "$(sed -n 's/.*"weights_bytes": \([0-9]*\).*"kv_bytes": \([0-9]*\), "buffers_bytes": \([0-9]*\).*/\1 \2 \3/p' "$dir/report.json" |
                awk '{ print $1 + $2 + $3 }')" = "$(sed -n 's/.*"opened_bytes": \([0-9]*\).*/\1/p' "$dir/report.json")"
            ok "... in the memory that was planned" $?
        done <<END
1 --max-seqs 1
2 --max-seqs 3 --threads 1
3 --chunk 64
4 --replicas 2
END
    done
done
model=$dir/qwen3.5-text
cp "$model/requests.jsonl" "$dir/in.jsonl"
CAKE_TEST_DRAFTS=all answer 1 on --speculate mtp --max-seqs 1
[ "$(counted accepted)" -gt $(($(counted generated) * 2 / 5)) ]
ok "a layer that has learned the answers is right" $?
rm -f "$dir/killed.jsonl"*
for i in $(seq 60); do sed "s/\"id\": *\"/&$i-/" "$dir/in.jsonl"; done >"$dir/many.jsonl"
mv "$dir/many.jsonl" "$dir/in.jsonl"
answer 1 off --speculate off
killed 9 "$dir/killed.jsonl" "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/killed.jsonl" --deterministic-ids -q --max-seqs 2 --speculate mtp
[ -e "$dir/killed.jsonl.partial" ]
ok "mtp: killed under way" $?
mpi 2 run -m "$model" -i "$dir/in.jsonl" -o "$dir/killed.jsonl" --deterministic-ids -q
cmp "$dir/off.jsonl" "$dir/killed.jsonl"
ok "... and goes on to the same bytes without it" $?
expect "a model without such a layer" 2 'demo/model has no layer that predicts further tokens .*use ngram' \
    mpi 2 run -m "$root/jobs/demo/model" -p x --speculate mtp
cp -r "$model" "$dir/linear" && sed -i '/"num_hidden_layers"/s/$/ "full_attention_interval": 99,/' "$dir/linear/config.json"
expect "such a layer where none has attention" 2 'no layer of attention that the one behind the last could be like' \
    mpi 1 plan -m "$dir/linear" --dummy-weights --speculate mtp
expect "such a layer is not read for each wave" 2 'speculate mtp keeps all weights in memory' mpi 2 run -m "$model" -p x --speculate mtp --weights-memory 50%
"$cake" stage -m "$model" -d "$dir/staged" --ranks 1 -q 2>"$dir/err"
expect "... and is in no bundle" 2 'as .stage. leaves it out: no mtp.fc.weight' "$cake" run -m "$dir/staged" -p x --speculate mtp
sed -i 's/mtp.layers.0.input_layernorm/mtp.layers.0.input_layernorn/' "$model"/mtp.safetensors "$model"/*.index.json
expect "a part of such a layer" 1 'tensor mtp.layers.0.input_layernorm.weight is missing' "$cake" run -m "$model" -p x --speculate mtp
model=$root/jobs/demo/model
for script in $(few "" "same_bits same_bits_layers same_bits_prefixes mixtures"); do
    for drafts in off all random; do
        how=$drafts && [ "$drafts" != off ] || how=
        CAKE_ALL='' CAKE_SPECULATE=$([ -n "$how" ] && echo auto || echo off) CAKE_TEST_DRAFTS=$how \
            bash "$(dirname "$0")/$script.sh" >"$dir/out" 2>&1 || { status=$?; grep FAILED "$dir/out"; (exit $status); }
        ok "$script.sh with drafts $drafts" $?
        grep 'sha256' "$dir/out" >"$dir/sums.$drafts"
    done
    cmp "$dir/sums.off" "$dir/sums.all" && cmp "$dir/sums.off" "$dir/sums.random"
    ok "... and the same bytes with all of them" $?
done
expect "unknown ways are refused" 2 'speculate.*auto\|off\|ngram\|mtp' mpi 1 run -m "$model" -i "$dir/in.jsonl" -o "$dir/x.jsonl" --speculate luck
finish
