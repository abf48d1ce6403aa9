#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long tests: tests/long.sh [STAGE...], by default all of them in this order. Stages that are joined by + run side by
# side: where one waits, the other computes. Stages build below build-long/ (or $CAKE_LONG_DIR) and leave their logs there.
# A stage fails if a tool is missing; the stages of Python packages are skipped with a message. The last line is
# "N passed, N failed": tests inside the stages, and the stages themselves. What each of them proves, beside what `make check` does:
#   newcomer   the README's two commands work on a bare Debian, with the packages that they install; all cases of all tests;
#              gcc warns of nothing, and no frame is large, since stacks may be small
#   warnings   clang warns of nothing in program and tests; the style, with its formatter
#   resources  kernels of GPUs, compiled for all of them, take no more registers and memory than we know of
#   minimal    without optional libraries and x86 kernels the answers are the same
#   bench      each benchmark runs
#   install    what is installed runs, and is removed again
#   packaging  EasyBuild, Spack, modules and Apptainer read our recipes
#   tutorial   every command of the tutorial works
#   openai     the official client reads our results
#   forms      h5py and h5dump read them, too
#   prompts    files of prompts that people have are read
#   resume     runs that are stopped at random moments resume to the same bytes
#   valgrind   memory of one job on two ranks, with the kernels of this CPU
#   asan       memory, leaks and undefined behaviour: all programs of tests, and each whole run that has code of its own
#   threads    no thread reads what another one is writing, whatever order memory has (ThreadSanitizer)
#   distcheck  the tarball is complete; ranks start, talk, fail and end under MPICH as they do under Open MPI
#   cuda       kernels of GPUs: all cases, of the source and of what nvcc makes of it
#   fuzz       readers of foreign bytes, with sanitizers
#   slurm      the job scripts, on a real Slurm
#   hosts      hosts of different speeds get layers by their speed
#   arm64      on 64-bit Arm (qemu): unit tests, kernels of several processors, golden models to the byte as on x86-64
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
work=${CAKE_LONG_DIR:-$root/build-long}
stages="newcomer+fuzz resources warnings+resume minimal bench+valgrind+packaging install tutorial openai forms prompts asan threads distcheck cuda+slurm hosts arm64"
patient="warnings cuda" # these compute when no other stage wants to
jobs=$(nproc)
passed=0 failed=0
export CAKE_ALL=1 # what `make check` tries some of
export CUDA_ARCH=${CUDA_ARCH-90a} # stage resources compiles for all GPUs
export CAKE_ASSETS=${CAKE_ASSETS:-$root/../shared/assets}
# Where stages compile the same text with the same flags, an object is kept for the next one, whatever the build folder.
compiler=("CC=$root/tests/cached_cc.sh gcc" "CXX=$root/tests/cached_cc.sh g++" "CFLAGS=-O2 -Werror -Wframe-larger-than=65536")
export CAKE_OBJECTS=$work/objects

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "missing tool: $tool"; return 1; }
    done
}
clang() {
    command -v clang-14 || command -v clang
}
# configure_in DIR ARGUMENT...: a fresh build folder
configure_in() {
    local dir=$1
    shift
    [ -e "$root/configure" ] || (cd "$root" && ./bootstrap) || return 1
    rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" && "$root/configure" -C "${compiler[@]}" "$@"
}
# copy_objects FROM 'FILE...': objects of another build folder, with wildcards, into the one we are in.
copy_objects() {
    local at=$PWD folder
    for folder in kernels/cpu kernels/cuda tests/gpu; do # objects are to be newer than the marks of their folders
        make $folder/.dirstamp $folder/.deps/.dirstamp || return 1
    done
    # shellcheck disable=SC2086
    (cd "$1" && cp --parents $2 "$at")
}
# plain [TARGET...]: the program as most have it, built once for all stages that ask for nothing else, and here; or
# $CAKE_BUILD, where it is. It has the kernels of GPUs of stage resources, where that has run.
plain() {
    local build=${CAKE_BUILD:-$work/plain}
    (
        flock 9 # of two stages side by side
        [ -e "$build/Makefile" ] || {
            configure_in "$build" --prefix=/opt/cake &&
                { [ ! -d "$work/resources" ] || copy_objects "$work/resources" "kernels/cuda/*.o"; }
        } || exit 1
        cd "$build" && make -j"$jobs" all "$@"
    ) 9>"$work/plain.lock" || return 1
    cd "$build" || return 1
}
# from_plain 'FILE...' [TARGET...]: objects of `plain` for the build folder we are in, which differs in what they do not know.
# The targets are those of `plain` that make them.
from_plain() {
    local files=$1
    shift
    (plain "$@") && copy_objects "${CAKE_BUILD:-$work/plain}" "$files"
}
# check [TESTS=WHICH]: the suite of the build folder we are in, or some of it; target=check-TESTS builds nothing before.
check() {
    make -j"$((jobs + 1))" "${target:-check}" "$@" && return # one more than processors: some tests wait
    sed 's/^/    /' test-suite.log
    return 1
}
# As check, and prints the totals of all tests, which run_stage adds to the sum.
suite() {
    local status=0
    check "$@" || status=1
    bash "$root/tests/count.sh" . || status=1
    return $status
}
demo() { # PROGRAM MODEL NAME [OPTION...]: the demo at np 2, compared with what must come out
    local program=$1 model=$2 name=$3
    shift 3
    rm -f "$name.jsonl" "$name.jsonl.job" "$name.jsonl.partial"
    "$root/tests/mpirun.sh" 2 "$program" run -m "$model" -i "$root/jobs/demo/prompts.jsonl" -o "$name.jsonl" \
        --deterministic-ids "$@" && cmp "$name.jsonl" "$root/jobs/demo/expected.jsonl"
}

