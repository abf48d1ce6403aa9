#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of jobs/ on a real Slurm of four nodes, which $CAKE_SLURM/slurm-local starts on this machine: signals, limits,
# queues, arrays, chains, cancelled jobs, dead nodes; the bytes at the end are those of a run that nobody disturbed.
. "$(dirname "$0")/shell.sh"
slurm=${CAKE_SLURM:-$root/../shared/slurm}/slurm-local
[ -x "$slurm" ] || { echo "no $slurm: set CAKE_SLURM"; exit 77; }
unset CAKE_PROGRESS
export CAKE_MPI=$cake
place=$(mktemp -d /tmp/cake-slurm-XXXXXX) # sockets have short names only
trap '"$slurm" stop "$place"; rm -rf "$dir" "$place"' EXIT
timeout 90 "$slurm" start "$place" 4 || exit 1
eval "$("$slurm" env "$place")"
cd "$dir" || exit 1
few="--cpus-per-task=1 --ntasks-per-node=2 --time=10"

for i in $(seq 1000); do
    printf '{"id": "r%d", "prompt": "There was once number %d", "max_tokens": %d, "ignore_eos": true, "temperature": 0.%d}\n' \
        "$i" "$i" $((20 + i * 37 % 200)) $((i % 10))
done >long.jsonl
head -n 500 long.jsonl >limit.jsonl
head -n 300 long.jsonl >in.jsonl
answer() { "$cake" run -m "$model" -q --deterministic-ids "$@"; }
answer -i long.jsonl -o long-whole.jsonl && answer -i limit.jsonl -o limit-whole.jsonl && answer -i in.jsonl -o whole.jsonl
ok "runs that nobody disturbs" $?

