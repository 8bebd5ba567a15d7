package client_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

// moreSkills adds to fakeSkills what these tests need.
type moreSkills struct {
	httpapi.Skills

	export   func(sallyport.SkillRef, sallyport.RevisionID, registry.ArchiveFormat) (registry.Export, error)
	remove   func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error)
	fetch    func(url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error)
	findings func(sallyport.SkillRef, registry.FindingsRequest) (registry.Findings, error)
	override func(ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error)
	diff     func(ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error)
}

func (f *moreSkills) Export(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (registry.Export, error) {
	return f.export(ref, id, format)
}

func (f *moreSkills) Diff(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error) {
	return f.diff(ref, from, to)
}

func (f *moreSkills) DeleteRevision(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
	return f.remove(ref, id)
}

func TestDeleteRevisionRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skills := &moreSkills{}
	w.skills.Skills = skills
	ref := sallyport.SkillRef{Slug: "x", TeamID: "ops"}
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		skills.remove = func(got sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
			same(t, name, ref, got)
			same(t, name, "rev/1", string(id))
			return sallyport.Revision{ID: id, Number: 4, Digest: digest}, nil
		}
		envelope, err := c.DeleteRevision(t.Context(), ref, "rev/1")
		same(t, name+": removal", client.RevisionRemoval{RevisionID: "rev/1", Number: 4, Digest: digest}, data(t, envelope, err))
		skills.remove = func(sallyport.SkillRef, sallyport.RevisionID) (sallyport.Revision, error) {
			return sallyport.Revision{}, sallyport.Errorf("x", sallyport.CodeRevisionConflict, "it stays")
		}
		if _, err := c.DeleteRevision(t.Context(), ref, "rev-1"); sallyport.CodeOf(err) != sallyport.CodeRevisionConflict {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := c.DeleteRevision(t.Context(), ref, ""); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: without an id: %v", name, err)
		}
	}
}

func (f *moreSkills) ImportURL(_ context.Context, _ sallyport.Principal, url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
	return f.fetch(url, opts)
}

func TestImportURLRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skills := &moreSkills{}
	w.skills.Skills = skills
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		for _, want := range []registry.ImportOptions{{Personal: true, Message: "m"}, {TeamID: "ops", Publish: true, DryRun: true}} {
			skills.fetch = func(url string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
				same(t, name, "https://x.dev/a.zip?b=c", url)
				same(t, name, want, opts)
				return registry.ImportReport{}, registry.Source{URL: "https://x.dev/a.zip", SizeBytes: 7, Digest: digest}, nil
			}
			envelope, err := c.ImportURL(t.Context(), "https://x.dev/a.zip?b=c", want)
			same(t, name+": source", registry.Source{URL: "https://x.dev/a.zip", SizeBytes: 7, Digest: digest}, data(t, envelope, err).Source)
		}
	}
}

// The steps of an import arrive while it goes on, in order; what ends it is what it would have been without them, and an answer that stops in
// its middle is no report.
func TestImportProgressRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skills := &moreSkills{}
	w.skills.Skills = skills
	steps := []registry.ImportProgress{{Done: 1, Total: 2, Path: "a", Slug: "a", Result: "imported"}, {Done: 2, Total: 2, Path: "b", Slug: "b", Result: "refused"}}
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		var told []registry.ImportProgress
		opts := registry.ImportOptions{Progress: func(p registry.ImportProgress) { told = append(told, p) }}
		for _, fault := range []error{nil, sallyport.Errorf("x", sallyport.CodeStoreUnavailable, "away")} {
			told = nil
			skills.fetch = func(_ string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
				for _, step := range steps {
					opts.Progress(step)
				}
				return registry.ImportReport{Commit: "c"}, registry.Source{URL: "https://x.dev", Digest: digest}, fault
			}
			envelope, err := c.ImportURL(t.Context(), "https://x.dev", opts)
			same(t, name, steps, told)
			if sallyport.CodeOf(err) != sallyport.CodeOf(fault) || fault == nil && envelope.Data.Commit != "c" {
				t.Errorf("%s: %+v %v, want %v", name, envelope, err, fault)
			}
		}
		// A refusal before the first step.
		skills.fetch = func(string, registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
			return registry.ImportReport{}, registry.Source{}, sallyport.Errorf("x", sallyport.CodeFeatureDisabled, "off")
		}
		if _, err := c.ImportURL(t.Context(), "https://x.dev", opts); sallyport.CodeOf(err) != sallyport.CodeFeatureDisabled {
			t.Errorf("%s: %v", name, err)
		}
	}
	cut := connect(t, client.Config{Transport: client.InProcess(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write([]byte(`{"kind":"import_progress","data":{"done":1,"total":2}}` + "\n"))
	}))})
	if _, err := cut.ImportURL(t.Context(), "https://x.dev", registry.ImportOptions{Progress: func(registry.ImportProgress) {}}); err == nil {
		t.Error("half an answer was taken for a whole one")
	}
}

