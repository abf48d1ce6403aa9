#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cpus and numbers of threads of real runs, with and without a launcher and a mask, on a machine or in a container with
# any number of cpus.
. "$(dirname "$0")/../shell.sh"
[ -n "${ASAN_OPTIONS:-}" ] || unset HWLOC_COMPONENTS HWLOC_PLUGINS_PATH # all that there is
export CAKE_DEVICE=cpu # of GPUs that are not there nothing is said
unset OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY "${!OMPI_MCA_hwloc@}" "${!OMPI_MCA_rmaps@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=${OMPI_MCA_btl:-^ofi,openib,tcp,usnic} # as tests/mpirun.sh

mask() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status"; }
each() { # LIST : its cpus, one a line
    tr , '\n' <<<"$1" | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }'
}
core_of() { cat "/sys/devices/system/cpu/cpu$1/topology/thread_siblings_list" 2>/dev/null || echo "$1"; }
cores_in() { # LIST : how many cores it has cpus of
    each "$1" | while read -r cpu; do core_of "$cpu"; done | sort -u | wc -l
}

all=$(mask self)
cores=$(cores_in "$all")
cgroup=$(taskset -c 0-1023 sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=$(each "$all" | head -1)
last=$(each "$all" | tail -1)
echo "  cpus $all, $cores cores; the cgroup has $cgroup"

# placed NAME CPUS THREADS COMMAND... : CPUS and THREADS of all ranks as `a b`; messages go to $dir/err
placed() {
    local name=$1 cpus=$2 threads=$3 got
    shift 3
    rm -f "$dir/report"
    "$@" --report "$dir/report" >"$dir/out" 2>"$dir/err" </dev/null
    got=$(sed -n 's/.*"cpus": "\([^"]*\)", "threads": \([0-9]*\).*/\1 \2/p' <(sed 's/"rank"/\n&/g' "$dir/report"))
    if [ "$(cut -d' ' -f1 <<<"$got" | paste -sd' ')" = "$cpus" ] &&
        [ "$(cut -d' ' -f2 <<<"$got" | paste -sd' ')" = "$threads" ] && grep -q '= 82' "$dir/out"; then
        ok "$name" 0
    else
        ok "$name" 1
        echo "    expected cpus $cpus, threads $threads; the report says:"
        sed 's/^/    /' <<<"$got"
        sed 's/^/    /' "$dir/err"
    fi
}
says() { # NAME TEXT : in the last run's messages
    grep -q -- "$2" "$dir/err"
    ok "$1" $?
}
quiet() {
    ! grep -Eq '(placement|planner):' "$dir/err"
    ok "$1" $?
}
run=("$cake" run -m "$model" -p 'What is 37 + 45?' --log info)

placed "alone: all cores" "$all" "$cores" "${run[@]}"
quiet "... and nothing to say"
placed "--bind none: as many threads" "$all" "$cores" "${run[@]}" --bind none
placed "taskset: one" "$last" 1 taskset -c "$last" "${run[@]}"
quiet "... and nothing to say"
placed "--bind hwloc leaves it" "$cgroup" "$(cores_in "$cgroup")" taskset -c "$first" "${run[@]}" --bind hwloc
placed "--bind numactl keeps it" "$last" 1 taskset -c "$last" "${run[@]}" --bind numactl
placed "--bind distribute: all cores" "$all" "$cores" "${run[@]}" --bind distribute
expect "a machine's file that is not there" 0 'HWLOC_XMLFILE is .*/nowhere.xml, which cannot be read .*: the real machine is used' env HWLOC_XMLFILE="$dir/nowhere.xml" "$cake" info
placed "OMP_NUM_THREADS" "$all" 1 env OMP_NUM_THREADS=1 "${run[@]}"
many=$(($(each "$all" | wc -l) + 1))
placed "more threads than cpus" "$all" "$many" "${run[@]}" --threads "$many"
says "... are told" "take turns; use --threads $cores"
# More ranks than cpus, with a thread each: of that only one message.
n=$((cores + 1))
taskset -c "$last" "$root/tests/mpirun.sh" $n "${run[@]}" >"$dir/out" 2>"$dir/err"
says "$n ranks on one cpu" "warning: planner: $n ranks with $n threads for 1 cpu of .*: more threads than CPUs, which is slow; start fewer ranks on it"
test "$(grep -Ec 'take turns|more threads than CPUs' "$dir/err")" -eq 1
ok "... said once" $?
printf '{"prompt": "%s", "max_tokens": '"$(few 800 1500)"', "ignore_eos": true}\n' a b c d >"$dir/turns.jsonl"
taskset -c "$last" "$root/tests/mpirun.sh" 2 "$cake" run -m "$model" -i "$dir/turns.jsonl" --report "$dir/report" >"$dir/out" 2>"$dir/err"
# null, should a machine do it in half a second
grep -Eq '"advice": (null|"ranks of .* have 2 threads on 1 cpu and take turns: start fewer ranks, or use --threads")' "$dir/report"
ok "... the advice is that" $?
expect "more threads than cores of each" 0 'take turns; use --threads 1' taskset -c "$last" "$root/tests/mpirun.sh" 2 "${run[@]}" --threads 2
test "$(grep -Ec 'take turns|more threads than CPUs' "$dir/err")" -eq 1
ok "... said once, too" $?
expect "another way to bind" 2 'is not one of auto\|none\|hwloc' "${run[@]}" --bind numa

# One thread a core: the masks of the threads of a run.
if [ "$cores" -gt 1 ]; then
    printf '{"prompt": "%s", "max_tokens": 4000, "ignore_eos": true}\n' a b c d >"$dir/long.jsonl"
    "$cake" run -m "$model" -i "$dir/long.jsonl" -o "$dir/long.out.jsonl" -q 2>/dev/null &
    pid=$!
    found=0
    for _ in $(seq 200); do
        masks=$(for task in /proc/$pid/task/*; do mask "$pid/task/${task##*/}"; done 2>/dev/null | sort -u)
        found=$(for m in $masks; do [ "$(cores_in "$m")" -ne 1 ] || echo "$m"; done | wc -l)
        [ "$found" -lt "$cores" ] || break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    test "$found" -eq "$cores"
    ok "a core for each thread" $?
fi

case $(${MPIRUN:-mpirun} --version 2>&1) in
*"Open MPI) 4."*) ;;
*)
    echo "  Open MPI's default: skipped, ${MPIRUN:-mpirun} is not of Open MPI 4"
    finish
    ;;
