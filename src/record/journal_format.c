/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes of a journal. Out: the index of its result lines, and back. Invariant: a group counts only if the
 * checksum in its last line matches all its bytes. That line also holds the group's size, so a damaged group
 * hides no other group.
 */
#include "record/journal_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/io.h"
#include "formats/json.h"

#define BLOCK   ((size_t)1 << 20)
#define OWN     ((size_t)1 << 20) /* max bytes of a line of metadata */
#define BEGINS  "{\"_cake\": {"
#define RUNNING BEGINS "\"running\": ["
#define TAIL    21 /* , "crc": "01234567"}} */

/* ---- headers */

void cake_journal_header_copy(cake_journal_header *into, const cake_journal_header *from)
{
    const char *identity = from->identity ? from->identity : "{}", *model = from->model ? from->model : "";
    *into = *from;
    into->identity = cake_copy(identity, strlen(identity));
    into->model = cake_copy(model, strlen(model));
}

void cake_journal_header_free(cake_journal_header *header)
{
    free(header->identity);
    free(header->model);
    *header = (cake_journal_header){0};
}

void cake_journal_header_add(const cake_journal_header *header, cake_buf *out)
{
    cake_buf_addf(out, "\"created\": %" PRId64 ", \"job\": \"%016" PRIx64 "\"", header->created, header->job);
    cake_json_put_text(out, ", \"model\": ", header->model);
    if (header->replaces)
        cake_buf_adds(out, ", \"replaces\": true");
    cake_buf_adds(out, ", \"identity\": ");
    cake_buf_adds(out, header->identity);
}

bool cake_journal_hex(const cake_json *node, size_t digits, uint64_t *out)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    if (!text || len != digits || strspn(text, "0123456789abcdef") != digits)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

bool cake_journal_header_parse(const cake_json *object, cake_journal_header *header)
{
    cake_journal_header parsed = {0};
    const cake_json *identity = cake_json_get(object, "identity");
    const char *model = cake_json_text(cake_json_get(object, "model"), NULL);
    const cake_json *created = cake_json_get(object, "created"); /* negative if the clock was never set */
    parsed.created = cake_json_int(created, 0);
    parsed.replaces = cake_json_bool(cake_json_get(object, "replaces"), false);
    if (cake_json_kind(identity) != CAKE_JSON_OBJECT || !model || cake_json_kind(created) != CAKE_JSON_INT ||
        !cake_journal_hex(cake_json_get(object, "job"), 16, &parsed.job))
        return false;
    cake_buf text = {0};
    cake_json_add_node(&text, identity);
    parsed.identity = text.data;
    parsed.model = cake_copy(model, strlen(model));
    *header = parsed;
    return true;
}

static void add_value(const cake_json *node, cake_buf *out)
{
    enum { SHOWN = 60 };
    size_t before = out->len;
    if (!node) {
        cake_buf_adds(out, "not set");
        return;
    }
    if (cake_json_kind(node) == CAKE_JSON_REAL && !cake_json_digits(node, &(size_t){0}))
        cake_json_add_real(out, cake_json_real(node, 0));
    else
        cake_json_add_node(out, node);
    if (out->len - before > SHOWN) {
        cake_buf_cut(out, before + SHOWN);
        cake_buf_adds(out, "...");
    }
}

static bool same_node(const cake_json *a, const cake_json *b)
{
    cake_buf left = {0}, right = {0};
    if (a)
        cake_json_add_node(&left, a);
    if (b)
        cake_json_add_node(&right, b);
    bool same = left.len == right.len && (!left.len || !memcmp(left.data, right.data, left.len));
    cake_buf_free(&left);
    cake_buf_free(&right);
    return same;
}

static void differ(const char *key, const cake_json *was, const cake_json *is, cake_buf *out)
{
    cake_buf_addf(out, "%s%s was ", out->len ? ", " : "", key);
    add_value(was, out);
    cake_buf_adds(out, " and is ");
    add_value(is, out);
}

void cake_journal_differs(const char *was, const char *is, cake_buf *out)
{
    cake_json *a = NULL, *b = NULL;
    cake_fault fault;
    if (cake_json_parse(was, strlen(was), &a, &fault) || cake_json_parse(is, strlen(is), &b, &fault)) {
        cake_buf_adds(out, "its description cannot be read");
    } else {
        for (void *it = cake_json_first(b); it; it = cake_json_next(b, it)) {
            const char *key = cake_json_key(it, NULL);
            if (!same_node(cake_json_get(a, key), cake_json_value(it)))
                differ(key, cake_json_get(a, key), cake_json_value(it), out);
        }
        for (void *it = cake_json_first(a); it; it = cake_json_next(a, it))
            if (!cake_json_get(b, cake_json_key(it, NULL)))
                differ(cake_json_key(it, NULL), cake_json_value(it), NULL, out);
    }
    cake_json_free(a);
    cake_json_free(b);
}

