/* SPDX-License-Identifier: Apache-2.0
 *
 * In: finished lines in any order. Out: a file in input order. Invariant: at any moment RESULTS.partial is
 * its first line, complete groups up to `size`, and perhaps the beginning of one more; RESULTS is absent,
 * unchanged, or complete.
 */
#include "record/journal_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "record/journal_writer_internal.h"

/* A group ends after this many bytes, results or seconds. */
enum { ENOUGH = 256 << 10, GROUP = 128 };
static const double moment = 0.25, glance = 5; /* seconds between checks of the file itself */

bool cake_journal_writer_finished(const cake_journal_writer *p)
{
    return p->fd < 0;
}

const cake_journal_head *cake_journal_writer_head(const cake_journal_writer *p)
{
    return &p->journal.head;
}

int64_t cake_journal_writer_resumed(const cake_journal_writer *p)
{
    return p->resumed;
}

int64_t cake_journal_writer_count(const cake_journal_writer *p)
{
    return p->fd < 0 ? p->resumed : p->journal.lines.n;
}

int64_t cake_journal_writer_failed(const cake_journal_writer *p)
{
    return p->journal.failed;
}

bool cake_journal_writer_has(const cake_journal_writer *p, int64_t order)
{
    return cake_line_index_get(&p->journal.lines, order).len > 0;
}

bool cake_journal_writer_answered(const cake_journal_writer *p, int64_t order)
{
    cake_line_span span = cake_line_index_get(&p->journal.lines, order);
    return span.len > 0 && !span.failed;
}

const cake_answered *cake_journal_writer_sum(const cake_journal_writer *p)
{
    return &p->journal.answered;
}

void cake_journal_writer_corrected(cake_journal_writer *p, const cake_input_checkpoint *read)
{
    cake_inflights_free(&p->journal.inflights); /* they belong to lines of another input */
    free(p->journal.marks);
    p->journal.marks = cake_alloc(1, sizeof *read);
    p->journal.marks[0] = *read;
    p->journal.n_mark = 1;
}

const cake_input_checkpoint *cake_journal_writer_input_checkpoints(const cake_journal_writer *p, size_t *n)
{
    *n = p->journal.n_mark;
    return p->journal.marks;
}

void cake_journal_writer_read_to(cake_journal_writer *p, const cake_input_checkpoint *read)
{
    if (read->requests > p->read.requests)
        p->read = *read;
}

void cake_journal_writer_reached(cake_journal_writer *p, double share, double left)
{
    p->reached.share = share;
    p->reached.left = left;
}

double cake_journal_writer_cpu(const cake_journal_writer *p)
{
    return cake_fsync_thread_cpu(p->sync);
}

static cake_err fail_copy(const cake_journal_writer *p, int why)
{
    return cake_fail("record", "%s: cannot be written: %s; its sources are unchanged", p->results,
                     strerror(why));
}

static cake_err broken(cake_journal_writer *p, int why)
{
    p->broken = true;
    if (p->imports)
        return cake_fail("record", "%s: cannot be written: %s; %s is unchanged", p->path, strerror(why),
                         p->results);
    if (p->copies)
        return fail_copy(p, why);
    return cake_fail(
        "record", "%s: cannot be written at byte %lld: %s; it holds the %lld requests finished so far",
        p->path, (long long)p->size, strerror(why), (long long)(p->journal.lines.n - (int64_t)p->n_entry));
}

/* Another process changed, renamed or removed the file: further results would be lost at the end. */
static cake_err taken_away(cake_journal_writer *p, const char *what)
{
    p->broken = true;
    return cake_fail("record",
                     "%s: %s during the run; the run ends because its results would be lost: write to a path "
                     "that nothing else touches, and start again",
                     p->path, what);
}

/* Checks the file at intervals only, since each check asks the file server. */
static cake_err check_file(cake_journal_writer *p, bool now)
{
    struct stat ours, there;
    double time = cake_clock_now();
    if (p->fd < 0 || !p->opened || p->broken || p->undone || (!now && time < p->look))
        return CAKE_OK;
    p->look = time + glance;
    if (fstat(p->fd, &ours))
        return broken(p, errno);
    if (stat(p->path, &there))
        return taken_away(p, errno == ENOENT || errno == ENOTDIR ? "it was removed" : "it cannot be found");
    if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
        return taken_away(p, "another file took its name");
    if (ours.st_size == p->size)
        return CAKE_OK;
    char what[128];
    snprintf(what, sizeof what, "its size changed to %lld bytes from %lld", (long long)ours.st_size,
             (long long)p->size);
    return taken_away(p, what);
}

