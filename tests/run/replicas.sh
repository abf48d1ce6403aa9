#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --replicas: the result file is that of one rank, byte for byte; a failure gives one message.
. "$(dirname "$0")/../shell.sh"
export CAKE_SPECULATE=off # some of these runs must last

story="Continue the story: once upon a time there was a little girl who lived in a house by the wood with her mother"
head="the rain in the hills turns the small river into a lake and the road to the house is lost in it " # 96 tokens of the golden models, 28 of the demo's

# Every kind of request: several answers, seeds, scores of answers and prompts, ends of all kinds, bad ones, prompts that begin alike.
for i in $(seq 1 36); do
    case $((i % 9)) in
    0) how='"prompt": "'$story' '$i'", "n": 3, "max_tokens": 24, "seed": '$i', "logprobs": 1' ;;
    1) how='"messages": [{"role": "user", "content": "What is '$i' + 4?"}], "max_tokens": 30' ;;
    2) how='"prompt": "'$head$head$i'", "max_tokens": '$((i % 7 + 1))', "temperature": 0.8, "logprobs": 3' ;;
    3) how='"prompt": "'$head' and '$i'", "echo": true, "logprobs": 2, "max_tokens": '$((i % 5)) ;;
    4) how='"prompt": "'$story' and '$i'", "stop": ["e", "th"], "max_tokens": 40, "min_tokens": 2, "logprobs": 0' ;;
    5) how='"prompt": "There was '$i'", "max_tokens": 90, "ignore_eos": true, "temperature": 0.'$((i % 10)) ;;
    6) how='"prompt": [5, 6, 7, '$((i + 8))'], "max_tokens": 9, "echo": true, "stop": ["a"], "n": 2, "logit_bias": {"9": 3}' ;;
    7) how='"prompt": "bad", "top_p": '$i ;;
    8) how='"prompt": "'$head$i'", "echo": true, "max_tokens": 0, "n": '$((i % 2 + 1)) ;;
    esac
    test "$i" -eq 20 && echo 'not JSON'
    test $((i % 9)) -eq 7 && printf '{"id": "c%d", "context": "%s", "continuation": " and %d"}\n' "$i" "$head$head" "$i"
    printf '{"id": "r%d", %s, "return_token_ids": true}\n' "$i" "$how"
done >"$dir/in.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    rm -f "$dir/$out.jsonl"
    mpi "$np" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$out.jsonl" --force --deterministic-ids -q "$@" 2>"$dir/$out.err"
    local got=$?
    [ $got -eq 3 ] || { echo "    status $got"; cat "$dir/$out.err"; }
}

same() { # NAME NP ARGUMENT...
    local name=$1 np=$2
    shift 2
    answer "$np" two "$@"
    cmp "$dir/one.jsonl" "$dir/two.jsonl"
    ok "${model##*/}: $name" $?
}

number() { # KEY : the first number of that name in the report
    grep -o "\"$1\": [0-9]*" "$dir/report.json" | head -1 | grep -o '[0-9]*$'
}

