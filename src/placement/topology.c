/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the text of a topology file. Out: workers and the layers that they list (topology_workers.c turns them
 * into ranks and hops), or an error with its position.
 */
#include "placement/topology.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "formats/yaml.h"
#include "placement/pci_devices.h"
#include "placement/topology_workers.h"

/* Names of layers in weight files: of a part of a larger model, the same before transformers 4.52, of a model
 * of its own. The last one is for messages. */
static const char *const prefixes[] = {"model.language_model.layers.", "language_model.model.layers.",
                                       "model.layers."};

static const char *const devices[] = {
    [CAKE_DEVICE_AUTO] = "auto", [CAKE_DEVICE_CPU] = "cpu", [CAKE_DEVICE_CUDA] = "cuda"};

enum { N_DEVICE = sizeof devices / sizeof *devices };

typedef struct reader {
    cake_yaml *yaml;
    cake_worker *worker; /* [cap_worker] owned; n_worker are used */
    int n_worker, cap_worker;
    int n_rank, n_layer;
    cake_layer_claim *claim; /* [cap_claim] owned; n_claim are used, in the order of the file */
    int n_claim, cap_claim;
    bool ports;
    int n_excess; /* workers beyond the ranks; the first one: */
    cake_yaml_str excess;
    cake_yaml_position excess_at;
    cake_yaml_position end; /* position for one more worker */
    cake_yaml_fault *fault;
} reader;

static cake_yaml_position position(const reader *r)
{
    return cake_yaml_at(r->yaml);
}

static cake_yaml_kind event(const reader *r)
{
    return cake_yaml_event(r->yaml);
}

static cake_err next_event(reader *r)
{
    return cake_yaml_next(r->yaml);
}

static const char *found(const reader *r)
{
    return cake_yaml_found(r->yaml);
}

static const char *value(const reader *r)
{
    return cake_yaml_value(r->yaml);
}

static cake_yaml_str shown(const reader *r)
{
    return cake_yaml_show(value(r), cake_yaml_length(r->yaml));
}

static bool is_plain(const reader *r)
{
    return cake_yaml_plain(r->yaml);
}

static cake_err need_text(reader *r, const char *what)
{
    return cake_yaml_need_text(r->yaml, what);
}

/* A whole number without quotes, 0 or more. Numbers of more than eighteen digits count as too large. */
static cake_err need_number(reader *r, const char *what, int min, int max, int *out)
{
    bool fine = event(r) == CAKE_YAML_VALUE && is_plain(r);
    const char *text = fine ? value(r) : "";
    size_t digits = strspn(text, "0123456789");
    fine = fine && digits && digits == cake_yaml_length(r->yaml);
    int64_t number = digits > 18 ? INT64_MAX : strtoll(text, NULL, 10);
    if (fine && number >= min && number <= max) {
        *out = (int)number;
        return CAKE_OK;
    }
    if (event(r) != CAKE_YAML_VALUE)
        return cake_yaml_wrong(r->fault, position(r), "%s is %s; expected a whole number from %d to %d", what,
                               found(r), min, max);
    return cake_yaml_wrong(r->fault, position(r), "%s is %s'%s'; expected a whole number from %d to %d", what,
                           is_plain(r) ? "" : "the text ", shown(r).s, min, max);
}

/* name:port, [address]:port, or without a port. The port is ignored: MPI connects the ranks. */
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
            return cake_yaml_wrong(r->fault, position(r), "host '%s': expected '[address]:port'", shown(r).s);
        len = (size_t)(close - host) - 1;
        colon = close[1] ? close + 1 : NULL;
    } else if (colon && strchr(host, ':') == colon) {
        len = (size_t)(colon - host);
    } else {
        colon = NULL; /* an IPv6 address without brackets */
    }
    if (colon) {
        size_t digits = strspn(colon + 1, "0123456789");
        long port = digits && digits <= 5 && !colon[1 + digits] ? atol(colon + 1) : 0;
        if (port < 1 || port > 65535)
            return cake_yaml_wrong(r->fault, position(r),
                                   "host '%s': '%s' is not a port; expected 'name:port', or the name alone",
                                   shown(r).s, cake_yaml_show(colon + 1, strlen(colon + 1)).s);
        r->ports = true;
    }
    if (!len || strcspn(host, " \t\r\n") < strlen(host))
        return cake_yaml_wrong(r->fault, position(r), "host '%s' is not a host name", shown(r).s);
    w->host = cake_copy(host + skip, len);
    w->host_at = position(r);
    return CAKE_OK;
}

