#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `stage`: bundles give the bits of the whole model; intact ones are kept, damaged ones are found and replaced.
. "$(dirname "$0")/../shell.sh"

layers_of() { # DIR RANK: "0-3", from bundle.json
    grep -o '"plan": \[.*\]\]' "$1/rank-000$2/bundle.json" | grep -o "\[$2, [0-9]*, [0-9]*\]" | tr -d '[],' |
        while read -r _ first count; do printf '%d-%d ' "$first" $((first + count - 1)); done
}
start() { # NP ARGUMENT... : one rank needs no mpirun
    if [ "$1" = 1 ]; then "$cake" "${@:2}"; else mpi "$@"; fi
}
answer() { # NP MODEL OUT ARGUMENT...
    local np=$1 from=$2 out=$3
    shift 3
    rm -f "$dir/$out"
    start "$np" run -m "$from" -i "$dir/in.jsonl" -o "$dir/$out" --force --deterministic-ids -q "$@" 2>"$dir/$out.err" </dev/null
    local got=$?
    [ $got -eq 0 ] || { echo "    status $got"; head -5 "$dir/$out.err"; }
}
tensors_of() { # FILE: names, types, shapes, one a line
    local n
    n=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    tail -c +9 "$1" | head -c "$n" | grep -o '"[^"]*":{[^}]*}' | sed 's/,"data_offsets.*//; /__metadata__/d' | sort
}
flip() { # FILE TENSOR BYTE: one bit of a byte of the tensor
    local n at was
    n=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    at=$(tail -c +9 "$1" | head -c "$n" | grep -o "\"$2\":{[^}]*" | sed 's/.*data_offsets":\[ *\([0-9]*\),.*/\1/')
    at=$((8 + n + at + $3))
    was=$(od -An -t u1 -j $at -N 1 "$1" | tr -d ' ')
    printf "\\x$(printf %x $((was ^ 4)))" | dd of="$1" bs=1 seek=$at conv=notrunc 2>/dev/null
}
sums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }

# Requests of both kinds, with scores; golden models have no templates.
requests() {
    head="the rain in the hills turns the small river into a lake and the road to the house is lost in it"
    for i in 1 2 3 4; do
        printf '{"id": "p%d", "prompt": "%s %d", "max_tokens": 7, "logprobs": 3, "return_token_ids": true}\n' "$i" "$head" "$i"
        printf '{"custom_id": "b%d", "method": "POST", "url": "/v1/completions", "body": {"prompt": "There was %d", "max_tokens": 6, "seed": %d}}\n' "$i" "$i" "$i"
    done
    [ "$1" = plain ] || printf '{"id": "c", "messages": [{"role": "user", "content": "What is 37 + 45?"}], "temperature": 0, "max_tokens": 20}\n'
}

