/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer of gpt-oss. Out: spans of it: messages in channels, each with a header.
 * Source: the description of the harmony format by OpenAI.
 */
#include <string.h>

#include "answer/parts.h"

#define MESSAGE "<|message|>"
#define CHANNEL "<|channel|>"

/* The first mark that ends a message. */
static size_t find_end(const cake_reading *r, size_t from, size_t *next)
{
    static const char *const marks[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>"};
    size_t end = r->len;
    *next = end;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t at = cake_reading_find(r, marks[i], from, end);
        if (at < end) {
            end = at;
            *next = i == 3 ? at : at + strlen(marks[i]); /* a header begins with <|start|> */
        }
    }
    return end;
}

/* What the header of a message says. */
typedef struct header {
    size_t to, to_end; /* bytes of the recipient; to_end 0: there is none */
    bool thought;      /* the channel is analysis */
} header;

/* Reads the header in [from, end); false: it is none. */
static bool read_header(const cake_reading *r, size_t from, size_t end, header *out)
{
    static const char *const marks[] = {"<|start|>", "<|channel|>", "<|constrain|>"};
    static const char *const words[] = {"assistant", "analysis", "commentary", "final",
                                        "json",      "code",     "text"};
    *out = (header){0};
    for (size_t at = cake_reading_blanks(r, from, end); at < end; at = cake_reading_blanks(r, at, end)) {
        size_t next = at, known = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks && next == at; i++)
            next += cake_reading_has(r, marks[i], at) ? strlen(marks[i]) : 0;
        if (next > at) {
            at = next;
            continue;
        }
        while (next < end && !strchr(" <\t\n", r->text[next]))
            next++;
        while (known < sizeof words / sizeof *words &&
               (strlen(words[known]) != next - at || memcmp(words[known], r->text + at, next - at) != 0))
            known++;
        if (next - at > 3 && cake_reading_has(r, "to=", at)) {
            out->to = at + 3;
            out->to_end = next;
        } else if (next == at || known == sizeof words / sizeof *words) {
            return false;
        }
        out->thought = out->thought || known == 1;
        at = next;
    }
    return true;
}

/* A call of a function, the arguments of which are in [body, end). */
static bool read_call(cake_reading *r, const header *h, size_t body, size_t end)
{
    static const char prefix[] = "functions.";
    const size_t name = h->to + sizeof prefix - 1;
    cake_json *arguments = NULL;
    const bool right = cake_reading_has(r, prefix, h->to) && name < h->to_end &&
                       cake_reading_parse(r->text + body, end - body, &arguments) &&
                       cake_reading_call(r, r->text + name, h->to_end - name, arguments, NULL);
    cake_json_free(arguments);
    return right;
}

/* A message from byte `at`; the first one may be without header. Returns its end. */
static size_t read_message(cake_reading *r, size_t at, bool headed, bool thought)
{
    header h = {.thought = thought};
    const size_t mark = headed ? cake_reading_find(r, MESSAGE, at, r->len) : at;
    const size_t body = headed ? mark + strlen(MESSAGE) : at;
    const bool right = mark < r->len && (!headed || read_header(r, at, mark, &h));
    size_t next, end = find_end(r, right ? body : at + 1, &next);
    if (!right) { /* a header that was cut off is no content */
        const bool header_only = end == r->len && mark == r->len && read_header(r, at, r->len, &h);
        cake_reading_add(r, header_only ? CAKE_SPAN_MARK : CAKE_SPAN_FAILED, next);
    } else if (h.to_end) {
        const bool called = read_call(r, &h, body, end);
        cake_reading_add(r, called ? CAKE_SPAN_CALL : CAKE_SPAN_FAILED, called ? end : next);
    } else {
        cake_reading_add(r, CAKE_SPAN_MARK, body);
        cake_reading_add(r, h.thought ? CAKE_SPAN_REASONING : CAKE_SPAN_CONTENT, end);
    }
    cake_reading_add(r, CAKE_SPAN_MARK, next);
    return next;
}

void cake_harmony_read(cake_reading *r, cake_answer_begin begin)
{
    static const char *const heads[] = {CHANNEL, "<|start|>", " to=", "to="};
    bool headed = begin == CAKE_ANSWER_FREE; /* else the first header is part of the prompt */
    bool any = !headed;
    for (size_t i = 0; i < sizeof heads / sizeof *heads && !any; i++)
        any = cake_reading_has(r, heads[i], 0);
    for (size_t at = 0; any && at < r->len; headed = true)
        at = read_message(r, at, headed, begin == CAKE_ANSWER_OPEN);
}
