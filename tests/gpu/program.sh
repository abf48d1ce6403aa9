#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole program on fake GPUs (tests/gpu/memory.c, runtime.c), with the kernels of kernels/cuda as fibres on the CPU.
# With CAKE_ON_GPU on the GPUs of this machine, as far as possible.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES
cpu=$cake
if [ -n "${CAKE_ON_GPU:-}" ]; then
    isa=sm_[-0-9]*
else
    isa=cuda
    cake=$(cd "${top_builddir:-$root/build}/tests/gpu" && pwd)/cake-mpi
    export HWLOC_COMPONENTS=-pci # no real GPU is to be seen beside these
    export LD_LIBRARY_PATH=${cake%/*}/fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TMPDIR=$dir # what stands in for NCCL
fi

# A sum, a text to continue, several choices: 3 requests, results with logprobs.
sed -n 1p "$root/jobs/demo/prompts.jsonl" >"$dir/p.jsonl"
cat >>"$dir/p.jsonl" <<END
{"id": "long", "prompt": "$(printf 'one two three four five six seven %.0s' $(seq $(few 2 5)))", "max_tokens": 3}
{"id": "choices", "prompt": "The sum of 2 and 3 is", "n": 2, "temperature": 0.9, "seed": 3, "max_tokens": 3}
END
run() { # NP ARGUMENT... : one rank needs no launcher
    if [ "$1" = 1 ]; then "$cake" run -m "$model" "${@:2}"; else mpi "$1" run -m "$model" "${@:2}"; fi
}
short() { # NP ARGUMENT... : an answer to little
    run "$1" -p Hi --raw --max-tokens "${TOKENS:-1}" "${@:2}"
}
answers() { # NP RESULTS ARGUMENT... : results on NP ranks with a GPU each
    run "$1" -i "$dir/p.jsonl" -o "$dir/$2" --deterministic-ids --logprobs 2 --max-tokens 3 --device cuda "${@:3}"
}
kinds() { # what brings waves to each rank, by the report
    grep -o '"link": {"kind": "[a-z-]*' "$dir/r.json" | sed 's/.*"//' | tr '\n' ' '
}
same() { # NAME NP ARGUMENT... : the results are those of one rank
    rm -f "$dir/b.jsonl"*
    expect "$1: runs" 0 '' answers "$2" b.jsonl "${@:3}"
    alike "$dir/a.jsonl" "$dir/b.jsonl"
    ok "... same bytes" $?
}

# The answers are those of the CPU, logprobs except for rounding.
expect "one rank" 0 '3 requests \(0 failed\)' answers 1 a.jsonl --report "$dir/r.json"
grep -q '"device": "cuda", "gpu": 0, "gpu_layers": 8, "isa": "'"$isa"'"' "$dir/r.json"
ok "... the report says where it was" $?
"$cpu" run --device cpu -m "$model" -i "$dir/p.jsonl" -o "$dir/c.jsonl" --deterministic-ids --logprobs 2 --max-tokens 3 2>/dev/null
numbers() { # FILE : the first logprob of each token
    grep -o '"logprob": [-0-9.e]*' "$1" | cut -d' ' -f2
}
texts() { # FILE : all but the numbers, and what is drawn by them
    grep -v '"id": "choices"' "$1" | sed 's/"logprob": [-0-9.e]*//g' | grep -o '"content": "[^"]*"\|"text": "[^"]*"\|"token": "[^"]*", *"bytes' | grep -v bytes
}
test "$(texts "$dir/a.jsonl" | wc -l)" -ge 2 && cmp -s <(texts "$dir/a.jsonl") <(texts "$dir/c.jsonl")
ok "... the texts are those of the CPU" $?
paste <(numbers "$dir/a.jsonl") <(numbers "$dir/c.jsonl") |
    awk 'NF == 2 { d = $1 - $2; if (d < 0) d = -d; n++; if ($1 > -6 && d > 0.05) bad++ } END { exit !(n > 20 && bad == 0) }'
ok "... and the logprobs, but for roundings" $?

