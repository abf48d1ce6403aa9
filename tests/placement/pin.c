/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins on machines that are files: tests/placement/machines/NAME.txt, whose README says what its lines mean.
 * The expected values come from the machines' descriptions, not from the program's output.
 */
#include "placement/pin.h"

#include <dirent.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "placement/bind.h"
#include "placement/machine.h"
#include "placement/pci_devices.h"
#include "tests/suite.h"

enum { MOST_RANKS = 64, LINE = 4096 };

typedef struct machine {
    const char *name;
    int line;
    hwloc_topology_t hwloc;
    cake_buf described, expected; /* as info describes it */
    cake_bind_request claims[MOST_RANKS];
    int n_claim, next, world; /* next: the rank whose line comes next */
    cake_bind bind;
    int cases;
    cake_cpuset pinned[MOST_RANKS]; /* that ranks of the case got */
} machine;

static void wrong(const machine *m, const char *what, const char *got, const char *wanted)
{
    char text[2 * LINE];
    snprintf(text, sizeof text, "%s:%d: %s is \"%s\", expected \"%s\"", m->name, m->line, what, got, wanted);
    CU_FAIL();
    printf("\n    %s", text);
}

static void same(const machine *m, const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted))
        wrong(m, what, got, wanted);
    else
        CU_PASS();
}

static void open_topology(machine *m, const char *kind, const char *text)
{
    CU_ASSERT_FATAL(!hwloc_topology_init(&m->hwloc));
    hwloc_topology_set_flags(m->hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_all_types_filter(m->hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (!strcmp(kind, "synthetic"))
        CU_ASSERT_FATAL(!hwloc_topology_set_synthetic(m->hwloc, text));
    if (!strcmp(kind, "xml")) {
        char name[256];
        snprintf(name, sizeof name, "placement/machines/%s", text);
        CU_ASSERT_FATAL(!hwloc_topology_set_xml(m->hwloc, suite_path(name)));
    }
    CU_ASSERT_FATAL(!hwloc_topology_load(m->hwloc));
}

static void allow(machine *m, const char *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_list_sscanf(set, list);
    CU_ASSERT_FATAL(!hwloc_topology_allow(m->hwloc, set, NULL, HWLOC_ALLOW_FLAG_CUSTOM));
    hwloc_bitmap_free(set);
}

static void read_cpus(const machine *m, const char *list, cake_cpuset *cpus)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!strcmp(list, "all"))
        hwloc_bitmap_copy(set, hwloc_topology_get_allowed_cpuset(m->hwloc));
    else
        CU_ASSERT_FATAL(!hwloc_bitmap_list_sscanf(set, list));
    cake_cpuset_of(set, cpus);
    hwloc_bitmap_free(set);
}

/* MASK, MASK*N, ~MASK/POOL of ranks that a launcher bound unasked, MASK@PLACE of those that a topology file
 * places, MASK!CPU of those that began on a cpu. */
static void add_claims(machine *m, char *word, int threads)
{
    char *times = strchr(word, '*'), *pool = strchr(word, '/'), *cpus = strchr(word, '@'),
         *began = strchr(word, '!');
    int n = times ? atoi(times + 1) : 1;
    cake_bind_request claim = {.unasked = *word == '~', .threads = threads};
    if (times)
        *times = 0;
    if (pool)
        *pool++ = 0;
    if (cpus)
        *cpus++ = 0;
    if (began)
        *began++ = 0;
    claim.began = began ? atoi(began) : 0;
    read_cpus(m, word + claim.unasked, &claim.mask);
    claim.pool = claim.mask;
    if (claim.unasked || pool)
        read_cpus(m, pool ? pool : "all", &claim.pool);
    claim.has_cpus = cpus;
    if (cpus)
        read_cpus(m, cpus, &claim.cpus);
    for (int i = 0; i < n && m->n_claim < MOST_RANKS; i++)
        m->claims[m->n_claim++] = claim;
}

static void begin_case(machine *m, char *words)
{
    static const char *const binds[] = {"auto", "none", "hwloc", "distribute", "isolate", "numactl"};
    int threads = 0;
    CU_ASSERT_EQUAL(m->next, m->n_claim); /* the case before had a line for each rank */
    m->n_claim = m->next = m->world = 0;
    m->bind = CAKE_BIND_AUTO;
    m->cases++;
    for (char *save, *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        bool known = sscanf(word, "threads=%d", &threads) == 1 || sscanf(word, "world=%d", &m->world) == 1;
        for (int b = 0; b < CAKE_N_BIND; b++)
            if (!strcmp(word, binds[b])) {
                m->bind = (cake_bind)b;
                known = true;
            }
        if (!known)
            add_claims(m, word, threads);
    }
    m->world = m->world ? m->world : m->n_claim;
}

