/* SPDX-License-Identifier: Apache-2.0
 *
 * Text processing on one core: a model's tokenizer and chat template (-m), reading of requests, writing of
 * strings. The text is synthetic: words, numbers, punctuation and some letters beyond ASCII. Results are
 * fractions of the memory read bandwidth, the limit for anything that reads every byte.
 * Invariant: an operation that does not reproduce its input is not timed.
 */
#include <stdio.h>
#include <string.h>

#include "bench/peak_rates.h"
#include "chat/chat.h"
#include "formats/json.h"
#include "prompt/prompt.h"
#include "tokenizer/tokenizer.h"

enum { BYTES = 1 << 20, SMALL = 1 << 14, PIECE = 2000, MESSAGES = 9 };

typedef struct job {
    const char *dir;
    cake_buf text, lines; /* what is encoded or written; what is read */
    int n_line;
    cake_tokenizer *token;
    cake_chat *chat;
    cake_json *messages;
    cake_ids ids;
    cake_buf out;
    bool failed;
} job;

static void make_text(size_t bytes, cake_buf *out)
{
    static const char *const words[] = {
        "the",    "of",      "and",       "a",     "to",          "in",
        "is",     "you",     "that",      "stage", "wave",        "prompt",
        "answer", "weights", "memory",    "rank",  "which",       "between",
        "layers", "quickly", "bandwidth", "can't", "Gru\xC3\x9F", "\xE6\x97\xA5\xE6\x9C\xAC",
        "it's",   "because", "however"};
    uint64_t random = 1;
    while (out->len < bytes) {
        random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
        unsigned r = (unsigned)(random >> 33);
        cake_buf_adds(out, words[r % (sizeof words / sizeof *words)]);
        if (r % 23 == 0)
            cake_buf_addf(out, " %u", r % 10000);
        cake_buf_adds(out, r % 101 == 0 ? ".\n\n" : r % 11 == 0 ? ", " : r % 13 == 0 ? ". " : " ");
    }
}

/* The end of the piece of text that begins at `at`: after a blank. */
static size_t piece_end(const cake_buf *text, size_t at)
{
    size_t end = text->len - at > PIECE ? at + PIECE : text->len;
    while (end < text->len && text->data[end - 1] != ' ')
        end++;
    return end;
}

static void encode(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_fault fault;
    (void)exec;
    j->ids.len = 0;
    for (size_t at = 0, end; at < j->text.len && !j->failed; at = end) {
        end = piece_end(&j->text, at);
        j->failed = cake_tokenizer_encode(j->token, j->text.data + at, end - at, false, &j->ids, &fault);
    }
}

static void decode(const cake_exec *exec, void *arg)
{
    job *j = arg;
    (void)exec;
    cake_buf_cut(&j->out, 0);
    cake_decoder *decoder = cake_decoder_open(j->token);
    for (size_t i = 0; i < j->ids.len; i++)
        cake_decoder_push(decoder, j->ids.id[i], &j->out);
    cake_decoder_end(decoder, &j->out);
    cake_decoder_close(decoder);
}

static void render(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_fault fault;
    cake_chat_input input = {.messages = j->messages, .add_generation_prompt = true};
    (void)exec;
    cake_buf_cut(&j->out, 0);
    j->failed = j->failed || cake_chat_render(j->chat, &input, &j->out, &fault);
}

static void read_requests(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_prompt *prompt;
    cake_request request;
    int n = 0;
    (void)exec;
    j->failed = j->failed || cake_prompt_from_bytes(j->lines.data, j->lines.len, CAKE_PROMPT_JSONL, &prompt);
    if (j->failed)
        return;
    for (; !cake_prompt_next(prompt, &request); n++) {
        j->failed = j->failed || request.err;
        cake_request_free(&request);
    }
    j->failed = j->failed || n != j->n_line;
    cake_prompt_close(prompt);
}

static void write_strings(const cake_exec *exec, void *arg)
{
    job *j = arg;
    (void)exec;
    cake_buf_cut(&j->out, 0);
    cake_json_add_text(&j->out, j->text.data, j->text.len);
}

/* ---- checks before timing */

/* Encoding and decoding a decoded text reproduces it, whatever the tokenizer normalizes. */
static bool right_tokens(job *j)
{
    encode(NULL, j);
    decode(NULL, j);
    cake_buf first = j->out, source = j->text;
    j->out = (cake_buf){0};
    j->text = first;
    encode(NULL, j);
    decode(NULL, j);
    bool same =
        !j->failed && first.len && j->out.len == first.len && !memcmp(j->out.data, first.data, first.len);
    j->text = source;
    cake_buf_free(&first);
    encode(NULL, j);
    return same;
}

static bool right_render(job *j)
{
    size_t len;
    render(NULL, j);
    const char *last =
        cake_json_text(cake_json_get(cake_json_at(j->messages, MESSAGES - 1), "content"), &len);
    for (size_t i = 0; !j->failed && i + 64 <= j->out.len; i++)
        if (!memcmp(j->out.data + i, last, 64))
            return true;
    return false;
}

