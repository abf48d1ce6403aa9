#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of jobs/ on a real Slurm of ten nodes, which $CAKE_SLURM/slurm-local starts on this machine: signals, limits,
# queues, arrays, chains, lost jobs and nodes; the final bytes are those of an undisturbed run.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES
unset HWLOC_COMPONENTS HWLOC_PLUGINS_PATH # all that there is
slurm=${CAKE_SLURM:-$root/../shared/slurm}/slurm-local
[ -x "$slurm" ] || { echo "no $slurm: set CAKE_SLURM"; exit 77; }
unset CAKE_PROGRESS
export CAKE_MPI=$cake
place=$(mktemp -d /tmp/cake-slurm-XXXXXX) # sockets have short names only
trap '"$slurm" stop "$place"; rm -rf "$dir" "$place"' EXIT
timeout 90 "$slurm" start "$place" 10 || exit 1
eval "$("$slurm" env "$place")"
cd "$dir" || exit 1
# The nodes share this machine's CPUs, and no rank knows of the others: who waits is not to keep them from computing.
"${CC:-cc}" -O1 -shared -fPIC -o yield.so "$root/tests/run/yield_shim.c" || exit 1
export LD_PRELOAD=$dir/yield.so OMPI_MCA_mpi_yield_when_idle=1
few="--cpus-per-task=1 --ntasks-per-node=2 --time=10"

requests=90
for i in $(seq $requests); do
    printf '{"id": "r%d", "prompt": "There was once number %d", "max_tokens": %d, "ignore_eos": true, "temperature": 0.%d}\n' \
        "$i" "$i" $((20 + i * 37 % 200)) $((i % 10))
done >in.jsonl

