/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "prompt/prompt.h"
#include "tests/suite.h"

static cake_prompt *from(const char *bytes, cake_prompt_format format)
{
    cake_prompt *prompt = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(bytes, strlen(bytes), format, &prompt), CAKE_OK);
    return prompt;
}

#define CHAT(body)                                                                                           \
    "{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":" body "}"
#define COMPLETION(body)                                                                                     \
    "{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":" body "}"
#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void test_lines(void)
{
    cake_prompt *prompt =
        from("\xEF\xBB\xBF{\"prompt\": \"a\"}\r\n\n  \t\r\n{\"prompt\": \"b\"}", CAKE_PROMPT_JSONL);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.index == 0 && !strcmp(r.text, "a"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.index == 3 && r.order == 1 && !strcmp(r.text, "b"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_progress(prompt), 1);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    prompt = from("", CAKE_PROMPT_JSONL);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
}

/* The form of what cannot be parsed is that of the first line that tells it, before and after. */
static void test_unparsable_forms(void)
{
    cake_prompt *prompt =
        from("oops\n[]\n" COMPLETION("{\"prompt\":\"x\"}") "\n{bad\n{\"prompt\": \"s\"}\n{worse\n",
             CAKE_PROMPT_JSONL);
    static const cake_form forms[] = {CAKE_FORM_BATCH_COMPLETION, CAKE_FORM_BATCH_COMPLETION,
                                      CAKE_FORM_BATCH_COMPLETION, CAKE_FORM_BATCH_COMPLETION,
                                      CAKE_FORM_SIMPLE,           CAKE_FORM_BATCH_COMPLETION};
    for (int i = 0; i < 6; i++) {
        cake_request r;
        CU_ASSERT_EQUAL_FATAL(cake_prompt_next(prompt, &r), CAKE_OK);
        CU_ASSERT_EQUAL(r.index, i);
        CU_ASSERT_EQUAL(r.form, forms[i]);
        CU_ASSERT_EQUAL(r.err, i == 2 || i == 4 ? CAKE_OK : CAKE_ERR_REQUEST);
        CU_ASSERT(r.err == CAKE_OK || r.id == NULL);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);

    cake_buf text = {0}; /* nothing but rubbish: simple, and bounded */
    for (int i = 0; i < 2500; i++)
        cake_buf_adds(&text, "rubbish\n");
    prompt = from(text.data, CAKE_PROMPT_JSONL);
    cake_request r;
    int64_t n = 0;
    for (; !cake_prompt_next(prompt, &r); n++) {
        if (r.index != n || r.form != CAKE_FORM_SIMPLE)
            CU_FAIL("order or form");
        cake_request_free(&r);
    }
    CU_ASSERT_EQUAL(n, 2500);
    cake_prompt_close(prompt);
    prompt = from(text.data, CAKE_PROMPT_JSONL); /* closed in the middle */
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    cake_prompt_close(prompt);
    cake_buf_free(&text);
}

static void test_duplicates(void)
{
    cake_buf text = {0};
    enum { N = 100000 };
    for (int i = 0; i <= N; i++)
        cake_buf_addf(
            &text,
            "{\"custom_id\":\"request-%d\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":{%s}}\n",
            i < N ? i : 4711, i == 4711 ? "" : "\"prompt\":\"x\"");
    cake_prompt *prompt = from(text.data, CAKE_PROMPT_JSONL);
    cake_request r;
    int faults = 0;
    while (!cake_prompt_next(prompt, &r)) {
        faults += r.err != CAKE_OK;
        if (r.index == N) {
            CU_ASSERT_STRING_EQUAL(r.fault.param, "custom_id");
            CU_ASSERT_PTR_NOT_NULL(
                strstr(r.fault.message, "custom_id is \"request-4711\", as in an earlier line"));
            CU_ASSERT_STRING_EQUAL(r.id, "\"request-4711\"");
        }
        cake_request_free(&r);
    }
    CU_ASSERT_EQUAL(faults, 2); /* the empty body, and its id again */
    cake_prompt_close(prompt);
    cake_buf_free(&text);
    prompt =
        from("{\"id\": \"a\", \"prompt\": \"x\"}\n{\"id\": \"a\", \"prompt\": \"x\"}\n", CAKE_PROMPT_JSONL);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
        CU_ASSERT_EQUAL(r.err, CAKE_OK);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);
}