static bool right_requests(job *j)
{
    read_requests(NULL, j);
    return !j->failed;
}

static bool right_strings(job *j)
{
    cake_json *back = NULL;
    cake_fault fault;
    size_t len = 0;
    write_strings(NULL, j);
    cake_buf list = {0};
    cake_buf_addf(&list, "[%.*s]", (int)j->out.len, j->out.data);
    bool fine = !cake_json_parse(list.data, list.len, &back, &fault);
    const char *text = fine ? cake_json_text(cake_json_at(back, 0), &len) : NULL;
    fine = text && len == j->text.len && !memcmp(text, j->text.data, len);
    cake_json_free(back);
    cake_buf_free(&list);
    return fine;
}

typedef enum kind { ENCODE, DECODE, RENDER, REQUESTS, STRINGS } kind;

static const struct {
    void (*run)(const cake_exec *exec, void *arg);
    bool (*right)(job *j);
    bool token, chat; /* of -m */
} kinds[] = {
    [ENCODE] = {encode, right_tokens, true, false},
    [DECODE] = {decode, right_tokens, true, false},
    [RENDER] = {render, right_render, false, true},
    [REQUESTS] = {read_requests, right_requests, false, false},
    [STRINGS] = {write_strings, right_strings, false, false},
};

static void make_lines(job *j)
{
    for (size_t at = 0, end; at < j->text.len; at = end, j->n_line++) {
        end = piece_end(&j->text, at);
        cake_buf_addf(&j->lines, "{\"id\": %d, \"messages\": [{\"role\": \"user\", \"content\": ", j->n_line);
        cake_json_add_text(&j->lines, j->text.data + at, end - at);
        cake_buf_adds(&j->lines, "}], \"max_tokens\": 64}\n");
    }
}

static cake_err make_messages(job *j)
{
    cake_buf text = {0};
    cake_fault fault;
    size_t at = 0, end;
    for (int i = 0; i < MESSAGES; i++, at = end) {
        end = piece_end(&j->text, at);
        cake_buf_addf(&text, "%s{\"role\": \"%s\", \"content\": ", i ? ", " : "[",
                      i % 2 ? "assistant" : "user");
        cake_json_add_text(&text, j->text.data + at + 1, end - at - 2);
        cake_buf_adds(&text, i == MESSAGES - 1 ? "}]" : "}");
    }
    cake_err err = cake_json_parse(text.data, text.len, &j->messages, &fault);
    cake_buf_free(&text);
    return err;
}

static double amount(const job *j, kind k)
{
    return (double)(k == ENCODE ? j->text.len : k == REQUESTS ? j->lines.len : j->out.len);
}

static cake_err measure(cake_bench *bench, const cake_case *self, job *j)
{
    kind k = (kind)self->kind;
    if (!kinds[k].right(j) || j->failed)
        return cake_fail("bench", "%s: what comes out is not what went in; it is not timed", self->name);
    double seconds = cake_bench_time(bench, 1, kinds[k].run, j), rate = amount(j, k) / seconds;
    cake_bench_report(bench, self->name, 1, -1, rate * 1e-6, "MB/s", rate / peak_rate(bench, PEAK_READ, 1),
                      peak_name(PEAK_READ));
    return CAKE_OK;
}

static cake_err run_text(cake_bench *bench, const cake_case *self)
{
    kind k = (kind)self->kind;
    job j = {.dir = bench->options->model};
    cake_err err = CAKE_OK;
    if ((kinds[k].token || kinds[k].chat) && !j.dir) {
        bench->lacks = "a model's directory: give it with -m";
        return CAKE_OK;
    }
    make_text(bench->smoke ? SMALL * 2 : BYTES, &j.text);
    make_lines(&j);
    if (kinds[k].token)
        err = cake_tokenizer_open(j.dir, &j.token);
    if (!err && kinds[k].chat)
        err = cake_chat_open(j.dir, &j.chat);
    if (!err && kinds[k].chat)
        err = make_messages(&j);
    if (!err &&
        (!j.chat || cake_chat_has(j.chat))) /* of a model without a template there is nothing to say */
        err = measure(bench, self, &j);
    cake_json_free(j.messages);
    cake_chat_close(j.chat);
    cake_tokenizer_close(j.token);
    cake_ids_free(&j.ids);
    cake_buf_free(&j.out);
    cake_buf_free(&j.lines);
    cake_buf_free(&j.text);
    return err;
}

const cake_case cake_cases_text[] = {
    {"text.encode", "text to ids, prompts of 2,000 bytes (with -m)", run_text, ENCODE},
    {"text.decode", "ids to text (with -m)", run_text, DECODE},
    {"text.render", "the chat template over 9 messages (with -m)", run_text, RENDER},
    {"text.requests", "lines of JSON to requests", run_text, REQUESTS},
    {"text.strings", "text to JSON strings", run_text, STRINGS},
    {NULL, NULL, NULL, 0},
};
