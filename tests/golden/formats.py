# SPDX-License-Identifier: Apache-2.0
"""The checksums of tests/kernels/format.c: blocks of made-up bytes, dequantised by gguf-py.

usage: python tests/golden/formats.py    (needs gguf and numpy)
"""
import gguf
import numpy
from gguf import quants

BLOCKS = 24
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def made_up(n):
    state, out = 1, bytearray()
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(state >> 24)
    return out


for name, halves in HALVES.items():
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    raw = made_up(BLOCKS * size)
    for block in range(BLOCKS):
        for at in halves:  # finite: an exponent of 0 to 15
            raw[block * size + at + 1] &= 0xBF
        if name == "MXFP4":
            raw[block * size] = raw[block * size] % 100 + 80
    got = quants.dequantize(numpy.frombuffer(bytes(raw), numpy.uint8).reshape(1, -1), kind)
    got = numpy.where(got == 0, numpy.float32(0), got)  # -0 is 0
    print(f'    {{"{name.lower()}", 0x{crc32c(got.astype("<f4").tobytes()):08X}}},')
