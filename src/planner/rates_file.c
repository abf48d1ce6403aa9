/* SPDX-License-Identifier: Apache-2.0
 *
 * In: JSON lines of `bench peak`, or of an earlier run. Out: the rates of n ranks; lines for later runs.
 * Invariant: a line counts for a rank only with its number of threads, and for products only with its
 * instruction set; a line of the rank's own host beats one of another host.
 */
#include "planner/rates_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "formats/json.h"

enum { BYTES = 64 << 20 };

typedef struct lines {
    const char *path, *isa, *name[2]; /* names of the lines: products, memory reads */
    int n;
    cake_rate *rate;
    char host[64];   /* of the latest line that counts; empty: none yet */
    bool many_hosts; /* there are lines of several hosts */
    int threads;     /* the maximum of any line */
    double *any[2];  /* [n] rate on any host, for ranks whose host has no line */
} lines;

/* avx512bf16 has the float32 and int8 arithmetic of avx512. */
static bool same_isa(const char *wanted, const char *isa)
{
    return isa && !strncmp(wanted, isa, strlen(wanted));
}

static cake_err read_line(lines *l, const cake_json *line, int number)
{
    const char *name = cake_json_text(cake_json_get(line, "name"), NULL);
    const char *host = cake_json_text(cake_json_get(line, "host"), NULL);
    const char *isa = cake_json_text(cake_json_get(line, "isa"), NULL);
    int64_t threads = cake_json_int(cake_json_get(line, "threads"), 0);
    double value = 1e9 * cake_json_real(cake_json_get(line, "value"), NAN);
    int which = name && !strcmp(name, l->name[1]);
    if (!name || !host || threads < 1)
        return cake_fail(
            "planner",
            "%s:%d: expected a line of `cake-mpi bench peak -o FILE.json`: an object with name, host, "
            "threads and value",
            l->path, number);
    if (strcmp(name, l->name[which]) || (!which && !same_isa(l->isa, isa)))
        return CAKE_OK;
    if (!(value >= 1 && value <= 1e21)) /* NaN fails both comparisons */
        return cake_fail(
            "planner",
            "%s:%d: value: expected a number above 0, from a billionth to a trillion of GFLOP/s or GB/s",
            l->path, number);
    l->threads = threads > l->threads && threads <= INT_MAX ? (int)threads : l->threads;
    l->many_hosts = l->many_hosts || (*l->host && strcmp(l->host, host));
    strncpy(l->host, host, sizeof l->host - 1);
    for (int i = 0; i < l->n; i++) {
        cake_rate *rate = &l->rate[i];
        if (rate->cpus != threads)
            continue;
        l->any[which][i] = value;
        if (!strcmp(rate->host, host))
            *(which ? &rate->bytes : &rate->flops) = value;
    }
    return CAKE_OK;
}

static cake_err read_lines(lines *l, const cake_buf *text)
{
    int number = 1;
    for (size_t at = 0; at < text->len; number++) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
        size_t len = end ? (size_t)(end - line) : text->len - at;
        cake_json *node = NULL;
        cake_fault fault = {0};
        at += len + 1;
        if (!len)
            continue;
        if (cake_json_parse(line, len, &node, &fault))
            return cake_fail(
                "planner",
                "%s:%d: %s; expected JSON lines, as `cake-mpi bench peak -o FILE.json` writes them", l->path,
                number, fault.message);
        cake_err err = read_line(l, node, number);
        cake_json_free(node);
        if (err)
            return err;
    }
    return CAKE_OK;
}

/* Ranks whose host has no line take the rate of the file's only host. */
static cake_err fill_missing(const lines *l)
{
    for (int i = 0; i < l->n; i++)
        for (int which = 0; which < 2; which++) {
            cake_rate *rate = &l->rate[i];
            double *value = which ? &rate->bytes : &rate->flops;
            if (*value <= 0 && !l->many_hosts)
                *value = l->any[which][i];
            if (*value <= 0)
                return cake_fail("planner",
                                 "%s has no %s of %s with %d thread%s on %s; "
                                 "measure it there: cake-mpi bench peak --isa %s --threads %d -o FILE.json",
                                 l->path, l->name[which], l->isa, rate->cpus, rate->cpus == 1 ? "" : "s",
                                 rate->host, l->isa, rate->cpus);
        }
    return CAKE_OK;
}

/* Takes the rates of lines with the rank's own host. text: the file, empty if it is optional and absent. */
static cake_err read_file(lines *l, cake_peak_kind products, bool optional, cake_buf *text)
{
    l->name[0] = cake_peak_name(products);
    l->name[1] = cake_peak_name(CAKE_PEAK_READ);
    cake_err err = cake_file_read("planner", l->path, optional, BYTES, text);
    if (err && !(optional && err == CAKE_END))
        return err;
    for (int i = 0; i < 2; i++)
        l->any[i] = cake_alloc((size_t)l->n, sizeof *l->any[i]);
    for (int i = 0; i < l->n; i++)
        l->rate[i].flops = l->rate[i].bytes = 0;
    return read_lines(l, text);
}

