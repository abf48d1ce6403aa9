/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/log.h"
#include "record/job.h"
#include "record/lock.h"
#include "records.h"

static cake_journal_header header_of(const char *identity)
{
    return (cake_journal_header){
        .identity = (char *)identity, .model = "demo", .created = 1700000000, .job = 0xABC};
}

/* A journal of groups; ends [n]: the file's length after the first line and each group. */
static void compose(cake_buf *out, const int64_t *orders, int n_group, int each, size_t *ends)
{
    cake_journal_header header = header_of("{\"isa\": \"ref\"}");
    cake_journal_begin(&header, out);
    ends[0] = out->len;
    for (int g = 0; g < n_group; g++) {
        cake_buf group = {0};
        cake_entry entries[8];
        for (int i = 0; i < each; i++) {
            int64_t order = orders[g * each + i];
            entries[i] = (cake_entry){.order = order, .failed = order % 3 == 1};
            cake_buf_addf(&group, "{\"index\": %lld, \"text\": \"answer\"}\n", (long long)order);
        }
        cake_input_checkpoint read = {(g + 1) * 10, (g + 1) * 10 + 2, 77u * (uint32_t)g};
        cake_reached reached = {1700000000 + g / 2, 10.5 * g, g ? 0.25 * g : -1, g ? 9.5 * g : -1};
        cake_journal_close(entries, (size_t)each, &read, &reached, &group);
        cake_buf_add(out, group.data, group.len);
        cake_buf_free(&group);
        ends[g + 1] = out->len;
    }
}

static const int64_t some[] = {0, 2, 1, 5, 12, 4, 3, 7, 21};
enum { GROUPS = 3, EACH = 3 };

static int file_of(const char *text, size_t len)
{
    int fd = open(path_of("journal"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    return fd;
}

static cake_err read_text(const char *text, size_t len, cake_journal *out, cake_buf *said)
{
    int fd = file_of(text, len);
    cake_buf_cut(said, 0);
    cake_log_capture(said);
    cake_err err = cake_journal_read(fd, "FILE", out);
    cake_log_capture(NULL);
    close(fd);
    return err;
}

/* Each result that is there has its own line in the file. */
static bool is_right(const cake_journal *j, const char *text)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->lines.end; i++) {
        cake_line_span span = cake_line_index_get(&j->lines, i);
        char want[64];
        int len = snprintf(want, sizeof want, "{\"index\": %lld, \"text\": \"answer\"}\n", (long long)i);
        n += span.len > 0;
        if (span.len &&
            (span.len != len || memcmp(text + span.offset, want, (size_t)len) || span.failed != (i % 3 == 1)))
            return false;
    }
    return n == j->lines.n;
}

static void test_whole(void)
{
    cake_buf text = {0}, said = {0};
    size_t ends[GROUPS + 1];
    cake_journal j;
    compose(&text, some, GROUPS, EACH, ends);
    CU_ASSERT_EQUAL_FATAL(read_text(text.data, text.len, &j, &said), CAKE_OK);
    CU_ASSERT(j.lines.n == 9 && j.failed == 3 && !j.torn && !j.lost && j.end == (int64_t)text.len);
    CU_ASSERT(is_right(&j, text.data));
    CU_ASSERT(j.header.created == 1700000000 && j.header.job == 0xABC && !j.header.replaces);
    CU_ASSERT_STRING_EQUAL(j.header.model, "demo");
    CU_ASSERT(j.n_mark == 3 && j.marks[2].requests == 30 && j.marks[2].line == 32 && j.marks[2].sum == 154);
    cake_journal_free(&j);

    const int64_t again[] = {0, 1, 2, 4, 0, 1}; /* requests that were done again: the later result counts */
    cake_buf_cut(&text, 0);
    compose(&text, again, 2, 3, ends);
    CU_ASSERT_EQUAL_FATAL(read_text(text.data, text.len, &j, &said), CAKE_OK);
    CU_ASSERT(j.lines.n == 4 && j.failed == 2 && cake_line_index_get(&j.lines, 0).offset > (int64_t)ends[1]);
    CU_ASSERT(is_right(&j, text.data));
    cake_journal_free(&j);
    cake_buf_free(&text);
    cake_buf_free(&said);
}

