/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lengths of finished answers, tokens of unfinished ones. Out: expected further tokens. Invariant: there
 * is no estimate before as many answers have ended as are unfinished.
 *
 * If lengths differ little, an answer ends near their mean. If they differ much, a long unfinished answer is
 * one of the long ones: with exponentially distributed lengths it takes another full mean, which is all
 * tokens over the finished answers (the estimate for censored lifetimes; Cox and Oakes 1984, 3.2). The
 * coefficient of variation weighs the two.
 */
#include "report/eta.h"

#include <math.h>

enum { MIN_ENDED = 4 };

void cake_eta_end(cake_eta *eta, int generated)
{
    eta->ended++;
    eta->sum += generated;
    eta->squares += (double)generated * generated;
}

bool cake_eta_known(const cake_eta *eta)
{
    return eta->ended >= MIN_ENDED && eta->ended >= eta->open;
}

double cake_eta_left(const cake_eta *eta, int generated, int max, bool certain)
{
    double max_left = max > generated ? max - generated : 0;
    if (certain)
        return max_left;
    if (!cake_eta_known(eta))
        return -1;
    double n = (double)eta->ended, mean = eta->sum / n, variance = eta->squares / n - mean * mean;
    double spread = variance > 0 && mean > 0 ? sqrt(variance) / mean : 0;
    double lifetime = (eta->sum + eta->so_far) / n;
    double left = (generated < mean ? mean - generated : 0) + (spread < 1 ? spread : 1) * lifetime;
    return left < 1 ? 1 : left < max_left ? left : max_left;
}
