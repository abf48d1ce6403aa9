#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs engines that are Python packages, for bench/compare:
PYTHON peers.py ENGINE MODEL THREADS DEVICE PRECISION IDS SHAPE...

ENGINE is openvino (OpenVINO GenAI; MODEL comes from optimum-cli, PRECISION is f32, or default for what the package takes),
vllm, torch (transformers' own model and generate) or torch-compiled (with a static cache, which generate compiles on GPUs).
For all but openvino MODEL is a Hugging Face folder and PRECISION bfloat16 or float32. DEVICE is cpu or cuda, IDS the size of
the vocabulary, SHAPE is WHAT,SEQUENCES,PROMPT,GENERATED. Prints "version V", then "SHAPE TOKENS_PER_S" for each: prompt
tokens if WHAT is prefill, generated ones after the first if it is decode, else both. The model is loaded once and warm;
prompts are random token ids. On a GPU each shape runs once to warm up, then three times; the median counts.

PYTHON peers.py make NAME MODEL DEVICE makes such a folder: random BF16 weights in a shape of `cake-mpi bench --shape`,
without a tokenizer. PYTHON peers.py gguf MODEL FILE writes its weights for llama.cpp (families qwen3 and llama).
Both need torch and transformers.
"""
import ast
import json
import os
import random
import re
import statistics
import struct
import sys
import time

SEQUENCES, CHUNK, CACHE_GB = 64, 2048, 2


def openvino(model, threads, device, precision):
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


def vllm(model, threads, device, precision):
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    settings = {"skip_tokenizer_init": True}
    if device == "cpu":
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(CACHE_GB))
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
        settings = {"enforce_eager": True, "max_num_batched_tokens": CHUNK}
    import vllm

    llm = vllm.LLM(model=model, dtype=precision, enable_prefix_caching=False, max_model_len=1024, max_num_seqs=SEQUENCES,
                   **settings)

    def generate(prompts, generated):
        params = vllm.SamplingParams(max_tokens=generated, ignore_eos=True, temperature=0, detokenize=False)
        llm.generate([{"prompt_token_ids": ids} for ids in prompts], params, use_tqdm=False)

    return vllm.__version__, generate


def torch(model, threads, device, precision, static=False):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(threads)
    lm = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, precision),
                                                           attn_implementation="sdpa").to(device).eval()
    how = {"compile_config": transformers.CompileConfig(dynamic=False)} if static else {}
    lm.generation_config = transformers.GenerationConfig(do_sample=False, pad_token_id=0, **how)  # no token ends an answer
    caches = {}

    def cache(n, length):
        if (n, length) not in caches:
            caches[n, length] = transformers.StaticCache(config=lm.config, max_cache_len=length)
        caches[n, length].reset()
        return {"past_key_values": caches[n, length]}

    @torch.no_grad()
    def generate(prompts, generated):
        ids = torch.tensor(prompts, device=device)
        n, length = ids.shape
        if generated == 1:
            lm(ids, logits_to_keep=1).logits.argmax(-1).tolist()
            return
        kept = cache(n, length + generated) if static else {}
        answer = lm.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=generated, **kept)
        assert len(answer.tolist()[0]) == length + generated
        if device == "cuda":
            torch.cuda.synchronize()

    return torch.__version__.split("+")[0] + "/" + transformers.__version__, generate


def torch_compiled(*how):
    return torch(*how, static=True)


ENGINES = {"openvino": openvino, "vllm": vllm, "torch": torch, "torch-compiled": torch_compiled}


def config_of(name):
    """The config.json of a shape, as bench/shapes.c has it: strings of C, and those of Python, too."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.c"), encoding="utf-8") as file:
        shapes = dict(re.findall(r'\{"([^"]+)",((?:\s*"(?:[^"\\]|\\.)*")+)\}', file.read()))
    if name not in shapes:
        sys.exit(f"{name} is no shape: there are {', '.join(shapes)}")
    return json.loads(ast.literal_eval(f"({shapes[name]})"))


def make(name, folder, device):
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(**config_of(name))
    with torch.device(device):
        lm = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    lm.save_pretrained(folder)


GGUF_NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
              "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
              "o_proj": "attn_output", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate_proj": "ffn_gate",
              "up_proj": "ffn_up", "down_proj": "ffn_down"}
GGUF_F32, GGUF_BF16, GGUF_ALIGN = 0, 30, 32


def gguf_name(name):
    *path, part, _ = name.split(".")
    return (f"blk.{path[2]}." if "layers" in path else "") + GGUF_NAMES[part] + ".weight"


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_value(value):
    number, form = {int: (4, "<I"), float: (6, "<f"), str: (8, "")}[type(value)]
    return struct.pack("<I", number) + (gguf_text(value) if form == "" else struct.pack(form, value))


def gguf(folder, file):
    """Version 3 of the format. Vectors are float32, as llama.cpp wants them; there is no vocabulary but its size. Rows of q
    and k stay as they are, though llama.cpp turns pairs of llama's in another order: weights are random."""
    import safetensors.torch
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    arch = config.model_type
    metadata = {"general.architecture": arch, "tokenizer.ggml.model": "none"}
    metadata.update({f"{arch}.{key}": value for key, value in {
        "vocab_size": config.vocab_size, "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size, "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers, "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads, "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim, "rope.dimension_count": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": float(config.rope_parameters["rope_theta"])}.items()})
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors.update(safetensors.torch.load_file(os.path.join(folder, name)))
    head, at = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)), 0
    head += b"".join(gguf_text(key) + gguf_value(value) for key, value in metadata.items())
    for name, tensor in tensors.items():
        kind, size = (GGUF_F32, 4) if tensor.dim() == 1 else (GGUF_BF16, 2)
        head += gguf_text(gguf_name(name)) + struct.pack(f"<I{tensor.dim()}QIQ", tensor.dim(), *reversed(tensor.shape), kind, at)
        at += -(-size * tensor.numel() // GGUF_ALIGN) * GGUF_ALIGN
    with open(file, "wb") as out:
        for piece in [head, *tensors.values()]:
            if piece is not head:
                piece = (piece.float() if piece.dim() == 1 else piece.bfloat16()).contiguous().view(torch.uint8).numpy().tobytes()
            out.write(piece + bytes(-len(piece) % GGUF_ALIGN))


COMMANDS = {"make": make, "gguf": gguf}


def seconds(generate, ids, n, length, generated):
    prompts = [[random.randrange(ids) for _ in range(length)] for _ in range(n)]
    start = time.perf_counter()
    generate(prompts, generated)
    return time.perf_counter() - start


def main():
    if sys.argv[1] in COMMANDS:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
        return
    engine, model, threads, device, precision, ids, *shapes = sys.argv[1:]
    ids = int(ids)
    warm, tries = (1, 3) if device == "cuda" else (0, 1)
    version, generate = ENGINES[engine](model, int(threads), device, precision)
    print("version", version, flush=True)
    if not warm:
        seconds(generate, ids, 2, 64, 4)

    def median(n, length, generated):
        for _ in range(warm):
            seconds(generate, ids, n, length, generated)
        return statistics.median(seconds(generate, ids, n, length, generated) for _ in range(tries))

    for shape in shapes:
        what, *sizes = shape.split(",")
        n, length, generated = map(int, sizes)
        before = median(n, length, 1) if what == "decode" else 0
        tokens = {"prefill": n * length, "decode": n * (generated - 1)}.get(what, n * (length + generated))
        print(shape, round(tokens / (median(n, length, generated) - before), 2), flush=True)


if __name__ == "__main__":  # vllm starts processes that import this file
    main()
