#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs that are stopped gracefully or killed, and resumed, give the bytes of an undisturbed run. At random moments: rounds.sh.
. "$(dirname "$0")/../shell.sh"

export CAKE_SPECULATE=off # these runs must last; speculation.sh kills one with drafts
n=$(few 240 300) # requests, of which every fiftieth has one beside it that fails
results=$((n + (n + 43) / 50))
requests() { # LONGEST : requests of that many tokens more than 3 at most
    for i in $(seq "$n"); do
        printf '{"id": "r%d", "prompt": "There was once number %d", "max_tokens": %d, "ignore_eos": true, "temperature": 0.%d}\n' \
            "$i" "$i" $((4 + i * 37 % $1)) $((i % 10))
        [ $((i % 50)) -ne 7 ] || printf '{"id": "bad%d", "prompt": "x", "top_p": 7}\n\n' "$i"
    done
}
requests 60 >"$dir/in.jsonl"
sum() { sha256sum <"$1" | cut -c 1-64; }
run() { "$cake" run -m "$model" -i "$dir/in.jsonl" --deterministic-ids "$@"; }

run -o "$dir/whole.jsonl" -q
test $? -eq 3 && test "$(wc -l <"$dir/whole.jsonl")" -eq $results
ok "a run that nobody disturbs" $?
wanted=$(sum "$dir/whole.jsonl")

# Ranks whose processes are known.
cat >"$dir/rank" <<END
#!/bin/sh
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}
echo \$\$ >"$dir/pid.\$rank"
while [ -e "$dir/late.\$rank" ]; do sleep 0.02; done
exec "$cake" "\$@"
END
chmod +x "$dir/rank"
start() { # NP OPTION... : in the background
    local np=$1
    shift
    rm -f "$dir"/pid.*
    "$root/tests/mpirun.sh" "$np" "$dir/rank" run -m "$model" -i "${IN:-$dir/in.jsonl}" -o "$dir/out.jsonl" --deterministic-ids "$@" \
        2>>"$dir/err" &
    launcher=$!
    until [ -s "$dir/pid.$((np - 1))" ] || ! kill -0 $launcher 2>/dev/null; do sleep 0.02; done
}

await_group() { # until something is finished, or the run is over before
    until { [ -e "$dir/out.jsonl.lock" ] && grep -qs '_cake": {"group' "$dir/out.jsonl.partial"; } || ! kill -0 $launcher 2>/dev/null; do
        sleep 0.02
    done
}

# Signals and limits: the run ends early with 75, and resumes to the same bytes.
drained() { # NAME STATUS [NP]
    test "$2" -eq 75 && grep -Eq 'the same command (.*from there|continues)' "$dir/err" && test -s "$dir/out.jsonl.partial" &&
        test ! -e "$dir/out.jsonl.lock" && { [ "${3:-1}" = 1 ] || grep -Eq '(continues the run|from there) \(status 75\)|status 75: stopped early, start it again \(' "$dir/err"; }
    ok "$1: status 75" $?
}
continues() {
    run -o "$dir/out.jsonl" -q
    test $? -eq 3 && test "$(sum "$dir/out.jsonl")" = "$wanted"
    ok "... and resumes to the same bytes" $?
    rm -f "$dir"/out.jsonl*
}
signalled() { # SIGNAL WHOM NP OPTION... : WHOM is launcher or rank. One sequence at a time: the run is not over when the signal comes
    local signal=$1 whom=$2 np=$3
    shift 3
    : >"$dir/err"
    start "$np" --max-seqs 1 "$@"
    await_group
    [ "$whom" = rank ] || kill -"$signal" $launcher
    [ "$whom" = launcher ] || kill -"$signal" "$(cat "$dir/pid.0")"
    wait $launcher 2>/dev/null
}
rm -f "$dir"/out.jsonl*
signalled TERM rank 1
drained "SIGTERM" $?
continues
signalled XCPU rank 1
drained "SIGXCPU" $?
hangs_up=$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)
if [ $((0x$hangs_up & 1)) = 0 ]; then
    signalled HUP rank 1
    drained "SIGHUP" $?
