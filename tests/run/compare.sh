#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/compare with scripts in place of the engines, which print recorded output, so every figure is known: medians,
# ratios, floors, engines that fail, a CSV that is continued, a plot.
. "$(dirname "$0")/../shell.sh"

mkdir "$dir/bin" "$dir/model"
compare=$root/bench/compare
fake() { # NAME : standard input becomes a program
    { echo '#!/bin/sh' && cat; } >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}

echo '{"vocab_size": 1000}' >"$dir/model/config.json"
# Rounds of 2, 1 and 4 tokens/s, ten times as many of prompts, a hundred times as many generated; 80 % of the floor.
fake cake-mpi <<'EOF'
echo "$*" >>"$0.said"
case "$*" in
--version) echo "cake-mpi 9.8 (abc)" ;;
*"--isa avx2"*"bench"* | "bench "*"--isa avx2"*) exit 2 ;;
"bench peak.f32"*) echo "peak.f32 avx512 1 thread 1 GFLOP/s" ;;
"bench throughput.load"*)
    case "$*" in *int8*) exit 1 ;; esac
    while [ "$1" != -o ]; do shift; done
    echo x >>"$0.runs"
    case $(($(wc -l <"$0.runs") % 3)) in 1) all=2 ;; 2) all=1 ;; 0) all=4 ;; esac
    cat >"$2" <<END
name,isa,host,ranks,rank,peer,threads,value,unit,share,bound,shape,dtype,batch,version
throughput.load,avx512,vm,1,0,,2,$all,tokens/s,0.8,floor,m,auto,8x128+32,9.8
throughput.load.prompt,avx512,vm,1,0,,2,$((all * 10)),tokens/s,,,m,auto,8x128+32,9.8
throughput.load.generated,avx512,vm,1,0,,2,$((all * 100)),tokens/s,,,m,auto,8x128+32,9.8
END
    ;;
esac
EOF
fake llama-bench <<'EOF'
echo "$*" >>"$0.said"
case "$*" in
--version) echo "version: 0.5.0-dev (build 1, commit 0c1e570)" >&2 ;;
*"-p 512 -n 0"*) echo '{"build_commit": "0c1e570", "n_prompt": 512, "avg_ns": 1908548804, "avg_ts": 268.266653, "samples_ts": [ 268.267 ]}' ;;
*"-p 0 -n 64"*) echo '{"build_commit": "0c1e570", "n_gen": 64, "avg_ts": 23.7, "stddev_ts": 0.000000}' ;;
esac
EOF
fake llama-batched-bench <<'EOF'
echo "$*" >>"$0.said"
cat <<'END'

llama_batched_bench: n_kv_max = 1280, n_batch = 2048, n_ubatch = 512, flash_attn = 1, n_threads = 2, n_threads_batch = 2

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |     32 |    8 |   1280 |    1.703 |   300.59 |    2.463 |    51.97 |    4.166 |   153.61 |

END
EOF
fake python <<'EOF'
echo "$*" >>"$0.said"
[ "$2" != vllm ] || { echo "No module named 'llguidance'" >&2; exit 1; }
echo "version 2026.4.1.0"
shift 7
for shape; do echo "$shape 100.5"; done
EOF
export PATH=$dir/bin:$PATH
run() {
    "$compare" --cake "$dir/bin/cake-mpi" --model "$dir/model" --threads 2 --machine m --date 2026-01-02 "$@"
}

rm -f "$dir/bin/cake-mpi.runs"
run --runs 3 --tests "prefill-512" -o "$dir/one.csv" >"$dir/table" 2>"$dir/err"
ok "one engine" $?
grep -Eq '^m,.*,avx512bf16,prefill-512,[0-9.]*,0.800,1.00,3$' "$dir/one.csv"
ok "a share of the floor" $?
grep -Eq '^m,2026-01-02,cake-mpi,9.8-abc,bf16,avx512bf16,prefill-512,[0-9.]*,[0-9.]+,1.00,3$' "$dir/one.csv"
ok "both instruction sets" $?

rm -f "$dir/bin/cake-mpi.runs"
run --runs 3 --tests "decode-1 batch-8 int8-decode-1" -o "$dir/one.csv" --llama "$dir/bin" --gguf "$dir/model" --gguf-int8 "$dir/model" \
    --openvino "$dir/bin/python" --ov-model "$dir/model" --vllm "$dir/bin/python" >"$dir/table" 2>"$dir/err"
