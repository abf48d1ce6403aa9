/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a line of RESULTS in either format. Out: its index, failure and number of choices.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"
#include "record/format.h"

enum { DIGITS = 15 };

/* The number after the last dash of an id that we made. */
static int64_t index_of_id(const cake_json *id)
{
    const char *text = cake_json_text(id, NULL), *dash = text ? strrchr(text, '-') : NULL;
    size_t n = dash ? strspn(dash + 1, "0123456789") : 0;
    return n && n <= DIGITS && !dash[1 + n] ? strtoll(dash + 1, NULL, 10) : -1;
}

int64_t cake_line_read_index(const cake_json *line)
{
    return cake_json_get(line, "response") ? index_of_id(cake_json_get(line, "id"))
                                           : cake_json_int(cake_json_get(line, "index"), -1);
}

bool cake_line_info_read(const char *line, size_t len, cake_line_info *out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(line, len, &root, &fault))
        return false;
    const cake_json *response = cake_json_get(root, "response");
    const cake_json *body = cake_json_get(response, "body");
    const cake_json *status = cake_json_get(response, "status_code");
    *out = (cake_line_info){
        .index = cake_line_read_index(root),
        .failed = status ? cake_json_int(status, 0) != 200
                         : cake_json_kind(cake_json_get(root, "error")) == CAKE_JSON_OBJECT,
        .n_choice = (int64_t)cake_json_size(cake_json_get(response ? body : root, "choices")),
    };
    cake_json_free(root);
    return true;
}
