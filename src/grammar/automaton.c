/* SPDX-License-Identifier: Apache-2.0
 *
 * In: edges and expressions. Out: an automaton without dead ends.
 * Source: Thompson's construction; the end of a rule is one state, which nothing leaves.
 */
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void cake_automaton_stop(cake_automaton *a, cake_automaton_limit limit)
{
    a->limit = a->full ? a->limit : limit;
    a->full = true;
}

cake_err cake_automaton_check(const cake_automaton *a, const char *place, cake_fault *fault)
{
    static const char less[] = "use smaller numbers of repetitions, lengths or counts";
    if (!a->full)
        return CAKE_OK;
    if (a->limit == CAKE_LIMIT_WORK)
        return cake_fault_set(fault, NULL,
                              "the constraint needs too many steps to compile%s; use fewer or smaller lists, "
                              "patterns and schemas",
                              place);
    if (a->limit == CAKE_LIMIT_EDGES)
        return cake_fault_set(fault, NULL, "the constraint needs more than %d edges%s; %s",
                              CAKE_AUTOMATON_EDGES, place, less);
    return cake_fault_set(fault, NULL, "the constraint needs more than %d states%s; %s",
                          CAKE_AUTOMATON_STATES, place, less);
}

void cake_automaton_spend(cake_automaton *a, size_t steps)
{
    a->work += steps < CAKE_AUTOMATON_WORK ? (int64_t)steps : CAKE_AUTOMATON_WORK;
    if (a->work > CAKE_AUTOMATON_WORK)
        cake_automaton_stop(a, CAKE_LIMIT_WORK);
}

int32_t cake_automaton_state(cake_automaton *a)
{
    if (a->n_state >= CAKE_AUTOMATON_STATES) {
        cake_automaton_stop(a, CAKE_LIMIT_STATES);
        return a->n_state - 1;
    }
    return a->n_state++;
}

int cake_automaton_rule(cake_automaton *a)
{
    CAKE_RESERVE(a->rule, a->n_rule, a->cap_rule);
    a->rule[a->n_rule] = (cake_rule){.begin = cake_automaton_state(a), .end = cake_automaton_state(a)};
    return (int)a->n_rule++;
}

static bool same_edge(const cake_edge *a, const cake_edge *b)
{
    return a->from == b->from && a->to == b->to && a->rule == b->rule && a->kind == b->kind &&
           a->lo == b->lo && a->hi == b->hi;
}

static void add_edge(cake_automaton *a, cake_edge edge)
{
    cake_automaton_spend(a, 1);
    if (a->n_edge && same_edge(&a->edge[a->n_edge - 1], &edge)) /* (a||||) and the like */
        return;
    if (a->n_edge == CAKE_AUTOMATON_EDGES) {
        cake_automaton_stop(a, CAKE_LIMIT_EDGES);
        return;
    }
    CAKE_RESERVE(a->edge, a->n_edge, a->cap_edge);
    a->edge[a->n_edge++] = edge;
}

void cake_automaton_bytes(cake_automaton *a, int32_t from, int lo, int hi, int32_t to)
{
    add_edge(a, (cake_edge){from, to, -1, CAKE_EDGE_BYTES, (uint8_t)lo, (uint8_t)hi});
}

void cake_automaton_empty(cake_automaton *a, int32_t from, int32_t to)
{
    add_edge(a, (cake_edge){from, to, -1, CAKE_EDGE_EMPTY, 0, 0});
}

void cake_automaton_call(cake_automaton *a, int32_t from, int rule, int32_t to)
{
    add_edge(a, (cake_edge){from, to, rule, CAKE_EDGE_CALL, 0, 0});
}

int32_t cake_automaton_literal(cake_automaton *a, int32_t from, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && !a->full; i++) {
        const int32_t next = cake_automaton_state(a);
        cake_automaton_bytes(a, from, (uint8_t)bytes[i], (uint8_t)bytes[i], next);
        from = next;
    }
    return from;
}

/* ---- characters */

