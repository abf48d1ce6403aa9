/* SPDX-License-Identifier: Apache-2.0
 *
 * Beginnings of prompts, page by page, as numbers: a node stands for CAKE_PAGE tokens behind all those of its
 * parent. Two prompts have a node in common exactly if they are equal up to its end; then the schedule may
 * let them share what the model made of it. A node lives as long as a prompt has it, a child needs it, or
 * something is kept for it.
 */
#ifndef CAKE_SCHEDULE_PREFIX_TREE_H
#define CAKE_SCHEDULE_PREFIX_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cake_prefix_tree cake_prefix_tree;

cake_prefix_tree *cake_prefix_tree_open(void);
void cake_prefix_tree_close(cake_prefix_tree *prefixes); /* NULL is fine */
/* The nodes of the first n pages of a prompt: chain [n], of which the prompt is a user until it leaves.
 * Prompts with different salts have nothing in common. */
void cake_prefix_tree_insert(cake_prefix_tree *prefixes, int64_t salt, const int32_t *ids, int n,
                             int32_t *chain);
void cake_prefix_tree_release(cake_prefix_tree *prefixes, const int32_t *chain, int n);
int cake_prefix_tree_users(const cake_prefix_tree *prefixes, int32_t node);
/* Whether all prompts that come soon have been entered; at first that is not so. */
void cake_prefix_tree_set_lookahead(cake_prefix_tree *prefixes, bool far);
/* Whether a prompt has the node, or one that comes soon and is not known might have it. */
bool cake_prefix_tree_is_needed(const cake_prefix_tree *prefixes, int32_t node);
/* Something is kept for the node, and no longer. Numbers of nodes that are gone are used again. */
void cake_prefix_tree_keep(cake_prefix_tree *prefixes, int32_t node);
void cake_prefix_tree_drop(cake_prefix_tree *prefixes, int32_t node);
/* Nodes that there are now. */
int cake_prefix_tree_count(const cake_prefix_tree *prefixes);

#endif
