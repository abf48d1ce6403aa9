#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The generated tables are up to date with src/text/unicode_tables.py. Needs Python and the Unicode character database of the
# tables' release, in $UCD or from Debian's unicode-data; skipped without them.
set -u
text=${top_srcdir:-.}/src/text
ucd=${UCD:-/usr/share/unicode}
release=$(sed -n 's/^RELEASE = "\(.*\)"/\1/p' "$text/unicode_tables.py")
if ! command -v python3 >/dev/null || ! head -1 "$ucd/DerivedAge.txt" 2>/dev/null | grep -qF -- "-$release.txt"; then
    echo "skipped: needs python3 and Unicode $release in $ucd (set UCD=FOLDER)"
    exit 77
fi
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
python3 "$text/unicode_tables.py" "$ucd" "$made" || exit 1
status=0
for table in unicode_age.inc unicode_scripts.inc; do
    cmp "$text/$table" "$made/$table" || { echo "unicode: $table is stale: run src/text/unicode_tables.py $ucd" >&2; status=1; }
done
exit $status
