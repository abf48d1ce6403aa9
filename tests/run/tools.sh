#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tool calls, reasoning and /v1/responses: demanded calls are there and fit their schema; the model may think before; other
# answers are left as they are; the same bits on any ranks and after a stop; every form of results; mistakes.
. "$(dirname "$0")/../shell.sh"

run() { mpi "${np:-1}" run -m "$dir/model" --deterministic-ids "$@"; }

# A model whose template says that it thinks, and how it writes calls.
cp -r "$model" "$dir/model"
cat >"$dir/model/chat_template.jinja" <<'END'
{%- if tools %}{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<tool_call>
{"name": NAME, "arguments": ARGUMENTS}
</tool_call>
{% endif %}
{%- for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}
{%- if add_generation_prompt %}assistant:{% if effort is defined or reasoning_effort is defined %}<think>{% endif %}
{%- if quick is defined %}<think>

</think>

{% endif %}{% endif %}
END
tools='"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"]}}}, {"type": "function", "function": {"name": "now"}}]'
hi='"messages": [{"role": "user", "content": "How warm will it be?"}]'
for i in $(seq 4); do
    cat <<END
{"id": "required-$i", $hi, $tools, "tool_choice": "required", "chat_template_kwargs": {"quick": true}}
{"id": "named-$i", $hi, $tools, "tool_choice": {"type": "function", "function": {"name": "now"}}, "chat_template_kwargs": {"quick": true}, "n": 2, "logprobs": 1}
{"id": "single-$i", $hi, $tools, "tool_choice": "required", "parallel_tool_calls": false}
{"id": "thinks-$i", $hi, "reasoning_effort": "high", "structured_outputs": {"choice": ["yes", "no"]}}
{"id": "auto-$i", $hi, $tools, "max_tokens": 30}
{"id": "none-$i", $hi, $tools, "max_tokens": 30, "tool_choice": "none", "chat_template_kwargs": {"quick": true}}
{"id": "text-$i", "prompt": "Once", "max_tokens": 5}
END
done >"$dir/in.jsonl"
cat >>"$dir/in.jsonl" <<END
{"custom_id": "r1", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "max_output_tokens": 20, "chat_template_kwargs": {"quick": true}}}
{"custom_id": "r2", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "tools": [{"type": "function", "name": "now"}], "tool_choice": "required", "parallel_tool_calls": false, "chat_template_kwargs": {"quick": true}}}
{"custom_id": "r3", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "max_output_tokens": 9, "reasoning": {"effort": "low"}}}
{"custom_id": "c1", "method": "POST", "url": "/v1/chat/completions", "body": {$hi, $tools, "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 300, "chat_template_kwargs": {"quick": true}}}
END
options="--temperature 1.5 --max-tokens 240 -q"
# shellcheck disable=SC2086
run -i "$dir/in.jsonl" -o "$dir/out.jsonl" $options
ok "every line has an answer" $?

# each KIND N PATTERN: at least N lines of the kind match
each() {
    [ "$(grep "\"id\": \"$1-" "$dir/out.jsonl" | grep -cE "$3")" -ge "$2" ]
    ok "$1: $2 answers match" $?
}
weather='\{\\"city\\":\\"([^"\\]|\\\\.)*\\"(,\\"days\\":[1-9])?\}'
call="\{\"id\": \"call_[0-9_]+\", \"type\": \"function\", \"function\": \{\"name\": (\"get_weather\", \"arguments\": \"$weather\"|\"now\", \"arguments\": \"\{\}\")\}\}"
each required 4 "\"text\": \".*\", \"tool_calls\": \[$call(, $call)*\], \"finish_reason\": \"(tool_calls|length)\""
each named 4 '"choices": \[\{"index": 0, "text": "", "tool_calls": \[\{"id": "call_[0-9]+_0_0", "type": "function", "function": \{"name": "now", "arguments": "\{\}"\}\}\], "finish_reason": "tool_calls", "logprobs": \{.*"call_[0-9]+_1_0"'
each single 4 '"tool_calls": \[|"finish_reason": "length"'
! grep '"id": "single-' "$dir/out.jsonl" | grep -q '_0_1"'
ok "single: one call" $?
each thinks 4 '"text": "(yes|no)", "reasoning": "[^"].*"reasoning_content": ".*"finish_reason": "stop", "usage": \{.*"reasoning_tokens": [1-9]|"finish_reason": "length"'
each auto 4 '"text": "[^"].*"finish_reason": "(length|stop)", .*"reasoning_tokens": 0'
each none 4 '"text": "[^"].*"finish_reason": "(length|stop)"'
each text 4 '"finish_reason": "(length|stop)", "usage": \{"prompt_tokens": [0-9]+, "completion_tokens": [0-9]+\}\}'
has() { grep -qE -- "$2" <(grep -F "\"custom_id\": \"$1\"" "$dir/out.jsonl"); ok "... $1" $?; }
has r1 '"object": "response".*"output": \[\{"id": "msg-28", "type": "message", .*"content": \[\{"type": "output_text", "text": "[^"]'
has r2 '"status": "completed".*"output": \[\{"id": "fc_0-29", "type": "function_call", .*"call_id": "call_29_0_0", "name": "now", "arguments": "\{\}"\}\]'
has r3 '"status": "incomplete", .*"reason": "max_output_tokens".*"output": \[\{"id": "rs-30", "type": "reasoning", .*"reasoning_text".*"reasoning_tokens": 9'
has c1 '"content": null, "refusal": null, "tool_calls": \[\{.*"finish_reason": "tool_calls"'

# ---- the same bits
while read -r np more; do
    # shellcheck disable=SC2086
    run -i "$dir/in.jsonl" -o "$dir/other.jsonl" $options --force $more </dev/null
    cmp "$dir/out.jsonl" "$dir/other.jsonl"
    ok "the same bits: np $np $more" $?
done <<'END'
2 --max-seqs 3
4 --replicas 2
END
np=1
for i in $(seq 3); do sed "s/^{\"id\": \"/&$i-/; s/\"custom_id\": \"/&$i-/" "$dir/in.jsonl"; done >"$dir/many.jsonl"
# shellcheck disable=SC2086
run -i "$dir/many.jsonl" -o "$dir/whole.jsonl" $options
# shellcheck disable=SC2086
killed 30 "$dir/killed.jsonl" "$cake" run -m "$dir/model" --deterministic-ids -i "$dir/many.jsonl" -o "$dir/killed.jsonl" $options
# shellcheck disable=SC2086
run -i "$dir/many.jsonl" -o "$dir/killed.jsonl" $options
cmp "$dir/whole.jsonl" "$dir/killed.jsonl"
ok "a run that was killed goes on to the same bits" $?

# ---- other forms
grep -v named "$dir/in.jsonl" >"$dir/one.jsonl"
# shellcheck disable=SC2086
run -i "$dir/one.jsonl" -o "$dir/out.txt" $options
[ "$(wc -l <"$dir/out.txt")" -eq "$(wc -l <"$dir/one.jsonl")" ] && [ -z "$(tail -n 1 "$dir/out.txt")" ] && [ -n "$(tail -n 4 "$dir/out.txt" | head -n 1)" ]
ok "text files have the contents" $?
if "$cake" info 2>/dev/null | grep -q 'HDF5 *[0-9yY]'; then
    # shellcheck disable=SC2086
    run -i "$dir/in.jsonl" -o "$dir/out.h5" $options && mpi 1 merge -o "$dir/again.jsonl" "$dir/out.h5" && cmp "$dir/out.jsonl" "$dir/again.jsonl"
    ok "HDF5 files have all of it" $?
fi
run -p "How warm will it be?" --reasoning-parser none --max-tokens 40 -q >"$dir/plain"
run -p "How warm will it be?" --max-tokens 40 -q | cmp - "$dir/plain"
ok "a stream without marks is the same" $?

# ---- choosing, and mistakes
expect "info says which forms a model has" 0 'answers +tool calls: hermes; reasoning: think' mpi 1 info -m "$dir/model"
run -i "$dir/in.jsonl" -o "$dir/left.jsonl" $options --tool-parser none --reasoning-parser none 2>/dev/null
[ $? -eq 3 ] && grep '"id": "required-1"' "$dir/left.jsonl" | grep -q -- 'name the form with --tool-parser'
ok "without a parser no call can be demanded" $?
grep '"id": "thinks-1"' "$dir/left.jsonl" | grep -qE '"text": "(yes|no)", "finish_reason": "stop", "usage": \{"prompt_tokens": [0-9]+, "completion_tokens": [0-9]+\}'
ok "without a parser a constraint is one of the whole answer" $?
echo '{"messages": [{"role": "user", "content": "Hi"}]}' >"$dir/plain.jsonl"
expect "a parser for a template without tools" 0 '--tool-parser hermes is given, but .* shows no tools' mpi 1 run -m "$model" \
    -i "$dir/plain.jsonl" -o "$dir/x.jsonl" --tool-parser hermes --max-tokens 2
expect "unknown parsers are refused" 2 'hermes' run -i "$dir/in.jsonl" -o "$dir/x.jsonl" --tool-parser soup
cat >"$dir/wrong.jsonl" <<END
{"id": "a", $hi, "tool_choice": "required"}
{"id": "b", $hi, $tools, "tool_choice": {"type": "function", "function": {"name": "later"}}}
{"id": "c", $hi, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"not": {}}}}}}], "tool_choice": "required"}
{"id": "h", $hi, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}}], "tool_choice": "required", "max_tokens": 2}
{"custom_id": "i", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]}}
{"custom_id": "j", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "reasoning": {"effort": 1}}}
{"custom_id": "d", "method": "POST", "url": "/v1/responses", "body": {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}}
{"custom_id": "e", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "max_tokens": 3}}
{"custom_id": "f", "method": "POST", "url": "/v1/responses", "body": {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}}
{"custom_id": "g", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"if": {}}}}}}
END
expect "lines that are wrong" 3 '9 requests failed' run -i "$dir/wrong.jsonl" -o "$dir/results.jsonl"
says() { grep -qF -- "$2" <(grep -F "\"$1\"" "$dir/results.jsonl"); ok "... $1: $2" $?; }
says a 'tool_choice demands a call, but there are no tools'
says b 'there is no tool later in tools'
says c 'tools[0].function.parameters: not at #/properties/a of the schema: this keyword is not supported'
says h '"finish_reason": "length"'
says i 'tools[1].name is \"f\"; expected a name that no tool before it has'
says j 'reasoning.effort is 1; expected a string'
says d 'input[0].content[0].type is \"input_image\"'
says e 'max_tokens is not a field of /v1/responses'
says f 'input[0].call_id is missing'
says g 'text.format: if at # of the schema'
finish
