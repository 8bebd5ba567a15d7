package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/server"
)

// listening is a server on a real socket, as the command line serves it, with a key that may read skills.
func listening(t *testing.T, change func(*server.Config)) (address, key string) {
	t.Helper()
	cfg := server.Config{DataDir: t.TempDir(), LoopbackPrincipal: true}
	change(&cfg)
	s, err := server.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Access().CreateKey(t.Context(), server.Operator(), access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = h.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = h.Close()
		<-served
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), made.Secret
}

// last is a request behind those of a test, after which the server closes the connection: what it answers, it understood.
const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// raw sends bytes and the last request, and returns the statuses of all answers until the server closes the connection.
func raw(t *testing.T, address, text string) []int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text+last); err != nil {
		t.Fatal(err)
	}
	var statuses []int
	for in := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}

// What two parsers could read differently is refused, or is two requests of which each proves its caller itself.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	address, key := listening(t, func(c *server.Config) { c.Quotas.Address.FailuresPerMinute = -1 })
	get := func(host string, headers ...string) string {
		return "GET /v1/skills HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(headers, "", ""), "\r\n")
	}
	post := func(body string, headers ...string) string {
		return "POST /v1/skills/x/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + strings.Join(append(headers, "", ""), "\r\n") + body
	}
	bearer := "Authorization: Bearer " + key
	inner := "GET /v1/keys HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	for name, test := range map[string]struct {
		text string
		want []int
	}{
		"a key":                      {get("localhost", bearer), []int{200, 200}},
		"no key on loopback":         {get("localhost"), []int{200, 200}},
		"a foreign host":             {get("evil.example"), []int{403, 200}},
		"a foreign host with a key":  {get("evil.example", bearer), []int{200, 200}},
		"no host":                    {"GET /v1/skills HTTP/1.1\r\n\r\n", []int{400}},
		"two hosts":                  {get("localhost", "Host: evil.example"), []int{400}},
		"absolute form":              {"GET http://evil.example/v1/skills HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{403, 200}},
		"two keys":                   {get("localhost", bearer, "Authorization: Bearer spk_x"), []int{401, 200}},
		"two keys, the bad first":    {get("localhost", "authorization: Bearer spk_x", bearer), []int{401, 200}},
		"the same key twice":         {get("localhost", bearer, bearer), []int{401, 200}},
		"two keys in one":            {get("localhost", bearer+", Bearer spk_x"), []int{401, 200}},
		"a folded key":               {get("localhost", "Authorization: Bearer", " spk_x"), []int{401, 200}},
		"a blank before the colon":   {get("localhost", "Authorization : Bearer "+key), []int{400}},
		"a NUL in a header":          {get("localhost", "X-A: a\x00b"), []int{400}},
		"two lengths":                {post("{}", "Content-Length: 2", "Content-Length: 5"), []int{400}},
		"two lengths in one":         {post("{}", "Content-Length: 2, 5"), []int{400}},
		"a signed length":            {post("{}", "Content-Length: +2"), []int{400}},
		"a negative length":          {post("{}", "Content-Length: -2"), []int{400}},
		"an unknown coding":          {post("0\r\n\r\n", "Transfer-Encoding: xchunked"), []int{501}},
		"two codings":                {post("0\r\n\r\n", "Transfer-Encoding: chunked, identity"), []int{501}},
		"two coding headers":         {post("0\r\n\r\n", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), []int{501}},
		"a chunk of no size":         {post("zz\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), []int{400}},
		"a request behind the chunk": {post("0\r\n\r\n"+inner, "Transfer-Encoding: chunked", "Content-Length: 200"), []int{400}},
		"a request behind a length":  {post("{}"+inner, "Content-Length: 2"), []int{200, 403, 200}},
		"a request in the length":    {post(inner, fmt.Sprint("Content-Length: ", len(inner))), []int{400, 200}},
		"a version that is none":     {"GET /v1/skills HTTP/9.9\r\nHost: localhost\r\n\r\n", []int{505}},
		"a header too large":         {get("localhost", "X-A: "+strings.Repeat("a", 80<<10)), []int{431}},
		"connect":                    {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n", []int{400, 200}},
		"trace":                      {"TRACE /v1/skills HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{405, 200}},
		"a proxy on loopback":        {get("localhost", "X-Forwarded-For: 203.0.113.9"), []int{401, 200}},
		"the operator's tenant":      {get("localhost", "Sallyport-Tenant: default"), []int{403, 200}},
		"a path around the routes":   {"GET /v1/../v1/keys HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{400, 200}},
		"a path of its own":          {"GET *  HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := raw(t, address, test.text); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Whoever shows bad credentials is slowed down before anything is looked up; a good key of the same address is not locked out by that.
func TestStrangersAreSlowedDown(t *testing.T) {
	t.Parallel()
	address, key := listening(t, func(c *server.Config) {
		c.Quotas.Address = server.AddressQuota{FailuresPerMinute: 5, PublicPerSecond: 1_000_000}
	})
	get := func(headers ...string) int {
		statuses := raw(t, address, "GET /v1/skills HTTP/1.1\r\nHost: localhost\r\n"+strings.Join(append(headers, "", ""), "\r\n"))
		if len(statuses) != 2 {
			t.Fatalf("%d answers", len(statuses))
		}
		return statuses[0]
	}
	if got := get("Authorization: Bearer " + key); got != http.StatusOK {
		t.Fatalf("the key: %d", got)
	}
	var refused int
	for range 20 {
		switch got := get("Authorization: Bearer spk_wrong"); got {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("got %d", got)
		}
	}
	// A minute gives five back; on a slow machine a few may have come back already.
	if refused < 10 {
		t.Errorf("%d of 20 refused", refused)
	}
	if got := get("Authorization: Bearer " + key); got != http.StatusOK {
		t.Errorf("the good key is locked out: %d", got)
	}
}