static void test_unknown_said_once(void)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    cake_prompt *prompt =
        from("{\"prompt\":\"x\",\"answer\":\"y\"}\n{\"prompt\":\"x\",\"answer\":\"y\"}\n", CAKE_PROMPT_JSONL);
    cake_request r;
    while (!cake_prompt_next(prompt, &r)) {
        CU_ASSERT_EQUAL(r.err, CAKE_OK);
        cake_request_free(&r);
    }
    cake_prompt_close(prompt);
    cake_log_capture(NULL);
    const char *first = said.data ? strstr(said.data, "field \"answer\" is unknown and ignored") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 10, "answer"));
    cake_buf_free(&said);
}

static void test_txt(void)
{
    cake_prompt *prompt = from("one\\ntwo\\t\\\\n \\x\\\n\n   \r\nlast\xFF", CAKE_PROMPT_TXT);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.use_template && r.form == CAKE_FORM_SIMPLE && !r.id);
    CU_ASSERT_STRING_EQUAL(r.text, "one\ntwo\t\\n \\x\\");
    CU_ASSERT_EQUAL(r.text_len, strlen(r.text));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.index == 3 && r.order == 1 && r.err == CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.fault.message, "invalid UTF-8 at byte 4: 0xFF"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);

    char *texts[] = {"a\\n", ""};
    CU_ASSERT_EQUAL(cake_prompt_from_texts(texts, 2, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(!strcmp(r.text, "a\\n") && r.use_template); /* the shell has escapes of its own */
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.text && !r.text_len && r.index == 1);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
}

static void test_open(void)
{
    static const struct {
        const char *path, *message;
        cake_err err;
    } cases[] = {
        {"/nonexistent/p.jsonl", "/nonexistent/p.jsonl: cannot be opened: No such file", CAKE_ERR_FATAL},
        {"/tmp", "/tmp: is a directory", CAKE_ERR_FATAL},
        {"p.csv", "p.csv: .csv files are not supported; expected .jsonl, .txt or .h5: python3",
         CAKE_ERR_USAGE},
        {"p.md", "p.md: the ending \".md\" is unknown", CAKE_ERR_USAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_prompt *prompt = NULL;
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_prompt_open(cases[i].path, CAKE_PROMPT_AUTO, &prompt), cases[i].err);
        cake_log_capture(NULL);
        CU_ASSERT_PTR_NULL(prompt);
        CU_ASSERT(said.data && strstr(said.data, cases[i].message));
        cake_buf_free(&said);
    }
}

/* Samples of a task as lines with one id: each knows its number among them, whatever lies between. */
static void test_again(void)
{
    enum { N = 3000 };
    cake_buf text = {0};
    for (int i = 0; i < N; i++)
        cake_buf_addf(&text, i % 3 ? "{\"id\":\"a\",\"prompt\":\"x\"}\n" : "{\"id\":%d,\"prompt\":\"x\"}\n",
                      i);
    cake_buf_adds(&text, COMPLETION("{\"prompt\":\"x\"}") "\n{\"id\":\"c\",\"prompt\":\"x\"}\n");
    cake_prompt *prompt = from(text.data, CAKE_PROMPT_JSONL);
    cake_request r;
    int64_t times = 0, wrong = 0;
    while (!cake_prompt_next(prompt, &r)) {
        bool is_a = r.index < N && r.index % 3;
        wrong += r.err != CAKE_OK || r.again != (is_a ? times++ : 0);
        cake_request_free(&r);
    }
    CU_ASSERT_EQUAL(times, 2000);
    CU_ASSERT_EQUAL(wrong, 0);
    cake_prompt_close(prompt);
    cake_buf_free(&text);
}

