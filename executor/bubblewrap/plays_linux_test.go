//go:build amd64 || arm64

package bubblewrap_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// plays are the programs that the test binary can be, by the value of playVariable.
func plays() map[string]func() int {
	return map[string]func() int{
		"capabilities": playCapabilities,
		"supervisor":   playSupervisor,
		// For the attacks, see attack_supervisor_linux_test.go.
		"fifty":           playFifty,
		"paused":          playPaused,
		"few_descriptors": playFewDescriptors,
		"hardened":        playHardened,
		"hung":            playHung,
		"init":            playInit,
	}
}

// playConfig is the executor's configuration, on standard input of a play.
func playConfig() (*bubblewrap.Executor, error) {
	var cfg bubblewrap.Config
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &cfg); err != nil {
		return nil, err
	}
	return bubblewrap.New(cfg)
}

// playCapabilities prints the capabilities of an executor as JSON.
func playCapabilities() int {
	e, err := playConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(e.Capabilities(context.Background())); err != nil {
		return 1
	}
	if err := e.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// playSupervisor runs scripts that would go on for minutes, and waits to be killed.
func playSupervisor() int {
	e, err := playConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	for range 2 {
		go func() {
			req := request("bash", "/bin/bash", "setsid sleep 300 &\nsleep 300\n")
			req.Limits.Timeout = time.Minute
			_, err := e.Execute(context.Background(), req)
			fmt.Fprintln(os.Stderr, "the run ended:", err)
		}()
	}
	time.Sleep(time.Minute)
	return 1
}

// play starts the test binary as another program, as another user when uid is not negative.
func play(tb testing.TB, name string, uid int, cfg bubblewrap.Config, args ...string) *exec.Cmd {
	tb.Helper()
	binary := testBinary(tb)
	cmd := exec.CommandContext(tb.Context(), binary, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=/tmp"}
	if name != "" {
		cmd.Env = append(cmd.Env, playVariable+"="+name)
	}
	if uid >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	encoded, err := json.Marshal(struct {
		StateDir           string
		FirstUID, UIDCount int
		Plan               string
	}{cfg.StateDir, cfg.FirstUID, cfg.UIDCount, cfg.Plan})
	if err != nil {
		tb.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := stdin.Write(append(encoded, '\n')); err != nil {
		tb.Fatal(err)
	}
	return cmd
}

// openDir is a temporary folder that every user can pass through, owned by uid when that is not negative.
func openDir(tb testing.TB, uid int) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sallyport-test") //nolint:usetesting // tb.TempDir is closed to other users
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if uid >= 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// testBinary is a copy of the running binary that other users can execute.
func testBinary(tb testing.TB) string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(openDir(tb, -1), "test")
	// By another process: a descriptor of ours that can write would be in whatever else is forked meanwhile, and a file that is
	// open for writing cannot be executed.
	if out, err := exec.CommandContext(tb.Context(), "cp", self, path).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		tb.Fatal(err)
	}
	return path
}

// request is a run of source with the default limits.
func request(runtime, program, source string) sallyport.ExecRequest {
	script := component("scripts/script", source)
	return sallyport.ExecRequest{
		ExecutionID: "exec-1", TenantID: "tenant", Slug: "skill", Digest: sallyport.DigestOf([]byte(source)),
		ScriptPath: script.Path, Interpreter: sallyport.Interpreter{Runtime: runtime, Program: program},
		Content: script.Content, ContentSHA256: script.SHA256, Files: []sallyport.Component{script},
		Stdin: []byte("{}"), Limits: sallyport.DefaultLimits(), Grace: sallyport.DefaultGrace,
	}
}

func component(path, content string) sallyport.Component {
	return sallyport.Component{
		Path: path, Kind: sallyport.KindScript, Size: int64(len(content)), Content: []byte(content),
		SHA256: sallyport.DigestOf([]byte(content)).Hex(),
	}
}
