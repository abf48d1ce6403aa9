#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart without the permission to install: it names the packages for apt, dnf and Spack, changes nothing and ends
# with status 1. An unknown argument is a usage error.
set -u
root=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0
check() { # NAME: the last status is good or bad
    if [ $? = 0 ]; then echo "  Test: $1 ...passed"; else echo "  Test: $1 ...FAILED" && status=1; fi
}

mkdir "$tmp/bin"
for tool in bash sed tr id cat dirname env; do
    ln -s "$(command -v $tool)" "$tmp/bin/$tool"
done
cp "$root/quickstart" "$tmp/quickstart"
env -i PATH="$tmp/bin" bash "$tmp/quickstart" >"$tmp/out" 2>&1 </dev/null
[ $? = 1 ]
check "no apt: status 1"
grep -q 'missing: make autoconf automake pkg-config gcc mpicc mpirun' "$tmp/out"
check "no apt: what is missing is named"
grep -q 'apt-get install .*libopenmpi-dev.*libjansson-dev' "$tmp/out" &&
    grep -q 'dnf install .*openmpi-devel.*jansson-devel' "$tmp/out" && grep -q 'spack install .*jansson' "$tmp/out"
check "no apt: packages for apt, dnf and Spack"
[ ! -e "$tmp/build" ] && [ ! -e "$tmp/configure" ]
check "no apt: nothing is changed"
bash "$tmp/quickstart" nonsense >"$tmp/out" 2>&1 </dev/null
[ $? = 2 ] && grep -q 'quickstart check' "$tmp/out"
check "an unknown word: status 2 and usage"
[ $status = 0 ] || cat "$tmp/out"
exit $status
