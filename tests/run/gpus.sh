#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plans for GPUs of other nodes, which hwloc reads from tests/placement/machines.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES
machines=$root/tests/placement/machines

cat >"$dir/there" <<END
#!/bin/sh
unset HWLOC_COMPONENTS # which goes before a file
HWLOC_XMLFILE=$machines/\$node.xml HWLOC_THISSYSTEM=0 exec "$cake" "\$@"
END
chmod +x "$dir/there"
on() { # NODE NP ARGUMENT... : cake-mpi on NP ranks there
    node=$1 "$root/tests/mpirun.sh" "$2" "$dir/there" "${@:3}"
}
plan() { # NODE NP ARGUMENT...
    on "$1" "$2" plan -m "$model" --device cuda "${@:3}"
}

# A rank for each GPU, the nearest one; what fits is asked of its memory.
expect "four GPUs of a size that is said" 0 '^GPUs +of 80.0 GiB a rank, .*rates of GPUs are not known' \
    plan gpu4 4 --gpu-memory 80G --write-topology "$dir/t.yml"
awk '/^[0-3] / { gpu = gpu " " $3; cpus = cpus " " $4; layers = layers " " $6; waits += $NF == "-" && $(NF - 1) == "-" }
    END { exit !(gpu == " 3 2 1 0" && cpus == " 0-15 16-31 32-47 48-63" && layers == " 0-1 2-3 4-5 6-7" && waits == 4) }' "$dir/out"
ok "... each rank has the one of its NUMA domain" $?
test "$(grep -c '^  device: cuda' "$dir/t.yml")" -eq 4
ok "... and the topology that is written says so" $?
expect "... read" 0 '^GPUs +of 80.0 GiB' on gpu4 4 plan -m "$model" --topology "$dir/t.yml" --gpu-memory 80G
CUDA_VISIBLE_DEVICES='' expect "... is not run where there are none" 1 't.yml:8:11: no GPU on [^ ]+: .*; use --device cpu' \
    on gpu4 4 run -m "$model" -p x --topology "$dir/t.yml"
expect "a GPU whose size hwloc knows, and prompts" 0 '^requests  1, of which 0 would fail' plan gpu8 1 -p x
grep -q '^GPUs  *of 79.6 GiB' "$dir/out" && ! grep -Eq '^(time|rates) ' "$dir/out"
ok "... no rates and no time are made up" $?
expect "... JSON" 0 '"device": "cuda", "gpu": 0, "gpu_bytes": 85520809984, "gpu_layers": 8, "cpus"' plan gpu8 1 -p x --json
grep -q '"waves": {"lanes": 1, "tokens": 2048, "sequences": 512}' "$dir/out"
ok "... waves are large" $?
tr -d '\n' <"$dir/out" | grep -q '"flops": null, "bandwidth": null, *"wave_s": null, "idle_share": null.*"prediction": null' &&
    { ! command -v python3 >/dev/null || python3 -m json.tool "$dir/out" >/dev/null; }
ok "... what is not known is null" $?
expect "memory beside that of the processor" 0 '^GPUs +of 48.0 GiB a rank' plan grace-hopper 2
grep -Eq 'warning: .*2 ranks for 1 GPU of this host: two ranks on one GPU take turns; start it with .mpi(run|exec)? .* cake-mpi' "$dir/err" &&
    test "$(grep -c 'take turns' "$dir/err")" -eq 1
ok "... two ranks on one GPU share it, and are told a better launch line" $?

# GPUs given by a topology.
printf "a:\n  rank: 1\n  gpu: 2\n  layers: ['model.layers.4-7']\n" >"$dir/t.yml"
expect "a GPU by its number" 0 '^1 +[^ ]+ +2 ' plan gpu4 2 --gpu-memory 1G --topology "$dir/t.yml"
grep -Eq '^0 +[^ ]+ +3 ' "$dir/out"
ok "... the other rank has another" $?
sed -i 's/gpu: 2/gpu: 4/' "$dir/t.yml"
expect "... which is not there" 1 't.yml:3:8: gpu 4: [^ ]+ has 4, counted from 0' plan gpu4 2 --topology "$dir/t.yml"
sed -i 's/gpu: 4/device: cpu/' "$dir/t.yml"
expect "a rank on CPUs beside one on a GPU" 0 '^1 +[^ ]+ +- .* 4-7 ' plan gpu4 2 --gpu-memory 1G --topology "$dir/t.yml"
grep -Eq 'instruction set cuda 0-3, [a-z0-9]+ 4-7, cuda head' "$dir/out" && grep -Eq '^0 +[^ ]+ +2 ' "$dir/out"
ok "... and where what is" $?

printf "a: {rank: 0, memory: 78G, layers: ['model.layers.0-7']}\n" >"$dir/t.yml"
expect "more than a driver leaves of it" 1 "t.yml:1:22: memory is 78.0 GiB for worker 'a', but 77.0 GiB are free there" \
    plan gpu4 1 --gpu-memory 80G --topology "$dir/t.yml"

