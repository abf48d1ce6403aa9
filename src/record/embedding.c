/* SPDX-License-Identifier: Apache-2.0
 *
 * In: embeddings. Out: their JSON; and the reverse. Invariant: what is read is what was written, to the bit.
 * In base64 the floats are little-endian, as in the API.
 */
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "record/format.h"

void cake_line_embedding(const float *x, int n, bool base64, cake_buf *out)
{
    const size_t bytes = (size_t)n * sizeof *x;
    if (base64) {
        cake_buf_addc(out, '"');
        cake_buf_add_base64(out, x, bytes);
        cake_buf_add(out, "==", (3 - bytes % 3) % 3);
        cake_buf_addc(out, '"');
        return;
    }
    cake_buf_addc(out, '[');
    for (int i = 0; i < n; i++) {
        if (i)
            cake_buf_add(out, ", ", 2);
        cake_line_float(x[i], out);
    }
    cake_buf_addc(out, ']');
}

bool cake_line_read_embedding(const cake_json *node, cake_buf *floats)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    cake_buf_cut(floats, 0);
    if (text)
        cake_buf_read_base64(text, len, floats);
    for (size_t i = 0; !text && i < cake_json_size(node); i++) {
        const float x = (float)cake_json_real(cake_json_at(node, i), 0);
        cake_buf_add(floats, &x, sizeof x);
    }
    return floats->len > 0 && floats->len % sizeof(float) == 0;
}
