#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style test: functions of at most 80 lines, files of at most 650, lines of at most 110, the licence line, nothing
# unfinished, no retired word in a name or file name, no page that names a source file that is gone, and the layout of
# .clang-format. Versions of clang-format differ: only 14 is used, and with CI set it is required.
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

# Words of our own that the field has a name for. Ordinary ones are refused where they name something public: cake_WORD and
# cake_WORD_...
retired="answers advice aside alphabet appetite aware beat beside best bundles builder chooser claim conductor crew crowd cut demand desk drain draw ear \
edges effect effects effort expand feed figure figures floor foreseen found handout headway held known law layout letter letters lift lists look mail mark memplan news outlook \
outpost outputs pace parcel partial parts past peaks piece pipe place places placement pool portion predict prefixes preview pretend pretended pulse roof \
room root rotation running runnings score scratch seat seen settings share slices sorted splitter spot spread staging station store stored stretch \
summary survey surveyor sync takeup tally times told trap turn verdict watch way whereabouts whole window wire words world"
# Unmistakable ones, and their plurals, are refused in every part of a name: of locals, fields, types, macros and files, and as
# the topic of a message.
unmistakable="appetite conductor crew desk foreseen habit handout headway outlook outpost parcel portion pretend pretended pulse riding roomy seat \
shade starved starving station stretch surveyor takeup told whereabouts"
# Refused as fields only: capacity, max, min and present are the words.
field_words="room most least there"

# Refused as they are: names that were given up for a better one.
retired_names="cake_schedule_push CAKE_WHEN_EXPERTS_TURNED whole_store_turned turn_head cake_model_quantised \
attend_generated attend_prompt cake_cuda_delta_prompt cake_cuda_delta_generated cake_format_decode \
cake_format_decode_row CAKE_READER_DECODED cake_seq CAKE_SEQ_STEM CAKE_SEQ_SCORE_PROMPT CAKE_SEQ_AGAIN CAKE_SEQ_SURE \
n_tok max_tok cake_journal_head cake_wave_head_bytes cake_codes_head begun_tok assigned_tok"

