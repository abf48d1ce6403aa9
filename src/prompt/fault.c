/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a JSON value that is refused. Out: its words in the fault.
 */
#include "prompt/fault.h"

#include <stdio.h>

#include "base/utf8.h"

const char *cake_field_found(const cake_json *node, char out[CAKE_FOUND])
{
    cake_json_type kind = cake_json_kind(node);
    if (kind == CAKE_JSON_STRING) {
        size_t len, cut;
        const char *text = cake_json_text(node, &len);
        cake_buf quoted = {0};
        cut = len > 24 ? cake_utf8_check(text, 24) : len; /* a byte may become six */
        for (cake_json_add_text(&quoted, text, cut); quoted.len > CAKE_FOUND - 8;) {
            cake_buf_cut(&quoted, 0);
            cut = cake_utf8_check(text, cut / 2);
            cake_json_add_text(&quoted, text, cut);
        }
        snprintf(out, CAKE_FOUND, "%s%s", quoted.data, cut < len ? "..." : "");
        cake_buf_free(&quoted);
    } else if (kind == CAKE_JSON_INT) {
        snprintf(out, CAKE_FOUND, "%lld", (long long)cake_json_int(node, 0));
    } else if (kind == CAKE_JSON_REAL) {
        cake_buf number = {0};
        if (cake_json_digits(node, &(size_t){0}))
            cake_json_add_node(&number, node);
        else
            cake_json_add_real(&number, cake_json_real(node, 0));
        snprintf(out, CAKE_FOUND, "%.40s%s", number.data, number.len > 40 ? "..." : "");
        cake_buf_free(&number);
    } else if (kind == CAKE_JSON_BOOL) {
        snprintf(out, CAKE_FOUND, "%s", cake_json_bool(node, false) ? "true" : "false");
    } else {
        snprintf(out, CAKE_FOUND, "%s", kind == CAKE_JSON_ABSENT ? "missing" : cake_json_kind_name(node));
    }
    return out;
}
