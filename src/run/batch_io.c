/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests from the preparation, tokens and finished sequences from the roots of replicas
 * (cake_sequence_io). Out: records, or text on standard output. cmd_run.c opens and closes it on world
 * rank 0.
 * Invariant: a sequence that a later run can take up is listed in `begun` from its first token until it
 * is done, so that a stop can keep its tokens.
 */
#include "run/batch_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "run/from_options.h"
#include "run/identity.h"
#include "run/time_left.h"

static void spell(const void *answers, int32_t id, cake_buf *out)
{
    cake_tokenizer_bytes(((const cake_batch_io *)answers)->preparation.token, id, out);
}

/* As a shell would read it. */
static void add_command(const cake_texts *words, cake_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    for (int i = 0; i < words->n; i++) {
        const char *word = words->text[i];
        bool bare = word[0] && !word[strspn(word, plain)];
        cake_buf_adds(out, i ? " " : "");
        cake_buf_adds(out, bare ? "" : "'");
        for (; *word; word++)
            if (*word == '\'')
                cake_buf_adds(out, "'\\''");
            else
                cake_buf_addc(out, *word);
        cake_buf_adds(out, bare ? "" : "'");
    }
}

static cake_err open_recorder(const cake_options *o, const cake_rank *me, cake_batch_io *a)
{
    char name[CAKE_MODEL_NAME];
    time_t now = time(NULL);
    cake_buf identity = {0}, command = {0};
    add_command(&o->words, &command);
    cake_err err = cake_identity_add(o, me, &a->preparation, &identity);
    cake_record_options options = {.path = o->output,
                                   .resume = cake_identity_resume(o),
                                   .force = o->force,
                                   .retry = o->retry_errors,
                                   .identity = identity.data,
                                   .deterministic_ids = o->deterministic_ids,
                                   .timing = o->timing,
                                   .created = now,
                                   .job = cake_key_of_index((uint64_t)now, getpid()),
                                   .model = cake_options_model_name(o, name),
                                   .command = command.data,
                                   .token_bytes = spell,
                                   .token = a};
    if (!err)
        err = cake_record_open(&options, &a->recorder);
    cake_buf_free(&identity);
    cake_buf_free(&command);
    return err;
}

/* Reads as far as earlier runs have, and holds it against what they read: the first difference is an error,
 * before hours are spent. CAKE_END: there is no more. */
static cake_err compare(cake_prompt *prompt, const cake_input_checkpoint *marks, size_t n)
{
    int64_t known = n ? marks[n - 1].requests : 0;
    cake_err err = CAKE_OK;
    cake_line line;
    cake_prompt_expect(prompt, marks, n);
    while (!err && cake_prompt_checkpoint(prompt).requests < known)
        err = cake_prompt_read(prompt, &line);
    return err ? err : cake_prompt_read(prompt, &line);
}

/* Lines of requests that failed may have been corrected, where these are to be done again: whether the others
 * are what they were, and the input as long. Nothing is said. *read: the input as it is now, so far. */
static bool is_corrected(const cake_options *o, cake_batch_io *a, const cake_input_checkpoint *last,
                         cake_input_checkpoint *read)
{
    cake_prompt *prompt = NULL;
    cake_line line;
    uint64_t sum = 0, wanted = 0;
    int64_t order = 0;
    if (!cake_record_recall(a->recorder, &wanted) || cake_prepare_reopen(&a->preparation, &prompt))
        return false;
    while (cake_prompt_checkpoint(prompt).requests < last->requests && !cake_prompt_read(prompt, &line))
        if (cake_shard_has(&o->shard, line.index) && cake_record_answered(a->recorder, order++))
            sum += line.sum;
    *read = cake_prompt_checkpoint(prompt);
    cake_prompt_close(prompt);
    return read->requests == last->requests && read->line == last->line && read->sum != last->sum &&
           sum == wanted;
}

static void take_corrections(const cake_options *o, cake_batch_io *a)
{
    size_t n;
    const cake_input_checkpoint *marks = cake_record_input_checkpoints(a->recorder, &n);
    cake_input_checkpoint read;
    if (!o->retry_errors || !n || !is_corrected(o, a, &marks[n - 1], &read))
        return;
    cake_log(CAKE_INFO, "run", "%s: lines of requests that failed are not what they were: they are done anew",
             o->output);
    cake_record_corrected(a->recorder, read);
}

