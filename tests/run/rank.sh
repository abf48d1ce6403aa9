#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rerank and score: of classifiers and of a decoder's yes against no they are those of transformers in float64
# (tests/golden/embedders.py), of models that embed cosines; the same bits on any ranks and replicas; every form.
. "$(dirname "$0")/../shell.sh"

golden=$root/tests/golden/rank
run() { mpi "${np:-1}" run --deterministic-ids "$@"; }
# scores RESULTS: a number for each document, in the order of the input
scores() {
    sed -nE 's/.*"results": \[([^]]*)\].*/\1/p' "$1" | awk -F'[{}]' '
        { n = 0; for (i = 2; i <= NF; i += 2) { split($i, part, /[:,]/); score[part[2] + 0] = part[4]; n++ }
          for (i = 0; i < n; i++) print score[i] }'
}
near() {
    paste -d' ' "$1" "$2" | awk '
        { bad += NF != 2; d = $1 - $2; d = d < 0 ? -d : d; most = d > most ? d : most }
        END { print "    furthest from transformers: " most; exit !(NR == 24 && !bad && most < 1e-5) }'
}

for model in $(cd "$golden" && ls -d */ | tr -d /); do
    for np in 1 2; do
        run -m "$golden/$model" -i "$golden/pairs.jsonl" -o "$dir/$model-$np.jsonl" --isa "$([ $np = 1 ] && echo ref || echo auto)" -q
        scores "$dir/$model-$np.jsonl" >"$dir/scores"
        near "$golden/$model/expected.txt" "$dir/scores"
        ok "$model, np $np" $?
    done
    while read -r np options; do
        # shellcheck disable=SC2086
        run -m "$golden/$model" -i "$golden/pairs.jsonl" -o "$dir/other.jsonl" $options --force -q </dev/null &&
            cmp "$dir/$model-2.jsonl" "$dir/other.jsonl"
        ok "... the same bits, np $np $options" $?
    done <<'END'
1 --max-seqs 1 --chunk 64
2 --replicas 2 --max-seqs 3
4 --replicas 2 --chunk 64
END
    rm "$dir/other.jsonl"
    mpi 1 stage -m "$golden/$model" -d "$dir/bundles" --ranks 2 -q </dev/null
    np=2 run -m "$dir/bundles" -i "$golden/pairs.jsonl" -o "$dir/other.jsonl" --force -q </dev/null
    sed "s/\"model\": \"[^\"]*\"//" "$dir/other.jsonl" | cmp - <(sed "s/\"model\": \"[^\"]*\"//" "$dir/$model-2.jsonl")
    ok "... and from bundles" $?
    rm -rf "$dir/bundles"
done
np=1
model=$golden/qwen3
for i in $(seq 200); do sed "s/\"query\"/\"id\": \"$i-\", &/" "$golden/pairs.jsonl"; done | awk '{ sub(/-"/, "-" NR "\"") } 1' >"$dir/many.jsonl"
run -m "$model" -i "$dir/many.jsonl" -o "$dir/whole.jsonl" -q
killed 9 "$dir/killed.jsonl" "$cake" run -m "$model" -i "$dir/many.jsonl" -o "$dir/killed.jsonl" --deterministic-ids --max-seqs 1 -q
[ -e "$dir/killed.jsonl.partial" ]
ok "killed under way" $?
np=2 run -m "$model" -i "$dir/many.jsonl" -o "$dir/killed.jsonl" -q
cmp "$dir/whole.jsonl" "$dir/killed.jsonl"
ok "a run that was killed goes on to the same bits" $?

