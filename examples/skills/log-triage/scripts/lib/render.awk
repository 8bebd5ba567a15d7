# Writes the result twice: words on standard output, JSON to the file that TRIAGE_JSON names.
# -v mode=error writes only the error object of TRIAGE_CODE and TRIAGE_MESSAGE.

BEGIN {
  out = ENVIRON["TRIAGE_JSON"]
  for (i = 1; i < 256; i++) ord[sprintf("%c", i)] = i
  names[0] = "debug"; names[1] = "info"; names[2] = "warn"; names[3] = "error"; names[4] = "fatal"
  if (mode == "error") {
    print "{\"error\":{\"code\":" json(ENVIRON["TRIAGE_CODE"]) ",\"message\":" json(ENVIRON["TRIAGE_MESSAGE"]) "}}" > out
    exit
  }
  max_buckets = 500
}

$1 == "FILE" { file_count++; fname[file_count] = $2; flines[file_count] = $3; next }
$1 == "LEVEL" { levels[$2] = $3; next }
$1 == "TOTAL" { lines = $2; continued = $3; matched = $4; groups = $5; untimed = $6; next }
$1 == "GROUP" { if (g < top) { g++; gcount[g] = $2; glevel[g] = $3; gsig[g] = $4; gfirst[g] = $5; glast[g] = $6; gat[g] = $7; gsample[g] = $8 } next }
$1 == "ADDRESS" { if (a < top) { a++; acount[a] = $2; aname[a] = $4 } next }
$1 == "PATH" { if (p < top) { p++; pcount[p] = $2; pname[p] = $4 } next }
$1 == "BUCKET" { b++; bcount[b] = $2; btime[b] = $3 }

END {
  if (mode == "error") exit
  spike_at = spike_threshold()
  write_words()
  write_json()
}

# A spike is at least three times the median of the buckets that hold anything, and at least five entries.
function spike_threshold(   i, j, v, sorted) {
  for (i = 1; i <= b; i++) sorted[i] = bcount[i] + 0
  for (i = 2; i <= b && b <= 5000; i++) {
    v = sorted[i]
    for (j = i - 1; j > 0 && sorted[j] > v; j--) sorted[j + 1] = sorted[j]
    sorted[j + 1] = v
  }
  v = b > 5000 ? 2 : b ? sorted[int((b + 1) / 2)] : 0
  return v * 3 < 5 ? 5 : v * 3
}

function write_words(   i, width, bar, max) {
  print number(lines, "line") " in " number(file_count, "file") ": " levels["fatal"] + 0 " fatal, " levels["error"] + 0 " error, " \
    levels["warn"] + 0 " warn, " levels["info"] + 0 " info, " levels["debug"] + 0 " debug, " levels["none"] + 0 " without a level"
  if (!matched) { print "\nNothing at level " level " or above."; return }
  print number(matched, "entry") " at level " level " or above in " number(groups, "group") (untimed ? ", " untimed " without a time" : "")
  print "\nGroups:"
  for (i = 1; i <= g; i++) {
    print "  " gcount[i] "x " names[glevel[i]] "  " gsig[i]
    print "      first " (gfirst[i] == "" ? "(no time)" : gfirst[i] ", last " glast[i]) ", at " gat[i]
  }
  if (groups > g) print "  ... and " number(groups - g, "more group")
  if (b) {
    print "\nBy " bucket ":"
    max = 1
    for (i = 1; i <= b; i++) if (bcount[i] > max) max = bcount[i]
    for (i = b > 60 ? b - 59 : 1; i <= b; i++) {
      bar = ""
      for (width = int(bcount[i] * 40 / max); width > 0; width--) bar = bar "#"
      print "  " btime[i] "  " bcount[i] "  " bar (bcount[i] >= spike_at ? "  <- spike" : "")
    }
    if (b > 60) print "  (the last 60 of " b ")"
  }
  if (a) { print "\nAddresses:"; for (i = 1; i <= a; i++) print "  " acount[i] "x " aname[i] }
  if (p) { print "\nRequests:"; for (i = 1; i <= p; i++) print "  " pcount[i] "x " pname[i] }
}

