/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a request: the table of docs/formats.md.
 */
#ifndef CAKE_PROMPT_FIELDS_H
#define CAKE_PROMPT_FIELDS_H

#include <stdbool.h>

#include "prompt/prompt.h"

/* What an object has. */
typedef enum cake_fields {
    CAKE_FIELDS_CHAT = 1,         /* messages (or /v1/chat/completions) */
    CAKE_FIELDS_TEXT = 2,         /* a prompt */
    CAKE_FIELDS_CONTINUATION = 4, /* a context and its continuation */
    CAKE_FIELDS_SCORED = 8,       /* a prompt whose own probability is wanted */
    CAKE_FIELDS_EMBEDDED = 16,    /* inputs whose embeddings are wanted (or /v1/embeddings) */
    CAKE_FIELDS_RESPONSE = 64,    /* /v1/responses */
    CAKE_FIELDS_PAIRS = 32        /* a query and documents, or other pairs (or /v1/rerank, /v1/score) */
} cake_fields;

/* The most inputs of one request. */
#define CAKE_MAX_INPUT 4096

/* Reads every field of object (the body of a batch line, or a whole simple line) into the request. An unknown
 * field is a fault in a batch body; in a simple line (then names is set) it is passed to unknown(arg, name).
 * CAKE_ERR_REQUEST and request->fault if anything is wrong. */
cake_err cake_fields_read(cake_request *request, const cake_json *object, cake_fields kind,
                          const cake_names *names, void (*unknown)(void *arg, const char *name), void *arg);

/* The field called name, or else the value at that path: a.b.0 is the first item of b in a. NULL: neither. */
const cake_json *cake_field_at(const cake_json *object, const char *name);

/* Checks messages and tools as the API has them; the fault names the place (messages[2].content[0].type). */
cake_err cake_messages_check(const cake_json *messages, cake_fault *fault);
/* within: what stands before the members of a function in messages, "function." or nothing. */
cake_err cake_tools_check(const cake_json *tools, const char *within, cake_fault *fault);

#endif
