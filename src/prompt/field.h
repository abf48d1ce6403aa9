/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by fields.c, which has the table of fields, field_inputs.c, which reads texts and ids, and
 * field_constraint.c, which reads what answers must look like; for these only.
 */
#ifndef CAKE_PROMPT_FIELD_H
#define CAKE_PROMPT_FIELD_H

#include "prompt/fields.h"

/* The object that is read. */
typedef struct cake_field_pass {
    cake_request *request;
    const cake_json *object;
    cake_fields kind;
    bool chat;                /* of this kind */
    bool has_add;             /* add_generation_prompt was given */
    const cake_json *best_of; /* NULL: not given, or its default */
    const char *max_name;     /* the name under which max_tokens came */
} cake_field_pass;

/* A row of the table of fields. */
typedef struct cake_field_row {
    const char *name;
    int kinds;
    const char *defaults; /* values that count as absent, in JSON, separated by '|' */
    cake_err (*read)(cake_field_pass *p, const struct cake_field_row *f, const cake_json *node);
} cake_field_row;

/* A fault of the field: what was found, and what is expected. */
cake_err cake_field_wrong(cake_field_pass *pass, const char *name, const cake_json *node,
                          const char *expected);
/* An integer, also if written as 5.0; CAKE_UNSET for anything else. */
int64_t cake_field_integer(const cake_json *node);
/* An array of ids; of: its name in messages. */
cake_err cake_field_read_ids(cake_field_pass *pass, const char *of, const cake_json *node, cake_ids *into);
/* A string goes to *text, an array of ids to *ids. */
cake_err cake_field_read_text(cake_field_pass *pass, const cake_field_row *row, const cake_json *node,
                              char **text, size_t *len, cake_ids *ids);

/* Readers of rows of the table: the inputs of embeddings; query or text_1; documents or text_2; and what says
 * how inputs are taken. */
cake_err cake_field_read_input(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);
cake_err cake_field_read_query(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);
cake_err cake_field_read_documents(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);
cake_err cake_field_read_prompt_name(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);
cake_err cake_field_read_encoding(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);
/* What the answer must look like: the API's response_format; vLLM's structured_outputs, and its older
 * guided_... fields. */
cake_err cake_field_read_response_format(cake_field_pass *pass, const cake_field_row *row,
                                         const cake_json *node);
cake_err cake_field_read_structured_outputs(cake_field_pass *pass, const cake_field_row *row,
                                            const cake_json *node);
cake_err cake_field_read_guided(cake_field_pass *pass, const cake_field_row *row, const cake_json *node);

cake_err cake_field_read_tool_choice(cake_field_pass *p, const cake_field_row *f, const cake_json *node);
cake_err cake_field_read_parallel(cake_field_pass *p, const cake_field_row *f, const cake_json *node);
cake_err cake_field_read_effort(cake_field_pass *p, const cake_field_row *f, const cake_json *node);
/* What a demanded call needs. */
cake_err cake_field_check_tools(cake_field_pass *p);

/* Of /v1/responses: once all fields are read, the messages and tools. */
cake_err cake_field_finish_response(cake_field_pass *p);
cake_err cake_field_read_text_format(cake_field_pass *p, const cake_field_row *f, const cake_json *node);
cake_err cake_field_read_reasoning(cake_field_pass *p, const cake_field_row *f, const cake_json *node);
/* What an answer must look like; own: the object that has schema and strict. */
cake_err cake_field_read_format(cake_field_pass *p, const char *field, const cake_json *node,
                                const cake_json *own);

#endif
