#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Embeddings: of encoders and decoders with every pooling, Dense modules and prompts they are those of transformers in float64
# (tests/golden/embedders.py); the same bits on any ranks, replicas and instruction sets of one kind, after a stop, in every file.
. "$(dirname "$0")/../shell.sh"

golden=$root/tests/golden/embed
run() { mpi "${np:-1}" run --deterministic-ids "$@"; }
# near EXPECTED ACTUAL: rows of numbers, all within 1e-5
near() {
    paste -d' ' "$1" "$2" | awk '
        { n = NF / 2; bad += NF % 2 || NF < 2
          for (i = 1; i <= n; i++) { d = $i - $(n + i); d = d < 0 ? -d : d; most = d > most ? d : most } }
        END { print "    furthest from transformers: " most; exit !(NR >= 8 && !bad && most < 1e-5) }'
}
numbers() { sed -nE 's/.*"embedding": \[([^]]*)\].*/\1/p' "$1" | tr -d ,; }

for model in $(cd "$golden" && ls -d */ | tr -d /); do
    for np in 1 2; do
        run -m "$golden/$model" -i "$golden/texts.txt" -o "$dir/$model-$np.txt" --isa "$([ $np = 1 ] && echo ref || echo auto)" -q
        near "$golden/$model/expected.txt" "$dir/$model-$np.txt"
        ok "$model, np $np" $?
    done
    mpi 1 stage -m "$golden/$model" -d "$dir/bundles" --ranks 2 -q </dev/null
    np=2 run -m "$dir/bundles" -i "$golden/texts.txt" -o "$dir/staged.txt" --force -q </dev/null
    cmp "$dir/staged.txt" "$dir/$model-2.txt"
    ok "$model from bundles" $?
    rm -rf "$dir/bundles"
done

# ---- the same bits on any ranks and replicas, in any waves, after a stop; each input of a line apart
awk '{ gsub(/"/, "\\\""); t[NR] = $0; print "{\"id\": \"" NR "\", \"input\": \"" $0 "\"}" }
     END { printf "{\"id\": \"all\", \"input\": [\"" t[1] "\""; for (i = 2; i <= NR; i++) printf ", \"" t[i] "\""; print "]}" }' \
    "$golden/texts.txt" >"$dir/once.jsonl"
for i in $(seq 12); do cat "$dir/once.jsonl"; done >"$dir/in.jsonl"
np=1
for model in modernbert xlmr qwen3-weightedmean; do
    base=$dir/$model.jsonl
    run -m "$golden/$model" -i "$dir/in.jsonl" -o "$base" --task embed -q
    while read -r np options; do
        # shellcheck disable=SC2086
        run -m "$golden/$model" -i "$dir/in.jsonl" -o "$dir/other.jsonl" --force -q $options </dev/null
        cmp "$base" "$dir/other.jsonl"
        ok "the same bits: $model np $np $options" $?
    done <<'END'
1 --max-seqs 2 --chunk 64
2 --threads 1
2 --replicas 2 --max-seqs 3
END
done
np=1
[ "$(numbers "$dir/modernbert.jsonl" | sort -u | wc -l)" = 8 ]
ok "equal texts have equal embeddings, whatever is beside them" $?
sed -n 9p "$dir/modernbert.jsonl" | grep -o '"embedding": \[[^]]*\]' | diff - <(grep -o '"embedding": \[[^]]*\]' "$dir/modernbert.jsonl" | head -8)
ok "inputs of one line are embedded each apart" $?

# A padding token that a text spells has no position (sentence-transformers 6.2 gives these values).
echo '{"input": [0, 4, 3, 1, 4, 43, 2]}' >"$dir/pad.jsonl"
expect "RoBERTa's positions leave padding out" 0 '"embedding": \[0\.393477[0-9]*, -0\.299824[0-9]*, 0\.23800[0-9]*, 0\.084121[0-9]*, ' \
    run -m "$golden/xlmr" -i "$dir/pad.jsonl" -q

# include_prompt false: the prompt before a text is not pooled; values of sentence-transformers 6.2, too.
cp -r "$golden/bert" "$dir/apart"
chmod -R u+w "$dir/apart"
echo '{"input": "the old keeper, rain", "prompt_name": "query"}' >"$dir/apart.jsonl"
while IFS='|' read -r mode values; do
    echo "{\"pooling_mode\": $mode, \"include_prompt\": false}" >"$dir/apart/1_Pooling/config.json"
    for np in 1 2; do
        expect "without the prompt: $mode, np $np" 0 "\"embedding\": \[$values" run -m "$dir/apart" -i "$dir/apart.jsonl" -q </dev/null
    done
