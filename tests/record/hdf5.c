/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "formats/h5.h"
#include "prompt/prompt.h"
#include "records.h"

/* ---- columns */

static void test_columns(void)
{
    enum { N = 40000 }; /* more than two chunks, and a window */
    const char *path = path_of("columns.h5");
    close(open(path, O_WRONLY | O_CREAT, 0666));
    cake_h5 *file = cake_h5_create(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    cake_h5_column *longs = cake_h5_add(file, "a/long", CAKE_H5_LONG),
                   *bytes = cake_h5_add(file, "b", CAKE_H5_BYTE);
    cake_h5_column *texts = cake_h5_add(file, "a/text", CAKE_H5_TEXT),
                   *words = cake_h5_add(file, "w", CAKE_H5_WORD);
    for (int64_t i = 0; i < N; i++) {
        char text[24], *at = text;
        snprintf(text, sizeof text, "%lld", (long long)i * i);
        cake_h5_put(longs, &i, 1);
        cake_h5_put(texts, &at, 1);
    }
    unsigned char *byte = cake_alloc(10 * N, 1);
    for (size_t i = 0; i < 10 * N; i++)
        byte[i] = (unsigned char)(i * i >> 7);
    cake_h5_put(bytes, byte, 10 * N);
    static const char two[2][CAKE_H5_WORD_LEN] = {"stop", "length"};
    cake_h5_put(words, two, 2);
    CU_ASSERT_EQUAL(cake_h5_finish(file), 0);

    CU_ASSERT_EQUAL_FATAL(cake_h5_open("test", path, &file), CAKE_OK);
    CU_ASSERT_EQUAL(cake_h5_look(file, "a"), CAKE_H5_GROUP);
    CU_ASSERT_EQUAL(cake_h5_look(file, "a/text"), CAKE_H5_COLUMN);
    CU_ASSERT_EQUAL(cake_h5_look(file, "a/none"), CAKE_H5_ABSENT);
    CU_ASSERT_EQUAL(cake_h5_look(file, "b/none"), CAKE_H5_OTHER);
    CU_ASSERT(!cake_h5_get(file, "a/long", &longs) && !cake_h5_get(file, "b", &bytes) &&
              !cake_h5_get(file, "/a/text", &texts) && !cake_h5_get(file, "w", &words));
    CU_ASSERT(cake_h5_length(longs) == N && cake_h5_length(bytes) == 10 * N &&
              cake_h5_type_of(bytes) == CAKE_H5_BYTE);
    int64_t pair[2], wrong = 0;
    cake_buf text = {0};
    size_t len;
    for (int64_t i = 0; i < N - 1; i++) {
        cake_buf_cut(&text, 0);
        wrong += cake_h5_read(longs, i, 2, pair) || pair[0] != i || pair[1] != i + 1;
        wrong += cake_h5_read_text(texts, i, 100, &len, &text) || atoll(text.data) != i * i ||
                 len != strlen(text.data);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    unsigned char *back = cake_alloc(10 * N, 1);
    CU_ASSERT(!cake_h5_read(bytes, 0, 10 * N, back) && !memcmp(back, byte, 10 * N));
    CU_ASSERT(!cake_h5_read(bytes, 100000, 50000, back) && !memcmp(back, byte + 100000, 50000));
    cake_buf_cut(&text, 0);
    CU_ASSERT(!cake_h5_read_text(words, 1, 100, &len, &text) && len == 6 && !strcmp(text.data, "length"));
    CU_ASSERT(!cake_h5_read_text(words, 0, 3, &len, &text) && len == 4 &&
              text.len == 6); /* too long: not taken */
    free(back);
    free(byte);
    cake_buf_free(&text);
    cake_h5_close(file);
}

/* ---- results */

static cake_recorder *recorder_at(const char *path)
{
    cake_record_options options = options_of(path);
    cake_recorder *recorder = NULL;
    options.identity =
        "{\"isa\": \"ref\", \"seed\": 7, \"penalty\": 1.5, \"system\": null, \"stop\": [\"a\"]}";
    options.command = "cake-mpi run";
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    return recorder;
}

/* An answer, a failure, a chat of two choices; in another order than that of the input. */
static void add_all(cake_recorder *recorder)
{
    static const cake_token_logprob scored[] = {{1, -0.5f}, {2, -1.25f}, {0, -INFINITY}};
    static const size_t begin[] = {0, 3, 5};
    cake_fault fault;
    cake_fault_set(&fault, "top_p", "top_p is 9");
    cake_record failed = answer_of(1, "");
    failed.fault = &fault;
    failed.id = "7";
    CU_ASSERT_EQUAL(cake_record_add(recorder, &failed), CAKE_OK);
    cake_record chat = answer_of(2, "Hi\n\"\xC3\xA9\"");
    cake_choice two[] = {choice, choice};
    two[1].text = "Hi";
    two[1].text_len = 2;
    two[1].finish = CAKE_FINISH_LENGTH;
    chat.form = CAKE_FORM_BATCH_CHAT;
    chat.chat = chat.return_token_ids = true;
    chat.id = "\"c\"";
    chat.index = 5;
    chat.choices = two;
    chat.n_choice = 2;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &chat), CAKE_OK);
    cake_record first = answer_of(0, "Hello");
    first.prompt = "Say \"it\"";
    first.prompt_len = 8;
    first.id = "\"a\"";
    first.n_top = first.n_logprob = 0;
    choice.logprobs = scored;
    choice.begin = begin;
    CU_ASSERT_EQUAL(cake_record_add(recorder, &first), CAKE_OK);
}

