package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// A server with a retention removes what is older by itself, keeps it in the archive, and every surface says that the trail is whole.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	dir, archive := t.TempDir(), t.TempDir()
	var days atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(t.Context(), server.Config{
			DataDir: dir, AuditRetention: 48 * time.Hour, AuditArchive: archive,
			Now: func() time.Time { return time.Now().AddDate(0, 0, int(days.Load())) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		save := func(slug string) {
			_, err := s.Registry().Save(t.Context(), server.Operator(), registry.SaveRequest{Files: []registry.File{
				{Path: "SKILL.md", Content: []byte("---\nname: " + slug + "\ndescription: d\n---\n")},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		save("one")
		save("two")
		time.Sleep(5 * time.Minute) // a checkpoint
		days.Store(1)
		save("three")
		time.Sleep(2 * time.Hour)
		verify := func() audit.Verdict {
			verdict, err := s.Audit().Verify(t.Context(), server.Operator(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return verdict
		}
		if got := verify(); got.PrunedThrough != 0 || got.Checked != 3 {
			t.Errorf("young entries: %+v", got)
		}
		days.Store(2)
		time.Sleep(2 * time.Hour)
		if got := verify(); got.Result != audit.ResultValid || got.PrunedThrough != 2 || !strings.Contains(got.Message, "pruned through 2, proven by checkpoint") {
			t.Errorf("got %+v", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/audit", nil)
		r.RemoteAddr = "" // a caller in the same process
		s.LocalHandler().ServeHTTP(w, r)
		var envelope sallyport.Envelope[struct {
			Entries []sallyport.Entry
			Pruned  *audit.Checkpoint
		}]
		if err := json.Unmarshal(w.Body.Bytes(), &envelope); err != nil || envelope.Data == nil || envelope.Data.Pruned == nil || envelope.Data.Pruned.Count != 2 {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if e := envelope.Data.Entries; e[0].Sequence != 3 || e[len(e)-1].Action != sallyport.ActionAuditPrune {
			t.Errorf("entries: %+v", e)
		}
	})
	kept, err := os.Open(filepath.Join(archive, "audit-default-1-2.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	if got, err := audit.VerifyExport(kept, audit.Evidence{}); err != nil || got.Result != audit.ResultValid || got.Checked != 2 {
		t.Errorf("the archive: %+v, %v", got, err)
	}
}
