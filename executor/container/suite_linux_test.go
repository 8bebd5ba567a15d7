package container_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/executortest"
)

// provided are the layers that Podman, started as root, enforces here: all but a user namespace, which is the choice of whoever
// sets it up, and, with control groups of the first version, a namespace of those.
func provided(tb testing.TB, p *engineProcess) []sallyport.Layer {
	tb.Helper()
	body, err := p.api(http.MethodGet, "/v1.40/info", nil)
	if err != nil {
		tb.Fatal(err)
	}
	var info struct{ CgroupVersion string }
	if err := json.Unmarshal(body, &info); err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(sallyport.Layers(), func(l sallyport.Layer) bool {
		return l == sallyport.LayerUserNamespace || l == sallyport.LayerCgroupNamespace && info.CgroupVersion == "1"
	})
}

// Not parallel: the suite looks at the whole engine after every attempt.
func TestSuite(t *testing.T) {
	p := engine(t)
	executortest.Run(t, executortest.Factory{
		New:          func(tb testing.TB) sallyport.Executor { tb.Helper(); return newExecutor(tb, p.config()) },
		Provides:     provided(t, p),
		Interpreters: interpreters(),
		Storage:      p.dir,
		Leftovers:    p.leftovers,
	})
}
