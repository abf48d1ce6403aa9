#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/weights_memory.sh CAKE_MPI [GB [SHARE [SEQUENCES...]]]
# What --weights-memory costs: a mixture of GB (default 4) of random BF16 weights, of which SHARE (default 50%) is held,
# with so many sequences in flight (default 4 16 64), on one rank of all cores, from the page cache and from disk. Each
# run is compared with what reading alone allows: the bytes that it read for waves, at the rate at which the same program
# loads the same file. The aim: 80 % of it, where waves are read for longer than they are computed.
# From disk: the KV cache is planned so large that the page cache would not hold the file, so its pages are released after
# each reading. On an idle machine only. MODEL=DIR: this model instead.
set -eu
[ $# -ge 1 ] || {
    sed -n '3s/^# /usage: /p' "$0" >&2
    exit 2
}
cake=$(realpath "$1") gb=${2:-4} share=${3:-50%}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- 4 16 64
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d -p "${TMPDIR:-/tmp}")
trap 'rm -rf "$dir"' EXIT
model=${MODEL:-$dir/model}

# A mixture of qwen3_moe: 16 layers of 64 experts, 4 of which a row meets; experts as wide as GB say.
[ -n "${MODEL:-}" ] || python3 - "$root/jobs/demo/model" "$model" "$gb" <<'END'
import array, json, os, random, shutil, struct, sys
demo, to, gb = sys.argv[1], sys.argv[2], float(sys.argv[3])
os.mkdir(to)
for name in os.listdir(demo):
    if name.startswith("tokenizer"):
        shutil.copy(os.path.join(demo, name), to)
vocab = json.load(open(os.path.join(demo, "config.json")))["vocab_size"]
layers, dim, experts, heads, kv, head = 16, 1024, 64, 16, 4, 64
ff = max(64, int(gb * 1e9 / (layers * experts * 3 * dim * 2)) // 64 * 64)
json.dump({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": vocab, "hidden_size": dim,
           "intermediate_size": 2048, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
           "head_dim": head, "moe_intermediate_size": ff, "num_experts": experts, "num_experts_per_tok": 4,
           "norm_topk_prob": True, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "eos_token_id": 2,
           "tie_word_embeddings": True, "dtype": "bfloat16"}, open(os.path.join(to, "config.json"), "w"))
tensors = [("embed_tokens", [vocab, dim]), ("norm", [dim])]
for i in range(layers):
    at = "layers.%d." % i
    tensors += [(at + "input_layernorm", [dim]), (at + "post_attention_layernorm", [dim]), (at + "mlp.gate", [experts, dim]),
                (at + "self_attn.q_proj", [heads * head, dim]), (at + "self_attn.k_proj", [kv * head, dim]),
                (at + "self_attn.v_proj", [kv * head, dim]), (at + "self_attn.o_proj", [dim, heads * head]),
                (at + "self_attn.q_norm", [head]), (at + "self_attn.k_norm", [head])]
    for e in range(experts):
        name = at + "mlp.experts.%d." % e
        tensors += [(name + "gate_proj", [ff, dim]), (name + "up_proj", [ff, dim]), (name + "down_proj", [dim, ff])]
header, at = {}, 0
for name, shape in tensors:
    size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    header["model." + name + ".weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
    at += size
random.seed(1)
n = 1 << 19
block = array.array("H", (struct.unpack("<I", struct.pack("<f", random.gauss(0, 0.02)))[0] >> 16 for _ in range(n))).tobytes()
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(os.path.join(to, "model.safetensors"), "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text)
    for i, (name, shape) in enumerate(tensors):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        if "norm" in name:
            out.write(b"\x80\x3f" * (size // 2))
            continue
        turn = 2 * (i * 7919 % n)
        piece = block[turn:] + block[:turn]
        out.write((piece * (size // len(piece) + 1))[:size])
END

value() { sed -nE "s/.*\"$1\": ([0-9.]+).*/\1/p" "$dir/report.json" | head -1; }
run() { # SEQUENCES ARGUMENT...
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) { printf "{\"prompt\": [%d", i % 900; for (j = 1; j < 16; j++) printf ", %d", (i * 31 + j * 7) % 900
        print "], \"max_tokens\": 32, \"ignore_eos\": true, \"temperature\": 0}" } }' >"$dir/in.jsonl"
    "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/out-$1.jsonl" --force -q --progress none --context 256 --max-seqs "$1" \
        --report "$dir/report.json" "${@:2}"
}
cold() { for file in "$model"/*.safetensors; do dd if="$file" iflag=nocache count=0 status=none; done; }
sync

printf '%-12s %5s %12s %12s %10s %10s %12s %8s\n' from seqs 'all tok/s' "$share tok/s" 'read GB' 'rate GB/s' 'allowed tok/s' reached
for from in cache disk; do
    more=(--kv-memory 64M)
    if [ $from = disk ]; then # all memory but a twentieth of the file
        run 1 --kv-memory 64M
        more=(--kv-memory "$(awk -v weights="$(value read_bytes)" '/MemAvailable/ { printf "%.0f", $2 * 1024 - 1.1 * weights - 4e8 }' /proc/meminfo)")
    fi
    rate=0
    for _ in 1 2 3; do # the best of three
        [ $from = cache ] || cold
        run 1 "${more[@]}"
        rate=$(awk -v bytes="$(value read_bytes)" -v s="$(value load_s)" -v rate="$rate" 'BEGIN { now = bytes / s; print (now > rate ? now : rate) }')
    done
    for n in "$@"; do
        run "$n" --kv-memory 64M
        all=$(value generated_per_s)
        mv "$dir/out-$n.jsonl" "$dir/all.jsonl"
        [ $from = cache ] || cold
        run "$n" "${more[@]}" --weights-memory "$share"
        cmp "$dir/all.jsonl" "$dir/out-$n.jsonl"
        bytes=$(grep '"weights_read"' "$dir/report.json" | sed -nE 's/.*"bytes": ([0-9]+).*/\1/p')
        awk -v from=$from -v n="$n" -v all="$all" -v own="$(value generated_per_s)" -v bytes="$bytes" -v rate="$rate" \
            'BEGIN { allowed = n * 32 / (bytes / rate)
                printf "%-12s %5d %12.1f %12.1f %10.2f %10.2f %12.1f %6.0f %%\n", from, n, all, own, bytes / 1e9, rate / 1e9, allowed, 100 * own / allowed }'
    done
done
