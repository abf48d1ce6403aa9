#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes unicode_age.inc and unicode_scripts.inc from the Unicode character database, release 17.0.0.
For maintainers: the build needs only the committed files.
unicode_tables.py UCD [FOLDER]: UCD holds DerivedAge.txt, Scripts.txt and UnicodeData.txt, as in
https://www.unicode.org/Public/17.0.0/ucd/; FOLDER, default that of this script, gets the two files."""
import os
import sys

RELEASE = "17.0.0"
OLD = 8  # the oldest release that a part of the tokenizers library has; older characters need no row
SCRIPTS = 9  # the release of its scripts


def read(path):
    """The rows of a file of the database: first and last character, then the other fields."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = [field.strip() for field in line.split("#")[0].split(";")]
            if len(fields) > 1:
                first, _, last = fields[0].partition("..")
                yield int(first, 16), int(last or first, 16), fields[1:]


def categories(path):
    """{character: general category}. Large ranges have a row for the first and one for the last character."""
    found, start = {}, None
    for code, _, fields in read(path):
        if fields[0].endswith(", First>"):
            start = code
            continue
        for each in range(start if fields[0].endswith(", Last>") else code, code + 1):
            found[each] = fields[1]
    return found


def write(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* SPDX-License-Identifier: Apache-2.0 AND Unicode-3.0\n *\n"
                   f" * Made by unicode_tables.py from the Unicode character database {RELEASE}. Do not edit.\n */\n")
        file.writelines(row + "\n" for row in rows)


def main():
    ucd, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(sys.argv[0]))
    with open(f"{ucd}/DerivedAge.txt", encoding="utf-8") as file:
        if f"-{RELEASE}." not in file.readline():
            sys.exit(f"{ucd}/DerivedAge.txt is not of release {RELEASE}")
    age = {code: int(fields[0].split(".")[0]) for first, last, fields in read(f"{ucd}/DerivedAge.txt")
           for code in range(first, last + 1)}
    category = categories(f"{ucd}/UnicodeData.txt")
    ranges = []
    for code in sorted(code for code in category if age[code] > OLD):
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2:] == [age[code], category[code]]:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, age[code], category[code]])
    write(f"{folder}/unicode_age.inc", (f"{{0x{first:X}, 0x{last:X}, {version}, {name.upper()}}},"
                                        for first, last, version, name in ranges))
    scripts = {fields[0] for first, last, fields in read(f"{ucd}/Scripts.txt")
               if min(age[code] for code in range(first, last + 1)) <= SCRIPTS}
    write(f"{folder}/unicode_scripts.inc", (f"SCRIPT({name})" for name in sorted(scripts)))


main()
