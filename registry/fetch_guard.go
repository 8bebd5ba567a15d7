package registry

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport"
)

// dial looks a host up, checks every address and connects to one of exactly those. Plain reaches loopback only.
func (f *Fetcher) dial(ctx context.Context, network, address string, plain bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, ip := range addresses {
		// One bad address is enough: a name that leads inside and outside at once is an attack.
		if err := f.permit(ip, plain); err != nil {
			return nil, err
		}
	}
	dialer := net.Dialer{
		// Once more at the last moment, on what the kernel is asked to connect to.
		ControlContext: func(_ context.Context, _, target string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(target)
			if err != nil {
				return err
			}
			return f.permit(at.Addr(), plain)
		},
	}
	var failed error
	for _, ip := range addresses {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(ip.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (f *Fetcher) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	addresses, err := f.cfg.Resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addresses) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return addresses, err
}

// permit refuses addresses that are not of the public internet, but for those that the configuration allows.
func (f *Fetcher) permit(ip netip.Addr, plain bool) error {
	switch reach := reachOf(ip); {
	case reach == reachLoopback && f.cfg.AllowPrivate:
		return nil
	case plain:
		return refuseURL("http is for this machine only; use https")
	case reach == reachPublic, reach == reachPrivate && f.cfg.AllowPrivate:
		return nil
	case reach == reachNever || f.cfg.AllowPrivate:
		return refuseURL("its host leads to an address that nothing is fetched from")
	}
	return &sallyport.Error{
		Op: opFetch, Code: sallyport.CodeInvalidArgument,
		Message: "the URL cannot be imported: its host leads to an address that is not on the public internet; an operator can allow those with url_import_private",
	}
}

type reach string

const (
	reachPublic   reach = "public"
	reachLoopback reach = "loopback"
	reachPrivate  reach = "private" // of a private network
	reachNever    reach = "never"   // link-local (the metadata of clouds), multicast, reserved, embedding
)

var (
	privateRanges = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
	neverRanges   = prefixes(
		"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		// Beyond 2000::/3 nothing is public; within it, what embeds another address or is for documents and tests.
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	)
	globalUnicast = netip.MustParsePrefix("2000::/3")
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// reachOf says how far an address reaches. What is not known to be public is not.
func reachOf(ip netip.Addr) reach {
	if !ip.IsValid() || ip.Zone() != "" {
		return reachNever
	}
	// An address of version 4 in the clothes of version 6 is what it maps to. Other embeddings (NAT64, 6to4, Teredo) are never used.
	ip = ip.Unmap()
	in := func(ranges []netip.Prefix) bool {
		return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	switch {
	case ip.IsLoopback():
		return reachLoopback
	case in(privateRanges):
		return reachPrivate
	case in(neverRanges), ip.Is6() && !globalUnicast.Contains(ip):
		return reachNever
	}
	return reachPublic
}