if [ -z "${CAKE_ON_GPU:-}" ]; then
    watts=$(grep -o '"gpu_watts": [0-9.]*' "$dir/r.json" | cut -d' ' -f2)
    awk -v w="$watts" 'BEGIN { exit !(w > 90 && w < 110) }' && grep -q '"joules_per_million_tokens": [1-9]' "$dir/r.json"
    ok "... and what it took: $watts W" $?
    CAKE_TEST_NVML=old short 2 --device cuda --report "$dir/r.json" >/dev/null 2>&1
    grep -q '"energy": {"gpu_joules": null, "gpu_watts": null' "$dir/r.json"
    ok "... or that this is not known" $?
    expect "... bench, too" 0 '^throughput.decode-1.energy +cuda .* J/Mtoken' "$cake" bench --smoke --device cuda -m "$model" throughput.decode-1
    watts=$(sed -n 's/^throughput.decode-1.power *cuda .* \([0-9.]*\) W *$/\1/p' "$dir/out")
    awk -v w="$watts" 'BEGIN { exit !(w > 90 && w < 110) }'
    ok "... and its power: $watts W" $?
fi

expect "bench: products on a GPU" 0 '^linear.k.8 +(cuda|sm_).* % of peak.gpu-(read|bf16)' "$cake" bench linear.k --smoke --device cuda
expect "... of quantised weights" 2 'needs CPUs: GPUs have no kernels' "$cake" bench linear.q4_0.gate.1 --smoke --device cuda

# Same bits.
same "two ranks" 2 --link mpi
[ -z "${CAKE_ALL:-}" ] || same "three ranks" 3 --link mpi --max-seqs 2
CAKE_TEST_MPI_READS_GPUS=1 same "four ranks, in chunks, by an MPI that reads GPUs" 4 --link mpi --chunk 64 --report "$dir/r.json"
if [ -z "${CAKE_ON_GPU:-}" ]; then
    test "$(kinds)" = "mpi-cuda mpi-cuda mpi-cuda mpi-cuda "
    ok "... the report says which edges" $?
fi
tac "$dir/p.jsonl" >"$dir/q.jsonl" && mv "$dir/q.jsonl" "$dir/p.jsonl"
rm -f "$dir/b.jsonl"*
expect "another order, and nothing repeated from what was recorded" 0 '' answers 1 b.jsonl --gpu-launch plain
each() { # FILE : results whatever their order
    sed -E 's/(req|cmpl)-[0-9]+//g; s/^(\{"id": "[a-z]*", )"index": [0-9]+/\1/' "$1" | sort
}
cmp -s <(each "$dir/a.jsonl") <(each "$dir/b.jsonl")
ok "... same bytes of each" $?
tac "$dir/p.jsonl" >"$dir/q.jsonl" && mv "$dir/q.jsonl" "$dir/p.jsonl"

# Each way to launch kernels.
for how in graphs overlap ordered; do
    [ -n "${CAKE_ALL:-}${CAKE_ON_GPU:-}" ] || [ $how = ordered ] || continue
    same "kernels launched: $how" 1 --gpu-launch $how
done

# Not all layers fit.
rm -f "$dir/b.jsonl"*
expect "three layers" 0 '' answers 1 b.jsonl --gpu-layers 3 --report "$dir/r.json"
grep -q '"gpu_layers": 3' "$dir/r.json" && cmp -s <(texts "$dir/a.jsonl") <(texts "$dir/b.jsonl")
ok "... the same texts" $?
if [ -n "${CAKE_ON_GPU:-}" ]; then
    if [ "$("$cake" info | grep -c 'GiB, capability')" -ge 2 ] && "$cake" info | grep -q '^NCCL  .* at build time'; then
        same "two ranks by NCCL" 2 --link nccl
        grep -q 'edges of the ring: self 0, nccl 1-2$' "$dir/err"
        ok "... which is said" $?
    fi
    finish
fi

# Numbers that are none: of a layer, seen by the next one, and of the last one, seen at the end.
for layer in 1 2; do
    rm -rf "$dir/broken" && cp -r "$root/tests/golden/qwen3-dynamic" "$dir/broken"
    poison "$dir/broken" "model.layers.$layer.mlp.down_proj.weight" 0
    for np in 1 2; do
        model=$dir/broken expect "a broken layer $layer, $np ranks" 3 "layer $layer on rank .* has NaN or infinity" run $np -p x --max-tokens 2 --device cuda
    done
done

