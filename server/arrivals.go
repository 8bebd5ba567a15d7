package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

const (
	// arrivalsTotal and arrivalsPerAddress bound the bodies that are on their way at the same time.
	arrivalsTotal, arrivalsPerAddress = 1024, 256
	// arrivalTime is what a body may take to arrive, and a second more for every arrivalRate bytes of it.
	arrivalTime = 30 * time.Second
	arrivalRate = 64 << 10
)

// arrivals bounds request bodies while they arrive, in number and in time: a caller that sends a byte now and then keeps a
// connection, and no more than its share of them. Uploads of archives have the server's own, longer time. It is safe for
// concurrent use.
type arrivals struct {
	most, perAddress int
	largest          int64 // what a body without a length counts as

	mu        sync.Mutex // guards what follows
	total     int
	byAddress map[string]int
}

func newArrivals(largest int64) *arrivals {
	return &arrivals{most: arrivalsTotal, perAddress: arrivalsPerAddress, largest: largest, byAddress: map[string]int{}}
}

func (a *arrivals) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		if len(r.TransferEncoding) > 0 {
			// A length that came beside the chunks is gone by now. Somebody in front who went by it takes what follows for a part of this
			// request, so nothing follows.
			w.Header().Set("Connection", "close")
		}
		address := addressOf(r.RemoteAddr)
		if !a.begin(address) {
			refusal := sallyport.RateLimited("server.arrivals", "too many requests are being sent at the same time", time.Second, nil)
			w.Header().Set("Connection", "close") // nobody reads the rest
			_ = reply.WriteProblem(w, "error", uuid.NewString(), refusal)
			return
		}
		body := &arriving{from: r.Body, end: sync.OnceFunc(func() { a.end(address) })}
		defer body.end()
		if !strings.HasPrefix(r.URL.Path, "/v1/import") {
			size := r.ContentLength
			if size < 0 || size > a.largest {
				size = a.largest
			}
			body.control = http.NewResponseController(w)
			// A writer without a connection, such as a test's, has no deadline to set and no slow caller.
			_ = body.control.SetReadDeadline(time.Now().Add(arrivalTime + time.Duration(size/arrivalRate)*time.Second))
		}
		r = r.WithContext(r.Context())
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

func (a *arrivals) begin(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.total >= a.most || a.byAddress[address] >= a.perAddress {
		return false
	}
	a.total++
	a.byAddress[address]++
	return true
}

func (a *arrivals) end(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.byAddress[address]--; a.byAddress[address] == 0 {
		delete(a.byAddress, address)
	}
}

// arriving is a body on its way.
type arriving struct {
	from    io.ReadCloser
	end     func()
	control *http.ResponseController // nil without a deadline of its own
}

// Read takes the deadline away with the last byte: how long the answer takes is another matter.
func (b *arriving) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if errors.Is(err, io.EOF) {
		b.end()
		if b.control != nil {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// Close leaves the deadline: what was not read is still on its way.
func (b *arriving) Close() error { return b.from.Close() }
