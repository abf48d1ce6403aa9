/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts come from a file and results go to one, while the test takes the engine's place: in the order of
 * the input whatever the order of the answers, with faults, stopped and resumed. Uses the demo model's
 * tokenizer.
 */
#include "run/batch_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"
#include "run/from_options.h"
#include "tests/suite.h"

enum { MAX_REQUEST = 16 };

static cake_rank rank_0; /* with a model, and without anything else */
static char model_dir[512];

/* One run of a job. */
typedef struct job {
    cake_options options;
    cake_batch_io io;
    cake_sequence_io sequences;
    cake_sequence *s[MAX_REQUEST]; /* [n] those that were read and not handed back */
    int n;
    cake_err err; /* of opening it */
    cake_buf log; /* what it said */
    cake_buf *log_before;
} job;

static const char *path_of(const char *name)
{
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", suite_tmp(), name);
    return path[turn];
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static bool exists(const char *name)
{
    return !access(path_of(name), F_OK);
}

/* `cake-mpi run -i INPUT -o OUTPUT` with two more words, which may be NULL. */
static void open_job(job *j, const char *input, const char *output, const char *option, const char *value)
{
    static char in[256], out[256];
    char *argv[] = {"cake-mpi", "run", "-m",           model_dir,     "-i", in,
                    "-o",       out,   (char *)option, (char *)value, NULL};
    snprintf(in, sizeof in, "%s", path_of(input));
    snprintf(out, sizeof out, "%s", path_of(output));
    *j = (job){0};
    j->log_before = cake_log_capture(&j->log);
    CU_ASSERT_EQUAL_FATAL(cake_options_parse(8 + !!option + !!value, argv, &j->options), CAKE_OK);
    const cake_prepare_options from = cake_prepare_options_from(&j->options);
    j->err = cake_batch_io_open(&j->options, &rank_0, cake_prepare_language(&from), &j->io);
    j->sequences = cake_batch_io_sequences(&j->io);
}

/* Reads as many requests as there are; returns what ended it. */
static cake_err read_all(job *j)
{
    cake_err err = CAKE_OK;
    while (!err && j->n < MAX_REQUEST)
        err = j->sequences.next(j->sequences.self, &j->s[j->n++]);
    j->n--;
    return err;
}

static bool said(const job *j, const char *text)
{
    return j->log.len && strstr(j->log.data, text);
}

static void close_job(job *j)
{
    for (int i = 0; i < j->n; i++) /* they borrow the tokenizer */
        cake_sequence_close(j->s[i]);
    cake_batch_io_close(&j->io);
    cake_options_free(&j->options);
    cake_log_capture(j->log_before);
    cake_buf_free(&j->log);
}

/* The engine's part: the tokens of text that the sequence does not have yet, at most so many. */
static void push(job *j, cake_sequence *s, const char *text, int most)
{
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(
        cake_tokenizer_encode(j->io.preparation.tokenizer, text, strlen(text), false, &ids, &fault), CAKE_OK);
    for (int i = cake_sequence_generated(s); i < (int)ids.len && i < most && !s->over; i++) {
        cake_sequence_push(s, ids.id[i], NULL, j->io.eos, j->io.n_eos);
        j->sequences.token(j->sequences.self, s, 0.25);
    }
    cake_ids_free(&ids);
}

static cake_err hand_back(job *j, int i)
{
    cake_sequence *s = j->s[i];
    j->s[i] = NULL;
    return j->sequences.done(j->sequences.self, s);
}

/* Answers request i with this text. */
static void answer(job *j, int i, const char *text)
{
    char ended[64];
    snprintf(ended, sizeof ended, "%s<|im_end|>", text);
    push(j, j->s[i], ended, 64);
    CU_ASSERT(j->s[i]->over && j->s[i]->finish == CAKE_FINISH_STOP);
    CU_ASSERT_EQUAL(hand_back(j, i), CAKE_OK);
}

static cake_err finish(job *j)
{
    cake_err err = cake_batch_io_finish(&j->io);
    close_job(j);
    return err;
}

/* The lines of a result file. */
typedef struct results {
    cake_json *line[MAX_REQUEST];
    int n;
} results;

static results read_results(const char *name)
{
    results r = {0};
    cake_buf text = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_file_read("test", path_of(name), false, 1 << 20, &text), CAKE_OK);
    for (char *at = text.data, *end; text.len && *at; at = end + 1) {
        end = strchr(at, '\n');
        CU_ASSERT_FATAL(end && r.n < MAX_REQUEST);
        CU_ASSERT_EQUAL_FATAL(cake_json_parse(at, (size_t)(end - at), &r.line[r.n++], &fault), CAKE_OK);
    }
    cake_buf_free(&text);
    return r;
}