/* ---- marks */

static void add_mark(const cake_input_checkpoint *mark, cake_buf *out)
{
    cake_buf_addf(out, "[%" PRId64 ", %" PRId64 ", %" PRIu32 "]", mark->requests, mark->line, mark->sum);
}

void cake_journal_add_checkpoints(const cake_input_checkpoint *marks, size_t n, size_t most, cake_buf *out)
{
    size_t step = n / most + 1;
    cake_buf_addc(out, '[');
    for (size_t i = 0; i < n; i++)
        if (i == n - 1 || i % step == step - 1) {
            cake_buf_adds(out, out->data[out->len - 1] == '[' ? "" : ", ");
            add_mark(&marks[i], out);
        }
    cake_buf_addc(out, ']');
}

static bool read_mark(const cake_json *node, cake_input_checkpoint *mark)
{
    int64_t sum = cake_json_int(cake_json_at(node, 2), -1);
    mark->requests = cake_json_int(cake_json_at(node, 0), -1);
    mark->line = cake_json_int(cake_json_at(node, 1), -1);
    mark->sum = (uint32_t)sum;
    return mark->requests >= 0 && mark->requests <= CAKE_JOURNAL_MAX && mark->line >= mark->requests &&
           sum >= 0 && sum <= UINT32_MAX;
}

static void push_mark(cake_input_checkpoint **marks, size_t *n, const cake_input_checkpoint *mark)
{
    if (!(*n & (*n - 1))) /* capacity doubles at each power of two */
        *marks = cake_grow(*marks, *n ? 2 * *n : 1, sizeof **marks);
    (*marks)[(*n)++] = *mark;
}

bool cake_journal_parse_checkpoints(const cake_json *array, cake_input_checkpoint **marks, size_t *n)
{
    cake_input_checkpoint mark, *all = NULL;
    size_t count = 0;
    bool right = cake_json_kind(array) == CAKE_JSON_ARRAY;
    for (size_t i = 0; right && i < cake_json_size(array); i++) {
        right =
            read_mark(cake_json_at(array, i), &mark) && mark.requests > (count ? all[count - 1].requests : 0);
        if (right)
            push_mark(&all, &count, &mark);
    }
    if (!right) {
        free(all);
        return false;
    }
    *marks = all;
    *n = count;
    return true;
}

/* ---- answered lines */

void cake_answered_add(cake_answered *answered, const cake_entry *entry)
{
    answered->unknown |= !entry->failed && !entry->known;
    answered->sum += entry->failed ? 0 : entry->sum;
}

/* Adds the checksum of a group. It is unknown in groups of earlier versions and where an answer replaced
 * another. */
static void take_answered(const cake_json *own, const cake_json *orders, const cake_json *failed,
                          cake_journal *j)
{
    uint64_t sum = 0;
    bool any = cake_json_size(orders) > cake_json_size(failed);
    j->answered.unknown |= any && !cake_journal_hex(cake_json_get(own, "answered"), 16, &sum);
    j->answered.sum += sum;
}

/* ---- writing */

/* Ends a line of metadata with the checksum of out[from..]. */
static void add_sum(cake_buf *out, size_t from)
{
    cake_buf_addf(out, ", \"crc\": \"%08" PRIx32 "\"}}\n", cake_crc(out->data + from, out->len - from));
}

void cake_journal_begin(const cake_journal_header *header, cake_buf *out)
{
    size_t from = out->len;
    cake_buf_adds(out, BEGINS "\"journal\": 1, ");
    cake_journal_header_add(header, out);
    add_sum(out, from);
}

static void add_known(double value, int digits, cake_buf *out)
{
    if (value >= 0)
        cake_buf_addf(out, "%.*f", digits, value);
    else
        cake_buf_adds(out, "null");
}

