package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// This file is inside the package: the bound is reached by sending hundreds of megabytes, or by looking at it alone.

func post(ctx context.Context, path string, size int64) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(""))
	r.ContentLength = size
	return r
}

// Large bodies wait for room and are refused when none comes; small ones and archives never wait; a body without a length counts in full.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 20
		leave := make(chan struct{})
		inside := 0
		h := newBodies(most).bound(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside++; <-leave }))
		for i := range bodiesAtOnce {
			size := int64(most)
			if i == 0 {
				size = -1
			}
			go h.ServeHTTP(httptest.NewRecorder(), post(t.Context(), "/v1/skills", size))
			synctest.Wait()
		}
		if inside != bodiesAtOnce {
			t.Fatalf("%d inside, want %d", inside, bodiesAtOnce)
		}
		refused := httptest.NewRecorder()
		began := time.Now()
		h.ServeHTTP(refused, post(t.Context(), "/mcp", smallBody+1))
		if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" || time.Since(began) != bodyWait {
			t.Errorf("got %d after %s, Retry-After %q", refused.Code, time.Since(began), refused.Header().Get("Retry-After"))
		}
		for _, r := range []*http.Request{post(t.Context(), "/mcp", smallBody), post(t.Context(), "/v1/import", 1<<30), post(t.Context(), "/v1/skills", 0)} {
			go h.ServeHTTP(httptest.NewRecorder(), r)
			synctest.Wait()
		}
		if inside != bodiesAtOnce+3 {
			t.Errorf("%d inside, want %d", inside, bodiesAtOnce+3)
		}
		waiting := httptest.NewRecorder()
		go h.ServeHTTP(waiting, post(t.Context(), "/mcp", most))
		synctest.Wait()
		close(leave)
		synctest.Wait()
		if inside != bodiesAtOnce+4 || waiting.Code != http.StatusOK {
			t.Errorf("%d inside, the waiting one got %d", inside, waiting.Code)
		}
	})
}
