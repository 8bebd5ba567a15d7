package server

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/bucket"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
)

// AddressQuota bounds what one remote address may do without having proved who it is. Zero fields mean the defaults; a negative one
// bounds nothing.
type AddressQuota struct {
	// FailuresPerMinute counts requests whose credential was not accepted, or was missing where one is needed.
	FailuresPerMinute int
	// PublicPerSecond counts requests for what is served to anybody, and for what there is not.
	PublicPerSecond int
}

// The defaults of AddressQuota.
const (
	DefaultFailuresPerMinute = 30
	DefaultPublicPerSecond   = 50
)

const (
	// knownKeys bounds how many credentials are remembered to have been good, and knownFor for how long.
	knownKeys = 4096
	knownFor  = 10 * time.Minute
)

// strangers slows down those who have not proved who they are, by the address that they come from. It is safe for concurrent use
// and its memory is bounded.
type strangers struct {
	who   httpapi.Authenticator
	quota AddressQuota

	mu       sync.Mutex // guards what follows
	failures *bucket.Set
	public   *bucket.Set
	// known holds the digests of credentials that were good a moment ago: they are looked at however many others of their
	// address are not.
	known map[[sha256.Size]byte]time.Time
}

func newStrangers(who httpapi.Authenticator, quota AddressQuota) *strangers {
	if quota.FailuresPerMinute == 0 {
		quota.FailuresPerMinute = DefaultFailuresPerMinute
	}
	if quota.PublicPerSecond == 0 {
		quota.PublicPerSecond = DefaultPublicPerSecond
	}
	return &strangers{
		who: who, quota: quota, known: map[[sha256.Size]byte]time.Time{},
		failures: bucket.NewSet(bucket.Rate{Amount: float64(max(quota.FailuresPerMinute, 0)), Per: time.Minute}),
		public:   bucket.NewSet(bucket.Rate{Amount: float64(max(quota.PublicPerSecond, 0)), Per: time.Second}),
	}
}

// Principal asks who sent r, unless too many from its address could not say so lately: RATE_LIMITED, before anything is looked up.
func (s *strangers) Principal(r *http.Request) (sallyport.Principal, error) {
	address, credential, now := addressOf(r.RemoteAddr), credentialOf(r), time.Now()
	if err := s.admit(address, credential, now); err != nil {
		return sallyport.Principal{}, err
	}
	p, err := s.who.Principal(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch code := sallyport.CodeOf(err); {
	case err == nil && credential != nil:
		s.remember(*credential, now)
	case code == sallyport.CodeUnauthenticated, code == sallyport.CodeAccessDenied:
		if credential != nil {
			delete(s.known, *credential)
		}
		// When there are too many addresses to count, new ones are not counted; those that are stay slow.
		if s.failures.Wait(address, 0, now) == 0 {
			s.failures.Spend(address, 1, now)
		}
	}
	return p, err
}

func (s *strangers) admit(address string, credential *[sha256.Size]byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if credential != nil && now.Sub(s.known[*credential]) < knownFor {
		return nil
	}
	if !s.failures.Has(address) {
		return nil // it has not failed lately
	}
	if wait := s.failures.Wait(address, 1, now); wait > 0 {
		return sallyport.RateLimited("server.strangers", "too many requests from this address showed no valid credential", wait,
			map[string]any{"quota": "address.failures_per_minute"})
	}
	return nil
}

// remember keeps a credential that was good. When there are too many, the old ones go, and if none is old, all of them: they are
// known again at their next use.
func (s *strangers) remember(credential [sha256.Size]byte, now time.Time) {
	if _, known := s.known[credential]; !known && len(s.known) >= knownKeys {
		for one, at := range s.known {
			if now.Sub(at) >= knownFor {
				delete(s.known, one)
			}
		}
		if len(s.known) >= knownKeys {
			clear(s.known)
		}
	}
	s.known[credential] = now
}

// Public lets a request through for what is served to anybody, or RATE_LIMITED.
func (s *strangers) Public(r *http.Request) error {
	address, now := addressOf(r.RemoteAddr), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.public.Wait(address, 1, now); wait > 0 {
		return sallyport.RateLimited("server.strangers", "too many requests from this address", wait, map[string]any{"quota": "address.public_per_second"})
	}
	s.public.Spend(address, 1, now)
	return nil
}

// addressOf is what is counted together: an IPv4 address, or the /64 of an IPv6 address, which one customer has as a whole. What a
// request says about where it comes from is not believed.
func addressOf(remote string) string {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}
	ip := addr.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

// credentialOf is the digest of what a request shows; nil when it shows nothing.
func credentialOf(r *http.Request) *[sha256.Size]byte {
	shown := headerValues(r.Header, "Authorization")
	if len(shown) != 1 {
		return nil
	}
	sum := sha256.Sum256([]byte(shown[0]))
	return &sum
}
