/* SPDX-License-Identifier: Apache-2.0
 *
 * In: finished lines in any order. Out: a file in input order. Invariant: at any moment RESULTS.partial is
 * its first line, complete groups up to `size`, and perhaps the beginning of one more; RESULTS is absent,
 * unchanged, or complete.
 */
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
#include "record/format.h"
#include "record/recorder.h"

/* A group ends after this many bytes, results or seconds. */
enum { ENOUGH = 256 << 10, GROUP = 128 };
static const double moment = 0.25, glance = 5; /* seconds between checks of the file itself */

bool cake_record_finished(const cake_recorder *r)
{
    return !r->stream && r->fd < 0;
}

bool cake_record_has(const cake_recorder *r, int64_t order)
{
    return cake_line_index_get(&r->journal.lines, order).len > 0;
}

int64_t cake_record_resumed(const cake_recorder *r)
{
    return r->resumed;
}

const cake_input_checkpoint *cake_record_input_checkpoints(const cake_recorder *r, size_t *n)
{
    *n = r->journal.n_mark;
    return r->journal.marks;
}

bool cake_record_answered(const cake_recorder *r, int64_t order)
{
    cake_line_span span = cake_line_index_get(&r->journal.lines, order);
    return span.len > 0 && !span.failed;
}

void cake_record_corrected(cake_recorder *r, cake_input_checkpoint read)
{
    cake_inflights_free(&r->journal.inflights); /* they belong to lines of another input */
    free(r->journal.marks);
    r->journal.marks = cake_alloc(1, sizeof read);
    r->journal.marks[0] = read;
    r->journal.n_mark = 1;
}

void cake_record_read_to(cake_recorder *r, cake_input_checkpoint read)
{
    if (read.requests > r->read.requests)
        r->read = read;
}

void cake_record_reached(cake_recorder *r, double share, double left)
{
    r->reached.share = share;
    r->reached.left = left;
}

int64_t cake_record_failed(const cake_recorder *r)
{
    return r->journal.failed;
}

static cake_err fail_copy(const cake_recorder *r, int why)
{
    return cake_fail("record", "%s: cannot be written: %s; its sources are unchanged", r->results,
                     strerror(why));
}

static cake_err broken(cake_recorder *r, int why)
{
    r->broken = true;
    if (r->imports)
        return cake_fail("record", "%s: cannot be written: %s; %s is unchanged", r->partial, strerror(why),
                         r->results);
    if (r->options.copies)
        return fail_copy(r, why);
    return cake_fail(
        "record", "%s: cannot be written at byte %lld: %s; it holds the %lld requests finished so far",
        r->partial, (long long)r->size, strerror(why), (long long)(r->journal.lines.n - (int64_t)r->n_entry));
}

/* Another process changed, renamed or removed the file: further results would be lost at the end. */
static cake_err taken_away(cake_recorder *r, const char *what)
{
    r->broken = true;
    return cake_fail("record",
                     "%s: %s during the run; the run ends because its results would be lost: write to a path "
                     "that nothing else touches, and start again",
                     r->partial, what);
}

/* Checks the file at intervals only, since each check asks the file server. */
static cake_err check_file(cake_recorder *r, bool now)
{
    struct stat ours, there;
    double time = cake_clock_now();
    if (r->fd < 0 || !r->opened || r->broken || r->undone || (!now && time < r->look))
        return CAKE_OK;
    r->look = time + glance;
    if (fstat(r->fd, &ours))
        return broken(r, errno);
    if (stat(r->partial, &there))
        return taken_away(r, errno == ENOENT || errno == ENOTDIR ? "it was removed" : "it cannot be found");
    if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
        return taken_away(r, "another file took its name");
    if (ours.st_size == r->size)
        return CAKE_OK;
    char what[128];
    snprintf(what, sizeof what, "its size changed to %lld bytes from %lld", (long long)ours.st_size,
             (long long)r->size);
    return taken_away(r, what);
}

/* Checks that all results are still as they were written, before RESULTS is made from them. Not possible
 * where it is unknown how far the input was read. */
static cake_err check_content(cake_recorder *r)
{
    cake_journal seen = {0};
    cake_buf unsaid = {0};
    cake_err err = check_file(r, true);
    if (err || !r->read.requests)
        return err;
    cake_buf *before = cake_log_capture(&unsaid);
    bool readable = !cake_journal_read(r->fd, r->partial, &seen);
    cake_log_capture(before);
    cake_buf_free(&unsaid);
    if (!readable)
        err = taken_away(r, "its first line was changed");
    if (!err && (seen.lines.n != r->journal.lines.n || seen.lost != r->journal.lost || seen.torn))
        err = taken_away(r, "results in it were changed");
    cake_journal_free(&seen);
    return err;
}

