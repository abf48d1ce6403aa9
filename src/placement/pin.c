/* SPDX-License-Identifier: Apache-2.0
 *
 * In: hwloc's topology of any machine, the bind requests of a host's ranks. Out: the pins of one of them, and
 * warnings. Never looks at the machine it runs on. Invariant: pinned CPUs are a subset of what request and
 * topology allow; threads of one rank share no core.
 *
 * Sets are hwloc's here. "base" is what a rank may use: its mask, or what replaces it.
 */
#include "placement/pin.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "placement/core_kinds.h"

void cake_cpuset_of(const struct hwloc_bitmap_s *set, cake_cpuset *cpus)
{
    *cpus = (cake_cpuset){{0}};
    for (int i = hwloc_bitmap_first(set); i >= 0 && i < CAKE_MAX_CPUS; i = hwloc_bitmap_next(set, i))
        cpus->bit[i / 64] |= (uint64_t)1 << i % 64;
}

struct hwloc_bitmap_s *cake_cpuset_set(const cake_cpuset *cpus)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = 0; i < CAKE_MAX_CPUS; i++)
        if (cpus->bit[i / 64] >> i % 64 & 1)
            hwloc_bitmap_set(set, (unsigned)i);
    return set;
}

/* If hwloc knows no cores, each CPU counts as one. */
static hwloc_obj_type_t core_type(hwloc_topology_t hwloc)
{
    return hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

/* Cores with a CPU in the set, in hwloc's order, which keeps neighbours together. list: capacity for all; may
 * be NULL. */
static int cores_in(hwloc_topology_t hwloc, hwloc_const_bitmap_t set, hwloc_obj_t *list)
{
    int n = 0;
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(hwloc, core_type(hwloc), core));)
        if (hwloc_bitmap_intersects(core->cpuset, set)) {
            if (list)
                list[n] = core;
            n++;
        }
    return n;
}

/* NUMA domains with CPUs in the set, in order. Further memory of the same CPUs (of a GPU, high-bandwidth
 * memory) is skipped: hwloc lists the nearest and oldest first. list: capacity for all. */
static int domains_in(hwloc_topology_t hwloc, hwloc_const_bitmap_t set, hwloc_obj_t *list)
{
    int n = 0;
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));) {
        bool counts = hwloc_bitmap_intersects(node->cpuset, set);
        for (int i = 0; i < n && counts; i++)
            counts = !hwloc_bitmap_intersects(node->cpuset, list[i]->cpuset);
        if (counts)
            list[n++] = node;
    }
    return n;
}

static hwloc_obj_t *alloc_objects(hwloc_topology_t hwloc, hwloc_obj_type_t type)
{
    return cake_alloc((size_t)hwloc_get_nbobjs_by_type(hwloc, type) + 1, sizeof(hwloc_obj_t));
}

int cake_pin_domains(struct hwloc_topology *hwloc)
{
    hwloc_obj_t *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    int n = domains_in(hwloc, hwloc_topology_get_complete_cpuset(hwloc), domain);
    free(domain);
    return n;
}

/* Open MPI's default binding: one core each for up to two ranks, else a NUMA domain or package each. Any
 * other mask was requested, for instance in a parameter file. */
static bool looks_default(hwloc_topology_t hwloc, hwloc_const_bitmap_t mask, int world)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE};
    if (world <= 2)
        return cores_in(hwloc, mask, NULL) == 1;
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    bool found = false;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(hwloc, types[k], o));) {
            hwloc_bitmap_and(allowed, o->cpuset, hwloc_topology_get_allowed_cpuset(hwloc));
            found = found || hwloc_bitmap_isequal(allowed, mask);
        }
    hwloc_bitmap_free(allowed);
    return found;
}

/* True if this mode replaces an unrequested mask. */
static bool replaces_default(cake_bind bind)
{
    return bind != CAKE_BIND_NONE && bind != CAKE_BIND_NUMACTL;
}

