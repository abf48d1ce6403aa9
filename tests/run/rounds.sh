#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/run/rounds.sh [ROUNDS [SEED]]: runs that are stopped one to three times at random moments and
# resumed to the end give the bytes of an undisturbed run, each id once. They are stopped by kill -9 of a rank; by SIGTERM,
# SIGUSR1 or SIGUSR2 to rank 0 or the launcher; or by a disk that is full or broken at some call. Model, format, ranks,
# replicas, sequences and what is drafted are drawn for each start. Round i depends on SEED + i only; a failed round leaves its files in
# rounds-SEED and prints how to repeat it (at the same moments, when the program may be elsewhere).
. "$(dirname "$0")/../shell.sh"
rounds=${1:-$(few 2 3)} seed=${2:-$(($$ * 1000))}
echo "  seed $seed"
compiler=$(command -v cc || command -v gcc || command -v clang)
[ -n "$compiler" ] || { echo "  rounds: skipped, no C compiler"; exit 77; }
for shim in disk clock; do
    "$compiler" -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$dir/$shim.so" "$root/tests/run/${shim}_shim.c" -ldl || exit 1
done
# The clock runs forty times as fast, so answers are saved eight times a second; the time of day jumps days forward and back. Sanitizers must be loaded first.
shims="$dir/disk.so $dir/clock.so"
[ -z "${ASAN_OPTIONS:-}" ] || { shims=$dir/disk.so && export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0; }
ways=(kill TERM USR1 USR2 disk)
forms=(jsonl jsonl.gz txt)
ways_to_draft=("" CAKE_TEST_DRAFTS=all CAKE_TEST_DRAFTS=random)
golden=$root/tests/golden
models=("$root/jobs/demo/model" "$golden/qwen3.5-hub" "$golden/gemma3-new") # 8, 4 and 4 layers
read -r -a sizes <<<"$(few "90 150 150" "160 300 300")"

# Both forms of lines, errors, blank lines, log probabilities (of the prompt, too), some answers to one request (not in text), and
# one request in eight is long.
requests() { # N FORM
    local i more
    for i in $(seq "$1"); do
        more="\"max_tokens\": $((i % 8 ? 4 + i * 37 % 30 : 300)), \"ignore_eos\": true, \"temperature\": 0.$((i % 10))"
        [ $((i % 5)) -ne 1 ] || more="$more, \"logprobs\": 2"
        [ $((i % 10)) -ne 6 ] || more="$more, \"echo\": true"
        [ $((i % 9)) -ne 4 ] || [ "$2" = txt ] || more="$more, \"n\": 2"
        [ $((i % 32)) -ne 16 ] || [ "$2" = txt ] || more="$more, \"n\": 3"
        [ $((i % 16)) -ne 8 ] || more="$more, \"seed\": $i, \"repetition_penalty\": 1.1"
        if [ $((i % 4)) -eq 2 ]; then
            printf '{"custom_id": "c%d", "method": "POST", "url": "/v1/completions", "body": {"prompt": "There was once number %d", %s}}\n' "$i" "$i" "$more"
        else
            printf '{"id": "r%d", "prompt": "There was once number %d", %s}\n' "$i" "$i" "$more"
        fi
        [ $((i % 50)) -ne 7 ] || printf '{"id": "bad%d", "prompt": "x", "top_p": 7}\n\n' "$i"
    done
}
ids() { # of results, in their order
    sed -nE 's/^\{"id": "batch_req-[0-9]+", "custom_id": "([^"]*)".*/\1/p; t; s/^\{"id": "([^"]*)".*/\1/p'
}
plain() { case $1 in *.gz) zcat "$1" ;; *) cat "$1" ;; esac; }
sum() { sha256sum <"$1" | cut -c 1-64; }
draw() { drawn=$((RANDOM % $1)); } # no subshell: it would draw for itself

# An undisturbed run of each job, once: its results, their checksum, its time.
declare -A wanted took
undisturbed() { # WHICH FORM
    local name=$1.$2 begin
    [ -z "${wanted[$name]:-}" ] || return 0
    requests "${sizes[$1]}" "$2" >"$dir/in.$name.jsonl"
    begin=$(date +%s%N)
    "$cake" run -m "${models[$1]}" -i "$dir/in.$name.jsonl" -o "$dir/whole.$name" --deterministic-ids --speculate off -q 2>/dev/null
    [ $? -eq 3 ] || { echo "  a run that nobody disturbs failed: $name"; exit 1; }
    took[$name]=$((($(date +%s%N) - begin) / 1000000))
    wanted[$name]=$(sum "$dir/whole.$name")
    plain "$dir/whole.$name" | ids | sort >"$dir/ids.$name"
}

