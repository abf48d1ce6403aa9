/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
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
#include "formats/json.h"
#include "records.h"

/* Reads a whole file; NULL if there is none. */
static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    cake_buf text = {0};
    char block[4096];
    size_t n;
    cake_buf_adds(&text, "");
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        cake_buf_add(&text, block, n);
    fclose(f);
    return text.data;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Whatever the order in which requests finish, RESULTS has that of the input. */
static void test_order(void)
{
    enum { N = 20000 };
    const char *path = path_of("order.jsonl"), *partial = path_of("order.jsonl.partial");
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    int64_t *order = cake_alloc(N, sizeof *order);
    for (int64_t i = 0; i < N; i++)
        order[i] = i;
    srand(1);
    for (int64_t i = N - 1; i > N / 2; i--) { /* the second half wildly, the first one in order */
        int64_t j = N / 2 + rand() % (i - N / 2 + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    cake_fault fault;
    cake_fault_set(&fault, "n", "no");
    for (int i = 0; i < N; i++) {
        char text[32];
        snprintf(text, sizeof text, "answer %lld", (long long)order[i]);
        cake_record r = answer_of(order[i], text);
        r.fault = order[i] % 1000 == 7 ? &fault : NULL;
        CU_ASSERT_EQUAL_FATAL(cake_record_add(recorder, &r), CAKE_OK);
    }
    free(order);
    CU_ASSERT_EQUAL(cake_record_failed(recorder), N / 1000);
    CU_ASSERT(is_there(partial) && !is_there(path));
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    CU_ASSERT(!is_there(partial) && is_there(path));
    cake_record_close(recorder);
    char *text = slurp(path), *line = text;
    int n = 0, wrong = 0;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
        char want[64], other[64];
        *end = 0;
        snprintf(want, sizeof want, "{\"id\": null, \"index\": %d, \"text\": \"answer %d\",", n, n);
        snprintf(other, sizeof other, "{\"id\": null, \"index\": %d, \"error\":", n);
        const char *right = n % 1000 == 7 ? other : want;
        wrong += strncmp(line, right, strlen(right)) != 0;
    }
    CU_ASSERT_EQUAL(n, N);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(*line, 0);
    free(text);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    CU_ASSERT_EQUAL(stat(path, &info), 0);
    CU_ASSERT_EQUAL(info.st_mode & 0777, 0666 & ~mask);
}

static cake_err open_said(const cake_record_options *options, const char *message)
{
    cake_buf said = {0};
    cake_recorder *recorder = NULL;
    cake_log_capture(&said);
    cake_err err = cake_record_open(options, &recorder);
    if (!err)
        cake_record_log_resume(recorder);
    cake_log_capture(NULL);
    bool right = message ? said.data && strstr(said.data, message) : !said.len;
    if (!right)
        printf("\n  said: %s\n", said.data ? said.data : "");
    CU_ASSERT(right);
    CU_ASSERT((err == CAKE_OK) == (recorder != NULL));
    cake_record_close(recorder);
    cake_buf_free(&said);
    return err;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static void test_existing(void)
{
    const char *path = path_of("old.jsonl"), *partial = path_of("old.jsonl.partial");
    cake_record_options options = options_of(path);
    put(path, "old\n");
    CU_ASSERT_EQUAL(open_said(&options, "old.jsonl: exists already; --force overwrites it"), CAKE_ERR_FATAL);
    CU_ASSERT_FALSE(is_there(partial));
    options.force = true;
    CU_ASSERT_EQUAL(open_said(&options, NULL), CAKE_OK);
    CU_ASSERT(is_there(path) && !is_there(partial)); /* nothing was done: nothing has changed */

    options.force = false;
    unlink(path);
    put(partial, "{}\n{}\n{}\n{\"torn");
    CU_ASSERT_EQUAL(open_said(&options, "old.jsonl.partial: is not a journal of cake-mpi"), CAKE_ERR_FATAL);
    char *text = slurp(partial);
    CU_ASSERT_STRING_EQUAL(text, "{}\n{}\n{}\n{\"torn");
    free(text);
    options.force = true;
    cake_recorder *recorder;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    CU_ASSERT_EQUAL(open_said(&options, "old.jsonl.lock: another run is writing there: process "),
                    CAKE_ERR_FATAL);
    cake_record r = answer_of(0, "new");
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    text = slurp(path);
    CU_ASSERT(text && strstr(text, "\"new\"") && !strstr(text, "{}"));
    free(text);

    put(partial, "{\"_cake\": {\"jour"); /* of a run that finished nothing */
    unlink(path);
    options.force = false;
    CU_ASSERT_EQUAL(open_said(&options, "old.jsonl.partial: ends within its first line"), CAKE_OK);
}

static void test_places(void)
{
    cake_record_options options = options_of("/proc/none/x.jsonl");
    CU_ASSERT_EQUAL(open_said(&options, "/proc/none/x.jsonl.lock: cannot be created: No such file"),
                    CAKE_ERR_FATAL);
    options.path = suite_tmp();
    CU_ASSERT_EQUAL(open_said(&options, "is a directory; expected the name of a file"), CAKE_ERR_FATAL);
    options.path = "";
    CU_ASSERT_EQUAL(open_said(&options, "is empty"), CAKE_ERR_USAGE);
    const char *directory = path_of("closed");
    mkdir(directory, 0555);
    options.path = path_of("closed/x.jsonl");
    if (geteuid() == 0) { /* root may write anywhere: give that up for the moment */
        CU_ASSERT_EQUAL_FATAL(seteuid(65534), 0);
        chmod(suite_tmp(), 0755);
    }
    CU_ASSERT_EQUAL(
        open_said(&options, "x.jsonl.lock: cannot be created: Permission denied; choose a writable path"),
        CAKE_ERR_FATAL);
    if (getuid() == 0)
        CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
}

static void test_missing(void)
{
    cake_record_options options = options_of(path_of("gap.jsonl"));
    cake_recorder *recorder;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    cake_record r = answer_of(0, "a"), s = answer_of(5000, "b");
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &s), CAKE_OK);
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "request 1 has no result; the file holds the 2 others"));
    cake_buf_free(&said);
    cake_record_close(recorder);
    CU_ASSERT(is_there(path_of("gap.jsonl.partial")));

    options.path = path_of("none.jsonl"); /* no requests at all: an empty file */
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    char *text = slurp(path_of("none.jsonl"));
    CU_ASSERT(text && !text[0]);
    free(text);
    CU_ASSERT_FALSE(is_there(path_of("none.jsonl.partial")));
}

