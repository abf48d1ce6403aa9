/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology files by the thousand, from a generator with a fixed seed: of a plan in many ways of writing,
 * which must be read as that plan; with one thing wrong in a line that is known; and with bytes changed at
 * random.
 */
#include "placement/topology_workers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

enum { RANKS = 9, LAYERS = 40, FILES = 10000 };

static uint64_t state = 20261122;

/* 0 to n - 1. */
static int draw(int n)
{
    state ^= state << 13; /* Marsaglia's xorshift */
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)n);
}

/* The intended content of a file. */
typedef struct scheme {
    int n_rank, n_layer;
    int owner[LAYERS];
    char host[RANKS][32];
    const char *hosts[RANKS];
    bool pattern[RANKS]; /* its host is given by a pattern: names of the same host would come before it */
    int order[RANKS], n_worker; /* ranks, in the order of the file */
} scheme;

/* Every rank but 0 has a layer; workers of one host, which has ranks that follow each other, are in their
 * order. */
static void make_scheme(scheme *s)
{
    s->n_rank = 1 + draw(RANKS);
    s->n_layer = s->n_rank + draw(LAYERS - s->n_rank + 1);
    int per_host = 1 + draw(3), patterns = draw(1 << RANKS);
    for (int i = 0; i < s->n_layer; i++)
        s->owner[i] = draw(2) && i ? s->owner[i - 1] : draw(s->n_rank);
    for (int r = 1; r < s->n_rank; r++)
        s->owner[(r * s->n_layer) / s->n_rank] = r;
    for (int r = 0; r < s->n_rank; r++) {
        snprintf(s->host[r], sizeof s->host[r], "node%dx%s 10.0.0.%d", r / per_host,
                 r / per_host % 2 ? ".cluster" : "", r / per_host);
        s->hosts[r] = s->host[r];
        s->pattern[r] = patterns >> r / per_host & 1;
    }
    s->n_worker = 0;
    for (int r = 1; r < s->n_rank; r++) /* whole hosts change places */
        s->order[s->n_worker++] = r;
    for (int turn = draw(4); turn > 0 && s->n_rank > 1; turn--) {
        int first = draw(s->n_worker), n = 0;
        while (first > 0 && s->order[first] / per_host == s->order[first - 1] / per_host)
            first--;
        int moved[RANKS];
        while (first + n < s->n_worker && s->order[first + n] / per_host == s->order[first] / per_host)
            n++;
        memcpy(moved, s->order + first, (size_t)n * sizeof *moved);
        memmove(s->order + n, s->order, (size_t)first * sizeof *moved);
        memcpy(s->order, moved, (size_t)n * sizeof *moved);
    }
}

typedef enum flaw {
    NONE,
    UNKNOWN_KEY,
    BAD_PLACE,
    TWICE,
    BEYOND,
    BACKWARDS,
    NEGATIVE,
    OVERLAP,
    NO_NAME,
    TAB,
    ALIAS,
    ANCHOR,
    TAG,
    TYPE,
    STRANGER,
    PORT,
    RANK,
    ZERO,
    QUOTE,
    DEEP,
    SAME_NAME,
    N_FLAW
} flaw;

typedef struct pen {
    cake_buf text;
    flaw flaw;
    int flawed; /* the worker that has it */
    int line;   /* where; 0: not yet */
} pen;

static int line_of(const pen *p)
{
    int line = 1;
    for (size_t i = 0; i < p->text.len; i++)
        line += p->text.data[i] == '\n';
    return line;
}

/* The flaw is in the line that is being written. */
static void mark(pen *p)
{
    if (!p->line)
        p->line = line_of(p);
}

static void add_value(pen *p, const char *value)
{
    static const char *const quotes[] = {"", "'", "\""};
    const char *quote = quotes[strchr(value, '*') || strchr(value, '?') ? 1 + draw(2) : draw(3)];
    cake_buf_addf(&p->text, "%s%s%s", quote, value, quote);
}

static void end_line(pen *p)
{
    cake_buf_adds(&p->text, draw(8) ? "\n" : draw(2) ? "   # and so on\n" : "\n\n");
}

static void add_entry(pen *p, bool flow, const char *value, bool bare)
{
    if (!flow)
        cake_buf_adds(&p->text, "    - ");
    if (bare)
        cake_buf_adds(&p->text, value);
    else
        add_value(p, value);
    if (flow)
        cake_buf_adds(&p->text, draw(3) ? ", " : ",\n      ");
    else
        end_line(p);
}

