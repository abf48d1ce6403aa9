# SPDX-License-Identifier: Apache-2.0
"""Compares the demo's greedy answers with those of transformers: demo.py [RESULTS]

RESULTS (default jobs/demo/expected.jsonl) is what cake-mpi wrote for jobs/demo/prompts.jsonl. Each greedy request
is answered again by transformers in float64; text, finish_reason and both counts of tokens must be the same.
Sampled requests (temperature above 0, top_k not 1) are only counted. Needs torch and transformers 5.
Exit status 1 if an answer differs.
"""
import json, pathlib, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

demo = pathlib.Path(__file__).resolve().parents[2] / "jobs" / "demo"
results = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else demo / "expected.jsonl"
tokenizer = AutoTokenizer.from_pretrained(demo / "model")
model = AutoModelForCausalLM.from_pretrained(demo / "model", dtype=torch.float64)
EOS = (0, 2)


def prompt_ids(body):
    if "messages" not in body:
        prompt = body["prompt"]
        return prompt if isinstance(prompt, list) else tokenizer.encode(prompt, add_special_tokens=False)
    messages = [{**m, "content": m["content"] if isinstance(m["content"], str)
                 else "".join(part["text"] for part in m["content"])} for m in body["messages"]]
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)


@torch.no_grad()
def answer(body):
    """text, finish_reason, prompt_tokens, completion_tokens and the smallest lead of a best score."""
    ids = prompt_ids(body)
    stops = body.get("stop") or []
    stops = [stops] if isinstance(stops, str) else stops
    most = body.get("max_tokens") or body.get("max_completion_tokens") or model.config.max_position_embeddings - len(ids)
    out, past, lead, x = [], None, float("inf"), torch.tensor([ids])
    while True:
        r = model(x, past_key_values=past, use_cache=True)
        past, best = r.past_key_values, r.logits[0, -1].topk(2)
        lead = min(lead, float(best.values[0] - best.values[1]))
        out.append(int(best.indices[0]))
        text = tokenizer.decode(out, skip_special_tokens=True)
        cuts = [text.find(s) for s in stops if s in text]
        if cuts or out[-1] in EOS or len(out) == most:
            finish = "stop" if cuts or out[-1] in EOS else "length"
            return text[:min(cuts)] if cuts else text, finish, len(ids), len(out), lead
        x = torch.tensor([out[-1:]])


def given(line):
    """The same four of one result."""
    body = line["response"]["body"] if "custom_id" in line else line
    if body is None or "error" in body and body["error"]:
        return body, None, None, None
    choice = body["choices"][0] if "choices" in body else body
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return text, choice["finish_reason"], body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]


requests = [json.loads(line) for line in open(demo / "prompts.jsonl", encoding="utf-8")]
lines = [json.loads(line) for line in open(results, encoding="utf-8")]
assert len(requests) == len(lines), f"{len(requests)} requests, {len(lines)} results"
greedy = same = sampled = 0
least = float("inf")
for request, line in zip(requests, lines):
    name = request.get("custom_id") or request["id"]
    assert name == (line.get("custom_id") or line["id"]), f"{name}: the result is that of another request"
    body = request.get("body", request)
    if body.get("temperature", 0) > 0 and body.get("top_k") != 1:
        sampled += 1
        continue
    *expected, lead = answer(body)
    greedy += 1
    least = min(least, lead)
    if expected == list(given(line)):
        same += 1
    else:
        print(f"{name}: smallest lead {lead:.3f}\n  transformers {expected}\n  cake-mpi     {list(given(line))}")
print(f"{same} of {greedy} greedy answers are those of transformers (smallest lead {least:.3f}); {sampled} sampled")
sys.exit(same != greedy)
