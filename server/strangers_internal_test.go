package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// This file is inside the package: the bounds are reached by thousands of addresses, or by looking at them alone.

type doorman struct{ asked int }

func (d *doorman) Principal(r *http.Request) (sallyport.Principal, error) {
	d.asked++
	switch r.Header.Get("Authorization") {
	case "Bearer good":
		return sallyport.Principal{ID: "p", TenantID: "t"}, nil
	case "Bearer broken":
		return sallyport.Principal{}, &sallyport.Error{Op: "x", Code: sallyport.CodeStoreUnavailable}
	}
	return sallyport.Principal{}, &sallyport.Error{Op: "x", Code: sallyport.CodeUnauthenticated}
}

func from(t *testing.T, remote, credential string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/skills", nil)
	r.RemoteAddr = remote
	r.Header.Set("X-Forwarded-For", fmt.Sprint(time.Now().UnixNano())) // which changes nothing
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	return r
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doorman{}
		s := newStrangers(d, AddressQuota{FailuresPerMinute: 6})
		ask := func(remote, credential string) sallyport.Code {
			_, err := s.Principal(from(t, remote, credential))
			if sallyport.CodeOf(err) == sallyport.CodeRateLimited {
				if after, ok := sallyport.RetryAfter(err); !ok || after <= 0 || after > 10*time.Second {
					t.Errorf("try again in %s, %v", after, ok)
				}
			}
			return sallyport.CodeOf(err)
		}
		const here, there = "192.0.2.1:1", "192.0.2.2:1"
		for range 6 {
			if got := ask(here, "bad"); got != sallyport.CodeUnauthenticated {
				t.Fatalf("got %s", got)
			}
		}
		asked := d.asked
		for _, credential := range []string{"bad", "", "good"} { // nobody knows yet that it is good
			if got := ask(here, credential); got != sallyport.CodeRateLimited {
				t.Errorf("%q: got %s", credential, got)
			}
		}
		if d.asked != asked {
			t.Error("a credential was looked up")
		}
		if got := ask(there, "bad"); got != sallyport.CodeUnauthenticated {
			t.Errorf("another address: %s", got)
		}
		time.Sleep(10 * time.Second) // one comes back
		if got := ask(here, "good"); got != "" {
			t.Errorf("got %s", got)
		}
		ask(here, "bad")
		ask(here, "bad")
		if got := ask(here, "good"); got != "" {
			t.Errorf("a good credential is locked out: %s", got)
		}
		// It is known for a while only, and not longer than it is good.
		time.Sleep(knownFor)
		for range 6 {
			ask(here, "bad")
		}
		if got := ask(here, "good"); got != sallyport.CodeRateLimited {
			t.Errorf("known for ever: %s", got)
		}
		// A store that cannot answer is nobody's failure.
		for range 50 {
			if got := ask(there, "broken"); got != sallyport.CodeStoreUnavailable {
				t.Fatalf("got %s", got)
			}
		}
	})
}

func TestPublicRoutesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStrangers(&doorman{}, AddressQuota{PublicPerSecond: 3})
		for n := range 5 {
			if err := s.Public(from(t, "192.0.2.1:1", "")); (err == nil) != (n < 3) {
				t.Errorf("request %d: %v", n, err)
			}
		}
		time.Sleep(time.Second)
		if err := s.Public(from(t, "192.0.2.1:1", "")); err != nil {
			t.Errorf("a second later: %v", err)
		}
		for range 1000 {
			if err := newStrangers(&doorman{}, AddressQuota{PublicPerSecond: -1, FailuresPerMinute: -1}).Public(from(t, "192.0.2.1:1", "")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"": "unknown", "@": "unknown", "nonsense": "unknown",
	} {
		if got := addressOf(remote); got != want {
			t.Errorf("%q: got %q, want %q", remote, got, want)
		}
	}
}

