package remote

import (
	"net/http"
	"testing"
)

// Work and keys go to the runner that is named, never to a proxy that the environment names: loopback is exempt from such a
// proxy, so only the transport itself can show it.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	transport, ok := newClient(Config{}).Transport.(*http.Transport)
	if !ok || transport.Proxy != nil || !transport.DisableKeepAlives || !transport.DisableCompression {
		t.Errorf("got %+v", transport)
	}
}