static void check_threads(const machine *m, const cake_pin *pin, const char *wanted)
{
    char got[LINE] = "-", one[512];
    const char *dots = strstr(wanted, "..");
    if (pin->thread)
        *got = 0;
    for (int t = 0; pin->thread && t < pin->n_thread; t++) {
        bool shown = !dots || t == 0 || t == pin->n_thread - 1;
        cake_cpuset_text(&pin->thread[t], one, sizeof one);
        if (shown)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", !t ? "" : dots ? ".." : "/", one);
    }
    same(m, "threads", got, wanted);
}

/* Whatever is expected: no cpu that is not allowed, no core for two threads, nothing of another rank's. */
static void check_rules(const machine *m, const cake_pin *pin)
{
    hwloc_bitmap_t cpus = cake_cpuset_set(&pin->cpus), seen = hwloc_bitmap_alloc();
    CU_ASSERT(hwloc_bitmap_isincluded(cpus, hwloc_topology_get_allowed_cpuset(m->hwloc)));
    for (int t = 0; pin->thread && t < pin->n_thread; t++) {
        hwloc_bitmap_t one = cake_cpuset_set(&pin->thread[t]);
        CU_ASSERT(!hwloc_bitmap_iszero(one) && hwloc_bitmap_isincluded(one, cpus) &&
                  (pin->n_thread > pin->n_core || !hwloc_bitmap_intersects(one, seen)));
        hwloc_bitmap_or(seen, seen, one);
        hwloc_bitmap_free(one);
    }
    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(seen);
}

static void check_rank(machine *m, const char *words)
{
    static const char *const traps[] = {"", "smt", "narrow", "domain", "stacked"};
    char cpus[512], domain[16], threads[LINE], trap[16] = "", got[512];
    int cores, n;
    CU_ASSERT_FATAL(m->next < m->n_claim);
    CU_ASSERT_FATAL(sscanf(words, "%511s %d %d %15s %4095s %15s", cpus, &cores, &n, domain, threads, trap) >=
                    5);
    cake_pin pin;
    cake_pin_make(m->hwloc, m->claims, m->n_claim, m->next, m->world, m->bind, &pin);
    m->pinned[m->next++] = pin.cpus;
    cake_cpuset_text(&pin.cpus, got, sizeof got);
    same(m, "cpus", got, cpus);
    snprintf(got, sizeof got, "%d %d", pin.n_core, pin.n_thread);
    snprintf(cpus, sizeof cpus, "%d %d", cores, n);
    same(m, "cores and threads", got, cpus);
    snprintf(got, sizeof got, "%d", pin.domain);
    same(m, "domain", pin.domain < 0 ? "-" : got, domain);
    check_threads(m, &pin, threads);
    same(m, "trap", traps[pin.warning], trap);
    check_rules(m, &pin);
    cake_pin_free(&pin);
}

/* The GPU of each rank of the case. */
static void check_gpus(const machine *m, const char *words)
{
    int n, n_gpu, choice[MOST_RANKS];
    cake_buf got = {0};
    cake_device *list = cake_devices_list(m->hwloc, &n, &n_gpu);
    CU_ASSERT_FATAL(n_gpu > 0 && m->next == m->n_claim);
    bool shared = cake_devices_assign(list, n_gpu, m->pinned, m->n_claim, choice);
    for (int r = 0; r < m->n_claim; r++)
        cake_buf_addf(&got, "%s%d", r ? " " : "", choice[r]);
    cake_buf_adds(&got, shared ? " shared" : "");
    same(m, "GPUs", got.data, words);
    cake_buf_free(&got);
    free(list);
}

static void read_line(machine *m, char *line)
{
    static const char *const words[] = {"synthetic", "xml", "allowed", "case", "gpus"};
    line[strcspn(line, "\n")] = 0;
    if (!*line || *line == '#')
        return;
    if (*line == '|') {
        cake_buf_addf(&m->expected, "%s\n", line + 1 + (line[1] == ' '));
        return;
    }
    if (*line == '=') {
        check_rank(m, line + 1);
        return;
    }
    for (int i = 0; i < 5; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(line, words[i], len) || line[len] != ' ')
            continue;
        if (i < 2)
            open_topology(m, words[i], line + len + 1);
        else if (i == 2)
            allow(m, line + len + 1);
        else if (i == 3)
            begin_case(m, line + len + 1);
        else
            check_gpus(m, line + len + 1);
        return;
    }
    wrong(m, "line", line, "synthetic, xml, allowed, case, gpus, = or |");
}

