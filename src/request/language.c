/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's directory. Out: its tokenizer and chat template, opened by a thread.
 * Invariant: until the caller has waited, only the thread touches them; it calls no MPI.
 */
#include "request/language.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

enum { STACK = 8 << 20 /* JSON nests */ };

static bool mentions(const void *chat, const char *text)
{
    return cake_chat_mentions(chat, text);
}

/* Whoever names a parser expects calls. */
static void check_tools(const cake_language_options *o, const cake_chat *chat)
{
    if (!o->tool_parser || !strcmp(o->tool_parser, "auto") || !strcmp(o->tool_parser, "none") ||
        (cake_chat_has(chat) && mentions(chat, "tools")))
        return;
    cake_log(
        CAKE_WARN, "request",
        "%s: --tool-parser %s is given, but the model's chat template shows no tools, so the model knows "
        "none: describe them in the messages, or use a template that does",
        o->model, o->tool_parser);
}

static cake_err open_all(cake_language *l)
{
    const cake_language_options *o = &l->options;
    bool hushed = cake_log_hush(o->tokenizer_only);
    cake_err err = cake_tokenizer_open(o->model, &l->tokenizer);
    cake_log_hush(hushed);
    cake_alloc_trim(); /* returns the memory of a large tokenizer.json */
    if (err || o->tokenizer_only)
        return err;
    err = cake_chat_open(o->model, &l->chat);
    if (err)
        return err;
    cake_answer_form_open(o->tool_parser, o->reasoning_parser, mentions,
                          cake_chat_has(l->chat) ? l->chat : NULL, l->tokenizer, &l->form);
    check_tools(o, l->chat);
    return CAKE_OK;
}

static void *work(void *arg)
{
    cake_language *l = arg;
    cake_buf *before = cake_log_capture(&l->said);
    l->err = open_all(l);
    cake_log_capture(before);
    return NULL;
}

cake_language *cake_language_open(const cake_language_options *options)
{
    cake_language *l = cake_alloc(1, sizeof *l);
    l->options = *options;
    l->threaded = cake_thread_start(&l->thread, STACK, work, l);
    if (!l->threaded)
        work(l);
    return l;
}

void cake_language_settle(cake_language *l)
{
    if (l->threaded)
        pthread_join(l->thread, NULL);
    l->threaded = false;
}

cake_err cake_language_wait(cake_language *l)
{
    cake_language_settle(l);
    cake_log_captured(&l->said);
    cake_buf_free(&l->said);
    return l->err;
}

void cake_language_close(cake_language *l)
{
    if (!l)
        return;
    cake_language_settle(l);
    cake_buf_free(&l->said);
    cake_chat_close(l->chat);
    cake_tokenizer_close(l->tokenizer);
    free(l);
}
