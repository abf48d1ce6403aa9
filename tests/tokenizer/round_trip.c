/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer as a filter, for tests/golden/tokenizer.py: `codec DIR < STRINGS`. In: JSON strings, one a
 * line. Out: for each, {"ids": without the post-processor, "full": with it, "text": ids as they decode} or
 * {"error": ...}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"

static void add_ids(cake_buf *out, const char *name, const cake_ids *ids)
{
    cake_buf_addf(out, "\"%s\": [", name);
    for (size_t i = 0; i < ids->len; i++)
        cake_buf_addf(out, i ? ", %d" : "%d", ids->id[i]);
    cake_buf_adds(out, "], ");
}

static void answer(const cake_tokenizer *token, const char *text, size_t len, cake_buf *out)
{
    cake_ids ids = {0}, full = {0};
    cake_buf back = {0};
    cake_fault fault;
    cake_buf_adds(out, "{");
    if (cake_tokenizer_encode(token, text, len, false, &ids, &fault) ||
        cake_tokenizer_encode(token, text, len, true, &full, &fault)) {
        cake_buf_adds(out, "\"error\": ");
        cake_json_add_text(out, fault.message, strlen(fault.message));
    } else {
        cake_decoder *decoder = cake_decoder_open(token);
        add_ids(out, "ids", &ids);
        add_ids(out, "full", &full);
        for (size_t i = 0; i < ids.len; i++)
            cake_decoder_push(decoder, ids.id[i], &back);
        cake_decoder_end(decoder, &back);
        cake_buf_adds(out, "\"text\": ");
        cake_json_add_text(out, back.data ? back.data : "", back.len);
        cake_decoder_close(decoder);
    }
    cake_buf_adds(out, "}\n");
    cake_ids_free(&ids);
    cake_ids_free(&full);
    cake_buf_free(&back);
}

int main(int argc, char **argv)
{
    cake_tokenizer *token = NULL;
    char *line = NULL;
    size_t room = 0;
    if (argc != 2 || cake_tokenizer_open(argv[1], &token))
        return 1;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        cake_json *root = NULL;
        cake_buf out = {0};
        cake_fault fault;
        size_t len = 0;
        if (cake_json_parse(line, (size_t)n, &root, &fault))
            return 1;
        const char *text = cake_json_text(root, &len);
        answer(token, text, len, &out);
        fwrite(out.data, 1, out.len, stdout);
        cake_buf_free(&out);
        cake_json_free(root);
    }
    free(line);
    cake_tokenizer_close(token);
    return 0;
}
