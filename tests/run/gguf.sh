#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A GGUF file as a model: the bits of the safetensors model that it was made from, on one rank and several, as bundles,
# with its tokenizer and template from its keys.
. "$(dirname "$0")/../shell.sh"

convert=$top_builddir/tests/run/to_gguf
answer() { # NP MODEL INPUT OUT ARGUMENT...
    local np=$1 from=$2 in=$3 out=$4
    shift 4
    rm -f "$dir/$out"
    if [ "$np" = 1 ]; then
        "$cake" run -m "$from" -i "$in" -o "$dir/$out" --force --deterministic-ids -q "$@" 2>"$dir/$out.err" </dev/null
    else
        mpi "$np" run -m "$from" -i "$in" -o "$dir/$out" --force --deterministic-ids -q "$@" 2>"$dir/$out.err" </dev/null
    fi
    local got=$?
    [ $got -eq 0 ] || { echo "    status $got"; head -5 "$dir/$out.err"; }
}
same() { # NAME: both results are there and equal
    test -s "$dir/whole.jsonl" && cmp -s "$dir/whole.jsonl" "$dir/gguf.jsonl"
    ok "$1" $?
}

# The demo model, whole: prompts, messages, tokenizer and template from keys alone.
mkdir "$dir/demo"
"$convert" "$model" "$dir/demo/demo.gguf"
ok "the demo model is written" $?
"$cake" tokenize -m "$model" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/ids" 2>/dev/null
"$cake" tokenize -m "$dir/demo/demo.gguf" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/gguf.ids" 2>"$dir/err"
test -s "$dir/ids" && cmp -s "$dir/ids" "$dir/gguf.ids"
ok "prompts have the same ids" $?
head -6 "$root/jobs/demo/prompts.jsonl" >"$dir/in.jsonl"
answer 1 "$model" "$dir/in.jsonl" whole.jsonl --max-tokens 8 --temperature 0
answer 1 "$dir/demo/demo.gguf" "$dir/in.jsonl" gguf.jsonl --max-tokens 8 --temperature 0
same "demo as a file"
answer 2 "$dir/demo" "$dir/in.jsonl" gguf.jsonl --max-tokens 8 --temperature 0
same "demo as a directory, two ranks"
expect "bundles" 0 "bundles for 2 ranks.*: 2 written" "$cake" stage -m "$dir/demo" -d "$dir/staged" --ranks 2
answer 2 "$dir/staged" "$dir/in.jsonl" gguf.jsonl --max-tokens 8 --temperature 0
same "demo as bundles"
expect "results never replace it" 2 "is a file of the model" "$cake" run -m "$dir/demo" -i "$dir/in.jsonl" -o "$dir/demo/demo.gguf" --force
expect "a file that is not there" 1 'models/none.gguf' "$cake" info -m models/none.gguf
mkdir "$dir/short"
cp "$dir/demo/demo.gguf" "$dir/short/m.gguf"
at=$(grep -abo 'qwen3.block_count' "$dir/short/m.gguf" | head -1 | cut -d: -f1)
printf '\003' | dd of="$dir/short/m.gguf" bs=1 seek=$((at + 21)) conv=notrunc 2>"$dir/err"
expect "fewer layers than the file has" 1 'key qwen3.block_count \(byte [0-9]*\): it is 3, but there is a tensor blk\.[3-7]\.' \
    "$cake" info -m "$dir/short"
cp "$dir/demo/demo.gguf" "$dir/demo/other.gguf"
expect "which of two files?" 1 "demo.gguf, one of several models" "$cake" info -m "$dir/demo"

# Blocks of Q8_0 are kept as they are, and give the bits of the same values in float32; also as bundles.
mkdir "$dir/blocks" "$dir/values"
"$convert" "$model" "$dir/blocks/m.gguf" blocks && "$convert" "$model" "$dir/values/m.gguf" values
ok "the demo model is written in blocks" $?
answer 1 "$dir/values" "$dir/in.jsonl" whole.jsonl --max-tokens 8 --temperature 0 --kv-dtype f32
answer 2 "$dir/blocks" "$dir/in.jsonl" gguf.jsonl --max-tokens 8 --temperature 0 --kv-dtype f32
same "blocks, two ranks"
expect "bundles of blocks" 0 "2 written" "$cake" stage -m "$dir/blocks" -d "$dir/staged-blocks" --ranks 2
answer 2 "$dir/staged-blocks" "$dir/in.jsonl" gguf.jsonl --max-tokens 8 --temperature 0 --kv-dtype f32
same "blocks as bundles"
mkdir "$dir/nan"
cp "$dir/blocks/m.gguf" "$dir/nan" # forty times 0x7E: a whole block's scale among them, which is NaN
printf '~%.0s' {1..40} | dd of="$dir/nan/m.gguf" bs=1 seek=$(($(wc -c <"$dir/nan/m.gguf") / 2)) conv=notrunc 2>"$dir/err"
expect "a scale that is NaN" 1 "m.gguf: tensor .* holds a scale that is not finite in row [0-9]*, block [0-9]*; download it again" \
    "$cake" run -m "$dir/nan" -i "$dir/in.jsonl" -o "$dir/nan.jsonl" --force

