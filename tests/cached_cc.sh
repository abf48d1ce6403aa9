#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cached_cc.sh COMPILER ARGUMENT...
# A compiler that keeps its objects in $CAKE_OBJECTS and takes them from there when the same text comes with the same flags, as
# ccache does. Unlike there the build folder does not count, nor does the way from it to the sources: the text is compared
# without the names of its files. So stages of tests/long.sh share objects with `make distcheck` and a bare Debian. Lines that
# a debugger shows may be those of an earlier text that differs in comments only.
set -u
compiler=$1 command=("$@")
object='' compiles='' flags=() text=("$compiler")
shift
while [ $# -gt 0 ]; do
    case $1 in
    -o) object=$2 ;;
    -c) compiles=1 ;;
    */tests/*.c) compiles='' && break ;; # few stages need them
    *) text+=("$1") ;;
    esac
    case $1 in
    -o) shift ;;
    -M[FTQ] | -isystem) text+=("$2") && shift ;; # the text shows what came of these
    -[IDUM]* | -c | *.c | *.cc) ;;
    *) flags+=("$1") ;;
    esac
    shift
done
[ -n "${CAKE_OBJECTS:-}" ] && [ -n "$compiles" ] && [ -n "$object" ] || exec "${command[@]}"

new=$(mktemp "$CAKE_OBJECTS/new.XXXXXX") || exec "${command[@]}"
trap 'rm -f "$new"' EXIT
"${text[@]}" -E -P -o "$new" 2>/dev/null || exec "${command[@]}" # which says what is wrong
read -r sum _ < <({ "$compiler" -dumpfullversion && echo "${flags[@]}" && cat "$new"; } | sha256sum)
kept=$CAKE_OBJECTS/$sum.o
cp "$kept" "$object" 2>/dev/null && exit # the compiler has written what the object depends on
"${command[@]}" || exit
cp "$object" "$new" && mv "$new" "$kept"
