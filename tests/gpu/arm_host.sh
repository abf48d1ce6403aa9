#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether nvcc makes the same PTX of kernels/cuda for a host with an Arm processor as for one with x86-64: there `char` has no
# sign, and nvcc follows the host. What is proved of the one is proved of the other then. A bool is loaded with a sign or
# without, which is the same. Needs nvcc and aarch64-linux-gnu-g++.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include=$(nvcc --dryrun -E -x cu /dev/null 2>&1 | sed -n 's/^.*INCLUDES="-I\([^"]*\)".*/\1/p' | head -n 1)
flags="$(sed -n 's/^nvcc_flags = //p' kernels/cuda/local.am) -O3 -ptx -arch=compute_90a -Isrc -I. -I$include -isystem $include/cccl"
export work flags
# shellcheck disable=SC2016
printf '%s\n' kernels/cuda/*.cu | xargs -P "$(nproc)" -n 1 sh -c '
    name=$work/$(basename "$0")
    { nvcc $flags "$0" -o "$name.x86" && nvcc $flags -ccbin aarch64-linux-gnu-g++ "$0" -o "$name.arm"; } >"$name.log" 2>&1 ||
        { cat "$name.log"; echo "not ok - $0 does not compile for a host with an Arm processor"; exit 1; }
    sed -i "s/ld\.param\.s8/ld.param.u8/" "$name.x86"
    cmp "$name.x86" "$name.arm" && echo "ok - $0: the same PTX for Arm" || { echo "not ok - $0: other PTX for Arm"; exit 1; }'
