#!/bin/sh
# Builds helper_amd64 and helper_arm64, the PID 1 of every container. Needs Debian's gcc and gcc-aarch64-linux-gnu (on an
# arm64 machine gcc and gcc-x86-64-linux-gnu). With --check it builds into a temporary folder and fails when the result
# is not, byte for byte, what is checked in.
set -eu
cd "$(dirname "$0")"

build() { # compiler output
	# No libc, no stack protector (it needs libc's canary), no unwind tables, no build id, no paths: the bytes depend on
	# the source and the compiler only.
	"$1" -std=gnu11 -Os -Wall -Wextra -Werror -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -fno-ident -fno-pic -fno-builtin -ffile-prefix-map="$PWD"=. \
		-nostdlib -static -no-pie -s -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections \
		-o "$2" init.c wire.c pump.c usage.c child.c identity.c landlock.c files.c probe.c
}

out=.
if [ "${1:-}" = --check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
fi
amd64=x86_64-linux-gnu-gcc
arm64=aarch64-linux-gnu-gcc
for compiler in "$amd64" "$arm64"; do
	if ! command -v "$compiler" >/dev/null; then
		echo "build.sh: $compiler is missing: apt-get install gcc-x86-64-linux-gnu gcc-aarch64-linux-gnu" >&2
		exit 1
	fi
done
build "$amd64" "$out/helper_amd64"
build "$arm64" "$out/helper_arm64"
if [ "$out" != . ]; then
	for arch in amd64 arm64; do
		if ! cmp "$out/helper_$arch" "helper_$arch"; then
			echo "build.sh: helper_$arch is not what its source builds; run executor/container/helper/build.sh" >&2
			exit 1
		fi
	done
	echo "container: helper_amd64 and helper_arm64 are what their source builds"
fi