static const char zipped[] = "\x1F\x8B\x08\x00\x00\x00\x00\x00\x02\x03\xAB\x56\x2A\x28\xCA\xCF\x2D\x28"
                             "\x51\xB2\x52\x50\x4A\x54\xAA\xE5\x02\x00\x5B\x13\xF8\x2A\x10\x00\x00\x00";

/* The header of a tar file has its magic after the name and numbers of the first member. */
static const char tar[512] = {[0] = 'a', [257] = 'u', [258] = 's', [259] = 't', [260] = 'a', [261] = 'r'};

/* The error by a file's first bytes, whatever its name; NULL: it is read and has n lines. */
static const struct {
    const char *name, *bytes;
    size_t len; /* 0: as a string */
    const char *message;
    int n;
} heads[] = {
    {"p.jsonl", "[\n {\"prompt\": \"a\"},\n {\"prompt\": \"b\"}\n]\n", 0, "p.jsonl: is a JSON array; ", 0},
    {"p.jsonl", "[{\"prompt\": \"a\"},\n{\"prompt\": \"b\"}]", 0, "is a JSON array; ", 0},
    {"p.jsonl", "\xEF\xBB\xBF[{\"prompt\": \"a\"}, {\"prompt\": \"b\"}] \n\n", 0, "is a JSON array; ", 0},
    {"p.jsonl", "[ {\"prompt\": \"a\"}\n,{\"prompt\": \"b\"}]", 0, "is a JSON array; ", 0},
    {"p.jsonl", "{\n  \"prompt\": \"a\"\n}\n", 0, "its first line ends in \"{\": an object spans several", 0},
    {"p.jsonl", "{\"prompt\": \"a\",\r\n \"id\": 1}", 0, "its first line ends in \",\"", 0},
    {"p.jsonl", "{\"prompt\": \"a\"},\n{\"prompt\": \"b\"}", 0, "or commas stand between", 0},
    {"p.jsonl", "[\"a\"]\n{\"prompt\": \"b\"}\n", 0, NULL, 2}, /* one bad line hurts no other */
    {"p.jsonl", "{\"prompt\": \"a,", 0, NULL, 1},
    {"p.txt", "[\nb\n", 0, NULL, 2},
    {"p.txt", "a\0b\0c\0", 6, "p.txt: is UTF-16LE; expected UTF-8: convert it with iconv -f UTF-16LE", 0},
    {"p.txt", "\0a\0b", 4, "is UTF-16BE", 0},
    {"p.jsonl", "\xFF\xFE{\0}\0", 6, "is UTF-16; expected UTF-8: convert it with iconv -f UTF-16 -t UTF-8",
     0},
    {"p.jsonl", "\xFF\xFE\0\0{\0\0\0", 8, "is UTF-32", 0},
    {"p.jsonl", "BZh91AY&SY..", 0, "packed by bzip2; unpack it first", 0},
    {"p.jsonl",
     "\xFD"
     "7zXZ\0\0",
     7, "packed by xz", 0},
    {"p.jsonl", "PK\3\4\x14", 5, "is a zip file", 0},
    {"p.jsonl", "PAR1\x15\4", 6, "is Parquet; python3", 0},
    {"p.jsonl", "\x04\x22\x4D\x18\x40", 5, "packed by lz4", 0},
    {"p.jsonl", tar, 512, "is a tar file; unpack it first", 0},
    {"p.txt", "Hi\rHo\rHa", 8, "its lines end in \\r alone; expected \\n: convert it with tr", 0},
    {"p.txt", "Hi\rHo\rHa\n", 9, NULL, 1},
    {"p.jsonl", "\x89HDF\r\n\x1A\n", 8, "is HDF5; --input-format h5 reads it", 0},
    {"p.jsonl", "version https://git-lfs.github.com/spec/v1\noid", 0,
     "is a git-lfs pointer, not the file: run", 0},
    {"p.jsonl", zipped, sizeof zipped - 1, NULL, 1},
    {"p.txt", "PAR1 is a gene\n", 0, NULL, 1},
    {"p.txt", "{\"a\": 1}\n", 0, NULL, 1},
    {"p.jsonl", "", 0, NULL, 0},
};

