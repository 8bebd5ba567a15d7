package container

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// fakeEngine is an engine whose containers are goroutines, and which fails as it is told.
type fakeEngine struct {
	socket string

	mu         sync.Mutex
	containers map[string]*fakeContainer
	images     map[string]bool
	begun      int // scripts that were given the word
	foreign    []listed
	failures   int // calls that were failed
	// fail says how a call ends; "" is as it should. It is asked with the lock held.
	fail func(call string) fault
	// report replaces what PID 1 says behind the word.
	report func(w io.Writer)
	closed chan struct{}
}

// fault is how a call goes wrong.
type fault string

// The ways in which an engine fails.
const (
	none    fault = ""
	refuses fault = "refuses" // answers 500
	hangs   fault = "hangs"   // never answers
	closes  fault = "closes"  // hangs up without doing it
	loses   fault = "does it and hangs up"
	garbage fault = "answers garbage"
	endless fault = "answers without end"
	slow    fault = "answers one byte at a time"
)

func faults() []fault { return []fault{refuses, hangs, closes, loses, garbage, endless, slow} }

type fakeContainer struct {
	body    map[string]any
	started chan struct{}
	removed chan struct{}
}

func newFakeEngine(t *testing.T) *fakeEngine {
	t.Helper()
	f := &fakeEngine{
		socket: filepath.Join(t.TempDir(), "e.sock"), containers: map[string]*fakeContainer{},
		images: map[string]bool{"img": true}, closed: make(chan struct{}),
	}
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() {
		close(f.closed)
		_ = server.Close()
		<-done
	})
	return f
}

// setFault makes call fail in this way from now on; an empty call makes everything well.
func (f *fakeEngine) setFault(call string, how fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = 0
	f.fail = func(c string) fault {
		if c == call {
			f.failures++
			return how
		}
		return none
	}
}

func (f *fakeEngine) counts() (begun, failures, containers int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun, f.failures, len(f.containers)
}

