/* SPDX-License-Identifier: Apache-2.0
 *
 * In: plain text. Out: a request that goes through the chat template.
 * Invariant: its text is valid UTF-8.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/utf8.h"
#include "prompt/parsers.h"

static bool is_text(const char *text, size_t len, cake_request *request)
{
    size_t bad = cake_utf8_check(text, len);
    request->form = CAKE_FORM_SIMPLE;
    request->use_template = true;
    if (bad < len)
        request->err = cake_fault_set(&request->fault, "prompt", "invalid UTF-8 at byte %zu: 0x%02X", bad,
                                      (unsigned char)text[bad]);
    return bad == len;
}

void cake_txt_take(const char *text, size_t len, cake_request *request)
{
    if (!is_text(text, len, request))
        return;
    request->text = cake_copy(text, len);
    request->text_len = len;
}

void cake_txt_parse(const char *line, size_t len, cake_request *request)
{
    if (!is_text(line, len, request))
        return;
    request->text = cake_copy(line, len);
    request->text_len = cake_escape_undo(request->text, len);
}
