/* SPDX-License-Identifier: Apache-2.0
 *
 * In: workers as a topology file has them, the hosts of the ranks. Out: a rank for each worker, hops. topology.c calls.
 * Invariant: on success no two workers have the same rank, and every rank but 0 has a worker.
 */
#include "place/workers.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

cake_err cake_workers_fault(cake_topology_fault *fault, cake_spot at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->message, sizeof fault->message, fmt, args);
    va_end(args);
    fault->at = at;
    return CAKE_ERR_FATAL;
}

const char *cake_workers_show(const char *text, size_t len)
{
    enum { MOST = 60 };
    static char shown[4][MOST + 4];
    static int turn;
    char *to = shown[turn = (turn + 1) % 4];
    size_t n = len < MOST ? len : MOST;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    while (n < len && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--; /* not within a character */
    strcpy(to + n, n < len ? "..." : "");
    return to;
}

static const char *show(const char *text)
{
    return cake_workers_show(text, strlen(text));
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Whether name [len] is what pattern has, * for anything and ? for a character. A later * takes over from those before
 * it, so that the time is at most the product of the lengths. */
static bool like(const char *pattern, const char *name, size_t len)
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

static bool name_meant(const char *host, const char *name, size_t len)
{
    size_t n = strlen(host), short_host = short_length(host, n), short_name = short_length(name, len);
    if (like(host, name, len))
        return true;
    if (is_pattern(host))
        return short_host == n && like(host, name, short_name);
    if ((short_host == n) == (short_name == len)) /* both have a domain, or neither */
        return false;
    return short_host == short_name && !strncasecmp(host, name, short_host);
}

bool cake_workers_meant(const char *host, const char *names)
{
    for (const char *at = names; *at;) {
        size_t len = strcspn(at, " ");
        if (len && name_meant(host, at, len))
            return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

static bool is_here(const char *host)
{
    return !strcasecmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static size_t first_name(const char *names)
{
    return strcspn(names, " ");
}

/* Whether a worker may be this rank: localhost is where rank 0 is. */
static bool suits(const cake_worker *w, const char *const *hosts, int rank)
{
    if (!w->host || !hosts)
        return true;
    size_t len = first_name(hosts[0]);
    if (is_here(w->host))
        return first_name(hosts[rank]) == len && !strncmp(hosts[0], hosts[rank], len);
    return cake_workers_meant(w->host, hosts[rank]);
}

/* "n1, n2 and others": the hosts of the job, each once. */
static void list_hosts(const char *const *hosts, int n_rank, char *out, size_t size)
{
    enum { MOST = 6 };
    size_t used = 0;
    int named = 0;
    *out = 0;
    for (int r = 0; r < n_rank && named <= MOST; r++) {
        size_t len = first_name(hosts[r]);
        bool again = false;
        for (int before = 0; before < r && !again; before++)
            again = first_name(hosts[before]) == len && !strncmp(hosts[before], hosts[r], len);
        if (again)
            continue;
        int n = named == MOST ? snprintf(out + used, size - used, " and others")
                              : snprintf(out + used, size - used, "%s%.*s", named ? ", " : "",
                                         (int)(len < 60 ? len : 60), hosts[r]);
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
        named++;
    }
}

/* Those that name their rank. taken [n_rank]: which worker is it, -1: none. */
static cake_err match_ranks(cake_worker *worker, int n, const char *const *hosts, int n_rank, int *taken,
                            cake_topology_fault *fault)
{
    for (int i = 0; i < n; i++) {
        cake_worker *w = &worker[i];
        if (w->rank < 0)
            continue;
        if (w->rank >= n_rank)
            return cake_workers_fault(
                fault, w->rank_at,
                "there is no rank %d: the job has %d rank%s, counted from 0; start it with "
                "%s %lld",
                w->rank, n_rank, n_rank == 1 ? "" : "s", hosts ? "-np" : "--ranks", (long long)w->rank + 1);
        if (taken[w->rank] >= 0) {
            const cake_worker *other = &worker[taken[w->rank]];
            return cake_workers_fault(fault, w->rank_at,
                                      "rank %d is worker '%s' already (line %d, column %d)", w->rank,
                                      show(other->name), other->rank_at.line, other->rank_at.column);
        }
        if (!suits(w, hosts, w->rank))
            return cake_workers_fault(fault, w->host_at,
                                      "rank %d is on %.*s, not on '%s'; leave rank or host away", w->rank,
                                      (int)first_name(hosts[w->rank]), hosts[w->rank], show(w->host));
        taken[w->rank] = i;
    }
    return CAKE_OK;
}

/* The others take ranks from `first` on, hosts by name before patterns. Returns the one that finds none, or -1. */
static int match_hosts(cake_worker *worker, int n, const char *const *hosts, int n_rank, int first,
                       int *taken)
{
    for (int patterns = 0; patterns < 2; patterns++)
        for (int i = 0; i < n; i++) {
            int rank = first;
            if (worker[i].rank >= 0 || is_pattern(worker[i].host) != patterns)
                continue;
            while (rank < n_rank && (taken[rank] >= 0 || !suits(&worker[i], hosts, rank)))
                rank++;
            if (rank == n_rank)
                return i;
            taken[rank] = i;
        }
    return -1;
}

static cake_err no_rank(const cake_worker *w, const char *const *hosts, int n_rank,
                        cake_topology_fault *fault)
{
    int there = 0;
    char list[400];
    if (!hosts)
        return cake_workers_fault(fault, w->host_at,
                                  "no rank is left for worker '%s': there are %d; take more --ranks",
                                  show(w->name), n_rank);
    for (int r = 0; r < n_rank; r++)
        there += suits(w, hosts, r);
    list_hosts(hosts, n_rank, list, sizeof list);
    if (!there)
        return cake_workers_fault(fault, w->host_at,
                                  "host '%s' is not in this job, whose hosts are: %s (any of them: '*')",
                                  show(w->host), list);
    return cake_workers_fault(fault, w->host_at,
                              "no rank is left for worker '%s': '%s' has %d, which other workers have; start "
                              "more ranks there, or list fewer workers",
                              show(w->name), show(w->host), there);
}

int cake_workers_ranks(const cake_worker *worker, int n)
{
    bool root = false;
    for (int i = 0; i < n; i++)
        root = root || worker[i].rank == 0;
    return root ? n : n + 1;
}

cake_err cake_workers_match(cake_worker *worker, int n, const char *const *hosts, int n_rank, cake_spot end,
                            cake_topology_fault *fault)
{
    int *asked = cake_alloc((size_t)n_rank, sizeof *asked),
        *taken = cake_alloc((size_t)n_rank, sizeof *taken);
    size_t bytes = (size_t)n_rank * sizeof *taken;
    memset(asked, -1, bytes);
    cake_err err = match_ranks(worker, n, hosts, n_rank, asked, fault);
    int lost = -1;
    for (int first = 1; first >= 0 && !err; first--) {
        memcpy(taken, asked, bytes);
        lost = match_hosts(worker, n, hosts, n_rank, first, taken);
        if (lost < 0)
            break;
    }
    if (!err && lost >= 0)
        err = no_rank(&worker[lost], hosts, n_rank, fault);
    for (int r = 0; r < n_rank && !err; r++) {
        if (taken[r] >= 0)
            worker[taken[r]].rank = r;
        else if (r > 0)
            err =
                cake_workers_fault(fault, end,
                                   "rank %d%s%.*s has no worker: there are %d for %d ranks, of which rank 0 "
                                   "needs none; list one more, or start fewer ranks",
                                   r, hosts ? " on " : "", hosts ? (int)first_name(hosts[r]) : 0,
                                   hosts ? hosts[r] : "", n, n_rank);
    }
    free(asked);
    free(taken);
    return err;
}

int cake_workers_hops(const cake_worker *worker, const cake_layer_claim *claimed, int n_layer, cake_hop *hop)
{
    int n = 0;
    for (int i = 0; i < n_layer; i++) {
        int rank = claimed[i].worker < 0 ? 0 : worker[claimed[i].worker].rank;
        if (n && hop[n - 1].rank == rank)
            hop[n - 1].count++;
        else
            hop[n++] = (cake_hop){rank, i, 1};
    }
    return n;
}
