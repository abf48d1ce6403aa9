#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Failures of hardware, files and ranks: one clear message, the right exit status, no finished result lost.
. "$(dirname "$0")/../shell.sh"
export CAKE_SPECULATE=off # some of these runs must last
export CAKE_DEVICE=cpu # of GPUs that are not there nothing is said

grep -v '"seed"' "$root/jobs/demo/prompts.jsonl" | head -20 >"$dir/in.jsonl"
run() { "$cake" run -m "$model" -i "$dir/in.jsonl" "$@"; }

expect "no command line" 2 'no model: give its directory or its name with -m' "$cake"
expect "an unknown option" 2 '\-\-frob is not an option' run --frob
expect "an option without its argument" 2 '\-\-output needs an argument' run --output
expect "a value out of range" 2 '\-\-temperature: "3" is not a number from 0 to 2' run --temperature 3
expect "more threads for decoding than there are" 2 '\-\-threads-decode 3: more than the 2 of --threads' run --threads 2 --threads-decode 3
expect "a penalty of nothing" 2 '\-\-repetition-penalty: "0" is not a number above 0$' run --repetition-penalty 0
expect "a number that is none" 2 '\-\-repetition-penalty: "inf" is not' run --repetition-penalty inf
expect "too many answers" 2 '\-\-n: "129" is not an integer from 1 to 128' run --n 129
expect "a bad default in the environment" 2 'CAKE_TOP_P: "0" is not a number above 0' env CAKE_TOP_P=0 "$cake" run -m "$model" -p x
expect "an unknown command" 2 '"frob" is not a command' "$cake" frob
expect "more ranks than layers" 2 'start it with -np 8 or fewer' mpi 9 run -m "$model" -i "$dir/in.jsonl"
expect "a bad option on 3 ranks is said once" 2 'usage' mpi 3 run --frob
test "$(grep -c 'is not an option' "$dir/err")" -eq 1
ok "... once" $?
# Ranks that are started with other options, or variables.
cat >"$dir/second" <<END
#!/bin/sh
[ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" = 0 ] && exec "$cake" "\$@"
exec env \$VARIABLES "$cake" "\$@" \$OPTIONS
END
chmod +x "$dir/second"
second() { timeout 30 env VARIABLES="$1" OPTIONS="$2" "$root/tests/mpirun.sh" 2 "$dir/second" run -m "$model" -p x --max-tokens 1 -o "$dir/second.jsonl" --force; }
expect "variables of rank 1 alone" 0 '1 request ' second \
    "CAKE_TRACE=$dir/trace CAKE_REPORT=$dir/second.json CAKE_CONTEXT=999999 CAKE_REPLICAS=2 CAKE_TOPOLOGY=$dir/none CAKE_WATCHDOG=x" "--threads 1 -q"
expect "... that hosts may differ in, wrong" 2 'rank 1 on .*CAKE_THREADS: "many" is not an integer' second CAKE_THREADS=many ""
expect "an option of rank 1 alone" 1 '--trace: rank 0 on .* and rank 1 on .* were started with different values' second "A=b" "--trace $dir/trace"
expect "a stop string of rank 1 alone" 1 '--stop: rank 0 on .* and rank 1 on .* were started with different values' second "A=b" "--stop x"
expect "no such model" 1 'nowhere: cannot be opened' "$cake" run -m "$dir/nowhere" -i "$dir/in.jsonl"
# A link whose target is not there, as an incomplete download leaves it, is not an absent file.
mkdir "$dir/links" && ln -s "$(realpath "$model")"/* "$dir/links/"
for name in chat_template.jinja generation_config.json tokenizer_config.json special_tokens_map.json config.json tokenizer.json \
    model.safetensors model.safetensors.index.json bundle.json; do
    [ "$name" != model.safetensors.index.json ] || mv "$dir/links/model.safetensors" "$dir/aside"
    mv "$dir/links/$name" "$dir/link" 2>/dev/null
    ln -s ../blobs/gone "$dir/links/$name"
    expect "a dangling link: $name" 1 "links/$name: is a link to a file that does not exist \(../blobs/gone\): download or copy it again" \
        "$cake" run -m "$dir/links" -p x --max-tokens 1
    rm "$dir/links/$name" && mv "$dir/link" "$dir/links/$name" 2>/dev/null
    [ "$name" != model.safetensors.index.json ] || mv "$dir/aside" "$dir/links/model.safetensors"
done
expect "... restored" 0 . "$cake" run -m "$dir/links" -p x --max-tokens 1
# One rule for a parameter, whoever sets it.
rm "$dir/links/generation_config.json"
for top_p in 0 1.5; do
    echo "{\"top_p\": $top_p}" >"$dir/links/generation_config.json"
    expect "top_p $top_p of the model" 1 "top_p is $top_p, but a number above 0 and at most 1 is expected" "$cake" run -m "$dir/links" -p x
    expect "... of an option" 2 "\"$top_p\" is not a number above 0 and at most 1" "$cake" run -m "$model" -p x --top-p $top_p
    echo "{\"prompt\": \"x\", \"top_p\": $top_p}" >"$dir/top_p.jsonl"
    expect "... of a request" 3 "top_p is $top_p; expected a number above 0 and at most 1" "$cake" run -m "$model" -i "$dir/top_p.jsonl"
done
echo '{"top_p": 1e-12}' >"$dir/links/generation_config.json"
expect "a tiny top_p of the model" 0 . "$cake" run -m "$dir/links" -p x --max-tokens 1
seeds='an integer from -9223372036854775807 to 9223372036854775807'
expect "a seed beyond the range" 2 "is not $seeds" run --seed -9223372036854775808
echo '{"prompt": "x", "seed": -9223372036854775808}' >"$dir/seed.jsonl"
expect "... of a request" 3 "expected $seeds" "$cake" run -m "$model" -i "$dir/seed.jsonl"
expect "a directory as input" 1 ': \.: is a directory; expected a file of prompts' "$cake" run -m "$model" -i .
mkdir "$dir/nothing" && touch "$dir/nothing/config.status"
expect "tests/which before make check" 1 'no test program is built here' sh -c "cd '$dir/nothing' && '$root/tests/which' src/base/file.c"
expect "no such input" 1 'nowhere.jsonl' "$cake" run -m "$model" -i "$dir/nowhere.jsonl"
expect "no such output directory" 1 "$dir/no/such" run -o "$dir/no/such/out.jsonl"
# Limits of the system are seen before the work, or are none.
deep=$(printf '[%.0s' $(seq 1500))1$(printf ']%.0s' $(seq 1500))
printf '{"prompt": [5, 6], "max_tokens": 2}\n{"prompt": [5], "max_tokens": 2, "x": %s}\n' "$deep" >"$dir/deep.jsonl"
for isa in $("$cake" info | sed -n 's/([^)]*)//g; s/^isa  *//p'); do
    expect "a stack of 512 KB, --isa $isa" 0 '"text"' sh -c "ulimit -s 512 && exec '$cake' run -m '$model' -i '$dir/deep.jsonl' --isa $isa --threads 2 -q"
done
expect "a small stack that may be larger" 0 '"text"' sh -c "ulimit -Ss 128 && exec '$cake' run -m '$model' -i '$dir/deep.jsonl' --threads 2 -q"
expect "a stack that is too small" 1 'the stack is limited to 128 KB, and 512 are needed: raise the limit' sh -c "ulimit -s 128 && exec '$cake' info"
expect "few descriptors" 1 'only [0-9]* more files can be opened, but 33 may be needed: raise' \
    sh -c "ulimit -n 20 && exec '$cake' run -m '$model' -i '$dir/deep.jsonl' -o '$dir/few.jsonl'"
expect "a name too long for those beside it" 1 'the name has 250 bytes, and related files need up to .* give a shorter name' \
    run -o "$dir/$(printf 'a%.0s' $(seq 244)).jsonl"
expect "a context beyond the model's" 2 "this model's context is 1024" run --context 2000
cp "$dir/in.jsonl" "$dir/same.jsonl"
for files in "-i $dir/same.jsonl -o $dir/same.jsonl" "-i $dir/same.jsonl.partial -o $dir/same.jsonl" \
    "-i $dir/in.jsonl -o $dir/r.jsonl --report $dir/r.jsonl" "-i $dir/in.jsonl -o $dir/r.jsonl --report $dir/in.jsonl"; do
    # shellcheck disable=SC2086
    expect "two files in one: $files" 2 'are the same file' "$cake" run -m "$model" $files --force
done
ln -s . "$dir/here" && ln -s new.jsonl "$dir/points"
for files in "--report $dir/./new.jsonl" "--trace $dir/here/new.jsonl" "--report $dir/points" "--progress-file $dir/here/new.jsonl.partial" \
    "--report $dir/x --trace $dir/./x"; do
    # shellcheck disable=SC2086
    expect "two names of one file that is not there: $files" 2 'are the same file' "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/new.jsonl" $files
done
cmp -s "$dir/in.jsonl" "$dir/same.jsonl"
ok "... nothing was touched" $?
expect "a report into standard output" 2 "report -: name a file" run -o "$dir/r.jsonl" --report -
expect "a report on a full device leaves the results and their status" 0 'the report cannot be written' run -o "$dir/r.jsonl" --report /dev/full
run -o "$dir/r.jsonl" --force -q --report /dev/stdout | grep -q '"ranks": 1'
ok "a report into a pipe" $?
expect "a report that cannot be written is told first" 1 "no/such/report" run -o "$dir/r2.jsonl" --report "$dir/no/such/report"
test ! -e "$dir/r2.jsonl"
ok "... before the work" $?
# Nothing else overwrites the files of a run.
run -o "$dir/kept.jsonl" -q && cp "$dir/kept.jsonl" "$dir/kept" && cp "$dir/kept.jsonl.job" "$dir/kept.job"
cp "$dir/kept.jsonl.job" "$dir/alone.job"
ln -s kept.jsonl "$dir/leads" && ln -s nowhere "$dir/dangles"
while IFS='|' read -r status words wanted; do
    # shellcheck disable=SC2086
    expect "over what is kept: $words" "$status" "$wanted" "$cake" ${words//@/$dir/}
done <<END
2|tokenize -m $model -p x -o @kept.jsonl|-o .*kept.jsonl would overwrite results of a run .they have a .job or .partial file.; choose
2|tokenize -m $model -p x -o @leads|-o .*leads would overwrite results of a run
2|tokenize -m $model -p x -o @kept.jsonl.job|-o .*kept.jsonl.job would overwrite the .job or .partial file of a run
2|run -m $model -p x -o @r.jsonl --report @kept.jsonl --force|--report .*kept.jsonl would overwrite results of a run
2|run -m $model -p x -o @r.jsonl --trace @alone.job --force|--trace .*alone.job would overwrite the .job
2|run -m $model -p x -o @r.jsonl --progress-file @kept.jsonl --force|--progress-file .* would overwrite results of a run
2|plan -m $model --write-topology @kept.jsonl|--write-topology .* would overwrite results of a run
2|merge @kept.jsonl -o @kept.jsonl --force|-o is one of the shards
1|run -m $model -p x -o @leads --force|leads: is a symbolic link; give -o the name of its target
1|run -m $model -p x -o @dangles|dangles: is a symbolic link
1|run -m $model -p x -o @|is a directory
1|tokenize -m $model -p x -o @|cannot be written to .*: Is a directory
0|run -m $model -p x -o /dev/null|1 request
0|plan -m $model -p x -o @kept.jsonl|
END
cmp "$dir/kept" "$dir/kept.jsonl" && cmp "$dir/kept.job" "$dir/kept.jsonl.job" && test -L "$dir/leads" && test -L "$dir/dangles"
ok "... nothing was touched" $?
"$cake" tokenize -m "$model" -p x -o "$dir/dangles" -q && test -L "$dir/dangles" && grep -q token_ids "$dir/nowhere"
ok "a list of tokens goes where a link leads" $?
expect "help into a full device" 1 "cannot be written" sh -c "'$cake' --help >/dev/full"
expect "tokenize onto its input" 2 "are the same file" "$cake" tokenize -m "$model" -i "$dir/in.jsonl" -o "$dir/in.jsonl"
cp -r "$root/tests/golden/llama-plain" "$dir/own"
mkdir "$dir/own/additional_chat_templates"
cp "$model/chat_template.jinja" "$dir/own/additional_chat_templates/tool_use.jinja"
ln -s "$dir/own" "$dir/alias"
ln "$dir/own/config.json" "$dir/hard.jsonl"
(cd "$dir/own" && find . -type f -exec md5sum {} +) >"$dir/sums"
for files in "-o $dir/own/config.json" "-o $dir/alias/model.safetensors" "-o $dir/hard.jsonl" "-o $dir/own/additional_chat_templates/tool_use.jinja" \
    "-o $dir/r.jsonl --report $dir/own/tokenizer.json"; do
    # shellcheck disable=SC2086
    expect "a file of the model: $files" 2 'is a file of the model' "$cake" run -m "$dir/own" -i "$dir/in.jsonl" $files --force
done
expect "a file of the model, tokenize" 2 'is a file of the model' "$cake" tokenize -m "$dir/own" -i "$dir/in.jsonl" -o "$dir/alias/tokenizer.json"
(cd "$dir/own" && md5sum --quiet -c "$dir/sums") && test "$(find "$dir/own" -type f | wc -l)" -eq "$(wc -l <"$dir/sums")"
ok "... nothing was touched" $?
for i in 1 2; do
    expect "results among the model's files, written $i times" 0 '1 request ' "$cake" run -m "$dir/own" -p x --raw --n 1 --max-tokens 1 -o "$dir/own/results.jsonl" --report "$dir/own/report.json" --force
done
ln -s "$dir/same.jsonl" "$dir/link.jsonl.partial"
expect "a symbolic link for .partial" 1 'symbolic link' run -o "$dir/link.jsonl" --force
closed() { "$cake" run -m "$model" -p "What is 37 + 45?" >&-; }
expect "a closed standard output" 1 'standard output cannot be written' closed
test "$(grep -c error "$dir/err")" -eq 1
ok "... is said once" $?
expect "an instruction set that does not exist" 2 'is not one of auto\|ref' run --isa frob
expect "a KV cache smaller than a page" 1 'does not hold one page' run --kv-memory 1K

expect "a KV cache smaller than recurrent states" 1 'the recurrent states of 64 sequences \(1.9 MiB' "$cake" run \
    -m "$root/tests/golden/qwen3.5-hub" --max-seqs 64 --kv-memory 1M -p x

# Memory: a synthetic model of a thousand layers is refused before anything is loaded.
mkdir "$dir/huge"
cp "$model/tokenizer.json" "$dir/huge"
sed -E 's/"num_hidden_layers": [0-9]+/"num_hidden_layers": 1000/; s/"hidden_size": [0-9]+/"hidden_size": 65536/; s/"intermediate_size": [0-9]+/"intermediate_size": 262144/; s/"full_attention",?//g; s/"layer_types": \[/"_": [/' \
    "$model/config.json" >"$dir/huge/config.json"
expect "a model that does not fit" 1 'the model does not fit: rank 0 needs .* \(weights .*TiB' "$cake" run -m "$dir/huge" --dummy-weights -p x
expect "... nor on any number of ranks" 1 'TiB too little; however many ranks there are, one of them needs [0-9.]+ [GT]iB' "$cake" plan -m "$dir/huge" --dummy-weights
sed -i 's/"hidden_size": 65536/"hidden_size": 8192/; s/"intermediate_size": 262144/"intermediate_size": 32768/' "$dir/huge/config.json"
expect "... how many would do" 1 ' too little; ([0-9]+) such hosts with 1 rank each would do \(-np \1\)' "$cake" plan -m "$dir/huge" --dummy-weights
echo "{a: {rank: 0, layers: ['model.layers.0-999']}}" >"$dir/huge.yml"
expect "... where a file says whose layers these are" 1 'huge.yml:1:2: the model does not fit: .* too little; give it fewer layers' \
    "$cake" plan -m "$dir/huge" --dummy-weights --topology "$dir/huge.yml"

# A context of two billion tokens is what memory has room for: tables are no longer than that.
cp -r "$model" "$dir/vast"
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 2147483647/' "$dir/vast/config.json"
expect "a context of 2147483647 tokens, planned" 0 'KV +[0-9]+ pages of 64 tokens' timeout 60 "$cake" plan -m "$dir/vast"
for np in 1 2; do
    expect "... and run on $np" 0 '1 request \(0 failed\), .* 2 generated' timeout 60 "$root/tests/mpirun.sh" $np "$cake" run -m "$dir/vast" -p x --n 1 --max-tokens 2 -o "$dir/vast$np.jsonl"
done
cp -r "$root/tests/golden/mistral-window" "$dir/window" # no layer sees everything: memory does not say how far
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 2147483647/' "$dir/window/config.json"
if [ "$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)" -lt 400000000 ]; then
    expect "page tables that do not fit" 1 'tables of 4096 sequences .* take 512.0 GiB .* use --context [0-9]+ or less' "$cake" run -m "$dir/window" -p x --raw --max-seqs 4096
    expect "... fit with the context that was told" 0 '' "$cake" run -m "$dir/window" -p x --raw --max-seqs 4096 --max-tokens 1 \
        --context "$(sed -n 's/.*--context \([0-9]*\).*/\1/p' "$dir/err")"
fi

# Truncated weights.
cp -r "$model" "$dir/short"
truncate -s 5000000 "$dir/short/model.safetensors"
expect "truncated weights" 1 'short/model.safetensors' "$cake" run -m "$dir/short" -p x

# Numbers that are none: the request fails, with the layer and its rank named, and no other one does.
cp -r "$root/tests/golden/qwen3-dynamic" "$dir/layer"
poison "$dir/layer" model.layers.1.mlp.down_proj.weight 0
for np in 1 3; do
    expect "a broken layer, $np ranks" 3 "layer 1 on rank $((np / 2)) has NaN or infinity" mpi $np run -m "$dir/layer" -p x -p y --max-tokens 2 --deterministic-ids
    grep -q 'are not finite numbers: layer 1 is the first with NaN' "$dir/out" && test "$(grep -c 'has NaN or infinity' "$dir/err")" -eq 1 && mv "$dir/out" "$dir/broken.$np"
    ok "... a record names it, a message its rank, once" $?
done
cmp "$dir/broken.1" "$dir/broken.3"
ok "... the record does not depend on the ranks" $?
cp -r "$root/tests/golden/qwen3-dynamic" "$dir/token"
dim=$(sed -n 's/.*"hidden_size": \([0-9]*\).*/\1/p' "$dir/token/config.json")
poison "$dir/token" model.embed_tokens.weight $((9 * 4 * dim))
for i in 0 1 2 3 4 5; do
    printf '{"prompt": [%d, %d, 30, 31, 32], "max_tokens": 12, "logit_bias": {"9": -100}, "ignore_eos": true, "logprobs": 1, "n": %d}\n' \
        $((20 + i)) $((i % 3 == 1 ? 9 : 10)) $((1 + i % 2))
done >"$dir/odd.jsonl"
"$cake" run -m "$root/tests/golden/qwen3-dynamic" -i "$dir/odd.jsonl" -q >"$dir/whole.jsonl"
for seqs in 1 8; do
    expect "a broken token" 3 "not finite numbers: the embedding is the first with NaN" "$cake" run -m "$dir/token" -i "$dir/odd.jsonl" --max-seqs $seqs -q
    test "$(grep -c error "$dir/out")" -eq 2 && cmp <(sed '2d;5d' "$dir/out") <(sed '2d;5d' "$dir/whole.jsonl")
    ok "... fails the two requests that have it, $seqs at a time" $?
done

# Which of several choices fails first depends on the waves, but the record does not.
for i in 1 2 3 4; do
    printf '{"prompt": [%d, 30, 31], "max_tokens": 60, "ignore_eos": true, "n": 3, "temperature": 1.3, "seed": %d, "logit_bias": {"9": 3}}\n' $((20 + i)) $i
done >"$dir/choices.jsonl"
for seqs in 1 4; do
    expect "a broken token in one of three choices, $seqs at a time" 3 "scores of one of 3 choices are not finite" "$cake" run -m "$dir/token" \
        -i "$dir/choices.jsonl" --max-seqs $seqs -q --deterministic-ids
    cp "$dir/out" "$dir/choices.$seqs"
done
cmp "$dir/choices.1" "$dir/choices.4"
ok "... the records are the same" $?

# ... in any wave: a window moves past the broken token, and other sequences share its waves.
cp -r "$root/tests/golden/mistral-window" "$dir/passing"
dim=$(sed -n 's/.*"hidden_size": \([0-9]*\).*/\1/p' "$dir/passing/config.json")
poison "$dir/passing" model.embed_tokens.weight $((9 * 4 * dim))
for at in 0 40 64 100; do
    for echo in true false; do
        printf '{"prompt": [%s], "max_tokens": 2, "echo": %s, "logprobs": 1, "ignore_eos": true}\n' \
            "$(seq 20 149 | sed "$((at + 1))s/.*/9/" | paste -sd,)" "$echo"
    done
done >"$dir/far.jsonl"
"$cake" run -m "$dir/passing" -i "$dir/far.jsonl" -q --deterministic-ids >"$dir/far.out"
test "$(grep -c '"error"' "$dir/far.out")" -eq 6 && test "$(grep -c '"text"' "$dir/far.out")" -eq 2
ok "a broken token breaks those that see it" $?
for how in "--chunk 64" "--chunk 128 --max-seqs 1"; do
    # shellcheck disable=SC2086
    "$cake" run -m "$dir/passing" -i "$dir/far.jsonl" -q --deterministic-ids $how | cmp - "$dir/far.out"
    ok "... the same, with $how" $?
done

# Results that are there already.
run -o "$dir/out.jsonl" -q || echo "the run that the following checks need failed"
expect "a finished result is not overwritten" 1 'another job: max_tokens was null and is 3; --force overwrites it' run -o "$dir/out.jsonl" --max-tokens 3
expect "... but with --force" 0 'requests' run -o "$dir/out.jsonl" --force

# Standard input that ends in mid-line.
cut_line() { printf '{"prompt": "Once", "max_tokens": 2}\n{"prompt": "tw' | "$cake" run -m "$model" -i -; }
expect "standard input ends in mid-line" 3 'invalid JSON' cut_line

# A text that cannot fit is refused before it is tokenized.
{ printf '{"prompt": "'; head -c 30000000 /dev/zero | tr '\0' a; printf '"}\n'; } >"$dir/vast.jsonl"
expect "a prompt of 30 MB" 3 'the prompt has 30000000 bytes, at least [0-9]+ tokens' "$cake" run -m "$model" -i "$dir/vast.jsonl"

limited() { (ulimit -v "$1" && shift && exec "$@"); }

# Twelve stages that make ten letters of one: the requests that have the letter fail, in every way to get there. Sanitizers would
# walk the gigabytes for minutes; they need more memory than this limit leaves.
if limited 6000000 "$cake" --version >"$dir/out" 2>&1; then
    cp -r "$model" "$dir/grows"
    # a thousand letters of one, then a long text of each: few matches make much, quickly
    grow() { printf ', {"type": "Replace", "pattern": {"String": "a"}, "content": "%s"}' "$(head -c "$2" /dev/zero | tr '\0' "$1")"; }
    tr -d '\n' <"$model/tokenizer.json" | sed "s/\"decoder\": {[^}]*}/\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteLevel\"}@]}/" | sed -f <(echo "s/@]}/$(grow a 1000)$(grow b 300000)]}/") \
        >"$dir/grows/tokenizer.json"
    id() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" "$model/tokenizer.json"; }
    bad=$(few 1 3)
    for fields in "$(id a),\"id\": 0" "$(id b),\"id\": 1" "$(id a),\"id\": 2, \"n\": 3" "$(id b),\"id\": 3, \"echo\": true"; do
        printf '{"prompt": "a", "max_tokens": 3, "ignore_eos": true, "logit_bias": {"%s": 100}, %s}\n' "${fields%%,*}" "${fields#*,}"
    done | head -$((bad + 1)) >"$dir/grows.jsonl"
    expect "decoders that make gigabytes of a letter" 3 "$((bad + 1)) requests \($bad failed\)" "$cake" run -m "$dir/grows" -i "$dir/grows.jsonl" -o "$dir/grown.jsonl"
    test "$(grep -c 'makes more than 268435456 bytes of the text' "$dir/grown.jsonl")" -eq $bad && grep -q '"id": 1,.*"text": "bbb"' "$dir/grown.jsonl"
    ok "... fail the requests that have it" $?
else
    echo "  decoders that make gigabytes: skipped, this program does not start with 6 GB"
fi

# Memory that runs out: a message and status 1. Sanitizers need more of it than any limit leaves.
if limited 150000 "$cake" --version >"$dir/out" 2>&1; then
    expect "memory runs out" 1 '^cake-mpi: error: out of memory: [0-9]+ x [0-9]+ bytes$' limited 150000 \
        "$cake" tokenize -m "$model" -i "$dir/vast.jsonl"
else
    echo "  memory that runs out: skipped, this program does not start with 150 MB"
fi

if limited 6000000 "$cake" --version >"$dir/out" 2>&1; then
    for command in "run -m $model -p x --max-tokens 1" "plan -m $model" "bench peak"; do
        # shellcheck disable=SC2086
        expect "more threads than can be had: ${command%% *}" 1 '^cake-mpi: error: planner: 4096 threads cannot be started, only [0-9]+: .*; use --threads [0-9]+ or fewer$' \
            limited 6000000 "$cake" $command --threads 4096
    done
fi

# The KV cache may use the memory that a limit leaves.
if limited 700000 "$cake" --version >"$dir/out" 2>&1; then
    limited 700000 "$cake" run -m "$model" -p Once --max-tokens 2 >"$dir/out" 2>&1
    ok "a limit on memory" $?
    for command in "run -p x" plan; do
        # shellcheck disable=SC2086
        expect "... that a cache goes beyond: ${command%% *}" 1 '^cake-mpi: error: planner: ulimit -v lets rank 0 on [^ ]+ map [0-9.]+ MiB more, but weights \([0-9.]+ [KM]iB\), the requested KV cache and buffers take .* too little; raise the limit, or use more ranks$' \
            limited 700000 "$cake" $command -m "$model" --kv-memory 600M
    done
else
    echo "  a limit on memory: skipped, this program does not start with 700 MB"
fi

# A full disk: a limit on the size of files stands for it. It holds a group of 128 results, which end together on a fast machine.
for i in $(seq 400); do printf '{"id": %d, "prompt": "Once upon a time", "max_tokens": 30, "ignore_eos": true}\n' "$i"; done >"$dir/many.jsonl"
full() { (trap '' XFSZ && ulimit -f 60 && "$cake" run -m "$model" -i "$dir/many.jsonl" -o "$dir/full.jsonl"); }
expect "a full disk" 1 "$dir/full.jsonl" full
test ! -e "$dir/full.jsonl" && test -s "$dir/full.jsonl.partial" && test "$(tail -c 1 "$dir/full.jsonl.partial" | od -An -c | tr -d ' ')" = '\n'
ok "... .partial holds whole lines" $?

finish
