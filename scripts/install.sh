#!/usr/bin/env bash
# Installs what a run of a skill needs on this host: bubblewrap (the sandbox), python3, bash and nodejs (the interpreters). With
# the argument "test" also what make check and make test need (packages by their Debian names).
# It installs what is missing as root or through sudo -n; otherwise it prints the exact command and fails.
set -euo pipefail

# manager is the package manager of this host and its command that installs.
if command -v apt-get >/dev/null; then
	install="apt-get install -y --no-install-recommends" python=python3
elif command -v dnf >/dev/null; then
	install="dnf install -y" python=python3
elif command -v apk >/dev/null; then
	install="apk add" python=python3
elif command -v pacman >/dev/null; then
	install="pacman -S --noconfirm" python=python
elif command -v zypper >/dev/null; then
	install="zypper --non-interactive install" python=python3
else
	install="" python=python3
fi

# missing holds the packages; required says whether a run is impossible without them.
missing=()
required=false
need() { # program package
	command -v "$1" >/dev/null || missing+=("$2")
}
need bwrap bubblewrap
need python3 "$python"
if [ ${#missing[@]} -gt 0 ]; then required=true; fi
need bash bash
need node nodejs
if [ "${1:-}" = test ]; then
	required=true
	need npm npm
	need gcc gcc
	need x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu
	need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	need make make
	need git git
	need jq jq
	need curl curl
	# A container engine, and the runtime that it uses here: Debian's other one refuses hosts with both kinds of control groups.
	need podman podman
	if ! command -v runc >/dev/null && [ ! -x /usr/sbin/runc ]; then missing+=(runc); fi
	# gcc comes without headers and libraries; the race detector and the attacks, which are static C programs, need them.
	if [ ! -e /usr/include/stdio.h ]; then missing+=(libc6-dev); fi
	if [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then missing+=(ca-certificates); fi
fi
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

give_up() {
	echo "install: missing on this host: ${missing[*]}" >&2
	if [ -n "$install" ]; then
		echo "install: run this as root, then call make again:" >&2
		echo "    $install ${missing[*]}" >&2
	else
		echo "install: no package manager that is known here was found; install them by hand" >&2
	fi
	# Without a sandbox and Python nothing can be shown; without the others a part can.
	if "$required"; then exit 1; fi
	exit 0
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then give_up; fi
	as_root=(sudo -n)
fi
if [ -z "$install" ]; then give_up; fi
echo "install: installing ${missing[*]}"
if [ "${install%% *}" = apt-get ]; then
	as_root+=(env DEBIAN_FRONTEND=noninteractive)
	"${as_root[@]}" apt-get update -qq || echo "install: the package lists could not be refreshed; trying with what is there" >&2
fi
# shellcheck disable=SC2086 # the command has its options in it
"${as_root[@]}" $install "${missing[@]}" || give_up