static void free_results(results *r)
{
    for (int i = 0; i < r->n; i++)
        cake_json_free(r->line[i]);
}

static bool has_text(const cake_json *object, const char *key, const char *text)
{
    const char *found = cake_json_text(cake_json_get(object, key), NULL);
    return found && !strcmp(found, text);
}

/* Whether the file has the answers [n] to requests 0, 1, ... in this order; NULL: one that failed. */
static bool has_answers(const char *name, const char *const *answers, int n)
{
    results r = read_results(name);
    bool right = r.n == n;
    for (int i = 0; right && i < n; i++) {
        bool failed = cake_json_get(r.line[i], "error") != NULL;
        right = cake_json_int(cake_json_get(r.line[i], "index"), -1) == i &&
                (answers[i] ? !failed && has_text(r.line[i], "text", answers[i]) : failed);
    }
    free_results(&r);
    return right;
}

static const char four[] = "{\"id\": \"a\", \"prompt\": \"1 + 1 =\"}\n"
                           "{\"id\": \"b\", \"prompt\": \"2 + 2 =\"}\n"
                           "{\"id\": \"c\", \"prompt\": \"3 + 3 =\"}\n"
                           "{\"id\": \"d\", \"prompt\": \"4 + 4 =\"}\n";
static const char *const four_answers[] = {" 2", " 4", " 6", " 8"};

