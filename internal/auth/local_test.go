package auth_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

func TestLoopback(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Config{Keys: keys{}, Loopback: new(local())})
	remote := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	get := func(headers map[string]string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method = http.MethodGet
			for name, value := range headers {
				r.Header.Set(name, value)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   sallyport.Code
	}{
		"plain":                  {nil, ""},
		"IPv6":                   {remote("[::1]:9"), ""},
		"IPv4 in IPv6":           {remote("[::ffff:127.0.0.1]:9"), ""},
		"another loopback":       {remote("127.9.9.9:9"), ""},
		"localhost":              {host("localhost:8080"), ""},
		"localhost in capitals":  {host("LOCALHOST"), ""},
		"IPv6 host":              {host("[::1]:8080"), ""},
		"IPv6 host without port": {host("[::1]"), ""},
		"same origin":            {header("Origin", "http://127.0.0.1:8080"), ""},
		"same-origin fetch":      {get(map[string]string{"Sec-Fetch-Site": "same-origin"}), ""},
		"typed by a person":      {get(map[string]string{"Sec-Fetch-Site": "none"}), ""},
		"a link that was followed": {get(map[string]string{
			"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
		}), ""},

		"from the network":           {remote("192.0.2.1:9"), sallyport.CodeUnauthenticated},
		"wildcard address":           {remote("0.0.0.0:9"), sallyport.CodeUnauthenticated},
		"a socket file":              {remote("@"), sallyport.CodeUnauthenticated},
		"no address":                 {remote(""), sallyport.CodeUnauthenticated},
		"Forwarded":                  {header("Forwarded", "for=192.0.2.1"), sallyport.CodeUnauthenticated},
		"Forwarded, empty":           {header("Forwarded", ""), sallyport.CodeUnauthenticated},
		"X-Forwarded-For":            {header("X-Forwarded-For", "127.0.0.1"), sallyport.CodeUnauthenticated},
		"X-Forwarded-Host":           {header("X-Forwarded-Host", "localhost"), sallyport.CodeUnauthenticated},
		"x-forwarded-for, raw case":  {header("x-forwarded-for", "127.0.0.1"), sallyport.CodeUnauthenticated},
		"X-Real-IP":                  {header("X-Real-IP", "127.0.0.1"), sallyport.CodeUnauthenticated},
		"Via":                        {header("Via", "1.1 proxy"), sallyport.CodeUnauthenticated},
		"rebound name":               {host("evil.example:8080"), sallyport.CodeAccessDenied},
		"name that begins right":     {host("localhost.evil.example"), sallyport.CodeAccessDenied},
		"port that is a name":        {host("127.0.0.1:8080.evil.example"), sallyport.CodeAccessDenied},
		"port that is too large":     {host("localhost:65536"), sallyport.CodeAccessDenied},
		"name that begins as number": {host("127.0.0.1.evil.example:8080"), sallyport.CodeAccessDenied},
		"wildcard host":              {host("0.0.0.0:8080"), sallyport.CodeAccessDenied},
		"no host":                    {host(""), sallyport.CodeAccessDenied},
		"short number":               {host("127.1:8080"), sallyport.CodeAccessDenied},
		"user in host":               {host("localhost@evil.example"), sallyport.CodeAccessDenied},
		"foreign origin":             {header("Origin", "https://evil.example"), sallyport.CodeAccessDenied},
		"other port":                 {header("Origin", "http://127.0.0.1:3000"), sallyport.CodeAccessDenied},
		"opaque origin":              {header("Origin", "null"), sallyport.CodeAccessDenied},
		"extension":                  {header("Origin", "chrome-extension://127.0.0.1:8080"), sallyport.CodeAccessDenied},
		"second origin foreign": {
			header("Origin", "http://127.0.0.1:8080", "https://evil.example"), sallyport.CodeAccessDenied,
		},
		"foreign origin, reading": {get(map[string]string{"Origin": "https://evil.example"}), sallyport.CodeAccessDenied},
		"image on a foreign page": {
			get(map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}),
			sallyport.CodeAccessDenied,
		},
		"frame on a foreign page": {
			get(map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
			sallyport.CodeAccessDenied,
		},
		"form on a foreign page": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, sallyport.CodeAccessDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := a.Principal(request(t, test.change))
			if code := sallyport.CodeOf(err); code != test.want {
				t.Fatalf("got %v, want code %q", err, test.want)
			}
			want := sallyport.Principal{}
			if test.want == "" {
				want = local()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestZeroConfigRefuses(t *testing.T) {
	t.Parallel()
	if _, err := auth.New(auth.Config{}).Principal(request(t, nil)); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
		t.Errorf("got %v, want UNAUTHENTICATED", err)
	}
}

// A key crosses proxies and names; a page of another origin is still turned away.
func TestKeyFromAnywhere(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Config{Keys: keys{}, Loopback: new(local())})
	r := request(t, func(r *http.Request) {
		r.RemoteAddr, r.Host = "192.0.2.1:9", "skills.example"
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		r.Header.Set("Authorization", "Bearer "+goodKey)
	})
	if got, err := a.Principal(r); err != nil || got.ID != "alice" {
		t.Errorf("got %v, %v", got, err)
	}
	r.Header.Set("Origin", "https://evil.example")
	if _, err := a.Principal(r); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("foreign page: got %v, want ACCESS_DENIED", err)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Config{Keys: keys{}, Fixed: new(operator())})
	for name, test := range map[string]struct {
		remote, authorization string
		id                    sallyport.PrincipalID
		want                  sallyport.Code
	}{
		"socket file":        {"@", "", "operator", ""},
		"named socket file":  {"/run/sallyport.sock", "", "operator", ""},
		"in process":         {"in-process", "", "operator", ""},
		"key decides":        {"@", "Bearer " + goodKey, "alice", ""},
		"bad key decides":    {"@", "Bearer spk_wrong", "", sallyport.CodeUnauthenticated},
		"mounted on TCP":     {"127.0.0.1:9", "", "", sallyport.CodeUnauthenticated},
		"mounted on TCP, v6": {"[2001:db8::1]:9", "", "", sallyport.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := a.Principal(request(t, func(r *http.Request) {
				r.RemoteAddr = test.remote
				if test.authorization != "" {
					r.Header.Set("Authorization", test.authorization)
				}
			}))
			if code := sallyport.CodeOf(err); code != test.want || got.ID != test.id {
				t.Errorf("got %q, %v; want %q, code %q", got.ID, err, test.id, test.want)
			}
		})
	}
}
