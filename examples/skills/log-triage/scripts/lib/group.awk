# Counts the events of extract.awk: GROUP, ADDRESS, PATH, BUCKET, FILE, LEVEL and TOTAL lines. -v bucket=...

$1 == "FILE" { lines += $3; continued += $4; print; next }
$1 == "LEVEL" { level[$2] += $3; next }
$1 == "UNTIMED" { untimed += $2; next }
$1 == "EVENT" {
  matched++
  key = $2 "\t" $6
  if (!(key in count)) {
    groups++
    at[key] = $4 ":" $5; sample[key] = $7
  }
  count[key]++
  if ($3 != "") {
    if (!(key in first) || $3 < first[key]) first[key] = $3
    if ($3 > last[key]) last[key] = $3
    times[slot($3)]++
  }
  if ($8 != "") ips[$8]++
  if ($9 != "") paths[$9]++
}

END {
  for (key in count) {
    split(key, part, "\t")
    print "GROUP\t" count[key] "\t" part[1] "\t" part[2] "\t" first[key] "\t" last[key] "\t" at[key] "\t" sample[key]
  }
  for (key in ips) print "ADDRESS\t" ips[key] "\t0\t" key
  for (key in paths) print "PATH\t" paths[key] "\t0\t" key
  for (key in times) print "BUCKET\t" times[key] "\t" key
  for (key in level) print "LEVEL\t" key "\t" level[key]
  print "TOTAL\t" lines + 0 "\t" continued + 0 "\t" matched + 0 "\t" groups + 0 "\t" untimed + 0
}

# slot: the bucket a stamp falls in. A stamp without a year is five characters shorter.
function slot(stamp,   short) {
  short = length(stamp) < 16 ? 5 : 0
  if (bucket == "day") return substr(stamp, 1, 10 - short)
  if (bucket == "hour") return substr(stamp, 1, 13 - short) ":00"
  return substr(stamp, 1, 16 - short)
}
