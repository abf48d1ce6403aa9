/* SPDX-License-Identifier: Apache-2.0 */
#include "record/unpack.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/codec.h"
#include "records.h"

/* Everything that lines have: an answer with scores, a failure, a chat of two choices, U+0000 wherever it may
 * be. */
static void add_all(cake_recorder *recorder)
{
    static const cake_token_logprob scored[] = {{1, -0.5f}, {7, -1.25f},    {2, -1.25f},
                                                {1, -2},    {0, -INFINITY}, {7, 0}};
    static const size_t begin[] = {0, 3, 5};
    cake_fault fault;
    cake_fault_set(&fault, "top_p", "top_p is 9");
    cake_record first = answer_of(0, "Hello"), failed = answer_of(1, "");
    failed.fault = &fault;
    failed.id = "7";
    CU_ASSERT_EQUAL(cake_record_add(recorder, &failed), CAKE_OK);
    first = answer_of(0, "Hello");
    first.id = "\"Hello\"";
    first.n_top = first.n_logprob = 1;
    choice.logprobs = scored;
    choice.begin = begin;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &first), CAKE_OK);
    cake_record chat = answer_of(2, "Hi\n\"\xC3\xA9\"");
    cake_choice two[] = {choice, choice};
    two[1].text = "Hi";
    two[1].text_len = 2;
    chat.form = CAKE_FORM_BATCH_CHAT;
    chat.chat = chat.return_token_ids = true;
    chat.id = "\"c\"";
    chat.choices = two;
    chat.n_choice = 2;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &chat), CAKE_OK);
    cake_record zero = answer_of(3, ""), none = answer_of(4, "x");
    zero.id = "\"a\\u0000b\"";
    choice.text = "x\0\x01\x7F\xC3\xA9\x04";
    choice.text_len = 7;
    zero.return_token_ids = true;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &zero), CAKE_OK);
    none.id = "\"\\u0000\"";
    none.fault = &fault;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &none), CAKE_OK);
}

/* The lines of the file, after seven bytes of other lines. */
static cake_err expand(const char *path, int64_t lines, cake_buf *out)
{
    cake_unpack_to to;
    CU_ASSERT_EQUAL_FATAL(cake_unpack_open(path, &to), CAKE_OK);
    int64_t len = 0;
    int fd = to.fd;
    CU_ASSERT_EQUAL(write(fd, "before\n", 7), 7);
    to.at = 7;
    cake_err err = cake_unpack(path, lines, &to, &len);
    char *text = cake_alloc((size_t)len + 7, 1);
    CU_ASSERT(err || pread(fd, text, (size_t)len + 7, 0) == (ssize_t)len + 7);
    if (!err && !memcmp(text, "before\n", 7))
        cake_buf_add(out, text + 7, (size_t)len);
    free(text);
    close(fd);
    return err;
}

/* Whatever strings hold: the lines of RESULTS.h5 are those of RESULTS.jsonl. */
static void test_back(void)
{
    static const char *const names[] = {"back.jsonl", "back.h5", "back.jsonl.gz"};
    cake_buf lines[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s", path_of(names[i]));
        cake_record_options options = options_of(path);
        cake_recorder *recorder = NULL;
        CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
        add_all(recorder);
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
        cake_record_close(recorder);
        CU_ASSERT_EQUAL(cake_unpack_is_needed(path), i > 0);
        cake_err err =
            i > 0 ? expand(path, 5, &lines[i]) : cake_file_read("test", path, false, 1 << 20, &lines[i]);
        CU_ASSERT_EQUAL(err, CAKE_OK);
    }
    CU_ASSERT_STRING_EQUAL(lines[0].data, lines[1].data);
    CU_ASSERT_STRING_EQUAL(lines[0].data, lines[2].data);
    hid_t file = H5Fopen(path_of("back.h5"), H5F_ACC_RDONLY, H5P_DEFAULT),
          set = H5Dopen2(file, "requests/id", H5P_DEFAULT);
    hid_t type = H5Dget_type(set);
    char *names_there[5] = {0};
    CU_ASSERT_FATAL(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, names_there) >= 0);
    CU_ASSERT(!strcmp(names_there[3], "a\\u0000b") && !strcmp(names_there[4], "\\u0000"));
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
    for (int i = 0; i < 3; i++)
        cake_buf_free(&lines[i]);
}

