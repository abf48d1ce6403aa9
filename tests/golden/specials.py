#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the companion files of a tokenizer.json with transformers' AutoTokenizer, an independent implementation.

    python3 tests/golden/specials.py make                 writes tests/golden/specials.json
    python3 tests/golden/specials.py CODEC [N [SEED]]     N (300) random directories through `CODEC DIR`

Effects of tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json on a small tokenizer: texts
that become tokens, their ids, tokens that decoding leaves out, and the variables of templates.
"""
import json
import logging
import random
import sys
import tempfile
from pathlib import Path

from transformers import AutoTokenizer
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tokenizer as golden  # noqa: E402

logging.disable(logging.CRITICAL)

NAMED = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token", "own_token"]
POOL = ["<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<new>", "<x>", "the", "lower", "a", "\u00e9", "[Y]", "word",
        "<|", " x", "\n", "A\u030a"]
TEMPLATE = "".join("{{ '[' }}{{ %s if %s is defined else '-' }}{{ ']' }}" % (n, n) for n in NAMED + ["mine"])


def bases():
    """Name, and the tokenizer.json that classes with a constructor of their own would build of its model."""
    plain = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    level = golden.level(use_regex=False)
    yield "bytes", plain | {
        "normalizer": {"type": "NFC"}, "pre_tokenizer": golden.sequence("pretokenizers", golden.split({"Regex": PRETOKENIZE_REGEX}), level),
        "post_processor": level, "decoder": golden.level(), "model": golden.BYTES}
    yield "spelled", plain | {
        "normalizer": None, "pre_tokenizer": golden.meta(prepend_scheme="first", split=False), "post_processor": None,
        "decoder": golden.sequence("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                   {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
        "model": golden.bpe(["<unk>", "<s>", "</s>"] + golden.LETTERS[:-1] + golden.BYTE_TOKENS, golden.SPELLED, fuse_unk=True, byte_fallback=True)}


BASES = dict(bases())


def flags(r, **more):
    return {k: r.random() < 0.3 for k in ("lstrip", "rstrip", "single_word", "normalized")} | {"special": r.random() < 0.6} | more


def value(r, typed=True):
    text = r.choice(POOL)
    return text if r.random() < 0.7 else flags(r, content=text) | ({"__type": "AddedToken"} if typed else {})


def named(r, typed=True):
    out = {n: value(r, typed) for n in NAMED if r.random() < 0.25}
    if r.random() < 0.2:
        out[r.choice(NAMED[:7])] = None
    return out


def directory(r):
    """The base's name, and the files of a directory."""
    name = r.choice(["bytes", "bytes", "spelled"])
    base = BASES[name]
    top = len(base["model"]["vocab"])
    classes = ["PreTrainedTokenizerFast", "TokenizersBackend", "NopeTokenizer", None] + (
        ["Qwen2Tokenizer", "Qwen2TokenizerFast"] if name == "bytes" else ["LlamaTokenizer", "LlamaTokenizerFast"])
    tokens = r.sample(POOL, r.randint(0, 6))
    listed = [{"id": base["model"]["vocab"].get(t, top + i)} | flags(r, content=t) for i, t in enumerate(tokens)]
    files = {"tokenizer.json": base | {"added_tokens": listed}}
    config = named(r) if r.random() < 0.9 else {}
    if r.random() < 0.5:
        config["added_tokens_decoder"] = {
            str(base["model"]["vocab"].get(t, top + i + r.randint(0, 2))): flags(r, content=t) for i, t in enumerate(r.sample(POOL, r.randint(0, 6)))}
        for entry in listed:
            if r.random() < 0.5:
                config["added_tokens_decoder"][str(entry["id"])] = {k: v for k, v in entry.items() if k != "id"}
    if r.random() < 0.3:
        config["extra_special_tokens"] = [value(r) for _ in range(r.randint(0, 3))] if r.random() < 0.7 else {"mine": r.choice(POOL)}
    if r.random() < 0.3:
        config["additional_special_tokens"] = [value(r) for _ in range(r.randint(0, 3))]
    if r.random() < 0.15:
        config["split_special_tokens"] = True
    for flag in ("add_bos_token", "add_eos_token"):
        if r.random() < 0.2:
            config[flag] = r.random() < 0.7
    chosen = r.choice(classes)
    if chosen:
        config["tokenizer_class"] = chosen
    if r.random() < 0.9:
        files["tokenizer_config.json"] = config
    if r.random() < 0.3:
        files["special_tokens_map.json"] = named(r, False)
        if r.random() < 0.4:
            files["special_tokens_map.json"]["additional_special_tokens"] = r.sample(POOL, 2)
    if r.random() < 0.2:
        files["added_tokens.json"] = {t: top + 5 + i for i, t in enumerate(r.sample(POOL, r.randint(0, 4)))}
    if r.random() < 0.4:
        files["config.json"] = {"model_type": r.choice(["qwen3", "qwen2", "llama", "olmo2"] if name == "bytes" else ["llama", "mistral", "smollm3"])}
    return name, files


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def texts(r, n, auto):
    """Strings of what could be a token, but for those at which the original panics: white space that is taken twice."""
    pieces = POOL + golden.HARD
    while n:
        text = "".join(r.choice(pieces) + r.choice(["", "", " ", "  "]) for _ in range(r.randint(1, 12)))
        try:
            auto(text)
        except BaseException as error:
            if "bad split" not in str(error):
                raise
            continue
        yield text
        n -= 1


