package bubblewrap

import "testing"

func TestWithoutPaths(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"mkdir /srv/state/revisions: permission denied":                     "mkdir a place of this host: permission denied",
		"/var/lib/sallyport-sandbox is not a folder":                        "a place of this host is not a folder",
		`open "/home/alice/.cache/x": too many links`:                       `open "a place of this host": too many links`,
		"state_dir=/opt/a (from /opt/b), /opt/c":                            "state_dir=a place of this host (from a place of this host), a place of this host",
		"bwrap: Failed to make / slave: Permission denied":                  "bwrap: Failed to make / slave: Permission denied",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted": "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
		"read /proc/self/cgroup and/or /sys/fs/cgroup":                      "read /proc/self/cgroup and/or /sys/fs/cgroup",
		"fork/exec /opt/tools/bwrap: exec format error":                     "fork/exec a place of this host: exec format error",
		"": "",
	} {
		if got := withoutPaths(reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}
