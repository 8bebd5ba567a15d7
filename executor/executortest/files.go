package executortest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// files: the whole revision is there, byte for byte, writable for this run alone, and the caller's files beside it.
func files() []attempt {
	revision := []sallyport.Feature{sallyport.FeatureRevision}
	inputs := []sallyport.Feature{sallyport.FeatureFiles}
	return []attempt{
		{name: "imports a sibling", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import helper\nfrom package.inner import name\nprint(helper.answer(), name)\n")
			addFile(&req, "scripts/helper.py", "def answer():\n    return 42\n")
			addFile(&req, "scripts/package/__init__.py", "")
			addFile(&req, "scripts/package/inner.py", "name = 'inner'\n")
			printed(t, s.do(t, req), "42 inner\n")
		}},
		{name: "opens a file beside its folder", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os\nprint(open(os.path.join(os.path.dirname(__file__), '../references/data.txt')).read(), open('references/data.txt').read(), end='')\n")
			addFile(&req, "references/data.txt", "data")
			printed(t, s.do(t, req), "data data")
		}},
		{name: "runs a sibling that has no exec bit", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "./scripts/other.sh\nexec scripts/last\n")
			addFile(&req, "scripts/other.sh", "#!/bin/bash\necho other\n")
			addFile(&req, "scripts/last", "#!/bin/sh\necho last\n")
			printed(t, s.do(t, req), "other\nlast\n")
		}},
		{name: "every byte is there and no other", wants: revision, run: everyByte},
		{name: "names with spaces, quotes and other scripts", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os\nprint(sorted(os.listdir('odd')), end='')\n")
			for _, name := range []string{"a b", "-rf", "it's", "ünï", "$(id)", "x;y"} {
				addFile(&req, "odd/"+name, name)
			}
			printed(t, s.do(t, req), `['$(id)', '-rf', 'a b', "it's", 'x;y', 'ünï']`)
		}},
		{name: "script in a deep folder", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "cat "+strings.Repeat("d/", 500)+"f\n")
			addFile(&req, strings.Repeat("d/", 500)+"f", "deep")
			printed(t, s.do(t, req), "deep")
		}},
		{name: "largest skill", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "ls big | wc -l\n")
			for i := range sallyport.MaxSkillFiles - 2 {
				addFile(&req, fmt.Sprintf("big/%03d", i), strings.Repeat(fmt.Sprintf("%08d", i), sallyport.MaxSkillBytes/sallyport.MaxSkillFiles/8))
			}
			printed(t, s.do(t, req), fmt.Sprintf("%d\n", sallyport.MaxSkillFiles-2))
		}},
		{name: "writes to the skill are this run's only", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "grep -c changed SKILL.md\necho changed >> SKILL.md\necho x > new\nls -A\n")
			want := "0\nSKILL.md\nnew\nscripts\n"
			printed(t, s.do(t, req), want)
			printed(t, s.do(t, again(req)), want)
		}},
		// Without a file system of its own, a run would write into the host's here.
		{name: "nothing of a run meets the next one", needs: []sallyport.Layer{sallyport.LayerMountNamespace}, run: nothingRemains},
		{name: "removes itself and its folder", wants: revision, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "rm -rf \"$SKILL_ROOT\"/* \"$SKILL_ROOT\"/.[!.]* 2>/dev/null\necho still here\n")), "still here\n")
			s.benign(t)
		}},
		{name: "input files", wants: inputs, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", `
import os
root = os.environ['SKILL_INPUT']
for folder, _, names in sorted(os.walk(root)):
    for name in sorted(names):
        path = os.path.join(folder, name)
        print(os.path.relpath(path, root), open(path, 'rb').read())
`)
			req.Inputs = []sallyport.InputFile{
				{Name: "b/c d.bin", Content: []byte{0, 255, 10}}, {Name: "a.txt", Content: []byte("text")}, {Name: "--size", Content: nil},
			}
			printed(t, s.do(t, req), "--size b''\na.txt b'text'\nb/c d.bin b'\\x00\\xff\\n'\n")
		}},
		{name: "input file with an unsafe name", wants: inputs, run: func(t *testing.T, s *suite) {
			for _, name := range []string{"../x", "/etc/x", "a/../../x", "", "a\x00b"} {
				req := s.request(t, "bash", "echo never\n")
				req.Inputs = []sallyport.InputFile{{Name: name}}
				if _, err := s.executor.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
					t.Errorf("%q: got %v, want a refusal before the start", name, err)
				}
			}
		}},
		{name: "content that is not what its digest says", wants: revision, run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			addFile(&req, "swapped", fmt.Sprintf("unique %s", req.ExecutionID))
			req.Files[len(req.Files)-1].Content = []byte("other")
			if _, err := s.executor.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
				t.Errorf("got %v, want a refusal before the start", err)
			}
		}},
	}
}

func everyByte(t *testing.T, s *suite) {
	req := s.request(t, "python", `
import hashlib, os
for folder, dirs, names in os.walk('.'):
    dirs.sort()
    for name in sorted(names):
        path = os.path.join(folder, name)
        print(os.path.relpath(path), hashlib.sha256(open(path, 'rb').read()).hexdigest())
`)
	binary := make([]byte, 100_000)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	addFile(&req, "assets/binary", string(binary))
	addFile(&req, "assets/empty", "")
	addFile(&req, "assets/crlf", "a\r\nb\x00")
	r := s.do(t, req)
	exited(t, r, 0)
	got := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	if len(got) != len(req.Files) {
		t.Fatalf("%d files, want %d:\n%s", len(got), len(req.Files), r.Stdout)
	}
	for _, f := range req.Files {
		if !strings.Contains(string(r.Stdout), f.Path+" "+f.SHA256+"\n") {
			t.Errorf("%s is not there as it was", f.Path)
		}
	}
}

// nothingRemains writes into every writable place, and looks there in a second run.
func nothingRemains(t *testing.T, s *suite) {
	source := `
import os, sys
places = ['/', '/tmp', '/var/tmp', '/dev', '/dev/shm', '/run', '/etc', '/usr', os.environ['HOME'], os.environ['SKILL_ROOT'],
          os.path.dirname(os.environ['SKILL_OUTPUT']), os.environ['SKILL_INPUT']]
names = ['sallyport-mark', '.bashrc', 'sitecustomize.py', '.sallyport-mark.pth']
paths = [os.path.join(p, name) for p in places for name in names]
# All looks before the first mark: two names may lead to one place.
for path in paths:
    if os.path.lexists(path) and open(path).read() == 'mark':
        print('found', path)
for path in paths:
    try:
        open(path, 'w').write('mark')
    except OSError:
        pass
`
	for range 2 {
		printed(t, s.do(t, s.request(t, "python", source)), "")
	}
}