/* All requests that there were are done. CAKE_END: these are all. */
static cake_err look_further(const cake_options *o, cake_batch_io *a, bool more, bool again)
{
    int64_t failed = cake_record_failed(a->recorder);
    if (more && !again)
        return cake_fail(
            "run",
            "%s: is finished, and standard input, which cannot be read twice, has more requests: "
            "give it as a file",
            o->output);
    if (more || (o->retry_errors && failed))
        return cake_record_reopen(a->recorder);
    cake_log(CAKE_INFO, "run", "%s: all %lld requests are done already (%lld failed)%s", o->output,
             (long long)cake_record_resumed(a->recorder), (long long)failed,
             failed ? "; --retry-errors does these again" : "");
    if (o->report || o->trace)
        cake_log(CAKE_WARN, "run",
                 "nothing was left to run, so there is nothing for --report and --trace to tell");
    return CAKE_END;
}

static cake_err take_up(const cake_options *o, cake_batch_io *a)
{
    size_t n;
    take_corrections(o, a);
    const cake_input_checkpoint *marks = cake_record_input_checkpoints(a->recorder, &n);
    bool finished = cake_record_finished(a->recorder);
    cake_prompt *again = NULL;
    cake_err err = n || finished ? cake_prepare_reopen(&a->preparation, &again) : CAKE_END;
    bool once = err == CAKE_END;
    if (!once && err)
        return err;
    if (!once || finished) {
        err = compare(once ? a->preparation.prompt : again, marks, n);
        cake_prompt_close(again);
        if (err && err != CAKE_END)
            return err;
    }
    if (finished && (err = look_further(o, a, err == CAKE_OK, !once)))
        return err;
    marks = cake_record_input_checkpoints(a->recorder, &n);
    cake_prompt_expect(a->preparation.prompt, marks, n);
    cake_record_log_resume(a->recorder);
    return CAKE_OK;
}

cake_err cake_batch_io_open(const cake_options *o, const cake_rank *me, cake_batch_io *a)
{
    const cake_config *config = cake_model_config(me->input.model);
    *a = (cake_batch_io){.counts = {.share = -1, .left = -1},
                         .preparation.defaults = cake_params_unset(),
                         .eos = config->eos,
                         .n_eos = config->n_eos};
    cake_prepare_options from = cake_prepare_options_from(o);
    cake_err err =
        cake_prepare_open(&from, &config->defaults, me->input.context, config->n_vocab, &a->preparation);
    if (!err)
        cake_prepare_check_eos(&a->preparation, a->eos, a->n_eos);
    if (err || cake_options_stream(o))
        return err;
    err = open_recorder(o, me, a);
    if (!err)
        err = take_up(o, a);
    if (!err) {
        a->counts.resumed = cake_record_resumed(a->recorder);
        a->counts.resumed_failed = cake_record_failed(a->recorder);
    }
    a->preparation.recorder = a->recorder;
    return err;
}

void cake_batch_io_flush(cake_batch_io *a)
{
    if (a->recorder)
        cake_record_flush(a->recorder); /* what fails here fails again */
}

/* Those of which so many tokens are not in the journal yet. */
static void keep(cake_batch_io *a, int least)
{
    for (int i = 0; i < a->n_begun && !a->hurt; i++) {
        cake_sequence *s = a->begun[i];
        int width = s->n_top >= 0 ? 1 + s->n_top : 0, n = cake_sequence_generated(s) - s->kept;
        cake_inflight part = {.order = s->lead->request.order,
                              .choice = s == s->lead ? 0 : (int)s->key.choice,
                              .at = s->kept,
                              .ids = {.id = s->ids.id + s->n_prompt + s->kept, .len = (size_t)n},
                              .width = width,
                              .scored = width ? s->scored + (size_t)s->kept * (size_t)width : NULL};
        if (n < least)
            continue;
        cake_record_add_inflight(a->recorder, &part);
        s->kept += n;
    }
    if (a->n_begun && !a->hurt)
        cake_record_checkpoint(a->recorder); /* what fails here fails again with the next result */
}

void cake_batch_io_keep(cake_batch_io *a)
{
    keep(a, 1);
}

/* What was read and is not answered yet is not done. */
static double share_done(const cake_batch_io *a)
{
    double read = cake_prompt_progress(a->preparation.prompt),
           seen = (double)(a->taken + a->preparation.passed);
    return read < 0 || seen <= 0 ? -1 : read * (double)(a->counts.done + a->preparation.passed) / seen;
}

cake_err cake_batch_io_tick(cake_batch_io *a)
{
    const double every = 5;
    enum { ENOUGH = 32 }; /* fewer are computed again in less time than they take to be read */
    double now = cake_clock_now();
    if (!a->started)
        a->started = now;
    if (now >= a->next_eta) {
        a->counts.left = cake_time_left(a);
        if (a->recorder)
            cake_record_reached(a->recorder, a->counts.share, a->counts.left);
        a->next_eta = now + 0.5;
    }
    if (!a->recorder)
        return CAKE_OK;
    cake_err err = cake_record_tick(a->recorder);
    if (err || now < a->next)
        return err;
    if (a->next > 0)
        keep(a, ENOUGH);
    a->next = now + every;
    return CAKE_OK;
}