# From GPU to GPU by NCCL.
if "$cake" info | grep -q '^NCCL  .* at build time'; then
    same "two ranks by NCCL" 2 --link nccl
    grep -q 'edges of the ring: self 0, nccl 1-2$' "$dir/err"
    ok "... which is said" $?
    export CAKE_TEST_GPUS=4
    CAKE_TEST_NCCL=slow same "three ranks, and calls that are in progress first" 3 --max-seqs 2 --report "$dir/r.json"
    test "$(kinds)" = "nccl nccl nccl "
    ok "... the report says which edges" $?
    printf "a: {rank: 1, layers: ['model.layers.2-3', 'model.layers.6-7']}\n" >"$dir/t.yml"
    same "waves that come by twice" 2 --topology "$dir/t.yml" --report "$dir/r.json"
    grep -q 'edges of the ring: self 0, nccl 1-4$' "$dir/err"
    ok "... all by NCCL" $?
    expect "... but to layers on CPUs" 0 'edges of the ring: self 0, nccl 1-2, mpi 3-4$' short 2 --topology "$dir/t.yml" --gpu-layers 3 --log info
    unset CAKE_TEST_GPUS
    fall() { # KIND TEXT ARGUMENT... : what is broken is warned of, and goes by MPI
        CAKE_TEST_NCCL=$1 expect "NCCL: $1" 0 "warning: planner: waves from rank 0 to rank 1 go by MPI, not by NCCL: $2" \
            short 2 "${@:3}" --report "$dir/r.json"
        test "$(kinds)" = "mpi mpi " && grep -q "not by NCCL" "$dir/err" && test "$(grep -c 'not by NCCL' "$dir/err")" -le 2
        ok "... by MPI, said of each edge at most once" $?
    }
    fall garbage 'a test message of 64 numbers arrived with 35 instead of 33'
    fall other 'NCCL is [0-9.]* on [^ ]* and 2.19.3 on [^ ]*: both have to be the same'
    CAKE_TEST_GPUS=4 CAKE_TEST_NCCL=garbage short 3 --report "$dir/r.json" >/dev/null 2>"$dir/err"
    test "$(kinds)" = "mpi mpi mpi " && test "$(grep -c 'not by NCCL' "$dir/err")" -eq 1
    ok "... which is tried at one edge only" $?
    CAKE_TEST_MPI_READS_GPUS=1 CAKE_TEST_NCCL=garbage short 2 --report "$dir/r.json" >/dev/null 2>&1
    test "$(kinds)" = "mpi-cuda mpi-cuda "
    ok "... by an MPI that reads GPUs, if there is one" $?
    if [ -n "${CAKE_ALL:-}" ]; then
        fall old 'libnccl.so.2 is too old: NCCL 2.17 or later is needed' --link nccl
        fall init 'another made-up error'
        CAKE_TEST_GPU_NO_QUEUE=1 fall stream 'no stream'
    fi
    # The other rank waits a minute for the test message; time passes faster here.
    "${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE "$root/tests/run/clock_shim.c" -o "$dir/clock.so" -ldl || exit 1
    TOKENS=3 CAKE_TEST_NCCL=send LD_PRELOAD=$dir/clock.so CLOCK_FACTOR=20 expect "NCCL: send, in a run" 1 'error: link: NCCL failed at sending a wave: a made-up system error' short 2
    CAKE_TEST_GPUS=1 expect "NCCL, and one GPU" 2 '--link nccl: ranks 0 and 1 share GPU 0 of [^ ]*, and NCCL wants one each; use --link mpi' \
        run 2 -p Hello --link nccl
fi
expect "NCCL without GPUs" 0 'warning: planner: --link nccl: no rank is on a GPU' short 2 --device cpu --link nccl

