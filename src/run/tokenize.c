/* SPDX-License-Identifier: Apache-2.0
 *
 * `tokenize`: in: prompts; out: for each a line with what the model would see. No weights, no config.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "run/feed.h"
#include "run/run.h"

static void compose(const cake_feed *feed, const cake_sequence *s, cake_buf *line)
{
    const cake_request *r = &s->request;
    cake_buf_cut(line, 0);
    cake_buf_addf(line, "{\"id\": %s, \"index\": %lld, ", r->id ? r->id : "null", (long long)r->index);
    if (r->err) {
        cake_buf_adds(line, "\"error\": {\"message\": ");
        cake_json_add_text(line, r->fault.message, strlen(r->fault.message));
        cake_buf_adds(line, ", \"type\": \"invalid_request_error\", \"param\": ");
        if (r->fault.param[0])
            cake_json_add_text(line, r->fault.param, strlen(r->fault.param));
        else
            cake_buf_adds(line, "null");
        cake_buf_adds(line, "}}\n");
        return;
    }
    cake_buf_adds(line, "\"prompt\": ");
    if (feed->rendered.len)
        cake_json_add_text(line, feed->rendered.data, feed->rendered.len);
    else
        cake_buf_adds(line, "null"); /* it came as ids */
    cake_buf_adds(line, ", \"token_ids\": [");
    for (size_t i = 0; i < s->ids.len; i++)
        cake_buf_addf(line, i ? ", %d" : "%d", s->ids.id[i]);
    cake_buf_adds(line, "]}\n");
}

static cake_err write_all(cake_feed *feed, FILE *out, const char *name)
{
    cake_buf line = {0};
    cake_sequence *s;
    bool failed = false;
    cake_err err;
    while (!(err = cake_feed_next(feed, &s))) {
        compose(feed, s, &line);
        failed |= s->request.err != CAKE_OK;
        cake_sequence_close(s);
        if (fwrite(line.data, 1, line.len, out) != line.len) {
            err = cake_fail("record", "%s cannot be written: %s", name, strerror(errno));
            break;
        }
    }
    cake_buf_free(&line);
    if (err != CAKE_END)
        return err;
    if (fflush(out))
        return cake_fail("record", "%s cannot be written: %s", name, strerror(errno));
    return failed ? CAKE_ERR_REQUEST : CAKE_OK;
}

cake_err cake_tokenize(const cake_options *options)
{
    cake_feed feed;
    const char *name = options->output ? options->output : "standard output";
    FILE *out = stdout;
    cake_err err = cake_feed_open(options, NULL, 0, 0, &feed);
    if (!err && cake_file_same(options->input, options->output))
        err = cake_fail_usage("-i and -o are the same file: %s", options->input);
    if (!err && options->output && !(out = fopen(options->output, "w")))
        err = cake_fail("record", "%s cannot be written: %s", name, strerror(errno));
    if (!err)
        err = write_all(&feed, out, name);
    if (out && out != stdout && fclose(out) && !err)
        err = cake_fail("record", "%s cannot be written: %s", name, strerror(errno));
    cake_feed_close(&feed);
    return err;
}
