#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a RESULTS file of OpenAI batch lines with the official client: every body must match the client's models
without unknown fields or conversions. Needs `pip install openai` (checked with 3.54).

    openai_parse.py --batch > BATCH.jsonl          300 requests in which every field of the API occurs
    openai_parse.py [--of BATCH.jsonl] RESULTS.jsonl...

With --of each result is also compared with its request.
"""
import json
import random
import sys

from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from openai.types.shared import ErrorObject


WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
NUMBER = {"type": "json_schema", "name": "number", "strict": True, "schema": {"type": "integer", "minimum": 0, "maximum": 99}}


def responses(dice):
    """Requests of /v1/responses, and of chats with tools."""
    fields = {
        "instructions": lambda: "Be brief.",
        "temperature": lambda: dice.choice([0, 1]),
        "top_p": lambda: 0.9,
        "metadata": lambda: {"a": "b"},
        "store": lambda: False,
        "truncation": lambda: "disabled",
        "reasoning": lambda: {"effort": "medium"},
        "tools": lambda: [{"type": "function", "strict": True, **WEATHER}],
        "parallel_tool_calls": lambda: dice.choice([True, False]),
        "user": lambda: "somebody",
        "previous_response_id": lambda: None,
    }
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Ulm"}'}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "How warm is it in Ulm?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look it up."}]},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "12 degrees"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "12.", "annotations": []}]},
        {"role": "user", "content": "And in Bonn?"},
    ]
    for i in range(60):
        names = {sorted(fields)[i % len(fields)]} | set(dice.sample(sorted(fields), dice.randint(0, 4)))
        body = {name: fields[name]() for name in sorted(names)}
        body["input"] = dice.choice(["Hello", items, items[:1]])
        body["max_output_tokens"] = dice.choice([3, 200])
        if "tools" in body and dice.random() < 0.7:
            body["tool_choice"] = dice.choice(["required", {"type": "function", "name": "get_weather"}])
        elif dice.random() < 0.3:
            body["text"] = {"format": NUMBER}
        yield "/v1/responses", body
    for i in range(40):
        yield "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "How warm is it in Ulm?"}],
            "tools": [{"type": "function", "function": WEATHER}],
            "tool_choice": dice.choice(["required", "auto", "none", {"type": "function", "function": {"name": "get_weather"}}]),
            "parallel_tool_calls": dice.choice([True, False]),
            "max_completion_tokens": 300,
            "n": dice.randint(1, 2),
        }


def batch():
    """Every field alone, with others at random, on both urls; no request is wrong."""
    dice = random.Random(4)
    shared = {
        "max_tokens": lambda: dice.randint(1, 12),
        "temperature": lambda: dice.choice([0, 0.5, 1, 2]),
        "top_p": lambda: dice.choice([0.1, 0.9, 1]),
        "top_k": lambda: dice.choice([-1, 0, 1, 40]),
        "min_p": lambda: dice.choice([0, 0.05, 1]),
        "n": lambda: dice.randint(1, 4),
        "seed": lambda: dice.randint(-(2**40), 2**40),
        "stop": lambda: dice.choice(["e", [" a", "the", "."], ["\n"]]),
        "stop_token_ids": lambda: [dice.randint(0, 300), 7],
        "ignore_eos": lambda: dice.choice([True, False]),
        "min_tokens": lambda: 1,
        "logit_bias": lambda: {str(dice.randint(0, 300)): dice.choice([-100, 5.5, 100])},
        "presence_penalty": lambda: dice.uniform(-2, 2),
        "frequency_penalty": lambda: dice.uniform(-2, 2),
        "repetition_penalty": lambda: dice.choice([0.8, 1.2]),
        "return_token_ids": lambda: True,
        "user": lambda: "somebody",
        "metadata": lambda: {"a": "b"},
        "store": lambda: False,
        "stream": lambda: False,
    }
    chat = {
        "max_completion_tokens": lambda: dice.randint(1, 12),
        "logprobs": lambda: True,
        "tools": lambda: [],
        "tool_choice": lambda: "auto",
        "parallel_tool_calls": lambda: True,
        "response_format": lambda: {"type": "text"},
        "add_generation_prompt": lambda: dice.choice([True, False]),
        "continue_final_message": lambda: False,
        "chat_template_kwargs": lambda: {"enable_thinking": False},
        "service_tier": lambda: "auto",
        "modalities": lambda: ["text"],
    }
    text = {"logprobs": lambda: dice.randint(0, 5), "echo": lambda: True, "suffix": lambda: ""}
    for i in range(200):
        is_chat = i % 2 == 0
        fields = {**shared, **(chat if is_chat else text)}
        names = {sorted(fields)[i // 2 % len(fields)]} | set(dice.sample(sorted(fields), dice.randint(0, 6)))
        names.add("max_tokens")
        if "max_completion_tokens" in names:  # two names of one field
            names.discard("max_tokens")
        body = {"model": "m", **{name: fields[name]() for name in sorted(names)}}
        if body.get("logprobs") is True and dice.random() < 0.7:
            body["top_logprobs"] = dice.randint(0, 20)
        if body.get("echo") and dice.random() < 0.3:
            body["max_tokens"] = 0
            body.pop("min_tokens", None)
        word = dice.choice(["river", "garden", "caf\u00e9", "\U0001f600", "a\tb"])
        if is_chat:
            body["messages"] = [{"role": "system", "content": "Be brief."}] * dice.randint(0, 1) + [
                {"role": "user", "content": dice.choice([f"Spell the word {word}.", [{"type": "text", "text": word}]])}
            ]
        else:
            body["prompt"] = dice.choice([f"Once upon a {word}", [f"The {word}"], [1, 50, 60, 70, 300]])
        url = "/v1/chat/completions" if is_chat else "/v1/completions"
        print(json.dumps({"custom_id": f"r{i}", "method": "POST", "url": url, "body": body}))
    for i, (url, body) in enumerate(responses(dice)):
        print(json.dumps({"custom_id": f"t{i}", "method": "POST", "url": url, "body": body}))


def without_first(body):
    """The prompt's first token has no logprob: the API says null there, which its own types do not have."""
    body = json.loads(json.dumps(body))
    for choice in body["choices"]:
        logprobs = choice["logprobs"]
        assert logprobs["token_logprobs"].pop(0) is None and logprobs["top_logprobs"].pop(0) is None
        logprobs["tokens"].pop(0), logprobs["text_offset"].pop(0)
    return body