/* Restricts the base to the domain in which the rank started, if it may run there. */
static void isolate(hwloc_topology_t hwloc, int began, hwloc_bitmap_t base)
{
    hwloc_obj_t *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    int n = domains_in(hwloc, hwloc_topology_get_complete_cpuset(hwloc), domain);
    for (int d = 0; d < n; d++)
        if (began >= 0 && hwloc_bitmap_isset(domain[d]->cpuset, (unsigned)began) &&
            hwloc_bitmap_intersects(base, domain[d]->cpuset))
            hwloc_bitmap_and(base, base, domain[d]->cpuset);
    free(domain);
}

/* The CPUs that a rank may use; owned. */
static hwloc_bitmap_t base_of(hwloc_topology_t hwloc, const cake_bind_request *request, int world,
                              cake_bind bind)
{
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(hwloc);
    hwloc_bitmap_t base = cake_cpuset_set(&request->mask);
    bool left = replaces_default(bind) && request->unasked && looks_default(hwloc, base, world);
    if (left || bind == CAKE_BIND_HWLOC) {
        hwloc_bitmap_free(base);
        base = cake_cpuset_set(&request->pool);
    }
    hwloc_bitmap_t mine = hwloc_bitmap_dup(base);
    hwloc_bitmap_and(mine, mine, allowed);
    if (!hwloc_bitmap_iszero(mine))
        hwloc_bitmap_copy(base, mine);
    hwloc_bitmap_free(mine);
    if (bind == CAKE_BIND_ISOLATE)
        isolate(hwloc, request->began, base);
    return base;
}

void cake_pin_allowed(struct hwloc_topology *hwloc, const cake_bind_request *request, int world,
                      cake_bind bind, cake_cpuset *allowed)
{
    hwloc_bitmap_t base = base_of(hwloc, request, world, bind);
    cake_cpuset_of(base, allowed);
    hwloc_bitmap_free(base);
}

bool cake_pin_domain_cpus(struct hwloc_topology *hwloc, const cake_cpuset *domains, cake_cpuset *cpus)
{
    hwloc_obj_t *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    hwloc_bitmap_t all = hwloc_bitmap_alloc(), numbers = hwloc_bitmap_alloc();
    int n = domains_in(hwloc, hwloc_topology_get_complete_cpuset(hwloc), domain), found = 0;
    for (int i = 0; i < n; i++) {
        hwloc_bitmap_set(numbers, domain[i]->os_index);
        if (!cake_cpuset_has(domains, (int)domain[i]->os_index))
            continue;
        hwloc_bitmap_or(all, all, domain[i]->cpuset);
        found++;
    }
    bool known = found == cake_cpuset_count(domains);
    cake_cpuset_of(known ? all : numbers, cpus);
    hwloc_bitmap_free(all);
    hwloc_bitmap_free(numbers);
    free(domain);
    return known;
}

/* Restricts a base to its big cores and as many little ones as so many threads need beside them; 0: one
 * thread per big core. */
static void leave_little_cores(hwloc_topology_t hwloc, int threads, hwloc_bitmap_t base)
{
    hwloc_bitmap_t big = hwloc_bitmap_dup(base);
    hwloc_obj_t *core = alloc_objects(hwloc, core_type(hwloc));
    cake_core_kinds_only_big(hwloc, big);
    int more = threads - cores_in(hwloc, big, NULL);
    for (int i = 0, n = cores_in(hwloc, base, core); i < n && more > 0; i++)
        if (!hwloc_bitmap_intersects(big, core[i]->cpuset)) {
            hwloc_bitmap_or(big, big, core[i]->cpuset);
            more--;
        }
    hwloc_bitmap_and(base, base, big);
    hwloc_bitmap_free(big);
    free(core);
}

/* The cpus that each rank may use [n], owned. Placed ranks get their place; others avoid its cores if they
 * have any left. */
