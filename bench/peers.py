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

PYTHON peers.py make NAME MODEL DEVICE [--layers N] makes such a folder: random BF16 weights in a shape of
`cake-mpi bench --shape`, or in N layers of it, without a tokenizer, a file for each layer. PYTHON peers.py gguf MODEL FILE
writes its weights for llama.cpp (families qwen3 and llama); gguf MODEL FILE SOURCE [bf16|q8_0|f32] runs the converter of
SOURCE, llama.cpp's source tree, instead, for all families that it has. Both need torch and transformers.
"""
import ast
import json
import math
import os
import random
import re
import statistics
import struct
import sys
import time
import zlib

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


def cut_config(name, layers):
    """As bench/shapes.c cuts it."""
    config = config_of(name)
    if not 1 <= layers <= config["num_hidden_layers"]:
        sys.exit(f"--layers {layers}: {name} has {config['num_hidden_layers']}")
    return {**config, "num_hidden_layers": layers}


# Families whose experts the hub stores as a tensor for each matrix; transformers has one tensor for all of a layer.
APART = ("qwen3_moe", "glm4_moe", "deepseek_v3", "glm4_moe_lite")
LESS_ONE = ("qwen3_5_text", "qwen3_5_moe_text")  # norms multiply by 1 + weight
FULL = ("A_log", "linear_attn.norm.weight", "e_score_correction_bias")  # F32 whatever the rest is
PIECE = 1 << 24


def hub_tensors(lm):
    """NAME, SHAPE of all that a folder holds, under the hub's names."""
    for name, value in lm.state_dict().items():
        stem, _, part = name.rpartition(".")
        if name == "lm_head.weight" and lm.config.tie_word_embeddings:
            continue
        if lm.config.model_type not in APART or part not in ("gate_up_proj", "down_proj"):
            yield name, list(value.shape)
            continue
        n, rows, columns = value.shape
        for expert in range(n):
            if part == "down_proj":
                yield f"{stem}.{expert}.down_proj.weight", [rows, columns]
            else:
                yield f"{stem}.{expert}.gate_proj.weight", [rows // 2, columns]
                yield f"{stem}.{expert}.up_proj.weight", [rows // 2, columns]


def value_range(name, shape, config):
    """What a tensor is filled with: the mean and the deviation of normal numbers. Products keep the scale of their input,
    and no bias prefers an expert, so that tokens spread evenly over experts."""
    if name.endswith("norm.weight"):
        return (0 if config.model_type in LESS_ONE and "linear_attn" not in name else 1), 0
    if name.endswith(("e_score_correction_bias", "router.bias")):
        return 0, 0
    if name.endswith(("A_log", "sinks")):
        return 0, 1
    if name.endswith("bias"):
        return 0, 0.02
    if "embed_tokens" in name and not config.tie_word_embeddings:
        return 0, 1
    fan_in = shape[-2] if config.model_type == "gpt_oss" and len(shape) == 3 else shape[-1]
    gain = 2 if "lm_head" in name or "embed_tokens" in name else 0.3 if "o_proj" in name or "out_proj" in name else 1
    return 0, gain / fan_in ** 0.5


def save_tensors(file, tensors, config, device):
    """A safetensors file, of which only a piece of a tensor is in memory at a time. The values depend on the name alone."""
    import torch

    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        kind, size = ("F32", 4) if name.endswith(FULL) else ("BF16", 2)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size * math.prod(shape)]}
        at += size * math.prod(shape)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    generator = torch.Generator(device)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        for name, shape in tensors:
            mean, deviation = value_range(name, shape, config)
            dtype = torch.float32 if name.endswith(FULL) else torch.bfloat16
            generator.manual_seed(zlib.crc32(name.encode()))
            for start in range(0, math.prod(shape), PIECE):
                piece = torch.empty(min(PIECE, math.prod(shape) - start), device=device)
                piece.normal_(mean, deviation, generator=generator) if deviation else piece.fill_(mean)
                out.write(piece.to(dtype).view(torch.uint8).cpu().numpy())
    return at


