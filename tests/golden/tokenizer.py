#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tokenizer with the `tokenizers` library, an independent implementation.

    python3 tests/golden/tokenizer.py make                          writes tests/golden/tokenizer.json
    python3 tests/golden/tokenizer.py compare CODEC DIR [N]         N (10000) hard strings through `CODEC DIR`
    python3 tests/golden/tokenizer.py components CODEC [N [NAME]]   N (2000) for each small tokenizer below

CODEC is tests/tokenizer/round_trip of a build. tokenizer.json holds the small tokenizers, one or more for each component and option,
and the library's ids of a list of strings; "demo" stands for jobs/demo/model. tests/tokenizer/tokenizer.c compares ours with
them.
"""
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, models, trainers

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


def by_category():
    """A few characters of each category, and of each plane's unassigned ones; the youngest versions too."""
    found = {}
    for code in range(0x110000):
        found.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    found.pop("Cs")
    return list(found.values())


CATEGORIES = by_category()
WORDS = ["x" * 5000, "\xe9" * 5000, "\u65e5" * 3000, "ab" * 2500, " " * 5000, "\n" * 3000, "0" * 5000, "\u2581" * 3000,
         "\U0001f642" * 2000, "e\u0301" * 2500]


def strings(n, seed=7, long=False):
    r = random.Random(seed)
    plane = [0x7F, 0x7FF, 0xFFFF, 0x10FFFF]
    for i in range(n):
        if i % 4 == 0:
            yield "".join(r.choice(r.choice(CATEGORIES)) for _ in range(r.randint(1, 25)))
        elif i % 4 == 1:
            codes = (r.randint(0, r.choice(plane)) for _ in range(r.randint(1, 25)))
            yield "".join(chr(c) for c in codes if not 0xD800 <= c <= 0xDFFF)
        elif i % 4 == 2:
            yield "".join(r.choice(HARD) * r.choice((1, 1, 1, 1, 2, 7)) for _ in range(r.randint(1, 20)))
        elif long and i % 200 == 3:
            yield r.choice(HARD) + r.choice(WORDS) + r.choice(HARD)
        else:
            yield "".join(r.choice(HARD + r.choice(CATEGORIES)[:50]) for _ in range(r.randint(1, 20)))


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
    yield from more(plain, spelled, top)


def seen():
    """A model whose ids show where pieces begin."""
    chars = byte_alphabet()
    return bpe([], []) | {"continuing_subword_prefix": "##",
                          "vocab": {t: i for i, t in enumerate(chars + ["##" + c for c in chars])}}


PATTERNS = {
    "gpt2": "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "llama3": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
              "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "qwen2": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
             "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "qwen3.5": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
               "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "cl100k": "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|"
              "\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
    "o200k": "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|"
             "'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|"
             "'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "deepseek": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "deepseek han": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "kimi": "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
            "&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
            "\\s+(?!\\S)|\\s+",
    "bloom": " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    "word": "\\w+", "no word": "\\W+", "word class": "[\\w']+", "no word class": "[^\\w]+", "not word": "[\\W]",
    "bounds": "\\b", "no bounds": "\\B\\S", "hex": "\\h{2}|\\H", "vertical": "\\v|\\R|\\x{85}",
    "cut": "[\\w&&[^a-l]&&\\P{Lu}]+", "not cut": "[^\\w&&[^a-l]]", "inside": "[a-f[0-9[^\\s\\p{L}]]]+", "posix": "[[:punct:]]+",
    "posix 2": "[[:^alpha:][:upper:]]+", "posix 3": "[[:alnum:]]+|[[:blank:]]", "posix 4": "[[:graph:]]|[[:cntrl:]]+",
    "posix 5": "[[:lower:]]+|[[:space:]]", "posix 6": "[^[:print:]]|[[:word:]]{3}", "punct": "\\p{Punct}", "alpha": "\\p{Alpha}{2}",
    "repeated": "(?:\\p{N}{1,2}+)|a{,3}|l{2}?o", "lazy": "a+?|\\s{1,3}?|\\p{L}{2,4}?", "possessive": "\\p{L}++|\\s?+", "stacked": "a{2}{2}|l+*o",
    "options": "a(?i)l|(?m:b.)|(?x: l o # w\n w)", "options 2": "(?i:h(?-i:e))|(?mi-x:L.)", "lines": "^.|.$|\\A.|.\\z|.\\Z",
    "look": "(?<=a|lo)w|(?<!l)o|(?=e)|e(?!r)", "atomic": "(?>a+|ab)b|(?<n>l|o)\\k<n>", "numbered": "(l|o|a)\\1", "hexes": "\\x61|\\x{6C}|\\u0065|\\141",
    "literals": "a{x}|]|}|\\{|\\-|\\ |-|[]a-]|[^]b]", "escapes": "\\t|\\n|[\\b\\e\\v\\f]|\\e|\\f|\\a", "categories": "\\p{Lu}|\\p{^N}{2}|\\P{^Zs}|\\p{Sm}",
    "longer": "\\p{Letter}+|\\p{Decimal_Number}|\\p{Other}|\\p{Unassigned}", "scripts": "\\p{Han}+|\\p{Latin}+|\\p{Arabic}|\\p{Greek}+",
    "emoji": "\\p{Emoji}|\\p{Extended_Pictographic}", "any": "\\O\\N|\\p{Any}", "empty": "|a", "marks": "\\p{M}+|\\p{L}\\p{M}*", "upper": "(?i)[a-e]+|[^\\W\\d_]+",
    "symbols": "\\p{S}+|\\p{P}|\\p{C}+", "named": "(?<x>a|l)o|\\g<x>e", "assigned": "\\p{Assigned}+|\\p{Cn}", "x space": "[\\p{Space}\\p{Upper}]+",
}
CHARSMAP = Path(__file__).resolve().parent / "charsmap.b64"


def meta(**more):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True} | more


