#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/scaling with scripts and files in place of cake-mpi, the launcher and the energy counters, so every figure is known:
# commands of runs, medians, speed-ups, efficiencies, energy, runs that fail, a CSV that is continued, plots.
. "$(dirname "$0")/../shell.sh"

mkdir "$dir/bin" "$dir/model" "$dir/rapl"
rapl=$dir/rapl/intel-rapl
for zone in 0,package-0 1,psys 0:0,core 0:1,dram; do
    mkdir "$rapl:${zone%,*}"
    echo "${zone#*,}" >"$rapl:${zone%,*}/name"
    echo 5000000 >"$rapl:${zone%,*}/energy_uj"
    echo 9000000 >"$rapl:${zone%,*}/max_energy_range_uj"
done
echo '{"vocab_size": 100}' >"$dir/model/config.json"
fake() { # NAME : standard input becomes a program
    { echo '#!/usr/bin/env bash' && cat; } >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
# Counters begin anew with each start; the second rank of two is only counted, not run.
fake launcher <<'END'
echo "$*" >>"$0.calls"
[ "$1 $3" = "-n -N" ] || exit 9
export RANKS=$2
for zone in "$RAPL":*; do echo 5000000 >"$zone/energy_uj"; done
shift 4
exec "$@"
END
# Ten requests on one rank take 9, 8 and 10 s, and on twice as many ranks less by 1.8. The package's counter turns over:
# 8 J, and half of one for its memory; the others are not of it.
fake cake-mpi <<'END'
args="$*"
while [ $# -gt 0 ]; do
    case $1 in
    -i) requests=$(wc -l <"$2") ;;
    --report) report=$2 ;;
    --replicas) replicas=$2 ;;
    --max-seqs) seqs=$2 ;;
    esac
    shift
done
[ "${replicas:-1}" != 2 ] || { echo "no memory for two" >&2; exit 1; }
seconds() {
    awk -v n="$requests" -v r="$RANKS" -v s="$1" 'BEGIN { t = s * n / 10; for (; r > 1; r /= 2) t /= 1.8; print t }'
}
case $args in
info*gguf) echo "vocabulary  50, head tied to the embedding" ;;
plan*)
    echo "  \"prediction\": {\"least\": {\"generated\": 4, \"seconds\": $(seconds 9), \"node_hours\": 1}, \"most\": {\"seconds\": 77}}"
    ;;
