# SPDX-License-Identifier: Apache-2.0
"""The reference of tests/run/scores.sh: log probabilities of continuations by transformers in float32, for the demo model.

usage: python tests/golden/scores.py jobs/demo/model >tests/golden/scores.tsv    (needs torch and transformers)

Tokens are divided as lm_eval.api.model.TemplateLM._encode_pair does. A line: context and continuation in JSON, tokens of the
continuation, the sum of their log probabilities, and whether each is the likeliest; separated by tabs. Without a context
(null) it is a text in windows of CONTEXT tokens, as lm_eval.utils.get_rolling_token_windows makes them.
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
CONTEXT = 64
STORY = "Once upon a time there was a little cat who lived in a house by the sea. "
TEXTS = ["Once upon a time", "x", STORY * 2, STORY * 9, "The cat sat. " * 90, "7 + 5 = 12\n" * 40]

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id


def scores_of(ids, n):
    """The sum for ids [n:], and whether each is the likeliest."""
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([ids[:-1]])).logits[0], -1)[n - 1:]
    last = torch.tensor(ids[n:])
    return scores[torch.arange(len(last)), last].double().sum().item(), bool((scores.argmax(-1) == last).all())


def windows(ids):
    """Windows of CONTEXT + 1 tokens, and from which token on each is scored."""
    done = 1
    while done < len(ids):
        end = min(len(ids), max(done + CONTEXT, CONTEXT + 1))
        begin = max(0, end - CONTEXT - 1)
        yield ids[begin:end], done - begin
        done = end


def show(context, continuation, n, parts):
    total, greedy = (sum(part[0] for part in parts), all(part[1] for part in parts))
    print(json.dumps(context), json.dumps(continuation), n, f"{total:.6f}", str(greedy).lower(), sep="\t")


for context, continuation in CASES:
    blanks = len(context) - len(context.rstrip())
    head, tail = context[:len(context) - blanks], context[len(context) - blanks:] + continuation
    own = tokenizer.encode(head) if head else [first]
    ids, n = own + tokenizer.encode(head + tail, add_special_tokens=head != "")[len(own) if head else 0:], len(own)
    show(context, continuation, len(ids) - n, [scores_of(ids, n)])
for text in TEXTS:
    ids = tokenizer.encode(text)
    ids = ids if ids[0] == first else [first] + ids
    show(None, text, len(ids) - 1, [scores_of(*window) for window in windows(ids)])