# The README's two commands on a bare Debian.
stage_newcomer() {
    env "${compiler[2]}" "$root/tests/newcomer.sh"
}

# No warning by clang, in program and tests, which parses and writes nothing, and the style test with its formatter. gcc's
# warnings are errors in stage newcomer.
stage_warnings() {
    local status=0 flags="-Werror -fsyntax-only -Wno-unused-command-line-argument"
    need "$(clang)" || return 1
    (configure_in "$work/warnings" CC="$(clang)" CXX="$(clang | sed 's/clang/&++/')" &&
        make -j"$jobs" check-programs CFLAGS="$flags" CXXFLAGS="$flags" NVCC=: AR=: RANLIB=: CCLD=: CXXLD=:) || status=1
    CI=true "$root/tests/style.sh" "$root" || status=1
    return $status
}

# Kernels of GPUs for all of them, with warnings as errors; `plain` takes the objects.
stage_resources() {
    rm -rf "$work/resources"
    need nvcc c++filt && CAKE_KEEP=$work/resources "$root/tests/gpu/resources.sh"
}

# Without every optional library and with plain C kernels only: the same answers. Inexact arithmetic is refused.
stage_minimal() {
    local flags
    for flags in CFLAGS=-Ofast NVCCFLAGS=-use_fast_math; do
        grep 'error: answers would not have the same bits' < <(configure_in "$work/minimal" "$flags" 2>&1) ||
            { echo "configure takes $flags"; return 1; }
    done
    configure_in "$work/minimal" --without-cuda --without-nccl --without-hdf5 --without-curl --disable-vector-kernels &&
        make -j"$jobs" && ./cake-mpi info && demo "$PWD/cake-mpi" "$root/jobs/demo/model" demo
}

# The program for another processor.
stage_arm64() {
    plain && "$root/tests/arm64.sh" "$work/arm64" .
}

# ThreadSanitizer follows what happens before what, so it finds on x86-64 what would only fail on a processor with a weaker order
# of memory: in programs of tests, and in whole runs. Archer tells it of OpenMP's teams.
stage_threads() {
    local program status=0 cc programs="kernels/exec request/worker_pool jinja/jinja engine/sampler link/channel"
    cc=$(clang) || { echo "missing tool: clang"; return 1; }
    OMP_TOOL_LIBRARIES=$(find -L /usr/lib/llvm* -name libarcher.so 2>/dev/null | head -1)
    [ -n "$OMP_TOOL_LIBRARIES" ] || { echo "missing library: libarcher.so of libomp"; return 1; }
    export OMP_TOOL_LIBRARIES TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
    # shellcheck disable=SC2086
    configure_in "$work/threads" --without-cuda --disable-vector-kernels CC="$cc" CXX="${cc/clang/clang++}" \
        CFLAGS="-O1 -g -fsanitize=thread" LDFLAGS=-fsanitize=thread &&
        make -j"$jobs" cake-mpi $(printf 'tests/%s ' $programs) || return 1
    for program in $programs; do
        top_srcdir=$root top_builddir=. "tests/$program" || { echo "$program: status $?"; status=1; }
    done
    ./cake-mpi run -m "$root/jobs/demo/model" -i "$root/jobs/demo/prompts.jsonl" -o threads.jsonl --deterministic-ids --threads 2 \
        --report report.json --max-seqs 3 && cmp threads.jsonl "$root/jobs/demo/expected.jsonl" || status=1
    # two ranks have heartbeats, too
    "$root/tests/mpirun.sh" 2 ./cake-mpi run -m "$root/jobs/demo/model" -i "$root/jobs/demo/prompts.jsonl" -o ranks.jsonl \
        --deterministic-ids && cmp ranks.jsonl "$root/jobs/demo/expected.jsonl" || status=1
    return $status
}