static void test_heads(void)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", suite_tmp(), heads[i].name);
        FILE *f = fopen(path, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        fwrite(heads[i].bytes, 1, heads[i].len ? heads[i].len : strlen(heads[i].bytes), f);
        fclose(f);
        cake_buf said = {0};
        cake_prompt *prompt;
        cake_request r;
        int n = 0;
        cake_log_capture(&said);
        CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
        cake_err err = cake_prompt_name(prompt, &(cake_names){0});
        for (; !cake_prompt_next(prompt, &r); n++)
            cake_request_free(&r);
        cake_log_capture(NULL);
        cake_prompt_close(prompt);
        CU_ASSERT_EQUAL(err, heads[i].message ? CAKE_ERR_FATAL : CAKE_OK);
        CU_ASSERT(heads[i].message ? said.data && strstr(said.data, heads[i].message)
                  : n              ? !said.len
                                   : strstr(said.data, "it has no prompts") != NULL);
        CU_ASSERT_EQUAL(n, heads[i].n);
        cake_buf_free(&said);
        unlink(path);
    }
}

/* Standard input that ends in the middle of a line: what came whole is served, the rest is an error
 * record. */
static void test_cut_stdin(void)
{
    static const char text[] = "{\"prompt\": \"whole\"}\n{\"id\": 7, \"prompt\": \"cut sh";
    int ends[2], before = dup(STDIN_FILENO);
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(write(ends[1], text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    cake_prompt *prompt;
    cake_request r;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open("-", CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "whole"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && r.index == 1 && r.form == CAKE_FORM_SIMPLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.fault.message, "ends here without a newline: was it cut short?"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
}

/* A disk that fails while it is read; the kernel's own memory file plays it. */
static void test_read_error(void)
{
    cake_prompt *prompt;
    cake_request r;
    cake_buf said = {0};
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open("/proc/self/mem", CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    const char *first = said.data ? strstr(said.data, "/proc/self/mem: cannot be read at byte 0: ") : NULL;
    CU_ASSERT(first && !strstr(first + 1, "/proc/self/mem")); /* said once */
    cake_buf_free(&said);
    cake_prompt_close(prompt);
}

/* Lines around the limit, through a pipe that delivers them in pieces. */
static void test_long_lines(void)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t writer = fork();
    if (!writer) {
        static char block[1 << 16];
        memset(block, 'x', sizeof block);
        FILE *f = fdopen(ends[1], "w");
        close(ends[0]);
        /* 64 MiB exactly, with its quotes and braces; 200 MiB; a short one */
        fputs("{\"prompt\": \"", f);
        for (size_t left = (64u << 20) - 14; left;) {
            size_t n = left < sizeof block ? left : sizeof block;
            left -= fwrite(block, 1, n, f);
        }
        fputs("\"}\r\n", f);
        for (int i = 0; i < 3200; i++)
            fwrite(block, 1, sizeof block, f);
        fputs("\n{\"prompt\": \"end\"}", f);
        fclose(f);
        _exit(0);
    }
    close(ends[1]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    CU_ASSERT(cake_prompt_progress(prompt) < 0);
    cake_request r;
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && r.text_len == (64u << 20) - 14);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && strstr(r.fault.message, "the line has 209715200 bytes"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "end") && r.index == 2);
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_END);
    cake_prompt_close(prompt);
    close(ends[0]);
}

/* AddressSanitizer keeps freed memory for a while, so that peaks say nothing. */
extern void __asan_init(void) __attribute__((weak));

/* A file much larger than what may be held passes through memory that does not grow with it. */
static void test_bounded_memory(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/large.jsonl", suite_tmp());
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    static char filler[1000];
    memset(filler, 'y', sizeof filler - 1);
    for (int i = 0; i < 100000; i++)
        fprintf(f, "{\"id\": %d, \"prompt\": \"%s\"}\n", i, filler);
    fclose(f);
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    struct rusage before, after;
    cake_request r;
    int n = 0;
    double last = -1;
    while (!cake_prompt_next(prompt, &r)) {
        cake_request_free(&r);
        double progress = cake_prompt_progress(prompt);
        if (progress < last || progress > 1)
            CU_FAIL("progress");
        last = progress;
        if (n++ == 10000)
            getrusage(RUSAGE_SELF, &before);
    }
    getrusage(RUSAGE_SELF, &after);
    CU_ASSERT_EQUAL(n, 100000);
    CU_ASSERT_EQUAL(last, 1);
    CU_ASSERT(__asan_init || after.ru_maxrss - before.ru_maxrss < 4096); /* KiB, while 90 MB went by */
    cake_prompt_close(prompt);
    unlink(path);
}

static void test_batch_file_of_vllm(void)
{
    const char *path = suite_asset("prompts/vllm_openai_example_batch.jsonl");
    if (!path)
        return;
    cake_prompt *prompt;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt), CAKE_OK);
    cake_request r;
    int n = 0;
    while (!cake_prompt_next(prompt, &r)) {
        CU_ASSERT(r.err == CAKE_OK && r.form == CAKE_FORM_BATCH_CHAT && r.params.max_tokens == 1000);
        CU_ASSERT_EQUAL(cake_json_size(r.messages), 2);
        cake_request_free(&r);
        n++;
    }
    CU_ASSERT_EQUAL(n, 2);
    cake_prompt_close(prompt);
}