# The demo and golden models: tied, untied, fused, in shards, with a vision part, delta nets; a tied one whose head differs is in bundle.c.
for name in $(few "demo llama-linear qwen3.5-hub" "demo llama-linear gemma3-vision phi3-long qwen3.5-hub qwen2-split"); do
    whole=$root/tests/golden/$name
    requests plain >"$dir/in.jsonl"
    [ $name = demo ] && whole=$model && requests all >"$dir/in.jsonl"
    answer 1 "$whole" whole.jsonl
    n_layer=$("$cake" info -m "$whole" | sed -n 's/.*ranks at most //p')
    for np in 1 2 3 4; do
        [ $name = demo ] || [ "$np" = 2 ] || continue
        [ "$np" -le "$n_layer" ] || continue
        staged=$dir/staged/$name-$np
        expect "$name for $np" 0 "bundles for $np rank.*: $np written, 0 already complete" "$cake" stage -m "$whole" -d "$staged" --ranks "$np"
        for file in "$whole"/*.safetensors; do tensors_of "$file"; done | sort >"$dir/all"
        for rank in "$staged"/rank-*; do tensors_of "$rank/model.safetensors"; done | sort >"$dir/parts"
        test -z "$(comm -13 "$dir/all" "$dir/parts")" && test -z "$(uniq -d "$dir/parts")"
        ok "... tensors are the model's, each in one bundle" $?
        answer "$np" "$staged" staged.jsonl
        cmp "$dir/whole.jsonl" "$dir/staged.jsonl"
        ok "... the same bytes" $?
    done
done
staged=$dir/staged/demo-2
hows=("--load mmap" "--dtype int8")
[ -z "${CAKE_ALL:-}" ] || hows+=("--dtype f32" "--threads 3")
for how in "${hows[@]}"; do
    # shellcheck disable=SC2086
    answer 1 "$root/tests/golden/llama-linear" whole.jsonl $how
    # shellcheck disable=SC2086
    answer 2 "$dir/staged/llama-linear-2" staged.jsonl $how
    cmp "$dir/whole.jsonl" "$dir/staged.jsonl"
    ok "llama-linear, $how: the same bytes" $?
done
head -2 "$model/../prompts.jsonl" >"$dir/in.jsonl"

# The content of bundles.
test -e "$staged/rank-0000/tokenizer.json" && test -e "$staged/rank-0000/chat_template.jinja" && ! test -e "$staged/rank-0001/tokenizer.json" &&
    ! test -e "$staged/rank-0001/chat_template.jinja" && test -e "$staged/rank-0001/config.json" && ! test -e "$staged/config.json"
ok "rank 0 has tokenizer and template, all have the config" $?
tensors_of "$staged/rank-0000/model.safetensors" | grep -q embed_tokens && ! tensors_of "$staged/rank-0001/model.safetensors" | grep -q embed_tokens
ok "... and the embedding" $?
expect "tokenize, one process" 0 '"token_ids"' "$cake" tokenize -m "$staged" -i "$dir/in.jsonl"
expect "info, one process" 0 'bundle .*rank-0000, of rank 0 of 2' "$cake" info -m "$staged"
grep -q 'qwen3, 3542720 parameters, bf16' "$dir/out"
ok "... knows the whole model" $?
expect "plan" 0 "^1 .* $(layers_of "$staged" 1)" mpi 2 plan -m "$staged"
expect "a bundle of one is a model" 0 '^37 \+ 45 = 82' "$cake" run -m "$dir/staged/demo-1/rank-0000" -p 'What is 37 + 45?'
printf '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "max_tokens": 1}}\n' >"$dir/batch.jsonl"
expect "records have the model's name" 0 '"model": "model"' mpi 2 run -m "$staged" -i "$dir/batch.jsonl"

# Another number of ranks, another plan.
expect "other ranks" 2 'demo-2: its bundles are for 2 ranks, but this run has 3; start it with -np 2' mpi 3 run -m "$staged" -p x
test "$(grep -c error "$dir/err")" -eq 1
ok "... said once" $?
expect "one rank" 2 'for 2 ranks, but this run has 1' "$cake" run -m "$staged" -p x
expect "... of its own bundle" 2 'is one of 2 bundles, that of rank 1; give the directory that contains them' "$cake" run -m "$staged/rank-0001" -p x
expect "plan for other ranks" 2 'for 2 ranks, but this run has 4' mpi 4 plan -m "$staged"
expect "plan for ranks that are not there" 2 '.*--ranks 9: .*holds bundles, which were made for 2 ranks; plan these with mpirun -np 2' mpi 2 plan -m "$staged" --ranks 9
expect "two replicas of them" 0 '"text": ?"37' mpi 4 run -m "$staged" -p 'What is 37 + 45?' --n 2 --replicas 2
expect "replicas of too many" 2 'for 2 ranks, but this run has 1 \(4 ranks in 4 replicas\)' mpi 4 run -m "$staged" -p x --replicas 4
printf "a:\n  rank: 1\n  layers: ['model.layers.2-3', 'model.layers.5']\n" >"$dir/t.yml"
expect "another topology" 2 't.yml assigns the layers as 0-1,4-4,6-7 \| 2-3,5-5, but the bundles in .*demo-2 as' mpi 2 run -m "$staged" -p x --topology "$dir/t.yml"
expect "staged with it" 0 'layers 0-1,4-4,6-7 \| 2-3,5-5' "$cake" stage -m "$model" -d "$dir/staged/topology" --topology "$dir/t.yml"
for how in "" "--topology $dir/t.yml"; do
    # shellcheck disable=SC2086
    expect "... its plan is that of the run $how" 0 '^1 .* 2-3,5-5' mpi 2 plan -m "$dir/staged/topology" $how
done
printf "a:\n  host: far\n  layers: ['model.layers.2-3']\nb:\n  host: farther\n  layers: ['model.layers.4-7']\n" >"$dir/t.yml"
expect "a topology of hosts that are not here" 0 'bundles for 3 ranks \(layers 0-1 \| 2-3 \| 4-7\)' "$cake" stage -m "$model" -d "$dir/staged/hosts" --topology "$dir/t.yml"
expect "... of fewer ranks, so that rank 0 is one of them" 0 'bundles for 2 ranks \(layers 0-3 \| 4-7\)' \
    "$cake" stage -m "$model" -d "$dir/staged/few" --topology "$dir/t.yml" --ranks 2
expect "... of too many" 1 't.yml:.*rank 3 has no worker: there are 2 for 4 ranks' "$cake" stage -m "$model" -d "$dir/x" --topology "$dir/t.yml" --ranks 4
expect "... of too few" 1 "t.yml:4:1: worker 'b': 2 workers for 1 rank; use --ranks 2" "$cake" stage -m "$model" -d "$dir/x" --topology "$dir/t.yml" --ranks 1
cp -r "$dir/staged/demo-4" "$dir/fewer" && mkdir "$dir/fewer/rank-0007" "$dir/fewer/rank-12x"
rm -r "$dir/fewer/rank-0002" && mkdir "$dir/fewer/rank-0002" # somebody's; what is behind it is told all the same
expect "fewer ranks than before" 0 'fewer/rank-0003 and later: left by an earlier stage for more ranks; no run of 2' "$cake" stage -m "$model" -d "$dir/fewer" --ranks 2
! "$cake" stage -m "$model" -d "$dir/staged/demo-2" --ranks 2 2>&1 | grep -q 'left by'
ok "... nothing is said where there are none" $?
rm -r "$dir/fewer/rank-0001" && ln -s "$dir/staged/demo-2/rank-0001" "$dir/fewer/rank-0001"
expect "a link to a bundle that is right" 0 '0 written, 2 already complete' "$cake" stage -m "$model" -d "$dir/fewer" --ranks 2
expect "a link to another bundle" 1 'fewer/rank-0001: is a symbolic link, perhaps to a bundle of another set' "$cake" stage -m "$root/tests/golden/llama-linear" -d "$dir/fewer" --ranks 2
rm "$dir/fewer/rank-0001" && cp -r "$dir/staged/demo-2/rank-0001" "$dir/fewer" && rm "$dir/fewer/rank-0001/model.safetensors"
ln -s "$dir/staged/demo-2/rank-0001/model.safetensors" "$dir/fewer/rank-0001"
expect "a link to its tensors" 1 'rank-0001/model.safetensors: is a symbolic link, where stage writes' "$cake" stage -m "$root/tests/golden/llama-linear" -d "$dir/fewer" --ranks 2
rm "$dir/fewer/rank-0001/model.safetensors" && mkdir "$dir/fewer/rank-0001/model.safetensors"
expect "a directory in their place" 1 'rank-0001/model.safetensors: is a directory or a device' "$cake" stage -m "$model" -d "$dir/fewer" --ranks 2
expect "made-up weights need no other bundle" 0 '1 request' "$cake" run -m "$staged" -p x --dummy-weights --n 1 --max-tokens 1 -o "$dir/dummy.jsonl"

# There and intact; damaged; begun.
sums "$staged" >"$dir/before"
expect "again" 0 '0 written, 2 already complete; 0 bytes read' "$cake" stage -m "$model" -d "$staged" --ranks 2
sums "$staged" | cmp - "$dir/before"
ok "... nothing changed" $?
file=$staged/rank-0001/model.safetensors
tensor=model.layers.6.mlp.down_proj.weight
for load in read mmap; do
    flip "$file" $tensor 1001
    expect "a flipped bit, $load" 1 "rank-0001/model.safetensors: tensor $tensor has the checksum [0-9a-f]{8}, but [0-9a-f]{8} was staged: .*start cake-mpi stage again" \
        mpi 2 run -m "$staged" -p x --load $load
    test "$(grep -c 'cake-mpi.*error' "$dir/err")" -eq 1
    ok "... said once" $?
    expect "... is replaced" 0 '1 written, 1 already complete; ' "$cake" stage -m "$model" -d "$staged" --ranks 2
    grep -q 'kept from before' "$dir/err" && ! grep -q '; 0 bytes read' "$dir/err" && ! grep -q ' 0 bytes kept' "$dir/err"
    ok "... that tensor only" $?
    sums "$staged" | cmp - "$dir/before"
    ok "... as it was" $?
done
one=$dir/staged/demo-1
sums "$one" >"$dir/one"
for damage in config.json tokenizer.json bundle.json model.safetensors; do
    file=$one/rank-0000/$damage
    size=$(stat -c %s "$file")
    truncate -s $((size - 1)) "$file"
    expect "$damage too short" 1 "rank-0000/$damage: .*stage (it )?again" "$cake" run -m "$one" -p x
    expect "... is replaced" 0 '1 written, 0 already complete' "$cake" stage -m "$model" -d "$one" --ranks 1
    sums "$one" | cmp - "$dir/one"
    ok "... as it was" $?
    byte=$(tail -c 3 "$file" | od -An -t u1 -N 1 | tr -d ' ')
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$file" bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null
    expect "$damage with a flipped bit" 1 "rank-0000/$damage: .*stage again" "$cake" run -m "$one" -p x
    expect "... is replaced" 0 '1 written, 0 already complete' "$cake" stage -m "$model" -d "$one" --ranks 1
    sums "$one" | cmp - "$dir/one"
    ok "... as it was" $?
done
truncate -s 9 "$one/rank-0000/tokenizer_config.json"
expect "a damaged file of the tokenizer, tokenize" 1 'tokenizer_config.json: has 9 bytes' "$cake" tokenize -m "$one" -i "$dir/in.jsonl"
expect "... is replaced" 0 '1 written' "$cake" stage -m "$model" -d "$one"

# As a kill would leave it: some tensors, nothing at all, a torn line.
begin() { # LINES: as if only so many tensors of rank 1 were there
    local own=$staged/rank-0001
    sed -n '1s/,$/}/p' "$own/bundle.json" >"$own/bundle.partial"
    tensors=$(sed -n 's/^"\(model[^"]*\)": "\([0-9a-f]*\)".*/\2 \1/p' "$own/bundle.json" | head -"$1")
    names=$(grep -o '"model\.[^"]*": {"dtype"' "$own/bundle.json" | sed 's/^"//; s/".*//')
    echo "$tensors" | while read -r sum name; do
        [ -z "$sum" ] || echo "$sum $(($(echo "$names" | grep -nx "$name" | cut -d: -f1) - 1))"
    done >>"$own/bundle.partial"
    rm "$own/bundle.json" "$own/config.json"
    mv "$own/model.safetensors" "$own/model.safetensors.partial"
}
begin 9
printf '0123' >>"$staged/rank-0001/bundle.partial"
expect "not finished" 1 'rank-0001: this bundle is not finished; start the same cake-mpi stage again' mpi 2 run -m "$staged" -p x
expect "is finished" 0 '1 written, 1 already complete; ' "$cake" stage -m "$model" -d "$staged" --ranks 2
! grep -q ' 0 bytes kept' "$dir/err" && ! grep -q '; 0 bytes read' "$dir/err" && sums "$staged" | cmp - "$dir/before"
ok "... with what was there" $?
there=$(sed -n '5s/^"\([^"]*\)".*/\1/p' "$staged/rank-0001/bundle.json") # among the first 9
begin 9
flip "$staged/rank-0001/model.safetensors.partial" "$there" 5
flip "$staged/rank-0001/model.safetensors.partial" model.layers.7.mlp.down_proj.weight 5
truncate -s -100 "$staged/rank-0001/model.safetensors.partial"
expect "begun and damaged" 0 '1 written, 1 already complete' "$cake" stage -m "$model" -d "$staged" --ranks 2
sums "$staged" | cmp - "$dir/before"
ok "... is found" $?
begin 0
rm "$staged/rank-0001/model.safetensors.partial"
expect "hardly begun" 0 '1 written, 1 already complete.* 0 bytes kept' "$cake" stage -m "$model" -d "$staged" --ranks 2
sums "$staged" | cmp - "$dir/before"
ok "... is whole" $?