done <<'END'
"mean"|0\.32442[0-9]*, 0\.035349[0-9]*, -0\.031570[0-9]*, -0\.10612[0-9]*, 
"max"|0\.26066[0-9]*, 0\.089414[0-9]*, 0\.22970[0-9]*, 0\.32166[0-9]*, 
"weightedmean"|0\.32698[0-9]*, 0\.0350[0-9]*, -0\.061693[0-9]*, -0\.17947[0-9]*, 
"lasttoken"|0\.073455[0-9]*, -0\.093815[0-9]*, -0\.085697[0-9]*, -0\.72464[0-9]*, 
"cls"|0\.20942[0-9]*, 
["lasttoken", "cls", "max", "mean", "weightedmean", "mean_sqrt_len_tokens"]|0\.02997[0-9]*(, [^,]*){15}, 0\.08213[0-9]*(, [^,]*){15}, 0\.11005[0-9]*(, [^,]*){15}, 0\.08174[0-9]*(, [^,]*){15}, 0\.07811[0-9]*(, [^,]*){15}, 0\.20022[0-9]*(, [^,]*){15}\]
END
np=1

# Activations of Dense modules; values of sentence-transformers 6.2.
echo '{"input": "the old keeper, rain"}' >"$dir/dense.jsonl"
while read -r act values; do
    rm -rf "$dir/dense"
    cp -r "$golden/xlmr" "$dir/dense"
    chmod -R u+w "$dir/dense"
    sed "s/activation.Tanh/activation.$act/" "$golden/xlmr/2_Dense/config.json" >"$dir/dense/2_Dense/config.json"
    expect "Dense with $act" 0 "\"embedding\": \[$values" run -m "$dir/dense" -i "$dir/dense.jsonl" -q </dev/null
done <<'END'
GELU -0\.100698[0-9]*, -0\.338959[0-9]*, 0\.050594[0-9]*, 0\.142588[0-9]*,
ReLU -0\.17968[0-9]*, -0\.27212[0-9]*, 0\.018645[0-9]*, 0\.162225[0-9]*,
END

# A Normalize module before a Dense one (sentence-transformers gives these values); and ids, before which no prompt stands.
printf '[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}, {"type": "a.Normalize", "path": "9"}, {"type": "a.Dense", "path": "2_Dense"}]' >"$dir/dense/modules.json"
cp "$golden/xlmr/2_Dense/config.json" "$dir/dense/2_Dense/"
expect "Normalize before Dense" 0 '"embedding": \[-0\.0073[0-9]*, -0\.46149[0-9]*, -0\.22076[0-9]*, ' run -m "$dir/dense" -i "$dir/dense.jsonl" -q
echo '{"pooling_mode": "cls", "include_prompt": false}' >"$dir/apart/1_Pooling/config.json"
printf '%s\n' '{"input": [2, 8, 3], "prompt_name": "query"}' '{"input": [2, 8, 3]}' >"$dir/ids.jsonl"
expect "ids have no prompt before them" 0 '' run -m "$dir/apart" -i "$dir/ids.jsonl" -q
[ "$(numbers "$dir/out" | sort -u | wc -l)" = 1 ]
ok "... whichever is named" $?
echo '{"truncate_dim": 4}' >"$dir/apart/config_sentence_transformers.json"
expect "truncate_dim is refused" 1 'truncate_dim is 4, but null is expected' run -m "$dir/apart" -i "$dir/dense.jsonl"

rm -f "$dir/killed.jsonl"*
for i in $(seq 300); do cat "$dir/once.jsonl"; done >"$dir/many.jsonl"
run -m "$golden/bert" -i "$dir/many.jsonl" -o "$dir/whole.jsonl" -q
killed 50 "$dir/killed.jsonl" "$cake" run --deterministic-ids -m "$golden/bert" -i "$dir/many.jsonl" -o "$dir/killed.jsonl" -q
run -m "$golden/bert" -i "$dir/many.jsonl" -o "$dir/killed.jsonl" -q
cmp "$dir/whole.jsonl" "$dir/killed.jsonl"
ok "a run that was killed goes on to the same bits" $?

