#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cake-mpi with transformers in float64 on random members of each family: sizes, windows, rotary embeddings,
caps and biases drawn by a seed. Run by hand, with what models.py needs:

    python3 tests/golden/families.py CAKE_MPI [FAMILY [COUNT [SEED]]]

Prints a line for each model, and the models that differ by more than the golden models may.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import models

LENGTHS = [(3, 6), (60, 10), (130, 6)]


def longrope(rng, half):
    return {"rope_type": "longrope", "short_factor": [round(rng.uniform(1, 1.5), 3) for _ in range(half)],
            "long_factor": [round(rng.uniform(1, 20), 3) for _ in range(half)], "original_max_position_embeddings": 64}


def rope(rng, half, kinds=("default", "linear", "llama3", "yarn", "dynamic", "longrope")):
    kind = rng.choice(kinds)
    theta = rng.choice([100.0, 10000.0, 500000.0])
    out = {"default": {"rope_type": "default"}, "linear": {"rope_type": "linear", "factor": rng.choice([2.0, 8.0])},
           "llama3": dict(models.LLAMA3), "dynamic": {"rope_type": "dynamic", "factor": rng.choice([2.0, 4.0])},
           "yarn": {**models.YARN, **rng.choice([{}, {"truncate": False}, {"attention_factor": 1.1}, {"beta_fast": 8}])},
           "longrope": longrope(rng, half)}[kind]
    return {**out, "rope_theta": theta}