/* Appends after the last complete group. A failed write leaves no part of the text. */
static cake_err extend(cake_recorder *r, const cake_buf *text)
{
    if (!cake_io_write_at(r->fd, text->data, text->len, r->size)) {
        int why = errno;
        if (ftruncate(r->fd, (off_t)r->size))
            why = errno; /* a partial group stays; readers ignore it */
        return broken(r, why);
    }
    r->size += (int64_t)text->len;
    cake_fsync_thread_dirty(r->sync);
    return CAKE_OK;
}

static void spend(cake_recorder *r, double begin)
{
    r->cost.write += cake_clock_now() - begin;
}

static cake_err write_group(cake_recorder *r)
{
    if (r->broken)
        return CAKE_ERR_FATAL;
    int late = cake_fsync_thread_error(r->sync);
    if (late)
        return broken(r, late);
    cake_err err = check_file(r, false);
    if (err || !r->n_entry)
        return err;
    r->reached.seconds = cake_clock_now() - r->began;
    cake_journal_close(r->entries, r->n_entry, &r->read, &r->reached, &r->group);
    err = extend(r, &r->group);
    if (err)
        return err;
    r->n_entry = 0;
    cake_buf_cut(&r->group, 0);
    return CAKE_OK;
}

cake_err cake_record_flush(cake_recorder *r)
{
    double begin = cake_clock_now();
    cake_err err = write_group(r);
    spend(r, begin);
    return err;
}

const cake_inflight *cake_record_inflight(const cake_recorder *r, int64_t order, int *n)
{
    *n = 0;
    return cake_inflights_get(&r->journal.inflights, order, n);
}

void cake_record_add_inflight(cake_recorder *r, const cake_inflight *part)
{
    /* Lines longer than OWN (1 MiB) are not read back. Assumes at most 24 bytes per score. */
    size_t most = (size_t)(ENOUGH / (12 + 24 * part->width)), left = part->ids.len;
    cake_inflight piece = *part;
    for (; left && !r->stream && !r->broken && !r->undone; left -= piece.ids.len) {
        piece.ids.len = left < most ? left : most;
        if (r->parts.len >= ENOUGH)
            cake_record_checkpoint(r);
        double begin = cake_clock_now();
        if (!r->parts.len)
            cake_journal_open_running(&r->parts);
        else
            cake_buf_adds(&r->parts, ", ");
        cake_inflight_add(&piece, &r->parts);
        piece.at += (int64_t)piece.ids.len;
        piece.ids.id += piece.ids.len;
        if (piece.width)
            piece.logprobs += piece.ids.len * (size_t)piece.width;
        spend(r, begin);
    }
}

cake_err cake_record_checkpoint(cake_recorder *r)
{
    cake_err err = r->undone ? CAKE_ERR_FATAL : cake_record_flush(r);
    if (!r->parts.len)
        return err;
    double begin = cake_clock_now();
    cake_journal_close_running(&r->read, &r->parts);
    err = err ? err : extend(r, &r->parts);
    cake_buf_cut(&r->parts, 0);
    spend(r, begin);
    return err;
}

cake_err cake_journal_writer_append(cake_recorder *r, cake_entry entry, const char *line, size_t len)
{
    if (r->broken || r->undone)
        return CAKE_ERR_FATAL;
    if (!r->entries)
        r->entries = cake_alloc(GROUP, sizeof *r->entries);
    double begin = cake_clock_now();
    if (!r->n_entry)
        r->since = begin;
    cake_line_index_set(&r->journal.lines, entry.order,
                        (cake_line_span){.offset = r->size + (int64_t)r->group.len,
                                         .len = (int64_t)len,
                                         .failed = entry.failed});
    r->journal.failed += entry.failed;
    cake_answered_add(&r->journal.answered, &entry);
    r->entries[r->n_entry++] = entry;
    cake_buf_add(&r->group, line, len);
    spend(r, begin);
    return r->n_entry == GROUP || r->group.len >= ENOUGH ? cake_record_flush(r) : CAKE_OK;
}

cake_err cake_record_tick(cake_recorder *r)
{
    double now = cake_clock_now();
    bool waits = r->n_entry && now - r->since >= moment;
    return !r->broken && (waits || now >= r->look) ? cake_record_flush(r) : CAKE_OK;
}

