/* SPDX-License-Identifier: Apache-2.0
 *
 * The product with a head, in every table: its scores compared with those of linear, and the best of each
 * row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrices.h"

typedef struct scoring {
    call *c;
    float cap;
    const bool *wanted;
    cake_topk *best; /* [team, n_row] */
} scoring;

static void pack_and_score(const cake_exec *exec, void *arg)
{
    scoring *s = arg;
    call *c = s->c;
    c->op->input_pack(exec, c->input, c->x, NULL, c->w->dtype, c->w->n_in, c->n_row);
    cake_exec_barrier(exec);
    c->op->scores(exec, c->out, s->best + exec->rank * c->n_row, c->input, c->w, s->wanted, s->cap, c->n_row);
}

/* Whether best holds what is best of score [n]: for each score as many stand before it as its place says. */
static bool holds(const cake_topk *best, const float *score, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        int before = 0;
        for (int j = 0; j < n; j++)
            before += score[j] > score[i] || (score[j] == score[i] && j < i);
        if (before >= best->k)
            continue;
        found++;
        if (before >= best->n || best->held[before].id != i ||
            !same_bits(&best->held[before].score, &score[i], 1))
            return false;
    }
    return found == best->n;
}

/* Compares the results of scores with the scores of linear, capped or not. */
static void check_scores(const call *c, const float *plain, float cap, const bool *wanted,
                         const cake_topk *best)
{
    int n = c->w->n_out;
    for (int t = 0; t < c->n_row; t++) {
        const float *row = plain + (int64_t)t * n, *out = c->out + (int64_t)t * n;
        for (int o = 0; wanted[t] && o < n; o++) {
            double exact = cap > 0 ? (double)cap * tanh((double)row[o] / (double)cap) : (double)row[o];
            CU_ASSERT(cap > 0 ? fabs((double)out[o] - exact) <= 4 * 0x1p-24 * fabs(exact)
                              : same_bits(&out[o], &row[o], 1));
        }
        if (wanted[t] || cap <= 0)
            CU_ASSERT(holds(&best[t], wanted[t] ? out : row, n));
        CU_ASSERT(!best[t].nonfinite);
    }
}

/* A team's scores: best [n_row] is clear. */
static void run_scores(int team, call *c, float cap, const bool *wanted, cake_topk *best)
{
    scoring s = {.c = c, .cap = cap, .wanted = wanted};
    s.best = malloc((size_t)(team * c->n_row) * sizeof *s.best);
    c->input = aligned_alloc(64, c->op->input_bytes(c->w->dtype, c->w->n_in, c->n_row));
    CU_ASSERT_FATAL(s.best && c->input);
    for (int i = 0; i < team * c->n_row; i++)
        cake_topk_clear(&s.best[i], best[i % c->n_row].k);
    cake_exec_run(team, pack_and_score, &s);
    for (int i = team * c->n_row; i-- > 0;)
        cake_topk_join(&best[i % c->n_row], &s.best[i]);
    free(s.best);
    free(c->input);
}

/* Some columns are equal, so the first of equal scores must win. */
static void scores_of_rows(const cake_kernels *op)
{
    enum { N_OUT = 331, N_IN = 70, MOST = 70 };
    static const int n_toks[] = {1, 2, 7, 20, MOST}, most[] = {1, 20, CAKE_MAX_TOPK, 2, 63};
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
        float *value = random_floats((size_t)N_OUT * N_IN, 31), *x = random_floats((size_t)MOST * N_IN, 32);
        for (int o = N_OUT / 2; o < N_OUT; o++)
            memcpy(value + o * N_IN, value + (N_OUT - 1 - o) * N_IN, N_IN * sizeof *value);
        void *raw = as_rows(value, N_OUT, N_IN, (cake_dtype)dtype);
        cake_weight w = pack(op, raw, (cake_dtype)dtype, N_OUT, N_IN);
        float *plain = malloc((size_t)MOST * N_OUT * sizeof *plain),
              *out = malloc((size_t)MOST * N_OUT * sizeof *out);
        bool wanted[MOST];
        cake_topk best[MOST];
        for (int i = is_executed(op) ? 3 : 0; i < COUNT(n_toks); i++)
            for (int team = 1; team <= (is_executed(op) ? 1 : 3); team++)
                for (int capped = 0; capped < 2; capped++) {
                    if (is_executed(op) && !suite_all() && capped != (dtype + i) % 2)
                        continue; /* each dtype with a cap and without, each number of rows, too */
                    call c = product(op, plain, x, &w, n_toks[i]);
                    run_linear(1, &c);
                    for (int t = 0; t < c.n_row; t++) {
                        wanted[t] = t % 3 != 1;
                        cake_topk_clear(&best[t], most[(t + team) % COUNT(most)]);
                    }
                    c.out = out;
                    run_scores(team, &c, capped ? 3.0F : 0, wanted, best);
                    check_scores(&c, plain, capped ? 3.0F : 0, wanted, best);
                }
        /* only the best scores are wanted: one table does not write the others */
        call few = product(op, out, x, &w, 20);
        memset(wanted, 0, sizeof wanted);
        for (int t = 0; t < few.n_row; t++)
            cake_topk_clear(&best[t], t == 5 ? 3 : 1);
        for (int i = 0; i < few.n_row * N_OUT; i++)
            out[i] = NAN;
        run_scores(1, &few, 0, wanted, best);
        check_scores(&few, plain, 0, wanted, best);
        x[3] = NAN; /* of the first row */
        call c = product(op, out, x, &w, 2);
        memset(wanted, 0, sizeof wanted);
        cake_topk_clear(&best[0], 20);
        cake_topk_clear(&best[1], 20);
        run_scores(2, &c, 0, wanted, best);
        CU_ASSERT(best[0].nonfinite && !best[1].nonfinite && holds(&best[1], plain + N_OUT, N_OUT));
        w.n_out = 40; /* fewer than are asked for; it is another matrix now */
        c = product(op, plain, x + N_IN, &w, 1);
        run_linear(1, &c);
        c.out = out;
        cake_topk_clear(&best[0], CAKE_MAX_TOPK);
        run_scores(2, &c, 0, wanted, best);
        CU_ASSERT(!best[0].nonfinite && best[0].n == 40 && holds(&best[0], plain, 40));
        free(value);
        free(x);
        free(raw);
        free(w.data);
        free(plain);
        free(out);
    }
}

static void test_scores(void)
{
    for_tables(scores_of_rows);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the best of a row, one or many, capped or not, written or not", test_scores},
    };
    return SUITE_MAIN("head", tests);
}
