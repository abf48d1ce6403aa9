#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer against the `tokenizers` library, an independent implementation.

    python3 tests/golden/tokenizer.py make                        writes tests/golden/tokenizer.json
    python3 tests/golden/tokenizer.py compare PROGRAM DIR [N]     N (3000) hard strings through `PROGRAM tokenize`

tokenizer.json holds small tokenizers, one or two for each component, and what the library makes of a list of
strings; "demo" stands for jobs/demo/model. tests/token.c holds our own against it.
"""
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[1] / "jobs" / "demo" / "model"

HARD = ["'s", "'S", "'\u017f", "'ll", "'LL", "'Re", " ", "  ", "\n", "\r\n", "\t", "\xa0", "\u180e", "\u2028", "\x85",
        "\u200b", "\u3000", "\u200d", "\xe9", "e\u0301", "\ufb01", "\xc5", "\u212b", "\ud55c\uad6d", "\u1112", "\u1161",
        "\u11ab", "\u65e5\u672c", "\U0001f642", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0300", "\u0327",
        "\u0323", "123", "\u0663", "\xbd", "\u216b", "a", "Z", "\xdf", "\u0130", "\u0131", "_", "-", "...", "!!", "{}",
        "\x00", "\x01", "\x1c", "\x7f", "\ufeff", "\ufffd", "\U0010ffff", "\u0640", "\u0928", "\u092e\u0938\u094d",
        "\u0e01\u0e33", "\uff41", "\u1e9b\u0323", "\U0001d49c", "\u2126", "\u212a", "<", "<|", "<|im_start|>",
        "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<s>", "</s>", "<unk>", "<think>", "<0x0A>", "\u2581", "\u0120",
        "the", " the", "Hello", " world", "aaaa", "[X]", "[Y]", "word", "low", "lower"]


def strings(n, seed=7):
    r = random.Random(seed)
    plane = [0x7F, 0x7FF, 0xFFFF, 0x10FFFF]
    for i in range(n):
        if i % 3:
            yield "".join(r.choice(HARD) for _ in range(r.randint(1, 20)))
        else:
            codes = (r.randint(0, r.choice(plane)) for _ in range(r.randint(1, 25)))
            # Young characters differ with the age of the tables: utf8proc's are often newer than the library's.
            old = unicodedata.ucd_3_2_0.category
            yield "".join(chr(c) for c in codes if old(chr(c)) not in ("Cn", "Cs"))


def byte_alphabet():
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    hidden = [b for b in range(256) if b not in shown]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(len(hidden))]


def bpe(vocab, merges, **more):
    tokens = list(dict.fromkeys(vocab + [a + b for a, b in merges]))
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]} | more


MERGES = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er"), ("a", "a"),
          ("aa", "aa"), ("l", "l"), ("H", "e"), ("He", "ll"), ("Hell", "o"), ("\u0120", "w"), ("o", "r")]
BYTES = bpe(byte_alphabet(), MERGES)
LETTERS = [chr(c) for c in range(97, 123)] + ["\u2581", "\xe9", "H", "Z", "<unk>"]
SPELLED = [(a.replace("\u0120", "\u2581"), b) for a, b in MERGES]
BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def level(**more):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} | more


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(key, *members):
    return {"type": "Sequence", key: list(members)}


def added(start, *tokens):
    return [{"id": start + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True} | more for i, (t, more) in enumerate(tokens)]


def template(*single):
    pieces = [{"Sequence": {"id": "A", "type_id": 0}} if s == "A" else {"SpecialToken": {"id": s, "type_id": 0}}
              for s in single]
    specials = {s: {"id": s, "ids": [BYTES["vocab"][s]], "tokens": [s]} for s in single if s != "A"}
    return {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": specials}


def made():
    """Name, tokenizer.json."""
    plain = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": level(), "post_processor": None, "decoder": level(), "model": BYTES}
    apart = level(use_regex=False)
    top = max(BYTES["vocab"].values()) + 1
    yield "bytes", plain
    yield "prefix space", plain | {"pre_tokenizer": level(add_prefix_space=True)}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, plain | {"normalizer": {"type": form}}
    yield "replace", plain | {"normalizer": sequence(
        "normalizers", {"type": "Replace", "pattern": {"String": "aa"}, "content": "b"}, {"type": "NFC"},
        {"type": "Prepend", "prepend": "low"})}
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", plain | {"pre_tokenizer": sequence(
                "pretokenizers", split({"Regex": "\\s|[a-e]"}, behavior, invert), apart)}
    yield "split string", plain | {"pre_tokenizer": sequence("pretokenizers", split({"String": "."}), apart)}
    yield "patterns", plain | {"pre_tokenizer": sequence(
        "pretokenizers", split({"Regex": "\\p{N}{1,3}"}), split({"Regex": "[\\w']+|[^\\w\\s]|\\s*$"}, "Removed", True),
        level(add_prefix_space=True, use_regex=False))}
    yield "classes", plain | {"pre_tokenizer": sequence(
        "pretokenizers", split({"Regex": "[\\s\\p{P}]+|[^\\S]|\\S\\W"}), split({"Regex": "^[[:alpha:]]|\\h\\h"}), apart)}
    yield "added", plain | {"normalizer": {"type": "NFC"}, "added_tokens": added(
        top, ("[X]", {"lstrip": True}), ("[Y]", {"rstrip": True}), ("word", {"single_word": True, "special": False}),
        ("e\u0301", {"normalized": True, "special": False}), ("<|", {}), ("<|im_start|>", {}),
        ("<|im_end|>", {"lstrip": True, "rstrip": True, "special": False}))}
    yield "whole words", plain | {"model": BYTES | {"ignore_merges": True, "vocab": BYTES["vocab"] | {
        "\u0120lower": top, "HelloHello": top + 1}}}
    yield "old merges", plain | {"model": BYTES | {"merges": [" ".join(m) for m in MERGES]}}
    yield "post", plain | {"post_processor": sequence(
        "processors", level(), template("a", "low", "A", "b", "c"))}
    spelled = plain | {"pre_tokenizer": None, "normalizer": sequence(
        "normalizers", {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}), "decoder": sequence(
        "decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})}
    fallback = dict(unk_token="<unk>", byte_fallback=True)
    yield "byte fallback", spelled | {"model": bpe(LETTERS + BYTE_TOKENS, SPELLED, **fallback, fuse_unk=True)}
    yield "some bytes", spelled | {"model": bpe(LETTERS + BYTE_TOKENS[:200], SPELLED, **fallback, fuse_unk=True)}
    yield "unknown", spelled | {"model": bpe(LETTERS, SPELLED, unk_token="<unk>")}
    yield "fused unknown", spelled | {"model": bpe(LETTERS, SPELLED, unk_token="<unk>", fuse_unk=True)}
    yield "no unknown", spelled | {"model": bpe(LETTERS, SPELLED)}
    yield "no decoder", plain | {"decoder": None}
    yield "late replace", spelled | {"model": bpe(LETTERS + BYTE_TOKENS, SPELLED, **fallback), "decoder": sequence(
        "decoders", {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "\u2581the"}, "content": "-"},
        {"type": "Strip", "content": "-", "start": 2, "stop": 2})}
    yield "affixes", plain | {"pre_tokenizer": split({"String": " "}, "Removed"), "decoder": sequence(
        "decoders", {"type": "Replace", "pattern": {"String": "</w>"}, "content": " "}), "model": bpe(
        [], []) | {"continuing_subword_prefix": "##", "end_of_word_suffix": "</w>",
        "merges": [["l", "##o"], ["lo", "##w</w>"], ["##e", "##r</w>"]],
        "vocab": {t: i for i, t in enumerate(["l", "##o", "##w</w>", "##w", "lo", "##e", "##r</w>", "low</w>",
                                           "##er</w>", "a", "##a</w>", "##a", "a</w>"])}}}


def make():
    out = []
    pool = list(strings(400))
    for i, (name, made_one) in enumerate(list(made()) + [("demo", "demo")]):
        text = (DEMO / "tokenizer.json").read_text() if name == "demo" else json.dumps(made_one)
        reference = Tokenizer.from_str(text)
        reference.no_truncation(), reference.no_padding()
        cases = ["", "the lower world", "  Hello\n\n the lowlow 1234567!"]
        if name in ("byte fallback", "NFC", "added", "demo"):
            cases += pool[:60]
        cases += [pool[(23 * i + k) % len(pool)] for k in range(12)]
        rows = []
        for case in cases:
            ids = reference.encode(case, add_special_tokens=False).ids
            full = reference.encode(case).ids
            try:
                row = {"text": case, "ids": ids, "decoded": reference.decode(ids)}
            except BaseException:  # its Strip panics where nothing is left
                row = {"text": case, "ids": ids}
            if full != ids:
                row["full"] = full
            rows.append(row)
        out.append({"name": name, "tokenizer": made_one, "cases": rows})
    lines = []
    for entry in out:
        rows = ",\n".join("  " + json.dumps(row) for row in entry["cases"])
        lines.append(f'{{"name": {json.dumps(entry["name"])}, "tokenizer": {json.dumps(entry["tokenizer"])}, '
                     f'"cases": [\n{rows}]}}')
    (HERE / "tokenizer.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(sum(len(e["cases"]) for e in out), "strings for", len(out), "tokenizers")


def compare(program, folder, n=3000):
    reference = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    reference.no_truncation(), reference.no_padding()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        texts = [t for t in strings(n, seed=n) if reference.encode(t).ids]
        prompts.writelines(json.dumps({"prompt": t}) + "\n" for t in texts)
        prompts.flush()
        done = subprocess.run([program, "tokenize", "-m", folder, "-i", prompts.name], capture_output=True)
    lines = done.stdout.decode().rstrip("\n").split("\n")
    bad = 0
    for text, line in zip(texts, lines, strict=True):
        ours, theirs = json.loads(line).get("token_ids"), reference.encode(text).ids
        if ours != theirs:
            bad += 1
            print("DIFFERENT", repr(text), theirs, line, sep="\n  ")
    print(f"{folder}: {len(texts)} strings, {bad} differ")
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make()
    elif sys.argv[1:2] == ["compare"]:
        sys.exit(bool(compare(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 3000)))
    else:
        sys.exit(__doc__)
