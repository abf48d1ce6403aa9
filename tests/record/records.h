/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of a model of seven tokens, for the tests of lines and of files.
 */
#ifndef CAKE_TESTS_RECORDS_H
#define CAKE_TESTS_RECORDS_H

#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "tests/suite.h"

/* A vocabulary: 0 is the end, 3 and 4 are halves of an e with an accent, 7 is U+0000. */
static inline void token_bytes(const void *token, int32_t id, cake_buf *out)
{
    static const char *const spelling[] = {"<end>", "Hel", "lo", "\xC3", "\xA9", " \"w\"", "lo"};
    (void)token;
    if (id == 7)
        cake_buf_addc(out, 0);
    else
        cake_buf_adds(out, spelling[id]);
}

static inline const char *path_of(const char *name)
{
    static char path[2][160];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", suite_tmp(), name);
    return path[turn];
}

/* As if n requests had been read. */
static inline void read_all(cake_recorder *recorder, int n)
{
    cake_record_read_to(recorder, (cake_input_checkpoint){n, n, (uint32_t)n});
}

static inline cake_record_options options_of(const char *path)
{
    return (cake_record_options){
        .path = path, .created = 1700000000, .job = 0xABC, .model = "demo", .token_bytes = token_bytes};
}

/* With one choice, which the caller may change. */
static cake_choice choice;

static inline cake_record answer_of(int64_t index, const char *text)
{
    static const int32_t prompt_ids[] = {5, 6, 7}, ids[] = {1, 2, 0};
    choice = (cake_choice){
        .text = text, .text_len = strlen(text), .ids = ids, .n_id = 3, .finish = CAKE_FINISH_STOP};
    return (cake_record){.index = index,
                         .order = index,
                         .prompt_ids = prompt_ids,
                         .n_prompt = 3,
                         .choices = &choice,
                         .n_choice = 1,
                         .n_top = -1,
                         .n_logprob = -1,
                         .n_prompt_logprob = -1};
}

#endif