# By the calls of CUDA's runtime, which stands for GPUs there (tests/gpu/runtime.c): graphs, pinned memory, events.
runtime=${cake%/*}/runtime/cake-mpi
if [ -x "$runtime" ]; then
    executor=$cake cake=$runtime
    same "the runtime's calls" 1 --report "$dir/r.json"
    grep -q '"device": "cuda", "gpu": 0, "gpu_layers": 8, "isa": "sm_' "$dir/r.json"
    ok "... the report says where it was" $?
    same "... two ranks" 2 --link mpi
    expect "... waves of which nobody reads a row" 0 '1 request \(0 failed\), [1-9][0-9][0-9] prompt' \
        run 1 -p "$(printf 'one two three %.0s' $(seq 60))" --raw --max-tokens 1 --chunk 64 --device cuda --log info
    if "$cake" info | grep -q '^NCCL  .* at build time'; then
        same "... by NCCL" 2 --link nccl
        # What still waits ends before memory is given back.
        LD_PRELOAD=$dir/clock.so CLOCK_FACTOR=20 fall lost 'another made-up error'
    fi
    TOKENS=9 CAKE_TEST_GPU_FAILS=700 expect "... a GPU that fails" 1 \
        'GPU 0 \(Executor, 0000:01:00.0\) failed at computing: an illegal memory access was encountered \(cudaErrorIllegalAddress\)' short 1
    cake=$executor
fi

# The choice of the GPU.
export CAKE_TEST_GPUS=1
expect "two ranks on one GPU" 0 '' short 2 --report "$dir/r.json"
grep -q '2 ranks for 1 GPU of this host: two ranks on one GPU take turns' "$dir/err"
ok "... and are told" $?
grep -o '"gpu_watts": [0-9]*' "$dir/r.json" | awk '{ exit !($2 > 90 && $2 < 110) }'
ok "... it is counted once" $?
cat >"$dir/own" <<END
#!/bin/sh
CAKE_TEST_GPU_FIRST=\$OMPI_COMM_WORLD_LOCAL_RANK\$PMI_RANK exec "$cake" "\$@"
END
chmod +x "$dir/own"
"$root/tests/mpirun.sh" 2 "$dir/own" run -m "$model" -p Hello --max-tokens 2 --device cuda --report "$dir/r.json" >/dev/null 2>"$dir/err"
test "$(grep -o '"gpu": [0-9]' "$dir/r.json" | tr -d '\n')" = '"gpu": 0"gpu": 1' && ! grep -q 'take turns' "$dir/err"
ok "each rank sees one of its own" $?
cat >"$dir/two" <<END
#!/bin/sh
CAKE_TEST_GPUS=2 CAKE_TEST_GPU_FIRST=\$((2 * \$OMPI_COMM_WORLD_RANK\$PMI_RANK)) exec "$cake" "\$@"
END
chmod +x "$dir/two"
expect "... or two" 0 '' "$root/tests/mpirun.sh" 2 "$dir/two" run -m "$model" -p Hello --max-tokens 2 --report "$dir/r.json"
test "$(grep -o '"gpu": [0-9]' "$dir/r.json" | tr -d '\n')" = '"gpu": 0"gpu": 2'
ok "... one of them" $?
cat >"$dir/one" <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK\$PMI_RANK" = 0 ] || export CAKE_TEST_GPUS=0
exec "$cake" "\$@"
END
chmod +x "$dir/one"
expect "one rank sees a GPU, the other none" 0 'warning: .*all layers are on CPUs: other ranks have GPUs, but rank 1 on [^ ]+ has none: CAKE_TEST_GPUS is 0; ' \
    "$root/tests/mpirun.sh" 2 "$dir/one" run -m "$model" -p Hello --max-tokens 2 --report "$dir/r.json"
test "$(grep -c 'on CPUs' "$dir/err")" -eq 1 && test "$(grep -o '"device": "[a-z]*"' "$dir/r.json" | tr -d '\n')" = '"device": "cpu""device": "cpu"'
ok "... said once, both on CPUs" $?
unset CAKE_TEST_GPUS
printf "a: {rank: 1, gpu: 0, layers: ['model.layers.2-7']}\n" >"$dir/t.yml"
expect "the one that a topology says" 0 '' short 2 --topology "$dir/t.yml" --report "$dir/r.json"
test "$(grep -o '"gpu": [0-9]' "$dir/r.json" | tr -d '\n')" = '"gpu": 1"gpu": 0'
ok "... the other rank has another" $?
printf "a: {rank: 1, device: cpu, layers: ['model.layers.2-7']}\n" >"$dir/t.yml"
rm -f "$dir/b.jsonl"*
expect "a rank on CPUs beside one on a GPU" 0 '' answers 2 b.jsonl --topology "$dir/t.yml" --report "$dir/r.json"
test "$(grep -o '"device": "[a-z]*"' "$dir/r.json" | tr -d '\n')" = '"device": "cuda""device": "cpu"' && cmp -s <(texts "$dir/a.jsonl") <(texts "$dir/b.jsonl")
ok "... the same texts" $?
expect "... nobody asked for either" 0 '' short 2 --topology "$dir/t.yml" --report "$dir/r.json"
test "$(grep -o '"device": "[a-z]*"' "$dir/r.json" | tr -d '\n')" = '"device": "cuda""device": "cpu"'
ok "... a GPU for who may have it" $?
printf "a: {rank: 1, gpu: 5, layers: ['model.layers.2-7']}\n" >"$dir/t.yml"
expect "... which is not there" 1 't.yml:1:19: gpu 5: [^ ]+ has 2, counted from 0' run 2 -p Hello --topology "$dir/t.yml"
CAKE_TEST_GPUS=0 expect "no GPU" 1 'no GPU on [^ ]+: CAKE_TEST_GPUS is 0; use --device cpu' answers 2 b.jsonl --force
test "$(grep -c 'no GPU' "$dir/err")" -eq 1
ok "... said once" $?
CAKE_TEST_GPUS=0 expect "... and nobody asked for one" 0 '' short 1 --report "$dir/r.json"
grep -q '"device": "cpu"' "$dir/r.json" && test ! -s "$dir/err"
ok "... CPUs, without a word" $?
CAKE_TEST_GPUS=0 expect "... but for who asks for more" 0 'all layers are on CPUs: CAKE_TEST_GPUS is 0' short 1 -v
CAKE_TEST_GPU_BUSY=1 expect "no layers on GPUs: none is opened" 0 '' short 1 --device cuda --gpu-layers 0 --report "$dir/r.json"
grep -q '"device": "cpu"' "$dir/r.json"
ok "... CPUs" $?
printf "a: {rank: 0, device: cuda, layers: ['model.layers.0-7']}\n" >"$dir/t.yml"
expect "a topology that asks for one, and --device cpu" 0 't.yml:1:22: a GPU is asked for here, but --device cpu overrides it' \
    short 1 --device cpu --topology "$dir/t.yml" --report "$dir/r.json"
grep -q '"device": "cpu"' "$dir/r.json"
ok "... CPUs" $?
expect "nobody asked, and there is one" 0 '' short 1 --report "$dir/r.json"
grep -q '"device": "cuda"' "$dir/r.json"
ok "... GPU" $?
! grep -q 'on CPUs' "$dir/err"
ok "... nothing is said of CPUs" $?
expect "an instruction set for nothing" 0 '\-\-isa ref is ignored: nothing is computed on CPUs' short 1 --device cuda --isa ref
expect "... for some layers" 0 '3 of its 8 layers are on GPU' short 1 --device cuda --gpu-layers 3 --isa ref --log info
! grep -q 'not used' "$dir/err"
ok "... of which nothing is said" $?
CAKE_TEST_GPU_BUSY=1 expect "a GPU that is busy" 1 'GPU [01] cannot be opened: it is busy' answers 2 b.jsonl --force

# The GPU fails during a run: finished results stay, and the run resumes only where it gives the same bits.
rm -f "$dir/b.jsonl"*
CAKE_SPECULATE=off CAKE_TEST_GPU_PAUSE=300 CAKE_TEST_GPU_FAILS=1800 expect "a GPU that fails" 1 'the executor failed at a kernel' answers 1 b.jsonl --max-seqs 1
expect "... does not resume on CPUs" 1 'isa was "cuda" and is "(avx|neon|sve|ref)' "$cpu" run -m "$model" -i "$dir/p.jsonl" -o "$dir/b.jsonl" --deterministic-ids --logprobs 2 --max-tokens 3 --max-seqs 1
expect "... resumes" 0 'resumes with [12] finished' answers 1 b.jsonl --max-seqs 1
cmp -s "$dir/a.jsonl" "$dir/b.jsonl"
ok "... same bytes" $?

# Not enough memory.
rm -f "$dir/b.jsonl"*
CAKE_TEST_GPU_MEMORY=8000000 expect "a small GPU" 0 \
    'rank 0: [1-7] of its 8 layers are on GPU 0, which has 7.4 MiB \(weights .*\); the others \(.*\) are on CPUs, which is slow' answers 1 b.jsonl --max-seqs 2
CAKE_TEST_GPU_MEMORY=8000000 expect "... too small for all" 1 'the model does not fit: rank 0 needs .* but its share of GPU 0' \
    answers 1 b.jsonl --force --max-seqs 2 --gpu-layers 8
expect "layers of no GPU" 2 'gpu-layers 3 with --device cpu' "$cake" run -m "$model" -p x --device cpu --gpu-layers 3
finish