static void close_lines(lines *l)
{
    free(l->any[0]);
    free(l->any[1]);
}

cake_err cake_rates_file_read(const char *path, const char *isa, cake_peak_kind products, int n,
                              cake_rate *rate, int *threads)
{
    cake_buf text = {0};
    lines l = {.path = path, .isa = isa, .n = n, .rate = rate};
    cake_err err = read_file(&l, products, false, &text);
    if (!err)
        err = fill_missing(&l);
    *threads = l.threads;
    cake_buf_free(&text);
    close_lines(&l);
    return err;
}

cake_err cake_rates_file_recall(const char *path, const char *isa, cake_peak_kind products, int n,
                                cake_rate *rate, bool *all)
{
    cake_buf text = {0};
    lines l = {.path = path, .isa = isa, .n = n, .rate = rate};
    cake_err err = read_file(&l, products, true, &text);
    *all = !err;
    for (int i = 0; i < n; i++)
        *all = *all && rate[i].flops > 0 && rate[i].bytes > 0;
    for (int i = 0; i < n && !*all; i++)
        rate[i].flops = rate[i].bytes = 0;
    cake_buf_free(&text);
    close_lines(&l);
    return err;
}

static void add_line(cake_buf *out, const lines *l, int which, const cake_rate *rate)
{
    cake_json_put_text(out, "{\"name\": ", l->name[which]);
    cake_json_put_text(out, ", \"isa\": ", l->isa);
    cake_json_put_text(out, ", \"host\": ", rate->host);
    cake_buf_addf(out, ", \"threads\": %d, \"value\": %.6g, \"unit\": \"%s\"", rate->cpus,
                  1e-9 * (which ? rate->bytes : rate->flops), which ? "GB/s" : "GFLOP/s");
    cake_json_put_text(out, ", \"version\": ", cake_version());
    cake_buf_adds(out, "}\n");
}

/* Appends what the file lacks: known [n] is what it has. */
static void add_missing(const lines *l, const cake_rate *known, cake_buf *text)
{
    if (text->len && text->data[text->len - 1] != '\n')
        cake_buf_addc(text, '\n');
    for (int i = 0; i < l->n; i++) {
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || cake_rates_same(2, (cake_rate[]){l->rate[j], l->rate[i]});
        if (!again && known[i].flops <= 0)
            add_line(text, l, 0, &l->rate[i]);
        if (!again && known[i].bytes <= 0)
            add_line(text, l, 1, &l->rate[i]);
    }
}

/* Puts a file in the place of another under a name of this run's own first: runs that keep rates at the same
 * time do not mix. Returns an errno. */
static int replace(const char *path, const char *host, const cake_buf *text)
{
    cake_buf name = {0};
    struct stat info;
    if (!stat(path, &info) && !S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    char *real = realpath(path, NULL); /* NULL: there is none yet */
    const char *to = real ? real : path;
    cake_buf_addf(&name, "%s.%s-%ld.tmp", to, host, (long)getpid());
    FILE *file = fopen(name.data, "w");
    int error = file ? 0 : errno;
    if (file && fwrite(text->data, 1, text->len, file) != text->len)
        error = errno;
    if (file && fclose(file) && !error)
        error = errno;
    if (!error && rename(name.data, to))
        error = errno;
    if (error && file)
        unlink(name.data);
    cake_buf_free(&name);
    free(real);
    return error;
}

cake_err cake_rates_file_keep(const char *path, const char *isa, cake_peak_kind products, int n,
                              const cake_rate *rate)
{
    cake_buf text = {0};
    cake_rate *known = cake_alloc((size_t)n, sizeof *known), *measured = cake_alloc((size_t)n, sizeof *known);
    lines l = {.path = path, .isa = isa, .n = n, .rate = known};
    memcpy(known, rate, (size_t)n * sizeof *known);
    memcpy(measured, rate, (size_t)n * sizeof *known);
    cake_err err = read_file(&l, products, true, &text); /* another run may have added some */
    l.rate = measured;
    if (!err) {
        add_missing(&l, known, &text);
        int error = replace(path, rate[0].host, &text);
        if (error)
            cake_log(CAKE_WARN, "planner", "--keep-rates: speeds cannot be written to %s: %s", path,
                     strerror(error));
    }
    cake_buf_free(&text);
    close_lines(&l);
    free(known);
    free(measured);
    return err;
}
