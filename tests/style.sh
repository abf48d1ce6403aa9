#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style test: functions of at most 100 lines, files of at most 650, lines of at most 110, the licence line, nothing unfinished, and
# the layout of .clang-format. Versions of clang-format differ in their taste: only 14 decides, and where CI is
# set it must be there.
# tests/style.sh [ROOT]: ROOT is a source tree, default $top_srcdir. Exit status 1 and a line per violation.
set -u
root=${1:-${top_srcdir:-.}}
cd "$root" || exit 2
folders=
for folder in src kernels tests bench; do
    [ ! -d "$folder" ] || folders="$folders $folder"
done
# shellcheck disable=SC2086
files=$(find $folders -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' | LC_ALL=C sort)
[ -n "$files" ] || { echo "style: no source files below $root" >&2; exit 2; }
status=0

# shellcheck disable=SC2086
awk '
function wrong(line, text) { printf "%s:%d: %s\n", FILENAME, line, text; n_wrong++ }
function file_end() { if (previous != "" && lines > 650) { printf "%s: %d lines, 650 at most\n", previous, lines; n_wrong++ } }
FNR == 1 {
    file_end(); previous = FILENAME; start = 0
    if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/) wrong(1, "the first line has no SPDX-License-Identifier: Apache-2.0")
}
{ lines = FNR }
length > 110 { wrong(FNR, "a line of " length " columns, 110 at most") }
/^\{/ { start = FNR }
/^\}/ { if (start && FNR - start > 101) wrong(start, "a function of " FNR - start - 1 " lines, 100 at most"); start = 0 }
/(^|[^A-Za-z])(TO[D]O|FIX[M]E|XX[X])([^A-Za-z]|$)/ { wrong(FNR, "unfinished: " $0) }
END { file_end(); exit n_wrong > 0 }
' $files || status=1

tool=
for name in clang-format-14 clang-format; do
    case $($name --version 2>/dev/null) in *"version 14."*) tool=$name && break ;; esac
done
if [ -n "$tool" ]; then
    # shellcheck disable=SC2086
    $tool --style=file --dry-run --Werror $files || status=1
elif [ -n "${CI:-}" ]; then
    echo "style: clang-format 14 is needed where CI is set: install clang-format-14" >&2
    status=1
else
    echo "not checked here: the layout of the source (clang-format 14 is not installed)"
fi
exit $status
