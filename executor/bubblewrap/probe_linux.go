//go:build amd64 || arm64

package bubblewrap

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// Probe looks at the host again and tries, inside real sandboxes, what a hostile script would try. It takes a few
// seconds. Its lines are for an operator; nothing in it changes what runs.
func (e *Executor) Probe(ctx context.Context) []Check {
	if !e.begin() {
		return []Check{{Name: "sandbox", Result: CheckFail, Detail: errSpawnerClosed.Error()}}
	}
	defer e.running.Done()
	e.mu.Lock()
	e.probed = nil
	e.mu.Unlock()
	p := e.capabilities(ctx)
	if !p.capabilities.Available {
		return []Check{{Name: "sandbox", Result: CheckFail, Detail: p.capabilities.Reason, Remedy: p.capabilities.Remedy}}
	}
	checks := []Check{{Name: "sandbox", Result: CheckPass, Detail: e.program + " " + e.version(ctx) + ", plan " + p.plan + ", profile " + e.cfg.Profile}}
	checks = append(checks, e.hostView().hostChecks()...)
	checks = append(checks, e.layerChecks(p)...)
	checks = append(checks, e.factChecks(p)...)
	return append(checks, e.forcedChecks(ctx, p.plan)...)
}

// version is for people; what the program can do is seen by running it.
func (e *Executor) version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.program, "--version")
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "(version unknown)"
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap "))
}

// layerChecks has one line per layer that the host may lack.
func (e *Executor) layerChecks(p *probed) []Check {
	reason, fix := e.missingReason(p.capabilities.Missing)
	var checks []Check
	for _, layer := range p.capabilities.Layers {
		checks = append(checks, Check{Name: string(layer), Result: CheckPass, Detail: "enforced"})
	}
	for _, layer := range p.capabilities.Missing {
		checks = append(checks, Check{Name: string(layer), Result: CheckDegraded, Detail: reason, Remedy: fix})
	}
	if p.facts.landlock() == 0 {
		checks = append(checks, Check{
			Name: string(sallyport.LayerLandlock), Result: CheckAdvice,
			Detail: "this kernel has none that can be used; the read-only mounts and the uid of the run hold without it",
			Remedy: "start Linux 5.19 or newer with landlock in its lsm= list",
		})
	}
	return checks
}

// factChecks shows what the probe run saw.
func (e *Executor) factChecks(p *probed) []Check {
	f := p.facts
	check := func(name string, ok bool, detail string) Check {
		if ok {
			return Check{Name: name, Result: CheckPass, Detail: detail}
		}
		return Check{Name: name, Result: CheckFail, Detail: detail, Remedy: "do not run scripts here; report this"}
	}
	denied := func(name string, errnos ...unix.Errno) Check {
		n, _ := strconv.Atoi(f.one(name))
		return check(name, f.refusedWith(name, errnos...), "refused: "+unix.Errno(n).Error())
	}
	return []Check{
		check("inside_uid", f.identityFault(p.plan, e.uids) == "", "uid "+f.one("uid")+", map "+strings.Join(strings.Fields(f.one("uid_map")), " ")),
		check("capabilities", f.withoutPrivileges(), "effective "+f.status("CapEff")+", bounding "+f.status("CapBnd")+", no_new_privs "+f.status("NoNewPrivs")),
		check("seccomp_mode", f.status("Seccomp") == "2", "mode "+f.status("Seccomp")),
		check("descriptors", strings.Join(f["descriptor"], " ") == "0 1 2", strings.Join(f["descriptor"], " ")),
		check("init_environment", !f.refusedWith("init_environment", 0), "not readable"),
		check("hostname", f.one("hostname") == "sallyport", f.one("hostname")),
		check("oom_score", f.one("oom_score_adj") == "1000", f.one("oom_score_adj")),
		denied("write_sysctl", unix.EACCES, unix.EROFS, unix.EPERM),
		denied("write_root", unix.EROFS),
		denied("write_usr", unix.EROFS, unix.EACCES),
		denied("write_dev", unix.EROFS),
		denied("connect", unix.ENETUNREACH),
		denied("packet_socket", unix.EAFNOSUPPORT),
		denied("vsock_socket", unix.EAFNOSUPPORT),
		denied("ptrace", unix.EPERM),
		denied("unshare_user", unix.EPERM),
		denied("unshare_mount", unix.EPERM),
		denied("mount", unix.EPERM),
		denied("io_uring", unix.EPERM),
		denied("keyctl", unix.EPERM),
		denied("bpf", unix.EPERM),
		check("kill_init", f.refusedWith("kill_init", 0), "PID 1 survived SIGKILL from inside"),
		check("write_skill", f.refusedWith("write_skill", 0), "the skill's folder is a writable copy"),
		check("write_tmp", f.refusedWith("write_tmp", 0), "/tmp is writable"),
	}
}

