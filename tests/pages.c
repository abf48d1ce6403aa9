/* SPDX-License-Identifier: Apache-2.0
 *
 * Which page is taken next: given back ones, then idle ones that no known prompt wants, then memory that was
 * never used, then what is wanted.
 */
#include "schedule/pages.h"

#include <stdlib.h>

#include "suite.h"
#include "types/wave.h"

enum { N_PAGE = 6 };

/* A prompt of one page that was computed and has left. */
static int32_t leave_behind(cake_prefixes *p, cake_pages *pages, int32_t token, int32_t *node)
{
    int32_t ids[CAKE_PAGE] = {token};
    cake_held held = {0};
    cake_prefixes_enter(p, 0, ids, 1, node);
    int32_t page = cake_pages_take(pages, &held);
    cake_pages_keep(pages, &held, 0, *node);
    cake_pages_drop(pages, &held);
    free(held.page);
    return page;
}

static void test_order(void)
{
    cake_prefixes *p = cake_prefixes_open();
    cake_pages pages;
    cake_held held = {0}, brief = {0};
    int32_t a, b, node;
    cake_pages_open(&pages, 0, N_PAGE, p);
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 1, &a), 0);
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 2, &b), 1); /* nothing is known of prompts to come */
    cake_prefixes_see(p, true);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 2); /* both are wanted */
    cake_prefixes_leave(p, &a, 1);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 0); /* the first is not any longer */
    CU_ASSERT_EQUAL(cake_pages_kept(&pages, b), 1);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &brief), 3);
    cake_prefixes_leave(p, &b, 1);
    cake_pages_drop(&pages, &brief);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 3); /* given back, and nothing in it */
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 3, &node), 1);
    cake_prefixes_see(p, false);
    cake_prefixes_leave(p, &node, 1);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 4); /* who knows */
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 5);
    CU_ASSERT_EQUAL(cake_pages_take(&pages, &held), 1); /* there is no other */
    CU_ASSERT_EQUAL(cake_pages_spare(&pages), 0);
    cake_pages_drop(&pages, &held);
    CU_ASSERT_EQUAL(cake_pages_spare(&pages), N_PAGE);
    CU_ASSERT_EQUAL(cake_prefixes_count(p), 0);
    free(held.page);
    free(brief.page);
    cake_pages_close(&pages);
    cake_prefixes_close(p);
}

int main(void)
{
    static const suite_test tests[] = {{"the page that is taken next", test_order}};
    return SUITE_MAIN("pages", tests);
}
