/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lengths of answers that have ended, tokens of those that have not. Out: tokens that are still to
 * come. batch_io.c calls for progress. Invariant: nothing is said of lengths before as many answers have
 * ended as are under way.
 *
 * Lengths that differ little say when an answer ends: at their mean. Of lengths that differ much an
 * answer that has come far is one of the long ones: with exponentially distributed lengths it takes as
 * long again as any, whose mean is all tokens over the answers that have ended (the estimate for censored
 * lifetimes; Cox and Oakes 1984, 3.2). The coefficient of variation weighs the two.
 */
#include "report/eta.h"

#include <math.h>

enum { FEW = 4 };

void cake_eta_end(cake_eta *eta, int generated)
{
    eta->ended++;
    eta->sum += generated;
    eta->squares += (double)generated * generated;
}

bool cake_eta_known(const cake_eta *eta)
{
    return eta->ended >= FEW && eta->ended >= eta->open;
}

double cake_eta_left(const cake_eta *eta, int generated, int most, bool certain)
{
    double room = most > generated ? most - generated : 0;
    if (certain)
        return room;
    if (!cake_eta_known(eta))
        return -1;
    double n = (double)eta->ended, mean = eta->sum / n, variance = eta->squares / n - mean * mean;
    double spread = variance > 0 && mean > 0 ? sqrt(variance) / mean : 0;
    double lifetime = (eta->sum + eta->so_far) / n;
    double left = (generated < mean ? mean - generated : 0) + (spread < 1 ? spread : 1) * lifetime;
    return left < 1 ? 1 : left < room ? left : room;
}