else
    echo "not checked here: SIGHUP, which is ignored here, as nohup has it"
fi
signalled USR1 launcher 2
got=$?
# Hydra of MPICH 4.0 passes a signal on and then fails now and then itself, with any program: with status 0, or by an assertion.
if grep -q HYD_ "$dir/err"; then
    echo "not checked here: a signal to the launcher, which failed"
else
    [[ $(${MPIRUN:-mpirun} --version 2>&1) != *HYDRA* || $got -ne 0 ]] || got=75
    drained "SIGUSR1 to the launcher of 2 ranks" $got 2
fi
signalled USR2 rank 2 --replicas 2
drained "SIGUSR2 to rank 0 of 2 replicas" $? 2
continues
: >"$dir/err"
start 2 --max-seqs 1
await_group
kill -USR1 "$(cat "$dir/pid.0")" && kill -USR2 "$(cat "$dir/pid.0")"
wait $launcher
test $? -eq 75 && test ! -e "$dir/out.jsonl.lock"
ok "two signals: status 75" $?
continues
# ... while rank 0 waits for a replica that does not get on.
: >"$dir/err"
start 2 --max-seqs 1 --replicas 2 --watchdog 60
await_group
kill -STOP "$(cat "$dir/pid.1")" && kill -USR1 "$(cat "$dir/pid.0")" && sleep 1
kill -USR2 "$(cat "$dir/pid.0")"
(sleep 5; kill -9 "$(cat "$dir/pid.1")") 2>/dev/null &
late=$!
wait $launcher
test $? -eq 75 && kill $late && test ! -e "$dir/out.jsonl.lock" && grep -q '_cake": {"running"' "$dir/out.jsonl.partial"
ok "two signals, while a replica does not get on: status 75" $?
continues
# A signal before anything is computed, here while a pipe without a writer is opened: the run ends at once.
mkfifo "$dir/nobody"
waits() { # NAME SIGNAL NP OPTION...
    local name=$1 signal=$2
    : >"$dir/err"
    IN=$dir/nobody start "${@:3}"
    [ -z "$signal" ] || { sleep 0.5 && kill -"$signal" "$(cat "$dir/pid.0")"; }
    wait $launcher
    test $? -eq 75 && grep -q 'stopped before anything was computed; the same command' "$dir/err" && test ! -e "$dir/out.jsonl.lock"
    ok "$name while a pipe is opened: status 75" $?
}
waits SIGTERM TERM 1
waits SIGUSR2 USR2 2
waits "the end of the time" "" 1 --max-runtime 1

# One while rank 0 waits in MPI_Init: it is not lost, which launchers do not get over.
: >"$dir/err"
touch "$dir/late.1"
start 2
for _ in $(seq 500); do
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$(cat "$dir/pid.0")/status")
    [ $((0x${caught:-0} >> 9 & 1)) -eq 0 ] || break
    sleep 0.02
