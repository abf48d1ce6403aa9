/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a line of JSON. Out: a request, good or with its fault. The id is read first, so that the error record
 * of a line can be matched whatever else is wrong.
 * Invariant: root is kept only while something of the request is borrowed from it.
 */
#include <stdlib.h>
#include <string.h>

#include "prompt/fault.h"
#include "prompt/fields.h"
#include "prompt/parsers.h"

static void keep_unknown(void *arg, const char *name)
{
    cake_request *request = arg;
    cake_buf_add(&request->unknown, name, strlen(name) + 1);
}

static char *json_text(const cake_json *node)
{
    cake_buf text = {0};
    if (cake_json_kind(node) == CAKE_JSON_STRING) {
        size_t len;
        const char *string = cake_json_text(node, &len);
        cake_json_add_text(&text, string, len);
    } else {
        cake_json_add_node(&text, node);
    }
    return text.data;
}

static cake_err missing(cake_request *request, const char *name, const cake_json *node, const char *expected)
{
    char found[CAKE_FOUND];
    return cake_fault_set(&request->fault, name, "%s is %s; expected %s", name, cake_field_found(node, found),
                          expected);
}

/* What batch lines may ask for. A line whose url is none of them gets an error record as the first one. */
static const struct {
    const char *url;
    cake_form form;
    cake_fields fields;
} endpoints[] = {{"/v1/chat/completions", CAKE_FORM_BATCH_CHAT, CAKE_FIELDS_CHAT},
                 {"/v1/completions", CAKE_FORM_BATCH_COMPLETION, CAKE_FIELDS_TEXT},
                 {"/v1/responses", CAKE_FORM_BATCH_RESPONSE, CAKE_FIELDS_RESPONSE},
                 {"/v1/embeddings", CAKE_FORM_BATCH_EMBEDDING, CAKE_FIELDS_EMBEDDED},
                 {"/v1/rerank", CAKE_FORM_BATCH_RERANK, CAKE_FIELDS_PAIRS},
                 {"/v1/score", CAKE_FORM_BATCH_SCORE, CAKE_FIELDS_PAIRS}};

enum { N_ENDPOINT = sizeof endpoints / sizeof *endpoints };

static cake_err read_batch(const cake_json *line, cake_request *request)
{
    const cake_json *url = cake_json_get(line, "url"), *method = cake_json_get(line, "method");
    const cake_json *body = cake_json_get(line, "body");
    const char *path = cake_json_text(url, NULL), *verb = cake_json_text(method, NULL);
    int at = 0;
    while (at < N_ENDPOINT && (!path || strcmp(path, endpoints[at].url) != 0))
        at++;
    request->form = at < N_ENDPOINT ? endpoints[at].form : CAKE_FORM_BATCH_CHAT;

    const cake_json *id = cake_json_get(line, "custom_id");
    if (cake_json_kind(id) != CAKE_JSON_STRING)
        return missing(request, "custom_id", id, "a string");
    request->id = json_text(id);
    if (!verb || strcmp(verb, "POST") != 0)
        return missing(request, "method", method, "\"POST\"");
    if (at == N_ENDPOINT)
        return missing(request, "url", url,
                       "\"/v1/chat/completions\", \"/v1/completions\", \"/v1/responses\", "
                       "\"/v1/embeddings\", \"/v1/rerank\" or \"/v1/score\"");
    if (cake_json_kind(body) != CAKE_JSON_OBJECT)
        return missing(request, "body", body, "an object");
    for (void *it = cake_json_first(line); it; it = cake_json_next(line, it)) {
        const char *key = cake_json_key(it, NULL);
        if (strcmp(key, "custom_id") != 0 && strcmp(key, "method") != 0 && strcmp(key, "url") != 0 &&
            strcmp(key, "body") != 0)
            keep_unknown(request, key);
    }
    return cake_fields_read(request, body, endpoints[at].fields, NULL, NULL, NULL);
}

static bool has(const cake_json *line, const char *name)
{
    return cake_json_kind(cake_json_get(line, name)) > CAKE_JSON_NULL;
}

/* Such a line has no other meaning. */
static bool is_pair(const cake_json *line)
{
    return ((has(line, "query") && has(line, "documents")) || (has(line, "text_1") && has(line, "text_2"))) &&
           !has(line, "prompt") && !has(line, "input");
}