/* One set that is being written: full continuation bytes before `to` share their states. */
typedef struct set_writer {
    cake_automaton *automaton;
    int32_t from, to;
    int32_t tail[4]; /* the state from which i continuation bytes lead to `to`; -1: none yet */
} set_writer;

static int32_t tail_of(set_writer *w, int n)
{
    if (!n)
        return w->to;
    if (w->tail[n] < 0) {
        w->tail[n] = cake_automaton_state(w->automaton);
        cake_automaton_bytes(w->automaton, w->tail[n], 0x80, 0xBF, tail_of(w, n - 1));
    }
    return w->tail[n];
}

static void take_range(void *self, const cake_utf8_range *r)
{
    set_writer *w = self;
    int32_t at = w->from;
    for (int i = 0; i < r->n; i++) {
        bool rest = true; /* the bytes after this one are all continuation bytes */
        for (int j = i + 1; j < r->n; j++)
            rest = rest && r->lo[j] == 0x80 && r->hi[j] == 0xBF;
        const int32_t next = rest ? tail_of(w, r->n - i - 1) : cake_automaton_state(w->automaton);
        cake_automaton_bytes(w->automaton, at, r->lo[i], r->hi[i], next);
        if (rest)
            return;
        at = next;
    }
}

static void add_plain(cake_automaton *a, int32_t from, const cake_chars *chars, int32_t to)
{
    set_writer w = {a, from, to, {-1, -1, -1, -1}};
    for (size_t i = 0; i < chars->n && !a->full; i++)
        cake_utf8_ranges(chars->range[i].lo, chars->range[i].hi, take_range, &w);
}

static bool has_char(const cake_chars *chars, uint32_t code)
{
    for (size_t i = 0; i < chars->n; i++)
        if (chars->range[i].lo <= code && code <= chars->range[i].hi)
            return true;
    return false;
}

