#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/arm64.sh DIR BUILD [TEST...]: the program for 64-bit Arm, built by cross-compiler in DIR/build against a Debian in
# DIR/root, and its tests by qemu. BUILD has the program for this machine: golden models must have the same answers by both,
# plain C as plain C, NEON as AVX2, SVE of 512 bits as AVX-512. TEST...: what `make check` runs there, by default unit tests
# of what depends on the processor; `all` runs everything, which takes hours. Each program there becomes a script that starts
# it by qemu, so mpirun of this machine starts ranks of it.
set -u
[ $# -ge 2 ] || {
    sed -n '3s/^# \([^:]*\):.*/usage: \1/p' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1" || exit 1
dir=$(cd "$1" && pwd) there=$(cd "$2" && pwd) || exit 1
shift 2
folders="base|engine|formats|kernels|link|sample|tensors|tokenizer"
sysroot=$dir/root
packages=libopenmpi-dev,libhwloc-dev,libhdf5-dev,libcunit1-dev,libjansson-dev,libpcre2-dev,libutf8proc-dev,libcurl4-openssl-dev,libzstd-dev,libyaml-dev,zlib1g-dev
for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64-static debootstrap dpkg-deb; do
    command -v $tool >/dev/null || { echo "missing tool: $tool"; exit 1; }
done

# Packages are unpacked and not installed, which would take programs of Arm. Links to absolute paths become relative ones.
make_sysroot() {
    local package link to
    debootstrap --arch=arm64 --foreign --variant=minbase --include=$packages "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$sysroot" || return 1
    for package in "$sysroot"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$sysroot" || return 1; done
    find "$sysroot" -xtype l | while read -r link; do
        to=$(readlink "$link")
        [ "${to#/}" = "$to" ] || [ ! -e "$sysroot$to" ] || ln -sfn "$(realpath --relative-to="$(dirname "$link")" "$sysroot$to")" "$link"
    done
    touch "$sysroot.made"
}
[ -e "$sysroot.made" ] || { rm -rf "$sysroot" && make_sysroot >"$dir/root.log" 2>&1; } || { tail -5 "$dir/root.log"; exit 1; }

choose_tests() { # WHICH; tests: programs and scripts, or nothing for all
    case "$1" in
    all) tests= ;;
    '') tests=$(printf 'include Makefile\nshow: ; @echo $(unit_tests)\n' | make -s -f - show | tr ' ' '\n' | grep -E "^tests/($folders)/" | tr '\n' ' ') ;;
    *) tests=$1 ;;
    esac
}

mpi=$sysroot/usr/lib/aarch64-linux-gnu/openmpi
printf '#!/bin/sh\necho gcc -I%s/include -L%s/lib -lmpi\n' "$mpi" "$mpi" >"$dir/mpicc" && chmod +x "$dir/mpicc" || exit 1
export PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG_LIBDIR=$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig
rm -rf "$dir/build" && mkdir "$dir/build" && cd "$dir/build" || exit 1
{ "$root/configure" --host=aarch64-linux-gnu --without-cuda MPICC="$dir/mpicc" CFLAGS="-O2 -Werror" MPIRUN=mpirun \
    CC="$root/tests/cached_cc.sh aarch64-linux-gnu-gcc --sysroot=$sysroot" CXX="aarch64-linux-gnu-g++ --sysroot=$sysroot" &&
    choose_tests "$*" && make -j"$(nproc)" cake-mpi ${tests:-check-programs}; } >"$dir/make.log" 2>&1 || { grep -E 'error|warning' "$dir/make.log" || tail -5 "$dir/make.log"; exit 1; }
find . -type f -perm -u+x ! -name '*.*' | while read -r program; do
    [ "$(od -An -tx1 -j18 -N2 "$program")" = " b7 00" ] && mv "$program" "$program.arm" || continue # the machine of an ELF file
    printf '#!/bin/sh\nexec qemu-aarch64-static -cpu ${CAKE_TEST_CPU:-max} -L %s -0 "$0" "$0.arm" "$@"\n' "$sysroot" >"$program" && chmod +x "$program"
done

# clang warns of nothing. It parses only, so libraries that are not there are not missed.
if clang=$(command -v clang-14 || command -v clang); then
    flags="-Werror -fsyntax-only -Wno-unused-command-line-argument"
    rm -rf "$dir/clang" && mkdir "$dir/clang" && (cd "$dir/clang" &&
        ac_cv_prog_c_openmp=-fopenmp "$root/configure" --host=aarch64-linux-gnu --without-cuda MPICC="$dir/mpicc" LDFLAGS=-fuse-ld=bfd \
            CC="$clang --target=aarch64-linux-gnu --sysroot=$sysroot" CXX="${clang/clang/clang++} --target=aarch64-linux-gnu --sysroot=$sysroot" &&
        make -j"$(nproc)" check-programs CFLAGS="$flags" AR=: RANLIB=: CCLD=:) >"$dir/clang.log" 2>&1
    status=$?
    grep -E 'error|warning' "$dir/clang.log"
else
    echo "missing tool: clang"
    status=1
fi
[ $status -eq 0 ] || exit 1

# qemu has no process_vm_readv.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
export CAKE_TEST_EMULATED=1 # as few cases as of plain C
count() { echo "  Test: $1 ...$([ "$2" -eq 0 ] && echo passed || echo FAILED)"; } # NAME STATUS