cat >"$dir/batch.jsonl" <<'END'
{"custom_id": "a", "method": "POST", "url": "/v1/rerank", "body": {"query": "rain", "documents": ["ship", {"text": "rain"}, "light"], "top_n": 2, "return_documents": true}}
{"custom_id": "b", "method": "POST", "url": "/v1/score", "body": {"text_1": "rain", "text_2": ["ship", "rain"]}}
{"custom_id": "c", "method": "POST", "url": "/v1/score", "body": {"text_1": ["rain", "light"], "text_2": ["ship", "rain"]}}
{"custom_id": "d", "method": "POST", "url": "/v1/score", "body": {"text_1": ["rain", "light"], "text_2": ["ship"]}}
{"custom_id": "e", "method": "POST", "url": "/v1/rerank", "body": {"query": "rain"}}
{"custom_id": "f", "method": "POST", "url": "/v1/rerank", "body": {"text_1": "a", "text_2": "b"}}
{"custom_id": "g", "method": "POST", "url": "/v1/embeddings", "body": {"input": "rain"}}
{"id": "h", "text_1": "rain", "text_2": "ship"}
{"id": "i", "query": "rain", "documents": ["rain", "ship"]}
{"id": "j", "query": "rain", "documents": [3, 4]}
END
expect "lines of /v1/rerank and /v1/score" 3 '5 requests failed' run -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/out.jsonl"
has() { grep -q -- "$2" <(grep -F "\"$1\"" "$dir/out.jsonl"); ok "... $1: $2" $?; }
has a '"results": \[{"index": [012], "document": {"text": "[a-z]*"}, "relevance_score": [0-9.e-]*}, {"index": [012], "document": {"text": "[a-z]*"}, "relevance_score": [0-9.e-]*}\], "usage": {"prompt_tokens"'
has b '"object": "list", "created": 0, "model": "bert", "data": \[{"index": 0, "object": "score", "score": [0-9.e-]*}, {"index": 1'
has c '"data": \[{"index": 0, .*{"index": 1, "object": "score"'
has d 'text_1 has 2 texts and text_2 1; expected one or as many'
has e 'documents is missing; expected an array of texts'
has f 'query is missing; expected a string'
has g 'this model scores pairs of texts and nothing else'
has h '"data": \[{"index": 0, "object": "score"'
has i '"results": \[{"index": [01], "relevance_score"'
has j 'documents\[0\] is 3; expected a string'
value() { grep -F "\"$1\"" "$dir/out.jsonl" | grep -oE "\"(relevance_)?score\": [0-9.e-]+" | sed 's/.*: //' | sort; }
[ "$(value b)" = "$(value i)" ]
ok "a pair has one score, whoever asks" $?
run -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/out.h5" -q
mpi 1 merge -o "$dir/back.jsonl" --force -q "$dir/out.h5" 2>/dev/null && cmp "$dir/out.jsonl" "$dir/back.jsonl"
ok "HDF5 keeps the lines" $?
run -m "$golden/bert" -i "$dir/batch.jsonl" -o "$dir/out.txt" -q
[ "$(sed -n 2p "$dir/out.txt" | wc -w)" = 2 ] && sed -n 9p "$dir/out.txt" | grep -Eq '^[01]:[0-9.e-]+ [01]:[0-9.e-]+$'
ok "text has the scores" $?
run -m "$root/tests/golden/embed/bert" -i "$dir/batch.jsonl" -o "$dir/out.jsonl" --force -q
value b | awk '{ last = $1 } END { exit !(last > 0.9999 && last < 1.0001) }'
ok "a model that embeds gives cosines" $?
awk 'BEGIN { printf "{\"query\": \"rain\", \"documents\": [\"ship\", \""; for (i = 0; i < 400; i++) printf "rain "; print "\"]}" }' >"$dir/long.jsonl"
for model in bert qwen3-logits; do
    expect "$model: a document that is too long" 3 'documents\[1\] has [0-9]* tokens with its query; expected at most 256' \
        run -m "$golden/$model" -i "$dir/long.jsonl" -o "$dir/long.out" --force
    run -m "$golden/$model" -i "$dir/long.jsonl" -o "$dir/long.out" --force --truncate-prompt-tokens -1 -q && grep -q results "$dir/long.out"
    ok "... is cut, if that is wanted" $?
done
expect "plan" 3 'requests  *10, of which 5 would fail' mpi 1 plan -m "$golden/bert" -i "$dir/batch.jsonl"
expect "tokenize shows pairs as the model sees them" 0 'Say yes or no: is it about rain' \
    mpi 1 tokenize -m "$golden/qwen3-logits" -i "$golden/pairs.jsonl"
finish
