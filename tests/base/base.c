/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stderr.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "tests/suite.h"
#include "types/params.h"

static void test_utf8_bad(void)
{
    static const struct {
        const char *text;
        size_t bad;
    } cases[] = {
        {"ascii", 5},
        {"\xC3\xA9", 2},
        {"a\xC0\x80", 1},        /* overlong */
        {"\xE0\x80\x80", 0},     /* overlong */
        {"\xED\xA0\x80", 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xF0\x9F\x98\x80", 4}, /* an emoji */
        {"ab\xF0\x9F\x98", 2},   /* cut short */
        {"\xEF\xBF\xBF\xFF", 3},
        {"eight bytes, and more", 21},
        {"eight by\xFF", 8},
        {"a seven\x80s", 7},
        {"1234567\xC3\xA9 12345678 \xC3", 19},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(cake_utf8_check(cases[i].text, strlen(cases[i].text)), cases[i].bad);
}

static void test_utf8_round_trip(void)
{
    char text[4];
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        uint32_t back = 0;
        int n = cake_utf8_put(text, code);
        if (cake_utf8_next(text, (size_t)n, &back) != n || back != code)
            CU_FAIL("round trip");
    }
}

static void test_utf8_pending(void)
{
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xF0\x9F\x98", 4), 3);
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xF0\x9F\x98\x80", 5), 0);
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xE0\x80", 3), 0); /* can become nothing valid */
    CU_ASSERT_EQUAL(cake_utf8_pending("\x80\x80", 2), 0);
    CU_ASSERT_EQUAL(cake_utf8_pending("", 0), 0);
}

static void test_json_text(void)
{
    cake_buf out = {0};
    cake_json_add_text(&out, "a\"\\\n\x01\xC3\xA9\xFF\x7F", 9);
    CU_ASSERT_STRING_EQUAL(out.data, "\"a\\\"\\\\\\n\\u0001\xC3\xA9\xEF\xBF\xBD\x7F\"");
    cake_buf_free(&out);
    /* what other readers take for the end of a line */
    cake_json_add_text(&out,
                       "a\xE2\x80\xA8"
                       "b\xE2\x80\xA9"
                       "c\xC2\x85"
                       "d\v\f\x1E\xE2\x80\xA7\xC2\xA0",
                       20);
    CU_ASSERT_STRING_EQUAL(out.data, "\"a\\u2028b\\u2029c\\u0085d\\u000b\\f\\u001e\xE2\x80\xA7\xC2\xA0\"");
    cake_buf_free(&out);
}

static void test_escapes(void)
{
    static const char *const pairs[][2] = {
        {"a\n\tb\\", "a\\n\\tb\\\\"},
        {"\r\v\f\x1C\x1D\x1E", "\\u000d\\u000b\\u000c\\u001c\\u001d\\u001e"},
        {"\xC2\x85\xE2\x80\xA8\xE2\x80\xA9", "\\u0085\\u2028\\u2029"},
        {"\\u2028 \\nu \\r", "\\\\u2028 \\\\nu \\\\r"},
        {"\xC3\xA9 \x1B \xE2\x82\xAC \xFF", "\xC3\xA9 \x1B \xE2\x82\xAC \xFF"},
    };
    cake_buf out = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        cake_buf_cut(&out, 0);
        cake_escape_add(pairs[i][0], strlen(pairs[i][0]), &out);
        CU_ASSERT_STRING_EQUAL(out.data, pairs[i][1]);
        CU_ASSERT_EQUAL(cake_escape_undo(out.data, out.len), strlen(pairs[i][0]));
        CU_ASSERT_STRING_EQUAL(out.data, pairs[i][0]);
    }
    char others[] = "\\rho \\u0041 \\u202 \\";
    CU_ASSERT_EQUAL(cake_escape_undo(others, strlen(others)), sizeof others - 1);
    CU_ASSERT_STRING_EQUAL(others, "\\rho \\u0041 \\u202 \\");
    cake_buf_free(&out);
}

static void test_json_faults(void)
{
    cake_json *root = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL(cake_json_parse("{\"a\": 1,}", 9, &root, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "invalid JSON at byte 9"));
    CU_ASSERT_EQUAL(cake_json_parse("\"\xFF\"", 3, &root, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "invalid UTF-8 at byte 1: 0xFF"));
    CU_ASSERT_PTR_NULL(root);
}