[ -n "$*" ] || unset CAKE_ALL # long lists of cases would take half an hour
make -j"$(nproc)" check-TESTS ${tests:+TESTS="$tests"} >"$dir/check.log" 2>&1
status=$?
grep -E '^(FAIL|ERROR)' "$dir/check.log"
bash "$root/tests/count.sh" .
count "make check: $(sed -n 's/^# PASS: *//p' "$dir/check.log") programs" $status | tee "$dir/counted"
[ -z "$*" ] || [ "$*" = all ] || exit $status

# Kernels that differ by what the processor has: those above had NEON, SDOT, BFDOT, SMMLA and 512 bits of SVE.
kernels() { # CPU PROGRAM
    CAKE_TEST_CPU=$1 tests/kernels/"$2" >"$dir/$1.$2.log" 2>&1
    count "$2 on $1" $?
}

# Golden models: scores by both processors, to the byte.
{
    echo '{"id": "a", "prompt": [20, 30, 31, 9, 12, 13, 14, 40, 41, 42, 5, 6, 7, 8, 20, 21, 22, 23, 24], "max_tokens": 24, "logprobs": 3, "ignore_eos": true, "temperature": 0, "echo": true}'
    echo '{"id": "b", "prompt": [10, 11, 12], "max_tokens": 40, "logprobs": 3, "ignore_eos": true, "temperature": 0.9, "seed": 4}'
} >"$dir/in.jsonl"
for isa in ref neon sve512 neonbf16 avx2 avx512; do
    for threads in 1 2; do
        printf '{"name": "peak.%s", "isa": "'$isa'", "host": "a", "threads": '$threads', "value": 40}\n' f32 bf16 int8 read
    done
done >"$dir/rates"
answer() { # CAKE_MPI OUT ISA DTYPE
    "$1" run -q -m "$model" -i "$dir/in.jsonl" -o "$dir/$2.jsonl" --force --deterministic-ids --isa "$3" --threads 1 --speculate off \
        --rates "$dir/rates" --dtype "$4" >"$dir/$2.err" 2>&1
}
golden() { # MODEL CPU ISA ISA_HERE DTYPE
    local model=$root/tests/golden/$1 out=$1.$3.$5 arm same
    CAKE_TEST_CPU=$2 answer ./cake-mpi "$out.arm" "$3" "$5"
    arm=$?
    answer "$there/cake-mpi" "$out.x86" "$4" "$5"
    [ $? -eq 0 ] && [ $arm -eq 0 ] && cmp "$dir/$out.arm.jsonl" "$dir/$out.x86.jsonl"
    same=$?
    [ $same -eq 0 ] || cat "$dir/$out".*.err
    count "$1, $3 on $2, $5: the bytes of $4" $same
    rm -f "$dir/$out".*
}

# The same bits whatever the threads and the waves, of what x86-64 has nothing like.
alone() { # MODEL ISA
    local model=$root/tests/golden/$1 out=$1.$2 how same=0
    for how in "--threads 1" "--threads 2 --chunk 3"; do
        # shellcheck disable=SC2086
        ./cake-mpi run -q -m "$model" -i "$dir/in.jsonl" -o "$dir/$out.${how##* }.jsonl" --force --deterministic-ids --isa "$2" \
            --dtype bf16 --rates "$dir/rates" $how >"$dir/$out.err" 2>&1 || { same=1 && cat "$dir/$out.err"; }
    done
    cmp "$dir/$out.1.jsonl" "$dir/$out.3.jsonl" || same=1
    count "$1, $2: the same bytes by one thread and by two" $same
    rm -f "$dir/$out".*
}

here=$("$there/cake-mpi" info | grep '^isa ')
with=(cortex-a57 neoverse-n1 "max,sve-max-vq=2") # without and with dot products; with 256 bits of SVE
{
    for cpu in neoverse-n1 cortex-a57; do printf "kernels $cpu %s\n" tensor int8 codes; done
    printf 'kernels max,sve-max-vq=2 %s\n' norms int8 codes
    echo "kernels a64fx int8"
    printf 'alone %s neonbf16\n' llama-plain gptoss-bf16 qwen3moe-mixed
    i=0
    for model in "$root"/tests/golden/*/; do
        [ -e "$model/config.json" ] || continue
        name=$(basename "$model") cpu=${with[i++ % 3]}
        echo "golden $name max ref ref auto"
        echo "golden $name $cpu neon avx2 auto"
        case $here in *avx512*) echo "golden $name a64fx sve512 avx512 auto" ;; esac
        case $name in qwen*) printf "golden $name $cpu neon avx2 %s\n" int8 int4 ;; esac
    done
} >"$dir/jobs"
case $here in *avx512*) ;; *) echo "  SKIPPED: this processor has no AVX-512 to compare SVE with" ;; esac
export -f kernels golden alone answer count
export root dir there top_srcdir=$root
xargs -P "$(nproc)" -d '\n' -n 1 bash -c <"$dir/jobs" | tee -a "$dir/counted"
echo "$(grep -c 'passed$' "$dir/counted") passed, $(grep -c 'FAILED$' "$dir/counted") failed"
! grep -q 'FAILED$' "$dir/counted"
