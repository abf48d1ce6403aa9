#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The man page and the completion are up to date with docs/generate.sh and have every command and option of --help. The
# pages made of docs/formats.md and docs/topology.md have every word of these. mandoc and groff report no error.
# Environment: top_srcdir, top_builddir. $CAKE_MPI: another program that answers --help.
set -u
root=${top_srcdir:-.}
program=${CAKE_MPI:-${top_builddir:-.}/cake-mpi}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

# "-m, --model DIR", one a line, from --help on standard input.
specs() {
    sed -n -E 's/^ {2,6}((-[a-z], )?--[a-z][a-z-]*(\[=[A-Z]+\]| [^ ]+)?).*/\1/p'
}
same() { # WHAT FILE FILE
    if ! diff "$2" "$3" >"$tmp/diff"; then
        echo "$1 ($(basename "$2") <, $(basename "$3") >):"
        sed 's/^/    /' "$tmp/diff"
        status=1
    fi
}

mkdir "$tmp/docs"
"$root/docs/generate.sh" "$tmp/docs" || { echo "docs/generate.sh: status $?"; status=1; }
for file in cake-mpi.1 cake-mpi.bash; do
    cmp -s "$root/docs/$file" "$tmp/docs/$file" || { echo "docs/$file is stale: run docs/generate.sh"; status=1; }
done
"$program" --help >"$tmp/main.help" || { echo "$program --help: status $?"; exit 1; }
grep -q "^\.TH .* \"$("$program" --version | sed -n '1s/^\(cake-mpi [0-9.]*\).*/\1/p')\"" "$root/docs/cake-mpi.1" ||
    { echo "docs/cake-mpi.1.md and --version name different versions"; status=1; }
commands=$(sed -n '/^Usage:/,/^Input/s/^\([a-z][a-z]*\)  .*/\1/p' "$tmp/main.help")
[ -n "$commands" ] || { echo "no commands in --help"; exit 1; }
# shellcheck disable=SC1091
. "$root/docs/cake-mpi.bash" || exit 1
complete_words() { # as bash asks for them
    COMP_WORDS=(cake-mpi "$@") COMP_CWORD=$#
    _cake_mpi
    printf '%s\n' "${COMPREPLY[@]}" | sort
}
for command in $commands; do
    "$program" "$command" --help | specs | sort >"$tmp/$command.specs"
    [ -s "$tmp/$command.specs" ] || { echo "no options in $command --help"; status=1; }
    sed -E 's/^(-[a-z], )?(--[a-z-]*).*/\2/' "$tmp/$command.specs" | sort >"$tmp/$command-help"
    complete_words "$command" -- >"$tmp/$command-completion"
    same "options of $command: help and completion differ" "$tmp/$command-help" "$tmp/$command-completion"
    sort -u "$tmp/$command.specs" >>"$tmp/all.specs"
done
sort -u "$tmp/all.specs" >"$tmp/help"
sed -e 's/\\-/-/g' -e 's/\\f[BIR]//g' -e 's/\\%//g' "$root/docs/cake-mpi.1" >"$tmp/man"
grep -E '^(-[a-z], )?--[a-z]' "$tmp/man" | sort >"$tmp/page"
same "options: help and man page differ" "$tmp/help" "$tmp/page"
echo "$commands" | sort >"$tmp/help-commands"
sed -n '/^\.SH COMMANDS/,/^\.SH OPTIONS/s/^\.SS //p' "$tmp/man" | sort >"$tmp/page-commands"
same "commands: help and man page differ" "$tmp/help-commands" "$tmp/page-commands"
# Pages of files: the words of the Markdown without its marks, those of the page without its requests.
for page in formats topology; do
    file=${top_builddir:-.}/docs/cake-mpi-$page.5
    [ -s "$file" ] || { echo "$file is not there: make it"; status=1; continue; }
    awk '/^\|[-|]*$/ { held = ""; next } held != "" { print held; held = "" } /^\|/ { held = $0; next } { print } END { print held }' "$root/docs/$page.md" |
        sed -e '/^# /s/^# [^:]*://' -e '/^## /s/.*/\U&/' -e 's/^#* //' -e 's/^- //' -e 's/^[0-9]*\. //' -e '/^```/d' -e 's/^ *| *//' -e 's/ | / /g' -e 's/ *|$//' -e 's/\*\*//g' \
            -e 's/\[\([^]]*\)\](\([^):]*:[^)]*\))/\1 <\2>/g' -e 's/\[\([^]]*\)\]([^)]*)/\1/g' -e 's/`//g' | tr -s ' \n' '\n' | grep . >"$tmp/words-source"
    sed -n '/^\.SH DESCRIPTION/,/^\.SH SEE ALSO/p' "$file" | sed -e '1d;$d' -e 's/^\.S[HS] //' -e '/^\.IP /d' -e '/^\.[A-Z]*$/d' -e '/^\.br$/d' \
        -e 's/\\f[BR]//g' -e 's/\\[%&]//g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(ha/^/g' -e 's/\\(ti/~/g' -e 's/\\(rs/\\/g' |
        { sed -n 's/^cake.*-mpi.*-[a-z]* .*- //p' "$file" | head -n 1; cat; } | tr -s ' \n' '\n' | grep . >"$tmp/words-page"
    same "docs/$page.md and its page differ in words" "$tmp/words-source" "$tmp/words-page"
done
for file in "$root/docs/cake-mpi.1" "${top_builddir:-.}"/docs/cake-mpi-*.5; do
    ! command -v mandoc >/dev/null || mandoc -T lint -W warning "$file" || status=1
    ! command -v groff >/dev/null || [ -z "$(groff -man -ww -Kutf8 -Tutf8 "$file" 2>&1 >/dev/null | tee /dev/stderr)" ] || status=1
done
[ $status = 0 ] && echo "$(wc -l <"$tmp/help") options and $(wc -l <"$tmp/help-commands") commands agree"
exit $status