ok "engines" $?
has() { # NAME LINE (of the CSV, grep -E)
    grep -Eq "^m,2026-01-02,$2,[0-9]+\$" "$dir/one.csv" || { cat "$dir/one.csv" && false; }
    ok "$1" $?
}
grep -q '^m,.*,prefill-512,' "$dir/one.csv"
ok "tests of the earlier run stay" $?
has "llama.cpp, one stream" 'llama.cpp,0c1e570,bf16,bf16,decode-1,23.70,[0-9.]*,[0-9.]*'
has "llama.cpp, a batch" 'llama.cpp,0c1e570,bf16,bf16,batch-8,153.61,[0-9.]*,[0-9.]*'
has "llama.cpp, int8, nothing of ours beside it" 'llama.cpp,0c1e570,int8,int8,decode-1,23.70,[0-9.]*,'
has "OpenVINO as it comes" 'OpenVINO,2026.4.1.0,f16,bf16,decode-1,100.50,[0-9.]*,[0-9.]*'
has "OpenVINO in f32" 'OpenVINO,2026.4.1.0,f16,f32,batch-8,100.50,[0-9.]*,[0-9.]*'
! grep -q vLLM "$dir/one.csv" && grep -q 'vLLM (bf16, bf16) failed' "$dir/err" && grep -q llguidance "$dir/err"
ok "an engine that fails is said and left out" $?
grep -q 'cake-mpi (int8, avx512) failed' "$dir/err"
ok "so is ours" $?
[ "$(grep -c 'failed and is left out' "$dir/err")" = 3 ]
ok "and is not tried again" $?

# Runs of ours, in order: avx512 2 and 1 (decode, batch), avx512bf16 4 and 2, then 1 and 4, 2 and 1, 4 and 2, 1 and 4.
has "median, one stream, avx512" 'cake-mpi,9.8-abc,bf16,avx512,decode-1,200.00,[0-9.]*,1.00'
has "median, one stream, avx512bf16" 'cake-mpi,9.8-abc,bf16,avx512bf16,decode-1,200.00,[0-9.]*,1.00'
has "median, a batch, avx512" 'cake-mpi,9.8-abc,bf16,avx512,batch-8,2.00,[0-9.]*,1.00'
has "another engine's share of that floor" 'OpenVINO,2026.4.1.0,f16,f32,decode-1,100.50,0.402,[0-9.]*'
has "... none without it" 'llama.cpp,0c1e570,int8,int8,decode-1,23.70,,'
has "ratio" 'llama.cpp,0c1e570,bf16,bf16,decode-1,23.70,[0-9.]*,8.44'

run --runs 1 --engines OpenVINO --tests decode-1 --openvino "$dir/bin/python" --ov-model "$dir/model" -o "$dir/one.csv" >"$dir/table" 2>"$dir/err"
ok "again, less" $?
[ "$(grep -c ',decode-1,' "$dir/one.csv")" = 3 ] && [ "$(grep -c ',batch-8,' "$dir/one.csv")" -ge 4 ]
ok "a test measured again is replaced, of those weights" $?

! grep -q ngl "$dir/bin/llama-bench.said" && grep -q 'openvino .* 2 cpu f32 1000 decode,1,16,65 batch,8,128,32$' "$dir/bin/python.said" &&
    ! grep 'bench' "$dir/bin/cake-mpi.said" | grep -qv -e '--device cpu'
ok "all of it on the CPU" $?

