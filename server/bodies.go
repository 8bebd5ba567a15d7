package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

const (
	// smallBody is what a request may send without waiting: nearly all do.
	smallBody = 64 << 10
	// bodiesAtOnce is how many of the largest bodies are in memory at the same time. Decoded, a body takes several times its size.
	bodiesAtOnce = 8
	// bodyWait bounds the wait for room.
	bodyWait = 10 * time.Second
)

// bodies bounds the memory that requests take together: without it, as many callers as there are connections could each hold the largest body
// there may be. It is safe for concurrent use.
type bodies struct {
	most int64 // of one
	room *semaphore.Weighted
}

func newBodies(most int64) *bodies {
	return &bodies{most, semaphore.NewWeighted(bodiesAtOnce * most)}
}

// bound lets a request with a large body through when there is room for it, for as long as it is served. RATE_LIMITED when there is none in
// time. Uploads of archives are not counted: they go to the disk as they come, a few at once.
func (b *bodies) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		weight := r.ContentLength
		if weight < 0 || weight > b.most {
			weight = b.most
		}
		if weight <= smallBody || strings.HasPrefix(r.URL.Path, "/v1/import") {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), bodyWait)
		defer cancel()
		if err := b.room.Acquire(ctx, weight); err != nil {
			refusal := sallyport.RateLimited("server.bodies", "the server is busy with other large requests; try again in a moment, or send less", time.Second, nil)
			_ = reply.WriteProblem(w, "error", uuid.NewString(), refusal)
			return
		}
		defer b.room.Release(weight)
		next.ServeHTTP(w, r)
	})
}
