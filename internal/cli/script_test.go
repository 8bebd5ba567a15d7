package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the folder of the real binary, built once; state is a state folder that a run's uid can traverse.
var binary, state string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if binary, err = os.MkdirTemp("", "sallyport-bin-"); err != nil {
		return fatal(err)
	}
	defer func() { _ = os.RemoveAll(binary) }()
	if err := os.Chmod(binary, 0o755); err != nil { // an ordinary user runs it too
		return fatal(err)
	}
	if state, err = os.MkdirTemp("", "sallyport-state-"); err != nil {
		return fatal(err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	if err := os.Chmod(state, 0o711); err != nil {
		return fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(binary, "sallyport"), "../../cmd/sallyport")
	if out, err := build.CombinedOutput(); err != nil {
		return fatal(fmt.Errorf("building the binary: %w\n%s", err, out))
	}
	return m.Run()
}

func fatal(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestScript runs testdata/script over the real binary. An ordinary user's host gives fewer layers than the default
// policy demands, so there the scripts run under isolation: degrade; nothing is skipped.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:               setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":      exits,
			"json":       jsonIs,
			"jsonenv":    jsonEnv,
			"awaitfile":  awaitFile,
			"awaitjson":  awaitJSON,
			"repeat":     repeat,
			"mcp":        mcpCall,
			"socketmode": socketMode,
			"selfsigned": selfSigned,
			"bashimage":  bashImage,
		},
	})
}

func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("PATH", binary+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("SALLYPORT_STATE", state)
	env.Setenv("SALLYPORT_DATA", filepath.Join(env.WorkDir, "data"))
	if os.Geteuid() != 0 {
		env.Setenv("SALLYPORT_ISOLATION", "degrade")
	}
	return os.MkdirAll(home, 0o700)
}

// exits N program args... runs a program that must end with exit code N.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code: got %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// document returns the one JSON document that text must be.
func document(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var doc any
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return doc, nil
}

// find follows a path such as data.skills.0.slug; ok is false where it leads nowhere.
func find(doc any, path string) (value any, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch node := doc.(type) {
		case map[string]any:
			if doc, ok = node[name]; !ok {
				return nil, false
			}
		case []any:
			if name == "length" {
				doc = json.Number(strconv.Itoa(len(node)))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			doc = node[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// json [FILE] PATH WANT checks one value of the document that the last program printed, or of FILE. Without PATH and WANT it
// checks that there is exactly one document. "! json PATH" says that there is nothing at the path; a WANT of
// "~text" that the value contains the text.
func jsonIs(ts *testscript.TestScript, neg bool, args []string) {
	source := "stdout"
	if len(args) > 0 && strings.HasSuffix(args[0], ".json") {
		source, args = args[0], args[1:]
	}
	doc, err := document(ts.ReadFile(source))
	if err != nil {
		ts.Fatalf("%s: %v\n%s", source, err, ts.ReadFile(source))
	}
	switch {
	case len(args) == 0 && !neg:
	case len(args) == 1 && neg:
		if value, ok := find(doc, args[0]); ok && value != nil {
			ts.Fatalf("%s: got %s, want nothing", args[0], text(value))
		}
	case len(args) == 2 && !neg:
		value, ok := find(doc, args[0])
		if !ok {
			ts.Fatalf("%s: nothing is there, want %s\n%s", args[0], args[1], ts.ReadFile(source))
		}
		got := text(value)
		if part, contains := strings.CutPrefix(args[1], "~"); contains {
			if !strings.Contains(got, part) {
				ts.Fatalf("%s: got %s, want it to contain %s", args[0], got, part)
			}
			return
		}
		if got != args[1] {
			ts.Fatalf("%s: got %s, want %s\n%s", args[0], got, args[1], ts.ReadFile(source))
		}
	default:
		ts.Fatalf("usage: json [FILE.json] [PATH WANT] or ! json [FILE.json] PATH")
	}
}

// jsonenv [FILE] NAME PATH sets a variable from a document.
func jsonEnv(ts *testscript.TestScript, _ bool, args []string) {
	source := "stdout"
	if len(args) == 3 {
		source, args = args[0], args[1:]
	}
	doc, err := document(ts.ReadFile(source))
	ts.Check(err)
	value, ok := find(doc, args[1])
	if !ok {
		ts.Fatalf("%s: nothing is there", args[1])
	}
	ts.Setenv(args[0], text(value))
}

const patience = 20 * time.Second

func await(ts *testscript.TestScript, what string, ready func() bool) {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		if ready() {
			return
		}
	}
	ts.Fatalf("%s: not there after %v", what, patience)
}

// awaitfile PATH waits until the file is there.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, args[0], func() bool {
		_, err := os.Lstat(ts.MkAbs(args[0]))
		return err == nil
	})
}

// awaitjson FILE waits until the file holds one JSON document.
func awaitJSON(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, args[0], func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil {
			return false
		}
		_, err = document(string(data))
		return err == nil
	})
}

// repeat FILE COUNT TEXT writes TEXT COUNT times.
func repeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[2], n)), 0o600))
}

// selfsigned CERT KEY writes a certificate for 127.0.0.1 and its key.
func selfSigned(ts *testscript.TestScript, _ bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: cert}, {Type: "PRIVATE KEY", Bytes: encoded}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), pem.EncodeToMemory(block), 0o600))
	}
}

// socketmode FILE MODE checks that a file is a socket with exactly this mode.
func socketMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[0]))
	ts.Check(err)
	if info.Mode().Type() != os.ModeSocket || fmt.Sprintf("%04o", info.Mode().Perm()) != args[1] {
		ts.Fatalf("%s: got %v, want a socket of mode %s", args[0], info.Mode(), args[1])
	}
}
