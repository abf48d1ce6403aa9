/* SPDX-License-Identifier: Apache-2.0
 *
 * In: names of result files. Out: lines in input order. Invariant: lines are returned only once it is known
 * that each request has exactly one, and the end is reached only if the files still match their RESULTS.job.
 */
#include "record/shards.h"

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
#include "record/format.h"
#include "record/inspect.h"
#include "record/job.h"
#include "record/unpack.h"

#define BLOCKS      ((size_t)64 << 20) /* bytes of all blocks together; min and max of one */
#define BLOCK_LEAST ((size_t)4 << 10)
#define BLOCK_MOST  ((size_t)1 << 20)
#define LINES_MOST  ((int64_t)1 << 40)

enum { RANGES = 8 }; /* max index ranges in a message */

/* 16 bytes per request. */
typedef struct row {
    int64_t index;
    int64_t len : 63;
    uint64_t failed : 1;
} row;

/* One input file. */
typedef struct part {
    char *results;    /* owned */
    cake_shard shard; /* 0/1 for a whole job */
    bool known;       /* a file identifies its job */
    bool stopped;     /* it is a .partial with this journal */
    cake_job job;     /* header; and, if finished, the rest */
    cake_journal journal;
    char *whole; /* owned: the identity without its shard */
    int fd; /* expanded lines, borrowed; -1: the file itself holds the lines; it is opened for each read */
    int64_t base, bytes; /* offset of the first line in fd; size of all lines */
    uint32_t lines_sum;
    row *rows;        /* [job.requests] */
    int64_t next, at; /* next row; offset of its line */
    uint32_t sum;     /* checksum of the lines returned so far */
    char *block;      /* [block_cap] bytes [block_at, block_at + block_len) of the file */
    size_t block_len, block_cap;
    int64_t block_at;
} part;

struct cake_shards {
    part *parts; /* [n]; sorted by shard once checked */
    int n;
    const char *sibling;     /* output file, or NULL; borrowed */
    cake_unpack_to expanded; /* fd -1: no file needs expansion */
    int64_t turn;            /* shard of the next line */
    int64_t count, failed, order;
    cake_journal_header header; /* owned */
    cake_input_checkpoint mark;
    cake_answered answered; /* total that remains for the lines not returned yet */
    size_t block;
};

void cake_shards_identity(const char *identity, const char *key, const char *value, cake_buf *out)
{
    cake_json *root = NULL;
    cake_fault fault;
    const char *between = "{";
    if (!cake_json_parse(identity, strlen(identity), &root, &fault))
        for (void *it = cake_json_first(root); it; it = cake_json_next(root, it)) {
            size_t len;
            const char *name = cake_json_key(it, &len);
            cake_buf_adds(out, between);
            cake_json_add_text(out, name, len);
            cake_buf_adds(out, ": ");
            if (strcmp(name, key))
                cake_json_add_node(out, cake_json_value(it));
            else
                cake_buf_adds(out, value);
            between = ", ";
        }
    cake_buf_adds(out, *between == '{' ? "{}" : "}");
    cake_json_free(root);
}

/* ---- identify each file */

static cake_err no_shard(const char *results)
{
    return cake_fail("record", "%s: its job does not name its shard; it was written by another version",
                     results);
}

/* Reads the shard, and the identity without it. */
static cake_err know(part *p, const cake_journal_header *header)
{
    cake_json *root = NULL;
    cake_fault fault;
    cake_buf whole = {0};
    cake_err err = CAKE_OK;
    if (cake_json_parse(header->identity, strlen(header->identity), &root, &fault))
        return no_shard(p->results);
    const cake_json *shard = cake_json_get(root, "shard");
    const char *text = cake_json_text(shard, NULL);
    p->shard = (cake_shard){0, 1};
    if (shard && cake_json_kind(shard) != CAKE_JSON_NULL && (!text || !cake_shard_read(text, &p->shard)))
        err = no_shard(p->results);
    cake_json_free(root);
    cake_shards_identity(header->identity, "shard", "null", &whole);
    p->whole = whole.data;
    p->known = !err;
    return err;
}