function number(n, noun) {
  if (n == 1) return n " " noun
  if (noun ~ /y$/) { sub(/y$/, "ies", noun); return n " " noun }
  return n " " noun "s"
}

function write_json(   i, s) {
  s = "{\"files\":["
  for (i = 1; i <= file_count; i++) s = s (i > 1 ? "," : "") "{\"name\":" json(fname[i]) ",\"lines\":" flines[i] "}"
  put(s "],\"lines\":" lines ",\"continuation_lines\":" continued ",\"level\":\"" level "\",\"bucket\":\"" bucket "\",")
  put("\"levels\":{\"fatal\":" levels["fatal"] + 0 ",\"error\":" levels["error"] + 0 ",\"warn\":" levels["warn"] + 0 \
    ",\"info\":" levels["info"] + 0 ",\"debug\":" levels["debug"] + 0 ",\"none\":" levels["none"] + 0 "},")
  put("\"matched\":" matched ",\"untimed\":" untimed ",\"groups_total\":" groups ",\"groups\":[")
  for (i = 1; i <= g; i++) {
    s = "{\"count\":" gcount[i] ",\"level\":\"" names[glevel[i]] "\",\"signature\":" json(gsig[i])
    s = s ",\"first\":" (gfirst[i] == "" ? "null" : json(gfirst[i])) ",\"last\":" (glast[i] == "" ? "null" : json(glast[i]))
    put((i > 1 ? "," : "") s ",\"at\":" json(gat[i]) ",\"sample\":" json(gsample[i]) "}")
  }
  put("],\"buckets_left_out\":" (b > max_buckets ? b - max_buckets : 0) ",\"buckets\":[")
  for (i = b > max_buckets ? b - max_buckets + 1 : 1; i <= b; i++) {
    s = "{\"time\":" json(btime[i]) ",\"count\":" bcount[i] ",\"spike\":" (bcount[i] >= spike_at ? "true" : "false") "}"
    put((i == 1 || i == b - max_buckets + 1 && b > max_buckets ? "" : ",") s)
  }
  put("],\"offenders\":{\"addresses\":[")
  for (i = 1; i <= a; i++) put((i > 1 ? "," : "") "{\"value\":" json(aname[i]) ",\"count\":" acount[i] "}")
  put("],\"requests\":[")
  for (i = 1; i <= p; i++) put((i > 1 ? "," : "") "{\"value\":" json(pname[i]) ",\"count\":" pcount[i] "}")
  put("]}}")
}

function put(s) { print s > out }

# json quotes a string of bytes: what is not UTF-8 becomes U+FFFD, so the result is always valid JSON.
function json(s,   o, i, c, n, need, k, piece) {
  if (s !~ /["\\]|[^ -~]/) return "\"" s "\""
  o = ""
  for (i = 1; i <= length(s); i++) {
    c = substr(s, i, 1); n = ord[c]
    if (c == "\"" || c == "\\") o = o "\\" c
    else if (n < 32 || n == 127) o = o sprintf("\\u%04x", n)
    else if (n < 128) o = o c
    else {
      need = n >= 194 && n < 224 ? 1 : n >= 224 && n < 240 ? 2 : n >= 240 && n < 245 ? 3 : 0
      piece = c
      for (k = 1; k <= need; k++) {
        c = substr(s, i + k, 1)
        if (c == "" || ord[c] < 128 || ord[c] > 191) break
        if (k == 1 && (n == 224 && ord[c] < 160 || n == 237 && ord[c] > 159 || n == 240 && ord[c] < 144 || n == 244 && ord[c] > 143)) break
        piece = piece c
      }
      if (need && k > need) { o = o piece; i += need }
      else o = o "\\ufffd"
    }
  }
  return "\"" o "\""
}
