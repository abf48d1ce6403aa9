/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's folder and a file with a request's messages (and tools). Out: microseconds of the chat
 * template from parsed JSON to text, and bytes of the text. bench/templates.py compares it with Python.
 *
 *     bench/templates MODEL REQUEST.json
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "chat/chat.h"
#include "formats/json.h"

#define ROUNDS      7
#define MIN_SECONDS 0.02 /* seconds of a round */

/* Seconds of one rendering, the best round's; negative: it failed. */
static double measure(const cake_chat *chat, const cake_chat_input *input, cake_buf *out)
{
    double best = -1;
    int times = 1;
    for (int round = 0; round < ROUNDS;) {
        double start = cake_clock_now();
        for (int i = 0; i < times; i++) {
            cake_fault fault;
            cake_buf_cut(out, 0);
            if (cake_chat_render(chat, input, out, &fault)) {
                fprintf(stderr, "templates: %s\n", fault.message);
                return -1;
            }
        }
        double seconds = cake_clock_now() - start;
        if (seconds < MIN_SECONDS) {
            times *= 2;
            continue;
        }
        best = best < 0 || seconds / times < best ? seconds / times : best;
        round++;
    }
    return best;
}

int main(int argc, char **argv)
{
    cake_chat *chat = NULL;
    cake_json *request = NULL;
    cake_buf out = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: bench/templates MODEL REQUEST.json\n");
        return 2;
    }
    if (cake_chat_open(argv[1], &chat) || cake_json_load("bench", argv[2], false, &request))
        return 1;
    cake_chat_input input = {.messages = cake_json_get(request, "messages"),
                             .tools = cake_json_get(request, "tools"),
                             .add_generation_prompt = true};
    double seconds = measure(chat, &input, &out);
    if (seconds >= 0)
        printf("%.3f %zu\n", seconds * 1e6, out.len);
    cake_buf_free(&out);
    cake_json_free(request);
    cake_chat_close(chat);
    return seconds < 0;
}