static int64_t at(cake_h5 *file, const char *name, int64_t row)
{
    cake_h5_column *column;
    int64_t value = -1;
    unsigned char byte = 0;
    CU_ASSERT_EQUAL_FATAL(cake_h5_get(file, name, &column), CAKE_OK);
    CU_ASSERT_FATAL(row < cake_h5_length(column));
    CU_ASSERT_EQUAL(
        cake_h5_read(column, row, 1, cake_h5_type_of(column) == CAKE_H5_BYTE ? (void *)&byte : &value),
        CAKE_OK);
    return cake_h5_type_of(column) == CAKE_H5_BYTE ? byte : value;
}

static bool is_text(cake_h5 *file, const char *name, int64_t row, const char *expected)
{
    cake_h5_column *column;
    cake_buf text = {0};
    size_t len;
    CU_ASSERT_EQUAL_FATAL(cake_h5_get(file, name, &column), CAKE_OK);
    bool same = !cake_h5_read_text(column, row, 1000, &len, &text) && !strcmp(text.data, expected);
    cake_buf_free(&text);
    return same;
}

/* Row of a group of bytes. */
static bool is_bytes(cake_h5 *file, const char *name, int64_t row, const char *expected)
{
    char path[64], got[1024] = {0};
    cake_h5_column *data, *offsets;
    int64_t pair[2];
    snprintf(path, sizeof path, "%s/data", name);
    CU_ASSERT_EQUAL_FATAL(cake_h5_get(file, path, &data), CAKE_OK);
    snprintf(path, sizeof path, "%s/offsets", name);
    CU_ASSERT_EQUAL_FATAL(cake_h5_get(file, path, &offsets), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_h5_read(offsets, row, 2, pair), CAKE_OK);
    CU_ASSERT_FATAL(pair[1] - pair[0] < (int64_t)sizeof got);
    CU_ASSERT_EQUAL(cake_h5_read(data, pair[0], (size_t)(pair[1] - pair[0]), got), CAKE_OK);
    if (strcmp(got, expected) != 0)
        printf("%s row %lld: %s\n", name, (long long)row, got);
    return !strcmp(got, expected);
}

