#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sampling.json: scores changed and filtered by transformers' logits processors (checked with 5.x), for
tests/sample/sample.c. Presence and frequency penalties, which transformers does not have, follow the API's
definition: scores[j] -= count[j] * frequency + (count[j] > 0) * presence, over generated tokens.

    sampling.py > sampling.json
"""
import json
import sys

import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

N_VOCAB = 40


def numbers(values):
    return [None if v == float("-inf") else float(f"{v:.9g}") for v in values]


def case(index, **options):
    torch.manual_seed(index)
    logits = 3 * torch.randn(N_VOCAB, dtype=torch.float32)
    prompt = torch.randint(0, N_VOCAB, (7,)).tolist()
    generated = torch.randint(0, N_VOCAB // 2, (12,)).tolist()
    scores = logits[None].clone()
    ids = torch.tensor([prompt + generated])
    bias = options.get("logit_bias")
    if bias:
        scores = SequenceBiasLogitsProcessor([[[int(t)], float(b)] for t, b in bias.items()])(ids, scores)
    if options.get("repetition_penalty", 1) != 1:
        scores = RepetitionPenaltyLogitsProcessor(options["repetition_penalty"])(ids, scores)
    for token in set(generated):
        scores[0, token] -= generated.count(token) * options.get("frequency_penalty", 0)
        scores[0, token] -= options.get("presence_penalty", 0)
    changed = numbers(scores[0].tolist())
    warped = scores.to(torch.float64)
    if options.get("temperature", 1) != 1:
        warped = TemperatureLogitsWarper(float(options["temperature"]))(ids, warped)
    if options.get("top_k", 0):
        warped = TopKLogitsWarper(options["top_k"])(ids, warped)
    if options.get("top_p", 1) != 1:
        warped = TopPLogitsWarper(options["top_p"])(ids, warped)
    if options.get("min_p", 0):
        warped = MinPLogitsWarper(options["min_p"])(ids, warped)
    return {
        "options": options,
        "prompt": prompt,
        "generated": generated,
        "logits": numbers(logits.tolist()),
        "changed": changed,
        "probability": numbers(torch.softmax(warped[0], -1).tolist()),
    }


def main():
    bias = {"3": 5.0, "11": -100.0, "39": 2.5, "0": -1.25}
    options = [
        {},
        {"temperature": 0.4},
        {"temperature": 1.7},
        {"top_k": 1},
        {"top_k": 9},
        {"top_p": 0.35},
        {"top_p": 0.9},
        {"min_p": 0.02},
        {"min_p": 0.4},
        {"min_p": 1.0},
        {"logit_bias": bias},
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.7},
        {"presence_penalty": 1.1},
        {"presence_penalty": -2},
        {"frequency_penalty": 0.6},
        {"frequency_penalty": -0.9},
        {"repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.25},
        {"top_k": 12, "top_p": 0.8},
        {"top_k": 12, "min_p": 0.1},
        {"top_p": 0.95, "min_p": 0.1},
        {"temperature": 1.5, "min_p": 0.15},
        {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.03},
        {
            "logit_bias": bias,
            "repetition_penalty": 1.1,
            "presence_penalty": 0.4,
            "frequency_penalty": 0.3,
            "temperature": 1.3,
            "top_k": 25,
            "top_p": 0.93,
            "min_p": 0.01,
        },
    ]
    cases = [case(i, **o) for i, o in enumerate(options)]
    sys.stdout.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
