/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this folder only: rows of parsers, and spans of answers.
 */
#ifndef CAKE_ANSWER_PARTS_H
#define CAKE_ANSWER_PARTS_H

#include "answer/answer.h"

/* What bytes of an answer are. */
typedef enum cake_span_kind {
    CAKE_SPAN_MARK, /* marks, and what stands around the calls that they mark */
    CAKE_SPAN_REASONING,
    CAKE_SPAN_CONTENT,
    CAKE_SPAN_FAILED, /* content, with its special tokens: a call that is none */
    CAKE_SPAN_CALL
} cake_span_kind;

typedef struct cake_span {
    cake_span_kind kind;
    size_t begin, end;
} cake_span;

/* An answer on its way to a message. Together the spans are the whole text. */
typedef struct cake_reading {
    const cake_answer_form *form;
    const cake_answer_text *from;
    const char *text; /* [len] */
    size_t len;
    const cake_json *tools;
    cake_span *span; /* [n_span] */
    size_t n_span, cap_span;
    cake_tool_call *call; /* [n_call] */
    size_t n_call, cap_call;
} cake_reading;

/* Adds the span from the end of the last one up to `end`. */
void cake_reading_add(cake_reading *r, cake_span_kind kind, size_t end);
/* Where the text occurs in bytes [from, to); `to`: nowhere. */
size_t cake_reading_find(const cake_reading *r, const char *text, size_t from, size_t to);
bool cake_reading_has(const cake_reading *r, const char *text, size_t from);
/* Skips blanks, tabs and ends of lines. */
size_t cake_reading_blanks(const cake_reading *r, size_t from, size_t to);
/* Parses JSON, unless an object has a name twice: a call would lose one of its values. */
bool cake_reading_parse(const char *text, size_t len, cake_json **out);
/* The end of the JSON value that begins at byte from; `from`: there is none that is whole. */
size_t cake_reading_json(const cake_reading *r, size_t from, size_t to);
/* Adds a call, if there is such a tool and the arguments fit its parameters: name [n_name]; arguments NULL:
 * none. */
bool cake_reading_call(cake_reading *r, const char *name, size_t n_name, const cake_json *arguments,
                       const char *id);
void cake_reading_drop_calls(cake_reading *r, size_t n); /* keeps the first n */

/* The parameters of a tool; *found: there is such a tool. */
const cake_json *cake_tool_parameters(const cake_json *tools, const char *name, size_t n_name, bool *found);

/* How a call is written: parts one after another. */
typedef enum cake_call_part_kind {
    CAKE_CALL_END,
    CAKE_CALL_MARK,      /* text: a special token, if there is one of this text */
    CAKE_CALL_TEXT,      /* text */
    CAKE_CALL_NAME,      /* text, the tool's name, after */
    CAKE_CALL_QUOTED,    /* the same, the name as JSON */
    CAKE_CALL_PARAMETERS /* text: the type of element that writes them */
} cake_call_part_kind;

typedef struct cake_call_part {
    cake_call_part_kind kind;
    const char *text, *after;
} cake_call_part;

typedef struct cake_call_form {
    cake_call_part part[8];
    const char *separator;                /* between calls; NULL: there is one */
    const char *open_mark, *open, *close; /* around all of them, or NULL */
} cake_call_form;

struct cake_tool_parser {
    const char *name;
    const char *marks[3];  /* a template that has all of them has this form, */
    const char *others[3]; /* unless it has one of these; both end with NULL */
    /* Reads the rest of an answer, from the end of the last span on, to its end. */
    void (*read)(cake_reading *r);
    const cake_call_form *call, *named_call; /* named_call: if the template has [ARGS]; or NULL */
    bool short_ids;
};

struct cake_reasoning_parser {
    const char *name;
    const char *mark;        /* a template that has it has this form */
    const char *begin, *end; /* marks; NULL: they are not that simple */
};

void cake_tools_read_hermes(cake_reading *r);
void cake_tools_read_qwen3_coder(cake_reading *r);
void cake_tools_read_glm45(cake_reading *r);
void cake_tools_read_llama3_json(cake_reading *r);
void cake_tools_read_mistral(cake_reading *r);
/* All of an answer, with its reasoning. */
void cake_harmony_read(cake_reading *r, cake_answer_begin begin);

#endif