static void test_results(void)
{
    const char *path = path_of("results.h5");
    cake_recorder *recorder = recorder_at(path);
    add_all(recorder);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    cake_h5 *file;
    CU_ASSERT_EQUAL_FATAL(cake_h5_open("test", path, &file), CAKE_OK);
    CU_ASSERT(is_text(file, "requests/id", 0, "a") && is_text(file, "requests/id", 1, "7") &&
              is_text(file, "requests/id", 2, "c"));
    CU_ASSERT(is_text(file, "requests/error", 1, "top_p is 9") && is_text(file, "requests/error", 0, ""));
    CU_ASSERT(is_text(file, "requests/finish_reason", 0, "stop") &&
              is_text(file, "requests/finish_reason", 1, ""));
    CU_ASSERT(is_text(file, "choices/finish_reason", 3, "length"));
    static const struct {
        const char *name;
        int64_t row, value;
    } numbers[] = {{"requests/status", 0, 200},
                   {"requests/status", 1, 400},
                   {"requests/index", 2, 5},
                   {"requests/prompt_tokens", 0, 3},
                   {"requests/prompt_tokens", 1, 0},
                   {"requests/completion_tokens", 2, 6},
                   {"requests/first_choice", 2, 2},
                   {"requests/choices", 2, 2},
                   {"choices/request", 3, 2},
                   {"choices/index", 3, 1},
                   {"tokens/offsets", 2, 3},
                   {"tokens/offsets", 4, 9},
                   {"tokens/data", 4, 2},
                   {"prompt_tokens/offsets", 3, 6},
                   {"prompt_tokens/data", 5, 7},
                   {"logprobs/offsets", 4, 3}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CU_ASSERT_EQUAL(at(file, numbers[i].name, numbers[i].row), numbers[i].value);
    CU_ASSERT(is_bytes(file, "text", 0, "Hello") && is_bytes(file, "text", 1, "") &&
              is_bytes(file, "text", 3, "Hi"));
    CU_ASSERT(is_bytes(file, "text", 2, "Hi\n\"\xC3\xA9\"") && is_bytes(file, "prompt", 0, "Say \"it\""));
    CU_ASSERT(is_bytes(
        file, "lines", 0,
        "{\"id\": \"a\", \"index\": 0, \"text\": \x01, \"finish_reason\": \"stop\", \"usage\": "
        "{\"prompt_tokens\": 3, \"completion_tokens\": 3}, \"logprobs\": {\"tokens\": [\"Hel\", \"lo\", "
        "\"<end>\"], \"token_logprobs\": [\x03], \"top_logprobs\": [{\"Hel\": -0.5}, {\"lo\": -1.25}, "
        "{\"<end>\": -9999.0}], \"text_offset\": [0, 3, 5]}}"));
    cake_h5_close(file);
    struct stat info;
    CU_ASSERT(!stat(path, &info) && (info.st_mode & 0777) == (0666 & ~umask(022)) &&
              access(path_of("results.h5.partial"), F_OK));
}

static void test_stopped(void)
{
    const char *path = path_of("stopped.h5"), *other = path_of("straight.h5");
    cake_recorder *recorder = recorder_at(path);
    add_all(recorder);
    read_all(recorder, 3);
    cake_record_close(recorder);
    recorder = recorder_at(path); /* resumes */
    CU_ASSERT_EQUAL(cake_record_resumed(recorder), 3);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    recorder = recorder_at(path); /* all is done */
    CU_ASSERT_TRUE(cake_record_finished(recorder));
    cake_record_close(recorder);

    cake_buf said = {0};
    recorder = recorder_at(other);
    add_all(recorder);
    struct rlimit was, small = {40000, RLIM_INFINITY};
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &was), 0);
    small.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    setrlimit(RLIMIT_FSIZE, &was);
    CU_ASSERT(said.data && strstr(said.data, "cannot be written: File too large; all 3 results are in"));
    CU_ASSERT(access(other, F_OK) != 0);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    cake_buf_free(&said);
}