static cake_err look_at_partial(part *p, const char *path)
{
    struct stat info;
    int fd;
    cake_err err = cake_io_open(path, &fd, &info);
    if (!err) {
        err = cake_journal_read(fd, path, &p->journal);
        close(fd);
    }
    if (err == CAKE_END)
        err = cake_fail("record", "%s: has no results yet", path);
    p->stopped = !err;
    return err ? err : know(p, &p->journal.header);
}

static cake_err look(part *p)
{
    char *partial = cake_io_name(p->results, ".partial"), *job = cake_io_name(p->results, ".job");
    struct stat info;
    cake_err err;
    if (!lstat(partial, &info))
        err = look_at_partial(p, partial);
    else if (stat(p->results, &info))
        err = cake_fail("record", "%s: %s", p->results,
                        errno == ENOENT ? "does not exist, nor does its .partial" : strerror(errno));
    else if (!cake_job_read(job, &p->job))
        err = cake_fail(
            "record",
            "%s: %s, which identifies its job, %s; merge takes results of run together with that file",
            p->results, job, cake_job_fault(job));
    else
        err = know(p, &p->job.header);
    free(partial);
    free(job);
    return err;
}

/* ---- check that they belong together */

/* Missing indices, as ranges with the step of a shard. */
typedef struct ranges {
    cake_buf text;
    int64_t step, first, last, n; /* the open range, if last is not -1; n: number of indices */
    int n_range;
} ranges;

static void end_range(ranges *r)
{
    if (r->last < 0)
        return;
    if (r->n_range == RANGES)
        cake_buf_adds(&r->text, ", ...");
    else if (r->n_range < RANGES)
        cake_buf_addf(&r->text, r->n_range ? ", %" PRId64 : "%" PRId64, r->first);
    if (r->n_range < RANGES && r->last > r->first)
        cake_buf_addf(&r->text, " to %" PRId64, r->last);
    r->n_range++;
    r->last = -1;
}

/* Adds the indices in [from, to) with this step. */
static void add_range(ranges *r, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    int64_t n = (to - from + r->step - 1) / r->step;
    end_range(r);
    r->first = from;
    r->last = from + (n - 1) * r->step;
    r->n += n;
}

/* The index in a line of a journal; -1: unreadable, or none. */
static int64_t index_at(int fd, cake_line_span span, cake_buf *line)
{
    cake_line_info info = {.index = -1};
    cake_buf_room(line, (size_t)span.len);
    if (!cake_io_read_at(fd, line->data, line->len, span.offset) ||
        !cake_line_info_read(line->data, line->len, &info))
        return -1;
    return info.index;
}

/* Reports what an unfinished shard lacks, given the end of the input (line 0: unknown). */
static void say_stopped(const part *p, const cake_input_checkpoint *end)
{
    const cake_line_index *lines = &p->journal.lines;
    char *path = cake_io_name(p->results, ".partial");
    ranges r = {.step = p->shard.of, .last = -1};
    int64_t until = end->line           ? end->line
                    : p->journal.n_mark ? p->journal.marks[p->journal.n_mark - 1].line
                                        : 0;
    int64_t next = p->shard.which;
    cake_buf line = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int64_t i = 0; fd >= 0 && i < lines->end; i++) {
        cake_line_span span = cake_line_index_get(lines, i);
        int64_t index = span.len ? index_at(fd, span, &line) : -1;
        if (index < next || index > LINES_MOST)
            continue;
        add_range(&r, next, index);
        next = index + p->shard.of;
    }
    add_range(&r, next, until);
    end_range(&r);
    char what[64] = "the run";
    if (p->shard.of > 1)
        snprintf(what, sizeof what, "shard %" PRId64 "/%" PRId64, p->shard.which, p->shard.of);
    cake_fail("record",
              "%s: %s is not finished: it has %" PRId64
              " result%s%s%s%s; give its `run` command again to resume it, unless it is still running",
              path, what, lines->n, cake_plural(lines->n),
              r.n ? end->line ? ", and none of index " : ", and of the input it has read none of index " : "",
              r.n ? r.text.data : "", end->line > end->requests ? " (some of these lines are blank)" : "");
    if (fd >= 0)
        close(fd);
    cake_buf_free(&line);
    cake_buf_free(&r.text);
    free(path);
}