# Golden models: what their converter changes is undone.
for name in $(few "llama-llama3 gemma3-new mixtral-eight gptoss-bf16 phi3-long deepseek3-whole mistral4-scaled ministral3-scaled qwen3.5-text" \
    "deepseek3-whole mistral4-scaled ministral3-scaled mistral-window qwen3.5-text llama-llama3 llama-plain gemma3-new mixtral-eight gptoss-bf16 phi3-long phi3-window olmo2-after olmoe-plain qwen2-split qwen3-bias apertus-plain"); do
    whole=$dir/$name
    cp -r "$root/tests/golden/$name" "$whole"
    chmod -R u+w "$whole"
    # What a GGUF file cannot say, as it would say it.
    sed -i 's/"sliding_window": \(24\|50\)/"sliding_window": null/; s/"query_pre_attn_scalar": 7/"query_pre_attn_scalar": 20/; s/"swiglu_limit": 2.5/"swiglu_limit": 7.0/; s/"rope_interleave": false/"rope_interleave": true/' "$whole/config.json"
    [ "$name" != gemma3-new ] || sed -i 's/"full_attention"\(,\{0,1\}\)$/"sliding_attention"\1/' "$whole/config.json"
    mkdir "$dir/$name-gguf"
    "$convert" "$whole" "$dir/$name-gguf/model.gguf"
    ok "$name is written" $?
    answer 1 "$whole" "$whole/requests.jsonl" whole.jsonl
    answer 1 "$dir/$name-gguf" "$whole/requests.jsonl" gguf.jsonl
    # Of delta nets, A_log is the logarithm of an exponential, so scores differ in their last digits.
    [ "$name" != qwen3.5-text ] || sed -i 's/-\{0,1\}[0-9]*\.[0-9]*//g' "$dir/whole.jsonl" "$dir/gguf.jsonl"
    same "$name"
done

# Models that embed say so in their keys; what these cannot say stands in files of sentence-transformers beside them.
embed() { # MODEL OUT: the same from np 1 and 2
    "$cake" run -m "$1" -i "$root/tests/golden/embed/texts.txt" -o "$dir/$2" --force --deterministic-ids -q 2>"$dir/err" </dev/null
    mpi 2 run -m "$1" -i "$root/tests/golden/embed/texts.txt" -o "$dir/two.jsonl" --force --deterministic-ids -q 2>"$dir/err" </dev/null
    cmp -s "$dir/$2" "$dir/two.jsonl" || { echo "    two ranks differ"; cat "$dir/err"; rm -f "$dir/$2"; }
}
for name in bert qwen3-lasttoken xlmr; do
    from=$root/tests/golden/embed/$name
    mkdir "$dir/$name-gguf"
    "$convert" "$from" "$dir/$name-gguf/model.gguf"
    ok "$name is written" $?
    [ $name != qwen3-lasttoken ] || cp "$from"/config_sentence_transformers.json "$from"/tokenizer.json "$dir/$name-gguf"
    [ $name != xlmr ] || cp -r "$from"/*_* "$from/modules.json" "$from/tokenizer.json" "$dir/$name-gguf"
    embed "$from" whole.jsonl
    embed "$dir/$name-gguf" gguf.jsonl
    same "$name embeds"
done
expect "bundles of a model that embeds" 0 "2 written" "$cake" stage -m "$dir/bert-gguf" -d "$dir/staged-bert" --ranks 2
embed "$root/tests/golden/embed/bert" whole.jsonl
mpi 2 run -m "$dir/staged-bert" -i "$root/tests/golden/embed/texts.txt" -o "$dir/gguf.jsonl" --force --deterministic-ids -q 2>"$dir/err" </dev/null
same "... embed"
at=$(grep -abo 'bert.pooling_type' "$dir/bert-gguf/model.gguf" | cut -d: -f1)
printf '\004' | dd of="$dir/bert-gguf/model.gguf" bs=1 seek=$((at + 21)) conv=notrunc 2>"$dir/err"
expect "a pooling that is not supported" 1 'model.gguf: bert.pooling_type is 4; 1 \(mean\)' "$cake" info -m "$dir/bert-gguf"

# A block of Q8_0 is larger than a value head: heads of delta nets then keep the order of the file, and so do sums.
mkdir "$dir/heads" "$dir/tiles"
"$convert" "$root/tests/golden/qwen3.5-tiles" "$dir/heads/m.gguf" values &&
    "$convert" "$root/tests/golden/qwen3.5-tiles" "$dir/tiles/m.gguf" blocks
ok "delta nets are written in blocks" $?
answer 1 "$dir/heads" "$root/tests/golden/qwen3.5-tiles/requests.jsonl" whole.jsonl
answer 2 "$dir/tiles" "$root/tests/golden/qwen3.5-tiles/requests.jsonl" gguf.jsonl --activations bf16
cp "$dir/gguf.jsonl" "$dir/tiles.jsonl"
sed -i 's/-\{0,1\}[0-9]*\.[0-9]*//g' "$dir/whole.jsonl" "$dir/gguf.jsonl"
same "value heads in the order of the file, two ranks"
expect "bundles of such heads" 0 "2 written" "$cake" stage -m "$dir/tiles" -d "$dir/staged-tiles" --ranks 2
answer 2 "$dir/staged-tiles" "$root/tests/golden/qwen3.5-tiles/requests.jsonl" gguf.jsonl --activations bf16
cp "$dir/tiles.jsonl" "$dir/whole.jsonl"
same "such heads as bundles"
finish
