package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/auth"
)

const goodKey = "spk_good1234"

// keys accepts one secret.
type keys struct{}

func (keys) Authenticate(_ context.Context, secret string) (sallyport.Principal, error) {
	switch secret {
	case goodKey:
		return keyed(), nil
	case "spk_broken":
		return sallyport.Principal{}, &sallyport.Error{Op: "store", Code: sallyport.CodeStoreUnavailable}
	case "spk_nobody":
		return sallyport.Principal{}, nil
	}
	return sallyport.Principal{}, &sallyport.Error{
		Op: "access", Code: sallyport.CodeUnauthenticated, Message: "the key is expired", Err: errors.New("row 7"),
	}
}

func keyed() sallyport.Principal {
	return sallyport.Principal{ID: "alice", TenantID: "acme", KeyID: "k1", Scopes: sallyport.Scopes()}
}

func local() sallyport.Principal {
	return sallyport.Principal{ID: "local", TenantID: "default", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}
}

func operator() sallyport.Principal { return sallyport.Principal{ID: "operator", TenantID: "default"} }

// request is a plain caller on loopback.
func request(t *testing.T, change func(*http.Request)) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080/v1/skills", nil)
	r.RemoteAddr = "127.0.0.1:54321"
	if change != nil {
		change(r)
	}
	return r
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func TestBearer(t *testing.T) {
	t.Parallel()
	loopback := local()
	a := auth.New(auth.Config{Keys: keys{}, Loopback: &loopback})
	for name, test := range map[string]struct {
		values    []string
		want      sallyport.Code
		challenge string
	}{
		"good":                       {[]string{"Bearer " + goodKey}, "", ""},
		"scheme in lower case":       {[]string{"bearer " + goodKey}, "", ""},
		"scheme in upper case":       {[]string{"BEARER " + goodKey}, "", ""},
		"bad key, even on loopback":  {[]string{"Bearer spk_wrong"}, sallyport.CodeUnauthenticated, "invalid_token"},
		"key in another case":        {[]string{"Bearer " + strings.ToUpper(goodKey)}, sallyport.CodeUnauthenticated, "invalid_token"},
		"empty header":               {[]string{""}, sallyport.CodeUnauthenticated, "invalid_request"},
		"scheme alone":               {[]string{"Bearer"}, sallyport.CodeUnauthenticated, "invalid_request"},
		"scheme and a blank":         {[]string{"Bearer "}, sallyport.CodeUnauthenticated, "invalid_token"},
		"no scheme":                  {[]string{goodKey}, sallyport.CodeUnauthenticated, "invalid_request"},
		"basic":                      {[]string{"Basic " + goodKey}, sallyport.CodeUnauthenticated, "invalid_request"},
		"two blanks":                 {[]string{"Bearer  " + goodKey}, sallyport.CodeUnauthenticated, "invalid_token"},
		"a tab":                      {[]string{"Bearer\t" + goodKey}, sallyport.CodeUnauthenticated, "invalid_request"},
		"leading blank":              {[]string{" Bearer " + goodKey}, sallyport.CodeUnauthenticated, "invalid_request"},
		"trailing blank":             {[]string{"Bearer " + goodKey + " "}, sallyport.CodeUnauthenticated, "invalid_token"},
		"line feed":                  {[]string{"Bearer " + goodKey + "\n"}, sallyport.CodeUnauthenticated, "invalid_token"},
		"two headers":                {[]string{"Bearer " + goodKey, "Bearer " + goodKey}, sallyport.CodeUnauthenticated, "invalid_request"},
		"good one first":             {[]string{"Bearer " + goodKey, "Bearer spk_wrong"}, sallyport.CodeUnauthenticated, "invalid_request"},
		"joined by a comma":          {[]string{"Bearer " + goodKey + ",Bearer x"}, sallyport.CodeUnauthenticated, "invalid_token"},
		"quoted":                     {[]string{`Bearer "` + goodKey + `"`}, sallyport.CodeUnauthenticated, "invalid_token"},
		"not ASCII":                  {[]string{"Bearer " + goodKey + "é"}, sallyport.CodeUnauthenticated, "invalid_token"},
		"padding alone":              {[]string{"Bearer =="}, sallyport.CodeUnauthenticated, "invalid_token"},
		"padding inside":             {[]string{"Bearer a=b"}, sallyport.CodeUnauthenticated, "invalid_token"},
		"over the bound":             {[]string{"Bearer " + strings.Repeat("a", 16<<10+1)}, sallyport.CodeUnauthenticated, "invalid_token"},
		"store broken is no refusal": {[]string{"Bearer spk_broken"}, sallyport.CodeStoreUnavailable, ""},
		"a key of nobody":            {[]string{"Bearer spk_nobody"}, sallyport.CodeUnauthenticated, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := a.Principal(request(t, header("Authorization", test.values...)))
			if code := sallyport.CodeOf(err); code != test.want {
				t.Fatalf("got %v, want code %q", err, test.want)
			}
			want := sallyport.Principal{}
			if test.want == "" {
				want = keyed()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
			if test.challenge != "" {
				if got := sallyport.Public(err).Details["challenge"]; got != test.challenge {
					t.Errorf("challenge %v, want %q", got, test.challenge)
				}
			}
		})
	}
}

// A second header that no parser canonicalised must not hide behind the first.
func TestBearerInAnotherHeaderCase(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Config{Keys: keys{}})
	r := request(t, func(r *http.Request) {
		r.Header = http.Header{"Authorization": {"Bearer " + goodKey}, "authorization": {"Bearer spk_wrong"}}
	})
	if _, err := a.Principal(r); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
		t.Errorf("got %v, want UNAUTHENTICATED", err)
	}
}

func TestSecretOutsideTheHeader(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Config{Keys: keys{}})
	for name, change := range map[string]func(*http.Request){
		"query access_token":  func(r *http.Request) { r.URL.RawQuery = "access_token=" + goodKey },
		"query key":           func(r *http.Request) { r.URL.RawQuery = "key=" + goodKey },
		"cookie":              header("Cookie", "Authorization=Bearer "+goodKey),
		"proxy authorization": header("Proxy-Authorization", "Bearer "+goodKey),
		"another header":      header("X-Api-Key", goodKey),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := a.Principal(request(t, change)); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
				t.Errorf("got %v, want UNAUTHENTICATED", err)
			}
		})
	}
}

func TestBearerNeedsKeys(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]auth.Config{"zero": {}, "fixed": {Fixed: new(operator())}, "loopback": {Loopback: new(local())}} {
		_, err := auth.New(cfg).Principal(request(t, header("Authorization", "Bearer "+goodKey)))
		if sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
			t.Errorf("%s: got %v, want UNAUTHENTICATED", name, err)
		}
	}
}

func TestCausesStayPrivate(t *testing.T) {
	t.Parallel()
	_, err := auth.New(auth.Config{Keys: keys{}}).Principal(request(t, header("Authorization", "Bearer spk_wrong")))
	public := sallyport.Public(err)
	if public.Message != "the key is expired" || strings.Contains(public.Message, "row 7") {
		t.Errorf("got %q", public.Message)
	}
	if !strings.Contains(err.Error(), "row 7") {
		t.Errorf("the log does not see the cause: %v", err)
	}
}