def check_logprobs(choice, echoed, generated, asked, where):
    """Columns of one length, offsets that ascend and stay in the text, as many alternatives as were asked for."""
    columns = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    lengths = {len(getattr(choice.logprobs, column)) for column in columns}
    assert len(lengths) == 1, f"{where}: {lengths}"
    assert generated is None or lengths == {echoed + generated}, f"{where}: {lengths}, not {echoed} + {generated}"
    offsets = choice.logprobs.text_offset
    assert offsets == sorted(offsets) and all(0 <= at <= len(choice.text) for at in offsets), where
    assert all(value <= 0 for value in choice.logprobs.token_logprobs), where
    if asked is not None:
        assert all(len(top) <= asked + 1 for top in choice.logprobs.top_logprobs), where


def check_choices(parsed, raw, asked, where):
    usage = parsed.usage
    echo = bool(asked.get("echo")) and parsed.object == "text_completion"
    assert [choice.index for choice in parsed.choices] == list(range(asked.get("n", len(parsed.choices)))), where
    for choice, plain in zip(parsed.choices, raw["choices"]):
        ids = plain.get("token_ids")
        alone = usage.completion_tokens if len(parsed.choices) == 1 else None
        generated = len(ids) if ids is not None else alone
        if echo and isinstance(asked["prompt"], str):
            assert choice.text.startswith(asked["prompt"]), where
        if choice.logprobs is None:
            assert not asked or asked.get("logprobs", False) is False, where
        elif parsed.object == "chat.completion":
            assert generated is None or len(choice.logprobs.content) == generated, where
            for token in choice.logprobs.content:
                assert len(token.top_logprobs) == asked.get("top_logprobs", len(token.top_logprobs)), where
                assert bytes(token.bytes).decode("utf-8", "replace") == token.token, where
        else:
            check_logprobs(choice, usage.prompt_tokens - 1 if echo else 0, generated, asked.get("logprobs"), where)
    counts = [len(choice["token_ids"]) for choice in raw["choices"] if "token_ids" in choice]
    assert not counts or sum(counts) == usage.completion_tokens, where
    assert bool(counts) == bool(asked.get("return_token_ids", counts)), where


