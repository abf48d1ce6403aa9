/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which pages are taken: freed ones, idle ones that no known prompt wants, never used ones, and
 * wanted ones.
 */
#include "schedule/page_pool.h"

#include <stdlib.h>

#include "tests/suite.h"
#include "types/wave.h"

enum { N_PAGE = 6 };

/* A prompt of one page that was computed and has left. */
static int32_t leave_behind(cake_prefix_tree *p, cake_page_pool *pages, int32_t token, int32_t *node)
{
    int32_t ids[CAKE_PAGE] = {token};
    cake_page_list held = {0};
    cake_prefix_tree_insert(p, 0, ids, 1, node);
    int32_t page = cake_page_pool_alloc(pages, &held);
    cake_page_pool_cache(pages, &held, 0, *node);
    cake_page_pool_free(pages, &held);
    free(held.page);
    return page;
}

static void test_order(void)
{
    cake_prefix_tree *p = cake_prefix_tree_open();
    cake_page_pool pages;
    cake_page_list held = {0}, brief = {0};
    int32_t a, b, node;
    cake_page_pool_open(&pages, 0, N_PAGE, p);
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 1, &a), 0);
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 2, &b), 1); /* nothing is known of prompts to come */
    cake_prefix_tree_set_lookahead(p, true);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 2); /* both are wanted */
    cake_prefix_tree_release(p, &a, 1);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 0); /* the first is not any longer */
    CU_ASSERT_EQUAL(cake_page_pool_cached(&pages, b), 1);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &brief), 3);
    cake_prefix_tree_release(p, &b, 1);
    cake_page_pool_free(&pages, &brief);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 3); /* given back, and nothing in it */
    CU_ASSERT_EQUAL(leave_behind(p, &pages, 3, &node), 1);
    cake_prefix_tree_set_lookahead(p, false);
    cake_prefix_tree_release(p, &node, 1);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 4); /* who knows */
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 5);
    CU_ASSERT_EQUAL(cake_page_pool_alloc(&pages, &held), 1); /* there is no other */
    CU_ASSERT_EQUAL(cake_page_pool_available(&pages), 0);
    cake_page_pool_free(&pages, &held);
    CU_ASSERT_EQUAL(cake_page_pool_available(&pages), N_PAGE);
    CU_ASSERT_EQUAL(cake_prefix_tree_count(p), 0);
    free(held.page);
    free(brief.page);
    cake_page_pool_close(&pages);
    cake_prefix_tree_close(p);
}

int main(void)
{
    static const suite_test tests[] = {{"the page that is taken next", test_order}};
    return SUITE_MAIN("pages", tests);
}
