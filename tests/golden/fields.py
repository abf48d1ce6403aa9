#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the fields that transformers has for generation_config.json, tokenizer_config.json and each family's config.json.

    python3 tests/golden/fields.py > tests/golden/fields.json

A family's fields are those of its config class, the old names that this class accepts, and the ones that the model's code
reads. A tokenizer's fields are the arguments of its constructors. tests/config/unsupported_fields.c compares them with the tables of
src/config/unsupported_fields.c and src/tokenizer/unsupported_fields.c, and with silent_fields.json.
"""
import dataclasses
import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import transformers
from transformers import (CodeLlamaTokenizer, GemmaTokenizer, GenerationConfig, GPT2Tokenizer, LlamaTokenizer, PreTrainedConfig,
                          PreTrainedTokenizerBase, Qwen2Tokenizer, masking_utils, modeling_rope_utils)
from transformers.models.qwen3_5.tokenization_qwen3_5 import Qwen3_5Tokenizer
from transformers.tokenization_utils_tokenizers import TokenizersBackend
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = sorted(set(re.findall(r'\.name = "([\w-]+)"', (ROOT / "src/config/arch.c").read_text())) | {"ministral3"})
TAKEN = re.compile(r'kwargs\.(?:pop|get)\("(\w+)"')
ASKED = re.compile(r'(?<!sub_)\bconfig\.([a-z]\w*)\b(?!\()|getattr\((?:self\.)?config, "([a-z]\w*)"')
SHARED = (masking_utils, modeling_rope_utils)
ALIASES = {"kimi_k2": "deepseek_v3"}  # transformers takes one for the other
# The rope parser's own words of old, and methods or parts of configs that ASKED takes for fields.
OLD = {"rope_theta", "rope_scaling", "partial_rotary_factor", "num_labels", "tie_last_hidden_states"}
NO_FIELDS = {"json", "default_theta", "get_text_config", "validate_rope", "standardize_rope_params", "kv_sharing_modes"}


def asked(module):
    return {a or b for a, b in ASKED.findall(inspect.getsource(module))} - NO_FIELDS


def fields(family):
    cls = CONFIG_MAPPING[ALIASES.get(family, family)]
    names = {f.name for f in dataclasses.fields(cls)} | set(cls.attribute_map) | set(cls.attribute_map.values()) | OLD
    for source in (cls, PreTrainedConfig.__post_init__):
        names |= set(TAKEN.findall(inspect.getsource(source)))
    for module in SHARED:
        names |= asked(module)
    modeling = import_module(cls.__module__.replace("configuration_", "modeling_"))
    source = inspect.getsource(modeling)
    for name, body in re.findall(r"\nclass (\w+).*?:\n(.*?)(?=\nclass |\Z)", source, re.S):
        if not re.search("Vision|Audio|Clippable|Projector|PatchMerger", name):
            names |= {a or b for a, b in ASKED.findall(body)} - NO_FIELDS
    return sorted(n for n in names if not n.startswith("_"))


def tokenizer():
    names = set()
    for cls in (PreTrainedTokenizerBase, TokenizersBackend, CodeLlamaTokenizer, GemmaTokenizer, GPT2Tokenizer, LlamaTokenizer,
                Qwen2Tokenizer, Qwen3_5Tokenizer):
        names |= set(TAKEN.findall(inspect.getsource(cls.__init__))) | set(inspect.signature(cls.__init__).parameters)
    return sorted(n for n in names - {"self", "kwargs", "args"} if not n.startswith("_"))


def main():
    generation = sorted(n for n in vars(GenerationConfig()) if not n.startswith("_"))
    lists = {"transformers": transformers.__version__, "generation": generation, "tokenizer": tokenizer()} | {f: fields(f) for f in FAMILIES}
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in lists.items())
    print("{" + rows + "}")


if __name__ == "__main__":
    main()
