/* SPDX-License-Identifier: Apache-2.0
 *
 * `info`: prints what this build, this machine and, with -m, this model can do.
 */
#include <stdio.h>

#include "base/size.h"
#include "base/version.h"
#include "kernels/device.h"
#include "kernels/format.h"
#include "kernels/kernels.h"
#include "link/gpu_transport.h"
#include "model/bundle.h"
#include "model/model.h"
#include "placement/machine.h"
#include "request/prepare.h"
#include "run/run.h"
#include "slice/slice.h"

/* "16 query and 8 KV heads of 128"; where some layers have others, "... 8 KV heads of 256 or 2 of 512"; or,
 * with latent attention, "16 query heads on latents of 576 values". */
static void describe_heads(const cake_config *c, cake_buf *out)
{
    if (c->latent.rank) {
        cake_buf_addf(out, "%d query heads on latents of %lld values", c->n_head,
                      (long long)cake_config_kept(c, 0));
        return;
    }
    cake_buf_addf(out, "%d query and ", c->n_head);
    for (int group = 0; group < c->n_kv_group; group++) {
        const cake_heads *heads = &c->heads[group];
        bool known = false;
        for (int i = 0; i < group; i++)
            known = known || (c->heads[i].n_kv == heads->n_kv && c->heads[i].head_dim == heads->head_dim);
        if (!known)
            cake_buf_addf(out, "%s%d %sof %d", group ? " or " : "", heads->n_kv, group ? "" : "KV heads ",
                          heads->head_dim);
    }
}

/* In which forms quantised weights are kept, each exactly as its file has it. */
static void describe_formats(const cake_model *model, cake_buf *out)
{
    const cake_weight_form *s;
    for (int i = 0; cake_model_quantized(model) && (s = cake_model_form(model, i)); i++)
        cake_buf_addf(out, "%-12s%lld parameters in %lld %s: %s\n", i ? "" : "kept as",
                      (long long)s->parameters, (long long)s->matrices,
                      s->matrices == 1 ? "matrix" : "matrices",
                      s->format ? s->format->name : cake_dtype_name(s->dtype));
}

static cake_err describe_model(const char *dir, cake_buf *out)
{
    cake_model *model = NULL;
    cake_model_options options = {0};
    cake_err err = cake_model_open(dir, &options, &model);
    if (err)
        return err;
    const cake_config *c = cake_model_config(model);
    cake_weight_set all = {.range = &(cake_range){0, c->n_layer}, .n_range = 1, .embed = true, .head = true};
    const cake_kernels *kernels = cake_kernels_at(cake_kernels_exact());
    const cake_bundle *bundle = cake_model_bundle(model);
    cake_buf_addf(out, "model       %s\n", bundle ? bundle->name : dir);
    if (bundle)
        cake_buf_addf(out, "bundle      %s, of rank %d of %d\n", dir, bundle->rank, bundle->n_rank);
    cake_buf_addf(out, "family      %s, %lld parameters, %s\n", c->arch->name,
                  (long long)cake_model_parameters(model),
                  cake_model_quantized(model) ? "quantised" : cake_dtype_name(cake_model_dtype(model)));
    cake_buf_addf(out, "layers      %d, width %d, ", c->n_layer, c->dim);
    describe_heads(c, out);
    if (c->n_ff) /* some layers have no experts, or not only these */
        cake_buf_addf(out, ", MLP %d", c->n_ff);
    cake_buf_addc(out, '\n');
    const cake_moe *moe = &c->moe;
    if (moe->router.n_expert)
        cake_buf_addf(out, "experts     %d of width %d, %d for a token%s\n", moe->router.n_expert, moe->n_ff,
                      moe->router.n_chosen, moe->n_ff_shared ? ", and a shared one" : "");
    cake_slice_shape whole = {.count = c->n_layer};
    const cake_deltanet *d = &c->delta;
    if (d->n_value)
        cake_buf_addf(out, "states      %s a sequence: delta nets of %d key and %d value heads of %d by %d\n",
                      cake_size_text((int64_t)cake_slice_state_bytes(c, &whole)).s, d->n_key, d->n_value,
                      d->key_dim, d->value_dim);
    cake_buf_addf(out, "vocabulary  %d, head %s\n", c->n_vocab,
                  c->tied ? "tied to the embedding" : "of its own");
    cake_buf_addf(out, "context     %d, rotary %s, base %g\n", c->context, cake_rope_name(c->rope[0].kind),
                  c->rope[0].theta);
    describe_formats(model, out);
    cake_buf_addf(out, "weights     %s in memory, ranks at most %d\n",
                  cake_size_text((int64_t)cake_model_bytes(model, &all, kernels)).s, c->n_layer);
    cake_model_close(model);
    cake_answer_form form = {0};
    err = cake_prepare_check_model(dir, &form);
    if (!err && (form.tools || form.reasoning))
        cake_buf_addf(out, "%-12stool calls: %s; reasoning: %s\n", "answers",
                      cake_answer_tool_parser_name(&form), cake_answer_reasoning_parser_name(&form));
    return err;
}

/* The transports between GPUs. */
static void describe_gpu_links(cake_buf *out)
{
    char text[16];
    cake_buf why = {0};
    int nccl = cake_gpu_transport_nccl_version(&why);
    cake_buf_addf(out, "GPU to GPU  %s%s",
                  nccl ? "NCCL " : "no NCCL: ", nccl ? cake_gpu_transport_nccl_text(nccl, text) : why.data);
    cake_buf_addf(out, "; MPI %s\n",
                  cake_gpu_transport_mpi_can() ? "from their memory" : "through the host's memory");
    cake_buf_free(&why);
}

cake_err cake_cmd_info(const cake_options *options)
{
    cake_machine machine;
    cake_buf out = {0};
    cake_buf_addf(&out, "cake-mpi    %s\n", cake_version());
    cake_build_describe(&out);
    cake_buf_adds(&out, "MPI         ");
    cake_comm_describe(&out);
    cake_buf_adds(&out, "\nisa        ");
    for (int level = cake_kernels_best(); level >= 0; level--)
        if (cake_kernels_at(level))
            cake_buf_addf(&out, " %s%s", cake_kernels_at(level)->name,
                          level == cake_kernels_exact()  ? " (auto)"
                          : level == cake_kernels_best() ? " (auto, 100M parameters or more)"
                                                         : "");
    cake_buf_adds(&out, "\n");
    cake_machine_read(&machine);
    cake_machine_warn();
    cake_machine_describe(&machine, &out);
    cake_buf_adds(&out, "GPU         ");
    cake_device_describe(&out);
    if (cake_device_count(NULL))
        describe_gpu_links(&out);
    cake_err err = options->model ? describe_model(options->model, &out) : CAKE_OK;
    fwrite(out.data, 1, out.len, stdout);
    cake_buf_free(&out);
    return err;
}
