# SPDX-License-Identifier: Apache-2.0
# Completion of cake-mpi in bash. tests/man.sh compares commands and options with cake-mpi --help.

_cake_mpi()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=run given
    local commands="run tokenize plan info stage bench merge status"
    local all="--model --input --input-format --prompt --raw --system --prompt-field --id-field --threads --config --verbose --log --quiet --help --version"
    local fit="--max-tokens --context --max-seqs --chunk --kv-memory --dtype --kv-dtype --isa --bind --device --gpu-layers --link --replicas --mlock --dummy-weights"
    local options="$all $fit --topology --rates --output --resume --retry-errors --force --shard --deterministic-ids --timing --temperature --top-k --top-p --min-p --n
        --repetition-penalty --presence-penalty --frequency-penalty --stop --logprobs --seed --load --progress --progress-file --report --trace --max-runtime --stop-before --watchdog"

    for given in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case " $commands " in *" $given "*) command=$given && break ;; esac
    done
    COMPREPLY=()
    case $before in
    -m | --model | -d | --directory | -i | --input | -o | --output | --progress-file | --report | --trace | --topology | --write-topology | --rates | --config)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --input-format) mapfile -t COMPREPLY < <(compgen -W "jsonl txt h5" -- "$word") && return ;;
    --dtype) mapfile -t COMPREPLY < <(compgen -W "auto f32 bf16 f16 int8" -- "$word") && return ;;
    --kv-dtype) mapfile -t COMPREPLY < <(compgen -W "auto f32 bf16 f16" -- "$word") && return ;;
    --resume) mapfile -t COMPREPLY < <(compgen -W "auto never must" -- "$word") && return ;;
    --bind) mapfile -t COMPREPLY < <(compgen -W "auto none hwloc distribute isolate numactl" -- "$word") && return ;;
    --load) mapfile -t COMPREPLY < <(compgen -W "read mmap" -- "$word") && return ;;
    --isa) mapfile -t COMPREPLY < <(compgen -W "auto ref avx2 avx512 avx512bf16" -- "$word") && return ;;
    --link) mapfile -t COMPREPLY < <(compgen -W "auto mpi nccl" -- "$word") && return ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "auto cpu cuda" -- "$word") && return ;;
    --log) mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$word") && return ;;
    --shape) mapfile -t COMPREPLY < <(compgen -W "qwen3-0.6b qwen3.5-0.8b llama-3.2-1b llama-3.1-8b qwen3-32b llama-3.1-405b tiny" -- "$word") && return ;;
    --progress) mapfile -t COMPREPLY < <(compgen -W "auto bar line none" -- "$word") && return ;;
    -p | --prompt | --system | --prompt-field | --id-field | --max-tokens | --temperature | --top-k | --top-p | --threads-decode | \
        --min-p | --n | --repetition-penalty | --presence-penalty | --frequency-penalty | --stop | --logprobs | --seed | \
        --context | --max-seqs | --chunk | --kv-memory | --gpu-memory | --gpu-layers | --threads | --replicas | --ranks | --shard | --batch | --stages | --flops | --bandwidth | --max-runtime | --stop-before | --watchdog)
        return
        ;;
    esac
    case $command in
    run) options="$options --threads-decode" ;;
    tokenize) options="$all --output" ;;
    plan) options="$all $fit --shard --gpu-memory --threads-decode --ranks --topology --write-topology --rates --json" ;;
    stage) options="--model --directory --ranks --topology --rates --config --verbose --log --quiet --help --version" ;;
    merge) options="--output --force --config --verbose --log --quiet --help --version" ;;
    status) options="--json --config --verbose --log --quiet --help --version" ;;
    info) options="--model --config --verbose --log --quiet --help --version" ;;
    bench)
        options="--model --output --max-seqs --chunk --kv-memory --dtype --kv-dtype --isa --device --gpu-layers --link --threads --dummy-weights
            --shape --batch --stages --flops --bandwidth --smoke --config --verbose --log --quiet --help --version"
        ;;
    esac
    case $command-$word in merge-[!-]* | status-[!-]*) compopt -o filenames 2>/dev/null && mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;; esac
    [ "$COMP_CWORD" -gt 1 ] || options="$commands $options"
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
}
complete -F _cake_mpi cake-mpi
