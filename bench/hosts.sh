#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/hosts.sh CAKE_MPI MPI_HOSTS MODEL
# Four hosts of different speeds on one machine: MPI_HOSTS is a program that makes them (start, run, stop), and cgroups give
# each a share of a core (SHARES, in percent, together less than the cores). Prints the layers that the plan gives each host,
# and the speed of four replicas compared with the sum of the hosts alone; checks that the planned slices, four replicas, and
# two replicas of two stages give the same bytes as one rank. REQUESTS (default 3000) of 24 + 24 tokens. Needs root; exit
# status 77: cgroups cannot limit hosts here.
set -eu
[ $# -ge 3 ] || {
    sed -n '3s/^# /usage: /p' "$0" >&2
    exit 2
}
cake=$(realpath "$1")
hosts=$(realpath "$2")
model=$(realpath "$3")
read -ra shares <<<"${SHARES:-60 40 30 20}"
requests=${REQUESTS:-3000}
dir=$(mktemp -d)
groups=/sys/fs/cgroup
[ ! -e $groups/cpu ] || groups=$groups/cpu
name=cake-$$

cleanup() {
    "$hosts" stop "$dir/hosts" || true
    for i in 1 2 3 4; do rmdir "$groups/$name-h$i" || true; done
    rm -rf "$dir"
} 2>/dev/null
trap cleanup EXIT

# limit GROUP PERCENT: in periods of 10 ms, so that a measurement of 45 ms sees the share and not a whole core, then nothing.
limit() {
    mkdir "$1" || return
    if [ -e "$1/cpu.max" ]; then
        echo "$(($2 * 100)) 10000" >"$1/cpu.max"
    else
        echo 10000 >"$1/cpu.cfs_period_us" && echo $(($2 * 100)) >"$1/cpu.cfs_quota_us"
    fi
}
for i in 1 2 3 4; do
    limit "$groups/$name-h$i" "${shares[i - 1]}" || { echo "no cgroups can be made here" && exit 77; }
done
printf '#!/bin/sh\necho 0 >%s/%s-$(hostname)/cgroup.procs\nexec "$@"\n' "$groups" "$name" >"$dir/limited"
chmod +x "$dir/limited"
export MPI_HOSTS_SLOTS=1 OMP_NUM_THREADS=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
"$hosts" start "$dir/hosts" 4

awk -v n="$requests" 'BEGIN { srand(1); for (i = 0; i < n; i++) { printf "{\"prompt\": [%d", 3 + rand() * 500
    for (j = 1; j < 24; j++) printf ", %d", 3 + rand() * 500
    print "], \"max_tokens\": 24, \"ignore_eos\": true}" } }' >"$dir/all.jsonl"
head -n "$((requests / 5))" "$dir/all.jsonl" >"$dir/some.jsonl"

on() { # HOSTS ARGUMENT... : cake-mpi there
    local where=$1
    shift
    "$hosts" run "$dir/hosts" mpirun --host "$where" -np "$(tr ',' '\n' <<<"$where" | wc -l)" "$dir/limited" "$cake" "$@"
}
run() { # HOSTS FILE OPTION... : tokens a second; results are in out.jsonl
    local where=$1 file=$2
    shift 2
    on "$where" run -m "$model" -i "$dir/$file.jsonl" -o "$dir/out.jsonl" --resume never --force -q --progress none --threads 1 \
        --deterministic-ids --report "$dir/report.json" "$@" >&2
    sed -nE 's/.*"total_per_s": ([0-9.]+).*/\1/p' "$dir/report.json"
}

same() { # WHAT : out.jsonl begins with the results of one rank, since draws are keyed by the number of a request
    head -n "$((requests / 5))" "$dir/out.jsonl" | cmp - "$dir/one.jsonl" || { echo "$1: other bytes than one rank's" && exit 1; }
    echo "$1: the bytes of one rank"
}

all=h1,h2,h3,h4
echo "shares of a core: ${shares[*]} %"
on $all plan -m "$model" --replicas 1 --threads 1 --write-topology "$dir/plan.yml"
sum=0
for i in 1 2 3 4; do
    rate=$(run "h$i" some)
    echo "h$i alone: $rate tokens/s"
    sum=$(awk -v a="$sum" -v b="$rate" 'BEGIN { print a + b }')
    [ $i -gt 1 ] || cp "$dir/out.jsonl" "$dir/one.jsonl"
done
rate=$(run $all all --replicas 4)
awk -v all="$rate" -v sum="$sum" 'BEGIN { printf "four replicas: %.0f tokens/s, %.1f %% of the sum\n", all, 100 * all / sum }'
echo "requests of the replicas: $(grep -o '"requests": [0-9][0-9]*' "$dir/report.json" | tr -dc '0-9\n' | paste -sd ' ')"
same "four replicas"
run $all some --topology "$dir/plan.yml" >/dev/null
same "the planned slices"
run $all some --replicas 2 >/dev/null
same "two replicas of two stages"
