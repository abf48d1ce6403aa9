#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs/lm_eval/cake_mpi_lm.py: the requests of lm-evaluation-harness become files, and results come back in their order. The harness
# itself has stand-ins here (lm_eval.py).
. "$(dirname "$0")/../shell.sh"

python=${CAKE_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    [ -z "${CI:-}" ] || ok "python3 is needed where CI is set" 1
    echo "not checked here: lm-evaluation-harness (python3 is not installed)"
    finish
fi
ask() { "$python" -B "$root/tests/run/lm_eval.py" "$root/jobs/lm_eval/cake_mpi_lm.py" model="$model" command="$cake" "$@"; }
f32="--dtype f32 --kv-dtype f32 -q"

# ---- each kind of request, in the order of the requests
awk -F'\t' '$1 != "null" { print "[\"loglikelihood\", " $1 ", " $2 "]" }' "$root/tests/golden/scores.tsv" >"$dir/pairs"
ask options="$f32" <"$dir/pairs" >"$dir/out" 2>"$dir/err"
awk -F'\t' '$1 != "null" { print $4 "\t" $5 }' "$root/tests/golden/scores.tsv" | paste - <(tr -d '[],' <"$dir/out" | tr ' ' '\t') |
    awk -F'\t' '{ off = $1 - $3; bad += off > 1e-3 || off < -1e-3 || $2 != $4 } END { exit !(NR > 15 && !bad) }'
ok "log likelihoods come back in order" $?
awk -F'\t' '$1 == "null" { print "[\"loglikelihood_rolling\", " $2 "]" } END { print "[\"loglikelihood_rolling\", \"\"]" }' \
    "$root/tests/golden/scores.tsv" >"$dir/texts"
ask options="$f32 --context 64" <"$dir/texts" >"$dir/out" 2>"$dir/err"
{ awk -F'\t' '$1 == "null" { print $4 }' "$root/tests/golden/scores.tsv"; echo 0; } | paste - "$dir/out" |
    awk '{ off = $1 - $2; bad += off > 1e-3 || off < -1e-3 } END { exit !(NR > 6 && !bad) }'
ok "... and of whole texts" $?
{
    echo '["generate_until", "Once upon a time", {"until": ["."], "max_gen_toks": 30}]'
    echo '["generate_until", "Once upon a time", {"until": ["\u0001", "\u0002", "\u0003", "\u0004", "\u0005", "\u0006", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "."], "max_gen_toks": 30}]'
    echo '["generate_until", "Once upon a time", {"until": "e", "max_gen_toks": 30, "do_sample": false}]'
} | ask options="$f32" >"$dir/out" 2>"$dir/err"
"$cake" run -m "$model" --raw -p 'Once upon a time' --temperature 0 --max-tokens 30 --stop . --dtype f32 --kv-dtype f32 -q 2>/dev/null >"$dir/own"
awk 'NR == 1 { print "\"" $0 "\"" }' "$dir/own" | diff - <(sed -n 1p "$dir/out")
ok "answers end before a stop string" $?
diff <(sed -n 1p "$dir/out") <(sed -n 2p "$dir/out") && ! sed -n 3p "$dir/out" | grep -q e
ok "... also before the seventeenth" $?

# ---- stopped runs, submitted jobs, failures, files that stay
cat >"$dir/stops" <<SH
#!/bin/sh
[ -e "$dir/stopped" ] || { touch "$dir/stopped"; exit 75; }
exec "$cake" "\$@"
SH
cat >"$dir/submits" <<SH
#!/bin/sh
[ "\$1" = --wait ] || exit 9
exec "$cake" run -m "\$2" -i "\$3" -o "\$4" -q
SH
chmod +x "$dir/stops" "$dir/submits"
head -3 "$dir/pairs" >"$dir/few"
ask <"$dir/few" >"$dir/few-1" 2>"$dir/err"
ask command="$dir/stops" <"$dir/few" >"$dir/few-2" 2>"$dir/err"
alike "$dir/few-1" "$dir/few-2" && test -e "$dir/stopped"
ok "a run that was stopped is started again" $?
ask submit="$dir/submits --wait" directory="$dir/kept" <"$dir/few" >"$dir/few-3" 2>"$dir/err"
alike "$dir/few-1" "$dir/few-3" && ls "$dir"/kept/*.prompts.jsonl "$dir"/kept/*.results.jsonl >/dev/null
ok "a job script can be submitted, and the files stay" $?
ask directory="$dir/kept" <"$dir/few" 2>"$dir/err" | diff "$dir/few-1" - && grep -q 'done already' "$dir/err"
ok "... so that nothing is computed again" $?
echo '["loglikelihood", "Once", ""]' | ask 2>"$dir/err" | grep -q 'line 1: continuation is empty'
ok "a request that fails names its line" $?
ask command=false <"$dir/few" 2>"$dir/err" | grep -q 'ended with status 1'
ok "a command that fails, too" $?
finish
