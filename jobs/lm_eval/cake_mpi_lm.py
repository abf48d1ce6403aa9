#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EleutherAI's lm-evaluation-harness with cake-mpi: requests go into a file, one command answers them all.

usage: python cake_mpi_lm.py --model cake-mpi --model_args model=MODEL,command="mpirun -np 4 cake-mpi" --tasks arc_easy ...

Takes all options of lm_eval. Keys of --model_args:
  model       as cake-mpi's -m
  command     what runs the program [cake-mpi], such as "srun cake-mpi" or "mpirun -np 4 cake-mpi"
  submit      instead of command: a job script that takes MODEL PROMPTS RESULTS [OPTION...], with what submits it and waits:
              "sbatch --wait jobs/batch.sbatch"
  options     further options of cake-mpi, such as "--dtype f32 --threads 8"
  directory   keeps requests and results here, so that the same evaluation goes on where it was stopped [a temporary one]
  max_gen_toks  longest answer of tasks that do not say [256]
A BOS token that the tokenizer itself puts before a text is not scored in rolling windows, unlike by lm_eval's own models.
"""
import hashlib
import json
import os
import shlex
import subprocess
import tempfile

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs

UNFINISHED, SOME_FAILED = 75, 3  # exit statuses
MAX_STOP = 16


@register_model("cake-mpi")
class CakeMPI(LM):
    def __init__(self, model, command="cake-mpi", submit="", options="", directory="", max_gen_toks=256, **_):
        super().__init__()
        self.model, self.options = model, shlex.split(options)
        self.command, self.submit = shlex.split(command), shlex.split(submit)
        self.max_gen_toks = int(max_gen_toks)
        self.temporary = None if directory else tempfile.TemporaryDirectory(prefix="cake-mpi-")
        self.directory = directory or self.temporary.name
        self.tokenizer = None
        os.makedirs(self.directory, exist_ok=True)

    def ask(self, lines, *options):
        """The results of request lines, in their order."""
        if not lines:
            return []
        text = "".join(json.dumps({"id": i, **line}) + "\n" for i, line in enumerate(lines))
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        prompts, results = (os.path.join(self.directory, f"{name}.{end}.jsonl") for end in ("prompts", "results"))
        with open(prompts, "w", encoding="utf-8") as out:
            out.write(text)
        rest = [*options, *self.options]
        run = ([*self.submit, self.model, prompts, results, *rest] if self.submit else
               [*self.command, "run", "-m", self.model, "-i", prompts, "-o", results, *rest])
        while (status := subprocess.run(run).returncode) == UNFINISHED and not self.submit:
            pass
        if status not in (0, SOME_FAILED):
            raise RuntimeError(f"{shlex.join(run)} ended with status {status}")
        with open(results, encoding="utf-8") as file:
            answers = [json.loads(line) for line in file]
        for answer in answers:
            if "error" in answer:
                raise RuntimeError(f"{prompts}: line {answer['index'] + 1}: {answer['error']['message']}")
        return answers

    def loglikelihood(self, requests, disable_tqdm=False):
        # equal contexts stand together, so that each is computed once
        order = sorted(range(len(requests)), key=lambda i: requests[i].args[0])
        answers = self.ask([{"context": requests[i].args[0], "continuation": requests[i].args[1], "truncate_prompt_tokens": -1}
                            for i in order])
        scores = dict(zip(order, ((answer["logprob"], answer["is_greedy"]) for answer in answers)))
        return self.keep("loglikelihood", requests, [scores[i] for i in range(len(requests))])

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        texts = [request.args[0] for request in requests]
        answers = iter(self.ask([{"prompt": text} for text in texts if text], "--task", "score"))
        return self.keep("loglikelihood_rolling", requests, [next(answers)["logprob"] if text else 0.0 for text in texts])

    def generate_until(self, requests, disable_tqdm=False):
        lines, stops = [], []
        for context, given in (request.args for request in requests):
            given = normalize_gen_kwargs(given, self.max_gen_toks)
            stops.append([end for end in given.pop("until", None) or [] if end])
            line = {"prompt": context, "stop": stops[-1][:MAX_STOP], "truncate_prompt_tokens": -1,
                    "max_tokens": given.pop("max_gen_toks")}
            if self.begins(context):
                line["add_special_tokens"] = False
            temperature = given.pop("temperature", 1.0)
            line["temperature"] = temperature if given.pop("do_sample") else 0
            lines.append({**line, **{key: value for key, value in given.items() if value is not None}})
        texts = [answer["text"] for answer in self.ask(lines)]
        for i, stop in enumerate(stops):
            for end in stop[MAX_STOP:]:
                texts[i] = texts[i].split(end)[0]
        return self.keep("generate_until", requests, texts)

    def keep(self, what, requests, results):
        for request, result in zip(requests, results):
            self.cache_hook.add_partial(what, request.args, result)
        return results

    # ---- chat templates, with transformers

    def load_tokenizer(self):
        if not self.tokenizer:
            from transformers import AutoTokenizer
            self.tokenizer = AutoTokenizer.from_pretrained(self.model)
        return self.tokenizer

    def begins(self, text):
        """Whether a rendered chat has the BOS token already."""
        bos = self.tokenizer.bos_token if self.tokenizer else None
        return bool(bos) and text.startswith(bos)

    @property
    def tokenizer_name(self):
        return self.model.replace("/", "__")

    def chat_template(self, chat_template=False):
        return (self.load_tokenizer().chat_template or "") if chat_template else ""

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return self.load_tokenizer().apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt)


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