# Each benchmark, once.
stage_bench() {
    plain && make bench-smoke
}

# Installed with DESTDIR: runs from there, has its man page, and uninstall removes everything.
stage_install() {
    local dest=$work/install/dest there left page
    need man || return 1
    rm -rf "$work/install" && mkdir -p "$work/install" && plain && make install DESTDIR="$dest" || return 1
    there=$dest$(sed -n 's/^prefix = //p' Makefile)
    (cd "$dest" && find . -type f | sort)
    demo "$there/bin/cake-mpi" "$there/share/cake-mpi/jobs/demo/model" demo || return 1
    for page in man1/cake-mpi.1 man5/cake-mpi-formats.5 man5/cake-mpi-topology.5; do
        [ -z "$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l "$there/share/man/$page" 2>&1 >/dev/null)" ] ||
            { echo "man finds something to warn of in $page, or it is not there"; return 1; }
    done
    # shellcheck disable=SC1091
    bash -c ". '$there/share/bash-completion/completions/cake-mpi' && complete -p cake-mpi" || return 1
    make uninstall DESTDIR="$dest" || return 1
    left=$(find "$dest" -type f)
    [ -z "$left" ] || { echo "uninstall leaves: $left"; return 1; }
}

# docs/packaging, checked by the tools that it is written for; those of PyPI are in the folder of $CAKE_PYTHON.
stage_packaging() {
    local python=${CAKE_PYTHON:-python3}
    "$python" -c "import easybuild.framework, pycodestyle, spython" || { echo "no packages easybuild, pycodestyle and spython in $python: set CAKE_PYTHON"; return 77; }
    need tclsh luac5.3 && plain &&
        CAKE_PACKAGING=1 CAKE_PYTHON=$(command -v "$python") top_builddir=. "$root/tests/packaging.sh"
}

# Every command of docs/tutorial.md.
stage_tutorial() {
    need gnuplot && plain && top_builddir=. "$root/tests/tutorial.sh"
}

# The official client reads every body of a batch in which every field occurs; $CAKE_PYTHON has the package.
stage_openai() {
    local python=${CAKE_PYTHON:-python3}
    "$python" -c "import openai" || { echo "no package openai in $python: set CAKE_PYTHON"; return 77; }
    plain || return 1
    rm -f results.jsonl*
    "$python" "$root/tests/golden/openai_parse.py" --batch >batch.jsonl &&
        "$root/tests/mpirun.sh" 2 ./cake-mpi run -m "$root/jobs/demo/model" --tool-parser hermes -i batch.jsonl -o results.jsonl &&
        "$python" "$root/tests/golden/openai_parse.py" --of batch.jsonl results.jsonl
}

# Others read what we write as HDF5 and find in it what the JSONL says; $CAKE_PYTHON has the package.
stage_forms() {
    local python=${CAKE_PYTHON:-python3} form
    "$python" -c "import h5py" || { echo "no package h5py in $python: set CAKE_PYTHON"; return 77; }
    need h5dump || return 1
    plain || return 1
    rm -f results.*
    "$python" "$root/tests/golden/h5_compare.py" --prompts "$root/jobs/demo/prompts.jsonl" >prompts.jsonl || return 1
    for form in jsonl h5; do
        "$root/tests/mpirun.sh" 2 ./cake-mpi run -m "$root/jobs/demo/model" -i prompts.jsonl -o results.$form \
            --deterministic-ids --max-tokens 24
        [ $? = 3 ] || return 1 # one of them is bad
    done
    "$python" "$root/tests/golden/h5_compare.py" results.jsonl results.h5 &&
        h5dump results.h5 >results.dump && grep -q 'DATASET "first_choice"' results.dump
}