/* Checks that all results are still as they were written, before RESULTS is made from them. Not possible
 * where it is unknown how far the input was read. */
static cake_err check_content(cake_journal_writer *p)
{
    cake_journal seen = {0};
    cake_buf unsaid = {0};
    cake_err err = check_file(p, true);
    if (err || !p->read.requests)
        return err;
    cake_buf *before = cake_log_capture(&unsaid);
    bool readable = !cake_journal_read(p->fd, p->path, &seen);
    cake_log_capture(before);
    cake_buf_free(&unsaid);
    if (!readable)
        err = taken_away(p, "its first line was changed");
    if (!err && (seen.lines.n != p->journal.lines.n || seen.lost != p->journal.lost || seen.torn))
        err = taken_away(p, "results in it were changed");
    cake_journal_free(&seen);
    return err;
}

/* Appends after the last complete group. A failed write leaves no part of the text. */
static cake_err extend(cake_journal_writer *p, const cake_buf *text)
{
    if (!cake_io_write_at(p->fd, text->data, text->len, p->size)) {
        int why = errno;
        if (ftruncate(p->fd, (off_t)p->size))
            why = errno; /* a partial group stays; readers ignore it */
        return broken(p, why);
    }
    p->size += (int64_t)text->len;
    cake_fsync_thread_dirty(p->sync);
    return CAKE_OK;
}

cake_err cake_journal_writer_flush(cake_journal_writer *p)
{
    if (p->broken)
        return CAKE_ERR_FATAL;
    int late = cake_fsync_thread_error(p->sync);
    if (late)
        return broken(p, late);
    cake_err err = check_file(p, false);
    if (err || !p->n_entry)
        return err;
    p->reached.seconds = cake_clock_now() - p->began;
    cake_journal_close(p->entries, p->n_entry, &p->read, &p->reached, &p->group);
    err = extend(p, &p->group);
    if (err)
        return err;
    p->n_entry = 0;
    cake_buf_cut(&p->group, 0);
    return CAKE_OK;
}

const cake_inflight *cake_journal_writer_inflight(const cake_journal_writer *p, int64_t order, int *n)
{
    return cake_inflights_get(&p->journal.inflights, order, n);
}

void cake_journal_writer_add_inflight(cake_journal_writer *p, const cake_inflight *part)
{
    /* Lines longer than OWN (1 MiB) are not read back. Assumes at most 24 bytes per score. */
    size_t most = (size_t)(ENOUGH / (12 + 24 * part->width)), left = part->ids.len;
    cake_inflight piece = *part;
    for (; left && !p->broken && !p->undone; left -= piece.ids.len) {
        piece.ids.len = left < most ? left : most;
        if (p->parts.len >= ENOUGH)
            cake_journal_writer_checkpoint(p);
        if (!p->parts.len)
            cake_journal_open_running(&p->parts);
        else
            cake_buf_adds(&p->parts, ", ");
        cake_inflight_add(&piece, &p->parts);
        piece.at += (int64_t)piece.ids.len;
        piece.ids.id += piece.ids.len;
        if (piece.width)
            piece.scored += piece.ids.len * (size_t)piece.width;
    }
}

cake_err cake_journal_writer_checkpoint(cake_journal_writer *p)
{
    cake_err err = p->undone ? CAKE_ERR_FATAL : cake_journal_writer_flush(p);
    if (!p->parts.len)
        return err;
    cake_journal_close_running(&p->read, &p->parts);
    err = err ? err : extend(p, &p->parts);
    cake_buf_cut(&p->parts, 0);
    return err;
}

cake_err cake_journal_writer_append(cake_journal_writer *p, cake_entry entry, const char *line, size_t len)
{
    if (p->broken || p->undone)
        return CAKE_ERR_FATAL;
    if (!p->entries)
        p->entries = cake_alloc(GROUP, sizeof *p->entries);
    if (!p->n_entry)
        p->since = cake_clock_now();
    cake_line_index_set(&p->journal.lines, entry.order,
                        (cake_line_span){.offset = p->size + (int64_t)p->group.len,
                                         .len = (int64_t)len,
                                         .failed = entry.failed});
    p->journal.failed += entry.failed;
    cake_answered_add(&p->journal.answered, &entry);
    p->entries[p->n_entry++] = entry;
    cake_buf_add(&p->group, line, len);
    return p->n_entry == GROUP || p->group.len >= ENOUGH ? cake_journal_writer_flush(p) : CAKE_OK;
}