static void test_refused_names(void)
{
    cake_record_options options = options_of("/dev/null");
    cake_recorder *recorder;
    cake_prompt *prompt;
    options.format = CAKE_RECORD_HDF5;
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_open(&options, &recorder), CAKE_ERR_USAGE);
    CU_ASSERT_EQUAL(cake_prompt_open("-", CAKE_PROMPT_HDF5, &prompt), CAKE_ERR_USAGE);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/dev/null: HDF5 cannot be streamed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "standard input: HDF5 cannot be read as a stream"));
    cake_buf_free(&said);
}

/* ---- prompts */

static hid_t put(hid_t file, const char *name, hid_t type, hsize_t n, const void *values)
{
    hid_t space = H5Screate_simple(1, &n, NULL), link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    hid_t set = H5Dcreate2(file, name, type, space, link, H5P_DEFAULT, H5P_DEFAULT);
    if (values)
        H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Pclose(link);
    H5Sclose(space);
    return file;
}

static hid_t string_of(size_t len)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, len);
    return type;
}

static const char *const strings[] = {"one", "two \"\\\n", ""};
static const int64_t offsets[] = {0, 3, 3, 5};

static void strings_any(hid_t f)
{
    static const int64_t ids[] = {5, -6, 7};
    put(f, "prompt", string_of(H5T_VARIABLE), 3, strings);
    put(f, "id", H5T_NATIVE_INT64, 3, ids);
}

static void strings_fixed(hid_t f)
{
    put(f, "prompt", string_of(8), 3, "one\0\0\0\0\0two \"\\\n\0\0\0\0\0\0\0\0\0");
    put(f, "requests/id", string_of(1), 3, "567");
}

static void text(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_UINT8, 5, "onetw");
    put(f, "prompt/offsets", H5T_NATIVE_INT64, 4, offsets);
    put(f, "prompt_tokens/data", H5T_NATIVE_INT32, 5, (int[]){9, 1, 2, 3, 4});
    put(f, "prompt_tokens/offsets", H5T_NATIVE_INT64, 4, (int64_t[]){0, 1, 3, 5});
}

/* Bytes with a sign are the same text; numbers below 0 stay what they are. */
static void with_sign(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_INT8, 5, "\xC3\xA9\xC3\xA8z");
    put(f, "prompt/offsets", H5T_NATIVE_INT64, 3, (int64_t[]){0, 2, 5});
    put(f, "requests/id", H5T_NATIVE_INT8, 2, (signed char[]){-2, 3});
}

/* Hashes: beyond what has a sign. */
static void wide_ids(hid_t f)
{
    put(f, "prompt", string_of(H5T_VARIABLE), 3, strings);
    put(f, "id", H5T_NATIVE_UINT64, 3, (uint64_t[]){UINT64_MAX, 0xC3000000000000C0, 7});
}

static void wide_tokens(hid_t f)
{
    put(f, "tokens/data", H5T_NATIVE_UINT64, 1, (uint64_t[]){UINT64_MAX});
    put(f, "tokens/offsets", H5T_NATIVE_UINT64, 2, (uint64_t[]){0, 1});
}

static void tokens(hid_t f)
{
    hsize_t size[2] = {1, 5};
    put(f, "tokens/offsets", H5T_NATIVE_INT64, 4, offsets);
    hid_t space = H5Screate_simple(2, size, NULL),
          set = H5Dcreate2(f, "tokens/data", H5T_NATIVE_UINT16, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, (uint16_t[]){65535, 1, 2, 3, 4});
    H5Dclose(set);
}

