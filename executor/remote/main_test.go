package remote_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/runner"
)

const (
	playVariable = "SALLYPORT_TEST_PLAY"
	key          = sallyport.Secret("a key for tests only, long enough")
	firstUID     = 61250
	uidCount     = 16
)

// TestMain makes the test binary play a runner: a process of its own over a real sandbox, which tests kill.
func TestMain(m *testing.M) {
	if os.Getenv(playVariable) == "runner" {
		if err := playRunner(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// played is what a played runner reads from its standard input.
type played struct {
	StateDir           string
	FirstUID, UIDCount int
	Slots              int
	// Marks is a folder in which every call of the executor leaves a file; empty for none.
	Marks    string
	Chain    [][]byte
	Key      []byte
	ClientCA []byte
}

func playRunner() error {
	var cfg played
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := bubblewrap.New(bubblewrap.Config{StateDir: cfg.StateDir, FirstUID: cfg.FirstUID, UIDCount: cfg.UIDCount, Logger: log})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	runtimes := map[string]sallyport.Interpreter{}
	for _, row := range bubblewrap.FindInterpreters() {
		runtimes[row.Program], runtimes[row.Runtime] = row, row
	}
	// The suite asks for interpreters that are not there; the sandbox is to say so, not the list.
	for _, absent := range []string{"/usr/bin/sallyport-no-such-interpreter", "/usr/lib"} {
		runtimes[absent] = sallyport.Interpreter{Extension: "sh", Runtime: "bash", Program: absent}
	}
	rc := runner.Config{Executor: marking{e, cfg.Marks}, Runtimes: runtimes, Keys: []sallyport.Secret{key}, Slots: cfg.Slots, RequiredLayers: []sallyport.Layer{}, Logger: log, Patience: 5 * time.Second}
	if cfg.Chain != nil {
		private, err := x509.ParseECPrivateKey(cfg.Key)
		if err != nil {
			return err
		}
		authorities := x509.NewCertPool()
		ca, err := x509.ParseCertificate(cfg.ClientCA)
		if err != nil {
			return err
		}
		authorities.AddCert(ca)
		rc.TLS = &tls.Config{
			Certificates: []tls.Certificate{{Certificate: cfg.Chain, PrivateKey: private}},
			ClientCAs:    authorities, ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	r, err := runner.New(rc)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return r.Serve(ctx, listener)
}

// marking leaves a file for every run before it begins, named by execution and process.
type marking struct {
	sallyport.Executor
	dir string
}

func (m marking) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	if m.dir != "" {
		name := filepath.Join(m.dir, fmt.Sprintf("%s.%d", req.ExecutionID, os.Getpid()))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return sallyport.Result{}, sallyport.NotStarted(err)
		}
	}
	return m.Executor.Execute(ctx, req)
}

// process is a played runner.
type process struct {
	address string
	cmd     *exec.Cmd
	done    chan struct{}
}

// startRunner starts a runner process; it is killed when the test ends.
func startRunner(tb testing.TB, cfg played) *process {
	tb.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = stateDir(tb)
	}
	if cfg.FirstUID == 0 {
		cfg.FirstUID, cfg.UIDCount = firstUID, uidCount
	}
	input, err := json.Marshal(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), playVariable+"=runner")
	cmd.Stdin = strings.NewReader(string(input))
	cmd.Stderr = tb.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the runner did not start: %v", err)
	}
	p.address = strings.TrimSpace(line)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			tb.Error("the runner did not stop")
			p.kill()
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stateDir is a folder that uids of runs can traverse.
func stateDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sallyport-runner-") //nolint:usetesting // t.TempDir is closed to other uids
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, "state")
}

// leftovers are the processes and control groups that runs of one state folder left.
func leftovers(tb testing.TB, dir string) []string {
	tb.Helper()
	var left []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range entries {
		info, err := p.Info()
		if _, notPID := strconv.Atoi(p.Name()); err != nil || notPID != nil || os.Geteuid() != 0 {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid >= firstUID && stat.Uid < firstUID+uidCount {
			left = append(left, fmt.Sprintf("process %s of uid %d", p.Name(), stat.Uid))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "instances", "*"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // its instance has just ended
		}
		for group := range strings.FieldsSeq(string(data)) {
			groups, _ := os.ReadDir(group)
			for _, g := range groups {
				if g.IsDir() {
					left = append(left, "control group "+group+"/"+g.Name())
				}
			}
		}
	}
	return left
}

// authority signs certificates of one test.
type authority struct {
	der  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &authority{der, cert, private}
}

// issue makes a certificate for 127.0.0.1 that serves and shows.
func (a *authority) issue(tb testing.TB, until time.Time) tls.Certificate {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "party"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// secured makes cfg a runner that serves TLS and asks for certificates of a.
func (a *authority) secured(tb testing.TB, cfg played) played {
	tb.Helper()
	cert := a.issue(tb, time.Now().Add(time.Hour))
	private, ok := cert.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		tb.Fatal("not an ECDSA key")
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Chain, cfg.Key, cfg.ClientCA = cert.Certificate, der, a.der
	return cfg
}
