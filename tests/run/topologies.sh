#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Topology files in the whole program: the distribution of layers does not change answers; a written plan is read back;
# settings of single ranks reach them; an error is reported once, with its position.
. "$(dirname "$0")/../shell.sh"

story="Continue the story: once upon a time there was a little girl who lived in a house by the wood with her mother"
n=$(few 5 9) growth=$(few 6 12)
for i in $(seq 1 "$n"); do
    how='"temperature": 0'
    [ $((i % 2)) -eq 0 ] && how='"temperature": 0.9, "seed": '$i
    printf '{"id": "r%d", "prompt": "%s%s and %d", "max_tokens": %d, "ignore_eos": true, "logprobs": 2, "n": %d, %s}\n' \
        "$i" "$story" "$([ $((i % 3)) -eq 0 ] && echo " $story $story")" "$i" $((growth + 8 + growth * (i % 4))) $((1 + i % 2)) "$how"
done >"$dir/in.jsonl"

answer() { # NP OUT ARGUMENT...
    local np=$1 out=$2
    shift 2
    mpi "$np" run -m "$model" -i "$dir/in.jsonl" -o "$dir/$out.jsonl" --force --deterministic-ids -q "$@" \
        </dev/null 2>"$dir/$out.err" || cat "$dir/$out.err"
}

same() { # NAME NP ARGUMENT...
    local name=$1 np=$2
    shift 2
    rm -f "$dir/two.jsonl"
    answer "$np" two "$@"
    cmp "$dir/one.jsonl" "$dir/two.jsonl"
    ok "${model##*/}: $name" $?
}

# deal LIST... : a worker for each LIST of single layers, on any rank; what is left is rank 0's
deal() {
    local i=0 list
    for list in "$@"; do
        i=$((i + 1))
        printf "worker%d:\n  host: '*'\n  layers: [%s]\n" "$i" "$(echo "$list" | sed -E "s/([0-9-]+)/'model.layers.\1'/g; s/ /, /g")"
    done >"$dir/t.yml"
}

layers_of() { # NP: what plan says of the ranks
    mpi "$1" plan -m "$model" --topology "$dir/t.yml" "${@:2}" 2>"$dir/err" | awk '/^[0-9]/ { printf "%s%s", sep, $5; sep = " " }'
}

answer 1 one
test "$(grep -c '"finish_reason"' "$dir/one.jsonl")" -eq "$n"
ok "one rank answers all" $?

# name, ranks, layers of each worker; the root has the first, the last, some in between, none
while IFS='|' read -r name np lists wanted <&3; do
    expected=$wanted
    IFS=';' read -ra each <<<"$lists"
    deal "${each[@]}"
    got=$(layers_of "$np" --write-topology "$dir/written.yml")
    test "$got" = "$expected"
    ok "$name: $got" $?
    cp "$dir/written.yml" "$dir/t.yml" # which says the same
    same "$name" "$np" --topology "$dir/t.yml" --threads $((1 + np % 2))
done 3<<'DEALS'
the root has the last layers|2|0-4|5-7 0-4
the root has none|2|0-7|- 0-7
every second layer|2|1 3 5 7|0-0,2-2,4-4,6-6 1-1,3-3,5-5,7-7
ranks in reverse|3|5-7;2-4|0-1 5-7 2-4
hops in turns|4|7 2;0 3-4;6 1|5-5 2-2,7-7 0-0,3-4 1-1,6-6
one layer each, the root has most|4|6;3;1|0-0,2-2,4-5,7-7 6-6 3-3 1-1
DEALS
test "$(layers_of 4 --write-topology "$dir/again.yml")" = "$expected" && cmp "$dir/written.yml" "$dir/again.yml"
ok "what plan writes is read as the same plan" $?
mpi 3 plan -m "$model" --write-topology "$dir/t.yml" 2>&1 </dev/null | awk '/^[0-9]/ { print $1, $2, $3, $4, $5, $6 }' >"$dir/planned"
mpi 3 plan -m "$model" --topology "$dir/t.yml" 2>&1 </dev/null | awk '/^[0-9]/ { print $1, $2, $3, $4, $5, $6 }' | cmp - "$dir/planned"
ok "... also where no file said it before" $?
deal '1 3 5 7'
same "small waves" 2 --topology "$dir/t.yml" --chunk 64
same "little KV memory" 2 --topology "$dir/t.yml" --kv-memory 700K --report "$dir/report.json"
grep -q '"layers": \[\[1, 1\], \[3, 3\], \[5, 5\], \[7, 7\]\]' "$dir/report.json"
ok "the report has the hops" $?

