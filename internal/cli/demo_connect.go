package cli

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// connect prints what a user pastes into an MCP client. The folder is the kept one, else the user's own.
func (d *demo) connect() {
	p := d.page
	program, err := os.Executable()
	if err != nil {
		program = "sallyport"
	}
	args := []string{"mcp"}
	serve := program + " serve"
	if d.data.Kept {
		args = append(args, "--data", d.data.DataDir)
		serve += " --data " + shellWord(d.data.DataDir)
	}
	stdio := map[string]any{"command": program, "args": args}
	served := map[string]any{"type": "http", "url": "http://127.0.0.1:8787/mcp"}
	p.line("")
	p.line("%s", p.bold("Connect your own agent"))
	p.line("  Claude Code            claude mcp add sallyport -- %s %s", shellWord(program), shellWords(args))
	p.line("  Cursor                 %s", d.json(map[string]any{"mcpServers": map[string]any{"sallyport": stdio}}))
	p.line("  %s", p.dim("                       in .cursor/mcp.json"))
	p.line("  VS Code                %s", d.json(map[string]any{"servers": map[string]any{"sallyport": withType(stdio)}}))
	p.line("  %s", p.dim("                       in .vscode/mcp.json"))
	p.line("  over HTTP instead      %s", d.json(map[string]any{"mcpServers": map[string]any{"sallyport": served}}))
	p.line("  %s", p.dim("                       while this runs: "+serve))
	if !d.data.Kept {
		p.line("%s", p.dim("The demo's folder is gone; keep one with: sallyport demo --keep DIR"))
	}
}

func withType(stdio map[string]any) map[string]any {
	return map[string]any{"type": "stdio", "command": stdio["command"], "args": stdio["args"]}
}

func (d *demo) json(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}

// shellWord quotes a word for a POSIX shell when it needs that.
func shellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}
