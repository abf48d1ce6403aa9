/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a tokenizer.model or the ranks of tiktoken. One that opens encodes its own bytes.
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
    const char *bytes = (const char *)data;
    cake_tokenizer *token = NULL;
    if (cake_tokenizer_import(bytes, size, "FILE", &token)) {
        CAKE_ASSERT(said.len > 0 && !token);
    } else {
        check(token, bytes, size);
        check(token, "the lower  world \xE2\x96\x81\xC3\xA9 1234", 26);
    }
    cake_tokenizer_close(token);
    cake_log_capture(NULL);
    return 0;
}