# Killed before the first file had its name.
mkdir -p "$dir/early/rank-0000" && printf '{"bundle": ' >"$dir/early/rank-0000/bundle.partial.tmp"
expect "killed at its first file" 0 '2 written' "$cake" stage -m "$model" -d "$dir/early" --ranks 2
# Killed after the last one had.
cp "$dir/early/rank-0001/bundle.json" "$dir/early/rank-0001/bundle.partial"
expect "killed at its end" 0 '2 already complete' "$cake" stage -m "$model" -d "$dir/early" --ranks 2
test ! -e "$dir/early/rank-0001/bundle.partial"
ok "... which leaves nothing" $?
# Really killed, when a bundle was begun.
for rank in 0 1; do
    rm -rf "$dir/killed"
    "$cake" stage -m "$model" -d "$dir/killed" --ranks 2 2>/dev/null &
    until test -s "$dir/killed/rank-000$rank/bundle.partial" || ! kill -0 $! 2>/dev/null; do :; done
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    expect "killed in bundle $rank" 0 '[12] written|2 already complete' "$cake" stage -m "$model" -d "$dir/killed" --ranks 2
    sed -n 's/.*: \([0-9] written.*\)/    \1/p' "$dir/err"
    sums "$dir/killed" | cmp - "$dir/before"
    ok "... the bundles of an undisturbed start" $?