// What is remembered of strangers has a bound, whoever they say they are.
func TestStrangersAreForgotten(t *testing.T) {
	t.Parallel()
	s := newStrangers(&doorman{}, AddressQuota{})
	for n := range 110_000 {
		address := fmt.Sprintf("10.%d.%d.%d:1", n>>16, n>>8&255, n&255)
		_ = s.Public(from(t, address, ""))
		_, _ = s.Principal(from(t, address, ""))
	}
	if s.failures.Len() > 100_000 || s.public.Len() > 100_000 {
		t.Errorf("%d and %d addresses are kept", s.failures.Len(), s.public.Len())
	}
	for n := range 3 * knownKeys {
		s.remember([32]byte{byte(n), byte(n >> 8)}, time.Now())
	}
	if len(s.known) > knownKeys {
		t.Errorf("%d credentials are kept", len(s.known))
	}
}

// Bodies on their way are bounded in number, for an address and in total, and are no longer counted once they are there.
func TestArrivalsAreBounded(t *testing.T) {
	t.Parallel()
	a := newArrivals(1 << 20)
	a.most, a.perAddress = 3, 2
	release := make(chan struct{})
	reading := make(chan struct{}, 10)
	h := a.bound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		reading <- struct{}{}
		<-release
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}))
	send := func(remote string, body io.Reader) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/skills", body)
		r.RemoteAddr = remote
		h.ServeHTTP(w, r)
		return w
	}
	done := make(chan struct{}, 10)
	var slow []*io.PipeWriter
	hold := func(remote string) {
		in, out := io.Pipe()
		slow = append(slow, out)
		go func() { send(remote, in); done <- struct{}{} }()
		// It is counted when its first byte was taken.
		if _, err := out.Write([]byte("{")); err != nil {
			t.Error(err)
		}
	}
	hold("192.0.2.1:1")
	hold("192.0.2.1:2")
	if got := send("192.0.2.1:3", strings.NewReader("{}")); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" || got.Header().Get("Connection") != "close" {
		t.Errorf("a third of one address: %d %v", got.Code, got.Header())
	}
	hold("192.0.2.2:1")
	if got := send("192.0.2.3:1", bytes.NewReader([]byte("{}"))); got.Code != http.StatusTooManyRequests {
		t.Errorf("a fourth in total: %d", got.Code)
	}
	// One that is there frees its place although its answer is still being made.
	_ = slow[0].Close()
	<-reading
	go func() { send("192.0.2.1:9", strings.NewReader("{}")); done <- struct{}{} }()
	<-reading
	_ = slow[1].CloseWithError(errors.New("gone"))
	_ = slow[2].Close()
	<-reading
	<-reading
	close(release)
	for range 4 {
		<-done
	}
	if a.total != 0 || len(a.byAddress) != 0 {
		t.Errorf("%d are still counted, of %d addresses", a.total, len(a.byAddress))
	}
}

// A body that comes a byte at a time is given up; an answer that takes longer than a body may is not cut.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deadlines := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		h := newArrivals(1 << 20).bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := time.Until(deadlines.read); got != arrivalTime+2*time.Second {
				t.Errorf("the body has %s to arrive", got)
			}
			_, _ = io.ReadAll(r.Body)
			if !deadlines.read.IsZero() {
				t.Error("the deadline stays behind the body")
			}
		}))
		h.ServeHTTP(deadlines, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/skills", strings.NewReader(strings.Repeat("x", 2*arrivalRate))))
		upload := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		newArrivals(1<<20).bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })).ServeHTTP(upload,
			httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/import", strings.NewReader("x")))
		if upload.set {
			t.Error("an upload lost the server's own time")
		}
	})
}

// deadlineWriter keeps the deadline that it is told.
type deadlineWriter struct {
	*httptest.ResponseRecorder

	read time.Time
	set  bool
}

func (w *deadlineWriter) SetReadDeadline(at time.Time) error {
	w.read, w.set = at, true
	return nil
}
