/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the text of a topology file. Out: workers and what they claim (workers.c makes ranks and hops of them), or what is
 * wrong and where. The only door to libyaml. run calls.
 *
 * The file is read event by event, and what is not expected ends it: nothing is skipped or kept, so neither depth nor
 * number costs anything, and there are no aliases.
 */
#include "place/topology.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/size.h"
#include "place/workers.h"

/* The names of layers in files of weights: as a model of its own, as part of another, and so before transformers 4.52.
 * The last one is for messages. */
static const char *const prefixes[] = {"model.language_model.layers.", "language_model.model.layers.",
                                       "model.layers."};

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one that was read last */
    const char *text;   /* [len] */
    size_t len;
    cake_worker *worker; /* [n_worker] owned */
    int n_worker, n_rank, n_layer;
    cake_layer_claim *claimed; /* [n_layer] */
    bool ports;
    cake_spot end; /* where one more worker would stand */
    cake_topology_fault *fault;
} reader;

static cake_spot spot(yaml_mark_t mark)
{
    enum { MOST = INT_MAX - 1 };
    return (cake_spot){mark.line < MOST ? (int)mark.line + 1 : MOST,
                       mark.column < MOST ? (int)mark.column + 1 : MOST};
}

static cake_spot here(const reader *r)
{
    return spot(r->event.start_mark);
}

/* Where a byte is, for what libyaml does not say in lines. */
static cake_spot spot_of_byte(const reader *r, size_t offset)
{
    cake_spot at = {1, 1};
    for (size_t i = 0; i < offset && i < r->len; i++) {
        if (r->text[i] == '\n')
            at = (cake_spot){at.line + 1, 1};
        else
            at.column += ((unsigned char)r->text[i] & 0xC0) != 0x80;
    }
    return at;
}

/* The byte at a place in the text; 0: behind its end. */
static char byte_at(const reader *r, yaml_mark_t mark)
{
    size_t i = 0, line = 0, column = 0;
    for (; i < r->len && line < mark.line; i++)
        line += r->text[i] == '\n';
    for (; i < r->len && column < mark.column; i++)
        column += i + 1 == r->len || ((unsigned char)r->text[i + 1] & 0xC0) != 0x80;
    return i < r->len ? r->text[i] : 0;
}

static cake_err not_yaml(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        cake_die("out of memory while a topology file was read");
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_READER_ERROR)
        return cake_workers_fault(r->fault, spot_of_byte(r, p->problem_offset), "this is no text: %s",
                                  problem);
    if (byte_at(r, p->problem_mark) == '\t')
        return cake_workers_fault(r->fault, spot(p->problem_mark), "a tab: YAML is indented by spaces only");
    cake_spot since = spot(p->context_mark);
    if (p->context)
        return cake_workers_fault(r->fault, spot(p->problem_mark),
                                  "this is not YAML: %s, %s that begins in line %d, column %d", problem,
                                  p->context, since.line, since.column);
    return cake_workers_fault(r->fault, spot(p->problem_mark), "this is not YAML: %s", problem);
}

/* Aliases could stand for themselves many times over, and tags ask for other types than are written. */
static cake_err check_plain(reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return cake_workers_fault(r->fault, here(r),
                                  "anchors and aliases are not read: write '&%s' out where it is meant",
                                  cake_workers_show((const char *)anchor, strlen((const char *)anchor)));
    if (tag)
        return cake_workers_fault(r->fault, here(r), "tags are not read: leave '%s' away",
                                  cake_workers_show((const char *)tag, strlen((const char *)tag)));
    return CAKE_OK;
}

