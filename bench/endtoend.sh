#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/endtoend.sh CAKE_MPI TOKENIZER_DIR [CSV]
# Tokens per second of whole runs, prefill and decode, at np 1 and 2: a model in the shape of Qwen3-0.6B with made-up
# BF16 weights (nothing is read), prompts of random token ids. TOKENIZER_DIR holds a tokenizer.json of that family.
# Each figure is the median of RUNS (default 3). One thread per rank and core: THREADS in all (default: all cores).
set -eu
cake=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
runs=${RUNS:-3}
threads=${THREADS:-$(nproc)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
csv=${3:-$dir/csv}
mkdir "$dir/model"
ln -s "$(realpath "$2")/tokenizer.json" "$dir/model/"
cat >"$dir/model/config.json" <<'EOF'
{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
 "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
 "head_dim": 128, "max_position_embeddings": 2048, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
 "hidden_act": "silu", "tie_word_embeddings": true, "dtype": "bfloat16", "eos_token_id": 151645}
EOF

prompts() { # N PROMPT_TOKENS GENERATED : token ids from a fixed generator
    awk -v n="$1" -v len="$2" -v gen="$3" 'BEGIN { srand(1); for (i = 0; i < n; i++) {
        printf "{\"prompt\": [%d", int(rand() * 150000); for (j = 1; j < len; j++) printf ", %d", int(rand() * 150000)
        printf "], \"max_tokens\": %d, \"ignore_eos\": true, \"temperature\": 0}\n", gen } }'
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# row NAME NP PROMPTS PROMPT_TOKENS GENERATED RATE
row() {
    prompts "$3" "$4" "$5" >"$dir/in.jsonl"
    for _ in $(seq "$runs"); do
        "$here/../tests/mpirun.sh" "$2" "$cake" run -m "$dir/model" --dummy-weights -i "$dir/in.jsonl" \
            -o "$dir/out.jsonl" --force -q --progress none --threads $((threads / $2)) --report "$dir/report.json"
        sed -nE "s/.*\"$6\": ([0-9.]+).*/\1/p" "$dir/report.json"
    done | median | {
        read -r rate
        printf '%-24s np %d  %8.1f tokens/s (%s)\n' "$1" "$2" "$rate" "$6"
        echo "$1,$2,$((threads / $2)),$rate,$6" >>"$csv"
    }
}

echo "name,ranks,threads,tokens_per_s,what" >"$csv"
for np in 1 2; do
    [ $((threads / np)) -ge 1 ] || continue
    row "prefill 512" "$np" 8 512 1 prompt_per_s
    row "decode, 1 stream" "$np" 1 16 48 generated_per_s
    row "8 x (128+32)" "$np" 8 128 32 total_per_s
    row "32 x (128+32)" "$np" 32 128 32 total_per_s
done
