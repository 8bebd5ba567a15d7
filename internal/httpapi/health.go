package httpapi

import (
	_ "embed"
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

type statusData struct {
	Status string `json:"status"`
}

// health says that the process answers.
func health(*call, sallyport.Principal) (answer, error) { return ok(statusData{"ok"}), nil }

// ready says whether the process can serve.
func ready(c *call, _ sallyport.Principal) (answer, error) {
	if c.api.cfg.Ready != nil {
		if err := c.api.cfg.Ready(c.ctx()); err != nil {
			if sallyport.Lookup(sallyport.CodeOf(err)).Class != sallyport.ClassUnavailable {
				// Whatever the reason, the answer to a probe is unavailable, and the reason stays in the log.
				err = &sallyport.Error{Op: "httpapi.ready", Code: sallyport.CodeStoreUnavailable, Message: "the server is not ready", Err: err}
			}
			return answer{}, err
		}
	}
	return ok(statusData{"ready"}), nil
}

//go:embed openapi.json
var openAPIDocument []byte

// OpenAPI returns the OpenAPI 3.1 document of all routes, as JSON.
func OpenAPI() []byte { return append([]byte(nil), openAPIDocument...) }

func openAPI(*call, sallyport.Principal) (answer, error) {
	return answer{document: openAPIDocument}, nil
}

// capabilitiesData is what the server is, what it can enforce now, and who it takes the caller for.
type capabilitiesData struct {
	Version   string                 `json:"version"`
	Executor  sallyport.Capabilities `json:"executor"`
	Principal sallyport.Principal    `json:"principal"`
}

func capabilities(c *call, p sallyport.Principal) (answer, error) {
	executor := c.api.cfg.Runs.Capabilities(c.ctx())
	if executor.Layers == nil {
		executor.Layers = []sallyport.Layer{}
	}
	if executor.Features == nil {
		executor.Features = []sallyport.Feature{}
	}
	return ok(capabilitiesData{Version: c.api.cfg.Version, Executor: executor, Principal: p}), nil
}

// metrics guards the counters: they are nobody's business who has no key.
func (a *api) metrics() http.Handler {
	if a.cfg.Metrics == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := a.cfg.Auth.Principal(r); err != nil {
			if rec, isRecorder := w.(*recorder); isRecorder {
				a.refuse(rec, "metrics", err)
			}
			return
		}
		a.cfg.Metrics.ServeHTTP(w, r)
	})
}
