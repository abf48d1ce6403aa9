/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "formats/codec.h"
#include "prompt/lines.h"
#include "prompt/prompt.h"
#include "tests/record/records.h"

static const cake_codec *const packs[] = {&cake_codec_gzip, &cake_codec_zstd};
enum { N_PACK = 2 };

static void pack_on(const cake_codec *pack, const char *bytes, size_t len, size_t piece, cake_buf *out)
{
    void *state = pack->pack_open();
    for (size_t i = 0; i < len; i += piece)
        pack->pack(state, bytes + i, len - i < piece ? len - i : piece, false, out);
    pack->pack(state, NULL, 0, true, out);
    pack->pack_close(state);
}

/* In pieces of those sizes; *whole: it ended where it may. NULL, or what is wrong. */
static const char *unpack_all(const cake_codec *pack, const cake_buf *packed, size_t in, size_t out,
                              cake_buf *into, bool *whole)
{
    char *room = cake_alloc(out, 1);
    void *state = pack->unpack_open();
    const char *wrong = NULL;
    *whole = true;
    for (size_t at = 0; at < packed->len && !wrong;) {
        cake_codec_flow flow = {packed->data + at, packed->len - at < in ? packed->len - at : in, NULL, 0};
        size_t given = flow.n_in;
        do {
            flow.out = room;
            flow.n_out = out;
            wrong = pack->unpack(state, &flow, whole);
            cake_buf_add(into, room, out - flow.n_out);
        } while (!wrong && !flow.n_out);
        CAKE_ASSERT(wrong || !flow.n_in);
        at += given;
    }
    pack->unpack_close(state);
    free(room);
    return wrong;
}

static void test_there_and_back(void)
{
    enum { N = 300000 };
    static const size_t sizes[][2] = {{1, 7}, {1000, 1}, {N, N}, {65537, 100}, {3, 1 << 20}};
    char *bytes = cake_alloc(N, 1);
    for (int i = 0; i < N; i++)
        bytes[i] = (char)(i % 1000 < 900 ? 'a' + (unsigned)i % 5 : (unsigned)i * (unsigned)i >> 3);
    for (int p = 0; p < N_PACK; p++) {
        cake_buf packed = {0};
        pack_on(packs[p], bytes, N, 777, &packed);
        size_t first = packed.len;
        pack_on(packs[p], bytes, 10, 3, &packed); /* a second member */
        pack_on(packs[p], "", 0, 1, &packed);     /* an empty one */
        CU_ASSERT(first < N / 4 && cake_codec_of("x.jsonl.gz") == packs[0] &&
                  cake_codec_of("X.ZST") == packs[1]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            cake_buf back = {0};
            bool whole;
            CU_ASSERT_PTR_NULL(unpack_all(packs[p], &packed, sizes[i][0], sizes[i][1], &back, &whole));
            CU_ASSERT(whole && back.len == N + 10 && !memcmp(back.data, bytes, N) &&
                      !memcmp(back.data + N, bytes, 10));
            cake_buf_free(&back);
        }
        cake_buf_free(&packed);
    }
    free(bytes);
}

/* Every length, and every byte changed: what comes out is a beginning of what went in, or wrong. */
static void test_damaged(void)
{
    static const char text[] = "{\"prompt\": \"one\"}\n{\"prompt\": \"two, three, three, three\"}\n";
    for (int p = 0; p < N_PACK; p++) {
        cake_buf packed = {0};
        pack_on(packs[p], text, sizeof text - 1, 10, &packed);
        int wrong = 0, unended = 0;
        for (size_t len = 1; len < packed.len; len++) {
            cake_buf cut = {packed.data, len, len}, back = {0};
            bool whole;
            wrong += unpack_all(packs[p], &cut, 5, 6, &back, &whole) != NULL;
            unended += !whole;
            CU_ASSERT(back.len < sizeof text && !memcmp(back.len ? back.data : "", text, back.len));
            cake_buf_free(&back);
        }
        CU_ASSERT(wrong == 0 && unended == (int)packed.len - 1);
        for (size_t i = 0; i < packed.len; i++) {
            cake_buf back = {0};
            bool whole;
            packed.data[i] ^= 0x10;
            const char *said = unpack_all(packs[p], &packed, 5, 6, &back, &whole);
            bool same = whole && back.len == sizeof text - 1 && !memcmp(back.data, text, back.len);
            CU_ASSERT(said || !whole || same); /* times, names and systems of a header may be anything */
            packed.data[i] ^= 0x10;
            cake_buf_free(&back);
        }
        cake_buf_free(&packed);
    }
}