# Files of prompts as people have them, whole, under the names of their fields.
stage_prompts() {
    local file options
    [ -d "$CAKE_ASSETS/prompts" ] || { echo "no $CAKE_ASSETS/prompts: set CAKE_ASSETS"; return 77; }
    plain || return 1
    while read -r file options; do
        rm -f results.jsonl*
        # shellcheck disable=SC2086
        "$root/tests/mpirun.sh" 2 ./cake-mpi run -m "$root/jobs/demo/model" -i "$CAKE_ASSETS/prompts/$file" $options \
            -o results.jsonl --max-tokens 4 </dev/null &&
            [ "$(wc -l <results.jsonl)" = "$(wc -l <"$CAKE_ASSETS/prompts/$file")" ] || return 1
    done <<END
vllm_openai_example_batch.jsonl
HumanEval.jsonl --id-field task_id
mt_bench_question.jsonl --prompt-field turns.0 --id-field question_id
gsm8k_test.jsonl --prompt-field question
END
}

# Runs that are stopped at random moments and resumed: 25 rounds, or $CAKE_ROUNDS, by $CAKE_ROUNDS_SEED. (Stage newcomer
# has those that are stopped at moments of our choice.)
stage_resume() {
    plain && top_builddir=. "$root/tests/run/rounds.sh" "${CAKE_ROUNDS:-25}" ${CAKE_ROUNDS_SEED:-}
}

# The scripts of jobs/ on a real Slurm, which $CAKE_SLURM/slurm-local starts here; it wants to be root.
stage_slurm() {
    export CAKE_SLURM=${CAKE_SLURM:-$root/../shared/slurm}
    [ -x "$CAKE_SLURM/slurm-local" ] || { echo "no $CAKE_SLURM/slurm-local: set CAKE_SLURM"; return 77; }
    need sbatch slurmctld slurmd munged || return 1
    plain && top_builddir=. "$root/tests/run/slurm.sh"
}

# Kernels for GPUs: all of their tests on the CPU, of the source as the compiler of the CPU takes it, and of the instructions
# that nvcc makes of it, which are the same for a host with an Arm processor.
stage_cuda() {
    local status=0 tests
    need nvcc python3 aarch64-linux-gnu-g++ || return 1
    "$root/tests/gpu/arm_host.sh" || status=1
    tests=$(sed -n 's/^executor_tests = //p' "$root/tests/local.am")
    # shellcheck disable=SC2086
    plain && make -j"$jobs" $tests && # all that make check tries some of, by fibres
        printf '%s\n' $tests | CAKE_ALL_GPU=1 top_srcdir=$root top_builddir=. \
            xargs -P "$jobs" -n 1 sh -c '"$0" || { echo "not ok - $0"; exit 1; }' || status=1
    # those that a build without CUDA lacks, or has less of; nothing else is built for them
    make -j"$jobs" tests/gpu/device tests/gpu/product tests/gpu/cake-mpi tests/gpu/runtime/cake-mpi \
        tests/gpu/fake/libnvidia-ml.so.1 tests/gpu/fake/libnccl.so.2 &&
        suite check_PROGRAMS= check_DATA= \
            TESTS="tests/circles.sh tests/gpu/device tests/gpu/product tests/gpu/program.sh tests/gpu/wide.sh tests/run/gpus.sh" || status=1
    tests=$(sed -n 's/^ptx_tests = //p' "$root/tests/local.am")
    # shellcheck disable=SC2086
    plain && make -j"$jobs" $tests &&
        printf '%s\n' $tests | top_srcdir=$root top_builddir=. \
            xargs -P "$jobs" -n 1 sh -c '"$0" || { echo "not ok - $0"; exit 1; }' || status=1
    return $status
}

# Hosts of different speeds, which $CAKE_NETNS/mpi-hosts makes here; it wants to be root.
stage_hosts() {
    export CAKE_NETNS=${CAKE_NETNS:-$root/../shared/netns}
    [ -x "$CAKE_NETNS/mpi-hosts" ] || { echo "no $CAKE_NETNS/mpi-hosts: set CAKE_NETNS"; return 77; }
    need ip nsenter unshare || return 1
    plain && top_builddir=. "$root/tests/run/hosts.sh"
}

