package auth

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// fixed serves a handler that only this machine's own operator can reach. A request that came over TCP proves that the
// handler was mounted where it must not be, so it is refused.
func (a *Authenticator) fixed(r *http.Request) (sallyport.Principal, error) {
	if _, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return sallyport.Principal{}, refused("", "this handler serves a socket file or a caller in the same process, never a network")
	}
	return *a.cfg.Fixed, nil
}

// loopback trusts a caller without credentials when all of it holds: the connection, the name it was reached by and the
// page that sent it are this machine's own, and nobody passed it on.
func (a *Authenticator) loopback(r *http.Request) (sallyport.Principal, error) {
	if a.cfg.Loopback == nil || !loopbackAddr(r.RemoteAddr) {
		return sallyport.Principal{}, refused("", "")
	}
	if name := proxyHeader(r.Header); name != "" {
		return sallyport.Principal{}, refused("", "the request was passed on by a proxy ("+name+"); send a key")
	}
	if !loopbackHost(r.Host) {
		// A name that an attacker's DNS points at 127.0.0.1 arrives here.
		return sallyport.Principal{}, denied("without a key this server answers to localhost, 127.0.0.1 and [::1] only")
	}
	if !sameOrigin(r) {
		return sallyport.Principal{}, denied("a web page of another origin may not call this server")
	}
	return *a.cfg.Loopback, nil
}

func denied(message string) *sallyport.Error {
	return &sallyport.Error{Op: "auth", Code: sallyport.CodeAccessDenied, Message: message}
}

func loopbackAddr(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// loopbackHost reports whether a Host header names this machine: localhost or a literal loopback address, with or
// without a port.
func loopbackHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false // 127.0.0.1:80.evil.example is no address of this machine
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// proxyHeaders are what a proxy adds besides X-Forwarded-*. Their presence means that the peer on loopback is not the
// caller.
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
}

func proxyHeader(header http.Header) string {
	for key := range header {
		name := http.CanonicalHeaderKey(key)
		if strings.HasPrefix(name, "X-Forwarded-") {
			return "X-Forwarded-*"
		}
		for _, proxy := range proxyHeaders {
			if name == proxy {
				return proxy
			}
		}
	}
	return ""
}

// sameOrigin reports whether r comes from no browser, or from a page of this very server, or is a person following a
// link: such a navigation shows its answer to the person and to no page.
func sameOrigin(r *http.Request) bool {
	for _, origin := range headerValues(r.Header, "Origin") {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	for _, site := range headerValues(r.Header, "Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" && !navigation(r) {
			return false
		}
	}
	return true
}

func navigation(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