/* It has tokens; from here on they are kept. */
static void list(cake_batch_io *a, cake_sequence *s)
{
    if (s->listed || !a->recorder || !cake_sequence_restores(s))
        return;
    if (a->n_begun == a->cap_begun) {
        a->cap_begun = a->cap_begun ? 2 * a->cap_begun : 64;
        a->begun = cake_grow(a->begun, (size_t)a->cap_begun, sizeof(cake_sequence *));
    }
    a->begun[a->n_begun++] = s;
    s->listed = a->n_begun;
}

static void unlist(cake_batch_io *a, const cake_sequence *s)
{
    if (!s->listed)
        return;
    cake_sequence *last = a->begun[--a->n_begun];
    a->begun[s->listed - 1] = last;
    last->listed = s->listed;
}

static void unlist_all(cake_batch_io *a, const cake_sequence *lead)
{
    unlist(a, lead);
    for (int i = 0; i < lead->n_choice; i++)
        unlist(a, lead->choice[i]);
}

void cake_batch_io_close(cake_batch_io *answers)
{
    cake_record_close(answers->recorder);
    cake_prepare_close(&answers->preparation);
    free(answers->begun);
    for (int i = 0; i < answers->n_failure; i++)
        cake_buf_free(&answers->failure[i]);
    cake_latency_free(&answers->ttft);
    cake_latency_free(&answers->itl);
}

/* Writes what of the text is certain; at the end all of it and a newline. */
static cake_err stream(cake_batch_io *a, const cake_sequence *s, bool end)
{
    if (a->broken) /* said already */
        return CAKE_ERR_FATAL;
    size_t until = end ? s->text.len : cake_sequence_settled(s);
    if (until > a->streamed)
        fwrite(s->text.data + a->streamed, 1, until - a->streamed, stdout);
    a->streamed = until > a->streamed ? until : a->streamed;
    if (end)
        fputc('\n', stdout);
    a->broken = fflush(stdout) || ferror(stdout);
    if (a->broken)
        return cake_fail("run", "standard output cannot be written: %s", strerror(errno));
    return CAKE_OK;
}

/* What an earlier run had of it. */
static void restore(cake_batch_io *a, cake_sequence *s)
{
    int n;
    const cake_inflight *begun = a->recorder ? cake_record_inflight(a->recorder, s->request.order, &n) : NULL;
    if (!begun || !cake_sequence_restore(s, begun, n, a->preparation.n_vocab, a->eos, a->n_eos))
        return;
    for (int i = 0; i < n; i++) {
        cake_sequence *of = s->n_choice ? s->choice[begun[i].choice] : s;
        of->kept = cake_sequence_generated(of);
        list(a, of);
    }
}

static cake_err next(void *self, cake_sequence **out)
{
    cake_batch_io *a = self;
    cake_err err = cake_prepare_next(&a->preparation, out);
    if (a->recorder)
        cake_record_read_to(a->recorder, cake_prompt_checkpoint(a->preparation.prompt));
    if (err && a->recorder && cake_prompt_changed(a->preparation.prompt))
        cake_record_rollback(a->recorder);
    if (err == CAKE_END)
        a->counts.total = a->preparation.order;
    a->hurt |= err && err != CAKE_END;
    if (err || !*out)
        return err;
    restore(a, *out);
    cake_request *r = &(*out)->request;
    a->taken++;
    if (!r->err && r->params.n > 1 && a->recorder && cake_record_is_text(a->recorder))
        r->err = cake_fault_set(&r->fault, "n",
                                "n is %lld; a .txt file has room for one answer: give -o a .jsonl file",
                                (long long)r->params.n);
    return CAKE_OK;
}

static void token(void *self, cake_sequence *s, double waited)
{
    cake_batch_io *a = self;
    a->counts.generated++;
    a->worked += cake_sequence_generated(s) == 1 ? 1 + CAKE_ETA_PROMPT * s->n_prompt : 1;
    list(a, s);
    cake_latency_add(cake_sequence_generated(s) == 1 ? &a->ttft : &a->itl, waited);
    if (cake_sequence_generated(s) == 1)
        s->ttft = waited;
    s->waited += waited;
    if (!a->recorder)
        stream(a, s, false); /* what fails here fails again at the end, and is then told */
}

static cake_choice choice_of(const cake_sequence *s)
{
    return (cake_choice){.text = s->text.data ? s->text.data : "",
                         .text_len = s->text.len,
                         .ids = s->ids.id ? s->ids.id + s->n_prompt : NULL,
                         .n_id = cake_sequence_generated(s),
                         .finish = s->finish,
                         .logprobs = s->scored,
                         .begin = s->begin};
}

