/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes. Out: their CRC-32C. Invariant: the instruction and the tables give the same result.
 *
 * A text is a polynomial over GF(2) with its first bit as the highest power; its remainder by P is the
 * checksum. Remainders are kept with the highest power in the lowest bit, as the instruction keeps them. A
 * remainder starts from all ones rather than from 0, which equals exclusive-oring ones to the first 32 bits:
 * so the remainder of a whole is the sum of those of its parts, each times x to the number of bits that
 * follow it, and of the ones.
 */
#include "base/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#define P   0x82F63B78U /* without its x^32 */
#define ONE 0x80000000U /* x^0 */

enum { POWERS = 64, STRIDE = 8 };

static uint32_t table[STRIDE][256]; /* the contribution of a byte that 0 to 7 more bytes follow */
static uint32_t power[POWERS];      /* x^(2^i) */
static uint32_t (*run)(uint32_t state, const unsigned char *data, size_t len);

static uint32_t times_x(uint32_t a)
{
    return a & 1 ? a >> 1 ^ P : a >> 1;
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit; bit >>= 1, b = times_x(b))
        product ^= a & bit ? b : 0;
    return product;
}

/* state times x^(8 bytes) */
static uint32_t shift(uint32_t state, int64_t bytes)
{
    uint64_t bits = (uint64_t)bytes << 3;
    for (int i = 0; bits; i++, bits >>= 1)
        if (bits & 1)
            state = multiply(power[i], state);
    return state;
}

static uint32_t run_tables(uint32_t state, const unsigned char *data, size_t len)
{
    for (; len >= STRIDE; data += STRIDE, len -= STRIDE) {
        uint32_t next = 0;
        for (int i = 0; i < STRIDE; i++)
            next ^= table[STRIDE - 1 - i][(i < 4 ? state >> 8 * i & 0xFF : 0) ^ data[i]];
        state = next;
    }
    for (; len; data++, len--)
        state = state >> 8 ^ table[0][(state ^ *data) & 0xFF];
    return state;
}

/* The instruction of the processor: WITH_CRC before a function that has it; eight bytes, and one. */
#if defined(__x86_64__)
#define HAVE_INSTRUCTION 1
#define WITH_CRC         __attribute__((target("sse4.2")))
WITH_CRC static inline uint32_t add_word(uint32_t state, uint64_t word)
{
    return (uint32_t)__builtin_ia32_crc32di(state, word);
}

WITH_CRC static inline uint32_t add_byte(uint32_t state, unsigned char byte)
{
    return __builtin_ia32_crc32qi(state, byte);
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
#define HAVE_INSTRUCTION 1
#define WITH_CRC
static inline uint32_t add_word(uint32_t state, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    return state;
}

static inline uint32_t add_byte(uint32_t state, unsigned char byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    return state;
}

static bool has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}
#endif

#ifdef HAVE_INSTRUCTION
/* Three lanes at a time: the instruction has a latency of two or three cycles. */
enum { LANE = 1024 };
static uint32_t past_lane; /* x^(8 LANE) */

WITH_CRC static uint32_t run_instruction(uint32_t a, const unsigned char *data, size_t len)
{
    uint64_t word[3];
    for (; len >= 3 * LANE; data += 3 * LANE, len -= 3 * LANE) {
        uint32_t b = 0, c = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            memcpy(&word[0], data + i, 8);
            memcpy(&word[1], data + LANE + i, 8);
            memcpy(&word[2], data + 2 * LANE + i, 8);
            a = add_word(a, word[0]);
            b = add_word(b, word[1]);
            c = add_word(c, word[2]);
        }
        a = multiply(past_lane, a) ^ b;
        a = multiply(past_lane, a) ^ c;
    }
    for (; len >= 8; data += 8, len -= 8) {
        memcpy(word, data, 8);
        a = add_word(a, *word);
    }
    for (; len; data++, len--)
        a = add_byte(a, *data);
    return a;
}
#endif

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t state = i;
        for (int bit = 0; bit < 8; bit++)
            state = times_x(state);
        table[0][i] = state;
    }
    for (int row = 1; row < STRIDE; row++)
        for (int i = 0; i < 256; i++)
            table[row][i] = table[row - 1][i] >> 8 ^ table[0][table[row - 1][i] & 0xFF];
    power[0] = ONE >> 1;
    for (int i = 1; i < POWERS; i++)
        power[i] = multiply(power[i - 1], power[i - 1]);
    run = run_tables;
#ifdef HAVE_INSTRUCTION
    past_lane = shift(ONE, LANE);
    if (has_instruction())
        run = run_instruction;
#endif
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_tables);
}

uint32_t cake_crc_on(uint32_t before, const void *data, size_t len)
{
    prepare();
    return ~run(~before, data, len);
}

uint32_t cake_crc(const void *data, size_t len)
{
    return cake_crc_on(0, data, len);
}

uint32_t cake_crc_plain(uint32_t before, const void *data, size_t len)
{
    prepare();
    return ~run_tables(~before, data, len);
}

uint32_t cake_crc_part(const void *data, size_t len, int64_t n_after)
{
    prepare();
    return shift(run(0, data, len), n_after);
}

uint32_t cake_crc_whole(uint32_t parts, int64_t len)
{
    prepare();
    return ~(parts ^ shift(UINT32_MAX, len));
}