done
kill -USR1 "$(cat "$dir/pid.0")" && sleep 0.2 && rm "$dir/late.1"
wait $launcher
test $? -eq 75 && test ! -e "$dir/out.jsonl.lock"
ok "a signal before MPI is up: status 75" $?
continues
# One after the other, with weights that are read for each token, they take ten times as long as together.
requests 90 >"$dir/in.jsonl"
run -o "$dir/whole.jsonl" --force -q
wanted=$(sum "$dir/whole.jsonl")
limited() { # NAME OPTION...: after a second or two of five
    local name=$1 got
    shift
    rm -f "$dir"/out.jsonl*
    run -o "$dir/out.jsonl" --max-seqs 1 --weights-memory 50% "$@" 2>"$dir/err"
    got=$?
    drained "$name" $got
}
limited "a time limit" --max-runtime 1s
SLURM_JOB_END_TIME=$(($(date +%s) + 8)) limited "the end of a job" --stop-before 6s --max-runtime 1h
cat >"$dir/squeue" <<'END'
#!/bin/sh
[ "$3" = 77 ] && date -d '+1 hour' +78,%Y-%m-%dT%H:%M:%S && date -d '+62 seconds' +77,%Y-%m-%dT%H:%M:%S
END
chmod +x "$dir/squeue"
SLURM_JOB_ID=77 PATH=$dir:$PATH limited "... as squeue tells it"
continues
rm -f "$dir"/out.jsonl*
printf '{"_cake": {"journal": 1, ' >"$dir/out.jsonl.partial"
echo '{"prompt": "x", "max_tokens": 1}' >"$dir/single.jsonl"
expect "a first line that is cut off" 0 'out.jsonl.partial: ends within its first line: nothing was finished' \
    "$cake" run -m "$model" -i "$dir/single.jsonl" -o "$dir/out.jsonl"
rm -f "$dir"/out.jsonl*
expect "a job that is over" 1 'the job ended [0-9]+ s ago, according to SLURM_JOB_END_TIME or squeue' env SLURM_JOB_END_TIME=1700000000 "$cake" run -m "$model" -p x
expect "a job that has no time left" 1 'the job ends in [0-9]+ s and the run has to stop 60 s before: no time is left' \
    env SLURM_JOB_END_TIME=$(($(date +%s) + 50)) "$cake" run -m "$model" -p x
expect "no time at all" 2 'max-runtime 0 leaves no time' run -o "$dir/out.jsonl" --max-runtime 0
expect "an end that is no time" 0 'SLURM_JOB_END_TIME: "soon" is not a time' env SLURM_JOB_END_TIME=soon "$cake" run -m "$model" -p x --max-tokens 1
# Results that go straight out: those that wait for others are not lost.
for _ in $(seq $(few 20 8)); do cat "$dir/in.jsonl"; done >"$dir/long.jsonl"
"$cake" run -m "$model" -i "$dir/long.jsonl" -o - --max-seqs 4 --max-runtime 1s >"$dir/out" 2>"$dir/err"
test $? -eq 75 && grep -q ' results; a stream cannot be resumed: use -o FILE' "$dir/err" &&
    test "$(sed -n 's/.*wrote \([0-9]*\) results; a stream.*/\1/p' "$dir/err")" -eq "$(wc -l <"$dir/out")"
ok "a stream is stopped" $?
# A pipe that pauses: requests so far are computed and kept, and the time limit counts.
mkfifo "$dir/pipe"
(head -3 "$dir/in.jsonl"; exec sleep 30) >"$dir/pipe" &
sleeper=$!
"$cake" run -m "$model" -i - --deterministic-ids -o "$dir/out.jsonl" --max-runtime 1s <"$dir/pipe" 2>"$dir/err"
test $? -eq 75 && grep -q 'out.jsonl.partial has 3 results' "$dir/err"
ok "a pipe that pauses holds nothing up" $?
kill $sleeper
rm -f "$dir"/out.jsonl*
expect "no end is known" 0 'stop-before: the end of the job is unknown' "$cake" run -m "$model" -p x --max-tokens 1 --stop-before 9
expect "a time that is none" 2 'max-runtime: "soon" is not a duration like 90, 15m, 2h or 1-12:00:00' run --max-runtime soon