done

# Another model or plan in the same place; a model that changed.
cp -r "$model" "$dir/own"
expect "another copy of the model" 0 'replaced' "$cake" stage -m "$dir/own" -d "$dir/staged/demo-3" --ranks 3
expect "other ranks in the same place" 0 'bundles for 2 ranks.*: 2 written' "$cake" stage -m "$dir/own" -d "$dir/staged/demo-3" --ranks 2
test "$(mpi 2 run -m "$dir/staged/demo-3" -p 'What is 37 + 45?' -q)" = "37 + 45 = 82."
ok "... can be used" $?
flip "$dir/own/model.safetensors" model.layers.3.mlp.up_proj.weight 9
expect "weights that changed are staged again" 0 '2 written, 0 already complete.* 0 bytes kept' "$cake" stage -m "$dir/own" -d "$dir/staged/demo-3" --ranks 2
rm -r "$dir/staged/demo-3/rank-0001"
cp -r "$staged/rank-0001" "$dir/staged/demo-3/rank-0001"
expect "bundles of two models" 1 'rank 0 on [^ ]* has a bundle, rank 1 on [^ ]* one of another model or plan: stage the model on all hosts with one command' \
    mpi 2 run -m "$dir/staged/demo-3" -p x
rm -r "$dir/staged/demo-3/rank-0000"
expect "no bundle of rank 0" 1 'no bundle of rank 0 is on .*, only of others \(rank 1\): ranks had other hosts' mpi 2 run -m "$dir/staged/demo-3" -p x

