#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0 count=0
while IFS=: read -r file target; do
	count=$((count + 1))
	echo "== $target in ./$(dirname "$file")"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "./$(dirname "$file")" || failed=$((failed + 1))
done < <(git grep -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/func //')
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
