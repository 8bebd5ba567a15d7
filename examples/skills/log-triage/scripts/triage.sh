#!/usr/bin/env bash
# Groups the errors of log files: flags in, words on standard output, JSON in $SKILL_OUTPUT.
#
# Three steps: extract.awk turns every log entry into one tab-separated event, group.awk counts them, sort orders
# the counts, render.awk writes both forms of the result.
set -euo pipefail
export LC_ALL=C # logs are bytes: nothing here may stop at one that is not UTF-8

readonly usage='usage: triage.sh [--file NAME]... [--level fatal|error|warn|info] [--top N]
                 [--bucket minute|hour|day] [--contains TEXT] [--since TIME] [--until TIME]
TIME is 2024-01-31 or "2024-01-31 10:30". Files are looked up in $SKILL_INPUT.'

lib="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib"
input="${SKILL_INPUT:-.}"
export TRIAGE_JSON="${SKILL_OUTPUT:-/dev/null}"

# fail CODE MESSAGE ends the run with exit code 2; the message may hold anything.
fail() {
  printf 'log-triage: %s\n' "$2" | tr -d '\000-\010\013-\037\177' >&2
  TRIAGE_CODE="$1" TRIAGE_MESSAGE="$2" awk -f "$lib/render.awk" -v mode=error </dev/null
  exit 2
}

files=() level=error top=10 bucket=hour contains='' since='' until=''
while (($#)); do
  case "$1" in
    --help) printf '%s\n' "$usage"; exit 0 ;;
    --) shift; files+=("$@"); break ;;
    --file=* | --level=* | --top=* | --bucket=* | --contains=* | --since=* | --until=*)
      name="${1%%=*}" value="${1#*=}"; shift ;;
    --file | --level | --top | --bucket | --contains | --since | --until)
      (($# > 1)) || fail BAD_ARGUMENT "$1 needs a value"
      name="$1" value="$2"; shift 2 ;;
    *) fail BAD_ARGUMENT "unknown argument $1; --help lists them" ;;
  esac
  case "$name" in
    --file) files+=("$value") ;;
    --level) level="$value" ;;
    --top) top="$value" ;;
    --bucket) bucket="$value" ;;
    --contains) contains="$value" ;;
    --since) since="${value/T/ }" ;;
    --until) until="${value/T/ }" ;;
  esac
done

[[ "$level" =~ ^(fatal|error|warn|info)$ ]] || fail BAD_ARGUMENT "level must be fatal, error, warn or info, not $level"
[[ "$bucket" =~ ^(minute|hour|day)$ ]] || fail BAD_ARGUMENT "bucket must be minute, hour or day, not $bucket"
[[ "$top" =~ ^[0-9]{1,2}$ ]] && ((10#$top >= 1 && 10#$top <= 50)) || fail BAD_ARGUMENT "top must be 1 to 50, not $top"
top=$((10#$top))
for value in "$since" "$until"; do
  [[ "$value" =~ ^([0-9]{4}-[0-9]{2}-[0-9]{2}(\ [0-9]{2}:[0-9]{2})?)?$ ]] ||
    fail BAD_ARGUMENT "a time is 2024-01-31 or 2024-01-31 10:30, not $value"
done

cd "$input" || fail NO_FILES "there is no input folder"
if ((${#files[@]} == 0)); then
  while IFS= read -r -d '' name; do files+=("${name#./}"); done < <(find . -type f -print0 | sort -z)
fi
((${#files[@]})) || fail NO_FILES "no log file was sent; send at least one with the call"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export TRIAGE_LEVEL="$level" TRIAGE_CONTAINS="$contains" TRIAGE_SINCE="$since" TRIAGE_UNTIL="$until"
for name in "${files[@]}"; do
  if [[ "/$name/" == *"/../"* || ! -f "./$name" ]]; then
    fail FILE_NOT_FOUND "no input file named $name was sent"
  fi
  case "$(od -An -tx1 -N4 "./$name" | tr -d ' ')" in
    1f8b* | 504b0304 | 28b52ffd | fd377a58 | 425a68*) fail NOT_TEXT "$name is compressed; unpack it first" ;;
  esac
  # NUL bytes go first (awks differ on them), then the zero byte pattern of UTF-16 no longer hides the text.
  tr -d '\000' <"./$name" | TRIAGE_FILE="$name" awk -f "$lib/extract.awk"
done >"$work/events"

awk -F '\t' -v bucket="$bucket" -f "$lib/group.awk" "$work/events" >"$work/counts"
# Each kind of count in its own order: the largest first, but buckets by time.
for kind in FILE LEVEL TOTAL; do
  grep -a "^$kind	" "$work/counts" || true
done >"$work/sorted"
for kind in GROUP ADDRESS PATH; do
  { grep -a "^$kind	" "$work/counts" || true; } | sort -t '	' -k2,2nr -k3,3nr -k4,4
done >>"$work/sorted"
{ grep -a '^BUCKET	' "$work/counts" || true; } | sort -t '	' -k3,3 >>"$work/sorted"

awk -F '\t' -v mode=report -v top="$top" -v bucket="$bucket" -v level="$level" -f "$lib/render.awk" "$work/sorted"