static void test_txt(void)
{
    const char *path = path_of("answers.txt");
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    cake_fault fault;
    cake_fault_set(&fault, "prompt", "it is too long");
    cake_record a = answer_of(2, "one\ntwo\t\\ \xC3\xA9");
    cake_choice first = choice;
    a.choices = &first;
    cake_record b = answer_of(0, ""), c = answer_of(1, "chat");
    b.fault = &fault;
    c.form = CAKE_FORM_BATCH_CHAT;
    c.chat = true;
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &a), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &b), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &c), CAKE_OK);
    cake_log_capture(NULL);
    CU_ASSERT(said.data && strstr(said.data, "line 1: it is too long"));
    cake_buf_free(&said);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    char *text = slurp(path);
    CU_ASSERT_STRING_EQUAL(text, "\nchat\none\\ntwo\\t\\\\ \xC3\xA9\n");
    free(text);
}

/* Runs work in a child, so that limits and signals stay there; its exit status. */
static int in_child(int (*work)(const char *path), const char *path)
{
    fflush(NULL);
    pid_t child = fork();
    if (!child)
        _exit(work(path));
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

/* Number of complete results in a partial file; -1: one does not parse, or other bytes follow them. */
static int whole_lines(const char *path)
{
    char *text = slurp(path), *line = text;
    int n = 0;
    if (!text)
        return -1;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
        cake_json *root = NULL;
        cake_fault fault;
        bool read = !cake_json_parse(line, (size_t)(end - line), &root, &fault);
        if (read && cake_json_get(root, "_cake"))
            n--;
        else if (!read || cake_json_int(cake_json_get(root, "index"), -1) != n)
            n = -1000000;
        cake_json_free(root);
    }
    if (*line)
        n = -1;
    free(text);
    return n;
}

