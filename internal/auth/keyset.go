package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keysFresh is how long a fetched key set is trusted without asking again: a key that the issuer takes away stops to
	// work within it.
	keysFresh = 5 * time.Minute
	// keysStale is how long it is trusted while the issuer cannot be asked.
	keysStale = 30 * time.Minute
	// keysPause is the least time between two fetches: a token with an invented key id must not make traffic.
	keysPause = 10 * time.Second

	fetchTimeout  = 10 * time.Second
	fetchMaxBytes = 1 << 20
	maxKeys       = 100
	minRSABits    = 2048
)

var (
	// errNoKey: the issuer was asked lately and has no such key.
	errNoKey = errors.New("the issuer has no such key")
	// errKeys: the issuer cannot be asked, and what it said last is too old.
	errKeys = errors.New("the issuer's keys are not available")
)

// keySet keeps the public keys of one issuer. It is safe for concurrent use and has nothing to close.
type keySet struct {
	issuer, url string
	client      *http.Client
	now         func() time.Time
	fetching    chan struct{} // holds one element during a fetch

	mu      sync.Mutex // guards what follows
	keys    []jose.JSONWebKey
	fetched time.Time // of keys
	tried   time.Time
	failed  error // of the last try
}

func newKeySet(issuer Issuer, client *http.Client, now func() time.Time) *keySet {
	return &keySet{issuer: issuer.URL, url: issuer.KeysURL, client: client, now: now, fetching: make(chan struct{}, 1)}
}

// candidates returns the keys that may have signed under kid with algorithm: never none without an error.
func (k *keySet) candidates(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	found, fresh := k.look(kid, algorithm)
	if fresh && len(found) > 0 {
		return found, nil
	}
	if err := k.refresh(ctx, len(found) == 0); err != nil {
		return nil, err
	}
	if found, _ = k.look(kid, algorithm); len(found) > 0 {
		return found, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Sub(k.fetched) > keysStale {
		return nil, fmt.Errorf("%w: %w", errKeys, k.failed)
	}
	return nil, errNoKey
}

// look searches the keys at hand; none when they are too old.
func (k *keySet) look(kid, algorithm string) (found []jose.JSONWebKey, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.now().Sub(k.fetched)
	if k.fetched.IsZero() || age > keysStale {
		return nil, false
	}
	for _, key := range k.keys {
		if (kid == "" || key.KeyID == kid) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			found = append(found, key)
		}
	}
	return found, age <= keysFresh
}

// refresh asks the issuer, unless somebody did just now. While somebody does, only a caller who needs the answer waits for it.
// The error is the caller's context only: what the issuer says is in the state.
func (k *keySet) refresh(ctx context.Context, needed bool) error {
	select {
	case k.fetching <- struct{}{}:
	default:
		if !needed {
			return nil
		}
		select {
		case k.fetching <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-k.fetching }()
	k.mu.Lock()
	now := k.now()
	due := k.tried.IsZero() || now.Sub(k.tried) >= keysPause
	if due {
		k.tried = now
	}
	k.mu.Unlock()
	if !due {
		return nil
	}
	// The answer is everybody's: a caller who hangs up must not make the others wait for the next try.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
	if err == nil {
		k.keys, k.fetched = keys, now
	}
	return nil
}

func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	address := k.url
	if address == "" {
		var err error
		if address, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	body, err := k.get(ctx, address)
	if err != nil {
		return nil, err
	}
	return parseKeys(body)
}

// discover asks the issuer's metadata for the key set: OpenID Connect Discovery, else RFC 8414.
func (k *keySet) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	oauth := *u
	oauth.Path, oauth.RawPath = "/.well-known/oauth-authorization-server"+strings.TrimSuffix(u.Path, "/"), ""
	var errs []error
	for _, address := range []string{strings.TrimSuffix(k.issuer, "/") + "/.well-known/openid-configuration", oauth.String()} {
		body, err := k.get(ctx, address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var metadata struct {
			Issuer  string `json:"issuer"`
			KeysURL string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(body, &metadata); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", address, err))
			continue
		}
		if metadata.Issuer != k.issuer {
			errs = append(errs, fmt.Errorf("%s speaks for the issuer %q", address, metadata.Issuer))
			continue
		}
		if err := checkURL(metadata.KeysURL, loopbackURL(k.issuer)); err != nil {
			errs = append(errs, fmt.Errorf("%s: jwks_uri: %w", address, err))
			continue
		}
		return metadata.KeysURL, nil
	}
	return "", errors.Join(errs...)
}

func (k *keySet) get(ctx context.Context, address string) ([]byte, error) {
	//nolint:gosec // the address is the configuration's, or that of the metadata which the configuration's issuer serves
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(req) //nolint:gosec // see above
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchMaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	case len(body) > fetchMaxBytes:
		return nil, fmt.Errorf("%s answers more than %d bytes", address, fetchMaxBytes)
	}
	return body, nil
}

// parseKeys keeps the keys that can check an accepted signature. One that cannot be read does not spoil the others; a set
// without any is an error.
func parseKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && usable(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no public key for signatures")
	}
	return keys, nil
}

func usable(key jose.JSONWebKey) bool {
	if !key.Valid() || (key.Use != "" && key.Use != "sig") {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	default:
		return false // a shared secret, or a private key that somebody published
	}
}

// newClient asks issuers: directly, within bounds, and never led elsewhere.
func newClient() *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		// Proxy is nil on purpose: the environment must not decide whom keys come from. No connection is kept, so there is
		// nothing to close.
		Transport: &http.Transport{
			TLSHandshakeTimeout: fetchTimeout, ResponseHeaderTimeout: fetchTimeout, MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 {
				return errors.New("too many redirects")
			}
			if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
				return errors.New("redirected to another host")
			}
			return nil
		},
	}
}
