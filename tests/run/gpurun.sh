#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run without a GPU: scripts replace all programs, so its order, its time limits and its CSV are tested.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES

tree=$dir/tree
mkdir -p "$tree/tests/gpu" "$tree/bench" "$tree/build/tests/gpu" "$dir/bin"
cp "$root/tests/gpu/run" "$tree/tests/gpu/"
cp "$root/bench/compare" "$tree/bench/"
fake() { # FILE : standard input becomes a program
    { echo '#!/bin/bash' && cat; } >"$1"
    chmod +x "$1"
}
fake "$tree/tests/gpu/program.sh" <<<'[ -n "$CAKE_ON_GPU" ]'
fake "$tree/tests/gpu/wide.sh" <<<'[ -n "$CAKE_ON_GPU" ]'
fake "$tree/build/tests/gpu/goldens-cuda" <<<'sleep "${SLOW:-0}"'
fake "$tree/build/tests/gpu/probe" <<<'echo "wgmma: the bits of mma.sync in 256 of 256 tiles"'
for unit in kernels attend delta head fused_ops; do
    fake "$tree/build/tests/gpu/$unit-cuda" <<<'[ -z "$WRONG" ] || { echo "FAILED: ${0##*/} of $WRONG"; exit 1; }'
done
fake "$dir/bin/nvidia-smi" <<<'echo "ECC errors: none"'
fake "$dir/bin/dmesg" <<<'echo "NVRM: Xid 31"'
fake "$dir/bin/ncu" <<<'echo "$@" | grep -q -- --launch-skip'
fake "$dir/bin/compute-sanitizer" <<<true
fake "$tree/build/cake-mpi" <<'END'
case "$1 $2" in
--version*) echo "cake-mpi 9.8 (abc)" ;;
info*)
    [ ! -e "$DEAD" ] || exit 1
    echo "GPU         ${GPU:-GPU 0: NVIDIA H200, 139.8 GiB, capability 9.0}"
    echo "            cuBLASLt 13.1.0, for products of prompts"
    ;;
*)
    [[ "$*" != *"$FAILS"* ]] || { echo "this one fails" >&2; exit 1; }
    load=$(sed -nE 's/.*--batch ([^ ]*).*/\1/p' <<<"$*")
    while [ "$1" != -o ]; do shift; done
    {
        echo name,isa,host,ranks,rank,peer,threads,value,unit,share,bound,shape,dtype,batch,version
        [ -n "$load" ] || echo "peak.gpu-bf16,sm_90,vm,1,0,,1,20,GFLOP/s,,"
        [ -n "$load" ] || echo "peak.gpu-read,sm_90,vm,1,0,,1,10,GB/s,,"
        [ -z "$load" ] || for part in '' .prompt .generated .energy .power; do echo "throughput.load$part,sm_90,vm,1,0,,1,100,x,0.8,floor,$load"; done
    } >"$2"
    echo "measured $load"
    ;;
esac
END
fake "$dir/bin/python" <<'END'
case "$*" in
"-c import torch"*) [ -z "$NO_TORCH" ] ;;
"-c "*) exit 1 ;; # there is no vllm
*" make qwen3-0.6b "*" cuda")
    mkdir -p "$4"
    echo '{"vocab_size": 1000}' >"$4/config.json"
    ;;
*" gguf "*) touch "$4" ;;
*peers.py\ torch-compiled*) echo "no compiler" >&2 && exit 1 ;;
*) echo "version 2.11" && for shape in "${@:8}"; do echo "$shape 50"; done ;;
esac
END
fake "$dir/bin/llama-bench" <<<'echo "{\"avg_ts\": 25.000}"'
fake "$dir/bin/llama-batched-bench" <<<'echo "| 128 | 32 | 64 | 0 | 1 | 1 | 1 | 1 | 1 | 25.00 |"'
export PATH=$dir/bin:$PATH CAKE_PYTHON=$dir/bin/python top_builddir=$tree/build FAILS=nothing
run() {
    "$tree/tests/gpu/run" "$dir/gpu.csv" >"$dir/said" 2>&1
}
said() { # NAME TEXT (grep -E)
    grep -Eq -- "$2" "$dir/said" || { cat "$dir/said" && false; }
    ok "$1" $?
}
has() { # NAME LINE (of the CSV, grep -E)
    grep -Eq -- "$2" "$dir/gpu.csv" || { grep -v throughput "$dir/gpu.csv" && false; }
    ok "$1" $?
}

