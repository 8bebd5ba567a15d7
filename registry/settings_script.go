package registry

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
)

var runtimeName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const maxSecrets = 64

// script reads the settings of one script.
func (p *settingsParser) script(name string, v yamlValue) sallyport.ScriptSettings {
	var out sallyport.ScriptSettings
	switch v.kind {
	case yamlNull:
		return out
	case yamlMap:
	case yamlBool, yamlNumber, yamlText, yamlList:
		p.add(ProblemSettings, v.line, "the settings of %q are not a mapping", shorten(name))
		return out
	}
	for i, key := range v.keys {
		item, line := v.items[i], v.keyLines[i]
		switch key {
		case "runtime":
			if item.kind != yamlText || !runtimeName.MatchString(item.text) {
				p.add(ProblemSettings, line, "runtime is not a name such as python, bash or node")
			}
			out.Runtime = item.text
		case "input":
			out.Input = sallyport.InputMode(item.text)
			if !slices.Contains([]sallyport.InputMode{sallyport.InputStdin, sallyport.InputFlags, sallyport.InputNone}, out.Input) {
				p.add(ProblemSettings, line, "input is none of stdin, flags, none")
			}
		case "input_schema":
			out.InputSchema = p.schema(item, line, "input_schema is neither a schema nor the path of a schema file")
		case "argv":
			out.Argv = p.argv(item, line)
		case "limits":
			out.Limits = p.limits(item)
		case "secrets":
			out.Secrets = p.secrets(item, line)
		case "confirm":
			if out.Confirm = item.text == "true"; item.kind != yamlBool || item.text != "true" && item.text != "false" {
				p.add(ProblemSettings, line, "confirm is neither true nor false")
			}
		default:
			p.add(ProblemSettings, line, "the key %q is not known; the keys are runtime, input, input_schema, argv, limits, secrets, confirm", shorten(key))
		}
	}
	return out
}

// schema reads a schema that is written out or, as text, named by its path.
func (p *settingsParser) schema(v yamlValue, line int, otherwise string) json.RawMessage {
	var schema json.RawMessage
	switch v.kind {
	case yamlMap:
		schema = v.jsonForm()
	case yamlText:
		content, ok := p.schemaFile(v.text, line)
		if !ok {
			return nil
		}
		schema = content
	case yamlNull, yamlBool, yamlNumber, yamlList:
		p.add(ProblemSettings, line, "%s", otherwise)
		return nil
	}
	if err := checkSchema(schema); err != nil {
		p.add(ProblemSettingsSchema, line, "%s; correct it", err.Error())
		return nil
	}
	return schema
}

func (p *settingsParser) argv(v yamlValue, line int) json.RawMessage {
	if v.kind == yamlText {
		if v.text == "none" || v.text == "free" {
			return v.jsonForm()
		}
		p.add(ProblemSettings, line, "argv is neither none nor free nor a schema for the array of arguments")
		return nil
	}
	return p.schema(v, line, "argv is neither none nor free nor a schema for the array of arguments")
}

func (p *settingsParser) limits(v yamlValue) sallyport.Limits {
	var out sallyport.Limits
	if v.kind != yamlMap {
		p.add(ProblemSettings, v.line, "limits is not a mapping")
		return out
	}
	fields := map[string]*int64{
		"memory_bytes": &out.MemoryBytes, "processes": &out.Processes, "cpu_millis": &out.CPUMillis,
		"scratch_bytes": &out.ScratchBytes, "output_bytes": &out.OutputBytes,
		"artifact_bytes": &out.ArtifactBytes, "artifact_files": &out.ArtifactFiles,
	}
	var cpuTimeMS int64
	fields["cpu_time_ms"] = &cpuTimeMS
	for i, key := range v.keys {
		item, line := v.items[i], v.keyLines[i]
		unit := map[string]time.Duration{"timeout_ms": time.Millisecond, "timeout_seconds": time.Second}[key]
		field := fields[key]
		if unit == 0 && field == nil {
			p.add(ProblemSettings, line, "the limit %q is not known; the limits are timeout_ms (or timeout_seconds), memory_bytes, "+
				"processes, cpu_millis, cpu_time_ms, scratch_bytes, output_bytes, artifact_bytes, artifact_files", shorten(key))
			continue
		}
		value, err := strconv.ParseInt(item.text, 10, 64)
		switch {
		case item.kind != yamlNumber || err != nil || value <= 0:
			p.add(ProblemSettings, line, "the limit %s is not a whole number above zero", key)
		case field == &out.MemoryBytes && value < sallyport.MinMemoryBytes:
			p.add(ProblemSettings, line, "the limit memory_bytes is below %d, which an interpreter needs to begin", sallyport.MinMemoryBytes)
		case field == &cpuTimeMS && (value < sallyport.MinCPUTime.Milliseconds() || value > int64(24*time.Hour/time.Millisecond)):
			p.add(ProblemSettings, line, "the limit cpu_time_ms is outside %d, which a sandbox and an interpreter need to begin, to one day",
				sallyport.MinCPUTime.Milliseconds())
		case field != nil:
			*field = value
		case out.Timeout != 0:
			p.add(ProblemSettings, line, "timeout_ms and timeout_seconds are both given; keep one")
		case value > int64(24*time.Hour/unit) || time.Duration(value)*unit < sallyport.MinTimeout:
			p.add(ProblemSettings, line, "the limit %s is outside one second to one day", key)
		default:
			out.Timeout = time.Duration(value) * unit
		}
	}
	out.CPUTime = time.Duration(cpuTimeMS) * time.Millisecond
	return out
}

// secrets reads the names of secrets. They become environment variables, so they must not shadow the ones that a run sets.
func (p *settingsParser) secrets(v yamlValue, line int) []string {
	if v.kind != yamlList || len(v.items) > maxSecrets {
		p.add(ProblemSettings, line, "secrets is not a list of at most %d names", maxSecrets)
		return nil
	}
	var out []string
	for _, item := range v.items {
		switch {
		case item.kind != yamlText:
			p.add(ProblemSettings, item.line, "a secret's name is capital letters, digits and underscores, such as API_TOKEN")
		case sallyport.CheckSecretName(item.text) != nil:
			p.add(ProblemSettings, item.line, "%q: %s", shorten(item.text), sallyport.Public(sallyport.CheckSecretName(item.text)).Message)
		case slices.Contains(out, item.text):
			p.add(ProblemSettings, item.line, "the secret %q is listed twice", item.text)
		default:
			out = append(out, item.text)
		}
	}
	slices.Sort(out)
	return out
}