void cake_journal_close(const cake_entry *entries, size_t n, const cake_input_checkpoint *read,
                        const cake_reached *reached, cake_buf *out)
{
    const char *between = "";
    cake_buf_addf(out, BEGINS "\"group\": %zu, \"orders\": [", out->len);
    for (size_t i = 0; i < n; i++)
        cake_buf_addf(out, "%s%" PRId64, i ? ", " : "", entries[i].order);
    cake_buf_adds(out, "], \"failed\": [");
    for (size_t i = 0; i < n; i++)
        if (entries[i].failed) {
            cake_buf_addf(out, "%s%" PRId64, between, entries[i].order);
            between = ", ";
        }
    cake_answered answered = {0};
    for (size_t i = 0; i < n; i++)
        cake_answered_add(&answered, &entries[i]);
    cake_buf_adds(out, "], ");
    if (!answered.unknown)
        cake_buf_addf(out, "\"answered\": \"%016" PRIx64 "\", ", answered.sum);
    cake_buf_adds(out, "\"read\": ");
    add_mark(read, out);
    if (reached->run > 0) {
        cake_buf_addf(out, ", \"at\": [%" PRId64 ", %.2f, ", reached->run, reached->seconds);
        add_known(reached->share, 6, out);
        cake_buf_adds(out, ", ");
        add_known(reached->left, 1, out);
        cake_buf_addc(out, ']');
    }
    add_sum(out, 0);
}

void cake_journal_open_running(cake_buf *out)
{
    cake_buf_adds(out, RUNNING);
}

void cake_journal_close_running(const cake_input_checkpoint *read, cake_buf *out)
{
    cake_buf_adds(out, "], \"read\": ");
    add_mark(read, out);
    add_sum(out, 0);
}

/* ---- reading */

/* Reads a file line by line; of a long line only OWN bytes. */
typedef struct scan {
    int fd;
    int64_t size, at; /* of the file; offset of the next line */
    cake_buf line;    /* the text without newline, truncated to OWN bytes */
    char *block;      /* [BLOCK] bytes [block_at, block_at + block_len) of the file */
    int64_t block_at;
    size_t block_len;
} scan;

/* False: read error. */
static bool fill(scan *s, int64_t at)
{
    if (at >= s->block_at && at < s->block_at + (int64_t)s->block_len)
        return true;
    s->block_at = at;
    s->block_len = s->size - at < (int64_t)BLOCK ? (size_t)(s->size - at) : BLOCK;
    return cake_io_read_at(s->fd, s->block, s->block_len, at);
}

/* 1: a line was read; 0: no complete line is left; -1: read error. *from: its offset. */
static int next_line(scan *s, int64_t *from)
{
    *from = s->at;
    cake_buf_cut(&s->line, 0);
    for (int64_t at = s->at; at < s->size;) {
        if (!fill(s, at))
            return -1;
        const char *text = s->block + (at - s->block_at);
        size_t left = s->block_len - (size_t)(at - s->block_at);
        const char *end = memchr(text, '\n', left);
        size_t n = end ? (size_t)(end - text) : left, room = OWN - s->line.len;
        cake_buf_add(&s->line, text, n < room ? n : room);
        at += (int64_t)n;
        if (end) {
            s->at = at + 1;
            return 1;
        }
    }
    return 0;
}

/* Continues a checksum over bytes [from, to) of the file. */
static bool sum_range(scan *s, int64_t from, int64_t to, uint32_t *sum)
{
    while (from < to) {
        if (!fill(s, from))
            return false;
        int64_t until = s->block_at + (int64_t)s->block_len;
        size_t n = (size_t)((until < to ? until : to) - from);
        *sum = cake_crc_on(*sum, s->block + (from - s->block_at), n);
        from += (int64_t)n;
    }
    return true;
}

/* Parses a line of metadata whose checksum, continued from `before`, is right; else NULL. */
static cake_json *parse_own(const cake_buf *line, uint32_t before)
{
    cake_json *root = NULL;
    cake_fault fault;
    uint64_t sum;
    size_t begins = strlen(BEGINS);
    if (line->len < begins + TAIL || line->len >= OWN || memcmp(line->data, BEGINS, begins) ||
        cake_json_parse(line->data, line->len, &root, &fault))
        return NULL;
    const cake_json *crc = cake_json_get(cake_json_get(root, "_cake"), "crc");
    if (cake_journal_hex(crc, 8, &sum) && sum == cake_crc_on(before, line->data, line->len - TAIL))
        return root;
    cake_json_free(root);
    return NULL;
}

/* Number of bytes before it that a group's last line covers; -1: not such a line. */
static int64_t covered(const cake_buf *line)
{
    static const char group[] = BEGINS "\"group\": ";
    size_t len = sizeof group - 1;
    char *end;
    if (line->len < len + 2 || memcmp(line->data, group, len))
        return -1;
    int64_t bytes = strtoll(line->data + len, &end, 10);
    return *end == ',' && bytes >= 0 ? bytes : -1;
}

