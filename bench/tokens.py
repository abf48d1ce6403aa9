#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our tokenizer compared with the `tokenizers` library, on one core: `python3 bench/tokens.py TOKENS FILE DIR...`

TOKENS is bench/tokens of a build. Prints CSV: tokenizer, program, seconds to open, MB/s, tokens.
"""
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402


def pieces(data, size=20000):
    at = 0
    while at < len(data):
        end = at + size if len(data) - at > size else len(data)
        while end < len(data) and data[end - 1] != 10:
            end += 1
        yield data[at:end].decode()
        at = end


def main(program, file, *folders):
    data = open(file, "rb").read()
    texts = list(pieces(data))
    print("tokenizer,program,open_s,mb_per_s,tokens", flush=True)
    for folder in folders:
        subprocess.run([program, folder, file], check=True)
        begin = time.perf_counter()
        tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        opened, best, n = time.perf_counter() - begin, 1e9, 0
        tokenizer.no_truncation(), tokenizer.no_padding()
        for _ in range(3):
            begin = time.perf_counter()
            n = sum(len(tokenizer.encode_batch_fast([t], add_special_tokens=False)[0].ids) for t in texts)
            best = min(best, time.perf_counter() - begin)
        print(f"{os.path.basename(folder)},tokenizers,{opened:.3f},{len(data) / 1e6 / best:.2f},{n}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
