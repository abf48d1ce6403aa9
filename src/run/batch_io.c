/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests from the preparation, tokens and finished sequences from the engines (cake_sequence_io). Out:
 * records, or text on standard output.
 * Invariant: a sequence that a later run can resume is listed in `begun` from its first token until it is
 * done, so that its tokens are kept if the run stops.
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
#include "request/message.h"
#include "run/from_options.h"
#include "run/identity.h"
#include "run/result.h"
#include "run/time_left.h"

static void token_bytes(const void *io, int32_t id, cake_buf *out)
{
    cake_tokenizer_bytes(((const cake_batch_io *)io)->preparation.tokenizer, id, out);
}

/* Quotes words for a shell. */
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

static cake_err open_recorder(const cake_options *o, const cake_rank *me, cake_batch_io *io)
{
    char name[CAKE_MODEL_NAME];
    time_t now = time(NULL);
    cake_buf identity = {0}, command = {0};
    add_command(&o->words, &command);
    cake_err err = cake_identity_add(o, me, &io->preparation, &identity);
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
                                   .token_bytes = token_bytes,
                                   .token = io};
    if (!err)
        err = cake_record_open(&options, &io->recorder);
    cake_buf_free(&identity);
    cake_buf_free(&command);
    return err;
}

/* Reads the input as far as earlier runs did and compares checksums: a difference is an error at once, not
 * after hours. CAKE_END: the input has no more requests. */
static cake_err check_input(cake_prompt *prompt, const cake_input_checkpoint *marks, size_t n)
{
    int64_t known = n ? marks[n - 1].requests : 0;
    cake_err err = CAKE_OK;
    cake_line line;
    cake_prompt_expect(prompt, marks, n);
    while (!err && cake_prompt_checkpoint(prompt).requests < known)
        err = cake_prompt_read(prompt, &line);
    return err ? err : cake_prompt_read(prompt, &line);
}

/* With --retry-errors lines of failed requests may have been corrected. True if only such lines changed and
 * the input is as long as before. *read: checkpoint of the input as it is now. Logs nothing. */
static bool is_corrected(const cake_options *o, cake_batch_io *io, const cake_input_checkpoint *last,
                         cake_input_checkpoint *read)
{
    cake_prompt *prompt = NULL;
    cake_line line;
    uint64_t sum = 0, expected = 0;
    int64_t order = 0;
    if (!cake_record_recall(io->recorder, &expected) || cake_prepare_reopen(&io->preparation, &prompt))
        return false;
    while (cake_prompt_checkpoint(prompt).requests < last->requests && !cake_prompt_read(prompt, &line))
        if (cake_shard_has(&o->shard, line.index) && cake_record_answered(io->recorder, order++))
            sum += line.sum;
    *read = cake_prompt_checkpoint(prompt);
    cake_prompt_close(prompt);
    return read->requests == last->requests && read->line == last->line && read->sum != last->sum &&
           sum == expected;
}

static void accept_corrections(const cake_options *o, cake_batch_io *io)
{
    size_t n;
    const cake_input_checkpoint *marks = cake_record_input_checkpoints(io->recorder, &n);
    cake_input_checkpoint read;
    if (!o->retry_errors || !n || !is_corrected(o, io, &marks[n - 1], &read))
        return;
    cake_log(CAKE_INFO, "run", "%s: lines of failed requests have changed: these requests are done again",
             o->output);
    cake_record_corrected(io->recorder, read);
}

/* All earlier requests are done. CAKE_END: the input has no more. */
static cake_err check_finished(const cake_options *o, cake_batch_io *io, bool more, bool reread)
{
    int64_t failed = cake_record_failed(io->recorder);
    if (more && !reread)
        return cake_fail("run",
                         "%s is finished, but standard input, which cannot be read twice, has more requests: "
                         "give it as a file",
                         o->output);
    if (more || (o->retry_errors && failed))
        return cake_record_reopen(io->recorder);
    char all[48] = "the one request is";
    if (cake_record_resumed(io->recorder) != 1)
        snprintf(all, sizeof all, "all %lld requests are", (long long)cake_record_resumed(io->recorder));
    cake_log(CAKE_INFO, "run", "%s: %s done already (%lld failed)%s", o->output, all, (long long)failed,
             failed ? "; --retry-errors does these again" : "");
    if (o->report || o->trace)
        cake_log(CAKE_WARN, "run", "nothing was left to run, so --report and --trace write nothing");
    return CAKE_END;
}

