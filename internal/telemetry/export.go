package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sallyport-dev/sallyport"
)

// Exporter sends spans and metrics to a collector until Shutdown.
type Exporter struct {
	traces  *sdktrace.TracerProvider
	plan    exportPlan
	res     *resource.Resource
	metrics *sdkmetric.MeterProvider
}

const opExport = "telemetry.export"

// NewExporter reads the OTEL_ variables and begins to export spans; Metrics begins with metrics. Without a variable that asks for
// it, it returns nil. A variable that would send things nowhere, or elsewhere than meant, is INVALID_ARGUMENT with its name and never its value;
// one that the specification tells to ignore is a warning in the log. What is not in vars (certificates, timeouts, batches) the
// exporters read from the process's own environment.
func NewExporter(ctx context.Context, vars map[string]string, version string, logger *slog.Logger) (*Exporter, error) {
	plan, warnings, err := planExport(vars)
	if err != nil || !plan.traces.on && !plan.metrics.on {
		return nil, err
	}
	for _, warning := range warnings {
		logger.WarnContext(ctx, "a variable was not used", "reason", warning)
	}
	// The SDK tells of lost batches in this way only.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.WarnContext(context.WithoutCancel(ctx), "telemetry was not exported", "error", err)
	}))
	res, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "sallyport"), attribute.String("service.version", version),
		attribute.String("service.instance.id", uuid.NewString()),
	), resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(plan.attributes...))
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, broken(err)
	}
	e := &Exporter{plan: plan, res: res}
	if !plan.traces.on {
		return e, nil
	}
	var exporter sdktrace.SpanExporter
	if plan.traces.grpc {
		exporter, err = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(plan.traces.endpoint), otlptracegrpc.WithHeaders(plan.traces.headers))
	} else {
		exporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(plan.traces.endpoint), otlptracehttp.WithHeaders(plan.traces.headers))
	}
	if err != nil {
		return nil, broken(err)
	}
	e.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res), sdktrace.WithSampler(plan.sampler))
	return e, nil
}

// Tracer makes the spans; nil when spans are not exported.
func (e *Exporter) Tracer() *sdktrace.TracerProvider {
	if e == nil {
		return nil
	}
	return e.traces
}

// Metrics begins to export what from gathers, when that is asked for.
func (e *Exporter) Metrics(ctx context.Context, from prometheus.Gatherer) error {
	if e == nil || !e.plan.metrics.on {
		return nil
	}
	var (
		exporter sdkmetric.Exporter
		err      error
		to       = e.plan.metrics
	)
	if to.grpc {
		exporter, err = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(to.endpoint), otlpmetricgrpc.WithHeaders(to.headers))
	} else {
		exporter, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(to.endpoint), otlpmetrichttp.WithHeaders(to.headers))
	}
	if err != nil {
		return broken(err)
	}
	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))))
	e.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(e.res))
	return nil
}

// Shutdown sends what is left, for as long as ctx allows. What cannot be sent is lost and no error: a collector that is away must not
// keep a server from stopping.
func (e *Exporter) Shutdown(ctx context.Context) {
	if e == nil {
		return
	}
	if e.traces != nil {
		otel.Handle(e.traces.Shutdown(ctx))
	}
	if e.metrics != nil {
		otel.Handle(e.metrics.Shutdown(ctx))
	}
}

func broken(err error) error {
	return &sallyport.Error{Op: opExport, Code: sallyport.CodeInvalidArgument, Message: "telemetry cannot be exported: an OTEL_ variable is not usable", Err: err}
}

// exportPlan is what the variables ask for.
type exportPlan struct {
	traces, metrics exportTo
	sampler         sdktrace.Sampler
	attributes      []attribute.KeyValue
}

type exportTo struct {
	on, grpc bool
	endpoint string // whole
	headers  map[string]string
}