def save_model(settings, folder, device):
    """A folder as on the hub, a file for each layer and one for the rest."""
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(**settings)
    with torch.device("meta"):
        lm = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    config = lm.config
    config.architectures, config.dtype = [type(lm).__name__], torch.bfloat16
    # Fields that llama.cpp's converter reads and transformers has dropped.
    if config.model_type == "glm4_moe_lite":
        config.first_k_dense_replace = config.mlp_layer_types.count("dense")
    if config.model_type in ("deepseek_v3", "glm4_moe_lite"):
        config.scoring_func = "sigmoid"
    os.makedirs(folder, exist_ok=True)
    config.save_pretrained(folder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        saved = json.load(file)
    for key, value in settings.items():  # names of the hub that transformers 5 has replaced; not those of rope_parameters
        if not key.startswith("rope_"):
            saved.setdefault(key, value)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(saved, file, indent=1, sort_keys=True)
    files = {}
    for name, shape in hub_tensors(lm):
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        files.setdefault(int(layer[1]) + 1 if layer else 0, []).append((name, shape))
    where, size = {}, 0
    for number, tensors in sorted(files.items()):
        file = f"model-{number + 1:05}-of-{len(files):05}.safetensors"
        where.update((name, file) for name, _ in tensors)
        size += save_tensors(os.path.join(folder, file), tensors, config, device)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as out:
        json.dump({"metadata": {"total_size": size}, "weight_map": where}, out, indent=1)


def make(name, folder, device, *layers):
    if layers and (len(layers) != 2 or layers[0] != "--layers" or not layers[1].isdigit()):
        sys.exit("make NAME MODEL DEVICE [--layers N]")
    save_model(cut_config(name, int(layers[1])) if layers else config_of(name), folder, device)


GGUF_NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
              "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
              "o_proj": "attn_output", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate_proj": "ffn_gate",
              "up_proj": "ffn_up", "down_proj": "ffn_down"}
GGUF_F32, GGUF_BF16, GGUF_ALIGN = 0, 30, 32
GGUF_FAMILIES = ["qwen3", "llama"]


def gguf_name(name):
    *path, part, _ = name.split(".")
    return (f"blk.{path[2]}." if "layers" in path else "") + GGUF_NAMES[part] + ".weight"


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_value(value):
    number, form = {int: (4, "<I"), float: (6, "<f"), str: (8, "")}[type(value)]
    return struct.pack("<I", number) + (gguf_text(value) if form == "" else struct.pack(form, value))


def convert(folder, file, source, kind="bf16"):
    """llama.cpp's own converter, which asks for a tokenizer, without one."""
    sys.path[:0] = [source, os.path.join(source, "gguf-py")]
    import convert_hf_to_gguf as converter

    find = converter.get_model_class

    def no_tokens(model):
        model._set_vocab_none()
        if not any(key.endswith(".vocab_size") for key in model.gguf_writer.kv_data[0]):
            model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])

    def find_without_tokens(*names, **how):
        found = find(*names, **how)
        found.set_vocab = no_tokens
        found.no_mtp = True  # there are no layers that predict further tokens
        return found

    converter.get_model_class = find_without_tokens
    sys.argv = ["convert_hf_to_gguf.py", "--outtype", kind, "--outfile", file, folder]
    converter.main()


def gguf(folder, file, *converter):
    if converter:
        convert(folder, file, *converter)
    else:
        write_gguf(folder, file)


def write_gguf(folder, file):
    """Version 3 of the format. Vectors are float32, as llama.cpp wants them; there is no vocabulary but its size. Rows of q
    and k stay as they are, though llama.cpp turns pairs of llama's in another order: weights are random."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as config:
        arch = json.load(config).get("model_type")
    if arch not in GGUF_FAMILIES:
        sys.exit(f"{folder} is of family {arch}: only {' and '.join(GGUF_FAMILIES)} are written here; llama.cpp's own converter "
                 "has the others: peers.py gguf MODEL FILE SOURCE, where SOURCE is llama.cpp's source tree")
    import safetensors.torch
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
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