# Stopped by a limit on the size of files: a journal of some groups.
stop() { # NAME OPTION...
    local name=$1
    shift
    rm -f "$dir/$name.jsonl"*
    (trap '' XFSZ && ulimit -f "${blocks:-$(few 10 26)}" && run -o "$dir/$name.jsonl" --max-seqs 8 "$@") >"$dir/stopped" 2>&1
    test $? -eq 1 && grep -q 'cannot be written at byte' "$dir/stopped" && test -s "$dir/$name.jsonl.partial"
    ok "stopped by a full disk" $?
}
requests 12 >"$dir/in.jsonl"
run -o "$dir/whole.jsonl" --force -q
wanted=$(sum "$dir/whole.jsonl")
stop out
expect "resumed" 3 'resumes with [1-9][0-9]* finished requests' run -o "$dir/out.jsonl" --report "$dir/report.json"
test "$(sum "$dir/out.jsonl")" = "$wanted"
ok "... to the same bytes" $?
grep -Eq '"requests": \{"done": [0-9]+, "failed": [0-9]+, "resumed": [1-9]' "$dir/report.json"
ok "... the report counts what was there" $?
before=$(stat -c %y "$dir/out.jsonl")
expect "the same again" 3 "out.jsonl: all $results requests are done already \\($((results - n)) failed\\); --retry-errors" run -o "$dir/out.jsonl"
expect "... and a report of it" 3 'nothing was left to run, so --report and --trace write nothing' run -o "$dir/out.jsonl" --report "$dir/none"
expect "... from standard input" 3 'are done already' sh -c "'$cake' run -m '$model' -i - --deterministic-ids -o '$dir/out.jsonl' <'$dir/in.jsonl'"
test "$before" = "$(stat -c %y "$dir/out.jsonl")"
ok "... changes nothing" $?
expect "another job" 1 'another job: temperature was 0.0 and is 0.7; --force overwrites it' run -o "$dir/out.jsonl" --temperature 0.7
expect "never over a finished one" 1 'exists already; --force' run -o "$dir/out.jsonl" --resume never

# The input has more lines, or others.
cp "$dir/in.jsonl" "$dir/old.jsonl"
printf '{"id": "new%d", "prompt": "Once", "max_tokens": 9}\n' 1 2 3 >>"$dir/in.jsonl"
run -o "$dir/grown.jsonl" -q
expect "lines were added to a finished job" 3 "resumes with $results finished requests" run -o "$dir/out.jsonl"
cmp "$dir/grown.jsonl" "$dir/out.jsonl"
ok "... to the same bytes" $?
cp "$dir/in.jsonl" "$dir/new.jsonl"
stop out
cp "$dir/out.jsonl.partial" "$dir/kept"
sed -i '20s/number/NUMBER/' "$dir/in.jsonl"
expect "a line was changed" 1 'in.jsonl: lines [0-9]+ to [0-9]+ are not what they were' run -o "$dir/out.jsonl"
! grep -q 'resumes with' "$dir/err"
ok "... there is no message about resuming" $?
expect "... on standard input" 1 'standard input: lines [0-9]+ to [0-9]+ are not what' sh -c \
    "'$cake' run -m '$model' -i - --deterministic-ids -o '$dir/out.jsonl' <'$dir/in.jsonl'"
cmp "$dir/kept" "$dir/out.jsonl.partial"
ok "... and what was done stays as it is" $?
head -5 "$dir/old.jsonl" >"$dir/in.jsonl"
expect "lines are missing" 1 'in.jsonl: ends after 5 requests, but [0-9]+ were read' run -o "$dir/out.jsonl"
cp "$dir/new.jsonl" "$dir/in.jsonl"
expect "... they are back" 3 'resumes with' run -o "$dir/out.jsonl"
cmp "$dir/grown.jsonl" "$dir/out.jsonl"
ok "... to the same bytes" $?

# Long answers resume where they stopped: tokens of earlier runs are not drawn again. Two replicas, log probabilities, also of
# the prompt, and several answers to a request.
cp "$dir/in.jsonl" "$dir/short.jsonl"
for i in $(seq 16); do printf '{"id": "long%d", "prompt": "There was once number %d", "max_tokens": %d, "ignore_eos": true%s}\n' \
    "$i" "$i" "$(few 800 900)" "$([ $((i % 2)) -eq 0 ] || echo ', "logprobs": 2, "min_tokens": 5, "repetition_penalty": 1.1')$(
    [ $((i % 4)) -ne 1 ] || echo ', "echo": true')$([ $((i % 7)) -ne 5 ] || echo ', "n": 3, "temperature": 0.8')"; done >"$dir/in.jsonl"