/* A string of `lead` plain bytes and then `tail` as it stands in the text, as value and as element; whether
 * it is taken out before the parser sees it must not show. */
static void check_string(size_t lead, const char *tail, const char *expected, size_t n)
{
    cake_buf text = {0}, wanted = {0};
    for (size_t i = 0; i < lead; i++)
        cake_buf_addc(&wanted, (char)('a' + i % 26));
    cake_buf_addf(&text, "{\"key\" : [ \"%s%s\" ,1], \"%s\\n\":\t\"\", \"x\":\"%s%s\"}",
                  wanted.data ? wanted.data : "", tail, wanted.data ? wanted.data : "",
                  wanted.data ? wanted.data : "", tail);
    cake_buf_add(&wanted, expected, n);
    cake_json *root = NULL;
    cake_fault fault;
    size_t len[2];
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(text.data, text.len, &root, &fault), CAKE_OK);
    const char *found[] = {cake_json_text(cake_json_at(cake_json_get(root, "key"), 0), &len[0]),
                           cake_json_text(cake_json_get(root, "x"), &len[1])};
    for (int i = 0; i < 2; i++)
        CU_ASSERT(len[i] == wanted.len && !memcmp(found[i], wanted.data, wanted.len));
    CU_ASSERT_EQUAL(cake_json_size(root), 3); /* the key between is as it was */
    cake_json_free(root);
    cake_buf_free(&text);
    cake_buf_free(&wanted);
}

static void test_json_long(void)
{
    static const struct {
        const char *text, *stands_for;
        size_t n;
    } tails[] = {{"", "", 0},
                 {"\\\"", "\"", 1},
                 {"\\\\", "\\", 1},
                 {"\\/\\b\\f\\n\\r\\t", "/\b\f\n\r\t", 6},
                 {"\\u0041\\u00e9\\uD83D\\ude42\xC3\xA9", "A\xC3\xA9\xF0\x9F\x99\x82\xC3\xA9", 9},
                 {"\\u0000", "\0", 1},
                 {"\\u00007", "\0007", 2},
                 {"\\\"}, {\\\"", "\"}, {\"", 6},
                 {"x\\\\\\\"", "x\\\"", 3}};
    static const size_t leads[] = {1, 7, 23, 24, 25, 100, 5000};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        for (size_t j = 0; j < sizeof leads / sizeof *leads; j++)
            check_string(leads[j], tails[i].text, tails[i].stands_for, tails[i].n);
    cake_json *root = NULL; /* strings that look like marks */
    cake_fault fault;
    size_t len;
    const char *marks = "[\"\\u00000\", \"a long string that is taken out of the text\", \"\\u00001\"]";
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(marks, strlen(marks), &root, &fault), CAKE_OK);
    CU_ASSERT(!memcmp(cake_json_text(cake_json_at(root, 0), &len), "\0000", 2) && len == 2);
    CU_ASSERT(!memcmp(cake_json_text(cake_json_at(root, 2), &len), "\0001", 2) && len == 2);
    cake_json_free(root);
}

/* Errors in a long string, or after one, are reported at their position. */
static void test_json_long_faults(void)
{
    static const struct {
        const char *text;
        int at;
    } cases[] = {{"[\"abcdefghijklmnopqrstuvwxyz0123456789\\q\"]", 38},
                 {"[\"abcdefghijklmnopqrstuvwxyz0123456789\\ud800 \"]", 44},
                 {"[\"abcdefghijklmnopqrstuvwxyz0123456789\n\"]", 38},
                 {"[\"abcdefghijklmnopqrstuvwxyz0123456789", 38},
                 {"[\"abcdefghijklmnopqrstuvwxyz0123456789\\", 39},
                 {"[\"abcdefghijklmnopqrstuvwxyz0123456789\" x]", 41}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_json *root = NULL;
        cake_fault fault;
        CU_ASSERT_EQUAL(cake_json_parse(cases[i].text, strlen(cases[i].text), &root, &fault),
                        CAKE_ERR_REQUEST);
        const char *at = strstr(fault.message, "at byte ");
        CU_ASSERT(at && abs(atoi(at + 8) - cases[i].at) <= 6);
    }
}