/* Cut at every byte: what is before the last whole group stands, the rest is known to be torn. */
static void test_torn(void)
{
    cake_buf text = {0}, said = {0};
    size_t ends[GROUPS + 1];
    int wrong = 0;
    compose(&text, some, GROUPS, EACH, ends);
    for (size_t len = 0; len < text.len; len++) {
        cake_journal j;
        int whole = -1;
        while (whole < GROUPS && ends[whole + 1] <= len)
            whole++;
        cake_err err = read_text(text.data, len, &j, &said);
        if (whole < 0) {
            wrong += err != CAKE_END || said.len;
            continue;
        }
        wrong += err != CAKE_OK || said.len;
        if (!err) {
            wrong += j.end != (int64_t)ends[whole] || j.torn != (int64_t)(len - ends[whole]) || j.lost ||
                     j.lines.n != whole * EACH || !is_right(&j, text.data);
            cake_journal_free(&j);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cake_buf_free(&text);
    cake_buf_free(&said);
}

/* A line of answers that were begun: [n] tokens of `order` from `at` on, with scores of two tokens each. */
static void compose_begun(cake_buf *out, int64_t order, int answer, int64_t at, int n)
{
    int32_t ids[8];
    cake_token_logprob scored[16];
    cake_buf line = {0};
    for (int i = 0; i < n; i++) {
        ids[i] = (int32_t)(order + at + i);
        scored[2 * i] = (cake_token_logprob){ids[i], i ? -0.1f * (float)(at + i) : -INFINITY};
        scored[2 * i + 1] = (cake_token_logprob){3, -1e-7f};
    }
    cake_inflight part = {.order = order,
                          .choice = answer,
                          .at = at,
                          .ids = {.id = ids, .len = (size_t)n},
                          .width = 2,
                          .logprobs = scored};
    cake_input_checkpoint read = {30, 32, 1};
    cake_journal_open_running(&line);
    cake_inflight_add(&part, &line);
    cake_journal_close_running(&read, &line);
    cake_buf_add(out, line.data, line.len);
    cake_buf_free(&line);
}

static size_t begun(const cake_journal *j, int64_t order, int answer)
{
    int n;
    const cake_inflight *r = cake_inflights_get(&j->inflights, order, &n);
    while (n && r->choice != answer)
        r = --n ? r + 1 : NULL;
    for (size_t i = 0; r && i < r->ids.len; i++)
        if (r->ids.id[i] != (int32_t)(order + (int64_t)i) || r->logprobs[2 * i].id != r->ids.id[i])
            return 99;
    return r ? r->ids.len : 0;
}

/* Answers that were begun, cut at every byte: their tokens up to the last whole line, until their result is
 * there. */
static void test_begun(void)
{
    cake_buf text = {0}, said = {0};
    size_t ends[GROUPS + 1], lines[6];
    int wrong = 0;
    cake_journal j;
    compose(&text, some, 1, EACH, ends);
    lines[0] = text.len;
    compose_begun(&text, 5, 7, 0, 3);
    lines[1] = text.len;
    compose_begun(&text, 5, 2, 0, 1); /* another answer to the same */
    lines[2] = text.len;
    compose_begun(&text, 5, 7, 3, 4);
    lines[3] = text.len;
    compose_begun(&text, 9, 0, 2, 2); /* its beginning is missing */
    lines[4] = text.len;
    cake_buf rest = {0};
    static const int64_t over[] = {5, 4, 3};
    compose(&rest, over, 1, EACH, ends);
    cake_buf_add(&text, rest.data + ends[0], ends[1] - ends[0]);
    lines[5] = text.len;
    for (size_t len = lines[0]; len <= text.len; len++) {
        int whole = 5;
        while (lines[whole] > len)
            whole--;
        static const size_t wanted[] = {0, 3, 3, 7, 7, 0}, others[] = {0, 0, 1, 1, 1, 0};
        if (read_text(text.data, len, &j, &said) != CAKE_OK) {
            wrong++;
            continue;
        }
        wrong += begun(&j, 5, 7) != wanted[whole] || begun(&j, 5, 0) || begun(&j, 9, 0) ||
                 begun(&j, 5, 2) != others[whole] ||
                 cake_inflights_requests(&j.inflights) != (wanted[whole] > 0) ||
                 j.end != (int64_t)lines[whole] || j.lost || j.lines.n != (whole == 5 ? 6 : 3) ||
                 (whole && j.marks[j.n_mark - 1].requests != 30);
        cake_journal_free(&j);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (size_t at = lines[0]; at < lines[4];
         at++) { /* a bit wrong: what follows on it does not count either */
        int hit = at < lines[1] ? 0 : at >= lines[2] - 1 && at < lines[3] ? 1 : 2;
        bool other = at < lines[1] - 1 || at >= lines[2];
        text.data[at] = (char)(text.data[at] ^ 1 << at % 8);
        if (read_text(text.data, lines[4], &j, &said) == CAKE_OK) {
            wrong += begun(&j, 5, 7) != (hit == 0   ? 0u
                                         : hit == 1 ? 3u
                                                    : 7u) ||
                     begun(&j, 5, 2) != other || j.lines.n != 3;
            cake_journal_free(&j);
        } else {
            wrong++;
        }
        text.data[at] = (char)(text.data[at] ^ 1 << at % 8);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cake_buf_free(&rest);
    cake_buf_free(&text);
    cake_buf_free(&said);
}

/* One bit wrong: the group that has it does not count, all others do. */
static void test_flipped(void)
{
    cake_buf text = {0}, said = {0};
    size_t ends[GROUPS + 1];
    int wrong = 0;
    compose(&text, some, GROUPS, EACH, ends);
    for (size_t at = 0; at < text.len; at++) {
        cake_journal j;
        int hit = 0;
        while (at >= ends[hit])
            hit++;
        text.data[at] = (char)(text.data[at] ^ 1 << at % 8);
        cake_err err = read_text(text.data, text.len, &j, &said);
        if (!hit) {
            wrong += err != CAKE_ERR_FATAL || !strstr(said.data, "it cannot be resumed");
        } else {
            wrong += err != CAKE_OK;
            if (!err)
                wrong += j.lines.n != (GROUPS - 1) * EACH || !is_right(&j, text.data) ||
                         (hit < GROUPS ? j.lost != (int64_t)(ends[hit] - ends[hit - 1]) || j.torn
                                       : j.torn != (int64_t)(text.len - ends[hit - 1]));
        }
        if (!err)
            cake_journal_free(&j);
        text.data[at] = (char)(text.data[at] ^ 1 << at % 8);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cake_buf_free(&text);
    cake_buf_free(&said);
}

static void sum_line(cake_buf *line, const char *body)
{
    size_t from = line->len;
    cake_buf_adds(line, body);
    cake_buf_addf(line, ", \"crc\": \"%08x\"}}\n", cake_crc(line->data + from, line->len - from));
}

/* Numbers that are wrong under a right checksum, and files that are something else. */
static void test_others(void)
{
    static const struct {
        const char *text, *said;
    } files[] = {{"{}\n{}\n", "is not a journal of cake-mpi"},
                 {"text", "is not a journal"},
                 {"{\"_cake\": {\"journal\": 1}}\n", "is damaged"},
                 {"\n", "is not a journal"}};
    static const struct {
        const char *body, *said;
    } headers[] = {
        {"{\"_cake\": {\"journal\": 2", "was written by another version"},
        {"{\"_cake\": {\"journal\": 1", "was written by another version"},
        {"{\"_cake\": {\"journal\": 1, \"created\": \"-1\", \"job\": \"0123456789abcdef\", \"model\": \"m\", "
         "\"identity\": {}",
         "was written by another version"}};
    static const char *const groups[] = {
        "{\"_cake\": {\"group\": 0, \"orders\": [0], \"failed\": [], \"read\": [1, 1, 1]",
        "{\"_cake\": {\"group\": 99999, \"orders\": [], \"failed\": [], \"read\": [1, 1, 1]",
        "{\"_cake\": {\"group\": 9223372036854775807, \"orders\": [], \"failed\": [], \"read\": [1, 1, 1]",
        "{\"_cake\": {\"group\": 0, \"orders\": [], \"failed\": [3], \"read\": [9, 9, 1]",
        "{\"_cake\": {\"group\": 0, \"orders\": [], \"failed\": [], \"read\": [99999999999, 99999999999, 1]",
        "{\"_cake\": {\"group\": 0, \"orders\": [], \"failed\": []",
        "{\"_cake\": {\"group\": 0, \"orders\": [4503599627370496], \"failed\": [], \"read\": [9, 9, 1]"};
    cake_journal j;
    cake_buf said = {0}, text = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CU_ASSERT_EQUAL(read_text(files[i].text, strlen(files[i].text), &j, &said), CAKE_ERR_FATAL);
        CU_ASSERT(said.data && strstr(said.data, files[i].said));
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        cake_buf_cut(&text, 0);
        sum_line(&text, headers[i].body);
        CU_ASSERT_EQUAL(read_text(text.data, text.len, &j, &said), CAKE_ERR_FATAL);
        CU_ASSERT(said.data && strstr(said.data, headers[i].said));
    }
    cake_journal_header header = header_of("{}");
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        cake_buf_cut(&text, 0);
        cake_journal_begin(&header, &text);
        size_t first = text.len;
        sum_line(&text, groups[i]);
        CU_ASSERT_EQUAL_FATAL(read_text(text.data, text.len, &j, &said), CAKE_OK);
        CU_ASSERT(j.lines.n == 0 && j.end == (int64_t)first && j.torn == (int64_t)(text.len - first));
        cake_journal_free(&j);
    }
    cake_buf_free(&text);
    cake_buf_free(&said);
}

static void test_differs(void)
{
    static const struct {
        const char *was, *is, *said;
    } cases[] = {{"{\"a\": 1, \"b\": \"x\"}", "{\"b\": \"x\", \"a\": 1}", ""},
                 {"{\"a\": 1, \"b\": \"x\"}", "{\"a\": 2, \"b\": \"y\"}",
                  "a was 1 and is 2, b was \"x\" and is \"y\""},
                 {"{\"a\": 1}", "{\"c\": []}", "c was not set and is [], a was 1 and is not set"},
                 {"{", "{}", "its description cannot be read"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0};
        cake_journal_differs(cases[i].was, cases[i].is, &out);
        CU_ASSERT_STRING_EQUAL(out.data ? out.data : "", cases[i].said);
        cake_buf_free(&out);
    }
}

/* Records [from, to) of a job of n requests; finishes it if all exist. said: the messages of opening it. */
static cake_err do_some(cake_record_options options, int from, int to, int n, cake_buf *said)
{
    cake_recorder *recorder;
    cake_buf_cut(said, 0);
    cake_buf_adds(said, "");
    cake_log_capture(said);
    cake_err err = cake_record_open(&options, &recorder);
    if (!err && cake_record_finished(recorder))
        err = options.retry || n > cake_record_resumed(recorder) ? cake_record_reopen(recorder) : CAKE_END;
    if (!err)
        cake_record_log_resume(recorder);
    cake_log_capture(NULL);
    if (err && err != CAKE_END)
        return err;
    cake_fault fault;
    cake_fault_set(&fault, NULL, "no");
    read_all(recorder, n);
    for (int i = from; !err && i < to; i++) {
        cake_record r = answer_of(i, "text");
        r.fault = i % 10 == 7 && !options.retry ? &fault : NULL;
        if (!cake_record_has(recorder, i))
            err = cake_record_add(recorder, &r);
    }
    if (!err && to == n)
        err = cake_record_finish(recorder);
    cake_record_close(recorder);
    return err;
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static int64_t lines_with(const char *name, const char *word)
{
    char command[400];
    snprintf(command, sizeof command, "grep -c '%s' '%s'", word, path_of(name));
    FILE *pipe = popen(command, "r");
    int n = -1;
    if (!pipe || fscanf(pipe, "%d", &n) != 1)
        n = -1;
    if (pipe)
        pclose(pipe);
    return n;
}

/* Stopped, resumed, finished, started again, extended, retried. */
static void test_take_up(void)
{
    cake_buf said = {0};
    cake_record_options o = options_of(path_of("job.jsonl"));
    char path[200];
    o.path = strcpy(path, o.path);
    CU_ASSERT_EQUAL(do_some(o, 0, 300, 500, &said), CAKE_OK);
    FILE *f = fopen(path_of("job.jsonl.partial"), "a"); /* a group that was being written */
    for (int i = 0; i < 2000; i++)
        fputs("{\"id\": null, \"index\": 9, \"te\n", f);
    fclose(f);
    CU_ASSERT_EQUAL(do_some(o, 0, 300, 500, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "resumes with 300 finished requests (30 failed); "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, " bytes of an incomplete group are cut off"));
    CU_ASSERT_EQUAL(lines_with("job.jsonl.partial", "\"te$"), 0);
    CU_ASSERT(!is_there("job.jsonl") && is_there("job.jsonl.partial") && !is_there("job.jsonl.lock"));
    CU_ASSERT_EQUAL(do_some(o, 0, 500, 500, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said.data, "job.jsonl.partial: resumes with 300 finished requests (30 failed)"));
    CU_ASSERT(is_there("job.jsonl") && is_there("job.jsonl.job") && !is_there("job.jsonl.partial"));
    CU_ASSERT(lines_with("job.jsonl", "^{\"id\"") == 500 && lines_with("job.jsonl", "\"error\"") == 50);
    CU_ASSERT_EQUAL(do_some(o, 0, 500, 500, &said), CAKE_END);

    CU_ASSERT_EQUAL(do_some(o, 0, 510, 520, &said), CAKE_OK); /* the input has grown; stopped */
    CU_ASSERT(is_there("job.jsonl") && is_there("job.jsonl.partial"));
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "resumes with 510 finished requests (51 failed)"));
    CU_ASSERT(lines_with("job.jsonl", "^{\"id\"") == 520 && lines_with("job.jsonl", "\"error\"") == 52);
    o.retry = true;
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said.data, "resumes with 468 finished requests (0 failed); 52 failed requests are repeated"));
    CU_ASSERT(lines_with("job.jsonl", "^{\"id\"") == 520 && lines_with("job.jsonl", "\"error\"") == 0);
    o.retry = false;

    o.identity = "{\"isa\": \"avx2\"}";
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said.data, "job.jsonl: exists already and belongs to another job: isa was"));
    o.identity = NULL;
    o.resume = CAKE_RESUME_NEVER;
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "exists already; --force overwrites it"));
    o.resume = CAKE_RESUME_AUTO;
    f = fopen(path, "a");
    fputs("{}\n", f);
    fclose(f);
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "was changed since it was written"));
    o.force = true; /* begins anew; if that run is stopped, it resumes */
    CU_ASSERT_EQUAL(do_some(o, 0, 100, 520, &said), CAKE_OK);
    CU_ASSERT_EQUAL(said.len, 0);
    o.force = false;
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "resumes with 100 finished requests"));
    unlink(path);
    o.resume = CAKE_RESUME_MUST;
    CU_ASSERT_EQUAL(do_some(o, 0, 520, 520, &said), CAKE_ERR_FATAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "there is nothing to resume, but --resume must is given"));
    cake_buf_free(&said);
}