cake_err cake_journal_writer_tick(cake_journal_writer *p)
{
    double now = cake_clock_now();
    bool waits = p->n_entry && now - p->since >= moment;
    return !p->broken && (waits || now >= p->look) ? cake_journal_writer_flush(p) : CAKE_OK;
}

void cake_journal_writer_rollback(cake_journal_writer *p)
{
    p->n_entry = 0;
    p->undone = true;
    if (p->fd >= 0 && (!ftruncate(p->fd, (off_t)p->begun) || p->begun <= p->first))
        p->size = p->begun; /* an empty file is removed at close */
}

/* Writes the marks of earlier runs and of this one. */
static void write_job(cake_journal_writer *p, const cake_file_digest *results, int *why)
{
    size_t n = p->journal.n_mark;
    cake_job job = {.head = p->journal.head,
                    .requests = p->journal.lines.end,
                    .failed = p->journal.failed,
                    .answered = p->journal.answered,
                    .marks = cake_alloc(n + 1, sizeof *job.marks),
                    .results = *results};
    if (n)
        memcpy(job.marks, p->journal.marks, n * sizeof *job.marks);
    if (p->read.requests > (n ? job.marks[n - 1].requests : 0))
        job.marks[n++] = p->read;
    job.n_mark = n;
    *why = cake_job_write(p->job_path, &job);
    free(job.marks);
}

cake_err cake_journal_writer_finish(cake_journal_writer *p, const cake_finalize_form *form)
{
    cake_err err = cake_journal_writer_flush(p);
    if (!err)
        err = check_content(p);
    if (err)
        return err;
    int64_t missing = cake_line_index_missing(&p->journal.lines);
    if (missing >= 0)
        return cake_fail("record", "%s: request %lld has no result; the file holds the %lld others", p->path,
                         (long long)missing, (long long)p->journal.lines.n);
    bool new = !p->journal.head.replaces;
    if (new && !access(p->results, F_OK))
        return cake_journal_writer_refuse_other(p);
    cake_buf tmp = {0};
    cake_file_digest written;
    cake_buf_addf(&tmp, "%s.tmp", p->path);
    int why = cake_finalize_write(p->fd, &p->journal.lines, &p->journal.head, form, tmp.data, &written);
    bool there = !why;
    if (!why)
        write_job(p, &written, &why);
    bool told = there && !why;
    if (!why && rename(tmp.data, p->results))
        why = errno;
    if (why && there)
        unlink(tmp.data);
    if (why && told && p->copies) /* the job file would describe no existing file */
        unlink(p->job_path);
    cake_buf_free(&tmp);
    if (why == EBADMSG)
        return cake_fail("record",
                         "%s: a result in it is not JSON although its checksum is right: the file was "
                         "changed by hand; drop it with --force to compute everything again",
                         p->path);
    if (why && p->copies)
        return fail_copy(p, why);
    if (why)
        return cake_fail("record", "%s: cannot be written: %s; all %lld results are in %s", p->results,
                         strerror(why), (long long)p->journal.lines.n, p->path);
    cake_finalize_fsync_dir(p->results);
    unlink(p->path);
    p->gone = true;
    return CAKE_OK;
}

void cake_journal_writer_close(cake_journal_writer *p)
{
    if (!p)
        return;
    bool ours = p->fd >= 0 && p->opened;
    if (ours && !p->gone && !p->undone)
        cake_journal_writer_flush(p);
    cake_fsync_thread_close(p->sync);
    if (ours && !p->gone && p->size <= p->first)
        unlink(p->path);
    else if (ours && !p->gone)
        (void)fdatasync(p->fd);
    if (p->fd >= 0)
        close(p->fd);
    cake_lock_release(p->lock);
    cake_journal_free(&p->journal);
    cake_buf_free(&p->group);
    cake_buf_free(&p->parts);
    free(p->entries);
    cake_buf_free(&p->resume_message);
    free(p->results);
    free(p->path);
    free(p->job_path);
    free(p);
}
