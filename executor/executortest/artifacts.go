package executortest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
)

// artifacts: what a script leaves in the two agreed places comes back, bounded, and nothing else does, whatever the
// script put there.
func artifacts() []attempt {
	list := []attempt{
		{name: "output data", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "printf '{\"rows\": 3}' > \"$SKILL_OUTPUT.tmp\"\nmv \"$SKILL_OUTPUT.tmp\" \"$SKILL_OUTPUT\"\n"))
			printed(t, r, "")
			if string(r.OutputData) != `{"rows": 3}` || r.OutputDataTruncated {
				t.Errorf("output data %q", r.OutputData)
			}
		}},
		{name: "no output data", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "exit 0\n"))
			exited(t, r, 0)
			if r.OutputData != nil || len(r.Artifacts) != 0 || r.ArtifactsLost || len(r.ArtifactNotes) != 0 {
				t.Errorf("output data %q, artifacts %v, lost %v, notes %q", r.OutputData, r.Artifacts, r.ArtifactsLost, r.ArtifactNotes)
			}
		}},
		{name: "output data of a failed script", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "echo 1 > \"$SKILL_OUTPUT\"\nexit 5\n"))
			exited(t, r, 5)
			if string(r.OutputData) != "1\n" {
				t.Errorf("output data %q", r.OutputData)
			}
		}},
		{name: "output data over its limit", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "head -c 3000000 /dev/zero > \"$SKILL_OUTPUT\"\n"))
			exited(t, r, 0)
			if r.OutputData != nil || !r.OutputDataTruncated {
				t.Errorf("kept %d bytes, truncated %v", len(r.OutputData), r.OutputDataTruncated)
			}
		}},
		{name: "output data is a link", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "ln -s /etc/passwd \"$SKILL_OUTPUT\"\n"))
			exited(t, r, 0)
			if r.OutputData != nil || len(r.ArtifactNotes) == 0 {
				t.Errorf("output data %q, notes %q", r.OutputData, r.ArtifactNotes)
			}
		}},
		{name: "output data is a pipe", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "mkfifo \"$SKILL_OUTPUT\"\n"))
			exited(t, r, 0)
			if r.OutputData != nil || r.ArtifactsLost {
				t.Errorf("output data %q, lost %v", r.OutputData, r.ArtifactsLost)
			}
		}},
		{name: "artifacts come back", run: artifactsComeBack},
		{name: "only the agreed folder is collected", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "echo x > report.txt; echo x > \"$TMPDIR/report.txt\"; echo x > ~/report.txt\n"))
			exited(t, r, 0)
			if len(r.Artifacts) != 0 {
				t.Errorf("artifacts %v", paths(r))
			}
		}},
		{name: "artifacts of a timed out script", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo partial > \"$SKILL_ARTIFACTS/log\"\necho 2 > \"$SKILL_OUTPUT\"\nsleep 60\n")
			req.Limits.Timeout = time.Second
			r := s.do(t, req)
			timedOut(t, r)
			if diff := cmp.Diff([]string{"log"}, paths(r)); diff != "" || string(r.OutputData) != "2\n" {
				t.Errorf("output data %q, artifacts (-want +got):\n%s", r.OutputData, diff)
			}
		}},
		{name: "too many artifacts", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "for i in $(seq 300); do echo $i > \"$SKILL_ARTIFACTS/$i\"; done\n"))
			exited(t, r, 0)
			if len(r.Artifacts) != 8 || len(r.ArtifactNotes) == 0 || len(r.ArtifactNotes) > 300 {
				t.Errorf("%d artifacts, %d notes", len(r.Artifacts), len(r.ArtifactNotes))
			}
		}},
		{name: "artifacts over their bytes", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "cd \"$SKILL_ARTIFACTS\"\nhead -c 3000000 /dev/zero > a\nhead -c 3000000 /dev/zero > b\n"))
			exited(t, r, 0)
			if len(r.Artifacts) != 1 || len(r.Artifacts[0].Content) != 3000000 || len(r.ArtifactNotes) != 1 {
				t.Errorf("artifacts %v, notes %q", paths(r), r.ArtifactNotes)
			}
		}},
		{name: "artifact folder replaced by a link", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "rmdir \"$SKILL_ARTIFACTS\"\nln -s /etc \"$SKILL_ARTIFACTS\"\n"))
			exited(t, r, 0)
			if len(r.Artifacts) != 0 {
				t.Errorf("artifacts %v", paths(r))
			}
		}},
		{name: "artifact folder locked", run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "cd \"$SKILL_ARTIFACTS\"\nmkdir d\necho 1 > d/f\nchmod 000 d/f d\nchmod 000 \"$SKILL_ARTIFACTS\"\nchmod 000 \"${SKILL_ARTIFACTS%/*}\"\n"))
			exited(t, r, 0)
			if diff := cmp.Diff([]string{"d/f"}, paths(r)); diff != "" {
				t.Errorf("artifacts (-want +got):\n%s", diff)
			}
		}},
		{name: "artifact folders without end", run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", `
import os
os.chdir(os.environ['SKILL_ARTIFACTS'])
open('top', 'w').write('x')
try:
    for _ in range(3000):
        os.mkdir('d' * 200)
        os.chdir('d' * 200)
        open('f', 'w').write('x')
except OSError:
    pass
`)
			r := s.do(t, req)
			exited(t, r, 0)
			if !slices.Contains(paths(r), "top") || r.ArtifactsLost {
				t.Errorf("artifacts %v, lost %v", paths(r), r.ArtifactsLost)
			}
		}},
		{name: "output names swapped while the script ends", run: func(t *testing.T, s *suite) {
			for range 3 {
				r := s.do(t, s.request(t, "bash", "(while :; do ln -sfn /etc/passwd \"$SKILL_ARTIFACTS/x\"; rm -f \"$SKILL_ARTIFACTS/x\"; echo ok > \"$SKILL_ARTIFACTS/x\"; done) &\nsleep 0.2\n"))
				exited(t, r, 0)
				for _, a := range r.Artifacts {
					if strings.Contains(string(a.Content), "root:") || strings.Contains(string(a.Content), "/nonexistent") {
						t.Errorf("artifact %s holds %q", a.Path, a.Content)
					}
				}
			}
		}},
	}
	for i := range list {
		list[i].wants = append(list[i].wants, sallyport.FeatureArtifacts)
	}
	return list
}

func paths(r sallyport.Result) []string {
	var list []string
	for _, a := range r.Artifacts {
		list = append(list, a.Path)
	}
	return list
}

func artifactsComeBack(t *testing.T, s *suite) {
	r := s.do(t, s.request(t, "python", `
import os, socket
os.chdir(os.environ['SKILL_ARTIFACTS'])
open('report.pdf', 'wb').write(bytes(range(256)) * 300)
os.makedirs('sub/dir')
open('sub/dir/ünï code.txt', 'w').write('text')
open('empty', 'w').close()
open('secret', 'w').write('mine')
os.chmod('secret', 0)
os.symlink('/etc/passwd', 'link')
os.symlink('/', 'root')
os.mkfifo('fifo')
socket.socket(socket.AF_UNIX).bind('socket')
open('one', 'w').write('two names')
os.link('one', 'other')
with open('sparse', 'wb') as f:
    f.truncate(9 << 20)
open('line\nbreak', 'w').write('x')
open(b'\xff\xfe', 'w').write('x')
`))
	exited(t, r, 0)
	if diff := cmp.Diff([]string{"empty", "report.pdf", "secret", "sub/dir/ünï code.txt"}, paths(r)); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	for _, a := range r.Artifacts {
		want := map[string]int{"empty": 0, "report.pdf": 256 * 300, "secret": 4, "sub/dir/ünï code.txt": 4}[a.Path]
		if len(a.Content) != want {
			t.Errorf("%s has %d bytes, want %d", a.Path, len(a.Content), want)
		}
	}
	for _, name := range []string{"link", "root", "fifo", "socket", "one", "other", "sparse", `line\nbreak`, `\xff\xfe`} {
		if !slices.ContainsFunc(r.ArtifactNotes, func(note string) bool { return strings.HasPrefix(note, fmt.Sprintf(`"%s"`, name)) }) {
			t.Errorf("no note about %s in %q", name, r.ArtifactNotes)
		}
	}
}
