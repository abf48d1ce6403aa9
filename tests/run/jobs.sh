#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of jobs/ without Slurm, PBS or LSF: the commands they start, and when they requeue. With a real Slurm: tests/run/slurm.sh.
. "$(dirname "$0")/../shell.sh"
mkdir "$dir/bin"
export PATH=$dir/bin:$PATH CAKE_MPI=$dir/bin/cake SLURM_JOB_ID=77 dir
cd "$dir" || exit 1
stand_in() { # NAME: a program whose text is on standard input
    { echo '#!/bin/bash'; cat; } >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
# cake: each run answers three requests, ends with the given status, and logs its arguments
stand_in cake <<'END'
case $1 in
status)
    n() { cat "$1" 2>/dev/null || echo "$2"; }
    [ ! -e "$3.n" ] && [ -z "${BEFORE:-}" ] || echo "{\"results\": \"$3\", \"done\": $(n "$3.n" "${BEFORE:-0}"), \"failed\": $(n "$3.failed" 4), \"begun_tokens\": $(n "$3.begun" 0), \"total\": null}"
    ;;
merge) echo "merge $*" >>"$dir/log" ;;
*)
    echo "$*" >>"$dir/log"
    [ -z "${SLEEP:-}" ] || { trap 'kill $!; echo USR1 >>"$dir/log"' USR1; touch "$dir/ready"; sleep 20 & wait $!; sleep 0.4 & wait $!; exit 75; }
    for results; do [ "$before" != -o ] || break; before=$results; done
    [ "$1" != run ] || echo $(($(cat "$results.n" 2>/dev/null || echo "${BEFORE:-0}") + ${DOES:-3})) >"$results.n"
    [ -z "${GROWS:-}" ] || echo 70 >"$results.begun"
    [ -z "${MENDS:-}" ] || echo 3 >"$results.failed"
    echo groups >>"$results.partial"
    exit "${STATUS:-0}"
    ;;
esac
END
stand_in srun <<'END'
[ "$1" = --mpi=pmix ] || exit 9
shift
exec "$@"
END
stand_in mpirun <<'END'
echo mpirun >>"$dir/log"
[ "$1" != -np ] || { [ "$2" = 4 ] && shift 2; } || exit 9
exec "$@"
END
stand_in scontrol <<'END'
echo "scontrol $*" >>"$dir/log"
exit 1
END
stand_in sbatch <<'END'
echo "sbatch $*" >>"$dir/log"
echo "$(($(wc -l <"$dir/log") + 100));cluster"
END

for script in "$root"/jobs/*.sbatch "$root"/jobs/*.pbs "$root"/jobs/*.lsf "$root"/jobs/*.sh; do
    bash -n "$script" && head -2 "$script" | grep -q SPDX
    ok "${script##*/} is a script" $?
