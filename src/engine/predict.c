/* SPDX-License-Identifier: Apache-2.0
 *
 * In: waves whose tokens have been sampled. Out: what the layer of multi-token prediction expects next, as
 * offers for drafts.
 */
#include "base/clock.h"
#include "engine/internal.h"

/* Whether the token that follows a row is its answer's latest one, so that the next one may be drafted. */
static bool predicts(const cake_engine *e, const cake_row *row)
{
    const cake_sequence *s = e->seqs[row->slot];
    return s && row->slot != e->stem && s->ids.len == (size_t)row->pos + 2 &&
           s->max_len > (int)s->ids.len + 1;
}

/* Offers what the layer predicts after rows e->predict_row [n] of a wave, and after what it predicted. */
static void offer(cake_engine *e, int n_thread, const cake_row *rows, int n)
{
    for (int i = 0; i < n; i++)
        e->predict_from[i] = rows[e->predict_row[i]];
    for (int depth = 0; n; depth++) {
        int n_more = 0;
        cake_mtp_predict(e->mtp, n_thread, e->logits, e->predict_row, n, e->predicted);
        cake_roofline_add(&e->stats.roofline, cake_logits_work(e->logits, n));
        for (int i = 0; i < n; i++) {
            const cake_row from = e->predict_from[i];
            cake_speculation_offer(e->speculation, from.slot, from.pos + 2 + depth, e->predicted[i]);
            if (!cake_speculation_wants_more(e->speculation, depth + 1) ||
                !cake_mtp_goes_on(e->mtp, e->predict_row[i]))
                continue;
            e->predict_from[n_more] = from;
            e->predicted[n_more] = e->predicted[i];
            e->predict_row[n_more++] = e->predict_row[i];
        }
        if (n_more && cake_mtp_go_on(e->mtp, n_thread, e->predict_row, n_more, e->predicted))
            cake_comm_abort();
        for (int i = 0; i < n_more; i++)
            e->predict_row[i] = i;
        n = n_more;
    }
}

void cake_engine_predict(cake_engine *e, int n_thread, cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    int32_t *ids = cake_mtp_ids(e->mtp);
    const double start = cake_clock_now();
    for (int i = 0; i < wave->n_row; i++) {
        const cake_sequence *s = e->seqs[rows[i].slot];
        const size_t next = (size_t)rows[i].pos + 1;
        ids[i] = s && next < s->ids.len ? s->ids.id[next] : 0;
    }
    if (cake_mtp_forward(e->mtp, n_thread, wave))
        cake_comm_abort();
    int n = 0;
    for (int i = 0; i < wave->n_row && n < e->max_score; i++)
        if (predicts(e, &rows[i]))
            e->predict_row[n++] = i;
    if (n && cake_speculation_wants(e->speculation, n))
        offer(e, n_thread, rows, n);
    e->stats.head_s += cake_trace_since(e->trace, CAKE_SPAN_HEAD, start, wave->n_row);
}
