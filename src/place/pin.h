/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cpus a rank and each of its threads get: a pure function of the machine, of what all ranks of the host were
 * given, and of what was asked for.
 */
#ifndef CAKE_PLACE_PIN_H
#define CAKE_PLACE_PIN_H

#include <stdbool.h>
#include <stdint.h>

#include "place/launcher.h"

struct hwloc_topology;
struct hwloc_bitmap_s;

enum { CAKE_CPUS_MOST = 8192 }; /* as many as Linux has at most; a multiple of 64 */

/* A set of cpus (hardware threads, by the system's numbers), as it travels between ranks. */
typedef struct cake_cpus {
    uint64_t bit[CAKE_CPUS_MOST / 64];
} cake_cpus;

typedef enum cake_bind { CAKE_BIND_AUTO, CAKE_BIND_NONE, CAKE_BIND_HWLOC } cake_bind;

/* What one rank has and wants; all ranks of a host lay theirs together. */
typedef struct cake_claim {
    cake_cpus mask; /* it may run on now */
    cake_cpus
        pool; /* it may use instead of a mask that nobody asked for: what its launcher has, in the cgroup */
    bool unasked; /* the launcher bound it without being told to */
    int threads;  /* asked for; 0: as many as there are cores */
} cake_claim;

typedef enum cake_trap {
    CAKE_TRAP_NONE,
    CAKE_TRAP_SMT,    /* more threads than cores, since hardware threads were counted */
    CAKE_TRAP_NARROW, /* more threads than cpus */
    CAKE_TRAP_DOMAIN, /* two ranks in one NUMA domain while another is empty */
} cake_trap;

typedef struct cake_pin {
    cake_cpus cpus; /* of this rank */
    int n_core;     /* cores of its own, or its fair share of cores that ranks have together; at least 1 */
    int n_thread;   /* as asked, else n_core */
    int domain; /* the NUMA domain (the system's number) that memory is bound to; -1: several, or there is one only */
    bool replaced; /* its mask was a default, and is left */
    bool room;     /* this host has a core for each thread that its ranks ask for */
    cake_trap trap;
    cake_cpus *thread; /* [n_thread] owned: where each may run; NULL: anywhere in cpus */
} cake_pin;

/* Makes the pins of rank `rank` of n, the ranks of this host in order, with their claims [n]. world: ranks in all, which
 * Open MPI's default depends on. Asked masks are never left but with CAKE_BIND_HWLOC; nothing reaches beyond what the
 * topology allows. Every rank that calls it with the same claims gets disjoint cpus where there are enough. */
void cake_pin_make(struct hwloc_topology *topology, const cake_claim *claims, int n, int rank, int world,
                   cake_bind bind, cake_pin *pin);
void cake_pin_free(cake_pin *pin); /* zeros are fine */

/* What is wrong and which command line would be right; nothing without a trap. world: ranks in all. */
void cake_pin_advise(const cake_pin *pin, cake_launch launcher, int world, cake_buf *out);

/* NUMA domains of the machine: memory that has cpus of its own. */
int cake_pin_domains(struct hwloc_topology *topology);

/* "0-3,8" into text. */
void cake_cpus_text(const cake_cpus *cpus, char *text, int size);
int cake_cpus_count(const cake_cpus *cpus);

/* To and from hwloc's sets; cpus beyond CAKE_CPUS_MOST are left out. */
void cake_cpus_of(const struct hwloc_bitmap_s *set, cake_cpus *cpus);
struct hwloc_bitmap_s *cake_cpus_set(const cake_cpus *cpus); /* owned */

#endif
