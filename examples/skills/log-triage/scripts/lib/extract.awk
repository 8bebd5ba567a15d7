# One log file on standard input, one event per entry on standard output:
#   EVENT rank stamp file line signature sample address path
#   FILE name lines continued        LEVEL word count        UNTIMED count
# An entry is a line and the indented or stack-trace lines that follow it. POSIX awk without interval expressions.

BEGIN {
  file = clean(ENVIRON["TRIAGE_FILE"]); contains = ENVIRON["TRIAGE_CONTAINS"]
  since = ENVIRON["TRIAGE_SINCE"]; until = ENVIRON["TRIAGE_UNTIL"]
  rank["DEBUG"] = 0; rank["TRACE"] = 0; rank["VERBOSE"] = 0
  rank["INFO"] = 1; rank["INFORMATION"] = 1; rank["NOTICE"] = 1
  rank["WARN"] = 2; rank["WARNING"] = 2
  rank["ERROR"] = 3; rank["ERR"] = 3; rank["SEVERE"] = 3
  rank["FATAL"] = 4; rank["CRITICAL"] = 4; rank["CRIT"] = 4; rank["PANIC"] = 4; rank["EMERG"] = 4; rank["ALERT"] = 4
  word[0] = "debug"; word[1] = "info"; word[2] = "warn"; word[3] = "error"; word[4] = "fatal"; word[-1] = "none"
  floor = rank[toupper(ENVIRON["TRIAGE_LEVEL"])]
  words = "(FATAL|CRITICAL|CRIT|PANIC|EMERG|ALERT|SEVERE|ERROR|ERR|WARNING|WARN|NOTICE|INFO|DEBUG|TRACE)"
  months = "JanFebMarAprMayJunJulAugSepOctNovDec"
  h = "[0-9A-Fa-f]"; h4 = h h h h
  uuid = h4 h4 "-" h4 "-" h4 "-" h4 "-" h4 h4 h4
  two = "[0-9][0-9]"; day = two two "[-/]" two "[-/]" two; clock = two ":" two
  iso = day "[T ]" clock
  iso_all = iso "(:" two "([.,][0-9]+)?)?(Z|[+-]" two ":?" two ")?"
  clf = two "/[A-Z][a-z][a-z]/" two two ":" clock
  syslog = "^(<[0-9]+>)?[A-Z][a-z][a-z] [ 0-9][0-9] " clock
  address = "[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+"
}

{
  sub(/\r$/, "")
  if (NR == 1) sub(/^\357\273\277/, "")
  gsub(/\033\[[0-9;]*[A-Za-z]/, "")
  if ($0 ~ /^[ \t]*$/) { blank++; next }
  if (have && continues($0)) { continued++; follow($0); next }
  flush_event()
  begin_event($0)
}

END {
  flush_event()
  print "FILE\t" file "\t" NR "\t" continued + 0
  for (r = -1; r <= 4; r++) if (levels[r]) print "LEVEL\t" word[r] "\t" levels[r]
  if (untimed) print "UNTIMED\t" untimed
}

# continues: does this line belong to the entry before it?
function continues(s) {
  if (s ~ /^[ \t]/ || s ~ /^(Caused by: |\.\.\. [0-9]+ (more|common frames)|goroutine [0-9]+ \[|(\)|\}|\])+[,;]?$)/) return 1
  if (s ~ /^(Traceback \(most recent|The above exception|During handling of)/) { if (at_rank >= 3) return 1 }
  # The last line of a Python traceback names the exception.
  return tracing && s ~ /^[A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Warning|Interrupt|Exit)(:|$)/
}

function follow(s) {
  if (s ~ /^Traceback/) tracing = 1
  else if (s ~ /^(Caused by: |[A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Warning|Interrupt|Exit)(:|$))/) {
    cause = s
    if (s !~ /^Caused/) tracing = 0
  }
}

