#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs bench/hosts.sh and checks its outcome, not its rates: four hosts with 60, 40, 30 and 20 % of a core, which
# $CAKE_NETNS/mpi-hosts makes on this machine. Needs root.
. "$(dirname "$0")/../shell.sh"
unset CAKE_RATES
unset HWLOC_COMPONENTS HWLOC_PLUGINS_PATH # all that there is
hosts=${CAKE_NETNS:-$root/../shared/netns}/mpi-hosts
[ -x "$hosts" ] || { echo "no $hosts: set CAKE_NETNS"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "hosts are made by root"; exit 77; }

requests=700
REQUESTS=$requests "$root/bench/hosts.sh" "$cake" "$hosts" "$model" >"$dir/out" 2>"$dir/err"
status=$?
cat "$dir/out"
[ $status -ne 77 ] || exit 77
[ $status -eq 0 ] || sed 's/^/    /' "$dir/err"
ok "four hosts run" $status
# layers of each host: of "5-6" two
awk '/^[0-3] +h[1-4] / { n = split($5, part, ","); some = 0
        for (i = 1; i <= n; i++) if (split(part[i], end, "-") > 1) some += end[2] - end[1] + 1; else some += part[i] ~ /^[0-9]/
        all += some; hosts++; differ += hosts > 1 && some != before; before = some }
    END { exit !(hosts == 4 && all == 8 && differ) }' "$dir/out"
ok "hosts that are not equally fast get unequal slices" $?
for what in "the planned slices" "four replicas" "two replicas of two stages"; do
    grep -q "^$what: the bytes of one rank" "$dir/out"
    ok "$what give the bytes of one rank" $?
done
read -r first second third last < <(sed -n 's/^requests of the replicas: //p' "$dir/out")
test $((first + second + third + last)) -eq $requests && test "$first" -gt "$last" && test "$last" -gt 0
ok "requests go by demand: $first, $second, $third, $last" $?

# Ranks that the launcher deals out over hosts are stages host by host.
export MPI_HOSTS_SLOTS=2
"$hosts" start "$dir/two" 2
two() { "$hosts" run "$dir/two" mpirun --map-by node -np 4 "$cake" "$@"; }
two plan -m "$model" --replicas 1 -q >"$dir/plan"
test "$(awk '/^[0-3] +h[12] / { printf "%s ", $2 }' "$dir/plan")" = "h1 h1 h2 h2 "
ok "neighbours are on one host" $?
two run -m "$model" -i "$root/jobs/demo/prompts.jsonl" -o "$dir/dealt.jsonl" --replicas 1 --deterministic-ids 2>"$dir/err"
cmp "$dir/dealt.jsonl" "$root/jobs/demo/expected.jsonl" && grep -q 'numbered host by host' "$dir/err"
ok "... with the bytes of one rank, and it is said" $?
"$hosts" stop "$dir/two"
finish