echo '{"id": "short", "prompt": "Once", "max_tokens": 12, "ignore_eos": true}' >>"$dir/in.jsonl"
generated() { sed -n 's/.*"generated": \([0-9]*\),.*/\1/p' "$dir/report.json"; }
rm -f "$dir"/out.jsonl*
run -o "$dir/whole.jsonl" --force -q --report "$dir/report.json"
all=$(generated)
start 1 --report "$dir/report.json" -q
await_group
kill -TERM "$(cat "$dir/pid.0")"
wait $launcher
test $? -eq 75 && grep -q '_cake": {"running"' "$dir/out.jsonl.partial"
ok "long answers are stopped, when a short one is finished" $?
first=$(generated)
expect "... and resumed, with 2 replicas" 0 'resumes with 1 finished requests? \(0 failed\) and 16 unfinished ones' \
    mpi 2 run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -o "$dir/out.jsonl" --replicas 2 --report "$dir/report.json"
cmp "$dir/whole.jsonl" "$dir/out.jsonl"
ok "... to the same bytes" $?
second=$(generated)
test "$first" -gt 100 && test $((first + second)) -eq "$all"
ok "... no token is generated twice: $first and $second of $all" $?
cp "$dir/short.jsonl" "$dir/in.jsonl"

# Errors again: what was too long for the cache, with more of it.
rm -f "$dir"/out.jsonl*
for i in 1 2 3 4; do printf '{"id": %d, "prompt": "Once", "max_tokens": %d, "ignore_eos": true}\n' $i $((i * 100)); done >"$dir/in.jsonl"
run -o "$dir/whole.jsonl" --force -q
expect "a cache that is too small" 3 '\([1-3] failed\)' run -o "$dir/out.jsonl" --kv-memory 420K
expect "... errors again" 0 'failed requests are repeated' run -o "$dir/out.jsonl" --retry-errors
cmp "$dir/whole.jsonl" "$dir/out.jsonl"
ok "... to the same bytes" $?

# Lines that failed may be corrected for that, others not: of a finished run, of a shard of one, of one that was stopped.
rm -f "$dir"/out.jsonl* "$dir"/fixed.jsonl*
for i in $(seq 40); do printf '{"id": %d, "prompt": [%d, 6], "max_tokens": %d}\n' $i $i $((i % 7 ? 1 : -i)); done >"$dir/wrong.jsonl"
sed 's/-[0-9]*}/1}/' "$dir/wrong.jsonl" >"$dir/right.jsonl"
sed 's/"prompt": \[9, 6\]/"prompt": [9, 7]/' "$dir/right.jsonl" >"$dir/other.jsonl"
head -n 39 "$dir/right.jsonl" >"$dir/fewer.jsonl"
correct() { # FROM NAME OPTION... : a run of wrong.jsonl, then of FROM with --retry-errors
    local from=$1 name=$2
    shift 2
    cp "$dir/wrong.jsonl" "$dir/in.jsonl" && run -o "$dir/$name.jsonl" -q "$@" 2>/dev/null
    cp "$dir/$from.jsonl" "$dir/in.jsonl" && run -o "$dir/$name.jsonl" --retry-errors "$@"
}
cp "$dir/right.jsonl" "$dir/in.jsonl" && run -o "$dir/fixed.jsonl" -q && run -o "$dir/fixed.1.jsonl" -q --shard 1/2
expect "lines that failed are corrected" 0 'lines of failed requests have changed: these requests are done again' correct right out
cmp "$dir/fixed.jsonl" "$dir/out.jsonl"
ok "... to the same bytes" $?
expect "... which is the job's input then" 0 'all 40 requests are done already' run -o "$dir/out.jsonl"
expect "... of a shard" 0 'these requests are done again' correct right part --shard 1/2
cmp "$dir/fixed.1.jsonl" "$dir/part.jsonl"
ok "... to the same bytes" $?
for from in other fewer; do
    expect "... but no line that has an answer: $from" 1 'not what they were when the run began; .*with --retry-errors those that failed may be corrected|ends after 39 requests' correct $from "no-$from"
