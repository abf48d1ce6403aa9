# SPDX-License-Identifier: Apache-2.0
# Completion of cake-mpi in bash. docs/generate.sh makes cake-mpi.bash of cake-mpi.bash.in.

_cake_mpi()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=run given options choices=
    local commands="run tokenize plan info stage bench merge status pull list rm"

    for given in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case " $commands " in *" $given "*) command=$given && break ;; esac
    done
    COMPREPLY=()
    case $command in
    run) options="--model --input --input-format --prompt --output --resume --retry-errors --force --shard --deterministic-ids --timing --task --truncate-prompt-tokens --raw --system --prompt-field --id-field --max-tokens --temperature --top-k --top-p --min-p --repetition-penalty --presence-penalty --frequency-penalty --n --stop --logprobs --seed --tool-parser --reasoning-parser --context --max-seqs --chunk --kv-memory --weights-memory --dtype --kv-dtype --activations --speculate --isa --threads --threads-decode --replicas --topology --rates --keep-rates --bind --device --gpu-layers --link --gpu-launch --load --mlock --dummy-weights --max-runtime --stop-before --watchdog --config --progress --progress-file --report --trace --verbose --log --quiet --help --version" ;;
    tokenize) options="--model --input --input-format --prompt --output --task --truncate-prompt-tokens --raw --system --prompt-field --id-field --tool-parser --reasoning-parser --threads --config --verbose --log --quiet --help --version" ;;
    plan) options="--model --input --input-format --prompt --shard --task --truncate-prompt-tokens --raw --system --prompt-field --id-field --max-tokens --tool-parser --reasoning-parser --context --max-seqs --chunk --kv-memory --weights-memory --dtype --kv-dtype --activations --speculate --isa --threads --threads-decode --replicas --ranks --topology --write-topology --rates --json --bind --device --gpu-layers --link --gpu-launch --gpu-memory --mlock --dummy-weights --config --verbose --log --quiet --help --version" ;;
    info) options="--model --config --verbose --log --quiet --help --version" ;;
    stage) options="--model --directory --ranks --topology --rates --config --verbose --log --quiet --help --version" ;;
    bench) options="--model --output --max-seqs --chunk --kv-memory --weights-memory --dtype --kv-dtype --activations --speculate --isa --threads --device --gpu-layers --link --gpu-launch --dummy-weights --shape --layers --batch --stages --flops --bandwidth --smoke --config --verbose --log --quiet --help --version" ;;
    merge) options="--output --force --config --verbose --log --quiet --help --version" ;;
    status) options="--json --config --verbose --log --quiet --help --version" ;;
    pull) options="--include --exclude --config --progress --verbose --log --quiet --help --version" ;;
    list) options="--json --config --verbose --log --quiet --help --version" ;;
    rm) options="--yes --config --verbose --log --quiet --help --version" ;;
    esac
    case $previous in
    --input-format) choices="jsonl txt h5" ;;
    --resume) choices="auto never must" ;;
    --task) choices="auto generate score embed rerank" ;;
    --tool-parser) choices="auto none hermes qwen3_coder glm45 llama3_json mistral harmony" ;;
    --reasoning-parser) choices="auto none think mistral harmony" ;;
    --dtype) choices="auto f32 bf16 f16 int8 int4" ;;
    --kv-dtype) choices="auto f32 bf16 f16 int8" ;;
    --activations) choices="auto bf16 int8" ;;
    --speculate) choices="auto off ngram mtp" ;;
    --isa) choices="auto ref avx2 avx512 avx512bf16 neon sve512 neonbf16" ;;
    --bind) choices="auto none hwloc distribute isolate numactl" ;;
    --device) choices="auto cpu cuda" ;;
    --link) choices="auto mpi nccl" ;;
    --gpu-launch) choices="auto graphs overlap plain ordered" ;;
    --load) choices="read mmap" ;;
    --shape) choices="qwen3-0.6b qwen3.5-0.8b llama-3.2-1b llama-3.1-8b qwen3-32b llama-3.1-405b qwen3-30b-a3b gpt-oss-20b qwen3.5-35b-a3b glm-4.5-air deepseek-v3 glm-4.7-flash tiny-moe tiny" ;;
    --progress) choices="auto bar line none" ;;
    --log) choices="error warn info debug" ;;
    -m | --model | -d | --directory | -i | --input | -o | --output | --topology | --write-topology | --rates | --keep-rates | --config | --progress-file | --report | --trace) choices=FILES ;;
    --ranks | -p | --prompt | --shard | --truncate-prompt-tokens | --system | --prompt-field | --id-field | --max-tokens | --temperature | --top-k | --top-p | --min-p | --repetition-penalty | --presence-penalty | --frequency-penalty | --n | --stop | --logprobs | --seed | --context | --max-seqs | --chunk | --kv-memory | --weights-memory | --threads | --threads-decode | --replicas | --gpu-layers | --gpu-memory | --max-runtime | --stop-before | --watchdog | --layers | --batch | --stages | --flops | --bandwidth | --include | --exclude) return ;;
    *) case $command-$word in merge-[!-]* | status-[!-]*) choices=FILES ;; esac ;;
    esac
    if [ "$choices" = FILES ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    [ "$COMP_CWORD" -gt 1 ] || options="$commands $options"
    mapfile -t COMPREPLY < <(compgen -W "${choices:-$options}" -- "$word")
}
complete -F _cake_mpi cake-mpi