/* A disk that takes 10,000 bytes more; 0: all went as it should. */
static int fill_disk(const char *path)
{
    struct rlimit limit = {10000, 10000};
    setrlimit(RLIMIT_FSIZE, &limit);
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    cake_buf said = {0};
    cake_log_capture(&said);
    if (cake_record_open(&options, &recorder))
        return 1;
    cake_err err = CAKE_OK;
    for (int i = 0; !err && i < 1000; i++) {
        cake_record r = answer_of(i, "some text");
        err = cake_record_add(recorder, &r);
        if (!err && i % 10 == 9)
            err = cake_record_flush(recorder);
    }
    if (err != CAKE_ERR_FATAL || !strstr(said.data, "disk.jsonl.partial: cannot be written at byte ") ||
        !strstr(said.data, "File too large") || !strstr(said.data, "requests finished so far"))
        return 2;
    size_t once = said.len;
    cake_record r = answer_of(1001, "more");
    if (!cake_record_add(recorder, &r) || !cake_record_finish(recorder) || said.len != once)
        return 3; /* it stays failed, and is said once */
    cake_record_close(recorder);
    cake_buf_free(&said);
    return 0;
}

/* Space for the partial file, but not for the final one in addition. */
static int fill_disk_at_finish(const char *path)
{
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    cake_buf said = {0};
    cake_log_capture(&said);
    if (cake_record_open(&options, &recorder))
        return 1;
    for (int i = 0; i < 100; i++) {
        cake_record r = answer_of(i, "some text");
        if (cake_record_add(recorder, &r))
            return 2;
    }
    struct rlimit limit = {1000, 1000};
    if (cake_record_flush(recorder))
        return 4;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (cake_record_finish(recorder) != CAKE_ERR_FATAL ||
        !strstr(said.data, "full.jsonl: cannot be written: File too large; all 100 results are in"))
        return 3;
    cake_record_close(recorder);
    cake_buf_free(&said);
    return 0;
}

static void test_full_disk(void)
{
    CU_ASSERT_EQUAL(in_child(fill_disk, path_of("disk.jsonl")), 0);
    CU_ASSERT(whole_lines(path_of("disk.jsonl.partial")) > 50);
    CU_ASSERT_FALSE(is_there(path_of("disk.jsonl")));
    CU_ASSERT_EQUAL(in_child(fill_disk_at_finish, path_of("full.jsonl")), 0);
    CU_ASSERT_EQUAL(whole_lines(path_of("full.jsonl.partial")), 100);
    CU_ASSERT_FALSE(is_there(path_of("full.jsonl")));
    char command[200];
    snprintf(command, sizeof command, "test $(ls -d '%s'/full.jsonl* | wc -l) = 1", suite_tmp());
    CU_ASSERT_EQUAL(system(command), 0); /* no temporary file is left */

    cake_record_options options = options_of("/dev/full");
    cake_recorder *recorder;
    cake_record r = answer_of(0, "a");
    cake_buf said = {0};
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "/dev/full: cannot be written: No space left on device"));
    cake_buf_free(&said);
    cake_record_close(recorder);
}

static int be_killed(const char *path)
{
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    if (cake_record_open(&options, &recorder))
        return 1;
    read_all(recorder, 321);
    for (int i = 0; i < 321; i++) {
        cake_record r = answer_of(i, "some text");
        if (cake_record_add(recorder, &r))
            return 2;
    }
    if (cake_record_flush(recorder))
        return 3;
    return kill(getpid(), SIGKILL);
}

