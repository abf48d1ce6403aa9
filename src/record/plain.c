/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of RESULTS.partial enters, a line of a .txt file leaves: the answer, with \n, \t and \\ as escapes.
 */
#include "base/json.h"
#include "record/line.h"

static const cake_json *text_of(const cake_json *line)
{
    const cake_json *text = cake_json_get(line, "text");
    if (text)
        return text;
    const cake_json *body = cake_json_get(cake_json_get(line, "response"), "body");
    const cake_json *choice = cake_json_at(cake_json_get(body, "choices"), 0);
    text = cake_json_get(choice, "text");
    return text ? text : cake_json_get(cake_json_get(choice, "message"), "content");
}

bool cake_line_plain(const char *line, size_t len, cake_buf *out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(line, len, &root, &fault))
        return false;
    size_t n = 0;
    const char *text = cake_json_text(text_of(root), &n);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            cake_buf_add(out, "\\n", 2);
        else if (text[i] == '\t')
            cake_buf_add(out, "\\t", 2);
        else if (text[i] == '\\')
            cake_buf_add(out, "\\\\", 2);
        else
            cake_buf_addc(out, text[i]);
    }
    cake_json_free(root);
    return true;
}
