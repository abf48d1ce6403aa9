/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a place in a topology file. Out: parts of messages.
 */
#include "placement/topology_at.h"

#include <stdio.h>

cake_topology_at cake_topology_at_text(const cake_topology_file *o, cake_yaml_position at)
{
    cake_topology_at text;
    snprintf(text.s, sizeof text.s, "%s:%d:%d: ", o->path, at.line, at.column);
    return text;
}

cake_topology_at cake_topology_at_worker(const cake_topology_file *o, const cake_topology_rank *mine)
{
    cake_topology_at text = {""};
    if (o->path && mine->at.line)
        snprintf(text.s, sizeof text.s, "; its layers are those of worker '%s' (%s:%d:%d)", mine->worker,
                 o->path, mine->at.line, mine->at.column);
    return text;
}
