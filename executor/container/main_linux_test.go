package container_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/container"
)

// The engine of these tests is Podman, started here with folders of its own. Missing, it fails them: an engine that is not tried
// is not known to work.
var podman = &engineProcess{}

func TestMain(m *testing.M) {
	if role := os.Getenv("SALLYPORT_TEST_ROLE"); role != "" {
		play(role)
		os.Exit(1)
	}
	code := m.Run()
	podman.stop()
	os.Exit(code)
}

// engineProcess is `podman system service` and where it keeps everything.
type engineProcess struct {
	once   sync.Once
	fault  error
	dir    string
	socket string
	image  string // of python, bash and node, by id

	mu  sync.Mutex
	cmd *exec.Cmd
	log bytes.Buffer
}

// engine returns the running engine.
func engine(tb testing.TB) *engineProcess {
	tb.Helper()
	podman.once.Do(func() { podman.fault = podman.setUp() })
	if podman.fault != nil {
		tb.Fatalf("no engine: %v (podman and runc are needed: scripts/install.sh test)\n%s", podman.fault, podman.log.String())
	}
	return podman
}

func (p *engineProcess) setUp() (err error) {
	if p.dir, err = os.MkdirTemp("", "sallyport-engine"); err != nil {
		return err
	}
	p.socket = filepath.Join(p.dir, "podman.sock")
	if err := p.start(); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(writeImage(writer)) }()
	body, err := p.api(http.MethodPost, "/v1.40/images/create?fromSrc=-&repo=localhost/sallyport-suite&tag=1", reader)
	if err != nil {
		return err
	}
	var answer struct{ ID string }
	for decoder := json.NewDecoder(bytes.NewReader(body)); decoder.More(); {
		if err := decoder.Decode(&answer); err != nil {
			return err
		}
	}
	p.image = answer.ID
	return nil
}

// arguments are the options that keep an engine to its own folders. runc, because crun refuses hosts with both kinds of
// control groups.
func (p *engineProcess) arguments() []string {
	return []string{
		"--root", p.dir + "/root", "--runroot", p.dir + "/run", "--tmpdir", p.dir + "/tmp", "--storage-driver", "overlay", "--runtime", "runc",
		"--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}
}

func (p *engineProcess) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command("podman", append(p.arguments(), "system", "service", "--time=0", "unix://"+p.socket)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// Mounts of its own: tests of other packages, which run at the same time, look at those of the host.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		if _, err := p.api(http.MethodGet, "/version", nil); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the engine does not answer")
}

// kill ends the engine as a crash would; its containers go on without it.
func (p *engineProcess) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
	_ = os.Remove(p.socket)
}

// stop ends the engine and removes all that it made: containers, mounts, control groups, files.
func (p *engineProcess) stop() {
	if p.dir == "" {
		return
	}
	p.kill()
	p.endMonitors()
	remove := exec.Command("podman", append(p.arguments(), "rm", "--force", "--all", "--time", "0")...)
	remove.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	_ = remove.Run()
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/libpod_parent")
	for _, group := range append(groups, "/sys/fs/cgroup/libpod_parent") {
		_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != group {
				_ = os.Remove(path)
			}
			return nil
		})
		_ = os.Remove(group)
	}
	_ = os.RemoveAll(p.dir)
}

// endMonitors kills the monitors of this engine and the containers that they wait for.
func (p *engineProcess) endMonitors() {
	for pid := range p.monitors() {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for _, child := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
}

// monitors are the processes that watch this engine's containers, with what those run.
func (p *engineProcess) monitors() map[int]string {
	found := map[int]string{}
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		line, err := os.ReadFile(entry)
		if err != nil || !strings.Contains(string(line), "conmon") || !strings.Contains(string(line), p.dir) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(entry, "/")[2])
		if err != nil {
			continue
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		child, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(children)) + "/cmdline")
		found[pid] = strings.TrimSpace(strings.ReplaceAll(string(child), "\x00", " "))
	}
	return found
}

// api makes a request of the tests' own.
func (p *engineProcess) api(method, target string, body io.Reader) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p.socket)
	}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://engine"+target, body)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, err
}

