/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: an answer, read by each parser. The first byte chooses how it begins. What is read is no longer
 * than what was written, arguments are JSON, and without calls and reasoning all but newlines is content.
 */
#include <string.h>

#include "answer/answer.h"
#include "base/die.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools_text[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": "
                                 "{\"properties\": {\"a\": {\"type\": "
                                 "\"string\"}, \"b\": {\"type\": \"integer\"}}}}}, {\"type\": \"function\", "
                                 "\"function\": {\"name\": \"g\"}}]";

static const cake_json *tools(void)
{
    static cake_json *json;
    cake_fault fault = {0};
    CAKE_ASSERT(json || !cake_json_parse(tools_text, sizeof tools_text - 1, &json, &fault));
    return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const parsers[][2] = {
        {"hermes", "think"},    {"qwen3_coder", "think"}, {"glm45", "think"}, {"llama3_json", "none"},
        {"mistral", "mistral"}, {"harmony", "harmony"},   {"none", "think"}};
    if (!size)
        return 0;
    for (size_t i = 0; i < sizeof parsers / sizeof *parsers; i++) {
        cake_answer_form form;
        cake_message message;
        cake_answer_text text = {0};
        cake_buf_add(&text.text, data + 1, size - 1);
        CAKE_ASSERT(cake_answer_form_open(parsers[i][0], parsers[i][1], NULL, NULL, NULL, &form));
        cake_answer_read(&form, (cake_answer_begin)(*data % 3), tools(), &text, &message);
        CAKE_ASSERT(message.n_content + message.n_reasoning <= size - 1 + size / 2);
        for (int k = 0; k < message.n_call; k++) {
            cake_json *arguments = NULL;
            cake_fault fault = {0};
            const char *own = message.call[k].arguments;
            CAKE_ASSERT(!cake_json_parse(own, strlen(own), &arguments, &fault));
            CAKE_ASSERT(cake_json_kind(arguments) == CAKE_JSON_OBJECT);
            cake_json_free(arguments);
        }
        cake_message_free(&message);
        cake_answer_text_free(&text);
    }
    return 0;
}