static hwloc_bitmap_t *bases_of(hwloc_topology_t hwloc, const cake_bind_request *requests, int n, int world,
                                cake_bind bind)
{
    hwloc_bitmap_t *bases = cake_alloc((size_t)n, sizeof(hwloc_bitmap_t)), taken = hwloc_bitmap_alloc(),
                   *full = cake_alloc((size_t)n, sizeof(hwloc_bitmap_t));
    hwloc_obj_t *core = alloc_objects(hwloc, core_type(hwloc));
    for (int i = 0; i < n; i++) {
        bases[i] = requests[i].has_cpus ? cake_cpuset_set(&requests[i].cpus)
                                        : base_of(hwloc, &requests[i], world, bind);
        for (int k = requests[i].has_cpus ? cores_in(hwloc, bases[i], core) : 0; k > 0; k--)
            hwloc_bitmap_or(taken, taken, core[k - 1]->cpuset);
    }
    for (int i = 0; i < n; i++)
        if (!requests[i].has_cpus && !hwloc_bitmap_isincluded(bases[i], taken))
            hwloc_bitmap_andnot(bases[i], bases[i], taken);
    for (int i = 0; i < n; i++)
        full[i] = hwloc_bitmap_dup(bases[i]);
    for (int i = 0; i < n; i++) {
        int threads = 0;
        for (int j = 0; j < n; j++)
            if (hwloc_bitmap_intersects(full[i], full[j]))
                threads += requests[j].threads;
        if (!requests[i].has_cpus)
            leave_little_cores(hwloc, threads, bases[i]);
    }
    for (int i = 0; i < n; i++)
        hwloc_bitmap_free(full[i]);
    free(full);
    hwloc_bitmap_free(taken);
    free(core);
    return bases;
}

/* Cores of a base shared by several ranks, domain by domain. */
typedef struct core_list {
    hwloc_obj_t *core; /* [n] owned */
    int n, n_domain;
    int *first; /* [n_domain + 1] owned: index in core where each domain begins */
} core_list;

static core_list list_cores(hwloc_topology_t hwloc, hwloc_const_bitmap_t base)
{
    hwloc_obj_t *all = alloc_objects(hwloc, core_type(hwloc)),
                *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    core_list g = {.core = alloc_objects(hwloc, core_type(hwloc))};
    int n = cores_in(hwloc, base, all);
    g.n_domain = domains_in(hwloc, base, domain);
    g.first = cake_alloc((size_t)g.n_domain + 1, sizeof *g.first);
    for (int d = 0; d < g.n_domain; d++) {
        g.first[d] = g.n;
        for (int i = 0; i < n && g.n < n; i++) /* limit, in case a core is in two domains */
            if (hwloc_bitmap_intersects(all[i]->cpuset, domain[d]->cpuset))
                g.core[g.n++] = all[i];
    }
    g.first[g.n_domain] = g.n;
    if (g.n != n) { /* cores outside of all domains: use no domains */
        memcpy(g.core, all, (size_t)n * sizeof *all);
        g.n = n;
        g.n_domain = 0;
    }
    free(all);
    free(domain);
    return g;
}

/* The cores of rank i of k where ranks fit domains: several domains per rank, or several ranks per domain. */
static void fit_domains(const core_list *g, int k, int i, int *first, int *last)
{
    int each = k / g->n_domain, wide = g->n_domain / k;
    if (each) {
        int begin = g->first[i / each], n = g->first[i / each + 1] - begin;
        *first = begin + n * (i % each) / each;
        *last = begin + n * (i % each + 1) / each;
    } else {
        *first = g->first[i * wide];
        *last = g->first[i * wide + wide];
    }
}

/* The cores of rank i of k: whole domains or even parts of one, unless some ranks would get less than half of
 * what others get; then even parts of all cores. */
static void divide(const core_list *g, int k, int i, int *first, int *last)
{
    if (g->n_domain && (k % g->n_domain == 0 || g->n_domain % k == 0)) {
        int min = g->n, max = 0;
        for (int j = 0; j < k; j++) {
            fit_domains(g, k, j, first, last);
            min = *last - *first < min ? *last - *first : min;
            max = *last - *first > max ? *last - *first : max;
        }
        if (2 * min >= max) {
            fit_domains(g, k, i, first, last);
            return;
        }
    }
    *first = (int)((int64_t)g->n * i / k);
    *last = (int)((int64_t)g->n * (i + 1) / k);
}