/* \" and the like, where a JSON string needs them (RFC 8259, section 7). */
static void add_escaped(cake_automaton *a, int32_t from, const cake_chars *chars, int32_t to)
{
    static const char letters[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    static const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    int32_t after = -1;
    for (uint32_t code = 0; code <= '\\'; code++) {
        char letter = 0;
        if (!(code < ' ' || code == '"' || code == '\\') || !has_char(chars, code))
            continue;
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
            letter = (uint8_t)letters[i][0] == code ? letters[i][1] : letter;
        if (after < 0)
            after = cake_automaton_literal(a, from, "\\", 1);
        if (letter) {
            cake_automaton_bytes(a, after, letter, letter, to);
            continue;
        }
        const int32_t at = cake_automaton_literal(a, after, code < 16 ? "u000" : "u001", 4);
        cake_automaton_bytes(a, at, digits[code % 16], digits[code % 16], to);
        if (upper[code % 16] != digits[code % 16])
            cake_automaton_bytes(a, at, upper[code % 16], upper[code % 16], to);
    }
}

void cake_automaton_chars(cake_automaton *a, int32_t from, const cake_chars *chars, cake_coding coding,
                          int32_t to)
{
    if (coding == CAKE_CODING_PLAIN) {
        add_plain(a, from, chars, to);
        return;
    }
    cake_chars plain = {0};
    for (size_t i = 0; i < chars->n; i++) { /* without the three parts that are escaped */
        static const cake_char_range parts[] = {
            {' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, CAKE_LAST_CHAR}};
        for (int p = 0; p < 3; p++) {
            const uint32_t lo = chars->range[i].lo > parts[p].lo ? chars->range[i].lo : parts[p].lo;
            const uint32_t hi = chars->range[i].hi < parts[p].hi ? chars->range[i].hi : parts[p].hi;
            if (lo <= hi)
                cake_chars_add(&plain, lo, hi);
        }
    }
    add_plain(a, from, &plain, to);
    add_escaped(a, from, chars, to);
    cake_chars_free(&plain);
}

/* ---- expressions */

static void add_repeat(cake_automaton *a, int32_t from, const cake_expr *e, cake_coding coding, int32_t to)
{
    const cake_expr *item = e->item[0];
    for (int i = 0; i < e->min && !a->full; i++) {
        const int32_t next = cake_automaton_state(a);
        cake_automaton_expr(a, from, item, coding, next);
        from = next;
    }
    if (e->max < 0) { /* with a state of its own, so that no edge ever leads back to `from` */
        const int32_t loop = cake_automaton_state(a), back = cake_automaton_state(a);
        cake_automaton_empty(a, from, loop);
        cake_automaton_expr(a, loop, item, coding, back);
        cake_automaton_empty(a, back, loop);
        cake_automaton_empty(a, loop, to);
        return;
    }
    for (int i = e->min; i < e->max && !a->full; i++) {
        const int32_t next = cake_automaton_state(a);
        cake_automaton_empty(a, from, to);
        cake_automaton_expr(a, from, item, coding, next);
        from = next;
    }
    cake_automaton_empty(a, from, to);
}

void cake_automaton_expr(cake_automaton *a, int32_t from, const cake_expr *e, cake_coding coding, int32_t to)
{
    cake_automaton_spend(a, 1);
    if (a->full)
        return;
    switch (e->kind) {
    case CAKE_EXPR_CHARS:
        cake_automaton_chars(a, from, &e->chars, coding, to);
        break;
    case CAKE_EXPR_SEQ:
        for (size_t i = 0; i + 1 < e->n && !a->full; i++) {
            const int32_t next = cake_automaton_state(a);
            cake_automaton_expr(a, from, e->item[i], coding, next);
            from = next;
        }
        if (e->n)
            cake_automaton_expr(a, from, e->item[e->n - 1], coding, to);
        else
            cake_automaton_empty(a, from, to);
        break;
    case CAKE_EXPR_ALT:
        for (size_t i = 0; i < e->n && !a->full; i++)
            cake_automaton_expr(a, from, e->item[i], coding, to);
        break;
    case CAKE_EXPR_REPEAT:
        add_repeat(a, from, e, coding, to);
        break;
    case CAKE_EXPR_RULE:
        cake_automaton_call(a, from, e->rule, to);
        break;
    }
}

/* ---- finishing */

static int by_kind(const void *a, const void *b)
{
    const cake_edge *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static void index_edges(cake_automaton *a)
{
    cake_edge *sorted = cake_alloc(a->n_edge + 1, sizeof *sorted);
    free(a->first);
    a->first = cake_alloc((size_t)a->n_state + 1, sizeof *a->first);
    for (size_t i = 0; i < a->n_edge; i++)
        a->first[a->edge[i].from]++;
    for (int32_t s = 0; s < a->n_state; s++)
        a->first[s + 1] += a->first[s];
    for (size_t i = a->n_edge; i-- > 0;)
        sorted[--a->first[a->edge[i].from]] = a->edge[i];
    for (int32_t s = 0; s < a->n_state; s++) {
        const size_t n = (size_t)(a->first[s + 1] - a->first[s]);
        if (n > 1)
            qsort(sorted + a->first[s], n, sizeof *sorted, by_kind);
    }
    free(a->edge);
    a->edge = sorted;
    a->cap_edge = a->n_edge + 1;
}

/* Marks states from which the end of their rule can be reached, and rules for which that is true of the
 * beginning (taken [n_rule]): backwards from all ends, over calls of such rules. empty: without bytes. */
static void mark_live(const cake_automaton *a, bool empty, bool *live, bool *taken)
{
    int32_t *into = cake_alloc((size_t)a->n_state + 1, sizeof *into); /* edges by target: first of each */
    int32_t *order = cake_alloc(a->n_edge + 1, sizeof *order);
    int32_t *stack = cake_alloc((size_t)a->n_state + 1, sizeof *stack);
    int32_t *caller = cake_alloc(a->n_rule + 1, sizeof *caller); /* calls by rule: first of each */
    int32_t *calls = cake_alloc(a->n_edge + 1, sizeof *calls);
    int32_t n = 0;
    for (size_t i = 0; i < a->n_edge; i++) {
        into[a->edge[i].to]++;
        if (a->edge[i].kind == CAKE_EDGE_CALL)
            caller[a->edge[i].rule]++;
    }
    for (int32_t s = 1; s <= a->n_state; s++)
        into[s] += into[s - 1];
    for (size_t r = 1; r <= a->n_rule; r++)
        caller[r] += caller[r - 1];
    for (size_t i = a->n_edge; i-- > 0;) {
        order[--into[a->edge[i].to]] = (int32_t)i;
        if (a->edge[i].kind == CAKE_EDGE_CALL)
            calls[--caller[a->edge[i].rule]] = (int32_t)i;
    }
    int32_t *begins = cake_alloc((size_t)a->n_state, sizeof *begins); /* 1 + the rule that begins here */
    for (size_t r = 0; r < a->n_rule; r++) {
        begins[a->rule[r].begin] = (int32_t)r + 1;
        live[a->rule[r].end] = true;
        stack[n++] = a->rule[r].end;
    }
    while (n) {
        const int32_t s = stack[--n];
        for (int32_t i = into[s]; i < into[s + 1]; i++) {
            const cake_edge *e = &a->edge[order[i]];
            const bool passes =
                e->kind == CAKE_EDGE_CALL ? taken[e->rule] : e->kind != CAKE_EDGE_BYTES || !empty;
            if (!live[e->from] && passes) {
                live[e->from] = true;
                stack[n++] = e->from;
            }
        }
        const int32_t r = begins[s] - 1;
        if (r < 0 || taken[r])
            continue;
        taken[r] = true; /* its callers may be live now */
        for (int32_t i = caller[r]; i < caller[r + 1]; i++) {
            const cake_edge *e = &a->edge[calls[i]];
            if (live[e->to] && !live[e->from]) {
                live[e->from] = true;
                stack[n++] = e->from;
            }
        }
    }
    free(begins);
    free(into);
    free(order);
    free(stack);
    free(caller);
    free(calls);
}

static void leave_out_dead(cake_automaton *a)
{
    bool *live = cake_alloc((size_t)a->n_state, sizeof *live),
         *taken = cake_alloc(a->n_rule + 1, sizeof *taken);
    size_t n = 0;
    mark_live(a, false, live, taken);
    for (size_t r = 0; r < a->n_rule; r++)
        a->rule[r].taken = taken[r];
    for (size_t i = 0; i < a->n_edge; i++) {
        const cake_edge *e = &a->edge[i];
        if (live[e->from] && live[e->to] && (e->kind != CAKE_EDGE_CALL || a->rule[e->rule].taken))
            a->edge[n++] = *e;
    }
    a->n_edge = n;
    free(live);
    free(taken);
}

/* Splits the bytes where an edge begins or ends. */
static void set_classes(cake_automaton *a)
{
    bool begins[257] = {false};
    a->n_class = 0;
    for (size_t i = 0; i < a->n_edge; i++)
        if (a->edge[i].kind == CAKE_EDGE_BYTES)
            begins[a->edge[i].lo] = begins[a->edge[i].hi + 1] = true;
    for (int b = 0; b < 256; b++) {
        if (!b || begins[b])
            a->example[a->n_class++] = (uint8_t)b;
        a->class_[b] = (uint8_t)(a->n_class - 1);
    }
}

/* Whether nothing but the rule's end can follow: a call may then return to its caller's caller at once. Empty
 * edges are shortened on the way. */
static void shorten(cake_automaton *a)
{
    for (size_t i = 0; i < a->n_edge; i++)
        for (int hops = 0; hops < 64; hops++) {
            const int32_t to = a->edge[i].to;
            if (a->first[to + 1] - a->first[to] != 1 || a->edge[a->first[to]].kind != CAKE_EDGE_EMPTY)
                break;
            a->edge[i].to = a->edge[a->first[to]].to;
        }
}

/* ---- rules that call themselves first */

/* The rules that each rule calls before it takes a byte. */
typedef struct first_calls {
    int32_t *call; /* [first[n_rule]] */
    size_t n, cap;
    int32_t *first; /* [n_rule + 1] */
} first_calls;

/* States of a rule are no other rule's, so that this takes as long as to look at all edges once. */
static void list_calls(const cake_automaton *a, const bool *nullable, first_calls *calls)
{
    int32_t *reached = cake_alloc((size_t)a->n_state + 1, sizeof *reached);
    int32_t *mark = cake_alloc((size_t)a->n_state + 1, sizeof *mark);
    calls->first = cake_alloc(a->n_rule + 1, sizeof *calls->first);
    for (size_t r = 0; r < a->n_rule; r++) {
        int32_t n = 0;
        calls->first[r] = (int32_t)calls->n;
        reached[n++] = a->rule[r].begin;
        mark[a->rule[r].begin] = (int32_t)r + 1;
        for (int32_t at = 0; at < n; at++)
            for (int32_t i = a->first[reached[at]]; i < a->first[reached[at] + 1]; i++) {
                const cake_edge *e = &a->edge[i];
                if (e->kind == CAKE_EDGE_BYTES)
                    continue;
                if (e->kind == CAKE_EDGE_CALL) {
                    CAKE_RESERVE(calls->call, calls->n, calls->cap);
                    calls->call[calls->n++] = e->rule;
                }
                if ((e->kind == CAKE_EDGE_EMPTY || nullable[e->rule]) && mark[e->to] != (int32_t)r + 1) {
                    mark[e->to] = (int32_t)r + 1;
                    reached[n++] = e->to;
                }
            }
    }
    calls->first[a->n_rule] = (int32_t)calls->n;
    free(reached);
    free(mark);
}

/* Depth first; a rule that is met below itself is returned, else -1. */
static int find_circle(const cake_automaton *a, const first_calls *calls)
{
    int32_t *path = cake_alloc(a->n_rule + 1, sizeof *path), *next = cake_alloc(a->n_rule + 1, sizeof *next);
    uint8_t *seen = cake_alloc(a->n_rule + 1, 1); /* 1: on the path, 2: done */
    int found = -1;
    for (size_t root = 0; root < a->n_rule && found < 0; root++) {
        int32_t n = 0;
        if (!seen[root])
            path[n++] = (int32_t)root;
        while (n && found < 0) {
            const int32_t r = path[n - 1];
            if (!seen[r])
                next[r] = calls->first[r];
            seen[r] = next[r] < calls->first[r + 1] ? 1 : 2;
            if (seen[r] == 2) {
                n--;
                continue;
            }
            const int32_t call = calls->call[next[r]++];
            if (seen[call] == 1)
                found = call;
            else if (!seen[call])
                path[n++] = call;
        }
    }
    free(path);
    free(next);
    free(seen);
    return found;
}

static int find_left_recursion(const cake_automaton *a)
{
    first_calls calls = {0};
    bool *live = cake_alloc((size_t)a->n_state, sizeof *live),
         *nullable = cake_alloc(a->n_rule + 1, sizeof *nullable);
    mark_live(a, true, live, nullable);
    list_calls(a, nullable, &calls);
    const int found = find_circle(a, &calls);
    free(live);
    free(nullable);
    free(calls.call);
    free(calls.first);
    return found;
}

int cake_automaton_finish(cake_automaton *a)
{
    leave_out_dead(a);
    index_edges(a);
    shorten(a);
    index_edges(a);
    set_classes(a);
    a->rule_at = cake_alloc((size_t)a->n_state, sizeof *a->rule_at);
    for (int32_t s = 0; s < a->n_state; s++)
        a->rule_at[s] = -1;
    for (size_t r = 0; r < a->n_rule; r++)
        a->rule_at[a->rule[r].end] = (int32_t)r;
    return find_left_recursion(a);
}

void cake_automaton_free(cake_automaton *a)
{
    free(a->edge);
    free(a->rule);
    free(a->first);
    free(a->rule_at);
    cake_buf_free(&a->special);
    *a = (cake_automaton){0};
}