# Models that do not fit.
expect "a small one" 0 '"waves": {"lanes": 1, "tokens": 512, "sequences": 64}' plan gpu8 1 --gpu-memory 4G --json
expect "too large" 1 'the model does not fit: rank 0 needs .* but its share of GPU 0 of [^ ]+ is 4.0 MiB, .* too little' plan gpu8 1 --gpu-memory 4M --gpu-layers 8
expect "... with the host" 0 'warning: .* 4 of its 8 layers are on GPU 0, which has 4.0 MiB \(weights 3.0 MiB\); the others \(.* MiB\) are on CPUs' \
    plan gpu8 1 --gpu-memory 4M --max-seqs 2 --chunk 64
expect "... as many as are asked for" 0 'instruction set cuda 0-2, [a-z0-9]+ 3-7 and head, 1 rank' plan gpu8 1 --gpu-memory 1G --gpu-layers 3
huge() { # ARGUMENT... : a layer of it fills one GPU
    on gpu8 1 plan -m "$dir/huge" --dummy-weights --device cuda --gpu-memory 1G --chunk 64 --max-seqs 8 --kv-memory 16M "$@"
}
mkdir "$dir/huge" && cp "$model"/tokenizer* "$dir/huge" &&
    sed 's/"intermediate_size": [0-9]*/"intermediate_size": 400000/' "$model/config.json" >"$dir/huge/config.json"
expect "... how many would do" 1 'too little; 8 such GPUs would do \(-np 8\)' huge --gpu-layers 8
expect "... do" 0 '^7 +[^ ]+ +0 .* 7-7 ' huge --ranks 8
expect "... one less does not" 1 'the model does not fit: for 7 GPUs 1.0 GiB are free on each, .* 8 such GPUs would do \(--ranks 8\)' huge --ranks 7

# Unknown sizes and impossible requests.
expect "no size" 1 'GPU 0 of [^ ]+ \(0000:[^)]*\) is not known: it is hidden from this process, or this build has no CUDA; give it with --gpu-memory' plan gpu4 1
expect "no GPU" 1 'has no GPU; with --gpu-memory 80G' plan hybrid 1
echo "{a: {host: '*', device: cuda, layers: ['model.layers.0-7']}}" >"$dir/t.yml"
expect "... where a topology file wants one" 1 't.yml:1:25: [^ ]+ has no GPU' on hybrid 1 plan -m "$model" --topology "$dir/t.yml"
expect "... but a size" 0 '^GPUs +of 80.0 GiB' on hybrid 1 plan -m "$model" --gpu-memory 80G
expect "... of none" 0 'warning: .*--gpu-memory: no rank is on a GPU' on hybrid 1 plan -m "$model" --gpu-memory 80G --device cpu
CUDA_VISIBLE_DEVICES='' expect "a run" 1 'no GPU on [^ ]+: (no NVIDIA driver|this program was built without CUDA|no CUDA-capable device).*; use --device cpu' \
    "$cake" run -m "$model" -p x --device cuda
for option in "--device cuda" "--gpu-layers 2" "--gpu-memory 80G"; do
    # shellcheck disable=SC2086
    expect "a mixture, $option" 0 'warning: planner: all layers are on CPUs: there are no GPU kernels for experts' \
        on gpu4 2 plan -m "$root/tests/golden/qwen3moe-mixed" $option
    test "$(grep -c 'all layers are on CPUs' "$dir/err")" -eq 1
    ok "... one rank says it" $?
done
grep -q -- '--gpu-memory: no rank is on a GPU, so it is not used; there are no GPU kernels for experts' "$dir/err"
ok "... and why --gpu-memory is not used" $?
expect "... which runs on CPUs" 0 'all layers are on CPUs: there are no GPU kernels for xIELU' \
    "$cake" run -m "$root/tests/golden/apertus-plain" -p hi --raw --max-tokens 1 --device cuda
expect "... and a KV cache in int8" 0 'all layers are on CPUs: there are no GPU kernels for a KV cache in int8 yet; --kv-dtype bf16 or auto has them' \
    "$cake" run -m "$model" -p hi --raw --max-tokens 1 --device cuda --kv-dtype int8
expect "layers on GPUs of ranks that are not here" 2 'both --gpu-layers and --ranks: .* mpirun -np 2' plan gpu8 1 --ranks 2 --gpu-layers 2
expect "rates of CPUs" 2 'both --device cuda and --rates' plan gpu8 1 --rates x
expect "... where GPUs are planned with" 2 'both --gpu-memory and --rates' on gpu8 1 plan -m "$model" --gpu-memory 80G --rates x
expect "a share of GPUs" 2 'gpu-memory: a percentage of unknown memory' plan gpu8 1 --gpu-memory 80%
expect "info draws them" 0 '^  GPU 7     package 1, domain 1, 0000:8b:00.0, cuda7, 79.6 GiB, of a rank on cpus 98-111,210-223' on gpu8 1 info
finish