# Under mpirun: each rank's own; ranks of a host, and replicas, write each bundle once.
for np in $(few 4 "2 4"); do
    expect "$np ranks stage" 0 "bundles for $np ranks .*: $np written, 0 already complete; 6.8 MiB read" mpi $np stage -m "$model" -d "$dir/together/$np"
    expect "... and again" 0 "0 written, $np already complete; 0 bytes read" mpi $np stage -m "$model" -d "$dir/together/$np"
    test "$(mpi $np run -m "$dir/together/$np" -p 'What is 37 + 45?' -q)" = "37 + 45 = 82."
    ok "... and run" $?
done
expect "4 ranks stage for 2" 0 'bundles for 2 ranks .*: 2 written, 0 already complete; 6.8 MiB read' mpi 4 stage -m "$model" -d "$dir/together/pairs" --ranks 2
cat >"$dir/apart" <<'END'
#!/bin/sh
cd "$apart/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"
END
chmod +x "$dir/apart"
mkdir -p "$dir/disks/0" "$dir/disks/1" "$dir/disks/2" "$dir/disks/3"
apart() { # NP ARGUMENT... : each rank in a directory of its own, as hosts with disks of their own have it
    apart=$dir/disks "$root/tests/mpirun.sh" "$1" "$dir/apart" "$cake" "${@:2}"
}
export apart=$dir/disks
expect "disks of their own" 0 'bundles for 2 ranks .*: 4 written, 0 already complete; 6.8 MiB read' apart 4 stage -m "$model" -d scratch/m --ranks 2
test -e "$dir/disks/3/scratch/m/rank-0001/bundle.json" && ! test -e "$dir/disks/3/scratch/m/rank-0000" && ! find "$dir/disks" -name '.stage*' | grep -q .
ok "... have their own ranks' bundles only" $?
(cd "$dir/disks" && cmp 0/scratch/m/rank-0000/model.safetensors 2/scratch/m/rank-0000/model.safetensors && cmp 1/scratch/m/rank-0001/bundle.json 3/scratch/m/rank-0001/bundle.json)
ok "... and the same ones" $?
answer 1 "$model" whole.jsonl
expect "a run from them" 0 '' apart 4 run -m scratch/m -i "$dir/in.jsonl" -o "$dir/apart.jsonl" --replicas 2 --deterministic-ids
cmp "$dir/apart.jsonl" "$dir/whole.jsonl"
ok "... has the same results" $?
rm -r "$dir/disks/2/scratch"
flip "$dir/disks/3/scratch/m/rank-0001/model.safetensors" $tensor 77
expect "one disk lost, one damaged" 0 '2 written, 2 already complete' apart 4 stage -m "$model" -d scratch/m --ranks 2
expect "... all is well again" 0 '2 written|^37' apart 4 run -m scratch/m -p 'What is 37 + 45?' --replicas 2
rm -r "$dir/disks/1/scratch"
expect "a host without its bundle" 1 'scratch/m: rank 0 on [^ ]* has a bundle, rank 1 on [^ ]* nothing: stage' apart 4 run -m scratch/m -p x --replicas 2