def check_call(name, arguments, where):
    given = json.loads(arguments)
    assert name == "get_weather" and set(given) <= {"city", "days"} and len(given["city"]) <= 9, where


def check_calls(parsed, asked, where):
    """A demanded call is there, unless the answer was cut off; its arguments fit the schema."""
    demanded = asked.get("tool_choice", "auto") not in ("auto", "none")
    for choice in parsed.choices:
        calls = choice.message.tool_calls or []
        assert choice.finish_reason == "length" or bool(calls) == (choice.finish_reason == "tool_calls"), where
        assert not demanded or choice.finish_reason != "stop", where
        assert len(calls) <= 1 or asked.get("parallel_tool_calls", True), where
        for call in calls:
            check_call(call.function.name, call.function.arguments, where)


def check_response(parsed, asked, where):
    assert parsed.usage.total_tokens == parsed.usage.input_tokens + parsed.usage.output_tokens, where
    assert (parsed.status == "completed") == (parsed.incomplete_details is None), where
    calls = [item for item in parsed.output if item.type == "function_call"]
    demanded = asked.get("tool_choice", "auto") != "auto"
    assert not demanded or parsed.status == "incomplete" or calls, where
    for item in calls:
        check_call(item.name, item.arguments, where)
    if asked.get("text") and parsed.status == "completed":
        assert 0 <= int(parsed.output_text) <= 99, where
    for name in ("instructions", "temperature", "top_p", "metadata", "max_output_tokens"):
        assert name not in asked or getattr(parsed, name) == asked[name], f"{where}: {name}"


def check(line, where, requests):
    assert set(line) == {"id", "custom_id", "response", "error"}, f"{where}: keys {sorted(line)}"
    assert line["error"] is None and line["id"].startswith("batch_req"), where
    response = line["response"]
    assert set(response) == {"status_code", "request_id", "body"}, f"{where}: keys {sorted(response)}"
    body, asked = response["body"], requests.get(line["custom_id"], {})
    if response["status_code"] != 200:
        ErrorObject.model_validate(body["error"], strict=True)
        assert not asked, f"{where}: {body['error']['message']}"
        return "error"
    if body["object"] == "response":
        check_response(Response.model_validate(body, strict=True), asked, where)
        return "response"
    model = {"chat.completion": ChatCompletion, "text_completion": Completion}[body["object"]]
    shown = body
    if model is Completion and any((c["logprobs"] or {}).get("token_logprobs", [0])[:1] == [None] for c in body["choices"]):
        shown = without_first(body)
    parsed = model.model_validate(shown, strict=True)
    usage = parsed.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, where
    check_choices(parsed, body, asked, where)
    if model is ChatCompletion:
        check_calls(parsed, asked, where)
    return body["object"]


def main():
    arguments, requests, seen = sys.argv[1:], {}, {}
    if arguments == ["--batch"]:
        batch()
        return 0
    if arguments[:1] == ["--of"]:
        with open(arguments[1], encoding="utf-8") as lines:
            requests = {line["custom_id"]: line["body"] for line in map(json.loads, lines)}
        arguments = arguments[2:]
    for path in arguments:
        with open(path, encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                line = json.loads(text)
                kind = check(line, f"{path}:{number}", requests) if "custom_id" in line else "simple"
                seen[kind] = seen.get(kind, 0) + 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(seen.items())))
    return 0 if seen and sum(seen.values()) >= len(requests) else 2


if __name__ == "__main__":
    sys.exit(main())