static void put(hid_t file, const char *name, hid_t type, hsize_t n, const void *values)
{
    hid_t space = H5Screate_simple(1, &n, NULL), link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    hid_t set = H5Dcreate2(file, name, type, space, link, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Pclose(link);
    H5Sclose(space);
}

/* A file of results of one request: columns as they should be, but for what a case changes. */
static struct {
    const char *line;
    int64_t first, count, text_end;
    bool no_floats, no_rows;
} made;

static const char *file_of_results(void)
{
    const char *path = path_of("made.h5");
    hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put(f, "lines/data", H5T_NATIVE_UINT8, strlen(made.line), made.line);
    put(f, "lines/offsets", H5T_NATIVE_INT64, 2, (int64_t[]){0, (int64_t)strlen(made.line)});
    put(f, "text/data", H5T_NATIVE_UINT8, 3, "abc");
    put(f, "text/offsets", H5T_NATIVE_INT64, 2, (int64_t[]){0, made.text_end});
    put(f, "tokens/data", H5T_NATIVE_INT32, 2, (int[]){1, -2});
    put(f, "tokens/offsets", H5T_NATIVE_INT64, 2, (int64_t[]){0, 2});
    put(f, "logprobs/data", made.no_floats ? H5T_NATIVE_INT32 : H5T_NATIVE_DOUBLE, 1, (double[]){-0.5});
    put(f, "logprobs/offsets", H5T_NATIVE_INT64, 2, (int64_t[]){0, 1});
    put(f, "prompt_tokens/data", H5T_NATIVE_INT32, 1, (int[]){7});
    put(f, "prompt_tokens/offsets", H5T_NATIVE_INT64, made.no_rows ? 1 : 2, (int64_t[]){0, 1});
    put(f, "requests/first_choice", H5T_NATIVE_INT64, 1, &made.first);
    put(f, "requests/choices", H5T_NATIVE_INT64, 1, &made.count);
    H5Fclose(f);
    return path;
}

static void test_hostile(void)
{
    static const struct {
        const char *line;
        int64_t first, count, text_end;
        bool no_floats, no_rows;
        const char *said, *out;
    } cases[] = {
        {"{\x01 \x02 [\x03] \x04}", 0, 1, 3, false, false, NULL, "{\"abc\" [1, -2] [-0.5] [7]}\n"},
        {"\x04\x04", 0, 0, 3, false, false, NULL, "[7][7]\n"},
        {"\x01\x01", 0, 1, 3, false, false, "made.h5: lines: row 0 refers to answer 1 of 1", NULL},
        {"\x01", 1, 1, 3, false, false, "made.h5: text/offsets: has 1 rows; row 1 is referenced", NULL},
        {"\x01", -1, 1, 3, false, false, "made.h5: requests/first_choice: row 0 is -1; there are 1 answers",
         NULL},
        {"\x01", INT64_MAX, INT64_MAX, 3, false, false, "requests/first_choice: row 0 is 9223372036854775807",
         NULL},
        {"\x01", 0, 1, 4, false, false, "made.h5: text/offsets: row 0 goes from 0 to 4; expected ascending",
         NULL},
        {"\x03", 0, 1, 3, true, false, "made.h5: logprobs/data: holds no floating-point numbers", NULL},
        {"\x04", 0, 1, 3, false, true, "have 1, 1, 0 and 1 rows; expected equal numbers", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0}, said = {0};
        made.line = cases[i].line;
        made.first = cases[i].first;
        made.count = cases[i].count;
        made.text_end = cases[i].text_end;
        made.no_floats = cases[i].no_floats;
        made.no_rows = cases[i].no_rows;
        const char *path = file_of_results();
        cake_log_capture(&said);
        cake_err err = expand(path, 1, &out);
        cake_log_capture(NULL);
        bool right = cases[i].out ? !err && out.data && !strcmp(out.data, cases[i].out)
                                  : err == CAKE_ERR_FATAL && said.data && strstr(said.data, cases[i].said);
        CU_ASSERT(right);
        if (!right)
            printf("case %zu: %s, %s\n", i, said.data ? said.data : "nothing said", out.data ? out.data : "");
        cake_buf_free(&out);
        cake_buf_free(&said);
    }
}

/* Packed results that are cut or damaged. */
static void test_packed(void)
{
    static const struct {
        off_t at; /* negative: cut there */
        const char *said;
    } cases[] = {{-20, "back.jsonl.gz: ends at byte 20 in the middle of its gzip data"},
                 {0, "back.jsonl.gz: is damaged at byte "}};
    char path[200];
    snprintf(path, sizeof path, "%s/back.jsonl.gz", suite_tmp());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0}, said = {0};
        int fd = open(path, O_WRONLY);
        CU_ASSERT(cases[i].at < 0 ? !ftruncate(fd, -cases[i].at) : pwrite(fd, "x", 1, cases[i].at) == 1);
        close(fd);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(expand(path, 5, &out), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data, cases[i].said));
        cake_buf_free(&out);
        cake_buf_free(&said);
    }
}