static const char *write_file(const char *name, const cake_buf *bytes)
{
    const char *path = path_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, bytes->data, bytes->len) == (ssize_t)bytes->len);
    close(fd);
    return path;
}

static cake_err read_file(const char *path, int *n, cake_buf *last)
{
    cake_prompt *prompt;
    cake_request r;
    cake_err err = cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt);
    for (*n = 0; !err && !(err = cake_prompt_next(prompt, &r)); ++*n) {
        cake_buf_cut(last, 0);
        cake_buf_adds(last, r.err ? r.fault.message : r.text);
        double progress = cake_prompt_progress(prompt);
        CU_ASSERT(progress >= 0 && progress <= 1);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);
    return err;
}

static void test_prompts(void)
{
    cake_buf lines = {0}, last = {0}, said = {0};
    for (int i = 0; i < 100000; i++)
        cake_buf_addf(&lines, "{\"prompt\": \"request %d\"}\n", i);
    for (int p = 0; p < N_PACK; p++) {
        cake_buf packed = {0};
        char name[32];
        int n;
        pack_on(packs[p], lines.data, lines.len, 1 << 16, &packed);
        snprintf(name, sizeof name, "p.jsonl%s", packs[p]->ending);
        CU_ASSERT(read_file(write_file(name, &packed), &n, &last) == CAKE_END && n == 100000);
        CU_ASSERT_STRING_EQUAL(last.data, "request 99999");
        size_t all = packed.len;
        packed.len /= 2;
        cake_log_capture(&said);
        CU_ASSERT(read_file(write_file(name, &packed), &n, &last) == CAKE_ERR_FATAL && n > 1000 &&
                  n < 100000);
        packed.len = all;
        packed.data[all / 2] ^= 0x55;
        CU_ASSERT_EQUAL(read_file(write_file(name, &packed), &n, &last), CAKE_ERR_FATAL);
        CU_ASSERT_EQUAL(read_file(write_file(name, &lines), &n, &last), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        cake_buf wanted = {0};
        cake_buf_addf(&wanted, "p.jsonl%s: ends at byte %zu in the middle of its %s data", packs[p]->ending,
                      all / 2, packs[p]->name);
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data, wanted.data));
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "is damaged at byte "));
        cake_buf_free(&wanted);
        snprintf(name, sizeof name, "p.txt%s", packs[p]->ending);
        cake_buf_free(&packed);
        pack_on(packs[p], "a\\tb\n", 5, 5, &packed);
        CU_ASSERT(read_file(write_file(name, &packed), &n, &last) == CAKE_END && n == 1);
        CU_ASSERT_STRING_EQUAL(last.data, "a\tb");
        cake_buf_free(&packed);
    }
    cake_buf_free(&lines);
    cake_buf_free(&last);
    cake_buf_free(&said);
}

/* The library may read what was written before the format was settled; here that is damage, in pieces of any
 * size. */
static void test_old_frames(void)
{
    static const char old[] = "\x27\xB5\x2F\xFD\x04\x01\x00\x00\x00",
                      skipped[] = "\x5F\x2A\x4D\x18\x02\x00\x00\x00..";
    for (size_t in = 1; in < 16; in++) {
        cake_buf packed = {0}, back = {0};
        bool whole;
        cake_buf_add(&packed, skipped, sizeof skipped - 1);
        pack_on(&cake_codec_zstd, "line\n", 5, 5, &packed);
        CU_ASSERT_PTR_NULL(unpack_all(&cake_codec_zstd, &packed, in, 16, &back, &whole));
        CU_ASSERT(whole && back.len == 5);
        cake_buf_add(&packed, old, sizeof old - 1);
        back.len = 0;
        const char *wrong = unpack_all(&cake_codec_zstd, &packed, in, 16, &back, &whole);
        CU_ASSERT_FATAL(wrong != NULL);
        CU_ASSERT_PTR_NOT_NULL(strstr(wrong, "RFC 8878"));
        CU_ASSERT(back.len == 5 && !memcmp(back.data, "line\n", 5));
        cake_buf_free(&packed);
        cake_buf_free(&back);
    }
}

