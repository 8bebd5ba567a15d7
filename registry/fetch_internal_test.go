package registry

import (
	"net/netip"
	"testing"
)

// What is not known to be public is not; embeddings of other addresses never are.
func TestReachOf(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[reach][]string{
		reachPublic:   {"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.167.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"},
		reachLoopback: {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"},
		reachPrivate:  {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fc00::1", "fd12:3456::1", "::ffff:10.1.2.3"},
		reachNever: {
			"0.0.0.0", "0.1.2.3", "169.254.169.254", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
			"::", "::7f00:1", "::10.0.0.1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1",
			"2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "4000::1", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
		},
	} {
		for _, text := range addresses {
			if got := reachOf(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
	if got := reachOf(netip.Addr{}); got != reachNever {
		t.Errorf("no address: got %s", got)
	}
}