void cake_record_rollback(cake_recorder *r)
{
    if (r->stream)
        return;
    r->n_entry = 0;
    r->undone = true;
    if (r->fd >= 0 && (!ftruncate(r->fd, (off_t)r->begun) || r->begun <= r->first))
        r->size = r->begun; /* an empty file is removed at close */
}

cake_err cake_journal_writer_refuse_other(const cake_recorder *r)
{
    if (r->options.copies)
        return cake_fail("record",
                         "%s: another process created this file in the meantime; --force overwrites it, or "
                         "name another file with -o",
                         r->results);
    return cake_fail(
        "record",
        "%s: another process created this file since the run began; %lld results are in %s: "
        "move that file away, or give --force, and start the same command again%s",
        r->results, (long long)r->journal.lines.n, r->partial,
        r->options.resume == CAKE_RESUME_NEVER ? ", without --resume never, which would drop them" : "");
}

/* Writes the marks of earlier runs and of this one. */
static void write_job(cake_recorder *r, const cake_file_digest *results, int *why)
{
    size_t n = r->journal.n_mark;
    cake_job job = {.header = r->journal.header,
                    .requests = r->journal.lines.end,
                    .failed = r->journal.failed,
                    .answered = r->journal.answered,
                    .marks = cake_alloc(n + 1, sizeof *job.marks),
                    .results = *results};
    if (n)
        memcpy(job.marks, r->journal.marks, n * sizeof *job.marks);
    if (r->read.requests > (n ? job.marks[n - 1].requests : 0))
        job.marks[n++] = r->read;
    job.n_mark = n;
    *why = cake_job_write(r->job_path, &job);
    free(job.marks);
}

/* RESULTS is made from the checked journal. */
static cake_err make_results(cake_recorder *r)
{
    int64_t missing = cake_line_index_missing(&r->journal.lines);
    if (missing >= 0)
        return cake_fail("record", "%s: request %lld has no result; the file holds the %lld others",
                         r->partial, (long long)missing, (long long)r->journal.lines.n);
    bool new = !r->journal.header.replaces;
    if (new && !access(r->results, F_OK))
        return cake_journal_writer_refuse_other(r);
    cake_buf tmp = {0};
    cake_file_digest written;
    cake_finalize_form form = {
        .convert = r->txt ? cake_line_txt : NULL, .hdf5 = r->hdf5, .pack = r->pack, .command = r->command};
    cake_buf_addf(&tmp, "%s.tmp", r->partial);
    int why = cake_finalize_write(r->fd, &r->journal.lines, &r->journal.header, &form, tmp.data, &written);
    bool there = !why;
    if (!why)
        write_job(r, &written, &why);
    bool job_written = there && !why;
    if (!why && rename(tmp.data, r->results))
        why = errno;
    if (why && there)
        unlink(tmp.data);
    if (why && job_written && r->options.copies) /* the job file would describe no existing file */
        unlink(r->job_path);
    cake_buf_free(&tmp);
    if (why == EBADMSG)
        return cake_fail("record",
                         "%s: a result in it is not JSON although its checksum is right: the file was "
                         "changed by hand; drop it with --force to compute everything again",
                         r->partial);
    if (why && r->options.copies)
        return fail_copy(r, why);
    if (why)
        return cake_fail("record", "%s: cannot be written: %s; all %lld results are in %s", r->results,
                         strerror(why), (long long)r->journal.lines.n, r->partial);
    cake_finalize_fsync_dir(r->results);
    unlink(r->partial);
    r->gone = true;
    return CAKE_OK;
}

cake_err cake_journal_writer_finish(cake_recorder *r)
{
    cake_err err = cake_record_flush(r);
    double begin = cake_clock_now();
    if (!err)
        err = check_content(r);
    if (!err)
        err = make_results(r);
    r->cost.finish = cake_clock_now() - begin;
    return err;
}

void cake_journal_writer_close(cake_recorder *r)
{
    bool ours = r->fd >= 0 && r->opened;
    if (ours && !r->gone && !r->undone)
        cake_record_flush(r);
    cake_fsync_thread_close(r->sync);
    if (ours && !r->gone && r->size <= r->first)
        unlink(r->partial);
    else if (ours && !r->gone)
        (void)fdatasync(r->fd);
    if (r->fd >= 0)
        close(r->fd);
    cake_lock_release(r->lock);
    cake_journal_free(&r->journal);
    cake_buf_free(&r->group);
    cake_buf_free(&r->parts);
    free(r->entries);
    cake_buf_free(&r->resume_message);
    free(r->partial);
    free(r->job_path);
}
