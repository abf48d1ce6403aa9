/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020): [n_tok, dim] taken, x [n_tok, dim] plus down(act(gate) * up) out; down takes up through its gate.
 */
#include "slice/layer.h"

void cake_mlp_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_weights *w)
{
    cake_gate gate = {pass->gate, pass->config->act};
    cake_layer_multiply(exec, pass, pass->gate, &w->gate, w->gate_bias);
    cake_layer_multiply(exec, pass, pass->up, &w->up, w->up_bias);
    cake_exec_barrier(exec);
    cake_layer_leave(exec, pass, pass->up, &gate, &w->down, w->down_bias, w->mlp_after);
}
