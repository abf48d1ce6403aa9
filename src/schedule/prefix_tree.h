/* SPDX-License-Identifier: Apache-2.0
 *
 * Tree of the prefixes of prompts: a node stands for the CAKE_PAGE tokens that follow those of its parent.
 * Two prompts have a node in common exactly if they are equal up to its end; then they may share its pages. A
 * node lives as long as prompts use it, it has children, or something is cached for it.
 */
#ifndef CAKE_SCHEDULE_PREFIX_TREE_H
#define CAKE_SCHEDULE_PREFIX_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cake_prefix_tree cake_prefix_tree;

cake_prefix_tree *cake_prefix_tree_open(void);
void cake_prefix_tree_close(cake_prefix_tree *prefixes); /* NULL is fine */
/* Finds or makes the nodes of the first n pages of a prompt: chain [n]. The prompt uses them until
 * cake_prefix_tree_release. Prompts with different salts share no node. */
void cake_prefix_tree_insert(cake_prefix_tree *prefixes, int64_t salt, const int32_t *ids, int n,
                             int32_t *chain);
void cake_prefix_tree_release(cake_prefix_tree *prefixes, const int32_t *chain, int n);
int cake_prefix_tree_users(const cake_prefix_tree *prefixes, int32_t node);
/* far: all prompts that come soon have been inserted; false at first. */
void cake_prefix_tree_set_lookahead(cake_prefix_tree *prefixes, bool far);
/* True if a prompt uses the node, or a prompt not inserted yet might. */
bool cake_prefix_tree_is_needed(const cake_prefix_tree *prefixes, int32_t node);
/* Keeps a node while something is cached for it, and ends that. Numbers of nodes that are gone are reused. */
void cake_prefix_tree_keep(cake_prefix_tree *prefixes, int32_t node);
void cake_prefix_tree_drop(cake_prefix_tree *prefixes, int32_t node);
/* Number of nodes. */
int cake_prefix_tree_count(const cake_prefix_tree *prefixes);

#endif