static cake_err resume_results(const cake_options *o, cake_batch_io *io)
{
    size_t n;
    accept_corrections(o, io);
    const cake_input_checkpoint *marks = cake_record_input_checkpoints(io->recorder, &n);
    bool finished = cake_record_finished(io->recorder);
    cake_prompt *reread = NULL;
    cake_err err = n || finished ? cake_prepare_reopen(&io->preparation, &reread) : CAKE_END;
    bool single_pass = err == CAKE_END;
    if (!single_pass && err)
        return err;
    if (!single_pass || finished) {
        err = check_input(single_pass ? io->preparation.prompt : reread, marks, n);
        cake_prompt_close(reread);
        if (err && err != CAKE_END)
            return err;
    }
    if (finished && (err = check_finished(o, io, err == CAKE_OK, !single_pass)))
        return err;
    marks = cake_record_input_checkpoints(io->recorder, &n);
    cake_prompt_expect(io->preparation.prompt, marks, n);
    cake_record_log_resume(io->recorder);
    return CAKE_OK;
}

/* Results that an earlier run left stay as they are if the tokenizer cannot be read. */
static cake_err open_results(const cake_options *o, const cake_rank *me, cake_batch_io *io)
{
    cake_err err = cake_batch_io_wait(io);
    if (!err)
        err = open_recorder(o, me, io);
    if (!err)
        err = resume_results(o, io);
    if (!err) {
        io->counts.resumed = cake_record_resumed(io->recorder);
        io->counts.resumed_failed = cake_record_failed(io->recorder);
    }
    io->preparation.recorder = io->recorder;
    return err;
}

cake_err cake_batch_io_open(const cake_options *o, const cake_rank *me, cake_language *language,
                            cake_batch_io *io)
{
    const cake_config *config = cake_model_config(me->input.model);
    *io = (cake_batch_io){.counts = {.share = -1, .left = -1}, .eos = config->eos, .n_eos = config->n_eos};
    cake_prepare_options from = cake_prepare_options_from(o);
    cake_err err = cake_prepare_begin(&from, &config->defaults, me->input.context, config->n_vocab, language,
                                      &io->preparation);
    io->preparation.config = config;
    cake_grammar_cache_start(io->preparation.grammars);
    return err || cake_options_stream(o) ? err : open_results(o, me, io);
}

cake_err cake_batch_io_wait(cake_batch_io *io)
{
    cake_preparation *preparation = &io->preparation;
    const cake_config *config = preparation->config;
    bool first = !preparation->tokenizer;
    cake_err err = cake_prepare_wait(preparation);
    if (err || !first)
        return err;
    cake_grammar_cache_serve(preparation->grammars, preparation->tokenizer, config->n_vocab, config->eos,
                             config->n_eos);
    if (!config->headless)
        cake_prepare_check_eos(preparation, io->eos, io->n_eos);
    return CAKE_OK;
}

void cake_batch_io_flush(cake_batch_io *io)
{
    if (io->recorder)
        cake_record_flush(io->recorder); /* a failure repeats at the next write */
}

/* Writes new tokens of sequences that have at least min_tokens of them. */
static void write_tokens(cake_batch_io *io, int min_tokens)
{
    for (int i = 0; i < io->n_begun && !io->failed; i++) {
        cake_sequence *s = io->begun[i];
        int width = s->n_top >= 0 ? 1 + s->n_top : 0, n = cake_sequence_generated(s) - s->kept;
        cake_inflight part = {.order = s->lead->request.order,
                              .choice = s == s->lead ? 0 : (int)s->key.choice,
                              .at = s->kept,
                              .ids = {.id = s->ids.id + s->n_prompt + s->kept, .len = (size_t)n},
                              .width = width,
                              .logprobs = width ? s->logprobs + (size_t)s->kept * (size_t)width : NULL};
        if (n < min_tokens)
            continue;
        cake_record_add_inflight(io->recorder, &part);
        s->kept += n;
    }
    if (io->n_begun && !io->failed)
        cake_record_checkpoint(io->recorder); /* a failure repeats with the next result */
}

void cake_batch_io_keep(cake_batch_io *io)
{
    write_tokens(io, 1);
}

/* The share of the input that is done: what was read, less what is not answered. */
static double share_done(const cake_batch_io *io)
{
    double read = cake_prompt_progress(io->preparation.prompt),
           seen = (double)(io->taken + io->preparation.passed);
    return read < 0 || seen <= 0 ? -1 : read * (double)(io->counts.done + io->preparation.passed) / seen;
}