# The examples that fit one host, as they are.
for example in gaps:3 interleaved:4 places:2 ranks:3 replicas:4; do
    same "topologies/${example%:*}.yml" "${example#*:}" --topology "$root/topologies/${example%:*}.yml"
done

# Layers of several kinds: windows with full attention, recurrent states.
for name in gemma3-new qwen3.5-hub; do
    model=$root/tests/golden/$name
    answer 1 one
    deal '0 2'
    same "every second layer" 2 --topology "$dir/t.yml"
    deal '2' '0'
    same "ranks in reverse" 3 --topology "$dir/t.yml"
done
model=$root/jobs/demo/model

# Settings of single ranks.
host=$(hostname)
cat >"$dir/t.yml" <<END
root:
  rank: 0
  threads: 1
worker:
  host: '$host:10128'
  threads: 2
  kv_memory: 2M
  layers: ['model.layers.4-7']
END
expect "threads of a rank" 0 '^1 .* 2  4-7 ' mpi 2 plan -m "$model" --topology "$dir/t.yml" --threads 1
grep -q 'ports of hosts are ignored' "$dir/err"
ok "... and a note on ports" $?
expect "memory of a rank" 0 '^KV +32 pages' mpi 2 plan -m "$model" --topology "$dir/t.yml" --kv-memory 64M
sed 's/2M/2K/' "$dir/t.yml" >"$dir/small.yml"
expect "... which is not enough" 1 'small.yml:7:14: a KV cache of .* does not hold one page.*; use more kv_memory or more ranks; its layers are those of worker .worker. \(.*small.yml:4:1\)' \
    mpi 2 plan -m "$model" --topology "$dir/small.yml"

# Where a rank runs, and the memory that it may take.
cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | grep -o '[0-9]*$')
where() { # KEY: VALUE... of rank 1
    printf "worker:\n  rank: 1\n  layers: ['model.layers.4-7']\n" >"$dir/t.yml"
    printf '  %s\n' "$@" >>"$dir/t.yml"
}
where "cpus: $cpu" 'memory: 6M'
expect "cpus and memory of a rank" 0 "^1 .* $cpu +1  4-7 +3.0 MiB +2.9 MiB" mpi 2 plan -m "$model" --topology "$dir/t.yml" \
    --bind none --write-topology "$dir/again.yml"
grep -q "^  cpus: '$cpu'" "$dir/again.yml" && grep -q '^  memory: 6291456' "$dir/again.yml"
ok "... are written" $?
while IFS='|' read -r key at text <&3; do
    where 'description: x' "$key"
    expect "$key" 1 "rank 1 on .*: error: planner: .*t.yml:5:$at: $text" mpi 2 plan -m "$model" --topology "$dir/t.yml"
    test "$(grep -c 'error: planner' "$dir/err")" -eq 1
    ok "... is said once" $?
done 3<<'PLACES'
cpus: 8000|9|cpus 8000: rank 1 may run on cpus [0-9]
numa: 999|9|numa 999: the NUMA domains of .* are [0-9]
memory: 10K|11|memory is 10.0 KiB for worker 'worker', but the weights of its layers take 3.0 MiB
memory: 900T|11|memory is 900.0 TiB for worker 'worker', but .* are free there
kv_memory: 900T|14|kv_memory is 900.0 TiB for worker 'worker', but .* are free there
gpu: 63|8|gpu 63: .* has 
PLACES
expect "replicas are written" 0 '^replicas  2, of 2 ranks each' mpi 4 plan -m "$model" --replicas 2 --write-topology "$dir/t.yml"
awk '/^[0-9]/ { print $1, $2, $3, $4, $5, $6 }' "$dir/out" >"$dir/planned"
expect "... and read" 0 '^replicas  2, of 2 ranks each' mpi 4 plan -m "$model" --replicas 2 --topology "$dir/t.yml"
awk '/^[0-9]/ { print $1, $2, $3, $4, $5, $6 }' "$dir/out" | cmp - "$dir/planned"
ok "... as the same plan" $?
expect "other replicas than the file's" 2 't.yml has 2: its workers name' mpi 4 run -m "$model" -p x --replicas 4 --topology "$dir/t.yml"
expect "bundles of replicas" 1 "t.yml:.*worker 'rank2' is of replica 1: only one replica is possible" \
    "$cake" stage -m "$model" -d "$dir/x" --topology "$dir/t.yml" --ranks 4

