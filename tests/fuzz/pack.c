/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a compressed file. The first byte selects the codec, the second the size of pieces. The output
 * does not depend on the pieces, and is complete or ends with a reason.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "formats/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 }; /* bytes that are looked at */

static const char *unpack(const cake_codec *pack, const char *bytes, size_t len, size_t in, size_t out,
                          cake_buf *into)
{
    char *room = cake_alloc(out, 1);
    void *state = pack->unpack_open();
    const char *wrong = NULL;
    bool whole = true;
    for (size_t at = 0; at < len && !wrong && into->len < MOST;) {
        cake_codec_flow flow = {bytes + at, len - at < in ? len - at : in, NULL, 0};
        size_t given = flow.n_in;
        do {
            flow.out = room;
            flow.n_out = out;
            wrong = pack->unpack(state, &flow, &whole);
            CAKE_ASSERT(flow.n_out <= out && flow.n_in <= given);
            cake_buf_add(into, room, out - flow.n_out);
        } while (!wrong && !flow.n_out && into->len < MOST);
        CAKE_ASSERT(wrong || !flow.n_in || into->len >= MOST);
        at += given;
    }
    pack->unpack_close(state);
    free(room);
    return wrong ? "wrong" : whole ? "whole" : "cut";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const cake_codec *pack = data[0] % 2 ? &cake_codec_gzip : &cake_codec_zstd;
    const char *bytes = (const char *)data + 2;
    cake_buf once = {0}, pieces = {0};
    const char *first = unpack(pack, bytes, size - 2, size, MOST, &once);
    const char *second = unpack(pack, bytes, size - 2, 1 + data[1] % 16, 1 + data[1] / 16, &pieces);
    size_t both = once.len < pieces.len ? once.len : pieces.len;
    CAKE_ASSERT(!both || !memcmp(once.data, pieces.data, both));
    if (once.len < MOST && pieces.len < MOST) {
        /* damage may show before the end is missed, or the other way round */
        CAKE_ASSERT(!strcmp(first, "whole") == !strcmp(second, "whole"));
        CAKE_ASSERT(strcmp(first, "whole") != 0 || once.len == pieces.len);
    }
    cake_buf_free(&once);
    cake_buf_free(&pieces);
    return 0;
}