/* Undo removes the results of this run and keeps those of earlier ones. */
static void test_undo(void)
{
    cake_buf said = {0};
    cake_record_options o = options_of(path_of("undo.jsonl"));
    cake_recorder *recorder;
    CU_ASSERT_EQUAL(do_some(o, 0, 40, 100, &said), CAKE_OK);
    o.path = path_of("undo.jsonl");
    cake_log_capture(&said);
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&o, &recorder), CAKE_OK);
    cake_log_capture(NULL);
    read_all(recorder, 100);
    for (int i = 40; i < 60; i++) {
        cake_record r = answer_of(i, "wrong");
        CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
        CU_ASSERT_EQUAL(cake_record_flush(recorder), CAKE_OK);
    }
    cake_record_rollback(recorder);
    cake_record_close(recorder);
    CU_ASSERT_EQUAL(lines_with("undo.jsonl.partial", "wrong"), 0);
    o.path = path_of("undo.jsonl");
    CU_ASSERT_EQUAL(do_some(o, 0, 40, 100, &said), CAKE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "resumes with 40 finished requests"));
    CU_ASSERT_PTR_NULL(strstr(said.data, "cut off"));
    cake_buf_free(&said);
}

static void put_lock(const char *text)
{
    FILE *f = fopen(path_of("lock"), "w");
    fputs(text, f);
    fclose(f);
}

