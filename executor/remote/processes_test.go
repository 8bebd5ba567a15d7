//go:build linux

package remote_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/runner"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

// A runner that is killed at any moment leaves a run that is whole, lost or certainly not begun, and never a second one; what it
// left on the host is removed by its successor. Not parallel: it looks at the whole host.
func TestRunnerKilledAtEveryStep(t *testing.T) {
	dir, marks := stateDir(t), t.TempDir()
	var interpreter sallyport.Interpreter
	for _, row := range bubblewrap.FindInterpreters() {
		if row.Extension == "py" {
			interpreter = row
		}
	}
	seen := map[string]int{}
	// A moment is milliseconds after the request, or a step that is waited for: a machine under load reaches them late.
	const begun, answered = -1, -2
	for i, moment := range []int{0, 1, 3, 6, 10, 20, 40, 80, 160, 320, 450, 600, begun, answered} {
		p := startRunner(t, played{StateDir: dir, Marks: marks})
		// The second runner must never be asked once the first may have begun.
		other := startRunner(t, played{Marks: marks, FirstUID: firstUID + uidCount, UIDCount: 8})
		e := newExecutor(t, remote.Config{Runners: []string{"http://" + p.address, "http://" + other.address}, Key: key, PollInterval: time.Minute})
		ready(t, e)
		req := request(fmt.Sprintf("killed-%d", i))
		source := []byte("import time, y\ntime.sleep(0.4)\nprint('x' * 100000 + 'end')\n")
		req.Content, req.ContentSHA256, req.Interpreter = source, sallyport.DigestOf(source).Hex(), interpreter
		sibling := fmt.Appendf(nil, "y = %d\n", i)
		req.Files = []sallyport.Component{
			{Path: "scripts/x.py", Size: int64(len(source)), SHA256: req.ContentSHA256, Content: source},
			{Path: "scripts/y.py", Size: int64(len(sibling)), SHA256: sallyport.DigestOf(sibling).Hex(), Content: sibling},
		}
		req.Limits.Timeout, req.Limits.OutputBytes, req.Grace = 30*time.Second, 1<<20, 4*time.Second
		marked := func() int {
			found, err := filepath.Glob(filepath.Join(marks, string(req.ExecutionID)+".*"))
			if err != nil {
				t.Error(err)
			}
			return len(found)
		}
		returned := make(chan struct{})
		go func() {
			switch moment {
			case begun:
				waitFor(returned, func() bool { return marked() > 0 })
			case answered:
				<-returned
			default:
				time.Sleep(time.Duration(moment) * time.Millisecond)
			}
			p.kill()
		}()
		got, err := e.Execute(t.Context(), req)
		close(returned)
		<-p.done
		times := marked()
		switch {
		case err == nil && len(got.Stdout) == 100_004 && got.ExitCode != nil && *got.ExitCode == 0 && times == 1:
			seen["whole"]++
		case err != nil && sallyport.IsNotStarted(err) && times == 0:
			seen["not started"]++
		case err != nil && !sallyport.IsNotStarted(err) && times <= 1:
			seen["lost"]++
		default:
			t.Errorf("killed at moment %d: %v, %d bytes, begun %d times", moment, err, len(got.Stdout), times)
		}
		_ = other.cmd.Process.Kill()
		<-other.done
	}
	if seen["lost"] == 0 || seen["whole"] == 0 {
		t.Errorf("not every step was met: %v", seen)
	}
	p := startRunner(t, played{StateDir: dir})
	e := newExecutor(t, remote.Config{Runners: []string{"http://" + p.address}, Key: key})
	ready(t, e)
	var left []string
	for range 600 {
		if left = leftovers(t, dir); len(left) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("left on the host: %q", left)
	}
	t.Logf("%v", seen)
}

