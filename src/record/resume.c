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
#include "record/recorder.h"

/* RESULTS does not hold complete lines, so it cannot be reopened. */
static bool is_lossy(const cake_recorder *r)
{
    return r->txt || r->hdf5 || r->pack;
}

/* An existing RESULTS cannot be resumed. */
static cake_err refuse(const char *results, const char *why)
{
    return cake_fail("record", "%s: %s; --force overwrites it, or name another file with -o", results, why);
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

static cake_err open_file(cake_recorder *r, int flags)
{
    int fd = open(r->partial, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
    if (fd < 0)
        return cake_fail("record", "%s: cannot be opened: %s; choose a writable path with -o", r->partial,
                         errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    struct stat info;
    cake_err err = CAKE_OK;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        err = cake_fail("record", "%s: is not a regular file; remove it, or name another file with -o",
                        r->partial);
    else if (is_taken(fd))
        err = cake_fail("record", "%s: another run is writing it; wait for it, or name another file with -o",
                        r->partial);
    if (err)
        close(fd);
    else
        r->fd = fd;
    return err;
}

/* Writes the first line of an empty file and syncs it before any result is computed. */
static cake_err begin(cake_recorder *r, const cake_journal_header *header)
{
    cake_buf line = {0};
    cake_journal_free(&r->journal);
    cake_journal_header_copy(&r->journal.header, header);
    cake_journal_begin(header, &line);
    bool done = !ftruncate(r->fd, 0) && cake_io_write_at(r->fd, line.data, line.len, 0) &&
                (!fsync(r->fd) || errno == EINVAL);
    r->first = r->size = r->begun = (int64_t)line.len;
    r->opened = true;
    cake_buf_free(&line);
    return done ? CAKE_OK : cake_fail("record", "%s: cannot be written: %s", r->partial, strerror(errno));
}

static void drop_failed(cake_recorder *r)
{
    cake_line_index *lines = &r->journal.lines;
    for (int64_t i = 0; r->journal.failed && i < lines->end; i++)
        if (cake_line_index_get(lines, i).failed) {
            cake_line_index_drop(lines, i);
            r->journal.failed--;
        }
}

/* Describes in one line what is resumed. */
static void describe(cake_recorder *r, int64_t again)
{
    const cake_journal *j = &r->journal;
    cake_buf line = {0};
    cake_buf_addf(&line, "%s: resumes with %" PRId64 " finished requests (%" PRId64 " failed)", r->partial,
                  j->lines.n, j->failed);
    if (j->inflights.n)
        cake_buf_addf(&line, " and %zu unfinished ones", cake_inflights_requests(&j->inflights));
    if (again)
        cake_buf_addf(&line, "; %" PRId64 " failed requests are repeated", again);
    if (j->torn)
        cake_buf_addf(&line, "; %" PRId64 " bytes of an incomplete group are cut off", j->torn);
    if (j->lost)
        cake_buf_addf(&line, "; %" PRId64 " bytes are damaged, their requests are repeated", j->lost);
    cake_buf_free(&r->resume_message);
    r->resume_message = line;
    r->damaged = j->lost > 0;
}

/* The earlier run was killed while it wrote the first line. */
static void describe_nothing(cake_recorder *r)
{
    struct stat info;
    if (!fstat(r->fd, &info) && info.st_size)
        cake_buf_addf(
            &r->resume_message,
            "%s: ends within its first line: nothing was finished, the run starts from the beginning",
            r->partial);
}

void cake_record_log_resume(cake_recorder *r)
{
    if (r->resume_message.len)
        cake_log(r->damaged ? CAKE_WARN : CAKE_INFO, "record", "%s", r->resume_message.data);
    cake_buf_free(&r->resume_message);
}

/* Resumes the journal that was read, which is this job's. */
static cake_err go_on(cake_recorder *r)
{
    int64_t failed = r->journal.failed;
    if (r->journal.torn && ftruncate(r->fd, (off_t)r->journal.end))
        return cake_fail("record", "%s: cannot be truncated to its last complete group: %s", r->partial,
                         strerror(errno));
    if (r->options.retry)
        drop_failed(r);
    describe(r, failed - r->journal.failed);
    r->size = r->begun = r->journal.end;
    r->resumed = r->journal.lines.n;
    r->opened = true;
    return CAKE_OK;
}

/* Whether RESULTS matches its job file. */
static bool is_whole(const cake_recorder *r, const cake_job *job)
{
    int fd = open(r->results, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool whole = fd >= 0 && cake_job_holds(job, fd);
    if (fd >= 0)
        close(fd);
    return whole;
}

/* RESULTS exists next to a .partial: it is either this job's own earlier one, or foreign. */
static cake_err check_other_files(cake_recorder *r)
{
    cake_job job = {0};
    if (!exists(r->results) || r->journal.header.replaces || r->options.force) {
        r->journal.header.replaces |= r->options.force;
        return CAKE_OK;
    }
    bool own =
        cake_job_read(r->job_path, &job) && job.header.job == r->journal.header.job && is_whole(r, &job);
    r->journal.header.replaces = own; /* the last run ended between its last two steps */
    cake_job_free(&job);
    return own ? CAKE_OK : cake_journal_writer_refuse_other(r);
}

static cake_err refuse_partial(const cake_recorder *r, const char *why)
{
    char begun[64] = "";
    if (r->journal.inflights.n)
        snprintf(begun, sizeof begun, " and %zu unfinished ones,",
                 cake_inflights_requests(&r->journal.inflights));
    return cake_fail("record",
                     "%s: holds %lld finished requests%s of a stopped run%s; keep it under another name, or "
                     "drop it with --force",
                     r->partial, (long long)r->journal.lines.n, begun, why);
}

/* Opens an existing .partial. CAKE_END: it holds nothing worth keeping. */
static cake_err take_up(cake_recorder *r, const cake_journal_header *header)
{
    cake_buf unsaid = {0}, why = {0}, differs = {0}, *before = NULL;
    cake_err err = open_file(r, 0);
    if (err)
        return err;
    if (r->options.force) /* whatever is wrong with it */
        before = cake_log_capture(&unsaid);
    err = cake_journal_read(r->fd, r->partial, &r->journal);
    if (r->options.force)
        cake_log_capture(before);
    cake_buf_free(&unsaid);
    if (err == CAKE_END)
        describe_nothing(r);
    if (err)
        return r->options.force ? CAKE_END : err;
    cake_journal_differs(r->journal.header.identity, header->identity, &differs);
    if (r->options.resume == CAKE_RESUME_NEVER)
        cake_buf_adds(&why, ", which --resume never does not use");
    else if (differs.len)
        cake_buf_addf(&why, ", of another job: %s", differs.data);
    if (why.len)
        err = r->options.force || (!r->journal.lines.n && !r->journal.inflights.n)
                  ? CAKE_END
                  : refuse_partial(r, why.data);
    else if (!(err = check_other_files(r)))
        err = go_on(r);
    cake_buf_free(&why);
    cake_buf_free(&differs);
    return err;
}

static void drop(cake_recorder *r)
{
    cake_journal_free(&r->journal);
    unlink(r->partial);
    close(r->fd);
    r->fd = -1;
}

/* RESULTS exists without a .partial: checks that it is what this job would write. */
static cake_err look_at_finished(cake_recorder *r, const cake_journal_header *header)
{
    cake_job job = {0};
    cake_buf differs = {0};
    if (r->options.resume == CAKE_RESUME_NEVER || !cake_job_read(r->job_path, &job))
        return refuse(r->results, "exists already");
    cake_journal_differs(job.header.identity, header->identity, &differs);
    bool whole = is_whole(r, &job);
    cake_err err = CAKE_OK;
    if (differs.len) {
        cake_buf why = {0};
        cake_buf_addf(&why, "exists already and belongs to another job: %s", differs.data);
        err = refuse(r->results, why.data);
        cake_buf_free(&why);
    } else if (!whole) {
        err = refuse(r->results, "exists already and was changed since it was written");
    } else {
        r->journal = (cake_journal){.header = job.header,
                                    .marks = job.marks,
                                    .n_mark = job.n_mark,
                                    .answered = job.answered,
                                    .failed = job.failed};
        r->resumed = job.requests;
        job = (cake_job){0};
    }
    cake_job_free(&job);
    cake_buf_free(&differs);
    return err;
}

/* RESULTS.job will be written, so no other file may have its name. */
static cake_err check_job(const cake_recorder *r)
{
    static const char begins[] = "{\"cake_job\"";
    char text[sizeof begins] = "";
    struct stat info;
    if (lstat(r->job_path, &info))
        return CAKE_OK;
    int fd = S_ISREG(info.st_mode) ? open(r->job_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool known = fd >= 0 && cake_io_read_at(fd, text, sizeof begins - 1, 0) && !strcmp(text, begins);
    if (fd >= 0)
        close(fd);
    if (known || (r->options.force && S_ISREG(info.st_mode)))
        return CAKE_OK;
    return cake_fail(
        "record",
        "%s: was not written by a run and would be overwritten; move it away, or name another file with -o",
        r->job_path);
}

/* Starts a new job. */
static cake_err start(cake_recorder *r, const cake_journal_header *header)
{
    if (exists(r->results) && !r->options.force)
        return look_at_finished(r, header);
    if (r->options.resume == CAKE_RESUME_MUST)
        return cake_fail("record", "%s: there is nothing to resume, but --resume must is given", r->partial);
    cake_err err = open_file(r, O_CREAT | O_EXCL);
    if (err)
        return err;
    cake_journal_header new = *header;
    new.replaces = r->options.force;
    return begin(r, &new);
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

cake_err cake_journal_writer_open(cake_recorder *r, const cake_journal_header *header)
{
    cake_err err = check_name(r->results);
    if (err)
        return err;
    r->partial = cake_io_name(r->results, ".partial");
    r->job_path = cake_io_name(r->results, ".job");
    r->reached = (cake_reached){.run = time(NULL), .share = -1, .left = -1};
    r->began = cake_clock_now();
    char *lock = cake_io_name(r->results, ".lock");
    bool only_looks =
        !exists(r->partial) && exists(r->results) && !r->options.force && !can_write(r->results);
    err = only_looks ? CAKE_OK : cake_lock_take(lock, &r->lock);
    free(lock);
    if (!err)
        err = check_job(r);
    bool there = !err && exists(r->partial);
    if (!err && there && (err = take_up(r, header)) == CAKE_END) {
        drop(r);
        there = false;
        err = CAKE_OK;
    }
    if (!err && !there)
        err = start(r, header);
    if (!err && r->fd >= 0)
        r->sync = cake_fsync_thread_open(r->fd);
    return err;
}

/* ---- RESULTS becomes a journal again */

/* Calls take with every line of RESULTS. */
static cake_err read_results(cake_recorder *r, FILE *from,
                             cake_err (*take)(cake_recorder *r, cake_entry entry, const char *line,
                                              size_t len))
{
    char *line = NULL;
    size_t room = 0;
    int64_t order = 0;
    cake_err err = CAKE_OK;
    for (ssize_t len; !err && (len = getline(&line, &room, from)) > 0; order++) {
        cake_line_info info;
        if (!cake_line_info_read(line, (size_t)len, &info))
            err = cake_fail("record", "%s: line %lld is not a result", r->results, (long long)order + 1);
        else
            err = take(r, (cake_entry){.order = order, .failed = info.failed}, line, (size_t)len);
    }
    free(line);
    return !err && (ferror(from) || order != r->resumed)
               ? cake_fail("record", "%s: cannot be read: %s", r->results, strerror(errno ? errno : EIO))
               : err;
}

static cake_err take_place(cake_recorder *r, cake_entry entry, const char *line, size_t len)
{
    (void)line;
    cake_line_index_set(&r->journal.lines, entry.order,
                        (cake_line_span){.offset = 0, .len = (int64_t)len, .failed = entry.failed});
    return CAKE_OK;
}

/* Reads which results of a finished RESULTS failed. */
static cake_err recall(cake_recorder *r)
{
    if (r->fd >= 0 || is_lossy(r) || r->journal.lines.n)
        return CAKE_OK;
    FILE *from = fopen(r->results, "r");
    if (!from)
        return cake_fail("record", "%s: cannot be read: %s", r->results, strerror(errno));
    cake_err err = read_results(r, from, take_place);
    fclose(from);
    return err;
}

bool cake_record_recall(cake_recorder *r, uint64_t *sum)
{
    if (r->stream || r->journal.answered.unknown || recall(r))
        return false;
    *sum = r->journal.answered.sum;
    return true;
}

/* Checksums of single lines are unknown: the first answer carries that of all. */
static cake_err take_line(cake_recorder *r, cake_entry entry, const char *line, size_t len)
{
    entry.known = !r->imported.unknown;
    entry.sum = entry.failed ? 0 : r->imported.sum;
    if (!entry.failed)
        r->imported.sum = 0;
    return cake_journal_writer_append(r, entry, line, len);
}

cake_err cake_record_reopen(cake_recorder *r)
{
    cake_journal old = r->journal;
    cake_journal_header header = old.header;
    if (is_lossy(r))
        return refuse(r->results, "is finished, and only uncompressed JSONL can be added to");
    FILE *from = fopen(r->results, "r");
    if (!from)
        return cake_fail("record", "%s: cannot be read: %s", r->results, strerror(errno));
    header.replaces = true;
    cake_line_index_free(&r->journal.lines); /* filled by recall, from RESULTS */
    r->imported = old.answered;
    r->journal = (cake_journal){0};
    cake_err err = open_file(r, O_CREAT | O_EXCL);
    if (!err)
        err = begin(r, &header);
    if (old.n_mark)
        r->read = old.marks[old.n_mark - 1];
    r->imports = true;
    if (!err) /* copies RESULTS into groups of the journal */
        err = read_results(r, from, take_line);
    if (!err)
        err = cake_record_flush(r);
    r->imports = false;
    fclose(from);
    if (err) { /* drop the copy: it holds only what RESULTS holds */
        cake_journal_header_free(&old.header);
        free(old.marks);
        r->n_entry = 0;
        if (r->fd >= 0 && !ftruncate(r->fd, 0))
            r->size = 0;
        return err;
    }
    r->journal.marks = old.marks;
    r->journal.n_mark = old.n_mark;
    r->journal.end = r->size;
    cake_journal_header_free(&old.header);
    err = go_on(r);
    r->sync = cake_fsync_thread_open(r->fd);
    return err;
}

void cake_record_read_identity(const char *results, bool force, cake_buf *identity)
{
    char *path = cake_io_name(results, ".partial"), *job_path = cake_io_name(results, ".job");
    cake_journal_header header = {0};
    cake_job job = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && cake_journal_peek(fd, &header))
        cake_buf_adds(identity, header.identity);
    else if (fd < 0 && !force && exists(results) && cake_job_read(job_path, &job))
        cake_buf_adds(identity, job.header.identity);
    if (fd >= 0)
        close(fd);
    cake_journal_header_free(&header);
    cake_job_free(&job);
    free(path);
    free(job_path);
}
