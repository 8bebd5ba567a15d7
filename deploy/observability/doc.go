// Package observability holds what a Prometheus and a Grafana need to watch Sallyport: alert rules and a dashboard.
//
// It is a module of its own, because its tests parse them with Prometheus's own parser, which nobody else needs. Its one invariant: every
// expression parses, and every metric and label in it is one that the server serves.
package observability
