package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// SettingsFile is the name of the file at a skill's root that declares kinds and script settings.
const SettingsFile = "sallyport.yaml"

// maxSettingsBytes bounds sallyport.yaml.
const maxSettingsBytes = 256 << 10

// settings is what sallyport.yaml declares.
type settings struct {
	kinds   map[string]sallyport.Kind
	scripts map[string]sallyport.ScriptSettings
}

// kindOf returns the declared kind of a file, else the inferred one.
func (s settings) kindOf(name string, content []byte) sallyport.Kind {
	if kind, declared := s.kinds[name]; declared {
		return kind
	}
	if _, declared := s.scripts[name]; declared {
		return sallyport.KindScript
	}
	return InferKind(name, content)
}

// scriptOf returns the declared settings of a script with what was left out inferred.
func (s settings) scriptOf(name string, content []byte) *sallyport.ScriptSettings {
	script := s.scripts[name]
	if script.Runtime == "" {
		script.Runtime = InferRuntime(name, content)
	}
	if script.Input == "" {
		script.Input = sallyport.InputStdin
	}
	return &script
}

// parseSettings reads sallyport.yaml against the files of its skill. Anything that is not known is an error: a setting that
// is misspelt must not be taken for one that is absent.
func parseSettings(content []byte, files map[string]stagedFile) (settings, []Problem) {
	p := settingsParser{
		files: files,
		out:   settings{kinds: map[string]sallyport.Kind{}, scripts: map[string]sallyport.ScriptSettings{}},
	}
	root, fault := readSettings(content)
	if fault != nil {
		return p.out, []Problem{problem(fault.code, SettingsFile, fault.line, "%s", fault.message)}
	}
	for i, key := range root.keys {
		if key != "kinds" && key != "scripts" {
			p.add(ProblemSettings, root.keyLines[i], "the key %q is not known; the keys are scripts and kinds", shorten(key))
		}
	}
	// Kinds first, wherever they stand: a script's settings are checked against them.
	if kinds, found := root.at("kinds"); found {
		p.kinds(kinds)
	}
	if scripts, found := root.at("scripts"); found {
		p.scripts(scripts)
	}
	return p.out, p.problems
}

// readSettings reads the file as a mapping; an empty file is one without keys.
func readSettings(content []byte) (yamlValue, *yamlFault) {
	if len(content) > maxSettingsBytes {
		return yamlValue{}, &yamlFault{ProblemSettings, 0, fmt.Sprintf("the file has more than %d bytes; move schemas into files of their own", maxSettingsBytes)}
	}
	if !mediatype.Text(content) {
		return yamlValue{}, &yamlFault{ProblemSettings, 0, "the file is not UTF-8 text; save it as UTF-8"}
	}
	root, fault := readYAML(normaliseText(bytes.TrimPrefix(content, []byte("\ufeff"))))
	switch {
	case fault != nil:
		fault.message = "the file cannot be read: " + fault.message
		return yamlValue{}, fault
	case root.kind == yamlNull:
		return yamlValue{kind: yamlMap}, nil
	case root.kind != yamlMap:
		return yamlValue{}, &yamlFault{ProblemSettings, root.line, "the file is not a mapping; write scripts: and kinds:"}
	}
	return root, nil
}

type settingsParser struct {
	files    map[string]stagedFile
	out      settings
	problems []Problem
}

func (p *settingsParser) add(code string, line int, format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, problem(code, SettingsFile, line, format, args...))
	}
}

// entries calls each for every path of a mapping from paths to values, when the skill has the path.
func (p *settingsParser) entries(what string, v yamlValue, each func(name string, item yamlValue, line int)) {
	switch v.kind {
	case yamlNull:
		return
	case yamlMap:
	case yamlBool, yamlNumber, yamlText, yamlList:
		p.add(ProblemSettings, v.line, "%s is not a mapping from paths", what)
		return
	}
	for i, name := range v.keys {
		line := v.keyLines[i]
		if sallyport.CheckPath(name) != nil {
			p.add(ProblemSettingsPath, line, "%q is not a plain path; write it relative to the skill's root, with slashes", shorten(name))
			continue
		}
		if _, found := p.files[name]; !found {
			p.add(ProblemSettingsPath, line, "the skill has no file %q; correct the path or take the entry out", shorten(name))
			continue
		}
		each(name, v.items[i], line)
	}
}

func (p *settingsParser) kinds(v yamlValue) {
	p.entries("kinds", v, func(name string, item yamlValue, line int) {
		kind := sallyport.Kind(item.text)
		switch {
		case item.kind != yamlText || !kind.Valid():
			p.add(ProblemSettings, item.line, "the kind of %q is none of script, reference, example, template, document, artifact", shorten(name))
		case (name == SkillFile || name == SettingsFile) && kind != sallyport.KindDocument:
			p.add(ProblemSettings, line, "%s is always a document; take the entry out", name)
		default:
			p.out.kinds[name] = kind
		}
	})
}

func (p *settingsParser) scripts(v yamlValue) {
	p.entries("scripts", v, func(name string, item yamlValue, line int) {
		if kind, declared := p.out.kinds[name]; declared && kind != sallyport.KindScript || name == SkillFile || name == SettingsFile {
			p.add(ProblemSettings, line, "%q has script settings and is no script; correct its kind or take the settings out", shorten(name))
			return
		}
		p.out.scripts[name] = p.script(name, item)
	})
}

// schemaFile reads a schema that is named by its path within the skill: JSON, or YAML by its extension.
func (p *settingsParser) schemaFile(name string, line int) ([]byte, bool) {
	file, found := p.files[name]
	if !found || sallyport.CheckPath(name) != nil {
		p.add(ProblemSettingsPath, line, "the skill has no schema file %q; correct the path, relative to the skill's root", shorten(name))
		return nil, false
	}
	content := bytes.TrimPrefix(file.content, []byte("\ufeff"))
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		v, fault := readYAML(normaliseText(content))
		if fault != nil {
			p.add(ProblemSettingsSchema, line, "the schema file %q cannot be read: line %d: %s", shorten(name), fault.line, fault.message)
			return nil, false
		}
		return v.jsonForm(), true
	}
	if err := strictjson.Check(content); err != nil {
		p.add(ProblemSettingsSchema, line, "the schema file %q is not plain JSON: %s", shorten(name), sallyport.Public(err).Message)
		return nil, false
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, content); err != nil {
		p.add(ProblemSettingsSchema, line, "the schema file %q is not plain JSON", shorten(name))
		return nil, false
	}
	return compact.Bytes(), true
}
