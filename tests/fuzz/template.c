/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a chat template, rendered with a conversation that has every kind of message. It opens or is
 * refused with a message; it renders valid UTF-8 or ends in a fault.
 */
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char context[] = "{\"messages\":[{\"role\":\"system\",\"content\":\"be "
                              "\xC3\xA9\"},{\"role\":\"user\",\"content\":\" a\\nb \"},"
                              "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{"
                              "\"name\":\"f\",\"arguments\":{\"x\":"
                              "[1,2.5,true,null]}}}]}],\"tools\":[{\"type\":\"function\",\"function\":{"
                              "\"name\":\"f\"}}],\"a\":5,\"b\":\"text\","
                              "\"c\":[3,1,2],\"d\":{\"k\":-1.5,\"l\":[]},\"add_generation_prompt\":true}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    static cake_json *root;
    cake_fault fault = {0};
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    if (!root)
        CAKE_ASSERT(!cake_json_parse(context, strlen(context), &root, &fault));
    cake_jinja_variable variables[16];
    size_t n = 0;
    for (void *it = cake_json_first(root); it && n < 16; it = cake_json_next(root, it))
        variables[n++] =
            (cake_jinja_variable){.name = cake_json_key(it, NULL), .json = cake_json_value(it), .truth = -1};
    cake_jinja *jinja = NULL;
    if (cake_jinja_open("FILE", (const char *)data, size, &jinja)) {
        CAKE_ASSERT(said.len > 0 && !jinja);
    } else {
        cake_buf out = {0};
        cake_err err = cake_jinja_render(jinja, variables, n, 1, &out, &fault);
        CAKE_ASSERT(err ? err == CAKE_ERR_REQUEST && fault.message[0] && !out.len
                        : !out.len || cake_utf8_check(out.data, out.len) == out.len);
        cake_buf_free(&out);
    }
    cake_jinja_close(jinja);
    cake_log_capture(NULL);
    return 0;
}