run
ok "all of it" $?
said "... nothing failed" '^[234][0-9] passed, 0 failed$'
said "... what only a GPU can say" '^ +wgmma: the bits of mma.sync in 256 of 256'
said "... kernels alone" '^ok - kernels alone: fused_ops'
said "... one kind of launch after the other" '^ok - shapes that models have: .*: ordered'
said "... counters" '^ok - counters of kernels, llama-3.1-8b 64x16\+8'
grep -q '^# kernels alone: delta: status 0' "$dir/gpu.log"
ok "... the output of all steps stays" $?
said "... figures are shown" '^measured 64x1024\+96$'
has "the machine" '^# tests/gpu/run, [-0-9]* [0-9:]* UTC, nvidia-h200$'
has "... as it describes itself" '^# GPU .*capability 9.0'
has "floors" '^floor,,peak.gpu-read,sm_90'
has "watts" '^llama-3.1-8b,1x16\+512,throughput.load.power,'
grep -A1 '^# cake-mpi bench throughput.load --shape llama-3.1-8b --batch 256x1000+1000 --max-seqs 256 --smoke --device cuda$' "$dir/gpu.csv" |
    grep -q '^llama-3.1-8b,256x1000+1000,throughput.load,'
ok "a command stands before its lines" $?
has "torch" '^compare,,nvidia-h200,[-0-9]*,torch,2.11,bf16,bf16,batch-64,50.00,[0-9.]*,2.00,1$'
has "... its model" '^# .*/python bench/peers.py make qwen3-0.6b .*/model cuda$'
has "... its command" '^# bench/compare .* --device cuda .* --engines torch --torch '
said "an engine that fails is left out" '^left out - beside other engines: torch, compiled .*'
! grep -q torch-compiled,2 "$dir/gpu.csv" && ! grep -q vllm "$dir/said"
ok "... and is not in the table; one that is not there is not tried" $?

CAKE_LLAMA=$dir/bin run
has "llama.cpp" '^compare,,.*,llama.cpp,,bf16,bf16,batch-64,25.00,[0-9.]*,4.00,1$'
said "... on a model that was made" '^ok - the same for llama.cpp'

NO_TORCH=1 run
ok "without torch" $?
said "... that is said" '^left out - other engines: .*/python has no torch'
! grep -q '^compare' "$dir/gpu.csv"
ok "... and nothing is compared" $?
FAILS=qwen3-32b run
[ $? = 1 ] && [ "$(grep -c '^not ok - qwen3-32b' "$dir/said")" = 3 ]
ok "a figure that fails" $?
[ "$(grep -c '^# qwen3-32b' "$dir/gpu.log")" = 3 ] && grep -q '^this one fails' "$dir/gpu.log"
ok "... what it said stays" $?
said "... is counted" ' passed, 3 failed$'
said "a GPU is asked whether it is well" 'not ok - qwen3-32b'
grep -q 'Xid 31' "$dir/gpu.log" && grep -q 'ECC errors' "$dir/gpu.log"
ok "... and so is the driver" $?
WRONG=3x5 run
[ $? = 1 ] && grep -q 'FAILED: attend-cuda of 3x5' "$dir/said" && ! grep -q 'golden' "$dir/said"
ok "a kernel that fails alone ends all" $?
said "... after all kernels" 'not ok - kernels alone: fused_ops'
cp "$tree/tests/gpu/wide.sh" "$dir/wide.sh"
fake "$tree/tests/gpu/wide.sh" <<<'touch "$DEAD" && exit 1'
DEAD=$dir/dead run
[ $? = 1 ] && ! grep -q 'launched: graphs' "$dir/said"
ok "a GPU that no longer answers ends all" $?
said "... which is said" '^not ok - the GPU no longer answers: see .*gpu.log'
mv "$dir/wide.sh" "$tree/tests/gpu/wide.sh"
GPU="GPU 0: NVIDIA H100 80GB HBM3, 79.1 GiB, capability 9.0" run
said "what does not fit is left out" '^left out - llama-3.1-8b 256x1000\+1000: its KV cache does not fit 79 GiB'
SLOW=60 CAKE_GPU_SECONDS=2 run
[ $? = 0 ] && [ "$SECONDS" -lt 60 ]
ok "what there is not enough time for is ended" $?
said "... and left out" '^left out - golden models, .*: no time is left$'
said "... as is what there is none for" '^left out - qwen3-32b 8x16\+64: no time is left$'
CAKE_GPU_PARTS="sanitizers proofs" run
[ $? = 0 ] && ! grep -q throughput "$dir/said" && grep -q '^ok - memcheck of shapes' "$dir/said" && grep -q '^ok - golden' "$dir/said"
ok "some parts" $?
CAKE_GPU_PARTS=all run
[ $? = 1 ]
ok "a part that there is none of" $?
GPU="none: no NVIDIA driver on this machine" run
[ $? = 1 ] && [ "$(tail -n 1 "$dir/said")" = "0 passed, 1 failed" ]
ok "no GPU" $?
finish
