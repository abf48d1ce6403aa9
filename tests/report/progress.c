/* SPDX-License-Identifier: Apache-2.0 */
#include "report/progress.h"

#include <math.h>
#include <string.h>

#include "base/duration.h"
#include "report/eta.h"
#include "tests/suite.h"

static void test_words(void)
{
    static const struct {
        cake_counts counts;
        double seconds, until_stop;
        const char *bar, *line;
    } cases[] = {
        {{.done = 30, .share = -1, .left = -1, .generated = 600},
         60,
         100,
         "30 requests, 10 tokens/s",
         "30 requests done, 0 failed, 600 tokens generated, 10.0 tokens/s, 0:01:00"},
        {{.done = 30, .failed = 2, .share = 0.25, .left = 180, .generated = 600},
         60,
         INFINITY,
         "[#####               ] 30 requests (2 failed), 10 tokens/s, 0:03:00 left",
         "30 requests done, 2 failed, 25.0 %, 600 tokens generated, 10.0 tokens/s, 0:01:00, 0:03:00 left"},
        {{.done = 30, .share = 0.25, .left = 180, .generated = 600},
         60,
         180.5,
         "[#####               ] 30 requests, 10 tokens/s, 0:03:00 left, in time",
         "30 requests done, 0 failed, 25.0 %, 600 tokens generated, 10.0 tokens/s, 0:01:00, 0:03:00 left, in "
         "time"},
        {{.done = 30, .resumed = 30, .share = 0.5, .left = 7200, .generated = 600},
         3600,
         1800,
         "[##########          ] 60 requests, 0 tokens/s, 2:00:00 left, but stops in 0:30:00 at about 62 %",
         "60 requests done, 0 failed, 50.0 %, 600 tokens generated, 0.2 tokens/s, 1:00:00, 2:00:00 left, but "
         "stops in 0:30:00 at "
         "about 62 %"},
        {{.done = 30, .share = 0.5, .left = 172800, .generated = 600},
         172800,
         -3,
         "[##########          ] 30 requests, 0 tokens/s, 2-00:00:00 left, but stops in 0:00:00 at about 50 "
         "%",
         "30 requests done, 0 failed, 50.0 %, 600 tokens generated, 0.0 tokens/s, 2-00:00:00, 2-00:00:00 "
         "left, but stops in "
         "0:00:00 at about 50 %"},
        {{.resumed = 9, .share = 0, .left = -1},
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

/* A job of n answers, `slots` at a time, each a token per step; lengths by `draw`. Estimates of the remaining
 * time must be right within a factor of four. Returns the share of steps before the first estimate. */
static double follow(int n, int slots, int most, bool certain, int (*draw)(uint64_t *seed))
{
    enum { MOST = 700 };
    int length[MOST], has[MOST] = {0}, next = 0, over = 0, steps = 0, first = -1;
    double all = 0, done = 0, finished = 0;
    uint64_t seed = 7;
    cake_eta eta = {0};
    for (int i = 0; i < n; i++)
        all += length[i] = draw(&seed);
    for (; over < n; steps++) {
        next = over + slots < n ? over + slots : n;
        eta.open = 0;
        eta.so_far = 0;
        for (int i = 0; i < next; i++) {
            if (has[i] == length[i])
                continue;
            done++;
            if (++has[i] == length[i]) {
                over++;
                finished += length[i];
                if (!certain)
                    cake_eta_end(&eta, length[i]);
            } else if (!certain) {
                eta.open++;
                eta.so_far += has[i];
            }
        }
        double left = 0, begun = finished;
        bool known = over > 0;
        for (int i = 0; i < next && known; i++)
            if (has[i] < length[i]) {
                double more = cake_eta_left(&eta, has[i], certain ? length[i] : most, certain);
                known = more >= 0;
                left += more;
                begun += has[i] + more;
            }
        if (!known)
            continue;
        left += begun / next * (n - next);
        first = first < 0 ? steps : first;
        if (all - done > 0.02 * all) {
            CU_ASSERT(left < 4 * (all - done));
            CU_ASSERT(left > (all - done) / 4);
            if (left >= 4 * (all - done) || left <= (all - done) / 4)
                printf("\n    %d answers, step %d: %g tokens left, expected %g\n", n, steps, all - done,
                       left);
        }
    }
    return first < 0 ? 1 : (double)first / steps;
}

static double draw_real(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*seed >> 40) + 0.5) / (1 << 24);
}

static int draw_even(uint64_t *seed)
{
    return 80 + (int)(40 * draw_real(seed));
}

static int draw_wide(uint64_t *seed)
{
    double length = -300 * log(draw_real(seed));
    return length < 1 ? 1 : length > 4000 ? 4000 : (int)length;
}

static int draw_capped(uint64_t *seed)
{
    return draw_real(seed) < 0.1 ? 5 : 256;
}

static int draw_one_short(uint64_t *seed)
{
    return (*seed)++ == 7 ? 4 : 900;
}

static void test_left(void)
{
    CU_ASSERT(follow(64, 64, 8000, false, draw_even) < 1);
    CU_ASSERT(follow(640, 64, 8000, false, draw_even) < 0.2);
    CU_ASSERT(follow(64, 64, 8000, false, draw_wide) < 0.3);
    CU_ASSERT(follow(640, 64, 8000, false, draw_wide) < 0.1);
    CU_ASSERT(follow(640, 64, 256, false, draw_capped) < 0.2);
    CU_ASSERT(follow(64, 64, 900, true, draw_one_short) < 0.01);
    CU_ASSERT(follow(3, 64, 8000, false, draw_even) > 0.9); /* too few to tell by */
}

/* A written duration is read back unchanged. */
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
                                       {"tokens that are left", test_left},
                                       {"durations", test_durations}};
    return SUITE_MAIN("progress", tests);
}
