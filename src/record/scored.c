/* SPDX-License-Identifier: Apache-2.0
 *
 * In: result lines of earlier runs. Out: the sums over those of texts and continuations that were scored.
 */
#include "base/io.h"
#include "formats/json.h"
#include "record/recorder.h"

static void add_line(const cake_buf *line, cake_scored *to)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(line->data, line->len, &root, &fault))
        return;
    if (cake_json_kind(cake_json_get(root, "is_greedy")) == CAKE_JSON_BOOL) {
        to->texts++;
        to->tokens += cake_json_int(cake_json_get(root, "tokens"), 0);
        to->bytes += cake_json_int(cake_json_get(root, "bytes"), 0);
        to->logprob += cake_json_real(cake_json_get(root, "logprob"), 0);
    }
    cake_json_free(root);
}

void cake_record_add_scored(const cake_recorder *r, cake_scored *to)
{
    const cake_line_index *lines = &r->journal.lines;
    cake_buf line = {0};
    for (int64_t i = 0; i < lines->end; i++) {
        const cake_line_span span = cake_line_index_get(lines, i);
        if (!span.len || span.failed || span.offset >= r->begun)
            continue;
        cake_buf_room(&line, (size_t)span.len);
        if (cake_io_read_at(r->fd, line.data, line.len, span.offset)) {
            cake_buf_cut(&line, line.len - 1); /* the newline */
            add_line(&line, to);
        }
    }
    cake_buf_free(&line);
}
