#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels of kernels/cuda for all supported GPUs, with warnings as errors, and compares the resources of each
# kernel at capability 9.0 with tests/gpu/resources.txt: registers per thread, bytes of shared memory per block, spilled
# bytes, and the maximum of spilled bytes over all GPUs. tests/gpu/resources.sh print: the current table. $CAKE_KEEP: a folder
# for the objects, which are those of a build for all GPUs. Needs nvcc.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
targets="75 80 89 90a 100 120"
status=0
cd "$root" || exit 1

flags="$(sed -n 's/^nvcc_flags = //p' kernels/cuda/local.am) -O3 -Xptxas -v -Isrc -I."
for target in $targets; do
    flags="$flags -gencode arch=compute_$target,code=sm_$target"
done
flags="$flags -gencode arch=compute_120,code=compute_120"
export flags work
printf '%s\n' kernels/cuda/*.cu | xargs -P "$(nproc)" -n 1 sh -c '
    name=$(basename "$0" .cu)
    nvcc $flags -c "$0" -o "$work/$name.o" >"$work/$name.log" 2>&1 || : >"$work/$name.failed"'
[ -z "${CAKE_KEEP:-}" ] || { mkdir -p "$CAKE_KEEP/kernels/cuda" && mv "$work"/*.o "$CAKE_KEEP/kernels/cuda"; }
for file in kernels/cuda/*.cu; do
    log=$work/$(basename "$file" .cu).log
    [ ! -e "${log%.log}.failed" ] ||
        { echo "not ok - $file does not compile"; grep -E 'error|warning' "$log"; status=1; continue; }
    echo "ok - $file: $targets"
    # Three lines a kernel and target: its name, what it spills, what it uses.
    awk '/Compiling entry function/ { split($0, part, "\047"); name = part[2]; target = part[4]; spilled = 0 }
         /spill stores/ && name { for (i = 3; i <= NF; i++) if ($i == "spill") spilled += $(i - 2) }
         /Used [0-9]+ registers/ && name {
             if (spilled > most[name]) most[name] = spilled
             if (target == "sm_90a") {
                 memory = 0
                 for (i = 2; i <= NF; i++) if ($i ~ /^smem/) memory = $(i - 2)
                 match($0, /Used [0-9]+/); takes[name] = substr($0, RSTART + 5, RLENGTH - 5) " " memory " " spilled
             }
             name = "" }
         END { for (name in takes) print name, takes[name], most[name] + 0 }' "$log" >>"$work/found"
done
c++filt <"$work/found" 2>/dev/null | sed 's/(\(int\|bool\))//g; s/^void //; s/(.*)//; s/, /,/g; s/ >/>/g' | LC_ALL=C sort >"$work/table"
[ "${1:-}" != print ] || { cat "$work/table"; exit $status; }
while read -r name registers memory spilled elsewhere; do
    read -r _ most_registers most_memory most_spilled most_elsewhere < <(grep -F "$name " tests/gpu/resources.txt) ||
        { echo "not ok - $name is not in tests/gpu/resources.txt"; status=1; continue; }
    if [ "$registers" -le "$most_registers" ] && [ "$memory" -le "$most_memory" ] && [ "$spilled" -le "$most_spilled" ] &&
        [ "$elsewhere" -le "$most_elsewhere" ]; then
        echo "ok - $name: $registers registers, $memory bytes, $spilled spilled, elsewhere up to $elsewhere"
    else
        echo "not ok - $name: $registers registers, $memory bytes, $spilled spilled, elsewhere up to $elsewhere;" \
            "the table has $most_registers, $most_memory, $most_spilled, $most_elsewhere"
        status=1
    fi
done <"$work/table"
exit $status