# shellcheck disable=SC2086
awk -v retired="$retired" -v unmistakable="$unmistakable" -v field_words="$field_words" -v retired_names="$retired_names" '
BEGIN {
    advice = "a retired word; use the word of vLLM, MPI, BLAS or Linux (glossary: docs/architecture.md)"
    split_words(retired, is_retired, 0)
    suspect = "cake_|" tolower(split_words(retired_names, is_retired_name, 0)) "|" split_words(unmistakable, is_unmistakable, 1) "|(\\.|->)(" split_words(field_words, is_field_word, 0) ")"
}
function split_words(text, set, plural,   list, i, n) {
    n = split(text, list, " ")
    for (i = 1; i <= n; i++) { set[list[i]] = 1; if (plural) set[list[i] "s"] = 1 }
    gsub(/ /, "|", text)
    return text
}
function code_of(line,   out, at) { # without comments; a string stays only if it is a single word, as a topic is
    out = ""
    while (line != "") {
        if (in_comment) {
            if (!(at = index(line, "*/"))) return out
            line = substr(line, at + 2); in_comment = 0
        } else if (match(line, /\/\*|\/\/|"(\\.|[^"\\])*"/)) {
            out = out substr(line, 1, RSTART - 1)
            at = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
            if (at == "//") return out
            if (at == "/*") in_comment = 1
            else out = out (at ~ /^"[a-z]*"$/ ? " " substr(at, 2, length(at) - 2) " " : " ")
        } else return out line
    }
    return out
}
function look_for_retired(line,   name, n, part, i) {
    while (match(line, /(\.|->)?[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        if (name ~ /^[.-]/) {
            sub(/^(\.|->)/, "", name)
            if (name in is_field_word) wrong(FNR, "field " name ": " advice)
        }
        if (name in is_retired_name) wrong(FNR, name " is a retired name: take the one that took its place")
        n = split(tolower(name), part, "_")
        for (i = 1; i <= n; i++) if (part[i] in is_unmistakable) wrong(FNR, name ": " part[i] " is " advice)
        if (name ~ /^cake_/ && part[2] in is_retired) wrong(FNR, name ": " part[2] " is " advice)
    }
}
function wrong(line, text) { printf "%s:%d: %s\n", FILENAME, line, text; n_wrong++ }
function file_end() { if (previous != "" && lines > 650) { printf "%s: %d lines, 650 at most\n", previous, lines; n_wrong++ } }
FNR == 1 {
    file_end(); previous = FILENAME; start = in_comment = 0
    if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/) wrong(1, "the first line has no SPDX-License-Identifier: Apache-2.0")
}
{ lines = FNR }
{ suspicious = tolower($0) ~ suspect }
suspicious || in_comment || index($0, "/*") { code = code_of($0); if (suspicious) look_for_retired(code) }
length > 110 { wrong(FNR, "a line of " length " columns, 110 at most") }
/^\{/ { start = FNR }
/^\}/ { if (start && FNR - start > 81) wrong(start, "a function of " FNR - start - 1 " lines, 80 at most"); start = 0 }
/(^|[^A-Za-z])(TO[D]O|to[d]o|FIX[M]E|XX[X])([^A-Za-z]|$)/ { wrong(FNR, "unfinished: " $0) }
END { file_end(); exit n_wrong > 0 }
' $files || status=1

# shellcheck disable=SC2086
find $folders -type f | LC_ALL=C sort | awk -F/ -v unmistakable="$unmistakable" '
BEGIN { n = split(unmistakable, list, " "); for (i = 1; i <= n; i++) is_unmistakable[list[i]] = is_unmistakable[list[i] "s"] = 1 }
{ n = split(tolower($NF), part, /[._-]/); for (i = 1; i <= n; i++) if (part[i] in is_unmistakable) { print $0 ": " part[i] " is a retired word in a file name"; wrong = 1 } }
END { exit wrong }
' || status=1

# A source file that a page names between backticks exists, as given or below a folder. NAME stands for any name.
pages=$(find . docs bench tests/gpu tests/run -maxdepth 1 -name '*.md' 2>/dev/null | LC_ALL=C sort -u)
# shellcheck disable=SC2046,SC2086
[ -z "$pages" ] || { find $folders docs $(ls -d jobs 2>/dev/null) -type f; find . -maxdepth 1 -type f; } | awk '
FILENAME == "-" { name = $0; sub(/^\.\//, "", name); exists[name] = 1; while (sub(/^[^\/]*\//, "", name)) exists[name] = 1; next }
{
    for (line = $0; match(line, /`[A-Za-z0-9_.\/-]+\.(c|cc|h|cu|sh|py|def|am)`/); line = substr(line, RSTART + RLENGTH)) {
        name = substr(line, RSTART + 1, RLENGTH - 2)
        if (name !~ /NAME/ && !(name in exists)) { print FILENAME ":" FNR ": there is no file " name; wrong = 1 }
    }
}
END { exit wrong }
' - $pages || status=1

# A shell test that runs a command in the text of its ok hands on the status of that command, and cannot fail.
suspects=$(grep -rnE --include='*.sh' 'ok "[^"]*\$\([^(].*\$\?' tests 2>/dev/null)
[ -z "$suspects" ] || { printf '%s\n' "$suspects" "these are the status of a command in the text: keep the status before"; status=1; }

tool=
for name in clang-format-14 clang-format; do
    case $($name --version 2>/dev/null) in *"version 14."*) tool=$name && break ;; esac
done
# A developer's run looks at what is not committed yet.
formatted=$files
[ -n "${CI:-}" ] || ! changed=$(git diff --name-only HEAD -- $files 2>/dev/null) || formatted=$changed
if [ -n "$tool" ]; then
    # shellcheck disable=SC2086
    [ -z "$formatted" ] || $tool --style=file --dry-run --Werror $formatted || status=1
elif [ -n "${CI:-}" ]; then
    echo "style: clang-format 14 is needed where CI is set: install clang-format-14" >&2
    status=1
else
    echo "not checked here: the layout of the source (clang-format 14 is not installed)"
fi
exit $status