/* What a line with a prompt may have; and what the task does with texts, but not with messages. */
static const struct {
    unsigned fields;
    const char *done;
} prompts[CAKE_N_TASK] = {[CAKE_TASK_GENERATE] = {CAKE_FIELDS_TEXT, NULL},
                          [CAKE_TASK_SCORE] = {CAKE_FIELDS_SCORED, "scored"},
                          [CAKE_TASK_EMBED] = {CAKE_FIELDS_EMBEDDED, "embedded"},
                          [CAKE_TASK_RERANK] = {CAKE_FIELDS_PAIRS, "ranked"}};

static cake_err read_simple(const cake_names *names, cake_task task, const cake_json *line,
                            cake_request *request)
{
    const char *id_name = names->id ? names->id : "id";
    const cake_json *id = cake_field_at(line, id_name);
    cake_json_type kind = cake_json_kind(id);
    request->form = CAKE_FORM_SIMPLE;
    bool large = cake_json_digits(id, &(size_t){0}); /* beyond 64 bits: keep all digits */
    if (kind == CAKE_JSON_STRING || kind == CAKE_JSON_INT || large)
        request->id = json_text(id);
    else if (kind > CAKE_JSON_NULL)
        return missing(request, id_name, id, "a string or an integer");
    const cake_json *messages = cake_field_at(line, names->prompt ? names->prompt : "messages");
    bool chat = names->prompt ? cake_json_kind(cake_json_at(messages, 0)) == CAKE_JSON_OBJECT
                              : cake_json_kind(messages) > CAKE_JSON_NULL;
    bool continuation = !names->prompt && !chat &&
                        cake_json_kind(cake_json_get(line, "continuation")) > CAKE_JSON_NULL &&
                        cake_json_kind(cake_json_get(line, "prompt")) <= CAKE_JSON_NULL;
    if (cake_tasks[task].pairs || (!chat && is_pair(line)))
        return cake_fields_read(request, line, CAKE_FIELDS_PAIRS, names, keep_unknown, request);
    if (chat && prompts[task].done)
        return cake_fault_set(&request->fault, names->prompt ? names->prompt : "messages",
                              "messages are not %s (--task %s); give the text as \"prompt\"",
                              prompts[task].done, cake_tasks[task].name);
    return cake_fields_read(request, line,
                            chat           ? CAKE_FIELDS_CHAT
                            : continuation ? CAKE_FIELDS_CONTINUATION
                                           : prompts[task].fields,
                            names, keep_unknown, request);
}

/* A batch line has the keys of a batch, unless it has fields of a simple line. */
static bool is_batch(const cake_names *names, const cake_json *line)
{
    if (names->prompt && cake_field_at(line, names->prompt))
        return false;
    if (cake_json_get(line, "prompt") || cake_json_get(line, "messages"))
        return false;
    return cake_json_get(line, "custom_id") || cake_json_get(line, "body") || cake_json_get(line, "url") ||
           cake_json_get(line, "method");
}

/* An estimate of the parsed line's memory, in units of some tens of bytes: a line of 64 MiB of "{}," would
 * become gigabytes. It overestimates text with these characters, but real lines are far below the limit. */
static size_t weigh(const char *line, size_t len)
{
    size_t weight = 0;
    for (size_t i = 0; i < len; i++)
        weight += line[i] == ',' ? 1 : line[i] == '[' ? 4 : line[i] == '{' ? 16 : 0;
    return weight;
}

void cake_jsonl_parse(const cake_names *names, cake_task task, const char *line, size_t len,
                      cake_request *request)
{
    enum { HEAVIEST = 4 << 20 };
    cake_json *root = NULL;
    if (len >= 3 && !memcmp(line, "\xEF\xBB\xBF", 3)) /* of a file that was appended to another one */
        line += 3, len -= 3;
    if (len > HEAVIEST && weigh(line, len) > HEAVIEST)
        request->err =
            cake_fault_set(&request->fault, NULL,
                           "the line holds too many values to be parsed: a request has fewer than a million");
    else
        request->err = cake_json_parse(line, len, &root, &request->fault);
    if (request->err)
        return;
    request->form_known = cake_json_kind(root) == CAKE_JSON_OBJECT;
    if (request->form_known)
        request->err =
            is_batch(names, root) ? read_batch(root, request) : read_simple(names, task, root, request);
    else
        request->err = cake_fault_set(
            &request->fault, NULL, "the line is %s; expected an object%s", cake_json_kind_name(root),
            cake_json_kind(root) == CAKE_JSON_ARRAY ? " (jq -c '.[]' makes lines of the objects of an array)"
                                                    : "");
    if (!request->err && request->messages && !request->root)
        request->root = root;
    else
        cake_json_free(root);
    if (request->err)
        request->messages = request->tools = request->kwargs = NULL;
}