submit() { # OPTION... SCRIPT ARGUMENT... : the job's number
    # shellcheck disable=SC2086
    sbatch --parsable $few "$@"
}
submit_merge() { # [OPTION...] SCRIPT ARGUMENT...
    sbatch --parsable --time=10 "$@"
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
same() { # NAME JOB SECONDS RESULTS : the job ends well, with the bytes of a run that nobody disturbs
    until_true "$3" is "$2" COMPLETED && cmp "$4" whole.jsonl
    local right=$?
    ok "$1" $right
    [ $right -eq 0 ] || cat ./*"$2"*.log
}

# Long jobs begin first and are checked last: Slurm checks limits every 30 s, and finds lost nodes no sooner.

# Jobs that reach their limit: their first start is long in reading the model, and then slow, so that it cannot finish before.
cat >slow <<END
#!/bin/bash
for ((i = 1; i < \$#; i++)); do
    [ "\${!i}" != -o ] || results=\${@:i+1:1}
done
[ -z "\${results:-}" ] || [ -e "\$results.partial" ] || { sleep 17 && export YIELD_US=7000 && set -- "\$@" --max-seqs 1; }
exec "$cake" "\$@"
END
chmod +x slow
late() { # SECONDS OPTION... : the signal comes so long before the limit, or up to 30 s more
    local seconds=$1
    shift
    CAKE_MPI=$dir/slow submit --time=1 --signal=B:USR1@"$seconds" "$@"
}
late_array=$(late 5 --array=0-1 "$root/jobs/array.sbatch" 2 "$model" in.jsonl all.jsonl --deterministic-ids --stop-before 0)
late_merge=$(submit_merge --dependency=afterok:"$late_array" --kill-on-invalid-dep=yes "$root/jobs/merge.sbatch" 2 all.jsonl)
late_nodes=$(LAUNCHER=mpirun late 5 --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl nodes.jsonl --deterministic-ids --stop-before 0)
# shellcheck disable=SC2086
mapfile -t late_chain < <(CAKE_MPI=$dir/slow "$root/jobs/chain.sh" 5 $few --time=1 --signal=B:USR1@5 "$root/jobs/batch.sbatch" "$model" \
    in.jsonl chain.jsonl --deterministic-ids --stop-before 0)
# Its signal comes later than the end that the run itself knows of.
late_alone=$(late 1 "$root/jobs/batch.sbatch" "$model" in.jsonl alone.jsonl --deterministic-ids --stop-before 35)

# Two nodes are lost at once: the only one of a job, which resumes on another one, and one of a job's two, whose ranks on
# the other one end and requeue it.
pair=$(submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl pair.jsonl --deterministic-ids --max-seqs 1)
lost=$(submit --exclusive "$root/jobs/batch.sbatch" "$model" in.jsonl lost.jsonl --deterministic-ids --max-seqs 1)
until_true 180 has_group pair.jsonl
until_true 180 has_group lost.jsonl
lost_node=$(field "$lost" BatchHost)
other=$(scontrol show hostnames "$(field "$pair" NodeList)" | grep -vx "$(field "$pair" BatchHost)")
for each in $lost_node $other; do kill -KILL "$(awk -v node="$each" '$1 == node { print $2 }' "$place/pids")"; done

"$cake" run -m "$model" -q --deterministic-ids -i in.jsonl -o whole.jsonl
ok "a run that nobody disturbs" $?

# An array two tasks of which are lost: a rank of one is killed, the other is cancelled.
gone="$dir/gone.jsonl"
array=$(submit --array=0-2 "$root/jobs/array.sbatch" 3 "$model" in.jsonl "$gone" --deterministic-ids --max-seqs 1)
merge=$(submit_merge --dependency=afterok:"$array" --kill-on-invalid-dep=yes "$root/jobs/merge.sbatch" 3 "$gone")
until_true 180 has_group "$gone.1-of-3.jsonl"
kill -KILL "$(pgrep -o -f "^$cake run .* -o $gone.1-of-3.jsonl ")"
until_true 180 has_group "$gone.2-of-3.jsonl"
scancel "${array}_2"

# Two tasks that were given the same shard: the later one leaves it to the other, which continues.
twice=$(submit --array=0 "$root/jobs/array.sbatch" 1 "$model" in.jsonl twice.jsonl --deterministic-ids --max-seqs 1)
until_true 180 has_group twice.jsonl.0-of-1.jsonl
again=$(submit --array=0 "$root/jobs/array.sbatch" 1 "$model" in.jsonl twice.jsonl --deterministic-ids)
until_true 180 is "$again" FAILED && grep -Eq "another run is writing there: process [0-9]+ on n[0-9]+, Slurm job $twice" "cake-$again-0.log" &&
    ! is "$twice" FAILED
ok "two tasks of the same shard: the later one gives way" $?

# The last task of an array has the array's number as a job: what becomes of it is not what becomes of the others.
own=$(submit --array=0-1 "$root/jobs/array.sbatch" 2 "$model" in.jsonl own.jsonl --deterministic-ids --max-seqs 1)
until_true 180 has_group own.jsonl.0-of-2.jsonl && until_true 180 has_group own.jsonl.1-of-2.jsonl
scancel --batch --signal=USR1 "${own}_1"

declare -A told
for launcher in srun mpirun; do
    job=$(LAUNCHER=$launcher submit "$root/jobs/batch.sbatch" "$model" in.jsonl $launcher.jsonl --deterministic-ids --max-seqs 2)
    until_true 180 has_group $launcher.jsonl
    expect "$launcher: status, from another host" 0 "running: [0-9]+ done.*; process [0-9]+ on n[0-9]+, Slurm job $job; wrote" "$cake" status $launcher.jsonl
    scancel --batch --signal=USR1 "$job"
    until_true 180 grep -q "requests are done: job $job is requeued" "cake-$job.log"
    ok "$launcher: a signal stops it, and it is requeued" $?
    told[$launcher]=$job
done

# Where a job would make no progress, it is not requeued.
job=$(submit "$root/jobs/batch.sbatch" "$model" in.jsonl never.jsonl --stop-before 1d)
until_true 180 is "$job" FAILED && grep -Eq 'no progress in this time: not requeued|no time is left' "cake-$job.log" &&
    [ "$(field "$job" Restarts)" = 0 ]
ok "a limit that leaves no time: not round for ever" $?

# Two nodes, each with a copy of its ranks' tensors; cancelled, and submitted again.
job=$(CAKE_STAGE_DIR=$dir/scratch submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl two.jsonl --deterministic-ids --max-seqs 2)
until_true 180 has_group two.jsonl
scancel "$job"
until_true 180 is "$job" CANCELLED && test -s two.jsonl.partial && test ! -e two.jsonl
ok "cancelled on two nodes" $?
job=$(CAKE_STAGE_DIR=$dir/scratch submit --nodes=2 "$root/jobs/nodes.sbatch" "$model" in.jsonl two.jsonl --deterministic-ids)
same "... and submitted again, it resumes to the same bytes" "$job" 400 two.jsonl
grep -q 'resumes with [1-9]' "cake-$job.log"
ok "... from what was there" $?

until_true 180 is "${array}_1" FAILED && is "${array}_2" CANCELLED && until_true 180 is "$merge" CANCELLED
ok "two tasks of an array are lost: the merge that waits for them is dropped" $?
until_true 180 is "${array}_0" COMPLETED
merge=$(submit_merge "$root/jobs/merge.sbatch" 3 "$gone")
until_true 180 is "$merge" FAILED && test ! -e "$gone"
ok "... a merge by hand ends with nothing" $?
for i in 1 2; do
    grep -Eq "$gone.$i-of-3.jsonl.partial: shard $i/3 is not finished: it has [0-9]+ results?, and none of index [0-9]" "cake-merge-$merge.log"
    said=$?
    ok "... and says what is missing of task $i" $said
    [ $said -eq 0 ] || cat "cake-merge-$merge.log" "cake-$array"*.log
done
again=$(submit --array=1,2 "$root/jobs/array.sbatch" 3 "$model" in.jsonl "$gone" --deterministic-ids)
merge=$(submit_merge --dependency=afterok:"$again" "$root/jobs/merge.sbatch" 3 "$gone")

for launcher in srun mpirun; do
    same "$launcher: it resumes to the same bytes" "${told[$launcher]}" 400 $launcher.jsonl
    [ "$(field "${told[$launcher]}" Restarts)" = 1 ]
    ok "... at its second start" $?
done
same "two tasks of the same shard: the earlier one finishes" "$twice" 400 twice.jsonl.0-of-1.jsonl

# A scaling study over two nodes, with them for itself.
job=$(CAKE_SOURCE=$root submit --nodes=2 "$root/jobs/scaling.sbatch" "$model" --series strong --ranks "1 4" --load 8x12+8 --runs 1)
until_true 90 is "$job" COMPLETED && [ "$(cut -d, -f1-3 "scaling-$job.csv" | xargs)" = "series,ranks,nodes strong,1,1 strong,4,2" ] &&
    grep -q '^| 4 | 2 |' "scaling-$job.md"
ok "a scaling study" $?

until_true 90 is "${own}_0" COMPLETED && until_true 90 is "${own}_1" COMPLETED &&
    grep -q "requests are done: job ${own}_1 is requeued" "cake-$own-1.log" &&
    [ "$(field "${own}_0" JobId) $(field "${own}_0" Restarts) $(field "${own}_1" JobId) $(field "${own}_1" Restarts)" = "$((own + 1)) 0 $own 1" ]
ok "the last task of an array is requeued, and no other one" $?

same "lost tasks that are submitted again, and merged: the same bytes" "$merge" 400 "$gone"
expect "merged again by hand" 0 "all $requests requests are merged already" bash "$root/jobs/merge.sbatch" 3 "$gone"
expect "status of all" 0 '^all: 4 finished' "$cake" status "$gone" "$gone".*-of-3.jsonl

limited() { # NAME JOB LOG TEXT : it was stopped for the reason TEXT, requeued, and resumed
    grep -q "$4" "$3" && grep -q 'requests are done: job .* is requeued' "$3" && grep -q 'resumes with [1-9]' "$3" &&
        [ "$(field "$2" Restarts)" -ge 1 ]
    local right=$?
    ok "$1, $(field "$2" Restarts) times" $right
    [ $right -eq 0 ] || cat "$3"
}
same "a time limit that the run itself knows of" "$late_alone" 300 alone.jsonl
limited "... is stopped before it and requeued" "$late_alone" "cake-$late_alone.log" "the job's end is near"
same "a time limit of two nodes, with mpirun" "$late_nodes" 300 nodes.jsonl
limited "... gets a signal from Slurm and is requeued" "$late_nodes" "cake-$late_nodes.log" SIGUSR1
same "a time limit of an array, which is merged" "$late_merge" 300 all.jsonl
for i in 0 1; do limited "... task $i gets a signal from Slurm and is requeued" "${late_array}_$i" "cake-$late_array-$i.log" SIGUSR1; done
until_true 300 test -e chain.jsonl && until_true 180 is "${late_chain[4]}" CANCELLED && cmp chain.jsonl whole.jsonl
ok "a time limit of a chain: a later job resumes to the same bytes, the last is dropped" $?
[ "$(field "${late_chain[0]}" ExitCode)" = 75:0 ] && grep -q SIGUSR1 "cake-${late_chain[0]}.log" && grep -q 'resumes with [1-9]' "cake-${late_chain[1]}.log"
ok "... the first was told by Slurm" $?

until_true 180 grep -q "requests are done: job $pair is requeued" "cake-$pair.log"
ok "one of two nodes is lost: the job is requeued" $?
until_true 120 grep -q 'was left by process .* on '"$lost_node"', which is not running any more: taken over' "cake-$lost.log"
ok "a node is lost: the job's lock is taken over elsewhere" $?
same "... and it resumes to the same bytes" "$lost" 400 lost.jsonl
same "... as does the one of two nodes" "$pair" 400 pair.jsonl
grep -q 'resumes with [1-9]' "cake-$pair.log"
ok "... from what was there" $?
finish
