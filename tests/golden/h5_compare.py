#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares RESULTS.h5, as h5py reads it, with RESULTS.jsonl of the same requests.

h5_compare.py --prompts FILE: prints the demo's prompts, changed so that every column has a value.
h5_compare.py RESULTS.jsonl RESULTS.h5
"""
import json
import sys

import h5py
import numpy as np


def prompts(path):
    for i, line in enumerate(open(path)):
        request = json.loads(line)
        fields = request.get("body", request)
        fields["return_token_ids"] = True
        if i % 3 == 1:
            fields["n"] = 3
        if i % 4 == 2:
            fields["logprobs"] = True if "messages" in fields else 2
        if i == 5:
            fields["top_p"] = 7
        print(json.dumps(request))


def ragged(file, name):
    data, offsets = file[name + "/data"][:], file[name + "/offsets"][:]
    assert offsets[0] == 0 and offsets[-1] == len(data) and (np.diff(offsets) >= 0).all(), name
    return [data[a:b] for a, b in zip(offsets[:-1], offsets[1:])]


def scores(choice):
    logprobs = choice.get("logprobs")
    if not logprobs:
        return []
    if "content" in logprobs:
        return [token["logprob"] for token in logprobs["content"]]
    return logprobs["token_logprobs"]



def fill(line, texts, ids, prompt):
    """The line of lines/data with what stands in other columns put back; logprobs are compared apart."""
    for mark, values in (("\x01", texts), ("\x02", ids), ("\x04", [prompt])):
        for value in values:
            line = line.replace(mark, json.dumps(value, ensure_ascii=False) if mark == "\x01" else str(value), 1)
    return line


def compare(path, h5):
    lines = [json.loads(line) for line in open(path)]
    file = h5py.File(h5)
    for name in ("version", "isa", "dtype", "model", "format"):
        assert isinstance(file.attrs[name], str), name
    requests, choices = file["requests"], file["choices"]
    rows = {name: ragged(file, name) for name in ("prompt", "prompt_tokens", "text", "tokens", "logprobs", "lines")}
    assert len(requests["id"]) == len(lines) == len(rows["prompt"]) == len(rows["lines"])
    assert len(choices["request"]) == len(rows["text"]) == len(rows["tokens"]) == len(rows["logprobs"])
    for name in requests:
        assert requests[name].chunks and requests[name].compression == "gzip" and requests[name].shuffle, name
    for i, line in enumerate(lines):
        body = line["response"]["body"] if "response" in line else line
        name = line.get("custom_id", line["id"])
        assert requests["id"].asstr()[i] == ("" if name is None else str(name)), i
        error = body.get("error")
        first, n = requests["first_choice"][i], requests["choices"][i]
        assert (choices["request"][first:first + n] == i).all()
        assert (choices["index"][first:first + n] == range(n)).all()
        assert requests["error"].asstr()[i] == (error["message"] if error else "")
        assert requests["status"][i] == (400 if error else 200)
        if error:
            assert n == 1 and not len(rows["text"][first])
            continue
        assert requests["prompt_tokens"][i] == body["usage"]["prompt_tokens"] == len(rows["prompt_tokens"][i])
        assert requests["completion_tokens"][i] == body["usage"]["completion_tokens"]
        assert body["prompt_token_ids"] == rows["prompt_tokens"][i].tolist()
        answers = body.get("choices", [body])
        assert n == len(answers) and requests["finish_reason"][i].decode() == answers[0]["finish_reason"]
        texts = []
        for j, answer in enumerate(answers):
            text = answer["message"]["content"] if "message" in answer else answer["text"]
            texts.append(rows["text"][first + j].tobytes().decode())
            assert texts[-1] == text, (i, j)
            assert rows["tokens"][first + j].tolist() == answer["token_ids"], (i, j)
            assert choices["finish_reason"][first + j].decode() == answer["finish_reason"]
            assert (rows["logprobs"][first + j] == np.array(scores(answer), np.float32)).all(), (i, j)
        ids = [rows["tokens"][k].tolist() for k in range(first, first + n)]
        got = fill(rows["lines"][i].tobytes().decode(), texts, ids, rows["prompt_tokens"][i].tolist())
        if "\x03" not in got:
            assert json.loads(got) == line, got
    print(len(lines), "requests are the same")


if sys.argv[1] == "--prompts":
    prompts(sys.argv[2])
else:
    compare(sys.argv[1], sys.argv[2])
