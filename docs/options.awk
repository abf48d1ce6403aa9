# SPDX-License-Identifier: Apache-2.0
# awk -f options.awk shapes.c commands.def options.def options.md FRAME: prints FRAME with each @NAME@ replaced by what the
# tables say: of the man page, in Markdown for man.awk, if FRAME ends in .md; else of the completion for bash.
# docs/generate.sh calls.

function fail(text) { print "options.awk: " FILENAME ":" FNR ": " text >"/dev/stderr"; exit 1 }

# The arguments of a macro call into arg[]; adjacent strings are joined.
function read_arguments(s,   n, c) {
    n = split("", arg)
    arg[++n] = ""
    sub(/^[A-Z]+\(/, "", s)
    sub(/\)$/, "", s)
    while (s != "")
        if (match(s, /^"([^"\\]|\\.)*"/)) {
            c = substr(s, 2, RLENGTH - 2)
            s = substr(s, RLENGTH + 1)
            gsub(/\\\\/, "\\", c)
            arg[n] = arg[n] c
        } else {
            c = substr(s, 1, 1)
            s = substr(s, 2)
            if (c == ",") arg[++n] = ""
            else if (c != " ") arg[n] = arg[n] c
        }
}
function takes(option, command) { return ("|" bits[option] "|") ~ ("\\|" bit[command] "\\|") }

# Markdown: words of a usage line, an option with its argument, a help line as a sentence.
function usage_markdown(s,   n, word, i, left, right, out) {
    n = split(s, word, " ")
    for (i = 1; i <= n; i++) {
        match(word[i], /^[[(]*/)
        left = substr(word[i], 1, RLENGTH)
        word[i] = substr(word[i], RLENGTH + 1)
        match(word[i], /[]).|]*$/)
        right = substr(word[i], RSTART)
        word[i] = substr(word[i], 1, RSTART - 1)
        if (word[i] ~ /^[A-Z]/ || word[i] == "options") word[i] = "*" word[i] "*"
        else if (word[i] != "") word[i] = "`" word[i] "`"
        out = out (i > 1 ? " " : "") left word[i] right
    }
    return out
}
function argument_markdown(option) {
    if (argument[option] == "NULL") return ""
    return kind[option] == "SEED" ? "[=*" argument[option] "*]" : " *" argument[option] "*"
}
function marked(s,   out, n) { # options become code
    while (match(s, /`[^`]*`|[ (]--?[a-z][-a-z]*/)) {
        n = substr(s, RSTART, 1) != "`"
        out = out substr(s, 1, RSTART - 1 + n) (n ? "`" substr(s, RSTART + 1, RLENGTH - 1) "`" : substr(s, RSTART, RLENGTH))
        s = substr(s, RSTART + RLENGTH)
    }
    return out s
}
function sentence(help, first,   otherwise) {
    if (match(help, / \[[^][]*\]$/)) {
        otherwise = " Default: " substr(help, RSTART + 2, RLENGTH - 3) "."
        help = substr(help, 1, RSTART - 1)
    }
    return first marked((first == "" ? toupper(substr(help, 1, 1)) : substr(help, 1, 1)) substr(help, 2) "." otherwise)
}
function listed(text, word) { return text (text == "" ? "" : ", ") word }
function enumerated(list) { # words as "a, b and c"
    gsub(/ /, ", ", list)
    if (match(list, /, [^,]*$/)) list = substr(list, 1, RSTART - 1) " and " substr(list, RSTART + 2)
    return list
}
function commands_of(option,   i, out) {
    for (i = 1; i <= n_command; i++)
        if (takes(option, i)) out = listed(out, "`" command[i] "`")
    return out
}
# The usage line of a command, with options that not all commands take; `run` takes too many to list.
function synopsis(c,   i, out) {
    if (bit[c] == "RUN") return usage_markdown(usage[c])
    out = usage[c]
    sub(/ \[options\]$/, "", out)
    out = usage_markdown(out) (bit[c] == "PLAN" ? " [*options of* `run`]" : "")
    for (i = 1; i <= n_option; i++)
        if (takes(i, c) && !common[i] && !(bit[c] == "PLAN" && bits[i] ~ /^RUN(\||$)/) && index(usage[c], short[i] " ") == 0)
            out = out " [`" short[i] "`" argument_markdown(i) "]"
    return out
}
function entry(i,   j, n, more, out) {
    for (j = 1; j < i; j++)
        if (name[j] == name[i]) return ""
    out = "\n" (letter[i] ? "`-" letter[i] "`, " : "") "`--" name[i] "`" argument_markdown(i)
    for (j = n = i; j <= n_option; j++)
        if (name[j] == name[i] && j != i) n = j
    for (j = i; j <= n; j++)
        if (name[j] == name[i]) out = out "\n: " sentence(help[j], n > i ? "With " commands_of(j) ": " : "")
    more = text["--" name[i]]
    if (n == i) sub(/^\n: [^-]/, " &", more) # in the same paragraph
    sub(/^ \n: /, " ", more)
    return out more
}
function page(what,   i, out) {
    if (what == "synopsis") {
        for (i = 1; i <= n_command; i++) out = out usage_markdown(usage[i]) (i < n_command ? "\\\n" : "")
    } else if (what == "common") {
        for (i = 1; i <= n_option; i++)
            if (common[i]) out = listed(out, "`" short[i] "`")
        out = out ", `-h` and `--version`"
    } else if (what == "options") {
        for (i = 1; i <= n_option; i++) {
            if (group[i] != group[i - 1]) out = out "\n### " group[i] text[group[i]]
            out = out entry(i)
        }
    } else {
        for (i = 1; i <= n_command && command[i] != what; i++) ;
        if (i > n_command) fail("@" what "@ is neither a command nor a list")
        out = synopsis(i)
    }
    return out
}

