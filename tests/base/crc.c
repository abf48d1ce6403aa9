/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms. */
static void test_known(void)
{
    unsigned char text[32];
    CU_ASSERT_EQUAL(cake_crc("", 0), 0);
    CU_ASSERT_EQUAL(cake_crc("123456789", 9), 0xE3069283);
    memset(text, 0, sizeof text);
    CU_ASSERT_EQUAL(cake_crc(text, sizeof text), 0x8A9136AA);
    memset(text, 0xFF, sizeof text);
    CU_ASSERT_EQUAL(cake_crc(text, sizeof text), 0x62A8AB43);
    for (int i = 0; i < 32; i++)
        text[i] = (unsigned char)i;
    CU_ASSERT_EQUAL(cake_crc(text, sizeof text), 0x46DD794E);
    for (int i = 0; i < 32; i++)
        text[i] = (unsigned char)(31 - i);
    CU_ASSERT_EQUAL(cake_crc(text, sizeof text), 0x113FDB5C);
    static const unsigned char command[48] = {
        0x01, 0xC0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    CU_ASSERT_EQUAL(cake_crc(command, sizeof command), 0xD9963A56);
}

/* Bit by bit, as the definition has it. */
static uint32_t divide(const unsigned char *data, size_t len)
{
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < len; i++)
        for (int bit = 0; bit < 8; bit++) {
            uint32_t top = (state ^ data[i] >> bit) & 1;
            state = state >> 1 ^ (top ? 0x82F63B78U : 0);
        }
    return ~state;
}

enum { N = 20000 };
static unsigned char noise[N];

static void make_noise(void)
{
    uint32_t state = 1;
    for (int i = 0; i < N; i++)
        noise[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
}

/* Every length and boundary around what the instruction takes at a time, and with tables alone. */
static void test_lengths(void)
{
    static const size_t lengths[] = {0,    1,    7,    8,    9,    15,   16,   17,   63,   64,   65,
                                     1000, 3071, 3072, 3073, 3080, 6143, 6144, 6151, 9999, 19990};
    make_noise();
    for (size_t from = 0; from < 9; from++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            uint32_t wanted = divide(noise + from, lengths[i]);
            CU_ASSERT_EQUAL(cake_crc(noise + from, lengths[i]), wanted);
            CU_ASSERT_EQUAL(cake_crc_plain(0, noise + from, lengths[i]), wanted);
        }
}

static void test_parts(void)
{
    make_noise();
    uint32_t whole = cake_crc(noise, N), going = 0;
    for (size_t at = 0, n = 1; at < N; at += n, n = n * 2 + 1) {
        n = n < N - at ? n : N - at;
        going = cake_crc_on(going, noise + at, n);
    }
    CU_ASSERT_EQUAL(going, whole);
    for (size_t each = 1; each <= N; each = each * 3 + 1) {
        uint32_t parts = 0;
        for (size_t at = (N - 1) / each * each;; at -= each) { /* the last part first */
            size_t n = each < N - at ? each : N - at;
            parts ^= cake_crc_part(noise + at, n, (int64_t)(N - at - n));
            if (!at)
                break;
        }
        CU_ASSERT_EQUAL(cake_crc_whole(parts, N), whole);
    }
    CU_ASSERT_EQUAL(cake_crc_whole(0, 0), 0);
}

/* Zeros after more bytes than fit into memory: x has the order 2^31 - 1 modulo this polynomial. */
static void test_far(void)
{
    const int64_t turn = (1LL << 31) - 1; /* 8 times as many bits are whole turns, too */
    CU_ASSERT_EQUAL(cake_crc_part("a", 1, turn), cake_crc_part("a", 1, 0));
    CU_ASSERT_EQUAL(cake_crc_part("a", 1, 1000 * turn + 12345), cake_crc_part("a", 1, 12345));
    CU_ASSERT_NOT_EQUAL(cake_crc_part("a", 1, turn - 1), cake_crc_part("a", 1, 0));
}

static void test_flips(void)
{
    make_noise();
    uint32_t right = cake_crc(noise, 4096);
    for (int bit = 0; bit < 4096 * 8; bit += 61) {
        noise[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_NOT_EQUAL(cake_crc(noise, 4096), right);
        noise[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"RFC 3720's vectors", test_known},      {"the definition, at every length", test_lengths},
        {"parts in any order", test_parts},      {"parts far apart", test_far},
        {"every flipped bit shows", test_flips},
    };
    return SUITE_MAIN("crc", tests);
}
