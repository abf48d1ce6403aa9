/* SPDX-License-Identifier: Apache-2.0
 *
 * In: workers of a topology file, the hosts of the ranks. Out: a rank for each worker, hops.
 * Invariant: on success no two workers have the same rank, and every rank but 0 has a worker.
 */
#include "placement/topology_workers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static cake_yaml_str show(const char *text)
{
    return cake_yaml_show(text, strlen(text));
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* True if name [len] matches pattern, with * for any text and ? for one character. Only the last * is
 * retried, so the time is at most the product of the lengths. */
static bool matches_pattern(const char *pattern, const char *name, size_t len)
{
    const char *star = NULL;
    size_t at = 0, from = 0;
    while (at < len) {
        if (*pattern == '*') {
            star = ++pattern;
            from = at;
        } else if (*pattern && (*pattern == '?' || same_letter(*pattern, name[at]))) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star;
            at = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool is_pattern(const char *host)
{
    return strpbrk(host, "*?");
}

/* The part of a name before its domain; an address has none. */
static size_t short_length(const char *name, size_t len)
{
    size_t letters = 0, dot = len;
    for (size_t i = 0; i < len; i++) {
        letters += name[i] != '.' && !isdigit((unsigned char)name[i]);
        if (name[i] == '.' && dot == len)
            dot = i;
    }
    return letters ? dot : len;
}

static bool name_matches(const char *host, const char *name, size_t len)
{
    size_t n = strlen(host), short_host = short_length(host, n), short_name = short_length(name, len);
    if (matches_pattern(host, name, len))
        return true;
    if (is_pattern(host))
        return short_host == n && matches_pattern(host, name, short_name);
    if ((short_host == n) == (short_name == len)) /* both have a domain, or neither */
        return false;
    return short_host == short_name && !strncasecmp(host, name, short_host);
}

bool cake_workers_host_matches(const char *host, const char *names)
{
    for (const char *at = names; *at;) {
        size_t len = strcspn(at, " ");
        if (len && name_matches(host, at, len))
            return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

static bool is_localhost(const char *host)
{
    return !strcasecmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static size_t first_name(const char *names)
{
    return strcspn(names, " ");
}

/* True if a worker's host is this rank's; localhost is the host of rank 0. */
static bool is_on_host(const cake_worker *w, const char *const *hosts, int rank)
{
    if (!w->host || !hosts)
        return true;
    size_t len = first_name(hosts[0]);
    if (is_localhost(w->host))
        return first_name(hosts[rank]) == len && !strncmp(hosts[0], hosts[rank], len);
    return cake_workers_host_matches(w->host, hosts[rank]);
}

/* "n1, n2 and others": the hosts of the job, each once. */
static void list_hosts(const char *const *hosts, int n_rank, char *out, size_t size)
{
    enum { MAX_NAMED = 6 };
    size_t used = 0;
    int named = 0;
    *out = 0;
    for (int r = 0; r < n_rank && named <= MAX_NAMED; r++) {
        size_t len = first_name(hosts[r]);
        bool again = false;
        for (int before = 0; before < r && !again; before++)
            again = first_name(hosts[before]) == len && !strncmp(hosts[before], hosts[r], len);
        if (again)
            continue;
        int n = named == MAX_NAMED ? snprintf(out + used, size - used, " and others")
                                   : snprintf(out + used, size - used, "%s%.*s", named ? ", " : "",
                                              (int)(len < 60 ? len : 60), hosts[r]);
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
        named++;
    }
}

/* The ranks of a job. */
typedef struct job {
    const char *const *hosts; /* [n_rank], or NULL */
    int n_rank, size;         /* of a replica */
    int *taken;               /* [n_rank] its worker, or -1 */
} job;

/* Matches workers that name their rank. */
static cake_err match_ranks(cake_worker *worker, int n, const job *j, cake_yaml_fault *fault)
{
    for (int i = 0; i < n; i++) {
        cake_worker *w = &worker[i];
        if (w->rank < 0)
            continue;
        if (w->rank >= j->n_rank)
            return cake_yaml_wrong(fault, w->rank_at,
                                   "there is no rank %d: the job has %d rank%s, counted from 0; %s %lld",
                                   w->rank, j->n_rank, j->n_rank == 1 ? "" : "s",
                                   j->hosts ? "start it with -np" : "use --ranks", (long long)w->rank + 1);
        if (j->taken[w->rank] >= 0) {
            const cake_worker *other = &worker[j->taken[w->rank]];
            return cake_yaml_wrong(fault, w->rank_at, "rank %d is worker '%s' already (line %d, column %d)",
                                   w->rank, show(other->name).s, other->rank_at.line, other->rank_at.column);
        }
        if (w->rank / j->size != w->replica)
            return cake_yaml_wrong(fault, w->replica_at,
                                   "rank %d is in replica %d, not in %d; remove rank or replica", w->rank,
                                   w->rank / j->size, w->replica);
        if (!is_on_host(w, j->hosts, w->rank))
            return cake_yaml_wrong(fault, w->host_at, "rank %d is on %.*s, not on '%s'; remove rank or host",
                                   w->rank, (int)first_name(j->hosts[w->rank]), j->hosts[w->rank],
                                   show(w->host).s);
        j->taken[w->rank] = i;
    }
    return CAKE_OK;
}

/* Matches the other workers of a replica with its ranks from `first` on, names before patterns; a worker
 * without layers can only have the first rank. Returns a worker without a rank, or -1. */
static int match_hosts(cake_worker *worker, int n, const job *j, int replica, int first)
{
    int begin = replica * j->size;
    for (int patterns = 0; patterns < 2; patterns++)
        for (int i = 0; i < n; i++) {
            cake_worker *w = &worker[i];
            if (w->replica != replica || w->rank >= 0 || is_pattern(w->host) != patterns)
                continue;
            int rank = begin + (w->listed ? first : 0), end = w->listed ? begin + j->size : begin + 1;
            while (rank < end && (j->taken[rank] >= 0 || !is_on_host(w, j->hosts, rank)))
                rank++;
            if (rank == end)
                return i;
            j->taken[rank] = i;
        }
    return -1;
}

static cake_err no_rank(const cake_worker *w, const job *j, int n_replica, cake_yaml_fault *fault)
{
    int on_host = 0, within = 0;
    char list[400], part[64] = "";
    if (!j->hosts)
        return cake_yaml_wrong(fault, w->host_at,
                               "no rank is left for worker '%s': there are %d; use more --ranks",
                               show(w->name).s, j->n_rank);
    if (n_replica > 1)
        snprintf(part, sizeof part, " in replica %d (ranks %d to %d)", w->replica, w->replica * j->size,
                 (w->replica + 1) * j->size - 1);
    for (int r = 0; r < j->n_rank; r++) {
        bool on = is_on_host(w, j->hosts, r);
        on_host += on;
        within += on && r / j->size == w->replica;
    }
    list_hosts(j->hosts, j->n_rank, list, sizeof list);
    if (!on_host)
        return cake_yaml_wrong(fault, w->host_at,
                               "host '%s' is not in this job, whose hosts are: %s (any of them: '*')",
                               show(w->host).s, list);
    return cake_yaml_wrong(fault, w->host_at,
                           "no rank is left for worker '%s': '%s' has %d%s, which other workers have; "
                           "start more ranks there, or list fewer workers",
                           show(w->name).s, show(w->host).s, within, part);
}

int cake_workers_ranks(const cake_worker *worker, int n)
{
    bool root = false;
    for (int i = 0; i < n; i++)
        root = root || worker[i].rank == 0;
    return root ? n : n + 1;
}

cake_err cake_workers_part(cake_worker *worker, int n, bool running, int n_rank, int *n_replica,
                           cake_yaml_fault *fault)
{
    const cake_worker *last = NULL;
    for (int i = 0; i < n; i++)
        if (worker[i].replica >= 0 && (!last || worker[i].replica > last->replica))
            last = &worker[i];
    int replicas = last ? last->replica + 1 : 1;
    if (n_rank % replicas)
        return cake_yaml_wrong(fault, last->replica_at,
                               "replica %d, counted from 0, "
                               "makes %d of them, and %d rank%s cannot be divided evenly among them; "
                               "%s %lld or another multiple of %d",
                               last->replica, replicas, n_rank, n_rank == 1 ? "" : "s",
                               running ? "start it with -np" : "use --ranks",
                               ((long long)n_rank / replicas + 1) * replicas, replicas);
    int size = n_rank / replicas, *members = cake_alloc((size_t)replicas, sizeof *members), none = 1;
    for (int i = 0; i < n; i++) {
        cake_worker *w = &worker[i];
        bool by_rank = w->replica < 0 && w->rank >= 0 && w->rank < n_rank;
        w->replica = by_rank ? w->rank / size : w->replica < 0 ? 0 : w->replica;
        members[w->replica]++;
    }
    while (none < replicas && members[none])
        none++;
    free(members);
    if (none < replicas)
        return cake_yaml_wrong(fault, last->replica_at,
                               "replica %d, but no worker is of replica %d: "
                               "replicas are counted from 0 without gaps",
                               last->replica, none);
    *n_replica = replicas;
    return CAKE_OK;
}

/* Checks that every rank has a worker with layers. */
static cake_err check_ranks(cake_worker *worker, int n, const job *j, cake_yaml_position end,
                            cake_yaml_fault *fault)
{
    bool several = j->size < j->n_rank;
    for (int r = 0; r < j->n_rank; r++) {
        cake_worker *w = j->taken[r] < 0 ? NULL : &worker[j->taken[r]];
        if (w && !w->listed && r % j->size)
            return cake_yaml_wrong(fault, w->given.at, "worker '%s' has no layers", show(w->name).s);
        if (w)
            w->rank = r;
        else if (r % j->size)
            return cake_yaml_wrong(
                fault, end,
                "rank %d%s%.*s has no worker: "
                "there are %d for %d ranks, of which %s needs none; list one more, or start fewer ranks",
                r, j->hosts ? " on " : "", j->hosts ? (int)first_name(j->hosts[r]) : 0,
                j->hosts ? j->hosts[r] : "", n, j->n_rank, several ? "the first of a replica" : "rank 0");
    }
    return CAKE_OK;
}

cake_err cake_workers_match(cake_worker *worker, int n, const char *const *hosts, int n_rank, int n_replica,
                            cake_yaml_position end, cake_yaml_fault *fault)
{
    job j = {.hosts = hosts, .n_rank = n_rank, .size = n_rank / n_replica};
    j.taken = cake_alloc((size_t)n_rank, sizeof *j.taken);
    int *named_ranks = cake_alloc((size_t)j.size, sizeof *named_ranks);
    size_t bytes = (size_t)j.size * sizeof *named_ranks;
    memset(j.taken, -1, (size_t)n_rank * sizeof *j.taken);
    cake_err err = match_ranks(worker, n, &j, fault);
    for (int replica = 0; replica < n_replica && !err; replica++) {
        int unmatched = -1;
        memcpy(named_ranks, j.taken + replica * j.size, bytes);
        for (int first = 1; first >= 0; first--) {
            memcpy(j.taken + replica * j.size, named_ranks, bytes);
            unmatched = match_hosts(worker, n, &j, replica, first);
            if (unmatched < 0)
                break;
        }
        if (unmatched >= 0)
            err = no_rank(&worker[unmatched], &j, n_replica, fault);
    }
    if (!err)
        err = check_ranks(worker, n, &j, end, fault);
    free(named_ranks);
    free(j.taken);
    return err;
}

static cake_err fail_owned_twice(const cake_layer_claim *c, int layer, const char *name,
                                 cake_yaml_position at, cake_yaml_fault *fault)
{
    char last[16] = "";
    if (c->last > c->first)
        snprintf(last, sizeof last, "-%d", c->last);
    return cake_yaml_wrong(fault, c->at,
                           "'model.layers.%d%s': layer %d is worker '%s's already (line %d, column %d)",
                           c->first, last, layer, name, at.line, at.column);
}

cake_err cake_workers_own(const cake_worker *worker, const cake_layer_claim *claim, int n_claim, int n_layer,
                          int n_replica, int *owner, cake_yaml_fault *fault)
{
    for (size_t i = 0; i < (size_t)n_replica * (size_t)n_layer; i++)
        owner[i] = -1;
    for (int k = 0; k < n_claim; k++) {
        const cake_layer_claim *c = &claim[k];
        int *own = owner + (size_t)worker[c->worker].replica * (size_t)n_layer;
        for (int i = c->first; i <= c->last; i++) {
            const cake_layer_claim *other = own[i] < 0 ? NULL : &claim[own[i]];
            if (other)
                return fail_owned_twice(c, i, show(worker[other->worker].name).s, other->at, fault);
            own[i] = k;
        }
    }
    return CAKE_OK;
}

int cake_workers_hops(const cake_worker *worker, const cake_layer_claim *claim, const int *owner, int n_layer,
                      int first, cake_hop *hop)
{
    int n = 0;
    for (int i = 0; i < n_layer; i++) {
        int rank = owner[i] < 0 ? 0 : worker[claim[owner[i]].worker].rank - first;
        if (n && hop[n - 1].rank == rank)
            hop[n - 1].count++;
        else
            hop[n++] = (cake_hop){rank, i, 1};
    }
    return n;
}