# ---- forms
cat >"$dir/batch.jsonl" <<'END'
{"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": "rain rain"}}
{"custom_id": "b", "method": "POST", "url": "/v1/embeddings", "body": {"input": ["rain rain", [5, 6]], "dimensions": 4}}
{"custom_id": "c", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain rain", "encoding_format": "base64"}}
{"custom_id": "d", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain rain", "prompt_name": "query"}}
{"custom_id": "e", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain rain", "dimensions": 17}}
{"custom_id": "f", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain rain", "prompt_name": "quarry"}}
{"custom_id": "g", "method": "POST", "url": "/v1/embeddings", "body": {"prompt": "rain rain"}}
{"custom_id": "h", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain", "temperature": 1}}
{"custom_id": "i", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "a"}]}}
{"custom_id": "j", "method": "POST", "url": "/v1/embeddings", "body": {"input": ["rain", ""]}}
{"custom_id": "k", "method": "POST", "url": "/v1/embeddings", "body": {"input": [[1, 99999]]}}
{"custom_id": "l", "method": "POST", "url": "/v1/embeddings", "body": {}}
{"id": "m", "input": ["rain", "ship"], "dimensions": 2}
{"id": "n", "messages": [{"role": "user", "content": "a"}]}
END
expect "lines of /v1/embeddings" 3 '8 requests failed' run -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/batch.out.jsonl"
has() { grep -q -- "$2" <(grep -F "\"$1\"" "$dir/batch.out.jsonl"); ok "... $1: $2" $?; }
has a '"object": "list", "data": \[{"object": "embedding", "index": 0, "embedding": \[[-0-9., e]*\]}\], "model": "m", "usage": {"prompt_tokens": 4, "total_tokens": 4}'
has b '"index": 0, "embedding": \[[^,]*, [^,]*, [^,]*, [^,]*\]}, {"object": "embedding", "index": 1'
has c '"embedding": "[A-Za-z0-9+/]*=*"'
has d '"prompt_tokens": 6'
has e 'dimensions is 17; expected at most 16'
has f 'prompt_name is ."quarry."; expected ."query."'
has g 'prompt is not a field of /v1/embeddings; expected input'
has h 'an input that is embedded takes no temperature'
has i 'this model embeds texts and generates none'
has j 'expected\|"embedding"'
has k 'input: token id 99999 at position 1'
has l 'input is missing; expected a string'
has m '"data": \[{"index": 0, "embedding": \[[^,]*, [^,]*\]}, {"index": 1'
has n 'messages are not embedded'
run -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/batch.h5" -q
expect "HDF5 has a row for each input" 0 'DATASET "embeddings"|SIMPLE { ( 16, 16 )|' \
    sh -c 'if command -v h5dump >/dev/null; then h5dump -H -d embeddings "$1"; else echo "DATASET \"embeddings\""; fi' - "$dir/batch.h5"
mpi 1 merge -o "$dir/back.jsonl" --force -q "$dir/batch.h5" 2>/dev/null && cmp "$dir/batch.out.jsonl" "$dir/back.jsonl"
ok "... and keeps the lines" $?
cat >"$dir/long.jsonl" <<'END'
{"id": "a", "input": "rain"}
END
awk 'BEGIN { printf "{\"id\": \"b\", \"input\": \"" ; for (i = 0; i < 200; i++) printf "ship "; print "\"}" }' >>"$dir/long.jsonl"
expect "a text that is too long" 3 'input has 202 tokens; expected at most 160: shorten it, or give "truncate_prompt_tokens": -1' \
    run -m "$golden/bert" -i "$dir/long.jsonl" -o "$dir/long.out.jsonl"
run -m "$golden/bert" -i "$dir/long.jsonl" -o "$dir/cut.jsonl" --truncate-prompt-tokens -1 -q
grep -q '"prompt_tokens": 160' "$dir/cut.jsonl"
ok "... is cut to what fits, if that is wanted" $?
expect "plan" 3 'requests  *14, of which 8 would fail' mpi 1 plan -m "$golden/bert" -i "$dir/batch.jsonl"
mpi 1 tokenize -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/tokens.jsonl" -q
grep -Eq '"token_ids": \[\[[0-9, ]*\], \[5, 6\]\]' "$dir/tokens.jsonl"
ok "tokenize lists the tokens of each input" $?
run -m "$root/tests/golden/qwen3-nine" -p x -o "$dir/plain.txt" --task embed -q
awk '{ for (i = 1; i <= NF; i++) sum += $i * $i } END { exit !(NF > 8 && sum > 0.9999 && sum < 1.0001) }' "$dir/plain.txt"
ok "a model that generates gives the hidden state of the last token, with length 1" $?
finish
