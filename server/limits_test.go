package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

// A limit under which nothing can run is refused at the start, not at every run.
func TestNewRefusesLimitsThatNoRunCanHave(t *testing.T) {
	t.Parallel()
	for field, limits := range map[string]sallyport.Limits{
		"Limits.CPUTime is":     {CPUTime: 99 * time.Millisecond},
		"Limits.CPUTime is not": {CPUTime: time.Second + time.Microsecond},
		"Limits.MemoryBytes":    {MemoryBytes: sallyport.MinMemoryBytes - 1},
		"Limits.Timeout":        {Timeout: sallyport.MinTimeout - 1},
	} {
		_, err := server.New(t.Context(), server.Config{DataDir: t.TempDir(), Limits: limits})
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(sallyport.Public(err).Message, field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