# On a GPU: ours once with each kind of weights, all layers of llama.cpp, torch both ways; shares of the GPU's peaks.
rm -f "$dir/bin"/*.said
run --runs 1 --device cuda --tests "prefill-512 decode-1 batch-8" -o "$dir/gpu.csv" --llama "$dir/bin" --gguf "$dir/model" \
    --torch "$dir/bin/python" >"$dir/table" 2>"$dir/err"
ok "on a GPU" $?
[ "$(cut -d, -f3,5,6 "$dir/gpu.csv" | sort | uniq -c | awk 'NR > 1 { print $1, $2 }' | tr '\n' ' ')" = "1 engine,weights,arithmetic 3 llama.cpp,bf16,bf16 3 torch,bf16,bf16 3 torch-compiled,bf16,bf16 " ] &&
    grep -q '^m,.*,cake-mpi,9.8-abc,bf16,bf16,decode-1,' "$dir/gpu.csv"
ok "... engines" $?
awk -F, '$3 == "cake-mpi" && $7 == "decode-1" { ours = $8 } $3 == "torch" && $7 == "decode-1" { exit $9 == sprintf("%.3f", 100.5 * 0.8 / ours) ? 0 : 1 }' "$dir/gpu.csv"
ok "... share of the floor" $?
! grep bench "$dir/bin/cake-mpi.said" | grep -qv -e '--device cuda' && ! grep -v -e --version "$dir/bin"/llama*.said | grep -qv -e '-ngl 99'
ok "... ours and llama.cpp are told so" $?
grep -q 'torch .*/model 2 cuda bfloat16 1000 prefill,4,512,1 ' "$dir/bin/python.said" && grep -q 'torch-compiled .* 2 cuda ' "$dir/bin/python.said"
ok "... so is torch" $?
run --runs 1 --engines torch --tests decode-1 --torch "$dir/bin/python" -o "$dir/gpu.csv" >"$dir/table" 2>"$dir/err" && ! grep -q compiled "$dir/table"
ok "torch on a CPU" $?
expect "OpenVINO on a GPU" 2 'it computes on CPUs' run --device cuda --openvino "$dir/bin/python"
expect "a device that is none" 2 "'tpu' is neither" run --device tpu
if command -v python3 >/dev/null; then # the shapes of bench/shapes.c
    expect "a shape for a model to be made in" 0 "'model_type': 'llama'.*'dtype': 'bfloat16'" python3 -B -c \
        "import sys; sys.path.insert(0, '$root/bench'); import peers; print(peers.config_of('llama-3.1-8b'))"
    expect "names of tensors for llama.cpp" 0 '^blk.7.ffn_down.weight output_norm.weight token_embd.weight$' python3 -B -c \
        "import sys; sys.path.insert(0, '$root/bench'); import peers; print(*map(peers.gguf_name, ['model.layers.7.mlp.down_proj.weight', 'model.norm.weight', 'model.embed_tokens.weight']))"
    expect "a mixture for llama.cpp" 1 'qwen3moe-mixed is of family qwen3_moe: .* peers.py gguf MODEL FILE SOURCE' \
        python3 -B "$root/bench/peers.py" gguf "$root/tests/golden/qwen3moe-mixed" "$dir/x.gguf"
    expect "a shape with fewer layers" 0 "'num_hidden_layers': 3,.*'num_experts': 128" python3 -B -c \
        "import sys; sys.path.insert(0, '$root/bench'); import peers; print(peers.cut_config('qwen3-30b-a3b', 3))"
    expect "... with more than it has" 1 '--layers 49: qwen3-30b-a3b has 48' python3 -B -c \
        "import sys; sys.path.insert(0, '$root/bench'); import peers; peers.cut_config('qwen3-30b-a3b', 49)"
    expect "a shape that is none" 1 'gpt-9 is no shape: there are qwen3-0.6b, .*, tiny$' python3 -B -c \
        "import sys; sys.path.insert(0, '$root/bench'); import peers; peers.config_of('gpt-9')"
fi

rm -f "$dir/bin/cake-mpi.runs"
for i in 1 2 3; do
    run --runs 1 --engines cake-mpi --arithmetic f32 --tests batch-32 --rounds "$dir/rounds" -o "$dir/one.csv" >"$dir/table" 2>"$dir/err"
    ok "round $i of a run in pieces" $?
done
run --runs 0 --rounds "$dir/rounds" -o "$dir/one.csv" >"$dir/table" 2>"$dir/err"
ok "what there is, and nothing more" $?
"$compare" --runs 0 --rounds "$dir/rounds" >"$dir/table" 2>"$dir/err"
ok "... asks for no engine" $?
has "its median" 'cake-mpi,9.8-abc,bf16,avx512,batch-32,2.00,[0-9.]*,1.00'
[ "$(grep -c ',batch-32,' "$dir/one.csv")" = 1 ]
ok "of one arithmetic" $?

expect "an engine that is none" 2 'is no option' "$compare" --frob x
expect "no program" 2 'cannot be run' "$compare" --cake "$dir/none" --model "$dir/model"
expect "nowhere to write" 2 'none/t.csv: no file can be made there' \
    "$compare" --cake "$dir/bin/cake-mpi" --model "$dir/model" -o "$dir/none/t.csv"
expect "no engine" 2 'none/llama-bench: cannot be run' "$compare" --cake "$dir/bin/cake-mpi" --model "$dir/model" --llama "$dir/none"
expect "no model" 2 'no config.json' "$compare" --cake "$dir/bin/cake-mpi" --model "$dir/none"
expect "no figure at all" 2 'no engine gave a figure' run --engines vLLM --vllm "$dir/bin/python" --tests decode-1 --runs 1
expect "a test that is none" 2 'is no test' run --tests frob
if command -v gnuplot >/dev/null; then
    run --runs 1 --engines cake-mpi --tests decode-1 -o "$dir/one.csv" --plot "$dir/plot" >"$dir/table" 2>"$dir/err"
    ok "plot" $?
    grep -q 'OpenVINO, f16 weights, f32' "$dir/plot.svg" && [ "$(head -c 4 "$dir/plot.png" | tail -c 3)" = PNG ]
    ok "its files" $?
fi
finish
