#!/usr/bin/env bash
# Builds one pinned developer tool: tool.sh PACKAGE VERSION FILE. A file that exists is of that version: its name says so.
set -euo pipefail
package=$1 version=$2 file=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "building $(basename "$package") $version"
mkdir -p "$(dirname "$file")"
GOBIN=$folder GOFLAGS=-buildvcs=false "${GO:-go}" install "$package@$version"
mv "$folder/$(basename "$package")" "$file"