run*)
    runs=$0.runs.$requests.$RANKS.${replicas:-}.${seqs:-}
    echo x >>"$runs"
    case $(wc -l <"$runs") in 1) one=9 ;; 2) one=8 ;; *) one=10 ;; esac
    cat >"$report" <<REPORT
{
  "model": "m",
  "ranks": $RANKS,
  "replicas": ${replicas:-1},
  "seconds": {"load": 0.5, "run": $(seconds $one), "total": 99},
    {"rank": 0, "host": "h1", "device": "cpu", "isa": "avx512", "cpus": "0"},
  "version": "9.8 (abc)",
  "mpi": "Open MPI 4",
  "hosts": ["h1", "h1", "h2"],
REPORT
    echo 4000000 >"$RAPL:0/energy_uj"
    echo 5500000 >"$RAPL:0:1/energy_uj"
    echo 5700000 >"$RAPL:0:0/energy_uj"
    ;;
esac
END
fake gnuplot <<'END'
exit 0
END
export PATH=$dir/bin:$PATH CAKE_POWERCAP=$dir/rapl RAPL=$rapl
unset SLURM_JOB_ID SLURM_NTASKS SLURM_CPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_JOB_NUM_NODES
run() {
    "$root/bench/scaling" --cake "$dir/bin/cake-mpi" -m "$dir/model" --launch "launcher -n {n} -N {nodes}" --machine "m, \"one\"" \
        --load 8x12+8 --threads 3 --per-node 1 -o "$dir/out" "$@"
}
has() { # NAME LINE FILE : a whole line (grep -E)
    grep -Eqx -- "$2" "$3"
    local status=$?
    [ $status = 0 ] || { echo "    expected: $2"; cut -c1-300 "$3" | head -n 6 | sed "s/^/    /"; }
    ok "$1" $status
}

run --ranks "2 1" --series "strong weak replicas" --seed 5 -- --isa ref >"$dir/table" 2>"$dir/err"
ok "three series" $?
[ "$(cut -d, -f1 "$dir/out.csv" | sort | uniq -c | xargs)" = "3 replicas 1 series 6 strong 6 weak" ]
ok "a line for each run" $?
line='strong,2,2,1,3,,8x12\+8,1,4,0.5,40.00,4,8.500,"m, .one.","[^"]*/model",avx512,"9.8 \(abc\)","Open MPI 4","h1x2 h2x1",[-0-9]*T[0-9:]*Z,5,"launcher -n 2 -N 2 [^"]* --threads 3 --isa ref [^"]*","[^"]*scaling[^"]*"'
has "what a line has" "$line" "$dir/out.csv"
has "weak: as much load for each rank" 'weak,1,1,1,3,,4x12\+8,2,3.2,.*' "$dir/out.csv"
[ "$(grep -c "no memory for two" "$dir/err")" = 1 ] && ! grep -q '^replicas,2,2,2,' "$dir/out.csv"
ok "a run that fails is said, and not tried again" $?
# Medians: 8 requests, 160 tokens, take 7.2 s on one rank. On two the series take turns with the three times.
has "strong scaling in the table" '\| 2 \| 2 \| 1 x 2 \| 3 \| 8x12\+8 \| 4.44 \(4 to 4.44\) \| 36.0 \| 1.62 \| 81 % \| 4 \| 0.90 \| 53125 \|' "$dir/out.md"
has "weak scaling" '\| 2 \| 2 \| 1 x 2 \| 3 \| 8x12\+8 \| 4.44 \(3.56 to 4.44\) \| 36.0 \| 1.62 \| 81 % \| 4 \| 0.90 \| 53125 \|' "$dir/out.md"
has "replicas have no efficiency" '\| 2 \| 2 \| 1 x 2 \| 3 \| 8x12\+8 \| 4 \(3.56 to 4.44\) \| 40.0 \| 1.00 \| 4 \| 1.00 \| 53125 \|' "$dir/out.md"
cmp -s "$dir/table" "$dir/out.md"
ok "the table is printed, too" $?

cp "$dir/out.csv" "$dir/before.csv"
run --ranks "2" --series batch --batches "1 2" --runs 1 >"$dir/table" 2>"$dir/err"
ok "another series" $?
has "sequences at a time" 'batch,2,2,1,3,2,8x12\+8,1,4,.*' "$dir/out.csv"
[ "$(grep -vc '^batch,' "$dir/out.csv")" = "$(wc -l <"$dir/before.csv")" ]
ok "the earlier ones stay" $?
run --ranks "1 2" --series strong --runs 1 >"$dir/table" 2>"$dir/err" && [ "$(grep -c '^strong,' "$dir/out.csv")" = 2 ]
ok "a series measured again is replaced" $?
CAKE_POWERCAP=$dir/none run --ranks 1 --series strong --runs 1 -o "$dir/plain" >"$dir/table" 2>"$dir/err"
ok "a host without counters" $?
[ -z "$(cut -d, -f13 "$dir/plain.csv" | sed 1d)" ] && grep -q 'energy is left out' "$dir/err" && ! grep -q joules "$dir/plain.md" && ! grep -q "J per" "$dir/plain.md"
ok "no counters: no energy, and said" $?
[ -z "$(find "$dir" -name '.scaling.*')" ]
ok "only the output is left" $?
rm -f "$dir/bin/gnuplot"
if command -v gnuplot >/dev/null; then
    run --runs 0 >"$dir/table" 2>"$dir/err"
    ok "what there is, drawn again" $?
    [ "$(cd "$dir" && echo out-*)" = "out-batch.png out-batch.svg out-replicas.png out-replicas.svg out-strong.png out-strong.svg out-weak.png out-weak.svg" ]
    ok "two files for each series" $?
    grep -q 'predicted by cake-mpi plan' "$dir/out-strong.svg" && grep -q '>ideal<' "$dir/out-weak.svg" && ! grep -q '>ideal<' "$dir/out-batch.svg" &&
        [ "$(head -c 4 "$dir/out-strong.png" | tail -c 3)" = PNG ]
    ok "with their lines" $?
fi
printf '#!/bin/sh\n' >"$dir/bin/gnuplot" && chmod +x "$dir/bin/gnuplot"
SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES=2 SLURM_CPUS_PER_TASK=5 "$root/bench/scaling" --help | grep -q 'srun --mpi=pmix'
ok "help" $?
fake srun <<'END'
echo "$SRUN_CPUS_PER_TASK $*" >>"$0.calls"
RANKS=$6
shift 6
exec "$@"
END
sed -i 's/^RANKS=\$6/export RANKS=$6/' "$dir/bin/srun"
SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES=2 SLURM_CPUS_PER_TASK=5 "$root/bench/scaling" --cake "$dir/bin/cake-mpi" -m "$dir/model" --series strong \
    --load 8x12+8 --runs 1 -o "$dir/slurm" >"$dir/table" 2>"$dir/err"
ok "in a Slurm job" $?
[ "$(cut -d, -f2,3,5 "$dir/slurm.csv" | sed 1d | xargs)" = "1,1,5 2,1,5 4,2,5" ] && grep -q -- '^5 --mpi=pmix -K1 -N 2 -n 4 .*run' "$dir/bin/srun.calls"
ok "ranks, nodes and threads are the job's" $?

"$root/bench/scaling" --cake "$dir/bin/cake-mpi" -m m.gguf --series strong --ranks 1 --launch "$dir/bin/launcher -n {n} -N {n}" \
    --load 8x12+8 --runs 1 -o "$dir/gguf" >"$dir/table" 2>"$dir/err"
ok "a model without config.json: the program says its vocabulary" $?

expect "an option that is none" 2 'is no option' "$root/bench/scaling" --frob x
expect "no program" 2 'cannot be run' "$root/bench/scaling" --cake "$dir/none" -m "$dir/model"
expect "no model" 2 'no config.json' "$root/bench/scaling" --cake "$dir/bin/cake-mpi" -m "$dir/none"
expect "a load that is none" 2 'expected NxP' run --load 5
expect "a series that is none" 2 'none of strong' run --series frob
expect "ranks that are no number" 2 'is no number' run --ranks "1 x"
expect "no launcher" 2 "no 'frob'" run --launch "frob -n {n}"
echo a,b >"$dir/model/other.csv"
expect "another CSV in its place" 2 'another file' run -o "$dir/model/other"
expect "no figure at all" 2 'no run gave a figure' run --series replicas --ranks 1 -o "$dir/nothing" --cake /bin/false
finish