static const char *file_of(void (*make)(hid_t))
{
    const char *path = path_of("made.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    make(file);
    H5Fclose(file);
    return path;
}

/* Among others two that are longer than a line may be. */
static void strings_too_long(hid_t f)
{
    enum { LONG = (64 << 20) + 1 };
    const char *all[20];
    char *vast = cake_alloc(LONG + 1, 1);
    memset(vast, 'a', LONG);
    for (int i = 0; i < 20; i++)
        all[i] = i == 3 || (i == 19 && suite_all()) ? vast : strings[i % 2];
    put(f, "prompt", string_of(H5T_VARIABLE), 20, all);
    free(vast);
}

/* Appends one line per request. */
static cake_err read_prompts(const char *path, const cake_names *names, cake_buf *out)
{
    cake_prompt *prompt;
    cake_request r;
    cake_err err = cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt);
    if (err)
        return err;
    err = cake_prompt_name(prompt, names);
    while (!err && !(err = cake_prompt_next(prompt, &r))) {
        cake_buf_addf(out, "%lld %s:", (long long)r.index, r.id ? r.id : "-");
        if (r.err)
            cake_buf_adds(out, r.fault.message);
        else if (r.text)
            cake_buf_add(out, r.text, r.text_len);
        for (size_t i = 0; i < r.ids.len; i++)
            cake_buf_addf(out, " %d", r.ids.id[i]);
        cake_buf_adds(out, "|");
        cake_request_free(&r);
    }
    CU_ASSERT(err || cake_prompt_progress(prompt) == 1);
    cake_prompt_close(prompt);
    return err == CAKE_END ? CAKE_OK : err;
}

static void test_prompts(void)
{
    static const struct {
        void (*make)(hid_t);
        cake_names names;
        const char *out;
    } cases[] = {
        {strings_any, {0}, "0 5:one|1 -6:two \"\\\n|2 7:|"},
        {strings_fixed, {0}, "0 \"5\":one|1 \"6\":two \"\\\n|2 \"7\":|"},
        {with_sign, {0}, "0 -2:\xC3\xA9|1 3:\xC3\xA8z|"},
        {wide_ids, {0}, "0 18446744073709551615:one|1 14051230837395947712:two \"\\\n|2 7:|"},
        {wide_tokens, {0}, "0 -:prompt[0] is 18446744073709551615; expected a token id (an integer from 0)|"},
        {text, {0}, "0 -:one|1 -: 1 2|2 -:tw|"},
        {text, {"prompt_tokens", NULL}, "0 -: 9|1 -: 1 2|2 -: 3 4|"},
        {tokens, {0}, "0 -: 65535 1 2|1 -:prompt is an empty array; expected one token id or more|2 -: 3 4|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0};
        CU_ASSERT_EQUAL(read_prompts(file_of(cases[i].make), &cases[i].names, &out), CAKE_OK);
        CU_ASSERT_STRING_EQUAL(out.data, cases[i].out);
        if (strcmp(out.data, cases[i].out) != 0)
            printf("case %zu: %s\n", i, out.data);
        cake_buf_free(&out);
    }
    cake_buf out = {0};
    CU_ASSERT_EQUAL(read_prompts(path_of("results.h5") /* what a run wrote */, &(cake_names){0}, &out),
                    CAKE_OK);
    CU_ASSERT_STRING_EQUAL(out.data, "0 \"a\":Say \"it\"|1 \"7\":prompt is an empty array; expected one "
                                     "token id or more|2 \"c\": 5 6 7|");
    cake_buf_free(&out);
}

static void test_too_long(void)
{
    cake_buf out = {0};
    CU_ASSERT_EQUAL(read_prompts(file_of(strings_too_long), &(cake_names){0}, &out), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "|2 -:one|3 -:the line has 67108865 bytes; expected at most"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "|4 -:one|"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out.data, suite_all() ? "|18 -:one|19 -:the line has 67108865 bytes;" : "|18 -:one|19 -:two"));
    cake_buf_free(&out);
}

/* ---- hostile files */

static void nothing(hid_t f)
{
    put(f, "x", H5T_NATIVE_INT, 1, &(int){1});
}

static void backwards(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_UINT8, 5, "onetw");
    put(f, "prompt/offsets", H5T_NATIVE_INT64, 4, (int64_t[]){0, 3, 2, 5});
}

