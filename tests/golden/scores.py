# SPDX-License-Identifier: Apache-2.0
"""The reference of tests/run/scores.sh: log probabilities of continuations by transformers in float32, for the demo model.

usage: python tests/golden/scores.py jobs/demo/model >tests/golden/scores.tsv    (needs torch and transformers)

Tokens are divided as lm_eval.api.model.TemplateLM._encode_pair does. A line: context and continuation in JSON, tokens of the
continuation, the sum of their log probabilities, and whether each is the likeliest; separated by tabs.
"""
import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

CASES = [("Once upon", " a time"), ("Once upon", " a zebra"), ("Once upon a ", "time"), ("Once upon a  ", " time"), ("", "Once"),
         ("", " upon a time there was"), ("  ", "x"), ("There was a little", " girl who lived in a house"),
         ("There was a little", " girl who lived in a boat"), ("The cat sat\n", "and looked"), ("7 + 5 =", " 12"), ("7 + 5 =", " 13"),
         ("caf", "\u00e9 au lait"), ("\u3000\u00a0", "na\u00efve"), ("She said \"", "no\""), ("a" * 40, "b" * 9), ("One day", "."),
         ("The king and the queen " * 12, "went home"),
         ("The king went in", "then out")]

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
for context, continuation in CASES:
    blanks = len(context) - len(context.rstrip())
    head, tail = context[:len(context) - blanks], context[len(context) - blanks:] + continuation
    own = tokenizer.encode(head) if head else [first]
    ids, n = own + tokenizer.encode(head + tail, add_special_tokens=head != "")[len(own) if head else 0:], len(own)
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)[n - 1:-1]
    last = torch.tensor(ids[n:])
    total = scores[torch.arange(len(last)), last].double().sum().item()
    greedy = bool((scores.argmax(-1) == last).all())
    print(json.dumps(context), json.dumps(continuation), len(last), f"{total:.6f}", str(greedy).lower(), sep="\t")
