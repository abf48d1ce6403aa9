/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes, in parts. Out: their sum in lower-case hexadecimal digits.
 * Invariant: block holds the last len % 64 bytes.
 */
#include "hub/sha.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, LEN_AT = 56 };

static const uint32_t k256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static uint32_t word_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round; the caller renames the variables from round to round. */
#define ROUND(a, b, c, d, e, f, g, h, t)                                                                     \
    h += (rotated(e, 26) ^ rotated(e, 21) ^ rotated(e, 7)) + (g ^ (e & (f ^ g))) + w[t];                     \
    d += h;                                                                                                  \
    h += (rotated(a, 30) ^ rotated(a, 19) ^ rotated(a, 10)) + ((a & b) | (c & (a | b)))

static void add_rounds(uint32_t *state, const uint32_t *w)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 8) {
        ROUND(a, b, c, d, e, f, g, h, t);
        ROUND(h, a, b, c, d, e, f, g, t + 1);
        ROUND(g, h, a, b, c, d, e, f, t + 2);
        ROUND(f, g, h, a, b, c, d, e, t + 3);
        ROUND(e, f, g, h, a, b, c, d, t + 4);
        ROUND(d, e, f, g, h, a, b, c, t + 5);
        ROUND(c, d, e, f, g, h, a, b, t + 6);
        ROUND(b, c, d, e, f, g, h, a, t + 7);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void (*rounds)(uint32_t *state, const uint32_t *w); /* NULL: not chosen yet */

#if defined(__x86_64__)
typedef int quad __attribute__((vector_size(16)));

/* The instruction takes two rounds, of halves of the state in an order of its own. */
__attribute__((target("sha,sse4.1"))) static void add_rounds_sha(uint32_t *state, const uint32_t *w)
{
    uint32_t *s = state;
    quad abef = {(int)s[5], (int)s[4], (int)s[1], (int)s[0]},
         cdgh = {(int)s[7], (int)s[6], (int)s[3], (int)s[2]};
    for (int t = 0; t < 64; t += 2) {
        quad next = __builtin_ia32_sha256rnds2(cdgh, abef, (quad){(int)w[t], (int)w[t + 1], 0, 0});
        cdgh = abef;
        abef = next;
    }
    s[5] += (uint32_t)abef[0], s[4] += (uint32_t)abef[1], s[1] += (uint32_t)abef[2],
        s[0] += (uint32_t)abef[3];
    s[7] += (uint32_t)cdgh[0], s[6] += (uint32_t)cdgh[1], s[3] += (uint32_t)cdgh[2],
        s[2] += (uint32_t)cdgh[3];
}

static bool has_instruction(void)
{
    enum { FEATURES = 7, SHA = 1 << 29 };
    uint32_t a = 0, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (a < FEATURES)
        return false;
    a = FEATURES, c = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return b & SHA && __builtin_cpu_supports("sse4.1");
}
#endif

bool cake_sha_choose(bool plain)
{
    rounds = add_rounds;
#if defined(__x86_64__)
    if (!plain && has_instruction())
        rounds = add_rounds_sha;
#else
    (void)plain;
#endif
    return rounds != add_rounds;
}

static void add_block_256(uint32_t *state, const unsigned char *p)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = word_at(p + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = (rotated(b, 15) ^ rotated(b, 13) ^ b >> 10) + w[t - 7] +
               (rotated(a, 25) ^ rotated(a, 14) ^ a >> 3) + w[t - 16];
    }
    for (int t = 0; t < 64; t++)
        w[t] += k256[t];
    rounds(state, w);
}

static void add_block_1(uint32_t *state, const unsigned char *p)
{
    static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int t = 0; t < 16; t++)
        w[t] = word_at(p + 4 * t);
    for (int t = 16; t < 80; t++)
        w[t] = rotated(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        uint32_t f = t < 20              ? (b & c) | (~b & d)
                     : t < 40 || t >= 60 ? b ^ c ^ d
                                         : (b & c) | (b & d) | (c & d);
        uint32_t next = rotated(a, 5) + f + e + k[t / 20] + w[t];
        e = d, d = c, c = rotated(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

static void add_block(cake_sha *sha, const unsigned char *p)
{
    (sha->kind == CAKE_SHA256 ? add_block_256 : add_block_1)(sha->state, p);
}

void cake_sha_begin(cake_sha *sha, cake_sha_kind kind)
{
    static const uint32_t first[2][8] = {
        {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0},
        {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
    *sha = (cake_sha){.kind = kind};
    if (!rounds)
        cake_sha_choose(false);
    memcpy(sha->state, first[kind == CAKE_SHA256], sizeof sha->state);
}

void cake_sha_add(cake_sha *sha, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    size_t held = sha->len % BLOCK;
    sha->len += len;
    if (held && held + len >= BLOCK) {
        memcpy(sha->block + held, at, BLOCK - held);
        add_block(sha, sha->block);
        at += BLOCK - held;
        len -= BLOCK - held;
        held = 0;
    }
    for (; !held && len >= BLOCK; at += BLOCK, len -= BLOCK)
        add_block(sha, at);
    if (len)
        memcpy(sha->block + held, at, len);
}

void cake_sha_hex(cake_sha *sha, char hex[CAKE_SHA_HEX])
{
    unsigned char pad[2 * BLOCK] = {0x80};
    size_t held = sha->len % BLOCK, n = (held < LEN_AT ? BLOCK : 2 * BLOCK) - held;
    uint64_t bits = 8 * sha->len;
    for (int i = 0; i < 8; i++)
        pad[n - 1 - (size_t)i] = (unsigned char)(bits >> 8 * i);
    cake_sha_add(sha, pad, n);
    for (int i = 0; i < (sha->kind == CAKE_SHA256 ? 8 : 5); i++)
        snprintf(hex + 8 * i, 9, "%08x", sha->state[i]);
}