done
cp "$dir/wrong.jsonl" "$dir/in.jsonl" && run -o "$dir/unsaid.jsonl" -q 2>/dev/null
sed -i 's/, "answered": "[0-9a-f]*"//' "$dir/unsaid.jsonl.job" && cp "$dir/right.jsonl" "$dir/in.jsonl"
expect "... nor where what was answered is not known" 1 'are not what they were' run -o "$dir/unsaid.jsonl" --retry-errors
cp "$dir/wrong.jsonl" "$dir/in.jsonl" && expect "... which continues as before" 3 '\(5 failed\)' run -o "$dir/unsaid.jsonl" --retry-errors
for from in wrong right; do
    for i in $(seq "$(few 20 300)"); do cat "$dir/$from.jsonl"; done >"$dir/many.$from.jsonl"
done
cp "$dir/many.right.jsonl" "$dir/in.jsonl" && run -o "$dir/many.jsonl" -q
cp "$dir/many.wrong.jsonl" "$dir/in.jsonl" && stop halfway
cp "$dir/many.right.jsonl" "$dir/in.jsonl"
expect "... of a run that was stopped" 0 'these requests are done again' run -o "$dir/halfway.jsonl" --retry-errors
cmp "$dir/many.jsonl" "$dir/halfway.jsonl"
ok "... to the same bytes" $?

# A job resumes with the instruction set that it began with.
for i in $(seq 300); do printf '{"id": "a long name of request %d", "prompt": [%d, 6], "max_tokens": 1}\n' "$i" $((i % 30)); done >"$dir/in.jsonl"
demo=$model model=$root/tests/golden/llama-plain
blocks=26 stop out --isa ref # it answers so fast that groups are large
expect "the instruction set of the journal" 0 'resumes with' run -o "$dir/out.jsonl"
grep -Eq '"isa": ?"ref"' "$dir/out.jsonl.job"
ok "... is kept" $?
cp "$dir/out.jsonl" "$dir/arm.jsonl" && sed 's/"isa": *"ref"/"isa": "neon"/' "$dir/out.jsonl.job" >"$dir/arm.jsonl.job"
case $(uname -m) in aarch64) sed -i 's/"neon"/"avx2"/' "$dir/arm.jsonl.job" ;; esac
expect "... of another architecture is refused by name" 1 'isa was "(neon|avx2)" and is' run -o "$dir/arm.jsonl"
run -o "$dir/best.jsonl" -q && run -o "$dir/out.jsonl" --force -q
cmp <(grep -Eo '"isa": ?"[a-z0-9]*"' "$dir/best.jsonl.job") <(grep -Eo '"isa": ?"[a-z0-9]*"' "$dir/out.jsonl.job")
ok "... but not by --force, which makes results anew" $?
model=$demo
mkdir "$dir/odd.jsonl.job"
expect "a folder for RESULTS.job" 1 'odd.jsonl.job: was not written by a run' run -o "$dir/odd.jsonl"
rmdir "$dir/odd.jsonl.job" && echo mine >"$dir/odd.jsonl.job"
expect "... a file of somebody else" 1 'odd.jsonl.job: was not written by a run' run -o "$dir/odd.jsonl"
test "$(cat "$dir/odd.jsonl.job")" = mine && test ! -e "$dir/odd.jsonl.lock"
ok "... is left alone" $?
expect "nothing to resume" 1 'there is nothing to resume, but --resume must is given' run -o "$dir/none.jsonl" --resume must
expect "... on standard output" 2 '\-\-resume must: without a result file there is nothing to resume' run --resume must
test ! -e "$dir/none.jsonl.partial" && test ! -e "$dir/none.jsonl.lock"
ok "... leaves nothing" $?
finish