# One MPI job under valgrind: errors and lost memory in our own code.
stage_valgrind() {
    local supp=
    need valgrind || return 1
    plain || return 1
    for supp in /usr/share/openmpi/openmpi-valgrind.supp /usr/local/share/openmpi/openmpi-valgrind.supp; do
        [ -e $supp ] && break
    done
    head -n 4 "$root/jobs/demo/prompts.jsonl" >prompts.jsonl
    rm -f out.jsonl*
    "$root/tests/mpirun.sh" 2 valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --num-callers=30 --suppressions=$supp \
        --suppressions="$root/tests/valgrind.supp" ./cake-mpi run -m "$root/jobs/demo/model" -i prompts.jsonl \
        -o out.jsonl --max-tokens 24 --threads 2 --deterministic-ids && [ "$(wc -l <out.jsonl)" = 4 ]
}

# The suite with the address, leak and undefined-behaviour sanitizers, but for the tests that run the same code once more: gates
# and tests of scripts, measurements, other numbers of ranks and sizes of waves, and the tests of kernels once more for those of
# GPUs, which are C++ and have no sanitizers. Where whole programs run, the kernels of
# x86 go without: they have no memory of their own, and would take most of the time.
stage_asan() {
    unset CAKE_ALL # stage newcomer tries all
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1
    export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
    export HWLOC_COMPONENTS=-pci # hwloc unloads what it asks for PCI, which leaks: then the leak has no name
    # Sanitizers make the kernels long to compile. Two tables have all the code: AVX2's, and the last one, if it can run here.
    local plain_isas="kernels/cpu/libavx512_a-*.o kernels/cpu/libavx512vnni_a-*.o"
    grep -qw avx512_bf16 /proc/cpuinfo || plain_isas="kernels/cpu/libavx512*.o"
    local executor # C++ has no sanitizers here
    executor=$(cd "$root" && ls tests/gpu/*.cc | grep -v ptx | sed 's,.*/\(.*\)\.cc$,tests/gpu/libexecutor_a-\1.o,' | tr '\n' ' ')
    configure_in "$work/asan" --without-cuda CC=gcc \
        CFLAGS="-O1 -g1 -Werror -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" &&
        from_plain "$plain_isas $executor" tests/gpu/libexecutor.a && make -j"$jobs" && check TESTS='$(filter-out $(same_code),$(unit_tests)) $(fuzz_tests)' || return 1
    from_plain "kernels/cpu/libavx*.o" && make -j"$jobs" cake-mpi tests/gpu/cake-mpi && # no script starts another program of ours
        jobs=$((jobs + 1)) target=check-TESTS suite check_PROGRAMS= check_DATA= TESTS='$(filter-out $(gates) $(same_code),$(script_tests))'
}

# fuzz_one NAME: a minute on the kept corpus; new inputs go to a temporary folder, a find stays in the log folder.
fuzz_one() {
    local name=$1 finds
    finds=$(mktemp -d) || return 1
    mkdir -p "finds-$name"
    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 LSAN_OPTIONS=suppressions=$root/tests/lsan.supp \
        "./fuzz-$name" -max_total_time="${CAKE_FUZZ_SECONDS:-60}" -timeout=20 -rss_limit_mb=3000 -max_len=65536 \
        -artifact_prefix="finds-$name/" -print_final_stats=1 "$finds" "$root/tests/fuzz/corpus/$name" \
        >"fuzz-$name.log" 2>&1
    local status=$?
    rm -rf "$finds"
    grep -E '^stat::(number_of_executed_units|new_units_added)' "fuzz-$name.log" | sed "s/^/$name /"
    [ $status = 0 ] || { tail -n 60 "fuzz-$name.log"; ls "finds-$name"; }
    return $status
}

# Every tests/fuzz/*.c with clang's libFuzzer, address and undefined-behaviour sanitizers, two at a time.
stage_fuzz() {
    local cc target name libs status=0 running=()
    local flags="-gline-tables-only -O1 -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
    cc=$(clang) || { echo "missing tool: clang"; return 1; }
    configure_in "$work/fuzz" --without-cuda --disable-vector-kernels CC="$cc" CFLAGS="$flags -fsanitize=fuzzer-no-link,address,undefined" &&
        make -j"$jobs" && libs=$(make -s print-libs) || return 1
    # shellcheck disable=SC2086
    printf '%s\n' "$root"/tests/fuzz/*.c | xargs -P "$jobs" -I {} sh -c 'cc=$1 target=$2; shift 2; "$cc" "$target" "$@" -o "fuzz-$(basename "$target" .c)"' \
        sh "$cc" {} -std=gnu11 -D_GNU_SOURCE $flags -fsanitize=fuzzer,address,undefined -fopenmp -I"$root/src" -I"$root" $libs || return 1
    for target in "$root"/tests/fuzz/*.c; do
        fuzz_one "$(basename "$target" .c)" &
        running+=($!)
        if [ ${#running[@]} = 2 ]; then
            wait "${running[0]}" || status=1
            running=("${running[1]}")
        fi
    done
    for name in "${running[@]}"; do
        wait "$name" || status=1
    done
    return $status
}

# The tarball builds, installs and cleans up by itself. Its tests are those in which ranks do all that they do with each
# other, against another MPI; what else is computed on ranks does not depend on it.
stage_distcheck() {
    local absent
    unset CAKE_ALL # stage newcomer tries all
    need mpicc.mpich mpirun.mpich && configure_in "$work/distcheck" &&
        make -j"$((jobs + 1))" distcheck VERBOSE=1 check_PROGRAMS='$(mpi_tests)' check_LIBRARIES=tests/libsuite.a check_DATA= TESTS='$(mpi_tests) $(mpi_scripts)' \
            DISTCHECK_CONFIGURE_FLAGS="--without-cuda MPICC=mpicc.mpich MPIRUN=mpirun.mpich $(printf "'%s' " "${compiler[@]}")" || return 1
    [ ! -e "$root/.git" ] || {
        absent=$(comm -23 <(git -C "$root" ls-files | grep -v "^\.gitignore$" | sort) \
            <(tar tzf cake-mpi-*.tar.gz | sed "s,^[^/]*/,," | sort))
        [ -z "$absent" ] || { echo "not in the tarball: $absent"; return 1; }
    }
}

