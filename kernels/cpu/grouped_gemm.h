/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of linear or linear_grouped as a list of problems: some rows that meet one matrix. linear has one
 * problem, linear_grouped one for each group and matrix. All matrices have one shape and dtype. Included once
 * by each instruction set's file.
 *
 * In: the arguments of such a product. Out: its problems, and their panels dealt to the members of a team.
 * Invariant: a take of panels is of one problem.
 */
#ifndef CAKE_KERNELS_CPU_GROUPED_GEMM_H
#define CAKE_KERNELS_CPU_GROUPED_GEMM_H

#include "kernels/cpu/epilogue.h"
#include "kernels/kernels.h"

/* Rows that meet one matrix. */
typedef struct problem {
    ending end;    /* out and residual: of the first of these rows */
    cake_weight w; /* packed */
    int64_t first; /* of these rows in packed x */
    int n_row;
} problem;

/* One without groups; n for each group. */
typedef struct problems {
    problem whole; /* without groups */
    const cake_groups *groups;
    const cake_expert_product *product; /* [n] */
    int64_t n;                          /* products of a group */
} problems;

static int64_t problems_count(const problems *p)
{
    return p->groups ? p->n * p->groups->n : 1;
}

/* Rows of packed x. */
static int problems_rows(const problems *p)
{
    return p->groups ? p->groups->n_sorted : p->whole.n_row;
}

/* Rows of the largest problem. */
static int problems_most_rows(const problems *p)
{
    int most = p->groups ? 0 : p->whole.n_row;
    for (int i = 0; p->groups && i < p->groups->n; i++) {
        int rows = p->groups->first[i + 1] - p->groups->first[i];
        most = rows > most ? rows : most;
    }
    return most;
}

/* room: memory for it, if it is one of several. */
static const problem *problem_at(const problems *p, int64_t i, problem *room)
{
    if (!p->groups)
        return &p->whole;
    const cake_expert_product *of = &p->product[i % p->n];
    int64_t group = i / p->n, first = p->groups->first[group], expert = p->groups->expert[group];
    *room =
        (problem){.w = of->experts->w, .first = first, .n_row = (int)(p->groups->first[group + 1] - first)};
    room->w.data = cake_expert_data(of->experts, expert);
    room->end = (ending){.out = of->out + first * room->w.n_out,
                         .bias = of->experts->bias ? of->experts->bias + expert * room->w.n_out : NULL,
                         .n_out = room->w.n_out};
    return room;
}

/* Deals the panels of all problems; a unit of the queue is a panel. */
typedef struct panel_queue {
    cake_work_queue queue;
    int64_t panels;      /* of each problem */
    int64_t max;         /* panels at a time */
    int64_t next, taken; /* units taken and not returned yet */
    int64_t base;        /* unit of the first panel of the problem that the last take was of */
} panel_queue;

/* Panels [first, last) of a problem. */
typedef struct take {
    int64_t base; /* unit of the problem's first panel */
    int64_t first, last;
} take;

static panel_queue panel_queue_of(const cake_exec *exec, const problems *p, int64_t panels, int64_t max)
{
    return (panel_queue){
        .queue = cake_exec_queue(exec, problems_count(p) * panels), .panels = panels, .max = max};
}

/* False: all panels are taken. */
static bool next_take(panel_queue *q, take *t)
{
    if (q->next == q->taken && !cake_exec_next(&q->queue, q->max, &q->next, &q->taken))
        return false;
    if (q->next - q->base >= q->panels || q->next < q->base) /* rarely: a division is slow */
        q->base = q->next / q->panels * q->panels;
    t->base = q->base;
    t->first = q->next - q->base;
    int64_t n = q->taken - q->next, left = q->panels - t->first;
    t->last = t->first + (n < left ? n : left);
    q->next += t->last - t->first;
    return true;
}

#endif
