package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sallyport-dev/sallyport"
)

// mcpCommand is sallyport mcp in an environment, as an MCP client starts it.
func mcpCommand(ctx context.Context, environ []string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(binary, "sallyport"), "mcp")
	command.Env = environ
	return command
}

// callScript runs one script through an MCP session and returns the envelope.
func callScript(ctx context.Context, session *mcp.ClientSession, slug, script string) (sallyport.Envelope[sallyport.Execution], error) {
	var envelope sallyport.Envelope[sallyport.Execution]
	result, err := session.CallTool(ctx, &mcp.CallToolParams{
		Name: "execute_cloud_skill", Arguments: map[string]any{"slug": slug, "script_path": script},
	})
	if err != nil {
		return envelope, err
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return envelope, err
	}
	return envelope, json.Unmarshal(data, &envelope)
}

func connect(ctx context.Context, environ []string) (*mcp.ClientSession, error) {
	agent := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return agent.Connect(ctx, &mcp.CommandTransport{Command: mcpCommand(ctx, environ)}, nil)
}

// mcp SLUG SCRIPT runs a script through sallyport mcp and prints the status and what it wrote.
func mcpCall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mcp SLUG SCRIPT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var environ []string
	for _, name := range []string{"HOME", "PATH", "SALLYPORT_DATA", "SALLYPORT_STATE", "SALLYPORT_ISOLATION", "SALLYPORT_URL", "SALLYPORT_KEY"} {
		environ = append(environ, name+"="+ts.Getenv(name))
	}
	session, err := connect(ctx, environ)
	ts.Check(err)
	envelope, err := callScript(ctx, session, args[0], args[1])
	ts.Check(err)
	ts.Check(session.Close())
	switch {
	case envelope.Data != nil:
		_, _ = fmt.Fprintln(ts.Stdout(), envelope.Data.Status, envelope.Data.Stdout)
	case envelope.Error != nil:
		_, _ = fmt.Fprintln(ts.Stdout(), envelope.Error.Code)
	}
}

// Two agents share a data folder: the second goes through the first, and when the first leaves it takes the folder over
// without its own client noticing.
func TestMCPTakesOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	environ := []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SALLYPORT_DATA=" + filepath.Join(dir, "data"), "SALLYPORT_STATE=" + state,
	}
	if os.Geteuid() != 0 {
		environ = append(environ, "SALLYPORT_ISOLATION=degrade")
	}
	skill := filepath.Join(dir, "greeter")
	writeSkill(t, skill)
	for _, line := range []string{"import --publish " + skill, "grant issue greeter --yes"} {
		command := exec.CommandContext(ctx, filepath.Join(binary, "sallyport"), strings.Fields(line)...)
		command.Env = environ
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	first, err := connect(ctx, environ)
	if err != nil {
		t.Fatal(err)
	}
	second, err := connect(ctx, environ)
	if err != nil {
		t.Fatal(err)
	}
	call := func(session *mcp.ClientSession) {
		t.Helper()
		envelope, err := callScript(ctx, session, "greeter", "scripts/greet.sh")
		if err != nil {
			t.Fatal(err)
		}
		if envelope.Data == nil || envelope.Data.Status != sallyport.StatusSuccess {
			t.Fatalf("got %+v (%+v), want success", envelope.Data, envelope.Error)
		}
	}
	call(first)
	call(second)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	call(second)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeSkill(tb testing.TB, dir string) {
	tb.Helper()
	for name, text := range map[string]string{
		"SKILL.md":         "---\nname: greeter\ndescription: Greets. Use it in tests.\n---\n",
		"scripts/greet.sh": "echo hello\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}