static void beyond(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_UINT8, 5, "onetw");
    put(f, "prompt/offsets", H5T_NATIVE_UINT64, 2, (uint64_t[]){0, UINT64_MAX});
}

static void floats(hid_t f)
{
    put(f, "tokens/data", H5T_NATIVE_FLOAT, 2, (float[]){1, NAN});
    put(f, "tokens/offsets", H5T_NATIVE_INT64, 2, offsets);
}

static void matrix(hid_t f)
{
    hsize_t size[2] = {2, 2};
    H5Dclose(H5Dcreate2(f, "prompt", string_of(4), H5Screate_simple(2, size, NULL), H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
}

static void short_offsets(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_UINT8, 5, "onetw");
    put(f, "prompt/offsets", H5T_NATIVE_INT64, 0, NULL);
}

static void no_offsets(hid_t f)
{
    put(f, "prompt/data", H5T_NATIVE_UINT8, 5, "onetw");
}

static void links(hid_t f)
{
    H5Lcreate_external("/etc/hostname", "prompt", f, "prompt", H5P_DEFAULT, H5P_DEFAULT);
}

static void soft(hid_t f)
{
    H5Lcreate_soft("/prompt", f, "prompt", H5P_DEFAULT, H5P_DEFAULT);
}

static void elsewhere(hid_t f)
{
    hsize_t n = 12;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, "/dev/null/none", 0, 12);
    H5Dclose(
        H5Dcreate2(f, "prompt", string_of(1), H5Screate_simple(1, &n, NULL), H5P_DEFAULT, list, H5P_DEFAULT));
}

static void huge_chunk(hid_t f)
{
    hsize_t n = 3, most = H5S_UNLIMITED, chunk = (hsize_t)1 << 28;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Dclose(H5Dcreate2(f, "prompt", string_of(8), H5Screate_simple(1, &n, &most), H5P_DEFAULT, list,
                        H5P_DEFAULT));
}

/* A thousand bytes that say to be a million times a million prompts. */
static void endless(hid_t f)
{
    hsize_t n = (hsize_t)1 << 40, chunk = 1000;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Dclose(
        H5Dcreate2(f, "prompt", string_of(8), H5Screate_simple(1, &n, NULL), H5P_DEFAULT, list, H5P_DEFAULT));
}

static void odd_filter(hid_t f)
{
    hsize_t n = 300, chunk = 300;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_scaleoffset(list, H5Z_SO_INT, 4);
    put(f, "tokens/offsets", H5T_NATIVE_INT64, 4, offsets);
    H5Dclose(H5Dcreate2(f, "tokens/data", H5T_NATIVE_INT, H5Screate_simple(1, &n, NULL), H5P_DEFAULT, list,
                        H5P_DEFAULT));
}

static void float_ids(hid_t f)
{
    put(f, "prompt", string_of(H5T_VARIABLE), 3, strings);
    put(f, "id", H5T_NATIVE_DOUBLE, 3, (double[]){5, 6, 7});
}

static void few_ids(hid_t f)
{
    put(f, "prompt", string_of(H5T_VARIABLE), 3, strings);
    put(f, "id", H5T_NATIVE_INT64, 2, offsets);
}

static void numbers(hid_t f)
{
    put(f, "prompt", H5T_NATIVE_INT64, 3, offsets);
}

