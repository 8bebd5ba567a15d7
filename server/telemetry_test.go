package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

// collector is an OTLP receiver that decodes what it is sent.
type collector struct {
	tracepb.UnimplementedTraceServiceServer
	metrics collectorMetrics

	mu       sync.Mutex
	spans    map[string]*spanpb.Span // by name
	resource map[string]string
	names    map[string]bool // of metrics
	keys     map[string]bool // what callers showed
	paths    map[string]bool
}

type collectorMetrics struct {
	metricspb.UnimplementedMetricsServiceServer
	to *collector
}

func newCollector() *collector {
	c := &collector{spans: map[string]*spanpb.Span{}, resource: map[string]string{}, names: map[string]bool{}, keys: map[string]bool{}, paths: map[string]bool{}}
	c.metrics.to = c
	return c
}

func text(attributes []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		out[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// Export implements the trace service.
func (c *collector) Export(ctx context.Context, req *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		for _, key := range sent.Get("x-api-key") {
			c.keys[key] = true
		}
	}
	for _, of := range req.ResourceSpans {
		maps.Copy(c.resource, text(of.Resource.Attributes))
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[span.Name] = span
			}
		}
	}
	return &tracepb.ExportTraceServiceResponse{}, nil
}

// Export implements the metrics service.
func (m *collectorMetrics) Export(_ context.Context, req *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	m.to.mu.Lock()
	defer m.to.mu.Unlock()
	for _, of := range req.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, metric := range scope.Metrics {
				m.to.names[metric.Name] = true
			}
		}
	}
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

// ServeHTTP is the same over HTTP.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.keys[r.Header.Get("X-Api-Key")], c.paths[r.URL.Path] = true, true
	c.mu.Unlock()
	var (
		answer  proto.Message
		traces  tracepb.ExportTraceServiceRequest
		metrics metricspb.ExportMetricsServiceRequest
	)
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/traces") && proto.Unmarshal(body, &traces) == nil:
		answer, err = c.Export(r.Context(), &traces)
	case strings.HasSuffix(r.URL.Path, "/v1/metrics") && proto.Unmarshal(body, &metrics) == nil:
		answer, err = c.metrics.Export(r.Context(), &metrics)
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	encoded, bad := proto.Marshal(answer)
	if err != nil || bad != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(encoded)
}

// overGRPC serves the collector and returns its address.
func (c *collector) overGRPC(t *testing.T) string {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(serving, c)
	metricspb.RegisterMetricsServiceServer(serving, &c.metrics)
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(serving.Stop)
	return "http://" + listener.Addr().String()
}

// slowStart is an executor that says when its script began.
type slowStart struct{ leaver }

func (s *slowStart) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	began := time.Now()
	result, err := s.leaver.Execute(ctx, req)
	result.StartedAt = began
	result.Isolation = sallyport.Isolation{Executor: "slow", Layers: []sallyport.Layer{}, Warm: true}
	return result, err
}

// What a run did reaches a collector, step by step, as one trace that is the caller's, over both protocols.
func TestSpansReachACollector(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			to := newCollector()
			endpoint := ""
			if protocol == "grpc" {
				endpoint = to.overGRPC(t)
			} else {
				web := httptest.NewServer(to)
				t.Cleanup(web.Close)
				endpoint = web.URL + "/below"
			}
			executor := &slowStart{}
			s, _, _ := recordServer(t, func(c *server.Config) {
				c.Executor, c.Version = executor, "1.2.3"
				c.OTel = map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=se%20cret",
					"OTEL_SERVICE_NAME": "skills", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test,service.name=ignored",
				}
			})
			web := httptest.NewServer(s.Handler())
			t.Cleanup(web.Close)
			c, err := client.New(client.Config{URL: web.URL, Key: mint(t, s, "agent")})
			if err != nil {
				t.Fatal(err)
			}
			ran, err := c.Run(t.Context(), client.RunRequest{Ref: sallyport.SkillRef{Slug: "greet"}, ScriptPath: "scripts/run.sh", TraceParent: parent})
			if err != nil {
				t.Fatal(err)
			}
			if ran.Data.TraceID != parent[3:35] {
				t.Errorf("the record is of the trace %q", ran.Data.TraceID)
			}
			if err := s.Close(); err != nil { // sends what is left
				t.Fatal(err)
			}
			to.mu.Lock()
			defer to.mu.Unlock()
			parents := map[string]string{}
			ids := map[string]string{parent[36:52]: "caller"}
			for name, span := range to.spans {
				ids[hex.EncodeToString(span.SpanId)] = name
			}
			for name, span := range to.spans {
				if got := hex.EncodeToString(span.TraceId); got != parent[3:35] {
					t.Errorf("%s is of the trace %s", name, got)
				}
				if span.EndTimeUnixNano < span.StartTimeUnixNano {
					t.Errorf("%s ends before it begins", name)
				}
				parents[name] = ids[hex.EncodeToString(span.ParentSpanId)]
			}
			want := map[string]string{
				"sallyport.execute": "caller", "sallyport.sandbox_start": "sallyport.run",
			}
			for _, step := range []string{"resolve", "gates", "record", "acquire", "run", "settle", "finish"} {
				want["sallyport."+step] = "sallyport.execute"
			}
			if diff := cmp.Diff(want, parents); diff != "" {
				t.Errorf("spans and their parents (-want +got):\n%s", diff)
			}
			execute := text(to.spans["sallyport.execute"].GetAttributes())
			if execute["sallyport.skill"] != "greet" || execute["sallyport.status"] != "success" || execute["sallyport.execution_id"] != string(ran.Data.ID) {
				t.Errorf("the attributes are %v", execute)
			}
			for name, value := range map[string]string{"service.name": "skills", "service.version": "1.2.3", "deployment.environment": "test"} {
				if to.resource[name] != value {
					t.Errorf("the resource's %s is %q", name, to.resource[name])
				}
			}
			if !to.keys["se cret"] {
				t.Errorf("the headers did not arrive: %v", to.keys)
			}
			if protocol != "grpc" && (!to.paths["/below/v1/traces"] || !to.paths["/below/v1/metrics"]) {
				t.Errorf("it went to %v", to.paths)
			}
			for _, name := range []string{"sallyport_executions", "sallyport_sandbox_start_seconds", "sallyport_slots_in_use"} {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(to.names)), func(got string) bool { return strings.HasPrefix(got, name) }) {
					t.Errorf("no metric %s among %v", name, slices.Sorted(maps.Keys(to.names)))
				}
			}
			// The executor was told which span it works for.
			run := hex.EncodeToString(to.spans["sallyport.run"].GetSpanId())
			if got := executor.got[0].TraceParent; got != "00-"+parent[3:35]+"-"+run+"-01" {
				t.Errorf("the executor got %s, the span is %s", got, run)
			}
		})
	}
}

