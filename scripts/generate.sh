#!/usr/bin/env bash
# Writes every file that a test holds against what the code prints: it runs the tests that read an -update flag, with it. With
# --check it runs the same tests without writing. docs comes last: it reads what the others write.
set -euo pipefail
cd "$(dirname "$0")/.."
flag=-update
if [ "${1:-}" = --check ]; then flag=; fi
status=0 count=0
while read -r folder; do
	# The test functions that read the flag; a helper that reads it stands for all tests of its package.
	names=$(awk '/^func /{name=$2; sub(/\(.*/, "", name)} /\*update/{print (name ~ /^Test/) ? "^" name "$" : "."}' \
		"$folder"/*_test.go | sort -u | paste -sd '|')
	count=$((count + 1))
	go test -run "$names" "./$folder" $flag || status=1
done < <(git grep -l --untracked 'flag.Bool("update"' -- '*_test.go' | xargs -r -n1 dirname | sort -u | sed "s,^docs$,~docs," | sort | sed "s,^~,,")
if [ "$count" -eq 0 ]; then
	echo "generate: no test has an -update flag" >&2
	exit 1
fi
exit "$status"