for model in "$model" "$root/tests/golden/qwen3.5-hub" "$root/tests/golden/gemma3-new"; do
    [ "$(basename "$model")" = model ] || sed -i '/"messages"/d' "$dir/in.jsonl" # no templates
    lines=$(wc -l <"$dir/in.jsonl")
    answer 1 one
    test "$(wc -l <"$dir/one.jsonl")" -eq "$lines" && test "$(grep -c '"error"' "$dir/one.jsonl")" -eq 5
    ok "${model##*/}: one rank answers all" $?
    for how in $(few "2-2 4-2 4-4" "2-2 4-2 3-3 4-4"); do # standard input goes to three on three below
        np=${how%-*} replicas=${how#*-}
        [ "$(basename "$model")" = model ] || [ "$how" = 4-2 ] || continue
        same "$replicas replicas on $np ranks" "$np" --replicas "$replicas" --report "$dir/report.json"
        requests=$(grep -o '"requests": [0-9]*' "$dir/report.json" | grep -o '[0-9]*$')
        test "$(echo "$requests" | wc -l)" -eq "$replicas" && ! grep -q '"requests": 0' "$dir/report.json" &&
            test $(($(echo "$requests" | tr '\n' '+') 0 + 5)) -eq "$lines"
        some=$?
        ok "... each answered some: $(echo "$requests" | tr '\n' ' ')" $some
    done
    same "few sequences, small waves" 2 --replicas 2 --chunk 64 --max-seqs 3
done
model=$root/jobs/demo/model

# Little KV memory: some are evicted, some alone are too long. A rank that has all layers has as many pages as one alone.
printf '{"id": "long", "prompt": "%s", "max_tokens": 700, "ignore_eos": true}\n' "$head" >>"$dir/in.jsonl"
for i in $(seq "$(few 10 20)"); do
    printf '{"id": "g%d", "prompt": "There was once a king who had %d", "max_tokens": 170, "ignore_eos": true}\n' "$i" "$i"
done >>"$dir/in.jsonl"
answer 1 one --kv-memory 1050K
grep -q 'more than the KV memory holds' "$dir/one.jsonl"
ok "a request that outgrows the KV memory" $?
same "... with replicas" 2 --replicas 2 --kv-memory 1050K --report "$dir/report.json"
test "$(number evictions)" -gt 0
ok "... sequences were evicted" $?

# Other ways in and out.
head -n "$lines" "$dir/in.jsonl" >"$dir/short.jsonl"
"$cake" run -m "$model" -i "$dir/short.jsonl" --deterministic-ids -q >"$dir/one.out"
mpi 3 run -m "$model" -i - --deterministic-ids -q --replicas 3 <"$dir/short.jsonl" >"$dir/two.out"
cmp "$dir/one.out" "$dir/two.out"
ok "standard input to standard output, in order" $?
seq -f 'What is %g + 3?' 1 20 >"$dir/in.txt"
"$cake" run -m "$model" -i "$dir/in.txt" -o "$dir/one.txt" -q
mpi 2 run -m "$model" -i "$dir/in.txt" -o "$dir/two.txt" -q --replicas 2
cmp "$dir/one.txt" "$dir/two.txt"
ok "text" $?
test "$(mpi 2 run -m "$model" -p 'What is 37 + 45?' --replicas 2 -q)" = "$("$cake" run -m "$model" -p 'What is 37 + 45?' -q)"
ok "one prompt streams" $?
: >"$dir/empty.jsonl"
expect "an empty file" 0 '0 requests' mpi 2 run -m "$model" -i "$dir/empty.jsonl" -o "$dir/none.jsonl" --replicas 2
printf '{"prompt": "x", "n": 0}\n' >"$dir/bad.jsonl"
expect "a bad request only" 3 '1 request \(1 failed\)' mpi 3 run -m "$model" -i "$dir/bad.jsonl" -o "$dir/bad.out.jsonl" --replicas 3
printf '{"prompt": "x", "max_tokens": 3}\n' >"$dir/single.jsonl"
expect "one request for four replicas" 0 'requests of the 4 replicas: 1, 0, 0, 0$' \
    mpi 4 run -m "$model" -i "$dir/single.jsonl" -o "$dir/single.out.jsonl" --replicas 4

# Questions to a few documents: each is read by few replicas, so that much is shared.
for i in $(seq 1 48); do
    printf '{"id": %d, "prompt": "%s %s and %d", "max_tokens": 3}\n' "$i" "$((i % 4))" "$head$head$head$head$head" "$i"
done >"$dir/groups.jsonl"
"$cake" run -m "$model" -i "$dir/groups.jsonl" -o "$dir/one.jsonl" --force -q
mpi 2 run -m "$model" -i "$dir/groups.jsonl" -o "$dir/two.jsonl" --force -q --replicas 2 --report "$dir/report.json"
cmp "$dir/one.jsonl" "$dir/two.jsonl"
ok "prompts that begin alike" $?
shared=$(number prompt_shared)
test "$shared" -ge 4800
ok "... share $shared tokens, 5632 in one place" $?

# Plan, trace and messages.
expect "the plan" 0 '^replicas  2, of 2 ranks each' mpi 4 plan -m "$model" --replicas 2
test "$(grep -Ec '^[0-3] +.* 0-3 |^[0-3] +.* 4-7 ' "$dir/out")" -eq 4
ok "... with the same layers twice" $?
head -n 12 "$dir/groups.jsonl" >"$dir/twelve.jsonl"
expect "a trace" 0 '' mpi 4 run -m "$model" -i "$dir/twelve.jsonl" -o "$dir/t.jsonl" --replicas 2 --trace "$dir/trace.json" --report "$dir/report.json"
test "$(grep -c '"ph": "s"' "$dir/trace.json")" -eq $((2 * $(number waves))) && test "$(grep -c '"ph": "f"' "$dir/trace.json")" -eq $((2 * $(number waves)))
ok "... has both ends of every wave's way" $?
test "$(grep -c '"replica": 1' "$dir/report.json")" -eq 2 && test "$(number replicas)" -eq 2
ok "... and the report every rank's replica" $?

# The planner chooses the number of replicas: a model of 100 million parameters or more, rates from a file.
mkdir "$dir/large" && cp "$model/tokenizer.json" "$dir/large" &&
    sed 's/"intermediate_size": 512/"intermediate_size": 24576/' "$model/config.json" >"$dir/large/config.json"
for what in peak.f32:100 peak.read:20; do
    printf '{"name": "%s", "isa": "ref", "host": "a", "threads": 1, "value": %s}\n' "${what%:*}" "${what#*:}"
done >"$dir/rates"
planned() { mpi "$1" plan -m "$dir/large" --dummy-weights --isa ref --threads 1 --rates "$dir/rates" "${@:2}"; }
expect "replicas are planned" 0 'planned: 2 replicas of 1 stage \(replicas x stages, relative time for many requests: 2 x 1 1\.00, 1 x 2 [0-9]+\.[0-9]+\); --replicas R' planned 2
grep -q '^replicas  2, of 1 rank each' "$dir/out" && test "$(grep -Ec '^[01] .* 0-7 ' "$dir/out")" -eq 2
ok "... and the table has them" $?
expect "... in seconds for who asks for more" 0 'time for many requests of 384 \+ 128 tokens: 2 x 1 [0-9.]+ s, 1 x 2 [0-9.]+ s\)' planned 2 -v
expect "... not more than requests" 0 'planned: 1 replica of 2 stages \(replicas x stages, relative time for 1 request: ' planned 2 -p x --raw
seq 1 5 >"$dir/five.txt"
expect "... which are counted" 0 'planned: . replicas? of . stages? \(replicas x stages, relative time for 5 requests: ' planned 2 -i "$dir/five.txt" --raw
expect "... not where it is said" 0 '^1 .* 4-7 ' planned 2 --replicas 1
grep -q 'planned:' "$dir/err"
ok "... which is not commented on" $((! $?))
expect "... and written" 0 '^replicas  2, of 1 rank each' planned 2 --write-topology "$dir/w.yml"
test "$(grep -c '^  replica: ' "$dir/w.yml")" -eq 2
ok "... with the replica of each rank" $?
expect "more ranks than layers become replicas" 0 'planned: (9 replicas of 1 stage|3 replicas of 3 stages) ' planned 1 --ranks 9
expect "a small model is one pipeline" 0 '^1 .* 4-7 ' mpi 2 plan -m "$model"
for i in 1 2 3 4 5; do printf '{"prompt": [%d, 5, 6], "max_tokens": 3, "logprobs": 1}\n' "$i"; done >"$dir/few.jsonl"
sed 's/"value": 40/"value": 90000/' "$CAKE_RATES" >"$dir/fast"
for np in 1 2; do
    mpi $np run -m "$dir/large" --dummy-weights -i "$dir/few.jsonl" -o "$dir/large.$np.jsonl" --deterministic-ids --report "$dir/report.json" \
        --rates "$dir/fast" 2>"$dir/err"
done
grep -Eq 'fast: rank 0 on [^ ]+ does [0-9.e+]+ GFLOP/s now, but the file says 9e\+04; ' "$dir/err"
ok "rates of another machine" $?
cmp "$dir/large.1.jsonl" "$dir/large.2.jsonl" && grep -q 'planned: ' "$dir/err" &&
    test "$(number replicas)" -eq "$(grep -o 'planned: [12]' "$dir/err" | grep -o '[12]$')"
ok "answers are those of one rank, whatever was planned" $?

# Errors.
run2() { mpi "$1" run -m "$model" -i "$dir/in.jsonl" -o "$dir/x.jsonl" "${@:2}"; }
expect "3 ranks for 2 replicas" 2 'replicas 2: 3 ranks cannot be divided evenly; start it with -np 4 or another multiple of 2, or use --replicas 1 or 3' run2 3 --replicas 2
test "$(grep -c error "$dir/err")" -eq 1
ok "... is said once" $?
expect "more ranks than layers" 2 '9 ranks for a model of 8 layers: .* start it with -np 8 or fewer, or use --replicas 3 or 9$' run2 9
expect "more ranks than the layers of all" 2 '8 ranks for 2 replicas of a model of 3 layers: .* -np 6 or fewer, or use --replicas 4 or 8$' \
    mpi 8 run -m "$root/tests/golden/llama-plain" -p x --raw --replicas 2
expect "no replica" 2 'is not an integer from 1' "$cake" run -m "$model" -p x --replicas 0
printf 'a:\n  rank: 1\n  layers: ["model.layers.0-7"]\n' >"$dir/t.yml"
expect "a topology of one" 2 't.yml has 1: its workers name theirs with' run2 2 --replicas 2 --topology "$dir/t.yml"

# A broken layer: records name it, and each replica the rank that computed it, once.
cp -r "$root/tests/golden/qwen3-dynamic" "$dir/layer"
file=$dir/layer/model.safetensors
n=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
at=$(tail -c +9 "$file" | head -c "$n" | grep -o '"model.layers.1.mlp.down_proj.weight":{[^}]*' | sed 's/.*data_offsets":\[\([0-9]*\),.*/\1/')
printf '\0\0\300\177' | dd of="$file" bs=1 seek=$((8 + n + at)) conv=notrunc 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do printf '{"prompt": [%d, 10, 11], "max_tokens": 2}\n' $((20 + i)); done >"$dir/eight.jsonl"
expect "a broken layer" 3 'layer 1 on rank 2 has' mpi 4 run -m "$dir/layer" -i "$dir/eight.jsonl" --replicas 2
test "$(grep -c 'finite numbers: layer 1 is the first with NaN' "$dir/out")" -eq 8 && test "$(grep -Ec 'layer 1 on rank [02] has' "$dir/err")" -eq 2
ok "... in every replica" $?

# A full disk: one message, status 1, on all ranks.
for i in $(seq 400); do printf '{"id": %d, "prompt": "Once upon a time", "max_tokens": 30, "ignore_eos": true}\n' "$i"; done >"$dir/many.jsonl"
head -n 100 "$dir/many.jsonl" >"$dir/hundred.jsonl"
# Who is killed while the system writes a line of his leaves a part of it: of the last one.
whole() { test -s "$1" && ! sed '$d' "$1" | grep -qv '}$'; }
for np in $(few 4 "2 4"); do
    expect "a full disk, $np ranks" 1 '/dev/full: cannot be written: No space left' mpi $np run -m "$model" -i "$dir/hundred.jsonl" -o /dev/full --replicas 2
    test "$(grep -c 'error' "$dir/err")" -eq 1
    ok "... is said once" $?
done

# A rank killed with -9: all gone within 10 s.
cat >"$dir/rank" <<END
#!/bin/sh
echo \$\$ >"$dir/pid.\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}"
exec "$cake" "\$@"
END
chmod +x "$dir/rank"
sed 's/"max_tokens": 30/"max_tokens": 400/' "$dir/many.jsonl" >"$dir/long.jsonl"
for victim in 0 2; do
    rm -f "$dir"/killed* "$dir"/pid.*
    "$root/tests/mpirun.sh" 4 "$dir/rank" run -m "$model" -i "$dir/long.jsonl" -o "$dir/killed.jsonl" --max-seqs 8 --replicas 2 2>"$dir/err" &
    launcher=$!
    for _ in $(seq 300); do
        grep -qs "_cake.: {.group" "$dir/killed.jsonl.partial" && break
        sleep 0.1
    done
    kill -9 "$(cat "$dir/pid.$victim")"
    start=$SECONDS
    wait $launcher
    test $? -ne 0
    gone=$?
    for rank in 0 1 2 3; do
        while kill -0 "$(cat "$dir/pid.$rank")" 2>/dev/null && [ $((SECONDS - start)) -le 10 ]; do sleep 0.1; done
    done
    test $gone -eq 0 && test $((SECONDS - start)) -le 10
    ok "rank $victim killed: all are gone within 10 s" $?
    whole "$dir/killed.jsonl.partial"
    ok "... .partial holds whole lines" $?
done
finish