static void test_json_numbers(void)
{
    static const char text[] =
        "{\"a\": 1000000000000000019884624838656, \"b\": -9223372036854775808, \"c\": [0.0, "
        "Infinity, -Infinity, NaN], \"d\": \"NaN 99999999999999999999 \\\" Infinity\"}";
    cake_json *root = NULL;
    cake_fault fault;
    char path[128];
    CU_ASSERT_EQUAL(cake_json_parse(text, strlen(text), &root, &fault),
                    CAKE_ERR_REQUEST); /* NaN is no JSON */
    snprintf(path, sizeof path, "%s/numbers.json", suite_tmp());
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    CU_ASSERT_EQUAL_FATAL(cake_json_load("base", path, false, &root), CAKE_OK);
    CU_ASSERT_EQUAL(cake_json_real(cake_json_get(root, "a"), 0), 1000000000000000019884624838656.0);
    CU_ASSERT_EQUAL(cake_json_int(cake_json_get(root, "b"), 0), INT64_MIN);
    CU_ASSERT_STRING_EQUAL(cake_json_text(cake_json_at(cake_json_get(root, "c"), 2), NULL), "-Infinity");
    CU_ASSERT_STRING_EQUAL(cake_json_text(cake_json_get(root, "d"), NULL),
                           "NaN 99999999999999999999 \" Infinity");
    cake_json_free(root);
}

/* Integers beyond 64 bits keep their digits, also next to strings that look like their internal form. */
static void test_json_digits(void)
{
    static const char text[] = "{\"a\":[-18446744073709551616,{\"b\":99999999999999999999}],\"c\":"
                               "\"\\u0000#99999999999999999999\",\"d\":1}";
    static const char *const wrong[] = {"[99999999999999999999,]", "[099999999999999999999]",
                                        "[\"\\u0000#1\", 99999999999999999999", "-00000000000000000000000"};
    cake_json *root = NULL;
    cake_fault fault;
    cake_buf out = {0};
    size_t len;
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(text, strlen(text), &root, &fault), CAKE_OK);
    const cake_json *first = cake_json_at(cake_json_get(root, "a"), 0);
    const char *digits = cake_json_digits(first, &len);
    CU_ASSERT(digits && len == 21 && !memcmp(digits, "-18446744073709551616", len));
    CU_ASSERT_EQUAL(cake_json_kind(first), CAKE_JSON_REAL);
    CU_ASSERT_EQUAL(cake_json_real(first, 0), -18446744073709551616.0);
    CU_ASSERT(cake_json_is_number(first) && !cake_json_text(first, NULL));
    CU_ASSERT(!cake_json_digits(cake_json_get(root, "c"), &len) && !cake_json_digits(NULL, &len));
    CU_ASSERT(cake_json_text(cake_json_get(root, "c"), &len) && len == 22);
    cake_json_add_node(&out, root);
    CU_ASSERT_STRING_EQUAL(out.data, text);
    cake_buf_free(&out);
    cake_json_free(root);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT_EQUAL(cake_json_parse(wrong[i], strlen(wrong[i]), &root, &fault), CAKE_ERR_REQUEST);
}

/* Files that would block or never end are refused before they are opened. */
static void test_file_kinds(void)
{
    cake_buf said = {0}, out = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/fifo", suite_tmp());
    CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_file_read("base", path, false, 100, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_file_read("base", "/dev/zero", false, 100, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_file_read("base", suite_path("base/base.c"), false, 100, &out), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_file_read("base", "/no/such/file", true, 100, &out), CAKE_END);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "fifo: is a FIFO; expected a regular file"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/dev/zero: is a device; expected a regular file"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "base.c: is too large: at most 100 bytes are allowed"));
    cake_buf_free(&said);
    cake_buf_free(&out);
}

/* Read in one go, or in pieces where the size is not known before. */
static void test_file_sizes(void)
{
    enum { LARGE = 100000 };
    char path[128];
    cake_buf text = {0}, out = {0};
    for (int i = 0; i < LARGE; i++)
        cake_buf_addc(&text, (char)('a' + i % 26));
    snprintf(path, sizeof path, "%s/large", suite_tmp());
    FILE *f = fopen(path, "wb");
    CU_ASSERT_FATAL(f && fwrite(text.data, 1, LARGE, f) == LARGE && !fclose(f));
    cake_buf_adds(&out, "before");
    CU_ASSERT_EQUAL(cake_file_read("base", path, false, LARGE, &out), CAKE_OK);
    CU_ASSERT(out.len == 6 + LARGE && !memcmp(out.data, "before", 6) && !strcmp(out.data + 6, text.data));
    cake_buf_cut(&out, 0);
    CU_ASSERT_EQUAL(cake_file_read("base", "/proc/self/status", false, LARGE, &out), CAKE_OK);
    CU_ASSERT(out.len == strlen(out.data) && strstr(out.data, "VmSize:"));
    cake_buf_free(&text);
    cake_buf_free(&out);
}

static void test_json_real(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1, "1.0"}, {0.1, "0.1"}, {-2.5e-9, "-2.5e-09"}, {1.0 / 3, "0.3333333333333333"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0};
        cake_json_add_real(&out, cases[i].value);
        CU_ASSERT_STRING_EQUAL(out.data, cases[i].text);
        cake_buf_free(&out);
    }
}

