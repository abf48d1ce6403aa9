/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the header, counts and marks of a finished job, or a .job file. Out: that file, or a cake_job.
 * Invariant: every field that is read is checked; a file with an invalid field counts as absent.
 */
#include "record/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/io.h"
#include "formats/json.h"

enum { MARKS = 256 };

#define LARGEST ((size_t)4 << 20)
#define BLOCK   ((size_t)1 << 20)

int cake_job_write(const char *path, const cake_job *job)
{
    cake_buf text = {0}, tmp = {0};
    cake_buf_adds(&text, "{\"cake_job\": 1, ");
    cake_journal_header_add(&job->header, &text);
    cake_buf_addf(&text, ",\n \"requests\": %" PRId64 ", \"failed\": %" PRId64, job->requests, job->failed);
    if (!job->answered.unknown)
        cake_buf_addf(&text, ", \"answered\": \"%016" PRIx64 "\"", job->answered.sum);
    cake_buf_addf(&text, ", \"bytes\": %" PRId64 ", \"crc\": %" PRIu32 ",\n \"read\": ", job->results.bytes,
                  job->results.sum);
    cake_journal_add_checkpoints(job->marks, job->n_mark, MARKS, &text);
    cake_buf_adds(&text, "}\n");
    cake_buf_addf(&tmp, "%s.tmp", path);
    int fd = open(tmp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666), why = errno;
    if (fd >= 0) {
        bool done = cake_io_write(fd, text.data, text.len) && (!fsync(fd) || errno == EINVAL);
        why = done ? 0 : errno;
        if (close(fd) && !why)
            why = errno;
        if (!why && rename(tmp.data, path))
            why = errno;
        if (why)
            unlink(tmp.data);
    }
    cake_buf_free(&text);
    cake_buf_free(&tmp);
    return why;
}

static bool parse(const cake_json *root, cake_job *job)
{
    int64_t sum = cake_json_int(cake_json_get(root, "crc"), -1);
    job->requests = cake_json_int(cake_json_get(root, "requests"), -1);
    job->failed = cake_json_int(cake_json_get(root, "failed"), -1);
    job->results = (cake_file_digest){cake_json_int(cake_json_get(root, "bytes"), -1), (uint32_t)sum};
    job->answered.unknown = !cake_journal_hex(cake_json_get(root, "answered"), 16, &job->answered.sum);
    return cake_json_int(cake_json_get(root, "cake_job"), -1) == 1 && job->requests >= 0 &&
           job->requests <= CAKE_JOURNAL_MAX && job->failed >= 0 && job->failed <= job->requests &&
           job->results.bytes >= 0 && sum >= 0 && sum <= UINT32_MAX &&
           cake_journal_parse_checkpoints(cake_json_get(root, "read"), &job->marks, &job->n_mark) &&
           job->requests <=
               (job->n_mark ? job->marks[job->n_mark - 1].requests : 0) && /* fewer for a shard */
           cake_journal_header_parse(root, &job->header);
}

const char *cake_job_fault(const char *path)
{
    return access(path, F_OK) ? "is missing" : "cannot be read, or is damaged";
}

bool cake_job_read(const char *path, cake_job *out)
{
    cake_json *root = NULL;
    cake_job job = {0};
    struct stat info;
    cake_buf text = {0};
    cake_fault fault;
    bool right = !stat(path, &info) && S_ISREG(info.st_mode) && info.st_size <= (off_t)LARGEST &&
                 !cake_file_read("record", path, true, LARGEST, &text) && text.len &&
                 !cake_json_parse(text.data, text.len, &root, &fault) && parse(root, &job);
    cake_json_free(root);
    cake_buf_free(&text);
    if (right)
        *out = job;
    else
        cake_job_free(&job);
    return right;
}

void cake_job_free(cake_job *job)
{
    cake_journal_header_free(&job->header);
    free(job->marks);
    *job = (cake_job){0};
}

bool cake_job_holds(const cake_job *job, int fd)
{
    struct stat info;
    uint32_t sum = 0;
    bool right = !fstat(fd, &info) && info.st_size == job->results.bytes;
    char *block = cake_alloc(BLOCK, 1);
    for (int64_t at = 0; right && at < job->results.bytes;) {
        int64_t left = job->results.bytes - at;
        size_t n = left < (int64_t)BLOCK ? (size_t)left : BLOCK;
        right = cake_io_read_at(fd, block, n, at);
        sum = right ? cake_crc_on(sum, block, n) : sum;
        at += (int64_t)n;
    }
    free(block);
    return right && sum == job->results.sum;
}