/* Keys that cake writes; they are ignored. */
static cake_err read_note(reader *r, cake_worker *w)
{
    (void)w;
    return event(r) == CAKE_YAML_VALUE
               ? CAKE_OK
               : cake_yaml_wrong(r->fault, position(r), "this is %s; expected a single value", found(r));
}

static cake_err bad_layers(reader *r)
{
    return cake_yaml_wrong(
        r->fault, position(r),
        "'%s' names no layers; expected '%s0-7' or '%s8' (also with %s or %s), counted from 0", shown(r).s,
        prefixes[2], prefixes[2], "model.language_model.layers.", "language_model.model.layers.");
}

/* Reads a number and advances *text; -1: there is none, INT_MAX: larger than any layer's. */
static int layer_number(const char **text)
{
    size_t digits = strspn(*text, "0123456789"), zeros = strspn(*text, "0");
    int number = !digits ? -1 : digits - (zeros < digits ? zeros : digits) > 9 ? INT_MAX : atoi(*text);
    *text += digits;
    return number;
}

/* Reads one entry of layers, like "model.layers.0-7". */
static cake_err read_layer_entry(reader *r, int worker)
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
        return cake_yaml_wrong(r->fault, position(r), "'%s' runs backwards; did you mean '%s%d-%d'?",
                               shown(r).s, prefixes[2], last, first);
    if (last >= r->n_layer)
        return cake_yaml_wrong(r->fault, position(r), "'%s': the model has %d layer%s, from 0 to %d",
                               shown(r).s, r->n_layer, r->n_layer == 1 ? "" : "s", r->n_layer - 1);
    CAKE_RESERVE(r->claim, r->n_claim, r->cap_claim);
    r->claim[r->n_claim++] = (cake_layer_claim){worker, first, last, position(r)};
    return CAKE_OK;
}

static cake_err read_layers(reader *r, cake_worker *w)
{
    if (event(r) != CAKE_YAML_LIST)
        return cake_yaml_wrong(r->fault, position(r), "layers is %s; expected a list, as ['%s0-7']", found(r),
                               prefixes[2]);
    cake_yaml_position at = position(r);
    cake_err err = next_event(r);
    for (; !err && event(r) != CAKE_YAML_LIST_END; err = err ? err : next_event(r)) {
        err = read_layer_entry(r, (int)(w - r->worker));
        w->listed = true;
    }
    if (!err && !w->listed)
        err = cake_yaml_wrong(r->fault, at, "layers is an empty list: this worker would have nothing to do");
    return err;
}

static cake_err read_rank(reader *r, cake_worker *w)
{
    w->rank_at = position(r);
    return need_number(r, "rank", 0, INT_MAX - 1, &w->rank);
}

static cake_err read_threads(reader *r, cake_worker *w)
{
    return need_number(r, "threads", 1, CAKE_TOPOLOGY_THREADS, &w->given.threads);
}

static cake_err read_replica(reader *r, cake_worker *w)
{
    w->replica_at = position(r);
    return need_number(r, "replica", 0, INT_MAX - 1, &w->replica);
}

static cake_err read_size(reader *r, const char *what, int64_t *size)
{
    cake_err err = need_text(r, what);
    if (!err && !cake_size_read(value(r), size))
        err = cake_yaml_wrong(r->fault, position(r), "%s is '%s'; expected a size like 512M, 16G or 80%%",
                              what, shown(r).s);
    return err;
}