static void test_order(void)
{
    job j;
    put("order.jsonl", four);
    open_job(&j, "order.jsonl", "order.out.jsonl", NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(j.err, CAKE_OK);
    CU_ASSERT(read_all(&j) == CAKE_END && j.n == 4 && j.io.counts.total == 4);
    CU_ASSERT(exists("order.out.jsonl.partial") && !exists("order.out.jsonl"));
    for (int i = 4; i-- > 0;)
        answer(&j, i, four_answers[i]);
    CU_ASSERT(j.io.counts.done == 4 && j.io.counts.generated == 4 * 3 && j.io.counts.failed == 0);
    CU_ASSERT_EQUAL(cake_batch_io_failed(&j.io), 0);
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    CU_ASSERT(!exists("order.out.jsonl.partial") && has_answers("order.out.jsonl", four_answers, 4));
    results r = read_results("order.out.jsonl");
    CU_ASSERT(has_text(r.line[0], "id", "a") && has_text(r.line[3], "id", "d"));
    const cake_json *usage = cake_json_get(r.line[0], "usage");
    CU_ASSERT_EQUAL(cake_json_int(cake_json_get(usage, "completion_tokens"), -1), 3);
    free_results(&r);
}

static void test_empty(void)
{
    job j;
    put("empty.jsonl", "\n\n");
    open_job(&j, "empty.jsonl", "empty.out.jsonl", NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(j.err, CAKE_OK);
    CU_ASSERT(read_all(&j) == CAKE_END && j.n == 0);
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    CU_ASSERT(has_answers("empty.out.jsonl", NULL, 0));
}

/* Bad requests come out in their turn, have their place among the results, and are told of at the end. */
static void test_bad_lines(void)
{
    static const char *const answers[] = {NULL, " ok", NULL, NULL, NULL};
    job j;
    put("bad.jsonl", "{\"prompt\": \"1\n"
                     "{\"prompt\": \"1\"}\n"
                     "{\"prompt\": [1, 99999]}\n"
                     "{\"prompt\": \"1\", \"temperature\": 77}\n"
                     "{\"id\": \"e\", \"prompt\": 5}\n");
    open_job(&j, "bad.jsonl", "bad.out.jsonl", NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(j.err, CAKE_OK);
    CU_ASSERT(read_all(&j) == CAKE_END && j.n == 5);
    for (int i = 0; i < 5; i++) {
        CU_ASSERT(j.s[i]->request.order == i && (j.s[i]->request.err == CAKE_OK) == (i == 1));
        if (i == 1)
            answer(&j, i, " ok");
        else
            CU_ASSERT_EQUAL(hand_back(&j, i), CAKE_OK);
    }
    CU_ASSERT(j.io.counts.done == 5 && j.io.counts.failed == 4 && cake_batch_io_failed(&j.io) == 4);
    cake_batch_io_say(&j.io);
    CU_ASSERT(said(&j, "4 requests failed") && said(&j, "line 1") && said(&j, "line 4"));
    CU_ASSERT_FALSE(said(&j, "line 5")); /* only the first three */
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    CU_ASSERT(has_answers("bad.out.jsonl", answers, 5));
}

/* A custom_id that was there before fails its line, an id does not. */
static void test_duplicates(void)
{
    job j;
    cake_buf text = {0};
    for (int i = 0; i < 3; i++)
        cake_buf_addf(&text,
                      "{\"custom_id\": \"%s\", \"method\": \"POST\", \"url\": \"/v1/completions\", "
                      "\"body\": {\"prompt\": \"1\", \"max_tokens\": 9}}\n",
                      i == 1 ? "other" : "same");
    put("twice.jsonl", text.data);
    cake_buf_free(&text);
    open_job(&j, "twice.jsonl", "twice.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 3);
    CU_ASSERT(!j.s[0]->request.err && !j.s[1]->request.err && j.s[2]->request.err == CAKE_ERR_REQUEST);
    CU_ASSERT_STRING_EQUAL(j.s[2]->request.fault.param, "custom_id");
    answer(&j, 0, " x");
    answer(&j, 1, " y");
    hand_back(&j, 2);
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    results r = read_results("twice.out.jsonl");
    CU_ASSERT(r.n == 3 && has_text(r.line[1], "custom_id", "other"));
    CU_ASSERT(cake_json_kind(cake_json_get(r.line[0], "response")) == CAKE_JSON_OBJECT);
    free_results(&r);

    put("ids.jsonl", "{\"id\": 1, \"prompt\": \"1\"}\n{\"id\": 1, \"prompt\": \"2\"}\n");
    open_job(&j, "ids.jsonl", "ids.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 2);
    CU_ASSERT(!j.s[0]->request.err && !j.s[1]->request.err);
    CU_ASSERT_NOT_EQUAL(j.s[0]->key.seed, j.s[1]->key.seed); /* though their ids are the same */
    close_job(&j);
}

/* Stops in the middle: the next run gets only what was not finished, with the tokens that it had. */
static void test_stopped(void)
{
    job j;
    put("stop.jsonl", four);
    open_job(&j, "stop.jsonl", "stop.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END);
    for (int i = 0; i < 4; i++)
        if (i != 1)
            push(&j, j.s[i], four_answers[i], 1);
    answer(&j, 0, four_answers[0]);
    answer(&j, 3, four_answers[3]);
    cake_batch_io_stop(&j.io);
    CU_ASSERT(said(&j, "has 2 results; the same command resumes from there"));
    close_job(&j);
    CU_ASSERT(exists("stop.out.jsonl.partial") && !exists("stop.out.jsonl"));

    for (int run = 0; run < 2; run++) { /* of the third request, one token more each time */
        open_job(&j, "stop.jsonl", "stop.out.jsonl", NULL, NULL);
        CU_ASSERT_EQUAL_FATAL(j.err, CAKE_OK);
        CU_ASSERT(said(&j, "resumes with 2 finished requests (0 failed) and 1 unfinished ones"));
        CU_ASSERT_FATAL(read_all(&j) == CAKE_END && j.n == 2 && j.io.counts.resumed == 2);
        CU_ASSERT(j.s[0]->request.order == 1 && cake_sequence_generated(j.s[0]) == 0);
        CU_ASSERT(j.s[1]->request.order == 2 && cake_sequence_generated(j.s[1]) == 1 + run);
        if (run)
            break;
        cake_batch_io_keep(&j.io);
        push(&j, j.s[1], four_answers[2], 2);
        cake_batch_io_stop(&j.io);
        close_job(&j);
    }
    answer(&j, 1, four_answers[2]);
    answer(&j, 0, four_answers[1]);
    CU_ASSERT(j.io.counts.done == 2 && j.io.counts.generated == 3 + 1);
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    CU_ASSERT(has_answers("stop.out.jsonl", four_answers, 4));
}

/* All is done: nothing is to run, unless lines were added or failed ones are wanted again. */
static void test_finished(void)
{
    static const char *const answers[] = {" 2", NULL}, *const longer[] = {" 2", NULL, " 6"},
                             *const repaired[] = {" 2", " 4", " 6"};
    job j;
    put("done.jsonl", "{\"prompt\": \"1\"}\n{\"prompt\": \"2\"}\n");
    open_job(&j, "done.jsonl", "done.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 2);
    answer(&j, 0, " 2");
    j.s[1]->request.err = cake_fault_set(&j.s[1]->request.fault, NULL, "no memory");
    hand_back(&j, 1);
    CU_ASSERT(finish(&j) == CAKE_OK && has_answers("done.out.jsonl", answers, 2));

    open_job(&j, "done.jsonl", "done.out.jsonl", NULL, NULL);
    CU_ASSERT_EQUAL(j.err, CAKE_END);
    CU_ASSERT(said(&j, "all 2 requests are done already (1 failed); --retry-errors does these again"));
    close_job(&j);
    CU_ASSERT(has_answers("done.out.jsonl", answers, 2));

    put("done.jsonl", "{\"prompt\": \"1\"}\n{\"prompt\": \"2\"}\n{\"prompt\": \"3\"}\n");
    open_job(&j, "done.jsonl", "done.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 1);
    CU_ASSERT(j.s[0]->request.order == 2 && j.io.counts.resumed == 2 && j.io.counts.resumed_failed == 1);
    answer(&j, 0, " 6");
    CU_ASSERT_EQUAL(cake_batch_io_failed(&j.io), 1);
    CU_ASSERT(finish(&j) == CAKE_OK && has_answers("done.out.jsonl", longer, 3));

    open_job(&j, "done.jsonl", "done.out.jsonl", "--retry-errors", NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 1);
    CU_ASSERT(j.s[0]->request.order == 1 && !j.s[0]->request.err);
    answer(&j, 0, " 4");
    CU_ASSERT(finish(&j) == CAKE_OK && has_answers("done.out.jsonl", repaired, 3));
}

/* Lines that were read before have changed, or the job is another one: an error before anything is run. */
static void test_not_the_same(void)
{
    static const char changed[] = "{\"id\": \"a\", \"prompt\": \"1 + 5 =\"}\n";
    job j;
    put("same.jsonl", four);
    open_job(&j, "same.jsonl", "same.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END);
    answer(&j, 0, four_answers[0]);
    cake_batch_io_stop(&j.io);
    close_job(&j);

    open_job(&j, "same.jsonl", "same.out.jsonl", "--temperature", "0.5");
    CU_ASSERT(j.err == CAKE_ERR_FATAL && said(&j, "temperature"));
    close_job(&j);

    cake_buf text = {0};
    cake_buf_adds(&text, changed);
    cake_buf_adds(&text, four + strlen(changed));
    put("same.jsonl", text.data);
    cake_buf_free(&text);
    open_job(&j, "same.jsonl", "same.out.jsonl", NULL, NULL);
    CU_ASSERT(j.err == CAKE_ERR_FATAL && said(&j, "same.jsonl"));
    close_job(&j);
    CU_ASSERT(exists("same.out.jsonl.partial"));
}

/* Two answers to one prompt are one result; after a stop the one that was over is not made again. */
static void test_choices(void)
{
    job j;
    put("n.jsonl", "{\"prompt\": \"1\", \"n\": 2}\n");
    open_job(&j, "n.jsonl", "n.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 1);
    push(&j, cake_sequence_branch(j.s[0]), " 7", 1);
    push(&j, cake_sequence_branch(j.s[0]), " 8<|im_end|>", 9);
    CU_ASSERT(j.s[0]->choice[1]->over && j.io.n_begun == 2);
    cake_batch_io_stop(&j.io);
    close_job(&j);

    open_job(&j, "n.jsonl", "n.out.jsonl", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 1);
    CU_ASSERT_FATAL(j.s[0]->n_choice == 2 && j.s[0]->n_resumed == 2 && j.io.n_begun == 2);
    CU_ASSERT(j.s[0]->choice[1]->over && cake_sequence_generated(j.s[0]->choice[0]) == 1);
    push(&j, j.s[0]->choice[0], " 7<|im_end|>", 9);
    CU_ASSERT(hand_back(&j, 0) == CAKE_OK && j.io.n_begun == 0);
    CU_ASSERT_EQUAL(finish(&j), CAKE_OK);
    results r = read_results("n.out.jsonl");
    const cake_json *choices = cake_json_get(r.line[0], "choices");
    CU_ASSERT(r.n == 1 && cake_json_size(choices) == 2);
    CU_ASSERT(has_text(cake_json_at(choices, 0), "text", " 7") &&
              has_text(cake_json_at(choices, 1), "text", " 8"));
    free_results(&r);

    open_job(&j, "n.jsonl", "n.out.txt", NULL, NULL);
    CU_ASSERT_FATAL(j.err == CAKE_OK && read_all(&j) == CAKE_END && j.n == 1);
    CU_ASSERT(j.s[0]->request.err == CAKE_ERR_REQUEST); /* a line of text has room for one */
    close_job(&j);
}

/* One answer to one prompt without a file is written as it comes: what may still be cut off waits. */
static void test_stream(void)
{
    char *argv[] = {"cake-mpi", "run", "-m", model_dir, "--raw", "-p", "1 + 1 =", "--stop", " END", NULL};
    job j = {0};
    cake_buf text = {0};
    CU_ASSERT_EQUAL_FATAL(cake_options_parse(9, argv, &j.options), CAKE_OK);
    const cake_prepare_options from = cake_prepare_options_from(&j.options);
    CU_ASSERT_EQUAL_FATAL(cake_batch_io_open(&j.options, &rank_0, cake_prepare_language(&from), &j.io),
                          CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_batch_io_wait(&j.io), CAKE_OK);
    j.sequences = cake_batch_io_sequences(&j.io);
    CU_ASSERT(read_all(&j) == CAKE_END && j.n == 1);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    CU_ASSERT_PTR_NOT_NULL_FATAL(freopen(path_of("stream.txt"), "w", stdout));
    push(&j, j.s[0], "12345678 E", 64);
    cake_file_read("test", path_of("stream.txt"), false, 100, &text);
    push(&j, j.s[0], "12345678 END", 64);
    cake_err err = hand_back(&j, 0);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    CU_ASSERT(err == CAKE_OK && text.len == strlen("1234567") && !memcmp(text.data, "1234567", text.len));
    cake_buf_free(&text);
    cake_file_read("test", path_of("stream.txt"), false, 100, &text);
    CU_ASSERT(text.len == strlen("12345678\n") && !memcmp(text.data, "12345678\n", text.len));
    cake_buf_free(&text);
    CU_ASSERT_EQUAL(cake_batch_io_finish(&j.io), CAKE_OK);
    cake_batch_io_close(&j.io);
    cake_options_free(&j.options);
}

/* After an error the engine frees unfinished sequences: nothing looks at them again. */
static void test_error(void)
{
    job j;
    put("four.jsonl", four);
    CU_ASSERT_EQUAL_FATAL(symlink("/dev/full", path_of("full.jsonl")), 0);
    open_job(&j, "four.jsonl", "full.jsonl", NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(j.err, CAKE_OK);
    CU_ASSERT(read_all(&j) == CAKE_END && j.n == 4);
    push(&j, j.s[0], " 2<|im_end|>", 64);
    push(&j, j.s[1], " 4 and more", 64);
    cake_err err = hand_back(&j, 0);
    err = err ? err : cake_batch_io_tick(&j.io); /* what was held back is written here, if not before */
    CU_ASSERT_EQUAL(err, CAKE_ERR_FATAL);
    cake_sequence_close(j.s[1]);
    j.s[1] = NULL;
    j.io.next_eta = 0;
    j.io.counts.left = -7;
    cake_batch_io_tick(&j.io);
    CU_ASSERT(j.io.counts.left < -6);
    close_job(&j);
}

int main(void)
{
    const suite_test tests[] = {
        {"results in the order of the input", test_order},
        {"no requests", test_empty},
        {"bad lines", test_bad_lines},
        {"ids that are there twice", test_duplicates},
        {"stopped and resumed", test_stopped},
        {"finished before", test_finished},
        {"another input, another job", test_not_the_same},
        {"several answers to one prompt", test_choices},
        {"an answer as it comes", test_stream},
        {"a full disk", test_error},
    };
    snprintf(model_dir, sizeof model_dir, "%s", suite_path("jobs/demo/model"));
    if (cake_model_open(model_dir, &(cake_model_options){0}, &rank_0.model))
        return 1;
    rank_0.input.model = rank_0.model;
    rank_0.input.context = 1024;
    cake_buf_adds(&rank_0.isa, "ref");
    int failed = SUITE_MAIN("batch io", tests);
    cake_model_close(rank_0.model);
    cake_buf_free(&rank_0.isa);
    return failed;
}
