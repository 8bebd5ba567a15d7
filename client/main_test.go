package client_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No call leaves a goroutine behind, whatever became of it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Idle connections of the real transports.
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}