/* CPUs of cores [first, last) within the base. */
static void collect_cpus(hwloc_obj_t *core, int first, int last, hwloc_const_bitmap_t base,
                         hwloc_bitmap_t into)
{
    hwloc_bitmap_zero(into);
    for (int i = first; i < last; i++)
        hwloc_bitmap_or(into, into, core[i]->cpuset);
    hwloc_bitmap_and(into, into, base);
}

/* Divides cores of overlapping masks evenly. */
static int fair_share(hwloc_topology_t hwloc, hwloc_bitmap_t *bases, int n, int rank)
{
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    int64_t requested = 0, mine = cores_in(hwloc, bases[rank], NULL);
    for (int i = 0; i < n; i++) {
        hwloc_bitmap_or(all, all, bases[i]);
        requested += cores_in(hwloc, bases[i], NULL);
    }
    int64_t available = cores_in(hwloc, all, NULL),
            fair = requested > available ? mine * available / requested : mine;
    hwloc_bitmap_free(all);
    return fair > 0 ? (int)fair : 1;
}

/* An even part of each domain for rank i of k, in *mine (owned). False: some rank would get nothing. */
static bool divide_domains(const core_list *g, int k, int i, core_list *mine)
{
    int64_t min = g->n;
    *mine = (core_list){.n_domain = g->n_domain,
                        .core = cake_alloc((size_t)g->n + 1, sizeof *g->core),
                        .first = cake_alloc((size_t)g->n_domain + 1, sizeof *g->first)};
    for (int j = 0; j < k; j++) {
        int64_t all = 0;
        for (int d = 0; d < g->n_domain; d++) {
            int64_t cores = g->first[d + 1] - g->first[d], begin = cores * j / k, end = cores * (j + 1) / k;
            all += end - begin;
            if (j != i)
                continue;
            mine->first[d] = mine->n;
            for (int64_t c = begin; c < end; c++)
                mine->core[mine->n++] = g->core[g->first[d] + c];
        }
        min = all < min ? all : min;
    }
    mine->first[g->n_domain] = mine->n;
    return min > 0;
}

/* Divides a base among the ranks that have exactly it, if no other rank overlaps and there are enough cores.
 * Returns whether the rank has its own cores: *mine (owned), some of every domain if distribute is set. */
static bool divide_base(const core_list *g, hwloc_bitmap_t *bases, int n, int rank, bool distribute,
                        core_list *mine)
{
    int same = 0, before = 0;
    for (int i = 0; i < n; i++) {
        bool equal = hwloc_bitmap_isequal(bases[i], bases[rank]);
        if (!equal && hwloc_bitmap_intersects(bases[i], bases[rank]))
            return false;
        same += equal;
        before += equal && i < rank;
    }
    if (same > g->n)
        return false;
    if (distribute && g->n_domain > 1) {
        if (divide_domains(g, same, before, mine))
            return true;
        free(mine->core);
        free(mine->first);
    }
    int first, last;
    divide(g, same, before, &first, &last);
    *mine = (core_list){.core = cake_alloc((size_t)(last - first) + 1, sizeof *g->core), .n = last - first};
    memcpy(mine->core, g->core + first, (size_t)mine->n * sizeof *g->core);
    return true;
}

static bool is_domain_shared(hwloc_topology_t hwloc, hwloc_bitmap_t *bases, int n)
{
    hwloc_obj_t *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    int available = domains_in(hwloc, hwloc_topology_get_allowed_cpuset(hwloc), domain), max = 0, min = n;
    for (int d = 0; d < available; d++) {
        int within = 0, touching = 0;
        for (int i = 0; i < n; i++) {
            within += hwloc_bitmap_isincluded(bases[i], domain[d]->cpuset);
            touching += hwloc_bitmap_intersects(bases[i], domain[d]->cpuset);
        }
        max = within > max ? within : max;
        min = touching < min ? touching : min;
    }
    free(domain);
    return max > 1 && min == 0;
}

