/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the name of a result file. Out: its status and progress. Invariant: only reads. Looks at .partial
 * before RESULTS, so a file that is renamed in between is still found.
 */
#include "record/inspect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "formats/json.h"
#include "record/job.h"
#include "types/shard.h"

static void take_header(const cake_journal_header *header, cake_result_status *f)
{
    cake_json *root = NULL;
    cake_fault fault;
    f->created = header->created;
    if (cake_json_parse(header->identity, strlen(header->identity), &root, &fault))
        return;
    size_t len;
    const char *shard = cake_json_text(cake_json_get(root, "shard"), &len);
    cake_shard is;
    if (shard && cake_shard_read(shard, &is)) /* the text goes to a terminal */
        f->shard = cake_copy(shard, len);
    cake_json_free(root);
}

/* The rate is measured between the first and last group of the latest run; share and left are the last
 * group's. */
static void take_rate(const cake_journal *j, cake_result_status *f)
{
    double seconds = j->last.seconds - j->first.seconds;
    f->share = j->last.run ? j->last.share : -1;
    if (!j->last.run || seconds <= 0)
        return;
    f->rate = (double)(j->lines.n - j->first_n) / seconds;
    f->left = j->last.left;
}

static cake_err look_at_partial(const char *path, cake_result_status *f)
{
    struct stat info;
    cake_journal j = {0};
    int fd;
    cake_err err = cake_io_open(path, &fd, &info);
    if (err)
        return err;
    err = cake_journal_read(fd, path, &j);
    close(fd);
    if (err == CAKE_END) /* not even the first line, which is about to be written */
        f->wrote = info.st_mtime;
    if (err)
        return err == CAKE_END ? CAKE_OK : err;
    take_header(&j.header, f);
    take_rate(&j, f);
    f->done = j.lines.n;
    f->failed = j.failed;
    for (size_t i = 0; i < j.inflights.n; i++)
        f->begun += (int64_t)j.inflights.entry[i].ids.len;
    f->torn = j.torn;
    f->lost = j.lost;
    f->wrote = info.st_mtime;
    cake_journal_free(&j);
    return CAKE_OK;
}

static cake_err look_at_results(const char *path, const char *job_path, cake_result_status *f)
{
    struct stat info;
    cake_job job = {0};
    if (stat(path, &info))
        return CAKE_END;
    if (!cake_job_read(job_path, &job))
        return cake_fail("record", "%s: %s, which identifies its job, %s", path, job_path,
                         cake_job_fault(job_path));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    take_header(&job.header, f);
    f->done = job.requests;
    f->failed = job.failed;
    f->wrote = info.st_mtime;
    f->share = 1;
    f->changed = fd < 0 || !cake_job_holds(&job, fd);
    if (fd >= 0)
        close(fd);
    cake_job_free(&job);
    return CAKE_OK;
}

char *cake_inspect_results(const char *path)
{
    static const char ending[] = ".partial";
    size_t len = strlen(path), end = sizeof ending - 1;
    return cake_copy(path, len > end && !strcmp(path + len - end, ending) ? len - end : len);
}

cake_err cake_inspect(const char *path, cake_result_status *out)
{
    char *results = cake_inspect_results(path), *lock = cake_io_name(results, ".lock");
    char *partial = cake_io_name(results, ".partial"), *job = cake_io_name(results, ".job");
    cake_result_status f = {.share = -1, .rate = -1, .left = -1};
    f.held = cake_lock_look(lock, &f.holder) && !f.holder.over;
    cake_err err = look_at_partial(partial, &f);
    f.state = f.held ? CAKE_RUNNING : CAKE_PAUSED;
    if (err == CAKE_END) { /* or it was just renamed to RESULTS */
        f.state = CAKE_FINISHED;
        err = look_at_results(results, job, &f);
    }
    if (err == CAKE_END && f.held) {
        f.state = CAKE_STARTING;
        err = CAKE_OK;
    } else if (err == CAKE_END) {
        err = cake_fail("record", "%s: does not exist, nor does its .partial or .lock: no run has begun",
                        results);
    }
    if (err)
        cake_inspect_free(&f);
    else
        *out = f;
    free(results);
    free(lock);
    free(partial);
    free(job);
    return err;
}

void cake_inspect_free(cake_result_status *f)
{
    free(f->shard);
    *f = (cake_result_status){0};
}