static cake_err read_kv_memory(reader *r, cake_worker *w)
{
    w->given.kv_memory_at = position(r);
    return read_size(r, "kv_memory", &w->given.kv_memory);
}

static cake_err read_memory(reader *r, cake_worker *w)
{
    w->given.memory_at = position(r);
    return read_size(r, "memory", &w->given.memory);
}

static cake_err add_numbers(reader *r, const char *what, cake_cpuset *set)
{
    cake_err err = need_text(r, what);
    const char *wrong = err ? NULL : cake_cpuset_read(value(r), set);
    return wrong ? cake_yaml_wrong(r->fault, position(r), "%s is '%s': %s", what, shown(r).s, wrong) : err;
}

/* One text of numbers and ranges, or a list of such texts. */
static cake_err read_where(reader *r, cake_worker *w, const char *what, cake_where where)
{
    cake_topology_rank *given = &w->given;
    if (given->where)
        return cake_yaml_wrong(r->fault, position(r),
                               "both cpus and numa (line %d, column %d): use only one of them",
                               given->where_at.line, given->where_at.column);
    given->where = where;
    given->where_at = position(r);
    if (event(r) != CAKE_YAML_LIST)
        return add_numbers(r, what, &given->set);
    cake_err err = next_event(r);
    for (; !err && event(r) != CAKE_YAML_LIST_END; err = err ? err : next_event(r))
        err = add_numbers(r, what, &given->set);
    if (!err && !cake_cpuset_count(&given->set))
        err = cake_yaml_wrong(r->fault, given->where_at, "%s is an empty list", what);
    return err;
}

static cake_err read_cpus(reader *r, cake_worker *w)
{
    return read_where(r, w, "cpus", CAKE_WHERE_CPUS);
}

static cake_err read_numa(reader *r, cake_worker *w)
{
    return read_where(r, w, "numa", CAKE_WHERE_DOMAINS);
}

static cake_err read_device(reader *r, cake_worker *w)
{
    w->given.device_at = position(r);
    cake_err err = need_text(r, "device");
    int wish = 0;
    while (!err && wish < N_DEVICE && strcmp(devices[wish], value(r)))
        wish++;
    if (!err && wish == N_DEVICE)
        err =
            cake_yaml_wrong(r->fault, position(r), "device is '%s'; expected auto, cpu or cuda", shown(r).s);
    w->given.device = (cake_device_choice)wish;
    return err;
}

static cake_err read_gpu(reader *r, cake_worker *w)
{
    w->given.gpu_at = position(r);
    w->given.has_gpu = true;
    return need_number(r, "gpu", 0, CAKE_MAX_GPUS - 1, &w->given.gpu);
}

/* The keys of a worker. */
static const struct {
    const char *name;
    cake_err (*read)(reader *r, cake_worker *w);
} keys[] = {
    {"host", read_host},           {"layers", read_layers},   {"description", read_note},
    {"rank", read_rank},           {"replica", read_replica}, {"cpus", read_cpus},
    {"numa", read_numa},           {"threads", read_threads}, {"memory", read_memory},
    {"kv_memory", read_kv_memory}, {"device", read_device},   {"gpu", read_gpu},
    {"vram_bytes", read_note},     {"tflops", read_note},     {"backend", read_note},
    {"hostname", read_note},       {"os", read_note},
};

enum { N_KEY = sizeof keys / sizeof *keys };

/* A key of a worker and its value. */
static cake_err read_key(reader *r, cake_worker *w, cake_yaml_position *seen)
{
    cake_err err = need_text(r, "a key");
    int key = 0;
    while (!err && key < N_KEY && strcmp(keys[key].name, value(r)))
        key++;
    if (err)
        return err;
    if (key == N_KEY)
        return cake_yaml_wrong(r->fault, position(r),
                               "'%s' is not a key of a worker; the keys are host, description, layers, rank, "
                               "replica, cpus, numa, threads, memory, kv_memory, device, gpu",
                               shown(r).s);
    if (seen[key].line)
        return cake_yaml_wrong(r->fault, position(r),
                               "'%s' is given twice; the first one is in line %d, column %d", keys[key].name,
                               seen[key].line, seen[key].column);
    seen[key] = position(r);
    err = next_event(r);
    return err ? err : keys[key].read(r, w);
}

