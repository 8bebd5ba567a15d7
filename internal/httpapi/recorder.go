package httpapi

import (
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

// recorder is the ResponseWriter of one request: it remembers what was said, for the access log and for deciding whether a
// crash can still be answered.
type recorder struct {
	http.ResponseWriter

	requestID string
	route     string
	principal sallyport.Principal
	err       error // what the call ended in
	lines     bool  // the answer is JSON in lines

	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(data)
	r.bytes += int64(n)
	return n, err
}

// Flush lets a mounted handler stream.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	// A writer that cannot flush sends what it has at its end.
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
