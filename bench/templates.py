#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates compared with Python: python3 bench/templates.py BUILD ASSETS >bench/results/MACHINE-templates.csv

Each real template of ASSETS renders conversations of 1, 10 and 100 messages, with and without tools: by jinja2 alone
(the compiled template), by transformers' render_jinja_template around it, and by BUILD/bench/templates, which starts
from parsed JSON as transformers does. Best of several rounds, microseconds. Needs transformers >= 5; make bench/templates.
"""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import transformers.utils.chat_template_utils as chat

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a place", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "The city"}, "unit": {"type": "string", "enum": ["c", "f"]}},
    "required": ["city"]}}}]


def conversation(n):
    question = "What is the weather like in city number %d? Please explain in detail."
    answer = "The weather in city %d is sunny with a light breeze; tomorrow it may rain."
    return [{"role": "assistant", "content": answer % i} if i % 2 else {"role": "user", "content": question % i} for i in range(n)]


def best(call):
    times, rounds = 1, []
    while len(rounds) < 5:
        start = time.perf_counter()
        for _ in range(times):
            call()
        seconds = time.perf_counter() - start
        if seconds < 0.02:
            times *= 2
        else:
            rounds.append(seconds / times)
    return min(rounds) * 1e6


def measure(folder, name, source, n, tools):
    messages = conversation(n)
    compiled = chat._compile_jinja_template(source)
    bare = lambda: compiled.render(messages=messages, tools=tools, documents=None, add_generation_prompt=True, **SPECIAL)
    whole = lambda: chat.render_jinja_template([messages], tools=tools, chat_template=source, add_generation_prompt=True, **SPECIAL)[0][0]
    text = whole()
    (folder / "request.json").write_text(json.dumps({"messages": messages} | ({"tools": tools} if tools else {})))
    ours = subprocess.run([Path(sys.argv[1]) / "bench/templates", folder, folder / "request.json"], check=True, capture_output=True, text=True)
    us, size = ours.stdout.split()
    assert int(size) == len(text.encode()), (name, n, size, len(text.encode()))
    jinja, python, us = best(bare), best(whole), float(us)
    print(f"{name},{n},{int(tools is not None)},{size},{jinja:.1f},{python:.1f},{us:.2f},{jinja / us:.1f},{python / us:.1f}", flush=True)


if __name__ == "__main__":
    print("template,messages,tools,bytes,jinja2_us,transformers_us,cake_us,times_jinja2,times_transformers")
    for path in sorted(Path(sys.argv[2]).glob("templates/*.jinja")):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "chat_template.jinja").write_text(path.read_text())
            (folder / "tokenizer_config.json").write_text(json.dumps(SPECIAL))
            for n in (1, 10, 100):
                for tools in (None, TOOLS):
                    try:
                        measure(folder, path.stem, path.read_text(), n if n == 1 else n - 1 if n % 2 == 0 else n, tools)
                    except Exception as error:  # a template that refuses the conversation, or tools
                        print(f"{path.stem}, {n} messages: {error}", file=sys.stderr)