cake_err cake_batch_io_tick(cake_batch_io *io)
{
    const double every = 5;
    enum { ENOUGH = 32 }; /* fewer are faster to recompute than to read */
    double now = cake_clock_now();
    if (!io->started)
        io->started = now;
    if (now >= io->next_eta && !io->failed) {
        io->counts.left = cake_time_left(io);
        if (io->recorder)
            cake_record_reached(io->recorder, io->counts.share, io->counts.left);
        io->next_eta = now + 0.5;
    }
    if (!io->recorder)
        return CAKE_OK;
    cake_err err = cake_record_tick(io->recorder);
    io->failed |= err != CAKE_OK;
    if (err || now < io->next_checkpoint)
        return err;
    if (io->next_checkpoint > 0)
        write_tokens(io, ENOUGH);
    io->next_checkpoint = now + every;
    return CAKE_OK;
}

/* Lists a sequence that has tokens, so that these are kept. */
static void list_begun(cake_batch_io *io, cake_sequence *s)
{
    if (s->listed || !io->recorder || !cake_sequence_is_resumable(s))
        return;
    CAKE_RESERVE(io->begun, io->n_begun, io->cap_begun);
    io->begun[io->n_begun++] = s;
    s->listed = io->n_begun;
}

static void unlist_begun(cake_batch_io *io, const cake_sequence *s)
{
    if (!s->listed)
        return;
    cake_sequence *last = io->begun[--io->n_begun];
    io->begun[s->listed - 1] = last;
    last->listed = s->listed;
}

static void unlist_all(cake_batch_io *io, const cake_sequence *lead)
{
    unlist_begun(io, lead);
    for (int i = 0; i < lead->n_choice; i++)
        unlist_begun(io, lead->choice[i]);
}

void cake_batch_io_close(cake_batch_io *io)
{
    cake_record_close(io->recorder);
    cake_prepare_close(&io->preparation);
    free(io->begun);
    for (int i = 0; i < io->n_failure; i++)
        cake_buf_free(&io->failure[i]);
    cake_latency_free(&io->ttft);
    cake_latency_free(&io->itl);
}

/* Whether a text may still become the mark of reasoning. */
static bool may_be_mark(const cake_answer_form *form, const char *text, size_t len)
{
    while (len && strchr(" \t\r\n", *text))
        text++, len--;
    return form->think && len < strlen(form->think) && !memcmp(text, form->think, len);
}

/* Writes the text that can no longer change; at the end all of it and a newline. */
static cake_err stream(cake_batch_io *io, const cake_sequence *s, bool end)
{
    if (io->broken) /* already logged */
        return CAKE_ERR_FATAL;
    size_t until = end ? s->text.len : cake_sequence_settled(s);
    cake_message message = {0};
    const char *text = s->text.data;
    if (s->lead->request.is_message) {
        if (!end && cake_clock_now() < io->next_stream) /* all of it is read again each time */
            return CAKE_OK;
        cake_sequence_message(s, &io->preparation.form, NULL, until, &message);
        text = message.content;
        until = !end && may_be_mark(&io->preparation.form, text, message.n_content) ? 0 : message.n_content;
        io->next_stream = cake_clock_now() + 0.1;
    }
    if (until > io->streamed)
        fwrite(text + io->streamed, 1, until - io->streamed, stdout);
    io->streamed = until > io->streamed ? until : io->streamed;
    cake_message_free(&message);
    if (end)
        fputc('\n', stdout);
    io->broken = fflush(stdout) || ferror(stdout);
    if (io->broken)
        return cake_fail("output", "standard output cannot be written: %s", strerror(errno));
    return CAKE_OK;
}

/* Restores tokens from an earlier run. */
static void restore(cake_batch_io *io, cake_sequence *s)
{
    int n;
    const cake_inflight *begun =
        io->recorder ? cake_record_inflight(io->recorder, s->request.order, &n) : NULL;
    if (!begun || !cake_sequence_restore(s, begun, n, io->preparation.n_vocab, io->eos, io->n_eos))
        return;
    for (int i = 0; i < n; i++) {
        cake_sequence *seq = s->n_choice ? s->choice[begun[i].choice] : s;
        seq->kept = cake_sequence_generated(seq);
        list_begun(io, seq);
    }
}

static cake_err next_request(void *self, cake_sequence **out)
{
    cake_batch_io *io = self;
    cake_err err = cake_prepare_next(&io->preparation, out);
    if (io->recorder)
        cake_record_read_to(io->recorder, cake_prompt_checkpoint(io->preparation.prompt));
    if (err && io->recorder && cake_prompt_changed(io->preparation.prompt))
        cake_record_rollback(io->recorder);
    if (err == CAKE_END)
        io->counts.total = io->preparation.order;
    io->failed |= err && err != CAKE_END;
    if (err || !*out)
        return err;
    restore(io, *out);
    cake_request *r = &(*out)->request;
    io->taken++;
    if (!r->err && r->params.n > 1 && io->recorder && cake_record_is_text(io->recorder))
        r->err = cake_fault_set(&r->fault, "n",
                                "n is %lld; a .txt file holds one answer per line: give -o a .jsonl file",
                                (long long)r->params.n);
    return CAKE_OK;
}

