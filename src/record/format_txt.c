/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a line of RESULTS.partial. Out: a line of a .txt file: the answer, escaped as in base/escape.h, the
 * logprob of a continuation, or the elements of an embedding.
 */
#include <string.h>

#include "base/escape.h"
#include "formats/json.h"
#include "record/format.h"

static const cake_json *text_of(const cake_json *line)
{
    const cake_json *text = cake_json_get(line, "text");
    if (text)
        return text;
    const cake_json *body = cake_json_get(cake_json_get(line, "response"), "body");
    const cake_json *choice = cake_json_at(cake_json_get(body, "choices"), 0);
    text = cake_json_get(choice, "text");
    text = text ? text : cake_json_get(cake_json_get(choice, "message"), "content");
    return text ? text : cake_line_output_text(body);
}

const cake_json *cake_line_output_text(const cake_json *response)
{
    const cake_json *output = cake_json_get(response, "output");
    for (size_t i = 0; i < cake_json_size(output); i++) {
        const cake_json *item = cake_json_at(output, i);
        const char *type = cake_json_text(cake_json_get(item, "type"), NULL);
        if (type && !strcmp(type, "message"))
            return cake_json_get(cake_json_at(cake_json_get(item, "content"), 0), "text");
    }
    return NULL;
}

/* The elements of an embedding, with blanks between them. */
static void add_embedding(const cake_json *line, cake_buf *out)
{
    cake_buf floats = {0};
    if (cake_line_read_embedding(cake_json_get(line, "embedding"), &floats))
        for (size_t i = 0; i < floats.len; i += sizeof(float)) {
            float x;
            memcpy(&x, floats.data + i, sizeof x);
            cake_buf_adds(out, i ? " " : "");
            cake_line_float(x, out);
        }
    cake_buf_free(&floats);
}

/* The scores of pairs in their order, with blanks between them. */
static void add_scores(const cake_json *line, cake_buf *out)
{
    const cake_json *results = cake_json_get(line, "results");
    const cake_json *list = results ? results : cake_json_get(line, "data");
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const cake_json *score = cake_json_get(cake_json_at(list, i), results ? "relevance_score" : "score");
        if (!score)
            return;
        cake_buf_adds(out, i ? " " : "");
        if (results)
            cake_buf_addf(
                out, "%lld:", (long long)cake_json_int(cake_json_get(cake_json_at(list, i), "index"), 0));
        cake_line_float((float)cake_json_real(score, 0), out);
    }
}

bool cake_line_txt(const char *line, size_t len, cake_buf *out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(line, len, &root, &fault))
        return false;
    size_t n = 0;
    const char *text = cake_json_text(text_of(root), &n);
    const cake_json *logprob = cake_json_get(root, "logprob");
    const cake_json *body = cake_json_get(cake_json_get(root, "response"), "body");
    add_embedding(body ? cake_json_at(cake_json_get(body, "data"), 0) : root, out);
    add_scores(body ? body : root, out);
    if (logprob)
        cake_json_add_node(out, logprob);
    cake_escape_add(text, n, out);
    cake_json_free(root);
    return true;
}