/* A flaw that an entry of a list can have, or NULL. */
static const char *flawed_entry(pen *p, const scheme *s, int rank)
{
    static char text[64];
    int mine = 0;
    while (mine < s->n_layer && s->owner[mine] != rank)
        mine++;
    switch (p->flaw) {
    case BEYOND:
        snprintf(text, sizeof text, "model.layers.%d%s",
                 draw(2) ? s->n_layer + draw(3) : 1999999999 + draw(9), draw(2) ? "-2147483648" : "");
        return text;
    case BACKWARDS:
        return "model.layers.3-1";
    case NEGATIVE:
        return draw(2) ? "model.layers.-1" : "model.layers.1--3";
    case OVERLAP:
        snprintf(text, sizeof text, "model.layers.%d", mine);
        return text;
    case NO_NAME:
        return draw(2) ? "model.embed_tokens" : "model.layers.1.mlp";
    case DEEP:
        return "[[[[[[[[model.layers.0]]]]]]]]";
    case ALIAS:
        return "*all";
    case ANCHOR:
        return "&all model.layers.0";
    case TAG:
        return "!!str model.layers.0";
    default:
        return NULL;
    }
}

static void add_layers(pen *p, const scheme *s, int rank, bool flawed)
{
    static const char *const prefixes[] = {"model.layers.", "model.language_model.layers.",
                                           "language_model.model.layers."};
    const char *prefix = prefixes[draw(3)];
    bool flow = draw(2);
    cake_buf_adds(&p->text, flow ? "  layers: [" : "  layers:\n");
    for (int i = 0, n; i < s->n_layer; i += n) {
        for (n = 1; i + n < s->n_layer && s->owner[i + n] == s->owner[i] && draw(6); n++)
            ;
        char value[64];
        int used = snprintf(value, sizeof value, "%s%d", prefix, i);
        if (n > 1 || !draw(8))
            snprintf(value + used, sizeof value - (size_t)used, "-%d", i + n - 1);
        if (s->owner[i] == rank)
            add_entry(p, flow, value, false);
    }
    const char *bad = flawed ? flawed_entry(p, s, rank) : NULL;
    if (bad) {
        mark(p);
        add_entry(p, flow, bad, true);
    }
    if (flow) {
        cake_buf_adds(&p->text, "]");
        end_line(p);
    }
}

static void add_host(pen *p, const scheme *s, int rank, bool flawed)
{
    char host[64];
    size_t name = strcspn(s->host[rank], " ");
    int kind = s->pattern[rank] ? 3 : draw(3);
    snprintf(host, sizeof host, "%.*s", kind == 1 ? (int)strcspn(s->host[rank], ". ") : (int)name,
             s->host[rank]);
    if (kind == 2) /* its address */
        snprintf(host, sizeof host, "%s", s->host[rank] + name + 1);
    if (kind == 3) /* a pattern that no other host has */
        snprintf(host, sizeof host, "%.*s*", (int)strcspn(s->host[rank], "x") + 1, s->host[rank]);
    if (flawed && p->flaw == STRANGER)
        snprintf(host, sizeof host, "stranger%d", draw(10));
    if (flawed && (p->flaw == STRANGER || p->flaw == PORT))
        mark(p);
    bool port = draw(2);
    if (flawed && p->flaw == PORT)
        snprintf(host + strlen(host), sizeof host - strlen(host), ":%s", draw(2) ? "99999" : "x");
    else if (port)
        snprintf(host + strlen(host), sizeof host - strlen(host), ":%d", 1 + draw(65535));
    cake_buf_adds(&p->text, "  host: ");
    add_value(p, host);
    end_line(p);
}

/* A flaw that a line of its own has. */
static void add_flawed_line(pen *p)
{
    static const char *const lines[N_FLAW] = {
        [UNKNOWN_KEY] = "  layer: 1",  [BAD_PLACE] = "  cpus: 3-0", [TAB] = "\tos: linux",
        [TYPE] = "  description: [x]", [RANK] = "  rank: 77",       [ZERO] = "  threads: 0",
        [QUOTE] = "  threads: '2'"};
    const char *line = p->flaw == TWICE ? "  os: linux\n  os: linux" : lines[p->flaw];
    if (!line)
        return;
    mark(p);
    p->line += p->flaw == TWICE;
    cake_buf_addf(&p->text, "%s\n", line);
}