static void read_machine(const char *name)
{
    char path[512], line[LINE];
    machine *m = cake_alloc(1, sizeof *m);
    m->name = name;
    snprintf(path, sizeof path, "placement/machines/%s", name);
    FILE *f = fopen(suite_path(path), "r");
    CU_ASSERT_FATAL(f != NULL);
    while (f && fgets(line, sizeof line, f)) {
        m->line++;
        read_line(m, line);
    }
    fclose(f);
    CU_ASSERT_EQUAL(m->next, m->n_claim);
    CU_ASSERT(m->cases >= 2);
    cake_machine_describe_hwloc(m->hwloc, &m->described);
    same(m, "description", m->described.len ? m->described.data : "",
         m->expected.len ? m->expected.data : "");
    cake_buf_free(&m->described);
    cake_buf_free(&m->expected);
    hwloc_topology_destroy(m->hwloc);
    free(m);
}

static void test_machines(void)
{
    int n = 0;
    DIR *dir = opendir(suite_path("placement/machines"));
    CU_ASSERT_FATAL(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len > 4 && !strcmp(entry->d_name + len - 4, ".txt")) {
            read_machine(entry->d_name);
            n++;
        }
    }
    closedir(dir);
    CU_ASSERT(n >= 8);
}

/* Any masks on any machine: ranks that share nothing they were not given together, one core at most for a
 * thread. */
static void test_random(void)
{
    static const char *const shapes[] = {"numa:1 core:5 pu:2", "numa:3 core:3 pu:1",
                                         "pack:2 numa:2 core:4 pu:2", "numa:2 core:1 pu:4"};
    enum { RANKS = 5 };
    unsigned seed = 1;
    static machine machines[4], m;
    for (int i = 0; i < 4; i++)
        open_topology(&machines[i], "synthetic", shapes[i]);
    for (int round = 0; round < 2000; round++) {
        m = machines[round % 4];
        int n = 1 + round % RANKS, cpus = hwloc_get_nbobjs_by_type(m.hwloc, HWLOC_OBJ_PU);
        hwloc_bitmap_t set = hwloc_bitmap_alloc(), all = hwloc_bitmap_alloc();
        for (int i = 0; i < n; i++) {
            hwloc_bitmap_zero(set);
            while (hwloc_bitmap_iszero(set))
                for (int c = 0; c < cpus; c++)
                    if (rand_r(&seed) % 4 == 0)
                        hwloc_bitmap_set(set, (unsigned)c);
            if (i && rand_r(&seed) % 2)
                hwloc_bitmap_copy(set, all);
            hwloc_bitmap_copy(all, set);
            cake_cpuset_of(set, &m.claims[i].mask);
            m.claims[i].pool = m.claims[i].mask;
            m.claims[i].threads = rand_r(&seed) % 4;
            m.claims[i].began = rand_r(&seed) % cpus;
        }
        for (int i = 0; i < n; i++) {
            cake_pin pin;
            cake_pin_make(m.hwloc, m.claims, n, i, n, (cake_bind)(round / RANKS % CAKE_N_BIND), &pin);
            hwloc_bitmap_t mine = cake_cpuset_set(&pin.cpus), given = cake_cpuset_set(&m.claims[i].mask);
            CU_ASSERT(hwloc_bitmap_isincluded(mine, given) && !hwloc_bitmap_iszero(mine));
            CU_ASSERT(pin.n_thread >= 1 &&
                      (pin.n_thread <= pin.n_core) ==
                          (pin.warning < CAKE_PIN_WARN_SMT || pin.warning > CAKE_PIN_WARN_NARROW));
            check_rules(&m, &pin);
            hwloc_bitmap_free(mine);
            hwloc_bitmap_free(given);
            cake_pin_free(&pin);
        }
        hwloc_bitmap_free(set);
        hwloc_bitmap_free(all);
    }
    for (int i = 0; i < 4; i++)
        hwloc_topology_destroy(machines[i].hwloc);
}

#define OPENMPI "OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_orte_bound_at_launch=1"

