// Package client calls the HTTP API of Sallyport from Go; the command line uses it too.
//
// It owns the requests, the reading of envelopes and the transports to a server that has no address: one in this process, one
// behind a socket file. It leaves every judgement to the server. Its one invariant: a call returns either data or a
// *sallyport.Error with the server's own code, so that one error table serves both sides.
package client

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config says which server, as whom and how.
type Config struct {
	// URL of the server, such as https://skills.example; a path before /v1 is kept. Empty means http://localhost, for a
	// Transport that needs no address.
	URL string
	// Key is the API key; empty sends none.
	Key string
	// Tenant is the tenant that the operator of a data folder acts in; empty is the default one. A server refuses it over the
	// network: a key belongs to one tenant.
	Tenant sallyport.TenantID
	// Transport carries the requests; nil means HTTP with the proxies of the environment. See [InProcess] and [Unix]. Redirects
	// are never followed: they would take the key somewhere else.
	Transport http.RoundTripper
	// MaxResponseBytes bounds an answer; zero means 64 MiB.
	MaxResponseBytes int64
	// Received, when set, is given every envelope exactly as the server sent it, refusals included, before the call that
	// received it returns. It is called by the goroutine of that call.
	Received func(envelope []byte)
}

const (
	defaultURL              = "http://localhost"
	defaultMaxResponseBytes = 64 << 20
)

// Client is safe for concurrent use.
type Client struct {
	cfg  Config
	base url.URL
	http *http.Client
}

// New returns a Client. A URL or a key that cannot be used is INVALID_ARGUMENT; nothing is sent yet.
func New(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		cfg.URL = defaultURL
	}
	if cfg.MaxResponseBytes <= 0 {
		cfg.MaxResponseBytes = defaultMaxResponseBytes
	}
	if cfg.Transport == nil {
		cfg.Transport = network()
	}
	base, err := url.Parse(cfg.URL)
	switch {
	case err != nil, base.Host == "", base.Scheme != "http" && base.Scheme != "https":
		return nil, invalid("the URL of a server looks like https://skills.example")
	case base.User != nil, base.RawQuery != "", base.Fragment != "":
		return nil, invalid("the URL of a server has no user, query or fragment; send the key as Key")
	}
	for i := range len(cfg.Key) {
		if c := cfg.Key[i]; c <= ' ' || c > '~' {
			return nil, invalid("the key holds a character that no key has; was it copied whole?")
		}
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = ""
	return &Client{
		cfg: cfg, base: *base,
		http: &http.Client{
			Transport:     cfg.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// network is the transport of a client that was given none.
func network() http.RoundTripper {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 16, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 1 << 20,
	}
}

func invalid(format string, args ...any) error {
	return sallyport.Errorf("client", sallyport.CodeInvalidArgument, format, args...)
}
