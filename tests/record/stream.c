/* SPDX-License-Identifier: Apache-2.0
 *
 * Results into a pipe: what has to wait for the results before it lies in a temporary file.
 */
#include "record/stream.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "records.h"
#include "tests/suite.h"

#define MIB ((size_t)1 << 20)

/* Bytes of the file that holds what waits, and where it was made; -1: there is none. */
static int64_t spool_of(char *path, size_t n)
{
    for (int fd = 3; fd < 64; fd++) {
        char name[32];
        struct stat info;
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(name, path, n - 1);
        path[len < 0 ? 0 : len] = 0;
        if (strstr(path, "/cake-mpi.lines-") && !fstat(fd, &info))
            return info.st_size;
    }
    return -1;
}

static cake_err add(cake_stream *stream, int64_t order, char *line)
{
    snprintf(line, 9, "%08lld", (long long)order);
    line[8] = 'x';
    return cake_stream_add(stream, order, line, MIB);
}

static char *new_line(void)
{
    char *line = cake_alloc(MIB, 1);
    memset(line, 'x', MIB);
    line[MIB - 1] = '\n';
    return line;
}

/* One line always waits: the file must not hold all that have gone. */
static void test_reused(void)
{
    enum { STEPS = 100 };
    char path[256], spool[512], *line = new_line();
    cake_stream *stream;
    int64_t most = 0, order = 0;
    snprintf(path, sizeof path, "%s/out", suite_tmp());
    close(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    CU_ASSERT_EQUAL_FATAL(cake_stream_open(path, &stream), CAKE_OK);
    CU_ASSERT_EQUAL(add(stream, 1, line), CAKE_OK);
    for (int i = 1; i < STEPS; i++) {
        CU_ASSERT_EQUAL(add(stream, 2 * i + 1, line), CAKE_OK);
        CU_ASSERT_EQUAL(add(stream, 2 * i - 2, line), CAKE_OK);
        int64_t bytes = spool_of(spool, sizeof spool);
        most = bytes > most ? bytes : most;
    }
    CU_ASSERT(most > (int64_t)(8 * MIB) && most < (int64_t)(24 * MIB));
    CU_ASSERT_EQUAL(add(stream, 2 * STEPS - 2, line), CAKE_OK);
    CU_ASSERT_EQUAL(spool_of(spool, sizeof spool), 0);
    CU_ASSERT_EQUAL(cake_stream_finish(stream), CAKE_OK);
    cake_stream_close(stream);
    FILE *f = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (; fread(line, 1, MIB, f) == MIB; order++) {
        char number[9] = {0};
        memcpy(number, line, 8);
        CU_ASSERT(atoll(number) == order && line[8] == 'x' && line[MIB - 1] == '\n');
    }
    CU_ASSERT_EQUAL(order, 2 * STEPS);
    fclose(f);
    unlink(path);
    free(line);
}

static void check_dir(const char *tmpdir, const char *expected)
{
    char spool[512], *line = new_line();
    cake_stream *stream;
    setenv("TMPDIR", tmpdir, 1);
    CU_ASSERT_EQUAL_FATAL(cake_stream_open("/dev/null", &stream), CAKE_OK);
    CU_ASSERT_EQUAL(add(stream, 1, line), CAKE_OK);
    CU_ASSERT(spool_of(spool, sizeof spool) == (int64_t)MIB && !strncmp(spool, expected, strlen(expected)) &&
              spool[strlen(expected)] == '/');
    cake_stream_close(stream);
    free(line);
}

static void test_dir(void)
{
    char none[256];
    const char *old = getenv("TMPDIR");
    char *kept = old ? strdup(old) : NULL;
    snprintf(none, sizeof none, "%s/none", suite_tmp());
    check_dir(suite_tmp(), suite_tmp());
    check_dir(none, "/tmp");
    check_dir("relative", "/tmp");
    check_dir("", "/tmp");
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

/* In a process of its own, whose files are limited: what waits still goes out when the run stops. */
static int fill(void)
{
    char *line = new_line();
    cake_stream *stream;
    cake_buf said = {0};
    int64_t n = 0, order = 1;
    struct rlimit limit = {3 * MIB, 3 * MIB};
    signal(SIGXFSZ, SIG_IGN);
    setenv("TMPDIR", suite_tmp(), 1);
    if (setrlimit(RLIMIT_FSIZE, &limit) || cake_stream_open("/dev/null", &stream))
        return 1;
    cake_log_capture(&said);
    while (order < 9 && !add(stream, order, line))
        order++;
    bool right = order == 4 && strstr(said.data, "wait for request 0 cannot be written") &&
                 strstr(said.data, suite_tmp()) && strstr(said.data, "File too large; set TMPDIR=DIR");
    cake_err err = cake_stream_stop(stream, &n);
    cake_log_capture(NULL);
    cake_stream_close(stream);
    cake_buf_free(&said);
    free(line);
    return right && !err && n == 3 ? 0 : 2;
}

static void test_full(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(fill());
    CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

/* A pipe gets lines in the order of the input, each as soon as it can be there. */
static void test_order(void)
{
    int ends[2];
    char path[32], got[8192];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_NONBLOCK), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    cake_record_options options = options_of(path);
    options.format = CAKE_RECORD_TXT;
    cake_recorder *recorder;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    static const struct {
        int64_t index;
        const char *text, *out;
    } steps[] = {{2, "c", ""},       {0, "a", "a\n"}, {4, "e", ""},      {1, "b", "b\nc\n"},
                 {3, "d", "d\ne\n"}, {6, "g", ""},    {5, "f", "f\ng\n"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        cake_record r = answer_of(steps[i].index, steps[i].text);
        CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
        ssize_t n = read(ends[0], got, sizeof got - 1);
        got[n < 0 ? 0 : n] = 0;
        CU_ASSERT_STRING_EQUAL(got, steps[i].out);
    }
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record r = answer_of(9, "late");
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "request 7 has no result; 1 later results are lost"));
    close(ends[0]);
    r = answer_of(7, "x");
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "cannot be written: Broken pipe"));
    cake_buf_free(&said);
    cake_record_close(recorder);
    close(ends[1]);
}

int main(void)
{
    static const suite_test tests[] = {
        {"a pipe gets the order of the input", test_order},
        {"room is used again", test_reused},
        {"where it lies", test_dir},
        {"no room", test_full},
    };
    return SUITE_MAIN("stream", tests);
}