/* All finished shards must agree on the end of the input. */
static cake_err find_end(const cake_shards *s, cake_input_checkpoint *end)
{
    const part *first = NULL;
    cake_err err = CAKE_OK;
    *end = (cake_input_checkpoint){0};
    for (int i = 0; i < s->n; i++) {
        const part *p = &s->parts[i];
        if (!p->known || p->stopped)
            continue;
        cake_input_checkpoint mark =
            p->job.n_mark ? p->job.marks[p->job.n_mark - 1] : (cake_input_checkpoint){0};
        if (!first) {
            first = p;
            *end = mark;
        } else if (mark.requests != end->requests || mark.line != end->line || mark.sum != end->sum) {
            err = cake_fail("record",
                            "%s: belongs to an input of %" PRId64 " requests, %s to %s%" PRId64
                            "; if lines were added to the input, run the same command again to do them",
                            p->results, mark.requests, first->results,
                            mark.requests == end->requests ? "another of " : "one of ", end->requests);
        }
    }
    if (!err && end->line > LINES_MOST)
        err = cake_fail("record", "%s: its .job says that the input has %" PRId64 " lines", first->results,
                        end->line);
    return err;
}

/* All files must be of the same job and number of shards as the first one. */
static cake_err compare(const cake_shards *s)
{
    const part *first = NULL;
    cake_err err = CAKE_OK;
    for (int i = 0; i < s->n; i++) {
        const part *p = &s->parts[i];
        cake_buf differs = {0};
        if (!p->known)
            continue;
        if (!first)
            first = p;
        if (p->shard.of != first->shard.of)
            err = cake_fail("record", "%s: is shard %" PRId64 " of %" PRId64 ", but %s is one of %" PRId64,
                            p->results, p->shard.which, p->shard.of, first->results, first->shard.of);
        cake_journal_differs(first->whole, p->whole, &differs);
        if (differs.len)
            err = cake_fail("record", "%s: belongs to another job than %s: %s", p->results, first->results,
                            differs.data);
        cake_buf_free(&differs);
    }
    return err;
}

/* Reports the shards that are not given. */
static cake_err say_missing(int64_t of, const int32_t *who)
{
    ranges r = {.step = 1, .last = -1};
    for (int64_t i = 0; i < of; i++) {
        int64_t from = i;
        while (i < of && who[i] < 0)
            i++;
        add_range(&r, from, i);
    }
    end_range(&r);
    cake_err err = CAKE_OK;
    if (r.n == 1)
        err = cake_fail("record",
                        "shard %s/%" PRId64 " is missing: the requests whose index modulo %" PRId64
                        " is %s have no results",
                        r.text.data, of, of, r.text.data);
    else if (r.n)
        err = cake_fail("record",
                        "%" PRId64 " of the %" PRId64
                        " shards are missing: %s; the requests whose index modulo %" PRId64
                        " is one of these have no results",
                        r.n, of, r.text.data, of);
    cake_buf_free(&r.text);
    return err;
}

