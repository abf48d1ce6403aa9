/* SPDX-License-Identifier: Apache-2.0
 *
 * The router and the sorting of its choices, of all CPU tables. Invariant: a row's choice depends on its own
 * scores only, and every choice is a valid expert whatever the scores are.
 */
#include "kernels/experts.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/exact_math.h"
#include "kernels/kernels.h"

/* Larger than any value that can be chosen is never needed, smaller is: NaN and values of groups that
 * lost. */
#define NEVER (-FLT_MAX)

/* Numerically stable; v [n] in place. */
static void softmax(float *v, int n)
{
    float max = v[0], sum = 0;
    for (int i = 1; i < n; i++)
        max = v[i] > max ? v[i] : max;
    for (int i = 0; i < n; i++)
        sum += v[i] = cake_expf(v[i] - max);
    for (int i = 0; i < n; i++)
        v[i] /= sum;
}

static void evaluate(const cake_router *r, float *score)
{
    switch (r->score) {
    case CAKE_ROUTER_SOFTMAX:
        softmax(score, r->n_expert);
        break;
    case CAKE_ROUTER_SIGMOID:
        for (int e = 0; e < r->n_expert; e++)
            score[e] = 1 / (1 + cake_expf(-score[e]));
        break;
    case CAKE_ROUTER_SQRT_SOFTPLUS:
        for (int e = 0; e < r->n_expert; e++)
            score[e] = sqrtf(score[e] > 20 ? score[e] : cake_log1pf(cake_expf(score[e])));
        break;
    default: /* the scores themselves compete */
        break;
    }
}

/* The indices of the n largest of v [size], ties by the lowest index, ascending in `best`. */
static void largest(const float *v, int size, int n, int32_t *best)
{
    float value[CAKE_MAX_CHOSEN];
    int32_t index[CAKE_MAX_CHOSEN];
    int have = 0;
    for (int i = 0; i < size; i++) {
        float x = v[i] > NEVER ? v[i] : NEVER; /* NaN, too */
        if (have == n && !(x > value[n - 1]))
            continue;
        int at = have < n ? have++ : n - 1;
        for (; at > 0 && x > value[at - 1]; at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = x;
        index[at] = i;
    }
    for (int i = 0; i < n; i++) { /* sorted by index */
        int at = i;
        for (; at > 0 && best[at - 1] > index[i]; at--)
            best[at] = best[at - 1];
        best[at] = index[i];
    }
}

/* Values of experts in groups that lose become NEVER. */
static void drop_groups(const cake_router *r, float *value)
{
    float total[CAKE_MAX_CHOSEN];
    int32_t best[CAKE_MAX_CHOSEN], kept[CAKE_MAX_CHOSEN];
    int size = r->n_expert / r->n_group, next = 0;
    for (int g = 0; g < r->n_group; g++) {
        total[g] = 0;
        largest(value + g * size, size, r->group_best, best);
        for (int i = 0; i < r->group_best; i++)
            total[g] += value[g * size + best[i]];
    }
    largest(total, r->n_group, r->n_group_chosen, kept);
    for (int g = 0; g < r->n_group; g++) {
        bool keep = next < r->n_group_chosen && kept[next] == g;
        next += keep;
        for (int i = 0; i < size && !keep; i++)
            value[g * size + i] = NEVER;
    }
}

/* One row: score [n_expert] is changed, value [n_expert] is scratch. */
static void choose(const cake_router *r, float *score, float *value, int32_t *expert, float *weight)
{
    evaluate(r, score);
    for (int e = 0; e < r->n_expert; e++)
        value[e] = r->bias ? score[e] + r->bias[e] : score[e];
    if (r->n_group > r->n_group_chosen)
        drop_groups(r, value);
    largest(value, r->n_expert, r->n_chosen, expert);
    for (int i = 0; i < r->n_chosen; i++)
        weight[i] = score[expert[i]];
    if (r->score == CAKE_ROUTER_TOPK_SOFTMAX)
        softmax(weight, r->n_chosen);
    if (r->renormalise) {
        float sum = 0;
        for (int i = 0; i < r->n_chosen; i++)
            sum += weight[i];
        for (int i = 0; i < r->n_chosen; i++)
            weight[i] /= sum + r->epsilon;
    }
    for (int i = 0; i < r->n_chosen; i++)
        weight[i] *= r->scale * (r->expert_scale ? r->expert_scale[expert[i]] : 1);
}

void cake_router_choose(const cake_exec *exec, const cake_router *router, float *score, int32_t *expert,
                        float *weight, int stride, int n_row)
{
    int64_t first, last;
    float value[CAKE_MAX_EXPERTS];
    CAKE_ASSERT(router->n_chosen <= CAKE_MAX_CHOSEN && router->n_group <= CAKE_MAX_CHOSEN &&
                router->n_expert <= CAKE_MAX_EXPERTS && router->n_chosen <= router->n_expert);
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++)
        choose(router, score + i * router->n_expert, value, expert + i * stride, weight + i * stride);
}

void cake_groups_sort(cake_groups *groups, const int32_t *expert, int n_row, const cake_router *router)
{
    const int64_t stride = groups->stride;
    int at = 0;
    int32_t next[CAKE_MAX_EXPERTS] = {0};
    for (int t = 0; t < n_row; t++)
        for (int j = 0; j < router->n_chosen; j++)
            next[expert[t * stride + j]]++;
    groups->n = 0;
    groups->n_sorted = n_row * router->n_chosen;
    for (int e = 0; e < router->n_expert; e++) {
        int rows = next[e];
        next[e] = at;
        if (!rows)
            continue;
        groups->expert[groups->n] = e;
        groups->first[groups->n++] = at;
        at += rows;
    }
    groups->first[groups->n] = at;
    for (int t = 0; t < n_row; t++)
        for (int j = 0; j < router->n_chosen; j++) {
            int sorted = next[expert[t * stride + j]]++;
            groups->row[sorted] = t;
            groups->sorted[t * stride + j] = sorted;
        }
}

void cake_expert_use_visit(cake_expert_use *use, const cake_groups *groups, int n_expert)
{
    int least = groups->n < n_expert ? 0 : groups->n_sorted, most = 0;
    for (int i = 0; i < groups->n; i++) {
        int rows = groups->first[i + 1] - groups->first[i];
        least = rows < least ? rows : least;
        most = rows > most ? rows : most;
    }
    use->visits++;
    use->distinct += groups->n;
    use->min_rows += least;
    use->mean_rows += (double)groups->n_sorted / n_expert;
    use->max_rows += most;
}

void cake_expert_use_merge(cake_expert_use *use, const cake_expert_use *other)
{
    use->visits += other->visits;
    use->distinct += other->distinct;
    use->min_rows += other->min_rows;
    use->mean_rows += other->mean_rows;
    use->max_rows += other->max_rows;
    use->rows += other->rows;
    use->weight_bytes += other->weight_bytes;
    use->expected_bytes += other->expected_bytes;
}
