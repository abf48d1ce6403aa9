#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats of prompts and results in whole runs: the same requests in each, and the same answers.
. "$(dirname "$0")/../shell.sh"
"$cake" info 2>/dev/null | grep -q '^HDF5  *[0-9]' || { echo "this build has no HDF5"; exit 77; }

cat >"$dir/in.jsonl" <<'END_OF_PROMPTS'
{"id": "a", "prompt": "There was once a king who", "max_tokens": 12, "return_token_ids": true, "logprobs": 1}
{"id": 7, "prompt": [5, 6, 7], "max_tokens": 12}
{"prompt": "Spell \"river\"\n", "max_tokens": 12, "n": 2, "temperature": 0.7}
{"id": "m", "messages": [{"role": "user", "content": "Spell the word river."}], "max_tokens": 12}
{"id": "bad", "prompt": "x", "top_p": 7}
END_OF_PROMPTS

run() { # IN OUT OPTION... : status 3, since one of them is bad
    "$cake" run -m "$model" -i "$dir/$1" -o "$dir/$2" --deterministic-ids -q "${@:3}"
}
text() { # FILE : the answers alone
    grep -o '"text": .*"finish_reason"' "$dir/$1"
}

mpi 2 run -m "$model" -i "$dir/in.jsonl" -o "$dir/two.h5" --deterministic-ids -q
test $? -eq 3
ok "results as HDF5, on two ranks" $?
run in.jsonl one.h5 && false
cmp "$dir/one.h5" "$dir/two.h5"
ok "... the same bytes on one" $?

# what was written is read again: the ids that the model saw, and its answers to them at temperature 0
run two.h5 again.jsonl --prompt-field prompt_tokens --max-tokens 12
test $? -eq 3 && head -n 4 "$dir/in.jsonl" | sed -e 's/, "n": 2, "temperature": 0.7//' >"$dir/plain.jsonl" &&
    run plain.jsonl plain.out && text again.jsonl | cmp - <(text plain.out)
ok "a result file is a file of prompts" $?
expect "a file that is none" 1 'in.h5: cannot be read as HDF5' "$cake" run -m "$model" -i "$(cp "$dir/in.jsonl" "$dir/in.h5"; echo "$dir/in.h5")"
expect "tokenize reads it, too" 3 '"id": "m", "index": 3, "prompt": null, "token_ids"' \
    "$cake" tokenize -m "$model" -i "$dir/two.h5" --prompt-field prompt_tokens
run in.jsonl timed.h5 --timing
test $? -eq 3 && [ "$(grep -c 'ttft_ms' "$dir/timed.h5")" -ge 1 ] && ! grep -q ttft_ms "$dir/one.h5"
ok "times are columns" $?
run in.jsonl lines.jsonl
gzip -kn "$dir/in.jsonl" && run in.jsonl.gz packed.jsonl.gz
test $? -eq 3 && zcat "$dir/packed.jsonl.gz" | cmp - "$dir/lines.jsonl"
ok "packed prompts, packed results" $?
# HDF5 and compressed results are converted back to the same lines: any bytes, all fields of both forms.
cat >"$dir/rich.jsonl" <<'END_OF_PROMPTS'
{"id": "z\u0000ro", "prompt": "a\u0000b\u0001", "max_tokens": 6, "echo": true, "logprobs": 2, "return_token_ids": true}
{"custom_id": "c\u0000", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "\u0000"}], "max_tokens": 9, "n": 3, "temperature": 1, "logprobs": true, "top_logprobs": 2, "return_token_ids": true}}
{"custom_id": "d", "method": "POST", "url": "/v1/completions", "body": {"prompt": [5, 6, 7], "max_tokens": 9, "n": 2, "temperature": 2, "seed": 3, "logprobs": 5}}
{"id": "\u0000", "prompt": "x", "top_p": 7}
{"id": "Once", "prompt": "Once", "max_tokens": 1, "logprobs": 0}

no JSON
END_OF_PROMPTS
cat "$dir/in.jsonl" "$dir/rich.jsonl" >"$dir/all.jsonl"
for form in jsonl h5 jsonl.gz jsonl.zst; do run all.jsonl whole.$form; done
merge() { "$cake" merge -q -o "$dir/$2" "$dir/$1" 2>/dev/null; }
for form in h5 jsonl.gz jsonl.zst; do
    rm -f "$dir"/back.jsonl* && merge whole.$form back.jsonl && cmp "$dir/back.jsonl" "$dir/whole.jsonl"
    ok "$form, merged back to lines" $?
done
expect "... is a finished job to run" 3 'back.jsonl: all 11 requests are done already' \
    "$cake" run -m "$model" -i "$dir/all.jsonl" -o "$dir/back.jsonl" --deterministic-ids
merge whole.jsonl on.h5 && merge on.h5 on.jsonl.zst && merge on.jsonl.zst on2.h5 && merge on2.h5 on.jsonl &&
    cmp "$dir/on.jsonl" "$dir/whole.jsonl" && cmp "$dir/on.h5" "$dir/on2.h5"
ok "... and on, from form to form" $?
"$cake" tokenize -m "$model" -i "$dir/whole.h5" --prompt-field prompt_tokens 2>/dev/null | grep -qF '"id": "z\\u0000ro"'
ok "an id with U+0000 is spelled out where strings end there" $?
cp "$dir/whole.h5" "$dir/hurt.h5" && cp "$dir/whole.h5.job" "$dir/hurt.h5.job"
printf 'x' | dd of="$dir/hurt.h5" bs=1 seek=3000 conv=notrunc status=none
expect "a damaged one is not merged" 1 'hurt.h5: was changed since it was written' "$cake" merge "$dir/hurt.h5"
"$cake" merge -q -o "$dir/merged.h5" "$dir/lines.jsonl" && "$cake" tokenize -m "$model" -i "$dir/merged.h5" --prompt-field text \
    --id-field choices/request | grep -o '"prompt": .*, "token_ids"' | sed -e 's/"prompt"/"text"/' -e 's/, "token_ids"//' >"$dir/texts"
test "$(wc -l <"$dir/texts")" -eq 5 && (while read -r line; do grep -qF -- "$line" "$dir/lines.jsonl" || exit 1; done <"$dir/texts")
ok "merge makes HDF5 of JSONL" $?
expect "Parquet" 2 'x.parquet: Parquet cannot be written: give a .jsonl or .h5 file' "$cake" run -m "$model" -p x -o "$dir/x.parquet"
expect "tokenize packs nothing" 2 'tokenize writes uncompressed JSON lines only' \
    "$cake" tokenize -m "$model" -p x -o "$dir/x.jsonl.gz"
expect "a shard is JSONL" 2 'merge -o FILE.h5 then writes HDF5' \
    "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/s.h5" --shard 0/2
mkfifo "$dir/pipe.h5"
expect "results are not streamed" 2 'HDF5 cannot be streamed' \
    "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/pipe.h5"
finish