/* A line that would become gigabytes is refused unparsed. */
static void test_heavy_line(void)
{
    size_t n = 2 << 20;
    cake_buf line = {0};
    cake_buf_adds(&line, "{\"prompt\": \"a\", \"x\": [");
    for (size_t i = 0; i < n; i++)
        cake_buf_adds(&line, "{},");
    cake_buf_adds(&line, "1]}\n{\"prompt\": \"b\"}\n");
    cake_prompt *prompt;
    cake_request r;
    CU_ASSERT_EQUAL_FATAL(cake_prompt_from_bytes(line.data, line.len, CAKE_PROMPT_JSONL, &prompt), CAKE_OK);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_ERR_REQUEST && strstr(r.fault.message, "too many values"));
    cake_request_free(&r);
    CU_ASSERT_EQUAL(cake_prompt_next(prompt, &r), CAKE_OK);
    CU_ASSERT(r.err == CAKE_OK && !strcmp(r.text, "b"));
    cake_request_free(&r);
    cake_prompt_close(prompt);
    cake_buf_free(&line);
}

int main(void)
{
    static const suite_test tests[] = {
        {"a line that would become gigabytes", test_heavy_line},
        /* first, while the peak of memory is still low */
        {"memory is bounded", test_bounded_memory},
        {"BOM, CRLF, blank lines, a last line without newline", test_lines},
        {"lines that cannot be parsed take the file's form", test_unparsable_forms},
        {"duplicate custom_id", test_duplicates},
        {"the same id again", test_again},
        {"unknown fields of simple lines are said once", test_unknown_said_once},
        {"text files and -p", test_txt},
        {"files that cannot be opened", test_open},
        {"what the first bytes say", test_heads},
        {"standard input that ends in mid-line", test_cut_stdin},
        {"a file that cannot be read to its end", test_read_error},
        {"lines of 64 MiB and longer ones", test_long_lines},
        {"a batch file of vLLM", test_batch_file_of_vllm},
    };
    return SUITE_MAIN("prompt", tests);
}
