#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Constrained answers: sampled at a high temperature they are what their schema, pattern, list or grammar takes; with every
# option of the sampler; the same bits on any ranks, replicas and in any waves, and after a stop; mistakes are errors of a line.
. "$(dirname "$0")/../shell.sh"

run() { mpi "${np:-1}" run -m "$model" --deterministic-ids "$@"; }

# ---- one line of each kind, with everything that changes what is drawn
cat >"$dir/kinds.jsonl" <<'END'
{"id": "regex", "prompt": "Once", "structured_outputs": {"regex": "[A-Z][a-z]{2,5}(, [a-z]{3}){0,4}[.!?]"}}
{"id": "choice", "prompt": "Once", "structured_outputs": {"choice": ["a ship", "a shipyard", "the rain", "nothing: \"at all\""]}}
{"id": "grammar", "prompt": "Once", "structured_outputs": {"grammar": "root ::= sum\nsum ::= term ([-+] term){0,3}\nterm ::= [1-9] [0-9]{0,2} | \"(\" sum \")\""}}
{"id": "schema", "prompt": "Once", "response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": true, "schema": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 120}, "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 2}}, "required": ["name", "age"]}}}}
{"id": "guided", "prompt": "Once", "guided_regex": "(ab){1,9}"}
END
for i in $(seq 20); do
    case $((i % 7)) in
    0) more='"top_k": 40, "top_p": 0.95' ;;
    1) more='"repetition_penalty": 1.3, "presence_penalty": 1' ;;
    2) more='"logprobs": 2, "n": 2' ;;
    3) more='"logit_bias": {"5": 50, "9": -100}, "min_tokens": 9' ;;
    4) more='"min_p": 0.001, "ignore_eos": true' ;;
    5) more='"frequency_penalty": 2, "echo": true, "return_token_ids": true' ;;
    6) more='"temperature": 0' ;;
    esac
    sed "s/^{\"id\": \"\([a-z]*\)\"/{\"id\": \"\1-$i\", $more/" "$dir/kinds.jsonl"
done >"$dir/in.jsonl"
options="--temperature 1.5 --max-tokens 120 -q"
# shellcheck disable=SC2086
run -i "$dir/in.jsonl" -o "$dir/out.jsonl" $options
ok "every line has an answer" $?
# all KIND PATTERN N: N answers or more are complete, and what all of these are matches
all() {
    grep "\"id\": \"$1-" "$dir/out.jsonl" | grep -oE '"text": "([^"\\]|\\.)*", "finish_reason": "stop"' | sed -E 's/^"text": "(Once)?//; s/", "finish.*//' >"$dir/texts"
    [ "$(wc -l <"$dir/texts")" -ge "$3" ] && ! grep -vE "^$2\$" "$dir/texts"
    ok "$1: complete answers match" $?
}
all regex '[A-Z][a-z]{2,5}(, [a-z]{3}){0,4}[.!?]' 20
all choice '(a ship|a shipyard|the rain|nothing: \\"at all\\")' 20
all grammar '[-+()0-9]+' 10
all schema '\{\\"name\\":\\"([^"\\]|\\[^"])*\\",\\"age\\":(1[01][0-9]|120|[1-9]?[0-9])(,\\"tags\\":\[(\\"(red|blue)\\"(,\\"(red|blue)\\")?)?\])?\}' 20
all guided '(ab){1,9}' 20

# ---- the same bits
while read -r np more; do
    # shellcheck disable=SC2086
    run -i "$dir/in.jsonl" -o "$dir/other.jsonl" $options --force $more </dev/null
    cmp "$dir/out.jsonl" "$dir/other.jsonl"
    ok "the same bits: np $np $more" $?
done <<'END'
2 --chunk 64
2 --threads 1 --max-seqs 3
2 --replicas 2
4 --replicas 2 --max-seqs 2
1 --kv-memory 256K
END
np=1
for i in $(seq 12); do sed "s/^{\"id\": \"/&$i-/" "$dir/in.jsonl"; done >"$dir/many.jsonl"
# shellcheck disable=SC2086
run -i "$dir/many.jsonl" -o "$dir/whole.jsonl" $options
# shellcheck disable=SC2086
killed 50 "$dir/killed.jsonl" "$cake" run -m "$model" --deterministic-ids -i "$dir/many.jsonl" -o "$dir/killed.jsonl" $options
# shellcheck disable=SC2086
run -i "$dir/many.jsonl" -o "$dir/killed.jsonl" $options
cmp "$dir/whole.jsonl" "$dir/killed.jsonl"
ok "a run that was killed goes on to the same bits" $?

# ---- forms, and mistakes
cat >"$dir/forms.jsonl" <<'END'
{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 200, "response_format": {"type": "json_object"}}}
{"custom_id": "b", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "response_format": {"type": "text"}, "max_tokens": 3}}
{"custom_id": "c", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"json": "{\"const\": [1, \"x\"]}", "disable_any_whitespace": true}}}
{"custom_id": "d", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"a": {"if": {}}}}}}}}
{"custom_id": "e", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"regex": "(a"}}}
{"custom_id": "f", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"grammar": "root ::= b"}}}
{"custom_id": "g", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"choice": []}}}
{"custom_id": "h", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "response_format": {"type": "xml"}}}
{"custom_id": "i", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"regex": "a", "choice": ["b"]}}}
{"custom_id": "j", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"structural_tag": {"type": "sum"}}}}
{"custom_id": "k", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"json": {"properties": {"a": {"type": "integer"}, "b": {"type": "string", "pattern": "(.{1000}){1000}"}}}}}}
{"custom_id": "l", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"json": {"$ref": "#"}}}}
{"custom_id": "m", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "return_token_ids": true, "structured_outputs": {"structural_tag": {"type": "sequence", "elements": [{"type": "token", "token": "<|im_start|>"}, {"type": "const_string", "value": "a"}, {"type": "token", "token": "<|im_start|>"}, {"type": "regex", "pattern": "[bc]{3}"}]}}}}
{"custom_id": "n", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "structured_outputs": {"structural_tag": {"type": "sequence", "elements": [{"type": "any_text"}, {"type": "token", "token": "<|call|>"}]}}}}
END
expect "lines with constraints" 3 '10 requests failed' run -i "$dir/forms.jsonl" -o "$dir/results.jsonl" --temperature 0
has() { grep -q -- "$2" <(grep -F "\"custom_id\": \"$1\"" "$dir/results.jsonl"); ok "... $1: $2" $?; }
has a '"content": "{'
has c '"text": "\[1,\\"x\\"\]"'
has d 'response_format: if at #/properties/a of the schema: this keyword is not supported'
has e 'structured_outputs: at byte 2 of the pattern .*: a group without )'
has f 'structured_outputs: line 1 of the grammar: there is no rule b'
has g 'structured_outputs.choice is .*; expected an array of strings, one or more'
has h 'response_format.type is .*xml.*; expected'
has i 'structured_outputs.regex and structured_outputs.choice both say what the answer must look like'
has j 'structural tag: type sum is not supported'
has k 'the constraint needs more than 262144 states at #/properties/b of the schema'
has l 'it leads back to itself'
has m '"text": "a[bc]*", .*"token_ids": \[1, [0-9]*, 1, [0-9]*.*, [02]\]'
has n 'structural tag: token: <|call|> is no special token of this model'
expect "plan finds the same mistakes" 3 'there is no rule b' mpi 1 plan -m "$model" -i "$dir/forms.jsonl"
finish
