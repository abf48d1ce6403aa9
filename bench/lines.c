/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file of prompts. Out: MB/s of one core for reading it as requests, and for writing its bytes as JSON
 * strings; the best of several passes.
 *
 *     bench/lines PROMPTS.jsonl
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "prompt/prompt.h"

enum { PASSES = 5, PIECE = 400 /* bytes of an answer */ };

/* Seconds of one pass; negative: it failed. */
static double read_requests(const char *path, int64_t *n)
{
    cake_prompt *prompt;
    cake_request request;
    double start = cake_clock_now();
    if (cake_prompt_open(path, CAKE_PROMPT_AUTO, &prompt))
        return -1;
    for (*n = 0; !cake_prompt_next(prompt, &request); ++*n)
        cake_request_free(&request);
    cake_prompt_close(prompt);
    return cake_clock_now() - start;
}

static double write_strings(const cake_buf *bytes, int64_t *written)
{
    cake_buf out = {0};
    double start = cake_clock_now();
    *written = 0;
    for (size_t at = 0; at < bytes->len; at += PIECE) {
        cake_buf_cut(&out, 0);
        cake_json_add_text(&out, bytes->data + at, bytes->len - at < PIECE ? bytes->len - at : PIECE);
        *written += (int64_t)out.len;
    }
    double seconds = cake_clock_now() - start;
    cake_buf_free(&out);
    return seconds;
}

int main(int argc, char **argv)
{
    cake_buf bytes = {0};
    double in = 0, out = 0;
    int64_t n = 0, written = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: bench/lines PROMPTS.jsonl\n");
        return 2;
    }
    if (cake_file_read("bench", argv[1], false, (size_t)1 << 30, &bytes))
        return 1;
    for (int i = 0; i < PASSES; i++) {
        double reading = read_requests(argv[1], &n), writing = write_strings(&bytes, &written);
        if (reading < 0)
            return 1;
        in = !i || reading < in ? reading : in;
        out = !i || writing < out ? writing : out;
    }
    printf("%lld requests, %.1f MB: read at %.1f MB/s, written at %.1f MB/s\n", (long long)n,
           1e-6 * (double)bytes.len, 1e-6 * (double)bytes.len / in, 1e-6 * (double)written / out);
    cake_buf_free(&bytes);
    return 0;
}
