#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a RESULTS file of OpenAI batch lines with the official client: every body must match the client's models
without unknown fields or conversions. Needs `pip install openai` (checked with 3.54).

    openai_parse.py --batch > BATCH.jsonl          200 requests in which every field of the API occurs
    openai_parse.py [--of BATCH.jsonl] RESULTS.jsonl...

With --of each result is also compared with its request.
"""
import json
import random
import sys

from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.shared import ErrorObject


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
    model = {"chat.completion": ChatCompletion, "text_completion": Completion}[body["object"]]
    shown = body
    if model is Completion and any((c["logprobs"] or {}).get("token_logprobs", [0])[:1] == [None] for c in body["choices"]):
        shown = without_first(body)
    parsed = model.model_validate(shown, strict=True)
    usage = parsed.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, where
    check_choices(parsed, body, asked, where)
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
