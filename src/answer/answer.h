/* SPDX-License-Identifier: Apache-2.0
 *
 * How models write what they think and which tools they call, and what that says.
 */
#ifndef CAKE_ANSWER_ANSWER_H
#define CAKE_ANSWER_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"
#include "types/constraint.h"
#include "types/message.h"

/* A model's form of answers, found once. Zeros: text as it is. */
typedef struct cake_tool_parser cake_tool_parser;
typedef struct cake_reasoning_parser cake_reasoning_parser;
typedef struct cake_answer_form {
    const cake_tool_parser *tools;          /* NULL: none */
    const cake_reasoning_parser *reasoning; /* NULL: none */
    const char *think, *unthink;            /* marks around reasoning, if these are all that it has */
    bool named_arguments;                   /* Mistral's newer form: NAME[ARGS]{...} */
    const cake_tokenizer *tokenizer;        /* borrowed */
} cake_answer_form;

/* tools, reasoning: "none", "auto" (by what the chat template has), or a name. mentions: whether the template
 * has a text; never called if there is no template, chat NULL. False: there is no parser of such a name. */
bool cake_answer_form_open(const char *tools, const char *reasoning,
                           bool (*mentions)(const void *chat, const char *text), const void *chat,
                           const cake_tokenizer *tokenizer, cake_answer_form *out);
const char *cake_answer_tool_parser_name(const cake_answer_form *form); /* "none", if there is none */
const char *cake_answer_reasoning_parser_name(const cake_answer_form *form);

/* continues: the prompt ends within an answer. */
cake_answer_begin cake_answer_begins(const cake_answer_form *form, const char *prompt, size_t len,
                                     bool continues);

/* An answer with its special tokens. */
typedef struct cake_answer_text {
    cake_buf text;
    struct {
        size_t begin, end;
    } * special; /* [n_special] bytes that are special tokens, ascending */
    size_t n_special, cap_special;
    size_t *token; /* [n_token] the byte at which each token begins; ascending */
    size_t n_token;
} cake_answer_text;
void cake_answer_text_free(cake_answer_text *text);

/* Reads an answer. tools: as in a request; NULL: none may be called. Nothing is lost: what does not parse, or
 * does not fit its tool, stays content. Newlines beside marks belong to the marks. Owned: free it. */
void cake_answer_read(const cake_answer_form *form, cake_answer_begin begin, const cake_json *tools,
                      const cake_answer_text *text, cake_message *out);
void cake_message_free(cake_message *message);

/* Makes a request's constraint one of the whole answer, in which the model may think before; it stays as it
 * is, if the form has no reasoning. */
cake_err cake_answer_constrain(const cake_answer_form *form, cake_answer_begin begin,
                               cake_constraint_source *constraint, cake_fault *fault);
/* The constraint that tools are called. name: of the only tool; NULL: any. parallel: several calls are
 * fine. */
cake_err cake_answer_require(const cake_answer_form *form, cake_answer_begin begin, const cake_json *tools,
                             const char *name, bool parallel, cake_constraint_source *out, cake_fault *fault);

#endif
