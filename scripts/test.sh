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

# own_module tests a module of its own: what it needs is nothing that the product links.
own_module() { # name folder
	local log="$out/${2##*/}" status counts good bad
	echo "== $1"
	(cd "$2" && go test -count=1 -json ./...) >"$log.json" 2>"$log.txt"
	status=$?
	counts=$(jq -rn 'reduce (inputs | select(.Test != null and (.Action == "pass" or .Action == "fail"))) as $e
		({pass: 0, fail: 0}; .[$e.Action] += 1) | "\(.pass) \(.fail)"' "$log.json" 2>/dev/null || echo "0 0")
	read -r good bad <<<"$counts"
	if [ "$status" -ne 0 ] || [ "$good" -eq 0 ]; then cat "$log.txt" "$log.json"; status=1; fi
	total "$1" "$status" "$good" "$bad"
}
own_module "alert rules and dashboard" deploy/observability
own_module "an OpenID provider in Go" internal/conformance/goprovider

echo "== conformance and clients"
internal/conformance/run.sh 2>&1 | tee "$out/conformance.txt"
status=${PIPESTATUS[0]}
line=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$out/conformance.txt" | tail -n 1)
read -r mcp_passed mcp_failed <<<"$(sed -E 's/ passed, / /; s/ failed//' <<<"${line:-0 passed, 0 failed}")"
if [ -z "$line" ]; then status=1; fi
total "conformance and clients" "$status" "$mcp_passed" "$mcp_failed"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
