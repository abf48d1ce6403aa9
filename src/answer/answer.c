/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer as the model wrote it. Out: a message.
 * Invariant: spans follow each other without gaps, so that nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/parts.h"

/* ---- reasoning between two marks, at the beginning */

static void read_reasoning(cake_reading *r, bool open)
{
    const cake_answer_form *form = r->form;
    size_t at = cake_reading_blanks(r, 0, r->len);
    const bool marked = cake_reading_has(r, form->think, at);
    if (!marked && !open)
        return;
    at = marked ? at + strlen(form->think) : 0;
    while (at < r->len && r->text[at] == '\n')
        at++;
    cake_reading_add(r, CAKE_SPAN_MARK, at);
    const size_t end = cake_reading_find(r, form->unthink, at, r->len);
    size_t last = end;
    while (last > at && r->text[last - 1] == '\n')
        last--;
    cake_reading_add(r, CAKE_SPAN_REASONING, end == r->len ? end : last);
    if (end == r->len)
        return;
    at = end + strlen(form->unthink);
    while (at < r->len && r->text[at] == '\n')
        at++;
    cake_reading_add(r, CAKE_SPAN_MARK, at);
}

/* ---- the message */

/* Appends bytes of the text, with or without special tokens. */
static void add_text(const cake_answer_text *from, size_t begin, size_t end, bool special, cake_buf *out)
{
    for (size_t i = 0; i < from->n_special && !special; i++) {
        if (from->special[i].end <= begin || from->special[i].begin >= end)
            continue;
        if (from->special[i].begin > begin)
            cake_buf_add(out, from->text.data + begin, from->special[i].begin - begin);
        begin = from->special[i].end < end ? from->special[i].end : end;
    }
    cake_buf_add(out, from->text.data + begin, end - begin);
}

static bool is_blank(const cake_buf *text)
{
    size_t i = 0;
    while (i < text->len && text->data[i] && strchr(" \t\r\n", text->data[i]))
        i++;
    return i == text->len;
}

static int64_t count_tokens(const cake_answer_text *from, const cake_span *span)
{
    int64_t n = 0;
    for (size_t i = 0; i < from->n_token; i++)
        n += from->token[i] >= span->begin && from->token[i] < span->end;
    return n;
}

static void make_message(const cake_reading *r, cake_message *out)
{
    cake_buf content = {0}, reasoning = {0};
    bool apart = false; /* something stood between two spans of content */
    cake_buf_adds(&content, "");
    for (size_t i = 0; i < r->n_span; i++) {
        const cake_span *span = &r->span[i];
        const bool said = span->kind == CAKE_SPAN_CONTENT || span->kind == CAKE_SPAN_FAILED;
        if (span->kind == CAKE_SPAN_REASONING) {
            cake_buf_adds(&reasoning, reasoning.len ? "\n" : "");
            add_text(r->from, span->begin, span->end, false, &reasoning);
            out->reasoning_tokens += count_tokens(r->from, span);
        }
        if (span->kind == CAKE_SPAN_CALL)
            out->content_last = !content.len;
        if (said) {
            cake_buf_adds(&content, apart && content.len ? "\n" : "");
            add_text(r->from, span->begin, span->end, span->kind == CAKE_SPAN_FAILED, &content);
        }
        apart = !said;
    }
    if (r->n_call && is_blank(&content))
        cake_buf_cut(&content, 0);
    out->content = content.data;
    out->n_content = content.len;
    out->reasoning = reasoning.len ? reasoning.data : NULL;
    out->n_reasoning = reasoning.len;
    if (!reasoning.len)
        cake_buf_free(&reasoning);
    out->call = r->call;
    out->n_call = (int)r->n_call;
    out->reads_reasoning = r->form->reasoning;
    out->short_ids = r->form->tools && r->form->tools->short_ids;
}

void cake_answer_read(const cake_answer_form *form, cake_answer_begin begin, const cake_json *tools,
                      const cake_answer_text *text, cake_message *out)
{
    cake_reading r = {.form = form,
                      .from = text,
                      .text = text->text.data ? text->text.data : "",
                      .len = text->text.len,
                      .tools = form->tools ? tools : NULL};
    *out = (cake_message){0};
    if (form->think)
        read_reasoning(&r, begin == CAKE_ANSWER_OPEN);
    const bool harmony = (form->reasoning && !form->think) || (form->tools && !form->tools->read);
    if (harmony)
        cake_harmony_read(&r, begin);
    else if (r.tools)
        form->tools->read(&r);
    cake_reading_add(&r, CAKE_SPAN_CONTENT, r.len);
    make_message(&r, out);
    free(r.span);
}

void cake_message_free(cake_message *message)
{
    for (int i = 0; i < message->n_call; i++) {
        free(message->call[i].name);
        free(message->call[i].arguments);
        free(message->call[i].id);
    }
    free(message->call);
    free(message->content);
    free(message->reasoning);
    *message = (cake_message){0};
}

void cake_answer_text_free(cake_answer_text *text)
{
    cake_buf_free(&text->text);
    free(text->special);
    free(text->token);
    *text = (cake_answer_text){0};
}