def directories(seed, n, made):
    """n directories that transformers can read: base, files, folder, its tokenizer."""
    r = random.Random(seed)
    while n:
        name, files = directory(r)
        with tempfile.TemporaryDirectory(dir=made) as folder:
            write(Path(folder), files)
            try:
                auto = AutoTokenizer.from_pretrained(folder)
            except Exception:  # what it refuses has no expected answer
                continue
            n -= 1
            yield name, files, folder, auto


def variables(auto):
    return auto.apply_chat_template([{"role": "user", "content": "x"}], chat_template=TEMPLATE, tokenize=False)


def answers(auto, text):
    ids = auto(text, add_special_tokens=False)["input_ids"]
    return {"text": text, "ids": ids, "full": auto(text)["input_ids"], "decoded": auto.decode(ids, skip_special_tokens=True)}


def make():
    out, r = [], random.Random(5)
    with tempfile.TemporaryDirectory() as made:
        for name, files, _, auto in directories(2, 80, made):
            rest = {k: v for k, v in files["tokenizer.json"].items() if k in ("added_tokens",)}
            rows = [answers(auto, t) for t in ["the <new><s> lower</s> <|im_start|>\n x<|endoftext|> A\u030a", *texts(r, 3, auto)]]
            out.append({"base": name, "tokenizer": rest, "files": {k: v for k, v in files.items() if k != "tokenizer.json"},
                        "variables": variables(auto), "cases": rows})
    lines = [json.dumps({k: v for k, v in e.items() if k != "cases"})[:-1] + ', "cases": [\n' + ",\n".join(
        "  " + json.dumps(row) for row in e["cases"]) + "]}" for e in out]
    head = {"template": TEMPLATE, "bases": {k: {m: v for m, v in b.items() if m != "added_tokens"} for k, b in BASES.items()}}
    (Path(__file__).resolve().parent / "specials.json").write_text(json.dumps(head)[:-1] + ', "directories": [\n' + ",\n".join(lines) + "\n]}\n")


class Auto:
    """An AutoTokenizer as differences() wants a tokenizer."""

    class Ids:
        def __init__(self, ids):
            self.ids = ids

    def __init__(self, auto):
        self.auto = auto

    def encode(self, text, add_special_tokens=True):
        return self.Ids(self.auto(text, add_special_tokens=add_special_tokens)["input_ids"])

    def decode(self, ids):
        return self.auto.decode(ids, skip_special_tokens=True)


def main(codec, n=300, seed=1):
    bad, r = 0, random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        for k, (name, files, folder, auto) in enumerate(directories(seed, n, made)):
            found = golden.differences(codec, folder, Auto(auto), list(texts(r, 40, auto)), f"{name} {k}")
            if found:
                print(type(auto).__name__, json.dumps({f: c if f != "tokenizer.json" else c["added_tokens"] for f, c in files.items()}))
            bad += bool(found)
    print(f"{n} directories, {bad} differ")
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "make":
        sys.exit(make())
    sys.exit(bool(main(sys.argv[1], *map(int, sys.argv[2:]))))
