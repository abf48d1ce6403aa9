/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cpus a rank and each of its threads get: a pure function of the machine, of what all ranks of the
 * host were given, and of what was asked for.
 */
#ifndef CAKE_PLACE_PIN_H
#define CAKE_PLACE_PIN_H

#include <stdbool.h>

#include "place/cpuset.h"
#include "place/launcher.h"

struct hwloc_topology;
struct hwloc_bitmap_s;

/* The last three mean what llama.cpp's --numa means by them: threads in turn on all NUMA domains, on the one
 * that the process began in, and the mask as numactl left it. */
typedef enum cake_bind {
    CAKE_BIND_AUTO,
    CAKE_BIND_NONE,
    CAKE_BIND_HWLOC,
    CAKE_BIND_DISTRIBUTE,
    CAKE_BIND_ISOLATE,
    CAKE_BIND_NUMACTL,
    CAKE_N_BIND
} cake_bind;

/* What one rank has and wants; all ranks of a host lay theirs together. */
typedef struct cake_bind_request {
    cake_cpuset mask;  /* it may run on now */
    cake_cpuset pool;  /* what its launcher has, in the cgroup: for use instead of a mask nobody asked for */
    bool unasked;      /* the launcher bound it without being told to */
    int threads;       /* asked for; 0: as many as there are cores */
    int began;         /* the cpu that it began on */
    bool placed;       /* a topology file says where it runs */
    cake_cpuset place; /* placed: these cpus, a part of what it may take (cake_pin_allowed) */
} cake_bind_request;

typedef enum cake_pin_warning {
    CAKE_PIN_WARN_NONE,
    CAKE_PIN_WARN_SMT,     /* more threads than cores, since hardware threads were counted */
    CAKE_PIN_WARN_NARROW,  /* more threads than cpus */
    CAKE_PIN_WARN_DOMAIN,  /* two ranks in one NUMA domain while another is empty */
    CAKE_PIN_WARN_STACKED, /* ranks share a core while another is empty */
} cake_pin_warning;

typedef struct cake_pin {
    cake_cpuset cpus; /* of this rank */
    int n_core;       /* cores of its own, or its fair share of cores that ranks have together; at least 1 */
    int n_thread;     /* as asked, else n_core */
    /* the NUMA domain (the system's number) that memory is bound to; -1: several, or there is only one, or
     * others bind it */
    int domain;
    bool replaced; /* its mask was a default, and is left */
    bool room;     /* this host has a core for each thread that its ranks ask for */
    cake_pin_warning trap;
    cake_cpuset *thread; /* [n_thread] owned: where each may run; NULL: anywhere in cpus */
} cake_pin;

/* Makes the pins of rank `rank` of n, the ranks of this host in order, with their claims [n]. world: ranks in
 * all, which Open MPI's default depends on. Asked masks are never left but with CAKE_BIND_HWLOC; nothing
 * reaches beyond what the topology allows. A rank that is placed takes its place whatever bind is, and others
 * leave it to it as far as they can. Every rank that calls it with the same claims gets disjoint cpus where
 * there are enough. */
void cake_pin_make(struct hwloc_topology *topology, const cake_bind_request *claims, int n, int rank,
                   int world, cake_bind bind, cake_pin *pin);
void cake_pin_free(cake_pin *pin); /* zeros are fine */

/* What a rank may take: its mask, or what stands in for it. As cake_pin_make sees it, but for `placed`. */
void cake_pin_allowed(struct hwloc_topology *topology, const cake_bind_request *claim, int world,
                      cake_bind bind, cake_cpuset *allowed);
/* The cpus of some NUMA domains (by the system's numbers). False: there is one among them that the machine
 * has not, and *cpus are the numbers of those it has. */
bool cake_pin_place(struct hwloc_topology *topology, const cake_cpuset *domains, cake_cpuset *cpus);

/* What is wrong and which command line would be right; nothing without a trap. world: ranks in all. */
void cake_pin_advise(const cake_pin *pin, cake_launch launcher, int world, cake_buf *out);

/* NUMA domains of the machine: memory that has cpus of its own. */
int cake_pin_domains(struct hwloc_topology *topology);

/* To and from hwloc's sets; cpus beyond CAKE_MAX_CPUS are left out. */
void cake_cpuset_of(const struct hwloc_bitmap_s *set, cake_cpuset *cpus);
struct hwloc_bitmap_s *cake_cpuset_set(const cake_cpuset *cpus); /* owned */

#endif