static void test_killed(void)
{
    int status = in_child(be_killed, path_of("killed.jsonl"));
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CU_ASSERT_EQUAL(whole_lines(path_of("killed.jsonl.partial")), 321);
    cake_record_options options = options_of(path_of("killed.jsonl"));
    CU_ASSERT_EQUAL(
        open_said(&options, "killed.jsonl.partial: resumes with 321 finished requests (0 failed)"), CAKE_OK);
    options.resume = CAKE_RESUME_NEVER;
    CU_ASSERT_EQUAL(open_said(&options, "holds 321 finished requests of a stopped run, which --resume never"),
                    CAKE_ERR_FATAL);
    options = options_of(path_of("killed.jsonl"));
    options.identity = "{\"isa\": \"ref\"}";
    CU_ASSERT_EQUAL(open_said(&options, "of another job: isa was not set and is \"ref\"; keep it"),
                    CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(whole_lines(path_of("killed.jsonl.partial")), 321);
    options.force = true;
    CU_ASSERT_EQUAL(open_said(&options, NULL), CAKE_OK);
    CU_ASSERT_FALSE(is_there(path_of("killed.jsonl.partial")));
}

/* A recorder of options->path with n answers. */
static cake_recorder *with_answers(const cake_record_options *options, int n)
{
    cake_recorder *recorder = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(options, &recorder), CAKE_OK);
    read_all(recorder, n);
    for (int i = 0; i < n; i++) {
        cake_record r = answer_of(i, "some text");
        CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    }
    return recorder;
}

/* A leftover .tmp of a run that was killed at its end is overwritten and removed. */
static void test_left_over(void)
{
    char tmp[200], path[200];
    snprintf(tmp, sizeof tmp, "%s/left.jsonl.partial.tmp", suite_tmp());
    snprintf(path, sizeof path, "%s/left.jsonl", suite_tmp());
    put(tmp, "half of wh");
    cake_record_options options = options_of(path);
    cake_recorder *recorder = with_answers(&options, 3);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    CU_ASSERT_FALSE(is_there(tmp));
    CU_ASSERT_EQUAL(whole_lines(path), 3);
}

/* The message if RESULTS has appeared during the run; owned. */
static cake_buf finish_refused(const cake_record_options *options)
{
    cake_buf said = {0};
    cake_recorder *recorder = with_answers(options, 5);
    put(options->path, "mine\n");
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    cake_record_close(recorder);
    return said;
}

static void test_made_meanwhile(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/mine.jsonl", suite_tmp());
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    cake_buf said = finish_refused(&options);
    CU_ASSERT(
        strstr(said.data,
               "mine.jsonl: another process created this file since the run began; 5 results are in ") &&
        strstr(
            said.data,
            "/mine.jsonl.partial: move that file away, or give --force, and start the same command again\n"));
    cake_buf_free(&said);
    char *text = slurp(path);
    CU_ASSERT_STRING_EQUAL(text, "mine\n");
    free(text);
    CU_ASSERT_EQUAL(whole_lines(path_of("mine.jsonl.partial")), 5);
    CU_ASSERT_EQUAL(open_said(&options, "5 results are in "), CAKE_ERR_FATAL);
    options.force = true;
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_resumed(recorder), 5);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    CU_ASSERT_EQUAL(whole_lines(path), 5);
}

/* --resume never with --force would drop the results of a stopped run, so the message advises against it. */
static void test_made_meanwhile_never(void)
{
    cake_record_options options = options_of(path_of("anew.jsonl"));
    options.resume = CAKE_RESUME_NEVER;
    cake_buf said = finish_refused(&options);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "the same command again, without --resume never, which would"));
    cake_buf_free(&said);
}

/* A run that was killed before its last step: its RESULTS counts as its own only while unchanged. */
static void test_killed_before_the_last_step(void)
{
    char path[200], partial[220];
    snprintf(path, sizeof path, "%s/steps.jsonl", suite_tmp());
    snprintf(partial, sizeof partial, "%s.partial", path);
    cake_record_options options = options_of(path);
    for (int mine = 0; mine <= 1; mine++) {
        cake_recorder *recorder = with_answers(&options, 4);
        CU_ASSERT_EQUAL(cake_record_flush(recorder), CAKE_OK);
        char *journal = slurp(partial);
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
        cake_record_close(recorder);
        put(partial, journal);
        free(journal);
        if (mine) {
            put(path, "mine\n");
            CU_ASSERT_EQUAL(open_said(&options, "another process created this file since the run began; 4 "),
                            CAKE_ERR_FATAL);
            char *text = slurp(path);
            CU_ASSERT_STRING_EQUAL(text, "mine\n");
            free(text);
            unlink(path);
        }
        CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
        CU_ASSERT_EQUAL(cake_record_resumed(recorder), 4);
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
        cake_record_close(recorder);
        CU_ASSERT(whole_lines(path) == 4 && !is_there(partial));
        unlink(path);
    }
}