// callName is the name of a request in these tests.
func callName(r *http.Request) (call, name string) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "version" {
		return "version", ""
	}
	switch what := parts[1]; {
	case what == "info" || what == "events":
		return what, ""
	case what == "images" && parts[2] == "load":
		return "load", ""
	case what == "images":
		return "image", strings.TrimSuffix(strings.Join(parts[2:], "/"), "/json")
	case what == "volumes":
		return "volume", ""
	case parts[2] == "create":
		return "create", r.URL.Query().Get("name")
	case parts[2] == "json":
		return "list", ""
	case r.Method == http.MethodDelete:
		return "delete", parts[2]
	case parts[3] == "json":
		return "inspect", parts[2]
	default:
		return parts[3], parts[2] // attach, start, archive
	}
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, name := callName(r)
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	how := none
	if f.fail != nil {
		how = f.fail(call)
	}
	f.mu.Unlock()
	switch how {
	case refuses:
		http.Error(w, `{"message":"no\nway"}`, http.StatusInternalServerError)
	case hangs:
		select {
		case <-r.Context().Done():
		case <-f.closed:
		}
	case closes:
		panic(http.ErrAbortHandler)
	case loses:
		f.act(nil, call, name, body, r)
		panic(http.ErrAbortHandler)
	case garbage:
		_, _ = io.WriteString(w, "\x00<html>\xff{")
	case endless, slow:
		block := []byte(strings.Repeat(" ", 1<<16))
		for r.Context().Err() == nil {
			if how == slow {
				block = block[:1]
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := w.Write(block); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	case none:
		f.act(w, call, name, body, r)
	}
}

// act does what a call asks for, and answers when there is somebody to answer to.
func (f *fakeEngine) act(w http.ResponseWriter, call, name string, body []byte, r *http.Request) {
	status, answer := f.do(call, name, body)
	switch {
	case w == nil:
	case call == "attach" && status == http.StatusOK:
		f.attached(w, name)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
	_ = r
}

func (f *fakeEngine) do(call, name string, body []byte) (status int, answer any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.containers[name]
	absent := map[string]string{"message": "no such container"}
	switch call {
	case "version":
		return 200, map[string]any{"ApiVersion": "1.43", "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64"}
	case "info":
		return 200, map[string]any{"NCPU": 4}
	case "image":
		if !f.images[name] && !strings.HasPrefix(name, "localhost/") || strings.HasPrefix(name, "localhost/") && !f.images["loaded"] {
			return 404, map[string]string{"message": "no such image"}
		}
		return 200, map[string]any{"Id": "sha256:" + strings.Repeat("ab", 32), "Architecture": "amd64"}
	case "load":
		f.images["loaded"] = true
		return 200, nil
	case "volume", "archive":
		return 201, map[string]any{}
	case "list":
		found := append([]listed{}, f.foreign...)
		for name, c := range f.containers {
			labels := map[string]string{}
			if all, ok := c.body["Labels"].(map[string]any); ok {
				for key, value := range all {
					labels[key] = fmt.Sprint(value)
				}
			}
			found = append(found, listed{ID: name, Labels: labels, State: "running", Created: json.Number(fmt.Sprint(time.Now().Unix()))})
		}
		return 200, found
	case "events":
		return 200, nil
	case "create":
		made := &fakeContainer{started: make(chan struct{}), removed: make(chan struct{})}
		_ = json.Unmarshal(body, &made.body)
		f.containers[name] = made
		return 201, map[string]string{"Id": name}
	}
	for i, other := range f.foreign {
		if other.ID == name && call == "delete" {
			f.foreign = append(f.foreign[:i:i], f.foreign[i+1:]...)
			return 204, nil
		}
	}
	if c == nil {
		return 404, absent
	}
	switch call {
	case "start":
		select {
		case <-c.started:
		default:
			close(c.started)
		}
		return 204, nil
	case "delete":
		close(c.removed)
		delete(f.containers, name)
		return 204, nil
	}
	return 200, map[string]any{}
}

// attached is the container's side of its streams.
func (f *fakeEngine) attached(w http.ResponseWriter, name string) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	f.mu.Lock()
	c := f.containers[name]
	f.mu.Unlock()
	select {
	case <-c.started:
	case <-c.removed:
		return
	case <-f.closed:
		return
	}
	go func() { // a container that is removed ends
		select {
		case <-c.removed:
		case <-f.closed:
		}
		_ = conn.Close()
	}()
	f.initProcess(c, buffered.Reader, muxed{conn})
	_, _ = io.Copy(io.Discard, buffered.Reader) // until the executor hangs up
}

// muxed writes the stream of a container's standard output as an engine does.
type muxed struct{ to io.Writer }

func (m muxed) Write(p []byte) (int, error) {
	header := []byte{1, 0, 0, 0, byte(len(p) >> 24), byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p))}
	if _, err := m.to.Write(header); err != nil {
		return 0, err
	}
	return m.to.Write(p)
}

func send(w io.Writer, kind, value uint32, size uint64, content string) {
	b := order.AppendUint32(nil, kind)
	b = order.AppendUint32(b, value)
	b = order.AppendUint64(b, 0)
	b = order.AppendUint64(b, size)
	_, _ = w.Write(append(b, content...))
}

// initProcess is PID 1.
func (f *fakeEngine) initProcess(c *fakeContainer, in *bufio.Reader, w io.Writer) {
	argv, err := readOrders(in)
	if err != nil {
		return
	}
	send(w, frameReady, 0, 0, "")
	if word, err := in.ReadByte(); err != nil || word != commandGo {
		return
	}
	f.mu.Lock()
	f.begun++
	report := f.report
	f.mu.Unlock()
	output := "done\n"
	switch {
	case argv == pathInit+"\x00facts\x00":
		output = factsOf(c)
	case argv == pathInit+"\x00limits\x00":
		output = "spun 60000\neaten 9\nforked 11\nerrno 11\n"
	case report != nil:
		report(w)
		return
	}
	wholeReport(w, output)
}

// wholeReport is what PID 1 says of a script that printed output and ended well.
func wholeReport(w io.Writer, output string) {
	send(w, frameStarted, 0, 0, "")
	send(w, frameStream, 1, uint64(len(output)), output)
	send(w, frameExited, 0, 0, "")
	send(w, frameTotal, 1, uint64(len(output)), "")
	send(w, frameTotal, 2, 0, "")
	send(w, frameUsage, usageCPU, 1500, "")
	send(w, frameEnd, 0, 0, "")
}

