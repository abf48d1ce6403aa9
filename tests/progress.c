/* SPDX-License-Identifier: Apache-2.0 */
#include "run/progress.h"

#include <math.h>
#include <string.h>

#include "base/duration.h"
#include "suite.h"

static void test_words(void)
{
    static const struct {
        cake_counts counts;
        double seconds, until_stop;
        const char *bar, *line;
    } cases[] = {
        {{.done = 30, .share = -1, .gained = -1, .generated = 600},
         60,
         100,
         "30 requests, 10 tokens/s",
         "30 requests done, 0 failed, 600 tokens generated, 10.0 tokens/s, 0:01:00"},
        {{.done = 30, .failed = 2, .share = 0.25, .gained = 0.25, .generated = 600},
         60,
         INFINITY,
         "[#####               ] 30 requests (2 failed), 10 tokens/s, 0:03:00 left",
         "30 requests done, 2 failed, 25.0 %, 600 tokens generated, 10.0 tokens/s, 0:01:00, 0:03:00 left"},
        {{.done = 30, .share = 0.25, .gained = 0.25, .generated = 600},
         60,
         180.5,
         "[#####               ] 30 requests, 10 tokens/s, 0:03:00 left, in time",
         "30 requests done, 0 failed, 25.0 %, 600 tokens generated, 10.0 tokens/s, 0:01:00, 0:03:00 left, in "
         "time"},
        {{.done = 30, .resumed = 30, .share = 0.5, .gained = 0.25, .generated = 600},
         3600,
         1800,
         "[##########          ] 60 requests, 0 tokens/s, 2:00:00 left, but stops in 0:30:00 at about 62 %",
         "60 requests done, 0 failed, 50.0 %, 600 tokens generated, 0.2 tokens/s, 1:00:00, 2:00:00 left, but "
         "stops in 0:30:00 at "
         "about 62 %"},
        {{.done = 30, .share = 0.5, .gained = 0.5, .generated = 600},
         172800,
         -3,
         "[##########          ] 30 requests, 0 tokens/s, 2-00:00:00 left, but stops in 0:00:00 at about 50 "
         "%",
         "30 requests done, 0 failed, 50.0 %, 600 tokens generated, 0.0 tokens/s, 2-00:00:00, 2-00:00:00 "
         "left, but stops in "
         "0:00:00 at about 50 %"},
        {{.resumed = 9, .share = 0, .gained = 0},
         1,
         9,
         "[                    ] 9 requests, 0 tokens/s",
         "9 requests done, 0 failed, 0.0 %, 0 tokens generated, 0.0 tokens/s, 0:00:01"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf bar = {0}, line = {0};
        cake_progress_bar(&cases[i].counts, cases[i].seconds, cases[i].until_stop, &bar);
        cake_progress_line(&cases[i].counts, cases[i].seconds, cases[i].until_stop, &line);
        CU_ASSERT_STRING_EQUAL(bar.data, cases[i].bar);
        CU_ASSERT_STRING_EQUAL(line.data, cases[i].line);
        cake_buf_free(&bar);
        cake_buf_free(&line);
    }
}

/* What is written is read as the same. */
static void test_durations(void)
{
    static const int64_t all[] = {0, 59, 60, 3599, 3600, 86399, 86400, 90061, 30000000};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cake_buf text = {0};
        int64_t back = -1;
        cake_duration_add(&text, (double)all[i]);
        CU_ASSERT(cake_duration_read(text.data, &back) && back == all[i]);
        cake_buf_free(&text);
    }
    cake_buf text = {0};
    cake_duration_add(&text, 1e300);
    CU_ASSERT(text.len > 0 && text.len < 20);
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {{"what bars and lines say", test_words},
                                       {"durations", test_durations}};
    return SUITE_MAIN("progress", tests);
}