static void test_log_escapes(void)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    cake_log(CAKE_ERROR, "base", "%s", "a\x1b[2Jb\n");
    cake_log_capture(NULL);
    CU_ASSERT_STRING_EQUAL(said.data, "cake-mpi: error: base: a\\x1b[2Jb\\x0a\n");
    cake_buf_free(&said);
}

static void *speak_apart(void *into)
{
    cake_log_hush(true);
    cake_log_capture(into);
    cake_log(CAKE_WARN, "base", "hushed here");
    cake_log(CAKE_ERROR, "base", "apart");
    return NULL;
}

/* A thread's capture and hush are its own; what it said can be logged later. */
static void test_log_threads(void)
{
    cake_buf said = {0}, apart = {0};
    pthread_t thread;
    cake_log_capture(&said);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, speak_apart, &apart), 0);
    pthread_join(thread, NULL);
    cake_log(CAKE_WARN, "base", "here");
    CU_ASSERT_STRING_EQUAL(apart.data, "cake-mpi: error: base: apart\n");
    cake_log_captured(&apart);
    cake_log_capture(NULL);
    CU_ASSERT_STRING_EQUAL(said.data, "cake-mpi: warning: base: here\ncake-mpi: error: base: apart\n");
    cake_buf_free(&said);
    cake_buf_free(&apart);
}

static void last_words(void)
{
    if (write(STDERR_FILENO, "last words\n", 11) < 0)
        _exit(99);
}

static void run_out(void)
{
    cake_alloc(SIZE_MAX / 4, 1);
}

static void break_invariant(void)
{
    CAKE_ASSERT(!"this holds");
}

/* Runs work in a child and collects its output; returns its wait status. */
static int child_of(void (*work)(void), int rank, char *said, size_t room)
{
    int ends[2], status = -1;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        cake_log_rank(rank, "node7");
        cake_die_with(last_words);
        work();
        _exit(98);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t n; len + 1 < room && (n = read(ends[0], said + len, room - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = 0;
    close(ends[0]);
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    return status;
}

/* As another thread says it while the first one captures. */
static void speak(void)
{
    static cake_buf unsaid;
    static char vast[5000];
    memset(vast, 'a', sizeof vast - 1);
    cake_log_capture(&unsaid);
    cake_stderr_bar(true);
    cake_log_now(CAKE_WARN, "link", "one\x1b[2J");
    cake_log_now(CAKE_INFO, "link", "rank 0's to say");
    cake_log_now(CAKE_ERROR, NULL, vast);
    cake_log(CAKE_ERROR, NULL, "captured");
    _exit(strcmp(unsaid.data, "cake-mpi: rank 3 on node7: error: captured\n") != 0);
}

static void test_log_now(void)
{
    char said[8192];
    int status = child_of(speak, 3, said, sizeof said);
    static const char begins[] = "\r\033[Kcake-mpi: rank 3 on node7: warning: link: one?[2J\n"
                                 "cake-mpi: rank 3 on node7: error: aaaa";
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CU_ASSERT(!strncmp(said, begins, sizeof begins - 1));
    CU_ASSERT(strlen(said) < 1200 && said[strlen(said) - 1] == '\n');
}

/* Status 0: the reader has read it before this continues; at first nobody reads. */
static void speak_and_wait(void)
{
    int unread = -1;
    cake_log_now(CAKE_ERROR, "link", "the last word");
    bool before = !ioctl(STDERR_FILENO, FIONREAD, &unread) && unread > 0;
    cake_stderr_wait_read();
    _exit(!before || ioctl(STDERR_FILENO, FIONREAD, &unread) || unread);
}

static void test_wait_read(void)
{
    int ends[2], status = -1;
    char said[100];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        speak_and_wait();
    }
    usleep(100000);
    CU_ASSERT(read(ends[0], said, sizeof said) > 0);
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(ends[0]);
    close(ends[1]);
}

/* The contract knows status 1, not SIGABRT; only a program that is wrong leaves a core. */
static void test_die(void)
{
    char said[8192];
    int status = child_of(run_out, 0, said, sizeof said);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "cake-mpi: error: out of memory: 4611686018427387903 x 1 bytes\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "last words\n"));
    status = child_of(run_out, 3, said, sizeof said);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "cake-mpi: rank 3 on node7: error: out of memory: "));
    status = child_of(break_invariant, 0, said, sizeof said);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "broken invariant: !\"this holds\"\nlast words\n"));
}

