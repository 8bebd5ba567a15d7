//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindTrees(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mountinfo, cgroup string
		want                    []tree
	}{
		{
			"v2 under systemd",
			"31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
			"0::/system.slice/sallyport.service\n",
			[]tree{{v2: true, own: "/sys/fs/cgroup/system.slice/sallyport.service", top: "/sys/fs/cgroup"}},
		},
		{
			"v2 in a container with a group namespace",
			"31 24 0:27 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"0::/\n",
			[]tree{{v2: true, own: "/sys/fs/cgroup", top: "/sys/fs/cgroup"}},
		},
		{
			"v1, joined controllers, empty v2 beside it",
			"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" +
				"33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
				"35 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
			"4:memory:/user.slice\n2:cpu,cpuacct:/\n1:name=systemd:/user.slice/x.scope\n0::/user.slice/x.scope\n",
			[]tree{
				{controllers: []controller{"cpu", "cpuacct"}, own: "/sys/fs/cgroup/cpu,cpuacct", top: "/sys/fs/cgroup/cpu,cpuacct"},
				{controllers: []controller{"memory"}, own: "/sys/fs/cgroup/memory/user.slice", top: "/sys/fs/cgroup/memory"},
				{v2: true, own: "/sys/fs/cgroup/unified/user.slice/x.scope", top: "/sys/fs/cgroup/unified"},
				{controllers: []controller{"name=systemd"}, own: "/sys/fs/cgroup/systemd/user.slice/x.scope", top: "/sys/fs/cgroup/systemd"},
			},
		},
		{
			"v1 in a container whose mount shows a part",
			"33 31 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"4:memory:/docker/abc\n",
			[]tree{{controllers: []controller{"memory"}, own: "/sys/fs/cgroup/memory", top: "/sys/fs/cgroup/memory"}},
		},
		{
			"a similar name is not the mount's root",
			"33 31 0:30 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"4:memory:/docker/abc\n",
			[]tree{{controllers: []controller{"memory"}, own: "/sys/fs/cgroup/memory/docker/abc", top: "/sys/fs/cgroup/memory"}},
		},
		{
			"a blank in the path",
			`33 31 0:30 / /mnt/my\040groups rw - cgroup2 none rw` + "\n",
			"0::/a\n",
			[]tree{{v2: true, own: "/mnt/my groups/a", top: "/mnt/my groups"}},
		},
		{"nothing mounted", "24 1 254:0 / / rw - ext4 /dev/vda rw\n", "0::/\n", nil},
		{"nonsense", "x\n - \n1 2 3 - cgroup2\n", ":::\n\nx\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := findTrees([]byte(tt.mountinfo), []byte(tt.cgroup))
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(tree{})); diff != "" {
				t.Errorf("trees (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadCounter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.events")
	if err := os.WriteFile(path, []byte("low 0\noom 3\noom_kill 2\noom_group_kill 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "memory.peak")
	if err := os.WriteFile(plain, []byte("4096\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, key string
		want      int64
		ok        bool
	}{
		{path, "oom_kill", 2, true},
		{path, "oom", 3, true},
		{path, "kill", 0, false},
		{plain, "", 4096, true},
		{path, "", 0, false},
		{filepath.Join(dir, "absent"), "", 0, false},
	} {
		if got, ok := readCounter(tt.path, tt.key); got != tt.want || ok != tt.ok {
			t.Errorf("%s %q: got %d %v, want %d %v", filepath.Base(tt.path), tt.key, got, ok, tt.want, tt.ok)
		}
	}
}

// A record is only a list of names. Whatever it names, nothing but a control group of that instance is touched.
func TestSweepTouchesNothingElse(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := newState(t, dir, 1<<20)
	records := s.records
	defer func() { s.records = records }()
	victim := filepath.Join(t.TempDir(), "sallyport-dead")
	if err := os.MkdirAll(filepath.Join(victim, "run-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	// An ordinary user's records are in the state folder; so are this test's, or it would look at the host's.
	s.records = filepath.Join(dir, "instances")
	if err := os.MkdirAll(s.records, 0o711); err != nil {
		t.Fatal(err)
	}
	record := victim + "\n/sys/fs/cgroup\n/\n../..\n\n"
	if err := os.WriteFile(filepath.Join(dir, "instances", "dead"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "building", "dead-1", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	dead, err := s.sweep(testDeadline())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"dead"}, dead); diff != "" {
		t.Errorf("swept instances (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(victim, "run-1")); err != nil {
		t.Errorf("an ordinary folder was removed: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "building")); err != nil || len(entries) != 0 {
		t.Errorf("half-made revisions are left: %v, %v", entries, err)
	}
	if _, err := os.Lstat(filepath.Join(s.records, "dead")); err == nil {
		t.Error("the dead instance is still recorded")
	}
}