def unigram(**more):
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "\u2581the", "th", "the", "e", "\u2581low", "er", "lo", "low", "lower", "\u2581H", "ell",
              "Hello", "a", "aa", "aaaa", "o", "l", "H", "w", "\u2581wor", "ld", "t", "h", "r", "\xe9", "e\u0301", "\u65e5",
              "\u65e5\u672c", "\u2581\u2581", "\u2581\u2581\u2581", ".", "..", "!", "1", "12", "123", "\U0001f642"]
    r = random.Random(3)
    return {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
            "vocab": [[t, 0.0 if i < 3 else round(-r.uniform(1, 12), 4)] for i, t in enumerate(pieces)]} | more


def wordpiece(**more):
    words = ["[UNK]", "[CLS]", "[SEP]", "the", "low", "lower", "##er", "##e", "##r", "h", "##ello", "hello", "##low", "a", "##a", "##aaa",
             "aaaa", "123", "1", "##2", "##3", "##\u0301", "e", "\xe9", "##\xe9", "\u65e5", "##\u672c", ".", "!", "'", ",", "n", "##'t", "s", "t",
             "do", "not", "##", "w", "##or", "##ld", "_", "\U0001f642", "@@er", "@@e"]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {t: i for i, t in enumerate(words)}} | more


def more(plain, spelled, top):
    """The components that byte-level models do without."""
    apart = level(use_regex=False)
    shown = plain | {"model": seen()}
    for form in ("Lowercase", "StripAccents", "Nmt"):
        yield form, plain | {"normalizer": {"type": form}}
    yield "accents", plain | {"normalizer": sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFC"})}
    for left in (False, True):
        for right in (False, True):
            yield f"strip {left} {right}", plain | {"normalizer": {"type": "Strip", "strip_left": left, "strip_right": right}}
            yield f"strip first {left} {right}", plain | {"model": unigram(), "pre_tokenizer": meta(prepend_scheme="first"), "decoder": meta(),
                                                          "normalizer": {"type": "Strip", "strip_left": left, "strip_right": right}}
    for content in ("", "b", "lo\xe9"):
        yield f"replace regex {content}", plain | {"normalizer": {"type": "Replace", "pattern": {"Regex": "\\s{2,}|\\p{P}+|^a"}, "content": content}}
    yield "replace first", plain | {"model": unigram(), "pre_tokenizer": meta(prepend_scheme="first"), "normalizer": {
        "type": "Replace", "pattern": {"Regex": "^\\s*"}, "content": ""}, "decoder": meta(prepend_scheme="first")}
    yield "bytes normalizer", plain | {"normalizer": sequence("normalizers", {"type": "NFC"}, {"type": "ByteLevel"}), "pre_tokenizer": split(
        {"Regex": "\u0120?\\p{L}+"})}
    for lower in (False, True):
        for accents in (None, False, True):
            for clean in (False, True):
                yield f"bert {lower} {accents} {clean}", plain | {"normalizer": {
                    "type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": lower == clean, "strip_accents": accents,
                    "lowercase": lower}}
    for name, pattern in PATTERNS.items():
        yield f"pattern {name}", shown | {"pre_tokenizer": sequence("pretokenizers", split({"Regex": pattern}), apart)}
    for name in ("llama3", "word", "empty", "look", "bounds"):
        for behavior in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
            yield f"pattern {name} {behavior}", shown | {"pre_tokenizer": sequence(
                "pretokenizers", split({"Regex": PATTERNS[name]}, behavior, behavior == "Removed"), apart)}
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"punctuation {behavior}", shown | {"pre_tokenizer": sequence(
            "pretokenizers", {"type": "Punctuation", "behavior": behavior}, apart)}
    for each in (False, True):
        yield f"digits {each}", shown | {"pre_tokenizer": sequence("pretokenizers", {"type": "Digits", "individual_digits": each}, apart)}
    for kind in ("Whitespace", "WhitespaceSplit", "UnicodeScripts", "BertPreTokenizer"):
        yield kind, shown | {"pre_tokenizer": sequence("pretokenizers", {"type": kind}, apart)}
    yield "delimiter", shown | {"pre_tokenizer": sequence("pretokenizers", {"type": "CharDelimiterSplit", "delimiter": "a"}, apart)}
    yield "length", shown | {"pre_tokenizer": sequence("pretokenizers", {"type": "FixedLength", "length": 3}, apart)}
    yield "mixed", shown | {"pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, sequence(
        "pretokenizers", {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Contiguous"}),
        {"type": "UnicodeScripts"}, level(add_prefix_space=True))}
    yield "twice bytes", shown | {"pre_tokenizer": sequence("pretokenizers", level(add_prefix_space=True), apart)}
    for scheme in ("always", "first", "never"):
        for cuts in (False, True):
            m = meta(prepend_scheme=scheme, split=cuts)
            yield f"metaspace {scheme} {cuts}", plain | {"pre_tokenizer": m, "decoder": m, "model": unigram()}
            yield f"metaspace seen {scheme} {cuts}", shown | {"pre_tokenizer": sequence("pretokenizers", m, apart)}
            yield f"metaspace added {scheme} {cuts}", plain | {
                "pre_tokenizer": m, "decoder": sequence("decoders", m, {"type": "Fuse"}), "added_tokens": added(
                    len(bpe(LETTERS + BYTE_TOKENS, SPELLED)["vocab"]), ("[X]", {"lstrip": True}), ("[Y]", {"normalized": True, "special": False}), ("<|", {"rstrip": True})),
                "normalizer": {"type": "NFKC"}, "model": bpe(LETTERS + BYTE_TOKENS, SPELLED, unk_token="<unk>", byte_fallback=True, fuse_unk=True)}
    old = {"type": "Metaspace", "replacement": "_", "str_rep": "_", "add_prefix_space": True}
    yield "metaspace old", shown | {"pre_tokenizer": sequence("pretokenizers", old, apart), "decoder": old}
    yield "metaspace old never", shown | {"pre_tokenizer": sequence("pretokenizers", old | {
        "add_prefix_space": False, "prepend_scheme": "never"}, apart)}
    yield "metaspace twice", plain | {"pre_tokenizer": sequence("pretokenizers", {"type": "Punctuation", "behavior": "Isolated"}, meta(
        prepend_scheme="first")), "decoder": meta(prepend_scheme="never"), "model": unigram()}
    yield "unigram bytes", plain | {"pre_tokenizer": meta(), "decoder": sequence(
        "decoders", {"type": "Replace", "pattern": {"Regex": "\u2581|x"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}), "model": unigram(
            byte_fallback=True, vocab=unigram()["vocab"] + [[t, 0.0] for t in BYTE_TOKENS])}
    yield "unigram twice", plain | {"pre_tokenizer": meta(), "decoder": meta(), "model": unigram(
        vocab=unigram()["vocab"] + [["the", -2.5], ["xy", -40.0], ["zz", -1.0]])}
    yield "unigram plain", plain | {"pre_tokenizer": None, "decoder": None, "model": unigram()}
    yield "bpe decoder", plain | {"pre_tokenizer": split({"String": " "}, "Removed"), "decoder": {"type": "BPEDecoder", "suffix": "w"}}
    yield "regex decoder", plain | {"decoder": sequence("decoders", level(), {"type": "Replace", "pattern": {"Regex": "[aeiou]+ ?"}, "content": "-"})}
    yield "bert post", plain | {"post_processor": {"type": "BertProcessing", "sep": ["a", 64], "cls": ["b", 65]}}
    yield "roberta post", plain | {"post_processor": {"type": "RobertaProcessing", "sep": ["a", 64], "cls": ["b", 65], "trim_offsets": True,
                                                      "add_prefix_space": False}}
    if CHARSMAP.exists():
        charsmap = {"type": "Precompiled", "precompiled_charsmap": CHARSMAP.read_text().strip()}
        yield "precompiled", plain | {"normalizer": charsmap}
        yield "t5", plain | {"normalizer": sequence("normalizers", charsmap, {"type": "Strip", "strip_left": False, "strip_right": True}, {
            "type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}), "pre_tokenizer": meta(), "decoder": meta(), "model": unigram()}
    bert = plain | {"pre_tokenizer": {"type": "BertPreTokenizer"}}
    for name, model in (("plain", {}), ("prefix", {"continuing_subword_prefix": "@@"}), ("no prefix", {"continuing_subword_prefix": ""}),
                        ("short", {"max_input_chars_per_word": 5}), ("unknown", {"unk_token": "nowhere"})):
        for clean in (False, True):
            yield f"wordpiece {name} {clean}", bert | {
                "normalizer": {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": clean, "strip_accents": None, "lowercase": clean},
                "model": wordpiece(**model), "decoder": {"type": "WordPiece", "prefix": model.get("continuing_subword_prefix", "##"), "cleanup": clean}}
    yield "wordpiece sentence", plain | {"pre_tokenizer": None, "model": wordpiece(), "decoder": sequence(
        "decoders", {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1})}
    for prefix in (False, True):
        yield f"first twice {prefix}", plain | {"pre_tokenizer": sequence(
            "pretokenizers", level(add_prefix_space=prefix),
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": False},
            split({"Regex": "[^a-z_]"}))}
    yield "white space", plain | {"added_tokens": added(
        top, ("<T>", {"rstrip": True}), ("\n", {"lstrip": True, "rstrip": True}), (" x", {"lstrip": True, "normalized": True}))}


def make():
    out, shared = [], {}
    pool = list(strings(400))
    for i, (name, made_one) in enumerate([*made(), ("demo", "demo")]):
        text = (DEMO / "tokenizer.json").read_text() if name == "demo" else json.dumps(made_one)
        reference = Tokenizer.from_str(text)
        reference.no_truncation(), reference.no_padding()
        cases = ["", "the lower world", "  Hello\n\n the lowlow 1234567!"]
        if name in ("byte fallback", "NFC", "added", "demo"):
            cases += pool[:60]
        if name.startswith("wordpiece"):
            cases += ["do n't not . hello , lower 's low !", "aaaaaaaa aaaaaaaaa", "a" * 100, "a" * 101, "hello12345 helloworld"]
        if name == "white space":
            cases += ["a\n\nb", "<T>\nb", "a<T> \n\nb", "a \n \n b", "<T> x", "<T>  x x\n x", "\n<T>\n<T>", "\n x"]
        if name.startswith("first twice"):
            cases += ["\tlow", "\n\u00e9", "\u65e5a", "1low", " \tlow", "\u00e9", "\u0301low", "<", "  low", "_low", "\t_low"]
        cases += [pool[(23 * i + k) % len(pool)] for k in range(12)]
        rows = []
        for case in cases:
            try:
                ids = reference.encode(case, add_special_tokens=False).ids
                full = reference.encode(case).ids
            except Exception:  # no token for unknown ones
                continue
            try:
                row = {"text": case, "ids": ids, "decoded": reference.decode(ids)}
            except BaseException:  # its Strip panics where nothing is left
                row = {"text": case, "ids": ids}
            if full != ids:
                row["full"] = full
            rows.append(row)
        entry = {"name": name, "cases": rows}
        if name != "demo":
            entry["model"] = shared.setdefault(json.dumps(made_one["model"]), f"model {len(shared)}")
            entry["rest"] = {k: v for k, v in made_one.items() if k != "model"}
        out.append(entry)
    lines = [f'"{name}": {model}' for model, name in shared.items()]
    for entry in out:
        head = json.dumps({k: v for k, v in entry.items() if k != "cases"})[:-1]
        rows = ",\n".join("  " + json.dumps(row) for row in entry["cases"])
        entry["line"] = f'{head}, "cases": [\n{rows}]}}'
    (HERE / "tokenizer.json").write_text('{"models": {\n' + ",\n".join(lines) + '},\n"tokenizers": [\n' + ",\n".join(
        e["line"] for e in out) + "\n]}\n")
    print(sum(len(e["cases"]) for e in out), "strings for", len(out), "tokenizers")


def differences(codec, folder, reference, texts, name):
    lines = subprocess.run([codec, folder], input="".join(json.dumps(t) + "\n" for t in texts).encode(), capture_output=True)
    answers = lines.stdout.decode().rstrip("\n").split("\n")
    if lines.returncode or len(answers) != len(texts):
        print(name, "FAILS:", lines.stderr.decode())
        return 1
    bad = 0
    for text, answer in zip(texts, answers, strict=True):
        ours = json.loads(answer)
        try:
            theirs = {"ids": reference.encode(text, add_special_tokens=False).ids, "full": reference.encode(text).ids}
        except Exception as error:  # no token for unknown ones
            theirs = {"error": str(error)}
        try:
            if "error" not in theirs:
                theirs["text"] = reference.decode(theirs["ids"])
        except BaseException:  # its Strip panics where nothing is left
            ours.pop("text", None)
        if ours != theirs and not ("error" in ours and "error" in theirs):
            bad += 1
            if bad < 4:
                print("DIFFERENT", name, json.dumps(text)[:300], str(theirs)[:300], str(ours)[:300], sep="\n  ")
    return bad


def compare(codec, folder, n=10000):
    reference = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    reference.no_truncation(), reference.no_padding()
    texts = list(strings(n, seed=n, long=True))
    bad = differences(codec, folder, reference, texts, folder)
    print(f"{folder}: {len(texts)} strings, {bad} differ")
    return bad


def trained():
    """Models that the library trains on the demo's prompts."""
    text = [line for f in sorted(HERE.parents[1].glob("**/*.md")) for line in f.read_text().split("\n") if line]
    for kind in ("Unigram", "BPE"):
        for bytes_too in (False, True):
            t = Tokenizer(models.Unigram() if kind == "Unigram" else models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=bytes_too))
            t.pre_tokenizer = Tokenizer.from_str(json.dumps(
                {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": meta(),
                 "post_processor": None, "decoder": meta(), "model": BYTES})).pre_tokenizer
            specials = ["<unk>", "<s>", "</s>"] + (BYTE_TOKENS if bytes_too else [])
            trainer = (trainers.UnigramTrainer(vocab_size=3000, special_tokens=specials, unk_token="<unk>") if kind == "Unigram"
                       else trainers.BpeTrainer(vocab_size=3000, special_tokens=specials))
            t.train_from_iterator(text, trainer)
            made_one = json.loads(t.to_str())
            for scheme in ("always", "first"):
                for cuts in (False, True):
                    m = meta(prepend_scheme=scheme, split=cuts)
                    model = made_one["model"] | ({"byte_fallback": bytes_too} if kind == "Unigram" else {})
                    yield f"trained {kind} {bytes_too} {scheme} {cuts}", made_one | {"pre_tokenizer": m, "decoder": m, "model": model}


def components(codec, n=2000, only=None):
    bad, count = 0, 0
    for name, made_one in [*made(), *trained()]:
        if only and only not in name:
            continue
        text = json.dumps(made_one)
        reference = Tokenizer.from_str(text)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tokenizer.json").write_text(text)
            found = differences(codec, folder, reference, list(strings(n, seed=count + 1, long=True)), name)
        if found:
            print(f"{name}: {found} of {n} differ")
        bad, count = bad + found, count + 1
    print(f"{count} tokenizers, {n} strings each, {bad} differ")
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make()
    elif sys.argv[1:2] == ["compare"]:
        sys.exit(bool(compare(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 10000)))
    elif sys.argv[1:2] == ["components"]:
        sys.exit(bool(components(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2000, *sys.argv[4:5])))
    else:
        sys.exit(__doc__)