/* Adding to finished results where there is no room for a journal of them. */
static int fill_disk_at_reopen(const char *path)
{
    struct rlimit was, limit = {1000, RLIM_INFINITY};
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    cake_buf said = {0};
    getrlimit(RLIMIT_FSIZE, &was);
    limit.rlim_max = was.rlim_max;
    cake_log_capture(&said);
    if (cake_record_open(&options, &recorder) || !cake_record_finished(recorder))
        return 1;
    setrlimit(RLIMIT_FSIZE, &limit);
    cake_err err = cake_record_reopen(recorder);
    setrlimit(RLIMIT_FSIZE, &was);
    cake_record_close(recorder);
    if (err != CAKE_ERR_FATAL ||
        !strstr(said.data, "more.jsonl.partial: cannot be written: File too large; ") ||
        !strstr(said.data, "/more.jsonl is unchanged"))
        return 2;
    cake_buf_free(&said);
    return is_there(path_of("more.jsonl.partial")) ? 3 : 0;
}

static void test_added_to(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/more.jsonl", suite_tmp());
    cake_record_options options = options_of(path);
    cake_recorder *recorder = with_answers(&options, 100);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    char *before = slurp(path);
    CU_ASSERT_EQUAL(in_child(fill_disk_at_reopen, path), 0);
    char *after = slurp(path);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(after);
    free(before);

    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_reopen(recorder), CAKE_OK);
    cake_record r = answer_of(100, "one more");
    read_all(recorder, 101);
    CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    CU_ASSERT_EQUAL(whole_lines(path), 101);
}

/* 0: finished results in a folder where nothing can be made say so. */
static int look_without_writing(const char *path)
{
    cake_record_options options = options_of(path);
    cake_recorder *recorder;
    cake_buf said = {0};
    if (getuid() == 0 && setuid(65534)) /* root may write anywhere */
        return 1;
    cake_log_capture(&said);
    if (cake_record_open(&options, &recorder))
        return 2;
    bool finished = cake_record_finished(recorder) && cake_record_resumed(recorder) == 4;
    cake_record_close(recorder);
    if (!finished || said.len)
        return 3;
    options.force = true; /* now it has to write */
    if (!cake_record_open(&options, &recorder) || !strstr(said.data, "kept.jsonl.lock: cannot be created: "))
        return 4;
    cake_buf_free(&said);
    return 0;
}

static void test_read_only(void)
{
    char path[200];
    const char *folder = path_of("kept");
    mkdir(folder, 0755);
    snprintf(path, sizeof path, "%s/kept.jsonl", folder);
    cake_record_options options = options_of(path);
    cake_recorder *recorder = with_answers(&options, 4);
    CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
    chmod(suite_tmp(), 0755);
    chmod(folder, 0555);
    CU_ASSERT_EQUAL(in_child(look_without_writing, path), 0);
    chmod(folder, 0755); /* or it could not be cleared away */
}

int main(void)
{
    static const suite_test tests[] = {
        {"results have the order of the input", test_order},
        {"finished and partial files are not overwritten unasked", test_existing},
        {"places that cannot be written to", test_places},
        {"a missing result is named", test_missing},
        {"text files", test_txt},
        {"a full disk leaves whole lines", test_full_disk},
        {"kill -9 leaves every finished line", test_killed},
        {"what a killed run left of RESULTS is replaced", test_left_over},
        {"RESULTS of somebody else that came meanwhile stay", test_made_meanwhile},
        {"... what to do with --resume never", test_made_meanwhile_never},
        {"... and where a run was killed before its last step", test_killed_before_the_last_step},
        {"finished results are added to, or stay as they are", test_added_to},
        {"finished results in a folder that is read-only", test_read_only},
    };
    return SUITE_MAIN("record", tests);
}