# Errors.
stage() { "$cake" stage -m "$model" "$@"; }
expect "no directory" 2 'no directory: give the one for the bundles with -d' stage
expect "no model" 2 'no model' "$cake" stage -d "$dir/x"
expect "no such model" 1 'nowhere: cannot be opened' "$cake" stage -m "$dir/nowhere" -d "$dir/x"
expect "more ranks than layers" 2 '9 ranks for a model of 8 layers' stage -d "$dir/x" --ranks 9
expect "ranks that do not go up" 2 'the 3 ranks of this job cannot each have a bundle' mpi 3 stage -m "$model" -d "$dir/x" --ranks 2
expect "onto the model itself" 2 'both -m and -d are' "$cake" stage -m "$dir/own" -d "$dir/own/."
expect "onto another model" 2 'has a config.json, so it is a model' stage -d "$dir/own"
expect "from bundles" 2 'holds bundles; stage from the whole model' "$cake" stage -m "$staged" -d "$dir/x"
mkdir -p "$dir/foreign/rank-0000"
cp "$model/model.safetensors" "$dir/foreign/rank-0000"
expect "somebody's file" 1 'rank-0000/model.safetensors already exists, but cake-mpi stage did not write it' stage -d "$dir/foreign"
cmp -s "$model/model.safetensors" "$dir/foreign/rank-0000/model.safetensors"
ok "... is not touched" $?
mkdir -p "$dir/foreign2/rank-0000" && echo mine >"$dir/foreign2/rank-0000/config.json"
expect "... a small one" 1 'rank-0000/config.json already exists, but cake-mpi stage did not write it' stage -d "$dir/foreign2" --ranks 1
test "$(cat "$dir/foreign2/rank-0000/config.json")" = mine
ok "... is not touched" $?
expect "a file in the way" 1 'batch.jsonl: is not a directory' stage -d "$dir/batch.jsonl"
expect "nowhere to write" 1 '/proc/x: cannot be made' stage -d /proc/x
small() { (trap '' XFSZ && ulimit -f 2000 && "$cake" stage -m "$model" -d "$dir/small" --ranks 1); }
expect "no room" 1 'model.safetensors.partial: cannot be set to its size: File too large; what is written so far is kept: free some space' small
expect "... and then room" 0 '1 written' stage -d "$dir/small" --ranks 1
test ! -e "$dir/x" && test -z "$(find "$dir/staged" "$dir/together" -name '*.partial' -o -name '*.tmp')"
ok "nothing is left lying about" $?
finish
