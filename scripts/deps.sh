#!/usr/bin/env bash
# Writes deps.txt: every package outside the standard library and this module that bin/sallyport links, so that a new one is a
# visible line in review. With --check it fails when the file is not that list.
set -euo pipefail
cd "$(dirname "$0")/.."
list() {
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go list -deps \
		-f '{{if not .Standard}}{{if not .Module.Main}}{{.ImportPath}}{{end}}{{end}}' ./cmd/sallyport | LC_ALL=C sort -u | sed '/^$/d'
}
if [ "${1:-}" != --check ]; then
	list >deps.txt
	exit 0
fi
if ! diff -u deps.txt <(list); then
	echo "deps: what the binary links is not what deps.txt says; if that is meant, run: make generate" >&2
	exit 1
fi