submit() { # OPTION... SCRIPT ARGUMENT... : the job's number
    # shellcheck disable=SC2086
    sbatch --parsable $few "$@"
}
field() { # JOB NAME
    scontrol -o show job "$1" 2>/dev/null | tr ' ' '\n' | sed -n "s/^$2=//p"
}
until_true() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}
is() { [ "$(field "$1" JobState)" = "$2" ]; }
has_group() { grep -qs '_cake": {"group' "$1.partial"; }
same() { # NAME JOB SECONDS RESULTS WHOLE : the job ends well, with these bytes
    until_true "$3" is "$2" COMPLETED && cmp "$4" "$5"
    local right=$?
    ok "$1" $right
    [ $right -eq 0 ] || cat ./*"$2".log
}

# The time limit comes after some 30 s, several times, while everything else goes on.
limited=$(submit --time=1 --signal=B:USR1@30 "$root/jobs/batch.sbatch" "$model" limit.jsonl limited.jsonl \
    --deterministic-ids --max-seqs 1 --stop-before 0)

# Two tasks that were given the same shard: the later one leaves it to the other, which goes on.
twice=$(submit --array=0 "$root/jobs/array.sbatch" 1 "$model" in.jsonl twice.jsonl --deterministic-ids --max-seqs 1)
until_true 60 has_group twice.jsonl.0-of-1.jsonl
again=$(submit --array=0 "$root/jobs/array.sbatch" 1 "$model" in.jsonl twice.jsonl --deterministic-ids)
until_true 60 is "$again" FAILED && grep -Eq "another run is writing there: process [0-9]+ on n[1-4], Slurm job $twice" "cake-$again-0.log" &&
    ! is "$twice" FAILED
ok "two tasks of the same shard: the later one gives way" $?
same "... and the other finishes" "$twice" 120 twice.jsonl.0-of-1.jsonl whole.jsonl

for launcher in srun mpirun; do
    job=$(LAUNCHER=$launcher submit "$root/jobs/batch.sbatch" "$model" in.jsonl $launcher.jsonl --deterministic-ids --max-seqs 2)
    until_true 60 has_group $launcher.jsonl
    expect "$launcher: status, from another host" 0 "running: [0-9]+ done.*; process [0-9]+ on n[1-4], Slurm job $job; wrote" "$cake" status $launcher.jsonl
    scancel --batch --signal=USR1 "$job"
    until_true 60 grep -q "requests are done: job $job is queued again" "cake-$job.log"
    ok "$launcher: a signal stops it, and it is queued again" $?
    same "... and goes on to the same bytes" "$job" 120 $launcher.jsonl whole.jsonl
    [ "$(field "$job" Restarts)" = 1 ]
    ok "... at its second start" $?
done

# Where a job would make no progress, it is not queued again.
job=$(submit "$root/jobs/batch.sbatch" "$model" in.jsonl never.jsonl --stop-before 1d)
until_true 60 is "$job" FAILED && grep -Eq 'nothing was done in this time: not queued again|no time is left' "cake-$job.log" &&
    [ "$(field "$job" Restarts)" = 0 ]
ok "a limit that leaves no time: not round for ever" $?

# Two nodes, each with a copy of its ranks' tensors; cancelled, and submitted again.
job=$(SCRATCH=$dir/scratch submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl two.jsonl --deterministic-ids --max-seqs 2)
until_true 60 has_group two.jsonl
scancel "$job"
until_true 60 is "$job" CANCELLED && test -s two.jsonl.partial && test ! -e two.jsonl
ok "cancelled on two nodes" $?
job=$(SCRATCH=$dir/scratch submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl two.jsonl --deterministic-ids)
same "... and submitted again, it goes on to the same bytes" "$job" 120 two.jsonl whole.jsonl
grep -q 'goes on with [1-9]' "cake-$job.log"
ok "... from what was there" $?

# An array, one task of which is stopped once; merged by a job that waits for all of them.
array=$(submit --array=0-2 "$root/jobs/array.sbatch" 3 "$model" in.jsonl all.jsonl --deterministic-ids --max-seqs 2)
merge=$(sbatch --parsable --dependency=afterok:"$array" "$root/jobs/merge.sbatch" 3 all.jsonl)
until_true 60 has_group all.jsonl.1-of-3.jsonl
scancel --batch --signal=USR1 "${array}_1"
until_true 60 grep -q 'is queued again' "cake-$array-1.log"
ok "a task of an array is queued again" $?
until_true 180 is "$merge" COMPLETED && cmp all.jsonl whole.jsonl
ok "... all are merged, to the same bytes" $?
expect "merged again by hand" 0 'all 300 requests are there already' bash "$root/jobs/merge.sbatch" 3 all.jsonl
expect "status of all" 0 '^all: 4 finished' "$cake" status all.jsonl all.jsonl.*-of-3.jsonl

# A chain of three jobs: the second goes on, the third is not needed.
# shellcheck disable=SC2086,SC2046
set -- $("$root/jobs/chain.sh" 3 $few "$root/jobs/batch.sbatch" "$model" in.jsonl chain.jsonl --deterministic-ids --max-seqs 2)
until_true 60 has_group chain.jsonl
scancel --batch --signal=USR1 "$1"
until_true 60 is "$1" FAILED && [ "$(field "$1" ExitCode)" = 75:0 ]
ok "a chain: the first job is stopped" $?
same "... the second one goes on to the same bytes" "$2" 120 chain.jsonl whole.jsonl
until_true 60 is "$3" CANCELLED
ok "... and the third is dropped" $?

same "a time limit, over and over" "$limited" 400 limited.jsonl limit-whole.jsonl
[ "$(field "$limited" Restarts)" -ge 1 ]
ok "... $(field "$limited" Restarts) times" $?

# A scaling study over two nodes, with them for itself.
job=$(CAKE_SOURCE=$root submit --nodes=2 "$root/jobs/scaling.sbatch" "$model" --series strong --ranks "1 4" --load 8x12+8 --runs 1)
until_true 90 is "$job" COMPLETED && [ "$(cut -d, -f1-3 "scaling-$job.csv" | xargs)" = "series,ranks,nodes strong,1,1 strong,4,2" ] &&
    grep -q '^| 4 | 2 |' "scaling-$job.md"
ok "a scaling study" $?

# Two nodes are lost at once: the only one of a job, which goes on on another one, and one of a job's two, whose ranks on
# the other one end and have it queued again.
pair=$(submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" long.jsonl pair.jsonl --deterministic-ids --max-seqs 2)
until_true 60 is "$pair" RUNNING
job=$(submit "$root/jobs/batch.sbatch" "$model" long.jsonl lost.jsonl --deterministic-ids --max-seqs 2)
until_true 60 has_group pair.jsonl
until_true 60 has_group lost.jsonl
node=$(field "$job" BatchHost)
other=$(scontrol show hostnames "$(field "$pair" NodeList)" | grep -vx "$(field "$pair" BatchHost)")
for each in $node $other; do kill -KILL "$(awk -v node="$each" '$1 == node { print $2 }' "$place/pids")"; done
until_true 60 grep -q "requests are done: job $pair is queued again" "cake-$pair.log"
ok "one of two nodes is lost: the job is queued again" $?
until_true 120 grep -q 'was left by process .* on '"$node"', which is over: taken over' "cake-$job.log"
ok "a node is lost: the job's lock is taken over elsewhere" $?
same "... and it goes on to the same bytes" "$job" 180 lost.jsonl long-whole.jsonl
same "... as does the one of two nodes" "$pair" 180 pair.jsonl long-whole.jsonl
grep -q 'goes on with [1-9]' "cake-$pair.log"
ok "... from what was there" $?
finish
