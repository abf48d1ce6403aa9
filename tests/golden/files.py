#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tokenizer.model and .tiktoken files with transformers, an independent implementation.

    python3 tests/golden/files.py make          writes tests/golden/files.json
    python3 tests/golden/files.py CODEC [N]     N (1000) hard strings for each of the models made here

Small SentencePiece models are trained, and ranks are derived, from the documentation of this tree; each is read by
`CODEC DIR` and by transformers (AutoTokenizer; for ranks, its TikTokenConverter). Needs sentencepiece and tiktoken.
"""
import base64
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import TikTokenConverter

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tokenizer as golden  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
logging.disable(logging.WARNING)


def text():
    return [line for f in sorted(ROOT.glob("docs/*.md")) for line in f.read_text().split("\n") if line]


RULES = ["41\t61", "65 301\tE9", "FB01\t66 69", "200B\t", "3000\t20", "1F468 200D\t78", "61 62 63\t78 79", "2167\t56 49"]


PIECES = dict(unk_id=3, bos_id=1, eos_id=2, pad_id=0, unk_piece="[UNK]", bos_piece="[B]", eos_piece="[E]", pad_piece="[P]")


def plain(text, **more):
    return {"content": text, "special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False} | more


def kinds():
    """Name, tokenizer_config.json, model_type and further files."""
    yield "llama", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, "x", {}
    yield "legacy", {"tokenizer_class": "LlamaTokenizer", "legacy": True, "add_eos_token": True, "add_bos_token": True}, "x", {}
    yield "never", {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False}, "x", {}
    yield "gemma", {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True}, "x", {}
    yield "none", {"tokenizer_class": "PreTrainedTokenizerFast"}, "x", {}
    yield "listed", {"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {
        "0": plain("<unk>"), "2000": plain("<|im_end|>", lstrip=True)}}, "x", {}
    yield "mistral", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "bos_token": "<|im_start|>"}, "mistral", {}
    yield "olmo2", {"tokenizer_class": "LlamaTokenizerFast", "add_eos_token": True}, "olmo2", {}
    yield "type llama", {"add_bos_token": True, "add_eos_token": True}, "llama", {}
    yield "type gemma", {"add_bos_token": True, "unk_token": "[UNK]"}, "gemma2", {}
    yield "gemma no unk", {"unk_token": None, "tokenizer_class": "GemmaTokenizer"}, "x", {}
    yield "code llama", {"tokenizer_class": "CodeLlamaTokenizer", "add_eos_token": True}, "llama", {}
    yield "renamed", {"added_tokens_decoder": {"1": plain("<|im_start|>"), "2": plain("foo bar", special=False)}}, "phi3", {}
    yield "extra", {"tokenizer_class": "LlamaTokenizer", "extra_special_tokens": ["<think>", "the"], "eos_token": "word"}, "x", {}
    yield "older", {"tokenizer_class": "LlamaTokenizer", "split_special_tokens": False}, "llama", {
        "special_tokens_map.json": {"bos_token": plain("<s>", lstrip=True), "additional_special_tokens": ["<think>"]},
        "added_tokens.json": {"<think>": 2001, "[X]": 2000}}


def models(folder, size=2000):
    """Name and directory of each."""
    (folder / "text").write_text("\n".join(text()))
    (folder / "rules").write_text("\n".join(RULES))
    trained = {
        "bpe": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                    user_defined_symbols=["<|user|>", "foo bar"], control_symbols=["<|ctl|>"]),
        "bpe nmt": dict(model_type="bpe"), "bpe pieces": dict(model_type="bpe", normalization_rule_name="identity", treat_whitespace_as_suffix=True, **PIECES),
        "bpe no bos": dict(model_type="bpe", normalization_rule_name="nfkc" if size > 999 else "identity", bos_id=-1, eos_id=1, pad_id=0, unk_id=2),
        "unigram": dict(model_type="unigram", pad_id=3), "unigram pieces": dict(model_type="unigram", **PIECES),
        "unigram bytes": dict(model_type="unigram", byte_fallback=True, normalization_rule_name="nfkc_cf", add_dummy_prefix=False),
        "unigram rules": dict(model_type="unigram", normalization_rule_tsv=str(folder / "rules"))}
    for name, options in trained.items():
        sentencepiece.SentencePieceTrainer.train(input=str(folder / "text"), model_prefix=str(folder / "model"), vocab_size=size,
                                                 minloglevel=2, hard_vocab_limit=name.startswith("bpe"), **options)
        for kind, config, model_type, more in kinds():
            made = folder / f"{name} {kind}"
            made.mkdir()
            (made / "tokenizer.model").write_bytes((folder / "model.model").read_bytes())
            for file, content in (more | {"tokenizer_config.json": config, "config.json": {"model_type": model_type}}).items():
                (made / file).write_text(json.dumps(content))
            try:
                yield f"{name} {kind}", made, AutoTokenizer.from_pretrained(made)._tokenizer
            except Exception as error:  # what it cannot read has no expected answer
                print(f"{name} {kind}: transformers says {str(error)[:80]!r}")
    made = folder / "ranks"
    made.mkdir()
    words = {w for line in text() for w in line.split()}
    tokens = [bytes([b]) for b in range(256)]
    tokens += sorted({(" " + w).encode()[:k] for w in sorted(words)[::2 if size > 999 else 20] for k in range(2, 8)} | {w.encode()[:2] for w in words} - set(tokens))
    tokens = list(dict.fromkeys(tokens))
    (made / "x.tiktoken").write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)))
    yield "ranks", made, TikTokenConverter(str(made / "x.tiktoken")).converted()


def make():
    out, shared = [], {}
    keep = ("bpe llama", "bpe legacy", "bpe gemma", "bpe none", "bpe listed", "unigram rules none", "bpe mistral", "bpe type llama",
            "bpe code llama", "bpe renamed", "bpe extra", "bpe older", "bpe pieces mistral", "bpe no bos olmo2", "ranks")
    pool = list(golden.strings(300))
    with tempfile.TemporaryDirectory() as folder:
        for name, made, reference in models(Path(folder), 400):
            if name not in keep:
                continue
            file = next(f for f in made.iterdir() if f.suffix in (".model", ".tiktoken"))
            rows = []
            for case in ["", "the lower world", "  Hello\n\n the low <|user|> <|im_end|> foo bar <s>1234567!", *pool[len(out)::9]]:
                ids = reference.encode(case, add_special_tokens=False).ids
                row = {"text": case, "ids": ids, "decoded": reference.decode(ids), "full": reference.encode(case).ids}
                rows.append(row)
            out.append({"name": name, "file": file.name, "bytes": shared.setdefault(file.read_bytes().hex(), f"file {len(shared)}"), "cases": rows,
                        "files": {f.name: json.loads(f.read_text()) for f in sorted(made.glob("*.json"))}})
    lines = [json.dumps({k: v for k, v in e.items() if k != "cases"})[:-1] + ', "cases": [\n' + ",\n".join(
        "  " + json.dumps(row) for row in e["cases"]) + "]}" for e in out]
    (Path(__file__).resolve().parent / "files.json").write_text(json.dumps({"bytes": {v: k for k, v in shared.items()}})[:-1] + ', "tokenizers": [\n' + ",\n".join(lines) + "\n]}\n")


def main(codec, n=1000):
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, made, reference in models(Path(folder)):
            found = golden.differences(codec, str(made), reference, list(golden.strings(n, long=True)), name)
            print(f"{name}: {n} strings, {found} differ")
            bad += found
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "make":
        sys.exit(make())
    sys.exit(bool(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)))