# Hosts that are not here, as on a login node.
cake_file=$root/topologies/cake.yml
expect "a file of hosts that are not here" 1 'cake.yml:12:1: .*; --ranks N plans for N ranks on other hosts' "$cake" plan -m "$model" --topology "$cake_file"
expect "... is planned" 0 '^2 +[^ ]+ .* 2-5 ' "$cake" plan -m "$model" --topology "$cake_file" --ranks 3
grep -Eq '^0 .* 6-7 ' "$dir/out" && grep -Eq '^1 .* 0-1 ' "$dir/out" && ! grep -q 'on their own hosts only' "$dir/err"
ok "... rank by rank" $?
expect "... of too few ranks" 1 "cake.yml:12:1: worker 'macbook': 2 workers for 1 rank; use --ranks 2" "$cake" plan -m "$model" --topology "$cake_file" --ranks 1
expect "... that have too little memory" 1 'the model does not fit: for 3 ranks 1.0 MiB are free on .*; give some worker fewer layers' \
    env -u HWLOC_COMPONENTS HWLOC_SYNTHETIC="[numa(memory=1MiB)] core:2 pu:1" "$cake" plan -m "$model" --topology "$cake_file" --ranks 3
echo "{a: {host: far, memory: 1G, layers: ['model.layers.4-7']}}" >"$dir/t.yml"
expect "... memory of theirs" 0 'are used on their own hosts only; ranks are planned like those of this run' "$cake" plan -m "$model" --topology "$dir/t.yml" --ranks 2
expect "... replicas" 2 '.--replicas 2, but .*t.yml has 1' "$cake" plan -m "$model" --topology "$dir/t.yml" --ranks 2 --replicas 2

# Errors: reported once, with their position; all ranks end together.
refused() { # NAME NP STATUS TEXT
    local how=(mpi "$2")
    [ "$2" -gt 1 ] || how=("$cake")
    expect "$1" "$3" "$4" "${how[@]}" run -m "$model" -p x --max-tokens 1 --topology "$dir/t.yml"
    test "$(grep -c 'cake-mpi: error' "$dir/err")" -eq 1
    ok "... said once" $?
}
deal '4-8'
refused "a layer beyond the model" 1 1 "t.yml:3:12: 'model.layers.4-8': the model has 8 layers, from 0 to 7"
deal '4-7' '3-5'
refused "overlaps" 3 1 "t.yml:6:12: 'model.layers.3-5': layer 4 is worker 'worker1's already \(line 3, column 12\)"
refused "more workers than ranks" 1 1 "t.yml:4:1: worker 'worker2': 2 workers for 1 rank; start it with -np 2"
deal '4-7'
refused "fewer workers than ranks" 3 1 "t.yml:4:1: rank 2 on $host has no worker"
printf "a:\n  host: elsewhere:1\n  layers: ['model.layers.0']\n" >"$dir/t.yml"
refused "a host that is not in the job" 1 1 "t.yml:2:9: host 'elsewhere' is not in this job, whose hosts are: $host "
printf "a:\n\thost: x\n" >"$dir/t.yml"
refused "a tab" 1 1 't.yml:2:1: a tab'
rm "$dir/t.yml"
refused "no such file" 1 1 't.yml'
cp -r "$model" "$dir/model"
before=$(sha256sum <"$dir/model/config.json")
expect "a file of the model is not overwritten" 2 'is a file of the model' "$cake" plan -m "$dir/model" --write-topology "$dir/model/config.json"
test "$before" = "$(sha256sum <"$dir/model/config.json")"
ok "... and is as it was" $?
expect "nowhere to write" 1 'nowhere' "$cake" plan -m "$model" --write-topology "$dir/nowhere/t.yml"
expect "the file that is read is not written" 2 'are the same file' \
    "$cake" plan -m "$model" --topology "$dir/written.yml" --write-topology "$dir/written.yml"
expect "--write-topology belongs to plan" 2 'not an option of cake-mpi run' "$cake" run -m "$model" -p x --write-topology "$dir/x"
finish