static void test_params_merge(void)
{
    cake_params request = cake_params_unset(), line = cake_params_unset();
    request.max_tokens = 3;
    line.max_tokens = 9;
    line.temperature = 0.5;
    cake_params_merge(&request, &line);
    CU_ASSERT_EQUAL(request.max_tokens, 3);
    CU_ASSERT_EQUAL(request.temperature, 0.5);
    CU_ASSERT_EQUAL(request.seed, CAKE_UNSET);
}

static void test_durations(void)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: none */
    } cases[] = {{"90", 90},
                 {"0", 0},
                 {"90s", 90},
                 {"15m", 900},
                 {"2h", 7200},
                 {"1d", 86400},
                 {"2H", 7200},
                 {"12:30", 750},
                 {"1:30:00", 5400},
                 {"1-12", 129600},
                 {"1-12:00:00", 129600},
                 {"0-00:01", 60},
                 {"", -1},
                 {"-1", -1},
                 {"h", -1},
                 {"1.5h", -1},
                 {"1hh", -1},
                 {"1:60", -1},
                 {"1:2:3:4", -1},
                 {"1-24", -1},
                 {"1-", -1},
                 {"1:", -1},
                 {" 1", -1},
                 {"1 ", -1},
                 {"9999999999", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t seconds = -1;
        bool right = cake_duration_read(cases[i].text, &seconds);
        CU_ASSERT(right == (cases[i].seconds >= 0) && seconds == cases[i].seconds);
        if (seconds != cases[i].seconds)
            printf("\n  \"%s\" is %lld\n", cases[i].text, (long long)seconds);
    }
}

/* Percentages of all sizes, without loss: 100 % is all. */
static void test_percentages(void)
{
    bool good = true;
    for (int64_t all = 0; all < 3000; all++)
        for (int percent = 1; percent <= 100; percent++)
            good &= cake_size_bytes(-percent, all) == all * percent / 100;
    CU_ASSERT(good);
    CU_ASSERT_EQUAL(cake_size_bytes(-100, INT64_MAX), INT64_MAX);
    CU_ASSERT_EQUAL(cake_size_bytes(-1, INT64_MAX), INT64_MAX / 100);
    CU_ASSERT_EQUAL(cake_size_bytes(25727, 25728), 25727);
}

int main(void)
{
    static const suite_test tests[] = {
        {"durations", test_durations},
        {"percentages of sizes", test_percentages},
        {"UTF-8: every kind of invalid byte", test_utf8_bad},
        {"UTF-8: every code point there and back", test_utf8_round_trip},
        {"UTF-8: the beginning of a character waits", test_utf8_pending},
        {"JSON: strings are escaped", test_json_text},
        {"text on one line, and back", test_escapes},
        {"JSON: faults name the byte", test_json_faults},
        {"JSON: long strings, with every escape", test_json_long},
        {"JSON: faults in and behind long strings", test_json_long_faults},
        {"JSON: large integers, and Python's words for numbers", test_json_numbers},
        {"JSON: integers beyond 64 bits keep their digits", test_json_digits},
        {"files: of a known and an unknown size", test_file_sizes},
        {"files: only regular ones of a decent size are read", test_file_kinds},
        {"JSON: reals are short and exact", test_json_real},
        {"log: each thread has its own capture", test_log_threads},
        {"log: control characters of foreign text are shown, not sent", test_log_escapes},
        {"log: another thread's messages", test_log_now},
        {"log: what was said is heard before a rank ends", test_wait_read},
        {"err: memory that runs out ends all ranks with status 1", test_die},
        {"params: the first who says something wins", test_params_merge},
    };
    return SUITE_MAIN("base", tests);
}
