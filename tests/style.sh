#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style test: functions of at most 80 lines, files of at most 650, lines of at most 110, the licence line, no TODO
# marks, no retired word in a name, and the layout of .clang-format. Versions of clang-format differ: only 14 is used, and with
# CI set it is required.
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

# Words of our own that the field has a name for: cake_WORD and cake_WORD_... must not come back.
retired="answers advice aside alphabet appetite aware beat beside best bundles builder chooser claim conductor crew crowd cut demand desk drain draw ear \
edges effect effects effort expand feed figure figures floor foreseen found handout headway held known law layout letter letters lift lists look mail mark memplan news outlook \
outpost outputs pace parcel partial parts past peaks piece pipe place places placement pool portion predict prefixes preview pretend pretended pulse roof \
room root rotation running runnings score scratch seat seen settings share slices sorted splitter spot spread staging station store stored stretch \
summary survey surveyor sync takeup tally times told trap turn verdict watch way whereabouts whole window wire words world"

# shellcheck disable=SC2086
awk -v retired="$retired" '
BEGIN { n_retired = split(retired, words, " "); for (i = 1; i <= n_retired; i++) is_retired[words[i]] = 1 }
function look_for_retired(line,   name, word) {
    while (match(line, /[cC][aA][kK][eE]_[A-Za-z0-9]+/)) {
        name = substr(line, RSTART, RLENGTH); word = tolower(substr(name, 6)); line = substr(line, RSTART + RLENGTH)
        if (name ~ /^cake_/ && word in is_retired) wrong(FNR, name "...: a retired word; use the word of vLLM, MPI, BLAS or Linux (glossary: docs/architecture.md)")
    }
}
function wrong(line, text) { printf "%s:%d: %s\n", FILENAME, line, text; n_wrong++ }
function file_end() { if (previous != "" && lines > 650) { printf "%s: %d lines, 650 at most\n", previous, lines; n_wrong++ } }
FNR == 1 {
    file_end(); previous = FILENAME; start = 0
    if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/) wrong(1, "the first line has no SPDX-License-Identifier: Apache-2.0")
}
{ lines = FNR }
/cake_/ { look_for_retired($0) }
length > 110 { wrong(FNR, "a line of " length " columns, 110 at most") }
/^\{/ { start = FNR }
/^\}/ { if (start && FNR - start > 81) wrong(start, "a function of " FNR - start - 1 " lines, 80 at most"); start = 0 }
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
