package config

import (
	"fmt"
	"strings"
)

// Reference writes docs/config.md: every setting with its variable, form, default and meaning.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Settings

Generated from the table in ` + "`internal/config`" + `; a test keeps it current. A setting comes from a flag, else the environment, else
` + "`server.yaml`" + ` (named by ` + "`--config FILE` or `SALLYPORT_CONFIG`" + `), else its default. Any setting can be given to any command as
` + "`--set KEY=VALUE`" + `; ` + "`--data`, `--listen`, `--tls-cert`, `--tls-key` and `--accept`" + ` are short forms. What is unknown or cannot be parsed is an
error that names the file and the line.

Durations are written ` + "`500ms`, `30s`, `1m`" + `; sizes are bytes or ` + "`64KiB`, `512MiB`, `1GiB`" + `. In a variable or after ` + "`--set`" + `, a list is
` + "`a,b`" + ` and a map ` + "`a=x,b=y`" + `.

| setting | variable | value | default | what it does |
|---|---|---|---|---|
`)
	for _, row := range table() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", row.key, row.env(), row.form, row.zero, row.doc)
	}
	b.WriteString(`
The variables of OpenTelemetry (` + "`OTEL_`" + `) export spans and metrics ([telemetry.md](telemetry.md)).

Three more variables say where a command turns to: ` + "`SALLYPORT_URL` and `SALLYPORT_KEY`" + ` name a server and the key for it, and
` + "`NO_COLOR`" + ` asks for plain output. ` + "`--data`" + ` is stronger than ` + "`SALLYPORT_URL`" + `.

` + "```yaml" + `
# server.yaml
data: /var/lib/sallyport
listen: 0.0.0.0:8443
tls:
  cert: /etc/sallyport/tls.crt
  key: /etc/sallyport/tls.key
scripts_enabled: true
interpreters:
  py: data-science
  sh: /usr/bin/bash
runtimes:
  data-science:
    root: /srv/runtimes/data-science
    program: /usr/bin/python3
limits:
  memory: 256MiB
  max_timeout: 2m
` + "```" + `
`)
	return b.String()
}
