package registry

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

var (
	// The patterns are tried on one line at a time.
	//
	// networkUse is what scripts use the network by: programs at the start of a command, and libraries.
	networkUse = regexp.MustCompile(`(?:^|[;&|(` + "`" + `]|\bsudo |\bexec )\s*(curl|wget|nc|ncat|netcat|socat|ssh|scp|sftp|rsync|ftp|telnet|ping|dig|nslookup)\s+[-\w"'$/.]` +
		`|^\s*(?:import|from)\s+(requests|urllib|urllib3|httpx|aiohttp|socket|http\.client|ftplib|smtplib|paramiko|websockets?|boto3|telnetlib)\b` +
		`|\b(?:require\(|from\s*|import\()\s*["'](?:node:)?(https?|net|dgram|dns|tls|axios|node-fetch|undici|got|ws|superagent)["']` +
		`|\b(fetch|XMLHttpRequest|WebSocket|EventSource)\(` +
		`|["'](curl|wget|ssh|scp|rsync)["']\s*,` +
		`|(?i)\b(Invoke-WebRequest|Invoke-RestMethod|Net\.WebClient|Net::HTTP|LWP::UserAgent|IO::Socket)\b`)

	pipeToShell = regexp.MustCompile(`(?i)\b(?:curl|wget|fetch)\b[^|\n]*\|\s*(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+)?(?:ba|z|da|k|fi)?sh\b` +
		`|\b(?:curl|wget)\b[^|\n]*\|\s*(?:sudo\s+)?(?:python[0-9.]*|node|perl|ruby|php)\b` +
		`|\b(?:ba|z|da)?sh\s+(?:-c\s+)?["']?(?:<\(|\$\(|` + "`" + `)\s*(?:curl|wget)\b` +
		`|\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\b[^|\n]*\|\s*(?:iex|Invoke-Expression)\b` +
		`|\bInvoke-Expression\b[^\n]*\bDownloadString\b|\biex\b[^\n]*\bDownloadString\b`)

	remoteShell = regexp.MustCompile(`/dev/(?:tcp|udp)/[\w.$\[{]` +
		`|\bn(?:c|cat|etcat)\b[^\n|]*\s-\w*[ec]\w*\s+(?:/bin/|/usr/bin/)?(?:ba|da|z)?sh\b` +
		`|\bsocat\b[^\n]*\bexec:["']?(?:/bin/)?(?:ba)?sh` +
		`|\bpty\.spawn\(\s*["'](?:/bin/)?(?:ba)?sh` +
		`|\bos\.dup2\(\s*\w+\.fileno\(\)`)

	decodeRun = regexp.MustCompile(`(?i)\b(?:eval|exec|Function|compile)\s*\(\s*(?:[\w.]+\(\s*){0,3}(?:atob|[\w.]*b(?:ase)?64_?decode|[\w.]*b64decode|zlib\.decompress|bytes\.fromhex|codecs\.decode|marshal\.loads|Buffer\.from\s*\([^)\n]*base64)` +
		`|\bbase64\s+(?:-d|-D|--decode)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da)?(?:sh|python[0-9.]*|node|perl)\b` +
		`|\bpowershell(?:\.exe)?\b[^\n]*\s-e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{20,}` +
		`|\b(?:eval|exec)\s*\(\s*(?:requests|urllib|httpx)\.` +
		`|\beval\s+["']?\$\(\s*(?:echo|printf)\b[^\n)]*\|\s*base64`)
)

// code looks at what a file does, or tells its reader to do.
func (f *fileScan) code(content string) {
	program := f.program()
	if program {
		f.network(content)
	}
	if program || f.prose() {
		f.matches(RulePipeToShell, pipeToShell, pipeAnchors, content, "something downloaded is run unseen")
		f.matches(RuleRemoteShell, remoteShell, remoteAnchors, content, "a shell is connected to a socket")
		f.matches(RuleDecodeRun, decodeRun, decodeAnchors, content, "something encoded is run unseen")
		f.blobs(content)
	}
	if program && f.component.Kind != sallyport.KindScript {
		f.add(RuleCodeOddPlace, 0, "a program of kind %s; nothing but the name keeps it from being run", f.component.Kind)
	}
}

// Anchors are words that one of must be in a text before a pattern is tried.
var (
	pipeAnchors   = []string{"curl", "wget", "fetch", "iwr", "irm", "Invoke-", "DownloadString"}
	remoteAnchors = []string{"/dev/tcp/", "/dev/udp/", "nc ", "ncat", "netcat", "socat", "pty.spawn", "os.dup2"}
	decodeAnchors = []string{"eval", "exec", "Function", "compile", "base64", "owershell"}
)

