#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a RESULTS file of OpenAI batch lines against the official client: every body has to be what its models
say, nothing more guessed, nothing converted. Needs `pip install openai` (checked with 3.54).

    openai_parse.py RESULTS.jsonl...
"""
import json
import sys

from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.shared import ErrorObject


def check(line, where):
    assert set(line) == {"id", "custom_id", "response", "error"}, f"{where}: keys {sorted(line)}"
    assert line["error"] is None and line["id"].startswith("batch_req"), where
    response = line["response"]
    assert set(response) == {"status_code", "request_id", "body"}, f"{where}: keys {sorted(response)}"
    body = response["body"]
    if response["status_code"] != 200:
        ErrorObject.model_validate(body["error"], strict=True)
        return "error"
    model = {"chat.completion": ChatCompletion, "text_completion": Completion}[body["object"]]
    parsed = model.model_validate(body, strict=True)
    usage = parsed.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, where
    for choice in parsed.choices:
        if choice.logprobs is None:
            continue
        if model is ChatCompletion:
            assert len(choice.logprobs.content) == usage.completion_tokens, where
        else:
            for column in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
                assert len(getattr(choice.logprobs, column)) == usage.completion_tokens, f"{where}: {column}"
    return body["object"]


def main():
    seen = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                line = json.loads(text)
                kind = check(line, f"{path}:{number}") if "custom_id" in line else "simple"
                seen[kind] = seen.get(kind, 0) + 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(seen.items())))
    return 0 if seen else 2


if __name__ == "__main__":
    sys.exit(main())