/* rank: that of the worker, or 0 for one that only says something of rank 0. */
static void add_worker(pen *p, const scheme *s, int rank, bool flawed)
{
    if (flawed && p->flaw == SAME_NAME) {
        cake_buf_adds(&p->text, "again:\n  rank: 0\n");
        mark(p);
        p->line++;
        cake_buf_adds(&p->text, "\nagain:\n  rank: 0\n");
    }
    cake_buf_addf(&p->text, "worker%d:\n", rank);
    bool by_rank = !rank || (draw(4) == 0 && !(flawed && (p->flaw == STRANGER || p->flaw == PORT)));
    if (by_rank && !(flawed && p->flaw == RANK))
        cake_buf_addf(&p->text, "  rank: %d\n", rank);
    else if (!by_rank)
        add_host(p, s, rank, flawed);
    if (draw(3) == 0)
        cake_buf_adds(&p->text, "  threads: 3\n");
    if (draw(3) == 0)
        cake_buf_addf(&p->text, "  kv_memory: %d%s\n", 1 + draw(90), draw(2) ? "M" : "%");
    if (draw(3) == 0)
        cake_buf_adds(&p->text, "  description: \"a caf\xC3\xA9's: \\u00e9\"\n");
    if (rank)
        add_layers(p, s, rank, flawed);
    if (flawed)
        add_flawed_line(p);
}

/* Writes the file; a flaw that needs a worker is put into a random one. */
static void write_file(pen *p, const scheme *s)
{
    p->text.len = 0;
    p->line = 0;
    cake_buf_adds(&p->text, draw(4) ? "" : "%YAML 1.1\n");
    cake_buf_adds(&p->text, p->text.len || !draw(4) ? "--- # generated\n" : "# generated\n");
    size_t begun = p->text.len;
    p->flawed = s->n_worker ? draw(s->n_worker) : -1;
    if (!draw(4) && p->flaw != SAME_NAME)
        add_worker(p, s, 0, false);
    for (int i = 0; i < s->n_worker; i++)
        add_worker(p, s, s->order[i], p->flaw != NONE && i == p->flawed);
    if (p->text.len == begun)
        cake_buf_adds(&p->text, "{}\n");
}

static bool is_plan_of(const cake_topology *t, const scheme *s)
{
    int next = 0;
    for (int i = 0; i < t->plan->n_hop; i++) {
        const cake_hop *hop = &t->plan->hop[i];
        if (hop->first != next || hop->count < 1)
            return false;
        for (; next < hop->first + hop->count; next++)
            if (next >= s->n_layer || s->owner[next] != hop->rank)
                return false;
    }
    return next == s->n_layer && t->n_replica == 1 && t->plan->n_rank == s->n_rank;
}

/* The position is in the text, or just after it. */
static bool is_inside(const cake_buf *text, const cake_yaml_fault *fault)
{
    int lines = 1;
    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    return fault->at.line >= 1 && fault->at.line <= lines + 1 && fault->at.column >= 1 && fault->message[0] &&
           !strpbrk(fault->message, "\n\r\x1b");
}

static cake_err parse(const pen *p, const scheme *s, cake_topology *out, cake_yaml_fault *fault)
{
    *fault = (cake_yaml_fault){.message = ""};
    char *copy = malloc(p->text.len + 1); /* as long as the text, so that sanitizers see one byte too many */
    memcpy(copy, p->text.data, p->text.len);
    cake_err err = cake_topology_parse(copy, p->text.len, s->hosts, s->n_rank, s->n_layer, out, fault);
    free(copy);
    return err;
}

static void complain(const char *what, const pen *p, const cake_yaml_fault *fault)
{
    printf("    %s: flaw %d in line %d; said of %d:%d: %s\n%s\n", what, (int)p->flaw, p->line, fault->at.line,
           fault->at.column, fault->message, p->text.data);
}

