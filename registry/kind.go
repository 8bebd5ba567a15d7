package registry

import (
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mediatype"
	"github.com/sallyport-dev/sallyport/internal/shebang"
)

// InferKind says what a file of a skill is for when sallyport.yaml does not. The first rule that fits decides:
//
//  1. SKILL.md and sallyport.yaml at the root are documents.
//  2. A file with an extension that an interpreter is known for, or with a shebang, is a script, wherever it lies.
//  3. Below scripts/ every other text file is a script too, unless its name says data or prose: .json, .md, .txt,
//     requirements.txt, LICENSE, a dot file and the like.
//  4. The first directory named references, examples, templates or assets (or its singular) gives the kind; assets are
//     artifacts.
//  5. Text is a document, all else an artifact.
func InferKind(name string, content []byte) sallyport.Kind {
	extension := extensionOf(name)
	_, known := scriptRuntimes[extension]
	folder := kindFolder(name)
	text := mediatype.Text(content)
	switch {
	case name == SkillFile, name == SettingsFile:
		return sallyport.KindDocument
	case known, shebang.Names(content) != nil:
		return sallyport.KindScript
	case folder == sallyport.KindScript && text && !dataName(name):
		return sallyport.KindScript
	case folder != "" && folder != sallyport.KindScript:
		return folder
	case text:
		return sallyport.KindDocument
	default:
		return sallyport.KindArtifact
	}
}

// InferRuntime names the runtime of a script by its extension, else by the program of its shebang: python, bash or node; empty
// when neither tells.
func InferRuntime(name string, content []byte) string {
	if runtime := scriptRuntimes[extensionOf(name)]; runtime != "" {
		return runtime
	}
	for _, name := range shebang.Names(content) {
		if runtime, known := programRuntimes[name]; known {
			return runtime
		}
	}
	return ""
}

// scriptRuntimes are the extensions of scripts. An empty runtime is a script that none of the built-in runtimes runs.
var scriptRuntimes = map[string]string{
	"py": "python", "sh": "bash", "bash": "bash", "js": "node", "mjs": "node", "cjs": "node",
	"awk": "", "bat": "", "cmd": "", "fish": "", "jl": "", "ksh": "", "lua": "", "php": "", "pl": "", "ps1": "", "pyw": "",
	"r": "", "rb": "", "tcl": "", "ts": "", "mts": "", "cts": "", "zsh": "",
}

var programRuntimes = map[string]string{
	"python": "python", "pypy": "python", "bash": "bash", "sh": "bash", "dash": "bash", "node": "node", "nodejs": "node",
}

// dataExtensions are what a text file below scripts/ has when it is not a script.
var dataExtensions = map[string]bool{
	"cfg": true, "conf": true, "css": true, "csv": true, "diff": true, "env": true, "example": true, "gql": true,
	"graphql": true, "htm": true, "html": true, "ini": true, "ipynb": true, "j2": true, "json": true, "json5": true,
	"jsonc": true, "jsonl": true, "lock": true, "log": true, "md": true, "mdx": true, "ndjson": true, "patch": true,
	"proto": true, "rst": true, "sql": true, "svg": true, "template": true, "tmpl": true, "toml": true, "tsv": true,
	"txt": true, "typed": true, "xml": true, "xsd": true, "xsl": true, "yaml": true, "yml": true,
}

// dataNames are files without a telling extension that are not scripts, in lower case.
var dataNames = map[string]bool{
	"authors": true, "changelog": true, "dockerfile": true, "gemfile": true, "go.mod": true, "go.sum": true,
	"license": true, "licence": true, "makefile": true, "notice": true, "pipfile": true, "procfile": true, "readme": true,
	"version": true,
}

func dataName(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasPrefix(base, ".") || dataNames[base] || dataExtensions[extensionOf(base)]
}

func extensionOf(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// kindFolder returns the kind that the first telling directory of name stands for.
func kindFolder(name string) sallyport.Kind {
	for directory := range strings.SplitSeq(path.Dir(name), "/") {
		switch strings.ToLower(directory) {
		case "scripts", "script":
			return sallyport.KindScript
		case "references", "reference":
			return sallyport.KindReference
		case "examples", "example":
			return sallyport.KindExample
		case "templates", "template":
			return sallyport.KindTemplate
		case "assets", "asset":
			return sallyport.KindArtifact
		}
	}
	return ""
}
