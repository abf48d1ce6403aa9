#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/count.sh BUILD_DIR: reads what the last `make check` left and prints "N passed, N failed".
# Each test function of a CUnit program counts; a script, or a program that died, counts as one. Lists what this machine
# could not check. Status 1 if a test failed or none ran.
set -u
shopt -s globstar nullglob
passed=0 failed=0
for result in "$1"/**/*.trs; do
    log=${result%.trs}.log
    verdict=$(sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p' "$result" | head -n 1)
    good=$(grep -c '^  Test: .*passed$' "$log")
    bad=$(grep -c '^  Test: .*FAILED$' "$log")
    case $verdict in
    PASS) [ "$good" -gt 0 ] || good=1 ;;
    SKIP) continue ;;
    *)
        [ "$bad" -gt 0 ] || bad=1
        echo "failed: ${log#"$1"/}"
        ;;
    esac
    passed=$((passed + good)) failed=$((failed + bad))
    grep '^not checked here: ' "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
