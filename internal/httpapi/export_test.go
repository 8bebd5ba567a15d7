package httpapi

import "net/http"

// Routes lists every route as method and pattern.
func Routes() []string {
	var out []string
	for _, r := range routes() {
		out = append(out, r.method+" "+r.pattern)
	}
	return out
}

// RouteOf is the route that answers a request.
func RouteOf(r *http.Request) string {
	mux := http.NewServeMux()
	for _, to := range routes() {
		mux.Handle(to.method+" "+to.pattern, http.NotFoundHandler())
	}
	_, pattern := mux.Handler(r)
	return pattern
}

// Public reports whether anybody may call a route.
func Public(route string) bool {
	for _, r := range routes() {
		if r.method+" "+r.pattern == route {
			return r.public
		}
	}
	return false
}
