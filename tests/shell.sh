# SPDX-License-Identifier: Apache-2.0
# Functions for the tests of the whole program; sourced, not run. Tests end with `finish`.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cake=${top_builddir:-$root/build}/cake-mpi
cake=$(cd "$(dirname "$cake")" && pwd)/cake-mpi
model=$root/jobs/demo/model
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1 CAKE_PROGRESS=none
# PCI devices are looked for by slow calls, in each rank, and hwloc's plug-ins bring X11 and XML libraries with them, which
# takes a third of a start; tests/run/pinning.sh looks for all that there is.
[ -n "${CAKE_ON_GPU:-}" ] || export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--pci,-linuxio} HWLOC_PLUGINS_PATH=$root/tests
# Open MPI's own files: two that begin and end at once in /tmp may be in each other's way there.
export OMPI_MCA_orte_tmpdir_base=$dir PRTE_MCA_prte_tmpdir_base=$dir
# Plans and reports take made-up rates: to measure them takes ten times as long as all else, on each rank. Tests of GPUs
# unset this, for rates are of CPUs; those of plan and bench, tests/report and tests/planner measure.
export CAKE_RATES=$dir/rates_of_tests
for isa in ref avx2 avx512 avx512bf16 neon sve512 neonbf16; do
    for threads in $(seq $(($(nproc --all) + 4))); do
        for name in f32 bf16 int8 read; do
            printf '{"name": "peak.%s", "isa": "%s", "host": "a", "threads": %d, "value": 40}\n' $name $isa "$threads"
        done
    done
done >"$CAKE_RATES"
LAUNCHER_SAYS=$(${MPIRUN:-mpirun} --version 2>&1) && export LAUNCHER_SAYS # asked once, not at each start
passed=0
failed=0
# For --speculate, where a test counts what a run does: how many drafts are worth sending depends on the clock.
steady=off
test -z "${CAKE_TEST_DRAFTS:-}" || steady=auto

few() { # SOME ALL : what a loop goes through: some of it in `make check`, all in `make check-long`
    if [ -n "${CAKE_ALL:-}" ]; then echo "$2"; else echo "$1"; fi
}

mpi() { # NP ARGUMENT... : cake-mpi on NP ranks
    local np=$1
    shift
    "$root/tests/mpirun.sh" "$np" "$cake" "$@"
}

killed() { # LINES RESULTS COMMAND... : runs it, and kills it as soon as RESULTS.partial has more than LINES lines
    local lines=$1 results=$2 pid
    shift 2
    "$@" &
    pid=$!
    until [ "$(cat "$results.partial" 2>/dev/null | wc -l)" -gt "$lines" ] || [ -e "$results" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -9 $pid
    wait $pid 2>/dev/null
}

ok() { # NAME STATUS : counts a check, in the words that tests/count.sh knows; STATUS 0 is good
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "  Test: $1 ...passed"
    else
        failed=$((failed + 1))
        echo "  Test: $1 ...FAILED"
        [ ! -s "$dir/err" ] || tail -n 5 "$dir/err" | sed 's/^/    last output: /'
    fi
}

# expect NAME STATUS TEXT COMMAND... : the exit status, and a text (grep -E) in what it prints
expect() {
    local name=$1 wanted=$2 text=$3 got
    shift 3
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    got=$?
    if [ "$got" -eq "$wanted" ] && cat "$dir/out" "$dir/err" | grep -Eq -- "$text"; then
        ok "$name" 0
    else
        ok "$name" 1
        echo "    status $got, expected $wanted; expected text: $text"
        head -20 "$dir/out" "$dir/err" | sed 's/^/    /'
    fi
}

tensor_at() { # MODEL TENSOR : its file, first byte and number of bytes
    local file n range
    file=$(grep -la "\"$2\":" "$1"/*.safetensors)
    n=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
    range=$(tail -c +9 "$file" | head -c "$n" | grep -o "\"$2\":{[^}]*" | sed 's/.*data_offsets":\[\([0-9]*\),\([0-9]*\).*/\1 \2/')
    # shellcheck disable=SC2086
    set -- $range
    echo "$file $((8 + n + $1)) $(($2 - $1))"
}

poison() { # MODEL TENSOR BYTE: NaN in place of a float32
    local where
    read -r -a where <<<"$(tensor_at "$1" "$2")"
    printf '\0\0\300\177' | dd of="${where[0]}" bs=1 seek=$((where[1] + $3)) conv=notrunc 2>/dev/null
}

blank() { # MODEL TENSOR : zeros
    local where
    read -r -a where <<<"$(tensor_at "$1" "$2")"
    head -c "${where[2]}" /dev/zero | dd of="${where[0]}" bs=1 seek="${where[1]}" conv=notrunc 2>/dev/null
}

# A text that golden models read as a token a letter.
rain="the rain in the hills turns the small river into a lake and the road to the house is lost in it "
rainy() { # N : as many requests that begin inside of it, and a long one
    local i how
    for i in $(seq "$1"); do
        how='"temperature": 0'
        test $((i % 4)) -eq 0 || how='"temperature": 0.9, "seed": '$i
        printf '{"id": "r%d", "prompt": "%sand %d", "max_tokens": %d, "ignore_eos": true, "logprobs": 2, %s}\n' \
            "$i" "${rain:$((i % 50)):$((i * 7 % 40 + 1))}" "$i" $((4 + i % 9)) "$how"
    done
    printf '{"id": "long", "prompt": "%s", "max_tokens": 12, "ignore_eos": true, "logprobs": 2}\n' "$rain$rain$rain$rain"
}

alike() { # FILE FILE : the same bytes, or the first line that differs is shown
    cmp -s "$1" "$2" || { diff "$1" "$2" | sed -n '2p;/^>/{p;q}' | cut -c 1-600 | sed 's/^/    /' && false; }
}

finish() {
    echo "$passed passed, $failed failed"
    exit $((failed > 0))
}
