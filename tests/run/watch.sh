#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks that die or hang, under a launcher that ignores it (as srun without --kill-on-bad-exit): the others end within
# 10 s, one message names the rank, and finished results are kept.
. "$(dirname "$0")/../shell.sh"
export CAKE_SPECULATE=off # some of these runs must last
export OMPI_MCA_orte_enable_recovery=1
case $(${MPIRUN:-mpirun} --version 2>&1) in
*"Open MPI"* | *OpenRTE*) alone=1 ;;
*) alone= ;; # it ends all ranks itself, and may be quicker than the message
esac
for i in $(seq 60); do printf '{"id": %d, "prompt": "Once upon a time", "max_tokens": %d, "ignore_eos": true}\n' "$i" $((i < 30 ? 9 : 900)); done >"$dir/in.jsonl"
cat >"$dir/rank" <<END
#!/bin/sh
echo \$\$ >"$dir/pid.\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}"
[ ! -e "$dir/shim.so" ] || export LD_PRELOAD="$dir/shim.so" MUTE="$dir/mute"
exec "$cake" "\$@"
END
chmod +x "$dir/rank"

start() { # NP OPTION... : until something is finished
    local np=$1
    shift
    rm -f "$dir"/pid.* "$dir"/out.jsonl*
    "$root/tests/mpirun.sh" "$np" "$dir/rank" run -m "$model" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --max-seqs "${SEQS:-40}" "$@" 2>"$dir/err" &
    launcher=$!
    for _ in $(seq 300); do
        grep -qs '_cake.: {.group' "$dir/out.jsonl.partial" && return
        sleep 0.1
    done
}
running() { # RANK... : whether one of them is, and not only as what nobody has taken note of
    local rank state
    for rank in "$@"; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$(cat "$dir/pid.$rank")/status" 2>/dev/null)
        [ -z "$state" ] || [ "$state" = Z ] || return 0
    done
    return 1
}
# ended NAME SECONDS TEXT RANK... : those ranks end in time, with one message, and the journal is whole
ended() {
    local name=$1 seconds=$2 text=$3 begin=$SECONDS said
    shift 3
    while running "$@" && [ $((SECONDS - begin)) -le "$seconds" ]; do sleep 0.1; done
    ! running "$@"
    ok "$name: the others end within $seconds s" $?
    said=$(grep -Ec -- "$text" "$dir/err")
    [ "$said" -eq 1 ] || [ -z "$alone" ]
    ok "... one message says it" $?
    [ "$said" -eq 1 ] || sed 's/^/    /' "$dir/err"
    test -s "$dir/out.jsonl.partial" && test "$(tail -n 1 "$dir/out.jsonl.partial" | cut -c 1-12)" = '{"_cake": {"'
    ok "... what is finished is kept" $?
    for pid in "$dir"/pid.*; do kill -9 "$(cat "$pid")" 2>/dev/null; done
    wait $launcher
}

start 3
kill -STOP "$(cat "$dir/pid.2")"
sleep 2.5
kill -CONT "$(cat "$dir/pid.2")"
sleep 0.5
running 0 && running 1 && running 2
ok "a rank that hangs for a moment does no harm" $?
kill -9 "$(cat "$dir/pid.1")"
ended "a killed rank" 10 'error: watch: rank 1 on .* \(layers [0-9]+-[0-9]+\) is gone: .*; in flight: [1-9][0-9]* waves?, [1-9][0-9]* sequences; finished results' 0 2
test ! -e "$dir/out.jsonl.lock" || [ -z "$alone" ]
ok "... the lock is released" $?
start 3
kill -9 "$(cat "$dir/pid.0")"
ended "rank 0, killed" 10 'rank 1 on .*: error: watch: rank 0 on .* is gone' 1 2
start 2 --watchdog 2
sleep 1 # what each does is heard twice a second
kill -STOP "$(cat "$dir/pid.1")"
ended "a rank that hangs" 6 'watch: rank 1 on .* was silent for [23] s: it hangs, or its host or network is down' 0
[ "$(grep -Ec 'watch: \.\.\. rank [01] on .* \(layers .*\): ' "$dir/err")" = 2 ]
ok "... and where all ranks are" $?
# The watch's own connections fall silent, MPI's do not: no rank is taken for dead while waves go round.
compiler=$(command -v cc || command -v gcc || command -v clang)
for i in $(seq 500); do printf '{"id": %d, "prompt": "Once upon a time", "max_tokens": %d, "ignore_eos": true}\n' "$i" $((i < 9 ? 9 : 900)); done >"$dir/in.jsonl"
for replicas in $(few "" "1 2"); do
    "$compiler" -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$dir/shim.so" "$root/tests/run/mute_shim.c" || { ok "the shim compiles" 1; break; }
    SEQS=2 start 2 --replicas $replicas --watchdog 2
    sleep 1.5 # beats that say which replica a rank is of
    touch "$dir/mute"
    sleep 5
    running 0 && running 1 && ! grep -q 'error' "$dir/err"
    ok "silent connections, $replicas replica(s)" $?
    for pid in "$dir"/pid.*; do kill -9 "$(cat "$pid")" 2>/dev/null; done
    wait $launcher
    rm "$dir/mute"
done
finish