function begin_event(s) {
  have = 1; text = substr(s, 1, 2000); at_line = NR; cause = ""
  tracing = s ~ /^Traceback \(most recent/
  at_rank = level_of(text)
  stamp = stamp_of(text)
}

function flush_event(   shown, request) {
  if (!have) return
  have = 0
  levels[at_rank]++
  if (at_rank < floor) return
  if (contains != "" && !index(text, contains) && !index(cause, contains)) return
  if (stamp == "") untimed++
  if (since != "" && (stamp == "" || length(stamp) < 16 || substr(stamp, 1, length(since)) < since)) return
  if (until != "" && (stamp == "" || length(stamp) < 16 || substr(stamp, 1, length(until)) > until)) return
  shown = substr(clean(text), 1, 400)
  request = request_of(text)
  ip = match(substr(text, 1, 400), address) ? substr(text, RSTART, RLENGTH) : ""
  print "EVENT\t" at_rank "\t" stamp "\t" file "\t" at_line "\t" signature_of(text, request) "\t" shown "\t" ip "\t" request
}

function level_of(s,   head, token, code) {
  head = substr(s, 1, 400)
  # level=error, "severity":"ERROR", "level":50
  token = toupper(head)
  if (match(token, /"?(LEVEL|LEVELNAME|LVL|SEVERITY|LOG\.LEVEL)"?[ ]*[:=][ ]*"?[A-Z0-9]+/)) {
    token = substr(token, RSTART, RLENGTH)
    sub(/^.*[^A-Z0-9]/, "", token)
    if (token in rank) return rank[token]
    if (token ~ /^[1-6]0$/) return token < 30 ? 0 : token / 10 - 2
  }
  if (head ~ /^[EFWID][01][0-9][0-3][0-9] [0-2][0-9]:/) return index("DIWEF", substr(head, 1, 1)) - 1
  if (match(head, "(^|[^A-Za-z_])" words "([^A-Za-z_]|$)")) {
    token = substr(head, RSTART, RLENGTH)
    gsub(/[^A-Z]/, "", token)
    return rank[token]
  }
  if (match(head, /\[(fatal|critical|crit|panic|emerg|alert|severe|error|err|warning|warn|notice|info|debug|trace)\]/)) {
    return rank[toupper(substr(head, RSTART + 1, RLENGTH - 2))]
  }
  if (match(head, /" [1-5][0-9][0-9] /)) {
    code = substr(head, RSTART + 2, 1)
    return code == 5 ? 3 : code == 4 ? 2 : 1
  }
  if (head ~ /(^|[^A-Za-z])([Ff]atal( error)?|panic|[Uu]ncaught [A-Za-z]+):?( |$)/) return 4
  if (head ~ /(^|[^A-Za-z])[Ee]rror:|[a-z](Error|Exception)(:|$| in )|^Traceback \(most recent/) return 3
  if (head ~ /(^|[^A-Za-z])[Ww]arn(ing)?:/) return 2
  if (match(head, /^<[0-9]+>/)) {
    code = substr(head, 2, RLENGTH - 2) % 8
    return code < 3 ? 4 : code == 3 ? 3 : code == 4 ? 2 : code < 7 ? 1 : 0
  }
  return -1
}

# stamp_of: "YYYY-MM-DD HH:MM", or "MM-DD HH:MM" where the log writes no year, or nothing.
function stamp_of(s,   head, part, value) {
  head = substr(s, 1, 400)
  if (match(head, iso)) {
    part = substr(head, RSTART, RLENGTH)
    gsub(/\//, "-", part)
    return substr(part, 1, 10) " " substr(part, 12, 5)
  }
  if (match(head, clf)) {
    part = substr(head, RSTART, RLENGTH)
    value = month(substr(part, 4, 3))
    return value == "" ? "" : substr(part, 8, 4) "-" value "-" substr(part, 1, 2) " " substr(part, 13, 5)
  }
  if (match(head, syslog)) {
    part = substr(head, 1, RLENGTH)
    sub(/^<[0-9]+>/, "", part)
    value = month(substr(part, 1, 3))
    gsub(/ /, "0", part)
    return value == "" ? "" : value "-" substr(part, 5, 2) " " substr(part, 8, 5)
  }
  if (head ~ /^[EFWID][01][0-9][0-3][0-9] [0-2][0-9]:/) {
    return substr(head, 2, 2) "-" substr(head, 4, 2) " " substr(head, 7, 5)
  }
  if (match(head, /"(ts|time|timestamp|@timestamp)" *: *"?1[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]/)) {
    return from_epoch(substr(head, RSTART + RLENGTH - 10, 10) + 0)
  }
  return ""
}

function month(name,   at) {
  at = index(months, name)
  return at % 3 != 1 ? "" : pad((at + 2) / 3)
}

function pad(n) { return n < 10 ? "0" n : "" n }

# from_epoch: seconds since 1970 as a UTC stamp, by the days-to-civil rule (years that begin in March).
function from_epoch(t,   days, rest, era, doe, yoe, doy, mp, d, m, y) {
  days = int(t / 86400); rest = t - days * 86400
  days += 719468
  era = int(days / 146097); doe = days - era * 146097
  yoe = int((doe - int(doe / 1460) + int(doe / 36524) - int(doe / 146096)) / 365)
  doy = doe - (365 * yoe + int(yoe / 4) - int(yoe / 100))
  mp = int((5 * doy + 2) / 153)
  d = doy - int((153 * mp + 2) / 5) + 1
  m = mp < 10 ? mp + 3 : mp - 9
  y = yoe + era * 400 + (m <= 2 ? 1 : 0)
  return y "-" pad(m) "-" pad(d) " " pad(int(rest / 3600)) ":" pad(int((rest % 3600) / 60))
}

# request_of: "GET /path/<n>" of an access log line, without the query.
function request_of(s,   part) {
  if (!match(s, /"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^ "]+ HTTP\//)) return ""
  part = clean(substr(s, RSTART + 1, RLENGTH - 7))
  sub(/[?#].*$/, "", part)
  gsub(uuid, "<uuid>", part)
  gsub(/[0-9]+/, "<n>", part)
  return substr(part, 1, 200)
}

function signature_of(s, request,   m, code) {
  if (request != "") {
    code = match(s, /" [1-5][0-9][0-9] /) ? substr(s, RSTART + 2, 3) : "?"
    return request " -> " code
  }
  m = substr(s, 1, 600)
  if (match(m, /"(msg|message)" *: *"([^"\\]|\\.)*"/) || match(m, /(^| )msg="([^"\\]|\\.)*"/)) {
    m = substr(m, RSTART, RLENGTH)
    sub(/^[^:=]*[:=] *"/, "", m); sub(/"$/, "", m)
  } else {
    gsub(/"([^"\\]|\\.)*"/, "<str>", m)
    gsub(/(^|\[|[ =(:,])'[^']*'/, " <str>", m)
  }
  gsub(iso_all, "", m); gsub("\\[?" clf "(:" two ")?( [+-]" two two ")?\\]?", "", m)
  sub(syslog "(:" two ")?", "", m)
  sub(/^[EFWID][01][0-9][0-3][0-9] [0-9:.]+/, "", m)
  if (cause != "") m = m " | " substr(cause, 1, 300)
  gsub(uuid, "<uuid>", m)
  gsub(/[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/, "<email>", m)
  gsub(address "(:[0-9]+)?", "<ip>", m)
  gsub("0x" h "+", "<hex>", m)
  m = hide_hex(m)
  gsub(/[0-9]+(\.[0-9]+)*/, "<n>", m)
  m = clean(m)
  gsub(/ +/, " ", m)
  sub(/^(\]|\[|[ :,-])+/, "", m)
  sub(/ +$/, "", m)
  return substr(m, 1, 240)
}

# hide_hex replaces words of twelve or more hex digits that hold both letters and digits: ids and digests.
function hide_hex(s,   out, part) {
  out = ""
  while (match(s, h4 h4 h4 h "*")) {
    part = substr(s, RSTART, RLENGTH)
    out = out substr(s, 1, RSTART - 1) (part ~ /[0-9]/ && part ~ /[A-Fa-f]/ ? "<hex>" : part)
    s = substr(s, RSTART + RLENGTH)
  }
  return out s
}

# clean keeps a value on one line and in one field.
function clean(s) { gsub(/[\001-\037\177]/, " ", s); return s }
