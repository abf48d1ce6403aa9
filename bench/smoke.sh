#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/smoke.sh CAKE_MPI: runs every measurement once and small, on one rank and on two; status 1 if one fails, or its
# result is missing or not a number. The values mean nothing. `make bench-smoke`, and so CI, runs it.
set -u
cake=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1
status=0
wrong() { echo "bench-smoke: $1"; status=1; }

"$cake" bench | sed -n 's/^  \([a-z][^ ]*\) .*/\1/p' >"$dir/names"
[ "$(wc -l <"$dir/names")" -ge 60 ] || wrong "only $(wc -l <"$dir/names") names"
for np in 1 2; do
    "$root/tests/mpirun.sh" "$np" "$cake" bench --smoke all -m "$root/jobs/demo/model" -o "$dir/$np.csv" >"$dir/out" 2>&1 ||
        { wrong "status $? on $np"; tail -n 5 "$dir/out"; continue; }
    awk -F, 'NR == 1 { n = NF } NF != n || (NR > 1 && !($8 > 0 && $8 < 1e15)) { print; bad = 1 } END { exit bad }' "$dir/$np.csv" ||
        wrong "lines above, on $np"
    while read -r name; do
        case $np.$name in
        *.peak.bf16 | *.peak.int8 | *.peak.gpu-*) continue ;;       # of processors that have it, of GPUs
        1.links.self) ;; 1.links.* | 1.peak.mpi*) continue ;;       # of two ranks
        esac
        grep -q "^$name," "$dir/$np.csv" || wrong "$name printed nothing on $np"
    done <"$dir/names"
    echo "bench-smoke: $np rank(s), $(($(wc -l <"$dir/$np.csv") - 1)) results of $(wc -l <"$dir/names") measurements"
done

# A scaling study: a line for each run, a table, plots; with predicted seconds.
"$root/bench/scaling" --cake "$cake" -m "$root/jobs/demo/model" --launch "$root/tests/mpirun.sh {n}" --ranks "1 2" --threads 1 --load 4x8+4 --batches 2 \
    --runs 1 -o "$dir/scaling" -- --dummy-weights >"$dir/out" 2>&1 || { wrong "bench/scaling: status $?"; tail -n 5 "$dir/out"; }
awk -F, 'NR > 1 && !($9 > 0 && $9 < 1e3 && $11 > 0 && $12 > 0 && $12 < 1e3) { print; bad = 1 } END { exit bad || NR != 8 }' "$dir/scaling.csv" ||
    { wrong "bench/scaling: not the seven runs that were asked for"; cat "$dir/scaling.csv"; }
[ "$(grep -c '^| [12] | 1 | ' "$dir/scaling.md")" = 7 ] || { wrong "bench/scaling: the table"; cat "$dir/scaling.md"; }
! command -v gnuplot >/dev/null || [ "$(find "$dir" -name 'scaling-*.*g' -size +1k | wc -l)" = 8 ] || wrong "bench/scaling: plots"
echo "bench-smoke: bench/scaling, $(($(wc -l <"$dir/scaling.csv") - 1)) runs"

"$root/tests/mpirun.sh" 2 "$cake" run -m "$root/jobs/demo/model" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/out.jsonl" -q --trace "$dir/run.json" \
    --report "$dir/report.json" || wrong "a run with trace and report: status $?"
! command -v gnuplot >/dev/null || "$root/bench/plot" "$dir/run.json" "$dir/report.json" || wrong "bench/plot: status $?"

# What bench/peers.py makes: shapes of experts, small, are loaded by transformers and cake-mpi.
python=${CAKE_PYTHON:-python3}
if "$python" -c "import torch, transformers" 2>/dev/null; then
    "$python" -B - "$root/bench" "$dir" >"$dir/out" 2>&1 <<'EOF' || { wrong "bench/peers.py: status $?"; tail -n 5 "$dir/out"; }
import sys
sys.path.insert(0, sys.argv[1])
import peers, transformers
small = dict(hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=300, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, moe_intermediate_size=32, shared_expert_intermediate_size=32, num_experts=16,
             num_local_experts=16, n_routed_experts=16, num_experts_per_tok=2, q_lora_rank=24, kv_lora_rank=32,
             qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
             linear_key_head_dim=16, linear_value_head_dim=16)
for name in "qwen3-0.6b qwen3-30b-a3b gpt-oss-20b qwen3.5-35b-a3b glm-4.5-air deepseek-v3 glm-4.7-flash".split():
    config = {key: small.get(key, value) for key, value in peers.config_of(name).items()}
    if "q_lora_rank" in config:
        config["num_key_value_heads"] = config["num_attention_heads"]
    folder = f"{sys.argv[2]}/peer-{name}"
    peers.save_model(config, folder, "cpu")
    _, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), (name, info)
EOF
    for model in "$dir"/peer-*; do
        "$cake" bench throughput.load --smoke -m "$model" >"$dir/out" 2>&1 ||
            { wrong "bench/peers.py: status $? with ${model##*/}"; tail -n 5 "$dir/out"; }
    done
    n=$(find "$dir" -name 'peer-*' | wc -l)
    [ "$n" = 7 ] || wrong "bench/peers.py: $n models, not seven"
    echo "bench-smoke: bench/peers.py, $n models"
else
    echo "not checked here: bench/peers.py, for $python has no torch and transformers"
fi
exit $status