/* Sorts the files by shard; each shard must be given exactly once. */
static cake_err arrange(cake_shards *s)
{
    int64_t of = 0;
    bool all_known = true;
    for (int i = 0; i < s->n; i++) {
        of = s->parts[i].known ? s->parts[i].shard.of : of;
        all_known &= s->parts[i].known;
    }
    if (!of)
        return CAKE_ERR_FATAL; /* already reported */
    int32_t *who = cake_alloc((size_t)of, sizeof *who);
    cake_err err = CAKE_OK;
    for (int64_t i = 0; i < of; i++)
        who[i] = -1;
    for (int i = 0; i < s->n; i++) {
        const part *p = &s->parts[i];
        if (p->known && who[p->shard.which] >= 0)
            err = cake_fail("record",
                            "%s and %s: both are shard %" PRId64 "/%" PRId64
                            ": its requests would appear twice",
                            s->parts[who[p->shard.which]].results, p->results, p->shard.which, of);
        if (p->known)
            who[p->shard.which] = i;
    }
    if (!all_known || say_missing(of, who)) /* an unknown file may be the missing shard */
        err = CAKE_ERR_FATAL;
    /* Files that cannot be identified have failed already. */
    part *ordered = err || s->n != of ? NULL : cake_alloc((size_t)of, sizeof *ordered);
    for (int64_t i = 0; ordered && i < of; i++)
        ordered[i] = s->parts[who[i]];
    if (ordered) {
        free(s->parts);
        s->parts = ordered;
    }
    free(who);
    return err;
}

/* ---- read the lines */

static cake_err changed(const part *p)
{
    return cake_fail("record",
                     "%s: was changed since it was written: its size or checksum does not match %s.job; "
                     "write it again with --force, or restore it",
                     p->results, p->results);
}

static cake_err take_line(part *p, const char *line, size_t len, int64_t end, int64_t i)
{
    cake_line_info info;
    int64_t before = i ? p->rows[i - 1].index : -1;
    if (!cake_line_info_read(line, len, &info) || info.index < 0)
        return cake_fail("record", "%s: line %" PRId64 " (from 0) is not a result with an index", p->results,
                         i);
    if (!cake_shard_has(&p->shard, info.index) || info.index <= before || info.index >= end)
        return cake_fail("record",
                         "%s: line %" PRId64 " (from 0) has index %" PRId64 " after %" PRId64
                         ": it is a duplicate, out of order, or not of shard %" PRId64 "/%" PRId64,
                         p->results, i, info.index, before, p->shard.which, p->shard.of);
    p->rows[i] = (row){.index = info.index, .len = (int64_t)len, .failed = info.failed};
    return CAKE_OK;
}

static cake_err read_lines(part *p, FILE *f, int64_t end)
{
    char *line = NULL;
    size_t room = 0;
    uint32_t sum = 0;
    int64_t n = 0, failed = 0;
    cake_err err = CAKE_OK;
    for (ssize_t len; !err && (len = getline(&line, &room, f)) > 0; n++) {
        sum = cake_crc_on(sum, line, (size_t)len);
        err = n == p->job.requests ? changed(p) : take_line(p, line, (size_t)len, end, n);
        failed += !err && p->rows[n].failed;
    }
    free(line);
    if (!err && ferror(f))
        err = cake_fail("record", "%s: cannot be read: %s", p->results, strerror(errno));
    p->lines_sum = sum;
    if (!err && (n != p->job.requests || failed != p->job.failed || (p->fd < 0 && sum != p->job.results.sum)))
        err = changed(p);
    return err;
}

/* Expands compressed or HDF5 files, one after the other, into one temporary file. */
static cake_err expand(cake_shards *s, part *p)
{
    int fd = open(p->results, O_RDONLY | O_CLOEXEC);
    bool right = fd >= 0 && cake_job_holds(&p->job, fd);
    if (fd >= 0)
        close(fd);
    if (!right)
        return changed(p);
    cake_err err = s->expanded.fd < 0 ? cake_unpack_open(s->sibling, &s->expanded) : CAKE_OK;
    if (err)
        return err;
    p->fd = s->expanded.fd;
    p->base = s->expanded.at;
    err = cake_unpack(p->results, p->job.requests, &s->expanded, &p->bytes);
    s->expanded.at += p->bytes;
    /* Drops a partial expansion. The truncation may fail, since the merge fails anyway. */
    if (err)
        (void)!ftruncate(p->fd, (off_t)s->expanded.at);
    return err;
}

