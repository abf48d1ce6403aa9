#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mixtures of experts: promise 1 whatever rows share an expert, from none to all of a wave; and messages where
# config.json and files do not agree.
. "$(dirname "$0")/../shell.sh"

n=$(few 40 64)
rainy "$n" >"$dir/in.jsonl"
tac "$dir/in.jsonl" >"$dir/reverse.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    rm -f "$dir/$out.jsonl"
    mpi "$np" run -m "$model" -i "$dir/${in:-in}.jsonl" -o "$dir/$out.jsonl" --force -q "$@" 2>"$dir/$out.err" ||
        cat "$dir/$out.err"
}

same() { # NAME ARGUMENT... : as answer
    local name=$1
    shift
    answer "$1" two "${@:2}"
    echo "    sha256 $(sha256sum <"$dir/one.jsonl")"
    cmp "$dir/one.jsonl" "$dir/two.jsonl"
    ok "${model##*/}: $name" $?
}

own() { # MODEL DIR : a copy that may be changed
    rm -rf "$2"
    cp -r "$1" "$2"
    chmod -R u+w "$2"
}

for name in $(few "deepseek3-groups gemma4-wrap" \
    "deepseek3-groups deepseek3-whole glm4lite-list mistral4-scaled glm4moe-groups gptoss-sinks gptoss-bf16 qwen3moe-mixed qwen3moe-step mixtral-eight olmoe-plain minimax-part qwen3next-keys qwen3.5moe-wrap gemma4-wrap gemma4-saved kimi25-hub large3-wrap"); do
    model=$root/tests/golden/$name
    answer 1 one
    test "$(grep -c '"finish_reason": *"length"' "$dir/one.jsonl")" -eq $((n + 1))
    ok "$name: one rank answers all" $?
    same "each alone" 1 --max-seqs 1 --threads 2
    memory=400K
    test "$name" = gemma4-wrap && memory=600K # its pages are larger
    same "2 ranks, --chunk 64, little KV memory" 2 --chunk 64 --kv-memory $memory
    np=$(few 3 4)
    layers=$(grep -o '"num_hidden_layers": [0-9]*' "$model/config.json" | head -1)
    test "${layers##* }" -ge "$np" || np=${layers##* }
    in=reverse answer "$np" two
    sort "$dir/one.jsonl" | sed 's/"index": [0-9]*, //' >"$dir/sorted"
    sort "$dir/two.jsonl" | sed 's/"index": [0-9]*, //' | cmp - "$dir/sorted"
    ok "$name: the file in reverse, more ranks" $?
    answer 1 one --dtype int8
    same "int8, 2 ranks, --chunk 64, 5 in flight" 2 --dtype int8 --chunk 64 --max-seqs 5
done

# Scores that are all equal choose the first experts: every row of a layer is theirs.
model=$dir/hot
own "$root/tests/golden/qwen3moe-mixed" "$model"
for layer in 0 2 3; do
    blank "$model" "model.layers.$layer.mlp.gate.weight"
done
answer 1 one --report "$dir/report.json"
grep -Eq '"experts": \{"distinct": 3\.[0-9]*, "rows": \[0\.[0-9]*, [0-9.]*, [0-9.]*\], "imbalance": [12]\.' "$dir/report.json"
ok "the report says that three experts of seven are met" $?
expect "... and the last lines on standard error" 0 'experts: a wave met 3\.0 of 7 in a layer; .* MB of weights a row \([0-9.e-]+ MB if rows chose at random\)' \
    mpi 1 run -m "$model" -i "$dir/in.jsonl" -o "$dir/two.jsonl" --force -v
same "all rows on three experts, 2 ranks, --chunk 64" 2 --chunk 64
same "... each alone" 1 --max-seqs 1
cmp -s "$dir/one.jsonl" "$dir/sorted"
test $? -eq 1
ok "hot: ... and other answers than with a router" $?

refused() { # NAME MODEL SED TEXT : config.json changed by SED
    own "$root/tests/golden/$2" "$dir/bad"
    sed -i "$3" "$dir/bad/config.json"
    expect "$1" 1 "$4" mpi 1 run -m "$dir/bad" -p x --max-tokens 1
}
refused "fewer experts than files have" qwen3moe-mixed 's/"num_experts": 7/"num_experts": 6/' \
    'layers.0.mlp.experts.6.down_proj.weight, but num_experts is 6 in config.json|router.*shape|gate.weight has shape \[7, 36\], but config.json says \[6, 36\]'
refused "more experts than files have" qwen3moe-mixed 's/"num_experts": 7/"num_experts": 8/' \
    'gate.weight has shape \[7, 36\], but config.json says \[8, 36\]'
refused "another width" qwen3moe-mixed 's/"moe_intermediate_size": 21/"moe_intermediate_size": 22/' \
    'experts.0.gate_proj.weight has shape \[21, 36\], but config.json says \[22, 36\]'
refused "another width, fused" qwen3.5moe-wrap 's/"moe_intermediate_size": 17/"moe_intermediate_size": 16/' \
    'experts.gate_up_proj has shape \[8, 34, 30\], but config.json says \[8, 32, 30\]'
refused "another width, transposed" gptoss-sinks 's/"intermediate_size": 18/"intermediate_size": 20/' \
    'experts.gate_up_proj has shape \[6, 36, 36\], but config.json says \[6, 36, 40\]'
refused "another width, beside a dense MLP" gemma4-wrap 's/"moe_intermediate_size": 14/"moe_intermediate_size": 12/' \
    'layers.0.experts.gate_up_proj has shape \[7, 28, 36\], but config.json says \[7, 24, 36\]'
refused "other heads in full layers" gemma4-wrap 's/"global_head_dim": 18/"global_head_dim": 16/' \
    'layers.5.self_attn.q_proj.weight has shape \[72, 36\], but config.json says \[64, 36\]'
refused "V apart from K" gemma4-wrap 's/"attention_k_eq_v": true/"attention_k_eq_v": false/' \
    'layers.5.self_attn.k_proj.weight has shape \[36, 36\], but config.json says \[72, 36\]'
refused "null where transformers refuses it" glm4moe-groups 's/"topk_group": [0-9]*/"topk_group": null/' 'topk_group is null, but a number is expected'
refused "null for true or false" glm4moe-groups 's/"norm_topk_prob": [a-z]*/"norm_topk_prob": null/' 'norm_topk_prob is null, but true or false is expected'
refused "more chosen than there are" qwen3moe-mixed 's/"num_experts_per_tok": 3/"num_experts_per_tok": 9/' \
    'num_experts_per_tok is 9, but at most num_experts \(7\) is expected'

# What would not be NaN in the answer is refused: a score that is NaN is only never chosen.
not_finite() { # MODEL TENSOR BYTE TEXT
    own "$root/tests/golden/$1" "$model"
    poison "$model" "$2" "$3"
    expect "$1: NaN in $2" 1 "tensor $2 holds -?nan in row $4, but a finite number is expected" mpi 1 run -m "$model" -p x --max-tokens 1
}
not_finite glm4moe-groups model.layers.1.mlp.gate.e_score_correction_bias 8 "2, column 0"
not_finite gptoss-sinks model.layers.0.self_attn.sinks 4 "1, column 0"
not_finite qwen3moe-mixed model.layers.2.mlp.gate.weight 148 "1, column 1"
not_finite gemma4-wrap model.language_model.layers.3.router.scale 4 "1, column 0"
not_finite gemma4-wrap model.language_model.layers.3.router.per_expert_scale 8 "2, column 0"
not_finite qwen3next-keys model.layers.0.mlp.shared_expert_gate.weight 4 "0, column 1"

# Kimi K2.5 has its own name for what is between images and text.
own "$root/tests/golden/mistral4-scaled" "$dir/bad"
sed -i 's/vision_tower\./mm_projector./g' "$dir/bad"/*.safetensors "$dir/bad"/*.index.json
expect "tensors of images under another name" 0 'tensors? of vision, sound or layers behind the last one .* skipped' \
    mpi 1 run -m "$dir/bad" -p x --max-tokens 1
! grep -q 'belong to this model' "$dir/err"
ok "... are not taken for those of another model" $?

# A missing expert.
own "$root/tests/golden/qwen3moe-mixed" "$model"
sed -i 's/model.layers.2.mlp.experts.4.up_proj.weight/model.layers.2.mlp.experts.4.up_proj.weighx/' "$model"/*.safetensors \
    "$model/model.safetensors.index.json"
expect "a missing expert" 1 'tensor model.layers.2.mlp.experts.4.up_proj.weight is missing' mpi 1 run -m "$model" -p x
own "$root/tests/golden/qwen3.5moe-wrap" "$dir/bad"
sed -i 's/layers.1.mlp.experts.gate_up_proj"/layers.1.mlp.experts.gate_up_pro_"/' "$dir/bad"/*.safetensors "$dir/bad"/*.index.json
expect "layers whose experts lie differently" 1 'experts.gate_up_proj is missing: the first layer with experts has one tensor for all' mpi 1 run -m "$dir/bad" -p x
missing() { # MODEL TENSOR
    own "$root/tests/golden/$1" "$dir/bad"
    sed -i "s/$2\"/${2%?}_\"/" "$dir/bad"/*.safetensors "$dir/bad"/*.index.json
    expect "$1: $2 is missing" 1 "tensor $2 is missing" mpi 1 run -m "$dir/bad" -p x
}
for part in layer_scalar router.proj.weight router.scale router.per_expert_scale experts.down_proj \
    pre_feedforward_layernorm_2.weight post_feedforward_layernorm_1.weight mlp.up_proj.weight; do
    missing gemma4-wrap "model.language_model.layers.3.$part"
done
finish
