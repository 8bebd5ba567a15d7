package registry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/gitread"
)

const (
	opFetch = "registry.fetch"

	defaultFetchBytes   = 64 << 20
	defaultFetchTimeout = time.Minute
	maxURLBytes         = 2048
	maxRedirects        = 5
	fetchesAtOnce       = 4
	fetchHeaderBytes    = 64 << 10
)

// FetchConfig is what a Fetcher may do.
type FetchConfig struct {
	// AllowPrivate permits loopback, private, unique local and carrier-grade addresses, and plain http to loopback. Link-local, multicast,
	// unspecified, reserved and embedding addresses stay refused.
	AllowPrivate bool
	// MaxBytes bounds a download; zero means 64 MiB.
	MaxBytes int64
	// Timeout bounds everything from the first look-up to the last byte; zero means one minute.
	Timeout time.Duration
	// SpoolDir is an existing folder for downloads, which are unlinked at once; empty means the system's.
	SpoolDir string
	// Resolver looks names up; nil means the system's. What it returns is what is dialled: no name is looked up twice.
	Resolver Resolver
	// TLS is for the connections; nil means the system's roots.
	TLS *tls.Config
	// Version is what the fetcher calls itself.
	Version string
}

// Resolver looks up the addresses of a host.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Fetcher downloads skills from URLs of strangers. Every address is checked when it is dialled, redirects included; the environment's proxies,
// cookies and credentials are never used. It is safe for concurrent use.
type Fetcher struct {
	cfg    FetchConfig
	client *http.Client
	slots  chan struct{}
}

// Source says what was fetched. URL is where it finally came from, without query, fragment and user information.
type Source struct {
	URL       string           `json:"url"`
	SizeBytes int64            `json:"size_bytes"`
	Digest    sallyport.Digest `json:"digest"` // of the bytes that came
	// Commit, Ref and Subdir say what was read of a git repository; Ref and Subdir as they were asked for.
	Commit string `json:"commit,omitempty"`
	Ref    string `json:"ref,omitempty"`
	Subdir string `json:"subdir,omitempty"`
}

// NewFetcher returns a Fetcher.
func NewFetcher(cfg FetchConfig) *Fetcher {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultFetchBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultFetchTimeout
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	f := &Fetcher{cfg: cfg, slots: make(chan struct{}, fetchesAtOnce)}
	f.client = &http.Client{
		Transport: schemes{secure: f.transport(false), plain: f.transport(true)},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refuseURL("it redirects more than %d times", maxRedirects)
			}
			r.Header.Del("Referer") // it may hold a token of the URL before
			_, err := f.check(r.URL.String())
			return err
		},
	}
	return f
}

// schemes sends plain http over a transport of its own, which reaches loopback only.
type schemes struct{ secure, plain http.RoundTripper }

func (s schemes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return s.secure.RoundTrip(r)
	}
	return s.plain.RoundTrip(r)
}

func (f *Fetcher) transport(plain bool) http.RoundTripper {
	return &http.Transport{
		Proxy: nil, // a proxy would dial for us, past every check
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.dial(ctx, network, address, plain)
		},
		TLSClientConfig: f.cfg.TLS.Clone(), DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: fetchHeaderBytes, TLSHandshakeTimeout: f.cfg.Timeout, ResponseHeaderTimeout: f.cfg.Timeout,
	}
}

func refuseURL(format string, args ...any) error {
	return sallyport.Errorf(opFetch, sallyport.CodeInvalidArgument, "the URL cannot be imported: "+format, args...)
}

// check refuses URLs that are not fetched whatever they lead to.
func (f *Fetcher) check(raw string) (*url.URL, error) {
	if len(raw) > maxURLBytes {
		return nil, refuseURL("it has more than %d bytes", maxURLBytes)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, refuseURL("it is malformed")
	case u.Scheme != "https" && (u.Scheme != "http" || !f.cfg.AllowPrivate):
		return nil, refuseURL("it must begin with https://")
	case u.User != nil:
		return nil, refuseURL("it holds a user name or a password; leave them out")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, refuseURL("it names no host")
	}
	return u, nil
}

