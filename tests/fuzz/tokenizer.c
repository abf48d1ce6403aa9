/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a tokenizer.json and, after a NUL byte, a text. If it opens, it encodes the text.
 */
#include <string.h>

#include "base/log.h"
#include "tests/fuzz/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    const char *json = (const char *)data, *text = memchr(json, 0, size);
    size_t len = text ? (size_t)(text - json) : size;
    cake_tokenizer *token = NULL;
    if (cake_tokenizer_parse(json, len, "FILE", &token))
        CAKE_ASSERT(said.len > 0 && !token);
    else
        check(token, text ? text + 1 : json, text ? size - len - 1 : size);
    cake_tokenizer_close(token);
    cake_log_capture(NULL);
    return 0;
}