static cake_err take_said(const char *message)
{
    cake_buf said = {0};
    cake_lock *lock = NULL;
    cake_log_capture(&said);
    cake_err err = cake_lock_take(path_of("lock"), &lock);
    cake_log_capture(NULL);
    CU_ASSERT(message ? said.data && strstr(said.data, message) != NULL : !said.len);
    cake_lock_release(lock);
    cake_buf_free(&said);
    return err;
}

/* A script that answers as squeue does. */
static void put_squeue(void)
{
    char tool[200];
    snprintf(tool, sizeof tool, "%s/squeue", suite_tmp());
    FILE *f = fopen(tool, "w");
    fputs(
        "#!/bin/sh\n[ -z \"$SQUEUE_STATES$SQUEUE_PARTITION$SLURM_TIME_FORMAT\" ] || exit 0\n"
        "case \"$3\" in 7) echo 7,RUNNING ;; 8) ;; 9) echo 9,COMPLETED ;; "
        "11) echo 12,RUNNING; echo 111,RUNNING ;; 13) echo 12,COMPLETED; echo 13,RUNNING; echo 14,FAILED ;; "
        "*) echo 'slurm_load_jobs error: Invalid job id specified'; exit 1 ;; esac\n",
        f);
    fclose(f);
    chmod(tool, 0755);
}

