#!/usr/bin/env bash
# Builds what a release is: for linux/amd64 and linux/arm64 one archive with the static binary, the completions and the files of
# deploy/, and SHA256SUMS over both. It builds the commit HEAD from a clone of its own, so that nothing of the working tree gets in
# and the binary knows its version: that of a tag, else one that names the commit. The same commit and the same Go give the same
# bytes; --check builds twice and compares. OUT is the folder for the archives, out/release by default.
set -euo pipefail
cd "$(dirname "$0")/.."
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
# Somebody may commit while this runs.
commit=$(git rev-parse HEAD)
out=$(realpath -m "${OUT:-out/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# checkout FOLDER: a clone at the commit.
checkout() {
	git clone -q --no-hardlinks --no-checkout . "$1"
	git -C "$1" -c advice.detachedHead=false checkout -q "$commit"
}

# build FOLDER: checks the commit out into FOLDER/source and leaves the archives in FOLDER/archives.
build() {
	local source=$1/source archives=$1/archives arch stage version epoch name
	checkout "$source"
	epoch=$(git -C "$source" log -1 --format=%ct)
	mkdir -p "$archives"
	for arch in amd64 arm64; do
		stage=$1/$arch
		mkdir -p "$stage"
		(cd "$source" && CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS='' GOAMD64=v1 GOARM64=v8.0 \
			go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$stage/sallyport" ./cmd/sallyport)
		if readelf -l "$stage/sallyport" | grep -q INTERP; then
			echo "release: sallyport for $arch is not static" >&2
			exit 1
		fi
		version=$(go version -m "$stage/sallyport" | awk '$1 == "mod" {print $3}')
		if [[ $version == *+dirty || -z $version ]]; then
			echo "release: the binary for $arch does not know its version: '$version'" >&2
			exit 1
		fi
		name=sallyport_${version#v}_linux_$arch
		mkdir "$1/$name"
		mv "$stage/sallyport" "$1/$name/"
		cp -r "$source/README.md" "$source/deploy" "$1/$name/"
		mkdir "$1/$name/docs" "$1/$name/completion"
		cp "$source"/docs/{deployment,config,threat-model}.md "$1/$name/docs/"
		for shell in bash zsh fish; do
			"$runner" completion "$shell" >"$1/$name/completion/sallyport.$shell"
		done
		tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' --format=gnu \
			-C "$1" -cf - "$name" | gzip -n9 >"$archives/$name.tar.gz"
	done
	(cd "$archives" && sha256sum ./*.tar.gz | sed 's, \./, ,' >SHA256SUMS)
}

# What prints the completions must run here, whatever it is built for.
runner=$work/runner
checkout "$work/host"
(cd "$work/host" && CGO_ENABLED=0 GOFLAGS='' go build -trimpath -buildvcs=true -o "$runner" ./cmd/sallyport)

mkdir "$work/first"
build "$work/first"
if [ "${1:-}" = --check ]; then
	mkdir "$work/second"
	build "$work/second"
	cmp "$work/first/archives/SHA256SUMS" "$work/second/archives/SHA256SUMS"
	echo "release: two builds of this commit are the same"
fi
mkdir -p "$out"
rm -f "$out"/sallyport_*.tar.gz "$out/SHA256SUMS"
cp "$work/first/archives"/* "$out/"
"$runner" version
cat "$out/SHA256SUMS"
