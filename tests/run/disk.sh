#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disk faults: each call that changes a file of the results fails in turn, in each way. Either the run ends with status 1
# and a message, and the next run makes the right file, or it continues and the file is right. `make check-long` tries all.
. "$(dirname "$0")/../shell.sh"
model=$root/tests/golden/llama-plain
compiler=$(command -v cc || command -v gcc || command -v clang)
[ -n "$compiler" ] || { echo "  disk faults: skipped, no C compiler"; exit 77; }
"$compiler" -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$dir/shim.so" "$root/tests/run/disk_shim.c" -ldl || exit 1
for i in $(seq 300); do printf '{"id": %d, "prompt": [%d, 6], "max_tokens": 1%s}\n' "$i" $((i % 30)) "$([ $((i % 9)) -ne 5 ] || echo ', "top_p": 7')"; done >"$dir/in.jsonl"
mkdir "$dir/at"
out=$dir/at/out.jsonl
run() { "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$out" --deterministic-ids "$@"; }
preloaded() { # AT ERROR COMMAND... : status in $got
    local at=$1 error=$2
    shift 2
    : >"$dir/log"
    LD_PRELOAD=$dir/shim.so ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0:detect_leaks=0 \
        DISK_PATH=$dir/at DISK_LOG=$dir/log DISK_AT=$at DISK_ERROR=$error "$@" 2>"$dir/err"
    got=$?
}
fails() { # AT ERROR OPTION...
    local at=$1 error=$2
    shift 2
    preloaded "$at" "$error" run "$@"
}
run -q
test $? -eq 3
ok "a run without faults" $?
mv "$out" "$dir/whole.jsonl"
rm -f "$dir"/at/*
fails 100000 5
calls=$(wc -l <"$dir/log")
test $got -eq 3 && test "$calls" -gt 12 && cmp "$out" "$dir/whole.jsonl"
ok "$calls calls change files" $?

# one BEFORE AT ERROR : BEFORE says in what state it begins
one() {
    local before=$1 at=$2 error=$3 why call
    rm -rf "$dir/at" && mkdir "$dir/at"
    case $before in
    stopped) cp "$dir/stopped" "$out.partial" ;;
    esac
    fails "$at" "$error"
    call=$(sed -n 's/!$//p' "$dir/log" | head -1)
    why="$before, error $error at call $at: $call"
    [ -n "$call" ] || return 1
    if [ $got -eq 1 ]; then
        grep -Eq 'error: record: .*(Input/output error|No space left|quota exceeded)' "$dir/err" || bad="$bad; $why: no message"
        rm -f "$out.lock"
        run 2>"$dir/err"
        got=$?
    fi
    [ $got -eq 3 ] || bad="$bad; $why: status $got"
    cmp -s "$out" "$dir/whole.jsonl" || bad="$bad; $why: other bytes"
    rm -f "$out" "$out.job"
    [ -z "$(ls "$dir/at")" ] || [ "$call" = unlink ] || bad="$bad; $why: leaves $(ls "$dir/at" | tr '\n' ' ')"
}
rm -f "$dir"/at/*
fails 100000 5 --max-seqs 4
write=$(grep -n pwrite "$dir/log" | sed -n '3s/:.*//p')
rm -f "$dir"/at/*
fails "$write" 28 --max-seqs 4
cp "$out.partial" "$dir/stopped"
test $got -eq 1 && test "$(grep -c '"group"' "$dir/stopped")" -gt 0 && grep -q 'cannot be written at byte' "$dir/err"
ok "a run that is stopped" $?
# 5: EIO, 28: ENOSPC, 122: EDQUOT, 0: half is written, then ENOSPC
for before in $(few new "new stopped"); do
    for error in $(few 0 "5 28 122 0"); do
        bad=
        for at in $(few "3 6 8 10 12" "$(seq -s' ' 40)"); do one "$before" "$at" "$error" || break; done
        test -z "$bad"
        ok "$before, error $error at call 1 to $at" $?
        [ -z "$bad" ] || echo "   $bad" | tr ';' '\n'
    done
done
# A merge that fails leaves nothing but its shards, as they were.
mkdir "$dir/shards"
for i in 0 1; do "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/shards/$i.jsonl" --deterministic-ids --shard $i/2 -q; done
(cd "$dir/shards" && md5sum -- *) >"$dir/sums"
bad=
for error in $(few 0 "5 28 122 0"); do
    for at in $(seq 40); do
        rm -rf "$dir/at" && mkdir "$dir/at"
        preloaded "$at" "$error" "$cake" merge -o "$out" "$dir"/shards/?.jsonl
        call=$(sed -n 's/!$//p' "$dir/log" | head -1)
        [ -n "$call" ] || break
        why="error $error at call $at: $call"
        if [ $got -eq 0 ]; then
            cmp -s "$out" "$dir/whole.jsonl" || bad="$bad; $why: other bytes"
            continue
        fi
        grep -Eq 'error: record: .*(Input/output error|No space left|quota exceeded)' "$dir/err" && ! grep -q 'it holds the' "$dir/err" ||
            bad="$bad; $why: $(cat "$dir/err")"
        [ -z "$(ls "$dir/at")" ] || [ "$call" = unlink ] || bad="$bad; $why: leaves $(ls "$dir/at" | tr '\n' ' ')"
    done
done
test -z "$bad" && test "$at" -gt 12 && (cd "$dir/shards" && md5sum --quiet -c "$dir/sums")
ok "merge: error at call 1 to $at" $?
[ -z "$bad" ] || echo "   $bad" | tr ';' '\n'
finish
