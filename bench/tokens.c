/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of opening a tokenizer and of encoding, on one core: `tokens DIR FILE`. The file is encoded in pieces
 * of about 20,000 bytes, split at lines, like requests. Prints CSV: tokenizer, seconds to open, MB/s, tokens.
 * The best of three passes counts. bench/tokens.py compares it with the `tokenizers` library.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "tokenizer/tokenizer.h"

#define PIECE 20000

/* Tokens of the whole text, or -1. */
static long long pass(const cake_tokenizer *token, const cake_buf *text)
{
    cake_ids ids = {0};
    cake_fault fault;
    long long n = 0;
    for (size_t at = 0, end; at < text->len && n >= 0; at = end) {
        end = text->len - at > PIECE ? at + PIECE : text->len;
        while (end < text->len && text->data[end - 1] != '\n')
            end++;
        ids.len = 0;
        n = cake_tokenizer_encode(token, text->data + at, end - at, false, &ids, &fault)
                ? -1
                : n + (long long)ids.len;
    }
    cake_ids_free(&ids);
    return n;
}

int main(int argc, char **argv)
{
    cake_buf text = {0};
    cake_tokenizer *token = NULL;
    if (argc != 3 || cake_file_read("bench", argv[2], false, (size_t)1 << 30, &text))
        return 2;
    double begin = cake_clock_now();
    if (cake_tokenizer_open(argv[1], &token))
        return 1;
    double opened = cake_clock_now() - begin, best = 1e9;
    long long n = 0;
    for (int i = 0; i < 3 && n >= 0; i++) {
        begin = cake_clock_now();
        n = pass(token, &text);
        double took = cake_clock_now() - begin;
        best = took < best ? took : best;
    }
    const char *name = strrchr(argv[1], '/');
    printf("%s,cake-mpi,%.3f,%.2f,%lld\n", name ? name + 1 : argv[1], opened, (double)text.len / 1e6 / best,
           n);
    cake_tokenizer_close(token);
    cake_buf_free(&text);
    return n < 0;
}