/* Opens the lines of a file at their beginning. */
static cake_err open_part(cake_shards *s, part *p, FILE **out)
{
    struct stat info;
    cake_err err = cake_file_check("record", p->results);
    p->fd = -1;
    p->bytes = p->job.results.bytes;
    if (!err && p->job.requests > s->mark.line / p->shard.of + 1)
        err = cake_fail("record",
                        "%s.job: claims %" PRId64 " results, of an input of %" PRId64 " lines and %" PRId64
                        " shards",
                        p->results, p->job.requests, s->mark.line, p->shard.of);
    if (!err && cake_unpack_is_needed(p->results))
        err = expand(s, p);
    if (err)
        return err;
    int fd = p->fd < 0 ? open(p->results, O_RDONLY | O_CLOEXEC) : dup(p->fd);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (!f || fseeko(f, (off_t)p->base, SEEK_SET))
        err = cake_fail("record", "%s: cannot be read: %s", p->results, strerror(errno));
    else if (fstat(fd, &info) || info.st_size != p->base + p->bytes || p->job.requests > p->bytes)
        err = changed(p);
    if (!f && fd >= 0)
        close(fd);
    *out = f;
    return err;
}

static cake_err read_part(cake_shards *s, part *p, int64_t end)
{
    FILE *f = NULL;
    cake_err err = open_part(s, p, &f);
    if (!err) {
        p->rows = cake_alloc((size_t)p->job.requests + 1, sizeof *p->rows);
        err = read_lines(p, f, end);
    }
    if (f)
        fclose(f);
    return err;
}

/* Reads all files. */
static cake_err read_all(cake_shards *s)
{
    cake_err err = CAKE_OK;
    const part *eldest = &s->parts[0];
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[i];
        if (read_part(s, p, s->mark.line))
            err = CAKE_ERR_FATAL; /* go on, to report all errors */
        s->count += p->job.requests;
        s->failed += p->job.failed;
        s->answered.sum += p->job.answered.sum;
        s->answered.unknown |= p->job.answered.unknown;
        eldest = p->job.header.created < eldest->job.header.created ? p : eldest;
    }
    if (!err && s->count != s->mark.requests)
        err =
            cake_fail("record", "the shards have %" PRId64 " results, but the input has %" PRId64 " requests",
                      s->count, s->mark.requests);
    if (err)
        return err;
    s->header = (cake_journal_header){cake_copy(eldest->whole, strlen(eldest->whole)),
                                      cake_copy(eldest->job.header.model, strlen(eldest->job.header.model)),
                                      eldest->job.header.created, eldest->job.header.job, false};
    return CAKE_OK;
}

cake_err cake_shards_open(char *const *paths, int n, const char *sibling, cake_shards **out)
{
    cake_shards *s = cake_alloc(1, sizeof *s);
    *s = (cake_shards){.parts = cake_alloc((size_t)n, sizeof *s->parts), .n = n, .sibling = sibling};
    s->expanded.fd = -1;
    s->block = BLOCKS / (size_t)n < BLOCK_LEAST ? BLOCK_LEAST : BLOCKS / (size_t)n;
    s->block = s->block > BLOCK_MOST ? BLOCK_MOST : s->block;
    cake_err err = CAKE_OK;
    for (int i = 0; i < n; i++) {
        s->parts[i].results = cake_inspect_results(paths[i]);
        if (look(&s->parts[i]))
            err = CAKE_ERR_FATAL; /* go on, to report all errors */
    }
    bool alike = !compare(s); /* shard numbers of different jobs are not comparable */
    if (!alike || find_end(s, &s->mark))
        err = CAKE_ERR_FATAL;
    for (int i = 0; i < n; i++)
        if (s->parts[i].stopped) {
            say_stopped(&s->parts[i], &s->mark);
            err = CAKE_ERR_FATAL;
        }
    if (alike && arrange(s))
        err = CAKE_ERR_FATAL;
    if (!err)
        err = read_all(s);
    if (err) {
        cake_shards_close(s);
        return err;
    }
    *out = s;
    return CAKE_OK;
}