# start NP OPTION... : in the background, with the shims and what DISK_ has for them
start() {
    local np=$1
    shift
    rm -f "$dir"/pid.*
    cat >"$dir/rank" <<END
#!/bin/sh
echo \$\$ >"$dir/pid.\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}"
export DISK_PATH="$dir/at" DISK_LOG="$dir/calls" DISK_AT=${disk_at:-1000000} DISK_ERROR=${disk_error:-5} CLOCK_FACTOR=40 CLOCK_JUMP=300000 $drafts LD_PRELOAD="$shims"
exec "$cake" "\$@"
END
    chmod +x "$dir/rank"
    echo "--- $np ranks, $*" >>"$dir/err"
    "$root/tests/mpirun.sh" "$np" "$dir/rank" run -m "${models[$which]}" -i "$dir/in.$job.jsonl" -o "$out" \
        --deterministic-ids --watchdog 600 "$@" >>"$dir/err" 2>&1 &
    launcher=$!
}
alive() { kill -0 $launcher 2>/dev/null; }
until_there() { # FILE... : all are there, or the run is over, or hangs
    local begin=$SECONDS
    while alive && [ $((SECONDS - begin)) -lt 60 ] && ! { for file; do [ -e "$file" ] || break; done; [ -e "$file" ]; }; do sleep 0.01; done
}
# Where each rank of a start that hangs is, for those who read the files that are left of it.
where() {
    local file pid
    for file in "$dir"/pid.*; do
        pid=$(cat "$file")
        echo "+++ hangs: rank ${file##*.}, process $pid: $(sed -n 's/^State:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null || echo gone)"
        ! kill -0 "$pid" 2>/dev/null || ! command -v gdb >/dev/null || timeout 20 gdb -p "$pid" -batch -ex 'thread apply all bt 12' 2>/dev/null
    done
}
ended() { # its status in $got; 124: it hung, and was killed
    local begin=$SECONDS hung=''
    while alive; do
        sleep 0.02
        [ $((SECONDS - begin)) -lt 60 ] || { hung=1 && break; }
    done
    [ -z "$hung" ] || { where >>"$dir/err"; kill -9 $launcher "$(cat "$dir/pid.0")" 2>/dev/null; }
    wait $launcher 2>/dev/null
    got=$?
    [ -z "$hung" ] || got=124
}

declare -A stopped late
went_on=0 had_begun=0 torn=0 rounds_on=0 hangs=()
# One stop. All is drawn before the start, so that a seed says everything.
disturb() {
    local way np replicas seqs after whom rank said
    draw 5 && way=${ways[drawn]}
    draw 4 && np=$((drawn + 1))
    draw 2 && replicas=$((np % 2 ? 1 : drawn + 1))
    draw 60 && seqs=$((drawn + 4))
    draw 4 && early=$((drawn == 0)) # counted from the start of the processes, not of the run
    draw 1000 && after=$(printf '%d.%03d' $((took[$job] * drawn / 1000000)) $((took[$job] * drawn / 1000 % 1000)))
    draw 3 && whom=$drawn
    draw "$np" && rank=$drawn
    disk_at='' disk_error=''
    draw 60 && [ $way = disk ] && disk_at=$((drawn + 1))
    draw 4 && [ $way = disk ] && disk_error=$(echo 5 28 122 0 | cut -d ' ' -f $((drawn + 1)))
    draw 3 && drafts=${ways_to_draft[drawn]}
    echo "=== $way, after $after s, $drafts${disk_at:+, call $disk_at error $disk_error}, rank $rank, whom $whom" >>"$dir/err"
    said=$(wc -l <"$dir/err")
    start "$np" --max-seqs "$seqs" --replicas "$replicas"
    until_there "$dir/pid.$((np - 1))"
    [ $early -eq 1 ] || until_there "$out.lock"
    if [ $way != disk ]; then
        sleep "$after"
        case $way.$whom in
        kill.*) kill -9 "$(cat "$dir/pid.$rank")" ;;
        *.0) kill -"$way" $launcher ;;
        *) kill -"$way" "$(cat "$dir/pid.0")" ;;
        esac 2>/dev/null
    fi
    ended
    case $got in
    0 | 3) late[$way]=$((${late[$way]:-0} + 1)) ;;
    *) stopped[$way]=$((${stopped[$way]:-0} + 1)) ;;
    esac
    # mpirun may hang for ever where a rank is ended in MPI_Init; that was its end all the same, but rounds with it are few
    [ $got != 124 ] || ! tail -n "+$((said + 1))" "$dir/err" | grep -Eq 'PMIX ERROR|exited on signal' || got=1 excused=1
    case $got in
    124 | 132 | 134 | 135 | 136 | 139) wrong="$wrong; status $got of a run that was stopped by $way" ;;
    esac
}