static void test_hostile(void)
{
    static const struct {
        void (*make)(hid_t);
        const char *said;
    } cases[] = {
        {nothing, "made.h5: has neither prompt nor prompt_tokens nor tokens; --prompt-field"},
        {backwards, "made.h5: prompt/offsets: row 1 goes from 3 to 2; expected offsets that ascend, up to 5"},
        {beyond, "made.h5: prompt/offsets: row 0 goes from 0 to 18446744073709551615; expected offsets"},
        {floats, "made.h5: tokens/data: holds floating-point numbers; expected integers or strings"},
        {matrix, "made.h5: prompt: is not of one dimension"},
        {short_offsets, "made.h5: prompt/offsets: expected integers, one more than rows"},
        {no_offsets, "made.h5: prompt/offsets: is absent"},
        {links, "made.h5: prompt: is a link, or no dataset"},
        {soft, "made.h5: prompt: is a link, or no dataset"},
        {elsewhere, "made.h5: prompt: lies in other files (external storage)"},
        {huge_chunk, "made.h5: prompt: has chunks of more than 64 MiB"},
        {endless,
         "made.h5: prompt: has 1099511627776 values, of which no more than 0 bytes were ever written"},
        {odd_filter, "made.h5: tokens/data: is packed by filter 6, scaleoffset, which is not known here"},
        {float_ids, "made.h5: id: holds floating-point numbers; expected integers or strings"},
        {few_ids, "made.h5: id has 2 rows; expected one for each of the 3 prompts"},
        {numbers, "made.h5: prompt: holds integers; expected strings, or a group"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0}, said = {0};
        const char *path = file_of(cases[i].make);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(read_prompts(path, &(cake_names){0}, &out), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        bool right = said.data && strstr(said.data, cases[i].said);
        CU_ASSERT(right);
        if (!right)
            printf("case %zu: %s\n", i, said.data ? said.data : "nothing said");
        cake_buf_free(&out);
        cake_buf_free(&said);
    }
}

static void strings_of_four(hid_t f)
{
    put(f, "prompt", string_of(4), 1, "abcd");
}

/* The library's error about a file of a later version is passed on: here the version of the layout message of
 * a dataset. */
static void test_later_version(void)
{
    static const char layout[] = {8, 0, 24, 0};
    static char bytes[1 << 14];
    cake_buf out = {0}, said = {0};
    const char *path = file_of(strings_of_four);
    int fd = open(path, O_RDWR);
    ssize_t n = read(fd, bytes, sizeof bytes);
    char *at = memmem(bytes, n > 0 ? (size_t)n : 0, layout, sizeof layout);
    CU_ASSERT_FATAL(at && at[8] == 3);
    CU_ASSERT_EQUAL(pwrite(fd, "\5", 1, at - bytes + 8), 1);
    close(fd);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(read_prompts(path, &(cake_names){0}, &out), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(said.data &&
              strstr(said.data, "prompt: cannot be opened: bad version number for layout message (HDF5 "));
    cake_buf_free(&said);
    cake_buf_free(&out);
}

/* Cut anywhere, or with a byte of its beginning changed: an error or rows, and never more than that. */
static void test_damaged(void)
{
    const char *path = file_of(text);
    static char bytes[1 << 16];
    int fd = open(path, O_RDWR);
    ssize_t n = read(fd, bytes, sizeof bytes);
    CU_ASSERT_FATAL(n > 2000 && n < (ssize_t)sizeof bytes);
    int refused = 0;
    cake_buf said = {0}, out = {0};
    cake_log_capture(&said);
    for (off_t len = n - 1; len > 0; len -= 97) {
        CU_ASSERT_EQUAL(ftruncate(fd, len), 0);
        refused += read_prompts(path, &(cake_names){0}, &out) != CAKE_OK;
    }
    CU_ASSERT_EQUAL(refused, (int)((n - 2) / 97 + 1));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "made.h5: cannot be read as HDF5: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "truncated file"));
    cake_log_capture(NULL);
    close(fd);
    cake_buf_free(&said);
    cake_buf_free(&out);
}

int main(void)
{
    static const suite_test tests[] = {
        {"columns there and back", test_columns},
        {"results: all kinds, in the order of the input", test_results},
        {"stopped, resumed, disk full", test_stopped},
        {"streams are refused", test_refused_names},
        {"prompts of every layout, and of results", test_prompts},
        {"strings that are too long fail alone", test_too_long},
        {"what is not as it must be is named", test_hostile},
        {"a file of a later version", test_later_version},
        {"files that are cut short", test_damaged},
    };
    return SUITE_MAIN("hdf5", tests);
}
