#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The peak memory of a rank is its weights, its KV cache and little more: a second copy of the weights, of a shard or of
# mapped files would show. The memory at the start is as planned.
. "$(dirname "$0")/../shell.sh"
if grep -q __asan_init "$cake"; then
    echo "peaks of memory: skipped, this program was built with the address sanitizer, which keeps what is freed"
    finish
fi

# A model of 56 MB whose weights are zeros: 8 layers of 512, 1,536 in the MLP, the demo's tokenizer.
dim=512 ff=1536 layers=8
vocab=$(sed -nE 's/.*"vocab_size": ([0-9]+).*/\1/p' "$model/config.json")
mkdir "$dir/model"
cp "$model"/tokenizer* "$dir/model/"
cat >"$dir/model/config.json" <<EOF
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": $vocab, "hidden_size": $dim,
 "intermediate_size": $ff, "num_hidden_layers": $layers, "num_attention_heads": 8, "num_key_value_heads": 8,
 "max_position_embeddings": 512, "rms_norm_eps": 1e-06, "tie_word_embeddings": true, "dtype": "bfloat16"}
EOF
header= at=0
tensor() { # NAME ROWS [COLUMNS]
    local end=$((at + 2 * $2 * ${3:-1}))
    header="$header,\"model.$1.weight\":{\"dtype\":\"BF16\",\"shape\":[$2${3:+,$3}],\"data_offsets\":[$at,$end]}"
    at=$end
}
tensor embed_tokens "$vocab" $dim
tensor norm $dim
for ((i = 0; i < layers; i++)); do
    for norm in input_layernorm post_attention_layernorm; do tensor layers.$i.$norm $dim; done
    for name in q k v o; do tensor layers.$i.self_attn.${name}_proj $dim $dim; done
    for name in gate up; do tensor layers.$i.mlp.${name}_proj $ff $dim; done
    tensor layers.$i.mlp.down_proj $dim $ff
done
header="{${header#,}}"
{
    for ((i = 0; i < 8; i++)); do printf '%b' "\\x$(printf '%02x' $((${#header} >> 8 * i & 255)))"; done
    printf '%s' "$header"
    head -c "$at" /dev/zero
} >"$dir/model/model.safetensors"

for ((i = 0; i < 24; i++)); do echo '{"prompt": [1, 2, 3, 4, 5, 6, 7, 8], "max_tokens": 8, "ignore_eos": true}'; done >"$dir/in.jsonl"
# beside FILE: the largest peak memory of a rank in a report in addition to weights and KV cache, in MB
beside() {
    tr ',' '\n' <"$1" | awk -F': ' '/"weights_bytes"/ { weights = $NF } /"kv_bytes"/ { kv = $NF }
        /"peak_bytes"/ { beside = ($NF - weights - kv) / 1e6; most = beside > most ? beside : most } END { print most }'
}

run() { # NP MODEL ARGUMENT... : by 8 MB of KV cache, where kv does not say otherwise
    mpi "$1" run -m "$2" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --kv-memory "${kv:-8M}" --report "$dir/report.json" "${@:3}"
}

# A run of the demo gives the memory of the program and MPI themselves.
for np in 1 2; do
    run $np "$model" && base=$(beside "$dir/report.json")
    ok "the demo on $np: $base MB beside its weights and KV cache" $?
    for how in read mmap; do
        run $np "$dir/model" --load $how && now=$(beside "$dir/report.json") &&
            awk -v now="$now" -v base="$base" -v all=$((at / 1000000)) \
                'BEGIN { exit !(all > 50 && now > 0 && base > 0 && now < base + 20 && now < 200) }'
        ok "$((at / 1000000)) MB of weights, --load $how on $np: $now MB beside them" $?
    done
done

# Each rank takes exactly the planned bytes before the first wave, and the process grows by little more: dense, with recurrent states,
# with windows; in other precisions, from mapped files.
made() { # NAME FROM WIDTH: a wide one of another model's kind, without weights
    mkdir "$dir/$1"
    cp "$2"/tokenizer*.json "$dir/$1/"
    sed -E "s/\"intermediate_size\": [0-9]+/\"intermediate_size\": $3/" "$2/config.json" >"$dir/$1/config.json"
}
of_ranks() { # FILE KEY...: for each rank of a plan or a report the sum of these
    tr ',' '\n' <"$1" | awk -F': ' -v keys="${*:2}" '
        BEGIN { n = split(keys, key, " ") }
        { for (i = 1; i <= n; i++) if ($0 ~ "\"" key[i] "\":") { sum += $NF; if (++seen % n == 0) { print sum; sum = 0 } } }'
}
made dense "$model" 16384
made states "$root/tests/golden/qwen3.5-hub" 32768
made windows "$root/tests/golden/gemma3-new" 32768
echo '{"prompt": [1, 2, 3, 4, 5, 6, 7, 8], "max_tokens": 2}' >"$dir/in.jsonl"
some="dense 1 read --dummy-weights --dtype int8 --kv-dtype int8
dense 2 read --dummy-weights --weights-memory 70%
model 2 mmap
states 2 read --dummy-weights --kv-dtype f32"
others="dense 2 read --dummy-weights --replicas 2
windows 2 read --dummy-weights --kv-dtype f16"
while read -r name np CAKE_LOAD more <&3; do
    export CAKE_LOAD
    # shellcheck disable=SC2086
    mpi "$np" plan -m "$dir/$name" --kv-memory 24M --json $more >"$dir/plan.json" 2>"$dir/err" &&
        kv=24M run "$np" "$dir/$name" $more
    of_ranks "$dir/plan.json" weights_bytes kv_bytes buffers_bytes >"$dir/planned"
    of_ranks "$dir/report.json" opened_bytes >"$dir/opened"
    test "$(wc -l <"$dir/planned")" -eq "$np" && cmp "$dir/planned" "$dir/opened"
    same=$?
    ok "$name on $np, $CAKE_LOAD${more:+ }$more: what was planned is taken: $(paste -sd ' ' <"$dir/opened") bytes" $same
    of_ranks "$dir/report.json" grown_bytes | paste - "$dir/planned" |
        awk '{ bad += !($1 > 0.999 * $2 && $1 < 1.02 * $2) } END { exit !(NR > 0 && !bad) }'
    ok "... and the process grows by it" $?
done 3< <(few "$some" "$some
$others")
finish
