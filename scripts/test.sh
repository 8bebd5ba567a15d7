#!/usr/bin/env bash
# Runs every test: the Go tests (units, and end to end over the real binary) under the race detector and in random order, then
# the official conformance suites and other parties' MCP clients. The last line has the totals: N passed, N failed.
#
# GOTESTSUM is the runner; OUT receives what each step printed.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}
mkdir -p "$out"
passed=0 failed=0

# total adds a step's counts. A step that failed without saying which test did counts as one.
total() { # name status passed failed
	local broken=$4
	if [ "$2" -ne 0 ] && [ "$broken" -eq 0 ]; then broken=1; fi
	passed=$((passed + $3)) failed=$((failed + broken))
	echo "$1: $3 passed, $broken failed"
}

echo "== Go tests"
rm -f "$out/go.json"
"${GOTESTSUM:-gotestsum}" --format pkgname-and-test-fails --jsonfile "$out/go.json" -- \
	-race -shuffle=on -timeout 25m ./...
status=$?
# Every test and subtest once, by its last verdict.
counts=$(jq -rn 'reduce (inputs | select(.Test != null and (.Action == "pass" or .Action == "fail" or .Action == "skip"))) as $e
	({pass: 0, fail: 0, skip: 0}; .[$e.Action] += 1) | "\(.pass) \(.fail) \(.skip)"' "$out/go.json" 2>/dev/null || echo "0 0 0")
read -r go_passed go_failed go_skipped <<<"$counts"
if [ "$go_skipped" -gt 0 ]; then
	# A skipped test looks like a passed one, so none may be.
	echo "Go tests: $go_skipped skipped:"
	jq -r 'select(.Action == "skip" and .Test != null) | "  \(.Package) \(.Test)"' "$out/go.json"
	go_failed=$((go_failed + go_skipped)) status=1
fi
total "Go tests" "$status" "$go_passed" "$go_failed"

echo "== alert rules and dashboard"
# A module of its own: Prometheus's parser is nothing that the product links.
(cd deploy/observability && go test -count=1 -json ./...) >"$out/observability.json" 2>"$out/observability.txt"
status=$?
counts=$(jq -rn 'reduce (inputs | select(.Test != null and (.Action == "pass" or .Action == "fail"))) as $e
	({pass: 0, fail: 0}; .[$e.Action] += 1) | "\(.pass) \(.fail)"' "$out/observability.json" 2>/dev/null || echo "0 0")
read -r rules_passed rules_failed <<<"$counts"
if [ "$status" -ne 0 ] || [ "$rules_passed" -eq 0 ]; then cat "$out/observability.txt" "$out/observability.json"; status=1; fi
total "alert rules and dashboard" "$status" "$rules_passed" "$rules_failed"

echo "== conformance and clients"
internal/conformance/run.sh 2>&1 | tee "$out/conformance.txt"
status=${PIPESTATUS[0]}
line=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$out/conformance.txt" | tail -n 1)
read -r mcp_passed mcp_failed <<<"$(sed -E 's/ passed, / /; s/ failed//' <<<"${line:-0 passed, 0 failed}")"
if [ -z "$line" ]; then status=1; fi
total "conformance and clients" "$status" "$mcp_passed" "$mcp_failed"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
