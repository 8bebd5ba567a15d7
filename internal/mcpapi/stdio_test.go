package mcpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// The SDK's own client over pipes, in both revisions.
func TestStdioBothRevisions(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.skills.list = func(p sallyport.Principal, _ registry.ListRequest) (registry.ListResult, error) {
				if p.ID != "alice" {
					t.Errorf("principal: got %s, want alice", p.ID)
				}
				return registry.ListResult{Skills: []sallyport.Skill{skill("csv")}}, nil
			}
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- f.ServeStdio(t.Context(), alice(), inR, outW) }()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != revision {
				t.Errorf("revision: got %s, want %s", got, revision)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 4 {
				t.Errorf("tools/list: got %+v, %v", tools, err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: recall, Arguments: map[string]any{"query": "x"}})
			if err != nil || result.IsError {
				t.Errorf("tools/call: got %+v, %v", result, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Errorf("ServeStdio: got %v, want nil at the end of input", err)
			}
		})
	}
}

func TestStdioRefusesNobody(t *testing.T) {
	t.Parallel()
	err := newFixture(t).ServeStdio(t.Context(), sallyport.Principal{}, strings.NewReader(""), io.Discard)
	if code := sallyport.CodeOf(err); code != sallyport.CodeUnauthenticated {
		t.Errorf("code: got %q, want UNAUTHENTICATED", code)
	}
}

// Each bad line is answered, and the ones behind it are served.
func TestStdioBadLines(t *testing.T) {
	t.Parallel()
	var out syncBuffer
	in := strings.Join([]string{
		`nonsense`,
		``,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","name":"b"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`,
		strings.Repeat("x", mcpwire.MaxLine+10),
		"\x00\xff",
		initializeLine,
		`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`,
	}, "\n")
	if err := newFixture(t).ServeStdio(t.Context(), alice(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID    json.RawMessage `json:"id"`
			Error *struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q is no JSON", line)
		}
		switch {
		case m.Error != nil:
			got = append(got, string(m.ID)+"!"+map[int]string{-32700: "parse", -32600: "request"}[m.Error.Code])
		default:
			got = append(got, string(m.ID)+" ok")
		}
	}
	want := "!parse !request 2!request !request !parse 0 ok 9 ok"
	if strings.Join(got, " ") != want {
		t.Errorf("answers: got %v, want %s", got, want)
	}
}

// Input that ends right behind a call still gets its answer, however long the run takes.
func TestStdioEndWaitsForAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs.run = func(ctx context.Context, _ sallyport.Principal, _ run.Request) (sallyport.Execution, error) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			t.Error("the run was cancelled")
		}
		return finished(), nil
	}
	if r := f.call(t, alice(), execute, `{"slug":"csv","script_path":"x"}`); r.IsError {
		t.Errorf("got %s", r.Structured)
	}
}

// notifications/cancelled cancels the run; ending the server's context does too.
func TestStdioCancels(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(in io.Writer, stop context.CancelFunc){
		"notification": func(in io.Writer, _ context.CancelFunc) {
			_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
		},
		"context": func(_ io.Writer, stop context.CancelFunc) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			running, ended := make(chan struct{}), make(chan error, 1)
			f.runs.run = func(ctx context.Context, _ sallyport.Principal, _ run.Request) (sallyport.Execution, error) {
				close(running)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
				ended <- ctx.Err()
				return sallyport.Execution{}, ctx.Err()
			}
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := make(chan error, 1)
			go func() { served <- f.ServeStdio(ctx, alice(), inR, outW) }()
			go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(outR)) }()
			_, _ = io.WriteString(inW, initializeLine+"\n"+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_cloud_skill","arguments":{"slug":"csv","script_path":"x"}}}`+"\n")
			<-running
			how(inW, stop)
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the run's context: got %v, want canceled", err)
			}
			_ = inW.Close()
			if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("ServeStdio: got %v", err)
			}
		})
	}
}
