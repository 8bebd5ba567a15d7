package container_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/container"
)

// request is a run of a bash script under small limits.
func request(source string) sallyport.ExecRequest {
	content := []byte(source)
	sum := sallyport.DigestOf(content).Hex()
	return sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID(fmt.Sprintf("exec-%d", time.Now().UnixNano())), TenantID: "tenant", Slug: "attempt", ScriptPath: "x.sh",
		Content: content, ContentSHA256: sum, Files: []sallyport.Component{{Path: "x.sh", Content: content, SHA256: sum, Size: int64(len(content))}},
		Interpreter: sallyport.Interpreter{Extension: "sh", Runtime: "bash", Program: "bash"},
		Limits: sallyport.Limits{
			Timeout: 20 * time.Second, MemoryBytes: 128 << 20, Processes: 32, CPUMillis: 2000, ScratchBytes: 8 << 20, OutputBytes: 64 << 10,
			ArtifactBytes: 4 << 20, ArtifactFiles: 8,
		},
		Grace: 5 * time.Second,
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("it never became true that %s", what)
		}
	}
}

// play is what this binary does as another process: a server that runs one script after the other, and says so.
func play(socket string) {
	e, err := container.New(container.Config{Socket: socket, Owner: "killed", Images: map[string]string{"bash": os.Getenv("SALLYPORT_TEST_IMAGE")}})
	if err == nil {
		if c := e.Capabilities(context.Background()); !c.Available {
			err = errors.New(c.Reason)
		}
	}
	for err == nil {
		_, _ = fmt.Fprintln(os.Stdout, "begin")
		_, err = e.Execute(context.Background(), request("sleep 0.3\n"))
	}
	_, _ = fmt.Fprintln(os.Stderr, err)
}

// A server that is killed at any moment of a run leaves no process; what it leaves on the engine is gone when the next one has
// started, and what is another server's is not touched. Not parallel: it looks at the whole engine.
func TestServerKilled(t *testing.T) {
	p := engine(t)
	theirs := "sallyport-test-theirs"
	body := strings.NewReader(`{"Image":"` + p.image + `","Entrypoint":["/bin/sleep","1"],"Labels":{"dev.sallyport.owner":"others","dev.sallyport.expires":"1","dev.sallyport.process":"a.1.1"}}`)
	if _, err := p.api(http.MethodPost, "/v1.40/containers/create?name="+theirs, body); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for step := range 6 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "SALLYPORT_TEST_ROLE="+p.socket, "SALLYPORT_TEST_IMAGE="+p.image)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("the other server did not begin")
		}
		time.Sleep(time.Duration(step) * 70 * time.Millisecond) // any moment is one to be killed at
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		eventually(t, "no process of a run lives", func() bool {
			for _, line := range p.processes(t) {
				if strings.Contains(line, "/.sallyport/init") {
					return false
				}
			}
			return true
		})
	}
	cfg := p.config()
	cfg.Owner = "killed"
	e := newExecutor(t, cfg)
	if c := e.Capabilities(t.Context()); !c.Available {
		t.Fatal(c.Reason)
	}
	eventually(t, "nothing of the killed servers is left", func() bool {
		for _, line := range p.leftovers(t) {
			if !strings.Contains(line, "others") {
				return false
			}
		}
		return true
	})
	if _, err := p.api(http.MethodGet, "/v1.40/containers/"+theirs+"/json", nil); err != nil {
		t.Errorf("the container of another server is gone: %v", err)
	}
	if _, err := p.api(http.MethodDelete, "/v1.40/containers/"+theirs+"?force=1", nil); err != nil {
		t.Error(err)
	}
}

// An engine that is killed at any moment of a run: the answer comes in time and is true, and when the engine is there again the next
// run works and nothing is left. Not parallel: it ends the engine of the other tests.
func TestEngineKilled(t *testing.T) {
	p := engine(t)
	e := newExecutor(t, p.config())
	if c := e.Capabilities(t.Context()); !c.Available {
		t.Fatal(c.Reason)
	}
	for step := range 5 {
		type answer struct {
			r    sallyport.Result
			err  error
			took time.Duration
		}
		answers := make(chan answer, 1)
		req := request("echo begun\nsleep 0.5\necho done\n")
		req.Limits.Timeout = 2 * time.Second
		go func() {
			begin := time.Now()
			r, err := e.Execute(t.Context(), req)
			answers <- answer{r, err, time.Since(begin)}
		}()
		time.Sleep(time.Duration(step) * 130 * time.Millisecond) // any moment is one to be killed at
		p.kill()
		a := <-answers
		if bound := req.Limits.Timeout + req.Grace + time.Second; a.took > bound {
			t.Errorf("step %d: took %s of %s", step, a.took, bound)
		}
		switch {
		case a.err == nil && a.r.ExitCode != nil && *a.r.ExitCode == 0 && string(a.r.Stdout) != "begun\ndone\n":
			t.Errorf("step %d: a success without its output: %q", step, a.r.Stdout)
		case a.err != nil && sallyport.IsNotStarted(a.err) && len(a.r.Stdout) > 0:
			t.Errorf("step %d: not started, and it wrote %q", step, a.r.Stdout)
		}
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next run works", func() bool {
			r, err := e.Execute(t.Context(), request("echo fine\n"))
			return err == nil && string(r.Stdout) == "fine\n"
		})
	}
	// Podman that is killed between making a container and writing it down leaves its runtime waiting for a start that cannot come.
	// No script is in there, and nobody but the operator can know of it.
	eventually(t, "no monitor watches anything else", func() bool {
		for _, runs := range p.monitors() {
			if !strings.HasSuffix(runs, "runc init") {
				return false
			}
		}
		return true
	})
	p.endMonitors()
	// One that it did write down is removed by the executor's own patience, or by the next server.
	var left []string
	for range 40 {
		if left = p.leftovers(t); len(left) == 0 {
			return
		}
		newExecutor(t, p.config()).Capabilities(t.Context())
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("left: %q", left)
}