// forcedChecks drives runs into each limit and looks at what is reported, and at what is left.
func (e *Executor) forcedChecks(ctx context.Context, plan string) []Check {
	var checks []Check
	leftovers := 0
	try := func(name, mode string, adjust func(*spec), judge func(sallyport.Result, time.Duration) (CheckResult, string)) {
		s := probeSpec(mode, plan)
		adjust(&s)
		begin := time.Now()
		o, err := e.run(ctx, s)
		took := time.Since(begin)
		if err == nil {
			var r sallyport.Result
			if r, err = o.result(sallyport.Isolation{}, pathInit); err == nil {
				if !o.clean {
					leftovers++
				}
				result, detail := judge(r, took)
				checks = append(checks, Check{Name: name, Result: result, Detail: detail})
				return
			}
		}
		checks = append(checks, Check{Name: name, Result: CheckFail, Detail: withMonitorOutput(o, err).Error()})
	}
	verdict := func(ok bool) CheckResult {
		if ok {
			return CheckPass
		}
		return CheckFail
	}
	const short = 300 * time.Millisecond
	try("forced_timeout", "sleep", func(s *spec) { s.limits.Timeout = short }, func(r sallyport.Result, took time.Duration) (CheckResult, string) {
		return verdict(r.TimedOut && r.ExitCode == nil && took < short+4*time.Second), "stopped after " + took.Round(time.Millisecond).String()
	})
	try("forced_memory", "memory", func(*spec) {}, func(r sallyport.Result, _ time.Duration) (CheckResult, string) {
		if !e.groups.has(controlMemory) {
			return CheckDegraded, "only limited per process"
		}
		return verdict(r.Limit == sallyport.LimitMemory && r.Usage.OOMKills > 0), fmt.Sprintf("signal %d, %d kill for memory, peak %s", r.Signal, r.Usage.OOMKills, optional(r.Usage.MemoryPeakBytes))
	})
	try("forced_processes", "processes", func(*spec) {}, func(r sallyport.Result, _ time.Duration) (CheckResult, string) {
		f := parseFacts(string(r.Stdout))
		n, err := strconv.Atoi(f.one("forked"))
		ok := err == nil && n > 0 && n <= 18 && f.refusedWith("errno", unix.EAGAIN)
		detail := "refused after " + f.one("forked") + " processes"
		if ok && !e.groups.has(controlPIDs) {
			return CheckDegraded, detail + ", by the limit of the user only"
		}
		return verdict(ok), detail
	})
	try("forced_output", "output", func(s *spec) { s.limits.Timeout, s.limits.OutputBytes = short, 4096 }, func(r sallyport.Result, _ time.Duration) (CheckResult, string) {
		return verdict(r.StdoutTruncated && len(r.Stdout) == 4096 && r.StdoutBytes > 1<<20), fmt.Sprintf("kept %d of %d bytes", len(r.Stdout), r.StdoutBytes)
	})
	return append(checks, Check{Name: "leftovers", Result: verdict(leftovers == 0), Detail: fmt.Sprintf("%d runs left something", leftovers)})
}

func optional(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}