/* Checks a complete worker for required keys. */
static cake_err check_worker(reader *r, const cake_worker *w)
{
    const cake_yaml_str name = cake_yaml_show(w->name, strlen(w->name));
    if (!w->host && w->rank < 0)
        return cake_yaml_wrong(r->fault, w->given.at, "worker '%s' has no host (or rank)", name.s);
    if (!w->listed && w->rank < 0 && w->replica < 0)
        return cake_yaml_wrong(r->fault, w->given.at, "worker '%s' has no layers", name.s);
    if (w->given.has_gpu && w->given.device == CAKE_DEVICE_CPU)
        return cake_yaml_wrong(r->fault, w->given.gpu_at,
                               "both gpu and device: cpu (line %d, column %d); remove one of them",
                               w->given.device_at.line, w->given.device_at.column);
    return CAKE_OK;
}

/* Only counts a worker for whom there is no rank, so that the message can say how many there are. */
static cake_err skip_worker(reader *r)
{
    int depth = 0;
    if (!r->n_excess++) {
        r->excess_at = position(r);
        r->excess = shown(r);
    }
    cake_err err;
    do {
        err = next_event(r);
        cake_yaml_kind kind = event(r);
        depth += (kind == CAKE_YAML_MAP || kind == CAKE_YAML_LIST) -
                 (kind == CAKE_YAML_MAP_END || kind == CAKE_YAML_LIST_END);
    } while (!err && depth > 0);
    return err;
}

static cake_err fail_excess(const reader *r, bool planned, int n_rank)
{
    int n = r->n_worker + r->n_excess;
    if (!n_rank)
        return cake_yaml_wrong(r->fault, r->excess_at,
                               "worker '%s': %d workers for a model of %d layer%s, which has use for %d",
                               r->excess.s, n, r->n_layer, cake_plural(r->n_layer), r->n_rank);
    return cake_yaml_wrong(r->fault, r->excess_at, "worker '%s': %d workers for %d rank%s; %s %d",
                           r->excess.s, n, n_rank, cake_plural(n_rank),
                           planned ? "use --ranks" : "start it with -np", n);
}

static cake_err read_worker(void *self, cake_yaml *yaml)
{
    reader *r = self;
    r->yaml = yaml;
    cake_yaml_position seen[N_KEY] = {{0}};
    cake_err err = need_text(r, "a worker's name");
    for (int i = 0; i < r->n_worker && !err; i++)
        if (!strcmp(r->worker[i].name, value(r)))
            err = cake_yaml_wrong(r->fault, position(r),
                                  "worker '%s' is given twice; the first one is in line %d, column %d",
                                  shown(r).s, r->worker[i].given.at.line, r->worker[i].given.at.column);
    if (err)
        return err;
    if (r->n_worker == r->n_rank)
        return skip_worker(r);
    CAKE_RESERVE(r->worker, r->n_worker, r->cap_worker);
    cake_worker *w = &r->worker[r->n_worker++];
    *w = (cake_worker){
        .name = cake_copy(value(r), strlen(value(r))), .given.at = position(r), .rank = -1, .replica = -1};
    err = next_event(r);
    if (!err && event(r) != CAKE_YAML_MAP)
        err = cake_yaml_wrong(r->fault, position(r), "worker '%s' is %s; expected a map with host and layers",
                              cake_yaml_show(w->name, strlen(w->name)).s, found(r));
    err = err ? err : next_event(r);
    while (!err && event(r) != CAKE_YAML_MAP_END) {
        err = read_key(r, w, seen);
        err = err ? err : next_event(r);
    }
    return err ? err : check_worker(r, w);
}

