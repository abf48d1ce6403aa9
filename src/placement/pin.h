/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUs of a rank and its threads: a pure function of the machine, of the masks of all ranks of the host, and
 * of the options.
 */
#ifndef CAKE_PLACEMENT_PIN_H
#define CAKE_PLACEMENT_PIN_H

#include <stdbool.h>

#include "placement/cpuset.h"
#include "placement/launcher.h"

struct hwloc_topology;
struct hwloc_bitmap_s;

/* The last three are llama.cpp's --numa modes: threads in turn on all NUMA domains, on the domain in which
 * the process started, and the mask as numactl left it. */
typedef enum cake_bind {
    CAKE_BIND_AUTO,
    CAKE_BIND_NONE,
    CAKE_BIND_HWLOC,
    CAKE_BIND_DISTRIBUTE,
    CAKE_BIND_ISOLATE,
    CAKE_BIND_NUMACTL,
    CAKE_N_BIND
} cake_bind;

/* Current and requested binding of one rank. All ranks of a host put theirs together. */
typedef struct cake_bind_request {
    cake_cpuset mask; /* CPUs it may run on now */
    cake_cpuset pool; /* its launcher's CPUs within the cgroup: replaces an unrequested mask */
    bool unasked;     /* the launcher bound it without being asked to */
    int threads;      /* requested; 0: one per core */
    int began;        /* the CPU on which it started */
    bool has_cpus;    /* a topology file sets its CPUs */
    cake_cpuset cpus; /* if has_cpus: these CPUs, a subset of cake_pin_allowed */
} cake_bind_request;

typedef enum cake_pin_warning {
    CAKE_PIN_WARN_NONE,
    CAKE_PIN_WARN_SMT,     /* more threads than cores: hardware threads were counted */
    CAKE_PIN_WARN_NARROW,  /* more threads than CPUs */
    CAKE_PIN_WARN_DOMAIN,  /* two ranks in one NUMA domain while another is empty */
    CAKE_PIN_WARN_STACKED, /* ranks share a core while another is idle */
} cake_pin_warning;

typedef struct cake_pin {
    cake_cpuset cpus; /* of this rank */
    int n_core;       /* its own cores, or its fair part of shared cores; at least 1 */
    int n_thread;     /* as requested, else n_core */
    /* NUMA domain (system number) to bind memory to; -1: several, only one, or bound by others */
    int domain;
    bool replaced; /* its mask was a default and has been replaced */
    bool all_fit;  /* this host has a core for each requested thread of its ranks */
    cake_pin_warning warning;
    cake_cpuset *thread; /* [n_thread] owned: CPUs of each thread; NULL: anywhere in cpus */
} cake_pin;

/* Makes the pin of rank `rank` of the n ranks of this host, from the requests [n] of all. world: ranks in
 * all; Open MPI's default depends on it. A requested mask is left only with CAKE_BIND_HWLOC, and CPUs that
 * hwloc does not allow are never used. A rank whose request has_cpus gets these whatever bind is; the others
 * avoid them if they can. Ranks that call with the same requests get disjoint CPUs if there are enough. */
void cake_pin_make(struct hwloc_topology *hwloc, const cake_bind_request *requests, int n, int rank,
                   int world, cake_bind bind, cake_pin *pin);
void cake_pin_free(cake_pin *pin); /* zeros are fine */

/* CPUs that a rank may use: its mask, or what replaces it; as in cake_pin_make, but without `has_cpus`. */
void cake_pin_allowed(struct hwloc_topology *hwloc, const cake_bind_request *request, int world,
                      cake_bind bind, cake_cpuset *allowed);
/* The CPUs of NUMA domains (system numbers). False: the machine lacks one of them, and *cpus holds the
 * numbers of those it has. */
bool cake_pin_domain_cpus(struct hwloc_topology *hwloc, const cake_cpuset *domains, cake_cpuset *cpus);

/* Appends the problem and a better command line; nothing without a warning. world: ranks in all. */
void cake_pin_advise(const cake_pin *pin, cake_launch launcher, int world, cake_buf *out);

/* Number of NUMA domains that have CPUs. */
int cake_pin_domains(struct hwloc_topology *hwloc);

/* Conversions from and to hwloc's sets, without CPUs beyond CAKE_MAX_CPUS. */
void cake_cpuset_of(const struct hwloc_bitmap_s *set, cake_cpuset *cpus);
struct hwloc_bitmap_s *cake_cpuset_set(const cake_cpuset *cpus); /* owned */

#endif