# The completion: how an argument is completed, patterns of case, lists of words.
function completed_as(i) {
    if (argument[i] == "NULL" || kind[i] == "SEED" || words[name[i]] != "") return ""
    return argument[i] ~ /^(FILE|DIR|MODEL)$/ ? "file" : "other"
}
function pattern(as,   i, seen, out) {
    for (i = 1; i <= n_option; i++)
        if (completed_as(i) == as && !seen[name[i]]++)
            out = out (out == "" ? "" : " | ") (letter[i] ? "-" letter[i] " | " : "") "--" name[i]
    return out
}
function completion(what,   i, j, out) {
    if (what == "files") return pattern("file")
    if (what == "others") return pattern("other")
    for (i = 1; what == "commands" && i <= n_command; i++) out = out (i > 1 ? " " : "") command[i]
    for (i = 1; what == "choices" && i <= n_option; i++)
        if (words[name[i]] != "") out = out (out == "" ? "" : "\n    ") "--" name[i] ") choices=\"" words[name[i]] "\" ;;"
    for (i = 1; what == "options" && i <= n_command; i++) {
        out = out (i > 1 ? "\n    " : "") command[i] ") options=\""
        for (j = 1; j <= n_option; j++)
            if (takes(j, i)) out = out "--" name[j] " "
        out = out "--help --version\" ;;"
    }
    if (out == "") fail("@" what "@ is no list")
    return out
}

BEGIN { # of options whose argument does not list them
    words["log"] = "error warn info debug"
}
FILENAME ~ /shapes\.c$/ { # rows of the table begin with a name
    if (match($0, /^ *\{"[a-z0-9.-]+",/)) {
        split($0, field, "\"")
        words["shape"] = words["shape"] (words["shape"] == "" ? "" : " ") field[2]
    }
    next
}
FILENAME ~ /\.def$/ {
    if (/^[A-Z]+\(/) record = ""
    else if (record == "") next
    record = record $0
    if (!/\)$/) next
    read_arguments(record)
    if (record ~ /^COMMAND/) {
        command[++n_command] = arg[1]
        bit[n_command] = arg[2]
        usage[n_command] = arg[3]
    } else {
        group[++n_option] = arg[1]
        bits[n_option] = arg[2]
        name[n_option] = arg[3]
        letter[n_option] = arg[4] == "0" ? "" : substr(arg[4], 2, 1)
        short[n_option] = arg[4] == "0" ? "--" arg[3] : "-" letter[n_option]
        kind[n_option] = arg[5]
        argument[n_option] = arg[6]
        help[n_option] = arg[10]
        if (gsub(/\|/, " ", arg[6])) words[arg[3]] = arg[6]
        common[n_option] = split(arg[2], arg, "|") == n_command
        known["--" name[n_option]] = known[group[n_option]] = 1
    }
    record = ""
    next
}
FILENAME ~ /options\.md$/ {
    if (sub(/^## /, "")) {
        if (!known[$0]) fail("there is no option or group " $0)
        section = $0
    } else if (section != "" && $0 != "") {
        gsub(/@shapes@/, enumerated(words["shape"]))
        text[section] = text[section] "\n" (section ~ /^--/ ? ": " : "") $0
    }
    next
}
{
    while (match($0, /@[a-z]+@/)) {
        left = substr($0, 1, RSTART - 1)
        what = substr($0, RSTART + 1, RLENGTH - 2)
        right = substr($0, RSTART + RLENGTH)
        $0 = left (FILENAME ~ /\.md$/ ? page(what) : completion(what)) right
    }
    print
}
