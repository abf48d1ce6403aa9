/* SPDX-License-Identifier: Apache-2.0 */
#include "run/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

cake_sequence *cake_sequence_open(cake_request *request, cake_ids *ids, int context, uint64_t job_seed,
                                  const cake_token *token)
{
    cake_sequence *s = cake_alloc(1, sizeof *s);
    s->request = *request;
    s->ids = *ids;
    *request = (cake_request){0};
    *ids = (cake_ids){0};
    s->n_prompt = (int)s->ids.len;
    const cake_params *p = &s->request.params;
    int64_t most = (int64_t)s->n_prompt + (p->max_tokens == CAKE_UNSET ? context : p->max_tokens);
    s->max_len = most < context ? (int)most : context;
    s->n_top = p->logprobs == CAKE_UNSET ? -1 : (int)p->logprobs;
    const char *id = s->request.id;
    s->key.seed = p->seed != CAKE_UNSET ? (uint64_t)p->seed
                  : id                  ? cake_key_of_id(job_seed, id, strlen(id))
                                        : cake_key_of_index(job_seed, s->request.index);
    if (token)
        s->decoder = cake_decoder_open(token);
    return s;
}

void cake_sequence_close(cake_sequence *s)
{
    if (!s)
        return;
    cake_request_free(&s->request);
    cake_ids_free(&s->ids);
    cake_decoder_close(s->decoder);
    cake_buf_free(&s->text);
    free(s->scored);
    free(s);
}

int cake_sequence_generated(const cake_sequence *s)
{
    return (int)s->ids.len - s->n_prompt;
}

static size_t longest_stop(const cake_params *p)
{
    size_t longest = 0;
    for (int i = 0; i < p->n_stop; i++)
        if (strlen(p->stop[i]) > longest)
            longest = strlen(p->stop[i]);
    return longest;
}

size_t cake_sequence_settled(const cake_sequence *s)
{
    size_t longest = longest_stop(&s->request.params), hold = longest ? longest - 1 : 0;
    return s->text.len > hold ? s->text.len - hold : 0;
}

/* Cuts the text before the first stop string that ends in what was added since `before`; ties go to the one that
 * starts first. */
static bool cut_at_stop(cake_sequence *s, size_t before)
{
    const cake_params *p = &s->request.params;
    size_t found = s->text.len;
    for (int i = 0; i < p->n_stop; i++) {
        size_t len = strlen(p->stop[i]);
        size_t from = before > len - 1 ? before - (len - 1) : 0;
        const char *at = s->text.len - from >= len
                             ? memmem(s->text.data + from, s->text.len - from, p->stop[i], len)
                             : NULL;
        if (at && (size_t)(at - s->text.data) < found)
            found = (size_t)(at - s->text.data);
    }
    if (found == s->text.len)
        return false;
    cake_buf_cut(&s->text, found);
    return true;
}

static bool among(const int32_t *eos, int n_eos, int32_t id)
{
    for (int i = 0; i < n_eos; i++)
        if (eos[i] == id)
            return true;
    return false;
}

static void keep_scores(cake_sequence *s, const cake_scored *scored)
{
    size_t n = 1 + (size_t)s->n_top;
    if (s->n_scored + n > s->cap_scored) {
        s->cap_scored = 2 * (s->n_scored + n);
        s->scored = cake_grow(s->scored, s->cap_scored, sizeof *s->scored);
    }
    memcpy(s->scored + s->n_scored, scored, n * sizeof *scored);
    s->n_scored += n;
}

bool cake_sequence_push(cake_sequence *s, int32_t id, const cake_scored *scored, const int32_t *eos,
                        int n_eos)
{
    cake_ids_add(&s->ids, id);
    if (s->n_top >= 0)
        keep_scores(s, scored);
    size_t before = s->text.len;
    bool ended = s->request.params.ignore_eos != 1 && among(eos, n_eos, id);
    bool full = (int)s->ids.len >= s->max_len;
    if (!ended)
        cake_decoder_push(s->decoder, id, &s->text);
    if (ended || full)
        cake_decoder_end(s->decoder, &s->text);
    bool stopped = !ended && s->text.len > before && cut_at_stop(s, before);
    s->finish = ended || stopped ? CAKE_FINISH_STOP : CAKE_FINISH_LENGTH;
    return ended || stopped || full;
}