/* True if there are more ranks than cores where this one may run. */
static bool is_stacked(hwloc_topology_t hwloc, hwloc_bitmap_t *bases, int n, int rank)
{
    int within = 0;
    for (int i = 0; i < n; i++)
        within += hwloc_bitmap_isincluded(bases[i], bases[rank]);
    return within > cores_in(hwloc, bases[rank], NULL);
}

static int domain_of(hwloc_topology_t hwloc, hwloc_const_bitmap_t set)
{
    hwloc_obj_t *domain = alloc_objects(hwloc, HWLOC_OBJ_NUMANODE);
    int available = domains_in(hwloc, hwloc_topology_get_complete_cpuset(hwloc), domain);
    int mine = available > 1 ? domains_in(hwloc, set, domain) : 0;
    int os = mine == 1 ? (int)domain[0]->os_index : -1;
    free(domain);
    return os;
}

/* Gives each thread its own cores; with fewer threads than cores each may use several. */
static void pin_threads(const core_list *g, hwloc_const_bitmap_t base, cake_pin *pin)
{
    int64_t cores = g->n;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    pin->thread = cake_alloc((size_t)pin->n_thread, sizeof *pin->thread);
    for (int t = 0; t < pin->n_thread; t++) {
        collect_cpus(g->core, (int)(cores * t / pin->n_thread), (int)(cores * (t + 1) / pin->n_thread), base,
                     set);
        cake_cpuset_of(set, &pin->thread[t]);
    }
    hwloc_bitmap_free(set);
}

/* The next domain in turn with a free core; if none has one, the next with any core. */
static int next_domain(const core_list *g, const int *held, int turn)
{
    for (int tries = 0; tries < 2 * g->n_domain; tries++) {
        int d = (turn + tries) % g->n_domain, cores = g->first[d + 1] - g->first[d];
        if (held[d] < cores || (cores && tries >= g->n_domain))
            return d;
    }
    return 0;
}

/* Places threads in turn on all domains, on separate cores while these suffice. */
static void spread_threads(const core_list *g, hwloc_const_bitmap_t base, cake_pin *pin)
{
    int *held = cake_alloc((size_t)g->n_domain, sizeof *held),
        *seen = cake_alloc((size_t)g->n_domain, sizeof *seen);
    int *home = cake_alloc((size_t)pin->n_thread, sizeof *home);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    pin->thread = cake_alloc((size_t)pin->n_thread, sizeof *pin->thread);
    for (int t = 0; t < pin->n_thread; t++)
        held[home[t] = next_domain(g, held, t % g->n_domain)]++;
    for (int t = 0; t < pin->n_thread; t++) {
        int d = home[t], begin = g->first[d], end = g->first[d + 1];
        int64_t cores = end - begin, i = seen[d]++;
        if (held[d] <= cores) {
            end = begin + (int)(cores * (i + 1) / held[d]);
            begin += (int)(cores * i / held[d]);
        }
        collect_cpus(g->core, begin, end, base, set);
        cake_cpuset_of(set, &pin->thread[t]);
    }
    hwloc_bitmap_free(set);
    free(held);
    free(seen);
    free(home);
}

static bool all_threads_fit(hwloc_topology_t hwloc, const cake_bind_request *requests, int n)
{
    int64_t n_requested = 0;
    for (int i = 0; i < n; i++)
        n_requested += requests[i].threads > 0 ? requests[i].threads : 1;
    return n_requested <= cores_in(hwloc, hwloc_topology_get_allowed_cpuset(hwloc), NULL);
}

/* This rank's own part of a base, in *mine, if its threads fit there. */
static bool take_own_part(hwloc_topology_t hwloc, hwloc_bitmap_t *bases, int n, int rank, bool distribute,
                          cake_pin *pin, hwloc_bitmap_t mine)
{
    core_list g = list_cores(hwloc, bases[rank]), divide = {0};
    bool own = divide_base(&g, bases, n, rank, distribute, &divide);
    if (own) {
        collect_cpus(divide.core, 0, divide.n, bases[rank], mine);
        pin->n_core = divide.n;
        pin->n_thread = pin->n_thread ? pin->n_thread : pin->n_core;
        own = pin->n_thread <= hwloc_bitmap_weight(mine);
        if (own && divide.n_domain > 1)
            spread_threads(&divide, bases[rank], pin);
        else if (pin->n_thread <= pin->n_core)
            pin_threads(&divide, bases[rank], pin);
        free(divide.core);
        free(divide.first);
    }
    free(g.core);
    free(g.first);
    return own;
}

