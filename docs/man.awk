# SPDX-License-Identifier: Apache-2.0
# A page of the manual from a page of docs/: awk -f man.awk -v name=NAME -v also=NAME cake-mpi.1 PAGE.md. In: the .TH line of
# cake-mpi.1 (date and version), then Markdown as docs/ has it: headings, paragraphs, lists, tables, code. Out: roff.

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
# `code`, **bold** and [text](link) become fonts; of links those that lead out of docs/ are kept.
function prose(s,   out, bold, end, link) {
    while (match(s, /`|\*\*|\[[^]]*\]\([^)]*\)/)) {
        out = out escaped(substr(s, 1, RSTART - 1))
        link = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        if (link == "`") {
            end = index(s, "`")
            link = substr(s, 1, end - 1)
            s = substr(s, end + 1)
            out = out "\\fB" (link ~ / / ? "" : "\\%") escaped(link, 1) (bold ? "" : "\\fR")
        } else if (link == "**") {
            bold = !bold
            out = out (bold ? "\\fB" : "\\fR")
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
    if (before !~ /^#/) print ".PP"
}
# Of a table the first cell is the tag, the others stand below it.
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
    if (/^\.TH /) {
        split($0, word, "\"")
        printf ".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by docs/man.awk.\n"
        printf ".TH %s 5 \"%s\" \"%s\" \"File Formats\"\n", toupper(name), word[2], word[4]
    }
    next
}
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
    printf ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", escaped(name, 1), prose($0)
    next
}
/^## / { print ".SH " toupper(substr($0, 4)); next }
/^### / { print ".SS " prose(substr($0, 5)); next }
/^[-|]/ { before = "" }
/^- / { print ".IP \\(bu 2\n" prose(substr($0, 3)); next }
/^\|/ {
    if ($0 ~ /^\|[-|]*$/) table = 1
    else if (table) row($0)
    next
}
{ table = 0 }
/^[ \t]*$/ { next }
{
    paragraph()
    print prose($0)
    before = ""
}
END {
    to("")
    print ".SH SEE ALSO\n.BR cake\\-mpi (1),\n.BR " escaped(also, 1) " (5)"
}