/* Turns workers with ranks into settings of ranks and hops. */
static void make_topology(const reader *r, int n_replica, const int *owner, cake_topology *out)
{
    int size = r->n_rank / n_replica;
    *out = (cake_topology){.n_replica = n_replica, .n_rank = r->n_rank, .ports = r->ports};
    out->plan = cake_alloc((size_t)n_replica, sizeof *out->plan);
    for (int i = 0; i < n_replica; i++) {
        cake_plan *plan = &out->plan[i];
        *plan = (cake_plan){.n_rank = size, .first = i * size};
        plan->hop = cake_alloc((size_t)r->n_layer, sizeof *plan->hop);
        plan->n_hop = cake_workers_hops(r->worker, r->claim, owner + (size_t)i * (size_t)r->n_layer,
                                        r->n_layer, plan->first, plan->hop);
    }
    out->rank = cake_alloc((size_t)r->n_rank, sizeof *out->rank);
    for (int i = 0; i < r->n_worker; i++) {
        const cake_worker *w = &r->worker[i];
        cake_topology_rank *rank = &out->rank[w->rank];
        *rank = w->given;
        snprintf(rank->worker, sizeof rank->worker, "%s", cake_yaml_show(w->name, strlen(w->name)).s);
    }
}

/* Assigns replicas, layers and ranks to the workers. */
static cake_err assign_workers(reader *r, const char *const *hosts, cake_topology *out)
{
    int n_replica, *owner = NULL;
    cake_err err = cake_workers_part(r->worker, r->n_worker, hosts != NULL, r->n_rank, &n_replica, r->fault);
    bool fits = !err;
    for (int i = 0; i < r->n_worker && !err && !hosts; i++)
        if (r->worker[i].replica > 0)
            err = cake_yaml_wrong(r->fault, r->worker[i].given.at,
                                  "worker '%s' is of replica %d: "
                                  "only one replica is possible here, remove the others",
                                  cake_yaml_show(r->worker[i].name, strlen(r->worker[i].name)).s,
                                  r->worker[i].replica);
    if (!err) {
        owner = cake_alloc((size_t)n_replica * (size_t)r->n_layer, sizeof *owner);
        err = cake_workers_own(r->worker, r->claim, r->n_claim, r->n_layer, n_replica, owner, r->fault);
    }
    if (!err)
        fits = !(
            err = cake_workers_match(r->worker, r->n_worker, hosts, r->n_rank, n_replica, r->end, r->fault));
    r->fault->misfit = !fits;
    if (!err)
        make_topology(r, n_replica, owner, out);
    free(owner);
    return err;
}

cake_err cake_topology_parse(const char *text, size_t len, const char *const *hosts, int n_rank, int n_layer,
                             cake_topology *out, cake_yaml_fault *fault)
{
    int max = n_rank ? n_rank : n_layer + 1; /* every rank but 0 has a layer */
    static const cake_yaml_form form = {"a topology", "a map of workers by name", read_worker};
    reader r = {.n_rank = max, .n_layer = n_layer, .fault = fault};
    cake_err err = cake_yaml_read(text, len, &form, &r, &r.end, fault);
    if (!err && r.n_excess) {
        err = fail_excess(&r, !hosts, n_rank);
        fault->misfit = true;
    } else if (!err) {
        r.n_rank = n_rank ? n_rank : cake_workers_ranks(r.worker, r.n_worker);
        err = assign_workers(&r, hosts, out);
    }
    for (int i = 0; i < r.n_worker; i++) {
        free(r.worker[i].name);
        free(r.worker[i].host);
    }
    free(r.worker);
    free(r.claim);
    return err;
}

void cake_topology_free(cake_topology *topology)
{
    for (int i = 0; i < topology->n_replica; i++)
        cake_plan_free(&topology->plan[i]);
    free(topology->plan);
    free(topology->rank);
    *topology = (cake_topology){0};
}
