#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No circle by symbols: neither between folders nor between the files of one folder, except those that are listed
# here with a reason. layers.sh cannot see them all: two files may need each other although neither header includes the
# other.
# tests/circles.sh [SOURCES [OBJECTS]]: default $top_srcdir and $top_builddir. Judges the objects of libcake.a, as nm
# lists their symbols. Exit status 1 and a paragraph per circle.
set -u -o pipefail
sources=$(cd "${1:-${top_srcdir:-.}}" && pwd) && cd "${2:-${top_builddir:-.}}" || exit 2

objects=()
while read -r object; do # an object whose source is gone is a leftover of an earlier build
    source=${object/libcake_a-/}
    [ -e "$sources/${source%.o}.c" ] && objects+=("$object")
done < <(find src kernels -name 'libcake_a-*.o' | LC_ALL=C sort)
[ ${#objects[@]} -gt 0 ] || { echo "circles: no objects of libcake.a below $PWD" >&2; exit 2; }

nm -A -g "${objects[@]}" | awk '
# A circle of these files, or of some of them, may be.
function known(folder, files) { accepted[folder] = " " files " " }
BEGIN {
    # An interpreter: expressions hold filters, filters call macros, macros hold expressions.
    known("jinja", "access eval exec expr filters filters_text format globals json lex math methods number parse print " \
                   "render spec tests text value")
    # layer.c calls one of four mixers, and each ends with the steps that layer.c has for all of them.
    known("slice", "attention deltanet experts latent layer mlp")
}
{
    file = $1
    sub(/:.*/, "", file); sub(/libcake_a-/, "", file); sub(/\.o$/, "", file); sub(/^src\//, "", file)
    folder = file; sub(/\/.*/, "", folder)
    folder_of[file] = folder
    if ($(NF - 1) == "U") uses[++n_use] = file " " $NF
    else if ($(NF - 1) !~ /^[wWvV]$/) definer[$NF] = file
}
function edge(graph, from, to, text) {
    if ((graph, from, to) in example) return
    example[graph, from, to] = text
    next_of[graph, from] = next_of[graph, from] " " to
    nodes[graph] = nodes[graph] " " from
}
# Tarjan (1972): strongly connected components of a graph.
function visit(graph, node,   n, i, to, list) {
    number[graph, node] = low[graph, node] = ++n_visited
    stack[++depth] = node; on_stack[graph, node] = 1
    n = split(next_of[graph, node], to, " ")
    for (i = 1; i <= n; i++) {
        if (!((graph, to[i]) in number)) {
            visit(graph, to[i])
            if (low[graph, to[i]] < low[graph, node]) low[graph, node] = low[graph, to[i]]
        } else if (on_stack[graph, to[i]] && number[graph, to[i]] < low[graph, node])
            low[graph, node] = number[graph, to[i]]
    }
    if (low[graph, node] != number[graph, node]) return
    do { list = stack[depth] " " list; on_stack[graph, stack[depth]] = 0 } while (stack[depth--] != node)
    judge(graph, list)
}
function judge(graph, list,   n, i, j, member, name, is_known) {
    n = split(list, member, " ")
    if (n < 2) return
    is_known = graph in accepted
    for (i = 1; i <= n; i++) {
        name = member[i]; sub(/.*\//, "", name)
        if (!index(accepted[graph], " " name " ")) is_known = 0
    }
    found[graph] = 1
    if (is_known) return
    n_wrong++
    printf "a circle of %d %s: %s\n", n, graph == "/" ? "folders" : "files", list
    for (i = 1; i <= n; i++)
        for (j = 1; j <= n; j++)
            if ((graph, member[i], member[j]) in example)
                printf "    %s needs %s: %s\n", member[i], member[j], example[graph, member[i], member[j]]
}
END {
    if (!n_use) print "not checked here: circles (nm shows no symbols of objects made with link-time optimization)"
    for (i = 1; i <= n_use; i++) {
        split(uses[i], use, " ")
        if (!(use[2] in definer) || definer[use[2]] == use[1]) continue
        from = folder_of[use[1]]; to = folder_of[definer[use[2]]]
        if (from == to) edge(from, use[1], definer[use[2]], use[2])
        else edge("/", from, to, use[2] " in " use[1] ".c")
    }
    for (graph in nodes) {
        n_node = split(nodes[graph], all, " ")
        for (i = 1; i <= n_node; i++) if (!((graph, all[i]) in number)) visit(graph, all[i])
    }
    for (graph in accepted)
        if (graph in nodes && !(graph in found)) {
            printf "%s has no circle any more: delete its line in tests/circles.sh\n", graph
            n_wrong++
        }
    exit n_wrong > 0
}'
