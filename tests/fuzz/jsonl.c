/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a prompt file, read to its end. Every request is either a fault with a message or exactly one
 * valid prompt.
 */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "prompt/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_params(const cake_params *params)
{
    for (const cake_params_field *f = cake_params_fields; f->name; f++) {
        const void *at = (const char *)params + f->offset;
        double real = f->real ? *(const double *)at : (double)*(const int64_t *)at;
        if (f->real ? isnan(real) : *(const int64_t *)at == CAKE_UNSET)
            continue;
        bool inside =
            real >= f->min && (real <= f->max || f->max > 0x1p53) && !(f->above_min && real == f->min);
        CAKE_ASSERT(inside || (real == 0 && params->echo == 1 && !strcmp(f->name, "max_tokens")));
    }
    CAKE_ASSERT(params->n_stop >= -1 && params->n_stop <= CAKE_MAX_STOP);
    for (int i = 0; i < params->n_stop; i++)
        CAKE_ASSERT(params->stop[i] && params->stop[i][0]);
    for (size_t i = 0; i < params->stop_ids.len; i++)
        CAKE_ASSERT(params->stop_ids.id[i] >= 0);
    for (size_t i = 0; i < params->n_bias; i++)
        CAKE_ASSERT(params->bias[i].id >= 0 && params->bias[i].bias >= -100 && params->bias[i].bias <= 100);
}

static void check(const cake_request *request, int64_t order)
{
    CAKE_ASSERT(request->order == order && request->index >= order);
    if (request->err) {
        const char *message = request->fault.message;
        CAKE_ASSERT(request->err == CAKE_ERR_REQUEST && request->fault.status == 400 && message[0]);
        CAKE_ASSERT(cake_utf8_check(message, strlen(message)) == strlen(message));
        return;
    }
    CAKE_ASSERT((request->messages != NULL) + (request->text != NULL) + (request->ids.len > 0) == 1);
    CAKE_ASSERT(!request->messages == !request->root);
    CAKE_ASSERT(!request->text || cake_utf8_check(request->text, request->text_len) == request->text_len);
    CAKE_ASSERT(request->form == CAKE_FORM_SIMPLE || request->id);
    check_params(&request->params);
}

/* The first byte chooses the format. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_prompt *prompt;
    cake_prompt_format format = size && data[0] == '#' ? CAKE_PROMPT_TXT : CAKE_PROMPT_JSONL;
    size_t skip = format == CAKE_PROMPT_TXT;
    CAKE_ASSERT(!cake_prompt_from_bytes((const char *)data + skip, size - skip, format, &prompt));
    cake_request request;
    for (int64_t index = 0; !cake_prompt_next(prompt, &request); index++) {
        check(&request, index);
        cake_request_free(&request);
    }
    CAKE_ASSERT(cake_prompt_progress(prompt) == 1);
    cake_prompt_close(prompt);
    cake_log_capture(NULL);
    return 0;
}