static void test_valid(void)
{
    pen p = {.flaw = NONE};
    int wrong = 0;
    for (int i = 0; i < FILES * 3 / 10; i++) {
        scheme s;
        cake_topology t;
        cake_yaml_fault fault;
        make_scheme(&s);
        write_file(&p, &s);
        bool fine = !parse(&p, &s, &t, &fault);
        if (fine) {
            fine = is_plan_of(&t, &s);
            cake_topology_free(&t);
        }
        if (!fine && !wrong++)
            complain("not the plan", &p, &fault);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cake_buf_free(&p.text);
}

static void test_flawed(void)
{
    pen p = {.flaw = NONE};
    int wrong = 0, flawed = 0;
    while (flawed < FILES * 3 / 10) {
        scheme s;
        cake_topology t;
        cake_yaml_fault fault;
        make_scheme(&s);
        p.flaw = (flaw)(NONE + 1 + draw(N_FLAW - 1));
        write_file(&p, &s);
        if (!p.line)
            continue; /* no worker that could have it */
        flawed++;
        bool fine = parse(&p, &s, &t, &fault) == CAKE_ERR_FATAL;
        if (!fine)
            cake_topology_free(&t);
        fine = fine && is_inside(&p.text, &fault) && fault.at.line == p.line;
        if (!fine && !wrong++)
            complain("not the place", &p, &fault);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cake_buf_free(&p.text);
}

/* Bytes that are put in, taken out, changed or doubled. */
static void damage(cake_buf *text)
{
    static const char likely[] = "\t\n :-[]{}&*!'\"#%?0179,\xFF\xC3";
    for (int n = 1 + draw(4); n > 0 && text->len > 1; n--) {
        size_t at = (size_t)draw((int)text->len), most = text->len - at;
        size_t len = 1 + (size_t)draw(draw(4) ? 2 : 40);
        len = len < most ? len : most;
        char byte = draw(2) ? likely[draw(sizeof likely - 1)] : (char)draw(256);
        switch (draw(4)) {
        case 0:
            text->data[at] = byte;
            break;
        case 1:
            memmove(text->data + at, text->data + at + len, text->len - at - len);
            cake_buf_cut(text, text->len - len);
            break;
        case 2:
            cake_buf_addc(text, ' ');
            memmove(text->data + at + 1, text->data + at, text->len - at - 1);
            text->data[at] = byte;
            break;
        default: {
            char part[41];
            memcpy(part, text->data + at, len);
            cake_buf_add(text, part, len);
        }
        }
    }
}

static void test_damaged(void)
{
    pen p = {.flaw = NONE};
    int wrong = 0, refused = 0, read = 0;
    for (int i = 0; i < FILES * 4 / 10; i++) {
        scheme s;
        cake_topology t;
        cake_yaml_fault fault;
        make_scheme(&s);
        write_file(&p, &s);
        damage(&p.text);
        bool fine = true;
        if (parse(&p, &s, &t, &fault)) {
            fine = is_inside(&p.text, &fault);
            refused++;
        } else {
            cake_topology_free(&t);
            read++;
        }
        if (!fine && !wrong++)
            complain("no place", &p, &fault);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(refused > FILES / 10 && read > FILES / 100);
    cake_buf_free(&p.text);
}

static void test_meant(void)
{
    CU_ASSERT(cake_workers_host_matches("n1", "n1") && cake_workers_host_matches("N1", "n1") &&
              !cake_workers_host_matches("n1", "n11"));
    CU_ASSERT(cake_workers_host_matches("n1", "x n1") && !cake_workers_host_matches("n", "x n1") &&
              !cake_workers_host_matches("n", ""));
    CU_ASSERT(cake_workers_host_matches("n1.a.b", "n1") && cake_workers_host_matches("n1", "n1.a.b"));
    CU_ASSERT(!cake_workers_host_matches("n1.a", "n1.b") && !cake_workers_host_matches("10", "10.0.0.1"));
    CU_ASSERT(cake_workers_host_matches("n*", "n1.a") && cake_workers_host_matches("n*.a", "n1.a") &&
              !cake_workers_host_matches("n*.a", "n1"));
    CU_ASSERT(cake_workers_host_matches("*", "x") && cake_workers_host_matches("?", "x") &&
              !cake_workers_host_matches("??", "x"));
    CU_ASSERT(cake_workers_host_matches("*a*b*c", "xxaxxbxxc") &&
              !cake_workers_host_matches("*a*b*c", "xxbxxaxxc"));
    char stars[4000], name[4001]; /* no pattern takes long */
    memset(name, 'a', 4000);
    name[4000] = 0;
    for (size_t i = 0; i < sizeof stars; i++)
        stars[i] = i % 2 ? 'a' : '*';
    stars[3998] = 'b';
    stars[3999] = 0;
    CU_ASSERT(!cake_workers_host_matches(stars, name));
}

int main(void)
{
    static const suite_test tests[] = {
        {"which host is meant", test_meant},
        {"files of a plan are read as that plan", test_valid},
        {"files with one thing wrong are refused at its line", test_flawed},
        {"damaged files are read or refused at a place", test_damaged},
    };
    return SUITE_MAIN("workers", tests);
}