static void on_token(void *self, cake_sequence *s, double waited)
{
    cake_batch_io *io = self;
    io->counts.generated++;
    io->worked += cake_sequence_generated(s) == 1 ? 1 + CAKE_ETA_PROMPT * s->n_prompt : 1;
    list_begun(io, s);
    cake_latency_add(cake_sequence_generated(s) == 1 ? &io->ttft : &io->itl, waited);
    if (cake_sequence_generated(s) == 1)
        s->ttft = waited;
    s->waited += waited;
    if (!io->recorder)
        stream(io, s, false); /* a failure repeats at the end, and is logged then */
}

/* Adds the lengths of its answers to the estimate. */
static void add_lengths(cake_batch_io *io, const cake_sequence *lead)
{
    io->finished += CAKE_ETA_PROMPT * lead->n_prompt;
    for (int i = 0; i < (lead->n_choice ? lead->n_choice : 1); i++) {
        int n = cake_sequence_generated(lead->n_choice ? lead->choice[i] : lead);
        io->finished += n;
        if (!cake_time_is_certain(lead))
            cake_eta_end(&io->eta, n);
    }
}

/* Keeps the first failures for the end; the results have all. */
static void note_failure(cake_batch_io *io, const cake_request *r)
{
    char name[CAKE_REQUEST_NAME];
    bool is_text =
        io->recorder && cake_record_is_text(io->recorder); /* text: failures are logged one by one */
    if (io->n_failure == CAKE_FAILURES || is_text)
        return;
    cake_buf *line = &io->failure[io->n_failure++];
    cake_buf_addf(line, "%s: %s", cake_request_name(r->form, r->index, r->id, name), r->fault.message);
}

void cake_batch_io_say(const cake_batch_io *io)
{
    long long failed = io->counts.failed, earlier = io->counts.resumed_failed;
    if (!io->recorder || (!failed && !earlier))
        return;
    cake_buf text = {0};
    if (failed)
        cake_buf_addf(&text, "%lld request%s failed", failed, cake_plural(failed));
    if (failed && earlier)
        cake_buf_addf(&text, ", and %lld in an earlier run", earlier);
    else if (earlier)
        cake_buf_addf(&text, "%lld request%s failed in an earlier run, none in this one", earlier,
                      cake_plural(earlier));
    cake_log(CAKE_WARN, "run", "%s: the run is complete, its exit status is 3%s", text.data,
             io->n_failure < failed && io->n_failure ? "; the first were" : "");
    for (int i = 0; i < io->n_failure; i++)
        cake_log(CAKE_WARN, "run", "%s", io->failure[i].data);
    cake_buf_free(&text);
}

static cake_err on_done(void *self, cake_sequence *s)
{
    cake_batch_io *io = self;
    bool failed = s->request.err != CAKE_OK;
    cake_err err = CAKE_OK;
    unlist_all(io, s);
    io->counts.done++;
    io->counts.share = share_done(io);
    if (!failed)
        add_lengths(io, s);
    if (!failed)
        cake_result_count(io, s);
    io->counts.failed += failed;
    if (failed)
        note_failure(io, &s->request);
    io->counts.prompt += failed ? 0 : s->n_prompt;
    if (io->recorder) {
        cake_record_reached(io->recorder, io->counts.share, io->counts.left);
        err = cake_result_write(io, s);
    } else if (!failed)
        err = stream(io, s, true);
    else
        cake_log(CAKE_ERROR, "run", "%s", s->request.fault.message);
    cake_sequence_close(s);
    io->failed |= err != CAKE_OK;
    return err;
}

void cake_batch_io_stop(cake_batch_io *io)
{
    write_tokens(io, 1);
    if (io->recorder)
        cake_record_stop(io->recorder); /* a failure is already logged */
}

int64_t cake_batch_io_failed(const cake_batch_io *io)
{
    return io->recorder ? cake_record_failed(io->recorder) : io->counts.failed;
}

cake_err cake_batch_io_finish(cake_batch_io *io)
{
    return io->recorder ? cake_record_finish(io->recorder) : CAKE_OK;
}

cake_sequence_io cake_batch_io_sequences(cake_batch_io *io)
{
    return (cake_sequence_io){.self = io, .next = next_request, .token = on_token, .done = on_done};
}
