#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shards of a job, one of them stopped and resumed, are merged: the bytes of one run of the whole input.
. "$(dirname "$0")/../shell.sh"
export CAKE_SPECULATE=off # some of these runs must last

# All forms, blank lines, errors; a custom_id of one shard that occurs again in another, a line that tells no form.
{
    echo 'no JSON'
    for i in $(seq 40); do
        printf '{"custom_id": "c%d", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "max_tokens": %d, "temperature": 0.9}}\n' \
            $((i % 31)) $((i % 9 + 1))
        printf '{"prompt": "There was number %d", "max_tokens": %d, "ignore_eos": true, "temperature": 0.8}\n' "$i" 600
        [ $((i % 7)) -ne 0 ] || echo
    done
} >"$dir/in.jsonl"
run() { "$cake" run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -q "$@"; }

run -o "$dir/whole.jsonl"
test $? -eq 3 && test "$(wc -l <"$dir/whole.jsonl")" -eq 81
ok "one run of the whole" $?
run -o "$dir/part-0.jsonl" --shard 0/3
ok "shard 0/3" $(($? != 3))
mpi 2 run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -q -o "$dir/part-1.jsonl" --shard 1/3 --max-seqs 3
ok "shard 1/3, on two ranks" $(($? != 3))
expect "another shard into the same file" 1 'another job: shard was "0/3" and is "2/3"' run -o "$dir/part-0.jsonl" --shard 2/3
"$cake" run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -q -o "$dir/part-2.jsonl" --shard 2/3 --max-seqs 1 &
until grep -qs '_cake": {"group' "$dir/part-2.jsonl.partial" || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
"$cake" status "$dir/part-2.jsonl" "$dir/part-1.jsonl" >"$dir/status"
run -o "$dir/part-2.jsonl" --shard 2/3 2>"$dir/twice"
twice=$?
kill -USR1 $!
wait $!
test $? -eq 75 && test -s "$dir/part-2.jsonl.partial"
ok "shard 2/3, stopped" $?
grep -Eq 'part-2.jsonl: running: [0-9]+ done.*, shard 2/3.*; process [0-9]+ on ' "$dir/status" &&
    grep -Eq 'part-1.jsonl: finished: 29 done' "$dir/status" && grep -Eq '^all: 1 running, 1 finished; ' "$dir/status"
ok "... status while it ran" $?
test $twice -eq 1 && grep -q 'part-2.jsonl.lock: another run is writing there: process' "$dir/twice"
ok "... nobody else may write the same shard" $?
before=$(stat -c %y "$dir/part-2.jsonl.partial")
expect "... and now" 0 'part-2.jsonl: stopped: [0-9]+ done of about .*, shard 2/3, [0-9.]+ %.*; wrote 0:0' "$cake" status "$dir/part-2.jsonl"
expect "... as JSON" 0 '"state": "stopped", "shard": "2/3", "done": [0-9]+, "failed": [0-9]+, "begun_tokens": [0-9]+, "total": null, "share": 0\.' \
    "$cake" status --json "$dir/part-2.jsonl.partial"
test "$before" = "$(stat -c %y "$dir/part-2.jsonl.partial")"
ok "... which changes nothing" $?
{ sed '2s/"id"/"ID"/' "$dir/part-2.jsonl.partial"; echo '{"torn'; } >"$dir/hurt.jsonl.partial"
expect "damage" 0 'hurt.jsonl: stopped: .*; [0-9]+ bytes (of an unfinished group|are damaged)' "$cake" status "$dir/hurt.jsonl"
expect "no results" 1 'none.jsonl: does not exist, nor does its .partial or .lock: no run has begun' "$cake" status "$dir/none.jsonl"
merge() { "$cake" merge -o "$dir/merged.jsonl" "$@"; }
expect "a stopped shard" 1 'part-2.jsonl.partial: shard 2/3 is not finished: it has [0-9]+ results, and none of index .*; give its `run` command again' \
    merge "$dir"/part-?.jsonl "$dir/part-2.jsonl.partial"
expect "a missing shard" 1 'shard 2/3 is missing: the requests whose index modulo 3 is 2 have no results' merge "$dir"/part-[01].jsonl
test -z "$(find "$dir" -name 'merged*')"
ok "... nothing is written" $?
run -o "$dir/part-2.jsonl" --shard 2/3 --progress-file "$dir/progress.json" --max-runtime 1h
test $? -eq 3 && grep -Eq '"state": "finished", .*"shard": "2/3".*"resumed": [1-9][0-9]*, "total": 28, "share": 1.0' "$dir/progress.json"
ok "... it continues, and a file shows the progress" $?
expect "a shard twice" 1 'both are shard 1/3' merge "$dir"/part-?.jsonl "$dir/part-1.jsonl"
expect "merged" 0 'merged.jsonl: 81 requests \([0-9]+ failed\) of 3 shards' merge "$dir"/part-?.jsonl
cmp "$dir/whole.jsonl" "$dir/merged.jsonl" && test -e "$dir/merged.jsonl.job"
ok "... the bytes of one run" $?
expect "merged again" 0 'merged.jsonl: all 81 requests are merged already' merge "$dir"/part-?.jsonl
expect "run of the whole finds all done" 3 'merged.jsonl: all 81 requests are done already' \
    "$cake" run -m "$model" -i "$dir/in.jsonl" --deterministic-ids -o "$dir/merged.jsonl"