/* As mpirun of Open MPI 4.1.4 leaves them. */
static void test_launchers(void)
{
    static const struct {
        char *env[8];
        cake_launch kind;
        bool unasked, openmp;
        int tasks;
    } rows[] = {
        {{"HOME=/root"}, CAKE_LAUNCH_NONE, false, false, 0},
        {{OPENMPI}, CAKE_LAUNCH_OPENMPI, true, false, 2},
        {{OPENMPI, "OMPI_MCA_btl=self,vader"}, CAKE_LAUNCH_OPENMPI, true, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_mapping_policy=ppr:1:node"}, CAKE_LAUNCH_OPENMPI, true, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_mapping_policy=slot"}, CAKE_LAUNCH_OPENMPI, true, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=2"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_mapping_policy=socket"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_mapping_policy=ppr:1:numa"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_rmaps_base_cpus_per_rank=2"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_hwloc_base_binding_policy=core"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_hwloc_base_cpu_set=0"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_hwloc_base_cpu_list=1"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{OPENMPI, "OMPI_MCA_orte_rankfile=/tmp/ranks"}, CAKE_LAUNCH_OPENMPI, false, false, 2},
        {{"OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_hwloc_base_binding_policy=none"},
         CAKE_LAUNCH_OPENMPI,
         false,
         false,
         2},
        {{OPENMPI, "SLURM_STEP_ID=0", "SLURM_PROCID=0"}, CAKE_LAUNCH_OPENMPI, true, false, 2},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=3", "PMI_RANK=3"}, CAKE_LAUNCH_SLURM, false, false, 0},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=5"}, CAKE_LAUNCH_SLURM, false, false, 5},
        {{"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8"}, CAKE_LAUNCH_HYDRA, false, false, 2},
        {{"MV2_COMM_WORLD_SIZE=3"}, CAKE_LAUNCH_NONE, false, false, 3},
        {{"PMI_RANK=1", "MPI_LOCALNRANKS=4"}, CAKE_LAUNCH_HYDRA, false, false, 4},
        {{"OMP_PROC_BIND=close"}, CAKE_LAUNCH_NONE, false, true, 0},
        {{"OMP_PROC_BIND=false", "OMP_PLACES="}, CAKE_LAUNCH_NONE, false, false, 0},
        {{"GOMP_CPU_AFFINITY=0-3"}, CAKE_LAUNCH_NONE, false, true, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cake_launcher found;
        cake_launcher_find(rows[i].env, &found);
        CU_ASSERT(found.kind == rows[i].kind && found.unasked == rows[i].unasked &&
                  found.openmp == rows[i].openmp);
        CU_ASSERT_EQUAL(found.tasks, rows[i].tasks);
    }
    CU_ASSERT_EQUAL(cake_launcher_process(), -1);
}

static void advises(cake_pin pin, cake_launch launcher, const char *part)
{
    cake_buf text = {0};
    cake_pin_advise(&pin, launcher, 6, &text);
    CU_ASSERT(text.data && strstr(text.data, part));
    cake_buf_free(&text);
}

static void test_advice(void)
{
    cake_pin narrow = {.n_core = 2, .n_thread = 4, .all_fit = true, .warning = CAKE_PIN_WARN_NARROW},
             full = narrow;
    cake_pin domain = {.n_core = 2, .n_thread = 2, .warning = CAKE_PIN_WARN_DOMAIN};
    cake_pin smt = {.n_core = 2, .n_thread = 4, .warning = CAKE_PIN_WARN_SMT};
    advises(narrow, CAKE_LAUNCH_OPENMPI,
            "--threads 2, or start it with `mpirun --map-by slot:PE=4 --bind-to core -np 6 cake-mpi ...`");
    advises(narrow, CAKE_LAUNCH_SLURM,
            "`srun --hint=nomultithread --cpu-bind=cores --cpus-per-task=4 -n 6 cake-mpi ...`");
    advises(narrow, CAKE_LAUNCH_HYDRA, "`mpirun -bind-to core:4 -np 6 cake-mpi ...`");
    advises(narrow, CAKE_LAUNCH_NONE, "`cake-mpi --bind hwloc --threads 4 ...`");
    full.all_fit = false;
    advises(full, CAKE_LAUNCH_OPENMPI, "4 threads per rank for 2 cores of cpus");
    advises(domain, CAKE_LAUNCH_OPENMPI, "`mpirun --map-by numa --bind-to numa -np 6 cake-mpi ...`");
    advises(domain, CAKE_LAUNCH_SLURM, "--cpu-bind=ldoms -n 6");
    advises(domain, CAKE_LAUNCH_HYDRA, "-map-by numa -np 6");
    advises(smt, CAKE_LAUNCH_OPENMPI, "hardware threads");
    cake_pin stacked = {.n_core = 1, .n_thread = 1, .warning = CAKE_PIN_WARN_STACKED};
    advises(stacked, CAKE_LAUNCH_OPENMPI,
            "others are idle; start it with `mpirun --map-by slot:PE=1 --bind-to core -np 6 cake-mpi ...`");
    static const char *const lines[] = {
        [CAKE_LAUNCH_NONE] = "`mpirun --map-by ppr:4:node -np 8 cake-mpi ...`",
        [CAKE_LAUNCH_OPENMPI] =
            ("6 ranks for 4 GPUs of this host: two ranks on one GPU take turns; start it with "
             "`mpirun --map-by ppr:4:node -np 8 cake-mpi ...`"),
        [CAKE_LAUNCH_SLURM] = "`srun --ntasks-per-node=4 -n 8 cake-mpi ...`",
        [CAKE_LAUNCH_HYDRA] = "`mpirun -ppn 4 -np 8 cake-mpi ...`",
    };
    for (int launcher = CAKE_LAUNCH_NONE; launcher <= CAKE_LAUNCH_HYDRA; launcher++) {
        cake_buf text = {0};
        cake_devices_advise(4, 6, 12, (cake_launch)launcher, &text);
        CU_ASSERT(strstr(text.data, lines[launcher]) != NULL);
        cake_buf_free(&text);
    }
}

