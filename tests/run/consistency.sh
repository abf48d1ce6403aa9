#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks with different builds or models, and a job whose model was replaced: one message, status 1.
. "$(dirname "$0")/../shell.sh"
export CAKE_DEVICE=cpu CAKE_THREADS=1
small=$root/tests/golden/llama-plain
cp -r "$small" "$dir/old" && cp -r "$small" "$dir/new" && chmod -R u+w "$dir/old" "$dir/new"
printf '%s\n' '{"id": 1, "prompt": [5, 6, 7], "max_tokens": 2}' '{"id": 2, "prompt": [8, 9], "max_tokens": 2}' >"$dir/in.jsonl"

# Rank 0 is given $dir/old, rank 1 $dir/new, and programs of their own.
cat >"$dir/ranks" <<END
#!/bin/sh
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
if [ "\$rank" = 0 ]; then program=$cake model=$dir/old; else program=\${OTHER:-$cake} model=$dir/new; fi
exec "\$program" "\$@" -m "\$model"
END
chmod +x "$dir/ranks"
two() { timeout 60 "$root/tests/mpirun.sh" 2 "$dir/ranks" run -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q "$@"; }
differ='rank 0 on .* and rank 1 on .* do not have the same model: '

two
ok "two copies of a model" $?
# One byte, the first or the last of the file's tensors.
weights=$(ls "$dir/new"/*.safetensors | head -1)
header=$(od -An -t u8 -N 8 "$weights" | tr -d ' ')
for byte in $((8 + header)) $(($(stat -c %s "$weights") - 1)); do
    cp "$dir/old/$(basename "$weights")" "$weights"
    printf '\123' | dd of="$weights" bs=1 seek="$byte" conv=notrunc 2>/dev/null
    expect "another byte $byte of rank 1's weights" 1 "${differ}the content of tensor" two
done
test "$(grep -c 'same model' "$dir/err")" = 1 && test ! -e "$dir/out.jsonl.partial"
ok "... said once, before anything is computed" $?
cp "$dir/old/$(basename "$weights")" "$weights"
sed 's/"rms_norm_eps": [^,]*/"rms_norm_eps": 0.01/' "$dir/old/config.json" >"$dir/new/config.json"
expect "another config.json" 1 "${differ}config.json differs" two
expect "another config.json, no weights" 1 "${differ}config.json differs" two --dummy-weights
cp "$dir/old/config.json" "$dir/new/" && cp "$model/tokenizer.json" "$dir/new/"
expect "another tokenizer" 1 "${differ}tokenizer.json differs" two

# A copy of the program with another version string.
rm -rf "$dir/new" && cp -r "$dir/old" "$dir/new"
version=$("$cake" --version | sed 's/cake-mpi \([0-9.]*\).*/\1/')
LC_ALL=C sed "s/$version/${version%?}9/g" "$cake" >"$dir/other" && chmod +x "$dir/other"
OTHER=$dir/other expect "another version" 1 "rank 0 on .* runs version $version.*, rank 1 on .* version ${version%?}9" two
# MPI itself leaks memory, which is not our bug.
expect "a launcher of another MPI" 0 'started 3 processes, but each one is alone' \
    env PMI_RANK=0 PMI_SIZE=3 ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$cake" run -m "$small" -i "$dir/in.jsonl" -q

# Ranks stage one model only.
expect "ranks that stage two models" 1 "${differ}the content of tensor" env OTHER= sh -c "
    printf '\\123' | dd of='$weights' bs=1 seek=$(($(stat -c %s "$weights") - 1)) conv=notrunc 2>/dev/null
    exec '$root/tests/mpirun.sh' 2 '$dir/ranks' stage -d '$dir/staged'"
rm -rf "$dir/new" && cp -r "$dir/old" "$dir/new"

# A job is of one model's weights: those of a later training have the same names, shapes and sizes.
job() { "$cake" "$1" -m "$dir/new" -i "$dir/in.jsonl" "${@:2}"; }
retrain() { printf '\123' | dd of="$weights" bs=1 seek="$(($(stat -c %s "$weights") - 1))" conv=notrunc 2>/dev/null; }
rm -f "$dir"/out.jsonl*
job run -o "$dir/done.jsonl" -q && job run -o "$dir/first.jsonl" --shard 0/2 -q
expect "the same weights" 0 'all 2 requests are done already' job run -o "$dir/done.jsonl"
retrain
expect "a finished job, other weights" 1 'another job: weights was "[0-9a-f]*" and is' job run -o "$dir/done.jsonl"
job run -o "$dir/second.jsonl" --shard 1/2 -q
expect "shards of two models" 1 'weights was' "$cake" merge -o "$dir/merged.jsonl" "$dir/first.jsonl" "$dir/second.jsonl"
finish