"$cake" merge "$dir"/part-?.jsonl -q | cmp - "$dir/whole.jsonl"
ok "merged to standard output" $?
run -o "$dir/whole.txt" 2>/dev/null
"$cake" merge -q -o "$dir/merged.txt" "$dir"/part-?.jsonl && cmp "$dir/whole.txt" "$dir/merged.txt"
ok "... and as text" $?

# Plans of all shards add up to the plan of the whole.
for part in "" 0/3 1/3 2/3; do
    "$cake" plan -m "$model" -i "$dir/in.jsonl" --json ${part:+--shard "$part"} 2>/dev/null
    test $? -eq 3 && echo "end"
done >"$dir/plans"
awk '/^end/ { n++ } /"requests": / { split($0, a, /[:,}]/); sum[n > 0, 1] += a[3]; sum[n > 0, 2] += a[5]; least = !n || a[3] < least ? a[3] : least }
    /"tokens": {"min"/ { sub(/.*"total": /, ""); sum[n > 0, 3] += $0 } /"prediction"/ { sub(/.*"most": {"generated": /, ""); sum[n > 0, 4] += $0 }
    END { for (i = 1; i <= 4; i++) bad += sum[0, i] != sum[1, i] || !sum[0, i]; exit bad || n != 4 || least != 24 }' "$dir/plans" &&
    test "$(grep -o '"shard": [^,]*' "$dir/plans" | tr -d '\n')" = '"shard": null"shard": "0/3""shard": "1/3""shard": "2/3"'
ok "plans of the shards add up to that of the whole" $?
expect "... in words" 3 '^requests  28 of shard 2/3, of which ' "$cake" plan -m "$model" -i "$dir/in.jsonl" --shard 2/3

# Existing results are not overwritten; unfinished ones are resumed.
echo mine >"$dir/mine.jsonl"
expect "another file in the place" 1 'mine.jsonl: exists already; --force' "$cake" merge -o "$dir/mine.jsonl" "$dir"/part-?.jsonl
expect "... with --force" 0 . "$cake" merge --force -o "$dir/mine.jsonl" "$dir"/part-?.jsonl
cmp "$dir/whole.jsonl" "$dir/mine.jsonl"
ok "... the bytes of one run" $?
(trap '' XFSZ && ulimit -f 8 && "$cake" merge -o "$dir/small.jsonl" "$dir"/part-?.jsonl) >"$dir/err" 2>&1
test $? -eq 1 && grep -q 'cannot be written' "$dir/err" && test ! -e "$dir/small.jsonl"
ok "a full disk" $?
expect "... merged when there is room" 0 . "$cake" merge -o "$dir/small.jsonl" "$dir"/part-?.jsonl
cmp "$dir/whole.jsonl" "$dir/small.jsonl"
ok "... the bytes of one run" $?
echo '{"prompt": "One more", "max_tokens": 2}' >>"$dir/in.jsonl"
run -o "$dir/part-0.jsonl" --shard 0/3
expect "lines were added since" 1 'belongs to an input of 81 requests, .* of 82' merge "$dir"/part-?.jsonl

expect "-o is a shard" 2 'is one of the shards' "$cake" merge -o "$dir/part-1.jsonl" "$dir"/part-?.jsonl
expect "no shards" 2 'no results: name the result files of all shards' "$cake" merge -o "$dir/x.jsonl"
expect "a shard beyond the last" 2 'shard: "3/3" is not a shard like 0/8' run --shard 3/3
expect "shards as text" 2 'shard: a .txt file does not tell' run --shard 0/3 -o "$dir/x.txt"
# Lines that failed may be corrected in what was merged, as in any results.
printf '{"id": 1, "prompt": [5], "max_tokens": 1}\n{"id": 2, "prompt": [6], "max_tokens": "x"}\n{"id": 3, "prompt": [7], "max_tokens": 1}\n' >"$dir/two.jsonl"
for i in 0 1; do "$cake" run -m "$model" -i "$dir/two.jsonl" -o "$dir/two-$i.jsonl" --shard $i/2 --deterministic-ids -q 2>/dev/null; done
"$cake" merge -q -o "$dir/merged.two.jsonl" "$dir/two-0.jsonl" "$dir/two-1.jsonl" && sed -i 's/"x"/1/' "$dir/two.jsonl"
expect "a merged result is corrected" 0 'these requests are done again' \
    "$cake" run -m "$model" -i "$dir/two.jsonl" -o "$dir/merged.two.jsonl" --deterministic-ids --retry-errors
finish