def old(rng, spec):
    """Rotary parameters as transformers 4 wrote them."""
    parameters = spec.pop("rope_parameters")
    if "full_attention" in parameters:
        sliding = parameters["sliding_attention"]
        parameters = parameters["full_attention"]
        spec["rope_local_base_freq"] = sliding["rope_theta"]
    spec["rope_theta"] = parameters.pop("rope_theta")
    if "partial_rotary_factor" in parameters:
        spec["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    layered = "rope_local_base_freq" in spec  # there transformers 5 overlooks "type"; here it is read
    if parameters["rope_type"] != "default" and not layered and rng.random() < 0.5:
        parameters["type"] = parameters.pop("rope_type")
    spec["rope_scaling"] = parameters if len(parameters) > 1 else None


def types(rng, n):
    return [rng.choice(["full_attention", "sliding_attention"]) for _ in range(n)]


def experts(rng, family, layers):
    """Numbers of experts, as the family's config.json has them."""
    n = rng.choice([3, 6, 8, 12])
    chosen, width = rng.randint(1, min(n, 4)), rng.choice([7, 16, 21])
    spec = {"num_experts_per_tok": chosen}
    if family in ("mixtral", "minimax_m2", "gpt_oss"):
        return {**spec, "num_local_experts": n}  # intermediate_size is that of an expert
    if family == "olmoe":
        return {**spec, "num_experts": n, "norm_topk_prob": rng.random() < 0.5}
    spec["moe_intermediate_size"] = width
    if family in ("glm4_moe", "deepseek_v3", "glm4_moe_lite"):
        groups = rng.choice([g for g in (1, 2, 3, 4) if n % g == 0 and n // g >= 2])
        kept = rng.randint(1, groups)
        return {**spec, "num_experts_per_tok": min(chosen, kept * (n // groups)), "n_routed_experts": n,
                "n_shared_experts": rng.choice([1, 2]), "n_group": groups, "topk_group": kept,
                "routed_scaling_factor": rng.choice([1.0, 2.5]), "norm_topk_prob": rng.random() < 0.7,
                **({"mlp_layer_types": [rng.choice(["dense", "sparse"]) for _ in range(layers)]} if family == "glm4_moe_lite"
                   else {"first_k_dense_replace": rng.choice([0, 1, layers])}),
                **({"use_qk_norm": rng.random() < 0.5} if family == "glm4_moe" else {})}
    spec["num_experts"] = n
    if family in ("qwen3_next", "qwen3_5_moe_text"):
        spec["shared_expert_intermediate_size"] = rng.choice([5, 16])
    if family in ("qwen3_moe", "qwen3_next"):
        spec.update(norm_topk_prob=rng.random() < 0.5, decoder_sparse_step=rng.choice([1, 1, 2]),
                    mlp_only_layers=rng.choice([[], [0], [1]]))
    return spec


def gemma4(rng, family, spec, heads, window):
    """Adds Gemma 4's fields to a spec, of which only some are in use; returns the rotary parameters."""
    layers, experts = spec["num_hidden_layers"], rng.choice([3, 6, 9])
    spec.update(old=False, hidden_act=None, hidden_activation=rng.choice(["gelu_pytorch_tanh", "silu"]),
                sliding_window=window or 50, attention_bias=rng.random() < 0.5, hidden_size_per_layer_input=0,
                final_logit_softcapping=rng.choice([None, 4.0, 30.0]), attention_k_eq_v=rng.random() < 0.6,
                num_global_key_value_heads=rng.choice([None, *[n for n in (1, 2, 3) if heads % n == 0]]),
                global_head_dim=rng.choice([6, 8, 14, 32, 64]), use_bidirectional_attention=rng.choice([None, "vision"]))
    if rng.random() < 0.7:
        spec.update(layer_types=types(rng, layers))
    if rng.random() < 0.2:
        spec.update(per_layer_config={})
    if family == "gemma4_text" and rng.random() < 0.6:
        spec.update(enable_moe_block=True, num_experts=experts, top_k_experts=rng.randint(1, experts),
                    moe_intermediate_size=rng.choice([7, 16, 21]))
    full = rng.choice([rope(rng, 3, ("default", "linear", "llama3")), models.proportional(0.25, 1e4, 0)["full_attention"],
                       {**models.proportional(rng.choice([0.1, 0.5, 1.0]), 500.0, 0)["full_attention"], "factor": 2.0}])
    if rng.random() < 0.3:
        return None  # the family's own
    return {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([100.0, 1e4])}}


def draw(rng, family):
    n_kv, group, layers = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([2, 3, 4])
    head_dim = rng.choice([4, 8, 10, 16, 20, 34])
    fixed = family in ("phi3", "smollm3", "olmo2", "olmo3", "olmoe")  # head_dim is dim / heads in their files
    spec = dict(small=True, dtype=rng.choice(["float32", "float32", "bfloat16"]), files=rng.choice([1, 2]),
                old=rng.random() < 0.5, model_type=family, num_hidden_layers=layers, num_attention_heads=n_kv * group,
                num_key_value_heads=n_kv, hidden_size=n_kv * group * head_dim if fixed else 12 * n_kv * group,
                intermediate_size=rng.choice([20, 31, 40]), tie_word_embeddings=rng.random() < 0.5)
    if not fixed:
        spec["head_dim"] = head_dim
    window = rng.choice([1, 7, 33, 64, 65, 100, None])
    parameters = rope(rng, head_dim // 2)
    if family == "ministral3":
        spec.update(old=False)
        parameters = {**models.YARN, "rope_theta": 1e4, "mscale": 1.0, "mscale_all_dim": rng.choice([0.5, 1.0]),
                      "llama_4_scaling_beta": rng.choice([0.1, 0.4])}
    if family in ("llama", "smollm3"):
        spec.update(attention_bias=rng.random() < 0.5, mlp_bias=rng.random() < 0.5)
    if family in ("qwen3", "olmo2", "olmo3", "gemma2", "gemma3_text"):
        spec.update(attention_bias=rng.random() < 0.5)
    if family in ("qwen2", "qwen3"):
        spec.update(use_sliding_window=rng.random() < 0.7, sliding_window=window, max_window_layers=rng.choice([0, 1, 2]))
    if family in ("mistral", "ministral", "ministral3", "phi3"):
        spec.update(sliding_window=window)
    if family == "ministral" and window and rng.random() < 0.7:
        spec.update(layer_types=types(rng, layers))
    if family in ("gemma2", "gemma3_text", "olmo3", "exaone4"):
        spec.update(sliding_window=window or 50)
        if rng.random() < 0.5:
            spec.update(layer_types=types(rng, layers))
    if family in ("gemma3_text", "exaone4") and "layer_types" not in spec:
        spec.update(sliding_window_pattern=rng.choice([2, 3]))
    if family in ("gemma2", "gemma3_text"):
        spec.update(hidden_act=None, hidden_activation=rng.choice(["gelu_pytorch_tanh", "silu"]),
                    query_pre_attn_scalar=rng.choice([4, 16, 50]),
                    final_logit_softcapping=rng.choice([None, 4.0, 30.0]))
    if family == "gemma2":
        spec.update(attn_logit_softcapping=rng.choice([None, 1.0, 50.0]))
    if family in ("gemma3_text", "olmo3"):
        base = 10000.0 if family == "gemma3_text" else 500000.0
        parameters = {"full_attention": rope(rng, head_dim // 2, ("default", "linear", "yarn")),
                      "sliding_attention": {"rope_type": "default", "rope_theta": base}}
        if "truncate" in parameters["full_attention"]:
            del parameters["full_attention"]["truncate"]  # transformers looks for it in the wrong place
    if family == "phi3":
        part = rng.choice([1.0, 0.75, 0.5])
        half = int(head_dim * part) // 2
        if int(head_dim * part) % 2:
            part, half = 1.0, head_dim // 2
        parameters = rng.choice([{"rope_type": "default"}, longrope(rng, half)])
        parameters = {**parameters, "rope_theta": 10000.0, "partial_rotary_factor": part}
        spec.update(original_max_position_embeddings=64)
    if family in ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"):
        key = rng.choice([1, 2, 3])
        spec.update(models.linear(key, key * rng.choice([1, 2]), rng.choice([4, 10, 16]), rng.choice([5, 8, 16]),
                                  rng.choice([2, 4])), full_attention_interval=rng.choice([2, 3]))
        parameters = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": rng.choice([0.25, 0.5, 1.0])}
    if family in models.GEMMA4:
        parameters = gemma4(rng, family, spec, n_kv * group, window)
    elif family in models.MIXTURES:
        spec.update(experts(rng, family, layers))
    if family in ("qwen3_moe", "glm4_moe", "gpt_oss", "olmoe"):
        spec.update(attention_bias=rng.random() < 0.5)
    if family == "qwen3_moe":
        spec.update(use_sliding_window=rng.random() < 0.5, sliding_window=window or 50)
    if family in ("mixtral", "gpt_oss"):
        spec.update(sliding_window=(window or 50) if family == "gpt_oss" else window)
    if family == "gpt_oss" and rng.random() < 0.5:
        spec.update(layer_types=types(rng, layers), swiglu_limit=rng.choice([0.7, 7.0]))
    if family in ("glm4_moe", "minimax_m2"):
        parameters = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": rng.choice([0.5, 1.0])}
    if family in ("deepseek_v3", "glm4_moe_lite"):
        heads, turned = rng.choice([1, 3, 4, 6]), rng.choice([2, 4, 10, 16])
        spec.update(num_attention_heads=heads, num_key_value_heads=heads, qk_rope_head_dim=turned,
                    qk_nope_head_dim=rng.choice([1, 7, 16]), v_head_dim=rng.choice([3, 12, 40]),
                    kv_lora_rank=rng.choice([4, 15, 33, 64]), q_lora_rank=rng.choice([None, 5, 18]),
                    rope_interleave=rng.random() < 0.6, attention_bias=rng.random() < 0.4)
        del spec["head_dim"]
        parameters = rope(rng, turned // 2, ("default", "yarn"))
        if parameters["rope_type"] == "yarn":
            parameters.update(rng.choice([{}, {"mscale": 1.0, "mscale_all_dim": 0.8}, {"mscale_all_dim": 1.0}]))
        if family == "deepseek_v3":
            spec.update(num_mtp_layers=0)
    if family == "apertus":
        spec.update(hidden_act="xielu")
    if family == "smollm3":
        spec.update(no_rope_layers=[rng.choice([0, 1]) for _ in range(layers)] if rng.random() < 0.5 else None,
                    no_rope_layer_interval=rng.choice([2, 3]), use_sliding_window=rng.random() < 0.5, sliding_window=window)
    if parameters is None:
        return {**spec, "cache": False}
    spec["rope_parameters"] = parameters
    kinds = [p.get("rope_type") for p in (parameters, parameters.get("full_attention", {})) if p]
    spec["cache"] = bool({"dynamic", "longrope"} & set(kinds))
    if spec["cache"] and spec.get("sliding_window") == 1:
        spec["sliding_window"] = 2  # transformers' cache for a window of 1 keeps everything
    if parameters.get("rope_type") == "dynamic":
        spec["max_position_embeddings"] = 80
    if spec["old"]:
        old(rng, spec)
    return spec


def differ(cake, path):
    out = path / "out.jsonl"
    run = subprocess.run([cake, "run", "-m", str(path), "-i", str(path / "requests.jsonl"), "-o", str(out), "-q", "--force"],
                         capture_output=True, text=True)
    if run.returncode:
        return f"status {run.returncode}: {run.stderr.strip()[:300]}"
    expected = json.loads((path / "expected.json").read_text())
    found = {r["id"]: r for r in map(json.loads, out.read_text().splitlines())}
    worst = 0
    for sequence in expected["sequences"]:
        result = found[sequence["id"]]
        for i, (mine, theirs) in enumerate(zip(result["token_ids"], sequence["ids"])):
            if mine != theirs:
                worst = max(worst, sequence["gaps"][i] / 2)
                break
            worst = max(worst, abs(result["logprobs"]["token_logprobs"][i] - sequence["logprobs"][i]))
    return worst


def main(cake, family=None, count=10, seed=1):
    models.SHORT = LENGTHS
    bad = 0
    for name in [family] if family else [f for f in models.CLASSES if f not in ("gemma3", "gemma4", "gemma4_unified", "mistral3", "qwen3_5", "qwen3_5_moe")]:
        for i in range(int(count)):
            spec = draw(random.Random(f"{seed}-{name}-{i}"), name)
            with tempfile.TemporaryDirectory() as folder:
                models.HERE = Path(folder)
                try:
                    models.make("m", spec)
                except (ValueError, TypeError, KeyError) as e:  # what transformers does not take either
                    print(f"{name} {i}: not a model: {str(e)[:120]}")
                    continue
                off = differ(cake, Path(folder) / "m")
                # attention may be sharp here, and then a KV cache in BF16 shows more than in the golden models
                good = not isinstance(off, str) and off < (1e-4 if spec["dtype"] == "float32" else 0.25)
                bad += not good
                print(f"{name} {i}: {off}{'' if good else ' DIFFERS ' + json.dumps(spec)}", flush=True)
    print(f"{bad} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