void cake_pin_make(struct hwloc_topology *hwloc, const cake_bind_request *requests, int n, int rank,
                   int world, cake_bind bind, cake_pin *pin)
{
    hwloc_bitmap_t *bases = bases_of(hwloc, requests, n, world, bind), mine = hwloc_bitmap_alloc();
    bool free_to_run = bind == CAKE_BIND_NONE && !requests[rank].has_cpus;
    *pin = (cake_pin){.domain = -1,
                      .n_thread = requests[rank].threads,
                      .n_core = fair_share(hwloc, bases, n, rank),
                      .all_fit = all_threads_fit(hwloc, requests, n)};
    if (free_to_run || !take_own_part(hwloc, bases, n, rank, bind == CAKE_BIND_DISTRIBUTE, pin, mine))
        hwloc_bitmap_copy(mine, bases[rank]);
    cake_cpuset_of(mine, &pin->cpus);
    pin->n_thread = pin->n_thread ? pin->n_thread : pin->n_core;
    pin->replaced = replaces_default(bind) && bind != CAKE_BIND_HWLOC && requests[rank].unasked &&
                    !requests[rank].has_cpus &&
                    memcmp(&pin->cpus, &requests[rank].mask, sizeof pin->cpus) != 0;
    pin->domain = free_to_run || bind == CAKE_BIND_NUMACTL ? -1 : domain_of(hwloc, mine);
    if (pin->n_thread > pin->n_core)
        pin->warning =
            pin->n_thread <= cake_cpuset_count(&pin->cpus) && cores_in(hwloc, mine, NULL) == pin->n_core
                ? CAKE_PIN_WARN_SMT
                : CAKE_PIN_WARN_NARROW;
    else if (!requests[rank].has_cpus && is_domain_shared(hwloc, bases, n))
        pin->warning = CAKE_PIN_WARN_DOMAIN;
    else if (!requests[rank].has_cpus && pin->all_fit && is_stacked(hwloc, bases, n, rank))
        pin->warning = CAKE_PIN_WARN_STACKED;
    hwloc_bitmap_free(mine);
    for (int i = 0; i < n; i++)
        hwloc_bitmap_free(bases[i]);
    free(bases);
}

void cake_pin_free(cake_pin *pin)
{
    free(pin->thread);
    *pin = (cake_pin){.domain = -1};
}

void cake_pin_advise(const cake_pin *pin, cake_launch launcher, int world, cake_buf *out)
{
    char list[256];
    cake_cpuset_text(&pin->cpus, list, sizeof list);
    if (pin->warning == CAKE_PIN_WARN_DOMAIN) {
        cake_buf_adds(out, "two ranks run in one NUMA domain while another is empty; start it with ");
        cake_launcher_line(launcher, world, 0, out);
    } else if (pin->warning == CAKE_PIN_WARN_STACKED) {
        cake_buf_addf(out, "ranks share cpus %s while others are idle; start it with ", list);
        cake_launcher_line(launcher, world, pin->n_thread, out);
    } else if (pin->warning != CAKE_PIN_WARN_NONE) {
        cake_buf_addf(out, "%d thread%s per rank for %d core%s of cpus %s", pin->n_thread,
                      cake_plural(pin->n_thread), pin->n_core, cake_plural(pin->n_core), list);
        cake_buf_addf(out, "%s; use --threads %d",
                      pin->warning == CAKE_PIN_WARN_SMT
                          ? ": hardware threads of one core share its arithmetic"
                          : " take turns",
                      pin->n_core);
        if (pin->all_fit) {
            cake_buf_adds(out, ", or start it with ");
            cake_launcher_line(launcher, world, pin->n_thread, out);
        }
    }
}