/* A lock of a living process holds, one of a dead process or job does not. A script stands for squeue. */
static void test_lock(void)
{
    char text[600], host[256] = "";
    FILE *f;
    cake_lock *lock;
    gethostname(host, sizeof host - 1);
    CU_ASSERT_EQUAL(take_said(NULL), CAKE_OK);
    CU_ASSERT_FALSE(is_there("lock"));
    CU_ASSERT_EQUAL_FATAL(cake_lock_take(path_of("lock"), &lock), CAKE_OK);
    CU_ASSERT_EQUAL(take_said("another run is writing there: process"), CAKE_ERR_FATAL);
    CU_ASSERT(is_there("lock"));
    cake_lock_release(lock);
    pid_t child = fork();
    if (!child)
        _exit(cake_lock_take(path_of("lock"), &lock));
    int status;
    waitpid(child, &status, 0);
    CU_ASSERT(!status && is_there("lock"));
    CU_ASSERT_EQUAL(take_said("which is not running any more: taken over"), CAKE_OK);
    snprintf(text, sizeof text, "{\"host\": \"%s\", \"boot\": \"of old\", \"pid\": %d, \"began\": 1}", host,
             (int)getpid());
    put_lock(text); /* the host was started since, and the number is another process's */
    CU_ASSERT_EQUAL(take_said("taken over"), CAKE_OK);

    char boot[64] = "";
    f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f && fscanf(f, "%63s", boot) == 1) {
        snprintf(text, sizeof text, "{\"host\": \"%s\", \"boot\": \"%s\", \"pid\": %d, \"began\": 1}", host,
                 boot, (int)getpid());
        put_lock(text); /* a process has the number that began later */
        CU_ASSERT_EQUAL(take_said("taken over"), CAKE_OK);
    }
    if (f)
        fclose(f);

    static const char elsewhere[] = "{\"host\": \"not.here\", \"pid\": 5, \"job\": \"%s\", \"restarts\": 0}";
    const char *path = getenv("PATH");
    put_squeue();
    snprintf(text, sizeof text, "%s:%s", suite_tmp(), path);
    char *before = cake_copy(path, strlen(path));
    setenv("PATH", text, 1);
    setenv("SQUEUE_STATES", "PD", 1); /* a user's own defaults would hide jobs */
    setenv("SQUEUE_PARTITION", "other", 1);
    setenv("SLURM_TIME_FORMAT", "relative", 1);
    static const struct {
        const char *job;
        bool over;
    } jobs[] = {{"7", false},
                {"8", true},
                {"9", true},
                {"10", true},
                {"", false},
                {"7; true", false},
                /* an array's last task: over while others run, and the other way round */
                {"11", true},
                {"13", false}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        snprintf(text, sizeof text, elsewhere, jobs[i].job);
        put_lock(text);
        CU_ASSERT_EQUAL(take_said(jobs[i].over ? "taken over" : "process 5 on not.here"),
                        jobs[i].over ? CAKE_OK : CAKE_ERR_FATAL);
    }
    setenv("SLURM_JOB_ID", "7", 1); /* requeued, it has the same number */
    snprintf(text, sizeof text, elsewhere, "7");
    put_lock(text);
    CU_ASSERT_EQUAL(take_said("Slurm job 7; wait for it"), CAKE_ERR_FATAL);
    setenv("SLURM_RESTART_COUNT", "1", 1);
    CU_ASSERT_EQUAL(take_said("taken over"), CAKE_OK);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_RESTART_COUNT");
    setenv("PATH", before, 1);
    free(before);
    put_lock("[");
    CU_ASSERT_EQUAL(take_said("does not name the owner of the lock"), CAKE_ERR_FATAL);
    unlink(path_of("lock"));
}

int main(void)
{
    static const suite_test tests[] = {
        {"what is written is read", test_whole},
        {"cut at every byte", test_torn},
        {"answers that were begun", test_begun},
        {"a flipped bit costs its group only", test_flipped},
        {"other files, wrong numbers", test_others},
        {"what differs is named", test_differs},
        {"stopped, resumed, finished, extended, retried", test_take_up},
        {"results of a wrong input go", test_undo},
        {"locks of the living and the dead", test_lock},
    };
    return SUITE_MAIN("journal", tests);
}