esac
start() { # ARGUMENT... : mpirun, which may be in a mask
    ${MPIRUN:-mpirun} "$@"
}
placed "mpirun --bind-to none -np 1: all cores" "$all" "$cores" start --bind-to none -np 1 "${run[@]}"
quiet "... and nothing to say"
placed "plain mpirun -np 1: all cores" "$all" "$cores" start -np 1 "${run[@]}"
[ "$cores" -eq 1 ] || says "... instead of one, and says so" "not those of Open MPI's default"
start -np 1 "${run[@]}" --bind none --report "$dir/report" >/dev/null 2>"$dir/err"
one=$(sed -n 's/.*"cpus": "\([^"]*\)".*/\1/p' "$dir/report" | head -1)
test "$(cores_in "$one")" -eq 1
ok "... but with --bind none" $?
placed "mpirun --bind-to core: kept" "$one" 1 start --bind-to core -np 1 "${run[@]}"
quiet "... and nothing to say"
placed "... unless --bind hwloc" "$cgroup" "$(cores_in "$cgroup")" start --bind-to core -np 1 "${run[@]}" --bind hwloc
placed "a mask of mpirun itself" "$last" 1 taskset -c "$last" ${MPIRUN:-mpirun} -np 1 "${run[@]}"
if [ "$cores" -gt 1 ]; then
    for binding in "" "--bind-to none"; do
        # shellcheck disable=SC2086
        start $binding -np 2 "${run[@]}" --report "$dir/report" >"$dir/out" 2>"$dir/err"
        sed 's/"rank"/\n&/g' "$dir/report" | sed -n 's/.*"cpus": "\([^"]*\)", "threads": \([0-9]*\).*/\1 \2/p' >"$dir/two"
        both=$(while read -r cpus _; do each "$cpus"; done <"$dir/two" | sort -n)
        test "$both" = "$(each "$all" | sort -n)" && [ "$(wc -l <"$dir/two")" -eq 2 ]
        ok "mpirun $binding -np 2: all cpus, each once" $?
        test "$(awk '{ n += $2 } END { print n }' "$dir/two")" -eq "$cores"
        ok "... and a thread a core" $?
    done
    start --bind-to core -np 1 "${run[@]}" --threads 2 >"$dir/out" 2>"$dir/err"
    says "a narrow mask: the launch line" 'start it with .mpirun --map-by slot:PE=2 --bind-to core -np 1 cake-mpi'
    placed "... which is right" "$(start --map-by slot:PE=2 --bind-to core -np 1 sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)" 2 \
        start --map-by slot:PE=2 --bind-to core -np 1 "${run[@]}" --threads 2
fi
finish
