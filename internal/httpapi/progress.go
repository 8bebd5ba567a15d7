package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// mediaLines is JSON in lines: reports of progress, then the envelope of the answer as the last line.
const mediaLines = "application/x-ndjson"

// progress returns what tells a caller who accepts lines how far an import is; nil for others. The first line sends the header, so
// a refusal after it is in the last line and no longer in the status.
func (c *call) progress() func(registry.ImportProgress) {
	if !accepts(c.r.Header.Values("Accept"), mediaLines) {
		return nil
	}
	rec, ok := c.w.(*recorder)
	if !ok {
		return nil
	}
	rec.lines = true
	return func(p registry.ImportProgress) {
		_ = rec.line(sallyport.Success("import_progress", rec.requestID, p)) // a caller who went away is noticed by the context
	}
}

func accepts(header []string, media string) bool {
	for _, line := range header {
		for item := range strings.SplitSeq(line, ",") {
			if named, _, err := mime.ParseMediaType(item); err == nil && named == media {
				return true
			}
		}
	}
	return false
}

// line sends one JSON document on a line of its own, at once.
func (r *recorder) line(document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return &sallyport.Error{Op: "httpapi.line", Code: sallyport.CodeInternal, Err: err}
	}
	if r.status == 0 {
		r.Header().Set("Content-Type", mediaLines)
		r.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		r.WriteHeader(http.StatusOK)
	}
	if _, err := r.Write(append(body, '\n')); err != nil {
		return err
	}
	r.Flush()
	return nil
}
