#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every command of docs/tutorial.md in order, in a folder that looks like the top of the tree. A block of commands fails if its last command fails, or any command that has a line of its own. The
# tutorial's model comes from the network, or from $CAKE_SMOLLM2, the folder of its file; without both, all other commands
# take the demo's model, and a line says so.
. "$(dirname "$0")/shell.sh"
unset CAKE_RATES
unset HWLOC_COMPONENTS HWLOC_PLUGINS_PATH # all that there is

mkdir "$dir/bin" "$dir/tree" "$dir/tree/build"
for each in quickstart jobs bench docs tests topologies; do ln -s "$root/$each" "$dir/tree/$each"; done
ln -s "$cake" "$dir/tree/build/cake-mpi"
printf '#!/bin/sh\n' >"$dir/bin/make" && chmod +x "$dir/bin/make" # quickstart finds a tree that is built
: >"$dir/tree/configure" >"$dir/tree/build/Makefile" >"$dir/tree/build/config.h"
[ -z "${CAKE_SMOLLM2:-}" ] || ln -s "$(cd "$CAKE_SMOLLM2" && pwd)" "$dir/tree/build/smollm2"
unset CAKE_SMOLLM2 # no option of the program
launcher=${MPIRUN:-mpirun}
cat >"$dir/bin/mpirun" <<END
#!/bin/bash
while [ \$# -gt 0 ]; do
    case \$1 in
    -np | -n) np=\$2 ;;
    *) break ;;
    esac
    shift 2
done
MPIRUN=$(command -v "$launcher") PATH=\${PATH#*:} exec "$root/tests/mpirun.sh" "\$np" "\$@"
END
chmod +x "$dir/bin/mpirun"
command -v gnuplot >/dev/null || { printf '#!/bin/sh\n' >"$dir/bin/gnuplot" && chmod +x "$dir/bin/gnuplot"; }
export PATH=$dir/bin:$PATH TMPDIR=$dir # `stage` writes to TMPDIR
unset SLURM_JOB_ID

# A file for each block, named by the line where it begins.
awk -v dir="$dir" '/^```/ { block = ""; if ($0 == "```sh") { block = sprintf("%s/block-%04d", dir, NR + 1) } next } block { print >block }' "$root/docs/tutorial.md"
[ "$(ls "$dir"/block-* | wc -l)" -ge 12 ]
ok "the tutorial has commands" $?
! awk '/^```/ { inside = !inside } !inside' "$root/docs/tutorial.md" | grep -E '^(    |\t)(build/cake-mpi|cake-mpi|mpirun|bench/|sbatch)'
ok "and all of them are in such blocks" $?
cd "$dir/tree" || exit 1
demo=
for block in "$dir"/block-*; do
    # Exported variables of a block are set for later blocks.
    bash -e -o pipefail -c "[ ! -e '$dir/exports' ] || . '$dir/exports'; . '$block'; export -p >'$dir/exports'" >"$dir/out" 2>&1 </dev/null
    status=$?
    if [ $status != 0 ] && grep -q '^quickstart: no model' "$dir/out"; then
        sed 's/^/    /' "$dir/out"
        echo "not checked here: the tutorial with SmolLM2, which could not be fetched; with the demo's model instead"
        sed -i 's|MODEL=build/smollm2/.*|MODEL=jobs/demo/model|' "$dir"/block-*
        demo=1
        continue
    fi
    [ $status = 0 ] || { cat "$block" && tail -n 20 "$dir/out"; } | sed 's/^/    /'
    ok "line ${block##*-}: $(tail -n 1 "$block" | cut -c1-80)" $status
done

# The tutorial's statements about the files.
[ "$(wc -l <answers.txt)" = 2 ] && { [ -n "$demo" ] || { grep -q Tokyo answers.txt && grep -q cold answers.txt; }; }
ok "answers" $?
grep -q top_p wrong-results.jsonl
ok "the error record" $?
for file in planned staged limited replicas merged lines; do
    diff <(grep -o '"text".*' results.jsonl) <(grep -o '"text".*' $file.jsonl) >"$dir/out"
    ok "$file.jsonl has the same answers" $?
done
[ -s run.csv ] && [ -s study.csv ] && grep -q '^| 2 |' study.md
ok "figures of the run and of the study" $?
finish