/* Files that become more than they should, and where that is seen. */
static void test_too_much(void)
{
    cake_buf out = {0}, said = {0}, packed = {0};
    char path[200], link[64], to_path[300] = "", *block = cake_alloc(1 << 20, 1);
    cake_unpack_to to;
    snprintf(path, sizeof path, "%s/bomb.jsonl.zst", suite_tmp());
    memset(block, 'x', 1 << 20);
    void *pack = cake_codec_zstd.pack_open();
    for (int i = 0; i < 66; i++)
        cake_codec_zstd.pack(pack, block, 1 << 20, i == 65, &packed);
    cake_codec_zstd.pack_close(pack);
    FILE *f = fopen(path, "w");
    CU_ASSERT_FATAL(f && fwrite(packed.data, 1, packed.len, f) == packed.len && !fclose(f));
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(expand(path, 1, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(expand(path_of("back.jsonl.gz"), 4, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(expand(path_of("back.h5"), 4, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_unpack_open(path_of("absent/merged.jsonl"), &to), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    static const char *const wanted[] = {
        "bomb.jsonl.zst: expands to more than 64 MiB of lines, which is more than 1024 times its size",
        "back.jsonl.gz: has more than the 4 lines that ", "back.h5: has 5 rows of lines, but ",
        "absent/merged.jsonl cannot be created: No such file"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data, wanted[i]));
        if (!strstr(said.data, wanted[i]))
            printf("no message: %s\n", wanted[i]);
    }
    /* the file lies there, and has no name that could stay */
    CU_ASSERT_EQUAL_FATAL(cake_unpack_open(path_of("merged.jsonl"), &to), CAKE_OK);
    snprintf(link, sizeof link, "/proc/self/fd/%d", to.fd);
    CU_ASSERT(readlink(link, to_path, sizeof to_path - 1) > 0 &&
              strstr(to_path, path_of("merged.jsonl.lines-")) && strstr(to_path, " (deleted)"));
    close(to.fd);
    free(block);
    cake_buf_free(&packed);
    cake_buf_free(&out);
    cake_buf_free(&said);
}

int main(void)
{
    static const suite_test tests[] = {
        {"lines again, to the byte", test_back},
        {"more than there should be", test_too_much},
        {"packed ones that are damaged", test_packed},
        {"columns that are none of a run's", test_hostile},
    };
    return SUITE_MAIN("expand", tests);
}