/* Takes the progress from a group's last line. Call it after its result lines were added. */
static void take_reached(const cake_json *at, cake_journal *j)
{
    cake_reached now = {cake_json_int(cake_json_at(at, 0), 0), cake_json_real(cake_json_at(at, 1), -1),
                        cake_json_real(cake_json_at(at, 2), -1), cake_json_real(cake_json_at(at, 3), -1)};
    if (now.run <= 0 || !(now.seconds >= 0) || now.share > 1)
        return;
    if (now.run != j->last.run) {
        j->first = now;
        j->first_n = j->lines.n;
    }
    j->last = now;
}

/* Checks a group's numbers: orders are below the requests read so far, and each failure is one of them. */
static bool is_sound(const cake_json *orders, const cake_json *failed, const cake_input_checkpoint *read)
{
    size_t n_failed = cake_json_size(failed), f = 0;
    for (size_t i = 0; i < cake_json_size(orders); i++) {
        int64_t order = cake_json_int(cake_json_at(orders, i), -1);
        if (order < 0 || order >= read->requests)
            return false;
        f += f < n_failed && cake_json_int(cake_json_at(failed, f), -1) == order;
    }
    return f == n_failed;
}

/* A later result replaces an earlier one: the request was redone. */
static void put_place(cake_journal *j, int64_t order, cake_line_span span)
{
    cake_line_span before = cake_line_index_get(&j->lines, order);
    if (before.len) {
        j->answered.unknown |= !before.failed;
        j->failed -= before.failed;
        cake_line_index_drop(&j->lines, order);
    }
    j->failed += span.failed;
    cake_line_index_set(&j->lines, order, span);
    cake_inflights_drop(&j->inflights, order);
}

/* Counts the lines in [from, to) and, if j is not NULL, adds them to its index. */
static bool walk(scan *s, int64_t from, int64_t to, const cake_json *orders, const cake_json *failed,
                 cake_journal *j, size_t *n)
{
    size_t f = 0;
    *n = 0;
    for (int64_t begin = from, at = from; at < to;) {
        if (!fill(s, at))
            return false;
        const char *text = s->block + (at - s->block_at);
        int64_t left = s->block_at + (int64_t)s->block_len - at;
        left = left < to - at ? left : to - at;
        const char *end = memchr(text, '\n', (size_t)left);
        at += end ? end - text + 1 : left;
        if (!end)
            continue;
        if (j) {
            int64_t order = cake_json_int(cake_json_at(orders, *n), -1);
            bool is_failed = cake_json_int(cake_json_at(failed, f), -1) == order;
            f += is_failed;
            put_place(j, order, (cake_line_span){.offset = begin, .len = at - begin, .failed = is_failed});
        }
        begin = at;
        ++*n;
    }
    return true;
}

/* Accepts the bytes [from, end) of a group or checkpoint; bytes skipped before them were damaged. */
static void accept_bytes(cake_journal *j, int64_t from, int64_t end, const cake_input_checkpoint *read)
{
    j->lost += from - j->end;
    j->end = end;
    if (read->requests > (j->n_mark ? j->marks[j->n_mark - 1].requests : 0))
        push_mark(&j->marks, &j->n_mark, read);
}

/* Reads the group whose last line begins at `at`. -1: read error. */
static int take_group(scan *s, cake_journal *j, int64_t at)
{
    int64_t bytes = covered(&s->line), from = at - bytes, end = s->at;
    uint32_t sum = 0;
    if (bytes < 0 || from < j->end)
        return 0;
    if (!sum_range(s, from, at, &sum))
        return -1;
    cake_json *root = parse_own(&s->line, sum);
    const cake_json *own = cake_json_get(root, "_cake"), *orders = cake_json_get(own, "orders");
    const cake_json *failed = cake_json_get(own, "failed");
    cake_input_checkpoint read;
    size_t n;
    int took = 0;
    if (root && read_mark(cake_json_get(own, "read"), &read) && is_sound(orders, failed, &read)) {
        if (!walk(s, from, at, NULL, NULL, NULL, &n))
            took = -1;
        else if (n == cake_json_size(orders))
            took = walk(s, from, at, orders, failed, j, &n) ? 1 : -1;
    }
    if (took > 0) {
        take_answered(own, orders, failed, j);
        accept_bytes(j, from, end, &read);
        take_reached(cake_json_get(own, "at"), j);
    }
    cake_json_free(root);
    return took;
}

