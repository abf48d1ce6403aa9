/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of config.json: reads it from a string, as file DIR/config.json.
 */
#ifndef CAKE_TESTS_CONFIGS_H
#define CAKE_TESTS_CONFIGS_H

#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "formats/json.h"
#include "tests/suite.h"

/* Reads config.json and generation_config.json (or NULL). said: the messages. */
static inline cake_err read_text(const char *text, const char *generation, cake_config *config,
                                 cake_buf *said)
{
    cake_json *doc = NULL, *more = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(text, strlen(text), &doc, &fault), CAKE_OK);
    if (generation)
        CU_ASSERT_EQUAL_FATAL(cake_json_parse(generation, strlen(generation), &more, &fault), CAKE_OK);
    cake_buf_cut(said, 0);
    cake_log_capture(said);
    cake_err err = cake_config_read(doc, more, "DIR", config);
    cake_log_capture(NULL);
    cake_json_free(doc);
    cake_json_free(more);
    return err;
}

#endif
