/* SPDX-License-Identifier: Apache-2.0
 *
 * Beginnings of prompts, page by page, as numbers: a node stands for CAKE_PAGE tokens behind all those of its
 * parent. Two prompts have a node in common exactly if they are equal up to its end; then the schedule may
 * let them share what the model made of it. A node lives as long as a prompt has it, a child needs it, or
 * something is kept for it.
 */
#ifndef CAKE_SCHEDULE_PREFIXES_H
#define CAKE_SCHEDULE_PREFIXES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cake_prefixes cake_prefixes;

cake_prefixes *cake_prefixes_open(void);
void cake_prefixes_close(cake_prefixes *prefixes); /* NULL is fine */
/* The nodes of the first n pages of a prompt: chain [n], of which the prompt is a user until it leaves.
 * Prompts with different salts have nothing in common. */
void cake_prefixes_enter(cake_prefixes *prefixes, int64_t salt, const int32_t *ids, int n, int32_t *chain);
void cake_prefixes_leave(cake_prefixes *prefixes, const int32_t *chain, int n);
int cake_prefixes_users(const cake_prefixes *prefixes, int32_t node);
/* Whether all prompts that come soon have been entered; at first that is not so. */
void cake_prefixes_see(cake_prefixes *prefixes, bool far);
/* Whether a prompt has the node, or one that comes soon and is not known might have it. */
bool cake_prefixes_wanted(const cake_prefixes *prefixes, int32_t node);
/* Something is kept for the node, and no longer. Numbers of nodes that are gone are used again. */
void cake_prefixes_keep(cake_prefixes *prefixes, int32_t node);
void cake_prefixes_drop(cake_prefixes *prefixes, int32_t node);
/* Nodes that there are now. */
int cake_prefixes_count(const cake_prefixes *prefixes);

#endif