// A caller's _meta.traceparent reaches the record of a run over MCP; without one the record names the trace that the server made.
func TestTraceReachesTheRecord(t *testing.T) {
	t.Parallel()
	const parent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	to := newCollector()
	web := httptest.NewServer(to)
	defer web.Close()
	s, _, _ := recordServer(t, func(c *server.Config) {
		c.OTel = map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": web.URL + "/v1/traces"}
	})
	var result struct{ IsError bool }
	rpc(t, s.LocalHandler(), "tools/call", map[string]any{
		"name": "execute_cloud_skill", "arguments": map[string]any{"slug": "greet", "script_path": "scripts/run.sh"}, "_meta": map[string]any{"traceparent": parent},
	}, &result)
	id := ranOnce(t, s)
	list, err := s.Runs().List(t.Context(), server.Operator(), run.ListRequest{})
	if err != nil || len(list.Executions) != 2 || result.IsError {
		t.Fatal(list, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Executions {
		switch made := hex.EncodeToString(to.spans["sallyport.execute"].GetTraceId()); {
		case e.ID == id && e.TraceID != made:
			t.Errorf("the record names %q, the trace is %q", e.TraceID, made)
		case e.ID != id && e.TraceID != parent[3:35]:
			t.Errorf("over MCP the record names %q", e.TraceID)
		}
	}
	if len(to.names) > 0 {
		t.Errorf("metrics were exported, and only traces were asked for: %v", to.names)
	}
}

// Variables that nobody can use stop the start with their name and without their value.
func TestExportRefuses(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string]map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        {"OTEL_EXPORTER_OTLP_ENDPOINT": "hunter2:4317"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "hunter2"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "hunter2"},
		"OTEL_EXPORTER_OTLP_HEADERS":         {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_HEADERS": "hunter2"},
		"OTEL_TRACES_EXPORTER":               {"OTEL_TRACES_EXPORTER": "hunter2"},
	} {
		_, err := server.New(t.Context(), server.Config{DataDir: t.TempDir(), OTel: vars})
		if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if message := sallyport.Public(err).Message; !strings.Contains(message, name) || strings.Contains(message, "hunter2") {
			t.Errorf("%s: it says %q", name, message)
		}
	}
	var log bytes.Buffer
	for name, vars := range map[string]map[string]string{
		"nothing":  {},
		"disabled": {"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"},
		"none":     {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"},
		"a sampler that nobody knows": {
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER": "xray", "OTEL_TRACES_SAMPLER_ARG": "2", "OTEL_METRICS_EXPORTER": "none",
		},
	} {
		s, err := server.New(t.Context(), server.Config{DataDir: t.TempDir(), OTel: vars, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := log.String(); !strings.Contains(got, "OTEL_TRACES_SAMPLER names no sampler") || !strings.Contains(got, "OTEL_TRACES_SAMPLER_ARG is no number") {
		t.Errorf("the log says %s", got)
	}
}

// lines collects a log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// Every line that is logged within a request names it and its trace, once.
func TestLogLinesNameTheRequest(t *testing.T) {
	t.Parallel()
	const parent = "00-2af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	log := &lines{}
	s, _, _ := recordServer(t, func(c *server.Config) { c.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	for _, path := range []string{"/v1/skills/greet", "/v1/none"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("X-Request-Id", "r-1")
		r.Header.Set("Traceparent", parent)
		s.LocalHandler().ServeHTTP(httptest.NewRecorder(), r)
	}
	found := 0
	for line := range bytes.Lines(log.all.Bytes()) {
		if !bytes.Contains(line, []byte(`"http request"`)) {
			continue
		}
		found++
		var said struct {
			RequestID string `json:"request_id"`
			TraceID   string `json:"trace_id"`
		}
		if err := json.Unmarshal(line, &said); err != nil || said.RequestID != "r-1" || said.TraceID != parent[3:35] || bytes.Count(line, []byte("request_id")) != 1 {
			t.Errorf("got %s, %v", line, err)
		}
	}
	if found != 2 {
		t.Errorf("%d lines of requests: %s", found, log.all.Bytes())
	}
}
