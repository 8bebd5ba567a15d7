package registry_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// gitRun runs git as nobody's configuration would have it, and returns what it prints.
func gitRun(tb testing.TB, folder string, args ...string) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	if err != nil {
		tb.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is a work tree with a history: main has two skills, the branch next one more, the tag v1 the first commit, v1a the same annotated.
type repository struct {
	folder        string
	first, second string // commits of main
}

func write(tb testing.TB, folder string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

func newRepository(tb testing.TB) repository {
	tb.Helper()
	r := repository{folder: filepath.Join(tb.TempDir(), "tools")}
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		tb.Fatal(err)
	}
	gitRun(tb, r.folder, "init", "-q", "-b", "main")
	// Long enough that git stores the second version of it as a delta.
	long := strings.Repeat("A line of the reference that does not change.\n", 200)
	write(tb, r.folder, map[string]string{
		"README.md": "tools\n", "skills/pdf/SKILL.md": skillMD("pdf"), "skills/pdf/scripts/run.sh": "#!/bin/sh\necho 1\n",
		"skills/pdf/references/a.md": long,
	})
	if err := os.Chmod(filepath.Join(r.folder, "skills/pdf/scripts/run.sh"), 0o755); err != nil {
		tb.Fatal(err)
	}
	r.first = r.commit(tb, "one")
	gitRun(tb, r.folder, "tag", "v1")
	gitRun(tb, r.folder, "tag", "-a", "-m", "annotated", "v1a")
	gitRun(tb, r.folder, "checkout", "-q", "-b", "next")
	write(tb, r.folder, map[string]string{"skills/csv/SKILL.md": skillMD("csv")})
	r.commit(tb, "next")
	gitRun(tb, r.folder, "checkout", "-q", "main")
	write(tb, r.folder, map[string]string{"skills/notes/SKILL.md": skillMD("notes"), "skills/pdf/references/a.md": long + "One more.\n"})
	r.second = r.commit(tb, "two")
	return r
}

func (r repository) commit(tb testing.TB, message string) string {
	tb.Helper()
	gitRun(tb, r.folder, "add", "-A")
	gitRun(tb, r.folder, "commit", "-q", "-m", message)
	return gitRun(tb, r.folder, "rev-parse", "HEAD")
}

// gitSite serves repositories below root as /NAME over smart HTTP, by git's own program.
func gitSite(tb testing.TB, root string) *site {
	tb.Helper()
	backend := filepath.Join(gitRun(tb, root, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		tb.Fatal(err)
	}
	handler := &cgi.Handler{
		Path: backend, Dir: root, InheritEnv: []string{"PATH"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	return newSite(tb, handler.ServeHTTP)
}

func slugsOf(report registry.ImportReport) []string {
	slugs := []string{}
	for _, skill := range report.Skills {
		slugs = append(slugs, skill.Slug+" "+skill.Result)
	}
	return slugs
}

func TestImportGit(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	gitRun(t, r.folder, "repack", "-a", "-d", "-f", "-q")
	s := gitSite(t, filepath.Dir(r.folder))
	for name, test := range map[string]struct {
		url    string
		slugs  []string
		commit string
	}{
		"default branch":          {"git+" + s.at("/tools/.git"), []string{"notes imported", "pdf imported"}, r.second},
		"by its suffix":           {s.at("/tools/.git"), []string{"notes imported", "pdf imported"}, r.second},
		"a slash behind":          {s.at("/tools/.git/"), []string{"notes imported", "pdf imported"}, r.second},
		"a branch":                {s.at("/tools/.git#ref=next"), []string{"csv imported", "pdf imported"}, ""},
		"a branch in full":        {s.at("/tools/.git#ref=refs/heads/next"), []string{"csv imported", "pdf imported"}, ""},
		"a tag":                   {s.at("/tools/.git#ref=v1"), []string{"pdf imported"}, r.first},
		"an annotated tag":        {s.at("/tools/.git#ref=v1a"), []string{"pdf imported"}, r.first},
		"a commit that is a tip":  {s.at("/tools/.git#ref=" + r.second), []string{"notes imported", "pdf imported"}, r.second},
		"a commit of the history": {s.at("/tools/.git#ref=" + strings.ToUpper(r.first)), []string{"pdf imported"}, r.first},
		"a folder":                {s.at("/tools/.git#subdir=skills/notes"), []string{"notes imported"}, r.second},
		"a folder, encoded":       {s.at("/tools/.git#ref=main&subdir=%73kills/pdf/"), []string{"pdf imported"}, r.second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := fetching(s.config())
			report, source, err := b.ImportURL(t.Context(), alice, test.url, registry.ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.slugs, slugsOf(report)); diff != "" {
				t.Errorf("skills (-want +got):\n%s", diff)
			}
			if test.commit != "" && report.Commit != test.commit || source.Commit != report.Commit || source.URL != s.at("/tools/.git") || source.SizeBytes == 0 {
				t.Errorf("commit %q, want %q; source %+v", report.Commit, test.commit, source)
			}
			slug := report.Skills[0].Slug
			revisions, err := b.Revisions(t.Context(), alice, sallyport.SkillRef{Slug: slug})
			if err != nil || revisions[0].Message != "imported from "+s.at("/tools/.git")+" (git commit "+report.Commit+")" {
				t.Errorf("%+v %v", revisions, err)
			}
		})
	}
}

// A history that the shallow answer leaves out is only asked for where the server hands out nothing else.
func TestImportGitAsksForCommits(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	gitRun(t, r.folder, "config", "uploadpack.allowReachableSHA1InWant", "true")
	s := gitSite(t, filepath.Dir(r.folder))
	report, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/tools/.git#ref="+r.first), registry.ImportOptions{})
	if err != nil || report.Commit != r.first || s.hits.Load() != 2 {
		t.Errorf("%+v %v, %d requests", report, err, s.hits.Load())
	}
}

// The same files give the same digests, whichever way they came.
func TestImportGitAgreesWithTheFolder(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	s := gitSite(t, filepath.Dir(r.folder))
	fetched, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/tools/.git"), registry.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := fetching(s.config())
	folder := imported(t, b, r.folder)
	bare := filepath.Join(t.TempDir(), "tools.git")
	gitRun(t, r.folder, "clone", "-q", "--bare", r.folder, bare)
	local := imported(t, newBench(t), bare)
	for i, skill := range folder.Skills {
		if skill.Digest == "" || fetched.Skills[i].Digest != skill.Digest || local.Skills[i].Digest != skill.Digest {
			t.Errorf("%s: %s from the folder, %s from the server, %s from the bare one", skill.Slug, skill.Digest, fetched.Skills[i].Digest, local.Skills[i].Digest)
		}
	}
	component, err := b.Component(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"}, "", "scripts/run.sh")
	if err != nil || component.Mode != 0o755 {
		t.Errorf("mode %o, %v", component.Mode, err)
	}
}

// imported imports a path of this host as the command line does.
func imported(tb testing.TB, b bench, path string) registry.ImportReport {
	tb.Helper()
	var upload bytes.Buffer
	if err := registry.WriteTar(tb.Context(), &upload, []string{path}); err != nil {
		tb.Fatal(err)
	}
	tree, err := registry.OpenTar(&upload, registry.TreeLimits{}, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	defer tree.Close() //nolint:errcheck // read only
	report, err := b.Import(tb.Context(), alice, tree, registry.ImportOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// A repository on this host is read at what its refs say, not at what lies in its folder; its hooks and filters never run.
func TestImportGitFromAPath(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	trap := filepath.Join(t.TempDir(), "ran")
	gitRun(t, r.folder, "config", "filter.trap.smudge", "touch "+trap)
	gitRun(t, r.folder, "config", "core.fsmonitor", "touch "+trap)
	write(t, r.folder, map[string]string{
		".gitattributes": "* filter=trap\n", ".git/hooks/post-checkout": "#!/bin/sh\ntouch " + trap + "\n", "skills/pdf/SKILL.md": "not committed",
	})
	for name, test := range map[string]struct {
		path   string
		slugs  []string
		commit string
	}{
		"work tree at a branch": {r.folder + "#ref=next", []string{"csv imported", "pdf imported"}, ""},
		"work tree at a tag":    {r.folder + "#ref=v1a", []string{"pdf imported"}, r.first},
		"a folder of it":        {r.folder + "#ref=main&subdir=skills/notes", []string{"notes imported"}, r.second},
		"by a URL":              {"file://" + r.folder + "#ref=" + r.first, []string{"pdf imported"}, r.first},
		"by a git URL":          {"git+file://" + r.folder, []string{"notes imported", "pdf imported"}, r.second},
		"its .git":              {r.folder + "/.git", []string{"notes imported", "pdf imported"}, r.second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			report := imported(t, b, test.path)
			if diff := cmp.Diff(test.slugs, slugsOf(report)); diff != "" {
				t.Errorf("skills (-want +got):\n%s", diff)
			}
			if report.Commit == "" || test.commit != "" && report.Commit != test.commit {
				t.Errorf("commit %q, want %q", report.Commit, test.commit)
			}
			revisions, err := b.Revisions(t.Context(), alice, sallyport.SkillRef{Slug: report.Skills[0].Slug})
			if err != nil || revisions[0].Message != "git commit "+report.Commit {
				t.Errorf("%+v %v", revisions, err)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(trap); err == nil {
			t.Error("something of the repository was run")
		}
	})
}

func TestImportGitFromAPathRefuses(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	shared := filepath.Join(t.TempDir(), "shared")
	gitRun(t, r.folder, "clone", "-q", "--shared", r.folder, shared)
	tree := filepath.Join(t.TempDir(), "tree")
	gitRun(t, r.folder, "worktree", "add", "-q", tree, "next")
	plain := t.TempDir()
	for path, says := range map[string]string{
		shared + "#ref=main":                         "borrows objects",
		tree + "#ref=next":                           "name that one",
		plain + "#ref=main":                          "no git repository",
		r.folder + "#ref=nowhere":                    "no branch and no tag",
		r.folder + "#ref=--upload-pack=x":            "no name of a branch",
		r.folder + "#ref=../../../etc/passwd":        "no name of a branch",
		r.folder + "#ref=HEAD~1":                     "no name of a branch",
		r.folder + "#branch=main":                    "#ref=NAME",
		r.folder + "#ref=main&ref=next":              "at most once",
		r.folder + "#subdir=../x":                    "no plain path",
		r.folder + "#subdir=skills/none":             "subdir is no folder",
		r.folder + "#ref=" + strings.Repeat("0", 40): "is not there",
		"file://#ref=main":                           "the path is empty",
		"git+file:///nonexistent/x":                  "no git repository",
	} {
		_, err := registry.OpenPaths(t.Context(), []string{path})
		wantCode(t, err, sallyport.CodeInvalidArgument)
		if message := sallyport.Public(err).Message; !strings.Contains(message, says) {
			t.Errorf("%s: message %q, want %q in it", path, message, says)
		}
	}
}

// Links, submodules and pointers of Git LFS: each by a rule, each in the report.
func TestImportGitOddEntries(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 123456\n"
	write(t, r.folder, map[string]string{"skills/odd/SKILL.md": skillMD("odd"), "skills/odd/assets/big.png": pointer, "skills/odd/real.md": "real"})
	for link, target := range map[string]string{"inside.md": "real.md", "outside.md": "../../README.md", "absolute.md": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(r.folder, "skills/odd", link)); err != nil {
			t.Fatal(err)
		}
	}
	r.commit(t, "odd")
	gitRun(t, r.folder, "update-index", "--add", "--cacheinfo", "160000,"+r.first+",skills/odd/vendor")
	gitRun(t, r.folder, "update-index", "--add", "--cacheinfo", "160000,"+r.first+",third")
	gitRun(t, r.folder, "commit", "-q", "-m", "submodules")
	s := gitSite(t, filepath.Dir(r.folder))
	b := fetching(s.config())
	fetched, _, err := b.ImportURL(t.Context(), alice, s.at("/tools/.git"), registry.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for way, report := range map[string]registry.ImportReport{"server": fetched, "path": imported(t, newBench(t), r.folder+"/.git")} {
		var odd registry.ImportedSkill
		for _, skill := range report.Skills {
			if skill.Slug == "odd" {
				odd = skill
			}
		}
		got := map[string]string{}
		for _, file := range odd.Files {
			got[file.Path] = file.Result
		}
		want := map[string]string{
			"SKILL.md": "kept", "assets/big.png": "kept", "real.md": "kept", "inside.md": "repaired", "outside.md": "refused", "absolute.md": "refused", "vendor": "refused",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", way, diff)
		}
		codes := map[string]int{}
		for _, found := range odd.Problems {
			codes[found.Code+" "+found.File]++
		}
		for _, code := range []string{"GIT_SUBMODULE vendor", "LFS_POINTER assets/big.png", "LINK_UNRESOLVED outside.md", "LINK_UNRESOLVED absolute.md"} {
			if codes[code] != 1 {
				t.Errorf("%s: no %s in %v", way, code, codes)
			}
		}
		third := ""
		for _, file := range report.Ignored {
			if strings.HasSuffix(file.Path, "third") {
				third = file.Reason
			}
		}
		if !strings.Contains(third, "submodule") {
			t.Errorf("%s: the submodule outside is %q", way, third)
		}
	}
}

func TestImportGitRefuses(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	root := filepath.Dir(r.folder)
	gitRun(t, root, "init", "-q", "--bare", "empty.git")
	gitRun(t, root, "init", "-q", "--bare", "--object-format=sha256", "-b", "main", "new.git")
	gitRun(t, r.folder, "branch", "v1", "next")
	s := gitSite(t, root)
	for _, test := range []struct {
		url  string
		says string
	}{
		{s.at("/empty.git"), "empty"},
		{s.at("/nowhere.git"), "404"},
		{s.at("/tools/.git#ref=nowhere"), "no branch and no tag"},
		{s.at("/tools/.git#ref=v1"), "a branch and a tag"},
		{s.at("/tools/.git#ref=" + strings.Repeat("1", 40)), "is not there"},
		{s.at("/tools/.git#ref=" + r.first[:12]), "all its 40 digits"},
		{s.at("/tools/.git#subdir=README.md"), "subdir is no folder"},
		{s.at("/tools/.git?token=secret"), "no query"},
		{"git+ssh://example.com/x", "over https only"},
		{"ssh://git@example.com/x", "over https only"},
		{"git://example.com/x", "over https only"},
		{"git+file:///etc", "over https only"},
		{"file:///etc/x.git", "over https only"},
		{"git+https://me:secret@example.com/x", "user name"},
		{"https://example.com/x.git#ref=-x", "no name of a branch"},
		{"https://169.254.169.254/x.git", "nothing is fetched from"},
	} {
		b := fetching(s.config())
		_, _, err := b.ImportURL(t.Context(), alice, test.url, registry.ImportOptions{})
		wantCode(t, err, sallyport.CodeInvalidArgument)
		if message := sallyport.Public(err).Message; !strings.Contains(message, test.says) || strings.Contains(message, "secret") || strings.Contains(message, "127.0.0.1") {
			t.Errorf("%s: message %q, want %q in it", test.url, message, test.says)
		}
		if len(b.store.skills) != 0 {
			t.Errorf("%s: something was saved", test.url)
		}
	}
	// A repository without a commit says nothing of how it names objects.
	_, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/new.git"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeInvalidArgument)
	// Loopback is private: without leave for it nothing is dialled.
	closed := s.config()
	closed.AllowPrivate = false
	_, _, err = fetching(closed).ImportURL(t.Context(), alice, s.at("/tools/.git"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

// Every hop of a redirect is checked, also those of the second request; a login is never sent.
func TestImportGitRedirects(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	good := gitSite(t, filepath.Dir(r.folder))
	for to, says := range map[string]string{
		"https://meta.example/x.git/info/refs": "nothing is fetched from", "http://inside.example/info/refs": "http is for this machine",
		"/elsewhere": "redirects to something else", "file:///etc/passwd": "https://",
	} {
		s := newSite(t, func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") != "" || req.Header.Get("Cookie") != "" {
				t.Error("a login was sent")
			}
			if req.URL.Path == "/elsewhere" {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
				return
			}
			http.Redirect(w, req, to, http.StatusFound)
		})
		s.names.hosts["meta.example"], s.names.hosts["inside.example"] = []string{"169.254.169.254"}, []string{"10.1.2.3"}
		_, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/x.git"), registry.ImportOptions{})
		wantCode(t, err, sallyport.CodeInvalidArgument)
		if message := sallyport.Public(err).Message; !strings.Contains(message, says) {
			t.Errorf("%s: message %q", to, message)
		}
	}
	// A repository that moved is read where it is, the pack too.
	hits := 0
	old := newSite(t, func(w http.ResponseWriter, req *http.Request) {
		hits++
		u, _ := url.Parse(good.URL)
		http.Redirect(w, req, "https://example.com:"+u.Port()+strings.Replace(req.URL.Path, "/old.git", "/tools/.git", 1)+"?"+req.URL.RawQuery, http.StatusMovedPermanently)
	})
	cfg := good.config()
	cfg.TLS.RootCAs.AddCert(old.Certificate())
	_, source, err := fetching(cfg).ImportURL(t.Context(), alice, old.at("/old.git"), registry.ImportOptions{})
	if err != nil || source.URL != good.at("/tools/.git") || hits != 1 {
		t.Errorf("%+v %v, %d requests", source, err, hits)
	}
}

// A pack is bounded while it comes, in bytes and in time; and the skill whose paths a file system would confuse is refused, not its neighbours.
func TestImportGitIsBounded(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	write(t, r.folder, map[string]string{"skills/clash/SKILL.md": skillMD("clash"), "skills/clash/a.md": "1", "skills/clash/A.md": "2", "skills/clash/z\u200b.md": "3"})
	r.commit(t, "clash")
	s := gitSite(t, filepath.Dir(r.folder))
	report, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/tools/.git"), registry.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"clash refused", "notes imported", "pdf imported"}, slugsOf(report)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	codes := fmt.Sprint(report.Skills[0].Problems)
	if !strings.Contains(codes, registry.ProblemUnsafePath) || !strings.Contains(codes, registry.ProblemInvisible) {
		t.Errorf("problems %s", codes)
	}
	small := s.config()
	small.MaxBytes = 500
	_, _, err = fetching(small).ImportURL(t.Context(), alice, s.at("/tools/.git"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeRequestTooLarge)

	refs := "001e# service=git-upload-pack\n0000" + fmt.Sprintf("%04x", 4+40+6+9+1) + strings.Repeat("a", 40) + " HEAD\x00ofs-delta\n0000"
	slow := newSite(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			advertise([]byte(refs))(w, req)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body) // only then does the server notice who hangs up
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = w.Write([]byte("0008NAK\nPACK"))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	hasty := slow.config()
	hasty.Timeout = 300 * time.Millisecond
	_, _, err = fetching(hasty).ImportURL(t.Context(), alice, slow.at("/x.git"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeDeadlineExceeded)
}

// A server that wants a login, that hangs, that sends without an end, or that is no git server.
func TestImportGitFromBadServers(t *testing.T) {
	t.Parallel()
	refs := "001e# service=git-upload-pack\n0000"
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    sallyport.Code
		says    string
	}{
		"wants a login": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, sallyport.CodeInvalidArgument, "wants a login"},
		"a web page":    {serve([]byte("<html>")), sallyport.CodeInvalidArgument, "no git server"},
		"dumb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(strings.Repeat("a", 40) + "\trefs/heads/main\n"))
		}, sallyport.CodeInvalidArgument, "no git server"},
		"garbage":      {advertise([]byte("zzzz" + refs)), sallyport.CodeInvalidArgument, "damaged"},
		"nothing":      {advertise(nil), sallyport.CodeInvalidArgument, "empty"},
		"cut":          {advertise([]byte(refs + "00")), sallyport.CodeInvalidArgument, "damaged"},
		"endless refs": {endless(refs), sallyport.CodeRequestTooLarge, "branches and tags"},
		"hangs": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte(refs))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, sallyport.CodeDeadlineExceeded, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, test.handler)
			cfg := s.config()
			cfg.Timeout = 5 * time.Minute // megabytes of refs take their time on a busy machine
			if name == "hangs" {
				cfg.Timeout = 200 * time.Millisecond
			}
			_, _, err := fetching(cfg).ImportURL(t.Context(), alice, s.at("/x.git"), registry.ImportOptions{})
			wantCode(t, err, test.code)
			if message := sallyport.Public(err).Message; !strings.Contains(message, test.says) {
				t.Errorf("message %q, want %q in it", message, test.says)
			}
		})
	}
}

func advertise(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write(content)
	}
}

func endless(head string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
		hash := strings.Repeat("a", 40)
		_, _ = w.Write([]byte(head + line(hash+" refs/heads/main\x00ofs-delta\n")))
		block := []byte(strings.Repeat(line(hash+" refs/heads/next\n"), 1000))
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
}