const cake_journal_header *cake_shards_header(const cake_shards *s)
{
    return &s->header;
}

cake_input_checkpoint cake_shards_checkpoint(const cake_shards *s)
{
    return s->mark;
}

int64_t cake_shards_count(const cake_shards *s)
{
    return s->count;
}

int64_t cake_shards_failed(const cake_shards *s)
{
    return s->failed;
}

/* Loads bytes [at, at + len) into the block. The file is opened for each read, since there may be more shards
 * than a process may open files. */
static cake_err fill(part *p, size_t len, size_t block)
{
    if (p->at >= p->block_at && p->at + (int64_t)len <= p->block_at + (int64_t)p->block_len)
        return CAKE_OK;
    int64_t left = p->bytes - p->at;
    size_t n = len > block ? len : block;
    n = (int64_t)n > left ? (size_t)left : n;
    if (n > p->block_cap)
        p->block = cake_grow(p->block, p->block_cap = n, 1);
    int fd = p->fd < 0 ? open(p->results, O_RDONLY | O_CLOEXEC) : p->fd;
    bool done = fd >= 0 && cake_io_read_at(fd, p->block, n, p->base + p->at);
    int why = errno;
    if (fd >= 0 && fd != p->fd)
        close(fd);
    p->block_at = p->at;
    p->block_len = done ? n : 0;
    return done ? CAKE_OK : cake_fail("record", "%s: cannot be read: %s", p->results, strerror(why));
}

/* The shard of the next line: usually the next in turn; where the input has blank lines, the one with the
 * smallest index. */
static part *next_part(cake_shards *s)
{
    part *best = NULL;
    for (int i = 0; i < s->n; i++) {
        part *p = &s->parts[(s->turn + i) % s->n];
        if (p->next == p->job.requests)
            continue;
        int64_t index = p->rows[p->next].index;
        if (!i && index == s->turn)
            return p;
        if (!best || index < best->rows[best->next].index)
            best = p;
    }
    return best;
}

cake_err cake_shards_next(cake_shards *s, cake_entry *entry, const char **line, size_t *len)
{
    part *p = next_part(s);
    if (!p)
        return CAKE_END;
    const row *r = &p->rows[p->next];
    cake_err err = fill(p, (size_t)r->len, s->block);
    if (err)
        return err;
    *line = p->block + (p->at - p->block_at);
    *len = (size_t)r->len;
    *entry = (cake_entry){.order = s->order++, .failed = r->failed, .known = !s->answered.unknown};
    if (!r->failed) { /* only the total matters */
        entry->sum = s->answered.sum;
        s->answered.sum = 0;
    }
    p->sum = cake_crc_on(p->sum, *line, *len);
    p->at += r->len;
    p->next++;
    s->turn = r->index + 1;
    return p->next == p->job.requests && p->sum != p->lines_sum ? changed(p) : CAKE_OK;
}

static void close_part(part *p)
{
    cake_job_free(&p->job);
    cake_journal_free(&p->journal);
    free(p->results);
    free(p->whole);
    free(p->rows);
    free(p->block);
}

void cake_shards_close(cake_shards *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        close_part(&s->parts[i]);
    cake_journal_header_free(&s->header);
    if (s->expanded.fd >= 0)
        close(s->expanded.fd);
    free(s->parts);
    free(s);
}