func (f *fileScan) matches(rule string, pattern *regexp.Regexp, anchors []string, content, sentence string) {
	if !containsAny(content, anchors) {
		return
	}
	lines(content, func(number int, line string) {
		if !containsAny(line, anchors) {
			return
		}
		for _, match := range pattern.FindAllString(line, maxMatches) {
			f.add(rule, number, "%s: %s", sentence, shown(strings.TrimSpace(match)))
		}
	})
}

// minBlob is how many digits in a row make encoded data.
const minBlob = 500

// blobs looks for long runs of base64 digits, and of bytes written as escapes.
func (f *fileScan) blobs(content string) {
	places := places{content: content}
	for at := 0; at < len(content); {
		end := at
		for end < len(content) && base64Digit(content[end]) {
			end++
		}
		escaped := at
		for escaped+4 <= len(content) && content[escaped] == '\\' && content[escaped+1] == 'x' {
			escaped += 4
		}
		size := max(end, escaped) - at
		// A ruler of dashes has no entropy.
		if size >= minBlob && !strings.Contains(content[max(0, at-64):at], "base64,") && (escaped > end || entropy(content[at:at+size]) >= 3) {
			f.add(RuleEncodedBlob, places.line(at), "%d bytes of encoded data; put it into a file of its own, decoded", size)
		}
		at += max(size, 1)
	}
}

func base64Digit(c byte) bool {
	return byteClass(c) != 0 || c == '+' || c == '/' || c == '=' || c == '-' || c == '_'
}

// network says where a script first uses the network, and how often.
func (f *fileScan) network(content string) {
	uses, first, where := 0, "", 0
	lines(content, func(number int, line string) {
		for _, match := range networkUse.FindAllString(line, maxMatches) {
			if uses++; uses == 1 {
				first, where = strings.TrimSpace(match), number
			}
		}
	})
	if uses > 0 {
		f.add(RuleNetwork, where, "it uses the network (%s, %s); the sandbox gives it none", shown(first), plural(uses, "place"))
	}
}

var autorunNames = map[string]string{
	"conftest.py": "pytest runs it", "sitecustomize.py": "python runs it at every start", "usercustomize.py": "python runs it at every start",
	"setup.py": "pip runs it", ".envrc": "direnv runs it", ".npmrc": "npm obeys it", "noxfile.py": "nox runs it",
	".bashrc": "bash runs it", ".bash_profile": "bash runs it", ".profile": "a shell runs it", ".zshrc": "zsh runs it", ".zshenv": "zsh runs it",
	"build.rs": "cargo runs it", "binding.gyp": "npm builds by it", ".gitattributes": "git may run filters by it", ".mcp.json": "an agent starts servers by it",
}

// autorunPlaces are places, as the last directories of a path, whose files some tool runs.
var autorunPlaces = map[string]string{
	".husky": "git runs it", ".githooks": "git may run it", ".vscode/tasks.json": "an editor runs it", ".github/workflows": "a CI system runs it",
	".claude/settings.json": "an agent runs hooks by it", ".claude/settings.local.json": "an agent runs hooks by it", "hooks/hooks.json": "an agent runs hooks by it", ".claude/hooks": "an agent may run it",
	".cursor/mcp.json": "an agent starts servers by it", ".devcontainer": "an editor runs it", ".idea": "an editor may run it",
}

// name looks at what the name of a file alone makes of it.
func (f *fileScan) name() {
	name := strings.ToLower(f.component.Path)
	base := path.Base(name)
	why := autorunNames[base]
	if why == "" && path.Ext(base) == ".pth" {
		why = "python may run lines of it at every start"
	}
	for _, place := range slices.Sorted(maps.Keys(autorunPlaces)) {
		if why == "" && strings.Contains("/"+name+"/", "/"+place+"/") {
			why = autorunPlaces[place]
		}
	}
	if why != "" {
		f.add(RuleAutorunFile, 0, "%s because of its name; leave it out, or give it another", why)
	}
}

// hooks looks for packages that run code when they are installed.
func (f *fileScan) hooks(content string) {
	if path.Base(f.component.Path) != "package.json" {
		return
	}
	var manifest struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal([]byte(content), &manifest) != nil {
		if strings.Contains(content, "install") {
			f.unscanned = "it is not JSON, and npm may still find scripts in it"
		}
		return
	}
	for _, name := range []string{"preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "dependencies"} {
		if command, there := manifest.Scripts[name]; there {
			text, _ := command.(string)
			places := places{content: content}
			f.add(RuleInstallHook, places.line(max(0, strings.Index(content, strconv.Quote(name)))), "the script %s runs when the package is installed: %s", name, shown(text))
		}
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
