#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A random model in realistic shapes (heads of 128, wide and narrow matrices, more positions than a segment) with enough
# sequences for large waves, which the small models of other tests do not have. The bits are the same in any batch, and the
# numbers those of the CPU except for rounding. tests/gpu/run runs it on a GPU (CAKE_ON_GPU), complete; fibres on the CPU, or
# a memory checker (CAKE_UNDER: a command), run a part of it.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES
cpu=$cake
if [ -z "${CAKE_ON_GPU:-}" ]; then
    cake=$(cd "${top_builddir:-$root/build}/tests/gpu" && pwd)/cake-mpi
    export HWLOC_COMPONENTS=-pci CAKE_TEST_GPU_MEMORY=1000000000
fi
if [ -z "${CAKE_ON_GPU:-}" ] || [ -n "${CAKE_UNDER:-}" ]; then
    wide=1 ff=160 vocab=300 n_seq=70 long=150 more=$(few 30 60) tokens=2
else
    wide=4 ff=9216 vocab=9000 n_seq=90 long=2300 more=300 tokens=6
fi

# FAMILY: adds its own fields of config.json to the common ones; qwen3.5 has three delta nets, and heads of 256.
model() {
    mkdir -p "$dir/model"
    printf '{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}' >"$dir/model/tokenizer.json"
    case $1 in
    qwen3) echo '"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2, "head_dim": 128, "rope_theta": 1000000,' ;;
    qwen3.5) echo '"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "num_hidden_layers": 4, "head_dim": 256,' \
        '"rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25}, "linear_conv_kernel_dim": 4,' \
        '"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": '"$wide, \"linear_num_value_heads\": $((2 * wide))," ;;
    esac >"$dir/family"
    cat - "$dir/family" >"$dir/model/config.json" <<END
{"hidden_size": $((wide * 128)), "intermediate_size": $ff, "num_attention_heads": $((2 * wide)), "num_key_value_heads": $wide,
 "vocab_size": $vocab, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "hidden_act": "silu",
END
    echo ' "torch_dtype": "bfloat16"}' >>"$dir/model/config.json"
}
# A long prompt, then shorter ones of odd lengths, as ids.
prompts() {
    awk -v n="$n_seq" -v long="$long" -v more="$more" -v vocab="$vocab" -v tokens="$tokens" 'BEGIN {
        srand(7)
        for (i = 0; i < n; i++) {
            len = i ? 1 + int(rand() * more) : long
            printf "{\"id\": \"%d\", \"max_tokens\": %d, \"ignore_eos\": true, \"logprobs\": 1, \"return_token_ids\": true, \"prompt\": [", i, tokens
            for (j = 0; j < len; j++)
                printf "%s%d", j ? ", " : "", int(rand() * vocab)
            print "]}"
        }
    }' >"$dir/p.jsonl"
}
answers() { # RESULTS NP ARGUMENT...
    rm -f "$dir/$1"*
    local run
    read -ra run <<<"${CAKE_UNDER:-} $cake"
    [ "$2" = 1 ] || run=(mpi "$2")
    "${run[@]}" run -m "$dir/model" --dummy-weights -i "$dir/p.jsonl" -o "$dir/$1" --deterministic-ids --temperature 0 "${@:3}"
}
same() { # NAME NP ARGUMENT...
    expect "$1: runs" 0 '' answers b.jsonl "$2" --device cuda "${@:3}"
    alike "$dir/a.jsonl" "$dir/b.jsonl"
    ok "... same bytes" $?
}
numbers() { # FILE : of each request the log probability of its first token
    grep -o '"token_logprobs": \[[-0-9.e]*' "$1" | sed 's/.*\[//'
}

try() { # FAMILY
    model "$1"
    expect "$1, all together" 0 "$n_seq requests \\(0 failed\\)" answers a.jsonl 1 --device cuda
    same "few at a time, in small chunks" 1 --max-seqs 3 --chunk 64
    [ -z "${CAKE_ON_GPU:-}" ] || [ -n "${CAKE_UNDER:-}" ] || same "one at a time" 1 --max-seqs 1
    same "two ranks" 2 --link mpi
    rm -f "$dir/c.jsonl"*
    expect "on the CPU" 0 '' env CAKE_DEVICE=cpu "$cpu" run -m "$dir/model" --dummy-weights -i "$dir/p.jsonl" -o "$dir/c.jsonl" \
        --deterministic-ids --temperature 0
    paste <(numbers "$dir/a.jsonl") <(numbers "$dir/c.jsonl") |
        awk -v n="$n_seq" 'NF == 2 { d = $1 - $2; if (d < 0) d = -d; if (d < 0.1) good++; if (d > most) most = d }
            END { print "# off by " 0 + most; exit !(NR == n && good >= 0.95 * n) }'
    ok "... the same log probabilities, but for roundings" $?
}

# The number of kernels per generated token, which shows whether operations are really fused: eight per layer (norm with the
# check for NaNs; q, k and v; RoPE and cache store; packed attention; o; norm; gate and up; down), six for embedding and head.
counts() {
    kernels() { # TOKENS
        CAKE_TEST_GPU_COUNTS=1 "$cake" run -m "$dir/model" --dummy-weights --device cuda -i "$dir/one.jsonl" -o - --max-tokens "$1" 2>&1 |
            grep -ao 'executor: [0-9]*' | cut -d' ' -f2
    }
    echo '{"prompt": [1, 2, 3], "ignore_eos": true}' >"$dir/one.jsonl"
    local each=$(($(kernels 6) - $(kernels 5)))
    test "$each" -eq $((2 * 8 + 6))
    ok "a generated token of two layers takes $each kernels" $?
}

prompts
try qwen3
[ -n "${CAKE_ON_GPU:-}${CAKE_UNDER:-}" ] || counts
[ "$wide" != 1 ] || n_seq=6 more=30
prompts
try qwen3.5
finish