run_stage() { # STAGE : its exit status, seconds, and seconds of processors go to a file
    local start=$SECONDS
    case " $patient " in *" $1 "*) renice -n 15 "$BASHPID" ;; esac >/dev/null
    (cd "$work" && set -o pipefail && "stage_$1") >"$work/$1.log" 2>&1 </dev/null
    { echo "$? $((SECONDS - start))" && times; } >"$work/$1.status"
}

say_result() { # STAGE : prints what came of it, and adds it to the sum
    local stage=$1 log=$work/$1.log status seconds cpu counts result=passed
    read -r status seconds <"$work/$1.status"
    cpu=$(awk -F '[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$work/$1.status")
    case $status in
    0) passed=$((passed + 1)) ;;
    77) result="SKIPPED: $(tail -n 1 "$log")" ;;
    *) result=FAILED failed=$((failed + 1)) ;;
    esac
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed$/ { n++; good += $1; bad += $3 } END { if (n) print good + 0, bad + 0 }' "$log")
    [ -z "$counts" ] || { passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* })); }
    printf '%-10s %s\n' "$stage" "$result ${counts:+(tests: ${counts/ / passed, } failed) }in $seconds s ($cpu of processors)"
    [ "$result" != FAILED ] ||
        { { grep -E -A 8 '^ *(not ok|FAIL|ERROR)\b|\.\.\.FAILED' "$log" | head -n 60; tail -n 60 "$log"; } | sed 's/^/    /'; echo "    all of it: $log"; }
}

# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $stages
for stage in ${*//+/ }; do
    case " ${stages//+/ } " in
    *" $stage "*) ;;
    *)
        echo "long.sh: no stage $stage; there are: ${stages//+/ }" >&2
        exit 2
        ;;
    esac
done
rm -rf "$work/plain" "$work/resources" && mkdir -p "$CAKE_OBJECTS" && find "$CAKE_OBJECTS" -type f -mtime +7 -delete || exit 1
for group in "$@"; do
    for stage in ${group//+/ }; do
        run_stage "$stage" &
    done
    wait
    for stage in ${group//+/ }; do
        say_result "$stage"
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