# one ROUND : into $wrong what is wrong with it
one() {
    local stops i excused=''
    RANDOM=$((seed + $1)) wrong='' disk_at='' disk_error=''
    draw 3 && which=$drawn
    draw 3 && form=${forms[drawn]}
    draw 3 && stops=$((drawn + 1))
    job=$which.$form out=$dir/at/out.$form
    undisturbed $which "$form"
    rm -rf "$dir/at" && mkdir "$dir/at"
    : >"$dir/err"
    : >"$dir/calls"
    for i in $(seq "$stops"); do disturb; done
    draw 4 && np=$((drawn + 1))
    draw 2
    disk_at= drafts=
    start $np --replicas $((np % 2 ? 1 : drawn + 1))
    ended
    [ "$got" -eq 3 ] || wrong="$wrong; the last run ends with $got"
    [ "$(sum "$out")" = "${wanted[$job]}" ] || wrong="$wrong; other bytes"
    if [ "$form" != txt ]; then
        plain "$out" | ids | sort >"$dir/ids"
        cmp -s "$dir/ids" "$dir/ids.$job" ||
            wrong="$wrong; $(comm -13 "$dir/ids" "$dir/ids.$job" | wc -l) ids lost, $(uniq -d "$dir/ids" | wc -l) twice"
    elif [ "$(wc -l <"$out")" -ne "$(wc -l <"$dir/whole.$job")" ]; then
        wrong="$wrong; $(wc -l <"$out") lines"
    fi
    others=$(find "$dir/at" -type f ! -name "out.$form" ! -name "out.$form.job")
    # a file that could not be removed stays
    [ -z "$others" ] || grep -q 'unlink!' "$dir/calls" || wrong="$wrong; left: $others"
    # shellcheck disable=SC2126
    i=$(grep -E 'CAKE_ASSERT|assertion|Segmentation|Sanitizer|terminated unexpectedly|corrupt' "$dir/err" | head -1)
    [ -z "$i" ] || wrong="$wrong; $i"
    i=$(grep -c 'resumes with' "$dir/err")
    went_on=$((went_on + i)) rounds_on=$((rounds_on + (i > 0)))
    had_begun=$((had_begun + $(grep -c 'resumes with.* unfinished ones' "$dir/err")))
    torn=$((torn + $(grep -c 'of an incomplete group are cut off' "$dir/err")))
    [ -n "$excused" ] || return 0
    hangs+=($((seed + $1 - 1)))
    grep '^+++ hangs' "$dir/err" | sed 's/^+++ /  mpirun /'
}

for round in $(seq "$rounds"); do
    one "$round"
    [ -n "$wrong" ] || good=$((${good:-0} + 1))
    [ -n "$wrong" ] || continue
    ok "round $round" 1
    keep=rounds-$((seed + round))
    rm -rf "$keep" && cp -r "$dir/at" "$keep" && cp "$dir/err" "$dir/in.$job.jsonl" "$dir/whole.$job" "$keep"
    echo "    ${wrong#; }; again: tests/run/rounds.sh 1 $((seed + round - 1)); files: $PWD/$keep" && sed 's/^/    /' "$dir/err" | tail -n 40
done
test "${good:-0}" -eq "$rounds"
right=$?
ok "rounds that end in the bytes of an undisturbed run: ${good:-0} of $rounds; mpirun hung in ${#hangs[@]}${hangs[*]:+, seeds ${hangs[*]}}" $right
test "${#hangs[@]}" -le $((rounds < 100 ? 1 : rounds / 50))
ok "... which is rare" $?
echo "  rounds in which a start had results to resume from: $rounds_on of $rounds"
if [ "$rounds" -ge 10 ]; then # of three it may be none
    test $rounds_on -gt 0 && test $had_begun -gt 0
    ok "... in some of them stops came between the first results and the last, and in the middle of answers" $?
fi
for way in "${ways[@]}"; do echo "  stops: $way ${stopped[$way]:-0} in time, ${late[$way]:-0} too late"; done
echo "  starts that resumed with results: $went_on, with answers that were begun: $had_begun, cut off a torn group: $torn"
finish