/* The next event. */
static cake_err next(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return not_yaml(r);
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return cake_workers_fault(r->fault, here(r),
                                  "anchors and aliases are not read: write out what '*%s' stands for",
                                  cake_workers_show((const char *)r->event.data.alias.anchor,
                                                    strlen((const char *)r->event.data.alias.anchor)));
    case YAML_SCALAR_EVENT:
        return check_plain(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return check_plain(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return check_plain(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag);
    default:
        return CAKE_OK;
    }
}

static const char *found(const reader *r)
{
    switch (r->event.type) {
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_MAPPING_START_EVENT:
        return "a map";
    case YAML_SCALAR_EVENT:
        return r->event.data.scalar.length ? "a single value" : "nothing";
    default:
        return "the end";
    }
}

static const char *value(const reader *r)
{
    return (const char *)r->event.data.scalar.value;
}

static const char *shown(const reader *r)
{
    return cake_workers_show(value(r), r->event.data.scalar.length);
}

static bool is_plain(const reader *r)
{
    return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* A text that is neither empty nor null. what: for messages, as in "host" or "a worker's name". */
static cake_err need_text(reader *r, const char *what)
{
    static const char *const none[] = {"", "~", "null", "Null", "NULL"};
    if (r->event.type != YAML_SCALAR_EVENT)
        return cake_workers_fault(r->fault, here(r), "%s is %s; expected a text", what, found(r));
    size_t len = r->event.data.scalar.length;
    if (strlen(value(r)) != len)
        return cake_workers_fault(r->fault, here(r), "%s has a NUL character in it", what);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if ((is_plain(r) || !len) && !strcmp(value(r), none[i]))
            return cake_workers_fault(r->fault, here(r), "%s is empty; expected a text", what);
    return CAKE_OK;
}

/* A whole number without quotes, 0 or more; of more than nine digits only that it is too large counts. */
static cake_err need_number(reader *r, const char *what, int least, int most, int *out)
{
    bool fine = r->event.type == YAML_SCALAR_EVENT && is_plain(r);
    const char *text = fine ? value(r) : "";
    size_t digits = strspn(text, "0123456789");
    fine = fine && digits && digits == r->event.data.scalar.length;
    int64_t number = digits > 9 ? INT64_MAX : strtoll(text, NULL, 10);
    if (fine && number >= least && number <= most) {
        *out = (int)number;
        return CAKE_OK;
    }
    if (r->event.type != YAML_SCALAR_EVENT)
        return cake_workers_fault(r->fault, here(r), "%s is %s; expected a whole number from %d to %d", what,
                                  found(r), least, most);
    return cake_workers_fault(r->fault, here(r), "%s is %s'%s'; expected a whole number from %d to %d", what,
                              is_plain(r) ? "" : "the text ", shown(r), least, most);
}

/* name:port, [address]:port, or without a port. Ranks are connected by MPI, so that it means nothing. */
static cake_err read_host(reader *r, cake_worker *w)
{
    cake_err err = need_text(r, "host");
    if (err)
        return err;
    const char *host = value(r), *colon = strrchr(host, ':');
    size_t len = strlen(host), skip = *host == '[';
    if (skip) {
        const char *close = strchr(host, ']');
        if (!close || (close[1] && close[1] != ':'))
            return cake_workers_fault(r->fault, here(r), "host '%s': expected '[address]:port'", shown(r));
        len = (size_t)(close - host) - 1;
        colon = close[1] ? close + 1 : NULL;
    } else if (colon && strchr(host, ':') == colon) {
        len = (size_t)(colon - host);
    } else {
        colon = NULL; /* an address of the sixth version, by itself */
    }
    if (colon) {
        size_t digits = strspn(colon + 1, "0123456789");
        long port = digits && digits <= 5 && !colon[1 + digits] ? atol(colon + 1) : 0;
        if (port < 1 || port > 65535)
            return cake_workers_fault(r->fault, here(r),
                                      "host '%s': '%s' is no port; expected 'name:port', or the name alone",
                                      shown(r), cake_workers_show(colon + 1, strlen(colon + 1)));
        r->ports = true;
    }
    if (!len || strcspn(host, " \t\r\n") < strlen(host))
        return cake_workers_fault(r->fault, here(r), "host '%s' is no name of a host", shown(r));
    w->host = cake_copy(host + skip, len);
    w->host_at = here(r);
    return CAKE_OK;
}

/* What cake notes about a worker, for people or for itself. */
static cake_err read_note(reader *r, cake_worker *w)
{
    (void)w;
    return r->event.type == YAML_SCALAR_EVENT
               ? CAKE_OK
               : cake_workers_fault(r->fault, here(r), "this is %s; expected a single value", found(r));
}

static cake_err bad_layers(reader *r)
{
    return cake_workers_fault(
        r->fault, here(r),
        "'%s' names no layers; expected '%s0-7' or '%s8' (also with %s or %s), counted from 0", shown(r),
        prefixes[2], prefixes[2], "model.language_model.layers.", "language_model.model.layers.");
}

/* A number at *text, which is moved behind it; -1: there is none, INT_MAX: it is larger than any layer's. */
static int layer_number(const char **text)
{
    size_t digits = strspn(*text, "0123456789"), zeros = strspn(*text, "0");
    int number = !digits ? -1 : digits - (zeros < digits ? zeros : digits) > 9 ? INT_MAX : atoi(*text);
    *text += digits;
    return number;
}

/* One entry of a list, as "model.layers.0-7". */
static cake_err claim(reader *r, int worker)
{
    cake_err err = need_text(r, "an entry of layers");
    if (err)
        return err;
    const char *text = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !text; i++)
        if (!strncmp(value(r), prefixes[i], strlen(prefixes[i])))
            text = value(r) + strlen(prefixes[i]);
    int first = text ? layer_number(&text) : -1, last = first;
    if (first < 0)
        return bad_layers(r);
    if (*text == '-') {
        text++;
        last = layer_number(&text);
    }
    if (last < 0 || *text)
        return bad_layers(r);
    if (last < first)
        return cake_workers_fault(r->fault, here(r), "'%s' runs backwards; meant is perhaps '%s%d-%d'",
                                  shown(r), prefixes[2], last, first);
    if (last >= r->n_layer)
        return cake_workers_fault(r->fault, here(r), "'%s': the model has %d layers, from 0 to %d", shown(r),
                                  r->n_layer, r->n_layer - 1);
    for (int i = first; i <= last; i++) {
        const cake_layer_claim *other = &r->claimed[i];
        if (other->worker >= 0)
            return cake_workers_fault(
                r->fault, here(r), "'%s': layer %d is worker '%s's already (line %d, column %d)", shown(r), i,
                cake_workers_show(r->worker[other->worker].name, strlen(r->worker[other->worker].name)),
                other->at.line, other->at.column);
        r->claimed[i] = (cake_layer_claim){worker, here(r)};
    }
    return CAKE_OK;
}

static cake_err read_layers(reader *r, cake_worker *w)
{
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return cake_workers_fault(r->fault, here(r), "layers is %s; expected a list, as ['%s0-7']", found(r),
                                  prefixes[2]);
    cake_spot at = here(r);
    cake_err err = next(r);
    for (; !err && r->event.type != YAML_SEQUENCE_END_EVENT; err = err ? err : next(r)) {
        err = claim(r, (int)(w - r->worker));
        w->listed = true;
    }
    if (!err && !w->listed)
        err =
            cake_workers_fault(r->fault, at, "layers is an empty list: this worker would have nothing to do");
    return err;
}

static cake_err read_rank(reader *r, cake_worker *w)
{
    w->rank_at = here(r);
    return need_number(r, "rank", 0, INT_MAX - 1, &w->rank);
}

static cake_err read_threads(reader *r, cake_worker *w)
{
    return need_number(r, "threads", 1, CAKE_TOPOLOGY_THREADS, &w->threads);
}

static cake_err read_kv_memory(reader *r, cake_worker *w)
{
    cake_err err = need_text(r, "kv_memory");
    if (!err && !cake_size_read(value(r), &w->kv_memory))
        err = cake_workers_fault(r->fault, here(r),
                                 "kv_memory is '%s'; expected a size like 512M, 16G or 80%%", shown(r));
    return err;
}

/* The keys of a worker; without a function: meant for later versions. */
static const struct {
    const char *name;
    cake_err (*read)(reader *r, cake_worker *w);
} keys[] = {
    {"host", read_host},
    {"layers", read_layers},
    {"description", read_note},
    {"rank", read_rank},
    {"threads", read_threads},
    {"kv_memory", read_kv_memory},
    {"vram_bytes", read_note},
    {"tflops", read_note},
    {"backend", read_note},
    {"hostname", read_note},
    {"os", read_note},
    {"cpus", NULL},
    {"numa", NULL},
    {"gpu", NULL},
    {"memory", NULL},
    {"replica", NULL},
    {"device", NULL},
};

enum { N_KEY = sizeof keys / sizeof *keys };

/* A key of a worker and what stands behind it. */
static cake_err read_key(reader *r, cake_worker *w, cake_spot *seen)
{
    cake_err err = need_text(r, "a key");
    int key = 0;
    while (!err && key < N_KEY && strcmp(keys[key].name, value(r)))
        key++;
    if (err)
        return err;
    if (key == N_KEY)
        return cake_workers_fault(r->fault, here(r),
                                  "'%s' is no key of a worker; known are host, description, layers, rank, "
                                  "threads, kv_memory",
                                  shown(r));
    if (!keys[key].read)
        return cake_workers_fault(r->fault, here(r), "'%s' is not known to this version: leave it away",
                                  keys[key].name);
    if (seen[key].line)
        return cake_workers_fault(r->fault, here(r),
                                  "'%s' stands twice; the first one is in line %d, column %d", keys[key].name,
                                  seen[key].line, seen[key].column);
    seen[key] = here(r);
    err = next(r);
    return err ? err : keys[key].read(r, w);
}

/* What has to be there is looked for when the worker is complete. */
static cake_err check_worker(reader *r, const cake_worker *w)
{
    const char *name = cake_workers_show(w->name, strlen(w->name));
    if (!w->host && w->rank < 0)
        return cake_workers_fault(r->fault, w->at, "worker '%s' has no host (or rank)", name);
    if (!w->listed && w->rank != 0)
        return cake_workers_fault(r->fault, w->at, "worker '%s' has no layers", name);
    return CAKE_OK;
}

static cake_err read_worker(reader *r)
{
    cake_spot seen[N_KEY] = {{0}};
    cake_err err = need_text(r, "a worker's name");
    for (int i = 0; i < r->n_worker && !err; i++)
        if (!strcmp(r->worker[i].name, value(r)))
            err = cake_workers_fault(r->fault, here(r),
                                     "worker '%s' stands twice; the first one is in line %d, column %d",
                                     shown(r), r->worker[i].at.line, r->worker[i].at.column);
    if (!err && r->n_worker == r->n_rank)
        err = cake_workers_fault(
            r->fault, here(r),
            "worker '%s' is one more than there are ranks, %d; start it with -np %d or more", shown(r),
            r->n_rank, r->n_rank + 1);
    if (err)
        return err;
    cake_worker *w = &r->worker[r->n_worker++];
    *w = (cake_worker){.name = cake_copy(value(r), strlen(value(r))), .at = here(r), .rank = -1};
    err = next(r);
    if (!err && r->event.type != YAML_MAPPING_START_EVENT)
        err = cake_workers_fault(r->fault, here(r), "worker '%s' is %s; expected a map with host and layers",
                                 cake_workers_show(w->name, strlen(w->name)), found(r));
    err = err ? err : next(r);
    while (!err && r->event.type != YAML_MAPPING_END_EVENT) {
        err = read_key(r, w, seen);
        err = err ? err : next(r);
    }
    return err ? err : check_worker(r, w);
}

/* The one document of the file. */
static cake_err read_document(reader *r)
{
    cake_err err = next(r);
    bool nothing = !err && r->event.type == YAML_SCALAR_EVENT && is_plain(r) && !r->event.data.scalar.length;
    if (err || nothing)
        return err;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return cake_workers_fault(r->fault, here(r), "a topology is a map of workers by name; this is %s",
                                  found(r));
    err = next(r);
    while (!err && r->event.type != YAML_MAPPING_END_EVENT) {
        err = read_worker(r);
        err = err ? err : next(r);
    }
    r->end = here(r);
    return err;
}

static cake_err read_file(reader *r)
{
    if (r->len > CAKE_TOPOLOGY_BYTES)
        return cake_workers_fault(r->fault, spot_of_byte(r, CAKE_TOPOLOGY_BYTES),
                                  "a topology has %d bytes at most", CAKE_TOPOLOGY_BYTES);
    cake_err err = next(r); /* the stream's beginning */
    err = err ? err : next(r);
    r->end = (cake_spot){1, 1};
    if (err || r->event.type == YAML_STREAM_END_EVENT)
        return err;
    err = read_document(r);
    err = err ? err : next(r); /* the document's end */
    err = err ? err : next(r);
    if (!err && r->event.type != YAML_STREAM_END_EVENT)
        err = cake_workers_fault(r->fault, here(r), "a second document; a topology has one");
    return err;
}

/* Workers that have ranks become what is said of these, and hops. */
static void fill(const reader *r, cake_topology *out)
{
    *out = (cake_topology){.ports = r->ports};
    out->plan.n_rank = r->n_rank;
    out->plan.hop = cake_alloc((size_t)r->n_layer, sizeof *out->plan.hop);
    out->plan.n_hop = cake_workers_hops(r->worker, r->claimed, r->n_layer, out->plan.hop);
    out->rank = cake_alloc((size_t)r->n_rank, sizeof *out->rank);
    for (int i = 0; i < r->n_worker; i++) {
        const cake_worker *w = &r->worker[i];
        cake_topology_rank *rank = &out->rank[w->rank];
        *rank = (cake_topology_rank){.kv_memory = w->kv_memory, .threads = w->threads, .at = w->at};
        snprintf(rank->worker, sizeof rank->worker, "%s", cake_workers_show(w->name, strlen(w->name)));
    }
}

cake_err cake_topology_parse(const char *text, size_t len, const char *const *hosts, int n_rank, int n_layer,
                             cake_topology *out, cake_topology_fault *fault)
{
    int most = n_rank ? n_rank : n_layer + 1; /* each has a layer of its own, but perhaps rank 0 */
    reader r = {.text = text, .len = len, .n_rank = most, .n_layer = n_layer, .fault = fault};
    if (!yaml_parser_initialize(&r.parser))
        cake_die("out of memory while a topology file was read");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    r.worker = cake_alloc((size_t)most, sizeof *r.worker);
    r.claimed = cake_alloc((size_t)n_layer, sizeof *r.claimed);
    for (int i = 0; i < n_layer; i++)
        r.claimed[i].worker = -1;
    cake_err err = read_file(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (!err)
        r.n_rank = n_rank ? n_rank : cake_workers_ranks(r.worker, r.n_worker);
    if (!err)
        err = cake_workers_match(r.worker, r.n_worker, hosts, r.n_rank, r.end, fault);
    if (!err)
        fill(&r, out);
    for (int i = 0; i < r.n_worker; i++) {
        free(r.worker[i].name);
        free(r.worker[i].host);
    }
    free(r.worker);
    free(r.claimed);
    return err;
}

void cake_topology_free(cake_topology *topology)
{
    cake_plan_free(&topology->plan);
    free(topology->rank);
    *topology = (cake_topology){0};
}

/* In single quotes, which are doubled within; what is not printable would not be read again. */
static void add_quoted(cake_buf *out, const char *text)
{
    cake_buf_addc(out, '\'');
    for (const char *c = text; *c; c++)
        cake_buf_adds(out, *c == '\'' ? "''" : (unsigned char)*c < ' ' || *c == 127 ? "?" : (char[]){*c, 0});
    cake_buf_addc(out, '\'');
}

static void add_layers(const cake_plan *plan, int rank, cake_buf *out)
{
    const char *before = "  layers: [";
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (hop->rank != rank)
            continue;
        cake_buf_addf(out, "%s'%s%d", before, prefixes[2], hop->first);
        if (hop->count > 1)
            cake_buf_addf(out, "-%d", hop->first + hop->count - 1);
        cake_buf_addc(out, '\'');
        before = ", ";
    }
    if (*before == ',')
        cake_buf_adds(out, "]\n");
}

void cake_topology_write(const cake_plan *plan, const cake_topology_rank *rank, const char *const *about,
                         cake_buf *out)
{
    for (int r = 0; r < plan->n_rank; r++) {
        const cake_topology_rank *said = &rank[r];
        if (r == 0 && !said->threads && !said->kv_memory)
            continue; /* what nobody lists is rank 0's */
        cake_buf_addf(out, "\nrank%d:\n  rank: %d\n  description: ", r, r);
        add_quoted(out, about[r]);
        cake_buf_addc(out, '\n');
        if (said->threads)
            cake_buf_addf(out, "  threads: %d\n", said->threads);
        if (said->kv_memory)
            cake_buf_addf(out, "  kv_memory: %lld%s\n", (long long)llabs(said->kv_memory),
                          said->kv_memory < 0 ? "%" : "");
        if (r > 0)
            add_layers(plan, r, out);
    }
}