// leftovers lists what runs left: containers and volumes of no name on the engine, processes and mounts on the host.
func (p *engineProcess) leftovers(tb testing.TB) []string {
	tb.Helper()
	var left []string
	body, err := p.api(http.MethodGet, "/v1.40/containers/json?all=1", nil)
	if err != nil {
		tb.Fatal(err)
	}
	var found []struct {
		ID     string `json:"Id"`
		State  string
		Labels map[string]string
	}
	if err := json.Unmarshal(body, &found); err != nil {
		tb.Fatal(err)
	}
	for _, c := range found {
		left = append(left, fmt.Sprintf("container %.12s %s %v", c.ID, c.State, c.Labels))
	}
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[1], p.dir) && (strings.HasSuffix(fields[1], "/merged") || strings.HasSuffix(fields[1], "/shm")) {
			left = append(left, "mount "+fields[1])
		}
	}
	return append(left, p.processes(tb)...)
}

// processes are those of containers: PID 1s, what they started, and the monitors of this engine.
func (p *engineProcess) processes(tb testing.TB) []string {
	tb.Helper()
	var left []string
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		line, err := os.ReadFile(entry)
		text := strings.ReplaceAll(string(line), "\x00", " ")
		if err == nil && (strings.Contains(text, "conmon") && strings.Contains(text, p.dir) || strings.HasPrefix(text, "/.sallyport/init ")) {
			left = append(left, "process "+entry+" "+text[:min(len(text), 80)])
		}
	}
	return left
}

// writeImage writes a root file system with this host's own python3, bash and node, and what the suite's scripts call.
func writeImage(out io.Writer) error {
	w := tar.NewWriter(out)
	seen := map[string]bool{}
	for _, dir := range []string{"usr/", "usr/bin/", "usr/lib/", "usr/lib64/", "etc/", "tmp/", "proc/", "sys/", "dev/", "run/", "var/", "home/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		seen["/"+strings.TrimSuffix(dir, "/")] = true
		if err := w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: mode}); err != nil {
			return err
		}
	}
	for _, link := range [][2]string{
		{"bin", "usr/bin"},
		{"sbin", "usr/bin"},
		{"lib", "usr/lib"},
		{"lib64", "usr/lib64"},
		{"usr/bin/sh", "dash"},
		{"usr/bin/python3", filepath.Base(resolved("/usr/bin/python3"))},
	} {
		seen["/"+link[0]] = true
		if err := w.WriteHeader(&tar.Header{Name: link[0], Linkname: link[1], Typeflag: tar.TypeSymlink, Mode: 0o777}); err != nil {
			return err
		}
	}
	files := []string{resolved("/usr/bin/python3"), resolved("/usr/bin/node")}
	for name := range strings.FieldsSeq("bash dash env ls cat sleep seq head grep wc setsid id tr ln mkfifo mv cp chmod rmdir rm mkdir uname kill yes true false touch sort tail dd stat nice renice ionice taskset flock timeout nproc find xargs sed cut tee date mktemp") {
		files = append(files, "/usr/bin/"+name)
	}
	library := filepath.Join("/usr/lib", filepath.Base(resolved("/usr/bin/python3")))
	err := filepath.WalkDir(library, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"test", "idlelib", "ensurepip", "__pycache__", "lib2to3", "pydoc_data"}, entry.Name()):
			return fs.SkipDir
		case entry.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(files); i++ {
		path := files[i]
		if seen[path] {
			continue
		}
		seen[path] = true
		if err := addFile(w, path); err != nil {
			return err
		}
		if strings.HasPrefix(path, "/usr/bin/") || strings.HasSuffix(path, ".so") {
			files = append(files, libraries(path)...)
		}
	}
	return w.Close()
}

func resolved(path string) string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return target
}

// addFile writes the content that path leads to, under the name by which it is looked for.
func addFile(w *tar.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(path, "/")
	for _, dir := range []string{"lib/", "lib64/", "bin/"} {
		if strings.HasPrefix(name, dir) {
			name = "usr/" + name
		}
	}
	header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: info.Size()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

var libraryLine = regexp.MustCompile(`(/\S+) \(0x`)

// libraries are the files that a program is linked to.
func libraries(path string) []string {
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		return nil // it is static
	}
	var list []string
	for scanner := bufio.NewScanner(bytes.NewReader(out)); scanner.Scan(); {
		if m := libraryLine.FindStringSubmatch(scanner.Text()); m != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// images are those of the suite's interpreters.
func (p *engineProcess) images() map[string]string {
	return map[string]string{"python": p.image, "bash": p.image, "node": p.image}
}

func (p *engineProcess) config() container.Config {
	return container.Config{Socket: p.socket, Owner: "tests", Images: p.images()}
}

func newExecutor(tb testing.TB, cfg container.Config) *container.Executor {
	tb.Helper()
	e, err := container.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func interpreters() []sallyport.Interpreter { return container.Interpreters() }
