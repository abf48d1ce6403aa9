#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/generate.sh [DIR]: writes cake-mpi.1 and cake-mpi.bash to DIR (default: docs/) from src/options and the texts in
# docs/. Both are committed: run this after a change of options.def, commands.def, options.md, cake-mpi.1.md or cake-mpi.bash.in.
set -e
docs=$(cd "$(dirname "$0")" && pwd)
out=${1:-$docs}
tables="$docs/../bench/shapes.c $docs/../src/options/commands.def $docs/../src/options/options.def $docs/../src/options/options.md"
awk=${AWK:-awk}

# shellcheck disable=SC2086
fill() { "$awk" -f "$docs/options.awk" $tables "$1"; }
fill "$docs/cake-mpi.1.md" >"$out/cake-mpi.1.tmp"
"$awk" -f "$docs/man.awk" -v name=cake-mpi -v section=1 -v also="cake-mpi-formats(5) cake-mpi-topology(5) mpirun(1)" \
    "$docs/cake-mpi.1.md" - <"$out/cake-mpi.1.tmp" >"$out/cake-mpi.1"
rm "$out/cake-mpi.1.tmp"
fill "$docs/cake-mpi.bash.in" >"$out/cake-mpi.bash"
