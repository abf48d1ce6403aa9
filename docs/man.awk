# SPDX-License-Identifier: Apache-2.0
# awk -f man.awk -v name=NAME -v section=1|5 -v also="NAME(SECTION) ..." cake-mpi.1.md PAGE.md makes a page of the manual.
# In: the first line of cake-mpi.1.md (date and version), then Markdown as docs/ has it: headings, paragraphs, lists,
# tables, code, and pandoc's lists of definitions (": text" below a term). Out: roff.

function escaped(s, code) {
    gsub(/\\/, "\\(rs", s)
    if (code) {
        gsub(/-/, "\\-", s)
        gsub(/'/, "\\(aq", s)
        gsub(/\^/, "\\(ha", s)
        gsub(/~/, "\\(ti", s)
    }
    return s
}
# `code`, **bold**, *italic* and [text](link) become fonts; links that lead out of docs/ are kept.
function prose(s,   out, bold, italic, end, link) {
    while (match(s, /`|\*\*?|\[[^]]*\]\([^)]*\)/)) {
        out = out escaped(substr(s, 1, RSTART - 1))
        link = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        if (link == "`") {
            end = index(s, "`")
            link = substr(s, 1, end - 1)
            s = substr(s, end + 1)
            if (link !~ / /) sub(/[[(]*$/, "\\%&", out) # a word: not to be hyphenated
            out = out "\\fB" escaped(link, 1) (bold ? "" : "\\fR")
        } else if (link == "**") {
            bold = !bold
            out = out (bold ? "\\fB" : "\\fR")
        } else if (link == "*") {
            italic = !italic
            out = out (italic ? "\\fI" : "\\fR")
        } else {
            end = index(link, "](")
            out = out prose(substr(link, 2, end - 2))
            link = substr(link, end + 2, length(link) - end - 2)
            if (link ~ /:\/\//) out = out " <" escaped(link, 1) ">"
        }
    }
    out = out escaped(s)
    return (out ~ /^[.']/ ? "\\&" : "") out
}
function paragraph() {
    if (before !~ /^#/) print (before == "break" ? ".br" : ".PP")
}
# A line of text is held back until the next one tells whether it is a term.
function flush() {
    if (held == "") return
    paragraph()
    before = sub(/\\$/, "", held) ? "break" : ""
    print prose(held)
    held = ""
}
function end_list() {
    if (nested) print ".RE"
    nested = 0
}
# One paragraph of a definition, or an item of a list in it.
function definition(s) {
    if (s ~ /^- /) {
        if (!nested) print ".RS"
        nested = 1
        print ".IP \\(bu 2\n" prose(substr(s, 3))
        return
    }
    end_list()
    print (held != "" ? ".TP\n" prose(held) : ".IP") "\n" prose(s)
    held = ""
}
# The first cell of a table's row is the tag, the others stand below it.
function row(s,   n, cell, i) {
    n = split(s, cell, /[ \t]*\|[ \t]*/)
    print ".TP\n" prose(cell[2])
    for (i = 3; i < n; i++)
        if (cell[i] != "") print (i > 3 && cell[i - 1] != "" ? ".br\n" : "") prose(cell[i])
}
function to(next_part) { # "code" or ""
    if (part == "code" && next_part != "code") print ".EE"
    if (part != "code" && next_part == "code") {
        paragraph()
        print ".EX"
    }
    if (part) before = ""
    part = next_part
}

FILENAME == ARGV[1] {
    if (FNR > 1) next
    split($0, word, " ")
    printf ".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by docs/man.awk.\n"
    printf ".TH %s %s \"%s\" \"%s %s\" \"%s\"\n", toupper(name), section, word[2], word[3], word[4], (section == 1 ? "User Commands" : "File Formats")
    next
}
/^<!--/ { next }
!fenced && /^: / { definition(substr($0, 3)); next }
{ flush(); end_list() }
/^```/ { to(part == "code" ? "" : "code"); fenced = !fenced; next }
fenced { print escaped($0, 1); next }
/^    / {
    to("code")
    line = escaped(substr($0, 5), 1)
    print (line ~ /^[.']/ ? "\\&" : "") line
    next
}
{ to("") }
/^#/ { before = "#" }
/^# / {
    sub(/^# [^:]*: /, "")
    printf ".SH NAME\n%s \\- %s\n%s", escaped(name, 1), prose($0), (section == 5 ? ".SH DESCRIPTION\n" : "")
    next
}
/^## / { print ".SH " toupper(substr($0, 4)); next }
/^### / { print ".SS " prose(substr($0, 5)); next }
/^[-|]|^[0-9]+\. / { before = "" }
/^[0-9]+\. / { print ".IP " $1 " 3\n" prose(substr($0, length($1) + 2)); next }
/^- / { print ".IP \\(bu 2\n" prose(substr($0, 3)); next }
/^\|/ {
    if ($0 ~ /^\|[-|]*$/) table = 1
    else if (table) row($0)
    next
}
{ table = 0 }
/^[ \t]*$/ { next }
{ held = $0 }
END {
    flush()
    to("")
    print ".SH SEE ALSO"
    n = split(also, word, /[ (]/)
    for (i = 1; i < n; i += 2) print ".BR " escaped(word[i], 1) " (" word[i + 1] (i + 1 < n ? "," : "")
}
