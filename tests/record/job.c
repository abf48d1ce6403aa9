/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.job as foreign bytes: what is not whole, or says what cannot be, is not read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "record/job.h"
#include "records.h"

static void write_file(const char *text, size_t len)
{
    FILE *f = fopen(path_of("job"), "wb");
    CU_ASSERT_FATAL(f && fwrite(text, 1, len, f) == len);
    fclose(f);
}

static bool reads(const char *text, size_t len, cake_job *job)
{
    write_file(text, len);
    *job = (cake_job){0};
    return cake_job_read(path_of("job"), job);
}

/* Writes the text of cake_job_write into text. */
static void compose(cake_buf *text)
{
    cake_input_checkpoint marks[] = {{100, 103, 7}, {160, 164, 0xFFFFFFFF}};
    cake_job job = {
        .header = {.identity = "{\"isa\": \"ref\"}", .model = "demo", .created = 1700000000, .job = 0xABC},
        .requests = 150,
        .failed = 12,
        .marks = marks,
        .n_mark = 2,
        .results = {123456, 0xFFFFFFFF}};
    CU_ASSERT_EQUAL_FATAL(cake_job_write(path_of("job"), &job), 0);
    CU_ASSERT_EQUAL_FATAL(cake_file_read("record", path_of("job"), true, 1 << 20, text), CAKE_OK);
}

static void test_whole(void)
{
    cake_buf text = {0};
    cake_job job;
    compose(&text);
    CU_ASSERT_FATAL(reads(text.data, text.len, &job));
    CU_ASSERT(job.requests == 150 && job.failed == 12 && job.n_mark == 2);
    CU_ASSERT(job.results.bytes == 123456 && job.results.sum == 0xFFFFFFFF);
    CU_ASSERT(job.header.job == 0xABC && job.header.created == 1700000000 &&
              !strcmp(job.header.model, "demo"));
    CU_ASSERT(job.marks[1].requests == 160 && job.marks[1].sum == 0xFFFFFFFF);
    cake_job_free(&job);
    memcpy(strstr(text.data, "1700000000"), "-600000000", 10); /* a clock that was never set */
    CU_ASSERT_FATAL(reads(text.data, text.len, &job));
    CU_ASSERT_EQUAL(job.header.created, -600000000);
    cake_job_free(&job);
    cake_buf_free(&text);
}

static void test_torn(void)
{
    cake_buf text = {0};
    cake_job job;
    compose(&text);
    for (size_t n = 0; n + 1 < text.len; n++) /* without its last newline it is whole */
        CU_ASSERT(!reads(text.data, n, &job));
    cake_buf_free(&text);
}

/* It has no checksum of its own: what a flipped bit leaves right is still in bounds. */
static void test_flipped(void)
{
    cake_buf text = {0};
    cake_job job;
    compose(&text);
    for (size_t i = 0; i < text.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] = (char)(text.data[i] ^ 1 << bit);
            if (reads(text.data, text.len, &job)) {
                CU_ASSERT(job.failed >= 0 && job.failed <= job.requests && job.results.bytes >= 0);
                CU_ASSERT(job.n_mark == 2 && job.requests <= job.marks[1].requests);
                CU_ASSERT(job.marks[0].requests > 0 && job.marks[0].requests < job.marks[1].requests);
                cake_job_free(&job);
            }
            text.data[i] = (char)(text.data[i] ^ 1 << bit);
        }
    cake_buf_free(&text);
}

static void test_wrong(void)
{
    static const char *const cases[][2] = {
        {"\"cake_job\": 1", "\"cake_job\": 2"},
        {"\"requests\": 150", "\"requests\": -1"},
        {"\"requests\": 150", "\"requests\": 1e300"},
        {"\"requests\": 150", "\"requests\": 9223372036854775807"},
        {"\"requests\": 150", "\"requests\": 161"}, /* more than were read */
        {"\"requests\": 150", "\"requests\": \"150\""},
        {"\"failed\": 12", "\"failed\": 151"},
        {"\"failed\": 12", "\"failed\": -9223372036854775808"},
        {"\"failed\": 12", "\"failed\": null"},
        {"\"bytes\": 123456", "\"bytes\": -123456"},
        {"\"bytes\": 123456", "\"bytes\": 18446744073709551616"},
        {"\"crc\": 4294967295", "\"crc\": 4294967296"},
        {"\"crc\": 4294967295", "\"crc\": -1"},
        {"\"read\": [", "\"read\": 7, \"_\": ["},
        {"\"read\": [", "\"read\": [[160, 164, 1], "}, /* they do not ascend */
        {"\"read\": [", "\"read\": [[1], "},
        {"\"read\": [", "\"read\": [[-5, 3, 1], "},
        {"\"created\": 1700000000", "\"created\": \"\""},
        {"\"job\": \"", "\"job\": \"xyz"},
        {"}\n", "} {}\n"},
    };
    cake_buf text = {0};
    cake_job job;
    compose(&text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf other = {0};
        char *at = strstr(text.data, cases[i][0]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        cake_buf_add(&other, text.data, (size_t)(at - text.data));
        cake_buf_adds(&other, cases[i][1]);
        cake_buf_adds(&other, at + strlen(cases[i][0]));
        bool read = reads(other.data, other.len, &job);
        CU_ASSERT(!read);
        if (read) {
            printf("\n    read: %s", other.data);
            cake_job_free(&job);
        }
        cake_buf_free(&other);
    }
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {
        {"what is written is read", test_whole},
        {"cut at every byte", test_torn},
        {"each bit flipped", test_flipped},
        {"wrong numbers, another version", test_wrong},
    };
    return SUITE_MAIN("job", tests);
}