// ready waits until a runner can be used: under load its first answer may come after the poll gave it up.
func ready(t *testing.T, e *remote.Executor) {
	t.Helper()
	var found sallyport.Capabilities
	for range 600 {
		if found = e.Capabilities(t.Context()); found.Available {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(found.Reason)
}

// waitFor returns when reached says so, or when over is closed.
func waitFor(over <-chan struct{}, reached func() bool) {
	for !reached() {
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// serveTLS serves a runner whose TLS settings a test can change while it runs.
func serveTLS(t *testing.T, settings *atomic.Pointer[tls.Config]) (address string, runs *atomic.Int64) {
	t.Helper()
	runs = &atomic.Int64{}
	r, err := runner.New(runner.Config{
		Executor: &sallyporttest.Executor{
			TB: t, CapabilitiesFunc: func(context.Context) sallyport.Capabilities { return sallyporttest.AllLayers() },
			ExecuteFunc: func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
				runs.Add(1)
				return sallyporttest.Exited(0, "fine"), nil
			},
		},
		Runtimes: map[string]sallyport.Interpreter{"python-3.12": {Extension: "py", Runtime: "python", Program: "/usr/bin/python3"}},
		TLS: &tls.Config{
			ClientAuth:         tls.RequireAndVerifyClientCert,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return settings.Load(), nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	return listener.Addr().String(), runs
}

// Neither side talks to a party whose certificate is not what it expects; nothing begins, at the first contact or later.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	good := func(authority *authority, until time.Time) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.pool(),
			Certificates: []tls.Certificate{authority.issue(t, until)},
		}
	}
	later := time.Now().Add(time.Hour)
	mixed := good(ours, later)
	mixed.ClientCAs = theirs.pool()
	client := &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{ours.issue(t, later)}}
	for name, test := range map[string]struct {
		server *tls.Config
		client *tls.Config
		host   string
	}{
		"server of another authority": {good(theirs, later), client, "127.0.0.1"},
		"server's has expired":        {good(ours, time.Now().Add(-time.Minute)), client, "127.0.0.1"},
		"server of another name":      {good(ours, later), client, "localhost"},
		"client of another authority": {mixed, client, "127.0.0.1"},
		"client without one":          {good(ours, later), &tls.Config{RootCAs: ours.pool()}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var settings atomic.Pointer[tls.Config]
			settings.Store(test.server)
			address, runs := serveTLS(t, &settings)
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			e := newExecutor(t, remote.Config{Runners: []string{"https://" + test.host + ":" + port}, TLS: test.client})
			if found := e.Capabilities(t.Context()); found.Available {
				t.Errorf("got %+v", found)
			}
			if _, err := e.Execute(t.Context(), request("e1")); !sallyport.IsNotStarted(err) || runs.Load() != 0 {
				t.Errorf("got %v", err)
			}

			// The same after a good start: what was known of the runner does not help.
			settings.Store(good(ours, later))
			trusting := newExecutor(t, remote.Config{Runners: []string{"https://" + address}, TLS: client, PollInterval: time.Minute})
			if _, err := trusting.Execute(t.Context(), request("e2")); err != nil {
				t.Fatal(err)
			}
			if test.host != "127.0.0.1" || len(test.client.Certificates) == 0 {
				return
			}
			settings.Store(test.server)
			if _, err := trusting.Execute(t.Context(), request("e3")); !sallyport.IsNotStarted(err) || runs.Load() != 1 {
				t.Errorf("after the change: got %v and %d runs", err, runs.Load())
			}
		})
	}
}

// stall is a TCP proxy that lets so many bytes through in each direction once it is armed, and then keeps still.
type stall struct {
	net.Listener
	target   string
	armed    atomic.Bool
	up, down int64
}

func newStall(tb testing.TB, target string, up, down int64) *stall {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &stall{Listener: listener, target: target, up: up, down: down}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			pipes.Go(func() { s.pass(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		pipes.Wait()
	})
	return s
}

func (s *stall) pass(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", s.target)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	up, down := int64(1<<40), int64(1<<40)
	if s.armed.Load() {
		up, down = s.up, s.down
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.CopyN(far, near, up)
		_, _ = io.Copy(io.Discard, near) // swallowed, until the client gives up
		close(ended)
	}()
	answered := make(chan struct{})
	go func() {
		n, err := io.CopyN(near, far, down)
		if err != nil && n < down {
			close(answered) // the whole answer went through
		}
	}()
	select {
	case <-ended:
	case <-answered:
	}
}

// Something between that goes silent after any number of bytes never makes a second run, nor a certainty that there is none.
func TestStallingProxy(t *testing.T) {
	t.Parallel()
	for _, where := range []struct{ up, down int64 }{
		{0, 1 << 40}, {1, 1 << 40}, {100, 1 << 40}, {400, 1 << 40}, {1 << 40, 0}, {1 << 40, 1}, {1 << 40, 40}, {1 << 40, 130},
	} {
		t.Run(fmt.Sprintf("up %d down %d", where.up, where.down), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, extended, func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				if err == nil {
					_, _ = io.WriteString(w, fine)
				}
			})
			proxy := newStall(t, f.Listener.Addr().String(), where.up, where.down)
			other := newFake(t, extended, answers(fine))
			e := newExecutor(t, remote.Config{Runners: []string{"http://" + proxy.Addr().String()}, PollInterval: time.Minute})
			both := newExecutor(t, remote.Config{Runners: []string{"http://" + proxy.Addr().String(), other.URL}, PollInterval: time.Minute})
			for _, x := range []*remote.Executor{e, both} {
				if found := x.Capabilities(t.Context()); !found.Available {
					t.Fatal(found.Reason)
				}
			}
			proxy.armed.Store(true)
			for name, x := range map[string]*remote.Executor{"alone": e, "one of two": both} {
				began := time.Now()
				_, err := x.Execute(t.Context(), request(name))
				if err == nil || sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeRunnerUnreachable {
					t.Errorf("%s: got %v, want a run that was lost", name, err)
				}
				if took := time.Since(began); took > 1800*time.Millisecond+busy {
					t.Errorf("%s: took %s", name, took)
				}
			}
			if other.asked.Load() != 0 {
				t.Error("the other runner was asked")
			}
		})
	}
}

// A machine that takes connections and never answers its TLS handshake is passed over in time.
func TestHandshakeStalls(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	e := newExecutor(t, remote.Config{Runners: []string{"https://" + listener.Addr().String()}, ConnectTimeout: 100 * time.Millisecond})
	began := time.Now()
	if _, err := e.Execute(t.Context(), request("e")); !sallyport.IsNotStarted(err) || time.Since(began) > 2*time.Second+busy {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}