static bool is_running(const cake_buf *line)
{
    size_t len = strlen(RUNNING);
    return line->len > len && !memcmp(line->data, RUNNING, len);
}

/* Reads the line of unfinished answers at `at`. It stands between groups, so unclaimed bytes before it are
 * damaged. */
static void take_running(const scan *s, cake_journal *j, int64_t at)
{
    cake_json *root = parse_own(&s->line, 0);
    const cake_json *own = cake_json_get(root, "_cake"), *parts = cake_json_get(own, "running");
    cake_input_checkpoint read;
    if (root && read_mark(cake_json_get(own, "read"), &read)) {
        for (size_t i = 0; i < cake_json_size(parts); i++) {
            cake_inflight part;
            if (!cake_inflight_parse(cake_json_at(parts, i), &part))
                continue;
            if (part.order < read.requests && !cake_line_index_get(&j->lines, part.order).len)
                cake_inflights_put(&j->inflights, &part);
            else
                cake_inflight_free(&part);
        }
        accept_bytes(j, at, s->at, &read);
    }
    cake_json_free(root);
}

static cake_err unreadable(const char *path)
{
    return cake_fail("record", "%s: cannot be read: %s", path, strerror(errno));
}

static cake_err no_journal(const char *path, const char *why)
{
    return cake_fail("record",
                     "%s: %s: it cannot be resumed; keep it under another name, or drop it with --force",
                     path, why);
}

/* Parses the first line. */
static cake_err read_head(scan *s, const char *path, cake_journal *j)
{
    int64_t from;
    size_t begins = strlen(BEGINS);
    int got = next_line(s, &from);
    if (got < 0)
        return unreadable(path);
    const cake_buf *line = &s->line;
    if (!got && line->len < OWN &&
        !memcmp(line->data ? line->data : "", BEGINS, line->len < begins ? line->len : begins))
        return CAKE_END;
    if (!got || line->len < begins || memcmp(line->data, BEGINS, begins))
        return no_journal(path, "is not a journal of cake-mpi");
    cake_json *root = parse_own(line, 0);
    const cake_json *own = cake_json_get(root, "_cake");
    int64_t version = cake_json_int(cake_json_get(own, "journal"), -1);
    cake_err err = CAKE_OK;
    if (!root)
        err = no_journal(path, "its first line, which identifies its job, is damaged");
    else if (version != 1 || !cake_journal_header_parse(own, &j->header))
        err = no_journal(path, "was written by another version");
    cake_json_free(root);
    j->end = s->at;
    return err;
}

static cake_err open_scan(int fd, const char *path, scan *s)
{
    struct stat info;
    *s = (scan){.fd = fd};
    if (fstat(fd, &info))
        return unreadable(path);
    s->size = info.st_size;
    s->block = cake_alloc(BLOCK, 1);
    return CAKE_OK;
}

static void close_scan(scan *s)
{
    free(s->block);
    cake_buf_free(&s->line);
}

cake_err cake_journal_read(int fd, const char *path, cake_journal *out)
{
    scan s;
    int64_t from;
    int got = 0;
    cake_journal j = {0};
    cake_err err = open_scan(fd, path, &s);
    if (!err)
        err = read_head(&s, path, &j);
    while (!err && (got = next_line(&s, &from)) > 0) {
        int64_t end = s.at;
        if (is_running(&s.line))
            take_running(&s, &j, from);
        if (covered(&s.line) >= 0 && take_group(&s, &j, from) < 0)
            got = -1;
        s.at = end;
        if (got < 0)
            break;
    }
    if (!err && got < 0)
        err = unreadable(path);
    j.torn = s.size - j.end;
    close_scan(&s);
    if (err) {
        cake_journal_free(&j);
        return err;
    }
    *out = j;
    return CAKE_OK;
}

bool cake_journal_peek(int fd, cake_journal_header *header)
{
    scan s;
    int64_t from;
    bool right = false;
    if (open_scan(fd, "", &s))
        return false;
    if (next_line(&s, &from) > 0) {
        cake_json *root = parse_own(&s.line, 0);
        right = cake_journal_header_parse(cake_json_get(root, "_cake"), header);
        cake_json_free(root);
    }
    close_scan(&s);
    return right;
}

void cake_journal_free(cake_journal *j)
{
    cake_journal_header_free(&j->header);
    cake_line_index_free(&j->lines);
    cake_inflights_free(&j->inflights);
    free(j->marks);
    *j = (cake_journal){0};
}