// Fetch downloads one URL and opens what it holds: a zip, a tar, a tar.gz or a SKILL.md, told by its bytes, or one commit of a git
// repository (see [gitread.ParseURL]). The tree's Close releases the download. A URL that is refused or does not serve is INVALID_ARGUMENT, a download over the bound REQUEST_TOO_LARGE, one that takes too
// long DEADLINE_EXCEEDED, and one too many at a time RATE_LIMITED.
func (f *Fetcher) Fetch(ctx context.Context, raw string) (Tree, Source, error) {
	if len(raw) > maxURLBytes {
		return nil, Source{}, refuseURL("it has more than %d bytes", maxURLBytes)
	}
	location, git, err := gitread.ParseURL(raw)
	if err != nil {
		return nil, Source{}, err
	}
	plain := raw
	if git {
		plain = location.URL
	}
	u, err := f.check(plain)
	if err != nil {
		return nil, Source{}, err
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return nil, Source{}, sallyport.Errorf(opFetch, sallyport.CodeRateLimited, "%d downloads are under way already; ask again in a moment", fetchesAtOnce)
	}
	limited, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	if git {
		tree, source, err := f.fetchGit(limited, u, location)
		if err != nil {
			if late := limited.Err(); late != nil {
				err = late // a server that is hung up on may end its answer as if it were whole
			}
			return nil, Source{}, f.fault(ctx, err)
		}
		return tree, source, nil
	}
	spool, source, err := f.download(limited, u)
	if err != nil {
		return nil, Source{}, f.fault(ctx, err)
	}
	tree, err := f.open(spool, source)
	if err != nil {
		return nil, Source{}, errors.Join(err, spool.Close())
	}
	return tree, source, nil
}

// download writes the answer to a file without a name.
func (f *Fetcher) download(ctx context.Context, u *url.URL) (_ *os.File, _ Source, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, Source{}, err
	}
	request.Header.Set("User-Agent", "sallyport/"+f.cfg.Version)
	request.Header.Set("Accept", "application/zip, application/gzip, application/x-tar, text/markdown, */*;q=0.1")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, Source{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	if response.StatusCode != http.StatusOK {
		return nil, Source{}, refuseURL("its server answers %d where 200 is wanted", response.StatusCode)
	}
	if response.ContentLength > f.cfg.MaxBytes {
		return nil, Source{}, f.tooLarge()
	}
	spool, err := openSpool(f.cfg.SpoolDir)
	if err != nil {
		return nil, Source{}, &sallyport.Error{Op: opFetch, Code: sallyport.CodeInternal, Err: err}
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(spool, sum), io.LimitReader(response.Body, f.cfg.MaxBytes+1))
	if err == nil {
		err = ctx.Err() // a server that is hung up on may still end its answer in good order
	}
	if err == nil && n > f.cfg.MaxBytes {
		err = f.tooLarge()
	}
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, Source{}, errors.Join(err, spool.Close())
	}
	return spool, Source{
		URL: plainSource(response.Request.URL), SizeBytes: n, Digest: sallyport.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))),
	}, nil
}

func (f *Fetcher) tooLarge() error {
	return sallyport.Errorf(opFetch, sallyport.CodeRequestTooLarge, "the download has more than %d bytes; import a smaller one", f.cfg.MaxBytes)
}

// plainSource drops what may hold a secret.
func plainSource(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// fault turns what a download failed with into a sentence without addresses.
func (f *Fetcher) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		return own
	}
	said := "its server cannot be reached"
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		said = "its host is not known"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		said = "its server's certificate cannot be trusted"
	}
	code := sallyport.CodeInvalidArgument
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		code, said = sallyport.CodeDeadlineExceeded, "it took too long"
	}
	return &sallyport.Error{Op: opFetch, Code: code, Message: "the URL cannot be imported: " + said, Err: err}
}