static cake_err write_record(cake_batch_io *a, const cake_sequence *s)
{
    const cake_request *r = &s->request;
    cake_choice choices[CAKE_MAX_CHOICE];
    int n_choice = s->n_choice ? s->n_choice : 1;
    double ttft = 0, waited = 0; /* the first one's first token; the last one's last */
    for (int i = 0; i < n_choice; i++) {
        const cake_sequence *of = s->n_choice ? s->choice[i] : s;
        choices[i] = choice_of(of);
        ttft = ttft > 0 && (of->ttft <= 0 || of->ttft > ttft) ? ttft : of->ttft;
        waited = waited > of->waited ? waited : of->waited;
    }
    cake_record record = {.index = r->index,
                          .order = r->order,
                          .sum = r->sum,
                          .form = r->form,
                          .id = r->id,
                          .model = r->model,
                          .fault = r->err ? &r->fault : NULL,
                          .prompt = r->text,
                          .prompt_len = r->text_len,
                          .prompt_ids = s->ids.id,
                          .n_prompt = s->n_prompt,
                          .choices = choices,
                          .n_choice = n_choice,
                          .chat = s->chat,
                          .return_token_ids = r->params.return_token_ids == 1,
                          .n_top = s->n_top,
                          .ttft = ttft,
                          .waited = waited,
                          .echo = r->params.echo == 1 ? r->text : NULL,
                          .echo_len = r->text_len,
                          .prompt_logprobs = s->prompt_scored,
                          .prompt_begin = s->prompt_begin};
    return cake_record_add(a->recorder, &record);
}

/* How long its answers became. */
static void learn(cake_batch_io *a, const cake_sequence *lead)
{
    a->finished += CAKE_ETA_PROMPT * lead->n_prompt;
    for (int i = 0; i < (lead->n_choice ? lead->n_choice : 1); i++) {
        int n = cake_sequence_generated(lead->n_choice ? lead->choice[i] : lead);
        a->finished += n;
        if (!cake_time_is_certain(lead))
            cake_eta_end(&a->eta, n);
    }
}

/* The first ones are named at the end: the others are in the results. */
static void note_failure(cake_batch_io *a, const cake_request *r)
{
    char place[CAKE_PLACE];
    bool told = a->recorder && cake_record_is_text(a->recorder); /* one by one */
    if (a->n_failure == CAKE_FAILURES || told)
        return;
    cake_buf *line = &a->failure[a->n_failure++];
    cake_buf_addf(line, "%s: %s", cake_form_place(r->form, r->index, r->id, place), r->fault.message);
}

void cake_batch_io_say(const cake_batch_io *a)
{
    long long failed = a->counts.failed, earlier = a->counts.resumed_failed;
    if (!a->recorder || (!failed && !earlier))
        return;
    cake_buf beside = {0};
    if (earlier)
        cake_buf_addf(&beside, ", and %lld of earlier runs", earlier);
    cake_log(CAKE_WARN, "run", "%lld request%s failed%s: all is done, and the status is 3%s", failed,
             failed == 1 ? "" : "s", beside.len ? beside.data : "",
             a->n_failure < failed && a->n_failure ? "; the first were" : "");
    for (int i = 0; i < a->n_failure; i++)
        cake_log(CAKE_WARN, "run", "%s", a->failure[i].data);
    cake_buf_free(&beside);
}

static cake_err done(void *self, cake_sequence *s)
{
    cake_batch_io *a = self;
    bool failed = s->request.err != CAKE_OK;
    cake_err err = CAKE_OK;
    unlist_all(a, s);
    a->counts.done++;
    a->counts.share = share_done(a);
    if (!failed)
        learn(a, s);
    a->counts.failed += failed;
    if (failed)
        note_failure(a, &s->request);
    a->counts.prompt += failed ? 0 : s->n_prompt;
    if (a->recorder) {
        cake_record_reached(a->recorder, a->counts.share, a->counts.left);
        err = write_record(a, s);
    } else if (!failed)
        err = stream(a, s, true);
    else
        cake_log(CAKE_ERROR, NULL, "%s", s->request.fault.message);
    cake_sequence_close(s);
    a->hurt |= err != CAKE_OK;
    return err;
}

void cake_batch_io_stop(cake_batch_io *a)
{
    keep(a, 1);
    if (a->recorder)
        cake_record_stop(a->recorder); /* what fails here was said */
}

int64_t cake_batch_io_failed(const cake_batch_io *a)
{
    return a->recorder ? cake_record_failed(a->recorder) : a->counts.failed;
}

cake_err cake_batch_io_finish(cake_batch_io *answers)
{
    return answers->recorder ? cake_record_finish(answers->recorder) : CAKE_OK;
}

cake_sequence_io cake_batch_io_sequences(cake_batch_io *answers)
{
    return (cake_sequence_io){.self = answers, .next = next, .token = token, .done = done};
}