func planExport(vars map[string]string) (plan exportPlan, warnings []string, err error) {
	if strings.EqualFold(vars["OTEL_SDK_DISABLED"], "true") {
		return plan, nil, nil
	}
	if plan.traces, err = planSignal(vars, "TRACES"); err != nil {
		return plan, nil, err
	}
	if plan.metrics, err = planSignal(vars, "METRICS"); err != nil {
		return plan, nil, err
	}
	warnings = plan.sample(vars)
	attributes, err := pairs(vars["OTEL_RESOURCE_ATTRIBUTES"])
	if err != nil {
		warnings = append(warnings, "OTEL_RESOURCE_ATTRIBUTES is not a list of name=value")
		attributes = nil
	}
	if name := vars["OTEL_SERVICE_NAME"]; name != "" {
		attributes = append(attributes, [2]string{"service.name", name})
	}
	for _, pair := range attributes {
		plan.attributes = append(plan.attributes, attribute.String(pair[0], pair[1]))
	}
	return plan, warnings, nil
}

// planSignal decides one signal. What is set for it is stronger than what is set for all.
func planSignal(vars map[string]string, signal string) (exportTo, error) {
	read := func(what string) (name, value string) {
		name = "OTEL_EXPORTER_OTLP_" + signal + "_" + what
		if value = vars[name]; value == "" {
			name = "OTEL_EXPORTER_OTLP_" + what
			value = vars[name]
		}
		return name, value
	}
	var to exportTo
	name, endpoint := read("ENDPOINT")
	exporters := []string{"otlp", "none"}
	if signal == "METRICS" {
		exporters = append(exporters, "prometheus")
	}
	switch exporter := vars["OTEL_"+signal+"_EXPORTER"]; {
	case exporter == "":
		to.on = endpoint != ""
	case !slices.Contains(exporters, exporter):
		return to, unusable("OTEL_"+signal+"_EXPORTER", "want "+strings.Join(exporters, " or "))
	default:
		to.on = exporter == "otlp"
	}
	if !to.on {
		return to, nil
	}
	protocol, value := read("PROTOCOL")
	switch value {
	case "", "http/protobuf":
	case "grpc":
		to.grpc = true
	default:
		return to, unusable(protocol, "want http/protobuf or grpc")
	}
	var err error
	if to.endpoint, err = wholeEndpoint(name, endpoint, signal, to.grpc); err != nil {
		return to, err
	}
	names, value := read("HEADERS")
	headers, err := pairs(value)
	if err != nil {
		return to, unusable(names, "want name=value pairs with commas between them, percent-encoded")
	}
	to.headers = map[string]string{}
	for _, pair := range headers {
		to.headers[pair[0]] = pair[1]
	}
	return to, nil
}

// wholeEndpoint is where a signal goes: an endpoint for all signals gets the path of this one, one of its own is taken as it is.
func wholeEndpoint(name, endpoint, signal string, grpc bool) (string, error) {
	if endpoint == "" {
		endpoint = "http://localhost:4318"
		if grpc {
			endpoint = "http://localhost:4317"
		}
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return "", unusable(name, "want a URL such as http://collector:4318")
	}
	if !grpc && !strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_"+signal) {
		parsed.Path = strings.TrimRight(parsed.Path, "/") + "/v1/" + strings.ToLower(signal)
	}
	return parsed.String(), nil
}

// sample falls back to the specification's default, as it asks, and says so.
func (p *exportPlan) sample(vars map[string]string) (warnings []string) {
	ratio := 1.0
	if text := vars["OTEL_TRACES_SAMPLER_ARG"]; text != "" {
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil || parsed < 0 || parsed > 1 {
			warnings = append(warnings, "OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1; 1 is used")
		} else {
			ratio = parsed
		}
	}
	switch vars["OTEL_TRACES_SAMPLER"] {
	case "", "parentbased_always_on":
		p.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "parentbased_always_off":
		p.sampler = sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		p.sampler = sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))
	case "always_on":
		p.sampler = sdktrace.AlwaysSample()
	case "always_off":
		p.sampler = sdktrace.NeverSample()
	case "traceidratio":
		p.sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		p.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
		warnings = append(warnings, "OTEL_TRACES_SAMPLER names no sampler that is known; parentbased_always_on is used")
	}
	return warnings
}

// pairs reads name=value,name=value, percent-encoded.
func pairs(text string) ([][2]string, error) {
	var out [][2]string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, found := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || name == "" || err != nil {
			return nil, errors.New("no pair")
		}
		out = append(out, [2]string{name, decoded})
	}
	return out, nil
}

// unusable names a variable and never its value, which may be a secret.
func unusable(name, want string) error {
	return sallyport.Errorf(opExport, sallyport.CodeInvalidArgument, "the environment variable %s is not usable: %s", name, want)
}