func (f *moreSkills) Findings(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error) {
	return f.findings(ref, req)
}

func (f *moreSkills) PublishOverride(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error) {
	return f.override(ref, id, reason)
}

func TestFindingsRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skills := &moreSkills{}
	w.skills.Skills = skills
	ref := sallyport.SkillRef{SkillID: skillID}
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		request := registry.FindingsRequest{RevisionID: "rev-1", Exclude: []string{"a/", "b*"}}
		want := registry.Findings{
			SkillID: skillID, Slug: "x", RevisionID: "rev-1", Digest: digest, RuleSet: "r", Verdict: registry.ScanDone,
			Findings: []registry.Finding{{Rule: "SECRET", File: "a", Line: 1, Severity: "error", Message: "m"}}, Unscanned: []registry.Unscanned{}, Exclusions: []registry.Exclusion{},
		}
		skills.findings = func(got sallyport.SkillRef, req registry.FindingsRequest) (registry.Findings, error) {
			same(t, name, ref, got)
			same(t, name, request, req)
			return want, nil
		}
		envelope, err := c.Findings(t.Context(), ref, request)
		same(t, name+": findings", want, data(t, envelope, err))

		view := registry.SkillView{Skill: sallyport.Skill{ID: skillID, Slug: "x", CreatedAt: now(), UpdatedAt: now()}}
		skills.override = func(got sallyport.SkillRef, id sallyport.RevisionID, reason string) (registry.SkillView, error) {
			same(t, name, ref, got)
			same(t, name, "rev-1 why", string(id)+" "+reason)
			return view, nil
		}
		published, err := c.PublishOverride(t.Context(), ref, "rev-1", "why")
		same(t, name+": override", view, data(t, published, err).SkillView)
		if _, err := c.PublishOverride(t.Context(), ref, "rev-1", ""); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: without a reason: %v", name, err)
		}
	}
}

func TestExportAndDiffRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skills := &moreSkills{}
	w.skills.Skills = skills
	ref := sallyport.SkillRef{Slug: "x", TeamID: "ops"}
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		skills.export = func(got sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (registry.Export, error) {
			same(t, name, ref, got)
			same(t, name, "rev-1 tar.gz", string(id)+" "+string(format))
			return registry.Export{
				Name: "x.tar.gz", MediaType: "application/gzip", Archive: []byte("\x1f\x8b\x00"),
				Revision: sallyport.Revision{ID: "rev-1", Digest: digest},
			}, nil
		}
		export, err := c.Export(t.Context(), ref, "rev-1", registry.ArchiveTarGz)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name+": export", client.Export{Archive: []byte("\x1f\x8b\x00"), RevisionID: "rev-1", Digest: digest}, export)

		want := registry.RevisionDiff{
			SkillID: skillID, Slug: "x", To: sallyport.Revision{ID: "rev-2", SkillID: skillID, Digest: digest, Frontmatter: []byte(`{}`), CreatedAt: now()},
			Files: []registry.FileDiff{}, Frontmatter: []registry.FieldDiff{}, Settings: []registry.FieldDiff{},
		}
		skills.diff = func(got sallyport.SkillRef, from, to sallyport.RevisionID) (registry.RevisionDiff, error) {
			same(t, name, ref, got)
			same(t, name, "rev-1..rev-2", string(from)+".."+string(to))
			return want, nil
		}
		w.access.list = func(sallyport.SkillRef) ([]sallyport.Grant, error) {
			return []sallyport.Grant{{ID: "g-1", SkillID: skillID, Slug: "x", Pin: sallyport.DigestOf(nil), IssuedBy: "bob", IssuedAt: now()}}, nil
		}
		envelope, err := c.Diff(t.Context(), ref, "rev-1", "rev-2")
		got := data(t, envelope, err)
		same(t, name+": diff", want, got.RevisionDiff)
		if len(got.GrantsNotCovering) != 1 || got.GrantsNotCovering[0].ID != "g-1" || got.GrantsNotCovering[0].State != sallyport.GrantActive {
			t.Errorf("%s: grants %+v", name, got.GrantsNotCovering)
		}
	}
}