// readOrders reads what the executor hands over and returns the blob of arguments.
func readOrders(in *bufio.Reader) (string, error) {
	header := make([]byte, 14*4+9*8)
	if _, err := io.ReadFull(in, header); err != nil {
		return "", err
	}
	word := func(i int) int { return int(order.Uint32(header[4*i:])) }
	if word(0) != configMagic {
		return "", errors.New("no orders")
	}
	blob := make([]byte, word(6)+word(2)+word(4)+int(order.Uint64(header[14*4:])))
	if _, err := io.ReadFull(in, blob); err != nil {
		return "", err
	}
	for range word(7) {
		var file [16]byte
		if _, err := io.ReadFull(in, file[:]); err != nil {
			return "", err
		}
		if _, err := in.Discard(int(order.Uint32(file[4:])) + int(order.Uint64(file[8:]))); err != nil {
			return "", err
		}
	}
	return string(blob[word(6) : word(6)+word(2)]), nil
}

// factsOf is what a probe sees in a container that is all it should be.
func factsOf(c *fakeContainer) string {
	uid, _, _ := strings.Cut(fmt.Sprint(c.body["User"]), ":")
	size := probeSpec("", "").sizes()
	var out strings.Builder
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		fmt.Fprintf(&out, "status %s: 0000000000000000\n", set)
	}
	fmt.Fprintf(&out, "status NoNewPrivs: 1\nstatus Seccomp: 2\nstatus Uid: %s %s %s %s\nstatus Gid: %s %s %s %s\nstatus Groups:\n", uid, uid, uid, uid, uid, uid, uid, uid)
	fmt.Fprintf(&out, "uid %s\ngid %s\nlandlock 6\nhostname sallyport\ndescriptor 0\ndescriptor 1\ndescriptor 2\n", uid, uid)
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		fmt.Fprintf(&out, "namespace %s %s:[1]\n", kind, kind)
	}
	out.WriteString("namespace user user:[4026531837]\n")
	for name, errno := range map[string]int{
		"connect": 101, "packet_socket": 97, "vsock_socket": 97, "netlink_socket": 0, "ptrace": 1, "unshare_user": 1, "unshare_mount": 1,
		"clone3": 38, "io_uring": 1, "keyctl": 1, "bpf": 1, "mount": 1, "watch_files": 0, "write_sysctl": 13, "write_comm": 13,
		"write_root": 30, "write_usr": 30, "write_dev": 13, "write_skill": 0, "write_tmp": 0,
	} {
		fmt.Fprintf(&out, "%s %d\n", name, errno)
	}
	fmt.Fprintf(&out, "size_tmp %d\nsize_shm %d\nsize_home %d\nsize_var_tmp %d\nsize_skill %d\nsize_output %d\nsize_run 65536\nsize_sys 65536\n",
		size.scratch, size.scratch, size.scratch, size.scratch, size.skill, size.output)
	out.WriteString("cpu_counter 1\ncpu_max 20000 100000\n")
	return out.String()
}

// newFakeExecutor is an executor of a fake engine, with little patience.
func newFakeExecutor(t *testing.T, f *fakeEngine) *Executor {
	t.Helper()
	e, err := New(Config{Socket: f.socket, Owner: "me", Images: map[string]string{"bash": "img"}, callTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.setFault("", none)
		_ = e.Close()
	})
	return e
}

func fakeRequest(t *testing.T) sallyport.ExecRequest {
	t.Helper()
	source := []byte("echo done\n")
	sum := digest(source)
	id := sallyport.ExecutionID(containerName())
	limits := sallyport.DefaultLimits()
	limits.Timeout = 500 * time.Millisecond
	return sallyport.ExecRequest{
		ExecutionID: id, TenantID: "t", Slug: "s", ScriptPath: "x.sh", Content: source, ContentSHA256: sum,
		Files:       []sallyport.Component{{Path: "x.sh", Content: source, SHA256: sum, Size: int64(len(source))}},
		Interpreter: sallyport.Interpreter{Extension: "sh", Runtime: "bash", Program: "bash"},
		Limits:      limits, Grace: 2 * time.Second,
	}
}
