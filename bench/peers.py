#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/compare asks of engines that are Python packages: PYTHON peers.py ENGINE MODEL THREADS PRECISION SHAPE...

ENGINE is openvino (OpenVINO GenAI; MODEL comes from optimum-cli, PRECISION is f32, or default for what the package takes)
or vllm (MODEL is a Hugging Face folder, PRECISION bfloat16 or float32). SHAPE is WHAT,SEQUENCES,PROMPT,GENERATED.
Prints "version V", then "SHAPE TOKENS_PER_S" for each: of prompt tokens if WHAT is prefill, of generated ones after the
first if it is decode, else of both. The model is loaded once and warm; prompts are random token ids.
"""
import os
import random
import sys
import time

SEQUENCES, CHUNK, CACHE_GB = 64, 2048, 2


def openvino(model, threads, precision):
    import numpy
    import openvino as ov
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = CACHE_GB
    scheduler.max_num_batched_tokens = CHUNK
    scheduler.max_num_seqs = SEQUENCES
    scheduler.enable_prefix_caching = False
    hint = {} if precision == "default" else {"INFERENCE_PRECISION_HINT": precision}
    pipe = genai.LLMPipeline(model, "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=threads, **hint)

    def generate(prompts, generated):
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = generated, True, False
        ids = numpy.array(prompts, dtype=numpy.int64)
        pipe.generate(genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(numpy.ones_like(ids))), config)

    return genai.__version__.split("-")[0], generate


def vllm(model, threads, precision):
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(CACHE_GB))
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
    import vllm

    llm = vllm.LLM(model=model, dtype=precision, enforce_eager=True, enable_prefix_caching=False, max_model_len=1024,
                   max_num_seqs=SEQUENCES, max_num_batched_tokens=CHUNK)

    def generate(prompts, generated):
        params = vllm.SamplingParams(max_tokens=generated, ignore_eos=True, temperature=0, detokenize=False)
        llm.generate([{"prompt_token_ids": ids} for ids in prompts], params, use_tqdm=False)

    return vllm.__version__, generate


def seconds(generate, ids, n, length, generated):
    prompts = [[random.randrange(ids) for _ in range(length)] for _ in range(n)]
    start = time.perf_counter()
    generate(prompts, generated)
    return time.perf_counter() - start


def main():
    engine, model, threads, precision, ids, *shapes = sys.argv[1:]
    ids = int(ids)
    version, generate = {"openvino": openvino, "vllm": vllm}[engine](model, int(threads), precision)
    print("version", version, flush=True)
    seconds(generate, ids, 2, 64, 4)
    for shape in shapes:
        what, *sizes = shape.split(",")
        n, length, generated = map(int, sizes)
        before = seconds(generate, ids, n, length, 1) if what == "decode" else 0
        tokens = {"prefill": n * length, "decode": n * (generated - 1)}.get(what, n * (length + generated))
        print(shape, round(tokens / (seconds(generate, ids, n, length, generated) - before), 2), flush=True)


if __name__ == "__main__":  # vllm starts processes that import this file
    main()
