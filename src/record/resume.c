/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the names of RESULTS, .partial and .job, and the current job. Out: a partial file to append to, or the
 * finding that all is done. Invariant: nothing changes before the lock is held, and nothing of another job
 * changes without --force.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "record/format.h"
#include "record/journal_writer_internal.h"

/* An existing RESULTS cannot be resumed. */
static cake_err refuse(const char *results, const char *why)
{
    return cake_fail("record", "%s: %s; --force overwrites it, or name another file with -o", results, why);
}

cake_err cake_journal_writer_refuse_other(const cake_journal_writer *p)
{
    if (p->copies)
        return refuse(p->results, "another process created this file in the meantime");
    return cake_fail("record",
                     "%s: another process created this file since the run began; %lld results are in %s: "
                     "move that file away, or give --force, and start the same command again%s",
                     p->results, (long long)p->journal.lines.n, p->path,
                     p->never ? ", without --resume never, which would drop them" : "");
}

static bool exists(const char *path)
{
    struct stat info;
    return !lstat(path, &info);
}

/* The lock ends with the descriptor. File systems without locks count as not taken. */
static bool is_taken(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) && (errno == EAGAIN || errno == EACCES);
}

static cake_err open_file(cake_journal_writer *p, int flags)
{
    int fd = open(p->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
    if (fd < 0)
        return cake_fail("record", "%s: cannot be opened: %s; choose a writable path with -o", p->path,
                         errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    struct stat info;
    cake_err err = CAKE_OK;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        err = cake_fail("record", "%s: is not a regular file; remove it, or name another file with -o",
                        p->path);
    else if (is_taken(fd))
        err = cake_fail("record", "%s: another run is writing it; wait for it, or name another file with -o",
                        p->path);
    if (err)
        close(fd);
    else
        p->fd = fd;
    return err;
}

/* Writes the first line of an empty file and syncs it before any result is computed. */
static cake_err begin(cake_journal_writer *p, const cake_journal_head *head)
{
    cake_buf line = {0};
    cake_journal_free(&p->journal);
    cake_journal_head_copy(&p->journal.head, head);
    cake_journal_begin(head, &line);
    bool done = !ftruncate(p->fd, 0) && cake_io_write_at(p->fd, line.data, line.len, 0) &&
                (!fsync(p->fd) || errno == EINVAL);
    p->first = p->size = p->begun = (int64_t)line.len;
    p->opened = true;
    cake_buf_free(&line);
    return done ? CAKE_OK : cake_fail("record", "%s: cannot be written: %s", p->path, strerror(errno));
}

static void drop_failed(cake_journal_writer *p)
{
    cake_line_index *lines = &p->journal.lines;
    for (int64_t i = 0; p->journal.failed && i < lines->end; i++)
        if (cake_line_index_get(lines, i).failed) {
            cake_line_index_drop(lines, i);
            p->journal.failed--;
        }
}

/* Describes in one line what is resumed. */
static void describe(cake_journal_writer *p, int64_t again)
{
    const cake_journal *j = &p->journal;
    cake_buf line = {0};
    cake_buf_addf(&line, "%s: resumes with %" PRId64 " finished requests (%" PRId64 " failed)", p->path,
                  j->lines.n, j->failed);
    if (j->inflights.n)
        cake_buf_addf(&line, " and %zu unfinished ones", cake_inflights_requests(&j->inflights));
    if (again)
        cake_buf_addf(&line, "; %" PRId64 " failed requests are repeated", again);
    if (j->torn)
        cake_buf_addf(&line, "; %" PRId64 " bytes of an incomplete group are cut off", j->torn);
    if (j->lost)
        cake_buf_addf(&line, "; %" PRId64 " bytes are damaged, their requests are repeated", j->lost);
    cake_buf_free(&p->resume_message);
    p->resume_message = line;
    p->damaged = j->lost > 0;
}

/* The earlier run was killed while it wrote the first line. */
static void describe_nothing(cake_journal_writer *p)
{
    struct stat info;
    if (!fstat(p->fd, &info) && info.st_size)
        cake_buf_addf(
            &p->resume_message,
            "%s: ends within its first line: nothing was finished, the run starts from the beginning",
            p->path);
}

void cake_journal_writer_log_resume(cake_journal_writer *p)
{
    if (p->resume_message.len)
        cake_log(p->damaged ? CAKE_WARN : CAKE_INFO, "record", "%s", p->resume_message.data);
    cake_buf_free(&p->resume_message);
}

/* Resumes the journal that was read, which is this job's. */
static cake_err go_on(cake_journal_writer *p)
{
    int64_t failed = p->journal.failed;
    if (p->journal.torn && ftruncate(p->fd, (off_t)p->journal.end))
        return cake_fail("record", "%s: cannot be truncated to its last complete group: %s", p->path,
                         strerror(errno));
    if (p->retry)
        drop_failed(p);
    describe(p, failed - p->journal.failed);
    p->size = p->begun = p->journal.end;
    p->resumed = p->journal.lines.n;
    p->opened = true;
    return CAKE_OK;
}

/* Whether RESULTS matches its job file. */
static bool is_whole(const cake_journal_writer *p, const cake_job *job)
{
    int fd = open(p->results, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool whole = fd >= 0 && cake_job_holds(job, fd);
    if (fd >= 0)
        close(fd);
    return whole;
}

/* RESULTS exists next to a .partial: it is either this job's own earlier one, or foreign. */
static cake_err check_beside(cake_journal_writer *p, const cake_journal_writer_options *o)
{
    cake_job job = {0};
    if (!exists(p->results) || p->journal.head.replaces || o->force) {
        p->journal.head.replaces |= o->force;
        return CAKE_OK;
    }
    bool own = cake_job_read(p->job_path, &job) && job.head.job == p->journal.head.job && is_whole(p, &job);
    p->journal.head.replaces = own; /* the last run ended between its last two steps */
    cake_job_free(&job);
    return own ? CAKE_OK : cake_journal_writer_refuse_other(p);
}

static cake_err refuse_partial(const cake_journal_writer *p, const char *why)
{
    char begun[64] = "";
    if (p->journal.inflights.n)
        snprintf(begun, sizeof begun, " and %zu unfinished ones,",
                 cake_inflights_requests(&p->journal.inflights));
    return cake_fail("record",
                     "%s: holds %lld finished requests%s of a stopped run%s; keep it under another name, or "
                     "drop it with --force",
                     p->path, (long long)p->journal.lines.n, begun, why);
}

/* Opens an existing .partial. CAKE_END: it holds nothing worth keeping. */
static cake_err take_up(cake_journal_writer *p, const cake_journal_writer_options *o)
{
    cake_buf unsaid = {0}, why = {0}, differs = {0}, *before = NULL;
    cake_err err = open_file(p, 0);
    if (err)
        return err;
    if (o->force) /* whatever is wrong with it */
        before = cake_log_capture(&unsaid);
    err = cake_journal_read(p->fd, p->path, &p->journal);
    if (o->force)
        cake_log_capture(before);
    cake_buf_free(&unsaid);
    if (err == CAKE_END)
        describe_nothing(p);
    if (err)
        return o->force ? CAKE_END : err;
    cake_journal_differs(p->journal.head.identity, o->head.identity, &differs);
    if (o->resume == CAKE_RESUME_NEVER)
        cake_buf_adds(&why, ", which --resume never does not use");
    else if (differs.len)
        cake_buf_addf(&why, ", of another job: %s", differs.data);
    if (why.len)
        err = o->force || (!p->journal.lines.n && !p->journal.inflights.n) ? CAKE_END
                                                                           : refuse_partial(p, why.data);
    else if (!(err = check_beside(p, o)))
        err = go_on(p);
    cake_buf_free(&why);
    cake_buf_free(&differs);
    return err;
}

static void drop(cake_journal_writer *p)
{
    cake_journal_free(&p->journal);
    unlink(p->path);
    close(p->fd);
    p->fd = -1;
}

/* RESULTS exists without a .partial: checks that it is what this job would write. */
static cake_err look_at_finished(cake_journal_writer *p, const cake_journal_writer_options *o)
{
    cake_job job = {0};
    cake_buf differs = {0};
    if (o->resume == CAKE_RESUME_NEVER || !cake_job_read(p->job_path, &job))
        return refuse(p->results, "exists already");
    cake_journal_differs(job.head.identity, o->head.identity, &differs);
    bool whole = is_whole(p, &job);
    cake_err err = CAKE_OK;
    if (differs.len) {
        cake_buf why = {0};
        cake_buf_addf(&why, "already exists and is of another job: %s", differs.data);
        err = refuse(p->results, why.data);
        cake_buf_free(&why);
    } else if (!whole) {
        err = refuse(p->results, "already exists and was changed since it was written");
    } else {
        p->journal = (cake_journal){.head = job.head,
                                    .marks = job.marks,
                                    .n_mark = job.n_mark,
                                    .answered = job.answered,
                                    .failed = job.failed};
        p->resumed = job.requests;
        job = (cake_job){0};
    }
    cake_job_free(&job);
    cake_buf_free(&differs);
    return err;
}

/* RESULTS.job will be written, so no other file may have its name. */
static cake_err check_job(const cake_journal_writer *p, bool force)
{
    static const char begins[] = "{\"cake_job\"";
    char text[sizeof begins] = "";
    struct stat info;
    if (lstat(p->job_path, &info))
        return CAKE_OK;
    int fd = S_ISREG(info.st_mode) ? open(p->job_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool known = fd >= 0 && cake_io_read_at(fd, text, sizeof begins - 1, 0) && !strcmp(text, begins);
    if (fd >= 0)
        close(fd);
    if (known || (force && S_ISREG(info.st_mode)))
        return CAKE_OK;
    return cake_fail(
        "record",
        "%s: was not written by a run and would be overwritten; move it away, or name another file with -o",
        p->job_path);
}

/* Starts a new job. */
static cake_err start(cake_journal_writer *p, const cake_journal_writer_options *o)
{
    cake_journal_head head = o->head;
    head.replaces = o->force;
    if (exists(p->results) && !o->force)
        return look_at_finished(p, o);
    if (o->resume == CAKE_RESUME_MUST)
        return cake_fail("record", "%s: there is nothing to resume, but --resume must is given", p->path);
    cake_err err = open_file(p, O_CREAT | O_EXCL);
    return err ? err : begin(p, &head);
}

/* Whether files can be created in its directory. */
static bool can_write(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? cake_copy(path, (size_t)(slash - path) + 1) : cake_copy(".", 1);
    bool can = !access(folder, W_OK);
    free(folder);
    return can;
}

/* Related files have longer names than RESULTS; a name that is too long must fail now, not at the end. */
static cake_err check_name(const char *results)
{
    char host[256] = "", folder[4096];
    const char *slash = strrchr(results, '/'), *base = slash ? slash + 1 : results;
    int len = slash ? (int)(slash - results) + 1 : 1;
    snprintf(folder, sizeof folder, "%.*s", len, slash ? results : ".");
    gethostname(host, sizeof host - 1);
    long most = pathconf(folder, _PC_NAME_MAX);
    size_t longest = strlen(".partial.tmp"), moved = strlen(".lock..2147483647") + strlen(host);
    longest = longest > moved ? longest : moved;
    if (most <= 0 || strlen(base) + longest <= (size_t)most)
        return CAKE_OK;
    return cake_fail("record",
                     "%s: the name has %zu bytes, and related files need up to %zu bytes more, but the file "
                     "system allows %ld: give a shorter name with -o",
                     results, strlen(base), longest, most);
}

cake_err cake_journal_writer_open(const cake_journal_writer_options *o, cake_journal_writer **out)
{
    cake_err err = check_name(o->results);
    if (err)
        return err;
    cake_journal_writer *p = cake_alloc(1, sizeof *p);
    *p = (cake_journal_writer){.results = cake_io_name(o->results, ""),
                               .path = cake_io_name(o->results, ".partial"),
                               .job_path = cake_io_name(o->results, ".job"),
                               .retry = o->retry,
                               .lossy = o->lossy,
                               .copies = o->copies,
                               .never = o->resume == CAKE_RESUME_NEVER,
                               .fd = -1,
                               .reached = {.run = time(NULL), .share = -1, .left = -1},
                               .began = cake_clock_now()};
    char *lock = cake_io_name(o->results, ".lock");
    bool only_looks = !exists(p->path) && exists(p->results) && !o->force && !can_write(o->results);
    err = only_looks ? CAKE_OK : cake_lock_take(lock, &p->lock);
    free(lock);
    if (!err)
        err = check_job(p, o->force);
    bool there = !err && exists(p->path);
    if (!err && there && (err = take_up(p, o)) == CAKE_END) {
        drop(p);
        there = false;
        err = CAKE_OK;
    }
    if (!err && !there)
        err = start(p, o);
    if (err) {
        cake_journal_writer_close(p);
        return err;
    }
    if (p->fd >= 0)
        p->sync = cake_fsync_thread_open(p->fd);
    *out = p;
    return CAKE_OK;
}

/* ---- RESULTS becomes a journal again */

/* Calls take with every line of RESULTS. */
static cake_err read_results(cake_journal_writer *p, FILE *from,
                             cake_err (*take)(cake_journal_writer *p, cake_entry entry, const char *line,
                                              size_t len))
{
    char *line = NULL;
    size_t room = 0;
    int64_t order = 0;
    cake_err err = CAKE_OK;
    for (ssize_t len; !err && (len = getline(&line, &room, from)) > 0; order++) {
        cake_line_info info;
        if (!cake_line_info_read(line, (size_t)len, &info))
            err = cake_fail("record", "%s: line %lld is not a result", p->results, (long long)order + 1);
        else
            err = take(p, (cake_entry){.order = order, .failed = info.failed}, line, (size_t)len);
    }
    free(line);
    return !err && (ferror(from) || order != p->resumed)
               ? cake_fail("record", "%s: cannot be read: %s", p->results, strerror(errno ? errno : EIO))
               : err;
}

static cake_err take_place(cake_journal_writer *p, cake_entry entry, const char *line, size_t len)
{
    (void)line;
    cake_line_index_set(&p->journal.lines, entry.order,
                        (cake_line_span){.offset = 0, .len = (int64_t)len, .failed = entry.failed});
    return CAKE_OK;
}

cake_err cake_journal_writer_recall(cake_journal_writer *p)
{
    if (p->fd >= 0 || p->lossy || p->journal.lines.n)
        return CAKE_OK;
    FILE *from = fopen(p->results, "r");
    if (!from)
        return cake_fail("record", "%s: cannot be read: %s", p->results, strerror(errno));
    cake_err err = read_results(p, from, take_place);
    fclose(from);
    return err;
}

/* Checksums of single lines are unknown: the first answer carries that of all. */
static cake_err take_line(cake_journal_writer *p, cake_entry entry, const char *line, size_t len)
{
    entry.known = !p->imported.unknown;
    entry.sum = entry.failed ? 0 : p->imported.sum;
    if (!entry.failed)
        p->imported.sum = 0;
    return cake_journal_writer_append(p, entry, line, len);
}

/* Copies RESULTS into groups of the journal. */
static cake_err import(cake_journal_writer *p, FILE *from)
{
    cake_err err = read_results(p, from, take_line);
    return err ? err : cake_journal_writer_flush(p);
}

cake_err cake_journal_writer_reopen(cake_journal_writer *p)
{
    cake_journal old = p->journal;
    cake_journal_head head = old.head;
    if (p->lossy)
        return refuse(p->results, "is finished, and only uncompressed JSONL can be added to");
    FILE *from = fopen(p->results, "r");
    if (!from)
        return cake_fail("record", "%s: cannot be read: %s", p->results, strerror(errno));
    head.replaces = true;
    cake_line_index_free(&p->journal.lines); /* filled by recall, from RESULTS */
    p->imported = old.answered;
    p->journal = (cake_journal){0};
    cake_err err = open_file(p, O_CREAT | O_EXCL);
    if (!err)
        err = begin(p, &head);
    if (old.n_mark)
        p->read = old.marks[old.n_mark - 1];
    p->imports = true;
    if (!err)
        err = import(p, from);
    p->imports = false;
    fclose(from);
    if (err) { /* drop the copy: it holds only what RESULTS holds */
        cake_journal_head_free(&old.head);
        free(old.marks);
        p->n_entry = 0;
        if (p->fd >= 0 && !ftruncate(p->fd, 0))
            p->size = 0;
        return err;
    }
    p->journal.marks = old.marks;
    p->journal.n_mark = old.n_mark;
    p->journal.end = p->size;
    cake_journal_head_free(&old.head);
    err = go_on(p);
    p->sync = cake_fsync_thread_open(p->fd);
    return err;
}

void cake_journal_writer_read_identity(const char *results, bool force, cake_buf *identity)
{
    char *path = cake_io_name(results, ".partial"), *job_path = cake_io_name(results, ".job");
    cake_journal_head head = {0};
    cake_job job = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && cake_journal_peek(fd, &head))
        cake_buf_adds(identity, head.identity);
    else if (fd < 0 && !force && exists(results) && cake_job_read(job_path, &job))
        cake_buf_adds(identity, job.head.identity);
    if (fd >= 0)
        close(fd);
    cake_journal_head_free(&head);
    cake_job_free(&job);
    free(path);
    free(job_path);
}