done
# says NAME STATUS LOG COMMAND... : the exit status, and the log (grep -E), one line after the other
says() {
    local name=$1 wanted=$2 text=$3 got
    shift 3
    rm -f "$dir"/*.n "$dir"/*.begun "$dir"/*.failed "$dir"/*.partial
    : >"$dir/log"
    "$@" >"$dir/out" 2>&1
    got=$?
    [ $got -eq "$wanted" ] && tr '\n' ';' <"$dir/log" | grep -Eq -- "^${text:+$text;}\$"
    ok "$name" $?
}
run="run -m M -i P -o R.jsonl"
says "a run that finishes" 0 "$run --seed 4" bash "$root/jobs/batch.sbatch" M P R.jsonl --seed 4
says "some requests failed" 0 "$run" env STATUS=3 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "an error" 1 "$run" env STATUS=1 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "stopped: requeued" 75 "$run;scontrol requeue 77" env STATUS=75 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "stopped without progress: not requeued" 75 "$run" env STATUS=75 DOES=0 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "... but requeued if answers grew" 75 "$run;scontrol requeue 77" env STATUS=75 DOES=0 GROWS=1 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "... nor where errors came again (--retry-errors)" 75 "$run" env STATUS=75 BEFORE=5 DOES=0 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "... but where fewer are left" 75 "$run;scontrol requeue 77" env STATUS=75 BEFORE=5 DOES=0 MENDS=1 bash "$root/jobs/batch.sbatch" M P R.jsonl
says "mpirun" 0 "mpirun;$run" env LAUNCHER=mpirun bash "$root/jobs/batch.sbatch" M P R.jsonl
for script in batch.sbatch nodes.sbatch array.sbatch; do
    expect "$script: an unknown launcher" 2 "LAUNCHER is 'mpiexec'; expected srun or mpirun" env LAUNCHER=mpiexec bash "$root/jobs/$script" M P R.jsonl
done
printf 'node%s\n' 1 1 1 1 >"$dir/nodes"
export PBS_NODEFILE=$dir/nodes
for kind in pbs lsf; do
    script=(env MODEL=M PROMPTS=P RESULTS=R.jsonl "OPTIONS=--seed 4" LSB_DJOB_NUMPROC=4 bash "$root/jobs/batch.$kind")
    limited="mpirun;$run --max-runtime 3:55:00 --seed 4"
    says "$kind: a run that finishes" 0 "$limited" "${script[@]}"
    says "$kind: some requests failed" 0 "$limited" env STATUS=3 "${script[@]}"
    says "$kind: an error" 1 "$limited" env STATUS=1 "${script[@]}"
    says "$kind: stopped before the limit" 75 "$limited" env STATUS=75 "${script[@]}"
    expect "$kind: no results" 2 '^usage: ' env -u RESULTS MODEL=M PROMPTS=P bash "$root/jobs/batch.$kind"
done
says "lsf: no requeue without progress" 1 "$limited" env STATUS=75 BEFORE=5 DOES=0 "${script[@]}"
says "lsf: ... but if answers grew" 75 "$limited" env STATUS=75 BEFORE=5 DOES=0 GROWS=1 "${script[@]}"
mkdir "$dir/submitted"
says "pbs: paths begin where the job was submitted" 0 "$limited" env -C / PBS_O_WORKDIR="$dir/submitted" MODEL=M PROMPTS=P RESULTS=R.jsonl "OPTIONS=--seed 4" bash "$root/jobs/batch.pbs"
test -e "$dir/submitted/R.jsonl.partial"
ok "pbs: ... and results are there" $?
for wrong in "batch.sbatch M P" "nodes.sbatch M" "array.sbatch 8 M P" "merge.sbatch abc R" "merge.sbatch 2" "chain.sh 0 x" "chain.sh 2"; do
    # shellcheck disable=SC2086
    expect "wrong usage: $wrong" 2 '^usage: ' bash "$root/jobs/"$wrong
done
says "several nodes" 0 "$run" bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "... of which one is lost: requeued" 1 "$run;scontrol requeue 77" env STATUS=1 bash "$root/jobs/nodes.sbatch" M P R.jsonl
grep -qx '77 1' R.jsonl.restarts
ok "... and counted" $?
after() { # LINE COMMAND... : with this line in the file that counts
    echo "$1" >R.jsonl.restarts
    "${@:2}"
}
says "... but not for ever" 1 "$run" after "77 10" env STATUS=1 bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "... where only errors of this job count" 1 "$run;scontrol requeue 77" after "76 10" env STATUS=1 bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "... and no time limits" 75 "$run;scontrol requeue 77" after "77 9" env STATUS=75 SLURM_RESTART_COUNT=30 bash "$root/jobs/nodes.sbatch" M P R.jsonl
grep -qx '77 9' R.jsonl.restarts
ok "... which leave the count" $?
says "... and the run that finishes" 0 "$run" bash "$root/jobs/nodes.sbatch" M P R.jsonl
test ! -e R.jsonl.restarts
ok "... and the file is gone" $?
says "... but not without progress" 1 "$run" env STATUS=1 DOES=0 bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "... stopped" 75 "$run;scontrol requeue 77" env STATUS=75 bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "... with a copy on their disks" 0 "stage -m M -d /s;run -m /s -i P -o R.jsonl" env CAKE_STAGE_DIR=/s bash "$root/jobs/nodes.sbatch" M P R.jsonl
says "a task of an array" 0 "run -m M -i P -o R.jsonl.2-of-8.jsonl --shard 2/8 --isa avx2" \
    env SLURM_ARRAY_TASK_ID=2 bash "$root/jobs/array.sbatch" 8 M P R.jsonl --isa avx2
says "merged" 0 "merge merge -o R.jsonl R.jsonl.0-of-2.jsonl R.jsonl.1-of-2.jsonl" bash "$root/jobs/merge.sbatch" 2 R.jsonl
says "... with options" 0 "merge merge -o R.jsonl --force R.jsonl.0-of-1.jsonl" bash "$root/jobs/merge.sbatch" 1 R.jsonl --force
says "a chain" 0 "sbatch --parsable --no-requeue S M;sbatch --parsable --no-requeue --dependency=afternotok:101 --kill-on-invalid-dep=yes S M;sbatch --parsable --no-requeue --dependency=afternotok:101:102 --kill-on-invalid-dep=yes S M" \
    bash "$root/jobs/chain.sh" 3 S M
test "$(tr '\n' ' ' <"$dir/out")" = "101 102 103 "
ok "... of these jobs" $?

# The script passes the signal before the limit to the ranks.
rm -f "$dir/log" "$dir"/*.n
SLEEP=1 DOES=0 bash "$root/jobs/batch.sbatch" M P R.jsonl >"$dir/out" 2>&1 &
until [ -e "$dir/ready" ]; do sleep 0.02; done
kill -USR1 $! && sleep 0.1 && kill -USR1 $!
wait $!
test $? -eq 75 && grep -q 'no progress in this time' "$dir/out"
ok "a signal is passed on" $?
test "$(grep -c USR1 "$dir/log")" -eq 1
ok "... and a second one is not, which would end the run at once" $?
finish
