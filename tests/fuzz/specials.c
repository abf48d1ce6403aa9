/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: the companion files of a small tokenizer.json, each after a NUL byte: tokenizer_config.json,
 * special_tokens_map.json, added_tokens.json, and a text. A tokenizer that opens with them encodes the text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/fuzz/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tokenizer[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true},{\"id\":5,\"content\":\"<b>\","
    "\"lstrip\":true,"
    "\"special\":false}],\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":\"BPE\",\"unk_"
    "token\":\"u\","
    "\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"ab\":3,\"<s>\":4,\"<b>\":5},\"merges\":[\"a b\"]}}";
static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"};
static char folder[] = "/tmp/cake-fuzz-XXXXXX";

static void put(const char *name, const char *bytes, size_t len)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!len)
        return;
    FILE *file = fopen(path, "wb");
    CAKE_ASSERT(file && fwrite(bytes, 1, len, file) == len && !fclose(file));
}

static void remove_all(void)
{
    put("tokenizer.json", NULL, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i], NULL, 0);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    const char *at = (const char *)data, *end = at + size;
    if (!said.cap) {
        CAKE_ASSERT(mkdtemp(folder) && !atexit(remove_all));
        put("tokenizer.json", tokenizer, sizeof tokenizer - 1);
    }
    cake_buf_cut(&said, 0);
    cake_buf_adds(&said, "");
    cake_log_capture(&said);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        stop = stop ? stop : end;
        put(names[i], at, (size_t)(stop - at));
        at = stop < end ? stop + 1 : end;
    }
    cake_tokenizer *token = NULL;
    if (cake_tokenizer_open(folder, &token))
        CAKE_ASSERT(said.len > 0 && !token);
    else
        check(token, at, (size_t)(end - at));
    cake_tokenizer_close(token);
    cake_log_capture(NULL);
    return 0;
}