static void test_huge_pages(void)
{
    static const char *const cases[][2] = {{"always [madvise] never", "  allowed"},
                                           {"[always] madvise never", "  allowed"},
                                           {"always madvise [never]", "  not allowed"},
                                           {"", "unknown"},
                                           {"[", "unknown"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf text = {0};
        cake_machine_describe_huge_pages(cases[i][0], &text);
        CU_ASSERT(strstr(text.data, cases[i][1]) != NULL);
        cake_buf_free(&text);
    }
}

/* On this machine: a bound thread runs on its cpus, its pages lie in its domain, and unbinding restores the
 * mask. */
static void test_binding(void)
{
    enum { PAGES = 64 };
    cake_launcher launcher = {0};
    cake_bind_request claim;
    cake_binding *b = cake_binding_open(NULL, &launcher, CAKE_BIND_HWLOC, &claim);
    CU_ASSERT_FATAL(b != NULL);
    cpu_set_t before, after;
    CU_ASSERT(!sched_getaffinity(0, sizeof before, &before));
    hwloc_bitmap_t pool = cake_cpuset_set(&claim.pool);
    int cpu = hwloc_bitmap_last(pool);
    hwloc_topology_t hwloc = cake_binding_hwloc(b);
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(hwloc, (unsigned)cpu), node = NULL;
    CU_ASSERT_FATAL(pu != NULL);
    while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isincluded(pu->cpuset, node->cpuset))
            break;
    CU_ASSERT_FATAL(node != NULL);
    hwloc_bitmap_only(pool, (unsigned)cpu);
    cake_cpuset one;
    cake_cpuset_of(pool, &one);
    hwloc_bitmap_free(pool);
    CU_ASSERT(cake_binding_process(b, &one));
    if (!cake_binding_thread(b, &one, (int)node->os_index)) {
        printf("\n    pages in a domain: skipped, the system does not let memory be bound ");
    } else {
        size_t size = (size_t)sysconf(_SC_PAGESIZE);
        char *memory = aligned_alloc(size, PAGES * size);
        void *page[PAGES];
        int where[PAGES];
        memset(memory, 1, PAGES * size);
        for (int i = 0; i < PAGES; i++)
            page[i] = memory + (size_t)i * size;
        if (!syscall(SYS_move_pages, 0, (long)PAGES, page, NULL, where, 0))
            for (int i = 0; i < PAGES; i++)
                CU_ASSERT_EQUAL(where[i], (int)node->os_index);
        free(memory);
    }
    CU_ASSERT_EQUAL(sched_getcpu(), cpu);
    cake_binding_close(b);
    CU_ASSERT(!sched_getaffinity(0, sizeof after, &after) && CPU_EQUAL(&before, &after));
}

int main(void)
{
    static const suite_test tests[] = {
        {"machines in files", test_machines}, {"random masks", test_random},
        {"launchers", test_launchers},        {"corrected launch lines", test_advice},
        {"huge pages", test_huge_pages},      {"threads and pages go there", test_binding},
    };
    return SUITE_MAIN("pin", tests);
}