/* A file of a few thousand bytes that becomes a line of a gigabyte. */
static void test_bomb(void)
{
    enum { PIECE = 1 << 20 };
    char *zeros = cake_alloc(PIECE, 1);
    cake_buf packed = {0}, last = {0};
    void *state = cake_codec_zstd.pack_open();
    struct rusage before, after;
    int n;
    for (int i = 0; i < 1000; i++)
        cake_codec_zstd.pack(state, zeros, PIECE, false, &packed);
    cake_codec_zstd.pack(state, "\n{\"prompt\": \"x\"}", 16, true, &packed);
    cake_codec_zstd.pack_close(state);
    CU_ASSERT(packed.len < 200000);
    getrusage(RUSAGE_SELF, &before);
    CU_ASSERT(read_file(write_file("bomb.jsonl.zst", &packed), &n, &last) == CAKE_END && n == 2);
    getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    CU_ASSERT(after.ru_maxrss - before.ru_maxrss < 160 << 10);
#endif
    CU_ASSERT_STRING_EQUAL(last.data, "x");
    free(zeros);
    cake_buf_free(&packed);
    cake_buf_free(&last);
}

static void slurp(const char *path, cake_buf *out)
{
    char block[4096];
    FILE *f = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        cake_buf_add(out, block, n);
    fclose(f);
}

static void test_results(void)
{
    static const char *const names[] = {"r.jsonl", "r.jsonl.gz", "r.jsonl.zst", "r.txt", "r.txt.gz"};
    cake_buf texts[5] = {0};
    for (int i = 0; i < 5; i++) {
        cake_record_options options = options_of(path_of(names[i]));
        cake_recorder *recorder;
        CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
        read_all(recorder, 20000);
        for (int64_t j = 19999; j >= 0; j--) {
            cake_record r = answer_of(j, j % 2 ? "odd\n" : "even");
            CU_ASSERT_EQUAL_FATAL(cake_record_add(recorder, &r), CAKE_OK);
        }
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
        cake_record_close(recorder);
        CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK); /* it knows its own */
        CU_ASSERT_TRUE(cake_record_finished(recorder));
        cake_record_close(recorder);
        cake_buf bytes = {0};
        bool whole = true;
        slurp(options.path, &bytes);
        const cake_codec *pack = cake_codec_of(names[i]);
        CU_ASSERT_PTR_NULL(pack ? unpack_all(pack, &bytes, 1 << 16, 1 << 16, &texts[i], &whole) : NULL);
        if (!pack)
            cake_buf_add(&texts[i], bytes.data, bytes.len);
        CU_ASSERT(whole && (!pack || bytes.len < texts[i].len / 4));
        cake_buf_free(&bytes);
    }
    CU_ASSERT(texts[0].len > 1 << 20 && texts[1].len == texts[0].len &&
              !memcmp(texts[1].data, texts[0].data, texts[0].len));
    CU_ASSERT(texts[2].len == texts[0].len && !memcmp(texts[2].data, texts[0].data, texts[0].len));
    CU_ASSERT(texts[4].len == texts[3].len && !memcmp(texts[4].data, texts[3].data, texts[3].len));
    for (int i = 0; i < 5; i++)
        cake_buf_free(&texts[i]);
}

static void test_names(void)
{
    cake_buf said = {0};
    cake_prompt *prompt;
    cake_recorder *recorder;
    cake_record_options options = options_of("r.h5.gz");
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_prompt_open("p.h5.gz", CAKE_PROMPT_AUTO, &prompt), CAKE_ERR_USAGE);
    CU_ASSERT_EQUAL(cake_prompt_open("p.csv.gz", CAKE_PROMPT_AUTO, &prompt), CAKE_ERR_USAGE);
    CU_ASSERT_EQUAL(cake_record_open(&options, &recorder), CAKE_ERR_USAGE);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "p.csv.gz: .csv files are not supported"));
    CU_ASSERT_STRING_EQUAL(cake_record_form("a/x.txt.zst"), "txt");
    CU_ASSERT_STRING_EQUAL(cake_record_form("a.txt/x.gz"), "jsonl");
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"a line of a gigabyte in memory for one of 64 MiB", test_bomb}, /* first, while the peak is low */
        {"there and back, members, in pieces of any size", test_there_and_back},
        {"cut and damaged anywhere", test_damaged},
        {"frames of old, frames to skip", test_old_frames},
        {"prompts", test_prompts},
        {"results", test_results},
        {"names", test_names},
    };
    return SUITE_MAIN("pack", tests);
}
